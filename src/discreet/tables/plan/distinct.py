# SPDX-License-Identifier: Apache-2.0
"""COUNT(DISTINCT unit): how many units there are, in all or in each group.

**Guarantee.** In all: one unit moves the number by one at most, also when another takes its place (the number with either
lies between that without and one more), so nothing is bounded and nothing is lost. In groups, under Laplace noise, a
unit in m groups counts min(1, c/m) in each, so that it adds c in all; under Gaussian noise `totals` counts units.

Why it holds: compile.proof.md, § 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet import privacy
from discreet.exact import exactly, float_above, float_below, widest
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.privacy.guarantee import Guarantee
from discreet.tables.ask.question import Aggregate
from discreet.tables.data.sums import BoundedSums, GroupScheme, OnceScheme
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import NoiseVector
from discreet.tables.plan.linear import ColumnMoments
from discreet.tables.plan.stage import QueryScope
from discreet.tables.plan.totals import Totals

__all__ = ["DistinctStrategy"]

_FINE = 4096


@dataclass(frozen=True)
class DistinctStrategy:
    """Numbers of units."""

    scope: QueryScope
    aggregates: tuple[Aggregate, ...]

    @property
    def weight(self) -> float:
        return 1.0

    def pure_stage(self, epsilon: Fraction) -> Totals:
        contribution, scope = self.scope.contribution, self.scope
        share = exactly(float_below(epsilon))
        if not scope.keys:
            law = LaplaceDistribution(float_above(1 / share))
            guarantee = privacy.discrete_laplace(law.scale, 1, unit=contribution.unit)
            return Totals(
                BoundedSums(scope.rows, (), (), OnceScheme()), (law,), guarantee, self._estimates(law, 1)
            )
        fine = 1 if contribution.one_row_per_unit else _FINE
        moved = contribution.replacement_factor_l1() * fine * contribution.groups
        law = LaplaceDistribution(float_above(moved / share))
        guarantee = privacy.discrete_laplace(law.scale, moved, unit=contribution.unit)
        scheme = GroupScheme(fine * contribution.groups, fine, norm=1, full=contribution.groups)
        return Totals(
            BoundedSums(scope.rows, scope.keys, (), scheme), (law,), guarantee, self._estimates(law, fine)
        )

    def gaussian_stage(self, noise: float) -> Totals:
        assert not self.scope.keys, "in groups, units are counted with the totals"
        law = GaussianDistribution(float_above(widest(noise)))
        sums = BoundedSums(self.scope.rows, (), (), OnceScheme())
        return Totals(sums, (law,), self.gaussian_guarantee(noise), self._estimates(law, 1))

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return privacy.gaussian(noise, unit=self.scope.contribution.unit)

    def _estimates(self, law: NoiseDistribution, fine: int) -> dict[str, ColumnEstimate]:
        moments = ColumnMoments(count={0: Fraction(1, fine)})
        whole = self.scope.contribution.one_row_per_unit or not self.scope.keys
        return {
            one.name: ColumnEstimate(one, moments, NoiseVector((law,)), whole=whole)
            for one in self.aggregates
        }
