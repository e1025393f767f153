# SPDX-License-Identifier: Apache-2.0
"""Ranges, running totals and quantiles of an ordered key, from a cube that was released with them.

**Guarantee.** Post-processing: only released numbers are read. An interval of a range or of a
running total is that of the noise of the sum, not a sum of intervals, and contains the exact number
with probability 95 %. That of a quantile contains a value with that rank among the rows with
probability 95 %.

Why it holds: let D(v) be the number of rows up to v less q times the number of all rows. The
quantile is the first v with D(v) ≥ 0, so D(v) ≥ 0 there, and D < 0 at the value before. Each of the
two estimates errs by more than its one-sided margin with probability at most 2.5 %, and otherwise v
is one of the values that are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from discreet.errors import BadParameter
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.cube_shape import AxisKeys
from discreet.tables.answer.noisy import CONFIDENCE, Noisy, Values
from discreet.tables.workloads.released import Span, TableCell

if TYPE_CHECKING:
    from discreet.tables.answer.cube import CubeAnswer

__all__ = ["cumulative", "quantile", "range_total"]

_SAFE = 1 + 1e-12


def range_total(cube: CubeAnswer, low: Value, high: Value, where: Mapping[str, Value]) -> Answer:
    """The counts and sums of the rows whose ordered key is between two values, both included."""
    ordered = _OrderedKey.of(cube)
    cell = ordered.category_cell(where)
    values = [value for (value,) in ordered.axis.leaves]
    try:
        inside = [at for at, value in enumerate(values) if low <= value <= high]  # type: ignore[operator]
    except TypeError:
        inside = []
    if not inside:
        raise BadParameter(
            "DP102",
            f"there is no value of {ordered.name} between {low!r} and {high!r}.",
            why="a range is made of public values.",
            fix=f"cube.between({values[0]!r}, {values[-1]!r})",
        )
    span = (inside[0], inside[-1] + 1)
    columns = {name: ordered.noisy(name, [(span, cell)]) for name in ordered.sums()}
    return _answer(cube, (), [()], columns)


def cumulative(cube: CubeAnswer, by: Sequence[str]) -> Answer:
    """The rows up to each value of the ordered key, for each value of some categories."""
    ordered = _OrderedKey.of(cube)
    cells = ordered.category_cells(by)
    wanted = [((0, end + 1), cell) for end in range(len(ordered.axis.leaves)) for _, cell in cells]
    groups = [(*leaf, *group) for leaf in ordered.axis.leaves for group, _ in cells]
    columns = {name: ordered.noisy(name, wanted) for name in ordered.sums()}
    return _answer(cube, (ordered.name, *by), groups, columns)


def quantile(cube: CubeAnswer, fraction: float, by: Sequence[str]) -> Answer:
    """The value of the ordered key up to which that part of the rows lies, for each value of some
    categories.
    """
    ordered = _OrderedKey.of(cube)
    counts = cube.cube_tables.counts
    if not counts:
        raise BadParameter(
            "DP107",
            "quantiles need the number of rows.",
            why="a quantile is a value up to which a part of the rows lies.",
            fix="ask for COUNT(*) with the ranges",
        )
    cells = ordered.category_cells(by)
    found = [ordered.quantile(counts[0], fraction, cell) for _, cell in cells]
    values, lows, highs = (tuple(part) for part in zip(*found, strict=True))
    text = f"QUANTILE({ordered.name}, {fraction:g})"
    noisy = Noisy(values, lows, highs, text, "computed from released counts")
    return _answer(cube, tuple(by), [group for group, _ in cells], {f"quantile_{fraction:g}": noisy})


@dataclass(frozen=True)
class _OrderedKey:
    """The ordered key of a cube."""

    cube: CubeAnswer
    place: int
    axis: AxisKeys

    @classmethod
    def of(cls, cube: CubeAnswer) -> _OrderedKey:
        """The only ordered key of a cube."""
        axes = cube.cube_tables.shape.axes
        ordered = [place for place, axis in enumerate(axes) if axis.kind != "tree"]
        if len(ordered) == 1:
            return cls(cube, ordered[0], axes[ordered[0]])
        raise BadParameter(
            "DP107",
            f"the cube has {len(ordered) or 'no'} ordered keys.",
            why="ranges, running totals and quantiles are those of the key that was released with RANGES or PREFIXES.",
            fix="session.release(data.ranges(…).count(), …)   with one ordered column",
        )

    @property
    def name(self) -> str:
        """The name of the key."""
        shape = self.cube.cube_tables.shape
        return shape.names[shape.first_places[self.place]]

    def sums(self) -> list[str]:
        """The columns that are counts or sums."""
        return [name for name, reading in self.cube.cube_tables.readings.items() if reading]

    def category_cell(self, where: Mapping[str, Value]) -> dict[int, int]:
        """The numbers of the values of some categories."""
        return dict(self.cube.cell_of(where).values)

    def category_cells(self, by: Sequence[str]) -> list[tuple[tuple[Value, ...], dict[int, int]]]:
        """Every combination of values of some categories, with its cell."""
        groups = self.cube.table(*by).groups
        return [(group, self.category_cell(dict(zip(by, group, strict=True)))) for group in groups]

    def _spans(self, span: Span) -> tuple[Span, ...]:
        axes = self.cube.cube_tables.shape.axes
        return tuple(span if at == self.place else (0, len(axis.leaves)) for at, axis in enumerate(axes))

    def estimates(self, column: str, wanted: Sequence[tuple[Span, Mapping[int, int]]]) -> list[float]:
        """The estimates of a column over some spans, in cells of the same categories."""
        keys = tuple(sorted(wanted[0][1]))
        spans = list(dict.fromkeys(span for span, _ in wanted))
        lists = [[each] for each in self._spans((0, 0))]
        lists[self.place] = spans
        table = self.cube.cube_tables.table(column, keys, lists)
        table = np.moveaxis(table, self.place, 0).reshape(len(spans), *table.shape[len(lists) :])
        rows = {span: at for at, span in enumerate(spans)}
        return [float(table[(rows[span], *(cell[key] for key in keys))]) for span, cell in wanted]

    def noise(self, column: str, *terms: tuple[float, Span, Mapping[int, int]]) -> tuple[float, float]:
        """The deviation of a weighted sum of cells of a column, and what rounding adds at most."""
        variance = rounding = 0.0
        for weight, tables in self.cube.cube_tables.numbers(column):
            cells = [(factor, TableCell(self._spans(span), cell)) for factor, span, cell in terms]
            variance += float(weight) ** 2 * sum(
                a * b * tables.covariance(one, other) for a, one in cells for b, other in cells
            )
            rounding += abs(float(weight)) * sum(
                abs(factor) * tables.table_rounding(tuple(sorted(cell.values)), cell.spans)
                for factor, cell in cells
            )
        return math.sqrt(max(variance, 0.0)), rounding

    def noisy(self, column: str, wanted: Sequence[tuple[Span, Mapping[int, int]]]) -> Noisy:
        """The estimates with their intervals."""
        values = self.estimates(column, wanted)
        known: dict[Span, tuple[float, float]] = {}
        for span, cell in wanted:
            # All cells of a table have the same noise.
            if span not in known:
                known[span] = self.noise(column, (1.0, span, cell))
        noise = [known[span] for span, _ in wanted]
        first = self.cube.cube_tables.columns[column]
        floor = 0.0 if first.nonnegative else -math.inf

        def interval(confidence: float) -> tuple[Values, Values]:
            z = -float(ndtri((1 - confidence) / 2)) * _SAFE
            halves = [z * deviation + rounding for deviation, rounding in noise]
            lows = (max(value - half, floor) for value, half in zip(values, halves, strict=True))
            highs = (max(value + half, floor) for value, half in zip(values, halves, strict=True))
            return tuple(map(min, lows, values)), tuple(map(max, highs, values))

        low, high = interval(CONFIDENCE)
        return Noisy(
            tuple(values),
            low,
            high,
            first.text,
            first.noise,
            whole=first.whole,
            nonnegative=first.nonnegative,
            interval=interval,
        )

    def quantile(self, column: str, fraction: float, cell: Mapping[int, int]) -> tuple[Value, Value, Value]:
        """A value with that part of the rows up to it, and an interval of values."""
        leaves = [value for (value,) in self.axis.leaves]
        everything = (0, len(leaves))
        wanted = [((0, end + 1), cell) for end in range(len(leaves))]
        up_to = self.estimates(column, wanted)
        margin = -float(ndtri((1 - CONFIDENCE) / 2)) * _SAFE
        differences = [value - fraction * up_to[-1] for value in up_to]
        halves = []
        for span, _ in wanted:
            deviation, rounding = self.noise(column, (1.0, span, cell), (-fraction, everything, cell))
            halves.append(margin * deviation + rounding)
        pairs = list(zip(differences, halves, strict=True))
        # At the last value all rows are reached, and before the first there are none.
        reached = [*(difference >= -half for difference, half in pairs[:-1]), True]
        not_before = [True, *(difference <= half for difference, half in pairs[:-1])]
        kept = [at for at in range(len(leaves)) if reached[at] and not_before[at]]
        # Noisy running totals need not increase: the first value at which they are reached stands for all.
        value = next((at for at, difference in enumerate(differences) if difference >= 0), len(leaves) - 1)
        return leaves[value], leaves[min([value, *kept])], leaves[max([value, *kept])]


def _answer(
    cube: CubeAnswer, keys: tuple[str, ...], groups: Sequence[tuple[Value, ...]], columns: dict[str, Noisy]
) -> Answer:
    """An answer with the question, the notes, the guarantee and the receipt of the cube."""
    return Answer(
        keys,
        tuple(groups),
        columns,
        cube.question,
        cube.notes,
        cube.suppressed,
        cube.guarantee,
        cube.receipt,
        cube.private,
    )
