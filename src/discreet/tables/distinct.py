# SPDX-License-Identifier: Apache-2.0
"""COUNT(DISTINCT unit): how many units there are, in all or in each group.

**Promise.** In all: one unit moves the number by one at most, also when another takes its place (the number with either
lies between that without and one more), so nothing is bounded and nothing is lost. In groups, under Laplace noise, a
unit in m groups counts min(1, c/m) in each, so that it adds c in all; under Gaussian noise `totals` counts units.

Why it holds: compile.proof.md, § 2. The weights are put together from three sums that an engine knows: of units in c
groups at most (1 each), and of units in more (1/m each, as the difference of two). Every one is a sum over units of
what a unit's own groups decide, so together they are one too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet import privacy
from discreet.mechanisms.laws import GaussianLaw, LaplaceLaw, Law, exactly, float_above, float_below, widest
from discreet.privacy.guarantee import Guarantee
from discreet.tables.engine import Engine, guarded
from discreet.tables.estimate import Estimate
from discreet.tables.intervals import Noise
from discreet.tables.linear import Moments
from discreet.tables.part import Scope
from discreet.tables.plan import Answer, Groups, Norm, Once, Sums
from discreet.tables.question import Aggregate
from discreet.tables.totals import Totals

__all__ = ["DistinctRecipe", "UnitsInGroups"]

_FINE = 4096
_STEPS = 1024  # of plan.Norm for one group


@dataclass(frozen=True)
class UnitsInGroups(Totals):
    """Numbers of units in groups, where a unit in m groups has the weight `fine` if m <= most, else most·⌊fine/m⌋."""

    most: int = 1
    fine: int = 1

    def exact(self, engine: Engine) -> Answer:
        whole = super().exact(engine)
        if self.most == 1:
            return whole
        rows, keys = self.sums.rows, self.sums.keys
        capped = guarded(lambda: engine.sums(Sums(rows, keys, (), Groups(self.most, self.fine, norm=1))))
        # with fine = 1 plan.Norm keeps who is in few groups and drops all others: m groups are √m · STEPS long
        longest = math.isqrt(_STEPS * _STEPS * self.most - 1) + 1
        few = guarded(lambda: engine.sums(Sums(rows, keys, (), Norm(longest, 1, (1,)), present=_STEPS)))
        none = (0,)
        return {
            group: (
                self.fine * few.get(group, none)[0] // _STEPS
                + self.most * (all_of - capped.get(group, none)[0]),
            )
            for group, (all_of,) in whole.items()
        }


@dataclass(frozen=True)
class DistinctRecipe:
    """Numbers of units."""

    scope: Scope
    asked: tuple[Aggregate, ...]

    @property
    def weight(self) -> float:
        return 1.0

    def pure(self, epsilon: Fraction) -> Totals:
        who, scope = self.scope.contribution, self.scope
        share = exactly(float_below(epsilon))
        if not scope.keys:
            law = LaplaceLaw(float_above(1 / share))
            promise = privacy.discrete_laplace(law.scale, 1, **who.words)
            return Totals(Sums(scope.rows, (), (), Once()), (law,), promise, self._read(law, 1))
        fine = 1 if who.alone else _FINE
        most = min(fine, who.groups)
        moved = who.stretch_l1() * fine * most
        law = LaplaceLaw(float_above(moved / share))
        promise = privacy.discrete_laplace(law.scale, moved, **who.words)
        sums = Sums(scope.rows, scope.keys, (), Groups(fine, fine, norm=1))
        return UnitsInGroups(sums, (law,), promise, self._read(law, fine), most, fine)

    def gaussian(self, noise: float) -> Totals:
        assert not self.scope.keys, "in groups, units are counted with the totals"
        law = GaussianLaw(float_above(widest(noise)))
        sums = Sums(self.scope.rows, (), (), Once())
        return Totals(sums, (law,), self.promised(noise), self._read(law, 1))

    def promised(self, noise: float) -> Guarantee:
        return privacy.gaussian(noise, **self.scope.contribution.words)

    def _read(self, law: Law, fine: int) -> dict[str, Estimate]:
        moments = Moments(count={0: Fraction(1, fine)})
        whole = self.scope.contribution.alone or not self.scope.keys
        return {one.name: Estimate(one, moments, Noise((law,)), whole=whole) for one in self.asked}
