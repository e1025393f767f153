# SPDX-License-Identifier: Apache-2.0
"""The facts about a guarantee as one JSON object with stable keys, and the same object as text.

**Guarantee.** The keys of the object are the same for every question; a key that was not asked for
is null. An infinite number is the string "Infinity", because JSON has none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from discreet.cli.terminal import all_digits, at_least_percent, print_rows, print_table, working
from discreet.errors import CannotCertify, DiscreetError
from discreet.exact import lower_bound_text, upper_bound_text
from discreet.json_types import JsonObject

if TYPE_CHECKING:
    from discreet.privacy.bound import Bound
    from discreet.privacy.guarantee import Guarantee

#: The false-alarm rate at which the attacker is described.
_FALSE_ALARM = 0.01


@dataclass(frozen=True)
class AccountQuestion:
    """Which point of a guarantee is asked for: ε at a δ, or δ at an ε."""

    delta: float | None
    epsilon: float | None = None
    route: str | None = None
    compare: bool = False


class BoundFacts(TypedDict):
    """A bound, as JSON types."""

    lower: float
    upper: float
    route: str
    theorem: str
    assumes: list[str]


class AttackerFacts(TypedDict):
    """What an attacker achieves at one rate of false alarms."""

    false_alarm: float
    miss: float
    advantage: float


class AccountFacts(TypedDict):
    """The object that `discreet account --json` prints."""

    command: str
    what: str
    guarantee: object
    unit: str
    relation: str
    asked: str
    epsilon: float
    delta: float
    bound: BoundFacts
    attacker: AttackerFacts
    routes: list[BoundFacts] | None
    calibrated: dict[str, object] | None
    explanation: dict[str, Any] | None
    plot: str | None
    training: NotRequired[dict[str, object]]


def facts(command: str, guarantee: Guarantee, question: AccountQuestion) -> AccountFacts:
    """Everything that is reported about a guarantee, ready for JSON."""
    with working("computing"):
        bound = guarantee.bound(question.delta, question.epsilon, question.route)
        routes = (
            guarantee.compare(question.delta) if question.compare and question.delta is not None else None
        )
        attacker: AttackerFacts = {
            "false_alarm": _FALSE_ALARM,
            "miss": guarantee.tradeoff(_FALSE_ALARM),
            "advantage": guarantee.advantage(),
        }
    return {
        "command": command,
        "what": repr(guarantee),
        "guarantee": json.loads(guarantee.to_json()),
        "unit": guarantee.unit.protects,
        "relation": guarantee.unit.relation,
        "asked": "epsilon" if question.epsilon is None else "delta",
        "epsilon": bound.upper if question.epsilon is None else question.epsilon,
        "delta": bound.upper if question.delta is None else question.delta,
        "bound": _bound_fields(bound),
        "attacker": attacker,
        "routes": [_bound_fields(row) for row in routes] if routes else None,
        "calibrated": None,
        "explanation": None,
        "plot": None,
    }


def _bound_fields(bound: Bound) -> BoundFacts:
    return {
        "lower": bound.lower,
        "upper": bound.upper,
        "route": bound.route,
        "theorem": bound.theorem,
        "assumes": sorted(bound.assumes),
    }


def explanation(guarantee: Guarantee) -> JsonObject:
    """The guarantee in plain sentences."""
    with working("explaining"):
        return guarantee.explain().to_dict()


def print_json(facts: Mapping[str, object]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(_without_infinity(facts), ensure_ascii=False, allow_nan=False, indent=2))


def error_object(error: DiscreetError) -> dict[str, object]:
    """An error for JSON."""
    bracket = error.bracket if isinstance(error, CannotCertify) else None
    fields = {name: getattr(error, name) for name in ("code", "what", "why", "fix", "spent")}
    return fields | {"bracket": list(bracket) if bracket else None}


def _without_infinity(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_infinity(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_infinity(inner) for inner in value]
    return "Infinity" if isinstance(value, float) and math.isinf(value) else value


def guarantee_rows(facts: AccountFacts, *, bracket: bool) -> list[tuple[str, str]]:
    """What a reader wants to know first: who is protected, the number, the theorem, what an
    attacker can do.
    """
    bound = facts["bound"]
    sign = "ε" if facts["asked"] == "epsilon" else "δ"
    at = f"δ = {all_digits(facts['delta'])}" if sign == "ε" else f"ε = {all_digits(facts['epsilon'])}"
    change = "added or removed" if facts["relation"] == "add-remove" else "replaced"
    certified = f"{lower_bound_text(bound['lower'])} ≤ {sign} ≤ {upper_bound_text(bound['upper'])}"
    return [
        ("protects", f"one {facts['unit']} {change}"),
        (f"{sign} at {at}", upper_bound_text(bound["upper"])),
        *([("certified", certified)] if bracket else []),
        ("by", f"{bound['route']} ({bound['theorem']})"),
        *([("assumes", "; ".join(bound["assumes"]))] if bound["assumes"] else []),
        ("an attacker", _attacker(facts["attacker"])),
    ]


def _attacker(facts: AttackerFacts) -> str:
    misses, advantage = at_least_percent(facts["miss"]), upper_bound_text(facts["advantage"], 4)
    return f"with {100 * facts['false_alarm']:g} % false alarms misses at least {misses}; advantage at most {advantage}"


def print_routes(facts: AccountFacts) -> None:
    """Every route that applies, the tightest first."""
    if not facts["routes"]:
        return
    print()
    lines = [(row["route"], upper_bound_text(row["upper"]), row["theorem"]) for row in facts["routes"]]
    print_table(["route", f"ε at δ = {all_digits(facts['delta'])}", "theorem"], lines, numbers={1})


def print_answer(facts: AccountFacts, first: Sequence[tuple[str, str]], *, bracket: bool) -> None:
    """The facts as text; `first` says what was run, in the words of the command."""
    plot = [("plot", facts["plot"])] if facts["plot"] else []
    print_rows([*first, *guarantee_rows(facts, bracket=bracket), *plot])
    print_routes(facts)
    print_explanation(facts)


def print_explanation(facts: AccountFacts) -> None:
    """What it means for one protected unit, in sentences."""
    explanation = facts["explanation"]
    if explanation is None:
        return
    print()
    cautions = [f"Caution: {text}" for text in explanation["cautions"]]
    sentences = [*cautions, *explanation["sentences"], explanation["conditions"]]
    print_rows(
        [*_list_rows("in words", sentences), *_list_rows("not protected", explanation["not_protected"])]
    )


def _list_rows(name: str, lines: list[str]) -> list[tuple[str, str]]:
    return [(name if number == 0 else "", f"- {text}") for number, text in enumerate(lines)]
