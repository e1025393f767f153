# SPDX-License-Identifier: Apache-2.0
"""The rows of a plan as a SELECT: the unit, and one column of cells for each column read.

**Guarantee.** Each operator acts on the rows of one unit and on public tables alone (`plan`). No
SELECT here has a limit or a random number, and every GROUP BY and every PARTITION BY begins with
the unit. Rows of nobody are dropped where a private table is read. No sum leaves its type: it has
at most 2^40 terms, each within 2^62. Rows are ordered by their values, never by their position:
rows that are still equal are the same to the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatchmethod
from typing import Final

from sqlglot import exp

from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.expr import Expr, Read
from discreet.tables.algebra.sums import (
    Filtered,
    Linked,
    Lookup,
    Paired,
    PerUnit,
    Private,
    Relation,
    Stacked,
    UnitAggregate,
    Windowed,
    WindowFunction,
    relation_expressions,
)
from discreet.tables.algebra.types import TRUTH, WIDEST, Type
from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.read import cell, clamp, plain
from discreet.tables.engines.results import period_of
from discreet.tables.engines.source import SourceTable, comparable, known_table, readable
from discreet.tables.engines.terms import UNIT, Term, name_term
from discreet.tables.engines.tree import inner_names, labels, reads_of, unit_of
from discreet.tables.engines.write import ColumnNames, Writer

__all__ = ["Relations", "select"]

_JOINS = {"inner": "INNER", "left": "LEFT", "full": "FULL"}


class Relations:
    """Writes the rows of plans over some tables; `places` says where each table lies."""

    def __init__(
        self, dialect: Dialect, tables: Mapping[str, SourceTable], places: Mapping[str, exp.Table]
    ) -> None:
        self.dialect, self.tables, self.places = dialect, tables, places
        self._names = ColumnNames()

    def name_of(self, read: Read) -> str:
        """The name of a column of cells."""
        return self._names.name(read)

    @singledispatchmethod
    def rows(self, rows: Relation, needed: Mapping[Read, None]) -> exp.Select:
        """SELECT the unit, and the cells of what is needed; columns are named by `name_of`."""
        raise AssertionError(f"no engine knows {type(rows).__name__}")

    @rows.register
    def _private(self, rows: Private, needed: Mapping[Read, None]) -> exp.Select:
        table = known_table(self.tables, rows.table, private=True)
        period = period_of(table, rows.label)
        read = needed if period is None else {**needed, **reads_of([period])}
        cells = self.cells(table, read, rows.label)
        if table.unit in {None, ROW}:
            return cells
        unit = comparable(table)
        is_owned = t.negate(t.is_null(t.column(unit.name)))
        if unit.kind == "real" or (unit.kind == "decimal" and self.dialect.decimal_has_nan):
            is_owned = t.both([is_owned, t.negate(self.dialect.is_nan(t.column(unit.name)))])
        unit_value = name_term(plain(self.dialect, unit), UNIT)
        owned = cells.select(unit_value, copy=False).where(is_owned, copy=False)
        return owned if period is None else self._unit_periods(owned, needed, period)

    def _unit_periods(self, owned: exp.Select, needed: Mapping[Read, None], period: Expr) -> exp.Select:
        """Rows whose unit is the one that they have, in a period; rows without a time are dropped.

        The number of the first day ends the text, so two units in two periods never write the same.
        """
        first_day = self.writer().write(period)
        columns = [name_term(t.column(self.name_of(read)), self.name_of(read)) for read in needed]
        start = t.binary(exp.DPipe, t.cast(t.column(UNIT), "TEXT"), t.text(" "))
        unit = t.binary(exp.DPipe, start, t.cast(first_day, "TEXT"))
        divided = select([*columns, name_term(unit, UNIT)], owned)
        return divided.where(t.negate(t.is_null(first_day.copy())), copy=False)

    @rows.register
    def _linked_rows(self, rows: Linked, needed: Mapping[Read, None]) -> exp.Select:
        table = known_table(self.tables, rows.table, private=True, linked=True)
        linked = self.cells(table, {**needed, **reads_of([rows.column])}, rows.label)
        owners = self.rows(rows.owners, reads_of([rows.key]))
        key = t.column(self.name_of(rows.key))
        owners = select([t.column(UNIT), key], owners).where(t.negate(t.is_null(key.copy())), copy=False)
        match = t.binary(
            exp.EQ, t.column(self.name_of(rows.column), "l"), t.column(self.name_of(rows.key), "r")
        )
        columns = [name_term(t.column(self.name_of(read), "l"), self.name_of(read)) for read in needed]
        return select([*columns, name_term(t.column(UNIT, "r"), UNIT)], linked, "l").join(
            owners.distinct(copy=False).subquery("r", copy=False), on=match, join_type="INNER", copy=False
        )

    @rows.register
    def _filtered_rows(self, rows: Filtered, needed: Mapping[Read, None]) -> exp.Select:
        inner = self.rows(rows.rows, {**needed, **reads_of([rows.condition])})
        return select(self._columns(rows, needed), inner).where(
            self.writer().write(rows.condition), copy=False
        )

    @rows.register
    def _lookup(self, rows: Lookup, needed: Mapping[Read, None]) -> exp.Select:
        table = known_table(self.tables, rows.table, private=False)
        private = {read: None for read in needed if read.table != rows.label}
        left = self.rows(rows.rows, {**private, **reads_of(ours for ours, _ in rows.on)})
        public = {read: None for read in needed if read.table == rows.label}
        keys = reads_of(theirs for _, theirs in rows.on)
        right = self.cells(table, {**public, **keys}, rows.label)
        if unit_of(self.tables, rows) == ROW:
            right = self._keys_once(right, public, keys)
        writer = self.writer()
        match = t.both(t.binary(exp.EQ, writer.write(ours), writer.write(theirs)) for ours, theirs in rows.on)
        return select(self._columns(rows, needed, "l"), left, "l").join(
            right.subquery("r", copy=False), on=match, join_type="LEFT" if rows.keep else "INNER", copy=False
        )

    @rows.register
    def _paired_rows(self, rows: Paired, needed: Mapping[Read, None]) -> exp.Select:
        left_labels, right_labels = set(labels(rows.rows)), set(labels(rows.other))
        reads = {**needed, **reads_of(relation_expressions(rows))}
        left = self.rows(rows.rows, {read: None for read in reads if read.table in left_labels})
        right = self.rows(rows.other, {read: None for read in reads if read.table in right_labels})
        write = self.writer().write
        match = [t.binary(exp.EQ, t.column(UNIT, "l"), t.column(UNIT, "r"))]
        match += [t.binary(exp.EQ, write(ours), write(theirs)) for ours, theirs in rows.on]
        match += [] if rows.condition is None else [write(rows.condition)]
        chosen = select(self._columns(rows, needed, "l"), left, "l")
        if rows.kind in {"semi", "anti"}:
            matched = select([t.number(1)], right, "r").where(t.both(match), copy=False)
            exists = exp.Exists(this=matched)
            return chosen.where(exists if rows.kind == "semi" else t.negate(exists), copy=False)
        if rows.kind == "full":
            unit = t.call("COALESCE", t.column(UNIT, "l"), t.column(UNIT, "r"))
            chosen.set("expressions", [*chosen.expressions[:-1], name_term(unit, UNIT)])
        other = right.subquery("r", copy=False)
        return chosen.join(other, on=t.both(match), join_type=_JOINS[rows.kind], copy=False)

    @rows.register
    def _per_unit(self, rows: PerUnit, needed: Mapping[Read, None]) -> exp.Select:
        """Three steps: operands of rows; keys and aggregates of units; those that are needed, as
        cells.
        """
        names = inner_names([*dict(rows.keys), *dict(rows.aggregates)])
        columns = {read.column for read in needed}
        keys = {names[name]: key for name, key in rows.keys}
        aggregates = {names[name]: aggregate for name, aggregate in rows.aggregates if name in columns}
        operands = {name: each.of for name, each in aggregates.items() if each.of is not None}
        valued = self._values_of(rows.rows, {**keys, **operands})
        group = [t.column(UNIT), *map(t.column, keys)]
        results = [
            name_term(aggregate_term(self.dialect, aggregate, name), name)
            for name, aggregate in aggregates.items()
        ]
        grouped = select([*(part.copy() for part in group), *results], valued).group_by(*group, copy=False)
        wide = {name for name, aggregate in rows.aggregates if is_wide(aggregate.kind)}
        return select([*self._computed_cells(needed, names, wide), t.column(UNIT)], grouped)

    @rows.register
    def _windowed_rows(self, rows: Windowed, needed: Mapping[Read, None]) -> exp.Select:
        functions, names = dict(rows.columns), inner_names(dict(rows.columns))
        computed = {read: None for read in needed if read.table == rows.name}
        passed = {read: None for read in needed if read.table != rows.name}
        reads = {**passed, **reads_of(relation_expressions(rows))}
        inner = self.rows(rows.rows, reads)
        ties = [t.column(self.name_of(read)) for read in sorted(reads, key=repr)]
        windows = [
            name_term(window_term(self.writer(), functions[name], ties), names[name])
            for name in dict.fromkeys(read.column for read in computed)
        ]
        windowed = select([*self._columns(rows, passed), *windows], inner)
        wide = {name for name, function in rows.columns if is_wide(function.kind)}
        return select([*self._columns(rows, passed), *self._computed_cells(computed, names, wide)], windowed)

    @rows.register
    def _stacked_rows(self, rows: Stacked, needed: Mapping[Read, None]) -> exp.Select:
        names = inner_names(rows.columns)
        columns = dict.fromkeys(read.column for read in needed)
        stacked: exp.Query | None = None
        for part, expressions in rows.parts:
            by_name = dict(zip(rows.columns, expressions, strict=True))
            valued = self._values_of(part, {names[name]: by_name[name] for name in columns})
            stacked = (
                valued if stacked is None else exp.Union(this=stacked, expression=valued, distinct=False)
            )
        assert stacked is not None
        unit = [] if unit_of(self.tables, rows) == ROW else [t.column(UNIT)]
        return select([*self._computed_cells(needed, names, set()), *unit] or _constant_one(), stacked)

    def _computed_cells(self, needed: Iterable[Read], names: Mapping[str, str], wide: set[str]) -> list[Term]:
        """Columns that were computed here, as cells of the types with which they are read."""
        return [
            name_term(
                clamp_cell(self.dialect, read.of, t.column(names[read.column]), wide=read.column in wide),
                self.name_of(read),
            )
            for read in needed
        ]

    def _values_of(self, rows: Relation, values: Mapping[str, Expr]) -> exp.Select:
        """The unit of each row, and some expressions by their names."""
        inner, write = self.rows(rows, reads_of(values.values())), self.writer().write
        columns = [name_term(write(value), name) for name, value in values.items()]
        columns += [] if unit_of(self.tables, rows) == ROW else [t.column(UNIT)]
        return select(columns or _constant_one(), inner)

    def writer(self) -> Writer:
        """Writes expressions on the columns of `rows`."""
        return Writer(self.dialect, self._names.column)

    def cells(self, table: SourceTable, reads: Mapping[Read, None], label: str) -> exp.Select:
        """Columns of a table where they are read, of all its rows."""
        cells = [
            name_term(cell(self.dialect, readable(table, read), read.of), self.name_of(read))
            for read in reads
            if read.table == label
        ]
        return select(cells or _constant_one(), self.places[table.name])

    def _keys_once(
        self, right: exp.Select, public: Mapping[Read, None], on: Mapping[Read, None]
    ) -> exp.Select:
        """The rows of a public table whose key is there once: one that is there twice would make
        two units of one row.
        """
        keys = [t.column(self.name_of(read)) for read in on]
        values = [
            name_term(t.call("BOOL_AND" if read.of.kind == TRUTH else "MIN", t.column(name)), name)
            for read, name in ((read, self.name_of(read)) for read in public if read not in on)
        ]
        once = t.binary(exp.EQ, t.everyone(), t.number(1))
        chosen = select([*(key.copy() for key in keys), *values], right)
        return chosen.group_by(*keys, copy=False).having(once, copy=False)

    def _columns(self, rows: Relation, needed: Mapping[Read, None], side: str | None = None) -> list[Term]:
        columns = [name_term(t.column(self.name_of(read)), self.name_of(read)) for read in needed]
        if unit_of(self.tables, rows) != ROW:
            columns.append(name_term(t.column(UNIT, side), UNIT))
        return columns or _constant_one()


def _constant_one() -> list[Term]:
    """A column for a SELECT that needs none."""
    return [name_term(t.number(1), "one")]


def select(columns: Iterable[Term], source: exp.Query | exp.Table, name: str = "t") -> exp.Select:
    """SELECT columns FROM a subquery, or a table."""
    origin = source.subquery(name, copy=False) if isinstance(source, exp.Query) else source.copy()
    return exp.Select(expressions=list(columns)).from_(origin, copy=False)


#: Windows whose value depends on the order of rows one by one, so that no two may be equal.
_ONE_BY_ONE: Final = {"row_number", "lag", "lead", "first"}
_NAMES: Final = {
    "row_number": "ROW_NUMBER",
    "rank": "RANK",
    "dense_rank": "DENSE_RANK",
    "first": "FIRST_VALUE",
}


def is_wide(kind: str) -> bool:
    """Whether an aggregate or a window may have more than 64 bits."""
    return kind == "sum"


def clamp_cell(dialect: Dialect, of: Type, value: Term, *, wide: bool) -> Term:
    """A value as a cell of its type; texts and truth values as they are."""
    if not of.is_ordered or (not wide and of.low <= -WIDEST and of.high >= WIDEST):
        return value
    kind = dialect.wide if wide else t.BIGINT
    typed = value if wide else t.cast(value, t.BIGINT)
    clamped = t.cast(clamp(typed, t.number(of.low, kind), t.number(of.high, kind)), t.BIGINT)
    return t.cases([(t.is_null(value.copy()), t.nothing(t.BIGINT))], clamped)


def aggregate_term(dialect: Dialect, aggregate: UnitAggregate, operand: str) -> Term:
    """An aggregate over the rows of a group; its operand is a column."""
    if aggregate.kind == "count":
        return t.everyone()
    value = t.column(operand)
    if aggregate.kind == "distinct":
        return exp.Count(this=exp.Distinct(expressions=[value]))
    if aggregate.kind == "sum":
        return t.call("SUM", dialect.widen(value))
    return t.call({"count_of": "COUNT", "min": "MIN", "max": "MAX"}[aggregate.kind], value)


def window_term(writer: Writer, function: WindowFunction, ties: Sequence[Term]) -> Term:
    """A window over the rows of one unit; `ties` are all columns that are read of them."""
    order = [
        exp.Ordered(this=writer.write(of), desc=descends, nulls_first=False)
        for of, descends in function.order
    ]
    if function.kind in _ONE_BY_ONE or (function.order and function.rows and _is_total(function.kind)):
        order += [exp.Ordered(this=tie.copy(), desc=False, nulls_first=False) for tie in ties]
    partition = [t.column(UNIT), *(writer.write(of) for of in function.partition)]
    window = exp.Window(this=_call(writer, function), partition_by=partition)
    if order:
        window.set("order", exp.Order(expressions=order))
    if function.order and _is_total(function.kind):
        kind = "ROWS" if function.rows else "RANGE"
        spec = exp.WindowSpec(kind=kind, start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
        window.set("spec", spec)
    return window


def _is_total(kind: str) -> bool:
    return kind in {"sum", "count", "count_of", "min", "max"}


def _call(writer: Writer, function: WindowFunction) -> Term:
    if function.kind == "count":
        return t.everyone()
    if function.of is None:
        return t.call(_NAMES[function.kind])
    value = writer.write(function.of)
    if function.kind in {"lag", "lead"}:
        return t.call(function.kind.upper(), value, t.number(function.offset, "INT"))
    if function.kind == "first":
        return t.call(_NAMES["first"], value)
    if function.kind == "sum":
        return t.call("SUM", writer.dialect.widen(value))
    return t.call({"count_of": "COUNT", "min": "MIN", "max": "MAX"}[function.kind], value)
