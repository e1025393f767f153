# SPDX-License-Identifier: Apache-2.0
"""Noisy gradient descent on all rows at once, with every sum in whole numbers.

    rows = Rows.of(cells, targets)
    descend(rows, Logistic(), clip=0.4, noise=20.0, steps=100, …)

**Promise.** Each step releases Σ clip(gradient of a record) + Gaussian noise with the given multiplier, and nothing
else leaves the data: a run is `steps` Gaussian mechanisms (descent.proof.md), whatever the step sizes, the momentum,
the averaging and the clip norm are, as long as they follow from what was released before.

Why it holds: a record's gradient is slope × row, both truncated to whole numbers A and K with ‖A‖ ‖K‖ <= 2**24, checked
in exact arithmetic; so one record moves the sum by at most 2**24 cells (twice that if it is replaced). Scores are
sums of whole numbers too, so that a record's gradient depends on that record and on released weights alone.
Integers plus rounded Gaussian noise are a function of the ideal mechanism's output.

What would break it: a score that depends on other records, a step size that was read off the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import noise as exact
from discreet.learn.losses import Loss
from discreet.mechanisms.laws import exactly

__all__ = ["LARGEST", "Rows", "clipped_sum", "descend"]

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LARGEST = 1 << 20  # of one number in a row: single precision holds it, and squares add up exactly
_CLIP = 1 << 24  # the greatest norm of a record's gradient in cells
_SAFE = 1 - 2.0**-40


@dataclass(frozen=True)
class Rows:
    """Rows of whole numbers in blocks, with their squared norms and targets; `size` is the length of a cell."""

    parts: tuple[Any, ...]
    squares: tuple[Reals, ...]
    targets: tuple[Reals, ...]
    size: float
    width: int

    @classmethod
    def of(cls, parts: Iterable[tuple[Any, Reals]], *, size: float, width: int) -> Rows:
        """From (cells, targets) of each block; |cell| <= 2**20. Dense blocks are kept in single precision."""
        kept, squares, targets = [], [], []
        for cells, target in parts:
            dense = isinstance(cells, np.ndarray)
            kept.append(cells.astype(np.float32) if dense else cells)
            squares.append(
                np.einsum("ij,ij->i", cells, cells) if dense else np.asarray(cells.multiply(cells).sum(1))
            )
            targets.append(target if target.ndim == 2 else target[:, None])
        return cls(tuple(kept), tuple(squares), tuple(targets), size, width)


def clipped_sum(rows: Rows, loss: Loss, weights: Reals, clip: float) -> tuple[Ints, float]:
    """Σ of clipped gradients in whole cells, and the size of a cell; no record is longer than 2**24 cells."""
    exponent = _exponent(weights, rows.width)
    whole = np.rint(np.ldexp(weights, exponent))
    unit = clip / (rows.size * _CLIP)  # of a slope
    total = np.zeros(weights.shape, np.int64)
    for cells, squares, targets in zip(rows.parts, rows.squares, rows.targets, strict=True):
        wide = cells.astype(np.float64)
        scores = np.ldexp(wide @ whole, -exponent) * rows.size
        pushes = loss.slopes(scores, targets) / unit
        np.nan_to_num(pushes, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        total += (wide.T @ _limited(pushes, squares)).astype(np.int64)
    return total, unit * rows.size


def _limited(pushes: Reals, squares: Reals) -> Reals:
    """Whole numbers A, one row each, such that ‖A‖² · square <= 2**48 exactly."""
    longest = _CLIP / np.sqrt(np.maximum(squares, 1.0)) * _SAFE
    norms = np.sqrt((pushes * pushes).sum(axis=1)) if pushes.shape[1] > 1 else np.abs(pushes[:, 0])
    out = np.trunc(pushes * (longest / np.maximum(norms, longest))[:, None])
    out[(out * out).sum(axis=1) * squares > float(_CLIP) ** 2] = 0.0
    return out


def descend(
    rows: Rows,
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
    progress: Callable[[int, int], None] | None = None,
) -> Reals:
    """The average of the last half of the noisy steps on the mean loss plus ½ wᵀ penalty w.

    `count` is a released or a public number of rows.
    """
    spread = noise * _CLIP * (2 if relation == "replace" else 1)
    weights, speed, average = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(steps):
        total, cell = clipped_sum(rows, loss, weights, clip)
        noisy = total + exact.rounded_gaussian(exactly(spread), total.shape)
        gradient = noisy * (cell / count) + penalty @ weights
        speed = momentum * speed + gradient
        weights = weights - rate * speed
        average += weights if step >= steps // 2 else 0.0
        if progress is not None:
            progress(step + 1, steps)
    return average / (steps - steps // 2)


def _exponent(weights: Reals, width: int) -> int:
    """By how many bits weights are shifted into whole numbers whose products with a row stay below 2**52."""
    longest = float(np.sqrt((weights * weights).sum(axis=0)).max(initial=0.0))
    room = 31 - math.ceil(math.log2(math.sqrt(width)))
    return 0 if longest == 0 else min(900, room - math.frexp(longest)[1])
