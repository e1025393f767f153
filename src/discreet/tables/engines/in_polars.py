# SPDX-License-Identifier: Apache-2.0
"""Tables in Polars, inside this process.

**Guarantee.** As `engine`. The pairs of unit and group of the last few questions, and the sums of
all groups, are kept. They depend on frames and files as they were when they were opened, and serve
later questions about the same pairs. A lazy frame may change: its rows are collected once for each
question, and nothing is kept.

Pairs are made for a part of the units at a time, with texts as positions in a list, so memory never
holds more than the table of pairs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Literal

import polars as pl
from polars.io.plugins import register_io_source

from discreet.tables.algebra.engine import Choose, groups_from_sums, guard_engine
from discreet.tables.algebra.expr import Constant, Read
from discreet.tables.algebra.frozen import Frozen
from discreet.tables.algebra.sums import (
    BoundedSums,
    GroupKey,
    GroupScheme,
    Lookup,
    MarginScheme,
    MassScheme,
    NormScheme,
    OnceScheme,
    Relation,
    RowScheme,
    Scheme,
    UnitSizes,
)
from discreet.tables.algebra.types import TEXT, WIDEST
from discreet.tables.data.readers.parquet import Parquet
from discreet.tables.data.readers.schema import guard_opening
from discreet.tables.data.readers.sound import sanitize
from discreet.tables.data.readers.texts import from_path
from discreet.tables.engines import forks
from discreet.tables.engines.base import EngineBase, ResultRows
from discreet.tables.engines.cache import PreparedCache
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.polars_rows import PolarsRows, is_ordered
from discreet.tables.engines.polars_write import narrow, type_of, wide
from discreet.tables.engines.public import known_columns
from discreet.tables.engines.results import cells_of, value_of, wanted_parts
from discreet.tables.engines.source import SourceColumn, SourceTable
from discreet.tables.engines.terms import UNIT
from discreet.tables.engines.tree import all_tables, reads_of
from discreet.tables.engines.widths import HEAVIEST, STEPS, is_narrow_product, is_narrow_sum

__all__ = ["Polars", "open_polars"]

#: A table, with all rows of a unit in one part.
Parts = list[pl.DataFrame]
#: The number of rows that are grouped at a time.
_ROWS_AT_ONCE = 1_000_000
_MOST_PARTS = 64
#: The smallest types for the values of a feature, before they are summed.
_SMALL = ((1 << 15, pl.Int16), (1 << 31, pl.Int32))
#: The rows of a pair, which Polars counts in 32 bits.
_ROWS = pl.col("n").cast(pl.Int64)


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
        self._prepared: PreparedCache[Pairs, Parts] = PreparedCache(lambda _: None)
        self._group_sums: PreparedCache[BoundedSums, pl.DataFrame] = PreparedCache(lambda _: None)

    def _release(self) -> None:
        self._prepared.clear()
        self._group_sums.clear()

    def _wake(self) -> None:
        """Frames survive a fork; the threads that evaluate them do not."""
        forks.refuse_without_polars()
        self._process = os.getpid()

    def _check_source(self) -> None:
        self._frozen.check()

    # --- pairs, weights, answers -----------------------------------------------------------------

    def _rows_with_features(self, pairs: Pairs, frame: pl.LazyFrame) -> pl.LazyFrame:
        """u, k0 …, v0 … for each row, from the unit and the cells of rows; of single rows n too."""
        write, single = self._rows.writer().write, self._is_single(pairs.rows)
        keys = {name: write(key) for key, name in zip(pairs.keys, pairs.key_names, strict=True)}
        if not single:
            texts = pl.Categorical(pl.Categories.random())
            text_keys = {
                name for key, name in zip(pairs.keys, pairs.key_names, strict=True) if key.type.kind == TEXT
            }
            keys = {name: key.cast(texts) if name in text_keys else key for name, key in keys.items()}
        values = {}
        for feature, name in zip(pairs.features, pairs.sum_names, strict=True):
            value, reach = write(feature).fill_null(narrow(0)), feature.type.reach
            small = next((kind for most, kind in _SMALL if reach < most and not single), pl.Int64)
            values[name] = value.cast(small if is_narrow_sum(feature) else pl.Int128)
        valued = frame.with_columns(**keys, **values)
        if single:
            return valued.with_columns(n=narrow(1)).select(*keys, "n", *values)
        return valued.select(UNIT, *keys, *values)

    def _group_pairs(self, pairs: Pairs, rows: pl.DataFrame) -> Parts:
        """u, k0 …, n, v0 … for each unit and group, from the rows with their keys and features."""
        sums = [
            pl.col(name).cast(pl.Int64 if is_narrow_sum(feature) else pl.Int128).sum()
            for feature, name in zip(pairs.features, pairs.sum_names, strict=True)
        ]
        return [
            _shrink(part.group_by(UNIT, *pairs.key_names).agg(pl.len().alias("n"), *sums).collect(), pairs)
            for part in _parts_of(rows)
        ]

    def _cached_pairs(self, pairs: Pairs) -> Callable[[], Parts]:
        """The pairs, from memory if they are kept."""
        rows = self._rows.rows(pairs.rows, reads_of([*pairs.keys, *pairs.features]))
        single = self._is_single(pairs.rows)

        def current_pairs() -> Parts:
            stored = rows.collect().lazy()
            if single:
                return [self._rows_with_features(pairs, stored).collect()]
            # A frame that was evaluated twice on its way may have passed other rows to the filter.
            owned = stored.filter(pl.col(UNIT).is_not_null())
            return self._group_pairs(pairs, self._rows_with_features(pairs, owned).collect())

        def frozen_pairs() -> Parts:
            valued = self._rows_with_features(pairs, rows)
            if single:
                return [valued.collect()]
            # Rows that are numbered in an order need that order.
            engine: Literal["in-memory", "streaming"] = "in-memory" if is_ordered(pairs.rows) else "streaming"
            return self._group_pairs(pairs, valued.collect(engine=engine))

        def make() -> Parts:
            self._frozen.check()
            parts = (
                self._prepared.get(pairs, frozen_pairs) if self._is_frozen(pairs.rows) else current_pairs()
            )
            self._frozen.check()
            return parts

        # Refuses what cannot be asked, before anything is run.
        self._rows_with_features(pairs, rows)

        return make

    def _is_frozen(self, rows: Relation) -> bool:
        """Whether the rows cannot change."""
        return self._live.isdisjoint(all_tables(rows))

    def _sums(self, request: BoundedSums) -> Callable[[], ResultRows]:
        pairs = self._kept_pairs(Pairs.of(request))
        make_pairs = self._cached_pairs(pairs)

        def work() -> ResultRows:
            if not request.among or not self._is_frozen(request.rows):
                return self._answer(request, pairs, make_pairs()).rows()
            everything = replace(request, among=())
            self._frozen.check()
            sums = self._group_sums.get(everything, lambda: self._answer(everything, pairs, make_pairs()))
            self._frozen.check()
            return _among(request, sums.lazy()).collect().rows()

        return work

    def _kept_pairs(self, pairs: Pairs, wider: Pairs | None = None) -> Pairs:
        """Kept pairs that cover these; else the wider ones, or these."""
        covering = (kept for kept in reversed(self._prepared.keys()) if kept.covers(pairs))
        return next(covering, wider or pairs)

    def selected_groups(self, request: BoundedSums, choose: Choose) -> list[GroupKey]:
        """The keys of the chosen groups; no other key becomes a Python object."""
        if not self._is_frozen(request.rows):
            return groups_from_sums(self, request, choose)
        names = Pairs.of(request).key_names
        with self._asking():
            self.check(request)
            frame = guard_engine(self._weights, request)
            places = choose(frame["s0"].to_numpy())
            rows = guard_engine(frame.select(names)[places].rows)
        return [tuple(map(value_of, request.keys, row)) for row in rows]

    def _weights(self, request: BoundedSums) -> pl.DataFrame:
        """k0 …, s0 of all groups with a weight above zero, in the order of their keys."""
        pairs = self._kept_pairs(Pairs.of(request), Pairs.with_features(request))
        make_pairs, weight = self._cached_pairs(pairs), pl.col("s0").cast(pl.Int64)
        texts = [
            pl.col(name).cast(type_of(key.type))
            for key, name in zip(pairs.keys, pairs.key_names, strict=True)
        ]

        def weigh() -> pl.DataFrame:
            summed = self._answer(request, pairs, make_pairs()).with_columns(weight, *texts)
            return summed.sort(*pairs.key_names, nulls_last=True)

        self._frozen.check()
        key = replace(request, features=()) if isinstance(request.scheme, GroupScheme) else request
        return self._group_sums.get(key, weigh)

    def _answer(self, request: BoundedSums, pairs: Pairs, parts: Parts) -> pl.DataFrame:
        """k0 …, s0 …: the sums of the parts, added up."""
        summed = self._part_of_answer(request, pairs, parts[0].lazy()).collect()
        for part in parts[1:]:
            both = pl.concat([summed, self._part_of_answer(request, pairs, part.lazy()).collect()]).lazy()
            sums = pl.all().exclude(pairs.key_names).sum()
            summed = (
                both.group_by(*pairs.key_names).agg(sums) if request.keys else both.select(sums)
            ).collect()
        if (isinstance(request.scheme, GroupScheme) and request.keys) or request.most_groups:
            return summed.filter(pl.col("s0") > wide(0))
        return summed

    def _part_of_answer(self, request: BoundedSums, pairs: Pairs, frame: pl.LazyFrame) -> pl.LazyFrame:
        once = isinstance(request.scheme, OnceScheme)
        weighted = frame if once else self._with_weights(request, pairs, frame)
        sums = [pl.len().cast(pl.Int64).alias("s0")] if once else _sums_of(request, pairs)
        if not request.keys:
            return weighted.select(*sums)
        return _among(request, weighted).group_by(*pairs.key_names).agg(*sums)

    def _with_weights(self, request: BoundedSums, pairs: Pairs, frame: pl.LazyFrame) -> pl.LazyFrame:
        """The pairs, each with the weight of its unit."""
        scheme = request.scheme
        if isinstance(scheme, MarginScheme):
            if self._is_single(request.rows):
                return frame.with_columns(w=narrow(scheme.fine))
            return frame.join(_margin_weights(request, scheme, pairs, frame), on=UNIT, how="inner")
        measured = {"m": narrow(1)}
        if isinstance(scheme, NormScheme):
            steps = [
                _steps(request, pairs, place, scheme.cells[place]) for place in range(len(request.features))
            ]
            if request.present:
                steps.append(wide(min(-(-request.present // scheme.cells[-1]), STEPS)))
            zero = [wide(0)]
            measured = {
                "length": reduce(add, [step.cast(pl.Int128) for step in steps or zero]),
                "square": reduce(add, [(step * step).cast(pl.Int128) for step in steps or zero]),
            }
        elif isinstance(scheme, MassScheme):
            sizes = [
                _value(request, pairs, place).cast(pl.Int128).abs() for place in range(len(request.features))
            ]
            capped = [size.clip(wide(0), wide(HEAVIEST)) for size in sizes]
            measured = {"mass": reduce(add, capped or [wide(0)])}
        elif isinstance(scheme, RowScheme):
            measured = {"m": _ROWS}
        frame = frame.with_columns(**measured)
        if self._is_single(request.rows):
            return frame.with_columns(w=_weight(scheme))
        groups = pl.len().cast(pl.Int64).alias("groups")
        units = frame.group_by(UNIT).agg(groups, *(pl.col(name).sum() for name in measured))
        weight = _weight(scheme)
        if request.most_groups:
            weight = (
                pl.when(pl.col("groups") <= narrow(request.most_groups)).then(weight).otherwise(narrow(0))
            )
        return frame.join(units.select(UNIT, w=weight), on=UNIT, how="inner")

    def _sizes(self, request: UnitSizes) -> Callable[[], ResultRows]:
        make_pairs = self._cached_pairs(Pairs.for_sizes(request))
        measured = _ROWS.sum() if request.norm == 1 else (_ROWS * _ROWS).sum()
        root = _root(pl.col("size"))
        exact = pl.when(root * root == pl.col("size")).then(root).otherwise(root + narrow(1))
        size = exact if request.norm == 2 else pl.col("size")
        edges = pl.lit(pl.Series(request.edges, dtype=pl.Int64))
        place = edges.search_sorted(size, side="left").cast(pl.Int64)

        def work() -> ResultRows:
            single = self._is_single(request.rows)
            units = [
                part.lazy().select(size=_ROWS) if single else part.lazy().group_by(UNIT).agg(size=measured)
                for part in make_pairs()
            ]
            return pl.concat(units).select(bin=place).group_by("bin").agg(pl.len()).collect().rows()

        return work

    def _values(self, reads: Sequence[Read]) -> Callable[[], ResultRows]:
        table = self._tables[reads[0].table]
        cells = self._rows.cells(table, reads_of(reads), table.name)
        frame = self._frames[table.name].select(**cells).unique()
        return lambda: frame.select(*(self._rows.name_of(read) for read in reads)).collect().rows()

    def _public_rows(self, source: SourceTable) -> Any:
        names = [column.name for column in known_columns(source)]
        return self._frames[source.name].select(names).collect().to_arrow()

    def _has_copies(self, lookup: Lookup) -> Callable[[], bool]:
        reads = reads_of(other for _, other in lookup.on)
        cells = self._rows.cells(self._tables[lookup.table], reads, lookup.label)
        keys = self._frames[lookup.table].select(**cells).drop_nulls()
        return lambda: keys.collect().is_duplicated().any()


def _parts_of(rows: pl.DataFrame) -> list[pl.LazyFrame]:
    """The rows in parts, with all rows of a unit in one of them."""
    parts = min(_MOST_PARTS, -(-rows.height // _ROWS_AT_ONCE))
    kind = rows.schema[UNIT]
    # Equal real numbers may differ in their bits, and with them in their hash.
    if parts <= 1 or not (kind.is_integer() or kind == pl.String):
        return [rows.lazy()]
    part = (rows[UNIT].hash() % parts).cast(pl.UInt8)
    return [rows.lazy().filter(pl.lit(part) == number) for number in range(parts)]


def _shrink(part: pl.DataFrame, pairs: Pairs) -> pl.DataFrame:
    """Units and sums in the smallest types that hold them."""
    names = [name for name in (UNIT, *pairs.sum_names) if part.schema[name] == pl.Int64]
    return part.with_columns(part[name].shrink_dtype() for name in names)


def _among(request: BoundedSums, frame: pl.LazyFrame) -> pl.LazyFrame:
    """The pairs of requested groups, and perhaps of others."""
    for name, key, values in wanted_parts(request):
        cells = pl.Series([cells_of(value) for value in values if value is not None], dtype=type_of(key.type))
        wanted = pl.col(name).is_in(cells.implode())
        frame = frame.filter(wanted | pl.col(name).is_null() if None in values else wanted)
    return frame


def _sums_of(request: BoundedSums, pairs: Pairs) -> list[pl.Expr]:
    weight = pl.col("w")
    if isinstance(request.scheme, GroupScheme):
        return [weight.cast(pl.Int128).sum().alias("s0")]
    sums = []
    for place in range(len(request.features)):
        value = _value(request, pairs, place)
        narrow_product = is_narrow_product(request, place)
        product = (
            (weight * value).cast(pl.Int128)
            if narrow_product
            else weight.cast(pl.Int128) * value.cast(pl.Int128)
        )
        sums.append(product.sum().alias(f"s{place}"))
    if request.present:
        sums.append((weight.cast(pl.Int128).sum() * wide(request.present)).alias(f"s{len(sums)}"))
    return sums


def _value(request: BoundedSums, pairs: Pairs, place: int) -> pl.Expr:
    """A unit's sum of a feature in a group; that of a constant follows from the number of rows."""
    feature = request.features[place]
    if not isinstance(feature, Constant):
        value = pl.col(pairs.name_of(feature))
        return value.cast(pl.Int64) if is_narrow_sum(feature) else value
    number = narrow if is_narrow_sum(feature) else wide
    return _ROWS * number(feature.value or 0)


