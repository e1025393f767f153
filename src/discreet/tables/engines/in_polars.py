# SPDX-License-Identifier: Apache-2.0
"""Tables in Polars, inside this process.

**Guarantee.** As `engine`. The pairs of unit and group of the last few questions, and the weights of groups, are kept, as a function of the frames and
files that were opened; whatever is asked next of the same pairs is made from them. A lazy frame may say something
else each time: its rows are collected once for each question, and nothing is kept of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from discreet.tables.data.engine import Choose, groups_from_sums, guard_engine
from discreet.tables.data.expr import Constant, Read
from discreet.tables.data.frozen import Frozen
from discreet.tables.data.readers.parquet import Parquet
from discreet.tables.data.readers.schema import guard_opening
from discreet.tables.data.readers.sound import sanitize
from discreet.tables.data.readers.texts import from_path
from discreet.tables.data.sums import (
    BoundedSums,
    GroupKey,
    GroupScheme,
    Lookup,
    MassScheme,
    NormScheme,
    OnceScheme,
    RowScheme,
    Scheme,
    UnitSizes,
)
from discreet.tables.engines import forks
from discreet.tables.engines.base import EngineBase, Found
from discreet.tables.engines.cache import PreparedCache
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.polars_rows import PolarsRows
from discreet.tables.engines.polars_write import narrow, type_of, wide
from discreet.tables.engines.results import cells_of, value_of, wanted_parts
from discreet.tables.engines.source import SourceColumn, SourceTable
from discreet.tables.engines.terms import UNIT
from discreet.tables.engines.tree import all_tables, reads_of
from discreet.tables.engines.widths import HEAVIEST, STEPS, is_narrow_product, is_narrow_sum

__all__ = ["Polars", "open_polars"]


class Polars(EngineBase):
    """Tables in Polars."""

    name: str = "polars"

    def __init__(
        self,
        frames: Mapping[str, pl.LazyFrame],
        tables: Mapping[str, SourceTable],
        frozen: Frozen,
        live: set[str],
    ) -> None:
        super().__init__(tables)
        self._frames, self._frozen, self._live = dict(frames), frozen, live
        self._rows = PolarsRows(self._frames, self._tables)
        self._prepared: PreparedCache[Pairs, pl.DataFrame] = PreparedCache(lambda _: None)
        self._group_weights: PreparedCache[BoundedSums, pl.DataFrame] = PreparedCache(lambda _: None)

    def _let_go(self) -> None:
        self._prepared.clear()
        self._group_weights.clear()

    def _wake(self) -> None:
        """Frames cross a fork; the threads that carry them out do not."""
        forks.refuse_without_polars()
        self._process = os.getpid()

    def _look(self) -> None:
        self._frozen.check()

    # --- pairs, weights, answers -------------------------------------------------------------------

    def _pairs(self, pairs: Pairs, frame: pl.LazyFrame) -> pl.LazyFrame:
        """u, k0 …, n, v0 … for each unit and group, from the unit and the cells of rows."""
        write = self._rows.writer().write
        keys = {name: write(key) for key, name in zip(pairs.keys, pairs.key_names, strict=True)}
        values = {}
        for feature, name in zip(pairs.features, pairs.sum_names, strict=True):
            value = write(feature).fill_null(narrow(0))
            values[name] = value if is_narrow_sum(feature) else value.cast(pl.Int128)
        valued = frame.with_columns(**keys, **values)
        if self._single(pairs.rows):
            return valued.with_columns(n=narrow(1)).select(*keys, "n", *values)
        counted = pl.len().cast(pl.Int64).alias("n")
        return valued.group_by(UNIT, *keys).agg(counted, *(pl.col(name).sum() for name in values))

    def _cached_pairs(self, pairs: Pairs) -> Callable[[], pl.LazyFrame]:
        """The pairs, from memory if they are there."""
        rows = self._rows.rows(pairs.rows, reads_of([*pairs.keys, *pairs.features]))
        single = self._single(pairs.rows)

        def of_present() -> pl.DataFrame:
            stored = rows.collect().lazy()
            # a frame that was evaluated twice on its way may have told the filter something else
            known = stored if single else stored.filter(pl.col(UNIT).is_not_null())
            return self._pairs(pairs, known).collect()

        def make() -> pl.LazyFrame:
            self._frozen.check()
            if self._live.isdisjoint(all_tables(pairs.rows)):
                frame = self._prepared.get(pairs, self._pairs(pairs, rows).collect)
            else:
                frame = of_present()
            self._frozen.check()
            return frame.lazy()

        self._pairs(pairs, rows)  # refuses what cannot be asked, before anything is run

        return make

    def _sums(self, asked: BoundedSums) -> Callable[[], Found]:
        pairs = Pairs.of(asked)
        made = self._cached_pairs(pairs)
        return lambda: self._answer(asked, pairs, made()).collect().rows()

    def selected_groups(self, asked: BoundedSums, choose: Choose) -> list[GroupKey]:
        """The keys of the groups that are chosen by their weights; no other key becomes an object of Python."""
        if not self._live.isdisjoint(all_tables(asked.rows)):
            return groups_from_sums(self, asked, choose)
        names = Pairs.of(asked).key_names
        with self._asking():
            self.check(asked)
            frame = guard_engine(self._weights, asked)
            places = choose(frame["s0"].to_numpy())
            rows = guard_engine(frame.select(names)[places].rows)
        return [tuple(map(value_of, asked.keys, row)) for row in rows]

    def _weights(self, asked: BoundedSums) -> pl.DataFrame:
        """k0 …, s0 of all groups that weigh something, in the order of their keys."""
        pairs = Pairs.of(asked)
        made, weight = self._cached_pairs(pairs), pl.col("s0").cast(pl.Int64)

        def weigh() -> pl.DataFrame:
            summed = self._answer(asked, pairs, made()).with_columns(weight)
            return summed.sort(*pairs.key_names, nulls_last=True).collect()

        self._frozen.check()
        return self._group_weights.get(asked, weigh)

    def _answer(self, asked: BoundedSums, pairs: Pairs, frame: pl.LazyFrame) -> pl.LazyFrame:
        once = isinstance(asked.scheme, OnceScheme)
        weighted = frame if once else self._with_weights(asked, frame)
        sums = [pl.len().cast(pl.Int64).alias("s0")] if once else _sums_of(asked)
        if not asked.keys:
            return weighted.select(*sums)
        for name, key, values in wanted_parts(asked):
            known = pl.Series(
                [cells_of(value) for value in values if value is not None], dtype=type_of(key.type)
            )
            wanted = pl.col(name).is_in(known.implode())
            weighted = weighted.filter(wanted | pl.col(name).is_null() if None in values else wanted)
        summed = weighted.group_by(*pairs.key_names).agg(*sums)
        return summed.filter(pl.col("s0") > wide(0)) if isinstance(asked.scheme, GroupScheme) else summed

    def _with_weights(self, asked: BoundedSums, frame: pl.LazyFrame) -> pl.LazyFrame:
        """The pairs, each with the weight of its unit."""
        scheme = asked.scheme
        measured = {"m": narrow(1)}
        if isinstance(scheme, NormScheme):
            steps = [_steps(asked, scheme, place).cast(pl.Int128) for place in range(len(asked.features))]
            if asked.present:
                steps.append(wide(min(-(-asked.present // scheme.cells[-1]), STEPS)))
            zero = [wide(0)]
            measured = {
                "length": reduce(add, steps or zero),
                "square": reduce(add, [step * step for step in steps or zero]),
            }
        elif isinstance(scheme, MassScheme):
            sizes = [_value(asked, place).cast(pl.Int128).abs() for place in range(len(asked.features))]
            capped = [size.clip(wide(0), wide(HEAVIEST)) for size in sizes]
            measured = {"mass": reduce(add, capped or [wide(0)])}
        elif isinstance(scheme, RowScheme):
            measured = {"m": pl.col("n")}
        frame = frame.with_columns(**measured)
        if self._single(asked.rows):
            return frame.with_columns(w=_weight(scheme))
        units = frame.group_by(UNIT).agg(*(pl.col(name).sum() for name in measured))
        return frame.join(units.select(UNIT, w=_weight(scheme)), on=UNIT, how="inner")

    def _sizes(self, asked: UnitSizes) -> Callable[[], Found]:
        made = self._cached_pairs(Pairs.for_sizes(asked))
        measured = pl.col("n").sum() if asked.norm == 1 else (pl.col("n") * pl.col("n")).sum()
        root = _root(pl.col("size"))
        exact = pl.when(root * root == pl.col("size")).then(root).otherwise(root + narrow(1))
        size = exact if asked.norm == 2 else pl.col("size")
        edges = pl.lit(pl.Series(asked.edges, dtype=pl.Int64))
        place = edges.search_sorted(size, side="left").cast(pl.Int64)

        def work() -> Found:
            frame = made()
            single = self._single(asked.rows)
            units = frame.select(size=pl.col("n")) if single else frame.group_by(UNIT).agg(size=measured)
            return units.select(bin=place).group_by("bin").agg(pl.len()).collect().rows()

        return work

    def _values(self, reads: Sequence[Read]) -> Callable[[], Found]:
        table = self._tables[reads[0].table]
        cells = self._rows.cells(table, reads_of(reads), table.name)
        frame = self._frames[table.name].select(**cells).unique()
        return lambda: frame.select(*(self._rows.name_of(read) for read in reads)).collect().rows()

    def _copies(self, lookup: Lookup) -> Callable[[], bool]:
        reads = reads_of(other for _, other in lookup.on)
        cells = self._rows.cells(self._tables[lookup.table], reads, lookup.label)
        keys = self._frames[lookup.table].select(**cells).drop_nulls()
        return lambda: keys.collect().is_duplicated().any()


def _sums_of(asked: BoundedSums) -> list[pl.Expr]:
    weight = pl.col("w")
    if isinstance(asked.scheme, GroupScheme):
        return [weight.cast(pl.Int128).sum().alias("s0")]
    sums = []
    for place in range(len(asked.features)):
        value = _value(asked, place)
        narrow_product = is_narrow_product(asked, place)
        product = (
            (weight * value).cast(pl.Int128)
            if narrow_product
            else weight.cast(pl.Int128) * value.cast(pl.Int128)
        )
        sums.append(product.sum().alias(f"s{place}"))
    if asked.present:
        sums.append((weight.cast(pl.Int128).sum() * wide(asked.present)).alias(f"s{len(sums)}"))
    return sums


def _value(asked: BoundedSums, place: int) -> pl.Expr:
    """A unit's sum of a feature in a group; of a constant it is known from the number of rows there."""
    feature = asked.features[place]
    if not isinstance(feature, Constant):
        return pl.col(Pairs.of(asked).name_of(feature))
    number = narrow if is_narrow_sum(feature) else wide
    return pl.col("n") * number(feature.value or 0)


