# SPDX-License-Identifier: Apache-2.0
"""Guarantees in JSON, versioned.

**Guarantee.** `from_json(to_json(g)) == g`. A stored description never changes its meaning: kinds
are never removed, their fields are never re-interpreted, new fields are optional with the old
meaning as default, and a description that this version does not understand is refused, never
guessed at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from discreet import check
from discreet.errors import BadDescription, DiscreetError
from discreet.json_types import JsonObject
from discreet.privacy import (
    allocation,
    constructors,
    groups,
    mixtures,
    primitives,
    sampling,
    selection,
    shuffling,
    wrapped,
)
from discreet.privacy.guarantee import ComposedGuarantee, Guarantee, compose
from discreet.privacy.unit import Unit

Thing = TypeVar("Thing")

VERSION = 1

_KINDS: dict[type[Guarantee], str] = {
    primitives.PureGuarantee: "pure",
    primitives.ApproximateGuarantee: "approximate",
    primitives.ConcentratedGuarantee: "concentrated",
    primitives.RenyiGuarantee: "renyi",
    primitives.LaplaceGuarantee: "laplace",
    primitives.GaussianGuarantee: "gaussian",
    primitives.DiscreteLaplaceGuarantee: "discrete_laplace",
    primitives.DiscreteGaussianGuarantee: "discrete_gaussian",
    primitives.RandomizedResponseGuarantee: "randomized_response",
    primitives.LeakyRandomizedResponseGuarantee: "leaky_randomized_response",
    primitives.LeakyGuarantee: "leaky",
    primitives.ExponentialGuarantee: "exponential",
    mixtures.GaussianMixtureGuarantee: "gaussian_mixture",
    mixtures.TruncatedBatchesGuarantee: "truncated_batches",
    wrapped.PairGuarantee: "pair",
    wrapped.TwoGaussiansGuarantee: "two_gaussians",
}


def to_json(guarantee: Guarantee) -> str:
    """One line of JSON; equal guarantees give equal text."""
    return write_versioned("guarantee", _pack(guarantee))


@check.arguments
def from_json(text: str) -> Guarantee:
    """The guarantee that `to_json` described.

    >>> from discreet import privacy
    >>> privacy.from_json(privacy.laplace(scale=2).to_json())
    laplace(scale=2.0)
    """
    return read_versioned(text, "guarantee", _unpack)


def write_versioned(kind: str, fields: JsonObject) -> str:
    """One line of JSON for an object of this kind; equal fields give equal text."""
    return json.dumps({"discreet": VERSION, kind: fields}, sort_keys=True, ensure_ascii=False)


def read_versioned(text: str, kind: str, build: Callable[[Any], Thing]) -> Thing:
    """What `build` makes of the fields that `write_versioned` wrote.

    **Guarantee.** Any other text is refused (DP401), and so is one of a later version (DP402),
    whose fields may mean something else; whatever `build` raises becomes a refusal.
    """
    try:
        data = json.loads(text)
        version = data["discreet"]
        if isinstance(version, int) and version > VERSION:
            raise BadDescription(
                "DP402",
                f"this description has version {version}, and this release reads up to {VERSION}.",
                why="a newer version may mean something that this one would misread.",
                fix="upgrade discreet.",
            )
        return build(data[kind])
    except BadDescription:
        raise
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        DiscreetError,
    ) as error:
        raise BadDescription(
            "DP401",
            f"this is not a description of a {kind} ({type(error).__name__}).",
            why="a damaged description must not turn into another one.",
            fix=f"pass the text that {kind}.to_json() returned, unchanged.",
        ) from error


def read_text(value: object) -> str:
    """A text; TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value


def read_list(value: object) -> list[Any]:
    """A list; TypeError for anything else."""
    if not isinstance(value, list):
        raise TypeError(type(value).__name__)
    return value


def read_texts(value: object) -> tuple[str, ...]:
    """A list of texts; TypeError for anything else."""
    return tuple(map(read_text, read_list(value)))


