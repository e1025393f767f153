# SPDX-License-Identifier: Apache-2.0
"""The tables of a cube, without numbers: their keys and values, ordered keys and hierarchies among
them.

**Guarantee.** Public knowledge only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import Any

import numpy as np

from discreet.json_types import JsonObject
from discreet.tables.algebra.types import Value
from discreet.tables.workloads.axes import Axis, StrategyAxis, TreeAxis
from discreet.tables.workloads.released import Span, TableCell
from discreet.tables.workloads.residuals import KeySet, ResidualSystem
from discreet.tables.workloads.trees import Tree, TreePlan

__all__ = ["AxisKeys", "CubeShape", "TableKeys", "grouping_text"]

Group = tuple[Value, ...]


def grouping_text(names: Sequence[str]) -> str:
    """The value of the column that tells the tables apart: the keys of a table, or "total".

    >>> grouping_text(["sex", "race"]), grouping_text([])
    ('sex, race', 'total')
    """
    return ", ".join(names) or "total"


@dataclass(frozen=True, eq=False)
class AxisKeys:
    """An ordered key, or the keys of a hierarchy: each leaf is a tuple of their values.

    `kind` is "ranges" (a row of a table is one value), "prefixes" (all values up to one) or "tree"
    (a node).
    """

    kind: str
    leaves: tuple[Group, ...]
    axis: Axis

    @property
    def depth(self) -> int:
        """The number of keys, and of levels below the total."""
        return len(self.leaves[0])

    def nodes(self, level: int) -> list[tuple[Group, Span]]:
        """What a table shows at a level, and the leaves of each row."""
        return self._levels[level]

    @cached_property
    def _levels(self) -> list[list[tuple[Group, Span]]]:
        return [self._at(level) for level in range(self.depth + 1)]

    def _at(self, level: int) -> list[tuple[Group, Span]]:
        paths = [leaf[:level] for leaf in self.leaves]
        if level and self.kind == "prefixes":
            return [(path, (0, at + 1)) for at, path in enumerate(paths)]
        starts = [at for at, path in enumerate(paths) if at == 0 or path != paths[at - 1]]
        return [
            (paths[start], (start, end)) for start, end in zip(starts, [*starts[1:], len(paths)], strict=True)
        ]

    def to_dict(self, values_of: Any) -> JsonObject:
        """Everything as plain JSON types."""
        stored: JsonObject = {
            "kind": self.kind,
            "leaves": [[values_of(value) for value in leaf] for leaf in self.leaves],
        }
        if isinstance(self.axis, StrategyAxis):
            rows = self.axis.matrix.tolist()
            return stored | {"matrix": [row[at:] for at, row in enumerate(rows)]}
        assert isinstance(self.axis, TreeAxis)
        plan = self.axis.plan
        return stored | {
            "parents": [level.tolist() for level in plan.tree.parents],
            "total": plan.total,
            "multipliers": [level.tolist() for level in plan.multipliers],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], value_of: Any) -> AxisKeys:
        """What `to_dict` wrote."""
        leaves = tuple(tuple(value_of(value) for value in leaf) for leaf in stored["leaves"])
        axis: Axis
        if "matrix" in stored:
            matrix = np.zeros((len(leaves), len(leaves)), np.int64)
            for at, row in enumerate(stored["matrix"]):
                matrix[at, at:] = row
            axis = StrategyAxis(matrix)
        else:
            tree = Tree(tuple(np.array(level, np.int64) for level in stored["parents"]))
            multipliers = tuple(np.array(level, np.int64) for level in stored["multipliers"])
            axis = TreeAxis(TreePlan(tree, int(stored["total"]), multipliers))
        return cls(str(stored["kind"]), leaves, axis)


@dataclass(frozen=True)
class TableKeys:
    """A table: the level of each axis, and the numbers of its categories."""

    levels: tuple[int, ...]
    categories: KeySet


@dataclass(frozen=True, eq=False)
class CubeShape:
    """The keys of a cube with their values. The keys of the axes come first, then the categories.

    `values` has one list for each category, and `system` says which tables of categories there are.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    axes: tuple[AxisKeys, ...]
    system: ResidualSystem

    @cached_property
    def first_places(self) -> tuple[int, ...]:
        """The place of the first key of each axis, and then that of the first category."""
        return (0, *accumulate(axis.depth for axis in self.axes))

    def places(self, table: TableKeys) -> KeySet:
        """The places of the keys of a table."""
        first = self.first_places
        levels = [range(start, start + level) for start, level in zip(first, table.levels, strict=False)]
        return (*(place for each in levels for place in each), *(first[-1] + key for key in table.categories))

    def tables(self, sets: Sequence[KeySet]) -> list[TableKeys]:
        """The tables of some sets of categories, with every level of every axis."""
        levels = list(product(*(range(axis.depth + 1) for axis in self.axes)))
        return [TableKeys(level, keys) for keys in sets for level in levels]

    def title(self, table: TableKeys) -> str:
        """The name of a table: that of its keys; rows of a running total are those up to a value."""
        running = {
            start
            for axis, start in zip(self.axes, self.first_places, strict=False)
            if axis.kind == "prefixes"
        }
        names = (
            f"{self.names[place]} (up to)" if place in running else self.names[place]
            for place in self.places(table)
        )
        return grouping_text(list(names))

    @cached_property
    def closure(self) -> list[TableKeys]:
        """All tables, those that were asked for and those that follow."""
        return self.tables(self.system.closure)

    @cached_property
    def shown(self) -> list[TableKeys]:
        """The tables that were asked for."""
        return self.tables(self.system.sets)

    def nodes(self, table: TableKeys) -> list[list[tuple[Group, Span]]]:
        """The rows along each axis."""
        return [axis.nodes(level) for axis, level in zip(self.axes, table.levels, strict=True)]

    def spans(self, table: TableKeys) -> list[tuple[Span, ...]]:
        """The spans of the axes, for every combination of their rows."""
        return list(product(*([span for _, span in nodes] for nodes in self.nodes(table))))

    def size(self, table: TableKeys) -> int:
        """The number of rows of a table."""
        return math.prod(map(len, self.nodes(table))) * self.system.cells(table.categories)

    def groups(self, table: TableKeys) -> Iterator[Group]:
        """The values of the keys of each row of a table."""
        along = [[group for group, _ in nodes] for nodes in self.nodes(table)]
        lists = [[(value,) for value in self.values[key]] for key in table.categories]
        return (tuple(value for part in parts for value in part) for parts in product(*along, *lists))

    def long_groups(self, table: TableKeys) -> Iterator[Group]:
        """The same with None for the other keys, and with the name of the table."""
        places, name = self.places(table), self.title(table)
        if not self.axes:
            lists = [values if key in table.categories else (None,) for key, values in enumerate(self.values)]
            yield from product(*lists, (name,))
            return
        order = [places.index(place) if place in places else len(places) for place in range(len(self.names))]
        for group in self.groups(table):
            padded = (*group, None)
            yield (*(padded[at] for at in order), name)

    def cell_at(self, table: TableKeys, row: int) -> TableCell:
        """The cell of a row of a table, by its number there."""
        cells = self.system.cells(table.categories)
        along, inside = divmod(row, cells)
        spans = []
        for nodes in reversed(self.nodes(table)):
            along, at = divmod(along, len(nodes))
            spans.append(nodes[at][1])
        values = np.unravel_index(inside, self.system.shape(table.categories)) if table.categories else ()
        numbers = dict(zip(table.categories, map(int, values), strict=True))
        return TableCell(tuple(reversed(spans)), numbers)

    def cell(self, values: Mapping[int, Value]) -> TableCell | None:
        """A cell by the values of some places; None if there is no such value."""
        spans = []
        for axis, start in zip(self.axes, self.first_places, strict=False):
            level = next((at for at in range(axis.depth) if start + at not in values), axis.depth)
            wanted = tuple(values[start + at] for at in range(level))
            known = dict(axis.nodes(level))
            if wanted not in known or any(start + at in values for at in range(level, axis.depth)):
                return None
            spans.append(known[wanted])
        cell = {}
        for key, listed in enumerate(self.values):
            place = self.first_places[-1] + key
            if place in values:
                if values[place] not in listed:
                    return None
                cell[key] = listed.index(values[place])
        return TableCell(tuple(spans), cell)
