# SPDX-License-Identifier: Apache-2.0
"""Rows of private numbers as vectors of whole numbers, no longer than what was declared.

    box = Box.of(2, bounds=([0, 0], [120, 1e5]))      # what is publicly known of a row
    box.cells(X)                                      # rows in steps of 2**-14 of the greatest norm

**Guarantee.** Each row of the result is a function of that row and of public numbers alone, to the
last bit: it does not depend on where the row stands or on how many there are. Its norm is at most
2**bits, exactly. NaN counts as the middle of its bounds (as 0 where there are none) and an infinity
as the bound on its side; no value is an error.

Why it holds: each feature is mapped to [-1, 1] and truncated to whole numbers before anything is
added up, so sums along a row are exact in whatever order the hardware adds. The row is then
shortened to the declared norm and truncated towards zero, which lengthens nothing. A row that
rounding has left too long by a last bit is shortened once more, and set to zero if that does not
help.

What would break it: bounds or a norm that were read off the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.arrays import Bools, Reals, RowTable
from discreet.learn.inputs import Bounds, as_floats, feature_bounds

__all__ = ["BITS", "Box", "blocks", "stored_blocks", "truncate_rows"]


#: Rows are whole numbers of cells: steps of 2**-14 of the greatest norm.
BITS = 14
#: The constant column of the intercept, as a fraction of the norm of the rest.
CONSTANT = 0.7
# A norm above the radius by less than this factor is taken to be rounding.
_ROUNDED = 1 + 1e-9
# How many numbers are worked on at once.
_AT_ONCE = 1 << 19


@dataclass(frozen=True)
class Box:
    """Where rows may lie: middle ± cap·half in each feature, `radius` in norm after that; then
    `constant` is appended.
    """

    middle: Reals
    half: Reals
    cap: float
    radius: float
    constant: float

    @classmethod
    def of(
        cls,
        features: int,
        *,
        bounds: Bounds | None = None,
        norm: float | None = None,
        constant: float = CONSTANT,
    ) -> Box:
        """Validate the bounds and the norm that a user declared; at least one of them is needed."""
        if bounds is None and norm is None:
            raise BadParameter(
                "DP107",
                "bounds are missing, and so is norm.",
                why="one unbounded row could move the model without limit, and bounds read off the data would leak it.",
                fix="pass bounds=(low, high), one number each or one per feature, or norm=1.0",
            )
        widest = math.sqrt(features)
        radius = widest if norm is None else check.moderate(norm=norm)
        if bounds is None:
            middle, half, cap = np.zeros(features), np.ones(features), radius
        else:
            low, high = feature_bounds(bounds, features)
            middle, half, cap = low / 2 + high / 2, high / 2 - low / 2, 1.0
            radius = min(radius, widest)
        return cls(middle, half, cap, radius, constant * radius)

    @property
    def width(self) -> int:
        """How many numbers a row has, the constant included."""
        return len(self.middle) + (self.constant > 0)

    @property
    def length(self) -> float:
        """The greatest norm of a row, by which it is divided."""
        return math.hypot(self.radius, self.constant)

    @property
    def keeps_zeros(self) -> bool:
        """Whether a zero stays a zero, so that a sparse row stays sparse."""
        return not self.middle.any()

    def cells(self, block: RowTable, bits: int = BITS) -> Reals:
        """Rows in whole steps of 2**-bits, as floats that hold them exactly; ‖row‖ <= 2**bits
        exactly.
        """
        scaled = as_floats(block)
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            scaled -= self.middle
        self._to_whole_numbers(scaled, self.half)
        squares = np.einsum("ij,ij->i", scaled, scaled)
        scaled *= self._shrink_factor(squares, bits)[:, None]
        shortened = truncate_rows(scaled, self.room(bits))
        if not self.constant:
            return shortened
        return np.concatenate([shortened, np.full((len(scaled), 1), self.constant_cells(bits))], axis=1)

    def sparse_cells(self, block: RowTable, bits: int = BITS) -> sparse.csr_array:
        """The same for a sparse block whose zeros stay zeros, without making it dense."""
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            out = sparse.csr_array(block, dtype=np.float64, copy=True)
        out.sum_duplicates()
        owner, count = np.repeat(np.arange(out.shape[0]), np.diff(out.indptr)), out.shape[0]
        self._to_whole_numbers(out.data, self.half[out.indices])
        squares = np.bincount(owner, out.data**2, count).astype(np.float64)
        out.data = np.trunc(out.data * self._shrink_factor(squares, bits)[owner])
        out.data[(np.bincount(owner, out.data**2, count) > self.room(bits))[owner]] = 0.0
        if not self.constant:
            return out
        return sparse.hstack(
            [out, sparse.csr_array(np.full((count, 1), self.constant_cells(bits)))], format="csr"
        )

    def is_changed(self, block: RowTable) -> Bools:
        """Which rows clipping changes: NaN, or beyond the bounds or the norm. A function of each
        row alone.
        """
        scaled = as_floats(block)
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            scaled -= self.middle
            scaled /= self.half
            # columns one by one, so that a row's sum does not depend on where the row stands
            square = sum((column * column for column in scaled.T), start=np.zeros(len(scaled)))
            is_inside = (np.abs(scaled) <= self.cap).all(axis=1) & (np.sqrt(square) <= self.radius * _ROUNDED)
        return np.asarray(~is_inside)

    def _to_whole_numbers(self, values: Reals, half: Reals) -> None:
        """Clip to the bounds and truncate to whole numbers, in steps too fine to matter later."""
        with np.errstate(all="ignore"):
            values /= half
        values[np.isnan(values)] = 0.0
        np.clip(values, -self.cap, self.cap, out=values)
        np.trunc(np.multiply(values, 2.0**self._fine_bits / self.cap, out=values), out=values)

    def _shrink_factor(self, squares: Reals, bits: int) -> Reals:
        """The factors that shorten rows of whole numbers to `radius`, and scale them to 2**bits."""
        unit = self.cap / 2.0**self._fine_bits
        longest = np.maximum(np.sqrt(squares) * unit, self.radius)
        return self.radius / longest * (unit / self.length * 2.0**bits)

    @property
    def _fine_bits(self) -> int:
        """Bits of a feature such that squares of a whole row add up exactly in float64."""
        return min(20, (52 - len(self.middle).bit_length()) // 2)

    def constant_cells(self, bits: int) -> float:
        """The constant in steps of 2**-bits."""
        return math.floor(self.constant / self.length * 2.0**bits)

    def room(self, bits: int) -> float:
        """The greatest square of the norm that the constant leaves to the features."""
        return 4.0**bits - self.constant_cells(bits) ** 2

    def coefficients(self, weights: Reals) -> tuple[Reals, Reals]:
        """Slopes on the raw features and the intercept, from weights on rows. The last axis runs
        along a row.
        """
        inner = weights / self.length
        slopes = inner[..., : len(self.middle)] / self.half
        intercept = -slopes @ self.middle
        if self.constant:
            intercept = intercept + inner[..., -1] * self.constant
        return slopes, np.asarray(intercept)


def truncate_rows(rows: Reals, room: float) -> Reals:
    """Truncate rows towards zero to whole numbers whose squares add up to at most `room`, exactly."""
    cells = np.trunc(rows)
    # sums of whole numbers below 2**53 are exact
    too_long = np.einsum("ij,ij->i", cells, cells) > room
    if too_long.any():
        shorter = np.trunc(rows[too_long] * (1 - 2.0**-8))
        shorter[np.einsum("ij,ij->i", shorter, shorter) > room] = 0.0
        cells[too_long] = shorter
    return cells


def blocks(matrix: RowTable) -> Iterator[slice]:
    """Slices of rows that fit into fast memory."""
    count, width = matrix.shape
    step = max(1, _AT_ONCE // max(1, width))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def stored_blocks(matrix: sparse.csr_array) -> Iterator[slice]:
    """Slices of rows of a sparse table, each with about as many stored numbers."""
    count = matrix.shape[0]
    step = min(_AT_ONCE, max(1, _AT_ONCE * count // max(1, matrix.nnz)))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
