# SPDX-License-Identifier: Apache-2.0
"""Builds expressions of dates and moments: parts, truncation, intervals, time zones.

**Guarantee.** As `build`: the result is total and bounded on every row, or the question is refused
(DP705). The calendar is the proleptic Gregorian one, and weeks are those of ISO 8601. A moment is a
moment in UTC; a column without a time zone means UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

import numpy as np

from discreet.tables.algebra import civil, expr
from discreet.tables.algebra.expr import Constant, Expr
from discreet.tables.algebra.types import DATE, MOMENT, Type, micros
from discreet.tables.ask.build import (
    Term,
    expression_error,
    is_null,
    kind_of,
    on_grid,
    with_type,
    wrong_kind_error,
)
from discreet.tables.data.rules import closest

__all__ = [
    "Interval",
    "at_time_zone",
    "date_part",
    "days_between",
    "difference",
    "interval",
    "is_dated",
    "shift",
    "to_date",
    "to_moment",
    "truncate",
]

_CLOCK = ("hour", "minute", "second")
_LENGTHS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3_600 * 10**6,
}
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1_200}
_INTERVAL = re.compile(r"\s*([+-]?\d{1,9})\s*([a-z]+?)s?\s*(?=[\s+\-\d]|$)", re.IGNORECASE)
#: A column whose years are many has too many months, or changes of a clock, to list.
_MOST_STEPS = 1_000
#: The years of a column whose clock in a time zone can be computed, and the ends that they must lie between.
_MOST_YEARS = 150
_EARLIEST, _LATEST = micros(datetime(2, 1, 1)), micros(datetime(9998, 12, 31))  # noqa: DTZ001 - UTC is meant
#: So many days are listed to find the months among them.
_MOST_DAYS = 1 << 18


@dataclass(frozen=True)
class Interval:
    """So many months, days and microseconds."""

    months: int = 0
    days: int = 0
    micros: int = 0

    def times(self, sign: int) -> Interval:
        """The interval, or the one backwards."""
        return Interval(sign * self.months, sign * self.days, sign * self.micros)


def is_dated(term: Term) -> bool:
    """Whether a term is a date or a moment, and not the literal NULL."""
    return isinstance(term, Expr) and kind_of(term) in {DATE, MOMENT} and not is_null(term)


def date_part(name: str, term: Term) -> Expr:
    """The year, month, … of a date."""
    of = _require_dated(term)
    if name in _CLOCK and of.type.kind == DATE:
        raise expression_error(
            f"a date has no {name}.", "only a timestamp has them.", f"EXTRACT({name} FROM seen_at)"
        )
    return expr.DatePart(name, of if name in _CLOCK else to_date(of))


def to_date(term: Term) -> Expr:
    """The day of a moment in UTC."""
    of = _require_dated(term)
    if of.type.kind == DATE:
        return of
    if isinstance(of, Constant):
        return _constant(of.value // civil.DAY, DATE)
    return expr.AsDate(of)


def to_moment(term: Term) -> Expr:
    """The first moment of a date in UTC."""
    of = _require_dated(term)
    if of.type.kind == MOMENT:
        return of
    return _constant(of.value * civil.DAY, MOMENT) if isinstance(of, Constant) else expr.AsMoment(of)


def truncate(name: str, term: Term) -> Expr:
    """The first day of a year, quarter, month, week or day; the first moment of an hour, minute or
    second.
    """
    of = _require_dated(term)
    if name not in civil.TRUNCATED:
        raise expression_error(
            f"{name} is no part to which a date can be truncated.",
            "every engine must give the same first day.",
            f"DATE_TRUNC('month', came_on)   or, in its place, one of {', '.join(civil.TRUNCATED)}",
        )
    if name in _CLOCK:
        return expr.Truncated(name, to_moment(of))
    return to_date(of) if name == "day" else expr.Truncated(name, to_date(of))


def interval(number: Fraction | None, text: str, unit: str) -> Interval:
    """`INTERVAL 7 DAY`, `INTERVAL '1 year 2 months'`: a number with a unit, or a text of several."""
    written = f"{number if number is not None else text} {unit}" if unit else text
    total, at = Interval(), 0
    while at < len(written) or not at:
        match = _INTERVAL.match(written, at)
        added = None if match is None else _unit(int(match[1]), match[2].lower())
        if match is None or added is None:
            raise expression_error(
                "the interval is not written as numbers with units.",
                "its length belongs to the question.",
                "INTERVAL 7 DAY   or   INTERVAL '1 year 2 months'",
            )
        total = Interval(total.months + added.months, total.days + added.days, total.micros + added.micros)
        at = match.end()
    return total


def _unit(count: int, unit: str) -> Interval | None:
    if unit in _MONTHS:
        return Interval(months=count * _MONTHS[unit])
    if unit in _DAYS:
        return Interval(days=count * _DAYS[unit])
    return Interval(micros=count * _LENGTHS[unit]) if unit in _LENGTHS else None


def shift(term: Term, by: Interval) -> Expr:
    """A date or moment later by an interval: months first (the last day of a month that is too
    short), then days and hours. A date stays one unless hours are added.
    """
    of = _require_dated(term)
    if by.micros and of.type.kind == DATE:
        of = to_moment(of)
    if by.months:
        of = _by_months(of, by.months)
    cells = by.days if of.type.kind == DATE else by.days * civil.DAY + by.micros
    if not cells:
        return of
    shifted = expr.Shifted(of, cells)
    return _constant(of.value + cells, of.type.kind) if isinstance(of, Constant) else with_type(shifted)


def _by_months(of: Expr, months: int) -> Expr:
    unit = 1 if of.type.kind == DATE else civil.DAY
    first, last = of.type.low // unit, of.type.high // unit
    if last - first > _MOST_DAYS or abs(months) > 12 * 10_000:
        raise _many_years_error("months have different lengths, and each of them is a part of the question.")
    all_days = np.arange(first, last + 1, dtype=np.int64)
    days_added = civil.shift_months(all_days, months) - all_days
    changes = np.flatnonzero(np.diff(days_added)) + 1
    if len(changes) > _MOST_STEPS:
        raise _many_years_error("months have different lengths, and each of them is a part of the question.")
    edges = tuple(int(day) * unit for day in all_days[changes])
    values = tuple(int(days) * unit for days in days_added[[0, *changes.tolist()]])
    steps = expr.Steps(of, edges, values)
    return _constant(steps.value_at(of.value), of.type.kind) if isinstance(of, Constant) else with_type(steps)


def at_time_zone(term: Term, zone: str) -> Expr:
    """What clocks of a time zone show at a moment."""
    of = _require_dated(term)
    if of.type.kind == DATE:
        raise wrong_kind_error("AT TIME ZONE needs a timestamp", of)
    if any(isinstance(part, expr.Steps) and part.zone for part in expr.all_parts(of)):
        raise expression_error(
            "AT TIME ZONE is used on the clock of a time zone.",
            "it converts a moment in UTC, and a moment can be converted once.",
            f"seen_at AT TIME ZONE '{zone}'",
        )
    if zone not in civil.zone_names():
        raise expression_error(
            f"there is no time zone {zone!r}.",
            "its clock comes from the time zone database of Python.",
            f"AT TIME ZONE '{closest(zone, sorted(civil.zone_names()))}'",
        )
    is_near = of.type.low >= _EARLIEST and of.type.high <= _LATEST
    if not is_near or (of.type.high - of.type.low) // civil.DAY > 366 * _MOST_YEARS:
        raise _many_years_error(
            "the clock of a zone changes each year, and each change is a part of the question."
        )
    edges, offsets = civil.transitions(zone, of.type.low, of.type.high)
    steps = expr.Steps(of, edges, offsets, zone)
    return _constant(steps.value_at(of.value), MOMENT) if isinstance(of, Constant) else with_type(steps)


def days_between(left: Term, right: Term) -> Expr:
    """left - right: the days between two dates."""
    if kind_of(left) == kind_of(right) == DATE:
        return with_type(expr.Arithmetic("-", on_grid(left), on_grid(right)))
    raise expression_error(
        "a difference of moments is no number.",
        "its unit has to be named.",
        "DATE_DIFF('hour', came_on, seen_at)",
    )


def difference(part: str, start: Term, stop: Term) -> Expr:
    """How many beginnings of a year, month, … lie after one date or moment, up to another."""
    if part in _MONTH_NAMES:
        per = _MONTH_NAMES[part]
        numbers = [_count_since_zero(part, per, to_date(end)) for end in (stop, start)]
        return with_type(expr.Arithmetic("-", *numbers))
    if part not in civil.TRUNCATED:
        raise expression_error(
            f"{part} is no unit in which dates can be counted.",
            "every engine must give the same number.",
            f"DATE_DIFF('day', came_on, left_on)   or, in its place, one of {', '.join(civil.TRUNCATED)}",
        )
    start_day, stop_day = truncate(part, start), truncate(part, stop)
    distance = with_type(expr.Arithmetic("-", stop_day, start_day))
    length = civil.TRUNCATED[part] if part in _CLOCK else 7 if part == "week" else 1
    return distance if length == 1 else with_type(expr.Quotient(distance, _whole(length or 1)))


_MONTH_NAMES = {"year": 1, "quarter": 4, "month": 12}


def _count_since_zero(part: str, per: int, day: Expr) -> Expr:
    """Years, quarters or months since year 0."""
    year = expr.DatePart("year", day)
    if per == 1:
        return year
    return expr.Arithmetic("+", expr.Arithmetic("*", year, _whole(per)), expr.DatePart(part, day))


def _whole(value: int) -> Expr:
    return on_grid(Fraction(value))


def _require_dated(term: Term) -> Expr:
    if is_dated(term) and isinstance(term, Expr):
        return term
    raise wrong_kind_error("a date is needed here", term)


def _constant(cells: int, kind: str) -> Constant:
    return Constant(cells, Type(kind, cells, cells, null=False))


def _many_years_error(why: str) -> Exception:
    return expression_error(
        "the column can lie in too many years for this.",
        why,
        "bounds = [2020-01-01, 2029-12-31]   in the description of the column",
    )
