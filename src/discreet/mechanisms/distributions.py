# SPDX-License-Identifier: Apache-2.0
"""The distributions of whole-number noise: how to draw them, their tails, and their guarantees.

A distribution has a scale in cells of a grid. The scale is a float, read as the decimal that it
prints as. Tail, guarantee and sampler read it alike, so the guarantee is that of the noise drawn.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

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
        # A scale that cannot be drawn exactly is refused here, before any draw.
        Scales(exactly(self.scale))

    @abstractmethod
    def draw(self, size: Size = None) -> Any:
        """Samples: an int, or an array of int64."""

    @abstractmethod
    def tail(self, k: int) -> float:
        """P(|noise| >= k) for k >= 1, rounded up."""

    @abstractmethod
    def guarantee_for(self, sensitivity: float, dimension: int, relation: str, unit: str) -> Guarantee:
        """The guarantee of this noise on whole numbers, for a sensitivity in this distribution's
        norm.
        """

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

    In d dimensions the pair that moves one coordinate by the whole distance is the worst. The
    trade-off curve of a chain of two moves is at least that of the second applied to the first
    (Dong, Roth, Su 2022, Theorem 2.14); and for shifts of one log-concave distribution, where one
    threshold test is best for all shifts, it is the curve of the sum.
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
    """round(N(0, scale²)), for l2 distances: whole numbers plus rounded noise are rounded noisy
    numbers.

    So the released integers are a function of the ideal Gaussian mechanism's output, and lose
    nothing more.
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
    """P(z) ∝ exp(-z² / 2 scale²), for l2 distances: exact for one number, zCDP for a vector."""

    def draw(self, size: Size = None) -> Any:
        return noise.discrete_gaussian(exactly(self.scale), size)

    def tail(self, k: int) -> float:
        # Decreasing terms are at most their integral, and Σ exp(-z²/2s²) >= s√(2π).
        if self.scale > _ENUMERABLE:
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
        # Canonne, Kamath, Steinke 2020, Theorem 14, for each coordinate: D_α <= α Δ₂² / 2 scale².
        rho = (sensitivity / self.scale) ** 2 / 2 * (1 + 1e-15)
        return privacy.concentrated(rho, relation=relation, unit=unit)


@dataclass(frozen=True)
class TruncatedLaplace:
    """P(z) ∝ exp(-|z| / scale) on the whole numbers from -limit to limit.

    **Guarantee.** Noise shifted by one is (1/scale, δ)-indistinguishable from the noise, with
    δ = P(z = limit). `tail` is never below the truth.

    Why it holds: both distributions have the same normaliser, so where they overlap their ratio is
    exp(±1/scale). Only one end of each lies outside the overlap, and it has mass δ.
    """

    scale: float
    limit: int

    @classmethod
    def for_leak(cls, scale: float, delta: float) -> Self:
        """The least limit whose end has mass δ at most."""
        q, gap = math.exp(-1 / scale), -math.expm1(-1 / scale)
        limit = max(1, math.floor(scale * math.log((gap + 2 * q * delta) / (delta * (1 + q)))))
        while limit > 1 and cls(scale, limit - 1).tail(limit - 1) / 2 <= delta:
            limit -= 1
        while cls(scale, limit).tail(limit) / 2 > delta:
            limit += 1
        return cls(scale, limit)

    def draw(self, size: int) -> Any:
        """Samples: an array of int64. A sample beyond the limit is drawn again."""
        samples = noise.discrete_laplace(exactly(self.scale), size)
        while (beyond := np.flatnonzero(np.abs(samples) > self.limit)).size:
            samples[beyond] = noise.discrete_laplace(exactly(self.scale), beyond.size)
        return samples

    def tail(self, k: int) -> float:
        """P(|noise| >= k) for k >= 1, rounded up: 2(q^k - q^m) / (1 + q - 2q^m) with m = limit + 1."""
        if k > self.limit:
            return 0.0
        step = 1 / self.scale
        mass = math.exp(-k * step) * -math.expm1(-(self.limit + 1 - k) * step)
        whole = -math.expm1(-step) - 2 * math.exp(-step) * math.expm1(-self.limit * step)
        return min(1.0, 2 * mass / whole * _SAFE)

    def tail_bound(self, beta: float) -> int:
        """A k with P(|noise| > k) <= beta."""
        # The tails of the distribution without a limit are no lighter.
        return min(self.limit, LaplaceDistribution(self.scale).tail_bound(beta))


def upper_tail(distribution: NoiseDistribution | TruncatedLaplace, k: int) -> float:
    """P(noise >= k) for symmetric noise, for every whole k."""
    return distribution.tail(k) / 2 if k > 0 else 1 - distribution.tail(1 - k) / 2
