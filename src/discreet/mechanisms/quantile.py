# SPDX-License-Identifier: Apache-2.0
"""A private quantile: the exponential mechanism over the points of a public grid.

    Quantile(0.9, bounds=(0, 100), epsilon=1)(ages).value
    Median(bounds=(0, 100), epsilon=1)(ages).value

Every record is clipped to `bounds` and put on a grid that the bounds fix. A point y of the grid misses the quantile by

    miss(y) = how far q·n is from the interval [number of records < y, number of records <= y]

records, and is drawn with a chance proportional to exp(-miss(y) · ε / spread).

**Guarantee.** ε-differential privacy, as of an exponential mechanism (`privacy.exponential`). Every point of the grid, and
nothing else, can be the answer, whatever the data.

Why it holds: McSherry and Talwar 2007. One record changes the misses of two points by amounts that differ by at most
`spread`: 2 max(q, 1 - q) when it is added or removed, 2 when it is replaced, and 1 for a minimum or a maximum
(quantile.proof.md). Scores and lengths are whole numbers and the draw is exact (`noise.largest`).
What would break it: bounds that were read off the data.

A record that is NaN, or no number, counts as the middle of the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import check, noise, privacy
from discreet.errors import BadParameter
from discreet.exact import as_ratio, exactly
from discreet.mechanisms.exact import numbers_within
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Release
from discreet.mechanisms.query import ClippingBounds
from discreet.noise.grid import Grid, log_two_floor
from discreet.noise.scales import Number
from discreet.privacy.guarantee import Guarantee

__all__ = ["Median", "Quantile", "private_median", "private_quantile"]

Cells = npt.NDArray[np.int64]

FINEST = 10**6  # the largest denominator of a quantile: scores of 10**12 records are still int64
_POINT_BITS, _CELL_BITS = 32, 60  # points of a grid, and the size of their numbers, where no step is stated
_MOST_POINTS = 2**34


@dataclass(frozen=True)
class Span:
    """The points of a dyadic grid between two public bounds, counted from 0."""

    bounds: ClippingBounds
    grid: Grid
    first: int
    points: int

    @classmethod
    def between(cls, bounds: Any, step: Any = None) -> Span:
        """The grid with that step; without one, 2**32 points or more, unless their numbers need more than 60 bits."""
        stated = ClippingBounds.of(bounds)
        if step is None:
            grid = Grid(
                max(log_two_floor(stated.width) - _POINT_BITS, log_two_floor(stated.max_abs) - _CELL_BITS)
            )
        else:
            grid = Grid(_power_of_two(step))
        first, last = grid.cells(stated.low), grid.cells(stated.high)
        if not 1 < last - first + 1 <= _MOST_POINTS:
            raise _unfit_step_error()
        return cls(stated, grid, first, last - first + 1)

    def places(self, data: Any) -> Cells:
        """The number of the point that each record is nearest to, after clipping."""
        clipped = numbers_within(data, self.bounds.low, self.bounds.high)
        return np.asarray(self.grid.cells(clipped) - self.first, np.int64)

    def real(self, place: int) -> float:
        """The point with that number; a bound that lies between two points replaces what is beyond it."""
        return float(min(max(self.grid.reals(self.first + place), self.bounds.low), self.bounds.high))


def draw_quantile(places: Cells, low: int, high: int, q: Fraction, scale: Fraction) -> int:
    """A whole number y in low, …, high with a chance proportional to exp(-b · miss(y) / scale), q = a / b.

    `places` are sorted and lie in that range. Between two of them all y are alike, so a stretch of them races with
    its length as weight, and the point inside it is uniform.
    """
    count = places.size
    starts = np.flatnonzero(np.diff(places, prepend=low - 1))
    edges = np.append(starts, count)
    first = np.empty(2 * starts.size + 1, np.int64)  # stretch, value, stretch, value, …, stretch
    first[0], first[1::2], first[2::2] = low, places[starts], places[starts] + 1
    lengths = np.diff(first, append=high + 1)
    ranks = edges.repeat(2) * q.denominator - q.numerator * count  # [:-1] with L, [1:] with U of the proof
    scores = np.minimum(0, np.minimum(-ranks[:-1], ranks[1:]))
    chosen = int(noise.largest(scores, scale, weights=lengths)[0])
    return int(first[chosen]) + int(noise.uniform(int(lengths[chosen])))


class Quantile(Mechanism):
    """A point that about a share `q` of the records lies below.

    **Guarantee.** ε-differential privacy as of an exponential mechanism. The answer is a point of a grid on `bounds`, and
    with probability `confidence` it misses the quantile by at most `error(confidence)` *records*, for all data.
    How far that is on the line depends on the data, so there is no interval.

    `q` is read as the nearest fraction with a denominator of at most a million. `step` is the distance of two points, a
    power of two: 1 for whole numbers; without it the grid has more than 2**32 points. With q = 0 or q = 1 all
    points beyond the records are equally good: the answer to a minimum lies anywhere between the lower bound and the smallest.

    >>> mechanism = Quantile(0.9, bounds=(0, 100), epsilon=1.0)
    >>> mechanism.guarantee
    exponential(epsilon=1.0)
    >>> round(Quantile(0.9, bounds=(0, 100), epsilon=1.0, step=1).error(confidence=0.95), 1)
    13.6
    >>> 0 <= mechanism([3.5, 14.0, 15.0]).value <= 100
    True
    """

    error_unit = "records"

    def __init__(
        self,
        q: Number,
        bounds: Sequence[float] | None = None,
        *,
        epsilon: float,
        step: float | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.q = read_quantile(q)
        self._span = Span.between(bounds, step)
        epsilon = check.moderate(epsilon=epsilon)
        self._guarantee = privacy.exponential(epsilon, relation=relation, unit=unit)
        self._scale = spread(self.q, relation) / exactly(epsilon)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> float:
        places = np.sort(self._span.places(data))
        return self._span.real(draw_quantile(places, 0, self._span.points - 1, self.q, self._scale))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """By how many records the answer misses the quantile, at most, with this confidence.

        The intervals [records < y, records <= y] of all points cover [0, n], so some point misses by 0 and has weight 1.
        The others that miss by more than t have weight at most (points - 1) · exp(-t ε / spread).
        """
        sure = check.inner_probability(confidence=confidence)
        odds = (self._span.points - 1) * sure / (1.0 - sure)
        records_off = float(self._scale / self.q.denominator) * math.log(max(odds, 1.0))
        return records_off * (1 + 1e-12)


class Median(Quantile):
    """The private quantile at one half, where an added record moves the scores least.

    **Guarantee.** As `Quantile`, with q = 1/2.

    >>> Median(bounds=(0, 100), epsilon=0.5, step=1).error(confidence=0.95)
    15.099...
    """

    def __init__(
        self,
        bounds: Sequence[float] | None = None,
        *,
        epsilon: float,
        step: float | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        super().__init__(Fraction(1, 2), bounds, epsilon=epsilon, step=step, relation=relation, unit=unit)


@check.arguments
def private_quantile(
    data: npt.ArrayLike,
    q: Number,
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float,
    step: float | None = None,
    relation: str = "add-remove",
    unit: str = "record",
) -> Release:
    """`Quantile(q, bounds, epsilon=…)(data)` in one call.

    >>> private_quantile([1.0, 2.0, 3.0], 0.5, bounds=(0, 10), epsilon=1.0).guarantee
    exponential(epsilon=1.0)
    """
    return Quantile(q, bounds, epsilon=epsilon, step=step, relation=relation, unit=unit)(data)


@check.arguments
def private_median(
    data: npt.ArrayLike,
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float,
    step: float | None = None,
    relation: str = "add-remove",
    unit: str = "record",
) -> Release:
    """`Median(bounds, epsilon=…)(data)` in one call.

    >>> private_median([1.0, 2.0, 3.0], bounds=(0, 10), epsilon=1.0).guarantee
    exponential(epsilon=1.0)
    """
    return Median(bounds, epsilon=epsilon, step=step, relation=relation, unit=unit)(data)


def read_quantile(q: Number) -> Fraction:
    """The nearest fraction whose denominator is at most a million."""
    check.probability(q=q)
    return exactly(q).limit_denominator(FINEST)


def spread(q: Fraction, relation: str = "add-remove") -> int:
    """How far apart one record moves two scores, in units of 1 / q.denominator records (quantile.proof.md, §2)."""
    if q in (0, 1):
        return 1
    return 2 * (q.denominator if relation == "replace" else max(q.numerator, q.denominator - q.numerator))


def _power_of_two(step: Any) -> int:
    exact = as_ratio(check.positive(step=step))
    exponent = log_two_floor(exact)
    if exact != Fraction(2) ** exponent:
        raise BadParameter(
            "DP102",
            "step must be a power of two.",
            why="only then are the points of the grid exact in floating point.",
            fix="pass step=1 for whole numbers, step=2**-10 for about three decimals",
        )
    return exponent


def _unfit_step_error() -> BadParameter:
    return BadParameter(
        "DP107",
        "step does not fit the bounds: there must be 2 to 2**34 points.",
        why="with one point there is nothing to draw, and more than that are not counted in 64 bits.",
        fix="leave step out",
    )
