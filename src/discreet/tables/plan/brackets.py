# SPDX-License-Identifier: Apache-2.0
"""The intervals of private quantiles: how far they reach around what was drawn, chosen privately.

Around values that were drawn (and are public) lies a ladder of wider and wider intervals, each step a third longer than
the one before; the last one is everything. One exponential mechanism chooses a rung: the first on which enough rows,
`target`, lie between each end and the rank that was asked for. Every rung has twice the weight of the one before.

**Guarantee.** For whatever data and whatever was drawn, the intervals of all quantiles of a column hold, together and with
probability 1 - β, every value whose rank is within one row of the one that was asked for: the quantile of the bounded
rows by every usual definition. What is revealed is one exponential mechanism.

Why it holds: compile.proof.md, § 7. On an interval that misses a quantile `target` lacks all rows but one, so its score
is bad; a rung that lacks none always exists, it is wider, and its weight is more than that of all narrower ones together.
What would break it: rungs that depend on data other than what was drawn; rungs that do not contain those before.
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
Rung = tuple[tuple[int, int], ...]  # the two ends of the interval of every quantile
_SAFE = 1 + 1e-12


@dataclass(frozen=True)
class BinWeights:
    """How much weight lies at each place; `fine` cells are one row."""

    places: Ints  # sorted
    weights: Ints
    fine: int

    @cached_property
    def sums(self) -> list[int]:
        """The weight of none of the places, of the first, of the first two, and so on."""
        return [0, *(int(part) for part in np.cumsum(self.weights))]

    def before(self, places: Sequence[int]) -> list[int]:
        """The weight before each of some places."""
        return [self.sums[at] for at in np.searchsorted(self.places, places)]


@dataclass(frozen=True)
class QuantileIntervals:
    """The choice of the intervals around some quantiles `drawn`, which are in order.

    `scale` is that of the scores, in units of 1/denominator of a cell, `denominator` being the common one of the shares.
    """

    drawn: tuple[int, ...]
    shares: tuple[Fraction, ...]
    last: int  # the greatest place
    scale: Fraction
    beta: float

    @property
    def denominator(self) -> int:
        return math.lcm(*(share.denominator for share in self.shares))

    def ladder(self) -> list[Rung]:
        """The rungs, the narrowest first: a function of what was drawn.

        Where quantiles lie far apart for their shares, rows are sparse, and steps are long.
        """
        gaps, rungs = self._gaps(), []
        for step in _steps(self.last + 1):
            reach = [math.ceil(step * gap / max(gaps)) for gap in gaps]
            ends = zip(self.drawn, reach, strict=True)
            rungs.append(tuple((max(0, y - d), min(self.last, y + d)) for y, d in ends))
        everything = ((0, self.last),) * len(gaps)
        return [*(rung for rung in dict.fromkeys(rungs) if rung != everything), everything]

    def target(self, fine: int) -> int:
        """How many rows must lie between an end and the rank: one, and so many that noise seldom makes up for them."""
        return self.denominator * fine + math.ceil(float(self.scale) * math.log(1 / self.beta - 1) * _SAFE)

    def misses(self, counts: BinWeights) -> tuple[list[Rung], Ints]:
        """The ladder, and how far each rung is from being the first with enough rows; of one at least it is 0."""
        rungs, target = self.ladder(), self.target(counts.fine)
        rooms = [self._room(rung, counts) for rung in rungs[:-1]]  # that of the last is infinite
        short = [max(0, target - room) for room in rooms] + [0]
        wide = [0] + [max(0, room - target) for room in rooms]
        most = [max(pair) for pair in zip(short, wide, strict=True)]
        return rungs, np.array(most, np.int64 if max(most) < 1 << 62 else object)

    def draw(self, counts: BinWeights) -> Rung:
        """The intervals."""
        rungs, misses = self.misses(counts)
        weights = np.array([1 << i for i in range(len(rungs))], np.int64)
        return rungs[int(noise.largest(-misses, self.scale, weights=weights)[0])]

    def _room(self, rung: Rung, counts: BinWeights) -> int:
        """The least weight between an end of an interval and its rank; an end of the grid has nothing beyond it."""
        times, total = self.denominator, counts.sums[-1]
        lows, highs = counts.before([low for low, _ in rung]), counts.before([high + 1 for _, high in rung])
        found = []
        for share, (low, high), below, upto in zip(self.shares, rung, lows, highs, strict=True):
            rank = total * share.numerator * (times // share.denominator)
            if low > 0:
                found.append(rank - times * below)
            if high < self.last:
                found.append(times * upto - rank)
        return min(found)

    def _gaps(self) -> list[Fraction]:
        """How far values lie apart for a share of the rows, about each quantile; one for a quantile alone."""
        found = []
        for at in range(len(self.drawn)):
            first, after = max(0, at - 1), min(len(self.drawn) - 1, at + 1)
            apart = max(1, self.drawn[after] - self.drawn[first])
            found.append(apart / (self.shares[after] - self.shares[first]) if after > first else Fraction(1))
        return found


def _steps(most: int) -> list[int]:
    """0, 1, 2, …, each a third more than the one before, below `most`."""
    found, step = [], 0
    while step < most:
        found.append(step)
        step += max(1, step // 3)
    return found
