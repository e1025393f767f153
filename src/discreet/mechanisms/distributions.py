# SPDX-License-Identifier: Apache-2.0
"""The distributions of whole-number noise: how to draw them, their tail bounds, and their guarantees.

A distribution has a scale in cells of a grid. It is a float that is read as the decimal that it prints as, here, in the
guarantee and in the sampler alike, so that the guarantee is about the noise that is drawn.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfc, ndtri

from discreet import noise, privacy
from discreet.exact import exactly
from discreet.noise.scales import Scales, Size
from discreet.privacy.guarantee import Guarantee

_SAFE = 1 + 1e-12  # the special functions are good to far more than this
_ENUMERABLE = 20_000.0  # scales up to which a discrete Gaussian's tail is summed


@dataclass(frozen=True)
class NoiseDistribution(ABC):
    """Whole-number noise that is symmetric about zero."""

    scale: float

    def __post_init__(self) -> None:
        Scales(exactly(self.scale))  # what cannot be drawn exactly is refused now, and not when it is drawn

    @abstractmethod
    def draw(self, size: Size = None) -> Any:
        """Samples: an int, or an array of int64."""

    @abstractmethod
    def tail(self, k: int) -> float:
        """P(|noise| >= k) for k >= 1, rounded up."""

    @abstractmethod
    def guarantee_for(self, sensitivity: float, dimension: int, relation: str, unit: str) -> Guarantee:
        """The guarantee of adding this noise to whole numbers that move by that much, in this distribution's norm."""

    @abstractmethod
    def guess(self, beta: float) -> float:
        """Roughly the k for which P(|noise| >= k) is beta."""

    def tail_bound(self, beta: float) -> int:
        """The least k with P(|noise| > k) <= beta."""
        k = max(0, math.floor(self.guess(beta)))
        while k > 0 and self.tail(k) <= beta:
            k -= 1
        while self.tail(k + 1) > beta:
            k += 1
        return k


class LaplaceDistribution(NoiseDistribution):
    """P(z) ∝ exp(-|z| / scale), for l1 distances.

    In d dimensions the pair that moves one coordinate by the whole distance is the worst. The trade-off curve of a
    chain of two moves is at least that of the second applied to the first (Dong, Roth, Su 2022, Theorem 2.14); and
    for shifts of one log-concave distribution, where one threshold test is best for all shifts, it is the curve of the sum.
    """

    def draw(self, size: Size = None) -> Any:
        return noise.discrete_laplace(exactly(self.scale), size)

    def tail(self, k: int) -> float:
        return min(1.0, 2.0 * math.exp(-k / self.scale) / (1.0 + math.exp(-1.0 / self.scale)) * _SAFE)

    def guess(self, beta: float) -> float:
        return self.scale * math.log(2.0 / ((1.0 + math.exp(-1.0 / self.scale)) * beta))

    def guarantee_for(self, sensitivity: float, dimension: int, relation: str, unit: str) -> Guarantee:
        return privacy.discrete_laplace(self.scale, math.ceil(sensitivity), relation=relation, unit=unit)


class GaussianDistribution(NoiseDistribution):
    """round(N(0, scale²)), for l2 distances: whole numbers plus rounded noise are rounded noisy numbers.

    So the released integers are a function of the ideal Gaussian mechanism's output, and lose nothing more.
    """

    def draw(self, size: Size = None) -> Any:
        return noise.rounded_gaussian(exactly(self.scale), size)

    def tail(self, k: int) -> float:
        return min(1.0, float(erfc((k - 0.5) / (self.scale * math.sqrt(2)))) * _SAFE)

    def guess(self, beta: float) -> float:
        return -float(ndtri(beta / 2)) * self.scale

    def guarantee_for(self, sensitivity: float, dimension: int, relation: str, unit: str) -> Guarantee:
        multiplier = self.scale / sensitivity * (1 - 1e-15)
        return privacy.gaussian(multiplier, relation=relation, unit=unit)


class DiscreteGaussianDistribution(NoiseDistribution):
    """P(z) ∝ exp(-z² / 2 scale²), for l2 distances: its own curve on one number, zCDP on a vector."""

    def draw(self, size: Size = None) -> Any:
        return noise.discrete_gaussian(exactly(self.scale), size)

    def tail(self, k: int) -> float:
        if (
            self.scale > _ENUMERABLE
        ):  # decreasing terms are at most their integral, and Σ exp(-z²/2s²) >= s√(2π)
            return min(1.0, float(erfc((k - 1) / (self.scale * math.sqrt(2)))) * _SAFE)
        reach = math.ceil(40 * self.scale) + 1
        total = 1.0 + 2.0 * float(np.exp(-((np.arange(1, reach) / self.scale) ** 2) / 2).sum())
        first = (np.arange(k, k + reach) / self.scale) ** 2 / 2
        return min(1.0, 2.0 * float(np.exp(-first).sum()) / total * _SAFE)

    def guess(self, beta: float) -> float:
        return -float(ndtri(beta / 2)) * self.scale

    def guarantee_for(self, sensitivity: float, dimension: int, relation: str, unit: str) -> Guarantee:
        if dimension == 1:
            return privacy.discrete_gaussian(self.scale, math.ceil(sensitivity), relation=relation, unit=unit)
        # Canonne, Kamath, Steinke 2020, Theorem 14, coordinate by coordinate: D_order <= order Δ₂² / 2 scale²
        rho = (sensitivity / self.scale) ** 2 / 2 * (1 + 1e-15)
        return privacy.concentrated(rho, relation=relation, unit=unit)
