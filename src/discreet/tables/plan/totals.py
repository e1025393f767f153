# SPDX-License-Identifier: Apache-2.0
"""Noisy sums: the engine bounds the features of a layout unit by unit, and noise is added to their
sums.

    Laplace     all rows of a unit have one weight, and count as `at_most` rows together:   RowScheme, l1
                for sums alone, a unit's total is scaled down to that of `at_most` rows:    MassScheme, l1
    Gaussian    the whole answer of a unit is scaled down to a norm:                        NormScheme, l2

Sums are a stage of their own. A mean needs the same weights for its sum and its count, and these
weights depend on the number of rows. A sum alone is scaled down only where a unit adds more than
`at_most` rows at the bound, which is rare.

**Guarantee.** `guarantee` bounds what the noisy sums of all groups reveal together. It is a
composition of discrete Laplace guarantees, one for each block or one for all blocks, or one
Gaussian guarantee (compile.proof.md, §§ 2 and 3).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet import privacy
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above, float_below, widest
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.algebra.engine import Engine, guard_engine
from discreet.tables.algebra.expr import Arithmetic, Constant, Expr
from discreet.tables.algebra.sums import BoundedSums, ExactSums, GroupKey, MassScheme, NormScheme, RowScheme
from discreet.tables.answer.answer import Noisy
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.contribution import Contribution, MassFit, NormFit, fit_mass, fit_norm
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import LinearForm, NoiseVector
from discreet.tables.plan.linear import (
    ColumnMoments,
    ColumnRequest,
    FeatureLayout,
    gaussian_layout,
    laplace_layout,
    requested_columns,
    whole,
)
from discreet.tables.plan.stage import ColumnDescription, QueryScope

__all__ = [
    "DOWN_WEIGHTED",
    "Totals",
    "TotalsStrategy",
    "gaussian_totals",
    "laplace_totals",
    "undrawable_noise_error",
]

#: The aggregates that down-weighted rows make too small. All others are quotients or choices.
DOWN_WEIGHTED = frozenset({"count", "count_of", "sum", "units"})
#: Bits of the values of a column and of a weight, the finest first.
_FINENESS = ((22, 12), (20, 12), (18, 12), (18, 10), (16, 10), (16, 8), (14, 8), (12, 8), (12, 6), (10, 6))
#: Bits of the noise; fewer bits are drawn faster.
_NOISE_BITS = (36, 44)
#: The weight of a sum beside a mean, a quantile or a mode.
_BESIDE = 0.5
#: A number of rows so large that no margin of error reaches the width of the bounds.
_MANY_ROWS = 1e9


@dataclass(frozen=True)
class TotalsStrategy:
    """Counts, sums, means and variances of a question; under Gaussian noise, counts of units in
    groups too.

    `beside_others` says that the question also asks for numbers that weights do not bias. They need
    the budget more than sums, whose error is partly bias.
    """

    scope: QueryScope
    aggregates: tuple[Aggregate, ...]
    beside_others: bool = False

    @property
    def weight(self) -> float:
        return float(self.blocks + self.units) * (_BESIDE if self.beside_others else 1.0)

    @property
    def is_down_weighted(self) -> bool:
        """Whether weights bias every number, and less so with Gaussian noise: grouped totals."""
        has_weights = bool(self.scope.keys) and not self.scope.contribution.one_row_per_unit
        return has_weights and all(aggregate.kind in DOWN_WEIGHTED for aggregate in self.aggregates)

    @property
    def by_mass(self) -> bool:
        """Whether Laplace noise can bound a unit's total instead of its rows, without more noise."""
        contribution = self.scope.contribution
        if contribution.one_row_per_unit or any(aggregate.kind != "sum" for aggregate in self.aggregates):
            return False
        if self.scope.keys or not contribution.replaces:
            return True
        # A replaced unit moves a total by the width of the interval of its values. For several
        # sums, and for values of both signs, that is less if rows are weighted.
        summed = {aggregate.of for aggregate in self.aggregates}
        return len(summed) == 1 and all(of.type.low >= 0 or of.type.high <= 0 for of in summed if of)

    @cached_property
    def columns(self) -> list[ColumnRequest]:
        """What the aggregates need of each expression."""
        return requested_columns(self.aggregates)

    @property
    def blocks(self) -> int:
        """The number of blocks among which Laplace noise divides its ε."""
        return len(laplace_layout(self.columns, 1).blocks)

    @property
    def units(self) -> bool:
        """Whether it counts units too."""
        return any(aggregate.kind == "units" for aggregate in self.aggregates)

    def pure_stage(self, epsilon: Fraction) -> Totals:
        return laplace_totals(self, epsilon)

    def gaussian_stage(self, noise: float) -> Totals:
        return gaussian_totals(self, noise)

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return privacy.gaussian(noise, unit=self.scope.contribution.unit)


