# SPDX-License-Identifier: Apache-2.0
"""Plain noisy gradient descent on all rows: no matrix is released, so it is the solver for many or sparse features.

**Promise.** One noisy count (a fiftieth of the budget; none where the number of rows is public) and 100 noisy
gradients; together they are the Gaussian mechanism that the budget allows.

Why it holds: see descent.proof.md. Rows stay sparse where zero stays zero, that is, with `norm=` and no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet import noise as exact
from discreet.learn.descent import Rows, descend
from discreet.learn.features import BITS, blocks
from discreet.learn.losses import Huber, Squared
from discreet.learn.problem import Fit, Problem, Solver
from discreet.mechanisms.laws import exactly
from discreet.privacy.guarantee import Guarantee

__all__ = ["Gradient"]

Reals = npt.NDArray[np.float64]

_COUNTING = 0.02  # of the budget
_STEPS = 100
_MOMENTUM = 0.8
_PACE = (
    3.0  # rows are at most 1 long, so that a step of 3 over the curvature is still stable with this momentum
)


class Gradient(Solver):
    """Descend in the coordinates of the box."""

    name = "gradient"

    def guarantee(self, problem: Problem) -> Guarantee:
        counting, each = _noises(problem)
        steps = _STEPS * problem.budget.gaussian(each)
        return steps if counting is None else problem.budget.gaussian(counting) + steps

    def fit(self, problem: Problem) -> Fit:
        counting, each = _noises(problem)
        count = float(max(problem.known_count or 0, 1))
        if counting is not None:
            scale = counting * 2**10
            noisy = (int(problem.keep.sum()) << 10) + exact.rounded_gaussian(exactly(scale))
            count = max(noisy / 2**10, 2 * counting, 1.0)
        width, loss = problem.box.width, problem.loss
        found = descend(
            Rows.of(_parts(problem), size=2.0**-BITS, width=width),
            loss,
            np.zeros((width, problem.scores)),
            clip=_clip(problem, count),
            noise=each,
            steps=_STEPS,
            rate=_PACE / (loss.curvature + float(problem.penalty.max()) / count),
            momentum=_MOMENTUM,
            penalty=np.diag(problem.penalty / count),
            count=count,
            relation=problem.budget.relation,
            progress=problem.progress,
        )
        return Fit(found, count)

    def story(self, problem: Problem) -> list[str]:
        counted = "The number of rows was released with noise." if problem.known_count is None else ""
        return [
            *([counted] if counted else []),
            f"{_STEPS} gradients over all rows were released with noise.",
        ]


def _clip(problem: Problem, count: float) -> float:
    """More where there is more to learn from; chosen on simulated data. Errors of regressions have no bound of their own."""
    least = 0.03 if isinstance(problem.loss, Squared | Huber) else 0.1
    return min(0.3, max(least, 0.05 * math.sqrt(count * problem.budget.mu / problem.box.width)))


def _noises(problem: Problem) -> tuple[float | None, float]:
    if problem.known_count is not None:
        return None, problem.budget.shares(1 / _STEPS)[0]
    counting, each = (problem.budget.shares(part)[0] for part in (_COUNTING, (1 - _COUNTING) / _STEPS))
    return counting, each


def _parts(problem: Problem) -> Iterator[tuple[Any, Reals]]:
    if not (sparse.issparse(problem.data) and problem.box.keeps_zeros):
        yield from problem.cells()
        return
    for part in blocks(problem.data):
        kept = np.flatnonzero(problem.keep[part])
        yield problem.box.sparse_cells(problem.data[part])[kept], problem.targets[part][kept]
