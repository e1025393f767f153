# SPDX-License-Identifier: Apache-2.0
"""Noisy gradient descent in coordinates that a private second-moment matrix has made round: the default solver.

**Promise.** One Gaussian release of the second moments (a fifth of the budget) and 100 noisy gradients (the rest);
nothing else leaves the data, and together they are exactly the Gaussian mechanism that the budget allows.

Why it works: with rows z = Wᵀx whose second moment is nearly the identity all directions are learned at one rate. For
classes they are taken about the mean of the features. Every number that steers the descent, that mean and the number of
rows among them, is read from the released matrix. The constants were chosen on other data sets than those that the
benchmarks report; no user has to tune them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from discreet.learn.budget import Budget
from discreet.learn.descent import LARGEST, Rows, descend
from discreet.learn.features import BITS, Box
from discreet.learn.losses import Huber, Squared
from discreet.learn.moments import Moments
from discreet.learn.problem import Fit, Problem, Solver
from discreet.privacy.guarantee import Guarantee

__all__ = ["Whitened", "count_of"]

Reals = npt.NDArray[np.float64]

_SHARE = 0.2  # of the budget, for the matrix
_STEPS = 100
_MOMENTUM = 0.8
_FLOOR = 0.25  # eigenvalues below this part of the noise's own are not believed
_CONSTANT = 0.2  # how long the constant is beside round features, where there is little to learn from
_ROW_BITS = 12  # a typical row is 2**12 cells long


class Whitened(Solver):
    """Descend in a privately whitened space."""

    name = "whitened"

    def guarantee(self, problem: Problem) -> Guarantee:
        matrix, each = _noises(problem.budget)
        return problem.budget.gaussian(matrix) + _STEPS * problem.budget.gaussian(each)

    def fit(self, problem: Problem) -> Fit:
        box, budget, loss = problem.box, problem.budget, problem.loss
        matrix, each = _noises(budget)
        released = Moments.release(
            (cells for cells, _ in problem.cells()),
            box.width,
            bits=BITS,
            noise=matrix,
            relation=budget.relation,
        )
        count = count_of(released, box, problem.known_count)
        signal = count * budget.mu / box.width
        if isinstance(loss, Squared | Huber):
            turn = _whitening(released.matrix, count, released.edge)
        else:
            turn = _centred(released, count, box, min(1.0, _CONSTANT * math.sqrt(max(1.0, signal))))
        slope = min(0.4, max(0.03, 0.025 * math.sqrt(signal)))
        asked = turn.T @ (problem.penalty[:, None] * turn) / count
        shrink = min(1.0, 0.05 / signal) if isinstance(loss, Squared) else 0.0
        found = descend(
            Rows.of(_turned(problem, turn), size=math.sqrt(box.width) / 2**_ROW_BITS, width=box.width),
            loss,
            np.zeros((box.width, problem.scores)),
            clip=slope * math.sqrt(box.width),
            noise=each,
            steps=_STEPS,
            rate=loss.pace / (loss.curvature + float(np.linalg.norm(asked, 2))),
            momentum=_MOMENTUM,
            penalty=asked + shrink * np.eye(box.width),
            count=count,
            relation=budget.relation,
            progress=problem.progress,
        )
        return Fit(turn @ found, count, slope)

    def story(self, problem: Problem) -> list[str]:
        return [
            "A fifth of the budget released the sums of products of features, with symmetric Gaussian noise.",
            f"The rest paid for {_STEPS} noisy gradients in coordinates that this matrix has made round.",
            "Those coordinates, the number of rows, the length of the steps and the clip norm were read from that release.",
        ]


def count_of(released: Moments, box: Box, known: int | None) -> float:
    """The number of rows: public when records are replaced, otherwise read from the column of constants."""
    if known is not None:
        return float(max(known, 1))
    square = (box.constant / box.length) ** 2
    return max(float(released.matrix[-1, -1]) / square, 2 * released.spread / square, 1.0)


def _noises(budget: Budget) -> tuple[float, float]:
    return budget.shares(_SHARE)[0], budget.shares((1 - _SHARE) / _STEPS)[0]


def _whitening(matrix: Reals, count: float, edge: float) -> Reals:
    """W such that Wᵀx has nearly the identity as its second moment, where the noise lets one see it."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, _FLOOR * edge)
    return np.asarray(vectors / np.sqrt(values / count))


def _centred(released: Moments, count: float, box: Box, last: float) -> Reals:
    """W such that features about their mean become round, and the constant becomes `last`.

    A constant as long as the features together would take most of what clipping leaves of a gradient where few
    eigenvalues are believed. The mean is drawn towards the middle of the box by what its noise alone would make of it.
    """
    constant = box.constant / box.length
    sums = released.matrix[:-1, -1] / constant
    noise = len(sums) * (released.spread / constant) ** 2 / 2
    mean = max(0.0, 1 - noise / max(float(sums @ sums), noise)) * sums / count
    cross = np.outer(sums, mean)
    about = released.matrix[:-1, :-1] - cross - cross.T + count * np.outer(mean, mean)
    turn = np.zeros_like(released.matrix)
    turn[:-1, :-1] = _whitening(about, count, released.edge)
    turn[-1, :-1] = -mean @ turn[:-1, :-1] / constant
    turn[-1, -1] = last / constant
    return turn


def _turned(problem: Problem, turn: Reals) -> Iterator[tuple[Reals, Reals]]:
    """Whitened rows in cells: sums of whole numbers, so that a row's cells depend on that row alone."""
    longest = float(np.sqrt((turn * turn).sum(axis=0)).max())
    exponent = 52 - BITS - math.frexp(longest)[1]
    whole = np.rint(np.ldexp(turn, exponent))
    scale = 2**_ROW_BITS / math.sqrt(problem.box.width)
    for cells, targets in problem.cells():
        turned = np.trunc(np.ldexp(cells @ whole, -exponent - BITS) * scale)
        yield np.clip(turned, -LARGEST, LARGEST), targets
