# SPDX-License-Identifier: Apache-2.0
"""The noise of a sum over periods: how the noises of many rows add up in one number.

**Guarantee.** As `NoiseVector`: |form of the noises| exceeds `half_width(form, β)` with probability
at most β, and it increases with each coefficient.

Why it holds: a rounded Gaussian noise is within one half of a Gaussian one, so Σ b_s Z_s is a
Gaussian number of deviation σ|b|₂ plus at most |b|₁/2. A sum of equal discrete Laplace noises is a
difference of two negative binomial numbers, whose tail is summed; where there are several weights,
Chernoff's bound holds at every point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaln

from discreet.exact import bisect_whole
from discreet.mechanisms.distributions import GaussianDistribution
from discreet.mechanisms.noise_sums import tail_bound_of_sum
from discreet.tables.plan.intervals import LinearForm, NoiseVector

__all__ = ["GaussianRangeNoise", "LaplaceRangeNoise", "range_noise"]

Floats: TypeAlias = npt.NDArray[np.float64]

#: A margin far above the rounding errors here.
_SAFE = 1 + 1e-12
#: The points at which Chernoff's bound is evaluated.
_POINTS = 96
#: Sums of noises with fewer values than this are summed exactly.
_ENUMERABLE = 2.0**21


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
    """The sums of so many discrete Laplace noises in each coordinate."""

    periods: int = 1

    def half_width(self, form: LinearForm, beta: float) -> float:
        terms = [(float(weight), self.distributions[at]) for at, weight in form.items() if weight]
        if len(terms) == 1:
            ((weight, noise),) = terms
            if self.periods == 1:
                return abs(weight) * noise.tail_bound(beta) * _SAFE
            if noise.scale * (self.periods + 40 * math.sqrt(self.periods)) <= _ENUMERABLE:
                return abs(weight) * _sum_bound(noise.scale, self.periods, beta) * _SAFE
        coefficients = {at: np.array([abs(float(weight))]) for at, weight in form.items()}
        chernoff = float(self.half_widths(coefficients, beta)[0])
        return min(tail_bound_of_sum(terms * self.periods, beta), chernoff)

    def half_widths(self, coefficients: Mapping[int, Floats], beta: float) -> Floats:
        """Chernoff's bound at points that are the same for all sums, so that it increases with each
        coefficient.
        """
        scaled = [self.distributions[at].scale * weights for at, weights in coefficients.items()]
        widest = np.max(scaled, axis=0)
        if not widest.max():
            return np.zeros(widest.shape)
        root = math.sqrt(self.periods)
        least = max(float(widest[widest > 0].min()), 1e-9 * float(widest.max()))
        points = np.geomspace(1e-2 / (root * float(widest.max())), (1 - 1e-3) / least, _POINTS)
        best = np.full(widest.shape, np.inf)
        for s in points:
            cumulant = np.zeros(widest.shape)
            for at, weights in coefficients.items():
                cumulant += self.periods * _cumulant(s * weights, self.distributions[at].scale)
            best = np.minimum(best, (cumulant + math.log(2 / beta)) / s)
        return best * _SAFE

    def deviation(self, form: LinearForm) -> float:
        scales = (float(weight) * self.distributions[at].scale for at, weight in form.items())
        return math.sqrt(2 * self.periods) * math.hypot(*scales)


def _cumulant(argument: Floats, scale: float) -> Floats:
    """ln E e^{λZ} of a discrete Laplace noise: 2 ln(1 - q) - ln(1 - q e^λ) - ln(1 - q e^-λ), or ∞."""
    step = 1 / scale
    inside = np.minimum(argument, step * (1 - 1e-9))
    value: Floats = (
        2 * math.log(-math.expm1(-step))
        - np.log(-np.expm1(inside - step))
        - np.log(-np.expm1(-inside - step))
    )
    return np.where(argument < step * (1 - 1e-9), np.maximum(value, 0.0), np.inf)


@lru_cache(maxsize=1024)
def _sum_bound(scale: float, periods: int, beta: float) -> int:
    """The least k with P(|S| > k) <= β for the sum S of so many discrete Laplace noises.

    S is the difference of two negative binomial numbers, so P(S >= k) = Σ_j P(N = j) P(N <= j - k).
    """
    fails, goes_on = -math.expm1(-1 / scale), math.exp(-1 / scale)
    rare, most = beta * 1e-9, 1
    # P(N > k) is an incomplete beta function.
    while betainc(most + 1, periods, goes_on) > rare:
        most *= 2
    counts = np.arange(most + 1)
    logs = periods * math.log(fails) - counts / scale - betaln(periods, counts + 1)
    chances, below = np.exp(logs) / (periods + counts), betainc(periods, counts + 1, fails)

    def fits(k: int) -> bool:
        tail = float(chances[k + 1 :] @ below[: most - k]) if k < most else 0.0
        # The logarithm of the beta function is good to 1e-8 here.
        return 2 * tail * (1 + 1e-7) + 2e-9 * beta <= beta

    return bisect_whole(fits, yes=most, no=-1)


def range_noise(vector: NoiseVector, weights: Floats) -> NoiseVector:
    """The noise of Σ weight · row, for rows with this noise; of Laplace noise the weights are 0 or
    1.
    """
    if all(isinstance(each, GaussianDistribution) for each in vector.distributions):
        spread, mass = float(np.linalg.norm(weights)), float(np.abs(weights).sum())
        return GaussianRangeNoise(vector.distributions, spread, mass)
    return LaplaceRangeNoise(vector.distributions, round(float(weights.sum())))
