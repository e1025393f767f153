# SPDX-License-Identifier: Apache-2.0
"""How a budget is divided among the parts of an answer.

    pure ε            every part gets the share of its weight, as a decimal that is rounded down; they add up to ε at most
    ρ, or (ε, δ)      every part gets the share of its weight of one ρ; for (ε, δ) the greatest ρ is searched for which the
                      composition of all parts, with the leak of the selection, is proved to be (ε, δ)

Equal weights are the best division where each column is measured against how much one row can move it: for variances
Δ²/ε² and weights w, ε ∝ (wΔ²)^{1/3} and ρ ∝ Δ√w are best, and with w = 1/Δ² both are equal (compile.proof.md, § 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from discreet import privacy
from discreet.mechanisms.laws import exactly
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.part import Part, Recipe, Scope
from discreet.tables.selection import Selection, gaussian_selection, laplace_selection
from discreet.tables.spend import Spend

__all__ = ["Ready", "divided"]

Recipes = Callable[[bool], list[Recipe]]
_LEAK = 0.25  # of δ for the selection, where Gaussian noise needs the rest
_ALL = 1 - 1e-9  # where nothing else needs δ; the rest is for rounding
_TOLERANCE = 1e-9
_FINDING = (
    2.0  # the weight of finding groups: one that is not shown loses its whole number, others only some noise
)


@dataclass(frozen=True)
class Ready:
    """The parts of an answer, each with its noise; `selection` finds the groups where they are not public."""

    parts: tuple[Part, ...]
    selection: Selection | None = None


def divided(recipes: Recipes, scope: Scope, spend: Spend, *, found: bool) -> Ready:
    """All parts at that cost; `found` says whether groups have to be found."""
    if spend.is_pure:
        return _pure(recipes(True), scope, spend, found=False)
    gaussian = _gaussian(recipes(False), scope, spend, found=found)
    if not found or spend.epsilon is None:
        return gaussian
    laplace = _pure(recipes(True), scope, spend, found=True)
    return min((laplace, gaussian), key=_badness)


def _pure(recipes: Sequence[Recipe], scope: Scope, spend: Spend, *, found: bool) -> Ready:
    assert spend.epsilon is not None
    total = sum(recipe.weight for recipe in recipes) + _FINDING * found
    unit = exactly(spend.epsilon) / exactly(total)
    parts = tuple(recipe.pure(unit * exactly(recipe.weight)) for recipe in recipes)
    if not found:
        return Ready(parts)
    assert spend.delta is not None
    return Ready(parts, laplace_selection(scope, unit * exactly(_FINDING), spend.delta * _ALL))


def _gaussian(recipes: Sequence[Recipe], scope: Scope, spend: Spend, *, found: bool) -> Ready:
    total = sum(recipe.weight for recipe in recipes) + _FINDING * found
    shares = [math.sqrt(total / recipe.weight) for recipe in recipes]
    words = scope.contribution.words
    leak = 0.0
    if found:
        assert spend.delta is not None
        leak = spend.delta * (_LEAK if spend.epsilon is not None else _ALL)

    def promised(noise: float) -> Guarantee:
        parts = [recipe.promised(noise * share) for recipe, share in zip(recipes, shares, strict=True)]
        if found:
            parts += [
                privacy.leaky(leak, **words),
                privacy.gaussian(noise * math.sqrt(total / _FINDING), **words),
            ]
        return compose([(part, 1) for part in parts])

    noise = calibrate(promised, to=spend.target(scope.contribution.unit), tolerance=_TOLERANCE)
    parts = tuple(recipe.gaussian(noise * share) for recipe, share in zip(recipes, shares, strict=True))
    return Ready(
        parts, gaussian_selection(scope, noise * math.sqrt(total / _FINDING), leak) if found else None
    )


def _badness(ready: Ready) -> float:
    """The sum of the logarithms of all errors that are known in advance, and of the units that a group needs."""
    assert ready.selection is not None
    few, some = ready.selection.needed(1), ready.selection.needed(min(3, ready.selection.most))
    errors = [error for part in ready.parts for error in part.expected().values()]
    return math.log(few * some) / 2 + sum(math.log(error) for error in errors)
