# SPDX-License-Identifier: Apache-2.0
"""Laplace noise on the whole numbers that never exceeds a limit: P(z) ∝ exp(-|z| / scale) on -limit … limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from discreet import noise
from discreet.exact import exactly
from discreet.mechanisms.distributions import LaplaceDistribution

_UP = 1 + 1e-12  # far more than the rounding of exp and expm1


@dataclass(frozen=True)
class TruncatedLaplace:
    """Noise within ±limit. Shifted by one it is (1/scale, δ)-indistinguishable from itself, δ = P(z = limit).

    **Guarantee.** `tail` is never below the truth. Within the common support of the two distributions the ratio is
    exp(±1/scale), since both have the same constant; what lies outside is one end of each, of mass δ.
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
        """Samples: an array of int64. Whatever lies beyond the limit is drawn again."""
        samples = noise.discrete_laplace(exactly(self.scale), size)
        while (beyond := np.flatnonzero(np.abs(samples) > self.limit)).size:
            samples[beyond] = noise.discrete_laplace(exactly(self.scale), beyond.size)
        return samples

    def tail(self, k: int) -> float:
        """P(|noise| >= k) for k >= 1, rounded up: 2(q^k - q^(limit + 1)) / (1 + q - 2q^(limit + 1))."""
        if k > self.limit:
            return 0.0
        step = 1 / self.scale
        mass = math.exp(-k * step) * -math.expm1(-(self.limit + 1 - k) * step)
        whole = -math.expm1(-step) - 2 * math.exp(-step) * math.expm1(-self.limit * step)
        return min(1.0, 2 * mass / whole * _UP)

    def tail_bound(self, beta: float) -> int:
        """A k with P(|noise| > k) <= beta: that of the whole distribution, whose tails are no lighter, or the limit."""
        return min(self.limit, LaplaceDistribution(self.scale).tail_bound(beta))
