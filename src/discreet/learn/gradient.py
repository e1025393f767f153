# SPDX-License-Identifier: Apache-2.0
"""Plain noisy gradient descent on all rows: no matrix is released, so it is the solver for many or
sparse features.

**Guarantee.** A noisy count and a noisy sum of squared norms (a fiftieth of the budget each; no
count where the number of rows is public) and 100 noisy gradients; together they are the Gaussian
mechanism that the budget allows.

Why it holds: see descent.proof.md. Rows stay sparse where zero stays zero, that is, with `norm=`
and no bounds.

Why it works: bounds say little about the length of rows with many features, but the mean of their
squared norms does. It sets the length of the steps and the clip norm. The constant column is a
fifth of a typical row; if it were longer, the intercept would be learned long before the slopes,
and every row would be assigned to the larger class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import sparse

from discreet import noise as exact
from discreet.exact import exactly
from discreet.learn.arrays import Reals, RealTable
from discreet.learn.descent import CellRows, descend
from discreet.learn.features import BITS, Box, stored_blocks
from discreet.learn.losses import Huber, Squared
from discreet.learn.solvers import FittedWeights, Problem, Solver
from discreet.privacy.guarantee import Guarantee

__all__ = ["GradientDescent"]


# The fraction of the budget for the count, and for the sum of squares.
_FACTS = 0.02
_STEPS = 100
_MOMENTUM = 0.8
# The length of a step times the curvature along a typical row: still stable with this momentum.
_PACE = 3.0
# The constant column, as a fraction of the norm of a typical row.
_CONSTANT = 0.2
# How many squares of cells make one step of their sum.
_COARSE = 2**10


class GradientDescent(Solver):
    """Descend in the coordinates of the box."""

    name = "gradient"

    def guarantee_for(self, problem: Problem) -> Guarantee:
        fact_noise, step_noise = _noise_multipliers(problem)
        gaussian = problem.budget.gaussian
        return _fact_count(problem) * gaussian(fact_noise) + _STEPS * gaussian(step_noise)

    def fit(self, problem: Problem) -> FittedWeights:
        fact_noise, step_noise = _noise_multipliers(problem)
        rows = CellRows.of(_cell_blocks(problem), size=2.0**-BITS, width=problem.box.width)
        count, last = _row_count(problem, fact_noise), problem.box.constant_cells(BITS)
        square = _mean_square(rows, problem.box, count, fact_noise)
        constant = min(last, max(1.0, math.floor(_CONSTANT * math.sqrt(square) / rows.size)))
        length = math.hypot(math.sqrt(square), constant * rows.size)
        # The scale of each column, relative to the columns of the box.
        scale = np.ones(problem.box.width)
        scale[-1] = constant / last
        penalty = problem.penalty * scale**2 / count
        weights = descend(
            _with_constant(rows, last, constant),
            problem.loss,
            np.zeros((problem.box.width, problem.scores)),
            clip=_clip_slope(problem, count) * length,
            noise=step_noise,
            steps=_STEPS,
            rate=_PACE / (problem.loss.curvature * length**2 + float(penalty.max())),
            momentum=_MOMENTUM,
            penalty=penalty,
            count=count,
            relation=problem.budget.relation,
            progress=problem.progress,
        )
        return FittedWeights(weights * scale[:, None], count, is_too_noisy=count <= _least_count(fact_noise))

    def explain(self, problem: Problem) -> list[str]:
        count = "First the number of rows was released with noise. " if problem.known_count is None else ""
        return [
            f"{count}The sum of the squared norms of rows was released with noise. The length of the steps follows from it.",
            f"{_STEPS} gradients over all rows were released with noise.",
        ]


def _clip_slope(problem: Problem, count: float) -> float:
    """Where slopes are clipped: more where there is more to learn from, or more features, which are
    learned slowly.

    Chosen on simulated data. Errors of regressions have no bound of their own.
    """
    width = problem.box.width
    least = 0.03 if isinstance(problem.loss, Squared | Huber) else 0.1
    return min(0.5, max(least, 0.05 * math.sqrt(count * problem.budget.mu / width), 0.02 * math.sqrt(width)))


def _noise_multipliers(problem: Problem) -> tuple[float, float]:
    step_fraction = (1 - _fact_count(problem) * _FACTS) / _STEPS
    fact_noise, step_noise = (problem.budget.noise_multipliers(part)[0] for part in (_FACTS, step_fraction))
    return fact_noise, step_noise


def _fact_count(problem: Problem) -> int:
    """How many numbers are released before the steps: the sum of squares, and the count unless it
    is public.
    """
    return 1 if problem.known_count is not None else 2


def _row_count(problem: Problem, noise: float) -> float:
    if problem.known_count is not None:
        return float(max(problem.known_count, 1))
    noisy = (int(problem.keep.sum()) << 10) + exact.rounded_gaussian(exactly(noise * 2**10))
    return float(max(noisy / 2**10, _least_count(noise)))


def _least_count(noise: float) -> float:
    """The least number of rows that differs clearly from none: twice the noise."""
    return max(2 * noise, 1.0)


def _mean_square(rows: CellRows, box: Box, count: float, noise: float) -> float:
    """A mean of the squared norms of rows without their constants. It errs upwards, and is at most
    that of the box.

    A record adds a whole number from 0 to `most_steps`, so that replacing it changes the sum by no
    more than adding it.
    """
    most_steps, constant = box.room(BITS) // _COARSE, box.constant_cells(BITS) ** 2
    total = sum(int(((squares - constant) // _COARSE).sum()) for squares in rows.squares)
    spread = noise * most_steps
    noisy = total + exact.rounded_gaussian(exactly(spread))
    return float(min((max(noisy, 0) + 2 * spread) / count, most_steps)) * _COARSE * rows.size**2


def _with_constant(rows: CellRows, old: float, new: float) -> CellRows:
    """The same rows with another number in the last column, in place."""
    for part in rows.parts:
        if isinstance(part, np.ndarray):
            part[:, -1] = new
        else:
            # The constant is the last number that each row stores.
            part.data[part.indptr[1:] - 1] = new
    return replace(rows, squares=tuple(squares + (new**2 - old**2) for squares in rows.squares))


def _cell_blocks(problem: Problem) -> Iterator[tuple[RealTable, Reals]]:
    if not (sparse.issparse(problem.data) and problem.box.keeps_zeros):
        yield from problem.cells()
        return
    for part in stored_blocks(problem.data):
        keep = np.flatnonzero(problem.keep[part])
        yield problem.box.sparse_cells(problem.data[part])[keep], problem.targets[part][keep]
