# SPDX-License-Identifier: Apache-2.0
"""Which pairs of features a sum of shapes misses, from one released set of small tables.

    pairs = strongest_pairs(slopes, bins, cells, clip=…, multiplier=…, relation=…)

**Guarantee.** One Gaussian mechanism with the given multiplier: a record moves one cell of each of
P tables by at most the clip, so that the norm of what it moves is at most c√P. The pairs follow
from the noisy tables. `noisy_pair_counts` is another one: a record moves one count of each of q
tables by one.

Why it holds: additive.proof.md, 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from discreet import noise as exact
from discreet.exact import exactly
from discreet.learn.arrays import Ints, Reals
from discreet.learn.bins import FeatureBins
from discreet.learn.shapes import NoisyTable, standardise, table_sums

__all__ = ["GROUPS_KEPT", "GROUPS_TRIED", "PairBins", "noisy_pair_counts", "strongest_pairs", "worth_trying"]


#: Groups of bins on each side of a table that is tried, and of one that is kept.
GROUPS_TRIED, GROUPS_KEPT = 4, 8
# A pair is kept if its table stands out by this many standard deviations.
_STANDS_OUT = 4.0
_WORTH = 1.8
_UP = 1 + 1e-12


@dataclass(frozen=True)
class PairBins:
    """The cells of two features together: a grid of groups of their bins."""

    first: int
    second: int
    first_groups: Ints
    second_groups: Ints
    is_ordered: tuple[bool, bool]

    @classmethod
    def of(cls, first: int, second: int, features: Sequence[FeatureBins], most: int) -> PairBins:
        """At most `most` groups on each side."""
        (one_groups, one_ordered), (two_groups, two_ordered) = (
            features[index].group_bins(most) for index in (first, second)
        )
        return cls(first, second, one_groups, two_groups, (one_ordered, two_ordered))

    @property
    def shape(self) -> tuple[int, int]:
        """How many groups each side has."""
        return int(self.first_groups.max()) + 1, int(self.second_groups.max()) + 1

    def cells(self, first_bins: Ints, second_bins: Ints) -> Ints:
        """The cell of each record, by its bins."""
        return np.asarray(self.first_groups[first_bins] * self.shape[1] + self.second_groups[second_bins])

    def covariances(self, shares: Reals) -> tuple[Reals, ...]:
        """How the shape of a grid may be smoothed: neighbours lend to each other on ordered sides."""
        rows, columns = self.shape
        precision = np.kron(_side(rows, is_ordered=self.is_ordered[0]), np.eye(columns)) + np.kron(
            np.eye(rows), _side(columns, is_ordered=self.is_ordered[1])
        )
        covariance = np.linalg.inv(precision + 1e-3 * np.eye(rows * columns))
        return (standardise(np.asarray(covariance, np.float64), shares),)


def _side(count: int, *, is_ordered: bool) -> Reals:
    if not is_ordered:
        return np.eye(count)
    steps = np.diff(np.eye(count), axis=0)
    return np.asarray(steps.T @ steps)


def worth_trying(count: float, spread: float, variance: float) -> bool:
    """Whether a table could show an interaction through noise of this deviation, if the slope of a
    record has this variance.
    """
    signal = variance * count / GROUPS_TRIED**2
    return signal / math.sqrt(signal + spread**2) >= _WORTH


def strongest_pairs(
    slopes: Reals,
    bins: Sequence[Ints],
    features: Sequence[FeatureBins],
    *,
    clip: float,
    multiplier: float,
    relation: str,
    variances: Reals,
) -> list[tuple[int, int, float]]:
    """Pairs whose tables stand out, the strongest first, at most one for every two features. The
    third number says how far a pair stands out.

    `variances` are those of a record's slopes, one number for each score.
    """
    candidates = list(combinations(range(len(features)), 2))
    scores = []
    for first, second in candidates:
        pair = PairBins.of(first, second, features, GROUPS_TRIED)
        size = pair.shape[0] * pair.shape[1]
        table = table_sums(
            slopes,
            pair.cells(bins[first], bins[second]),
            size,
            clip=clip,
            multiplier=multiplier * math.sqrt(len(candidates)),
            relation=relation,
        )
        scores.append((first, second, _excess(table, pair, features, variances)))
    kept = sorted((score for score in scores if score[2] > _STANDS_OUT), key=lambda score: -score[2])
    return kept[: max(1, len(features) // 2)]


def _excess(table: NoisyTable, pair: PairBins, features: Sequence[FeatureBins], variances: Reals) -> float:
    """How far a table is from one of rows and columns alone, in standard deviations of χ²."""
    one = np.bincount(pair.first_groups, features[pair.first].counts)
    two = np.bincount(pair.second_groups, features[pair.second].counts)
    counts = np.outer(one, two) / max(float(one.sum()), 1.0)
    rows, columns = pair.shape
    design = np.concatenate(
        [
            np.kron(np.eye(rows), np.ones((columns, 1))),
            np.kron(np.ones((rows, 1)), np.eye(columns)),
        ],
        axis=1,
    )
    weights = counts.ravel()
    square, freedom = 0.0, 0
    for score in range(table.sums.shape[1]):
        deviation = np.sqrt(weights * variances[score] + table.spread**2)
        scaled = design * (weights / deviation)[:, None]
        observed = table.sums[:, score] / deviation
        explained, _, rank, _ = np.linalg.lstsq(scaled, observed, rcond=None)
        square += float(((observed - scaled @ explained) ** 2).sum())
        freedom += len(observed) - int(rank)
    return (square - freedom) / math.sqrt(2 * freedom) if freedom else 0.0


def noisy_pair_counts(
    pairs: Sequence[PairBins], bins: Sequence[Ints], *, multiplier: float, relation: str
) -> list[Reals]:
    """How many records lie in each cell of each pair: one release, never less than its noise."""
    spread = multiplier * math.sqrt(len(pairs)) * (math.sqrt(2) if relation == "replace" else 1.0) * _UP
    out = []
    for pair in pairs:
        size = pair.shape[0] * pair.shape[1]
        counts = np.bincount(pair.cells(bins[pair.first], bins[pair.second]), minlength=size)
        noisy = counts + exact.rounded_gaussian(exactly(spread), size)
        out.append(np.maximum(noisy.astype(np.float64), max(spread, 1.0)))
    return out
