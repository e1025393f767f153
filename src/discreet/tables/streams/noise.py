# SPDX-License-Identifier: Apache-2.0
"""The noise of a sum over periods: how the noises of many rows add up in one number.

**Guarantee.** As `NoiseVector`: |form of the noises| exceeds `half_width(form, β)` with probability
at most β, and it increases with each coefficient.

Why it holds: a rounded Gaussian noise is within one half of a Gaussian one, so Σ b_s Z_s is a
Gaussian number of deviation σ|b|₂ plus at most |b|₁/2. A discrete Laplace noise is within one of a
Laplace one (tables/plan/compile.proof.md, § 6), and Chernoff's bound holds at every point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.mechanisms.distributions import GaussianDistribution
from discreet.mechanisms.noise_sums import tail_bound_of_sum
from discreet.tables.plan.intervals import LinearForm, NoiseVector

__all__ = ["GaussianRangeNoise", "LaplaceRangeNoise", "range_noise"]

Floats: TypeAlias = npt.NDArray[np.float64]

#: A margin far above the rounding errors here.
_SAFE = 1 + 1e-12
#: The points at which Chernoff's bound is evaluated.
_POINTS = 64


@dataclass(frozen=True)
class GaussianRangeNoise(NoiseVector):
    """Gaussian noises with weights of l2 norm `spread` and l1 norm `mass`, in each coordinate."""

    spread: float = 1.0
    mass: float = 1.0

    def half_width(self, form: LinearForm, beta: float) -> float:
        rounding = sum(abs(float(weight)) for weight in form.values()) * self.mass / 2
        return (GaussianDistribution(1.0).guess(beta) * self.deviation(form) + rounding) * _SAFE

    def half_widths(self, coefficients: Mapping[int, Floats], beta: float) -> Floats:
        variances = [(self.distributions[at].scale * weights) ** 2 for at, weights in coefficients.items()]
        rounding: Floats = np.sum(list(coefficients.values()), axis=0) * self.mass / 2
        deviations: Floats = self.spread * np.sqrt(np.sum(variances, axis=0))
        return (GaussianDistribution(1.0).guess(beta) * deviations + rounding) * _SAFE

    def deviation(self, form: LinearForm) -> float:
        scales = (float(weight) * self.distributions[at].scale for at, weight in form.items())
        return self.spread * math.hypot(*scales)


@dataclass(frozen=True)
class LaplaceRangeNoise(NoiseVector):
    """The sums of so many Laplace noises in each coordinate."""

    periods: int = 1

    def half_width(self, form: LinearForm, beta: float) -> float:
        terms = [(float(weight), self.distributions[at]) for at, weight in form.items() if weight]
        if len(terms) * self.periods == 1:
            return NoiseVector(self.distributions).half_width(form, beta)
        return tail_bound_of_sum(terms * self.periods, beta)

    def half_widths(self, coefficients: Mapping[int, Floats], beta: float) -> Floats:
        scaled = np.array([self.distributions[at].scale * weights for at, weights in coefficients.items()])
        rounding: Floats = np.sum(list(coefficients.values()), axis=0) * self.periods
        largest = scaled.max(axis=0)
        if not largest.max():
            return rounding
        # One grid for all of them, so that a greater weight never has a smaller bound.
        least = max(float(largest[largest > 0].min()), float(largest.max()) * 1e-6)
        points = np.geomspace(1e-3 / (float(largest.max()) * math.sqrt(self.periods)), 1 / least, _POINTS)
        best = np.full(largest.shape, np.inf)
        for s in (*points, *(0.999 / largest[largest > 0][:: max(1, largest.size // 16)])):
            inside = np.minimum(np.square(scaled * s), 1 - 1e-9)
            cumulant = -self.periods * np.log1p(-inside).sum(axis=0)
            bound = np.where(largest * s < 1 - 1e-9, (cumulant + math.log(2 / beta)) / s, np.inf)
            best = np.minimum(best, bound)
        return (best + rounding) * _SAFE

    def deviation(self, form: LinearForm) -> float:
        scales = (float(weight) * self.distributions[at].scale for at, weight in form.items())
        return math.sqrt(2 * self.periods) * math.hypot(*scales)


def range_noise(vector: NoiseVector, weights: Floats) -> NoiseVector:
    """The noise of Σ weight · row, for rows with this noise; of Laplace noise the weights are 0 or
    1.
    """
    if all(isinstance(each, GaussianDistribution) for each in vector.distributions):
        spread, mass = float(np.linalg.norm(weights)), float(np.abs(weights).sum())
        return GaussianRangeNoise(vector.distributions, spread, mass)
    return LaplaceRangeNoise(vector.distributions, round(float(weights.sum())))
