# SPDX-License-Identifier: Apache-2.0
"""The one number written as `?`: the least noise, the greatest rate, the most runs.

**Promise.** The number found keeps the target exactly as it is printed, so it can be typed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.cli.flags import HOLE, Flag, Safer, Slot
from discreet.cli.terminal import rounded, working
from discreet.cli.terms import Recipe
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

_WORDS = {Safer.MORE: "the least", Safer.LESS: "the greatest", Safer.FEWER: "the most"}


@dataclass(frozen=True)
class Found:
    """The number, and where it belongs."""

    flag: str
    parameter: str
    value: float | int


def search(recipe: Recipe, target: Guarantee) -> tuple[Recipe, Found, str]:
    """The recipe with its open number filled in on the safe side of the target, the number, and words for it."""
    flag, slot, safer = _only_hole(recipe)
    name = f"{_WORDS[safer]} {flag.name if len(flag.slots) == 1 else f'{slot.name} of {flag.name}'}"
    with working(f"searching {name}"):
        value = _edge(recipe, target, slot, safer)
    return recipe.filled(value), Found(flag.name, slot.name, value), f"{name} is {value:.12g}"


def _edge(recipe: Recipe, target: Guarantee, slot: Slot, safer: Safer) -> float | int:
    from discreet.privacy.calibrate import calibrate

    if safer is Safer.FEWER:
        return int(calibrate(lambda k: recipe.filled(k).guarantee(), to=target, integer=True))
    turn = _falling(slot) if safer is Safer.LESS else float
    exact = turn(calibrate(lambda z: recipe.filled(turn(z)).guarantee(), to=target))
    short = rounded(exact, upwards=safer is Safer.MORE)
    return short if recipe.filled(short).guarantee().implies(target) else exact


def _falling(slot: Slot) -> Callable[[float], float]:
    """The search takes more to be safer; where less is, it walks along a falling map that stays in range."""
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
    flag, slot, safer = holes[0]
    return flag, slot, safer
