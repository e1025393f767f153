# SPDX-License-Identifier: Apache-2.0
"""The columns of a synthetic copy: how each value becomes one of a few public codes, and a code a
value again.

    text, truth         one code for each value of the description
    numbers, dates      one code for each interval between public edges; zero is an interval of its own
    NULL                a code of its own, where NULL can occur

**Guarantee.** The codes follow from the description and the question alone. Every row has exactly
one code in each column, or it has a text that the description does not list, and is left out row by
row.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from discreet import check
from discreet.errors import BadParameter, RefusedQuestion
from discreet.tables.algebra.expr import Bucket, Expr, Read
from discreet.tables.algebra.sums import Relation
from discreet.tables.algebra.types import DATE, MOMENT, TRUTH, Type, Value, days, micros, python_value
from discreet.tables.ask.columns import bounded_column, cell_of, exact_number, similar_names, unbounded_column
from discreet.tables.ask.conditions import conditions_of, needed_columns
from discreet.tables.ask.domain import Facts
from discreet.tables.ask.query import Query
from discreet.tables.data import rules
from discreet.tables.data.dataset import Column, Table
from discreet.tables.plan.groups import is_one_of

__all__ = ["Bins", "CopiedColumn", "choose_columns"]

#: A number of intervals of the same length, or the edges between them.
Bins: TypeAlias = int | Sequence[int | float | Decimal | date | datetime]

#: About so many intervals, where nobody says how many.
_USUAL_INTERVALS = 20
#: Whole numbers between bounds this near keep all their values.
_FEW_VALUES = 24
#: So many codes may all columns have together: the fit needs the square of this in memory.
MOST_CODES = 3_000


@dataclass(frozen=True)
class CopiedColumn:
    """A column of a copy: its expression in the rows, and its codes.

    `edges` are cells between which intervals lie, from the least to one above the greatest; empty
    for a list of values. With `null` the last code is that of NULL.
    """

    name: str
    of: Type
    values: tuple[Any, ...]
    edges: tuple[int, ...]
    null: bool

    @property
    def size(self) -> int:
        """The number of codes."""
        return (len(self.edges) - 1 if self.edges else len(self.values)) + self.null

    def key(self, table: str) -> Expr:
        """The expression by which an engine groups."""
        read = Read(table, self.name, self.of)
        return Bucket(read, self.edges[1:-1]) if self.edges else read

    def condition(self, table: str) -> Expr | None:
        """The condition that a row has one of the codes; None if every row has."""
        if self.edges or (
            self.of.kind == TRUTH and len(self.values) == 2 and (self.null or not self.of.null)
        ):
            return None
        return is_one_of(Read(table, self.name, self.of), (*self.values, *([None] if self.null else [])))

    @cached_property
    def code_by_key(self) -> dict[Any, int]:
        """The code of each value of the key."""
        listed = range(len(self.edges) - 1) if self.edges else self.values
        codes = {value: code for code, value in enumerate(listed)}
        return codes | ({None: len(codes)} if self.null else {})

    def label(self, code: int) -> Value:
        """A code as it is shown: the value, or the interval as a text."""
        if self.null and code == self.size - 1:
            return None
        if not self.edges:
            value: Value = self.values[code]
            return value
        first, last = self.edges[code], self.edges[code + 1] - 1
        low, high = python_value(first, self.of), python_value(last, self.of)
        return low if first == last else f"{_text_of(low)} to {_text_of(high)}"

    def decode(self, codes: Any, levels: Any) -> list[Any]:
        """Values of codes; `levels` in (0, 1) say where inside an interval, evenly."""
        if not self.edges:
            table = [*self.values, *([None] if self.null else [])]
            return [table[code] for code in codes.tolist()]
        edges = np.array(self.edges, np.int64)
        places = np.minimum(codes, len(edges) - 2)
        widths = edges[places + 1] - edges[places]
        inside = np.minimum((levels * widths).astype(np.int64), widths - 1)
        cells = (edges[places] + inside).tolist()
        missing = self.size - 1 if self.null else -1
        return [
            None if code == missing else python_value(cell, self.of)
            for code, cell in zip(codes.tolist(), cells, strict=True)
        ]

    def shares(self, wanted: object) -> Any:
        """For each code, the share of its values that a condition allows: a value, a list of
        values, or a pair of ends.
        """
        shares = np.zeros(self.size)
        if self.edges and isinstance(wanted, tuple):
            low, high = self._ends_of(wanted)
            for code, (first, after) in enumerate(zip(self.edges, self.edges[1:], strict=False)):
                shares[code] = max(0, min(after, high + 1) - max(first, low)) / (after - first)
            return shares
        for value in wanted if isinstance(wanted, list) else [wanted]:
            code, share = self._code_of(value)
            shares[code] = min(1.0, shares[code] + share)
        return shares

    def narrow(self, wanted: object) -> CopiedColumn:
        """The column with its intervals cut to a pair of ends."""
        if not self.edges or not isinstance(wanted, tuple):
            return self
        low, high = self._ends_of(wanted)
        edges = tuple(min(max(edge, low), high + 1) for edge in self.edges)
        return CopiedColumn(self.name, self.of, (), edges, self.null)

    def _ends_of(self, wanted: tuple[Any, ...]) -> tuple[int, int]:
        if len(wanted) != 2:
            raise self._value_error(wanted)
        low = self.edges[0] if wanted[0] is None else self._cell(wanted[0])
        high = self.edges[-1] - 1 if wanted[1] is None else self._cell(wanted[1])
        if low > high:
            raise self._value_error(wanted)
        return low, high

    def _code_of(self, value: object) -> tuple[int, float]:
        """The code of a value, and the share of the code that is this value."""
        if value is None and self.null:
            return self.size - 1, 1.0
        if not self.edges:
            for code, listed in enumerate(self.values):
                if listed == value and isinstance(value, bool) == isinstance(listed, bool):
                    return code, 1.0
            raise self._value_error(value)
        cell = self._cell(value)
        if not self.edges[0] <= cell < self.edges[-1]:
            raise self._value_error(value)
        code = bisect_right(self.edges, cell) - 1
        return code, 1.0 / (self.edges[code + 1] - self.edges[code])

    def _cell(self, value: object) -> int:
        try:
            return cell_at(value, self.of)
        except (BadParameter, TypeError, ValueError):
            raise self._value_error(value) from None

    def _value_error(self, value: object) -> BadParameter:
        return BadParameter(
            "DP102",
            f"{self.name} of this copy cannot be {value!r}.",
            why="a condition on synthetic rows names values that the copy has: one, a list of them, or a pair of ends.",
            fix=f'where={{"{self.name}": {self.example()}}}',
        )

    @property
    def first_value(self) -> Value:
        """A value that rows can have; all others but NULL have its type."""
        value: Value = python_value(self.edges[0], self.of) if self.edges else self.values[0]
        return value

    def example(self) -> str:
        """A condition that some rows fulfil, as code."""
        if not self.edges:
            return repr(self.values[0])
        low, high = (python_value(cell, self.of) for cell in (self.edges[0], self.edges[-1] - 1))
        if self.of.kind in {DATE, MOMENT}:
            return f'("{low.isoformat()}", "{high.isoformat()}")'
        return f"({low!r}, {high!r})"

    def to_dict(self) -> dict[str, Any]:
        """The column as plain JSON types."""
        values = [{"date": value.isoformat()} if isinstance(value, date) else value for value in self.values]
        kind = [self.of.kind, self.of.low, self.of.high, self.of.places, self.of.null]
        return {"name": self.name, "of": kind, "values": values, "edges": list(self.edges), "null": self.null}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> CopiedColumn:
        """The column that `to_dict` wrote."""
        kind, low, high, places, null = stored["of"]
        values = tuple(
            date.fromisoformat(value["date"]) if isinstance(value, dict) else value
            for value in stored["values"]
        )
        of = Type(kind, low, high, places, null=null)
        return cls(stored["name"], of, values, tuple(stored["edges"]), stored["null"])


def _text_of(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def cell_at(value: object, kind: Type) -> int:
    """The cell that a number, a date or a moment lies in."""
    if kind.kind == DATE:
        if isinstance(value, str):
            value = date.fromisoformat(value)
        if isinstance(value, datetime) or not isinstance(value, date):
            raise TypeError("not a date")
        return days(value)
    if kind.kind == MOMENT:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a moment without a zone is in UTC
        if not isinstance(value, datetime):
            raise TypeError("not a moment")
        return micros(value)
    exact = exact_number(value)
    # A synthetic number is the binary one of its cell.
    return cell_of(Fraction(value) if isinstance(value, float) else exact, kind.places)


# --- from a description ------------------------------------------------------------------------------


def choose_columns(
    query: Query, rows: Relation, names: Sequence[str] | None, bins: Mapping[str, Bins]
) -> tuple[tuple[CopiedColumn, ...], tuple[str, ...]]:
    """The columns to copy, and the names of columns that cannot be copied and were not asked for."""
    table = query.data.tables[query.table]
    usable = [name for name in table.columns if _is_usable(table, table.columns[name])]
    chosen = usable if names is None else _checked_names(names, table, usable)
    _check_bins(bins, [name for name in chosen if name in usable and _is_cut(table.columns[name])], chosen)
    facts = Facts(query.data, conditions_of(rows))
    columns = tuple(_column(table, name, facts, bins.get(name), usable) for name in chosen)
    if not columns:
        raise RefusedQuestion(
            "DP704",
            f"no column of {table.name} has public values or bounds.",
            why="a synthetic copy is made from tables whose cells are public.",
            fix=_description_fix(table),
        )
    codes = sum(column.size for column in columns)
    if codes > MOST_CODES:
        widest = max(columns, key=lambda column: column.size)
        raise BadParameter(
            "DP107",
            f"the columns have {codes:,} values and intervals together; a copy can have {MOST_CODES:,}.",
            why="every pair of values is a cell with noise, and the model needs all pairs in memory.",
            fix=f'bins={{"{widest.name}": 20}}'
            if widest.edges
            else f"leave out {widest.name}:  columns={[each.name for each in columns if each is not widest]!r}",
        )
    return columns, tuple(name for name in table.columns if name not in chosen and name != table.unit)


def _checked_names(names: object, table: Table, usable: Sequence[str]) -> list[str]:
    listed = list(names) if isinstance(names, list | tuple) else None
    if not listed or not all(isinstance(name, str) for name in listed) or len(set(listed)) < len(listed):
        raise BadParameter(
            "DP104",
            "columns must be a list of different names.",
            why="each of them becomes a column of the copy.",
            fix=f"columns={list(usable[:3])!r}",
        )
    for name in listed:
        if name not in table.columns:
            raise RefusedQuestion(
                "DP701",
                f"{table.name} has no column {name!r}.",
                why="a copy can have only columns of the description.",
                fix=f"use {similar_names(name, usable or table.columns)}",
            )
    return listed


def _check_bins(bins: object, cut: Sequence[str], names: Sequence[str]) -> None:
    """Refuse bins of other columns than those of the copy; `cut` are those that have intervals."""
    if isinstance(bins, Mapping) and all(name in names for name in bins):
        return
    others = [name for name in bins if name not in names] if isinstance(bins, Mapping) else []
    what = f"{others[0]!r} is not a column of the copy." if others else "bins must be a mapping."
    raise BadParameter(
        "DP107",
        what,
        why="bins says into which intervals the values of a column are grouped.",
        fix=f'bins={{"{cut[0]}": 20}}' if cut else "leave bins out: no column of the copy has intervals",
    )


def _is_usable(table: Table, column: Column) -> bool:
    """Whether a column has public values or bounds, and does not identify anybody."""
    if _identifies(table, column):
        return False
    if column.kind in {"text", "boolean"}:
        return column.kind == "boolean" or bool(column.values)
    if column.kind in {"integer", "real", "decimal", "date", "timestamp"}:
        return column.bounds is not None or _has_list(column)
    return False


def _identifies(table: Table, column: Column) -> bool:
    return column.name == table.unit or (table.link is not None and column.name == table.link.column)


def _is_cut(column: Column) -> bool:
    """Whether a usable column has intervals, and no list of values."""
    return column.kind != "boolean" and not column.values


def _description_fix(table: Table) -> str:
    """What to write down about the first column that a copy can have then."""
    columns = [column for column in table.columns.values() if not _identifies(table, column)]
    described = next((column for column in columns if column.kind in rules.EXAMPLES), None)
    if described is None:
        return "a question of its own for each number that matters: no column can be copied"
    return f"describe it first:  [columns.{described.name}]  {rules.EXAMPLES[described.kind]}"


def _has_list(column: Column) -> bool:
    return bool(column.values) and column.kind in {"integer", "date"}


def _column(table: Table, name: str, facts: Facts, bins: Bins | None, usable: Sequence[str]) -> CopiedColumn:
    described = table.columns[name]
    if not _is_usable(table, described):
        raise _unusable_error(table, described, usable)
    if not _is_cut(described):
        if bins is not None:
            raise BadParameter(
                "DP107",
                f"bins are stated for {name}, which has a list of values.",
                why="intervals are for numbers and dates with bounds.",
                fix=f"leave out the bins of {name}",
            )
        read = unbounded_column(table, name)
        values = described.values or (False, True)
        return CopiedColumn(name, read.type, tuple(values), (), _can_be_null(read, described, facts))
    read = bounded_column(table, name)
    low, high = facts.ends(unbounded_column(table, name))
    kind = read.type
    low, high = (min(max(end, kind.low), kind.high) for end in (low, high))
    edges = _edges(name, kind, low, max(low, high), bins)
    return CopiedColumn(name, kind, (), edges, _can_be_null(read, described, facts))


def _can_be_null(read: Read, described: Column, facts: Facts) -> bool:
    stated = any((read.table, read.column) in needed_columns(condition) for condition in facts.conditions)
    return read.type.null and described.null and not stated


def _unusable_error(table: Table, column: Column, usable: Sequence[str]) -> RefusedQuestion:
    if _identifies(table, column):
        what, why = (
            "identifies who is protected",
            "a copy of it would be a list of those who are in the data.",
        )
    else:
        what, why = "has no public values or bounds", "the cells of every table of the copy must be public."
    others = f"columns={list(usable)!r}" if usable else _description_fix(table)
    return RefusedQuestion("DP704", f"{column.name} {what}, and cannot be copied.", why=why, fix=others)


def _edges(name: str, kind: Type, low: int, high: int, bins: Bins | None) -> tuple[int, ...]:
    """The cells at which intervals begin, and the one after the last."""
    if bins is None:
        inner = _usual_edges(kind, low, high)
    elif isinstance(bins, int) and not isinstance(bins, bool):
        count = min(check.whole(**{f"bins of {name}": bins}), high - low + 1)
        inner = [low + (high - low + 1) * place // count for place in range(1, count)]
    else:
        inner = _edges_from(name, kind, bins)
        if not any(low < edge <= high for edge in inner):
            raise BadParameter(
                "DP107",
                f"no edge of the bins of {name} lies between its bounds.",
                why="all values would lie in one interval.",
                fix=f'bins={{"{name}": 20}}',
            )
    return (low, *(edge for edge in sorted(set(inner)) if low < edge <= high), high + 1)


def _edges_from(name: str, kind: Type, bins: object) -> list[int]:
    try:
        if isinstance(bins, str | bytes) or not isinstance(bins, Sequence):
            raise TypeError("no list")
        edges = [_edge_cell(edge, kind) for edge in bins]
    except (BadParameter, TypeError, ValueError):
        edges = []
    if edges and edges == sorted(set(edges)):
        return edges
    raise BadParameter(
        "DP107",
        f"the bins of {name} must be a number of intervals, or their edges in increasing order.",
        why="each value has to lie in exactly one of them.",
        fix=f'bins={{"{name}": 20}}',
    )


def _edge_cell(edge: object, kind: Type) -> int:
    """The first cell at or above an edge."""
    if kind.kind in {DATE, MOMENT}:
        return cell_at(edge, kind)
    return math.ceil(exact_number(edge) * Fraction(2) ** kind.places)


def _usual_edges(kind: Type, low: int, high: int) -> list[int]:
    """Every value if there are few; else intervals of a round length, and zero on its own."""
    if not kind.places and high - low < _FEW_VALUES:
        return list(range(low + 1, high + 1))
    if kind.kind in {DATE, MOMENT}:
        width = -(-(high - low) // _USUAL_INTERVALS)
        return list(range(low + width, high, width))
    grid = Fraction(2) ** kind.places
    start, end = Fraction(low) / grid, Fraction(high) / grid
    length = _round_length((end - start) / _USUAL_INTERVALS, least=Fraction(0 if kind.places else 1))
    steps = range(1, math.ceil((end - start) / length))
    edges = [math.ceil((start + step * length) * grid) for step in steps]
    zero = [0, 1] if low <= 0 <= high and high > low else []
    return [*edges, *zero]


def _round_length(length: Fraction, least: Fraction) -> Fraction:
    """The least of 1, 2 and 5 times a power of ten that is not below a length."""
    exponent = math.floor(math.log10(length)) - 1
    candidates = (Fraction(10) ** (exponent + more) * lead for more in range(4) for lead in (1, 2, 5))
    return next(width for width in candidates if width >= max(length, least))
