# SPDX-License-Identifier: Apache-2.0
"""Dates in SQL: EXTRACT, DATE_TRUNC, DATE_DIFF, intervals, AT TIME ZONE, conversions.

**Guarantee.** As `scalar`: a part of a node that is not read is refused, and the names of parts,
units and zones belong to the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.tables.algebra.civil import DATE_PARTS
from discreet.tables.ask import build, compare, dates
from discreet.tables.ask.build import Term
from discreet.tables.ask.sql.literals import literal_number, whole_number
from discreet.tables.ask.sql.refuse import node_text, question_error, require_only
from discreet.tables.data.rules import closest

if TYPE_CHECKING:
    from discreet.tables.ask.sql.scalar import Scalar

__all__ = ["DATE_FORMS", "DATE_FUNCTIONS", "add", "at_time_zone", "date_part", "extract", "subtract"]

Arguments = list[exp.Expression]
Maker = Callable[["Scalar", Arguments], Term]
#: Names of parts that mean the same.
_ALIASES = {
    "dayofyear": "doy",
    "weekofyear": "week",
    "isoweek": "week",
    "iso_year": "isoyear",
    "dayofmonth": "day",
}
_NEAREST = {"dow": "isodow", "dayofweek": "isodow", "weekday": "isodow"}


def extract(scalar: Scalar, node: exp.Expression) -> Term:
    """EXTRACT(part FROM d)."""
    require_only(node, "this", "expression")
    return date_part(scalar, node.this.name, node.expression)


def date_part(scalar: Scalar, name: str, node: exp.Expression) -> Term:
    """The part of a date with this name."""
    part = _part_name(name)
    if part in DATE_PARTS:
        return dates.date_part(part, scalar.term(node))
    nearest = _NEAREST.get(part) or closest(part, DATE_PARTS)
    raise question_error(
        "DP705",
        f"{name} is not a supported part of a date.",
        "engines count days of the week from different days."
        if part in _NEAREST
        else "engines disagree on it.",
        f"EXTRACT({nearest} FROM {node_text(node)})   or, in its place, one of {', '.join(DATE_PARTS)}",
    )


def add(scalar: Scalar, node: exp.Expression) -> Term:
    """left + right, where one may be a date and the other an interval or a number of days."""
    require_only(node, "this", "expression")
    left, right = node.this, node.expression
    if isinstance(_bare(left), exp.Interval):
        left, right = right, left
    if isinstance(_bare(right), exp.Interval):
        return dates.shift(scalar.term(left), _interval(_bare(right)))
    a, b = scalar.term(left), scalar.term(right)
    for date, number in ((a, b), (b, a)):
        if dates.is_dated(date):
            return dates.shift(date, _days(number))
    return build.arithmetic("+", a, b)


def subtract(scalar: Scalar, node: exp.Expression) -> Term:
    """left - right: of numbers, of two dates, or of a date and an interval or a number of days."""
    require_only(node, "this", "expression")
    if isinstance(_bare(node.expression), exp.Interval):
        return dates.shift(scalar.term(node.this), _interval(_bare(node.expression)).times(-1))
    a, b = scalar.term(node.this), scalar.term(node.expression)
    if dates.is_dated(a) and dates.is_dated(b):
        return dates.days_between(a, b)
    return dates.shift(a, _days(b).times(-1)) if dates.is_dated(a) else build.arithmetic("-", a, b)


def at_time_zone(scalar: Scalar, node: exp.Expression) -> Term:
    """seen_at AT TIME ZONE 'Europe/Berlin'."""
    require_only(node, "this", "zone")
    zone = node.args["zone"]
    if not isinstance(zone, exp.Literal) or not zone.args.get("is_string"):
        raise question_error(
            "DP705",
            "the time zone must be a text in quotes.",
            "it belongs to the question, and cannot come from the data.",
            "seen_at AT TIME ZONE 'Europe/Berlin'",
        )
    return dates.at_time_zone(scalar.term(node.this), zone.this)


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _interval(node: exp.Expression) -> dates.Interval:
    require_only(node, "this", "unit")
    value, unit = node.args.get("this"), node.args.get("unit")
    name = "" if unit is None else str(unit.name).lower()
    if isinstance(value, exp.Literal) and value.args.get("is_string"):
        return dates.interval(None, value.this, name)
    return (
        dates.interval(literal_number(value, "an interval"), "", name)
        if value is not None
        else dates.interval(None, "", name)
    )


def _days(number: Term) -> dates.Interval:
    """A whole number of days, as a literal."""
    if isinstance(number, Fraction) and number.denominator == 1 and abs(number) < 10**9:
        return dates.Interval(days=int(number))
    raise question_error(
        "DP705",
        "only a literal number of days or an interval can be added to a date.",
        "how far a date moves belongs to the question.",
        "came_on + 7   or   came_on + INTERVAL 1 MONTH",
    )


def _part_name(name: str) -> str:
    lowered = name.lower()
    single = lowered.removesuffix("s")
    return _ALIASES.get(lowered, single if single in DATE_PARTS else lowered)


def _quoted_part(node: exp.Expression, example: str) -> str:
    """The name of a part, as a text in quotes or as a bare word."""
    if isinstance(node, exp.Literal) and node.args.get("is_string"):
        return _part_name(node.this)
    raise question_error(
        "DP702",
        "the part of a date must be a text in quotes.",
        "it belongs to the question, and cannot come from the data.",
        example,
    )


def _truncate(scalar: Scalar, arguments: Arguments) -> Term:
    part = _quoted_part(arguments[0], "DATE_TRUNC('month', came_on)")
    return dates.truncate(part, scalar.term(arguments[1]))


def _date_part(scalar: Scalar, arguments: Arguments) -> Term:
    return date_part(scalar, _quoted_part(arguments[0], "DATE_PART('year', came_on)"), arguments[1])


def _difference(scalar: Scalar, arguments: Arguments) -> Term:
    part = _quoted_part(arguments[0], "DATE_DIFF('day', came_on, left_on)")
    return dates.difference(part, scalar.term(arguments[1]), scalar.term(arguments[2]))


def _shift_by(sign: int) -> Maker:
    def make(scalar: Scalar, arguments: Arguments) -> Term:
        by = _bare(arguments[1])
        moved = _interval(by) if isinstance(by, exp.Interval) else _days(scalar.term(by))
        return dates.shift(scalar.term(arguments[0]), moved.times(sign))

    return make


def _single(name: str) -> Maker:
    return lambda scalar, arguments: date_part(scalar, name, arguments[0])


def _names() -> Sequence[str]:
    return [*DATE_PARTS, "dayofyear", "weekofyear", "dayofmonth"]


def _make_date(_: Scalar, arguments: Arguments) -> Term:
    """MAKE_DATE(2026, 1, 31), which is DATE '2026-01-31'."""
    year, month, day = (whole_number(part, "a part of MAKE_DATE", 1, 9999) for part in arguments)
    return compare.as_date(f"{year:04}-{month:02}-{day:02}")


#: Functions of dates: their least and greatest number of arguments, and what builds the term.
DATE_FUNCTIONS: dict[str, tuple[int, int, Maker]] = {
    "DATE_TRUNC": (2, 2, _truncate),
    "MAKE_DATE": (3, 3, _make_date),
    "DATE_PART": (2, 2, _date_part),
    "DATE_DIFF": (3, 3, _difference),
    "DATEDIFF": (3, 3, _difference),
    "DATE_ADD": (2, 2, _shift_by(1)),
    "DATE_SUB": (2, 2, _shift_by(-1)),
    "DATE": (1, 1, lambda scalar, arguments: dates.to_date(scalar.term(arguments[0]))),
    **{name.upper(): (1, 1, _single(name)) for name in _names()},
}
#: An example of each with several arguments.
DATE_FORMS = {
    "DATE_TRUNC": "DATE_TRUNC('month', came_on)",
    "MAKE_DATE": "MAKE_DATE(2026, 1, 31)",
    "DATE_PART": "DATE_PART('year', came_on)",
    "DATE_DIFF": "DATE_DIFF('day', came_on, left_on)",
    "DATEDIFF": "DATEDIFF('day', came_on, left_on)",
    "DATE_ADD": "DATE_ADD(came_on, INTERVAL 1 MONTH)",
    "DATE_SUB": "DATE_SUB(came_on, INTERVAL 1 MONTH)",
}
