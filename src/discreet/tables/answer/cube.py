# SPDX-License-Identifier: Apache-2.0
"""The answer to a question with grouping sets: many tables that agree with each other.

    cube["sex", "race"]          # one table, an Answer with intervals
    cube.total                   # the table without keys
    cube.covariance("n", {"sex": "Male"}, {"race": "White"})

**Guarantee.** Post-processing: everything is computed from the noisy numbers that were released
once. All tables are there that follow from those that were asked for, so a later question about any
of them costs nothing. They agree: the sum of a table over a key is the table without it. Each
interval contains the exact number with probability 95 % over the noise, on its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.json_types import JsonObject
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.cube_shape import AxisKeys, CubeShape, TableKeys
from discreet.tables.answer.frames import plain_value, value_of
from discreet.tables.answer.linear import CellNoise, Form
from discreet.tables.answer.measured import Measured, MeasuredNumber, measured_of_dict
from discreet.tables.answer.noisy import Noisy
from discreet.tables.workloads.measurement import Layout
from discreet.tables.workloads.released import ReleasedTables, Span, TableCell
from discreet.tables.workloads.residuals import Floats, KeySet, ResidualSystem

__all__ = ["CubeAnswer", "CubeTables", "is_long_answer", "long_answer"]


@dataclass(frozen=True, eq=False)
class CubeNoise:
    """The noise of some rows of a column of a cube, by their numbers among the rows of all tables."""

    source: CellCovariances
    column: str
    rows: Sequence[int]

    def form(self, row: int) -> Form:
        """The noise of one row."""
        return {CellNoise(self.source.tables.draw, (self.column, self.rows[row]), self.source): 1.0}

    def take(self, rows: Sequence[int]) -> CubeNoise:
        """The noise of some of the rows."""
        # A range of all rows takes no room, however many they are.
        if isinstance(rows, range) and rows.step == 1:
            return replace(self, rows=self.rows[rows.start : rows.stop])
        return replace(self, rows=tuple(self.rows[row] for row in rows))


@dataclass(frozen=True, eq=False)
class CellCovariances:
    """The covariances of the noises of all rows of the tables of a cube; a cell is a column and a
    row.
    """

    tables: CubeTables

    @cached_property
    def _known(self) -> dict[int, tuple[TableKeys, TableCell]]:
        return {}

    def _cell(self, row: int) -> tuple[TableKeys, TableCell]:
        if row not in self._known:
            at = bisect_right(self.tables.ordered_starts, row) - 1
            table = self.tables.shape.closure[at]
            self._known[row] = table, self.tables.shape.cell_at(table, row - self.tables.ordered_starts[at])
        return self._known[row]

    def covariance(self, one: Hashable, other: Hashable) -> float:
        """The covariance of the noises of two cells."""
        (column, row), (beside, place) = cast("tuple[tuple[str, int], tuple[str, int]]", (one, other))
        readings = self.tables.readings
        shared = dict(readings[beside])
        return sum(
            float(weight * shared[at])
            * self.tables.measured[at].tables.covariance(self._cell(row)[1], self._cell(place)[1])
            for at, weight in readings[column]
            if at in shared
        )

    def rounding(self, cell: Hashable) -> float:
        """How far the noise of a cell is from a Gaussian one, at most."""
        column, row = cast("tuple[str, int]", cell)
        table, place = self._cell(row)
        return sum(
            float(abs(weight)) * self.tables.measured[at].tables.table_rounding(table.categories, place.spans)
            for at, weight in self.tables.readings[column]
        )


@dataclass(frozen=True, eq=False)
class CubeTables:
    """The tables of a cube: their shape, the measured numbers, and every row of every table.

    `columns` has the noisy columns of all tables of the closure below each other, in the order of
    `shape.closure`. `readings` says of each column that is a sum which measured numbers it is made
    of, and `counts` names the columns that count rows. `draw` tells the noise from that of other
    draws.
    """

    draw: str
    shape: CubeShape
    measured: tuple[Measured, ...]
    columns: Mapping[str, Noisy]
    readings: Mapping[str, tuple[tuple[int, Fraction], ...]]
    counts: tuple[str, ...]

    @cached_property
    def starts(self) -> dict[KeySet, tuple[int, TableKeys]]:
        """The first row of each table, and the table, by the places of its keys."""
        starts, row = {}, 0
        for table in self.shape.closure:
            starts[self.shape.places(table)] = row, table
            row += self.shape.size(table)
        return starts

    @cached_property
    def ordered_starts(self) -> list[int]:
        """The first row of each table, in the order of the closure."""
        return [start for start, _ in self.starts.values()]

    @cached_property
    def noisy(self) -> dict[str, Noisy]:
        """The columns; counts and sums with Gaussian noise know how it is shared."""
        covariances = CellCovariances(self)
        is_gaussian = all(isinstance(measured, MeasuredNumber) for measured in self.measured)
        return {
            name: replace(column, linear=CubeNoise(covariances, name, range(len(column.values))))
            if is_gaussian and self.readings.get(name)
            else column
            for name, column in self.columns.items()
        }

    def rows(self, table: TableKeys) -> range:
        """The rows of one table."""
        start, _ = self.starts[self.shape.places(table)]
        return range(start, start + self.shape.size(table))

    def numbers(self, column: str) -> list[tuple[Fraction, ReleasedTables]]:
        """The measured numbers that a column is a sum of, with their weights; none for a mean."""
        return [(weight, self.measured[place].tables) for place, weight in self.readings.get(column, ())]

    def table(self, column: str, categories: KeySet, spans: Sequence[Sequence[Span]] | None = None) -> Floats:
        """The estimates of a count or a sum, as an array with an axis for each key.

        Without `spans` it has all rows along the axes.
        """
        if spans is None:
            levels = tuple(axis.depth for axis in self.shape.axes)
            nodes = self.shape.nodes(TableKeys(levels, categories))
            spans = [[span for _, span in each] for each in nodes]
        total: Any = 0.0
        for weight, tables in self.numbers(column):
            total = total + float(weight) * tables.table(categories, spans)
        return np.asarray(total, np.float64)

    def covariance(self, column: str, one: TableCell, other: TableCell) -> float:
        """The covariance of the noise of two cells."""
        return sum(
            float(weight) ** 2 * tables.covariance(one, other) for weight, tables in self.numbers(column)
        )

    def to_dict(self) -> JsonObject:
        """The shape, the measured numbers and the readings, as plain JSON types."""
        shape = self.shape
        return {
            "draw": self.draw,
            "names": list(shape.names),
            "values": [[plain_value(value) for value in values] for values in shape.values],
            "axes": [axis.to_dict(plain_value) for axis in shape.axes],
            "sets": [list(keys) for keys in shape.system.sets],
            "measured": [measured.to_dict() for measured in self.measured],
            "readings": {
                name: [[place, str(weight)] for place, weight in reading]
                for name, reading in self.readings.items()
            },
            "counts": list(self.counts),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], columns: Mapping[str, Noisy]) -> CubeTables:
        """What `to_dict` wrote."""
        values = tuple(tuple(value_of(value) for value in each) for each in stored["values"])
        axes = tuple(AxisKeys.from_dict(each, value_of) for each in stored["axes"])
        sets = tuple(tuple(map(int, keys)) for keys in stored["sets"])
        shape = CubeShape(tuple(stored["names"]), values, axes, ResidualSystem(tuple(map(len, values)), sets))
        readings = {
            name: tuple((int(place), Fraction(weight)) for place, weight in reading)
            for name, reading in stored["readings"].items()
        }
        layout = Layout(tuple(axis.axis for axis in axes), shape.system, {})
        measured = tuple(measured_of_dict(each, layout) for each in stored["measured"])
        return cls(str(stored["draw"]), shape, measured, columns, readings, tuple(stored["counts"]))


@dataclass(frozen=True, eq=False, repr=False)
class CubeAnswer(Answer):
    """The answer to CUBE, ROLLUP, GROUPING SETS or MARGINALS: one long table, and each table by its
    keys.

    A row has None in the keys that it is summed over. NULL may be a value of a key too, and the
    column `grouping` tells the two apart: it names the keys of the row's table.

    **Guarantee.** As for `Answer`: released numbers and public values only. `cube["sex"]` and
    everything else here is free, also for tables that were not asked for but follow from those that
    were.

    >>> import discreet as dp
    >>> adult = dp.open(dp.data.path("adult.toml"))
    >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
    >>> cube = session.release(adult.cube("sex", "race").count(), epsilon=0.5, delta=1e-7)
    >>> len(cube), cube["sex"].header
    (18, ['sex', 'count', 'count_lo', 'count_hi'])
    >>> abs(sum(cube["sex"].columns["count"].values) - cube.total.value) < 1e-6
    True
    """

    tables: CubeTables | None = None

    @property
    def cube_tables(self) -> CubeTables:
        """The tables; every cube has them."""
        assert self.tables is not None
        return self.tables

    @property
    def total(self) -> Answer:
        """The table without keys."""
        return self.table()

    def __getitem__(self, names: str | tuple[str, ...]) -> Answer:
        """One table, by the names of its keys: `cube["sex", "race"]`."""
        return self.table(*((names,) if isinstance(names, str) else names))

    def table(self, *names: str) -> Answer:
        """One table, by the names of its keys, which are its columns in this order.

        **Guarantee.** Free: the table was released with the cube, whether it was asked for or
        follows from tables that were.
        """
        tables, places = self.cube_tables, [self._place(name) for name in names]
        keys = tuple(sorted(set(places)))
        if keys not in tables.starts or len(keys) < len(places):
            raise self._no_table_error(names)
        _, table = tables.starts[keys]
        rows = tables.rows(table)
        order = [keys.index(place) for place in places]
        groups = tuple(tuple(group[at] for at in order) for group in tables.shape.groups(table))
        return Answer(
            tuple(names),
            groups,
            {name: column.take(rows) for name, column in tables.noisy.items()},
            self.question,
            self.notes,
            self.suppressed,
            self.guarantee,
            self.receipt,
            self.private,
        )

    def covariance(self, column: str, one: Mapping[str, Value], other: Mapping[str, Value]) -> float:
        """The covariance of the noise of two numbers, each given by the values of its keys.

        `cube.covariance("n", {"sex": "Male"}, {"sex": "Male", "race": "White"})`; of a number with
        itself it is the variance. Counts and sums only.
        """
        tables = self.cube_tables
        if not tables.readings.get(column):
            raise BadParameter(
                "DP105",
                f"the cube has no count or sum {column!r}.",
                why="the noise of counts and sums alone has a covariance that is known.",
                fix=f"use {', '.join(map(repr, tables.readings)) or 'COUNT(*) in the question'}",
            )
        return tables.covariance(column, self.cell_of(one), self.cell_of(other))

    def share_of(self, *names: str, of: Sequence[str] = ()) -> Answer:
        """A table as shares of a table with fewer keys: `cube.share_of("sex", "race",
        of=("sex",))`.

        Without `of`, shares of the total. Intervals are those of a quotient, with the noise that
        both share.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(rho=1))
        >>> cube = session.release(adult.cube("sex", "race").count(), rho=0.5)
        >>> [round(share, 2) for share in cube.share_of("sex").columns["count"].values]
        [0.33, 0.67]
        """
        from discreet.tables.answer.cube_views import share_of

        return share_of(self, names, of)

    def sparse(self, min_z: float = 3.0) -> Answer:
        """The rows with a count or a sum that is at least `min_z` deviations of its noise from 0."""
        from discreet.tables.answer.cube_views import clear_numbers

        return clear_numbers(self, check.positive(min_z=min_z))

    def nonnegative(self, *, consistent: bool = False) -> Answer:
        """Without negative counts; with `consistent` every subtotal stays the sum of its parts.

        **Guarantee.** Intervals are those of the released numbers, cut to what is possible.
        """
        if not check.flag(consistent=consistent):
            return super().nonnegative()
        from discreet.tables.answer.cube_views import consistent_nonnegative

        return consistent_nonnegative(self)

    def whole_numbers(self) -> Answer:
        """The counts of a rollup or a hierarchy as whole numbers that add up.

        **Guarantee.** Intervals are those of the released numbers, cut to what is possible.
        """
        from discreet.tables.answer.cube_views import whole_numbers

        return whole_numbers(self)

    def between(self, low: Value, high: Value, where: Mapping[str, Value] | None = None) -> Answer:
        """The counts and sums of the rows whose ordered key is in a range, both ends included.

        For cubes that were asked for with `ranges` or `prefixes`. `where` names values of other
        keys.

        **Guarantee.** Free, and the interval is that of the noise of the range, not a sum of
        intervals.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(rho=1))
        >>> ages = session.release(adult.ranges("age", by="sex").count(), rho=0.1)
        >>> 10_000 < ages.between(30, 44, where={"sex": "Male"}).value < 14_000
        True
        """
        from discreet.tables.answer.cube_ranges import range_total

        return range_total(self, low, high, where or {})

    def cumulative(self, *by: str) -> Answer:
        """The rows up to each value of the ordered key, for each value of the keys `by`."""
        from discreet.tables.answer.cube_ranges import cumulative

        return cumulative(self, by)

    def quantile(self, fraction: float, *by: str) -> Answer:
        """The value of the ordered key up to which that part of the rows lies, with an interval of
        values.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(rho=1))
        >>> ages = session.release(adult.prefixes("age").count(), rho=0.1)
        >>> ages.quantile(0.5).value
        37
        """
        from discreet.tables.answer.cube_ranges import quantile

        return quantile(self, check.inner_probability(fraction=fraction), by)

    def to_dict(self) -> JsonObject:
        """The whole answer as plain JSON types."""
        from discreet.tables.answer.cube_json import cube_to_dict

        return cube_to_dict(self)

    def cell_of(self, values: Mapping[str, Value]) -> TableCell:
        """The cell with some values of its keys; values and tables that are not there are refused."""
        tables = self.cube_tables
        places = {self._place(name): value for name, value in values.items()}
        if tuple(sorted(places)) not in tables.starts:
            raise self._no_table_error(tuple(values))
        cell = tables.shape.cell(places)
        if cell is None:
            raise BadParameter(
                "DP105",
                f"the cube has no number with {', '.join(f'{name} = {value!r}' for name, value in values.items())}.",
                why="a number of a cube is named by public values of its keys.",
                fix=f"use the values that  cube[{', '.join(map(repr, values))}]  shows",
            )
        return cell

    def _footer(self) -> Iterator[str]:
        if any(self.cube_tables.readings.values()) and len(self.cube_tables.shape.shown) > 1:
            yield (
                "Counts and sums of parts add up to those of the whole. Each number is rounded by itself here, so printed "
                "ones may differ by a last digit."
            )
        yield from super()._footer()

    def _place(self, name: object) -> int:
        names = self.cube_tables.shape.names
        if isinstance(name, str) and name in names:
            return names.index(name)
        raise BadParameter(
            "DP105",
            f"the cube has no key {name!r}.",
            why="a table of a cube is named by its keys.",
            fix=f"use {', '.join(map(repr, names))}" if names else "cube.total",
        )

    def _no_table_error(self, names: Sequence[object]) -> BadParameter:
        shape = self.cube_tables.shape
        largest = ", ".join(repr(shape.names[place]) for place in shape.places(shape.shown[-1]))
        return BadParameter(
            "DP105",
            f"the cube has no table of ({', '.join(map(str, names))}).",
            why="it has the tables that were asked for, and those that follow from them.",
            fix=f"cube[{largest}]" if largest else "cube.total",
        )


def long_answer(cube: CubeAnswer) -> CubeAnswer:
    """The cube with all rows of the tables that were asked for, before anything is chosen or
    sorted.
    """
    groups = tuple(_long_groups(cube.cube_tables.shape))
    return replace(cube, groups=groups, columns=_long_columns(cube.cube_tables))


def is_long_answer(cube: CubeAnswer) -> bool:
    """Whether the cube has all of these rows, in their order."""
    shape = cube.cube_tables.shape
    if len(cube.groups) != sum(map(shape.size, shape.shown)):
        return False
    # Row by row: a second list of all groups would take as much room as the answer.
    same = all(group == other for group, other in zip(cube.groups, _long_groups(shape), strict=True))
    return same and cube.columns == _long_columns(cube.cube_tables)


def _long_groups(shape: CubeShape) -> Iterator[tuple[Value, ...]]:
    return (group for table in shape.shown for group in shape.long_groups(table))


def _long_columns(tables: CubeTables) -> dict[str, Noisy]:
    if len(tables.shape.shown) == len(tables.shape.closure):
        return tables.noisy
    rows = [row for table in tables.shape.shown for row in tables.rows(table)]
    return {name: column.take(rows) for name, column in tables.noisy.items()}