def _pack(node: Guarantee) -> dict[str, Any]:
    match node:
        case ComposedGuarantee():
            parts = [{"count": count, "of": _pack(part)} for part, count in node.parts]
            return {
                "kind": "composed",
                "parts": sorted(parts, key=lambda part: json.dumps(part, sort_keys=True)),
            }
        case sampling.SampledGuarantee():
            fields = {"rate": node.rate, "scheme": node.scheme, "relation": node.unit.relation}
            return {"kind": "sampled", "of": _pack(node.inner), **fields}
        case allocation.AllocatedGuarantee():
            return {"kind": "allocated", "of": _pack(node.inner), "steps": node.steps, "times": node.times}
        case shuffling.ShuffledGuarantee():
            return {"kind": "shuffled", "of": _pack(node.inner), "n": node.n}
        case groups.GroupGuarantee():
            return {"kind": "group", "of": _pack(node.inner), "size": node.size}
        case wrapped.ParallelGuarantee():
            parts = sorted(
                (_pack(part) for part in node.parts), key=lambda part: json.dumps(part, sort_keys=True)
            )
            return {"kind": "parallel", "parts": parts, "relation": node.relation}
        case selection.SelectedGuarantee():
            return {"kind": "selected", "of": _pack(node.inner), "gamma": node.gamma, "eta": node.eta}
        case selection.OneOfGuarantee():
            choices = (_pack(part) for part in node.parts)
            return {
                "kind": "one_of",
                "parts": sorted(choices, key=lambda part: json.dumps(part, sort_keys=True)),
            }
    assert isinstance(node, primitives.Primitive)
    values = {
        name: _plain(getattr(node, name) if isinstance(value, dict) else value)
        for name, value in node.parameters().items()
    }
    unit = {"protects": node.unit.protects, "relation": node.unit.relation}
    return {"kind": _KINDS[type(node)], "unit": unit, **values}


def _unpack(data: dict[str, Any]) -> Guarantee:
    fields = dict(data)
    match kind := fields.pop("kind"):
        case "composed":
            return compose([(_unpack(part["of"]), _count(part["count"])) for part in fields["parts"]])
        case "sampled":
            return sampling.sample(
                _unpack(fields["of"]), fields["rate"], fields["scheme"], fields["relation"]
            )
        case "allocated":
            return allocation.allocate(_unpack(fields["of"]), fields["steps"], fields["times"])
        case "shuffled":
            return shuffling.shuffled(_unpack(fields["of"]), fields["n"])
        case "group":
            return _unpack(fields["of"]).group(fields["size"])
        case "parallel":
            return wrapped.parallel(*(_unpack(part) for part in fields["parts"]), relation=fields["relation"])
        case "selected":
            return selection.selected(_unpack(fields["of"]), gamma=fields["gamma"], eta=fields["eta"])
        case "one_of":
            return selection.one_of(*(_unpack(part) for part in fields["parts"]))
    unit = fields.pop("unit")
    return _leaf(kind, fields, Unit(unit["protects"], unit["relation"]))


def _leaf(kind: str, fields: dict[str, Any], unit: Unit) -> Guarantee:
    """A primitive through its public constructor, so that stored values are checked like given
    ones.
    """
    match kind:
        case "renyi":
            return constructors.renyi_curve(dict(fields["points"]), unit=unit)
        case "gaussian_mixture":
            return mixtures.gaussian_mixture(fields["noise"], dict(fields["moves"]), unit=unit)
        case "concentrated":
            return constructors.concentrated(fields["rho"], fields["xi"], fields["delta"], unit=unit)
        case "pair":
            tables = wrapped.pair(fields["p"], fields["q"], unit=unit)
            return replace(tables, taken=frozenset(fields["taken"]))  # type: ignore[type-var]
    home = {"two_gaussians": wrapped, "truncated_batches": mixtures}.get(kind, constructors)
    if kind not in _KINDS.values():
        raise ValueError(kind)
    return getattr(home, kind)(**fields, unit=unit)  # type: ignore[no-any-return]


def _count(count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError("count")
    return count


def _plain(value: Any) -> Any:
    """Tuples as lists, sets as sorted lists."""
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
