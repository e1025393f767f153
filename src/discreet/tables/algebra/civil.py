# SPDX-License-Identifier: Apache-2.0
"""The calendar on arrays of day numbers: parts of dates, months, time zones.

**Guarantee.** The proleptic Gregorian calendar of `datetime`, for every day number of 64 bits that
`numpy.datetime64` has. It serves bounds and public keys, which need many days at once; engines
compute the same in whole numbers (`engines/calendar.py`), and tests compare the two.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DATE_PARTS",
    "DAY",
    "TRUNCATED",
    "part",
    "shift_months",
    "transitions",
    "truncate",
    "zone_names",
]

Days = NDArray[np.int64]

#: Microseconds of a day.
DAY = 86_400_000_000
#: The parts of a date or a moment with their bounds; those of the years come from the column.
#: `isodow` is 1 (Monday) to 7; `week` is the week of ISO 8601, which belongs to the year `isoyear`.
DATE_PARTS: dict[str, tuple[int, int] | None] = {
    "year": None,
    "isoyear": None,
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "isodow": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
#: What a date can be truncated to, and a moment; a length in microseconds where there is one.
TRUNCATED: dict[str, int | None] = {
    "year": None,
    "quarter": None,
    "month": None,
    "week": None,
    "day": DAY,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
}
#: Time zones change their offset at most once in this time.
_STEP = 12 * 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def part(name: str, days: Days) -> Days:
    """A part of each date."""
    if name in {"isodow", "isoyear", "week"}:
        thursday = days - (days + 3) % 7 + 3
        if name == "isodow":
            return (days + 3) % 7 + 1
        if name == "isoyear":
            return part("year", thursday)
        return (thursday - truncate("year", thursday)) // 7 + 1
    if name == "doy":
        return days - truncate("year", days) + 1
    if name == "day":
        return days - truncate("month", days) + 1
    months = _months(days)
    if name == "year":
        return months // 12 + 1970
    return months % 12 + 1 if name == "month" else months % 12 // 3 + 1


def truncate(name: str, days: Days) -> Days:
    """The first day of the year, quarter, month or week that each date lies in."""
    if name == "week":
        return days - (days + 3) % 7
    if name == "day":
        return days
    size = {"year": 12, "quarter": 3, "month": 1}[name]
    return _first_of(_months(days) // size * size)


def shift_months(days: Days, months: int) -> Days:
    """The same day so many months later, or the last day of that month if it has no such day."""
    month = _months(days)
    moved, after = _first_of(month + months), _first_of(month + months + 1)
    return np.minimum(moved + (days - _first_of(month)), after - 1)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """The names of the time zones that Python knows."""
    return frozenset(available_timezones())


@lru_cache(maxsize=64)
def transitions(zone: str, low: int, high: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The moments between two, in microseconds, at which the offset of a zone changes, and the
    offsets before, between and after them.
    """
    edges: list[int] = []
    offsets = [_offset(zone, low)]
    at = low
    while at < high:
        after = min(at + _STEP, high)
        if _offset(zone, after) != offsets[-1]:
            edges.append(_change(zone, at, after, offsets[-1]))
            offsets.append(_offset(zone, after))
        at = after
    return tuple(edges), tuple(offsets)


def _change(zone: str, low: int, high: int, before: int) -> int:
    """The first moment after `low` whose offset is not `before`; `high` is one."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return high


def _offset(zone: str, micros: int) -> int:
    """What a clock of the zone shows more than UTC, in microseconds."""
    shown = (_EPOCH + timedelta(microseconds=micros)).astimezone(ZoneInfo(zone)).utcoffset()
    assert shown is not None
    return shown // timedelta(microseconds=1)


def _months(days: Days) -> Days:
    """Months since January 1970."""
    dates: Any = days.astype("datetime64[D]")
    return np.asarray(dates.astype("datetime64[M]").astype(np.int64))


def _first_of(months: Days) -> Days:
    dates: Any = months.astype("datetime64[M]")
    return np.asarray(dates.astype("datetime64[D]").astype(np.int64))
