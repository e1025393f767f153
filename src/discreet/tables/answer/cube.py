# SPDX-License-Identifier: Apache-2.0
"""The answer to a question with grouping sets: many tables that agree with each other.

    cube["sex", "race"]          # one table, an Answer with intervals
    cube.total                   # the table without keys
    cube.covariance("n", {"sex": "Male"}, {"race": "White"})

**Guarantee.** Post-processing: everything is computed from the noisy numbers that were released once. All
tables are there that follow from those that were asked for, so a later question about any of them costs
nothing. They agree: the sum of a table over a key is the table without it. Each interval contains the
exact number with probability 95 % over the noise, on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from discreet.errors import BadParameter
from discreet.json_types import JsonObject
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.measured import Measured, measured_of_dict
from discreet.tables.answer.noisy import Noisy
from discreet.tables.data.types import Value
from discreet.tables.workloads.released import ReleasedTables, TableCell
from discreet.tables.workloads.residuals import Floats, KeySet, ResidualSystem

__all__ = ["CubeAnswer", "CubeTables", "grouping_text", "long_answer"]


def grouping_text(names: Sequence[str]) -> str:
    """The value of the column that tells the tables apart: the keys of a table, or "total".

    >>> grouping_text(["sex", "race"]), grouping_text([])
    ('sex, race', 'total')
    """
    return ", ".join(names) or "total"


@dataclass(frozen=True, eq=False)
class CubeTables:
    """The tables of a cube: their keys with all values, the measured numbers, and every row of every table.

    `columns` has the noisy columns of all tables of the closure below each other, in the order of
    `system.closure`. `readings` says of each column that is a sum which measured numbers it is made of.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    system: ResidualSystem
    measured: tuple[Measured, ...]
    columns: Mapping[str, Noisy]
    readings: Mapping[str, tuple[tuple[int, Fraction], ...]]

    @cached_property
    def starts(self) -> dict[KeySet, int]:
        """The first row of each table."""
        starts, row = {}, 0
        for keys in self.system.closure:
            starts[keys] = row
            row += self.system.cells(keys)
        return starts

    def rows(self, keys: KeySet) -> range:
        """The rows of one table."""
        return range(self.starts[keys], self.starts[keys] + self.system.cells(keys))

    def groups(self, keys: KeySet) -> list[tuple[Value, ...]]:
        """The values of the keys of each row of a table, in the order of its rows."""
        return list(product(*(self.values[key] for key in keys)))

    def long_groups(self, keys: KeySet) -> list[tuple[Value, ...]]:
        """The same with None for the other keys, and with the name of the table."""
        lists = [values if place in keys else (None,) for place, values in enumerate(self.values)]
        name = grouping_text([self.names[key] for key in keys])
        return [(*group, name) for group in product(*lists)]

    def numbers(self, column: str) -> list[tuple[Fraction, ReleasedTables]]:
        """The measured numbers that a column is a sum of, with their weights; none for a mean."""
        return [(weight, self.measured[place].tables) for place, weight in self.readings.get(column, ())]

    def table(self, column: str, keys: KeySet) -> Floats:
        """The estimates of a count or a sum, as an array with an axis for each key."""
        total: Floats = np.zeros(self.system.shape(keys))
        for weight, tables in self.numbers(column):
            total = total + float(weight) * tables.table(keys)
        return total

    def covariance(self, column: str, one: Mapping[int, int], other: Mapping[int, int]) -> float:
        """The covariance of the noise of two cells, each given by the number of the value of each key."""
        cells = TableCell((), one), TableCell((), other)
        return sum(float(weight) ** 2 * tables.covariance(*cells) for weight, tables in self.numbers(column))

    def to_dict(self) -> JsonObject:
        """Everything as plain JSON types, but the columns."""
        return {
            "names": list(self.names),
            "sets": [list(keys) for keys in self.system.sets],
            "measured": [measured.to_dict() for measured in self.measured],
            "readings": {
                name: [[place, str(weight)] for place, weight in reading]
                for name, reading in self.readings.items()
            },
        }

    @classmethod
    def from_dict(
        cls, stored: Mapping[str, Any], values: Sequence[Sequence[Value]], columns: Mapping[str, Noisy]
    ) -> CubeTables:
        """What `to_dict` wrote."""
        sizes = tuple(len(each) for each in values)
        system = ResidualSystem(sizes, tuple(tuple(map(int, keys)) for keys in stored["sets"]))
        readings = {
            name: tuple((int(place), Fraction(weight)) for place, weight in reading)
            for name, reading in stored["readings"].items()
        }
        measured = tuple(measured_of_dict(each, system) for each in stored["measured"])
        return cls(tuple(stored["names"]), tuple(map(tuple, values)), system, measured, columns, readings)


