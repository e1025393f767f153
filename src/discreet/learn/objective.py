# SPDX-License-Identifier: Apache-2.0
"""Objective perturbation: minimise the regularised loss plus a random linear term, then add a
little noise to the answer.

    guarantee_from_curve(LogisticCurve(mu=0.27, bend=1.0), through=1.0, down_to=1e-5, budget=budget)

**Guarantee.** The weights are w + N(0, s²) on a grid, w within (τ + η)/Λ of the minimiser of

    Σ loss + (Λ/2)·‖w‖² + b·w,    b ~ N(0, σ²).

The exact minimiser has a known curve δ(ε) (objective.proof.md). For binary logistic regression with
records that are added or removed, its δ at the ε of the budget is exactly that of the Gaussian
mechanism with parameter 1/σ, with Λ = 1/(ε + 1/2σ²). The distance between w and the minimiser is
paid for as a Gaussian release of a 400th of the budget.

Each curve is never below the δ of the mechanism at any ε >= 0, in both directions. The guarantee is
a pair of probability tables whose curve is never below the given one; at ε = `through` it equals
it.

Why it holds: the minimiser determines b and the other way round, so its density is that of b times
a determinant. One record changes the determinant by a factor of at most 1 + curvature/Λ and moves b
by its gradient. For the logistic loss the curvature s(1 - s) vanishes exactly where the gradient s
is greatest: the two losses do not add up.

A mechanism's δ is convex in e^ε, so it lies below the lines that connect points above it. A pair
with that curve for ε >= 0, and mirrored below, dominates in both directions. It is a pair because
of what any (ε, δ) implies at ε = 0: at most tanh(ε/2)·(1 - δ) + δ.

When to use it: two classes, one fit, few rows. What would break it: Λ or σ that were chosen by the
data, an answer without a certificate that it is near the minimiser, a loss whose curvature differs
from the one stated here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from discreet import noise as exact
from discreet import privacy
from discreet.errors import UnsupportedGuarantee
from discreet.exact import exactly
from discreet.learn.budget import FitBudget
from discreet.learn.descent import CellRows
from discreet.learn.features import BITS
from discreet.learn.losses import Hinge, Huber, Logistic, Loss, Softmax
from discreet.learn.minimiser import RegularisedLoss, certifiable_norm, refuse_too_many_rows
from discreet.learn.output import noisy_point, refuse_too_many_weights
from discreet.learn.solvers import FittedWeights, Problem, Solver
from discreet.privacy.bag import pair_of_profile
from discreet.privacy.families import gaussian_log_delta
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.pairs import symmetrise

__all__ = ["CornerCurve", "Curve", "LogisticCurve", "ObjectivePerturbation", "guarantee_from_curve"]


_KNOTS = 400
# The fraction of δ at which a curve is cut off; what lies beyond counts as lost.
_FAR = 1e-10
# Far more than the rounding of the formulas below.
_UP = 1 + 1e-9
_LEAST = 1e-305


class Curve(ABC):
    """An upper bound on δ for every ε >= 0."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """δ at ε, rounded up."""


@dataclass(frozen=True)
class LogisticCurve(Curve):
    """The binary logistic loss: `mu` = row norm / noise, `bend` = row norm² / ridge - mu²/2
    (Theorem 1 of the proof).

    From ε = bend on it is the curve of the Gaussian mechanism with parameter mu. Below, one
    record's loss is at most (A + bend)²/(4·bend) where the Gaussian's would be A in ±bend.
    """

    mu: float
    bend: float

    def delta(self, epsilon: float) -> float:
        gaussian = math.exp(gaussian_log_delta(self.mu, epsilon))
        if epsilon >= self.bend:
            return max(gaussian * _UP, _LEAST)
        mu, bend = self.mu, self.bend
        # The loss of the Gaussian mechanism from which on this loss exceeds ε.
        first = 2 * math.sqrt(bend * epsilon) - bend
        sharp = math.sqrt(1 / (2 * bend) + 1 / (mu * mu))
        factor = math.exp(-bend / 4 - mu * mu / 8) / math.sqrt(1 + mu * mu / (2 * bend))
        inside = factor * float(ndtr(-first * sharp) - ndtr(-bend * sharp))
        beyond = float(ndtr(-bend / mu - mu / 2))
        bound = float(ndtr(mu / 2 - first / mu)) - math.exp(epsilon) * (inside + beyond)
        return min(1.0, max(bound, gaussian, _LEAST) * _UP)


@dataclass(frozen=True)
class CornerCurve(Curve):
    """Losses of at most shift + max(0, A₁, A₂, …), each A that of a Gaussian mechanism: Σ count · δ
    (Theorem 2).

    `corners` are (count, mu) of those mechanisms.
    """

    corners: tuple[tuple[int, float], ...]
    shift: float

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.shift:
            return self._beyond(epsilon - self.shift)
        return min(1.0, (1 - math.exp(epsilon - self.shift) * (1 - self._beyond(0.0))) * _UP)

    def _beyond(self, epsilon: float) -> float:
        total = math.fsum(count * math.exp(gaussian_log_delta(mu, epsilon)) for count, mu in self.corners)
        return min(1.0, max(total, _LEAST) * _UP)


def guarantee_from_curve(curve: Curve, *, through: float, down_to: float, budget: FitBudget) -> Guarantee:
    """The curve as two tables of probabilities, which follow it down to a small fraction of δ =
    `down_to`.
    """
    top = through
    while curve.delta(top) > max(down_to * _FAR, 2 * _LEAST):
        top *= 1.1
    knots = np.unique(np.append(np.linspace(0.0, top, _KNOTS), through))
    deltas = np.array([curve.delta(float(at)) for at in knots])
    # What each (ε, δ) implies at ε = 0.
    deltas[0] = np.min(np.tanh(knots / 2) * (1 - deltas) + deltas)
    pair = symmetrise(pair_of_profile(knots, deltas))
    lost = pair.infinite
    p, q = np.append(pair.p, [lost, 0.0]), np.append(pair.q, [0.0, lost])
    return privacy.pair(p.tolist(), q.tolist(), relation=budget.relation, unit=budget.unit)


# The norm of the gradient that the minimiser aims at. What can be certified may be a little more.
TOLERANCE = 2.0**-24
# The fraction of the budget for the distance to the exact minimiser.
_BLUR = 1 / 400
# About this fraction of ε is for the determinant, where it adds up with the rest.
_BENT = 0.25
# A greater ε is spent only up to here.
_MAX_EPSILON = 100.0
# By this fraction the noise grows until the whole is certified.
_SEARCH = 5e-4


@dataclass(frozen=True)
class _PerturbationPlan:
    """The noise on the objective, its ridge, the multiplier of the noise on the answer, and what it
    all reveals.
    """

    sigma: float
    ridge: float
    blur: float
    guarantee: Guarantee


class ObjectivePerturbation(Solver):
    """Perturb the objective, then minimise it."""

    name = "objective"

    def guarantee_for(self, problem: Problem) -> Guarantee:
        return _plan_for(problem).guarantee

    def fit(self, problem: Problem) -> FittedWeights:
        plan, width, scores = _plan_for(problem), problem.box.width, problem.scores
        refuse_too_many_rows(int(problem.keep.sum()))
        within = certifiable_norm(problem.loss, scores, TOLERANCE)
        # Rounding to the grid moves the push by at most an eighth of this, in norm.
        finest = max(within, plan.sigma * 2.0**-28)
        step = 2.0 ** (math.frexp(finest / math.sqrt(width * scores))[1] - 3)
        pushes = exact.rounded_gaussian(exactly(plan.sigma) / Fraction(step), (width, scores))
        rows = CellRows.of(problem.cells(), size=2.0**-BITS, width=width)
        push = np.asarray(pushes * step, np.float64)
        point = RegularisedLoss(rows, problem.loss, plan.ridge, push).minimiser(within)
        # The gradient at the point, and the rounding of the push.
        error = Fraction(within) + Fraction(finest) / 4
        return FittedWeights(noisy_point(point, 2 * error / Fraction(plan.ridge), plan.blur))

    def explain(self, problem: Problem) -> list[str]:
        plan = _plan_for(problem)
        return [
            f"A penalty of {plan.ridge:.4g}/2 times the squared weights was added to the sum of losses.",
            f"A random linear term of standard deviation {plan.sigma:.4g} was added too. Then the sum was minimised.",
            "The minimiser was computed with a certified error, which a little noise on it covers.",
        ]


def _plan_for(problem: Problem) -> _PerturbationPlan:
    refuse_too_many_weights(problem.box.width * problem.scores)
    if not _is_covered(problem.loss, problem.scores):
        raise UnsupportedGuarantee(
            "DP203",
            "objective perturbation is not proved for this loss.",
            why="the proof needs bounded slopes and a bounded curvature of low rank.",
            fix="solver='whitened', or solver='output' for several hinge losses",
        )
    if problem.known_count is not None:
        refuse_too_many_rows(problem.known_count)
    return _loss_plan(problem.loss, problem.scores, problem.budget)


def _is_covered(loss: Loss, scores: int) -> bool:
    return isinstance(loss, Softmax) or (isinstance(loss, Logistic | Hinge | Huber) and scores == 1)


def _loss_plan(loss: Loss, scores: int, budget: FitBudget) -> _PerturbationPlan:
    width = loss.width if isinstance(loss, Huber) else 0.0
    return _perturbation_plan(
        type(loss), width, scores, replace(budget, epsilon=min(budget.epsilon, _MAX_EPSILON))
    )


@lru_cache(maxsize=64)
def _perturbation_plan(kind: type[Loss], width: float, scores: int, budget: FitBudget) -> _PerturbationPlan:
    """The least noise within the budget, up to a tenth of a percent. The certified guarantee
    decides.
    """
    blur = budget.noise_multipliers(_BLUR)[0]
    sigma = _least_sigma(kind, width, scores, budget) * (1 + _BLUR / 2)
    while True:
        sigma *= 1 + _SEARCH
        curve, ridge = _curve(kind, width, scores, budget, sigma)
        main = guarantee_from_curve(curve, through=budget.epsilon, down_to=budget.delta, budget=budget)
        whole = main + budget.gaussian(blur)
        if whole.delta(budget.epsilon) <= budget.delta:
            return _PerturbationPlan(sigma, ridge, blur, whole)


def _least_sigma(kind: type[Loss], width: float, scores: int, budget: FitBudget) -> float:
    """About the least noise at which the curve alone goes through (ε, δ)."""
    low, high = budget.noise * 1e-6, budget.noise * 1e6
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        curve, _ = _curve(kind, width, scores, budget, middle)
        low, high = (low, middle) if curve.delta(budget.epsilon) <= budget.delta else (middle, high)
    return high


def _curve(
    kind: type[Loss], width: float, scores: int, budget: FitBudget, sigma: float
) -> tuple[Curve, float]:
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
    """By how much a record can move the push, at the corners of what its gradient can be: (how
    many, how far).
    """
    if kind is Softmax:
        root, others = math.sqrt(2) * (1 + 1e-15), scores - 1
        return [(2 * others, root), (others**2, 2 * root)] if replaced else [(others, root)]
    if kind is Huber:
        return [(4, 2 * width)] if replaced else [(2, width)]
    return [(2, 1.0), (1, 2.0)] if replaced else [(1, 1.0)]
