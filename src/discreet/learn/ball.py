# SPDX-License-Identifier: Apache-2.0
"""Rows in a ball, with the distances of the raw features, as clusters and components need them.

    ball = Ball.of(2, bounds=([0, 0], [10, 1]), norm=None)       # steps of equal length in all features
    ball.cells(X)

**Guarantee.** The guarantee of `Box`: each row becomes whole numbers by itself, with a norm of at
most 2**bits.

A `Box` with bounds stretches every feature to [-1, 1]. Linear models want that, but it would change
which centre is nearest and which variance is largest. Here one factor serves all features: half the
diagonal of the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet import check
from discreet.learn.arrays import Reals, RowTable
from discreet.learn.budget import FitBudget
from discreet.learn.features import BITS, Box, blocks
from discreet.learn.inputs import Bounds, as_floats, feature_bounds
from discreet.learn.moments import NoisyMoments
from discreet.learn.whitened import row_count

__all__ = ["Ball", "CentredMoments"]


# Stands for an infinity where there are no bounds: its square is finite.
_FAR = 1e100


@dataclass(frozen=True)
class CentredMoments:
    """Count, mean and covariance of rows in units of a ball's size, and the spread of the noise in
    sums.
    """

    count: float
    mean: Reals
    covariance: Reals
    spread: float


@dataclass(frozen=True)
class Ball:
    """A box of equal steps, and the bounds to which features are clipped before."""

    box: Box
    low: Reals
    high: Reals

    @classmethod
    def of(cls, features: int, *, bounds: Bounds | None, norm: float | None, constant: float = 0.0) -> Ball:
        """Validate what a user declared: bounds, the greatest distance from their middle (or from
        zero), or both.
        """
        far = np.full(features, _FAR)
        if bounds is None:
            return cls(Box.of(features, norm=norm, constant=constant), -far, far)
        low, high = feature_bounds(bounds, features)
        half = high / 2 - low / 2
        largest = float(half.max())
        reach = largest * float(np.linalg.norm(half / largest))
        radius = 1.0 if norm is None else min(1.0, check.moderate(norm=norm) / reach)
        return cls(
            Box(low / 2 + high / 2, np.full(features, reach), 1.0, radius, constant * radius), low, high
        )

    @property
    def size(self) -> float:
        """The length of a row of 2**bits cells in the units of the features."""
        return self.box.length * float(self.box.half[0])

    @property
    def reach(self) -> float:
        """The greatest distance of a row from the middle, in the units of the features."""
        return self.box.radius * float(self.box.half[0])

    def clip(self, rows: RowTable) -> Reals:
        """Rows with every feature clipped to its bounds. NaN becomes the middle."""
        dense = as_floats(rows)
        return np.clip(np.where(np.isnan(dense), self.box.middle, dense), self.low, self.high)

    def cells(self, block: RowTable, bits: int = BITS) -> Reals:
        """Rows in whole steps of 2**-bits of `size` from the middle."""
        return self.box.cells(self.clip(block), bits)

    def release(self, data: RowTable, *, noise: float, budget: FitBudget) -> CentredMoments:
        """Draw the moments: one Gaussian mechanism with this multiplier (joint.proof.md, 3). The
        box needs a constant.
        """
        box = self.box
        released = NoisyMoments.release(
            (self.cells(data[part]) for part in blocks(data)),
            box.width,
            bits=BITS,
            noise=noise,
            relation=budget.relation,
        )
        count = row_count(released, box, data.shape[0] if budget.relation == "replace" else None)
        mean = released.matrix[:-1, -1] * (box.length / box.constant) / count
        mean /= max(1.0, float(np.linalg.norm(mean)) * box.length / box.radius)
        return CentredMoments(
            count, mean, released.matrix[:-1, :-1] / count - np.outer(mean, mean), released.spread
        )
