# SPDX-License-Identifier: Apache-2.0
"""The released numbers of a synthetic copy: the noisy whole numbers of all pairs and of chosen
tables, as they are stored.

**Guarantee.** Post-processing of what was measured. Every table of one or two columns has intervals
that hold for all data; they come from the pairs alone, whose noise no choice depends on. A chosen
table has the interval of its own noise, which was drawn after the choice. Measurements of the same
table are never pooled: an interval would then depend on why it was measured again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.tables.synthetic.columns import CopiedColumn
from discreet.tables.synthetic.counts import Counts
from discreet.tables.synthetic.measure import pair_system
from discreet.tables.synthetic.mixture import NoisyMarginal, NoisyPairs
from discreet.tables.workloads.measurement import Layout, Measurement
from discreet.tables.workloads.released import ReleasedTables
from discreet.tables.workloads.residuals import Floats, KeySet, ResidualSystem

__all__ = ["MeasuredTable", "ReleasedCounts", "pair_half_width", "tables_of_pairs"]

#: A NULL whose interval of this confidence holds zero is taken for noise, and the copy has none of it.
_NULL_CONFIDENCE = 0.9973
_SAFE = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A chosen table with noise on each cell, in weights, and the scale of the noise."""

    keys: KeySet
    noisy: Counts
    scale: float


@dataclass(frozen=True, eq=False)
class ReleasedCounts:
    """Noisy whole numbers in weights, `fine` of which are one row: one block for each residual, and
    the chosen tables.
    """

    columns: tuple[CopiedColumn, ...]
    fine: int
    multipliers: Mapping[KeySet, int]
    scales: Mapping[KeySet, float]
    blocks: Mapping[KeySet, Any]
    chosen: tuple[MeasuredTable, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each column."""
        return tuple(column.size for column in self.columns)

    @cached_property
    def tables(self) -> ReleasedTables:
        """All tables of one and two columns, in rows, with their variances."""
        system = pair_system(self.sizes)
        measured = Measurement(Layout((), system, {}), self.multipliers, self.scales)
        return tables_of_pairs(system, measured, measured.estimates(self.blocks), self.fine)

    @property
    def has_pairs(self) -> bool:
        """Whether all pairs of columns were measured, or chosen tables alone."""
        return () in self.blocks

    @property
    def total(self) -> float:
        """The noisy number of rows: of the pairs, or the mean of the tables of one column that came
        first.
        """
        if self.has_pairs:
            return float(self.tables.residuals[()])
        first = [table for table in self.chosen[: len(self.columns)] if len(table.keys) == 1]
        precisions = [1 / table.noisy.size for table in first]
        sums = [float(table.noisy.sum()) / self.fine for table in first]
        return float(np.average(sums, weights=precisions)) if first else 0.0

    def with_table(self, table: MeasuredTable) -> ReleasedCounts:
        """The same numbers and one more table."""
        return replace(self, chosen=(*self.chosen, table))

    def pairs(self) -> NoisyPairs:
        """The residuals, as a model is fitted to them."""
        tables = self.tables
        return NoisyPairs(self.sizes, self.total, tables.residuals, tables.variances, self.absent_codes())

    def absent_codes(self) -> frozenset[tuple[int, int]]:
        """The codes of NULL whose released number is not above its noise."""
        return frozenset(
            (column, each.size - 1)
            for column, each in enumerate(self.columns)
            if each.null and each.size > 1 and not self._has_null(column)
        )

    def _has_null(self, column: int) -> bool:
        found = self.table((column,), _NULL_CONFIDENCE)
        return found is not None and bool(found[0][-1] > found[1])

    def noisy_tables(self) -> tuple[NoisyMarginal, ...]:
        """The chosen tables in rows, as a model is fitted to them."""
        return tuple(
            NoisyMarginal(
                table.keys,
                (table.noisy / self.fine).reshape(tuple(self.sizes[key] for key in table.keys)),
                (table.scale**2 + 1 / 12) / self.fine**2,
            )
            for table in self.chosen
        )

    def table(self, keys: KeySet, confidence: float) -> tuple[Floats, float] | None:
        """The released table of some columns and the half-width of its intervals; None if it was
        not released.
        """
        if self.has_pairs and len(keys) <= min(2, len(self.sizes)):
            return self.tables.table(keys), pair_half_width(self.tables, keys, confidence)
        z = _deviations(confidence)
        for table in self.chosen:
            if table.keys == keys:
                shape = tuple(self.sizes[key] for key in keys)
                return (table.noisy / self.fine).reshape(shape), (z * table.scale + 0.5) / self.fine
        return None

    # --- as JSON ---------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain JSON types; the columns are stored beside them."""
        return {
            "fine": self.fine,
            "residuals": [
                [list(keys), self.multipliers[keys], self.scales[keys], np.asarray(block).ravel().tolist()]
                for keys, block in self.blocks.items()
            ],
            "tables": [[list(table.keys), table.scale, table.noisy.tolist()] for table in self.chosen],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], columns: tuple[CopiedColumn, ...]) -> ReleasedCounts:
        """The numbers that `to_dict` wrote."""
        sizes = tuple(column.size for column in columns)
        multipliers, scales, blocks = {}, {}, {}
        for listed, multiplier, scale, numbers in stored["residuals"]:
            keys = tuple(listed)
            multipliers[keys], scales[keys] = multiplier, scale
            blocks[keys] = np.array(numbers, dtype=object if _is_wide(numbers) else np.int64).reshape(
                tuple(sizes[key] for key in keys)
            )
        chosen = tuple(
            MeasuredTable(tuple(keys), np.array(noisy, np.int64), scale)
            for keys, scale, noisy in stored["tables"]
        )
        if any(one > other for table in chosen for one, other in pairwise(table.keys)):
            raise ValueError("the columns of a table are in order")
        return cls(columns, stored["fine"], multipliers, scales, blocks, chosen)


def tables_of_pairs(
    system: ResidualSystem, measured: Measurement, residuals: Mapping[KeySet, Floats], fine: int
) -> ReleasedTables:
    """Tables of one and two columns, in rows, from residuals in weights; without these, their
    variances alone.
    """
    released = ReleasedTables((), system, residuals, measured.variances(), measured.roundings())
    return released.scale(1 / fine)


def pair_half_width(tables: ReleasedTables, keys: KeySet, confidence: float) -> float:
    """The half-width of the intervals of the cells of a table, whatever is in them."""
    deviation = math.sqrt(tables.table_variance(keys))
    return _deviations(confidence) * deviation + tables.table_rounding(keys)


def _deviations(confidence: float) -> float:
    """How many deviations of Gaussian noise an interval reaches to each side, rounded up."""
    return -float(ndtri((1 - confidence) / 2)) * _SAFE


def _is_wide(numbers: list[int]) -> bool:
    return any(abs(number) >= 1 << 62 for number in numbers)
