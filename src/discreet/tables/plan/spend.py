# SPDX-License-Identifier: Apache-2.0
"""What a question may cost: a pure ε, an (ε, δ), or a ρ.

    Spend(epsilon=0.2)                  # Laplace noise: ε-differential privacy
    Spend(epsilon=0.2, delta=1e-6)      # Gaussian noise, or Laplace noise where that leaves less error
    Spend(rho=0.01)                     # Gaussian noise, zero-concentrated
    Spend(rho=0.01, delta=1e-6)         # the same, and δ to find private keys

A spend is public: it says how much may be revealed, and nothing about the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

__all__ = ["Spend"]


@dataclass(frozen=True)
class Spend:
    """The most that one answer may cost.

    **Guarantee.** The guarantee of a mechanism made for a spend implies it exactly, not
    approximately. A pure ε means the decimal that it prints as, so ten questions at 0.1 fit a limit
    of 1.0.

    >>> Spend(epsilon=0.5).target()
    pure(epsilon=0.5)
    >>> Spend(epsilon=1, delta=1e-6).is_pure
    False
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise BadParameter(
                "DP107",
                "the cost of an answer must be stated in one way: epsilon, epsilon and delta, or rho.",
                why="two statements could contradict each other, and without any the noise is unknown.",
                fix="epsilon=0.2   (on the command line:  --epsilon 0.2)",
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", check.moderate(epsilon=self.epsilon))
        if self.rho is not None:
            object.__setattr__(self, "rho", check.moderate(rho=self.rho))
        if self.delta is not None:
            object.__setattr__(self, "delta", check.delta(delta=self.delta) or None)

    @property
    def is_pure(self) -> bool:
        """Whether the spend is an ε without a δ."""
        return self.rho is None and self.delta is None

    @property
    def size(self) -> float:
        """Its approximate size as an ε; ρ is about ε²/2."""
        return self.epsilon if self.epsilon is not None else math.sqrt(2 * (self.rho or 0.0))

    def target(self, unit: Unit | None = None) -> Guarantee:
        """The guarantee that every mechanism made for this spend implies."""
        unit = unit or Unit()
        if self.rho is not None:
            if self.delta is None:
                return privacy.concentrated(self.rho, unit=unit)
            return privacy.approximate_concentrated(self.delta, self.rho, unit=unit)
        assert self.epsilon is not None
        if self.delta is None:
            return privacy.pure(self.epsilon, unit=unit)
        return privacy.approximate(self.epsilon, self.delta, unit=unit)
