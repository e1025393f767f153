# SPDX-License-Identifier: Apache-2.0
"""Every feature scaled to [-1, 1], and the sums of features and of their squares, released
together.

    cube = Cube.of(2, bounds=([0, 0], [120, 1e5]))
    cube.release(X, groups, noise=4.0, relation="add-remove")     # count, Σx and Σx² of each group

**Guarantee.** The sums of all groups are a function of one Gaussian mechanism with this noise
multiplier, if each row is in one group at most. NaN counts as the middle of its bounds, an infinity
as the bound on its side.

Why it holds (joint.proof.md, 1): a row adds (1, x, x² - ½) to its group, of norm at most √(1 +
5d/4); of two rows in one group the difference is at most 2√d, of two in different groups at most √2
times the norm. A feature becomes a whole number of steps by an operation on that feature alone, and
sums of whole numbers are exact.

What would break it: bounds that were read off the data, or groups of a row that depend on other
rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet import noise as exact
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.learn.arrays import Bools, Ints, Reals, RowTable
from discreet.learn.features import blocks
from discreet.learn.inputs import Bounds, as_floats, feature_bounds

__all__ = ["Cube", "GroupSums", "sensitivity"]


# A feature in steps of 2**-12 of half its range, its square in steps of 2**-24.
_BITS = 12
_UP = 1 + 1e-12


@dataclass(frozen=True)
class GroupSums:
    """For each group the number of rows, Σx and Σx² on [-1, 1], each with Gaussian noise of
    standard deviation `spread`.
    """

    count: Reals
    first: Reals
    second: Reals
    spread: float


@dataclass(frozen=True)
class Cube:
    """The middle and half the range of each feature, as declared."""

    middle: Reals
    half: Reals

    @classmethod
    def of(cls, features: int, bounds: Bounds | None) -> Cube:
        """Validate the bounds that a user declared."""
        if bounds is None:
            raise BadParameter(
                "DP107",
                "bounds are missing.",
                why="one unbounded row could move the sums without limit, and bounds read off the data would leak it.",
                fix="pass bounds=(low, high), one number each or one per feature",
            )
        low, high = feature_bounds(bounds, features)
        return cls(low / 2 + high / 2, high / 2 - low / 2)

    def scale(self, block: RowTable) -> Reals:
        """Rows scaled and clipped to [-1, 1], each number by itself."""
        values = as_floats(block)
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            values -= self.middle
            values /= self.half
        values[np.isnan(values)] = 0.0
        return np.clip(values, -1.0, 1.0, out=values)

    def release(self, data: RowTable, groups: Bools, *, noise: float, relation: str) -> GroupSums:
        """Draw the sums of each group. `groups` has one column for each, and a row has at most one
        True.
        """
        count, width = groups.shape[1], len(self.middle)
        sizes = groups.sum(axis=0, dtype=np.int64)
        first, second = np.zeros((count, width), np.int64), np.zeros((count, width), np.int64)
        for part in blocks(data):
            steps = np.rint(self.scale(data[part]) * 2.0**_BITS)
            # at most 2**19 rows of squares up to 2**24: sums are exact
            is_member = groups[part].T.astype(np.float64)
            first += (is_member @ steps).astype(np.int64)
            second += (is_member @ (steps * steps)).astype(np.int64)
        second -= sizes[:, None] << (2 * _BITS - 1)
        spread = noise * sensitivity(width, count, relation)
        noisy = _add_noise(sizes, spread)
        squares = _add_noise(second, spread * 4.0**_BITS) / 4.0**_BITS + noisy[:, None] / 2
        return GroupSums(noisy, _add_noise(first, spread * 2.0**_BITS) / 2.0**_BITS, squares, spread)


def sensitivity(features: int, groups: int, relation: str) -> float:
    """How far one row moves (1, x, x² - ½), summed in its group (joint.proof.md, 1)."""
    one_row = math.sqrt(1 + 1.25 * features)
    if relation == "add-remove":
        return one_row * _UP
    same_group = 2 * math.sqrt(features)
    return (same_group if groups == 1 else max(same_group, math.sqrt(2) * one_row)) * _UP


def _add_noise(total: Ints, spread: float) -> Reals:
    return np.asarray(total + exact.rounded_gaussian(exactly(spread), total.shape), np.float64)
