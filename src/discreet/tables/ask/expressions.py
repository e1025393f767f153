# SPDX-License-Identifier: Apache-2.0
"""Expressions in Python: `col("days") * 2 > 30`.

    col("age") >= 18                           a condition
    (col("a") + col("b")).clamp(0, 100)        a number, clamped between two ends
    when(col("age") < 18).then("child").otherwise("adult")
    col("admitted").year                       a part of a date
    col("age").bucket([18, 65])                0, 1 or 2: how many edges are at or below

**Guarantee.** An expression is a tree of names and public values. Building it computes nothing. It
is the same tree that the equivalent SQL would give, so its types, bounds and refusals are those of
SQL.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from sqlglot import exp, generator
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Tokenizer

from discreet import check
from discreet.errors import BadParameter, RefusedQuestion
from discreet.tables.algebra.types import Value
from discreet.tables.ask.columns import exact_number

#: A number in Python.
Number = int | float | Decimal

__all__ = [
    "Expression",
    "Number",
    "Operand",
    "as_expression",
    "col",
    "greatest",
    "identifier",
    "least",
    "sql_text",
    "syntax_tree",
    "value_list",
    "when",
]

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
#: Every keyword of SQL: a name that is a keyword is quoted.
_WORDS = {word for phrase in Tokenizer.KEYWORDS for word in phrase.split()}


#: The most negative amount of `shift`.
_LONGEST = 10**8
#: What an expression can be combined with: another expression or a public value, and a date with a length of time.
Operand: TypeAlias = "Expression | Value | timedelta"


@dataclass(frozen=True, eq=False)
class Expression:
    """A value of one row, computed from columns and public values; `dp.col` makes one.

    Combine conditions with & and |, and negate them with ~; Python's `and`, `or` and `not` are
    refused.

    **Guarantee.** An expression holds names and public values only. It never reads a row.

    >>> (col("age") >= 18) & ~col("ward").is_in(["A", "B"])
    (age >= 18) AND (NOT (ward IN ('A', 'B')))
    """

    node: exp.Expression

    def __repr__(self) -> str:
        return sql_text(self.node)

    def __add__(self, other: Operand) -> Expression:
        return _binary(exp.Add, self, other)

    def __radd__(self, other: Operand) -> Expression:
        return _binary(exp.Add, other, self)

    def __sub__(self, other: Operand) -> Expression:
        return _binary(exp.Sub, self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return _binary(exp.Sub, other, self)

    def __mul__(self, other: Operand) -> Expression:
        return _binary(exp.Mul, self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return _binary(exp.Mul, other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return _binary(exp.Div, self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return _binary(exp.Div, other, self)

    def __floordiv__(self, other: Operand) -> Expression:
        return _binary(exp.IntDiv, self, other)

    def __pow__(self, other: Operand) -> Expression:
        return _call("POWER", self, other)

    def __mod__(self, other: Operand) -> Expression:
        return _call("MOD", self, other)

    def __neg__(self) -> Expression:
        return Expression(exp.Neg(this=_operand(self)))

    def __abs__(self) -> Expression:
        return _call("ABS", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _binary(exp.EQ, self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _binary(exp.NEQ, self, other)

    def __lt__(self, other: Operand) -> Expression:
        return _binary(exp.LT, self, other)

    def __le__(self, other: Operand) -> Expression:
        return _binary(exp.LTE, self, other)

    def __gt__(self, other: Operand) -> Expression:
        return _binary(exp.GT, self, other)

    def __ge__(self, other: Operand) -> Expression:
        return _binary(exp.GTE, self, other)

    __hash__ = object.__hash__
    #: Numbers of numpy leave the operation to the expression.
    __array_ufunc__ = None

    def __and__(self, other: Operand) -> Expression:
        return _binary(exp.And, self, other)

    # In 3 & col(…) parentheses are missing; the chained comparison around it is refused.
    def __rand__(self, other: Operand) -> Expression:
        return _binary(exp.And, other, self)

    def __ror__(self, other: Operand) -> Expression:
        return _binary(exp.Or, other, self)

    def __or__(self, other: Operand) -> Expression:
        return _binary(exp.Or, self, other)

    def __invert__(self) -> Expression:
        return Expression(exp.Not(this=_operand(self)))

    def __bool__(self) -> bool:
        raise RefusedQuestion(
            "DP705",
            "a condition has no single truth value; it is true or false in each row.",
            why="Python needs one for  and, or, not, in, if  and for chains such as  0 < x < 9.",
            fix='(col("days") >= 3) & (col("days") < 9)   or  ~(col("days") > 3)   or  col("days").is_in([1, 2])',
        )

    def is_in(self, values: Collection[Value]) -> Expression:
        """Whether it equals one of the public values.

        >>> col("ward").is_in(["A", "B"])
        ward IN ('A', 'B')
        """
        return Expression(
            exp.In(this=_operand(self), expressions=[syntax_tree(value) for value in value_list(values)])
        )

    def is_null(self) -> Expression:
        """Whether it is NULL."""
        return Expression(exp.Is(this=_operand(self), expression=exp.Null()))

    def is_not_null(self) -> Expression:
        """Whether it is not NULL."""
        return ~self.is_null()

    def is_between(self, low: Operand, high: Operand) -> Expression:
        """Whether it lies between two values, including the ends."""
        return Expression(exp.Between(this=_operand(self), low=_operand(low), high=_operand(high)))

    def like(self, pattern: str) -> Expression:
        """Whether a text matches a public pattern: % matches any characters, _ a single one."""
        return Expression(exp.Like(this=_operand(self), expression=syntax_tree(pattern)))

    def matches(self, pattern: str) -> Expression:
        """Whether a part of a text matches a public regular expression, such as "^I2[0-5]"."""
        return _call("REGEXP_MATCHES", self, pattern)

    def clamp(self, low: Number, high: Number) -> Expression:
        """A number clamped between two ends; a clamped column needs no other bounds.

        >>> col("cost").clamp(0, 500)
        CLAMP(cost, 0, 500)
        """
        return _call("CLAMP", self, *(_end(end) for end in (low, high)))

    def bucket(self, edges: Sequence[Number]) -> Expression:
        """How many of the increasing public edges are at or below it: 0 … len(edges).

        >>> col("age").bucket([18, 65])
        BUCKET(age, 18, 65)
        """
        return _call("BUCKET", self, *(_end(edge) for edge in value_list(edges)))

    def fill_null(self, value: Operand) -> Expression:
        """The value, or `value` where it is NULL."""
        return _call("COALESCE", self, value)

    def floor(self) -> Expression:
        """The whole number at or below."""
        return _call("FLOOR", self)

    def round(self) -> Expression:
        """The nearest whole number, halves upwards; also of a released number in `having` and
        `order_by`.
        """
        return _call("ROUND", self)

    def sqrt(self) -> Expression:
        """The square root; NULL where it is negative."""
        return _call("SQRT", self)

    def log(self) -> Expression:
        """The natural logarithm; NULL where a whole number is not above 0."""
        return _call("LN", self)

    def exp(self) -> Expression:
        """e to the power of the number."""
        return _call("EXP", self)

    def upper(self) -> Expression:
        """A text with the letters a to z in upper case."""
        return _call("UPPER", self)

    def lower(self) -> Expression:
        """A text with the letters A to Z in lower case."""
        return _call("LOWER", self)

    def trim(self) -> Expression:
        """A text without spaces at its ends."""
        return _call("TRIM", self)

    def substring(self, start: int, length: int) -> Expression:
        """So many characters of a text from the one at `start`; the first is 1.

        >>> col("ward").substring(1, 2)
        SUBSTR(ward, 1, 2)
        """
        return _call("SUBSTR", self, *(_end(end) for end in (start, length)))

    def length(self) -> Expression:
        """The number of characters of a text."""
        return _call("LENGTH", self)

    def join(self, *others: Operand) -> Expression:
        """A text followed by others; NULL where any is NULL.

        >>> col("ward").join("-", col("room"))
        ward || '-' || room
        """
        joined = syntax_tree(self)
        for other in others:
            joined = exp.DPipe(this=joined, expression=_operand(other), safe=True)
        return Expression(joined)

    @property
    def year(self) -> Expression:
        """The year of a date."""
        return _call("YEAR", self)

    @property
    def quarter(self) -> Expression:
        """The quarter of a date, 1 to 4."""
        return _call("QUARTER", self)

    @property
    def month(self) -> Expression:
        """The month of a date, 1 to 12."""
        return _call("MONTH", self)

    @property
    def day(self) -> Expression:
        """The day of the month, 1 to 31."""
        return _call("DAY", self)

    @property
    def weekday(self) -> Expression:
        """The day of the week, 1 (Monday) to 7."""
        return _call("ISODOW", self)

    @property
    def hour(self) -> Expression:
        """The hour of a moment in UTC, 0 to 23."""
        return _call("HOUR", self)

    @property
    def minute(self) -> Expression:
        """The minute of a moment, 0 to 59."""
        return _call("MINUTE", self)

    @property
    def second(self) -> Expression:
        """The second of a moment, 0 to 59."""
        return _call("SECOND", self)

    @property
    def week(self) -> Expression:
        """The week of ISO 8601, 1 to 53; it belongs to the year `isoyear`."""
        return _call("WEEK", self)

    @property
    def isoyear(self) -> Expression:
        """The year that the week of ISO 8601 belongs to."""
        return _call("ISOYEAR", self)

    @property
    def day_of_year(self) -> Expression:
        """The day of the year, 1 to 366."""
        return _call("DOY", self)

    @property
    def date(self) -> Expression:
        """The day of a moment in UTC."""
        return _call("DATE", self)

    def truncate(self, part: str) -> Expression:
        """The first day of a "year", "quarter", "month" or "week", or the day; of a moment also the
        beginning of an "hour", "minute" or "second".

        >>> col("came_on").truncate("month")
        DATE_TRUNC('month', came_on)
        """
        return _call("DATE_TRUNC", syntax_tree(part), self)

    def shift(self, *, months: int = 0, days: int = 0, seconds: int = 0) -> Expression:
        """A date or moment so much later: months first, then days and seconds.

        >>> col("came_on").shift(months=1)
        came_on + INTERVAL '1 month'
        """
        amounts = {
            "month": check.whole(at_least=-_LONGEST, months=months),
            "day": check.whole(at_least=-_LONGEST, days=days),
            "second": check.whole(at_least=-_LONGEST, seconds=seconds),
        }
        text = " ".join(f"{count} {unit}" for unit, count in amounts.items() if count)
        return _binary(exp.Add, self, Expression(_interval(text or "0 day")))

    def until(self, other: Operand, unit: str) -> Expression:
        """How many beginnings of a unit, such as "day" or "month", lie after it, up to another
        date.

        >>> col("came_on").until(col("left_on"), "day")
        DATE_DIFF('day', came_on, left_on)
        """
        return _call("DATE_DIFF", syntax_tree(unit), self, other)

    def at_time_zone(self, zone: str) -> Expression:
        """What clocks of a time zone show at a moment.

        >>> col("seen_at").at_time_zone("Europe/Berlin").hour
        HOUR(seen_at AT TIME ZONE 'Europe/Berlin')
        """
        return Expression(exp.AtTimeZone(this=_operand(self), zone=syntax_tree(zone)))


@check.arguments
def col(name: str) -> Expression:
    """A column by its name, or as "table.column".

    **Guarantee.** The result is a name; no data are read.

    >>> col("visits.days") + 1
    visits.days + 1
    """
    if not isinstance(name, str) or not name:
        raise BadParameter(
            "DP104",
            "a column needs a name that is a text, and not empty.",
            why="an expression uses columns of the description by name.",
            fix='"days"   or  col("days")   or  col("days") > 3',
        )
    table, _, short = name.rpartition(".")
    return Expression(exp.Column(this=identifier(short), table=identifier(table) if table else None))


def identifier(name: str) -> exp.Identifier:
    """The name of a column or a table, quoted where SQL needs it."""
    plain = _PLAIN.fullmatch(name) and name.upper() not in _WORDS
    return exp.Identifier(this=name, quoted=not plain)


def as_expression(value: object) -> Expression:
    """An expression unchanged; a text as the column of that name."""
    return value if isinstance(value, Expression) else col(value)  # type: ignore[arg-type]  # refused there


@check.arguments
def least(*values: Operand) -> Expression:
    """The smallest of several values of a row; NULL where any is NULL.

    >>> least(col("days"), 7)
    LEAST(days, 7)
    """
    return _call("LEAST", *values)


@check.arguments
def greatest(*values: Operand) -> Expression:
    """The greatest of several values of a row; NULL where any is NULL.

    >>> greatest(col("days"), 7)
    GREATEST(days, 7)
    """
    return _call("GREATEST", *values)


@dataclass(frozen=True)
class CaseBuilder:
    """An unfinished CASE: `then` gives the value of the last condition, `otherwise` finishes it.

    >>> when(col("age") < 18).then("child").otherwise("adult")
    CASE WHEN age < 18 THEN 'child' ELSE 'adult' END
    """

    pairs: tuple[tuple[exp.Expression, exp.Expression], ...] = ()
    condition: exp.Expression | None = None

    def when(self, condition: Expression) -> CaseBuilder:
        """Another condition, for rows in which none before is true."""
        return (
            CaseBuilder(self.pairs, syntax_tree(condition)) if self.condition is None else _raise_unfinished()
        )

    def then(self, value: Operand) -> CaseBuilder:
        """The value of rows in which the condition is true."""
        return (
            _raise_unfinished()
            if self.condition is None
            else CaseBuilder((*self.pairs, (self.condition, syntax_tree(value))))
        )

    def otherwise(self, value: Operand) -> Expression:
        """The expression, with the value of rows in which no condition is true."""
        if self.condition is not None or not self.pairs:
            _raise_unfinished()
        branches = [exp.If(this=when.copy(), true=then.copy()) for when, then in self.pairs]
        return Expression(exp.Case(ifs=branches, default=syntax_tree(value)))


@check.arguments
def when(condition: Expression) -> CaseBuilder:
    """Start a CASE with a condition; `then` and `otherwise` give the values.

    >>> when(col("urgent")).then(1).otherwise(0)
    CASE WHEN urgent THEN 1 ELSE 0 END
    """
    return CaseBuilder((), syntax_tree(condition))


def syntax_tree(value: object) -> exp.Expression:
    """The tree of an expression or of a public value; always a copy, because nodes know their
    parents.
    """
    if isinstance(value, Expression):
        return value.node.copy()
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, timedelta):
        return _interval(f"{value.days} day {value.seconds} second {value.microseconds} microsecond")
    if isinstance(value, date):
        kind = exp.DataType.Type.TIMESTAMP if isinstance(value, datetime) else exp.DataType.Type.DATE
        return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType(this=kind))
    return _number(value)


def sql_text(node: exp.Expression) -> str:
    """A tree as SQL, which is parsed to the same tree."""
    return node.sql(dialect=_Written)


class _Writer(generator.Generator):
    """The generator of sqlglot, with // for DIV."""

    TRANSFORMS = {  # noqa: RUF012 - read by a metaclass
        **generator.Generator.TRANSFORMS,
        exp.IntDiv: lambda self, node: self.binary(node, "//"),
    }


