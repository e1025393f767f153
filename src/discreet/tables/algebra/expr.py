# SPDX-License-Identifier: Apache-2.0
"""Typed expressions on one row: total, exact, with bounds that are proved when they are built.

**Guarantee.** The value of an expression is a function of one row and of public tables, and the
same on every engine: NULL, a whole number of cells between `type.low` and `type.high`, a text or a
truth value. No row makes it fail.

Why it holds: a column is clamped and rounded to its grid where it is read. After that there is only
arithmetic on whole numbers, and the bounds of a result are the hull of the corners of its operands.
Division by zero gives NULL. NULL in gives NULL out, unless a class says otherwise. Engines
implement exactly the classes here, and `tests/tables/reference.py` defines the meaning that all of
them are compared with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np

from discreet.errors import RefusedQuestion
from discreet.tables.algebra import civil
from discreet.tables.algebra.civil import DATE_PARTS
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TRUTH, Type

__all__ = [
    "Arithmetic",
    "AsDate",
    "AsMoment",
    "Bucket",
    "Case",
    "Clamp",
    "Coalesce",
    "Compare",
    "Constant",
    "DatePart",
    "Expr",
    "Extreme",
    "IsIn",
    "IsNull",
    "Like",
    "Logic",
    "Modulo",
    "Not",
    "Quotient",
    "Read",
    "Root",
    "Scaled",
    "Shifted",
    "Steps",
    "Truncated",
    "align",
    "all_parts",
    "leaves",
]


@dataclass(frozen=True)
class Expr(ABC):
    """One value for each row."""

    @property
    @abstractmethod
    def type(self) -> Type:
        """The kind and the bounds of its values."""

    @cached_property
    def parts(self) -> tuple[Expr, ...]:
        """Its operands, in order."""
        held = (getattr(self, field.name) for field in fields(self))
        return tuple(inner for value in held for inner in _inside(value))


def all_parts(expr: Expr) -> Iterator[Expr]:
    """An expression, and everything that it is made of."""
    yield expr
    for part in expr.parts:
        yield from all_parts(part)


def leaves(expr: Expr) -> Iterator[Read]:
    """The columns that an expression reads."""
    return (part for part in all_parts(expr) if isinstance(part, Read))


@dataclass(frozen=True)
class Read(Expr):
    """The value of a column.

    number: NaN → NULL; ±∞ and all other numbers are clamped to the bounds of the type, then ⌊x ·
    2^places⌋; text in a number column that is no number → NULL; −0.0 is 0. date, moment: clamped to
    the bounds. text, truth: unchanged.
    """

    table: str
    column: str
    of: Type

    @property
    def type(self) -> Type:
        return self.of


@dataclass(frozen=True)
class Constant(Expr):
    """A public value: cells of a number, a text, True, False or None."""

    value: Any
    of: Type

    @property
    def type(self) -> Type:
        return self.of


@dataclass(frozen=True)
class Scaled(Expr):
    """A number on a finer grid: cells · 2^(places − old places); exact."""

    of: Expr
    places: int

    @cached_property
    def type(self) -> Type:
        old, shift = self.of.type, self.places - self.of.type.places
        if shift < 0:
            raise ValueError("a grid is only ever refined")
        return Type(NUMBER, old.low << shift, old.high << shift, self.places, old.null)


@dataclass(frozen=True)
class Arithmetic(Expr):
    """left + right, left - right (on the same grid), left * right (places add)."""

    op: str  # "+", "-", "*"
    left: Expr
    right: Expr

    @cached_property
    def type(self) -> Type:
        a, b = self.left.type, self.right.type
        null = a.null or b.null
        if self.op == "*":
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            if self.left == self.right and a.low <= 0 <= a.high:
                corners = [0, a.low**2, a.high**2]
            return Type(NUMBER, min(corners), max(corners), a.places + b.places, null)
        assert a.places == b.places, "put both on one grid first: align()"
        if self.op == "+":
            return Type(NUMBER, a.low + b.low, a.high + b.high, a.places, null)
        return Type(NUMBER, a.low - b.high, a.high - b.low, a.places, null)


@dataclass(frozen=True)
class Quotient(Expr):
    """⌊left / right · 2^places⌋, rounded towards minus infinity; NULL where right is 0."""

    left: Expr
    right: Expr
    places: int = 0

    @cached_property
    def type(self) -> Type:
        a, b = self.left.type, self.right.type
        shift = self.places + b.places - a.places
        assert shift >= 0, "scale the numerator first"
        Type(
            NUMBER, a.low << shift, a.high << shift
        )  # refuses a numerator that would leave 64 bits on the way
        divisors = [end for end in (b.low, b.high) if end != 0]
        divisors += [-1] if b.low < 0 < b.high or b.low < 0 == b.high else []
        divisors += [1] if b.low < 0 < b.high or b.low == 0 < b.high else []
        corners = [(n << shift) // d for n in (a.low, a.high) for d in divisors] or [0]
        null = a.null or b.null or b.low <= 0 <= b.high
        return Type(NUMBER, min(corners), max(corners), self.places, null)

    @property
    def shift(self) -> int:
        """By how many bits the numerator is shifted before it is divided."""
        return self.places + self.right.type.places - self.left.type.places


@dataclass(frozen=True)
class Modulo(Expr):
    """left modulo a positive whole constant, in 0 … divisor − 1, whatever the sign of left; grids
    must be whole.
    """

    left: Expr
    divisor: int

    @cached_property
    def type(self) -> Type:
        assert self.left.type.places == 0
        assert self.divisor > 0
        return Type(NUMBER, 0, self.divisor - 1, 0, self.left.type.null)


@dataclass(frozen=True)
class Extreme(Expr):
    """The least or the greatest of several numbers on one grid; NULL where any is NULL."""

    op: str  # "least", "greatest"
    items: tuple[Expr, ...]

    @cached_property
    def type(self) -> Type:
        pick = min if self.op == "least" else max
        first = self.items[0].type
        low, high = pick(p.type.low for p in self.items), pick(p.type.high for p in self.items)
        return Type(first.kind, low, high, first.places, any(p.type.null for p in self.items))


@dataclass(frozen=True)
class Clamp(Expr):
    """A number clamped between two public ends, in its own cells."""

    of: Expr
    low: int
    high: int

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        low, high = (min(max(end, self.low), self.high) for end in (old.low, old.high))
        return Type(old.kind, low, high, old.places, old.null)


@dataclass(frozen=True)
class Compare(Expr):
    """= and <> on everything; <, <=, >, >= on numbers of one grid, dates and moments. NULL where
    either is NULL.
    """

    op: str  # "=", "<>", "<", "<=", ">", ">="
    left: Expr
    right: Expr

    @cached_property
    def type(self) -> Type:
        return Type(TRUTH, null=self.left.type.null or self.right.type.null)


@dataclass(frozen=True)
class IsIn(Expr):
    """Whether it equals one of the public values (cells, texts, truth values; never None). NULL
    where it is NULL.
    """

    of: Expr
    values: tuple[Any, ...]

    @cached_property
    def type(self) -> Type:
        return Type(TRUTH, null=self.of.type.null)


@dataclass(frozen=True)
class Like(Expr):
    """Whether a text matches a public pattern: % matches any characters, _ a single one. Case
    matters.
    """

    of: Expr
    pattern: str

    @cached_property
    def type(self) -> Type:
        return Type(TRUTH, null=self.of.type.null)


@dataclass(frozen=True)
class IsNull(Expr):
    """Whether it is NULL; never NULL itself."""

    of: Expr

    @property
    def type(self) -> Type:
        return Type(TRUTH, null=False)


@dataclass(frozen=True)
class Logic(Expr):
    """AND, OR with three truth values."""

    op: str  # "and", "or"
    items: tuple[Expr, ...]

    @cached_property
    def type(self) -> Type:
        return Type(TRUTH, null=any(part.type.null for part in self.items))


@dataclass(frozen=True)
class Not(Expr):
    """NOT with three truth values."""

    of: Expr

    @cached_property
    def type(self) -> Type:
        return Type(TRUTH, null=self.of.type.null)


@dataclass(frozen=True)
class Case(Expr):
    """The value of the first condition that is TRUE, else the last; all values of one kind, on one
    grid.
    """

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr

    @cached_property
    def type(self) -> Type:
        return _hull([value for _, value in self.whens] + [self.otherwise])


@dataclass(frozen=True)
class Coalesce(Expr):
    """The first value that is not NULL; all of one kind, on one grid."""

    items: tuple[Expr, ...]

    @cached_property
    def type(self) -> Type:
        return _hull(list(self.items)).with_null(all(part.type.null for part in self.items))


@dataclass(frozen=True)
class DatePart(Expr):
    """One of DATE_PARTS of a date or of a moment in UTC; a whole number."""

    part: str
    of: Expr

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        ends = DATE_PARTS[self.part]
        if ends is None:
            # Years never fall as days rise.
            unit = 1 if old.kind == DATE else civil.DAY
            low, high = (int(civil.part(self.part, np.array(end // unit))) for end in (old.low, old.high))
            return Type(NUMBER, low, high, 0, old.null)
        return Type(NUMBER, *ends, 0, old.null)


@dataclass(frozen=True)
class AsDate(Expr):
    """The day of a moment in UTC."""

    of: Expr

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        return Type(DATE, old.low // civil.DAY, old.high // civil.DAY, 0, old.null)


@dataclass(frozen=True)
class AsMoment(Expr):
    """The first moment of a date in UTC."""

    of: Expr

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        return Type(MOMENT, old.low * civil.DAY, old.high * civil.DAY, 0, old.null)


@dataclass(frozen=True)
class Truncated(Expr):
    """The first day of the year, quarter, month or week (from Monday) of a date; the beginning of
    the hour, minute or second of a moment.
    """

    part: str
    of: Expr

    @cached_property
    def type(self) -> Type:
        old, length = self.of.type, civil.TRUNCATED[self.part]
        if old.kind == MOMENT and length is not None:
            return Type(MOMENT, old.low // length * length, old.high // length * length, 0, old.null)
        assert old.kind == DATE
        low, high = (int(civil.truncate(self.part, np.array(end))) for end in (old.low, old.high))
        return Type(DATE, low, high, 0, old.null)


@dataclass(frozen=True)
class Shifted(Expr):
    """A date so many days later, or a moment so many microseconds."""

    of: Expr
    cells: int

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        return Type(old.kind, old.low + self.cells, old.high + self.cells, 0, old.null)


@dataclass(frozen=True)
class Steps(Expr):
    """An ordered value plus a public number of cells that depends on where it lies: `values[i]`,
    where i of the increasing public edges are at or below it. Months later, and the clock of a time
    zone, are such sums.
    """

    of: Expr
    edges: tuple[int, ...]
    values: tuple[int, ...]
    # The name of the time zone whose clock it is, if it is one.
    zone: str = ""

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        starts = (old.low, *(edge for edge in self.edges if old.low < edge <= old.high))
        stops = (*(edge - 1 for edge in self.edges if old.low < edge <= old.high), old.high)
        moved = [self.value_at(end) for end in (*starts, *stops)]
        return Type(old.kind, min(moved), max(moved), 0, old.null)

    def value_at(self, cell: int) -> int:
        """The value of one cell."""
        return cell + self.values[bisect_right(self.edges, cell)]


@dataclass(frozen=True)
class Root(Expr):
    """⌊√x · 2^places⌋ of a number; NULL where it is negative."""

    of: Expr
    places: int

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        # Such numbers are exact in a double, and so is what is rounded down from their root.
        assert self.shift >= 0
        assert (max(old.high, 0) << self.shift) < 1 << 52
        low, high = (isqrt(max(end, 0) << self.shift) for end in (old.low, old.high))
        return Type(NUMBER, low, high, self.places, old.null or old.low < 0)

    @property
    def shift(self) -> int:
        """By how many bits the cells are shifted before the root is taken."""
        return 2 * self.places - self.of.type.places


@dataclass(frozen=True)
class Bucket(Expr):
    """How many of the increasing public edges (in cells) are at or below the number: 0 …
    len(edges).
    """

    of: Expr
    edges: tuple[int, ...]

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        low, high = (bisect_right(self.edges, end) for end in (old.low, old.high))
        return Type(NUMBER, low, high, 0, old.null)


def align(*exprs: Expr) -> tuple[Expr, ...]:
    """The same numbers, all on the finest of their grids."""
    finest = max(expr.type.places for expr in exprs)
    return tuple(expr if expr.type.places == finest else Scaled(expr, finest) for expr in exprs)


def _inside(value: Any) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _inside(part)


def _hull(values: list[Expr]) -> Type:
    known = [value.type for value in values if not (isinstance(value, Constant) and value.value is None)]
    if not known or len({kind.kind for kind in known}) > 1 or len({kind.places for kind in known}) > 1:
        raise RefusedQuestion(
            "DP705",
            "the branches of CASE or COALESCE have different types.",
            why="every expression has one type for all data.",
            fix="make every branch a number, or every branch a text",
        )
    null = len(known) < len(values) or any(kind.null for kind in known)
    low, high = min(kind.low for kind in known), max(kind.high for kind in known)
    return Type(known[0].kind, low, high, known[0].places, null)
