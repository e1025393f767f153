# SPDX-License-Identifier: Apache-2.0
"""Tables in DuckDB, inside this process, with what was prepared for one question kept for the next.

    rows    for `Rows`: the columns that were read, as cells, and how many rows the row's unit has
    pairs   for the other schemes: for each unit and group its rows and sums

**Promise.** As `engine`. Each of them is made by one statement, as a function of the tables that were opened, and what
bounds a unit is made from the same rows that are summed: a file that has changed since is not counted (`frozen`).
They are temporary tables of this connection and are never written anywhere but to a private folder, if memory runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from discreet.tables.engines import terms as t
from discreet.tables.engines.base import Found
from discreet.tables.engines.duckdb_dialect import DuckDialect
from discreet.tables.engines.frozen import Frozen
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.prepared import Prepared
from discreet.tables.engines.relation import UNIT, select
from discreet.tables.engines.source import SourceTable
from discreet.tables.engines.sql_engine import SqlEngine
from discreet.tables.engines.terms import Term, named
from discreet.tables.engines.tree import normal, reads_of
from discreet.tables.engines.widths import is_narrow_product
from discreet.tables.expr import Read
from discreet.tables.plan import Relation, Rows, Sums
from discreet.tables.types import TEXT, TRUTH

__all__ = ["DuckDB"]

#: Texts with no more values than this are kept as numbers of a list.
_LISTED = 10_000
_WIDTHS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31}


class DuckDB(SqlEngine):
    """Tables in DuckDB."""

    name: str = "duckdb"

    def __init__(
        self,
        connection: Any,
        tables: Mapping[str, SourceTable],
        places: Mapping[str, exp.Table],
        *,
        frozen: Frozen,
        close: Callable[[], object],
        live: set[str],
    ) -> None:
        super().__init__(DuckDialect(), tables, places)
        self._connection, self._frozen, self._release, self._live = connection, frozen, close, live
        self._pairs: Prepared[Pairs, exp.Table] = Prepared(self._drop)
        self._rows: Prepared[Relation, tuple[exp.Table, dict[Read, None]]] = Prepared(
            lambda kept: self._drop(kept[0])
        )
        self._lists: dict[Read, str | None] = {}
        self._made = 0

    def close(self) -> None:
        """Forget what was prepared, and let go of the connection."""
        self._pairs.clear()
        self._rows.clear()
        self._release()

    def _fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        self._frozen.check()
        rows: Sequence[Sequence[Any]] = self._connection.execute(statement).fetchall()
        self._frozen.check()
        return rows

    # --- what is asked -----------------------------------------------------------------------------

    def _sums(self, asked: Sums) -> Callable[[], Found]:
        if isinstance(asked.scheme, Rows) and not asked.present and not self._single(asked.rows):
            return self._from_rows(asked)
        return super()._sums(asked)

    def _from_rows(self, asked: Sums) -> Callable[[], Found]:
        """One pass over rows that know their unit's number of rows."""
        pairs = Pairs.of(asked)
        needed = reads_of([*asked.keys, *asked.features])
        self._counted(asked.rows, needed)  # refuses what cannot be read, before anything is run
        keys = [t.column(name) for name in pairs.key_names]
        weight = self._statements.weight(asked.scheme)
        sums = [
            named(
                self._statements.product(
                    t.column("w"), t.column(name), narrow=is_narrow_product(asked, place)
                ),
                f"s{place}",
            )
            for place, name in enumerate(pairs.sum_names)
        ]

        def work() -> Found:
            table, kept = self._rows_with(asked.rows, needed)
            valued = self._statements.valued(pairs, self._unpacked(table, kept), [named(weight.copy(), "w")])
            answer = select([*keys, *sums], valued)
            answer = answer.group_by(*(key.copy() for key in keys), copy=False) if keys else answer
            return self._fetch(self._dialect.sql(answer))

        return work

    def _from_pairs(self, pairs: Pairs, made: Callable[[exp.Table], exp.Select]) -> Callable[[], Found]:
        if self._single(pairs.rows):
            return super()._from_pairs(pairs, made)
        self._statements.pairs(pairs)  # refuses what cannot be read, before anything is run

        def work() -> Found:
            table = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
            return self._fetch(self._dialect.sql(made(table)))

        return work

    # --- what is prepared --------------------------------------------------------------------------

    def _prepare_pairs(self, pairs: Pairs) -> exp.Table:
        return self._store(self._statements.pairs(pairs, self._listed(pairs)))

    def _rows_with(self, rows: Relation, needed: Mapping[Read, None]) -> tuple[exp.Table, dict[Read, None]]:
        """The prepared rows of a relation; made again, with more columns, where one is missing."""
        table, kept = self._rows.get(rows, lambda: self._prepare_rows(rows, dict(needed)))
        if all(read in kept for read in needed):
            return table, kept
        self._rows.forget(rows)
        return self._rows.get(rows, lambda: self._prepare_rows(rows, {**kept, **needed}))

    def _prepare_rows(self, rows: Relation, needed: dict[Read, None]) -> tuple[exp.Table, dict[Read, None]]:
        return self._store(select(self._packed(needed), self._counted(rows, needed))), needed

    def _counted(self, rows: Relation, needed: Mapping[Read, None]) -> exp.Select:
        """Each row's columns, and n: how many rows its unit has."""
        counts = select([t.column(UNIT), named(t.everyone(), "n")], self._relations.rows(rows, {}))
        counts = counts.group_by(t.column(UNIT), copy=False)
        mine = t.binary(exp.EQ, t.column(UNIT, "a"), t.column(UNIT, "b"))
        columns = [t.column(self._relations.name_of(read)) for read in needed]
        chosen = select([*columns, t.column("n", "b")], self._relations.rows(rows, needed), "a")
        return chosen.join(counts.subquery("b", copy=False), on=mine, join_type="INNER", copy=False)

    def _packed(self, needed: Mapping[Read, None]) -> list[Term]:
        """Columns in as few bytes as their types allow."""
        columns: list[Term] = [t.column("n")]
        for read in needed:
            name = self._relations.name_of(read)
            columns.append(named(self._small(read, t.column(name)), name))
        return columns

    def _small(self, read: Read, value: Term) -> Term:
        if read.of.kind == TEXT:
            listed = self._list_of(read)
            return value if listed is None else t.cast(value, exp.DataType.build(listed, udt=True))
        if read.of.kind == TRUTH:
            return value
        bits = max(read.of.high, -read.of.low - 1, 0).bit_length()
        return t.cast(value, next((kind for kind, most in _WIDTHS.items() if bits <= most), t.BIGINT))

    def _unpacked(self, table: exp.Table, kept: Mapping[Read, None]) -> exp.Select:
        """The same columns with 64 bits, so that arithmetic on them has room."""
        columns: list[Term] = [t.column("n")]
        for read in kept:
            value = t.column(self._relations.name_of(read))
            small = read.of.kind in {TEXT, TRUTH}
            columns.append(named(value if small else t.cast(value, t.BIGINT), self._relations.name_of(read)))
        return select(columns, table)

    def _listed(self, pairs: Pairs) -> exp.Select:
        """The rows that pairs are made from, with listed texts as keys."""
        columns: list[Term] = [t.column(name) for name in (UNIT, *pairs.sum_names)]
        for key, name in zip(pairs.keys, pairs.key_names, strict=True):
            value = t.column(name)
            if isinstance(key, Read) and key.of.kind == TEXT:
                value = named(self._small(normal(key), value), name)
            columns.append(value)
        return select(columns, self._statements.rows(pairs))

    def _list_of(self, read: Read) -> str | None:
        """The name of a type that lists the texts of a column; None if they are too many, or may become more."""
        if read.table in self._live:
            return None
        if read not in self._lists:
            self._lists[read] = self._listing(read)
        return self._lists[read]

    def _listing(self, read: Read) -> str | None:
        """Grouping by the place in a list is several times as fast as by text. A list leaves the engine no more than rows."""
        column = t.column(self._relations.name_of(read))
        texts = select([column], self._relations.cells(read.table, {read: None})).distinct(copy=False)
        texts = select([column.copy()], texts).where(t.negated(t.is_null(column.copy())), copy=False)
        table = self._store(texts.limit(_LISTED + 1, copy=False))
        count = self._fetch(self._dialect.sql(select([t.everyone()], table)))[0][0]
        name = f"discreet_list_{len(self._lists)}"
        listed = 0 < count <= _LISTED
        if listed:
            inner = self._dialect.sql(select([column.copy()], table))
            self._connection.execute(f"CREATE OR REPLACE TEMP TYPE {name} AS ENUM ({inner})")
        self._drop(table)
        return name if listed else None

    def _store(self, rows: exp.Select) -> exp.Table:
        """Rows as a temporary table, under a name of ours."""
        self._made += 1
        name = f"discreet_{self._made}"
        self._frozen.check()
        self._connection.execute(f"CREATE TEMP TABLE {name} AS {self._dialect.sql(rows)}")
        self._frozen.check()
        return exp.table_(name)

    def _drop(self, table: exp.Table) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {table.name}")