class _Written(Dialect):
    """SQL in which // divides whole numbers, as `sql` reads it."""

    Generator = _Writer


def value_list(values: object) -> list[Any]:
    """A list of values; a single text is refused, because its letters would be the values."""
    if isinstance(values, list | tuple | set | frozenset | range) and values:
        return sorted(values) if isinstance(values, set | frozenset) else list(values)
    raise BadParameter(
        "DP104",
        "values must be a list, and not empty.",
        why="they are public, and the question lists each of them.",
        fix=f"[{values!r}]" if isinstance(values, str | int | float) and values != "" else '["A", "B"]',
    )


def _number(value: object) -> exp.Expression:
    exact_number(value)  # raises unless the number is finite
    if not isinstance(value, numbers.Integral | float | Decimal):
        raise BadParameter(
            "DP104",
            "a number must be an int, a float or a Decimal.",
            why="the ledger records a question as text, in decimal digits.",
            fix="0.25",
        )
    digits = str(int(value)) if isinstance(value, numbers.Integral) else str(Decimal(str(value)))
    literal = exp.Literal.number(digits.removeprefix("-"))
    return exp.Neg(this=literal) if digits.startswith("-") else literal


def _interval(text: str) -> exp.Expression:
    return exp.Interval(this=exp.Literal.string(text))


def _end(value: object) -> exp.Expression:
    return _number(value)


def _operand(value: object) -> exp.Expression:
    """A node as an operand, in parentheses if it has operands itself."""
    node = syntax_tree(value)
    return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Unary | exp.Predicate) else node


def _binary(kind: type[Any], left: object, right: object) -> Expression:
    first, run = syntax_tree(left), kind in {exp.And, exp.Or}
    if not (run and isinstance(first, kind)):  # ANDs, or ORs, in a row need no parentheses
        first = _operand(left)
    return Expression(kind(this=first, expression=_operand(right)))


def _call(name: str, *arguments: object) -> Expression:
    parts = [part if isinstance(part, exp.Expression) else syntax_tree(part) for part in arguments]
    return Expression(exp.Anonymous(this=name, expressions=parts))


def _raise_unfinished() -> NoReturn:
    raise BadParameter(
        "DP107",
        "when, then and otherwise must follow each other.",
        why="each condition needs one value, and so does the rest.",
        fix='when(col("age") < 18).then("child").otherwise("adult")',
    )
