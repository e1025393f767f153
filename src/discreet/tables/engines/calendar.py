# SPDX-License-Identifier: Apache-2.0
"""Parts of dates and timestamps, computed with whole numbers alone.

**Guarantee.** `spelled_out` gives an expression of numbers, equal to it on every row. It is the
same on every engine, because no engine's calendar is asked: days are counted from 1 March of year
0, in eras of 400 years (146,097 days), as in the proleptic Gregorian calendar of `datetime`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from discreet.tables.algebra import expr as e
from discreet.tables.algebra.civil import DAY, TRUNCATED
from discreet.tables.algebra.expr import Arithmetic, Case, Compare, Constant, Expr, Logic, Modulo, Quotient
from discreet.tables.algebra.types import MOMENT, NUMBER, Type

__all__ = ["spelled_out"]

_ERA = 146_097  # days of 400 years
_MARCH = 719_468  # days from 0000-03-01 to 1970-01-01
#: The days of a year that begins in March on which the quarters of the calendar begin.
_QUARTERS = ((306, 306), (214, 214), (122, 122), (31, 31))


@singledispatch
def spelled_out(of: Expr) -> Expr:
    """The same whole number, as arithmetic on the cells of a date or a timestamp."""
    raise AssertionError(f"{type(of).__name__} is no calendar expression")


@spelled_out.register
def _(of: e.AsDate) -> Expr:
    return _over(_cells(of.of), DAY)


@spelled_out.register
def _(of: e.AsMoment) -> Expr:
    return _times(_cells(of.of), DAY)


@spelled_out.register
def _(of: e.Shifted) -> Expr:
    return _plus(_cells(of.of), of.cells)


@spelled_out.register
def _(of: e.Truncated) -> Expr:
    cells, length = _cells(of.of), TRUNCATED[of.part]
    if of.of.type.kind == MOMENT and length is not None:
        return _minus(cells, Modulo(cells, length))
    return _truncate(cells, of.part)


@spelled_out.register
def _(of: e.DatePart) -> Expr:
    part = of.part
    if part in {"hour", "minute", "second"}:
        unit, length = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60), "second": (1_000_000, 60)}[
            part
        ]
        return Modulo(_over(_cells(of.of), unit), length)
    days = _over(_cells(of.of), DAY) if of.of.type.kind == MOMENT else _cells(of.of)
    if part == "isodow":  # 1970-01-01 was a Thursday
        return _plus(Modulo(_plus(days, 3), 7), 1)
    if part == "doy":
        return _plus(_minus(days, _truncate(days, "year")), 1)
    if part in {"week", "isoyear"}:
        thursday = _minus(_plus(days, 3), Modulo(_plus(days, 3), 7))
        if part == "isoyear":
            return _civil(thursday, "year")
        return _plus(_over(_minus(thursday, _truncate(thursday, "year")), 7), 1)
    return _civil(days, part)


@dataclass(frozen=True)
class _March:
    """A day in an era of 400 years that begin in March: the day of the era, its year, the day of
    that year.
    """

    of_era: Expr
    year: Expr
    of_year: Expr


def _march(days: Expr) -> _March:
    of_era = Modulo(_plus(days, _MARCH), _ERA)
    leaps = _minus(_plus(_minus(of_era, _over(of_era, 1460)), _over(of_era, 36_524)), _over(of_era, 146_096))
    year = _over(leaps, 365)
    before = _minus(_plus(_times(year, 365), _over(year, 4)), _over(year, 100))
    return _March(of_era, year, _minus(of_era, before))


def _civil(days: Expr, part: str) -> Expr:
    """Year, quarter, month or day."""
    at = _march(days)
    month = _over(_plus(_times(at.of_year, 5), 2), 153)  # 0 is March
    if part == "day":
        return _plus(_minus(at.of_year, _over(_plus(_times(month, 153), 2), 5)), 1)
    civil_month = _plus(Modulo(_plus(month, 2), 12), 1)
    if part == "month":
        return civil_month
    if part == "quarter":
        return _plus(_over(_minus(civil_month, 1), 3), 1)
    next_year = Case(((Compare(">=", month, _whole(10)), _whole(1)),), _whole(0))
    return _plus(_plus(_times(_over(_plus(days, _MARCH), _ERA), 400), at.year), next_year)


def _truncate(days: Expr, part: str) -> Expr:
    """The first day of a year, quarter, month or week."""
    if part == "day":
        return days
    if part == "week":
        return _minus(days, Modulo(_plus(days, 3), 7))
    if part == "month":
        return _plus(_minus(days, _civil(days, "day")), 1)
    at = _march(days)
    # January and February lie at the end of the year that began in March of the year before.
    starts = _QUARTERS if part == "quarter" else _QUARTERS[:1]
    whens = tuple((Compare(">=", at.of_year, _whole(first)), _whole(start)) for first, start in starts)
    start = Case(whens, Case(((_is_leap(at.year), _whole(-60)),), _whole(-59)))
    return _plus(_minus(days, at.of_year), start)


def _is_leap(year: Expr) -> Expr:
    """Whether a year of an era is a leap year; the first one is."""
    ordinary = Compare("<>", Modulo(year, 100), _whole(0))
    return Logic(
        "and",
        (Compare("=", Modulo(year, 4), _whole(0)), Logic("or", (ordinary, Compare("=", year, _whole(0))))),
    )


def _cells(expr: Expr) -> Expr:
    """Days or microseconds as a number: adding zero makes one of it."""
    return Arithmetic("+", expr, _whole(0))


def _whole(value: int) -> Constant:
    return Constant(value, Type(NUMBER, value, value, 0, null=False))


def _as_expression(value: Expr | int) -> Expr:
    return _whole(value) if isinstance(value, int) else value


def _plus(left: Expr, right: Expr | int) -> Expr:
    return Arithmetic("+", left, _as_expression(right))


def _minus(left: Expr, right: Expr | int) -> Expr:
    return Arithmetic("-", left, _as_expression(right))


def _times(left: Expr, right: int) -> Expr:
    return Arithmetic("*", left, _whole(right))


def _over(left: Expr, right: int) -> Expr:
    return Quotient(left, _whole(right))
