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
from dataclasses import dataclass

from discreet import privacy
from discreet.errors import BadParameter
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
        """The composition of all parts."""
        parts = [(privacy.gaussian(self.pairs, unit=self.unit), 1)]
        if self.tables:
            parts.append((privacy.exponential(self.choice, unit=self.unit), self.tables))
            parts.append((privacy.gaussian(self.table, unit=self.unit), self.tables))
        if self.check:
            parts.append((privacy.gaussian(self.check, unit=self.unit), 1))
        return compose(parts)


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
        results.
        """
        parts = [(privacy.concentrated(self.rho, unit=self.unit), 1)]
        if self.check:
            parts.append((privacy.gaussian(self.check, unit=self.unit), 1))
        return compose(parts)


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
