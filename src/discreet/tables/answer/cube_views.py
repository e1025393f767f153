# SPDX-License-Identifier: Apache-2.0
"""Views of a cube: shares of parent tables, only clear numbers, tables without negative numbers,
whole numbers.

**Guarantee.** Post-processing: only released numbers are read, and intervals never move but for
being cut to what is possible. A view whose numbers were changed says so in a note; its numbers have
the intervals of those that were released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import BadParameter
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.noisy import Noisy
from discreet.tables.workloads.released import ReleasedTables
from discreet.tables.workloads.residuals import Floats

if TYPE_CHECKING:
    from discreet.tables.answer.cube import CubeAnswer, CubeTables

__all__ = ["clear_numbers", "consistent_nonnegative", "share_of", "whole_numbers"]

#: Steps of the projection, and the relative change at which it stops.
_STEPS, _CHANGE = 500, 1e-7
#: Cells of the table over all keys in which negative numbers are removed.
_MOST_CELLS = 10**6


def share_of(cube: CubeAnswer, names: Sequence[str], of: Sequence[str]) -> Answer:
    """Each number of a table as a share of that of a table with fewer keys."""
    table, whole = cube.table(*names), cube.table(*of)
    if not {*of} <= {*names}:
        raise BadParameter(
            "DP105",
            f"({', '.join(of)}) is not among the keys of ({', '.join(names)}).",
            why="a share is that of a part, and the whole has fewer keys than the part.",
            fix=f"cube.share_of({', '.join(map(repr, names))}, of={tuple(names[:-1])!r})",
        )
    order = [list(names).index(name) for name in of]
    rows = {group: row for row, group in enumerate(whole.groups)}
    wholes = [rows[tuple(group[at] for at in order)] for group in table.groups]
    spread = replace(table, columns={name: column.take(wholes) for name, column in whole.columns.items()})
    return table / spread


def clear_numbers(cube: CubeAnswer, min_z: float) -> Answer:
    """The rows of the tables that were asked for in which a count or a sum is that many deviations
    from 0.
    """
    tables = cube.cube_tables
    kept: list[int] = []
    groups: list[tuple[Value, ...]] = []
    for table in tables.shape.shown:
        for row, group in zip(tables.rows(table), tables.shape.long_groups(table), strict=True):
            cell = tables.shape.cell_at(table, row - tables.rows(table)[0])
            if any(
                abs(tables.columns[name].values[row]) >= min_z * tables.covariance(name, cell, cell) ** 0.5
                for name, reading in tables.readings.items()
                if reading
            ):
                kept.append(row)
                groups.append(group)
    note = f"View: rows whose counts and sums are all within {min_z:g} deviations of the noise from 0 are left out."
    return _long_view(cube, groups, {name: column.take(kept) for name, column in tables.noisy.items()}, note)


def consistent_nonnegative(cube: CubeAnswer) -> Answer:
    """The tables that were asked for without negative numbers, where every subtotal is the sum of
    its parts.

    It is the nearest such table in the metric of the noise. A projection on a convex set that
    contains the truth is never farther from the truth in that metric.
    """
    tables = cube.cube_tables
    system = tables.shape.system
    cells = math.prod(system.sizes)
    if tables.shape.axes or cells > _MOST_CELLS:
        raise BadParameter(
            "DP107",
            f"this view needs one table over all keys, of at most {_MOST_CELLS} cells, and no ordered key.",
            why="negative numbers are removed in the cells of all keys together, so that all tables agree.",
            fix="cube.nonnegative()   sets each negative number to 0 by itself",
        )
    columns = {
        name: _projected_column(tables, name, column) if _is_count(tables, name) else column
        for name, column in tables.noisy.items()
    }
    rows = [row for table in tables.shape.shown for row in tables.rows(table)]
    groups = [group for table in tables.shape.shown for group in tables.shape.long_groups(table)]
    note = (
        "View: counts were moved to the nearest tables without negative numbers that agree with each other;"
        " sums of small counts are biased upwards. Intervals are those of the released numbers."
    )
    return _long_view(cube, groups, {name: column.take(rows) for name, column in columns.items()}, note)


def _is_count(tables: CubeTables, name: str) -> bool:
    return len(tables.readings.get(name, ())) == 1 and tables.columns[name].nonnegative


def _projected_column(tables: CubeTables, name: str, column: Noisy) -> Noisy:
    """A column of counts from the nearest table over all keys without negative cells."""
    ((_, released),) = tables.numbers(name)
    nearest = _nearest_table(released)
    everything = range(nearest.ndim)
    values: list[float] = []
    for table in tables.shape.closure:
        gone = tuple(key for key in everything if key not in table.categories)
        values += nearest.sum(axis=gone).ravel().tolist()
    return _with_values(column, values)


def _nearest_table(released: ReleasedTables) -> Floats:
    """argmin over x ≥ 0 of Σ_S ‖P_S Q_S x - r_S‖² / σ_S², by accelerated projected gradients."""
    system = released.system
    everything = tuple(range(len(system.sizes)))
    gone = {part: tuple(key for key in everything if key not in part) for part in system.residuals}
    steepest = max(system.cells(everything) / system.cells(part) / released.variances[part] for part in gone)

    def slope(x: Floats) -> Floats:
        total: Floats = np.zeros(system.sizes)
        for part, axes in gone.items():
            summed = np.asarray(x.sum(axis=axes))
            error = (system.without_means(summed, part) - released.residuals[part]) / released.variances[part]
            total = total + np.expand_dims(error, axes)
        return total

    # The released residuals, each spread evenly over the keys that it lacks.
    start: Floats = np.zeros(system.sizes)
    for part, axes in gone.items():
        spread = system.cells(everything) / system.cells(part)
        start = start + np.expand_dims(released.residuals[part], axes) / spread
    current = np.maximum(start, 0.0)
    ahead, momentum = current, 1.0
    for _ in range(_STEPS):
        following = np.maximum(ahead - slope(ahead) / steepest, 0.0)
        after = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / after * (following - current)
        change = float(np.abs(following - current).max())
        current, momentum = following, after
        if change <= _CHANGE * max(1.0, float(current.max())):
            break
    return current


def whole_numbers(cube: CubeAnswer) -> Answer:
    """The tables of a rollup or a hierarchy with whole counts that are not negative and add up.

    From the total downwards, the parts of a number are the nearest ones that are not negative and
    add up to it, rounded so that their sum stays.
    """
    tables = cube.cube_tables
    shape = tables.shape
    chain = sorted(shape.shown, key=lambda table: len(shape.places(table)))
    places = [shape.places(table) for table in chain]
    is_chain = all({*small} <= {*large} for small, large in pairwise(places))
    if not is_chain or places[0] or any(axis.kind == "prefixes" for axis in shape.axes):
        raise BadParameter(
            "DP107",
            "whole numbers that add up can be had for a rollup or a hierarchy only.",
            why="in a cube, rounding all subtotals at once has no solution in general.",
            fix="session.release(data.rollup(…).count(), …).whole_numbers()",
        )
    columns = {}
    for name, column in tables.noisy.items():
        if not _is_count(tables, name):
            continue
        values = list(column.values)
        first = tables.rows(chain[0])[0]
        values[first] = max(round(values[first]), 0)
        for (above, parent), (below, child) in pairwise(zip(places, chain, strict=True)):
            order = [below.index(place) for place in above]
            parts: dict[tuple[Value, ...], list[int]] = {}
            for row, group in zip(tables.rows(child), shape.groups(child), strict=True):
                parts.setdefault(tuple(group[at] for at in order), []).append(row)
            for row, group in zip(tables.rows(parent), shape.groups(parent), strict=True):
                children = parts[group]
                rounded = _parts_of(int(values[row]), [values[child_row] for child_row in children])
                for child_row, number in zip(children, rounded, strict=True):
                    values[child_row] = number
        columns[name] = _with_values(column, values)
    rows = [row for table in chain for row in tables.rows(table)]
    groups = [group for table in chain for group in shape.long_groups(table)]
    note = (
        "View: counts were rounded to whole numbers that add up. Intervals are those of the released numbers."
    )
    return _long_view(cube, groups, {name: column.take(rows) for name, column in columns.items()}, note)


def _parts_of(total: int, estimates: Sequence[float]) -> list[int]:
    """Whole numbers ≥ 0 with this sum, near some estimates: projected on the simplex, then largest
    remainders.
    """
    ordered = sorted(estimates, reverse=True)
    shift, added = 0.0, 0.0
    for count, value in enumerate(ordered, 1):
        added += value
        if value - (added - total) / count > 0 or count == 1:
            shift = (added - total) / count
    parts = [max(value - shift, 0.0) for value in estimates]
    whole = [math.floor(part) for part in parts]
    missing = total - sum(whole)
    by_remainder = sorted(range(len(parts)), key=lambda at: whole[at] - parts[at])
    for at in by_remainder[: max(missing, 0)]:
        whole[at] += 1
    return whole


def _with_values(column: Noisy, values: Sequence[float]) -> Noisy:
    """A column with other numbers; the released intervals are cut to what is possible and contain
    them.
    """
    lows = tuple(min(max(low, 0.0), value) for low, value in zip(column.lo, values, strict=True))
    highs = tuple(max(high, value, 0.0) for high, value in zip(column.hi, values, strict=True))
    return replace(
        column, values=tuple(values), lo=lows, hi=highs, deviation=None, interval=None, linear=None
    )


def _long_view(
    cube: CubeAnswer, groups: Sequence[tuple[Value, ...]], columns: dict[str, Noisy], note: str
) -> Answer:
    """A long table like that of the cube, with a note."""
    return Answer(
        (*cube.cube_tables.shape.names, "grouping"),
        tuple(groups),
        columns,
        cube.question,
        (*cube.notes, note),
        cube.suppressed,
        cube.guarantee,
        cube.receipt,
        cube.private,
    )
