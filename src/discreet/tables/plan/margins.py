# SPDX-License-Identifier: Apache-2.0
"""The contribution bound of many tables at once: by rows, or by the norm of a unit's tables.

A unit with more than `rows` rows is down-weighted. By rows its weight falls as if all its rows lay
in one cell. What the noise has to cover is less where they are spread over many cells, and the norm
of the unit's own tables says how much less. Each unit has the greater of the two weights, so the
norm costs no noise.

**Guarantee.** Under the scheme no unit moves what is measured further than `moved` says, which was
paid for with `RowScheme` (compile.proof.md, § 11).

What would break it: a table whose coefficient is above zero and that is not in the scheme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.exact import exactly
from discreet.tables.algebra.sums import Margin, MarginScheme, RowScheme
from discreet.tables.algebra.types import WIDEST
from discreet.tables.plan.contribution import Contribution
from discreet.tables.plan.linear import FeatureLayout
from discreet.tables.workloads.measurement import Measurement
from discreet.tables.workloads.residuals import KeySet, ResidualSystem, subsets

__all__ = ["Moved", "bounding_scheme", "table_coefficients"]

#: Up to so many tables are added up for a unit; the parts of more are moved to those of one key.
_MOST_TABLES = 16
#: More terms than this take longer than what they gain.
_MOST_TERMS = 1 << 13
#: Steps of a full row in the table that counts most; rounding up then costs well below one percent.
_STEPS_PER_ROW = 256
#: Numbers of cells have at least so many steps, so that they can be whole numbers.
_LEAST_CELLS = 64
#: The greatest `steps`, and everything else that an engine multiplies, as `engines/widths.py` has it.
_MOST_STEPS, _MOST_CELLS = 1 << 20, (1 << 31) - 1
#: A norm that is this much shorter than that of a full unit weighs hardly any unit more than its rows do.
_WORTH = Fraction(1, 4)
#: Coefficients are rounded to multiples of 2^-precision.
_PRECISION = 240


@dataclass(frozen=True)
class Moved:
    """How far units move what is measured: the square of the distance that is paid for, and the
    square of the length of a unit with `rows` full rows.
    """

    distance: Fraction
    length: Fraction


@dataclass(frozen=True)
class _Coefficients:
    """For each table and feature at least a_B, and whether all are at least zero."""

    by_table: dict[KeySet, tuple[Fraction, ...]]
    are_nonnegative: bool


def bounding_scheme(
    features: FeatureLayout,
    measurements: Sequence[Measurement],
    contribution: Contribution,
    moved: Moved,
    fine: int,
) -> RowScheme | MarginScheme:
    """The scheme with the greater weights: the norm of tables beside rows, where that is known."""
    by_rows = RowScheme(contribution.rows, fine)
    layout = measurements[0].layout
    terms = sum(1 << len(keys) for keys in layout.system.residuals)
    if contribution.one_row_per_unit or layout.axes or terms > _MOST_TERMS:
        return by_rows
    coefficients = _coefficients(measurements)
    norm = _norm_bound(moved, contribution, features, coefficients)
    if norm < _WORTH * moved.length:
        return by_rows
    tables = _few_tables(layout.system, coefficients.by_table, nonnegative=not features.signed)
    return by_rows if tables is None else _whole_scheme(features, tables, by_rows, norm)


def table_coefficients(measurement: Measurement) -> dict[KeySet, Fraction]:
    """a_B: ‖what is measured of x‖² / γ² = Σ a_B · ‖Q_B x‖² for every table x; rounded up.

    With σ_S = γ_S / (f_S · n_S), a_B = Σ_{S ⊇ B} Π_{i ∈ S - B} (-1 / n_i) / σ_S².
    """
    system, unit = measurement.layout.system, 1 << _PRECISION
    found = dict.fromkeys(system.residuals, 0)
    for keys, scale in measurement.scales.items():
        precision = (Fraction(measurement.multipliers[keys] * system.cells(keys)) / exactly(scale)) ** 2
        for part in subsets(keys):
            missing = [key for key in keys if key not in part]
            sign = -1 if len(missing) % 2 else 1
            found[part] += math.ceil(sign * precision * unit / system.cells(tuple(missing)))
    return {keys: Fraction(value, unit) for keys, value in found.items()}


def _coefficients(measurements: Sequence[Measurement]) -> _Coefficients:
    each = [table_coefficients(measurement) for measurement in measurements]
    tables = each[0].keys()
    # Each of the terms was rounded up by one unit at most.
    error = Fraction(sum(1 << len(keys) for keys in tables), 1 << _PRECISION)
    nonnegative = all(value >= error for values in each for value in values.values())
    return _Coefficients(
        {keys: tuple(max(values[keys], Fraction(0)) for values in each) for keys in tables}, nonnegative
    )


def _norm_bound(
    moved: Moved, contribution: Contribution, features: FeatureLayout, coefficients: _Coefficients
) -> Fraction:
    """The square of the norm that a unit may have: neither alone nor against another unit does it
    then move more than was paid for; rounded down.

    Two units without negative features, in tables without negative coefficients, are at a right
    angle at most.
    """
    if not contribution.replaces:
        return moved.distance
    if coefficients.are_nonnegative and not features.signed:
        return max(min(moved.distance - moved.length, moved.distance / 2), Fraction(0))
    distance, length = _root_below(moved.distance), _root_below(moved.length) + Fraction(1, 1 << _PRECISION)
    return max(min(distance - length, distance / 2), Fraction(0)) ** 2


def _root_below(square: Fraction) -> Fraction:
    return Fraction(math.isqrt(math.floor(square * (1 << 2 * _PRECISION))), 1 << _PRECISION)


def _few_tables(
    system: ResidualSystem, coefficients: Mapping[KeySet, tuple[Fraction, ...]], *, nonnegative: bool
) -> dict[KeySet, tuple[Fraction, ...]] | None:
    """Coefficients of a few tables that bound the same sum; None if there are none.

    Where no feature is negative ‖Q_B x‖ is at most ‖Q_A x‖ for A in B: cells are added up.
    """
    used = {keys: values for keys, values in coefficients.items() if any(values)}
    if len(used) <= _MOST_TABLES:
        return used
    if not nonnegative:
        return None
    moved: dict[KeySet, tuple[Fraction, ...]] = {}
    for keys, values in used.items():
        largest: KeySet = (max(keys, key=lambda key: system.sizes[key]),) if keys else ()
        before = moved.get(largest, (Fraction(0),) * len(values))
        moved[largest] = tuple(one + other for one, other in zip(before, values, strict=True))
    return moved


def _whole_scheme(
    features: FeatureLayout,
    tables: Mapping[KeySet, tuple[Fraction, ...]],
    by_rows: RowScheme,
    norm: Fraction,
) -> RowScheme | MarginScheme:
    """Cells in proportion to 1/√a, and the greatest `most` that keeps every unit within the norm.

    (w v steps / cells)² adds up to (most · fine)² at most, so Σ a (w v)² is at most (most · fine)²
    times the greatest a · (cells / steps)².
    """
    roots = {keys: [math.sqrt(value) for value in values] for keys, values in tables.items()}
    longest = max(
        root * high for each in roots.values() for root, high in zip(each, features.reach, strict=True)
    )
    per_row = _STEPS_PER_ROW / longest
    steps = tuple(
        _steps_for(max(each[place] for each in roots.values()) * per_row)
        for place in range(len(features.reach))
    )
    margins = tuple(
        Margin(keys, tuple(_cells(root * per_row, step) for root, step in zip(each, steps, strict=True)))
        for keys, each in sorted(roots.items())
    )
    widest = max(_squared_cells(tables, margins, steps))
    most = math.isqrt(math.floor(norm / (widest * by_rows.fine**2)))
    if not 0 < most <= _MOST_CELLS or most * by_rows.fine > WIDEST:
        return by_rows
    return MarginScheme(by_rows.most, most, by_rows.fine, margins, steps)


def _steps_for(rate: float) -> int:
    """The least power of two that gives at least `_LEAST_CELLS` cells at so many steps for each."""
    steps = 1
    while steps < _LEAST_CELLS * rate and steps < _MOST_STEPS:
        steps *= 2
    return steps


def _cells(rate: float, steps: int) -> int:
    return _MOST_CELLS if rate * _MOST_CELLS <= steps else max(1, round(steps / rate))


def _squared_cells(
    tables: Mapping[KeySet, tuple[Fraction, ...]], margins: Iterable[Margin], steps: Sequence[int]
) -> Iterable[Fraction]:
    for margin in margins:
        for value, cells, step in zip(tables[margin.keys], margin.cells, steps, strict=True):
            yield value * Fraction(cells, step) ** 2
