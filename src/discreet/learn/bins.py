# SPDX-License-Identifier: Apache-2.0
"""Features cut into bins of about equal size, from noisy counts that are released once.

    features = features_of(names, bounds, categories)         # what is publicly known
    cells = [feature.cells(column) for feature, column in …]  # one whole number for each record
    bins, count = release_bins(features, cells, noise=…, relation="add-remove")

A numeric feature has 512 equal cells between its bounds, and a cell for NaN. A category has one
cell for each declared value, and one for everything else. Bins are runs of cells.

**Guarantee.** The cell of a record is a function of that record and of public numbers alone. Each
feature is one Gaussian mechanism with the given noise multiplier; bins and counts are functions of
what it releases.

Why it holds: additive.proof.md, 1. A record adds one column of a whole-number matrix, whose norm is
computed exactly.

What would break it: bounds or categories that were read off the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import solve_triangular, toeplitz
from sklearn.isotonic import isotonic_regression

from discreet import noise as exact
from discreet.exact import exactly
from discreet.learn.arrays import Ints, Reals, Values

__all__ = ["CELLS", "Feature", "FeatureBins", "release_bins"]


#: Equal cells between the bounds of a numeric feature.
CELLS = 512
# Entries of the strategy matrix are steps of 2**-16.
_STEP = 1 << 16
# The number of bins grows with the number of records, between these.
_RECORDS_A_BIN, _FEWEST, _MOST = 128, 16, 64
_UP = 1 + 1e-12


@dataclass(frozen=True)
class Feature:
    """What is publicly known of a column: the bounds of its numbers, or its declared values."""

    name: str | int
    low: float = 0.0
    high: float = 0.0
    values: Values | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether the column holds numbers between bounds."""
        return self.values is None

    @property
    def cell_count(self) -> int:
        """The number of cells, the last of which holds what is missing."""
        return (CELLS if self.values is None else len(self.values)) + 1

    def numeric_cells(self, column: Reals) -> Ints:
        """The cell of each number; one outside the bounds lies in the nearest cell."""
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            position = np.floor((column - self.low) * (CELLS / (self.high - self.low)))
        position[np.isnan(position)] = CELLS
        out: Ints = np.clip(position, 0, CELLS - 1, out=position, where=position != CELLS).astype(np.int64)
        out[np.isnan(column)] = CELLS
        return out


@dataclass(frozen=True)
class FeatureBins:
    """The bins of one feature: runs of its cells, the last of which holds what is missing."""

    feature: Feature
    #: The bin of each cell.
    bin_of_cell: Ints
    #: About how many records lie in each bin: released, and never less than the noise.
    counts: Reals

    @property
    def edges(self) -> Reals:
        """The ends of the bins of a numeric feature, in its own unit."""
        ends = np.flatnonzero(np.diff(self.bin_of_cell[:CELLS], prepend=-1, append=CELLS + 1))
        feature = self.feature
        return np.asarray(feature.low + ends * ((feature.high - feature.low) / CELLS))

    def group_bins(self, most: int) -> tuple[Ints, bool]:
        """A coarser bin for each bin, at most `most` of them, and whether they have an order."""
        groups = np.zeros(len(self.counts), np.int64)
        counts = self.counts[:-1]
        is_ordered = self.feature.is_numeric
        if is_ordered:
            order = np.arange(len(counts))
        elif len(counts) < most:
            return np.arange(len(self.counts)), False
        else:
            # the most frequent values have a group of their own
            order = np.argsort(-counts, kind="stable")
        before = np.cumsum(counts[order]) - counts[order]
        total = max(float(counts.sum()), 1e-9)
        groups[order] = np.minimum((before + counts[order] / 2) / total * most, most - 1).astype(np.int64)
        # groups that nothing lies in are left out
        used, compact = np.unique(groups[:-1], return_inverse=True)
        groups[:-1] = compact
        groups[-1] = len(used) - 1
        return groups, is_ordered


def release_bins(
    features: Sequence[Feature],
    cells: Sequence[Ints],
    *,
    noise: float,
    relation: str,
    known_count: int | None,
) -> tuple[list[FeatureBins], float, float]:
    """Bins of each feature, the number of records, and its standard deviation. Each feature is one
    Gaussian release with this multiplier.
    """
    spread = noise * (math.sqrt(2) if relation == "replace" else 1.0)
    counts = [
        _numeric_counts(column, spread) if feature.is_numeric else _category_counts(column, feature, spread)
        for feature, column in zip(features, cells, strict=True)
    ]
    weights = np.array([1 / noisy.variance for noisy in counts])
    total = float(sum(weights * [noisy.total for noisy in counts]) / weights.sum())
    deviation = float(1 / math.sqrt(weights.sum()))
    if known_count is not None:
        total, deviation = float(known_count), 0.0
    total = max(total, 2 * deviation, 1.0)
    return (
        [_bins(feature, noisy, total) for feature, noisy in zip(features, counts, strict=True)],
        total,
        deviation,
    )


