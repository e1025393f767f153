# SPDX-License-Identifier: Apache-2.0
"""The rows of a plan as a lazy frame of Polars: the unit, and one column of cells for each column
read.

**Guarantee.** As `relation`: each operator acts on the rows of one unit and on public tables alone.
Each operator evaluates a frame that may change once, so the rows that match are the rows that are
kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

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
    inner_relations,
    relation_expressions,
)
from discreet.tables.engines.polars_write import PolarsWriter, cell, narrow, plain, wide
from discreet.tables.engines.results import period_of
from discreet.tables.engines.source import (
    SourceTable,
    comparable,
    known_table,
    readable,
)
from discreet.tables.engines.terms import UNIT
from discreet.tables.engines.tree import inner_names, labels, normal, reads_of, unit_of

__all__ = ["PolarsRows", "is_ordered"]

Needed = Mapping[Read, None]
_NUMBER = "number"


class PolarsRows:
    """Writes the rows of plans over some frames."""

    def __init__(self, frames: Mapping[str, pl.LazyFrame], tables: Mapping[str, SourceTable]) -> None:
        self.frames, self.tables = frames, tables
        self._names: dict[Read, str] = {}

    def name_of(self, read: Read) -> str:
        """The name of a column of cells."""
        return self._names.setdefault(normal(read), f"c{len(self._names)}")

    def writer(self) -> PolarsWriter:
        """Writes expressions on the columns of `rows`."""
        return PolarsWriter(lambda read: pl.col(self.name_of(read)))

    def cells(self, table: SourceTable, needed: Iterable[Read], label: str) -> dict[str, pl.Expr]:
        """Columns of a table where they are read, whoever they belong to."""
        reads = [read for read in needed if read.table == label]
        return {self.name_of(read): cell(readable(table, read), read.of) for read in reads}

    def rows(self, rows: Relation, needed: Needed) -> pl.LazyFrame:
        """The unit, and the cells of the columns that are needed."""
        match rows:
            case Private():
                return self._private(rows, needed)
            case Linked():
                return self._linked_rows(rows, needed)
            case Filtered():
                inner = self.rows(rows.rows, {**needed, **reads_of([rows.condition])})
                return inner.filter(self.writer().write(rows.condition))
            case Lookup():
                return self._lookup(rows, needed)
            case Paired():
                return self._paired_rows(rows, needed)
            case PerUnit():
                return self._per_unit(rows, needed)
            case Windowed():
                return self._windowed_rows(rows, needed)
        return self._stacked_rows(rows, needed)

    # --- tables and joins ------------------------------------------------------------------------

    def _private(self, rows: Private, needed: Needed) -> pl.LazyFrame:
        table = known_table(self.tables, rows.table, private=True)
        period = period_of(table, rows.label)
        read = needed if period is None else {**needed, **reads_of([period])}
        frame, cells = self.frames[rows.table], self.cells(table, read, rows.label)
        if table.unit == ROW:
            return frame.with_columns(**cells, one=narrow(1)).select(*cells, "one")
        unit = comparable(table)
        unit_value = plain(unit)
        is_owned = (
            unit_value.is_not_null() & unit_value.is_not_nan()
            if unit.kind == "real"
            else unit_value.is_not_null()
        )
        owned = frame.filter(is_owned).select(**cells, **{UNIT: unit_value})
        if period is None:
            return owned
        first_day = self.writer().write(period)
        divided = pl.concat_str([pl.col(UNIT).cast(pl.String), first_day.cast(pl.String)], separator=" ")
        columns = [self.name_of(read) for read in needed]
        return owned.filter(first_day.is_not_null()).select(*columns, **{UNIT: divided})

    def _linked_rows(self, rows: Linked, needed: Needed) -> pl.LazyFrame:
        table = known_table(self.tables, rows.table, private=True, linked=True)
        cells = self.cells(table, {**needed, **reads_of([rows.column])}, rows.label)
        owners = self.rows(rows.owners, reads_of([rows.key]))
        key, column = self.name_of(rows.key), self.name_of(rows.column)
        owners = owners.select(UNIT, key).filter(pl.col(key).is_not_null()).unique()
        linked = self.frames[rows.table].select(**cells)
        joined = linked.join(owners, left_on=column, right_on=key, how="inner", nulls_equal=False)
        return joined.select(*map(self.name_of, needed), UNIT)

    def _lookup(self, rows: Lookup, needed: Needed) -> pl.LazyFrame:
        table = known_table(self.tables, rows.table, private=False)
        private = {read: None for read in needed if read.table != rows.label}
        left = self.rows(rows.rows, {**private, **reads_of(ours for ours, _ in rows.on)})
        reads = {**needed, **reads_of(other for _, other in rows.on)}
        cells = self.cells(table, reads, rows.label)
        right = (
            self.frames[rows.table].with_columns(**cells, one=narrow(1)).select(*cells, other=pl.col("one"))
        )
        if unit_of(self.tables, rows) == ROW:
            # A key that occurs twice would make two units of one row.
            right = right.unique(subset=[self.name_of(other) for _, other in rows.on], keep="none")
        how = "left" if rows.keep else "inner"
        return self._match_rows(left, right, rows.on, how, []).drop("other")

    def _paired_rows(self, rows: Paired, needed: Needed) -> pl.LazyFrame:
        left_labels, right_labels = set(labels(rows.rows)), set(labels(rows.other))
        reads = {**needed, **reads_of(relation_expressions(rows))}
        left = self.rows(rows.rows, {read: None for read in reads if read.table in left_labels})
        right = self.rows(rows.other, {read: None for read in reads if read.table in right_labels})
        right = right.rename({UNIT: "v"})
        if rows.condition is None:
            how = rows.kind
            joined = self._match_rows(left, right, rows.on, how, [(UNIT, "v")])
            if how == "full":
                joined = joined.with_columns(pl.coalesce(UNIT, "v").alias(UNIT))
            return joined.select(*map(self.name_of, needed), UNIT)
        return self._matched_if(rows, left, right, needed)

    def _matched_if(
        self, rows: Paired, left: pl.LazyFrame, right: pl.LazyFrame, needed: Needed
    ) -> pl.LazyFrame:
        """A join with a further condition. The number of a row only tells it from others, whatever
        it is.
        """
        assert rows.kind in {"inner", "left", "semi", "anti"}
        assert rows.condition is not None
        numbered = left.with_row_index(_NUMBER)
        is_match = pl.col("v").is_not_null() & self.writer().write(rows.condition).fill_null(value=False)
        joined = self._match_rows(numbered, right, rows.on, "left", [(UNIT, "v")])
        tried = joined.with_columns(hit=is_match)
        columns = [*map(self.name_of, needed), UNIT]
        if rows.kind == "inner":
            return tried.filter("hit").select(*columns)
        if rows.kind in {"semi", "anti"}:
            once = tried.group_by(_NUMBER).agg(pl.col(*columns).first(), pl.col("hit").any())
            return once.filter(pl.col("hit") if rows.kind == "semi" else ~pl.col("hit")).select(*columns)
        right_labels = set(labels(rows.other))
        theirs = [self.name_of(read) for read in needed if read.table in right_labels]
        hits = tried.with_columns(
            pl.col("hit").any().over(_NUMBER).alias("some"),
            pl.int_range(pl.len()).over(_NUMBER).alias("nth"),
            *(pl.when("hit").then(pl.col(name)).alias(name) for name in theirs),
        )
        return hits.filter(pl.col("hit") | (~pl.col("some") & (pl.col("nth") == 0))).select(*columns)

    def _match_rows(
        self, left: pl.LazyFrame, right: pl.LazyFrame, on: Any, how: Any, units: list[tuple[str, str]]
    ) -> pl.LazyFrame:
        """A join on the pairs of `on` and on units; NULL equals nothing."""
        write = self.writer().write
        ours = {f"l{number}": write(left_key) for number, (left_key, _) in enumerate(on)}
        theirs = {f"r{number}": write(right_key) for number, (_, right_key) in enumerate(on)}
        joined = left.with_columns(**ours).join(
            right.with_columns(**theirs),
            left_on=[*ours, *(unit for unit, _ in units)],
            right_on=[*theirs, *(unit for _, unit in units)],
            how=how,
            nulls_equal=False,
            coalesce=None if how in {"semi", "anti"} else False,
        )
        return joined.drop(*ours, *([] if how in {"semi", "anti"} else theirs))

    # --- aggregates, windows, unions -------------------------------------------------------------

    def _per_unit(self, rows: PerUnit, needed: Needed) -> pl.LazyFrame:
        names = inner_names([*dict(rows.keys), *dict(rows.aggregates)])
        columns = {read.column for read in needed}
        keys = {names[name]: key for name, key in rows.keys}
        aggregates = {names[name]: aggregate for name, aggregate in rows.aggregates if name in columns}
        operands = {name: each.of for name, each in aggregates.items() if each.of is not None}
        valued = self._values_of(rows.rows, {**keys, **operands})
        grouped = valued.group_by(UNIT, *keys).agg(
            *(_aggregate(aggregate, name).alias(name) for name, aggregate in aggregates.items())
        )
        return self._computed_cells(grouped, needed, names)

    def _windowed_rows(self, rows: Windowed, needed: Needed) -> pl.LazyFrame:
        names = inner_names(dict(rows.columns))
        computed = {read: None for read in needed if read.table == rows.name}
        passed = {read: None for read in needed if read.table != rows.name}
        reads = {**passed, **reads_of(relation_expressions(rows))}
        ties = [self.name_of(read) for read in sorted(reads, key=repr)]
        frame = self.rows(rows.rows, reads)
        columns = {read.column for read in computed}
        for name, function in rows.columns:
            if name in columns:
                frame = self._with_window(frame, function, names[name], ties)
        return self._computed_cells(frame, computed, names, [*map(self.name_of, passed), UNIT])

    def _with_window(
        self, frame: pl.LazyFrame, function: WindowFunction, name: str, ties: list[str]
    ) -> pl.LazyFrame:
        """One more column. Rows are sorted first, so a row sees those before it in its group."""
        write = self.writer().write
        parts = {f"p{number}": write(part) for number, part in enumerate(function.partition)}
        order = {f"q{number}": write(key) for number, (key, _) in enumerate(function.order)}
        operand = {} if function.of is None else {"operand": write(function.of)}
        frame = frame.with_columns(**parts, **order, **operand)
        by, down = [UNIT, *parts, *order, *ties], [descends for _, descends in function.order]
        descending = [False] * (1 + len(parts)) + down + [False] * len(ties)
        frame = frame.sort(by, descending=descending, nulls_last=True, maintain_order=True)
        within, peers = [UNIT, *parts], [UNIT, *parts, *order]
        if function.kind in {"sum", "count", "count_of", "min", "max"}:
            frame = _with_total(frame, function, name, within, peers)
        else:
            frame = _with_place(frame, function, name, within, peers)
        return frame.drop(*parts, *order, *operand)

    def _stacked_rows(self, rows: Stacked, needed: Needed) -> pl.LazyFrame:
        names = inner_names(rows.columns)
        columns = dict.fromkeys(read.column for read in needed)
        frames = []
        for part, expressions in rows.parts:
            by_name = dict(zip(rows.columns, expressions, strict=True))
            frames.append(self._values_of(part, {names[name]: by_name[name] for name in columns}))
        stacked = pl.concat(frames, how="vertical")
        kept = [] if self._is_single(rows) else [UNIT]
        return self._computed_cells(stacked, needed, names, kept)

    def _is_single(self, rows: Relation) -> bool:
        return unit_of(self.tables, rows) == ROW

    def _values_of(self, rows: Relation, values: Mapping[str, Expr]) -> pl.LazyFrame:
        """The unit of each row, and some expressions by their names."""
        inner, write = self.rows(rows, reads_of(values.values())), self.writer().write
        columns = {name: write(value) for name, value in values.items()}
        if self._is_single(rows):
            return inner.with_columns(**columns, one=narrow(1)).select(*columns, "one")
        return inner.with_columns(**columns).select(*columns, UNIT)

    def _computed_cells(
        self, frame: pl.LazyFrame, needed: Needed, names: Mapping[str, str], kept: Sequence[str] = (UNIT,)
    ) -> pl.LazyFrame:
        """Columns that were computed here, as cells of the types with which they are read."""
        cells = {}
        for read in needed:
            value = pl.col(names[read.column])
            ends = (wide(read.of.low), wide(read.of.high))
            cells[self.name_of(read)] = (
                value.cast(pl.Int128).clip(*ends).cast(pl.Int64) if read.of.is_ordered else value
            )
        if not cells and not kept:
            return frame.select("one")
        return frame.select(*kept, **cells)


def is_ordered(rows: Relation) -> bool:
    """Whether rows are sorted or numbered on the way."""
    conditioned = isinstance(rows, Paired) and rows.condition is not None
    return isinstance(rows, Windowed) or conditioned or any(map(is_ordered, inner_relations(rows)))


def _aggregate(aggregate: UnitAggregate, operand: str) -> pl.Expr:
    value = pl.col(operand)
    if aggregate.kind == "count":
        return pl.len().cast(pl.Int64)
    if aggregate.kind == "count_of":
        return value.count().cast(pl.Int64)
    if aggregate.kind == "distinct":
        return value.drop_nulls().n_unique().cast(pl.Int64)
    if aggregate.kind == "sum":
        # Polars sums nothing to 0.
        return pl.when(value.count() > 0).then(value.cast(pl.Int128).sum())
    return value.min() if aggregate.kind == "min" else value.max()


def _with_place(
    frame: pl.LazyFrame, function: WindowFunction, name: str, within: list[str], peers: list[str]
) -> pl.LazyFrame:
    """Numbers of rows, and values of rows before and after; the rows are sorted."""
    number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    if function.kind == "row_number":
        return frame.with_columns(number.over(within).alias(name))
    if function.kind == "rank":
        numbered = frame.with_columns(number.over(within).alias(name))
        return numbered.with_columns(pl.col(name).min().over(peers))
    if function.kind == "dense_rank":
        first = number.over(peers) == narrow(1)
        numbered = frame.with_columns(first.cast(pl.Int64).alias(name))
        return numbered.with_columns(pl.col(name).cum_sum().over(within))
    if function.kind == "first":
        return frame.with_columns(pl.col("operand").first().over(within).alias(name))
    offset = function.offset if function.kind == "lag" else -function.offset
    return frame.with_columns(pl.col("operand").shift(offset).over(within).alias(name))


def _with_total(
    frame: pl.LazyFrame, function: WindowFunction, name: str, within: list[str], peers: list[str]
) -> pl.LazyFrame:
    """Totals over a partition, or over the rows up to each of them; the rows are sorted."""
    kind = function.kind
    value = narrow(1) if kind == "count" else pl.col("operand")
    if kind == "count_of":
        value = value.is_not_null().cast(pl.Int64)
    if kind == "sum":
        value = value.cast(pl.Int128)
    known = pl.col("operand").is_not_null().cast(pl.Int64) if function.of is not None else narrow(1)
    frame = frame.with_columns(value.alias(name), known.alias("known"))
    total, some = pl.col(name), pl.col("known")
    if not function.order:
        added = {"min": total.min(), "max": total.max()}.get(kind, total.sum())
        made = pl.when(some.sum() > narrow(0)).then(added) if kind in {"sum", "min", "max"} else added
        return frame.with_columns(made.over(within).alias(name)).drop("known")
    running = {"min": total.cum_min(), "max": total.cum_max()}.get(kind, total.fill_null(0).cum_sum())
    if kind in {"min", "max"}:
        running = running.forward_fill()
    if kind in {"sum", "min", "max"}:
        running = pl.when(some.cum_sum() > narrow(0)).then(running)
    frame = frame.with_columns(running.over(within).alias(name)).drop("known")
    return frame if function.rows else frame.with_columns(pl.col(name).last().over(peers))
