# SPDX-License-Identifier: Apache-2.0
"""Parts of dates and moments, in whole-number arithmetic alone.

**Guarantee.** `spelled_out` gives an expression without `DatePart`, equal to it on every row. It is the same on every engine,
because no engine's calendar is asked: days are counted from 1 March of year 0, in eras of 400 years (146,097 days),
as in the proleptic Gregorian calendar of `datetime`.
"""

from __future__ import annotations

from discreet.tables.data.expr import Arithmetic, Case, Compare, Constant, DatePart, Expr, Modulo, Quotient
from discreet.tables.data.types import MOMENT, NUMBER, Type

__all__ = ["spelled_out"]

_DAY = 86_400_000_000  # microseconds
_ERA = 146_097  # days of 400 years
_MARCH = 719_468  # days from 0000-03-01 to 1970-01-01


def spelled_out(part: DatePart) -> Expr:
    """The same whole number from the cells of a date or moment."""
    if part.part in {"hour", "minute"}:
        unit, length = (3_600_000_000, 24) if part.part == "hour" else (60_000_000, 60)
        return Modulo(_over(_cells(part.of), unit), length)
    days = _over(_cells(part.of), _DAY) if part.of.type.kind == MOMENT else _cells(part.of)
    if part.part == "isodow":  # 1970-01-01 was a Thursday
        return _plus(Modulo(_plus(days, 3), 7), 1)
    return _civil(days, part.part)


def _civil(days: Expr, part: str) -> Expr:
    """Year, quarter, month or day; the year of an era, and its day, begin in March."""
    shifted = _plus(days, _MARCH)
    of_era = Modulo(shifted, _ERA)
    leaps = _minus(_plus(_minus(of_era, _over(of_era, 1460)), _over(of_era, 36_524)), _over(of_era, 146_096))
    year = _over(leaps, 365)
    before = _minus(_plus(_times(year, 365), _over(year, 4)), _over(year, 100))
    of_year = _minus(of_era, before)
    month = _over(_plus(_times(of_year, 5), 2), 153)  # 0 is March
    if part == "day":
        return _plus(_minus(of_year, _over(_plus(_times(month, 153), 2), 5)), 1)
    civil_month = _plus(Modulo(_plus(month, 2), 12), 1)
    if part == "month":
        return civil_month
    if part == "quarter":
        return _plus(_over(_minus(civil_month, 1), 3), 1)
    next_year = Case(((Compare(">=", month, _whole(10)), _whole(1)),), _whole(0))
    return _plus(_plus(_times(_over(shifted, _ERA), 400), year), next_year)


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
