# SPDX-License-Identifier: Apache-2.0
"""What was measured of many tables: the noisy whole numbers, and the tables that follow from them.

    MeasuredNumber    Gaussian noise on the residuals of all tables
    PooledNumber      Laplace noise on a few tables, of which the others are least-squares estimates

**Guarantee.** `noisy` is what was released; all else is computed from it and from public
parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from discreet.json_types import JsonObject
from discreet.tables.workloads.laplace import pooled_noise, pooled_residuals
from discreet.tables.workloads.measurement import Layout, Measurement
from discreet.tables.workloads.released import ReleasedTables
from discreet.tables.workloads.residuals import KeySet, ResidualSystem

__all__ = ["Measured", "MeasuredNumber", "PooledNumber", "measured_of_dict"]


class Measured(Protocol):
    """One number of each row, measured in many tables."""

    @property
    def tables(self) -> ReleasedTables:
        """The tables, with their variances and covariances."""

    def to_dict(self) -> JsonObject:
        """Everything but the sizes and the sets, as plain JSON types."""


@dataclass(frozen=True, eq=False)
class MeasuredNumber:
    """Noisy residuals; `unit` is what one of the whole numbers stands for."""

    measurement: Measurement
    noisy: Mapping[KeySet, Any]
    unit: Fraction

    @cached_property
    def tables(self) -> ReleasedTables:
        """The tables, with their variances and covariances."""
        layout = self.measurement.layout
        released = ReleasedTables(
            layout.axes,
            layout.system,
            self.measurement.estimates(self.noisy),
            self.measurement.variances(),
            self.measurement.roundings(),
        )
        return released.scale(float(self.unit))

    def to_dict(self) -> JsonObject:
        """Everything but the sizes and the sets, as plain JSON types."""
        residuals = self.measurement.layout.system.residuals
        return {
            "noise": "gaussian",
            "unit": str(self.unit),
            "multipliers": [self.measurement.multipliers[keys] for keys in residuals],
            "scales": [self.measurement.scales[keys] for keys in residuals],
            "noisy": [_numbers(self.noisy[keys]) for keys in residuals],
        }


@dataclass(frozen=True, eq=False)
class PooledNumber:
    """Noisy tables with discrete Laplace noise of some scale each; `unit` is what one of the whole
    numbers stands for.
    """

    system: ResidualSystem
    scales: Mapping[KeySet, float]
    noisy: Mapping[KeySet, Any]
    unit: Fraction

    @cached_property
    def tables(self) -> ReleasedTables:
        """The least-squares estimates of all tables, with their variances and covariances."""
        variances = {keys: 2 * scale**2 for keys, scale in self.scales.items()}
        tables = {keys: np.asarray(table, np.float64) for keys, table in self.noisy.items()}
        released = ReleasedTables(
            (),
            self.system,
            pooled_residuals(self.system, tables, variances),
            pooled_noise(self.system, variances),
            self._roundings(),
        )
        return released.scale(float(self.unit))

    def _roundings(self) -> dict[KeySet, float]:
        """Discrete Laplace noise is within one of a continuous one."""
        system = self.system
        widest = dict.fromkeys(system.residuals, 0.0)
        for part in widest:
            contrast = math.prod(2 * (1 - 1 / size) for size in system.shape(part))
            summed = (system.cells(keys) / system.cells(part) for keys in self.scales if {*part} <= {*keys})
            widest[part] = contrast * max(summed)
        return widest

    def to_dict(self) -> JsonObject:
        """Everything but the sizes and the sets, as plain JSON types."""
        return {
            "noise": "laplace",
            "unit": str(self.unit),
            "tables": [list(keys) for keys in self.scales],
            "scales": list(self.scales.values()),
            "noisy": [_numbers(self.noisy[keys]) for keys in self.scales],
        }


def measured_of_dict(stored: Mapping[str, Any], layout: Layout) -> Measured:
    """What `to_dict` wrote."""
    system = layout.system
    unit, scales = Fraction(stored["unit"]), [float(scale) for scale in stored["scales"]]
    if stored["noise"] == "laplace":
        tables = [tuple(map(int, keys)) for keys in stored["tables"]]
        return PooledNumber(
            system,
            dict(zip(tables, scales, strict=True)),
            {
                keys: np.array(numbers).reshape(system.shape(keys))
                for keys, numbers in zip(tables, stored["noisy"], strict=True)
            },
            unit,
        )
    residuals = system.residuals
    measurement = Measurement(
        layout,
        dict(zip(residuals, map(int, stored["multipliers"]), strict=True)),
        dict(zip(residuals, scales, strict=True)),
    )
    noisy = {
        keys: np.array(numbers).reshape((*layout.measured_shape(), *system.shape(keys)))
        for keys, numbers in zip(residuals, stored["noisy"], strict=True)
    }
    return MeasuredNumber(measurement, noisy, unit)


def _numbers(table: Any) -> list[Any]:
    return [int(number) for number in np.ravel(table).tolist()]
