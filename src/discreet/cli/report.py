# SPDX-License-Identifier: Apache-2.0
"""The answer as one JSON object with stable keys, and the same object for the eye.

**Guarantee.** The keys of the object are the same for every question; a key that was not asked for is null. An infinite
number is the string "Infinity", because JSON has none.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.cli.terminal import at_least_percent, down, print_rows, print_table, up, whole_of, working
from discreet.errors import CannotCertify, DiscreetError

if TYPE_CHECKING:
    from discreet.privacy.bound import Bound
    from discreet.privacy.guarantee import Guarantee

#: The false-alarm rate at which the attacker is described.
_FALSE_ALARM = 0.01


@dataclass(frozen=True)
class Question:
    """What is asked of a guarantee: ε at a δ, or δ at an ε."""

    delta: float | None
    epsilon: float | None = None
    route: str | None = None
    compare: bool = False


def facts(command: str, guarantee: Guarantee, question: Question) -> dict[str, Any]:
    """Everything that is said about a guarantee, ready for JSON."""
    with working("computing"):
        bound = guarantee.bound(question.delta, question.epsilon, question.route)
        routes = (
            guarantee.compare(question.delta) if question.compare and question.delta is not None else None
        )
        attacker = {
            "false_alarm": _FALSE_ALARM,
            "miss": guarantee.tradeoff(_FALSE_ALARM),
            "advantage": guarantee.advantage(),
        }
    asks_epsilon = question.delta is not None
    return {
        "command": command,
        "what": repr(guarantee),
        "guarantee": json.loads(guarantee.to_json()),
        "unit": guarantee.unit.protects,
        "relation": guarantee.unit.relation,
        "asked": "epsilon" if asks_epsilon else "delta",
        "epsilon": bound.upper if asks_epsilon else question.epsilon,
        "delta": question.delta if asks_epsilon else bound.upper,
        "bound": _bound(bound),
        "attacker": attacker,
        "routes": [_bound(row) for row in routes] if routes else None,
        "calibrated": None,
        "explanation": None,
        "plot": None,
    }


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "lower": bound.lower,
        "upper": bound.upper,
        "route": bound.route,
        "theorem": bound.theorem,
        "assumes": sorted(bound.assumes),
    }


def explained(guarantee: Guarantee, *, asked: bool) -> dict[str, Any] | None:
    """The guarantee in plain sentences, if they were asked for."""
    if not asked:
        return None
    with working("explaining"):
        return guarantee.explain().to_dict()


def print_json(found: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(_finite(found), ensure_ascii=False, allow_nan=False, indent=2))


def error_object(error: DiscreetError) -> dict[str, object]:
    """An error for JSON."""
    bracket = error.bracket if isinstance(error, CannotCertify) else None
    said = {name: getattr(error, name) for name in ("code", "what", "why", "fix", "spent")}
    return said | {"bracket": list(bracket) if bracket else None}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return "Infinity" if isinstance(value, float) and math.isinf(value) else value


def rows(found: dict[str, Any], *, bracket: bool) -> list[tuple[str, str]]:
    """What a reader wants to know first: whom it protects, the number, who proved it, what an attacker can do."""
    bound = found["bound"]
    sign = "ε" if found["asked"] == "epsilon" else "δ"
    given = f"δ = {whole_of(found['delta'])}" if sign == "ε" else f"ε = {whole_of(found['epsilon'])}"
    change = "added or removed" if found["relation"] == "add-remove" else "replaced"
    certified = f"{down(bound['lower'])} ≤ {sign} ≤ {up(bound['upper'])}"
    return [
        ("protects", f"one {found['unit']} {change}"),
        (f"{sign} at {given}", up(bound["upper"])),
        *([("certified", certified)] if bracket else []),
        ("by", f"{bound['route']} ({bound['theorem']})"),
        *([("assumes", "; ".join(bound["assumes"]))] if bound["assumes"] else []),
        ("an attacker", _attacker(found["attacker"])),
    ]


def _attacker(found: dict[str, float]) -> str:
    misses, advantage = at_least_percent(found["miss"]), up(found["advantage"], 4)
    return f"with {100 * found['false_alarm']:g} % false alarms misses at least {misses}; advantage at most {advantage}"


def print_routes(found: dict[str, Any]) -> None:
    """Every route that applies, the tightest first."""
    if not found["routes"]:
        return
    print()
    lines = [(row["route"], up(row["upper"]), row["theorem"]) for row in found["routes"]]
    print_table(["route", f"ε at δ = {whole_of(found['delta'])}", "theorem"], lines, numbers={1})


def print_answer(found: dict[str, Any], first: list[tuple[str, str]], *, bracket: bool) -> None:
    """The whole answer for the eye: `first` says what was run, in the words of the command."""
    plot = [("plot", found["plot"])] if found["plot"] else []
    print_rows([*first, *rows(found, bracket=bracket), *plot])
    print_routes(found)
    print_explanation(found)


def print_explanation(found: dict[str, Any]) -> None:
    """What it means for one protected unit, in sentences."""
    told = found["explanation"]
    if told is None:
        return
    print()
    warned = [f"Caution: {text}" for text in told["cautions"]]
    said, limits = [*warned, *told["sentences"], told["conditions"]], told["not_protected"]
    print_rows([*_listed("in words", said), *_listed("not protected", limits)])


def _listed(name: str, lines: list[str]) -> list[tuple[str, str]]:
    return [(name if number == 0 else "", f"- {text}") for number, text in enumerate(lines)]
