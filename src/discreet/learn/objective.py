# SPDX-License-Identifier: Apache-2.0
"""Objective perturbation: minimise the regularised loss plus a random linear term, then blur the answer by a hair.

**Guarantee.** The weights are w + N(0, s²) on a grid, w within (τ + η)/Λ of the minimiser of

    Σ loss + (Λ/2)·‖w‖² + b·w,    b ~ N(0, σ²).

The exact minimiser has the curve of `curves` (objective.proof.md), for binary logistic regression when records come
and go exactly δ of the Gaussian mechanism with parameter 1/σ at the ε that was asked for, with Λ = 1/(ε + 1/2σ²). What
separates w from it is paid for as a Gaussian release of a 400th of the budget.

Why it holds: the minimiser determines b and the other way round, so its density is that of b times a determinant. One
record changes the determinant by a factor of at most 1 + curvature/Λ and moves b by its gradient. For the logistic
loss the curvature s(1 - s) vanishes exactly where the gradient s is greatest: the two losses do not add up.

When to use it: two classes, one fit, few rows. What would break it: Λ or σ that were chosen by the data, an answer that
is not certified to be near the minimiser, a loss with other curvature than the one that is stated here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from discreet import noise as exact
from discreet.errors import UnsupportedGuarantee
from discreet.learn.budget import Budget
from discreet.learn.curves import CornerCurve, Curve, LogisticCurve, guarantee_of
from discreet.learn.descent import Rows
from discreet.learn.features import BITS
from discreet.learn.losses import Hinge, Huber, Logistic, Loss, Softmax
from discreet.learn.minimiser import Minimum, reachable, refuse_beyond
from discreet.learn.output import blurred, refuse_wide
from discreet.learn.problem import Fit, Problem, Solver
from discreet.mechanisms.distributions import exactly
from discreet.privacy.guarantee import Guarantee

__all__ = ["Objective"]

WITHIN = (
    2.0**-24
)  # the norm of the gradient at the answer that is wanted; what can be certified is a little more
_BLUR = 1 / 400  # of the budget, for the distance to the exact minimiser
_BENT = 0.25  # about this part of ε is for the determinant, where it adds up with the rest
_MOST = 100.0  # a greater ε is spent only up to here
_SEARCH = 5e-4  # steps in which noise is added until the whole is certified


@dataclass(frozen=True)
class _Plan:
    """The noise on the objective, its ridge, the multiplier of the noise on the answer, and what it all reveals."""

    sigma: float
    ridge: float
    blur: float
    guarantee: Guarantee


class Objective(Solver):
    """Perturb the objective, then minimise it."""

    name = "objective"

    def guarantee_for(self, problem: Problem) -> Guarantee:
        return _planned(problem).guarantee

    def fit(self, problem: Problem) -> Fit:
        plan, width, scores = _planned(problem), problem.box.width, problem.scores
        refuse_beyond(int(problem.keep.sum()))
        within = reachable(problem.loss, scores, WITHIN)
        finest = max(
            within, plan.sigma * 2.0**-28
        )  # √d steps together, so that the push is off by an eighth of it
        step = 2.0 ** (math.frexp(finest / math.sqrt(width * scores))[1] - 3)
        pushes = exact.rounded_gaussian(exactly(plan.sigma) / Fraction(step), (width, scores))
        rows = Rows.of(problem.cells(), size=2.0**-BITS, width=width)
        found = Minimum(rows, problem.loss, plan.ridge, pushes * step).within(within)
        off = Fraction(within) + Fraction(finest) / 4  # the gradient, and the rounding of the push
        return Fit(blurred(found, 2 * off / Fraction(plan.ridge), plan.blur))

    def story(self, problem: Problem) -> list[str]:
        plan = _planned(problem)
        return [
            f"The sum of losses got a penalty of {plan.ridge:.4g}/2 times the squared weights.",
            f"It got a random linear term of standard deviation {plan.sigma:.4g}, and was then minimised.",
            "The minimiser was computed with a certified error, which a little noise on it hides.",
        ]


def _planned(problem: Problem) -> _Plan:
    refuse_wide(problem.box.width * problem.scores)
    if not _is_covered(problem.loss, problem.scores):
        raise UnsupportedGuarantee(
            "DP203",
            "objective perturbation is not proved for this loss.",
            why="its proof needs bounded slopes and a bounded curvature of low rank.",
            fix="solver='whitened', or solver='output' for several hinge losses",
        )
    if problem.known_count is not None:
        refuse_beyond(problem.known_count)
    return _plan(problem.loss, problem.scores, problem.budget)


def _is_covered(loss: Loss, scores: int) -> bool:
    return isinstance(loss, Softmax) or (isinstance(loss, Logistic | Hinge | Huber) and scores == 1)


def _plan(loss: Loss, scores: int, budget: Budget) -> _Plan:
    width = loss.width if isinstance(loss, Huber) else 0.0
    return _cached(type(loss), width, scores, replace(budget, epsilon=min(budget.epsilon, _MOST)))


@lru_cache(maxsize=64)
def _cached(kind: type[Loss], width: float, scores: int, budget: Budget) -> _Plan:
    """The least noise within the budget, but for a tenth of a percent; the last word has the certified guarantee."""
    blur = budget.shares(_BLUR)[0]
    sigma = _enough(kind, width, scores, budget) * (1 + _BLUR / 2)
    while True:
        sigma *= 1 + _SEARCH
        curve, ridge = _curve(kind, width, scores, budget, sigma)
        main = guarantee_of(curve, through=budget.epsilon, down_to=budget.delta, budget=budget)
        whole = main + budget.gaussian(blur)
        if whole.delta(budget.epsilon) <= budget.delta:
            return _Plan(sigma, ridge, blur, whole)


def _enough(kind: type[Loss], width: float, scores: int, budget: Budget) -> float:
    """About the least noise at which the curve alone goes through (ε, δ)."""
    low, high = budget.noise * 1e-6, budget.noise * 1e6
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        curve, _ = _curve(kind, width, scores, budget, middle)
        low, high = (low, middle) if curve.delta(budget.epsilon) <= budget.delta else (middle, high)
    return high


def _curve(kind: type[Loss], width: float, scores: int, budget: Budget, sigma: float) -> tuple[Curve, float]:
    """The curve at this noise, and the ridge that it needs, rounded up; rows have norm at most 1."""
    epsilon, mu = budget.epsilon, 1 / sigma
    if kind is Logistic and budget.relation == "add-remove":
        ridge = 1 / (epsilon + mu * mu / 2) * (1 + 1e-12)
        return LogisticCurve(mu, 1 / ridge - mu * mu / 2), ridge
    shift = math.log1p(_BENT * epsilon)
    ridge = _least_ridge(kind, scores, shift) * (1 + 1e-12)
    lengths = _corners(kind, width, scores, replaced=budget.relation == "replace")
    return CornerCurve(tuple((count, length * mu) for count, length in lengths), shift), ridge


def _least_ridge(kind: type[Loss], scores: int, shift: float) -> float:
    """The ridge at which one record changes the logarithm of the determinant by at most `shift`."""
    if kind is Softmax:
        return 1 / (scores * math.expm1(shift / (scores - 1)))
    return (0.25 if kind is Logistic else 1.0) / math.expm1(shift)


def _corners(kind: type[Loss], width: float, scores: int, *, replaced: bool) -> list[tuple[int, float]]:
    """By how much a record can move the push, at the corners of what its gradient can be: (how many, how far)."""
    if kind is Softmax:
        root, others = math.sqrt(2) * (1 + 1e-15), scores - 1
        return [(2 * others, root), (others**2, 2 * root)] if replaced else [(others, root)]
    if kind is Huber:
        return [(4, 2 * width)] if replaced else [(2, width)]
    return [(2, 1.0), (1, 2.0)] if replaced else [(1, 1.0)]
