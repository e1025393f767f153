# SPDX-License-Identifier: Apache-2.0
"""What is measured of a table of whole numbers, with the noise of each number, and how far one row
moves it.

For each set S of categories: f_S · (⊗ axes) ⊗ (n I - J over S), applied to the table summed over
the other categories, plus independent rounded Gaussian noise of scale γ_S. The factors make the
residuals whole numbers, so that nothing is rounded before the noise is added.

**Guarantee.** `Measurement.squared_length` is the greatest Σ ‖shift‖² / γ² that one row of the
value 1 causes, rounded up. It is the same for every cell of the categories, and attained
(compile.proof.md, § 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.exact import exactly, float_above
from discreet.tables.workloads.axes import Axis
from discreet.tables.workloads.residuals import Floats, KeySet, ResidualSystem

__all__ = ["Layout", "Measurement", "SparseTable", "least_overlap", "measurement_at"]

Integers = npt.NDArray[np.int64]
#: The least scale of noise: rounding it to whole numbers then changes no interval by a part in a thousand.
_LEAST_SCALE = 1 << 12
#: Sums of greater numbers leave 64 bits.
_NARROW = 1 << 62
#: Whole numbers below this are floats exactly, and so are their sums.
_EXACT_FLOATS = 1 << 53
#: Terms of Σ ‖shift‖² / γ² are rounded up to multiples of this.
_PRECISION = 200
#: A margin far above the rounding errors of floats here.
_SAFE = 1 + 1e-9
#: Patterns of agreement are listed up to so many steps.
_MOST_STEPS = 1 << 26


@dataclass(frozen=True)
class SparseTable:
    """The cells of a table that are not zero: the number of the value of each key, and a whole
    number of each cell.

    The columns of `places` are the axes first, and then the categories.
    """

    places: Integers
    values: Any

    def totals(self, columns: Sequence[int], shape: tuple[int, ...]) -> Any:
        """The sums of the values over the cells of the keys in some columns."""
        return _totals(self, columns, shape, int(sum(map(abs, self.values.tolist()))))


@dataclass(frozen=True, eq=False)
class Layout:
    """The axes and the categories of a workload, and the variances σ_S² of its residuals at a cost
    of one sensitivity.
    """

    axes: tuple[Axis, ...]
    system: ResidualSystem
    variances: Mapping[KeySet, float]

    @property
    def squared_axes(self) -> int:
        """At least the squared length of one row along all axes."""
        return math.prod(axis.squared_length for axis in self.axes)

    def axis_shape(self) -> tuple[int, ...]:
        """The numbers of values of the axes."""
        return tuple(axis.leaves for axis in self.axes)

    def measured_shape(self) -> tuple[int, ...]:
        """How many numbers are measured along each axis."""
        return tuple(axis.measured for axis in self.axes)

    def exact_blocks(
        self, cells: SparseTable, multipliers: Mapping[KeySet, int]
    ) -> Iterator[tuple[KeySet, Any]]:
        """f · (⊗ axes) ⊗ (n I - J) of the table of each set of categories, in whole numbers."""
        system, depth = self.system, len(self.axes)
        reach = int(sum(map(abs, cells.values.tolist())))
        stretch = math.prod(2 * math.isqrt(axis.squared_length) + 2 for axis in self.axes)
        for keys, table in self._tables(cells, reach):
            # No intermediate number is larger than this in absolute value.
            greatest = (
                reach * stretch * multipliers[keys] * math.prod(2 * size for size in system.shape(keys))
            )
            kind = np.int64 if greatest < _NARROW else object
            block = table.astype(kind)
            for place, axis in enumerate(self.axes):
                block = np.moveaxis(axis.measure(np.moveaxis(block, place, 0)), 0, place)
            # numpy takes a single number out of its array of objects.
            yield keys, np.asarray(multipliers[keys] * system.center(block, keys, depth), kind)

    def _tables(self, cells: SparseTable, reach: int) -> Iterator[tuple[KeySet, Any]]:
        """The exact table of each set of categories over all values of the axes; the larger sets
        first.

        A table that is contained in one that is known is summed from it.
        """
        depth, known = len(self.axes), dict[KeySet, Any]()
        for keys in reversed(self.system.residuals):
            larger = (tuple(sorted((*keys, key))) for key in range(len(self.system.sizes)) if key not in keys)
            source = next((other for other in larger if other in known), None)
            if source is None:
                shape = (*self.axis_shape(), *self.system.shape(keys))
                known[keys] = _totals(cells, [*range(depth), *(depth + key for key in keys)], shape, reach)
            else:
                (gone,) = set(source) - set(keys)
                known[keys] = np.asarray(known[source].sum(axis=depth + source.index(gone)))
            yield keys, known[keys]

    def estimate(self, noisy: Floats, keys: KeySet, multiplier: int, first: int = 0) -> Floats:
        """The residual of a set, from what was measured of it; the values of the axes stand from
        axis `first` on.
        """
        for place, axis in enumerate(self.axes, first):
            noisy = np.moveaxis(axis.estimate(np.moveaxis(noisy, place, 0)), 0, place)
        depth = first + len(self.axes)
        return self.system.without_means(noisy, keys, depth) / (multiplier * self.system.cells(keys))


def _totals(cells: SparseTable, columns: Sequence[int], shape: tuple[int, ...], reach: int) -> Any:
    """The sums of the values over the cells of some keys."""
    if not columns:
        return np.array(sum(cells.values.tolist()), np.int64 if reach < _NARROW else object)
    flat = np.ravel_multi_index(tuple(cells.places[:, column] for column in columns), shape)
    size = math.prod(shape)
    if reach < _EXACT_FLOATS:
        return (
            np.rint(np.bincount(flat, cells.values.astype(np.float64), size)).astype(np.int64).reshape(shape)
        )
    table = np.zeros(size, np.int64 if reach < _NARROW else object)
    np.add.at(table, flat, cells.values)
    return table.reshape(shape)


@dataclass(frozen=True, eq=False)
class Measurement:
    """The multiplier f_S and the scale γ_S of the noise of each block."""

    layout: Layout
    multipliers: Mapping[KeySet, int]
    scales: Mapping[KeySet, float]

    @property
    def squared_length(self) -> Fraction:
        """Σ f² Π n (n - 1) ‖axes‖² / γ² for a row of the value 1, rounded up."""
        system, total = self.layout.system, 0
        for keys, scale in self.scales.items():
            square = math.prod(size * (size - 1) for size in system.shape(keys))
            term = self.multipliers[keys] ** 2 * square * self.layout.squared_axes / exactly(scale) ** 2
            total += math.ceil(term * 2**_PRECISION)
        return Fraction(total, 2**_PRECISION)

    def variances(self) -> dict[KeySet, float]:
        """The variance of the noise on each cell of Q_S x, for measurements along the axes of
        length one.
        """
        system = self.layout.system
        return {
            keys: (scale / (self.multipliers[keys] * system.cells(keys))) ** 2
            for keys, scale in self.scales.items()
        }

    def roundings(self) -> dict[KeySet, float]:
        """How much rounding the noise to whole numbers moves a cell of each residual, at most: half
        of an l1 norm.
        """
        system = self.layout.system
        return {
            keys: 0.5
            * math.prod(2 * (1 - 1 / size) for size in system.shape(keys))
            / (multiplier * system.cells(keys))
            for keys, multiplier in self.multipliers.items()
        }

    def draw(self, cells: SparseTable, noise: Callable[[float, int], Integers]) -> dict[KeySet, Any]:
        """The noisy whole numbers of every block; `noise` draws so many numbers of a scale."""
        return {
            keys: exact + noise(self.scales[keys], exact.size).reshape(exact.shape)
            for keys, exact in self.layout.exact_blocks(cells, self.multipliers)
        }

    def estimates(self, noisy: Mapping[KeySet, Any]) -> dict[KeySet, Floats]:
        """The residuals, estimated from the noisy blocks."""
        return {
            keys: self.layout.estimate(block.astype(np.float64), keys, self.multipliers[keys])
            for keys, block in noisy.items()
        }


def measurement_at(layout: Layout, length: Fraction | float) -> Measurement:
    """The measurement whose noise is `length` times that of one sensitivity, rounded up.

    **Guarantee.** `squared_length` · length² is at most 1.
    """
    system, factor = layout.system, float(length) * math.sqrt(layout.squared_axes)
    multipliers, scales = {}, {}
    for keys in system.residuals:
        scale = factor * math.sqrt(layout.variances[keys]) * system.cells(keys)
        multiplier = 1
        while multiplier * scale < _LEAST_SCALE:
            multiplier *= 2
        multipliers[keys], scales[keys] = multiplier, multiplier * scale
    least = Fraction(length) ** 2
    for _ in range(64):
        rounded = {keys: float_above(Fraction(scale)) for keys, scale in scales.items()}
        measurement = Measurement(layout, multipliers, rounded)
        excess = measurement.squared_length * least
        if excess <= 1:
            return measurement
        grown = math.sqrt(float(excess)) * (1 + 1e-15)
        scales = {keys: math.nextafter(scale * grown, math.inf) for keys, scale in scales.items()}
    raise AssertionError("the scales grow in every turn")


def least_overlap(layout: Layout) -> float:
    """At most the product of what two rows in any two cells add, where that of one row with itself
    is 1.

    With two rows that agree in the keys T alone it is Σ_S Π_{S∩T} (1 - 1/n) Π_{S-T} (-1/n) / σ_S²,
    times that of the axes.
    """
    least = _least_agreement(layout)
    ends = [(axis.least_product / axis.squared_length, 1.0) for axis in layout.axes]
    corners = [math.prod(corner) for corner in product(*ends)]
    return min(value * corner for value in (least, 1.0) for corner in corners) - (_SAFE - 1)


def _least_agreement(layout: Layout) -> float:
    """The least value over all T; beyond a few million steps the sum of the least value of each
    set.
    """
    system = layout.system
    used = sorted({key for keys in system.residuals for key in keys})
    steps = sum(len(keys) for keys in system.residuals) << len(used)
    if steps > _MOST_STEPS:
        return sum(_least_term(system, keys) / layout.variances[keys] for keys in system.residuals)
    patterns = np.arange(1 << len(used))
    factors = {
        key: np.where(patterns >> place & 1, 1 - 1 / system.sizes[key], -1 / system.sizes[key])
        for place, key in enumerate(used)
    }
    total = np.zeros(len(patterns))
    for keys in system.residuals:
        term = np.full(len(patterns), 1 / layout.variances[keys])
        for key in keys:
            term = term * factors[key]
        total += term
    return float(total.min())


def _least_term(system: ResidualSystem, keys: KeySet) -> float:
    """The least product of two cells of one residual: they agree in all keys but the smallest."""
    if not keys:
        return 1.0
    return -system.contrast(keys) / (min(system.shape(keys)) - 1)
