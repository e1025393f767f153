# SPDX-License-Identifier: Apache-2.0
"""A noisy column of an answer: numbers with their intervals, and what is known of their noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol, Self

from discreet.tables.answer.joint import ColumnSums
from discreet.tables.answer.linear import Form

__all__ = ["CONFIDENCE", "LinearNoise", "Noisy", "Values"]

CONFIDENCE = 0.95
#: One value for each group. It is a number, but for MODE; None where nothing can be said.
Values = tuple[Any, ...]
Interval = Callable[[float], tuple[Values, Values]]


class LinearNoise(Protocol):
    """The noise of a column whose numbers are the exact ones plus linear forms of noises."""

    def form(self, row: int) -> Form:
        """The noise of one row."""

    def take(self, rows: Sequence[int]) -> LinearNoise:
        """The noise of some of the rows."""


@dataclass(frozen=True)
class Noisy:
    """A noisy column: a value and a confidence interval for each group, or None where there is
    none.

    `deviation` is the standard deviation of the noise, if it is the same for all groups. `whole`
    says that the exact number is a whole number, `nonnegative` that it is at least 0.
    `interval(confidence)` computes intervals of another confidence. Columns with the same
    `together` have intervals that hold jointly. `sums` are those that means and variances were
    computed from. None of these three is stored with an answer. `linear` is the noise itself, where
    the number is the exact one plus a linear form of noises.

    **Guarantee.** Every value lies inside its own interval.

    >>> Noisy((12,), (9,), (15,), whole=True).values
    (12,)
    """

    values: Values
    lo: Values
    hi: Values
    text: str = ""
    noise: str = ""
    deviation: float | None = None
    whole: bool = False
    nonnegative: bool = False
    interval: Interval | None = field(default=None, compare=False, repr=False)
    together: str = field(default="", compare=False, repr=False)
    linear: LinearNoise | None = field(default=None, compare=False, repr=False)
    sums: ColumnSums | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """The state to pickle: the released numbers, without the function that computes intervals."""
        return {**self.__dict__, "interval": None, "together": "", "sums": None}

    def take(self, rows: Sequence[int]) -> Noisy:
        """Some of the rows, in that order."""

        def of(part: Values) -> Values:
            return tuple(part[row] for row in rows)

        # Arithmetic asks for the interval of each row by itself.
        @cache
        def interval(confidence: float) -> tuple[Values, Values]:
            assert self.interval is not None
            lo, hi = self.interval(confidence)
            return of(lo), of(hi)

        return replace(
            self,
            values=of(self.values),
            lo=of(self.lo),
            hi=of(self.hi),
            interval=None if self.interval is None else interval,
            linear=None if self.linear is None else self.linear.take(rows),
            sums=None if self.sums is None else self.sums.take(rows),
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
