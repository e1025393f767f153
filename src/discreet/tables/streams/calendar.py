# SPDX-License-Identifier: Apache-2.0
"""The periods of a stream: so many days, weeks, months, quarters or years in a row.

**Guarantee.** Public: the first day, the length of a period, and their number. The periods cover
every day from the first to the last, each once.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.streams.factor import check_periods
from discreet.tables.algebra import civil
from discreet.tables.algebra.types import days

__all__ = ["EVERY", "Calendar", "first_day_of"]

_EPOCH = date(1970, 1, 1)
#: The length of a period in days, or in months.
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
EVERY = (*_DAYS, *_MONTHS)
#: The last day that a period may end on; the calendar of Python goes a little further.
_LATEST = date(9990, 1, 1)


@dataclass(frozen=True)
class Calendar:
    """So many periods in a row, from a first day on."""

    every: str
    start: date
    periods: int

    def __post_init__(self) -> None:
        check.choice(EVERY, every=self.every)
        check.day(start=self.start)
        check_periods(self.periods)
        most = self.periods * (_DAYS.get(self.every) or 31 * _MONTHS[self.every])
        if (_LATEST - self.start).days < most:
            raise BadParameter(
                "DP102",
                f"{self.periods} {self.every}s from {self.start} on go beyond the calendar.",
                why="every period has a first and a last day.",
                fix='start="2026-01-05"',
            )

    @cached_property
    def edges(self) -> tuple[date, ...]:
        """The first day of each period, and the day after the last one."""
        if self.every in _DAYS:
            length = _DAYS[self.every]
            return tuple(self.start + timedelta(days=length * at) for at in range(self.periods + 1))
        first = np.array(days(self.start), np.int64)
        step = _MONTHS[self.every]
        return tuple(
            _EPOCH + timedelta(days=int(civil.shift_months(first, step * at)))
            for at in range(self.periods + 1)
        )

    def period_of(self, day: date) -> int:
        """The number of the period that a day lies in: -1 before the first, `periods` after the
        last.
        """
        return bisect_right(self.edges, day) - 1

    def ended_by(self, day: date) -> int:
        """How many periods are over when that day begins."""
        return max(0, bisect_right(self.edges, day) - 1)

    def last_day(self, period: int) -> date:
        """The last day of a period."""
        return self.edges[period + 1] - timedelta(days=1)


def first_day_of(every: str, day: date) -> date:
    """The first day of the day, week (from Monday), month, … that a day lies in."""
    check.choice(EVERY, every=every)
    return _EPOCH + timedelta(days=int(civil.truncate(every, np.array(days(day), np.int64))))
