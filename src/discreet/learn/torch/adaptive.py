# SPDX-License-Identifier: Apache-2.0
"""A clipping norm that follows a quantile of the norms, learned from a noisy count in every step (Andrew et al. 2021).

    private(model, optimizer, data, …, clip=1.0, adaptive=Adaptive(quantile=0.5))

**Guarantee.** A step that releases the noisy sum *and* the noisy count has exactly the guarantee that the plan states, with
noise z, because the noise on the sum is raised to z_Δ = (z⁻² − (2σ)⁻²)^(−1/2), σ being that on the count.

Why it holds: both are sums over the same sample, so together they are one Gaussian mechanism. A record adds a gradient of
norm at most C and ±½ to the count of norms below C, less half of the records. In units of the noise that is a vector of
squared length at most 1/z_Δ² + 1/(2σ)² = 1/z². If a record is replaced, both parts double. The next C is a function of the
noisy count (post-processing) and of the public batch size; it never sees how large the batch was. The count is of
half records, so twice it is whole, and its noise is drawn exactly.

What would break it: a norm that is read off the gradients in another way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.arguments import checked_class
from discreet.learn.torch.noise import Number
from discreet.noise.integer import rounded_gaussian

__all__ = ["Adaptive"]

_MOST = 2.0**40  # above it squares of norms leave the range of float32
_UP = 1 + 1e-12  # covers the rounding of the square root


@checked_class
@dataclass(frozen=True)
class Adaptive:
    """How the clipping norm moves: towards the norm that a share `quantile` of the gradients stay below.

    `noise` is the standard deviation on the count, in records; by default a twentieth of the batch, and at least twice the
    noise multiplier, so that it takes little from the sum. `rate` is how fast the norm moves, `least` its floor.

    >>> round(Adaptive().split(1.0, batch=512), 4)
    1.0002
    """

    quantile: float = 0.5
    rate: float = 0.2
    noise: float | None = None
    least: float = 1e-6

    def __post_init__(self) -> None:
        check.inner_probability(quantile=self.quantile)
        check.positive(rate=self.rate)
        check.moderate(least=self.least)
        if self.noise is not None:
            check.moderate(noise=self.noise)

    def spread(self, noise: float, batch: int) -> float:
        """σ, the noise on the count."""
        return self.noise if self.noise is not None else max(batch / 20, 2 * noise)

    def split(self, noise: float, batch: int) -> float:
        """z_Δ, the noise on the sum, rounded up."""
        rest = 1 / Fraction(noise) ** 2 - 1 / (2 * Fraction(self.spread(noise, batch))) ** 2
        if rest > 0:
            return float(math.sqrt(1 / rest)) * _UP
        raise BadParameter(
            "DP107",
            "the noise on the count is too small: it would take the whole guarantee.",
            why="what the count reveals must be paid for by more noise on the gradients, and nothing is left for these.",
            fix="Adaptive()   or  Adaptive(noise=batch / 20)",
        )

    def next(self, clip: Number, twice: Any, *, noise: float, batch: int) -> Number:
        """The norm for the next step. `twice` is 2·(records below the norm) − records; a tensor is not waited for."""
        drawn = rounded_gaussian(2 * Fraction(self.spread(noise, batch)))
        share = (twice + drawn) / (2 * batch) + 0.5
        if not isinstance(clip, torch.Tensor):
            grown = min(80.0, -self.rate * (float(share) - self.quantile))  # e^80 is past every clip there is
            return min(_MOST, max(self.least, clip * math.exp(grown)))
        return torch.clamp(clip * torch.exp(-self.rate * (share - self.quantile)), min=self.least, max=_MOST)
