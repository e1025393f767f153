# SPDX-License-Identifier: Apache-2.0
"""Output perturbation: minimise the regularised loss, then add noise to the answer.

**Guarantee.** A noisy count of the rows (a fiftieth of the budget; none where the number of rows is
public), then the minimiser of Σ loss + (Λ/2)·‖w‖² on a grid with Gaussian noise; Λ follows from
that count and from public numbers. Together they are the Gaussian mechanism that the budget allows
(output.proof.md).

Why it holds: the objective is Λ-strongly convex and the gradient of one record has a norm of at
most L, so one record moves the minimiser by at most L/Λ, and a point whose gradient is at most τ by
(L + 2τ)/Λ; (2L + 2τ)/Λ if it is replaced. L is 1 for the logistic loss, √2 for the softmax, √k for
k hinge losses, the width for Huber's. The squared loss has no such L and is refused.

When to use it: if the proof has to fit on a page. The noise does not shrink when rows agree, so
other solvers are better. What would break it: a Λ that was read off the data, an intercept without
penalty, an answer without a certificate.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet import noise as exact
from discreet.errors import UnsupportedGuarantee
from discreet.exact import exactly
from discreet.learn.arrays import Reals
from discreet.learn.descent import CellRows
from discreet.learn.features import BITS
from discreet.learn.minimiser import (
    MAX_WEIGHTS,
    Point,
    RegularisedLoss,
    certifiable_norm,
    max_slope_norm,
    refuse_too_many_rows,
)
from discreet.learn.solvers import FittedWeights, Problem, Solver
from discreet.noise.grid import Grid
from discreet.privacy.guarantee import Guarantee

__all__ = ["OutputPerturbation", "noisy_point", "refuse_too_many_weights"]


# The greatest norm of the gradient at the answer, as a fraction of that of one record.
_TOLERANCE = 2.0**-18
# The fraction of the budget for the number of rows.
_COUNTING = 0.02
_LEAST_RIDGE = 1e-3
_UP = 1 + 1e-12


class OutputPerturbation(Solver):
    """Minimise, then add noise."""

    name = "output"

    def guarantee_for(self, problem: Problem) -> Guarantee:
        refuse_too_many_weights(problem.box.width * problem.scores)
        if math.isinf(max_slope_norm(problem.loss, problem.scores)):
            raise UnsupportedGuarantee(
                "DP203",
                "output perturbation is not proved for the squared loss.",
                why="the gradient of one record grows with its error, without limit.",
                fix="solver='whitened', or HuberRegression(solver='output')",
            )
        if problem.known_count is not None:
            refuse_too_many_rows(problem.known_count)
        counting, answer = _noise_multipliers(problem)
        main = problem.budget.gaussian(answer)
        return main if counting is None else problem.budget.gaussian(counting) + main

    def fit(self, problem: Problem) -> FittedWeights:
        counting, answer = _noise_multipliers(problem)
        refuse_too_many_rows(int(problem.keep.sum()))
        count = float(max(problem.known_count or 0, 1))
        if counting is not None:
            noisy = int(problem.keep.sum()) + exact.rounded_gaussian(exactly(counting))
            count = max(float(noisy), 2 * counting, 1.0)
        ridge = _ridge(problem, count)
        rows = CellRows.of(problem.cells(), size=2.0**-BITS, width=problem.box.width)
        start = np.zeros((problem.box.width, problem.scores))
        point = RegularisedLoss(rows, problem.loss, ridge, start).minimiser(_gradient_tolerance(problem))
        pull = Fraction(max_slope_norm(problem.loss, problem.scores)) * (
            2 if problem.budget.relation == "replace" else 1
        )
        distance = (pull + 2 * Fraction(_gradient_tolerance(problem))) / Fraction(ridge)
        return FittedWeights(
            noisy_point(point, distance, answer),
            count,
            notes=(f"The penalty was {ridge:.4g}/2 times the squared weights.",),
        )

    def explain(self, problem: Problem) -> list[str]:
        count = ["The number of rows was released with noise."] if problem.known_count is None else []
        return [
            *count,
            "The minimiser of the sum of losses and a penalty on the weights was computed with a certified error.",
            "It was released with Gaussian noise that is proportional to how far one record can move it.",
        ]


def noisy_point(point: Point, distance: Fraction, noise: float) -> Reals:
    """A point on a grid with Gaussian noise. The points of neighbouring data are at most `distance`
    apart.
    """
    size = point.coarse.size
    grid = Grid.for_noise(distance * exactly(noise), distance, size, norm=2)
    spread = grid.sensitivity_l2(distance, size) * noise * _UP
    cells = point.cells(grid) + exact.rounded_gaussian(exactly(spread), point.coarse.shape)
    return np.asarray(grid.reals(cells))


def refuse_too_many_weights(weights: int) -> None:
    """Refuse models whose matrix of second derivatives, with a row and a column per weight, would
    be too large.
    """
    if weights > MAX_WEIGHTS:
        raise UnsupportedGuarantee(
            "DP203",
            f"this solver fits models of at most {MAX_WEIGHTS} weights.",
            why="it proves how near it is to the minimiser, and holds a matrix of second derivatives for that.",
            fix="solver='gradient'",
        )


def _noise_multipliers(problem: Problem) -> tuple[float | None, float]:
    if problem.known_count is not None:
        return None, problem.budget.noise_multipliers(1.0)[0]
    counting, answer = problem.budget.noise_multipliers(_COUNTING, 1 - _COUNTING)
    return counting, answer


def _gradient_tolerance(problem: Problem) -> float:
    return certifiable_norm(
        problem.loss, problem.scores, _TOLERANCE * max_slope_norm(problem.loss, problem.scores)
    )


def _ridge(problem: Problem, count: float) -> float:
    """Λ that balances what the noise and what the penalty add to the sum of losses
    (output.proof.md).
    """
    reach = max_slope_norm(problem.loss, problem.scores) / problem.budget.mu
    return float(
        max((count * problem.loss.curvature * reach**2 / problem.box.width) ** (1 / 3), _LEAST_RIDGE)
    )
