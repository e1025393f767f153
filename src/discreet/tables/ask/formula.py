# SPDX-License-Identifier: Apache-2.0
"""Expressions as a person writes them in Python: `col("days") * 2 > 30`.

    col("age") >= 18                           a condition
    (col("a") + col("b")).clamp(0, 100)        a number, moved between two ends
    when(col("age") < 18).then("child").otherwise("adult")
    col("admitted").year                       a part of a date
    col("age").bucket([18, 65])                0, 1 or 2: how many edges are at or below

**Guarantee.** A formula is a tree of names and public values, and nothing is computed when it is made. It is the tree
that the same words of SQL would be: types, bounds and refusals are those of SQL, because they are its code.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp, generator
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Tokenizer

from discreet import check
from discreet.errors import BadParameter, RefusedQuestion
from discreet.tables.ask.leaf import exact

__all__ = [
    "Formula",
    "col",
    "formula",
    "greatest",
    "identifier",
    "least",
    "several",
    "tree",
    "when",
    "written",
]

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
#: Every word of SQL, to be on the safe side: a name that is one of them is put in quotes.
_WORDS = {word for phrase in Tokenizer.KEYWORDS for word in phrase.split()}


@dataclass(frozen=True, eq=False)
class Formula:
    """A value of one row.

    Conditions are joined by & and |, and turned by ~; `and`, `or` and `not` would ask for its truth at once.

    >>> (col("age") >= 18) & ~col("ward").is_in(["A", "B"])
    (age >= 18) AND (NOT (ward IN ('A', 'B')))
    """

    node: exp.Expression

    def __repr__(self) -> str:
        return written(self.node)

    def __add__(self, other: Any) -> Formula:
        return _binary(exp.Add, self, other)

    def __radd__(self, other: Any) -> Formula:
        return _binary(exp.Add, other, self)

    def __sub__(self, other: Any) -> Formula:
        return _binary(exp.Sub, self, other)

    def __rsub__(self, other: Any) -> Formula:
        return _binary(exp.Sub, other, self)

    def __mul__(self, other: Any) -> Formula:
        return _binary(exp.Mul, self, other)

    def __rmul__(self, other: Any) -> Formula:
        return _binary(exp.Mul, other, self)

    def __truediv__(self, other: Any) -> Formula:
        return _binary(exp.Div, self, other)

    def __rtruediv__(self, other: Any) -> Formula:
        return _binary(exp.Div, other, self)

    def __floordiv__(self, other: Any) -> Formula:
        return _binary(exp.IntDiv, self, other)

    def __pow__(self, other: Any) -> Formula:
        return _call("POWER", self, other)

    def __mod__(self, other: Any) -> Formula:
        return _call("MOD", self, other)

    def __neg__(self) -> Formula:
        return Formula(exp.Neg(this=_part(self)))

    def __abs__(self) -> Formula:
        return _call("ABS", self)

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return _binary(exp.EQ, self, other)

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return _binary(exp.NEQ, self, other)

    def __lt__(self, other: Any) -> Formula:
        return _binary(exp.LT, self, other)

    def __le__(self, other: Any) -> Formula:
        return _binary(exp.LTE, self, other)

    def __gt__(self, other: Any) -> Formula:
        return _binary(exp.GT, self, other)

    def __ge__(self, other: Any) -> Formula:
        return _binary(exp.GTE, self, other)

    __hash__ = object.__hash__
    __array_ufunc__ = None  # numpy's numbers leave the operation to the formula

    def __and__(self, other: Any) -> Formula:
        return _binary(exp.And, self, other)

    def __rand__(
        self, other: Any
    ) -> Formula:  # 3 & col(…): parentheses are missing, and the chain around it says so
        return _binary(exp.And, other, self)

    def __ror__(self, other: Any) -> Formula:
        return _binary(exp.Or, other, self)

    def __or__(self, other: Any) -> Formula:
        return _binary(exp.Or, self, other)

    def __invert__(self) -> Formula:
        return Formula(exp.Not(this=_part(self)))

    def __bool__(self) -> bool:
        raise RefusedQuestion(
            "DP705",
            "a condition has no truth of its own: it is true or false in each row.",
            why="Python asked for it, because of  and, or, not, in, if, or a chain like  0 < x < 9.",
            fix='(col("days") >= 3) & (col("days") < 9)   or  ~(col("days") > 3)   or  col("days").is_in([1, 2])',
        )

    def is_in(self, values: Sequence[Any]) -> Formula:
        """Whether it equals one of some public values."""
        return Formula(exp.In(this=_part(self), expressions=[tree(value) for value in several(values)]))

    def is_null(self) -> Formula:
        """Whether there is no value."""
        return Formula(exp.Is(this=_part(self), expression=exp.Null()))

    def is_not_null(self) -> Formula:
        """Whether there is a value."""
        return ~self.is_null()

    def is_between(self, low: Any, high: Any) -> Formula:
        """Whether it lies between two values, the ends included."""
        return Formula(exp.Between(this=_part(self), low=_part(low), high=_part(high)))

    def like(self, pattern: str) -> Formula:
        """Whether a text matches a public pattern: % is any run of characters, _ one."""
        return Formula(exp.Like(this=_part(self), expression=tree(pattern)))

    def clamp(self, low: Any, high: Any) -> Formula:
        """A number moved between two ends; a column needs no other bounds then."""
        return _call("CLAMP", self, *(_end(end) for end in (low, high)))

    def bucket(self, edges: Sequence[Any]) -> Formula:
        """How many of some rising public edges are at or below: 0 … len(edges)."""
        return _call("BUCKET", self, *(_end(edge) for edge in several(edges)))

    def fill_null(self, value: Any) -> Formula:
        """The value, or another one where there is none."""
        return _call("COALESCE", self, value)

    def floor(self) -> Formula:
        """The whole number at or below."""
        return _call("FLOOR", self)

    def round(self) -> Formula:
        """The nearest whole number, halves upwards; of a released number in `having` and `order_by` too."""
        return _call("ROUND", self)

    @property
    def year(self) -> Formula:
        """The year of a date."""
        return _call("YEAR", self)

    @property
    def quarter(self) -> Formula:
        """1 to 4."""
        return _call("QUARTER", self)

    @property
    def month(self) -> Formula:
        """1 to 12."""
        return _call("MONTH", self)

    @property
    def day(self) -> Formula:
        """1 to 31."""
        return _call("DAY", self)

    @property
    def weekday(self) -> Formula:
        """1 (Monday) to 7."""
        return _call("ISODOW", self)

    @property
    def hour(self) -> Formula:
        """0 to 23, in UTC."""
        return _call("HOUR", self)

    @property
    def minute(self) -> Formula:
        """0 to 59."""
        return _call("MINUTE", self)


@check.arguments
def col(name: str) -> Formula:
    """A column by its name, or as "table.column".

    >>> col("visits.days") + 1
    visits.days + 1
    """
    if not isinstance(name, str) or not name:
        raise BadParameter(
            "DP104",
            "a column is named by a text, and a condition is made of columns.",
            why="columns are those of the description.",
            fix='"days"   or  col("days")   or  col("days") > 3',
        )
    table, _, short = name.rpartition(".")
    return Formula(exp.Column(this=identifier(short), table=identifier(table) if table else None))


def identifier(name: str) -> exp.Identifier:
    """A name of a column or a table, in quotes where it would not be read back as itself."""
    plain = _PLAIN.fullmatch(name) and name.upper() not in _WORDS
    return exp.Identifier(this=name, quoted=not plain)


def formula(value: Any) -> Formula:
    """A formula as it is; a text as the column of that name."""
    return value if isinstance(value, Formula) else col(value)


@check.arguments
def least(*values: Any) -> Formula:
    """The least of several; NULL where any is NULL."""
    return _call("LEAST", *values)


@check.arguments
def greatest(*values: Any) -> Formula:
    """The greatest of several; NULL where any is NULL."""
    return _call("GREATEST", *values)


@dataclass(frozen=True)
class When:
    """Conditions and values so far; `then` or `otherwise` comes next."""

    pairs: tuple[tuple[exp.Expression, exp.Expression], ...] = ()
    condition: exp.Expression | None = None

    def when(self, condition: Formula) -> When:
        """Another condition, for rows in which none before was true."""
        return When(self.pairs, tree(condition)) if self.condition is None else _unfinished()

    def then(self, value: Any) -> When:
        """The value where the condition is true."""
        return _unfinished() if self.condition is None else When((*self.pairs, (self.condition, tree(value))))

    def otherwise(self, value: Any) -> Formula:
        """The value where none is true."""
        if self.condition is not None or not self.pairs:
            _unfinished()
        branches = [exp.If(this=when.copy(), true=then.copy()) for when, then in self.pairs]
        return Formula(exp.Case(ifs=branches, default=tree(value)))


@check.arguments
def when(condition: Formula) -> When:
    """A condition; `then` and `otherwise` say what its value is."""
    return When((), tree(condition))


def tree(value: Any) -> exp.Expression:
    """A formula's tree, or that of a public value; always a copy, because trees know their parents."""
    if isinstance(value, Formula):
        return value.node.copy()
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, date):
        kind = exp.DataType.Type.TIMESTAMP if isinstance(value, datetime) else exp.DataType.Type.DATE
        return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType(this=kind))
    return _number(value)


