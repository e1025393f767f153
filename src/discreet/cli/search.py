# SPDX-License-Identifier: Apache-2.0
"""The one number written as `?`: the least noise, the greatest rate, the most runs.

**Guarantee.** The number found keeps the target exactly as it is printed, so it can be typed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.cli.flags import HOLE, Flag, Safer, Slot
from discreet.cli.terminal import rounded, whole_of, working
from discreet.cli.terms import Recipe
from discreet.errors import BadParameter, CannotCertify

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

_WORDS = {Safer.MORE: "the least", Safer.LESS: "the greatest", Safer.FEWER: "the most"}
#: How near the edge the search ends, relatively.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Found:
    """The number, and where it belongs."""

    flag: str
    parameter: str
    value: float | int


def search(recipe: Recipe, target: Guarantee) -> tuple[Recipe, Found, str]:
    """The recipe with its open number filled in on the safe side of the target, the number, and words for it."""
    flag, slot, safer = _only_hole(recipe)
    name = flag.name if len(flag.slots) == 1 else f"{slot.name} of {flag.name}"
    turn = _falling(slot) if safer is Safer.LESS else float
    value = edge(lambda number: recipe.filled(number).guarantee, target, safer, name, turn)
    return (
        recipe.filled(value),
        Found(flag.name, slot.name, value),
        f"{_WORDS[safer]} {name} is {whole_of(value)}",
    )


def edge(
    family: Callable[[Any], Guarantee],
    target: Guarantee,
    safer: Safer,
    name: str,
    turn: Callable[[float], float] = float,
) -> float | int:
    """The last number that keeps the target; `turn` maps (0, ∞) to the parameter so that more is safer."""
    from discreet.privacy.calibrate import calibrate

    try:
        with working(f"searching {_WORDS[safer]} {name}"):
            if safer is Safer.FEWER:
                return int(calibrate(family, to=target, integer=True))
            exact = float(turn(calibrate(lambda z: family(turn(z)), to=target, tolerance=_TOLERANCE)))
            return next(number for number in _typed(exact, safer) if family(number).implies(target))
    except CannotCertify as error:
        raise CannotCertify(
            error.code,
            f"no {name} was proved to keep {target!r}.",
            why=error.why,
            fix="raise --for-epsilon or --delta, or spend less on what is not searched",
            bracket=error.bracket,
        ) from None


def _typed(exact: float, safer: Safer) -> list[float]:
    """Numbers at the edge, the shortest first; the exact one, which is proved, is the last resort."""
    short = float(f"{exact:.4e}")
    near = [short] if math.isclose(short, exact, rel_tol=2 * _TOLERANCE) else []
    return [*near, rounded(exact, upwards=safer is Safer.MORE), exact]


def _falling(slot: Slot) -> Callable[[float], float]:
    """Where less is safer the search walks along a falling map that stays in range."""
    if slot.name == "DELTA":
        return lambda z: max(math.exp(-z), 1e-300)
    if slot.name == "RATE":
        return lambda z: min(1.0, 1 / z)
    return lambda z: 1 / z


def _only_hole(recipe: Recipe) -> tuple[Flag, Slot, Safer]:
    holes = recipe.holes()
    if len(holes) != 1:
        raise BadParameter(
            "DP107",
            f"--for-epsilon looks for one number, and {len(holes)} are written as '{HOLE}'.",
            why="with none open there is nothing to find, with several there are many answers.",
            fix=f"--gaussian '{HOLE}' --sampled 0.01 --times 1000 --for-epsilon 1 --delta 1e-6",
        )
    return holes[0]