def _steps(request: BoundedSums, pairs: Pairs, place: int, cells: int) -> pl.Expr:
    """⌈|v| / cells⌉, at most 2^31: a unit with that much is not counted."""
    if is_narrow_sum(request.features[place]):
        # |v| and cells have 2^62 at most, and so their sum fits.
        size = _value(request, pairs, place).abs().clip(narrow(0), narrow(min(cells * STEPS, WIDEST)))
        return (size + narrow(cells - 1)) // narrow(cells)
    size = _value(request, pairs, place).cast(pl.Int128).abs().clip(wide(0), wide(cells * STEPS))
    return (size + wide(cells - 1)) // wide(cells)


def _margin_weights(
    request: BoundedSums, scheme: MarginScheme, pairs: Pairs, frame: pl.LazyFrame
) -> pl.LazyFrame:
    """u, w of `MarginScheme`: tables are made of the units with many rows alone."""
    units = frame.group_by(UNIT).agg(_ROWS.sum().alias("r"))
    heavy = units.filter(pl.col("r") > narrow(scheme.rows)).select(UNIT)
    rows = frame.join(heavy, on=UNIT, how="semi")
    sums = [_ROWS.sum(), *(pl.col(name).sum() for name in pairs.sum_names)]
    tables = []
    for margin in scheme.margins:
        keys = [pairs.key_names[place] for place in margin.keys]
        steps = [
            _margin_steps(request, pairs, place, scheme.steps[place], cells)
            for place, cells in enumerate(margin.cells)
        ]
        wide_steps = [step.cast(pl.Int128) for step in steps]
        squares = [(step * step).cast(pl.Int128) for step in steps]
        tables.append(
            rows.group_by(UNIT, *keys)
            .agg(*sums)
            .select(UNIT, length=reduce(add, wide_steps), square=reduce(add, squares))
        )
    norms = pl.concat(tables).group_by(UNIT).agg(pl.col("length").sum(), pl.col("square").sum())
    by_rows = narrow(scheme.rows * scheme.fine) // pl.col("r")
    by_norm = _weight(NormScheme(scheme.most, scheme.fine, ()))
    many = pl.max_horizontal(by_rows, by_norm)
    weight = pl.when(pl.col("r") <= narrow(scheme.rows)).then(narrow(scheme.fine)).otherwise(many)
    joined = units.join(norms, on=UNIT, how="left").with_columns(
        pl.col("length").fill_null(0), pl.col("square").fill_null(0)
    )
    return joined.select(UNIT, w=weight)


def _margin_steps(request: BoundedSums, pairs: Pairs, place: int, steps: int, cells: int) -> pl.Expr:
    """⌈|v| · steps / cells⌉, or 2^31 and more where that is exceeded: then the norm counts nothing."""
    most, value = -(-cells * STEPS // steps), _value(request, pairs, place)
    if is_narrow_sum(request.features[place]):
        size = value.abs().clip(narrow(0), narrow(most))
    else:
        size = value.cast(pl.Int128).abs().clip(wide(0), wide(most)).cast(pl.Int64)
    return (size * narrow(steps) + narrow(cells - 1)) // narrow(cells)


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
    """An engine on frames as they are, and on files that are scanned."""
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
    """Files that are read when they are counted, and only the needed columns of them."""
    types = pl.DataFrame(files.empty()).schema

    def batches(
        names: list[str] | None, chosen: Any, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        # Some column is needed to count the rows.
        columns = list(types) if names is None else names
        for batch in files.batches(columns or list(types)[:1]):
            frame = pl.DataFrame(batch)
            frame = frame.select(columns) if chosen is None else frame.filter(chosen)
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
