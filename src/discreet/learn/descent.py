# SPDX-License-Identifier: Apache-2.0
"""Noisy gradient descent on all rows at once, with every sum in whole numbers.

    rows = CellRows.of(cells, targets)
    descend(rows, Logistic(), clip=0.4, noise=20.0, steps=100, …)

**Guarantee.** Each step releases Σ clip(gradient of a record) + Gaussian noise with the given
multiplier, and nothing else leaves the data: a run is `steps` Gaussian mechanisms
(descent.proof.md), whatever the step sizes, the momentum, the averaging and the clip norm are, as
long as they follow from what was released before.

Why it holds: a record's gradient is slope × row, both truncated to whole numbers A and K with ‖A‖
‖K‖ <= 2**24, checked in exact arithmetic; so one record moves the sum by at most 2**24 cells (twice
that if it is replaced). Scores are sums of whole numbers too, so that a record's gradient depends
on that record and on released weights alone. Integers plus rounded Gaussian noise are a function of
the ideal mechanism's output.

What would break it: a score that depends on other records, a step size that was read off the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet import noise as exact
from discreet.exact import exactly
from discreet.learn.arrays import Floats, Ints, Reals, RealTable
from discreet.learn.losses import Loss

__all__ = ["LARGEST", "CellRows", "clipped_sum", "descend", "score_blocks", "step_responses"]


#: The largest number in a row: single precision holds it, and squares add up exactly.
LARGEST = 1 << 20
# The greatest norm of a record's gradient in cells.
_CLIP = 1 << 24
_SAFE = 1 - 2.0**-40
# How many numbers a dense block holds, so that it stays in a cache.
_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class CellRows:
    """Rows of whole numbers in blocks, with their squared norms and targets; `size` is the length
    of a cell.
    """

    parts: tuple[RealTable | Floats, ...]
    squares: tuple[Reals, ...]
    targets: tuple[Reals, ...]
    size: float
    width: int

    @classmethod
    def of(cls, parts: Iterable[tuple[RealTable, Reals]], *, size: float, width: int) -> CellRows:
        """From (cells, targets) of each block; |cell| <= 2**20. Dense blocks are kept in single
        precision.
        """
        blocks, squares, targets = [], [], []
        for cells, target in (small for part in parts for small in _split_blocks(*part)):
            if isinstance(cells, np.ndarray):
                blocks.append(cells.astype(np.float32))
                squares.append(np.einsum("ij,ij->i", cells, cells))
            else:
                blocks.append(cells)
                squares.append(np.asarray(cells.multiply(cells).sum(1)))
            targets.append(target if target.ndim == 2 else target[:, None])
        return cls(tuple(blocks), tuple(squares), tuple(targets), size, width)

    @cached_property
    def limits(self) -> tuple[Reals, ...]:
        """The greatest whole A of each row such that A² · square <= 2**48 exactly."""
        return tuple(_row_limits(squares) for squares in self.squares)


def _split_blocks(cells: RealTable, targets: Reals) -> Iterator[tuple[RealTable, Reals]]:
    step = max(1, _AT_ONCE // max(1, cells.shape[1])) if isinstance(cells, np.ndarray) else cells.shape[0]
    for start in range(0, cells.shape[0], max(1, step)):
        yield cells[start : start + step], targets[start : start + step]


def _row_limits(squares: Reals) -> Reals:
    limit = np.trunc(_CLIP / np.sqrt(np.maximum(squares, 1.0)) * _SAFE)
    limit[limit * limit * squares > float(_CLIP) ** 2] = 0.0
    return limit


def clipped_sum(rows: CellRows, loss: Loss, weights: Reals, clip: float) -> tuple[Ints, float]:
    """Σ of clipped gradients in whole cells, and the size of a cell; no record is longer than 2**24
    cells.
    """
    slope_unit = clip / (rows.size * _CLIP)
    total = np.zeros(weights.shape, np.int64)
    blocks = zip(score_blocks(rows, weights), rows.squares, rows.limits, strict=True)
    for (cells, scores, targets), squares, limits in blocks:
        pushes = loss.slopes(scores, targets) / slope_unit
        pushes[~np.isfinite(pushes)] = 0.0
        total += (cells.T @ _limit_slopes(pushes, squares, limits)).astype(np.int64)
    return total, slope_unit * rows.size


def score_blocks(rows: CellRows, weights: Reals) -> Iterator[tuple[Reals, Reals, Reals]]:
    """Cells, scores and targets of each block; a score is a sum of whole numbers, a function of its
    own row.
    """
    exponent = _exponent(weights, rows.width)
    whole = np.rint(np.ldexp(weights, exponent))
    score_step = math.ldexp(rows.size, -exponent)
    for cells, targets in zip(rows.parts, rows.targets, strict=True):
        doubles = cells.astype(np.float64, copy=False)
        yield doubles, (doubles @ whole) * score_step, targets


def _limit_slopes(pushes: Reals, squares: Reals, limits: Reals) -> Reals:
    """Whole numbers A, one row each, such that ‖A‖² · square <= 2**48 exactly."""
    if pushes.shape[1] == 1:
        # the limits are whole numbers, so rounding to the nearest stays within them
        return np.rint(np.minimum(np.maximum(pushes, -limits[:, None]), limits[:, None]))
    norms = np.sqrt((pushes * pushes).sum(axis=1))
    out: Reals = np.trunc(pushes * (limits / np.maximum(norms, np.maximum(limits, 1.0)))[:, None])
    out[(out * out).sum(axis=1) * squares > float(_CLIP) ** 2] = 0.0
    return out


def descend(
    rows: CellRows,
    loss: Loss,
    start: Reals,
    *,
    clip: float,
    noise: float,
    steps: int,
    rate: float,
    momentum: float,
    penalty: Reals,
    count: float,
    relation: str,
    settle: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> Reals:
    """The average of the last half of the noisy steps on the mean loss plus ½ wᵀ penalty w.

    `count` is a released or a public number of rows; `penalty` is a matrix, or the diagonal of one.
    In the half that is averaged steps are `settle` times as long.
    """
    spread = noise * _CLIP * (2 if relation == "replace" else 1)
    weights, speed, average = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(steps):
        total, cell = clipped_sum(rows, loss, weights, clip)
        noisy = total + exact.rounded_gaussian(exactly(spread), total.shape)
        pull = penalty @ weights if penalty.ndim == 2 else penalty[:, None] * weights
        gradient = noisy * (cell / count) + pull
        speed = _momentum_at(momentum, step) * speed + gradient
        is_late = step >= steps // 2
        weights = weights - rate * (settle if is_late else 1.0) * speed
        average += weights if is_late else 0.0
        if progress is not None:
            progress(step + 1, steps)
    return average / (steps - steps // 2)


def step_responses(
    curvatures: Reals, *, rate: float, momentum: float, steps: int, settle: float = 1.0
) -> tuple[Reals, Reals]:
    """How the result of `descend` changes with a unit push of the gradient in each step, and with
    the start.

    One column for each curvature of a quadratic loss along its axes, for which both are exact.
    """
    weights = np.zeros((steps + 1, len(curvatures)))
    weights[-1] = 1.0
    speed, average = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(steps):
        gradient = weights * curvatures
        gradient[step] += 1.0
        speed = _momentum_at(momentum, step) * speed + gradient
        is_late = step >= steps // 2
        weights = weights - rate * (settle if is_late else 1.0) * speed
        average += weights if is_late else 0.0
    average /= steps - steps // 2
    return average[:-1], average[-1]


def _momentum_at(momentum: float, step: int) -> float:
    """The momentum of a step, rising from 0: at full speed the first, longest steps would
    overshoot.
    """
    return min(momentum, step / (step + 5))


def _exponent(weights: Reals, width: int) -> int:
    """By how many bits weights are shifted into whole numbers whose products with a row stay below
    2**52.
    """
    longest = float(np.sqrt((weights * weights).sum(axis=0)).max(initial=0.0))
    room = 31 - math.ceil(math.log2(math.sqrt(width)))
    return 0 if longest == 0 else min(900, room - math.frexp(longest)[1])