@dataclass(frozen=True)
class Totals:
    """Noisy sums, ready to be drawn; each coordinate has a noise distribution."""

    sums: BoundedSums
    distributions: tuple[NoiseDistribution, ...]
    guarantee: Guarantee
    estimates: dict[str, ColumnEstimate]

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The noisy columns of these groups; a group without rows has sums of zero, with noise."""
        sums = self.exact(engine, groups)
        zeros = (0,) * len(self.distributions)
        table = [sums.get(group, zeros) for group in groups]
        noisy = np.empty((len(groups), len(self.distributions)))
        for place, distribution in enumerate(self.distributions):
            noise = distribution.draw(len(groups)).tolist()
            noisy[:, place] = [row[place] + extra for row, extra in zip(table, noise, strict=True)]
        # The name of this noise says nothing: it only tells it from the noise of other draws.
        draw = secrets.token_hex(8)
        return {name: estimate.noisy(noisy, draw) for name, estimate in self.estimates.items()}

    def exact(self, engine: Engine, groups: Sequence[GroupKey] = ()) -> ExactSums:
        """The bounded sums without noise, of these groups and perhaps of others."""
        return guard_engine(engine.sums, replace(self.sums, among=tuple(groups)))

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """The margin of error of each column; None where it depends on the size of a group."""
        return {name: estimate.half_width(confidence) for name, estimate in self.estimates.items()}

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        return {name: estimate.describe(confidence) for name, estimate in self.estimates.items()}

    def expected_errors(self) -> dict[str, float]:
        return {name: estimate.half_width_for(_MANY_ROWS) for name, estimate in self.estimates.items()}


def laplace_totals(strategy: TotalsStrategy, epsilon: Fraction) -> Totals:
    """Totals with ε-differential privacy; every block gets the same part of ε."""
    if strategy.by_mass:
        return _mass_totals(strategy, epsilon)
    share = exactly(float_below(epsilon / strategy.blocks))
    draft = _finest(
        strategy.scope.contribution, lambda bits, fine: _laplace_draft(strategy, share, bits, fine)
    )
    contribution, fine = strategy.scope.contribution, draft.fine
    guarantees = [
        privacy.discrete_laplace(scale, sensitivity, unit=contribution.unit)
        for scale, sensitivity in draft.blocks
    ]
    sums = BoundedSums(
        strategy.scope.rows,
        strategy.scope.keys,
        tuple(draft.layout.features),
        RowScheme(contribution.rows, fine),
    )
    units = [Fraction(1, fine)] * len(draft.scales)
    noise = tuple(LaplaceDistribution(scale) for scale in draft.scales)
    guarantee = compose([(block_guarantee, 1) for block_guarantee in guarantees])
    return Totals(sums, noise, guarantee, _estimates(strategy, draft.layout, noise, units))


def _mass_totals(strategy: TotalsStrategy, epsilon: Fraction) -> Totals:
    """Sums with ε-differential privacy; all of them have one bound and one scale."""
    share = exactly(float_below(epsilon))
    draft = _finest(strategy.scope.contribution, lambda bits, fine: _mass_draft(strategy, share, bits, fine))
    mass, fine = draft.mass, draft.fine
    assert mass is not None
    features = tuple(map(_multiply, draft.layout.features, mass.multipliers))
    sums = BoundedSums(strategy.scope.rows, strategy.scope.keys, features, MassScheme(mass.mass_bound, fine))
    ((scale, sensitivity),) = draft.blocks
    noise = tuple(LaplaceDistribution(scale) for _ in features)
    guarantee = privacy.discrete_laplace(scale, sensitivity, unit=strategy.scope.contribution.unit)
    units = [Fraction(1, fine * multiplier) for multiplier in mass.multipliers]
    return Totals(sums, noise, guarantee, _estimates(strategy, draft.layout, noise, units))


def gaussian_totals(strategy: TotalsStrategy, noise: float) -> Totals:
    """Totals with the guarantee of Gaussian noise of `noise` sensitivities."""
    draft = _finest(
        strategy.scope.contribution, lambda bits, fine: _gaussian_draft(strategy, noise, bits, fine)
    )
    fit, fine = draft.fit, draft.fine
    assert fit is not None
    features = tuple(map(_multiply, draft.layout.features, fit.multipliers))
    sums = BoundedSums(
        strategy.scope.rows,
        strategy.scope.keys,
        features,
        NormScheme(fit.norm_bound, fine, fit.cells),
        fit.present,
    )
    units = [Fraction(1, fine * multiplier) for multiplier in fit.multipliers]
    units += [Fraction(1, fine * fit.present)] if fit.present else []
    distributions = tuple(GaussianDistribution(scale) for scale in draft.scales)
    guarantee = privacy.gaussian(noise, unit=strategy.scope.contribution.unit)
    return Totals(sums, distributions, guarantee, _estimates(strategy, draft.layout, distributions, units))


def _multiply(feature: Expr, multiplier: int) -> Expr:
    if multiplier == 1:
        return feature
    # A constant stays a constant: an engine knows its sum from the number of rows.
    if isinstance(feature, Constant):
        return whole(multiplier * feature.value)
    return Arithmetic("*", whole(multiplier), feature)


@dataclass(frozen=True)
class _Draft:
    """Scales of noise, one for each coordinate, that may be too large to be drawn.

    `blocks` has the scale and the sensitivity of each block of Laplace noise.
    """

    layout: FeatureLayout
    fine: int
    scales: list[float]
    blocks: list[tuple[float, int]]
    fit: NormFit | None = None
    mass: MassFit | None = None

    @property
    def size(self) -> float:
        return max([*self.scales, *(float(sensitivity) for _, sensitivity in self.blocks)])


def _laplace_draft(strategy: TotalsStrategy, epsilon: Fraction, bits: int, fine: int) -> _Draft:
    contribution = strategy.scope.contribution
    layout = laplace_layout(strategy.columns, bits)
    scales, blocks = [0.0] * len(layout.features), []
    for block in layout.blocks:
        one_number = contribution.replaces and not strategy.scope.keys and len(block.places) == 1
        per_row = block.span if one_number else contribution.replacement_factor_l1() * block.width
        sensitivity = contribution.rows * fine * per_row
        # Rounded up, so the ε that is paid is never above the one that is meant.
        scale = float_above(sensitivity / epsilon)
        blocks.append((scale, sensitivity))
        for place in block.places:
            scales[place] = scale
    return _Draft(layout, fine, scales, blocks)


def _mass_draft(strategy: TotalsStrategy, epsilon: Fraction, bits: int, fine: int) -> _Draft:
    contribution = strategy.scope.contribution
    layout = laplace_layout(strategy.columns, bits)
    mass = fit_mass(layout.reach, contribution, layout.exclusive)
    replacement = contribution.replacement_factor_l1() if strategy.scope.keys else 1
    sensitivity = mass.mass_bound * fine * replacement
    # Rounded up, so the ε that is paid is never above the one that is meant.
    scale = float_above(sensitivity / epsilon)
    return _Draft(layout, fine, [scale] * len(layout.features), [(scale, sensitivity)], mass=mass)


def _gaussian_draft(strategy: TotalsStrategy, noise: float, bits: int, fine: int) -> _Draft:
    contribution = strategy.scope.contribution
    layout = gaussian_layout(strategy.columns, bits, units=strategy.units)
    fit = fit_norm(layout.reach, layout.shares, layout.present, contribution, layout.exclusive)
    sensitivity = fit.norm_bound * fine * contribution.replacement_factor_l2(signed=layout.signed)
    scales = [float_above(widest(noise) * sensitivity * cell) for cell in fit.cells]
    return _Draft(layout, fine, scales, [], fit)


def _finest(contribution: Contribution, draft_at: Callable[[int, int], _Draft]) -> _Draft:
    """The draft with the finest grid whose noise can be drawn fast, or else at all."""
    for noise_bits in _NOISE_BITS:
        for value_bits, weight_bits in _FINENESS:
            draft = draft_at(value_bits, 1 if contribution.one_row_per_unit else 1 << weight_bits)
            if draft.size <= 2.0**noise_bits:
                return draft
    raise undrawable_noise_error()


def undrawable_noise_error() -> BadParameter:
    """The refusal of noise that is too large to be drawn exactly."""
    return BadParameter(
        "DP102",
        "the noise that this question needs is too large to be drawn exactly.",
        why="with so small an epsilon and so many rows of one unit, the answer would be noise only.",
        fix="fewer aggregates, or a greater epsilon",
    )


def _estimates(
    strategy: TotalsStrategy,
    layout: FeatureLayout,
    distributions: Sequence[NoiseDistribution],
    units: Sequence[Fraction],
) -> dict[str, ColumnEstimate]:
    """How each aggregate is read off the sums; `units` are what one of each coordinate stands for."""

    def scale(form: LinearForm | None) -> LinearForm | None:
        return None if form is None else {place: weight * units[place] for place, weight in form.items()}

    noise = NoiseVector(tuple(distributions))
    estimates = {}
    for aggregate in strategy.aggregates:
        if aggregate.kind == "count":
            moments = ColumnMoments(count=layout.rows)
        elif aggregate.kind == "units":
            moments = ColumnMoments(count={len(layout.features): Fraction(1)})
        else:
            moments = layout.moments[aggregate.of]
        scaled = replace(
            moments,
            count=scale(moments.count),
            total=scale(moments.total),
            squares=scale(moments.squares),
        )
        estimates[aggregate.name] = ColumnEstimate(
            aggregate, scaled, noise, whole=strategy.scope.contribution.one_row_per_unit
        )
    return estimates
