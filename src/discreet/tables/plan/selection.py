# SPDX-License-Identifier: Apache-2.0
"""Which groups may be named where nobody has stated the keys: those that enough units share.

A unit in m groups gives each of them the weight 1/√m (Gaussian noise) or 1/m (Laplace noise), in whole cells; the groups
whose noisy weight reaches a threshold are named, and everything else of the answer is about them only.

**Guarantee.** Save with probability δ no group is named that only one unit has; apart from that the names reveal what
Gaussian (Laplace) noise on vectors of length one does, in however many groups a unit is. Units in more than `most`
groups name none. A group without weight is never named.

Where a unit can be in one group only, its weight is one and the noisy weight of a group that is named is a number of units:
it is released too, for nothing more, and Laplace noise is cut off where δ says, which names a group at the fewest
units that any mechanism can (Desfontaines, Voss, Gipson, Mandayam 2022).

Why it holds: compile.proof.md, § 4: given that none of a unit's lone groups is named, only shifts of the others by a vector
of norm `fine` remain. Noise is drawn for every group that has a weight, as one array; of a group that is not
named nothing but its weight leaves the engine. The idea of weights: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020.
What would break it: a threshold on rows, a strict for an inclusive comparison, a group that exists without a unit; a
second noise on the number that was compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from discreet import privacy
from discreet.exact import bisect_whole, exactly, float_above, float_below, widest
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee
from discreet.tables.answer.answer import Noisy
from discreet.tables.ask.question import Aggregate
from discreet.tables.data.engine import Engine, Integers, selected_groups
from discreet.tables.data.sums import BoundedSums, GroupKey, GroupScheme, sorted_groups
from discreet.tables.plan.contribution import ROOT_TWO
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import NoiseVector
from discreet.tables.plan.linear import ColumnMoments
from discreet.tables.plan.stage import ColumnDescription, QueryScope
from discreet.tables.plan.truncated_laplace import TruncatedLaplaceDistribution, truncation_for

__all__ = ["KeySelection", "SelectedGroups", "gaussian_selection", "is_free_count", "laplace_selection"]

_FINE = 4096
_USUAL = 1000  # groups of a unit that count, where nobody has stated how many matter
_EACH = 1024  # numbers of groups that are looked at one by one
_DOWN = 1 - 1e-12  # far more than the rounding of expm1 and log1p


@dataclass(frozen=True)
class SelectedGroups:
    """The groups that were named, sorted by their keys, and the columns that came with them."""

    groups: list[GroupKey]
    columns: dict[str, Noisy]


@dataclass(frozen=True)
class KeySelection:
    """A threshold on noisy weights of groups; `estimates` are the columns that are read off the same noisy weights."""

    sums: BoundedSums
    law: NoiseDistribution
    threshold: int  # in cells; reached by those at it
    guarantee: Guarantee
    unit: str
    estimates: dict[str, ColumnEstimate] = field(default_factory=dict)

    def draw(self, engine: Engine) -> SelectedGroups:
        """The groups that may be named."""
        noisy: list[int] = []

        def choose(weights: Integers) -> Integers:
            with_noise = weights + self.law.draw(weights.size)
            places: Integers = np.flatnonzero((weights > 0) & (with_noise >= self.threshold))
            noisy.extend(with_noise[places].tolist())
            return places

        groups = selected_groups(engine, self.sums, choose)
        by_group = dict(zip(groups, noisy, strict=True))
        shown = [(group, by_group[group]) for group in sorted_groups(groups)]
        table = [weight for _, weight in shown]
        columns = {name: self._column(estimate, table) for name, estimate in self.estimates.items()}
        return SelectedGroups([group for group, _ in shown], columns)

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """How far each column is off, at most."""
        return {name: estimate.half_width(confidence) for name, estimate in self.estimates.items()}

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        return {name: self._describe(estimate, confidence) for name, estimate in self.estimates.items()}

    def expected_errors(self) -> dict[str, float]:
        return {name: estimate.half_width_for(1.0) for name, estimate in self.estimates.items()}

    def _describe(self, estimate: ColumnEstimate, confidence: float) -> ColumnDescription:
        said = estimate.describe(confidence)
        word = estimate.asked.text or estimate.asked.name
        note = (
            f"{word} is the noisy number by which groups were found, and costs nothing more. A group near the threshold is "
            "seen only where its noise is high; the interval allows for that."
        )
        return ColumnDescription(f"{said.noise}, that of finding the groups", said.error, note)

    def _column(self, estimate: ColumnEstimate, table: list[int]) -> Noisy:
        """A column of the numbers that reached the threshold."""

        def interval(confidence: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
            half = self.law.tail_bound(1 - confidence)
            return self.lower_ends(table, confidence), tuple(seen + half for seen in table)

        low, high = interval(CONFIDENCE)
        numbers = np.array(table, np.float64).reshape(-1, 1)
        return replace(estimate.noisy(numbers), lo=low, hi=high, interval=interval)

    def lower_ends(self, table: Sequence[int], confidence: float) -> tuple[int, ...]:
        """The lower ends for numbers that reached the threshold."""
        half, beta = self.law.tail_bound(1 - confidence), 1 - confidence
        lows = {seen: self._lower_end(seen, half, beta) for seen in set(table)}
        return tuple(lows[seen] for seen in table)

    def _lower_end(self, seen: int, half: int, beta: float) -> int:
        """The lower end for a number that is seen because it reached the threshold (compile.proof.md, § 6)."""

        def too_small(units: int) -> bool:
            """Whether a group of so many units that is named at all has a number as great as that too seldom."""
            return self._tail(seen - units) < beta / 2 * self._tail(self.threshold - units) * (1 - 1e-9)

        low, high = 0, max(1, seen - half)  # a group that is named has a unit
        if too_small(high - 1):
            return high
        return bisect_whole(lambda units: not too_small(units), yes=high, no=low)

    def _tail(self, least: int) -> float:
        """P(noise >= least)."""
        return self.law.tail(least) / 2 if least > 0 else 1 - self.law.tail(1 - least) / 2

    def chance(self, units: int, groups: int = 1) -> float:
        """About how likely a group of so many units is named, each of whom is in so many groups."""
        return self._tail(self.threshold - units * weight_in_each_group(self.scheme, groups))

    def units_needed(self, groups: int = 1) -> int:
        """How many units a group needs to be named as often as not, each of whom is in so many groups."""
        return -(-self.threshold // max(1, weight_in_each_group(self.scheme, groups)))

    @property
    def max_groups(self) -> int:
        """In how many groups a unit may be and still count."""
        return self.scheme.most

    @property
    def withheld(self) -> str:
        """The note about suppressed groups; never how many there are, nor whether there are any."""
        return (
            f"Only groups with about {self.units_needed()} or more {self.unit}s are shown, and with more if one {self.unit} "
            "is in several groups. Smaller groups may exist."
        )

    @property
    def scheme(self) -> GroupScheme:
        """How much a unit gives to each of its groups."""
        assert isinstance(self.sums.scheme, GroupScheme)
        return self.sums.scheme


def is_free_count(scope: QueryScope, one: Aggregate) -> bool:
    """Whether the weights by which groups are found are this number."""
    return _max_groups(scope) == 1 and (
        one.kind == "units" or (one.kind == "count" and scope.contribution.one_row_per_unit)
    )


def gaussian_selection(
    scope: QueryScope, noise: float, delta: float, counted: Sequence[Aggregate] = ()
) -> KeySelection:
    """Groups named with Gaussian noise of `noise` sensitivities, and a leak of δ; `counted` come with them."""
    contribution, scheme = scope.contribution, _scheme(scope, 2)
    stretch = ROOT_TWO if contribution.replaces else Fraction(1)
    law = GaussianDistribution(float_above(widest(noise) * stretch * scheme.fine))
    guarantee = privacy.leaky(delta, unit=contribution.unit) + privacy.gaussian(noise, unit=contribution.unit)
    chosen = _Chosen(scheme, law, threshold_for(scheme, law, delta), guarantee)
    return chosen.of(scope, counted)


def laplace_selection(
    scope: QueryScope, epsilon: Fraction, delta: float, counted: Sequence[Aggregate] = ()
) -> KeySelection:
    """Groups named with Laplace noise that costs ε, and a leak of δ; `counted` come with them."""
    contribution, scheme = scope.contribution, _scheme(scope, 1)
    moved = contribution.replacement_factor_l1() * scheme.fine
    law = LaplaceDistribution(float_above(moved / exactly(float_below(epsilon))))
    guarantee = privacy.leaky(delta, unit=contribution.unit) + privacy.discrete_laplace(
        law.scale, moved, unit=contribution.unit
    )
    if scheme.most > 1:
        return _Chosen(scheme, law, threshold_for(scheme, law, delta), guarantee).of(scope, counted)
    # whoever is replaced moves two numbers, and each of them may be where only one of the two laws is
    most = truncation_for(law.scale, _chance_in_each_group(delta, contribution.replacement_factor_l1()))
    return _Chosen(scheme, TruncatedLaplaceDistribution(law.scale, most), most + 1, guarantee).of(
        scope, counted
    )


def weight_in_each_group(scheme: GroupScheme, groups: int) -> int:
    """The weight that a unit in so many groups gives to each."""
    if groups > scheme.most:
        return 0
    return scheme.fine // groups if scheme.norm == 1 else math.isqrt(scheme.fine**2 // groups)


def threshold_for(scheme: GroupScheme, law: NoiseDistribution, delta: float) -> int:
    """The least number with 1 - (1 - P(noise >= it - w_m))^m <= δ for a unit in m groups, for every m; or a greater one."""
    return max(
        weight_in_each_group(scheme, few) + law.tail_bound(2 * _chance_in_each_group(delta, many)) + 1
        for few, many in _ranges(scheme.most)
    )


def _ranges(most: int) -> Iterator[tuple[int, int]]:
    """1, 2, 3, … one by one, then by doubling: the weight of the fewest and the chance of the most are both too much."""
    few = 1
    while few <= most:
        many = few if few <= _EACH else min(most, 2 * few)
        yield few, many
        few = many + 1


def _chance_in_each_group(delta: float, groups: int) -> float:
    """The p with 1 - (1 - p)^groups <= δ, rounded down."""
    return -math.expm1(math.log1p(-delta) / groups) * _DOWN


def _max_groups(scope: QueryScope) -> int:
    contribution = scope.contribution
    if contribution.one_row_per_unit:
        return 1
    return contribution.stated_groups or max(contribution.rows, _USUAL)


def _scheme(scope: QueryScope, norm: int) -> GroupScheme:
    """A weight is a share of `fine`; one that can only be all or nothing is 1 or 0."""
    most = _max_groups(scope)
    return GroupScheme(min(most, _FINE) if norm == 1 else most, _FINE if most > 1 else 1, norm)


@dataclass(frozen=True)
class _Chosen:
    """The numbers of a selection."""

    scheme: GroupScheme
    law: NoiseDistribution
    threshold: int
    guarantee: Guarantee

    def of(self, scope: QueryScope, counted: Sequence[Aggregate]) -> KeySelection:
        sums, moments = (
            BoundedSums(scope.rows, scope.keys, (), self.scheme),
            ColumnMoments(count={0: Fraction(1)}),
        )
        estimates = {
            one.name: ColumnEstimate(one, moments, NoiseVector((self.law,)), whole=True) for one in counted
        }
        word = scope.contribution.unit.protects
        return KeySelection(sums, self.law, self.threshold, self.guarantee, word, estimates)
