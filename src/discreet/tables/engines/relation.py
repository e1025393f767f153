# SPDX-License-Identifier: Apache-2.0
"""The rows of a plan as a SELECT: whose a row is, and one column of cells for each column that is read.

**Guarantee.** Each operator acts on the rows of one unit and on public tables alone (`plan`): what is selected here has
no window, no order, no limit and no random number. Rows of nobody are dropped where a private table is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatchmethod

from sqlglot import exp

from discreet.tables.data.engine import ROW
from discreet.tables.data.expr import Read
from discreet.tables.data.sums import Filtered, Lookup, Paired, Private, Relation
from discreet.tables.data.types import TRUTH
from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.read import cell, plain
from discreet.tables.engines.source import SourceTable, comparable, known_table, readable
from discreet.tables.engines.terms import Term, name_term
from discreet.tables.engines.tree import all_tables, reads_of, unit_of
from discreet.tables.engines.write import ColumnNames, Writer

__all__ = ["UNIT", "Relations", "select"]

UNIT = "u"


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
        chosen = self._cells(table, needed)
        if table.unit in {None, ROW}:
            return chosen
        unit = comparable(table)
        mine = t.negate(t.is_null(t.column(unit.name)))
        if unit.kind == "real" or (unit.kind == "decimal" and self.dialect.decimal_has_nan):
            mine = t.both([mine, t.negate(self.dialect.is_nan(t.column(unit.name)))])
        whose = name_term(plain(self.dialect, unit), UNIT)
        return chosen.select(whose, copy=False).where(mine, copy=False)

    @rows.register
    def _filtered_rows(self, rows: Filtered, needed: Mapping[Read, None]) -> exp.Select:
        inner = self.rows(rows.rows, {**needed, **reads_of([rows.condition])})
        kept = self._columns(rows, needed)
        return select(kept, inner).where(self.writer().write(rows.condition), copy=False)

    @rows.register
    def _lookup(self, rows: Lookup, needed: Mapping[Read, None]) -> exp.Select:
        table = known_table(self.tables, rows.table, private=False)
        mine = {read: None for read in needed if read.table != rows.table}
        left = self.rows(rows.rows, {**mine, **reads_of(one for one, _ in rows.on)})
        public = {read: None for read in needed if read.table == rows.table}
        right = self._cells(table, {**public, **reads_of(other for _, other in rows.on)})
        if unit_of(self.tables, rows) == ROW:
            right = self._keys_once(right, public, reads_of(other for _, other in rows.on))
        writer = self.writer()
        match = t.both(t.binary(exp.EQ, writer.write(one), writer.write(other)) for one, other in rows.on)
        return select(self._columns(rows, needed, "l"), left, "l").join(
            right.subquery("r", copy=False), on=match, join_type="LEFT" if rows.keep else "INNER", copy=False
        )

    @rows.register
    def _paired_rows(self, rows: Paired, needed: Mapping[Read, None]) -> exp.Select:
        here, there = set(all_tables(rows.rows)), set(all_tables(rows.other))
        wanted = {**needed, **reads_of(part for pair in rows.on for part in pair)}
        left = self.rows(rows.rows, {read: None for read in wanted if read.table in here})
        right = self.rows(rows.other, {read: None for read in wanted if read.table in there})
        writer = self.writer()
        same = t.binary(exp.EQ, t.column(UNIT, "l"), t.column(UNIT, "r"))
        more = [t.binary(exp.EQ, writer.write(one), writer.write(other)) for one, other in rows.on]
        return select(self._columns(rows, needed, "l"), left, "l").join(
            right.subquery("r", copy=False), on=t.both([same, *more]), join_type="INNER", copy=False
        )

    def writer(self) -> Writer:
        """Writes expressions on the columns of `rows`."""
        return Writer(self.dialect, self._names.column)

    def cells(self, table: str, reads: Mapping[Read, None]) -> exp.Select:
        """Columns of a table where they are read, whoever they belong to."""
        return self._cells(self.tables[table], reads)

    def _keys_once(
        self, right: exp.Select, public: Mapping[Read, None], on: Mapping[Read, None]
    ) -> exp.Select:
        """The rows of a public table whose key is there once: one that is there twice would make two units of one row."""
        keys = [t.column(self.name_of(read)) for read in on]
        values = [
            name_term(t.call("BOOL_AND" if read.of.kind == TRUTH else "MIN", t.column(name)), name)
            for read, name in ((read, self.name_of(read)) for read in public if read not in on)
        ]
        once = t.binary(exp.EQ, t.everyone(), t.number(1))
        chosen = select([*(key.copy() for key in keys), *values], right)
        return chosen.group_by(*keys, copy=False).having(once, copy=False)

    def _cells(self, table: SourceTable, reads: Mapping[Read, None]) -> exp.Select:
        found = [read for read in reads if read.table == table.name]
        cells = [
            name_term(cell(self.dialect, readable(table, read), read.of), self.name_of(read))
            for read in found
        ]
        return select(cells or [name_term(t.number(1), "one")], self.places[table.name])

    def _columns(self, rows: Relation, needed: Mapping[Read, None], side: str | None = None) -> list[Term]:
        columns = [name_term(t.column(self.name_of(read)), self.name_of(read)) for read in needed]
        if unit_of(self.tables, rows) != ROW:
            columns.append(name_term(t.column(UNIT, side), UNIT))
        return columns or [name_term(t.number(1), "one")]


def select(columns: Iterable[Term], source: exp.Query | exp.Table, name: str = "t") -> exp.Select:
    """SELECT columns FROM a subquery, or a table."""
    origin = source.subquery(name, copy=False) if isinstance(source, exp.Query) else source.copy()
    return exp.Select(expressions=list(columns)).from_(origin, copy=False)
