# SPDX-License-Identifier: Apache-2.0
"""How the budget of a synthetic copy is split: pairs of columns, chosen tables of three columns,
and a check of the copy.

    pairs     all tables of two columns, by one Gaussian measurement of their residuals
    rounds    from about ε = 4 on: tables of three columns that the model misses, chosen by an exponential mechanism and
              measured with Gaussian noise; half of the budget
    aim       in place of pairs and rounds: all rounds of AIM, whose noise adapts to its results, as one ρ
    check     how far the finished copy is off, measured with Gaussian noise; 1 % of the budget if nobody says otherwise

**Guarantee.** `guarantee` implies the spend. The parts have fixed parameters: each later part may
use the results of earlier ones, and no part's noise depends on them. So the guarantee is that of
their composition, read off its curve. The rounds of AIM are one part, whose ρ is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet import privacy
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.unit import Unit
from discreet.tables.plan.spend import Spend

__all__ = ["AimSpending", "SynthesisSpending"]

#: ρ from which tables of three columns pay: about ε = 4 at δ = 1e-6.
_ROUNDS_FROM = 0.33
_ROUNDS_SHARE = 0.5
#: The part of the rounds that chooses tables; the rest measures them.
_CHOICE_SHARE = 0.1
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class SynthesisSpending:
    """The noise of each part, in sensitivities, and the ε of each choice; `tables` are chosen, 0
    for none.

    `check` is 0 where the copy is not checked.
    """

    pairs: float
    tables: int
    choice: float
    table: float
    check: float
    unit: Unit

    @classmethod
    def of(cls, spend: Spend, share: float, unit: Unit, tables: int) -> SynthesisSpending:
        """The greatest budget for all parts that the spend admits; `share` of it is for the check."""
        rough = _total_noise(spend, unit)
        if 1 / (2 * rough**2) < _ROUNDS_FROM:
            tables = 0

        def parts(noise: float) -> SynthesisSpending:
            rounds = (1 - share) * (_ROUNDS_SHARE if tables else 0.0)
            pairs = noise / math.sqrt(1 - share - rounds)
            check = noise / math.sqrt(share) if share else 0.0
            if not tables:
                return cls(pairs, 0, 0.0, 0.0, check, unit)
            # ρ of a choice is ε² / 8, and that of all together is 1 / (2 noise²).
            choice = 2 * math.sqrt(rounds * _CHOICE_SHARE / tables) / noise
            table = noise / math.sqrt(rounds * (1 - _CHOICE_SHARE) / tables)
            return cls(pairs, tables, choice, table, check, unit)

        noise = calibrate(lambda noise: parts(noise).guarantee, to=spend.target(unit), tolerance=_TOLERANCE)
        return parts(noise)

    @property
    def guarantee(self) -> Guarantee:
        """The composition of all parts; Gaussian ones are together one Gaussian mechanism."""
        gaussian = [(self.pairs, 1)]
        if self.tables:
            gaussian.append((self.table, self.tables))
        if self.check:
            gaussian.append((self.check, 1))
        measured = privacy.gaussian(joint_noise(gaussian), unit=self.unit)
        if not self.tables:
            return measured
        return compose([(measured, 1), (privacy.exponential(self.choice, unit=self.unit), self.tables)])


@dataclass(frozen=True)
class AimSpending:
    """What all rounds of AIM cost together, ρ, and the noise of the check in sensitivities."""

    rho: float
    check: float
    unit: Unit

    @classmethod
    def of(cls, spend: Spend, share: float, unit: Unit) -> AimSpending:
        """The greatest budget for both parts that the spend admits; `share` of it is for the check."""
        _total_noise(spend, unit)

        def parts(noise: float) -> AimSpending:
            check = noise / math.sqrt(share) if share else 0.0
            return cls((1 - share) / (2 * noise**2), check, unit)

        noise = calibrate(lambda noise: parts(noise).guarantee, to=spend.target(unit), tolerance=_TOLERANCE)
        return parts(noise)

    @property
    def guarantee(self) -> Guarantee:
        """The composition of both parts: the rounds are one mechanism, whose noise adapts to its
        results, and a Gaussian mechanism is concentrated as well.
        """
        rho = max(exactly(self.rho), Fraction(self.rho))
        if self.check:
            rho += 1 / (2 * least_reading(self.check) ** 2)
        return privacy.concentrated(float_above(rho), unit=self.unit)


def joint_noise(parts: Sequence[tuple[float, int]]) -> float:
    """The noise of one Gaussian mechanism that costs as much as several, each with its count.

    Mechanisms that are μ_i-Gaussian, of which later ones may use results of earlier ones, are
    √(Σ μ_i²)-Gaussian together (Dong, Roth, Su 2022, Corollary 3.3). Rounded down.
    """
    cost = sum(count / least_reading(noise) ** 2 for noise, count in parts)
    noise = 1 / math.sqrt(float(cost))
    while max(exactly(noise), Fraction(noise)) ** 2 * cost > 1:
        noise = math.nextafter(noise, 0.0)
    return noise


def least_reading(noise: float) -> Fraction:
    """A noise by whichever of its two readings, as a decimal or in binary, costs more."""
    return min(exactly(noise), Fraction(noise))


def _total_noise(spend: Spend, unit: Unit) -> float:
    """The noise of one Gaussian mechanism that the spend admits, in sensitivities; a pure ε is
    refused.
    """
    if spend.is_pure:
        raise BadParameter(
            "DP107",
            "a synthetic copy needs a delta, or a cost in rho.",
            why="its tables get Gaussian noise; under a pure ε hundreds of tables would have several times the error.",
            fix=f"epsilon={spend.epsilon:g}, delta=1e-6",
        )
    return calibrate(
        lambda noise: privacy.gaussian(noise, unit=unit), to=spend.target(unit), tolerance=_TOLERANCE
    )
