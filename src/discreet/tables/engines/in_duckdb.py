# SPDX-License-Identifier: Apache-2.0
"""Tables in DuckDB, inside this process, with what was prepared for one question kept for the next.

    rows        for `RowScheme`: the columns that were read, and the number of rows of the unit
    pairs       for the other schemes: the rows and sums of each unit in each group
    weighted    pairs with what makes the weight of their unit: the next question is one pass
    by size     for `RowScheme`, from staged rows: all units with as many rows as one, by group
    units       what makes the weight of each unit, if few groups are requested
    weights     for key selection: each group and its weight; only groups that are chosen get a key in Python
    separated   the pairs of down-weighted units, and one pair of all units for each group
                (`down_weighted`)

**Guarantee.** As `engine`. The rows that bound a unit are the stored rows that are summed. What is
kept depends on files and frames alone, which stay as they were when they were opened: a changed
file is not counted (`temporary`). Of a table that may change nothing is kept: its rows are read
once for each question, stored, and deleted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlglot import exp

from discreet.tables.algebra.engine import Choose, Integers, groups_from_sums, guard_engine, outdated_error
from discreet.tables.algebra.expr import Expr, Read
from discreet.tables.algebra.frozen import Frozen
from discreet.tables.algebra.sums import (
    BoundedSums,
    GroupKey,
    GroupScheme,
    MarginScheme,
    OnceScheme,
    Relation,
    RowScheme,
    Scheme,
)
from discreet.tables.algebra.types import TEXT
from discreet.tables.engines import terms as t
from discreet.tables.engines.base import ResultRows
from discreet.tables.engines.cache import PreparedCache
from discreet.tables.engines.down_weighted import (
    can_separate,
    heavy_pairs,
    pairs_by_size,
    separated_pairs,
    unit_totals,
)
from discreet.tables.engines.duckdb_dialect import DuckDialect, column_of
from discreet.tables.engines.margins import margin_weights
from discreet.tables.engines.packing import Packer
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import select
from discreet.tables.engines.results import value_of
from discreet.tables.engines.source import SourceColumn, SourceTable
from discreet.tables.engines.sql_engine import SqlEngine, stored_within
from discreet.tables.engines.temporary import Connected, Temporary
from discreet.tables.engines.terms import UNIT, name_term
from discreet.tables.engines.tree import all_tables, reads_of

__all__ = ["DuckDB", "columns_at"]


@dataclass(frozen=True)
class _Staged:
    """The rows of a relation with their unit, some of their columns, and totals of each unit."""

    table: exp.Table
    columns: dict[Read, None]
    features: tuple[Expr, ...]
    totals: exp.Table

    def serves(self, needed: Mapping[Read, None], features: tuple[Expr, ...] = ()) -> bool:
        """Whether it has these columns and, if there are any, the totals of these features."""
        return all(read in self.columns for read in needed) and features in {(), self.features}


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
            lambda staged: (drop(staged.table), drop(staged.totals))
        )
        self._rows: PreparedCache[Relation, tuple[exp.Table, dict[Read, None]]] = PreparedCache(
            lambda entry: drop(entry[0])
        )
        self._process, self._sleeps = os.getpid(), False

    def _wake(self) -> None:
        if self._sleeps:
            self._begin()

    def sleep(self) -> None:
        """Close a connection of our own, with all that was prepared on it; a user's stays open."""
        if not self._is_shared and not self._sleeps and not self._is_closed and self._process == os.getpid():
            self._sleeps = True
            self._temporary.close()

    def _check_source(self) -> None:
        self._frozen.check()
        for name in sorted(self._live):
            now = columns_at(self._temporary.connection, self._places[name])
            if not self._tables[name].columns.items() <= now.items():
                raise outdated_error(f"{name} has other columns than when it was opened.")

    def _release(self) -> None:
        if not self._sleeps:
            for cache in vars(self).values():
                if isinstance(cache, PreparedCache):
                    cache.clear()
            self._temporary.close()

    def _fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        return self._temporary.fetch(statement)

    def _run(self, answer: exp.Query) -> ResultRows:
        return self._fetch(self._dialect.sql(answer))

    def _public_rows(self, source: SourceTable) -> Any:
        return self._temporary.fetch_arrow(self._public_statement(source))

    def _from_stored(
        self, relation: Relation, rows: exp.Select, answer: Callable[[exp.Table], exp.Select]
    ) -> ResultRows:
        if not self._may_change(relation):
            return self._run(stored_within(rows, answer, materialized=False))
        table = self._temporary.store(rows)
        try:
            return self._run(answer(table))
        finally:
            self._temporary.drop(table)

    def _may_change(self, rows: Relation) -> bool:
        return not self._live.isdisjoint(all_tables(rows))

    # --- requests ----------------------------------------------------------------------------

    def _sums(self, request: BoundedSums) -> Callable[[], ResultRows]:
        if (
            self._is_single(request.rows)
            or self._may_change(request.rows)
            or isinstance(request.scheme, OnceScheme)
        ):
            return super()._sums(request)
        by_rows = isinstance(request.scheme, RowScheme) and not request.present and not request.most_groups
        if by_rows and Pairs.of(request) not in self._pairs:
            return self._from_rows(request)
        if can_separate(request) and Pairs.of(request) not in self._pairs:
            return self._from_separated(request)
        return self._from_weighted(request)

    def _from_rows(self, request: BoundedSums) -> Callable[[], ResultRows]:
        """One pass over rows that carry the number of rows of their unit."""
        pairs = Pairs.of(request)
        needed = reads_of([*request.keys, *request.features])
        # Refuses what cannot be read, before anything is run.
        self._relations.rows(request.rows, needed)

        def work() -> ResultRows:
            staged = self._staged.find(request.rows)
            if staged is not None and staged.serves(needed) and request.rows not in self._rows:
                table = self._by_size.get(pairs, lambda: self._prepare_by_size(pairs, staged))
                separated = self._statements.weighted_sums(request, table, t.column("n"), several_units=True)
                return self._run(separated)
            table, columns = self._rows_with(request.rows, needed)
            cells = self._packer.unpack(table, columns)
            valued = self._statements.pair_values(pairs, cells, [t.column("r")])
            return self._run(self._statements.weighted_sums(request, valued, t.number(1)))

        return work

    def _from_weighted(self, request: BoundedSums) -> Callable[[], ResultRows]:
        """One pass over pairs that carry the weight of their unit."""
        pairs = Pairs.of(request)
        # Refuses what cannot be read, before anything is run.
        self._statements.pairs(pairs)
        units = self._dialect.sql(self._statements.units(request, exp.table_("pairs")))

        def work() -> ResultRows:
            if request.among and (pairs, units) not in self._weighted_pairs:
                return self._from_few_groups(request, units)
            table = self._weighted_pairs.get((pairs, units), lambda: self._prepare_weighted(request, pairs))
            return self._run(self._statements.weighted_sums(request, table, t.column("n")))

        return work

    def _from_few_groups(self, request: BoundedSums, units: str) -> ResultRows:
        """The requested pairs alone, joined with the weights of their units."""
        pairs = Pairs.of(request)
        source = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
        table = self._units.get(
            (pairs, units), lambda: self._temporary.store(self._statements.units(request, source))
        )
        measured = self._statements.weighted_pairs(request, source, table)
        return self._run(self._statements.weighted_sums(request, measured, t.column("n")))

    def _from_separated(self, request: BoundedSums) -> Callable[[], ResultRows]:
        """One pass over the down-weighted pairs, and one pair of all units for each group."""
        # Refuses what cannot be read, before anything is run.
        self._statements.pairs(Pairs.of(request))

        def work() -> ResultRows:
            key = (Pairs.of(request), request.scheme)
            table = self._separated.get(key, lambda: self._prepare_separated(request))
            summed = self._statements.weighted_sums(request, table, t.column("n"), several_units=True)
            return self._run(summed)

        return work

    def _from_pairs(
        self, pairs: Pairs, answer: Callable[[exp.Table], exp.Select]
    ) -> Callable[[], ResultRows]:
        if self._is_single(pairs.rows) or self._may_change(pairs.rows):
            return super()._from_pairs(pairs, answer)
        # Refuses what cannot be read, before anything is run.
        self._statements.pairs(pairs)

        def work() -> ResultRows:
            table = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
            return self._run(answer(table))

        return work

    def selected_groups(self, request: BoundedSums, choose: Choose) -> list[GroupKey]:
        """The keys of the chosen groups; the keys of others stay in DuckDB."""
        if self._may_change(request.rows):
            return groups_from_sums(self, request, choose)
        names = Pairs.of(request).key_names
        if isinstance(request.scheme, GroupScheme):
            request = replace(request, features=())
        # Locked, so that no other question drops the table meanwhile.
        with self._asking():
            self.check(request)
            table = guard_engine(
                self._group_weights.get, request, lambda: self._prepare_group_weights(request)
            )
            places = choose(guard_engine(group_weights, self._temporary, table))
            rows = guard_engine(key_rows, self._temporary, table, names, places)
        return [tuple(map(value_of, request.keys, row)) for row in rows]

    # --- what is prepared ------------------------------------------------------------------------

    def _prepare_pairs(self, pairs: Pairs) -> exp.Table:
        whole, columns, among = self._packer.without_filter(pairs)
        packed = self._packer.pack(columns, self._statements.rows(whole), among)
        return self._temporary.store(self._statements.pairs(pairs, packed))

    def _prepare_weighted(self, request: BoundedSums, pairs: Pairs) -> exp.Table:
        source = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
        return self._temporary.store(self._statements.weighted_pairs(request, source))

    def _prepare_group_weights(self, request: BoundedSums) -> exp.Table:
        pairs = Pairs.of(request)
        if not self._is_single(request.rows):
            source = self._pairs.get(pairs, lambda: self._prepare_pairs(pairs))
            return self._temporary.store(number_groups(self._statements.answer(request, source), pairs))
        rows, answer = self._rows_and_answer(pairs, lambda table: self._statements.answer(request, table))
        summed = stored_within(rows, answer, materialized=False)
        return self._temporary.store(number_groups(summed, pairs))

    def _rows_with(self, rows: Relation, needed: Mapping[Read, None]) -> tuple[exp.Table, dict[Read, None]]:
        """The prepared rows of a relation; made again with more columns if one is missing."""
        table, columns = self._rows.get(rows, lambda: self._prepare_rows(rows, dict(needed)))
        if all(read in columns for read in needed):
            return table, columns
        self._rows.drop(rows)
        return self._rows.get(rows, lambda: self._prepare_rows(rows, {**columns, **needed}))

    def _prepare_separated(self, request: BoundedSums) -> exp.Table:
        pairs = Pairs.of(request)
        # Units with many rows are known by their rows alone.
        totals = replace(pairs, features=()) if isinstance(request.scheme, MarginScheme) else pairs
        staged = self._staged_for(totals, reads_of([*request.keys, *request.features]))

        def rows() -> exp.Select:
            return self._staged_values(pairs, staged.table, staged.columns)

        heavy = self._temporary.store(heavy_pairs(self._statements, request, rows(), staged.totals))
        weights = None
        if isinstance(request.scheme, MarginScheme):
            measured = margin_weights(self._statements, request, heavy, have_many=True)
            weights = self._temporary.store(measured)
        table = self._temporary.store(separated_pairs(self._statements, request, rows(), heavy, weights))
        for stored in (heavy, *([] if weights is None else [weights])):
            self._temporary.drop(stored)
        return table

    def _prepare_by_size(self, pairs: Pairs, staged: _Staged) -> exp.Table:
        rows = self._staged_values(pairs, staged.table, staged.columns)
        return self._temporary.store(pairs_by_size(self._statements, pairs, rows, staged.totals))

    def _staged_for(self, pairs: Pairs, needed: dict[Read, None]) -> _Staged:
        """The staged rows of a relation; made again if a column or a feature is missing."""
        staged = self._staged.get(pairs.rows, lambda: self._prepare_staged(pairs, needed))
        if staged.serves(needed, pairs.features):
            return staged
        self._staged.drop(pairs.rows)
        return self._staged.get(pairs.rows, lambda: self._prepare_staged(pairs, needed))

    def _prepare_staged(self, pairs: Pairs, needed: dict[Read, None]) -> _Staged:
        names = {read: self._relations.name_of(read) for read in needed}
        texts = {read: name for read, name in names.items() if read.of.kind == TEXT}
        rows, among = self._packer.peel(pairs.rows, texts)
        columns = {UNIT: None} | {name: read for read, name in names.items()}
        table = self._temporary.store(self._packer.pack(columns, self._relations.rows(rows, needed), among))
        rows_with_features = self._staged_values(pairs, table, needed)
        totals = self._temporary.store(unit_totals(self._statements, pairs, rows_with_features))
        return _Staged(table, needed, pairs.features, totals)

    def _staged_values(self, pairs: Pairs, table: exp.Table, columns: Mapping[Read, None]) -> exp.Select:
        """u, k0 …, v0 … of staged rows."""
        return self._statements.pair_values(
            pairs, self._packer.unpack(table, columns, UNIT), [t.column(UNIT)]
        )

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
        same_unit = t.binary(exp.EQ, t.column(UNIT, "a"), t.column(UNIT, "b"))
        columns = [t.column(self._relations.name_of(read)) for read in needed]
        rows = packed.copy()
        rows.set("alias", exp.TableAlias(this=exp.to_identifier("a")))
        chosen = select([*columns, t.column("r", "b")], rows)
        return chosen.join(counts.subquery("b", copy=False), on=same_unit, join_type="INNER", copy=False)


