# SPDX-License-Identifier: Apache-2.0
"""Statistics with a known smooth sensitivity, and the relations under which it is proved.

| statistic | smooth sensitivity | relations |
|---|---|---|
| `OrderStatistic` (median, minimum, maximum, any quantile or rank) | exact, O(n log n) | replace, add-remove (an upper bound) |
| `TrimmedMean` | exact, O(n log n) | replace |
| `InterquantileRange` | at most the sum of two | replace, add-remove |
| `Reciprocal` of a count | exact | add-remove, replace |
| `Custom`: a function and its `LocalAtDistance` or `SmoothBound` | the caller's | the caller's |

**Guarantee.** `measure(records, t)` returns the exact answer and a bound that is at least the local
sensitivity and (t + 2**-31)-smooth. Both are total functions of the records: NaN and values that
are not numbers count as the middle of the bounds. Proofs: smooth.proof.md, §§3-4. What would break
it: bounds that were read off the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.mechanisms.callbacks import call_quietly
from discreet.mechanisms.exact import is_true, number, numbers_within, results, rows, total
from discreet.mechanisms.expression import CallRepr
from discreet.mechanisms.quantile import read_quantile
from discreet.mechanisms.query import ClippingBounds
from discreet.mechanisms.sensitivity import FLOOR, UP, LocalAtDistance, SmoothBound, clamp_bound
from discreet.noise.scales import Number

__all__ = ["Custom", "InterquantileRange", "OrderStatistic", "Reciprocal", "Statistic", "TrimmedMean"]

Measured = tuple[Fraction, Fraction]
BOTH, REPLACE = ("replace", "add-remove"), ("replace",)
_MAX_TYPICAL = 1 << 17  # records of a public guess


class Statistic(CallRepr, ABC):
    """An answer and a smooth bound on how far one record moves it.

    **Guarantee.** What a subclass owes: the bound is at least the local sensitivity and (t +
    2**-31)-smooth, for all records. Proofs of those here: smooth.proof.md, §§3-4.

    >>> isinstance(OrderStatistic((0, 10), q=0.5), Statistic)
    True
    """

    relations: tuple[str, ...] = BOTH

    @property
    @abstractmethod
    def range(self) -> tuple[Fraction, Fraction]:
        """The public range of the answer, for all records."""

    @abstractmethod
    def measure(self, records: object, t: float) -> Measured:
        """The exact answer and the smooth bound. Secret."""

    @abstractmethod
    def typical(self, size: int) -> object:
        """Public records in place of the secret ones, for planning; no guarantee depends on them."""


@dataclass(frozen=True, repr=False)
class _Sorted(Statistic):
    """A function of sorted numbers between two public bounds (low, high)."""

    bounds: Sequence[float] | ClippingBounds | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", ClippingBounds.of(self.bounds))

    @property
    def _clip(self) -> ClippingBounds:
        """The validated bounds."""
        return cast(ClippingBounds, self.bounds)

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(self._clip.low), Fraction(self._clip.high)

    def padded_numbers(self, records: object) -> Floats:
        """The lower bound, the sorted records, the upper bound."""
        low, high = self._clip.low, self._clip.high
        return np.concatenate(([low], np.sort(numbers_within(records, low, high)), [high]))

    def typical(self, size: int) -> object:
        """Numbers spread evenly over the middle tenth of the bounds: bounds are usually generous."""
        low, high = self._clip.low, self._clip.high
        margin = (high - low) * 9 / 20
        return np.linspace(low + margin, high - margin, min(size, _MAX_TYPICAL) + 2)[1:-1]


@dataclass(frozen=True, repr=False)
class OrderStatistic(_Sorted):
    """The record of rank ⌈q n⌉ (at least 1), or of a fixed `rank`; a bound if there is none.

    **Guarantee.** As `Statistic`. The bound is the exact smooth sensitivity under "replace", and an
    upper bound of it under "add-remove" (Nissim, Raskhodnikova, Smith 2007; smooth.proof.md, §3).

    >>> value, bound = OrderStatistic((0, 10), q=0.5).measure([3, 1, 4], t=0.1)
    >>> value, bound >= 2
    (Fraction(3, 1), True)
    """

    q: Number | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.q is None) == (self.rank is None):
            raise BadParameter(
                "DP107",
                "an order statistic needs either a quantile q or a rank.",
                why="q and rank can name different records.",
                fix="q=0.5",
            )
        if self.q is not None:
            object.__setattr__(self, "q", read_quantile(self.q))
        else:
            check.whole(rank=self.rank)

    def rank_among(self, count: int) -> int:
        """The rank among `count` records. It grows by 0 or 1 with each record, as the proof needs."""
        if self.q is None:
            return min(self.rank or 1, count + 1)
        return max(min(1, count), math.ceil(cast(Fraction, self.q) * count))

    def measure(self, records: object, t: float) -> Measured:
        return self.of(self.padded_numbers(records), t)

    def of(self, y: Floats, t: float) -> Measured:
        """The same for sorted and padded numbers."""
        k = self.rank_among(y.size - 2)
        return Fraction(float(y[k])), Fraction(widest_window(y, k, k, t))


@dataclass(frozen=True, repr=False)
class TrimmedMean(_Sorted):
    """The mean without the m smallest and the m largest records; m is a count or a share.

    **Guarantee.** As `Statistic`. The bound is the exact smooth sensitivity, under "replace" only
    (smooth.proof.md, §3).

    >>> TrimmedMean((0, 10), trim=1).measure([3, 1, 4], t=0.1)[0]
    Fraction(3, 1)
    """

    trim: Number = Fraction(1, 10)
    relations = REPLACE

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.trim, int) and not isinstance(self.trim, bool):
            check.whole(at_least=0, trim=self.trim)
        elif check.not_negative(trim=self.trim) >= 0.5:
            raise BadParameter(
                "DP102",
                "trim must be a whole number, or a share below one half.",
                why="otherwise no record is left to average.",
                fix="trim=0.1",
            )

    def trim_count(self, count: int) -> int:
        """The number of records trimmed at either end; at least one remains."""
        is_count = isinstance(self.trim, int)
        trimmed = self.trim if is_count else math.floor(exactly(float(self.trim)) * count)
        return int(min(trimmed, max(0, (count - 1) // 2)))

    def measure(self, records: object, t: float) -> Measured:
        y = self.padded_numbers(records)
        count = y.size - 2
        if not count:
            return sum(self.range, Fraction(0)) / 2, Fraction(widest_window(y, 0, 0, t))
        first = self.trim_count(count) + 1
        last = count + 1 - first
        remaining = last - first + 1
        bound = Fraction(widest_window(y, first, last, t)) / remaining
        return total(y[first : last + 1]) / remaining, bound


@dataclass(frozen=True, repr=False)
class InterquantileRange(_Sorted):
    """The distance of two quantiles; its bound is the sum of theirs.

    **Guarantee.** As `Statistic`: each of two quantiles moves by its own local sensitivity at most.

    >>> InterquantileRange((0, 10)).measure([1, 2, 3, 4], t=0.1)[0]
    Fraction(2, 1)
    """

    lower: Number = Fraction(1, 4)
    upper: Number = Fraction(3, 4)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not read_quantile(self.lower) < read_quantile(self.upper):
            raise BadParameter(
                "DP107",
                "the lower quantile must be below the upper one.",
                why="the answer is the distance from the lower to the upper quantile.",
                fix="lower=0.25, upper=0.75",
            )

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), self._clip.width

    def measure(self, records: object, t: float) -> Measured:
        y = self.padded_numbers(records)
        ends = [OrderStatistic(self._clip, q).of(y, t) for q in (self.lower, self.upper)]
        return ends[1][0] - ends[0][0], ends[0][1] + ends[1][1]


@dataclass(frozen=True, repr=False)
class Reciprocal(Statistic):
    """1 / max(count, 1) for the count of the records for which `where` holds, or of all records.

    **Guarantee.** As `Statistic`. The bound is the exact smooth sensitivity (smooth.proof.md, §4).

    >>> Reciprocal().measure(["a", "b"], t=0.1)[0]
    Fraction(1, 2)
    """

    where: Callable[[Any], Any] | None = None

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(1)

    def measure(self, records: object, t: float) -> Measured:
        counted = rows(records) if self.where is None else results(self.where, records)
        k = len(counted) if self.where is None else sum(map(is_true, counted))
        local = 1 / (k * (k - 1)) if k > 1 else 0.0
        # At a count of 1 or 2 one record moves the answer by 1/2.
        distance = abs(k - 1.5) - 0.5
        bound = clamp_bound(max(local, math.exp(-t * distance) / 2), 0.5)
        return Fraction(1, max(k, 1)), Fraction(bound)

    def typical(self, size: int) -> object:
        return [1] * min(size, _MAX_TYPICAL)


@dataclass(frozen=True, repr=False)
class Custom(Statistic):
    """A caller's function and its sensitivity.

    If `f` raises or returns no number, the answer is `low`; the caller's proof must cover that.

    **Guarantee.** As `Statistic`, if `sensitivity` is true; `check_callback` and
    `check_smooth_bound` try it on small data.

    >>> share = LocalAtDistance(at=lambda records, j: 1 / 4, at_most=1 / 4)
    >>> Custom(lambda x: sum(x) / 4, share, 0, 1).measure([0, 1, 1, 0], t=0.1)[0]
    Fraction(1, 2)
    """

    f: Callable[[Any], Any]
    sensitivity: LocalAtDistance | SmoothBound
    low: float
    high: float
    public: object = None
    relations = BOTH

    def __post_init__(self) -> None:
        if not check.real(low=self.low) < check.real(high=self.high):
            raise BadParameter(
                "DP107",
                "the answer needs a public range: two numbers, the first below the second.",
                why="noisy answers are clipped to the range, and the grid of the answer depends on it.",
                fix="between=(0, 1)",
            )

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.low), Fraction(self.high)

    def measure(self, records: object, t: float) -> Measured:
        value = number(call_quietly(self.f, records))
        inside = min(max(value, self.low), self.high) if value == value else self.low  # noqa: PLR0124 - NaN
        return Fraction(inside), Fraction(self.smooth_bound(records, t))

    def smooth_bound(self, records: object, t: float) -> float:
        """The smooth bound; a value that is not a positive number counts as `at_most`."""
        if isinstance(self.sensitivity, LocalAtDistance):
            return self.sensitivity.smooth(t).bound(records)
        bound = number(call_quietly(self.sensitivity.bound, records))
        at_most = float(self.sensitivity.at_most)
        return clamp_bound(bound if bound > 0 else at_most, at_most)

    def typical(self, size: int) -> object:
        return self.public


Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

_NATS = 139.0  # exp(-139) < 2**-200: windows with a greater discount are below the floor


def widest_window(y: Floats, first: int, last: int, t: float) -> float:
    """The widest discounted window of sorted numbers: the smooth sensitivity of order statistics.

    That is the maximum W of exp(-t j) (y[b] - y[a]) over a <= first and b >= last with j = b - a -
    width >= 0. It is also the smooth sensitivity of a trimmed mean, times the number of records in
    the mean. y[0] and y[-1] are the bounds of the range, and first <= last are indices of y.

    **Guarantee.** The result lies in [W, W (1 + 2**-31)], or the same with 2**-200 (y[-1] - y[0])
    if that is greater than W.

    Why it holds: the best b does not decrease as a grows, so the rows are searched by bisection, in
    O(n log n). Neither rounding nor a choice between nearly equal candidates loses more than a
    relative 2**-33 (smooth.proof.md, §4). What would break it: an `exp` with a relative error above
    2**-44; numbers that are not sorted.
    """
    reach = math.ceil(_NATS / t) + 1
    left, right, width = max(0, first - reach), min(y.size - 1, last + reach), last - first + 1
    candidates = [FLOOR * float(y[-1] - y[0])]
    if last < right:
        ends = np.arange(last + 1, right + 1)
        candidates.append(float(_discounted_widths(y, first, ends, width, t).max()))
    if left < first:
        candidates.append(_over_rows(y, np.arange(left, first), (last, right), width, t))
    return max(candidates) * UP


def _discounted_widths(y: Floats, a: Any, b: Places, width: int, t: float) -> Floats:
    values: Floats = np.exp(-t * (b - a - width)) * (y[b] - y[a])
    return values


def _over_rows(y: Floats, rows: Places, columns: tuple[int, int], width: int, t: float) -> float:
    """The maximum over all rows; each is searched between the best columns of the rows around it."""
    count, best = rows.size, 0.0
    column = np.empty(count + 2, np.intp)
    column[0], column[-1] = columns
    stride = 1 << count.bit_length()
    while stride > 1:
        half = stride // 2
        middle = np.arange(half, count + 1, stride)
        low, high = column[middle - half], column[np.minimum(middle + half, count + 1)]
        lengths = high - low + 1
        starts = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(low - starts, lengths)
        values = _discounted_widths(y, np.repeat(rows[middle - 1], lengths), places, width, t)
        tops = np.maximum.reduceat(values, starts)
        hits = np.flatnonzero(values == np.repeat(tops, lengths))[::-1]
        owner = np.repeat(middle, lengths)[hits]
        # Written from the last to the first, so the first maximum stays.
        column[owner] = places[hits]
        best, stride = max(best, float(tops.max())), half
    return best
