# SPDX-License-Identifier: Apache-2.0
"""Answers whose distance to trouble is known: a reciprocal, a median or another quantile, the log
of a spread.

    ProposedReciprocal().release(bound=0.001, test_epsilon=0.5, release_epsilon=0.5, delta=1e-6)(1_200)
    ProposedOrderStatistic(0.5, bounds=(0, 1e6)).release(bound=100, …)(incomes)
    ProposedLogSpread(bounds=(0, 1e6)).release(bound=0.1, …)(incomes)  # log of the interquartile range
    ProposedOrderStatistic(0.5, bounds=(0, 1e6)).search(bounds=[1, 10, 100, 1e3], …)(incomes)  # which bound? ask privately

**Guarantee.** For every bound, `distance(data, bound)` moves by 1 at most between neighbours, under
add-remove and under replace, and is 0 on both of two neighbours whose values differ by more than
the bound.

Why it holds: propose.proof.md, §5, from the order of the records alone: one change moves each order
statistic by one rank at most. Records are clipped to public bounds and put on a grid first, so that
all comparisons are exact. What would break it: bounds that were read off the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio
from discreet.mechanisms.propose import ProposeSearchRelease, ProposeTestRelease
from discreet.mechanisms.quantile import Span, read_quantile
from discreet.mechanisms.stability import as_distance
from discreet.noise.scales import Number

__all__ = ["Proposal", "ProposedLogSpread", "ProposedOrderStatistic", "ProposedReciprocal"]

_SLACK = 1e-9  # far more than the rounding of two logarithms of numbers below 2**34


class Proposal(ABC):
    """A query and, for every bound, its distance to data on which the bound does not hold.

    **Guarantee.** As above. Whoever writes one of their own runs `check_distance` on it.
    """

    @abstractmethod
    def value(self, data: object) -> object:
        """The exact answer."""

    @abstractmethod
    def distance(self, data: object, bound: float) -> float:
        """How many protected units must change, at least, until a neighbour's answer is further
        away than the bound.
        """

    def release(
        self,
        *,
        bound: float,
        test_epsilon: float,
        release_epsilon: float,
        delta: float,
        test: str = "best",
        relation: str = "add-remove",
        unit: str = "record",
    ) -> ProposeTestRelease:
        """The mechanism that proposes this bound, tests it and releases: a `ProposeTestRelease`."""
        return ProposeTestRelease(
            self.value,
            partial(self.distance, bound=bound),
            bound=bound,
            test_epsilon=test_epsilon,
            release_epsilon=release_epsilon,
            delta=delta,
            test=test,
            relation=relation,
            unit=unit,
        )

    def search(
        self,
        *,
        bounds: Sequence[float],
        search_epsilon: float,
        release_epsilon: float,
        delta: float,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> ProposeSearchRelease:
        """The mechanism that looks for the least of these bounds that is safe: a
        `ProposeSearchRelease`.
        """
        return ProposeSearchRelease(
            self.value,
            self.distance,
            bounds=bounds,
            search_epsilon=search_epsilon,
            release_epsilon=release_epsilon,
            delta=delta,
            relation=relation,
            unit=unit,
        )


@dataclass(frozen=True)
class ProposedReciprocal(Proposal):
    """1 / max(1, count) of a count that one protected unit moves by 1 at most; the data are the
    count.

    It counts as the whole number below it, up to 10**18; what is no number counts as 0.

    **Guarantee.** From k - 1 to k the reciprocal moves by 1 / k(k - 1), which is within the bound
    from some k on; the distance is how many units the count is above the last k for which it is
    not.

    >>> ProposedReciprocal().distance(1_200, bound=0.001)             # 32 · 31 < 1000 <= 33 · 32
    1168
    >>> ProposedReciprocal().distance(5, bound=0.5)
    inf
    """

    def value(self, data: object) -> Fraction:
        return Fraction(1, max(1, as_distance(data)))

    def distance(self, data: object, bound: float) -> float:
        pairs = math.ceil(1 / as_ratio(bound))
        safe = 2
        if pairs > 2:
            # the least k with k (k - 1) > pairs - 1
            safe = (math.isqrt(4 * (pairs - 1) + 1) + 1) // 2 + 1
        return math.inf if pairs <= 2 else max(0, as_distance(data) - safe + 1)


@dataclass(frozen=True)
class ProposedOrderStatistic(Proposal):
    """The ⌈qn⌉-th smallest of n records: the (lower) median for q = 1/2. With no record, or q = 0,
    the lower bound.

    **Guarantee.** The distance is the least s such that some s + 2 records in a row, the quantile
    among them, span more than the bound, where bounds stand in for records beyond the first and the
    last. If a record is replaced that is the exact distance to data with a larger local sensitivity
    (Nissim, Raskhodnikova, Smith 2007), else at most that.

    >>> ages = ProposedOrderStatistic(0.5, bounds=(0, 100), step=1)
    >>> ages.value([30, 31, 33, 36, 90]), ages.distance([30, 31, 33, 36, 90], bound=5)
    (Fraction(33, 1), 1)
    """

    q: Number
    bounds: Sequence[float]
    step: float | None = None
    _span: Span = field(init=False, repr=False, compare=False)
    _rank: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_span", Span.between(self.bounds, self.step))
        object.__setattr__(self, "_rank", read_quantile(self.q))

    def value(self, data: object) -> Fraction:
        cells = _padded_cells(self._span, data)
        return _real(self._span, cells[self._at(cells)])

    def distance(self, data: object, bound: float) -> float:
        cells = _padded_cells(self._span, data)
        at, count = self._at(cells), cells.size
        # the least span that is too wide, in cells; there are far fewer than 2**40
        too_far = min(math.floor(as_ratio(bound) / self._span.grid.step) + 1, 1 << 40)
        left = np.arange(at + 1)
        right = np.maximum(np.searchsorted(cells, cells[left] + too_far), np.maximum(at, left + 1))
        too_wide = right < count
        return int((right - left)[too_wide].min()) - 1 if too_wide.any() else math.inf

    def _at(self, cells: npt.NDArray[np.int64]) -> int:
        return math.ceil(self._rank * (cells.size - 2))


@dataclass(frozen=True)
class ProposedLogSpread(Proposal):
    """The natural logarithm of the distance between two quantiles, by default the interquartile
    range.

    **Guarantee.** The bound is on the logarithm: with bound=0.1 the spread moves by a tenth, about.
    After s changes the spread lies between that of the quantiles moved s ranks inwards and s ranks
    outwards; the distance is the greatest s for which these differ by a factor of exp(bound) at
    most for s + 1. A spread of less than one step of the grid counts as one step.

    Why the logarithm: Dwork, Lei 2009, who release the scale of data of unknown magnitude this way.

    >>> pay = ProposedLogSpread(bounds=(0, 1024), step=1)
    >>> pay.value([100, 200, 300, 400]) == math.log(200), pay.distance(list(range(0, 1000, 2)), bound=0.5)
    (True, 30)
    """

    bounds: Sequence[float]
    low: Number = 0.25
    high: Number = 0.75
    step: float | None = None
    _span: Span = field(init=False, repr=False, compare=False)
    _ranks: tuple[Fraction, Fraction] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ranks = read_quantile(self.low), read_quantile(self.high)
        if ranks[0] >= ranks[1]:
            raise BadParameter(
                "DP107",
                "low must be a smaller quantile than high.",
                why="the spread between them would never be positive.",
                fix="low=0.25, high=0.75",
            )
        object.__setattr__(self, "_span", Span.between(self.bounds, self.step))
        object.__setattr__(self, "_ranks", ranks)

    def value(self, data: object) -> float:
        cells = _padded_cells(self._span, data)
        return math.log(self._spread(cells, 0)) + math.log(self._span.grid.step)

    def distance(self, data: object, bound: float) -> float:
        check.moderate(bound=bound)
        cells = _padded_cells(self._span, data)
        # at `far` the quantiles have become the bounds, and one another
        near, far = 0, int(cells.size)
        if self._ratio(cells, far) <= bound - _SLACK:
            return math.inf
        while far - near > 1:  # the ratio grows with the number of changes
            middle = (near + far) // 2
            near, far = (middle, far) if self._ratio(cells, middle) <= bound - _SLACK else (near, middle)
        return far - 1

    def _ratio(self, cells: npt.NDArray[np.int64], changes: int) -> float:
        """The logarithm of how far apart the spreads are that so many changes can reach."""
        return math.log(self._spread(cells, -changes)) - math.log(self._spread(cells, changes))

    def _spread(self, cells: npt.NDArray[np.int64], inwards: int) -> int:
        """Cells between the quantiles after they moved so many ranks inwards; 1 at least."""
        last = cells.size - 1
        first, second = (math.ceil(rank * (cells.size - 2)) for rank in self._ranks)
        ends = (min(max(index, 0), last) for index in (first + inwards, second - inwards))
        left, right = (int(cells[index]) for index in ends)
        return max(1, right - left)


def _padded_cells(span: Span, data: Any) -> npt.NDArray[np.int64]:
    """The records in order, as cells, between the two bounds: rank i is at index i."""
    return np.concatenate([[0], np.sort(span.cells(data)), [span.points - 1]]).astype(np.int64)


def _real(span: Span, cell: Any) -> Fraction:
    return (span.first + int(cell)) * span.grid.step
