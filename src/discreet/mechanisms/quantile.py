# SPDX-License-Identifier: Apache-2.0
"""Private quantiles: the exponential mechanism over the points of a public grid.

    Quantile(0.9, bounds=(0, 100), epsilon=1)(ages).value
    Median(bounds=(0, 100), epsilon=1)(ages).value
    Quantiles([0.25, 0.5, 0.75], bounds=(0, 100), epsilon=1)(ages).value

Every record is clipped to `bounds` and rounded to a grid that the bounds define. A point y of the
grid misses the quantile by a number of records,

    miss(y) = the distance of q·n from the interval [number of records < y, number of records <= y]

and is drawn with probability proportional to exp(-miss(y) · ε / spread).

**Guarantee.** ε-differential privacy, as of an exponential mechanism (`privacy.exponential`). Every
point of the grid can be the answer, whatever the data. m quantiles at once cost ⌈log₂(m + 1)⌉
exponential mechanisms instead of m, and come in order.

Why it holds: McSherry and Talwar 2007. One record changes the misses of two points by amounts that
differ by at most `spread`: 2 max(q, 1 - q) if it is added or removed, 2 if it is replaced, and 1
for a minimum or a maximum (quantile.proof.md). Scores and lengths are whole numbers and the draw is
exact (`noise.largest`). For several quantiles: an answer splits the records in two parts, and the
next questions look at one part each, so all questions of a level cost as much as one (Kaplan,
Schnapp, Stemmer 2022; quantile.proof.md, §4). What would break it: bounds that were read off the
data.

A record that is not a number counts as the middle of the bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet import check, noise, privacy
from discreet.errors import BadParameter
from discreet.exact import as_ratio, exactly, float_above
from discreet.mechanisms.amount import CONCENTRATED, PURE, one_amount
from discreet.mechanisms.exact import numbers_within
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Release
from discreet.mechanisms.query import ClippingBounds
from discreet.noise.grid import Grid, log_two_floor
from discreet.noise.scales import Number
from discreet.privacy.guarantee import Guarantee

__all__ = ["Median", "Quantile", "Quantiles", "private_median", "private_quantile", "private_quantiles"]

Cells = npt.NDArray[np.int64]

FINEST = 10**6  # the largest denominator of a quantile: scores of 10**12 records are still int64
LOTS = 2**12  # finer points within each point of the grid, which separate equal records
_POINT_BITS, _CELL_BITS = 32, 60  # of a grid without a stated step: its points, and their numbers
_MAX_POINTS = 2**34


@dataclass(frozen=True)
class Span:
    """The points of a dyadic grid between two public bounds, counted from 0."""

    bounds: ClippingBounds
    grid: Grid
    first: int
    points: int

    @classmethod
    def between(cls, bounds: Sequence[float] | None, step: float | None = None) -> Span:
        """The grid with this step. Without one it has 2**32 points or more, if 60 bits can number
        them.
        """
        clipping = ClippingBounds.of(bounds)
        if step is None:
            widest_bits = log_two_floor(clipping.width) - _POINT_BITS
            grid = Grid(max(widest_bits, log_two_floor(clipping.max_abs) - _CELL_BITS))
        else:
            grid = Grid(_power_of_two(step))
        first, last = grid.cells(clipping.low), grid.cells(clipping.high)
        if not 1 < last - first + 1 <= _MAX_POINTS:
            raise _unfit_step_error()
        return cls(clipping, grid, first, last - first + 1)

    def cells(self, data: object) -> Cells:
        """The number of the nearest point for each record, after clipping."""
        clipped = numbers_within(data, self.bounds.low, self.bounds.high)
        return np.asarray(self.grid.cells(clipped) - self.first, np.int64)

    def real(self, cell: int) -> float:
        """The point with this number, clipped to the bounds."""
        return float(min(max(self.grid.reals(self.first + cell), self.bounds.low), self.bounds.high))


def draw_quantile(cells: Cells, low: int, high: int, q: Fraction, scale: Fraction) -> int:
    """A y in low, …, high with probability proportional to exp(-b · miss(y) / scale), where q = a /
    b.

    `cells` are sorted and lie in that range. All y between two neighbouring cells have the same
    score. So each such interval gets its length as weight, and y is uniform within the chosen one.
    """
    count = cells.size
    starts = np.flatnonzero(np.diff(cells, prepend=low - 1))
    edges = np.append(starts, count)
    # The intervals alternate: a gap, a value, a gap, a value, …, a gap.
    firsts = np.empty(2 * starts.size + 1, np.int64)
    firsts[0], firsts[1::2], firsts[2::2] = low, cells[starts], cells[starts] + 1
    lengths = np.diff(firsts, append=high + 1)
    # In quantile.proof.md, §1, ranks[:-1] are the L of the intervals and ranks[1:] their U.
    ranks = edges.repeat(2) * q.denominator - q.numerator * count
    scores = np.minimum(0, np.minimum(-ranks[:-1], ranks[1:]))
    chosen = int(noise.largest(scores, scale, weights=lengths)[0])
    return int(firsts[chosen]) + int(noise.uniform(int(lengths[chosen])))


class Quantile(Mechanism):
    """A point below which about a share `q` of the records lies.

    **Guarantee.** ε-differential privacy as of an exponential mechanism. The answer is a point of a
    grid on `bounds`. With probability `confidence` it misses the quantile by at most
    `error(confidence)` *records*, for all data. There is no interval, because the distance in the
    unit of the value depends on the data.

    `q` is read as the nearest fraction with a denominator of at most a million. `step` is the
    distance of two points, a power of two: 1 for whole numbers; without it the grid has more than
    2**32 points. With q = 0 or q = 1 all points beyond the records are equally good: the answer to
    a minimum lies anywhere between the lower bound and the smallest.

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
        cells = np.sort(self._span.cells(data))
        return self._span.real(draw_quantile(cells, 0, self._span.points - 1, self.q, self._scale))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """The margin of error: by how many records the answer misses the quantile at most.

        The intervals [records < y, records <= y] of all points cover [0, n], so some point misses
        by 0 and has weight 1. The others that miss by more than t have weight at most (points - 1)
        · exp(-t ε / spread).
        """
        confidence = check.inner_probability(confidence=confidence)
        odds = (self._span.points - 1) * confidence / (1.0 - confidence)
        records = float(self._scale / self.q.denominator) * math.log(max(odds, 1.0))
        return records * (1 + 1e-12)


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
    """`Quantile(q, bounds, epsilon=…)(data)` in one call; the class shows the error before it
    draws.

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
    """`Median(bounds, epsilon=…)(data)` in one call; the class shows the error before it draws.

    >>> private_median([1.0, 2.0, 3.0], bounds=(0, 10), epsilon=1.0).guarantee
    exponential(epsilon=1.0)
    """
    return Median(bounds, epsilon=epsilon, step=step, relation=relation, unit=unit)(data)


def read_quantile(q: Number) -> Fraction:
    """The nearest fraction whose denominator is at most a million."""
    check.probability(q=q)
    return exactly(q).limit_denominator(FINEST)


def spread(q: Fraction, relation: str = "add-remove") -> int:
    """How far apart one record moves two scores, in records / q.denominator: quantile.proof.md, §2."""
    if q in (0, 1):
        return 1
    return 2 * (q.denominator if relation == "replace" else max(q.numerator, q.denominator - q.numerator))


def _power_of_two(step: float) -> int:
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
        "step does not fit the bounds: the grid must have 2 to 2**34 points.",
        why="one point leaves no choice, and the scores of more points do not fit in 64 bits.",
        fix="leave step out",
    )


class Quantiles(Mechanism):
    """Points below which about the shares `qs` of the records lie, in order.

    **Guarantee.** ⌈log₂(m + 1)⌉ exponential mechanisms for m quantiles: together ε-differentially
    private (`epsilon`) or ρ-zero-concentrated (`rho`). Every answer is a point of the grid on
    `bounds` (see `Quantile`), and at least as large as the one before.

    Equal records are separated by lot, so that they can fall on both sides of an answer. The errors
    of one level carry over to the next, and for equal records their sum depends on the data. So
    `error` is None.

    >>> mechanism = Quantiles([0.25, 0.5, 0.75], bounds=(0, 100), epsilon=1.0)
    >>> mechanism.guarantee
    2 * exponential(epsilon=0.5)
    >>> low, middle, high = mechanism([3.5, 14.0, 15.0]).value
    >>> bool(0 <= low <= middle <= high <= 100)
    True
    """

    def __init__(
        self,
        qs: Sequence[Number],
        bounds: Sequence[float] | None = None,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        step: float | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.qs = _increasing(qs)
        self._span = Span.between(bounds, step)
        self.levels = len(self.qs).bit_length()
        each = _epsilon_of_a_level(epsilon, rho, self.levels)
        self._guarantee = self.levels * privacy.exponential(each, relation=relation, unit=unit)
        # a replaced record leaves one part and may enter another, so each part gets half
        # (quantile.proof.md, §4)
        self._epsilon = exactly(each) / (2 if relation == "replace" else 1)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> npt.NDArray[np.float64]:
        cells = self._span.cells(data)
        fine = np.sort(cells * LOTS + noise.uniform(LOTS, cells.size))
        ends = (0, self._span.points * LOTS - 1)
        answers = self._between(fine, ends, self.qs, (Fraction(0), Fraction(1)))
        return np.array([self._span.real(answer // LOTS) for answer in answers])

    def _between(
        self, fine: Cells, ends: tuple[int, int], qs: tuple[Fraction, ...], shares: tuple[Fraction, Fraction]
    ) -> list[int]:
        """The quantiles `qs` of all records, from the records between two ends at about these
        shares.
        """
        if not qs:
            return []
        (low, high), (floor, ceiling) = ends, shares
        middle = len(qs) // 2
        q = qs[middle]
        local_q = ((q - floor) / (ceiling - floor)).limit_denominator(FINEST)
        answer = draw_quantile(fine, low, high, local_q, spread(local_q) / self._epsilon)
        cut = int(np.searchsorted(fine, answer, side="right"))
        return [
            *self._between(fine[:cut], (low, answer), qs[:middle], (floor, q)),
            answer,
            *self._between(fine[cut:], (answer, high), qs[middle + 1 :], (q, ceiling)),
        ]


@check.arguments
def private_quantiles(
    data: npt.ArrayLike,
    qs: Sequence[Number],
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    step: float | None = None,
    relation: str = "add-remove",
    unit: str = "record",
) -> Release:
    """`Quantiles(qs, bounds, epsilon=…)(data)` in one call; a session needs the class.

    >>> len(private_quantiles([1.0, 2.0, 3.0], [0.1, 0.9], bounds=(0, 10), rho=0.1).value)
    2
    """
    return Quantiles(qs, bounds, epsilon=epsilon, rho=rho, step=step, relation=relation, unit=unit)(data)


def _increasing(qs: Sequence[Number]) -> tuple[Fraction, ...]:
    if not isinstance(qs, Sequence | np.ndarray) or isinstance(qs, str) or not len(qs):
        raise BadParameter(
            "DP104",
            "qs must be one or more numbers between 0 and 1.",
            why="each of them is one quantile.",
            fix="pass qs=[0.25, 0.5, 0.75]",
        )
    fractions = tuple(read_quantile(q) for q in qs)
    if any(q >= next_q for q, next_q in itertools.pairwise(fractions)):
        raise BadParameter(
            "DP107",
            "qs must increase by a millionth or more.",
            why="each quantile is searched between its neighbours.",
            fix="pass qs=sorted(set(qs))",
        )
    return fractions


def _epsilon_of_a_level(epsilon: float | None, rho: float | None, levels: int) -> float:
    """Almost the largest float with which all levels together stay within the stated amount."""
    amount = one_amount({"epsilon": epsilon, "rho": rho}, PURE, CONCENTRATED)
    if "epsilon" in amount:
        return -float_above(-exactly(amount["epsilon"]) / levels)
    # An exponential mechanism is ε²/8-zCDP (Cesar, Rogers 2021).
    level_epsilon = math.sqrt(8 * amount["rho"] / levels)
    while (levels * privacy.exponential(level_epsilon)).concentrated() > amount["rho"]:
        level_epsilon *= 1 - 2.0**-52
    return level_epsilon
