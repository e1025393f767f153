# SPDX-License-Identifier: Apache-2.0
"""COUNT(DISTINCT x): how many different values x has, in total or in each group.

A unit with m different pairs of group and value gives each of them the weight min(1, k/m), where k
is `at_most`. A value counts min(1, sum of its weights): fully as soon as one unit with at most k
values has it, or enough units with more.

**Guarantee.** One unit moves the numbers of all groups together by at most k. Values never leave
this stage; only the noisy numbers do.

Why it holds: min(1, ·) grows by at most what is added to it, and the weights of a unit add up to
min(k, m) (compile.proof.md, § 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet import privacy
from discreet.exact import exactly, float_above, float_below, widest
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.privacy.guarantee import Guarantee
from discreet.tables.algebra.engine import Engine
from discreet.tables.algebra.expr import IsNull, Not
from discreet.tables.algebra.sums import BoundedSums, ExactSums, Filtered, GroupKey, GroupScheme
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import NoiseVector
from discreet.tables.plan.linear import ColumnMoments
from discreet.tables.plan.stage import QueryScope
from discreet.tables.plan.totals import Totals

__all__ = ["DistinctValues", "DistinctValuesStrategy"]


@dataclass(frozen=True)
class DistinctValuesStrategy:
    """The number of different values of one expression."""

    scope: QueryScope
    aggregate: Aggregate

    @property
    def weight(self) -> float:
        return 1.0

    @property
    def bound(self) -> int:
        """How far one unit that is added or removed moves the numbers, in cells."""
        return self.scope.contribution.rows * self.scope.fine

    def pure_stage(self, epsilon: Fraction) -> DistinctValues:
        contribution = self.scope.contribution
        # Without groups both neighbours lie in one interval of length `bound` (Lemma D).
        factor = contribution.replacement_factor_l1() if self.scope.keys else 1
        sensitivity = factor * self.bound
        # Rounded up, so the ε that is paid is never above the one that is meant.
        noise = LaplaceDistribution(float_above(sensitivity / exactly(float_below(epsilon))))
        guarantee = privacy.discrete_laplace(noise.scale, sensitivity, unit=contribution.unit)
        return self._stage(noise, guarantee)

    def gaussian_stage(self, noise: float) -> DistinctValues:
        # No number falls when a unit comes, and an l2 norm is at most the l1 norm.
        factor = self.scope.contribution.replacement_factor_l2(signed=False) if self.scope.keys else 1
        distribution = GaussianDistribution(float_above(widest(noise) * factor * self.bound))
        return self._stage(distribution, self.gaussian_guarantee(noise))

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return privacy.gaussian(noise, unit=self.scope.contribution.unit)

    def _stage(self, noise: NoiseDistribution, guarantee: Guarantee) -> DistinctValues:
        scope, of = self.scope, self.aggregate.of
        assert of is not None
        rows = Filtered(scope.rows, Not(IsNull(of))) if of.type.null else scope.rows
        scheme = GroupScheme(self.bound, scope.fine, norm=1, full=scope.contribution.rows)
        moments = ColumnMoments(count={0: Fraction(1, scope.fine)})
        whole = scope.contribution.one_row_per_unit
        estimate = ColumnEstimate(self.aggregate, moments, NoiseVector((noise,)), whole=whole)
        sums = BoundedSums(rows, (*scope.keys, of), (), scheme)
        return DistinctValues(sums, (noise,), guarantee, {self.aggregate.name: estimate})


@dataclass(frozen=True)
class DistinctValues(Totals):
    """The noisy number of different values in each group, ready to be drawn."""

    def exact(self, engine: Engine, groups: Sequence[GroupKey] = ()) -> ExactSums:
        """The bounded numbers without noise, of these groups and perhaps of others."""
        assert isinstance(self.sums.scheme, GroupScheme)
        numbers: dict[GroupKey, int] = {}
        # Without keys there is only the group (), and every value belongs to it.
        among = groups if self.sums.keys[1:] else ()
        for (*group, _), (weight,) in super().exact(engine, among).items():
            counted = min(weight, self.sums.scheme.fine)
            numbers[tuple(group)] = numbers.get(tuple(group), 0) + counted
        return {group: (number,) for group, number in numbers.items()}
