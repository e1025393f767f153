# SPDX-License-Identifier: Apache-2.0
"""An entry for the public registry of differential-privacy deployments, in its fields.

The fields and their order are those of the registry's own template (basic, dp_variant,
privacy_loss, deployment_model, implementation, administrative).

**Guarantee.** A field holds what the ledger shows, or what a person declared, or null. The library
declares nothing by itself: who publishes, for which use, when, who has access, what happens after
the noise, why these parameters, and which tier the entry has, are a person's words, listed in
`asserted`. What is still to be said is listed in `missing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.json_types import JsonFacts, JsonObject, JsonValue

__all__ = ["DECLARED", "entry", "missing_words", "rows", "validate_declared"]

#: What a person can declare, by the section of the registry that it belongs to.
DECLARED: dict[str, tuple[str, ...]] = {
    "basic": (
        "name", "data_curator", "data_curator_type", "description", "intended_use", "data_product_type",
        "data_product_region", "data_product_sector", "publication_date",
    ),
    "dp_variant": ("data_domain", "unprotected_quantities"),
    "privacy_loss": ("privacy_unit_details", "privacy_parameters_details"),
    "deployment_model": (
        "model_name", "model_name_details", "trust_assumptions", "actors", "release_type", "release_type_details",
        "data_source_type", "data_source_type_details", "access_type", "access_type_details",
    ),
    "implementation": (
        "preprocessing_and_hyperparameter_tuning", "post_processing", "justification", "utility",
        "additional_information",
    ),
    "administrative": ("evidence_sources", "status", "registry_authors", "tier"),
}  # fmt: skip
#: Not a field of the registry: the public number of protected units, which δ is compared with.
UNITS = "units"
_NAMES = tuple(name for names in DECLARED.values() for name in names)
_TIERS = (1, 2, 3)
_LONGEST = 20_000


def validate_declared(declared: JsonFacts | None) -> JsonObject:
    """What a person declares about a deployment, checked; refused where a name or a type is wrong.

    >>> validate_declared({"intended_use": "planning of wards", "publication_date": "2026-11-01"})
    {'intended_use': 'planning of wards', 'publication_date': '2026-11-01'}
    """
    if declared is None:
        return {}
    if not isinstance(declared, Mapping):
        raise _declared_error("DP104", f"what is declared is a mapping, not {type(declared).__name__}.")
    unknown = [str(name) for name in declared if name not in (*_NAMES, UNITS)]
    if unknown:
        raise _declared_error("DP105", f"{unknown[0]!r} is not a field that a statement knows.")
    return {name: _value(name, value) for name, value in declared.items()}


def _value(name: str, value: object) -> JsonValue:
    if name == UNITS:
        return check.whole(units=value)
    if name == "tier":
        return int(check.choice([str(tier) for tier in _TIERS], tier=str(value)))
    if name == "publication_date":
        return _day(value)
    if not isinstance(value, str) or not value.strip():
        raise _declared_error("DP104", f"{name} must be text that is not empty, not {type(value).__name__}.")
    if len(value) > _LONGEST:
        raise _declared_error("DP102", f"{name} must have {_LONGEST:,} characters at most.")
    return value


def _day(value: Any) -> str:
    try:
        return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()[:10]
    except (TypeError, ValueError):
        raise _declared_error("DP104", "publication_date must be a day, as 2026-11-01.") from None


def entry(facts: JsonFacts, declared: JsonFacts) -> JsonObject:
    """The registry's fields for a statement, and which of them a person has said or has still to
    say.
    """
    known = _fields_from_ledger(facts)
    sections = {
        section: {**{name: declared.get(name) for name in names}, **known.get(section, {})}
        for section, names in DECLARED.items()
    }
    sections["basic"]["name"] = declared.get("name") or facts["dataset"]
    everywhere = [(section, name) for section, names in DECLARED.items() for name in names]
    return {
        **sections,
        "asserted": [f"{section}.{name}" for section, name in everywhere if name in declared],
        "missing": [f"{section}.{name}" for section, name in everywhere if sections[section][name] is None],
    }


def rows(filled: JsonFacts) -> Iterator[tuple[str, str, str]]:
    """Every field that is filled in, in words, and who says it: (field, entry, by whom)."""
    for section in DECLARED:
        for name, value in filled[section].items():
            if value is not None:
                asserted = f"{section}.{name}" in filled["asserted"]
                yield f"{section}.{name}", _words(value), "asserted" if asserted else "from the ledger"


def missing_words(filled: JsonFacts) -> str:
    """The fields that a person has still to fill in."""
    listed = ", ".join(filled["missing"])
    return f"Still to be said, by a person: {listed}." if listed else "Every field is filled in."


def _words(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {amount:g}" for name, amount in value.items() if amount is not None)
    return str(value)


def _fields_from_ledger(facts: JsonFacts) -> dict[str, JsonObject]:
    """What the ledger shows."""
    claim, unit = facts["claim"], facts["unit"]
    return {
        "dp_variant": {"variant_name": claim["variant"]},
        "privacy_loss": {
            "privacy_unit": unit["protects"],
            "relation": unit["relation"],
            "number_of_privacy_units": 1,
            "privacy_parameters": {name: claim[name] for name in ("epsilon", "delta", "rho")},
            "over": claim["over"],
        },
        "implementation": {
            "mechanisms": _mechanisms(facts),
            "composition": facts["limit"]["theorem"],
            "library": f"discreet {facts['making']['version']}",
        },
    }


def _mechanisms(facts: JsonFacts) -> str | None:
    """Every mechanism that was charged, and how often; whose noise is only asserted is said so."""
    counted = Counter((line["guarantee"], line["noise"]) for line in facts["released"])
    descriptions = [f"{count} × {run} ({noise})" for (run, noise), count in counted.items()]
    return "; ".join(descriptions) or None


def _declared_error(code: str, what: str) -> BadParameter:
    return BadParameter(
        code,
        what,
        why="a registry reads these fields, and nobody but a person can fill them in.",
        fix=f"declared={{'intended_use': 'planning of wards'}};  fields: {', '.join((*_NAMES, UNITS))}",
    )
