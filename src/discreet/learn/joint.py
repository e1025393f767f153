# SPDX-License-Identifier: Apache-2.0
"""Least squares from one release of all products of features and target: the solver that yields
intervals.

**Guarantee.** The weights, their covariance and the number of rows are a function of one Gaussian
mechanism, which takes the whole budget: Σ z zᵀ with symmetric noise for z = (x, y), ‖x‖ <= 1 and
|y| <= 1 (joint.proof.md, 4).

Why it holds: ‖z zᵀ‖ = ‖x‖² + y² <= 2 in the Frobenius norm, and ‖z zᵀ - z'z'ᵀ‖ <= 2√2.

What would break it: a target beyond [-1, 1], or a ridge that follows from the data and not from the
release.

What the covariance means: if targets are linear in the features with errors of one variance, and
nothing was clipped, then the weights are normal about the true ones, to first order in the noise.
If the noise is not small, there is no covariance: the weights are then shrunk and biased. The
released matrix decides which case it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from discreet.errors import UnsupportedGuarantee
from discreet.learn.arrays import Reals
from discreet.learn.features import BITS
from discreet.learn.losses import Squared
from discreet.learn.moments import NoisyMoments
from discreet.learn.solvers import FittedWeights, Problem, Solver
from discreet.learn.whitened import row_count
from discreet.privacy.guarantee import Guarantee

__all__ = ["JointSolver", "require_least_squares", "rows_with_targets", "solve_with_ridge"]


def rows_with_targets(problem: Problem) -> Iterator[Reals]:
    """Rows (x, y) of whole numbers, ‖x‖ <= 2**BITS and |y| <= 2**BITS; a target is rounded by
    itself.
    """
    for cells, targets in problem.cells():
        target = np.clip(np.nan_to_num(targets, nan=0.0), -1.0, 1.0)
        yield np.concatenate([cells, np.rint(target * 2.0**BITS)], axis=1)


def require_least_squares(problem: Problem, solver: str) -> None:
    """Refuse other losses: sums of products determine the minimum of squared errors only."""
    if not isinstance(problem.loss, Squared) or problem.scores != 1:
        raise UnsupportedGuarantee(
            "DP203",
            f"solver={solver!r} fits squared errors of one target only.",
            why="it releases sums of products, which determine the minimum of no other loss.",
            fix="solver='whitened'",
        )


# If all eigenvalues are above this many edges of the noise, a first-order covariance is good.
_CLEAR = 3.0
# The squared norm of (x, y), and a margin for rounding.
_SQUARE = 2 * (1 + 1e-12)
# The ridge otherwise, as a fraction of the edge of the noise.
_RIDGE = 0.5


class JointSolver(Solver):
    """Solve the normal equations of one noisy matrix."""

    name = "joint"
    has_intervals = True

    def guarantee_for(self, problem: Problem) -> Guarantee:
        require_least_squares(problem, self.name)
        return problem.budget.gaussian(problem.budget.noise)

    def fit(self, problem: Problem) -> FittedWeights:
        width = problem.box.width
        released = NoisyMoments.release(
            rows_with_targets(problem),
            width + 1,
            bits=BITS,
            noise=_SQUARE * problem.budget.noise,
            relation=problem.budget.relation,
        )
        squares, products = released.matrix[:-1, :-1], released.matrix[:-1, -1]
        features = replace(released, matrix=squares)
        count = row_count(features, problem.box, problem.known_count)
        if problem.penalty.any() or np.linalg.eigvalsh(squares)[0] < _CLEAR * features.edge:
            weights = solve_with_ridge(squares, products, problem.penalty + _RIDGE * features.edge)
            return FittedWeights(weights[:, None], count, notes=(_NO_INTERVALS,), no_intervals=_WHY_SHRUNK)
        weights = np.asarray(np.linalg.solve(squares, products), np.float64)
        return FittedWeights(weights[:, None], count, covariance=_covariance(released, weights, count))

    def explain(self, problem: Problem) -> list[str]:
        return [
            "The sums of products of features and target were released once, with symmetric Gaussian noise."
        ]


_WHY_SHRUNK = "the weights were shrunk, by a penalty or because noise hides some direction of the features."
_NO_INTERVALS = f"There are no confidence intervals: {_WHY_SHRUNK}"


def solve_with_ridge(squares: Reals, products: Reals, ridge: Reals) -> Reals:
    """The solution of the normal equations for the positive part of a noisy matrix and a diagonal
    ridge.
    """
    values, vectors = np.linalg.eigh(squares)
    positive_part = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(np.linalg.solve(positive_part + np.diag(ridge), products))


def _covariance(released: NoisyMoments, weights: Reals, count: float) -> Reals:
    """S⁻¹ (σ² S + V) S⁻¹, V the covariance of the noise in Xᵀy - S w (joint.proof.md, 5)."""
    squares, products = released.matrix[:-1, :-1], released.matrix[:-1, -1]
    inverse = np.linalg.inv(squares)
    identity = np.eye(len(weights))
    noise = released.spread**2 / 2 * ((1 + weights @ weights) * identity + np.outer(weights, weights))
    residual = released.matrix[-1, -1] - weights @ products + np.trace(inverse @ noise)
    variance = max(residual, 0.0) / max(count - len(weights), 1.0)
    return np.asarray(variance * inverse + inverse @ noise @ inverse)
