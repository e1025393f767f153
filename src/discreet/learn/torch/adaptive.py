# SPDX-License-Identifier: Apache-2.0
"""A clipping norm that follows a quantile of the gradients' norms, from a noisy count in every step
(Andrew et al. 2021).

    private(model, optimizer, data, …, clip=1.0, adaptive=Adaptive(quantile=0.5))

**Guarantee.** A step that releases the noisy sum *and* the noisy count has exactly the guarantee of
the plan with noise z, because the noise on the sum is raised to z_Δ = (z⁻² − (2σ)⁻²)^(−1/2), where
σ is the noise on the count.

Why it holds: both are sums over the same sample, so together they are one Gaussian mechanism. A
record adds a gradient of norm at most C and ±½ to the count of norms below C, less half of the
records. In units of the noise that is a vector of squared length at most 1/z_Δ² + 1/(2σ)² = 1/z².
If a record is replaced, both parts double. The next C is a function of the noisy count
(post-processing) and of the public batch size; it never sees how large the batch was. The count is
of half records, so twice it is whole, and its noise is drawn exactly.

What would break it: computing the clipping norm from the gradients in another way.
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

#: Above this, squares of norms leave the range of float32.
_MAX_CLIP = 2.0**40
#: Covers the rounding of the square root.
_UP = 1 + 1e-12


@checked_class
@dataclass(frozen=True)
class Adaptive:
    """How the clipping norm moves: towards the norm that the share `quantile` of the gradients
    stays below.

    `noise` is the standard deviation of the noise on the count, in records. The default is a
    twentieth of the batch, and at least twice the noise multiplier, so that the count costs the sum
    little. `rate` is how fast the norm moves, `least` its floor.

    **Guarantee.** The noisy sum and the noisy count together have the guarantee of the plan. Why it
    holds, and what would break it: see the head of `adaptive.py`.

    >>> round(Adaptive().sum_noise(1.0, batch=512), 4)
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

    def count_noise(self, noise: float, batch: int) -> float:
        """σ, the standard deviation of the noise on the count."""
        return self.noise if self.noise is not None else max(batch / 20, 2 * noise)

    def sum_noise(self, noise: float, batch: int) -> float:
        """z_Δ, the noise on the sum in clipping norms, rounded up."""
        # 1/z_Δ², what the count leaves to the sum.
        precision = 1 / Fraction(noise) ** 2 - 1 / (2 * Fraction(self.count_noise(noise, batch))) ** 2
        if precision > 0:
            return float(math.sqrt(1 / precision)) * _UP
        raise BadParameter(
            "DP107",
            "the noise on the count is too small: the count alone would use up the whole guarantee.",
            why="what the count reveals is paid for by more noise on the gradients, and no noise is enough here.",
            fix="Adaptive()   or  Adaptive(noise=batch / 20)",
        )

    def next_clip(self, clip: Number, twice: int | torch.Tensor, *, noise: float, batch: int) -> Number:
        """The clipping norm of the next step. `twice` is 2·(records below the norm) − records; no
        tensor is waited for.
        """
        count_noise = rounded_gaussian(2 * Fraction(self.count_noise(noise, batch)))
        share: Any = (twice + count_noise) / (2 * batch) + 0.5
        if not isinstance(clip, torch.Tensor):
            # e^80 is beyond every clipping norm, and the exponential must not overflow.
            exponent = min(80.0, -self.rate * (float(share) - self.quantile))
            return min(_MAX_CLIP, max(self.least, clip * math.exp(exponent)))
        return torch.clamp(
            clip * torch.exp(-self.rate * (share - self.quantile)), min=self.least, max=_MAX_CLIP
        )
