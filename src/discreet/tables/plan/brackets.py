# SPDX-License-Identifier: Apache-2.0
"""The confidence intervals of private quantiles, whose widths are chosen privately.

Around the drawn values, which are public, lies a ladder of wider and wider intervals. Each step is
a third longer than the one before, and the last rung contains all values. One exponential mechanism
chooses a rung: the first on which at least `target` rows lie between each end and the requested
rank. Every rung has twice the weight of the one before.

**Guarantee.** For all data and all drawn values, with probability 1 - β the intervals of all
quantiles of a column together contain every value whose rank is within one row of the requested
one: the quantile of the bounded rows by every usual definition. The choice reveals one exponential
mechanism.

Why it holds: compile.proof.md, § 7. If an interval misses a quantile, at most one row counts
towards its `target`, so its score is bad. A rung with enough rows always exists, it is wider, and
its weight exceeds that of all narrower rungs together.

What would break it: rungs that depend on data other than the drawn values; rungs that do not
contain the rungs before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import noise

__all__ = ["BinWeights", "QuantileIntervals"]

Ints = npt.NDArray[Any]
#: The two ends of the interval of each quantile.
Rung = tuple[tuple[int, int], ...]
_SAFE = 1 + 1e-12


@dataclass(frozen=True)
class BinWeights:
    """The weight at each of the sorted places; `fine` cells are one row."""

    places: Ints
    weights: Ints
    fine: int

    @cached_property
    def sums(self) -> list[int]:
        """Cumulative weights: of none of the places, of the first, of the first two, and so on."""
        return [0, *(int(weight) for weight in np.cumsum(self.weights))]

    def before(self, places: Sequence[int]) -> list[int]:
        """The weight before each of some places."""
        return [self.sums[at] for at in np.searchsorted(self.places, places)]


@dataclass(frozen=True)
class QuantileIntervals:
    """The choice of the intervals around drawn quantiles, whose `places` are in order; `last` is
    the greatest place.

    `scale` is the scale of the scores, in units of 1/denominator of a cell, where `denominator` is
    the common one of the shares.
    """

    places: tuple[int, ...]
    shares: tuple[Fraction, ...]
    last: int
    scale: Fraction
    beta: float

    @property
    def denominator(self) -> int:
        return math.lcm(*(share.denominator for share in self.shares))

    def ladder(self) -> list[Rung]:
        """The rungs, the narrowest first: a function of the drawn places.

        ErrorSteps are long where quantiles lie far apart for their shares, because rows are sparse
        there.
        """
        gaps, rungs = self._gaps(), []
        for step in _steps(self.last + 1):
            reach = [math.ceil(step * gap / max(gaps)) for gap in gaps]
            ends = zip(self.places, reach, strict=True)
            rungs.append(tuple((max(0, y - d), min(self.last, y + d)) for y, d in ends))
        everything = ((0, self.last),) * len(gaps)
        return [*(rung for rung in dict.fromkeys(rungs) if rung != everything), everything]

    def target(self, fine: int) -> int:
        """The weight needed between an end and the rank: a row, plus what noise rarely exceeds."""
        return self.denominator * fine + math.ceil(float(self.scale) * math.log(1 / self.beta - 1) * _SAFE)

    def misses(self, counts: BinWeights) -> tuple[list[Rung], Ints]:
        """The ladder, and how far each rung is from the first with enough rows; one is at 0."""
        rungs, target = self.ladder(), self.target(counts.fine)
        # The room of the last rung is infinite.
        rooms = [self._room(rung, counts) for rung in rungs[:-1]]
        shortfalls = [max(0, target - room) for room in rooms] + [0]
        excesses = [0] + [max(0, room - target) for room in rooms]
        misses = [max(pair) for pair in zip(shortfalls, excesses, strict=True)]
        return rungs, np.array(misses, np.int64 if max(misses) < 1 << 62 else object)

    def draw(self, counts: BinWeights) -> Rung:
        """The chosen intervals."""
        rungs, misses = self.misses(counts)
        weights = np.array([1 << i for i in range(len(rungs))], np.int64)
        return rungs[int(noise.largest(-misses, self.scale, weights=weights)[0])]

    def _room(self, rung: Rung, counts: BinWeights) -> int:
        """The least weight between an end of an interval and its rank, without ends of the grid."""
        times, total = self.denominator, counts.sums[-1]
        lows, highs = counts.before([low for low, _ in rung]), counts.before([high + 1 for _, high in rung])
        rooms = []
        for share, (low, high), below, upto in zip(self.shares, rung, lows, highs, strict=True):
            rank = total * share.numerator * (times // share.denominator)
            if low > 0:
                rooms.append(rank - times * below)
            if high < self.last:
                rooms.append(times * upto - rank)
        return min(rooms)

    def _gaps(self) -> list[Fraction]:
        """The distance of values per share of rows, around each quantile; 1 for a single one."""
        gaps = []
        for at in range(len(self.places)):
            first, after = max(0, at - 1), min(len(self.places) - 1, at + 1)
            distance = max(1, self.places[after] - self.places[first])
            gaps.append(
                distance / (self.shares[after] - self.shares[first]) if after > first else Fraction(1)
            )
        return gaps


def _steps(end: int) -> list[int]:
    """0, 1, 2, …, each a third more than the one before, below `end`."""
    steps, step = [], 0
    while step < end:
        steps.append(step)
        step += max(1, step // 3)
    return steps
