# SPDX-License-Identifier: Apache-2.0
"""SQL terms as trees: sqlglot quotes names and writes values, and every operand stands in brackets.

**Guarantee.** No text is pasted into SQL. `binary` brackets its operands itself, because sqlglot
writes a - (b - c) as a - b - c. A tree is used once; where it is needed twice it is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp

__all__ = [
    "BIGINT",
    "DOUBLE",
    "UNIT",
    "Term",
    "add",
    "binary",
    "both",
    "call",
    "cases",
    "cast",
    "column",
    "date",
    "everyone",
    "is_null",
    "name_term",
    "negate",
    "nothing",
    "number",
    "real",
    "text",
    "times",
    "truth",
]

if TYPE_CHECKING:
    Term = exp.Expr
else:
    Term = object

BIGINT, DOUBLE = "BIGINT", "DOUBLE"
#: The column that says whose a row is.
UNIT = "u"

_ATOMS = (exp.Column, exp.Literal, exp.Cast, exp.Case, exp.Paren, exp.Anonymous, exp.Null, exp.Boolean)


def column(name: str, table: str | None = None) -> Term:
    """A column, by its exact name."""
    return exp.column(name, table=table, quoted=True)


def cast(term: Term, kind: str | exp.DataType) -> Term:
    """A term as another type of SQL."""
    return exp.Cast(this=term, to=kind.copy() if isinstance(kind, exp.DataType) else _type(kind).copy())


@cache
def _type(kind: str) -> exp.DataType:
    return exp.DataType.build(kind)


def number(value: int, kind: str | exp.DataType = BIGINT) -> Term:
    """A whole number; its type is said, because an engine would choose 32 bits for a small one."""
    return cast(exp.Literal.number(value), kind)


def real(value: float) -> Term:
    """A double; written as text, because decimals with many digits are rounded twice on their way
    to a double.
    """
    return cast(exp.Literal.string(repr(value)), DOUBLE)


def text(value: str) -> Term:
    """A text."""
    return exp.Literal.string(value)


def date(value: str) -> Term:
    """A date, as YYYY-MM-DD."""
    return cast(text(value), "DATE")


def truth(value: bool) -> Term:  # noqa: FBT001 - the value itself
    """True or false."""
    return exp.Boolean(this=value)


def nothing(kind: str) -> Term:
    """NULL of a type."""
    return cast(exp.Null(), kind)


def binary(kind: type[exp.Binary], left: Term, right: Term) -> Term:
    """left ∘ right."""
    return kind(this=_apart(left), expression=_apart(right))


def add(*items: Term) -> Term:
    """The sum of one or more terms."""
    total = items[0]
    for item in items[1:]:
        total = binary(exp.Add, total, item)
    return total


def times(left: Term, right: Term) -> Term:
    """left · right."""
    return binary(exp.Mul, left, right)


def both(conditions: Iterable[Term], kind: type[exp.Connector] = exp.And) -> Term:
    """AND (or OR) of one or more conditions."""
    first, *others = conditions
    for other in others:
        first = kind(this=_apart(first), expression=_apart(other))
    return first


def negate(term: Term) -> Term:
    """NOT."""
    return exp.Not(this=_apart(term))


def is_null(term: Term) -> Term:
    """Whether it is NULL."""
    return exp.Is(this=_apart(term), expression=exp.Null())


def cases(whens: Sequence[tuple[Term, Term]], otherwise: Term) -> Term:
    """The value of the first condition that is true."""
    return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in whens], default=otherwise)


def call(name: str, *arguments: Term) -> Term:
    """A function of the engine, by its name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def everyone() -> Term:
    """COUNT(*)."""
    return exp.Count(this=exp.Star())


def name_term(term: Term, name: str) -> Term:
    """A term with the name that it has as a column."""
    return exp.Alias(this=term, alias=exp.to_identifier(name, quoted=True))


def _apart(term: Term) -> Term:
    return term if isinstance(term, _ATOMS) else exp.Paren(this=term)
