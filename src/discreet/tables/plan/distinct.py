# SPDX-License-Identifier: Apache-2.0
"""COUNT(DISTINCT unit): the number of units, in total or in each group.

**Guarantee.** In total, one unit moves the number by at most one. That also holds for a replaced
unit, because the number with either unit is that without both or one more. So no contribution is
bounded and there is no bias. In groups, under Laplace noise, a unit in m groups counts min(1, c/m)
in each, so it adds at most c over all groups. Under Gaussian noise `totals` counts units.

Why it holds: compile.proof.md, § 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet import privacy
from discreet.exact import exactly, float_above, float_below, widest
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.privacy.guarantee import Guarantee
from discreet.tables.algebra.sums import BoundedSums, GroupScheme, OnceScheme
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import NoiseVector
from discreet.tables.plan.linear import ColumnMoments
from discreet.tables.plan.stage import QueryScope
from discreet.tables.plan.totals import Totals

__all__ = ["DistinctStrategy"]

_FINE = 4096


@dataclass(frozen=True)
class DistinctStrategy:
    """Counts of units, in total or in each group."""

    scope: QueryScope
    aggregates: tuple[Aggregate, ...]

    @property
    def weight(self) -> float:
        return 1.0

    def pure_stage(self, epsilon: Fraction) -> Totals:
        contribution, scope = self.scope.contribution, self.scope
        if scope.keys:
            fine = 1 if contribution.one_row_per_unit else _FINE
            sensitivity = contribution.replacement_factor_l1() * fine * contribution.groups
            scheme = GroupScheme(fine * contribution.groups, fine, norm=1, full=contribution.groups)
            sums = BoundedSums(scope.rows, scope.keys, (), scheme)
        else:
            fine = sensitivity = 1
            sums = BoundedSums(scope.rows, (), (), OnceScheme())
        noise = LaplaceDistribution(float_above(sensitivity / exactly(float_below(epsilon))))
        guarantee = privacy.discrete_laplace(noise.scale, sensitivity, unit=contribution.unit)
        return Totals(sums, (noise,), guarantee, self._estimates(noise, fine))

    def gaussian_stage(self, noise: float) -> Totals:
        assert not self.scope.keys, "in groups, the totals count units"
        distribution = GaussianDistribution(float_above(widest(noise)))
        sums = BoundedSums(self.scope.rows, (), (), OnceScheme())
        estimates = self._estimates(distribution, 1)
        return Totals(sums, (distribution,), self.gaussian_guarantee(noise), estimates)

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return privacy.gaussian(noise, unit=self.scope.contribution.unit)

    def _estimates(self, distribution: NoiseDistribution, fine: int) -> dict[str, ColumnEstimate]:
        noise = NoiseVector((distribution,))
        moments = ColumnMoments(count={0: Fraction(1, fine)})
        whole = self.scope.contribution.one_row_per_unit or not self.scope.keys
        return {
            aggregate.name: ColumnEstimate(aggregate, moments, noise, whole=whole)
            for aggregate in self.aggregates
        }
