# SPDX-License-Identifier: Apache-2.0
"""Key selection: which groups to show where keys are private. It shows groups that enough units
share.

A unit in m groups gives each of them the weight 1/√m (Gaussian noise) or 1/m (Laplace noise), in
whole cells. The groups whose noisy weight reaches a threshold are selected, and all other columns
of the answer are about selected groups only.

**Guarantee.** Except with probability δ, no group is selected that has only one unit. Apart from
that, the selected keys reveal as much as Gaussian (Laplace) noise on vectors of norm one, in
however many groups a unit is. Units in more than `most` groups do not contribute. A group without
weight is never selected.

If a unit can be in only one group, its weight is one and the noisy weight of a selected group is a
noisy count of units. That count is released too, at no further cost. Laplace noise is truncated
where δ allows it, and then no mechanism with that ε and δ selects a group more often (Desfontaines,
Voss, Gipson, Mandayam 2022).

If the question asks for COUNT(*), the noisy count of rows can select the groups itself
(`count_selection`). It then costs what the count alone costs, and the selection nothing but δ.
Units in more groups than `most_groups` do not count.

Why it holds: compile.proof.md, § 4. If no group is selected that the unit alone has, all that
remains is a shift of the other weights by a vector of norm `fine`. Noise is drawn for every group
that has a weight, as one array. Nothing but its weight leaves the engine of a group that is not
selected. The idea of weights is from Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020.

What would break it: a threshold on rows; a strict instead of an inclusive comparison; a group that
exists without a unit; a second noise on the number that was compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from discreet import privacy
from discreet.exact import bisect_whole, exactly, float_above, float_below, widest
from discreet.mechanisms.distributions import (
    GaussianDistribution,
    LaplaceDistribution,
    NoiseDistribution,
    TruncatedLaplace,
    upper_tail,
)
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee
from discreet.tables.algebra.engine import Engine, Integers, selected_groups
from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.sums import BoundedSums, GroupKey, GroupScheme, RowScheme, sorted_groups
from discreet.tables.answer.noisy import Noisy, Values
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.contribution import ROOT_TWO
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import NoiseVector
from discreet.tables.plan.linear import ColumnMoments, whole
from discreet.tables.plan.stage import ColumnDescription, QueryScope

__all__ = [
    "KeySelection",
    "SelectedGroups",
    "count_selection",
    "gaussian_selection",
    "is_free_count",
    "laplace_selection",
]

_FINE = 4096
#: The groups in which a unit counts, if the description does not state `groups`.
_USUAL_GROUPS = 1000
#: Up to here the threshold is computed for every number of groups; beyond, for ranges that double.
_EACH = 1024
#: Rounds down by far more than the rounding errors of expm1 and log1p.
_DOWN = 1 - 1e-12
#: A unit counts in this many groups at least, if the description does not state `groups`.
_FEW_GROUPS = 3


@dataclass(frozen=True)
class SelectedGroups:
    """The selected groups, sorted by their keys, and the columns that are released with them."""

    groups: list[GroupKey]
    columns: dict[str, Noisy]


@dataclass(frozen=True)
class KeySelection:
    """A threshold on noisy weights of groups; `estimates` are the columns that are read off the
    same noisy weights.

    A group is selected if its noisy weight, in cells, is at least `threshold`.
    """

    sums: BoundedSums
    distribution: NoiseDistribution | TruncatedLaplace
    threshold: int
    guarantee: Guarantee
    unit: str
    estimates: dict[str, ColumnEstimate] = field(default_factory=dict)

    @property
    def fine(self) -> int:
        """The cells of a full weight."""
        assert isinstance(self.sums.scheme, GroupScheme | RowScheme)
        return self.sums.scheme.fine

    @property
    def counts_rows(self) -> bool:
        """Whether the compared number is a count of rows."""
        return isinstance(self.sums.scheme, RowScheme)

    def draw(self, engine: Engine, features: Sequence[Expr] = ()) -> SelectedGroups:
        """The selected groups, with their columns; `features` are those that are summed in them
        next.
        """
        selected_weights: list[int] = []

        def choose(weights: Integers) -> Integers:
            noisy = weights + self.distribution.draw(weights.size)
            places: Integers = np.flatnonzero((weights > 0) & (noisy >= self.threshold))
            selected_weights.extend(noisy[places].tolist())
            return places

        # The scheme that counts units lets an engine prepare the features that are summed next.
        asked = self.sums if self.counts_rows else replace(self.sums, features=tuple(features))
        groups = selected_groups(engine, asked, choose)
        weight_by_group = dict(zip(groups, selected_weights, strict=True))
        groups = sorted_groups(groups)
        weights = [weight_by_group[group] for group in groups]
        columns = {name: self._column(estimate, weights) for name, estimate in self.estimates.items()}
        return SelectedGroups(groups, columns)

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """The margin of error of each column."""
        return {name: estimate.half_width(confidence) for name, estimate in self.estimates.items()}

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        return {name: self._describe(estimate, confidence) for name, estimate in self.estimates.items()}

    def expected_errors(self) -> dict[str, float]:
        return {name: estimate.half_width_for(1.0) for name, estimate in self.estimates.items()}

    def _describe(self, estimate: ColumnEstimate, confidence: float) -> ColumnDescription:
        description = estimate.describe(confidence)
        name = estimate.aggregate.text or estimate.aggregate.name
        note = (
            f"{name} is the noisy number that key selection compares, so it costs nothing more. A group near the threshold is "
            "shown only if its noise is high; the interval accounts for that."
        )
        return ColumnDescription(f"{description.noise}, shared with key selection", description.error, note)

    def _column(self, estimate: ColumnEstimate, counts: list[int]) -> Noisy:
        """The column of noisy counts that reached the threshold."""

        def interval(confidence: float) -> tuple[Values, Values]:
            half = self.distribution.tail_bound(1 - confidence)
            lows, highs = self.lower_ends(counts, confidence), tuple(count + half for count in counts)
            if self.fine == 1:
                return lows, highs
            return tuple(low / self.fine for low in lows), tuple(high / self.fine for high in highs)

        low, high = interval(CONFIDENCE)
        numbers = np.array(counts, np.float64).reshape(-1, 1)
        return replace(estimate.noisy(numbers), lo=low, hi=high, interval=interval)

    def lower_ends(self, counts: Sequence[int], confidence: float) -> tuple[int, ...]:
        """The lower ends, in cells, for noisy counts that reached the threshold."""
        half, beta = self.distribution.tail_bound(1 - confidence), 1 - confidence
        lows = {count: self._lower_end(count, half, beta) for count in set(counts)}
        return tuple(lows[count] for count in counts)

    def _lower_end(self, count: int, half: int, beta: float) -> int:
        """The lower end for a count that reached the threshold (compile.proof.md, § 6)."""

        def too_small(units: int) -> bool:
            """Whether so great a count is too unlikely for a selected group of that many units."""
            beyond, shown = (
                upper_tail(self.distribution, least - units) for least in (count, self.threshold)
            )
            return beyond < beta / 2 * shown * (1 - 1e-9)

        # A selected group has at least one unit.
        low, high = 0, max(1, count - half)
        if too_small(high - 1):
            return high
        return bisect_whole(lambda units: not too_small(units), yes=high, no=low)

    def chance(self, units: int, groups: int = 1) -> float:
        """About how likely a group of that many units is selected, each in that many groups."""
        return upper_tail(self.distribution, self.threshold - units * self._weight_in_each(groups))

    def units_needed(self, groups: int = 1) -> int:
        """The units that a group needs to be selected half of the time, each in that many groups."""
        return -(-self.threshold // max(1, self._weight_in_each(groups)))

    @property
    def rows_needed(self) -> int:
        """The rows that a group needs to be selected half of the time, if none is down-weighted."""
        return -(-self.threshold // self.fine)

    @property
    def max_groups(self) -> int:
        """The greatest number of groups of a unit that contributes."""
        if isinstance(self.sums.scheme, GroupScheme):
            return self.sums.scheme.most
        return self.sums.most_groups

    def _weight_in_each(self, groups: int) -> int:
        """The weight of a unit in each of its groups; where rows count, of one with all the rows
        that may.
        """
        scheme = self.sums.scheme
        if isinstance(scheme, GroupScheme):
            return weight_in_each_group(scheme, groups)
        assert isinstance(scheme, RowScheme)
        return scheme.most * scheme.fine // groups

    @property
    def suppressed(self) -> str:
        """The note about suppressed groups; it never says how many, nor whether there are any."""
        if self.counts_rows:
            groups = "group" if self.max_groups == 1 else "groups"
            return (
                f"Only groups with about {self.rows_needed} or more rows are shown, and one {self.unit} in more than "
                f"{self.max_groups} {groups} is not counted. Smaller groups may exist."
            )
        return (
            f"Only groups with about {self.units_needed()} or more {self.unit}s are shown, and with more if one {self.unit} "
            "is in several groups. Smaller groups may exist."
        )


def is_free_count(scope: QueryScope, aggregate: Aggregate) -> bool:
    """Whether the weights of key selection are this aggregate, so that it costs nothing more."""
    is_unit_count = aggregate.kind == "units" or (
        aggregate.kind == "count" and scope.contribution.one_row_per_unit
    )
    return _max_groups(scope) == 1 and is_unit_count


def gaussian_selection(
    scope: QueryScope, noise: float, delta: float, free_counts: Sequence[Aggregate] = ()
) -> KeySelection:
    """Key selection with Gaussian noise of `noise` sensitivities, a leak of δ and free counts."""
    contribution, scheme = scope.contribution, _scheme(scope, 2)
    replacement = ROOT_TWO if contribution.replaces else Fraction(1)
    distribution = GaussianDistribution(float_above(widest(noise) * replacement * scheme.fine))
    guarantee = privacy.leaky(delta, unit=contribution.unit) + privacy.gaussian(noise, unit=contribution.unit)
    threshold = threshold_for(scheme, distribution, delta)
    sums = BoundedSums(scope.rows, scope.keys, (), scheme)
    estimates = _free_estimates(free_counts, distribution)
    return KeySelection(sums, distribution, threshold, guarantee, contribution.unit.protects, estimates)


def laplace_selection(
    scope: QueryScope, epsilon: Fraction, delta: float, free_counts: Sequence[Aggregate] = ()
) -> KeySelection:
    """Key selection with Laplace noise that costs ε, a leak of δ and free counts."""
    contribution, scheme = scope.contribution, _scheme(scope, 1)
    replacement = contribution.replacement_factor_l1()
    sensitivity = replacement * scheme.fine
    scale = float_above(sensitivity / exactly(float_below(epsilon)))
    guarantee = privacy.leaky(delta, unit=contribution.unit) + privacy.discrete_laplace(
        scale, sensitivity, unit=contribution.unit
    )
    distribution: LaplaceDistribution | TruncatedLaplace
    if scheme.most > 1:
        distribution = LaplaceDistribution(scale)
        threshold = threshold_for(scheme, distribution, delta)
    else:
        # A replaced unit moves two weights, and either may be where only one of the two
        # distributions has mass.
        distribution = TruncatedLaplace.for_leak(scale, _chance_in_each_group(delta, replacement))
        threshold = distribution.limit + 1
    sums = BoundedSums(scope.rows, scope.keys, (), scheme)
    estimates = _free_estimates(free_counts, distribution)
    return KeySelection(sums, distribution, threshold, guarantee, contribution.unit.protects, estimates)


def count_selection(
    scope: QueryScope, epsilon: Fraction, delta: float, counts: Sequence[Aggregate]
) -> KeySelection:
    """Key selection by the noisy COUNT(*), which costs ε; a leak of δ."""
    contribution = scope.contribution
    total = contribution.rows * _FINE
    sensitivity = contribution.replacement_factor_l1() * total
    epsilon = exactly(float_below(epsilon))
    distribution = LaplaceDistribution(float_above(sensitivity / epsilon))
    guarantee = privacy.leaky(delta, unit=contribution.unit) + privacy.discrete_laplace(
        distribution.scale, sensitivity, unit=contribution.unit
    )
    most = contribution.stated_groups or _groups_at_little_cost(contribution.rows, epsilon)
    scheme = RowScheme(contribution.rows, _FINE)
    sums = BoundedSums(scope.rows, scope.keys, (whole(1),), scheme, most_groups=most)
    threshold = count_threshold(distribution, total, most, delta)
    estimates = _free_estimates(counts, distribution, _FINE)
    return KeySelection(sums, distribution, threshold, guarantee, contribution.unit.protects, estimates)


def _groups_at_little_cost(rows: int, epsilon: Fraction) -> int:
    """The groups in which a unit may be before the threshold exceeds that for `rows` groups that
    all get the weight of `rows` rows: e^ε + c - 1 = e^ε · rows.
    """
    return max(_FEW_GROUPS, math.floor(1 + math.exp(min(float(epsilon), 10.0)) * (rows - 1)))


def count_threshold(distribution: LaplaceDistribution, total: int, groups: int, delta: float) -> int:
    """A t with 1 - (1 - P(noise >= t - total)) (1 - P(noise >= t))^(groups - 1) <= δ, about the
    least.

    That is the most with which a unit of weight `total`, alone in up to `groups` groups, makes one
    of them reach t: the tail is convex, so it is worst if one group has all of the weight.
    """

    def leak(threshold: int) -> float:
        here, elsewhere = (distribution.tail(t) / 2 for t in (threshold - total, threshold))
        return -math.expm1(math.log1p(-here) + (groups - 1) * math.log1p(-elsewhere)) / _DOWN

    low = total + 1
    high = total + distribution.tail_bound(2 * _chance_in_each_group(delta, groups)) + 1
    return bisect_whole(lambda threshold: leak(threshold) <= delta, yes=high, no=low)


def _free_estimates(
    free_counts: Sequence[Aggregate], distribution: NoiseDistribution | TruncatedLaplace, fine: int = 1
) -> dict[str, ColumnEstimate]:
    moments, noise = ColumnMoments(count={0: Fraction(1, fine)}), NoiseVector((distribution,))
    return {count.name: ColumnEstimate(count, moments, noise, whole=fine == 1) for count in free_counts}


def weight_in_each_group(scheme: GroupScheme, groups: int) -> int:
    """The weight that a unit in that many groups gives to each."""
    if groups > scheme.most:
        return 0
    return scheme.fine // groups if scheme.norm == 1 else math.isqrt(scheme.fine**2 // groups)


def threshold_for(scheme: GroupScheme, distribution: NoiseDistribution, delta: float) -> int:
    """A t, about the least, with 1 - (1 - P(noise >= t - w_m))^m <= δ for units in m groups."""
    # In a range of m the weight of the fewest groups and the chance of the most groups are both on
    # the safe side.
    return max(
        weight_in_each_group(scheme, few)
        + distribution.tail_bound(2 * _chance_in_each_group(delta, many))
        + 1
        for few, many in _ranges(scheme.most)
    )


def _ranges(most: int) -> Iterator[tuple[int, int]]:
    """Ranges that cover 1 to `most`: single numbers first, then ranges that double."""
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
    return contribution.stated_groups or max(contribution.rows, _USUAL_GROUPS)


def _scheme(scope: QueryScope, norm: int) -> GroupScheme:
    most = _max_groups(scope)
    # A weight is a part of `fine`; if a unit is in one group only, it is 1 or 0.
    return GroupScheme(min(most, _FINE) if norm == 1 else most, _FINE if most > 1 else 1, norm)
