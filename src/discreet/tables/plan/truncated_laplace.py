# SPDX-License-Identifier: Apache-2.0
"""Truncated Laplace noise: P(z) ∝ exp(-|z| / scale) for |z| <= bound, and zero beyond.

If a whole number moves by one, the support of the noisy number moves by one point. With m the
probability of an outermost point,

    number + noise   is   leaky(m) and randomized response with ε = 1 / scale,

so m is the cost of the truncation (compile.proof.md, § 4). For key selection this noise is optimal:
no mechanism with that ε and δ selects a group more often, whatever its size (Desfontaines, Voss,
Gipson, Mandayam 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.noise.scales import Size

__all__ = ["TruncatedLaplaceDistribution", "truncation_for"]

_SAFE = 1 + 1e-12


@dataclass(frozen=True)
class TruncatedLaplaceDistribution(LaplaceDistribution):
    """Discrete Laplace noise, drawn again until its absolute value is at most `bound`."""

    bound: int = 0

    def draw(self, size: Size = None) -> Any:
        noise = np.asarray(super().draw(() if size is None else size))
        while (beyond := np.abs(noise) > self.bound).any():
            noise[beyond] = super().draw(int(beyond.sum()))
        return int(noise) if size is None else noise

    def tail(self, k: int) -> float:
        """P(|noise| >= k), k >= 1, rounded up: 2 (q^k - q^(bound+1)) / (1 + q - 2 q^(bound+1))."""
        if k > self.bound:
            return 0.0
        step = 1 / self.scale
        beyond = math.exp(-(self.bound + 1) * step)
        inside = -math.expm1(-(self.bound + 1 - k) * step)
        return min(1.0, 2 * math.exp(-k * step) * inside / (1 + math.exp(-step) - 2 * beyond) * _SAFE)

    def guess(self, beta: float) -> float:
        return min(super().guess(beta), float(self.bound))


def truncation_for(scale: float, delta: float) -> int:
    """The least bound at which an outermost point has probability at most δ."""
    step = 1 / scale
    bound = max(1, math.floor(scale * math.log(-math.expm1(-step) / ((1 + math.exp(-step)) * delta))))
    while bound > 1 and TruncatedLaplaceDistribution(scale, bound - 1).tail(bound - 1) <= 2 * delta:
        bound -= 1
    while TruncatedLaplaceDistribution(scale, bound).tail(bound) > 2 * delta:
        bound += 1
    return bound
