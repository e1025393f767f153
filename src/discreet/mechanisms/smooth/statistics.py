# SPDX-License-Identifier: Apache-2.0
"""Answers whose smooth sensitivity is known in closed form, each with the relations under which that is proved.

| statistic | smooth sensitivity | relations |
|---|---|---|
| `OrderStatistic` (median, minimum, maximum, any quantile or rank) | exact, O(n log n) | replace, add-remove (an upper bound) |
| `TrimmedMean` | exact, O(n log n) | replace |
| `InterquantileRange` | at most the sum of two | replace, add-remove |
| `Reciprocal` of a count | exact | add-remove, replace |
| `Custom`: a function and its `LocalAtDistance` or `SmoothBound` | the caller's | the caller's |

**Guarantee.** `measure(records, t)` returns the exact answer and a bound that is at least the local sensitivity and
(t + 2**-31)-smooth. Both are total functions of the records: NaN and what is no number count as the middle of the bounds.
Proofs: smooth.proof.md, §§3-4. What would break it: bounds that were read off the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.mechanisms.callbacks import quietly
from discreet.mechanisms.exact import is_true, number, numbers_within, results, rows, total
from discreet.mechanisms.quantile import read_quantile
from discreet.mechanisms.query import Between
from discreet.mechanisms.sensitivity import LocalAtDistance, SmoothBound, bounded
from discreet.mechanisms.smooth.windows import Floats, widest

__all__ = ["Custom", "InterquantileRange", "OrderStatistic", "Reciprocal", "Statistic", "TrimmedMean"]

Measured = tuple[Fraction, Fraction]
BOTH, REPLACE = ("replace", "add-remove"), ("replace",)
_MOST_TYPICAL = 1 << 17  # records of a public guess


class Statistic(ABC):
    """An answer and a smooth bound on how far one record moves it."""

    relations: tuple[str, ...] = BOTH

    @property
    @abstractmethod
    def range(self) -> tuple[Fraction, Fraction]:
        """Where the answer lies for all records: public."""

    @abstractmethod
    def measure(self, records: Any, t: float) -> Measured:
        """The answer and the bound, exactly as stated above. Secret."""

    @abstractmethod
    def typical(self, size: int) -> Any:
        """Public records that stand for the secret ones when noise is planned; no promise depends on them."""


@dataclass(frozen=True)
class _Sorted(Statistic):
    """A function of numbers between two public bounds, which are stated as (low, high)."""

    bounds: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", Between.of(self.bounds))

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.bounds.low), Fraction(self.bounds.high)

    def padded(self, records: Any) -> Floats:
        """lo, the records in order, hi."""
        low, high = self.bounds.low, self.bounds.high
        return np.concatenate(([low], np.sort(numbers_within(records, low, high)), [high]))

    def typical(self, size: int) -> Any:
        """Evenly over the middle tenth of the bounds: bounds are generous, and it costs little where they are not."""
        low, high = self.bounds.low, self.bounds.high
        margin = (high - low) * 9 / 20
        return np.linspace(low + margin, high - margin, min(size, _MOST_TYPICAL) + 2)[1:-1]


@dataclass(frozen=True)
class OrderStatistic(_Sorted):
    """The record of rank ⌈q n⌉ (at least 1), or of a fixed `rank`; lo or hi where there is no such record."""

    q: Fraction | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.q is None) == (self.rank is None):
            raise BadParameter(
                "DP107",
                "an order statistic is stated as a share q or as a rank, one of the two.",
                why="they name different records.",
                fix="q=0.5",
            )
        if self.q is not None:
            object.__setattr__(self, "q", read_quantile(self.q))
        else:
            check.whole(rank=self.rank)

    def place(self, count: int) -> int:
        """The rank among `count` records. It grows by 0 or 1 with one record more: the proof needs that."""
        if self.q is None:
            return min(self.rank or 1, count + 1)
        return max(min(1, count), math.ceil(self.q * count))

    def measure(self, records: Any, t: float) -> Measured:
        return self.of(self.padded(records), t)

    def of(self, y: Floats, t: float) -> Measured:
        """The same for sorted and padded numbers."""
        k = self.place(y.size - 2)
        return Fraction(float(y[k])), Fraction(widest(y, k, k, t))


@dataclass(frozen=True)
class TrimmedMean(_Sorted):
    """The mean of the records without the m smallest and the m largest; m is a count, or a share of all records."""

    trim: Any = Fraction(1, 10)
    relations = REPLACE

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.trim, int) and not isinstance(self.trim, bool):
            check.whole(at_least=0, trim=self.trim)
        elif check.not_negative(trim=self.trim) >= 0.5:
            raise BadParameter(
                "DP102",
                "trim must be a whole number, or a share below one half.",
                why="nothing would be left to average.",
                fix="trim=0.1",
            )

    def trimmed(self, count: int) -> int:
        """How many records go at either end; at least one is left."""
        whole = isinstance(self.trim, int)
        stated = self.trim if whole else math.floor(exactly(float(self.trim)) * count)
        return int(min(stated, max(0, (count - 1) // 2)))

    def measure(self, records: Any, t: float) -> Measured:
        y = self.padded(records)
        count = y.size - 2
        if not count:
            return sum(self.range, Fraction(0)) / 2, Fraction(widest(y, 0, 0, t))
        first = self.trimmed(count) + 1
        last = count + 1 - first
        left = last - first + 1
        return total(y[first : last + 1]) / left, Fraction(widest(y, first, last, t)) / left


@dataclass(frozen=True)
class InterquantileRange(_Sorted):
    """The distance of two quantiles; its bound is the sum of theirs."""

    lower: Any = Fraction(1, 4)
    upper: Any = Fraction(3, 4)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not read_quantile(self.lower) < read_quantile(self.upper):
            raise BadParameter(
                "DP107",
                "the lower quantile must be below the upper one.",
                why="their distance is what is asked for.",
                fix="lower=0.25, upper=0.75",
            )

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), self.bounds.width

    def measure(self, records: Any, t: float) -> Measured:
        y = self.padded(records)
        ends = [OrderStatistic(self.bounds, q).of(y, t) for q in (self.lower, self.upper)]
        return ends[1][0] - ends[0][0], ends[0][1] + ends[1][1]


@dataclass(frozen=True)
class Reciprocal(Statistic):
    """1 / max(count, 1) of the records for which `where` holds; of all of them without it."""

    where: Callable[[Any], Any] | None = None

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(1)

    def measure(self, records: Any, t: float) -> Measured:
        found = (
            rows(records) if self.where is None else [x for x in results(self.where, records) if is_true(x)]
        )
        k = len(found)
        here = 1 / (k * (k - 1)) if k > 1 else 0.0
        steps = abs(k - 1.5) - 0.5  # to a count of 1 or 2, where one record moves the answer by 1/2
        return Fraction(1, max(k, 1)), Fraction(bounded(max(here, math.exp(-t * steps) / 2), 0.5))

    def typical(self, size: int) -> Any:
        return [1] * min(size, _MOST_TYPICAL)


@dataclass(frozen=True)
class Custom(Statistic):
    """A caller's function, and how far one record moves it.

    Where `f` raises or returns no number, the answer is `low`; the caller's proof must cover that.
    """

    f: Callable[[Any], Any]
    sensitivity: LocalAtDistance | SmoothBound
    low: float
    high: float
    public: Any = None
    relations = BOTH

    def __post_init__(self) -> None:
        if not check.real(low=self.low) < check.real(high=self.high):
            raise BadParameter(
                "DP107",
                "the answer must lie between two public numbers, the first below the second.",
                why="what noise carries beyond is moved back, and the grid of the answer depends on them.",
                fix="between=(0, 1)",
            )

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.low), Fraction(self.high)

    def measure(self, records: Any, t: float) -> Measured:
        value = number(quietly(self.f, records))
        inside = min(max(value, self.low), self.high) if value == value else self.low  # noqa: PLR0124 - NaN
        return Fraction(inside), Fraction(self.bound(records, t))

    def bound(self, records: Any, t: float) -> float:
        """The smooth bound; what is no positive number counts as the most."""
        if isinstance(self.sensitivity, LocalAtDistance):
            return self.sensitivity.smooth(t).bound(records)
        found, most = number(quietly(self.sensitivity.bound, records)), float(self.sensitivity.at_most)
        return bounded(found if found > 0 else most, most)

    def typical(self, size: int) -> Any:
        return self.public
