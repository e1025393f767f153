# SPDX-License-Identifier: Apache-2.0
"""The noise of the tables of a cube: Gaussian noise on all residuals, or Laplace noise on some
tables.

**Guarantee.** `draw` adds noise of the scales that are stated here to whole numbers, and `joint`
describes the noise of an estimate that follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from discreet import noise as noises
from discreet.exact import exactly
from discreet.tables.answer.measured import Measured, MeasuredNumber, PooledNumber
from discreet.tables.plan.intervals import JointNoise, PooledNoise, TableNoise
from discreet.tables.workloads.laplace import cell_coefficients
from discreet.tables.workloads.measurement import Measurement, SparseTable
from discreet.tables.workloads.released import ReleasedTables, Span
from discreet.tables.workloads.residuals import KeySet, ResidualSystem

__all__ = ["GaussianTables", "LaplaceTables", "NoiseOfTables"]


class NoiseOfTables(Protocol):
    """The noise of all tables, for each measured feature."""

    @property
    def word(self) -> str:
        """What noise it is."""

    @property
    def greatest_scale(self) -> float:
        """The greatest scale of its noise."""

    def joint(self, keys: KeySet, spans: tuple[Span, ...]) -> JointNoise:
        """The noise of the features in a cell of one table, over a span of each axis."""

    def draw(self, place: int, cells: SparseTable) -> Measured:
        """What is released of one feature."""


@dataclass(frozen=True)
class GaussianTables:
    """Gaussian noise on the residuals of all tables."""

    measurements: tuple[Measurement, ...]
    unit: Fraction
    word: str = "Gaussian"

    @property
    def greatest_scale(self) -> float:
        """The greatest scale of its noise."""
        return max(scale for each in self.measurements for scale in each.scales.values())

    def joint(self, keys: KeySet, spans: tuple[Span, ...]) -> JointNoise:
        """The noise of the features in a cell of one table, over a span of each axis."""
        return TableNoise(
            tuple(each.table_variance(keys, spans) for each in self._without_numbers),
            tuple(each.table_rounding(keys, spans) for each in self._without_numbers),
        )

    @cached_property
    def _without_numbers(self) -> list[ReleasedTables]:
        """The noise of the tables of each feature."""
        tables = (
            ReleasedTables(each.layout.axes, each.layout.system, {}, each.variances(), each.roundings())
            for each in self.measurements
        )
        return [each.scale(float(self.unit)) for each in tables]

    def draw(self, place: int, cells: SparseTable) -> Measured:
        """What is released of one feature."""
        measurement = self.measurements[place]
        return MeasuredNumber(measurement, measurement.draw(cells, _gaussian), self.unit)


@dataclass(frozen=True)
class LaplaceTables:
    """Laplace noise on some of the tables; the others are least-squares estimates."""

    system: ResidualSystem
    scales: tuple[dict[KeySet, float], ...]
    unit: Fraction
    word: str = "Laplace"

    @property
    def greatest_scale(self) -> float:
        """The greatest scale of its noise."""
        return max(scale for each in self.scales for scale in each.values())

    def joint(self, keys: KeySet, spans: tuple[Span, ...]) -> JointNoise:
        """The noise of the features in a cell of one table; there are no axes."""
        return PooledNoise(tuple(self._terms(scales, keys) for scales in self.scales))

    def _terms(self, scales: dict[KeySet, float], keys: KeySet) -> tuple[tuple[float, float, int], ...]:
        variances, unit = {table: 2 * scale**2 for table, scale in scales.items()}, float(self.unit)
        return tuple(
            (scales[table] * value * unit, value * unit, count)
            for table, value, count in cell_coefficients(self.system, variances, keys)
        )

    def draw(self, place: int, cells: SparseTable) -> Measured:
        """What is released of one feature."""
        scales = self.scales[place]
        noisy = {}
        for keys, scale in scales.items():
            exact = cells.totals(keys, self.system.shape(keys))
            noisy[keys] = exact + noises.discrete_laplace(exactly(scale), exact.size).reshape(exact.shape)
        return PooledNumber(self.system, scales, noisy, self.unit)


def _gaussian(scale: float, size: int) -> Any:
    return noises.rounded_gaussian(exactly(scale), size)