def _steps(asked: BoundedSums, scheme: NormScheme, place: int) -> pl.Expr:
    """⌈|v| / cells⌉, or 2^31 where it is more: then the unit is not counted anyway."""
    cells = scheme.cells[place]
    size = _value(asked, place).cast(pl.Int128).abs().clip(wide(0), wide(cells * STEPS))
    return (size + wide(cells - 1)) // wide(cells)


def _weight(scheme: Scheme) -> pl.Expr:
    """w, from the column m (rows or groups), mass, or length and square."""
    if isinstance(scheme, RowScheme):
        few = pl.col("m") <= narrow(scheme.most)
        return (
            pl.when(few).then(narrow(scheme.fine)).otherwise(narrow(scheme.most * scheme.fine) // pl.col("m"))
        )
    if isinstance(scheme, MassScheme):
        mass = pl.col("mass")
        share = narrow(scheme.most * scheme.fine) // mass.clip(wide(1), wide(HEAVIEST)).cast(pl.Int64)
        light, heavy = mass <= wide(scheme.most), mass >= wide(HEAVIEST)
        return pl.when(light).then(narrow(scheme.fine)).when(heavy).then(narrow(0)).otherwise(share)
    if isinstance(scheme, NormScheme):
        too_long = pl.col("length") >= wide(STEPS)
        square = pl.when(too_long).then(wide(1)).otherwise(pl.col("square")).cast(pl.Int64)
        shorter = narrow(scheme.most * scheme.fine) // (_root(square) + narrow(2))
        short = pl.col("square") <= wide(scheme.most**2)
        return pl.when(short).then(narrow(scheme.fine)).when(too_long).then(narrow(0)).otherwise(shorter)
    assert isinstance(scheme, GroupScheme)
    share = narrow(scheme.full * scheme.fine**scheme.norm) // pl.col("m")
    kept = share if scheme.norm == 1 else _root(share)
    many, few = pl.col("m") > narrow(scheme.most), pl.col("m") <= narrow(scheme.full)
    return pl.when(many).then(narrow(0)).when(few).then(narrow(scheme.fine)).otherwise(kept)


def _root(value: pl.Expr) -> pl.Expr:
    return value.cast(pl.Float64).sqrt().floor().cast(pl.Int64)


def open_polars(tables: Mapping[str, Any], units: Mapping[str, str | None]) -> Polars:
    """Take frames as they are, and scan files."""
    forks.refuse_without_polars()
    frames, sources, files, live = {}, {}, [], set()
    for name, source in tables.items():
        rows = from_path(source) if isinstance(source, str | Path) else source
        if isinstance(rows, Parquet):
            files += [str(path) for path in rows.paths]
            frames[name] = guard_opening(lambda these=rows: _scan(these))
        else:
            frame = (
                rows
                if hasattr(rows, "lazy")
                else guard_opening(lambda table=rows: pl.from_arrow(sanitize(table)))
            )
            live |= {name} if isinstance(frame, pl.LazyFrame) else set()
            frames[name] = frame.lazy()
        schema = guard_opening(lambda at=frames[name]: at.collect_schema())
        columns = {key: column_of(key, kind) for key, kind in schema.items()}
        sources[name] = SourceTable(name, columns, units.get(name))
    return Polars(frames, sources, Frozen(files), live)


def _scan(files: Parquet) -> pl.LazyFrame:
    """Files that are read when they are counted, and only the columns that are needed."""
    types = pl.DataFrame(files.empty()).schema

    def batches(
        names: list[str] | None, chosen: Any, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        # some column is needed to know how many rows there are
        asked = list(types) if names is None else names
        for batch in files.batches(asked or list(types)[:1]):
            frame = pl.DataFrame(batch)
            frame = frame.select(asked) if chosen is None else frame.filter(chosen)
            yield frame if most is None else frame.head(most)
            most = None if most is None else most - min(most, frame.height)

    return register_io_source(batches, schema=types)


def column_of(name: str, kind: pl.DataType) -> SourceColumn:
    """A column from Polars' schema."""
    if isinstance(kind, pl.Decimal):
        return SourceColumn(name, "decimal", "decimal", kind.precision or 38, kind.scale)
    if isinstance(kind, pl.Datetime):
        return SourceColumn(name, "timestamp", kind.time_unit, zoned=kind.time_zone is not None)
    tests = {
        "integer": kind.is_integer() and kind != pl.UInt128,
        "real": kind.is_float(),
        "text": isinstance(kind, pl.String | pl.Categorical | pl.Enum),
        "boolean": kind == pl.Boolean,
        "date": kind == pl.Date,
    }
    return SourceColumn(name, next((word for word, found in tests.items() if found), "other"), str(kind))
