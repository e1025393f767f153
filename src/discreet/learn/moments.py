# SPDX-License-Identifier: Apache-2.0
"""The sum of x xᵀ over all rows, exactly in whole numbers, released once with symmetric Gaussian
noise.

    released = NoisyMoments.release(blocks, width, bits=14, noise=8.0, relation="add-remove")
    released.matrix          # Σ x xᵀ + noise, for rows of norm at most 1
    released.spread          # the standard deviation of its diagonal

**Guarantee.** The matrix is a function of one Gaussian mechanism with this noise multiplier
(moments.proof.md): the diagonal has noise N(0, s²), each entry off it N(0, s²/2) with its mirror
image the same, s = noise · sensitivity, and the sensitivity in the Frobenius norm is 1 under
add/remove and √2 under replace-one.

Why it holds: x xᵀ has Frobenius norm ‖x‖² <= 1, and ‖x xᵀ - y yᵀ‖² = ‖x‖⁴ + ‖y‖⁴ - 2 (x·y)² <= 2.
That noise is white in the Frobenius inner product, where an entry off the diagonal counts twice.
Sums of whole numbers are exact.

What would break it: rows that are longer than declared; floats in the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from discreet import noise as exact
from discreet.exact import exactly
from discreet.learn.arrays import Ints, Reals

__all__ = ["NoisyMoments", "symmetric_noise"]


_UP = 1 + 1e-12


@dataclass(frozen=True)
class NoisyMoments:
    """Σ x xᵀ with noise, in units of the greatest squared norm."""

    matrix: Reals
    spread: float

    @classmethod
    def release(
        cls, cells: Iterable[Reals], width: int, *, bits: int, noise: float, relation: str
    ) -> NoisyMoments:
        """Draw it from blocks of rows in whole steps of 2**-bits, each of norm at most 2**bits."""
        total = np.zeros((width, width), np.int64)
        # A block has at most 2**19 rows, and products are below 2**28: BLAS adds them exactly.
        for block in cells:
            total += (block.T @ block).astype(np.int64)
        spread = noise * (math.sqrt(2) if relation == "replace" else 1.0) * _UP
        noisy = total + symmetric_noise(width, spread * 4.0**bits)
        return cls(noisy / 4.0**bits, spread)

    @property
    def edge(self) -> float:
        """About the largest eigenvalue of the noise (moments.proof.md)."""
        return math.sqrt(2 * len(self.matrix)) * self.spread


def symmetric_noise(width: int, spread: float) -> Ints:
    """Whole-number noise of standard deviation `spread` on the diagonal and spread / √2 off it,
    mirrored.
    """
    above = np.triu_indices(width, 1)
    out = np.zeros((width, width), np.int64)
    out[above] = exact.rounded_gaussian(exactly(spread / math.sqrt(2) * _UP), len(above[0]))
    out += out.T
    out[np.diag_indices(width)] = exact.rounded_gaussian(exactly(spread), width)
    return out