@dataclass(frozen=True)
class _NoisyCounts:
    """Counts of cells, their total, and how noisy these are."""

    cells: Reals
    total: float
    #: The variance of the total.
    variance: float
    #: The standard deviation of the number of records up to a cell.
    rank_deviation: float
    #: The standard deviation of the count of what is missing, or of a value.
    deviation: float


def _numeric_counts(column: Ints, spread: float) -> _NoisyCounts:
    """Counts by the square root of the matrix of prefix sums, which hides ranks with little noise."""
    strategy = _strategy()
    counts = np.bincount(column, minlength=CELLS + 1)
    deviation = spread * strategy.norm * _UP
    # whole numbers: float64 could round sums of large products
    answers = strategy.matrix @ counts[:CELLS]
    missing = strategy.missing * int(counts[CELLS])
    noisy = answers + exact.rounded_gaussian(exactly(deviation), CELLS)
    noisy_missing = (missing + exact.rounded_gaussian(exactly(deviation))) / strategy.missing
    cells = solve_triangular(strategy.floats, noisy.astype(np.float64), lower=True)
    rank = deviation * strategy.rank_norm
    alone = deviation / strategy.missing
    last = deviation * strategy.last_norm
    return _NoisyCounts(
        np.append(cells, noisy_missing), float(cells.sum() + noisy_missing), last**2 + alone**2, rank, alone
    )


def _category_counts(column: Ints, feature: Feature, spread: float) -> _NoisyCounts:
    deviation = spread * _UP
    size = feature.cell_count
    counts = np.bincount(column, minlength=size) + exact.rounded_gaussian(exactly(deviation), size)
    return _NoisyCounts(
        counts.astype(np.float64), float(counts.sum()), size * deviation**2, deviation, deviation
    )


def _bins(feature: Feature, noisy: _NoisyCounts, total: float) -> FeatureBins:
    if not feature.is_numeric:
        return FeatureBins(
            feature, np.arange(feature.cell_count), np.maximum(noisy.cells, max(noisy.deviation, 1.0))
        )
    ranks = isotonic_regression(np.cumsum(noisy.cells[:CELLS]))
    masses = np.diff(np.clip(ranks, 0.0, total), prepend=0.0)
    wanted = total / min(max(total / _RECORDS_A_BIN, _FEWEST), _MOST)
    least = min(max(wanted, 2 * noisy.rank_deviation), total / 4)
    bin_of_cell, sums = _runs(masses, least)
    missing = max(float(noisy.cells[CELLS]), noisy.deviation, 1.0)
    counts = np.append(np.maximum(sums, 1.0), missing)
    return FeatureBins(feature, np.append(bin_of_cell, len(sums)), counts)


def _runs(masses: Reals, least: float) -> tuple[Ints, Reals]:
    """Runs of cells that hold at least `least` each; a cell that holds so much alone is a run."""
    bins = np.zeros(len(masses), np.int64)
    sums = [0.0]
    for cell, mass in enumerate(masses.tolist()):
        if mass >= least and sums[-1] > 0:
            sums.append(0.0)
        bins[cell] = len(sums) - 1
        sums[-1] += mass
        if sums[-1] >= least and cell + 1 < len(masses):
            sums.append(0.0)
    if len(sums) > 1 and sums[-1] < least:
        # what is left at the end joins the last run
        bins[bins == len(sums) - 1] = len(sums) - 2
        sums[-2:] = [sums[-2] + sums[-1]]
    return bins, np.array(sums)


@dataclass(frozen=True)
class _Strategy:
    """A lower triangular matrix of whole numbers, close to the square root of the matrix of prefix
    sums.
    """

    matrix: Ints
    floats: Reals
    #: The greatest norm of a column, rounded up, and the weight of what is missing, rounded down.
    norm: float
    missing: int
    #: The root mean square, over cells, of how noise of deviation 1 moves a prefix sum.
    rank_norm: float
    #: How it moves the last prefix sum.
    last_norm: float


@cache
def _strategy() -> _Strategy:
    first = [1.0]
    for index in range(1, CELLS):
        first.append(first[-1] * (2 * index - 1) / (2 * index))
    column = np.floor(np.array(first) * _STEP).astype(np.int64)
    matrix = np.tril(toeplitz(column))
    square = sum(int(entry) ** 2 for entry in column.tolist())
    floats = matrix.astype(np.float64)
    decode = np.cumsum(solve_triangular(floats, np.eye(CELLS), lower=True), axis=0)
    norms = np.sqrt((decode * decode).sum(axis=1))
    return _Strategy(
        matrix,
        floats,
        math.sqrt(square) * _UP,
        math.isqrt(square),
        float(np.sqrt(np.mean(norms**2))),
        float(norms[-1]),
    )