def columns_at(connection: Any, place: exp.Table) -> dict[str, SourceColumn]:
    """The columns of a table or view, from its schema."""
    shape = select([exp.Star()], place).sql(dialect="duckdb")
    rows = connection.execute(f"DESCRIBE {shape}").fetchall()
    return {row[0]: column_of(row[0], row[1]) for row in rows}


def number_groups(summed: exp.Select, pairs: Pairs) -> exp.Select:
    """g, k0 …, s0 from k0 …, s0: the groups, numbered in the order of their keys. A number tells
    nothing about a group that is not chosen.

    A weight is at most 2^12 for each of at most 2^40 units, so 64 bits hold their sum.
    """
    keys = pairs.key_names
    # A packed text is a position in a list, and the list has no order.
    terms = [
        t.cast(t.column(name), "TEXT") if key.type.kind == TEXT else t.column(name)
        for key, name in zip(pairs.keys, keys, strict=True)
    ]
    order = exp.Order(expressions=[exp.Ordered(this=term, nulls_first=False) for term in terms])
    number = exp.Window(this=exp.RowNumber(), order=order)
    weight = name_term(t.cast(t.column("s0"), t.BIGINT), "s0")
    return select([name_term(number, "g"), *map(t.column, keys), weight], summed)


def group_weights(temporary: Temporary, table: exp.Table) -> Integers:
    """The weight of each group, in the order of their numbers."""
    # The name is ours.
    columns = temporary.fetch_arrays(f"SELECT g, s0 FROM {table.name}")  # noqa: S608
    weights = np.empty(columns["g"].size, np.int64)
    weights[columns["g"] - 1] = columns["s0"]
    return weights


def key_rows(temporary: Temporary, table: exp.Table, keys: list[str], places: Integers) -> list[Any]:
    """The keys of the groups at these places of the array, in the same order."""
    if not places.size:
        return []
    columns = ", ".join(f'"{key}"' for key in keys)
    numbers = ", ".join(str(int(place) + 1) for place in places)
    # Every part of the statement is a name or a number of ours.
    rows = temporary.fetch(f"SELECT g, {columns} FROM {table.name} WHERE g IN ({numbers})")  # noqa: S608
    key_by_number = {number: key for number, *key in rows}
    return [key_by_number[int(place) + 1] for place in places]
