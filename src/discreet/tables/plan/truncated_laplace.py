# SPDX-License-Identifier: Apache-2.0
"""Laplace noise that is cut off: P(z) ∝ exp(-|z| / scale) for |z| <= most, and nothing beyond.

A whole number that moves by one moves this noise off its support by one point. With m the chance of the outermost point,

    number + noise   is   leaky(m) and randomized response with ε = 1 / scale,

which is what cutting costs (compile.proof.md, § 4). For naming groups it is the best that there is: no mechanism with that
ε and δ names a group more often, whatever its size (Desfontaines, Voss, Gipson, Mandayam 2022).
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
    """Discrete Laplace noise, drawn again until it is `most` at most."""

    most: int = 0

    def draw(self, size: Size = None) -> Any:
        drawn = np.asarray(super().draw(() if size is None else size))
        while (beyond := np.abs(drawn) > self.most).any():
            drawn[beyond] = super().draw(int(beyond.sum()))
        return int(drawn) if size is None else drawn

    def tail(self, k: int) -> float:
        """P(|noise| >= k) for k >= 1: 2 (q^k - q^(most + 1)) / (1 + q - 2 q^(most + 1)), rounded up."""
        if k > self.most:
            return 0.0
        step = 1 / self.scale
        beyond = math.exp(-(self.most + 1) * step)
        inside = -math.expm1(-(self.most + 1 - k) * step)
        return min(1.0, 2 * math.exp(-k * step) * inside / (1 + math.exp(-step) - 2 * beyond) * _SAFE)

    def guess(self, beta: float) -> float:
        return min(super().guess(beta), float(self.most))


def truncation_for(scale: float, delta: float) -> int:
    """The least number at which noise may be cut off so that the chance of being just there is δ at most."""
    step = 1 / scale
    most = max(1, math.floor(scale * math.log(-math.expm1(-step) / ((1 + math.exp(-step)) * delta))))
    while most > 1 and TruncatedLaplaceDistribution(scale, most - 1).tail(most - 1) <= 2 * delta:
        most -= 1
    while TruncatedLaplaceDistribution(scale, most).tail(most) > 2 * delta:
        most += 1
    return most
