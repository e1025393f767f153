# SPDX-License-Identifier: Apache-2.0
"""The type of a column where it is read: kind, grid and bounds, from its public description.

    bounded_column    for arithmetic, aggregates and keys: a number needs bounds, and is clamped to them
    unbounded_column  for conditions: not clamped, so no bounds are needed
    rows_of           the rows of a private table, without those that have NULL where the description excludes it

**Guarantee.** A `Read` depends on the description and the question alone. Its type has every value
that the engine can make of the column: whole columns have cells of 1, real ones cells of
2**-places, so many that the bounds are about 2**24 cells apart, and every number is rounded down to
its cell.
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import BadParameter, RefusedQuestion
from discreet.tables.algebra.expr import Expr, IsNull, Logic, Not, Read
from discreet.tables.algebra.sums import Filtered, Linked, Private, Relation
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST, Type, days, micros
from discreet.tables.data.dataset import Column, Table

if TYPE_CHECKING:
    from discreet.tables.ask.start import Dataset

__all__ = [
    "FIRST",
    "LAST",
    "bounded_column",
    "cell_of",
    "column_of",
    "exact_number",
    "grid_places",
    "public_values",
    "rows_of",
    "similar_names",
    "unbounded_column",
]

#: The ends of what a date can be: those of the calendar that Python, and every engine, has.
FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)

_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
#: About so many cells (as a power of two) lie between the bounds of a real column.
_FINE = 24
#: A double has no more bits than this below its leading one.
_BITS = 52
#: The grid of a real column that has no bounds, in conditions.
_PLAIN = 20
_NUMBERS = {"integer", "real", "decimal"}
_KINDS = {"text": TEXT, "boolean": TRUTH, "date": DATE, "timestamp": MOMENT}


def bounded_column(
    table: Table, column: str, bounds: tuple[Any, Any] | None = None, *, text: str = ""
) -> Read:
    """A column for arithmetic, an aggregate or a key; `bounds` stand in place of those of its
    description.

    `text` is what is shown to a person whose column has no bounds: "AVG(basket)".

    >>> table = Table("visits", {"days": Column("days", "integer", (0, 60)), "cost": Column("cost", "real")})
    >>> bounded_column(table, "days").type
    Type(kind='number', low=0, high=60, places=0, null=True)
    >>> bounded_column(table, "cost", (0, 500)).type.places
    15
    """
    described = column_of(table, column)
    if described.kind in _NUMBERS:
        ends = bounds or described.bounds
        if ends is None:
            raise _missing_bounds_error(table, described, text)
        return Read(table.name, column, _number(described, ends))
    return Read(table.name, column, _other(table, described, bounds or described.bounds))


def unbounded_column(table: Table, column: str) -> Read:
    """A column for a condition: numbers, dates and moments without clamping."""
    described = column_of(table, column)
    if described.kind not in _NUMBERS:
        return Read(table.name, column, _other(table, described, None))
    places = 0
    if described.kind != "integer":
        places = (
            _number(described, described.bounds).places if described.bounds else _places(described, _PLAIN)
        )
    return Read(table.name, column, Type(NUMBER, -WIDEST, WIDEST, places, described.null))


def rows_of(table: Table, tables: Mapping[str, Table]) -> Relation:
    """The rows of a private table; rows with NULL in a column with `null=False` are dropped.

    Rows that reach their units through a key are those that `Linked` describes.
    """
    never_null = [
        name for name, column in table.columns.items() if not column.null and column.kind != "other"
    ]
    is_present = tuple(
        Not(IsNull(_nullable(unbounded_column(table, name)))) for name in never_null if name != table.unit
    )
    rows = _scan(table, tables)
    if not is_present:
        return rows
    condition: Expr = is_present[0] if len(is_present) == 1 else Logic("and", is_present)
    return Filtered(rows, condition)


def _scan(table: Table, tables: Mapping[str, Table]) -> Relation:
    name, described = ("", table.name) if table.of is None else (table.name, table.of)
    if table.link is None:
        return Private(described, name)
    owners = tables[table.link.table]
    column, key = unbounded_column(table, table.link.column), unbounded_column(owners, table.link.key)
    return Linked(described, rows_of(owners, tables), _nullable(column), _nullable(key), name)


def public_values(dataset: Dataset, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The distinct values of columns of a public table, by the name that it has in a question."""
    return dataset.engine.values(dataset.tables[table].of or table, columns)


def column_of(table: Table, name: str) -> Column:
    """The description of a column, or a refusal that lists the columns."""
    if name in table.columns:
        return table.columns[name]
    raise RefusedQuestion(
        "DP701",
        f"{table.name} has no column {name!r}.",
        why="a question can use only columns of the description.",
        fix=f"use {similar_names(name, table.columns)}",
    )


def similar_names(name: str, names: Iterable[str]) -> str:
    """The most similar names first; the first ten if none is similar."""
    candidates = list(names)
    by_lower_name = {other.lower(): other for other in candidates}
    similar = [
        by_lower_name[match]
        for match in difflib.get_close_matches(name.lower(), by_lower_name, n=3, cutoff=0.6)
    ]
    if similar or len(candidates) == 1:
        return " or ".join(similar or candidates)
    return "one of " + ", ".join(candidates[:10]) if candidates else "another name"


