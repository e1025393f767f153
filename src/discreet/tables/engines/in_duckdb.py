# SPDX-License-Identifier: Apache-2.0
"""Tables in DuckDB, inside this process, with what was prepared for one question kept for the next.

    rows        for `RowScheme`: the columns that were read, as cells, and how many rows the row's unit has
    pairs       for the other schemes: for each unit and group its rows and sums
    weighted    pairs with what the weight of their unit is made from: the next question is one pass over them
    by size     what was staged for `separated_pairs`, for `RowScheme`: one pair of all units with as many rows
    units       what the weight of each unit is made from, where few groups are wanted
    weights     for key selection: each group and its weight (`group_weights`)
    separated   where few units are down-weighted: their pairs, and one of all others for each group (`down_weighted`)

**Guarantee.** As `engine`. What bounds a unit is made from the same stored rows that are summed. What is kept for the next
question is a function of files and frames alone, which stay as they were when they were opened: a file that has
changed since is not counted (`temporary`). Of a table that may change, nothing is kept: its rows are read once for each
question, stored, and forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from discreet.tables.data.engine import Choose, groups_from_sums, guard_engine, outdated_error
from discreet.tables.data.expr import Expr, Read
from discreet.tables.data.frozen import Frozen
from discreet.tables.data.sums import (
    BoundedSums,
    GroupKey,
    GroupScheme,
    OnceScheme,
    Relation,
    RowScheme,
    Scheme,
)
from discreet.tables.data.types import TEXT
from discreet.tables.engines import terms as t
from discreet.tables.engines.base import Found
from discreet.tables.engines.cache import PreparedCache
from discreet.tables.engines.down_weighted import (
    can_separate,
    heavy_pairs,
    pairs_by_size,
    separated_pairs,
    unit_totals,
)
from discreet.tables.engines.duckdb_dialect import DuckDialect, column_of
from discreet.tables.engines.group_weights import group_weights, key_rows, number_groups
from discreet.tables.engines.packing import Packer
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import UNIT, select
from discreet.tables.engines.results import value_of
from discreet.tables.engines.source import SourceColumn, SourceTable
from discreet.tables.engines.sql_engine import SqlEngine, stored_within
from discreet.tables.engines.temporary import Connected, Temporary
from discreet.tables.engines.terms import name_term
from discreet.tables.engines.tree import all_tables, reads_of

__all__ = ["DuckDB", "columns_at"]


@dataclass(frozen=True)
class _Staged:
    """The rows of a relation with their unit, some of their columns, and what each unit has of some features."""

    table: exp.Table
    kept: dict[Read, None]
    features: tuple[Expr, ...]
    units: exp.Table

    def serves(self, needed: Mapping[Read, None], features: tuple[Expr, ...] = ()) -> bool:
        """Whether it has these columns and, if there are any, these features."""
        return all(read in self.kept for read in needed) and features in {(), self.features}


class DuckDB(SqlEngine):
    """Tables in DuckDB."""

    name: str = "duckdb"

    def __init__(
        self,
        connect: Callable[[], Connected],
        tables: Mapping[str, SourceTable],
        places: Mapping[str, exp.Table],
        *,
        frozen: Frozen,
        live: set[str],
        is_shared: bool,
    ) -> None:
        super().__init__(DuckDialect(), tables, places)
        self._connect, self._frozen, self._live, self._is_shared = connect, frozen, live, is_shared
        self._places = dict(places)
        self._begin()

    def _begin(self) -> None:
        """Connect, with nothing prepared."""
        self._temporary = Temporary(self._connect(), self._dialect, self._frozen)
        self._packer = Packer(self._relations, self._temporary)
        drop = self._temporary.drop
        self._pairs: PreparedCache[Pairs, exp.Table] = PreparedCache(drop)
        self._weighted_pairs: PreparedCache[tuple[Pairs, str], exp.Table] = PreparedCache(drop)
        self._separated: PreparedCache[tuple[Pairs, Scheme], exp.Table] = PreparedCache(drop)
        self._by_size: PreparedCache[Pairs, exp.Table] = PreparedCache(drop)
        self._units: PreparedCache[tuple[Pairs, str], exp.Table] = PreparedCache(drop)
        self._group_weights: PreparedCache[BoundedSums, exp.Table] = PreparedCache(drop)
        self._staged: PreparedCache[Relation, _Staged] = PreparedCache(
            lambda staged: (drop(staged.table), drop(staged.units))
        )
        self._rows: PreparedCache[Relation, tuple[exp.Table, dict[Read, None]]] = PreparedCache(
            lambda kept: drop(kept[0])
        )
        self._process, self._sleeps = os.getpid(), False

    def _wake(self) -> None:
        if self._sleeps:
            self._begin()

    def sleep(self) -> None:
        """Let go of a connection of our own; what was prepared on it is forgotten. One of somebody else stays as it is."""
        if not self._is_shared and not self._sleeps and not self._is_closed and self._process == os.getpid():
            self._sleeps = True
            self._temporary.close()

    def _look(self) -> None:
        self._frozen.check()
        for name in sorted(self._live):
            now = columns_at(self._temporary.connection, self._places[name])
            if not self._tables[name].columns.items() <= now.items():
                raise outdated_error(f"{name} has other columns than when it was opened.")

    def _let_go(self) -> None:
        if not self._sleeps:
            for kept in vars(self).values():
                if isinstance(kept, PreparedCache):
                    kept.clear()
            self._temporary.close()

    def _fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        return self._temporary.fetch(statement)

    def _from_stored(
        self, relation: Relation, rows: exp.Select, made: Callable[[exp.Table], exp.Select]
    ) -> Found:
        if not self._may_change(relation):
            return self._fetch(self._dialect.sql(stored_within(rows, made, materialized=False)))
        table = self._temporary.store(rows)
        try:
            return self._fetch(self._dialect.sql(made(table)))
        finally:
            self._temporary.drop(table)

    def _may_change(self, rows: Relation) -> bool:
        return not self._live.isdisjoint(all_tables(rows))

    # --- what is asked -----------------------------------------------------------------------------

    def _sums(self, asked: BoundedSums) -> Callable[[], Found]:
        if self._single(asked.rows) or self._may_change(asked.rows) or isinstance(asked.scheme, OnceScheme):
            return super()._sums(asked)
        by_rows = isinstance(asked.scheme, RowScheme) and not asked.present and not asked.most_groups
        if by_rows and Pairs.of(asked) not in self._pairs:
            return self._from_rows(asked)
        if can_separate(asked) and Pairs.of(asked) not in self._pairs:
            return self._from_separated(asked)
        return self._from_weighted(asked)

    def _from_rows(self, asked: BoundedSums) -> Callable[[], Found]:
        """One pass over rows that know their unit's number of rows."""
        pairs = Pairs.of(asked)
        needed = reads_of([*asked.keys, *asked.features])
        self._relations.rows(asked.rows, needed)  # refuses what cannot be read, before anything is run

        def work() -> Found:
            staged = self._staged.find(asked.rows)
            if staged is not None and staged.serves(needed) and asked.rows not in self._rows:
                table = self._by_size.get(pairs, lambda: self._prepare_by_size(pairs, staged))
                separated = self._statements.weighted_sums(asked, table, t.column("n"), several_units=True)
                return self._fetch(self._dialect.sql(separated))
            table, kept = self._rows_with(asked.rows, needed)
            valued = self._statements.pair_values(pairs, self._packer.unpack(table, kept), [t.column("r")])
            return self._fetch(self._dialect.sql(self._statements.weighted_sums(asked, valued, t.number(1))))

        return work

    def _from_weighted(self, asked: BoundedSums) -> Callable[[], Found]:
        """One pass over pairs that know the weight of their unit."""
        pairs = Pairs.of(asked)
        self._statements.pairs(pairs)  # refuses what cannot be read, before anything is run
        units = self._dialect.sql(self._statements.units(asked, exp.table_("pairs")))

        def work() -> Found:
            if asked.among and (pairs, units) not in self._weighted_pairs:
                return self._from_few_groups(asked, units)
            table = self._weighted_pairs.get((pairs, units), lambda: self._prepare_weighted(asked, pairs))
            return self._fetch(self._dialect.sql(self._statements.weighted_sums(asked, table, t.column("n"))))

        return work

    def _from_few_groups(self, asked: BoundedSums, units: str) -> Found:
        """The pairs of the groups that are wanted meet the weights of their units; no other pair is written again."""
        pairs = Pairs.of(asked)
        source = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
        table = self._units.get(
            (pairs, units), lambda: self._temporary.store(self._statements.units(asked, source))
        )
        measured = self._statements.weighted_pairs(asked, source, table)
        return self._fetch(self._dialect.sql(self._statements.weighted_sums(asked, measured, t.column("n"))))

    def _from_separated(self, asked: BoundedSums) -> Callable[[], Found]:
        """One pass over the pairs of those who may be down-weighted, and one pair of all others for each group."""
        self._statements.pairs(Pairs.of(asked))  # refuses what cannot be read, before anything is run

        def work() -> Found:
            key = (Pairs.of(asked), asked.scheme)
            table = self._separated.get(key, lambda: self._prepare_separated(asked))
            summed = self._statements.weighted_sums(asked, table, t.column("n"), several_units=True)
            return self._fetch(self._dialect.sql(summed))

        return work

    def _from_pairs(self, pairs: Pairs, made: Callable[[exp.Table], exp.Select]) -> Callable[[], Found]:
        if self._single(pairs.rows) or self._may_change(pairs.rows):
            return super()._from_pairs(pairs, made)
        self._statements.pairs(pairs)  # refuses what cannot be read, before anything is run

        def work() -> Found:
            table = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
            return self._fetch(self._dialect.sql(made(table)))

        return work

    def selected_groups(self, asked: BoundedSums, choose: Choose) -> list[GroupKey]:
        """The keys of the groups that are chosen by their weights; the keys of others stay in DuckDB."""
        if self._may_change(asked.rows):
            return groups_from_sums(self, asked, choose)
        names = Pairs.of(asked).key_names
        if isinstance(asked.scheme, GroupScheme):
            asked = replace(asked, features=())
        # one question at a time: a table that another one needs is not forgotten meanwhile
        with self._asking():
            self.check(asked)
            table = guard_engine(self._group_weights.get, asked, lambda: self._prepare_group_weights(asked))
            places = choose(guard_engine(group_weights, self._temporary, table))
            rows = guard_engine(key_rows, self._temporary, table, names, places)
        return [tuple(map(value_of, asked.keys, row)) for row in rows]

    # --- what is prepared --------------------------------------------------------------------------

    def _prepare_pairs(self, pairs: Pairs) -> exp.Table:
        whole, columns, among = self._packer.without_filter(pairs)
        packed = self._packer.pack(columns, self._statements.rows(whole), among)
        return self._temporary.store(self._statements.pairs(pairs, packed))

    def _prepare_weighted(self, asked: BoundedSums, pairs: Pairs) -> exp.Table:
        source = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
        return self._temporary.store(self._statements.weighted_pairs(asked, source))

    def _prepare_group_weights(self, asked: BoundedSums) -> exp.Table:
        pairs = Pairs.of(asked)
        if not self._single(asked.rows):
            source = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
            return self._temporary.store(number_groups(self._statements.answer(asked, source), pairs))
        rows, answer = self._rows_and_answer(pairs, lambda table: self._statements.answer(asked, table))
        summed = stored_within(rows, answer, materialized=False)
        return self._temporary.store(number_groups(summed, pairs))

    def _rows_with(self, rows: Relation, needed: Mapping[Read, None]) -> tuple[exp.Table, dict[Read, None]]:
        """The prepared rows of a relation; made again, with more columns, where one is missing."""
        table, kept = self._rows.get(rows, lambda: self._prepare_rows(rows, dict(needed)))
        if all(read in kept for read in needed):
            return table, kept
        self._rows.forget(rows)
        return self._rows.get(rows, lambda: self._prepare_rows(rows, {**kept, **needed}))

    def _prepare_separated(self, asked: BoundedSums) -> exp.Table:
        pairs = Pairs.of(asked)
        staged = self._staged_for(pairs, reads_of([*asked.keys, *asked.features]))

        def rows() -> exp.Select:
            return self._staged_values(pairs, staged.table, staged.kept)

        heavy = self._temporary.store(heavy_pairs(self._statements, asked, rows(), staged.units))
        table = self._temporary.store(separated_pairs(self._statements, asked, rows(), heavy))
        self._temporary.drop(heavy)
        return table

    def _prepare_by_size(self, pairs: Pairs, staged: _Staged) -> exp.Table:
        rows = self._staged_values(pairs, staged.table, staged.kept)
        return self._temporary.store(pairs_by_size(self._statements, pairs, rows, staged.units))

    def _staged_for(self, pairs: Pairs, needed: dict[Read, None]) -> _Staged:
        """The staged rows of a relation; made again where a column or a feature is missing."""
        staged = self._staged.get(pairs.rows, lambda: self._prepare_staged(pairs, needed))
        if staged.serves(needed, pairs.features):
            return staged
        self._staged.forget(pairs.rows)
        return self._staged.get(pairs.rows, lambda: self._prepare_staged(pairs, needed))

    def _prepare_staged(self, pairs: Pairs, needed: dict[Read, None]) -> _Staged:
        names = {read: self._relations.name_of(read) for read in needed}
        texts = {read: name for read, name in names.items() if read.of.kind == TEXT}
        rows, among = self._packer.peel(pairs.rows, texts)
        columns = {UNIT: None} | {name: read for read, name in names.items()}
        table = self._temporary.store(self._packer.pack(columns, self._relations.rows(rows, needed), among))
        units = self._temporary.store(
            unit_totals(self._statements, pairs, self._staged_values(pairs, table, needed))
        )
        return _Staged(table, needed, pairs.features, units)

    def _staged_values(self, pairs: Pairs, table: exp.Table, kept: Mapping[Read, None]) -> exp.Select:
        """u, k0 …, v0 … of staged rows."""
        return self._statements.pair_values(pairs, self._packer.unpack(table, kept, UNIT), [t.column(UNIT)])

    def _prepare_rows(self, rows: Relation, needed: dict[Read, None]) -> tuple[exp.Table, dict[Read, None]]:
        columns = {UNIT: None} | {self._relations.name_of(read): read for read in needed}
        packed = self._temporary.store(self._packer.pack(columns, self._relations.rows(rows, needed)))
        try:
            return self._temporary.store(self._with_row_counts(packed, needed)), needed
        finally:
            self._temporary.drop(packed)

    def _with_row_counts(self, packed: exp.Table, needed: Mapping[Read, None]) -> exp.Select:
        """Each stored row's columns, and r: how many of them its unit has."""
        counts = select([t.column(UNIT), name_term(t.everyone(), "r")], packed)
        counts = counts.group_by(t.column(UNIT), copy=False)
        mine = t.binary(exp.EQ, t.column(UNIT, "a"), t.column(UNIT, "b"))
        columns = [t.column(self._relations.name_of(read)) for read in needed]
        rows = packed.copy()
        rows.set("alias", exp.TableAlias(this=exp.to_identifier("a")))
        chosen = select([*columns, t.column("r", "b")], rows)
        return chosen.join(counts.subquery("b", copy=False), on=mine, join_type="INNER", copy=False)


def columns_at(connection: Any, place: exp.Table) -> dict[str, SourceColumn]:
    """The columns of a table or view, from its schema."""
    shape = select([exp.Star()], place).sql(dialect="duckdb")
    rows = connection.execute(f"DESCRIBE {shape}").fetchall()
    return {row[0]: column_of(row[0], row[1]) for row in rows}
