# SPDX-License-Identifier: Apache-2.0
"""What a fit may cost, who pays, and how that budget is split among its Gaussian releases.

    budget = FitBudget.of(epsilon=1, delta=1e-5)
    matrix, steps = budget.noise_multipliers(0.2, 0.8)       # standard deviation / sensitivity of each release

**Guarantee.** Gaussian releases with these multipliers compose to a guarantee that implies (ε, δ).

Why it holds: Gaussian mechanisms of parameter μ₁, μ₂, … compose exactly to one of parameter √(μ₁² +
μ₂² + …), also if each is chosen after seeing the earlier outputs (Dong, Roth, Su 2022, Corollary
3.3). Fractions add up to one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.privacy.guarantee import Guarantee

__all__ = ["FitBudget", "Payer", "check_session"]

# The largest noise in sensitivities: more cannot be drawn on the grids of this package.
_MAX_NOISE = 2.0**15
# Covers the rounding of the square roots below.
_UP = 1 + 1e-12


class Payer(Protocol):
    """A `Session`, or anything else that can be charged for a release before it is drawn."""

    def charge(self, guarantee: Guarantee, *, question: str) -> object:
        """Pay for a release, or raise an error. The result is a receipt."""


def check_session(session: Payer | None) -> Payer | None:
    """A session that can be charged, or None."""
    if session is None or hasattr(session, "charge"):
        return session
    raise BadParameter(
        "DP104",
        "session must be a Session.",
        why="it is charged before the data are read.",
        fix="session=dp.Session(data, limit=…), or leave it out",
    )


@dataclass(frozen=True)
class FitBudget:
    """The least Gaussian noise multiplier that (ε, δ) allows, with the relation and the unit that
    it protects.
    """

    epsilon: float
    delta: float
    relation: str
    unit: str
    #: The fraction of (ε, δ) that may be spent, as Gaussian noise.
    fraction: float = 1.0

    @classmethod
    def of(
        cls, *, epsilon: float | None, delta: float | None, relation: str = "add-remove", unit: str = "record"
    ) -> FitBudget:
        """Validate the budget that a user passed."""
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if value is None:
                raise BadParameter(
                    "DP107",
                    f"{name} is missing.",
                    why="how much a model may reveal is your decision, so there is no default.",
                    fix="pass epsilon=1, delta=1e-5 (delta well below one over the number of people)",
                )
        budget = cls(
            check.positive(epsilon=epsilon),
            check.inner_probability(delta=delta),
            check.choice(("add-remove", "replace"), relation=relation),
            unit,
        )
        if budget.noise > _MAX_NOISE:
            raise BadParameter(
                "DP102",
                "epsilon and delta are too small to learn anything.",
                why=f"the noise would be more than {_MAX_NOISE:g} times the effect of one record.",
                fix="pass epsilon=1, delta=1e-5",
            )
        return budget

    @property
    def noise(self) -> float:
        """Standard deviation over sensitivity of one Gaussian release that takes the whole budget."""
        whole = _least_noise(self.epsilon, self.delta, self.relation)
        return whole if self.fraction == 1 else whole / math.sqrt(self.fraction) * _UP

    @property
    def mu(self) -> float:
        """The same budget as the parameter μ of Gaussian differential privacy."""
        return 1 / self.noise

    def noise_multipliers(self, *fractions: float) -> tuple[float, ...]:
        """Noise multipliers of releases that take these fractions of the budget, which add up to at
        most one.
        """
        if not math.fsum(fractions) <= 1 + 1e-9:
            raise ValueError("fractions of a budget add up to more than the budget")
        return tuple(self.noise / math.sqrt(fraction) * _UP for fraction in fractions)

    def part(self, fraction: float) -> FitBudget:
        """This fraction of the budget. Fractions that add up to at most one compose to the whole."""
        return replace(self, fraction=self.fraction * fraction)

    def gaussian(self, noise: float) -> Guarantee:
        """The guarantee of one release with this multiplier."""
        return privacy.gaussian(noise, relation=self.relation, unit=self.unit)


@lru_cache(maxsize=256)
def _least_noise(epsilon: float, delta: float, relation: str) -> float:
    target = privacy.approximate(epsilon, delta, relation=relation)
    return (
        privacy.calibrate(lambda z: privacy.gaussian(z, relation=relation), to=target, tolerance=1e-9)
        # fractions that add up to one in real numbers may exceed it in floats
        * (1 + 3e-9)
    )
