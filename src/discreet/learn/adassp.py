# SPDX-License-Identifier: Apache-2.0
"""Least squares from perturbed sums with a ridge that adapts to them (Wang 2018), by an exact split
of the budget.

**Guarantee.** Three Gaussian releases and nothing else: the least eigenvalue of Σ x xᵀ (a twentieth
of the budget), Σ x xᵀ (a half) and Σ x y (the rest). Together they are the Gaussian mechanism that
the budget allows.

Why it holds (joint.proof.md, 6): for ‖x‖ <= 1 and |y| <= 1 one record moves the first by 1 (Weyl's
inequality, also if a record is replaced), the second by 1 (√2) in the Frobenius norm, the third by
1 (2). The eigenvalue is found by Cholesky factorisations in floats, whose error is counted in as
long as n d² <= 2**45 for n rows of d features.

What would break it: more rows than that: 10¹¹ of ten features, 10⁷ of 1,800.
"""

from __future__ import annotations

import math

import numpy as np

from discreet import noise as exact
from discreet.exact import bisect_whole, exactly
from discreet.learn.arrays import Reals
from discreet.learn.budget import FitBudget
from discreet.learn.features import BITS
from discreet.learn.joint import require_least_squares, rows_with_targets, solve_with_ridge
from discreet.learn.moments import symmetric_noise
from discreet.learn.solvers import FittedWeights, Problem, Solver
from discreet.privacy.guarantee import Guarantee

__all__ = ["AdaSSP"]


# Fractions of the budget: the least eigenvalue, Σ x xᵀ, Σ x y.
_FRACTIONS = (0.05, 0.5, 0.45)
# The step of the grid on which the least eigenvalue is found, and a bound on its error in floats.
_STEP = 2.0**-5
# The released eigenvalue is lowered by this many standard deviations. It is then below the true one
# in 95 of 100 cases.
_QUANTILE = 1.645
_UP = 1 + 1e-12


class AdaSSP(Solver):
    """Perturb the sufficient statistics."""

    name = "adassp"

    def guarantee_for(self, problem: Problem) -> Guarantee:
        require_least_squares(problem, self.name)
        least, squares, products = problem.budget.noise_multipliers(*_FRACTIONS)
        gaussian = problem.budget.gaussian
        return gaussian(least) + gaussian(squares) + gaussian(products)

    def fit(self, problem: Problem) -> FittedWeights:
        total = np.zeros((problem.box.width + 1,) * 2, np.int64)
        # A block has at most 2**19 rows, and products are below 2**28: sums are exact.
        for rows in rows_with_targets(problem):
            total += (rows.T @ rows).astype(np.int64)
        least_spread, squares_spread, products_spread = _spreads(problem.budget)
        width = problem.box.width
        squares = (total[:-1, :-1] + symmetric_noise(width, squares_spread * 4.0**BITS)) / 4.0**BITS
        noise = exact.rounded_gaussian(exactly(products_spread * 4.0**BITS), width)
        products = (total[:-1, -1] + noise) / 4.0**BITS
        edge = math.sqrt(2 * width) * squares_spread
        steps = least_eigenvalue_steps(
            total[:-1, :-1] / 4.0**BITS, math.ceil((edge + 10 * least_spread) / _STEP)
        )
        noisy = steps + exact.rounded_gaussian(exactly(least_spread / _STEP))
        least = max(noisy * _STEP - _QUANTILE * least_spread, 0.0)
        ridge = problem.penalty + max(0.0, edge - least)
        # Without a ridge the positive part may be singular.
        floor = np.finfo(float).eps * max(float(np.linalg.norm(squares, 2)), 1.0)
        weights = solve_with_ridge(squares, products, ridge + floor)
        return FittedWeights(weights[:, None])

    def explain(self, problem: Problem) -> list[str]:
        return [
            "The sums of products of features, their least eigenvalue and the products with the target were released with Gaussian noise.",
            "A ridge was added if noise could hide a direction of the features.",
        ]


def _spreads(budget: FitBudget) -> tuple[float, float, float]:
    """Standard deviations for rows and targets of length 1."""
    least, squares, products = budget.noise_multipliers(*_FRACTIONS)
    twice = budget.relation == "replace"
    return (
        least * (1 + 3 * _STEP) * _UP,
        squares * (math.sqrt(2) if twice else 1.0) * _UP,
        products * (2.0 if twice else 1.0) * _UP,
    )


def least_eigenvalue_steps(matrix: Reals, cap: int) -> int:
    """How many steps the least eigenvalue of a positive semidefinite matrix has; `cap` if it has
    more.

    The answer m is between λ / step - 2 and λ / step + 1, for λ as in exact arithmetic
    (joint.proof.md, 6).
    """
    return bisect_whole(
        lambda steps: _is_positive(matrix - steps * _STEP * np.eye(len(matrix))), yes=0, no=cap + 1
    )


def _is_positive(matrix: Reals) -> bool:
    """Whether Cholesky's factorisation runs to its end. It does if λ > η, and it does not if λ <
    -η, for a small η.
    """
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