@dataclass(frozen=True, eq=False, repr=False)
class CubeAnswer(Answer):
    """The answer to CUBE, ROLLUP, GROUPING SETS or MARGINALS: one long table, and each table by its keys.

    A row has None in the keys that it is summed over. NULL may be a value of a key too, and the column
    `grouping` tells the two apart: it names the keys of the row's table.

    **Guarantee.** As for `Answer`: released numbers and public values only. `cube["sex"]` and everything
    else here is free, also for tables that were not asked for but follow from those that were.

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

        **Guarantee.** Free: the table was released with the cube, whether it was asked for or follows
        from tables that were.
        """
        tables, places = self.cube_tables, [self._place(name) for name in names]
        keys = tuple(sorted(places))
        if keys not in tables.starts:
            raise self._no_table_error(names)
        rows = tables.rows(keys)
        order = [keys.index(place) for place in places]
        groups = tuple(tuple(group[at] for at in order) for group in tables.groups(keys))
        return Answer(
            tuple(names),
            groups,
            {name: column.take(rows) for name, column in tables.columns.items()},
            self.question,
            self.notes,
            self.suppressed,
            self.guarantee,
            self.receipt,
            self.private,
        )

    def covariance(self, column: str, one: Mapping[str, Value], other: Mapping[str, Value]) -> float:
        """The covariance of the noise of two numbers, each given by the values of its keys.

        `cube.covariance("n", {"sex": "Male"}, {"sex": "Male", "race": "White"})`; of a number with itself
        it is the variance. Counts and sums only.
        """
        tables = self.cube_tables
        if not tables.readings.get(column):
            raise BadParameter(
                "DP105",
                f"the cube has no count or sum {column!r}.",
                why="the noise of counts and sums alone has a covariance that is known.",
                fix=f"use {', '.join(map(repr, tables.readings)) or 'COUNT(*) in the question'}",
            )
        return tables.covariance(column, self._cell(one), self._cell(other))

    def to_dict(self) -> JsonObject:
        """The whole answer as plain JSON types."""
        from discreet.tables.answer.cube_json import cube_to_dict

        return cube_to_dict(self)

    def _cell(self, values: Mapping[str, Value]) -> dict[int, int]:
        tables, cell = self.cube_tables, {}
        for name, value in values.items():
            place = self._place(name)
            if value not in tables.values[place]:
                raise BadParameter(
                    "DP105",
                    f"{name} has no value {value!r}.",
                    why="a number of a cube is named by public values of its keys.",
                    fix=f"use {', '.join(map(repr, tables.values[place][:5]))}",
                )
            cell[place] = tables.values[place].index(value)
        if tuple(sorted(cell)) not in tables.starts:
            raise self._no_table_error(tuple(values))
        return cell

    def _place(self, name: object) -> int:
        tables = self.cube_tables
        if isinstance(name, str) and name in tables.names:
            return tables.names.index(name)
        raise BadParameter(
            "DP105",
            f"the cube has no key {name!r}.",
            why="a table of a cube is named by its keys.",
            fix=f"use {', '.join(map(repr, tables.names))}" if tables.names else "cube.total",
        )

    def _no_table_error(self, names: Sequence[object]) -> BadParameter:
        tables = self.cube_tables
        largest = ", ".join(repr(tables.names[key]) for key in tables.system.sets[-1])
        return BadParameter(
            "DP105",
            f"the cube has no table of ({', '.join(map(str, names))}).",
            why="it has the tables that were asked for, and those that follow from them.",
            fix=f"cube[{largest}]" if largest else "cube.total",
        )


def long_answer(cube: CubeAnswer) -> CubeAnswer:
    """The cube with all rows of the tables that were asked for, before anything is chosen or sorted."""
    tables = cube.cube_tables
    rows = [row for keys in tables.system.sets for row in tables.rows(keys)]
    groups = [group for keys in tables.system.sets for group in tables.long_groups(keys)]
    is_all = len(rows) == sum(map(tables.system.cells, tables.system.closure))
    columns = {name: column if is_all else column.take(rows) for name, column in tables.columns.items()}
    return replace(cube, groups=tuple(groups), columns=columns)