def exact_number(value: Any) -> Fraction:
    """A number exactly; a float as the decimal that it prints as, which is what its author meant."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal) or not _is_finite(value):
        raise _bound_error()
    return Fraction(value) if isinstance(value, numbers.Rational | Decimal) else Fraction(repr(float(value)))


def cell_of(value: Fraction, places: int) -> int:
    """The cell that a number lies in: rounded down, as the engine does it."""
    return math.floor(value * Fraction(2) ** places)


def grid_places(low: Fraction, high: Fraction) -> int:
    """The places with which two ends are about 2**24 cells apart; never finer than a double is
    there.
    """
    width, reach = high - low, max(abs(low), abs(high))
    if reach == 0:
        return 0
    fine = _FINE - _exponent(width) if width else _FINE
    return max(0, min(fine, _BITS - _exponent(reach), 60))


def _is_finite(value: Any) -> bool:
    return isinstance(value, numbers.Rational) or math.isfinite(value)


def _exponent(value: Fraction) -> int:
    """The least e with value <= 2**e."""
    e = value.numerator.bit_length() - value.denominator.bit_length() - 1
    while value > Fraction(2) ** e:
        e += 1
    return e


def _number(column: Column, bounds: tuple[Any, Any]) -> Type:
    low, high = _ends(column, bounds)
    if column.kind == "integer":
        # whole numbers between the bounds; if there is none, the cell below them
        first, last = math.ceil(low), math.floor(high)
        return Type(NUMBER, min(first, last), last, 0, column.null)
    places = _places(column, grid_places(low, high))
    return Type(NUMBER, cell_of(low, places), cell_of(high, places), places, column.null)


def _places(column: Column, otherwise: int) -> int:
    return otherwise if column.places is None else column.places


def _ends(column: Column, bounds: tuple[Any, Any]) -> tuple[Fraction, Fraction]:
    low, high = (exact_number(end) for end in bounds)
    if low > high:
        raise BadParameter(
            "DP107",
            f"the lower bound of {column.name} is above the upper bound.",
            why="values are clamped between the two, so the lower bound comes first.",
            fix=f"bounds = [{float(high):g}, {float(low):g}]",
        )
    return low, high


def _other(table: Table, column: Column, bounds: tuple[Any, Any] | None) -> Type:
    kind = _KINDS.get(column.kind)
    if kind is None:
        raise RefusedQuestion(
            "DP705",
            f"the column {column.name} of {table.name} is neither a number, a text, a truth value nor a date.",
            why="engines disagree on such values, so nothing can be proved about them.",
            fix=f'describe it:  [columns.{column.name}]  type = "text"',
        )
    if kind == DATE:
        low, high = (_day(end) for end in bounds or (FIRST, LAST))
        return Type(DATE, days(low), days(high), 0, column.null)
    if kind == MOMENT:
        start, stop = (_moment(end) for end in bounds or (_EARLIEST, _LATEST))
        return Type(MOMENT, micros(start), micros(stop), 0, column.null)
    return Type(kind, null=column.null)


def _day(value: Any) -> date:
    if isinstance(value, str):
        value = _iso(date.fromisoformat, value)
    if isinstance(value, datetime):
        value = value.date()
    if not isinstance(value, date):
        raise _bound_error()
    return value


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        value = _iso(datetime.fromisoformat, value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        raise _bound_error()
    return value


def _iso(read: Any, text: str) -> Any:
    try:
        return read(text)
    except ValueError:
        raise _bound_error() from None


def _nullable(read: Read) -> Read:
    return Read(read.table, read.column, read.of.with_null(True))


def _bound_error() -> BadParameter:
    return BadParameter(
        "DP104",
        "bounds, and numbers in a question, must be finite.",
        why="the bounds of the answer are computed from them.",
        fix="bounds = [0, 500],  in a question  between=(0, 500)",
    )


def _missing_bounds_error(table: Table, column: Column, text: str) -> BadParameter:
    """The error for a number without bounds; it names both places where bounds can be written, and
    no value.
    """
    name = column.name
    if table.of == "":
        return _missing_cap_error(text or name, name)
    wanted = text or name
    clamped = wanted.replace(name, f"CLAMP({name}, 0, 500)", 1) if text else f"CLAMP({name}, 0, 500)"
    return BadParameter(
        "DP104",
        f"{wanted} needs bounds, and none are declared.",
        why="without bounds one person could change the answer without limit, so no finite noise would be enough.",
        fix=f'session.suggest_bounds("{table.of or table.name}", ["{name}"], epsilon=0.05)   chooses them; or write  {clamped}'
        if column.auto
        else f"add  bounds = [0, 500]  to [columns.{name}] of {table.name}, or write  {clamped}",
    )


def _missing_cap_error(shown: str, name: str) -> BadParameter:
    """The error for a number that a query made, and that has no bounds."""
    bounded = f"CLAMP({name}, 0, 100)"
    return BadParameter(
        "DP104",
        f"{shown} needs bounds, and none are known.",
        why="at_most is not a number, or the query computes from a column without bounds.",
        fix=shown.replace(name, bounded, 1) if name in shown else bounded,
    )
