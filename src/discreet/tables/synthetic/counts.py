# SPDX-License-Identifier: Apache-2.0
"""The exact tables of the columns of a copy: one bounded sum from the engine, and every table from
it.

**Guarantee.** One unit moves the sparse table by at most `most · fine` in l1, all cells up or all
down: its weights are at least 0 and add up to at most that, in however many rows. A replaced unit
does both, one after the other. Tables of fewer columns are sums of the cells, so they move no
further. Nothing here is released.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.tables.algebra.engine import Engine, guard_engine
from discreet.tables.algebra.expr import Constant
from discreet.tables.algebra.sums import BoundedSums, Filtered, Relation, RowScheme
from discreet.tables.algebra.types import NUMBER, Type
from discreet.tables.synthetic.columns import CopiedColumn
from discreet.tables.workloads.measurement import SparseTable
from discreet.tables.workloads.residuals import KeySet

__all__ = ["Counts", "count_tables", "counted_rows", "exact_cells", "l1_distance"]

Counts = npt.NDArray[np.int64]
_ONE = Constant(1, Type(NUMBER, 1, 1, 0, null=False))


@dataclass(frozen=True)
class CountedRows:
    """What an engine is asked for: the rows, with the columns as keys, and weights that bound each
    unit.
    """

    sums: BoundedSums
    columns: tuple[CopiedColumn, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of codes of each column."""
        return tuple(column.size for column in self.columns)


def counted_rows(
    rows: Relation, table: str, columns: tuple[CopiedColumn, ...], most: int, fine: int
) -> CountedRows:
    """The request for all combinations of codes that occur; rows without a code are left out before
    weights are computed.
    """
    for column in columns:
        condition = column.condition(table)
        if condition is not None:
            rows = Filtered(rows, condition)
    keys = tuple(column.key(table) for column in columns)
    return CountedRows(BoundedSums(rows, keys, (_ONE,), RowScheme(most, fine)), columns)


def exact_cells(engine: Engine, asked: CountedRows) -> SparseTable:
    """The cells that are not empty, in weights."""
    found = guard_engine(engine.sums, asked.sums)
    places = np.empty((len(found), len(asked.columns)), np.int64)
    for at, column in enumerate(asked.columns):
        codes = column.code_by_key
        places[:, at] = [codes.get(key[at], -1) for key in found]
    values = np.fromiter((value for (value,) in found.values()), np.int64, len(found))
    # A key without a code would be an error that depends on data; without its cells, tables move no further.
    known = (places >= 0).all(axis=1)
    return SparseTable(places[known], values[known])


def count_tables(
    cells: SparseTable, shape: Sequence[int], sets: Iterable[KeySet]
) -> Iterable[tuple[KeySet, Counts]]:
    """The exact table of each set of columns, flat."""
    weights = cells.values.astype(np.float64)
    # Sums of weights below 2^53 are exact as floats.
    exact = int(cells.values.sum()) < 1 << 53
    for keys in sets:
        sizes = tuple(shape[key] for key in keys)
        flat = np.zeros(len(cells.values), np.int64)
        for key, size in zip(keys, sizes, strict=True):
            flat = flat * size + cells.places[:, key]
        if exact:
            yield keys, np.rint(np.bincount(flat, weights, math.prod(sizes))).astype(np.int64)
        else:
            table = np.zeros(math.prod(sizes), np.int64)
            np.add.at(table, flat, cells.values)
            yield keys, table


def l1_distance(table: Counts, other: Counts) -> int:
    """Σ |a - b|, exactly."""
    return int(np.abs(table - other).sum())