def written(node: exp.Expression) -> str:
    """A tree as the text of SQL that is read back as this tree."""
    return node.sql(dialect=_Written)


class _Written(Dialect):
    """SQL as `sql` reads it: whole numbers are divided by //."""

    class Generator(generator.Generator):
        """The base, with what it has no word for."""

        TRANSFORMS = {  # noqa: RUF012 - read by a metaclass
            **generator.Generator.TRANSFORMS,
            exp.IntDiv: lambda self, node: self.binary(node, "//"),
        }


def several(values: Any) -> list[Any]:
    """A list of values, and not one text, whose letters would be taken for values."""
    if isinstance(values, list | tuple | set | frozenset | range) and values:
        return sorted(values) if isinstance(values, set | frozenset) else list(values)
    raise BadParameter(
        "DP104",
        "this needs a list of values that is not empty.",
        why="they are public, and written down one by one.",
        fix=f"[{values!r}]" if isinstance(values, str | int | float) and values != "" else '["A", "B"]',
    )


def _number(value: Any) -> exp.Expression:
    exact(value)  # refuses what is no finite number
    if not isinstance(value, numbers.Integral | float | Decimal):
        raise BadParameter(
            "DP104",
            "a number must be an int, a float or a Decimal.",
            why="a question is recorded as it is written, in decimal digits.",
            fix="0.25",
        )
    digits = str(int(value)) if isinstance(value, numbers.Integral) else str(Decimal(str(value)))
    literal = exp.Literal.number(digits.removeprefix("-"))
    return exp.Neg(this=literal) if digits.startswith("-") else literal


def _end(value: Any) -> exp.Expression:
    return _number(value)


def _part(value: Any) -> exp.Expression:
    """A part of a longer expression, in parentheses where it has parts itself."""
    node = tree(value)
    return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Unary | exp.Predicate) else node


def _binary(kind: type[Any], left: Any, right: Any) -> Formula:
    first, run = tree(left), kind in {exp.And, exp.Or}
    if not (run and isinstance(first, kind)):  # a run of ANDs, or of ORs, is one
        first = _part(left)
    return Formula(kind(this=first, expression=_part(right)))


def _call(name: str, *arguments: Any) -> Formula:
    parts = [part if isinstance(part, exp.Expression) else tree(part) for part in arguments]
    return Formula(exp.Anonymous(this=name, expressions=parts))


def _unfinished() -> Any:
    raise BadParameter(
        "DP107",
        "when, then and otherwise follow each other.",
        why="every condition has one value, and what is left has one too.",
        fix='when(col("age") < 18).then("child").otherwise("adult")',
    )
