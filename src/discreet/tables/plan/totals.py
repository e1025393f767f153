# SPDX-License-Identifier: Apache-2.0
"""Noisy sums: the features of a layout, bounded unit by unit in the engine, and noise on what comes back.

    Laplace     every row of a unit weighs the same, its rows count `at_most` in all:  RowScheme, l1
                or, for sums alone, what a unit adds is cut to what so many rows can:  MassScheme, l1
    Gaussian    the whole answer of a unit is scaled to a length:                      NormScheme, l2

Sums are a stage of their own. A mean needs the same weights for its sum and its count, and those go by rows; a sum that
goes by what is summed is cut only where a unit adds more than `at_most` rows at the bound, which few do.

**Guarantee.** `guarantee` bounds what the noisy sums of all groups reveal together: a sum of discrete Laplace guarantees,
one for each block or for all of them, or one Gaussian guarantee. compile.proof.md, §§ 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet import privacy
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above, float_below, widest
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.answer.answer import Noisy
from discreet.tables.ask.question import Aggregate
from discreet.tables.data.engine import Engine, guarded
from discreet.tables.data.expr import Arithmetic, Constant, Expr
from discreet.tables.data.sums import BoundedSums, ExactSums, GroupKey, MassScheme, NormScheme, RowScheme
from discreet.tables.plan.contribution import Contribution, MassFit, NormFit, fit_mass, fit_norm
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import LinearForm, NoiseVector
from discreet.tables.plan.linear import (
    ColumnMoments,
    FeatureLayout,
    gaussian_layout,
    laplace_layout,
    requested_columns,
    whole,
)
from discreet.tables.plan.stage import ColumnDescription, QueryScope

__all__ = ["DOWN_WEIGHTED", "Totals", "TotalsStrategy", "gaussian_totals", "laplace_totals"]

#: What down-weighted rows make too small: other numbers are quotients, or choices.
DOWN_WEIGHTED = frozenset({"count", "count_of", "sum", "units"})
#: Bits of the values of a column and of a weight, the finest first; and of the noise, the quick first.
_FINENESS = ((22, 12), (20, 12), (18, 12), (18, 10), (16, 10), (16, 8), (14, 8), (12, 8), (12, 6), (10, 6))
_NOISE_BITS = (36, 44)
_BESIDE = 0.5  # the weight of a sum beside a mean, a quantile or a mode
_MANY = 1e9  # rows: so many that no error is cut by what is possible


@dataclass(frozen=True)
class TotalsStrategy:
    """Counts, sums, means and variances of a question; under Gaussian noise, numbers of units in groups too.

    `beside_others` says that the question also asks for numbers that weights do not bias: these need the budget more
    than sums do, whose error is partly bias.
    """

    scope: QueryScope
    aggregates: tuple[Aggregate, ...]
    beside_others: bool = False

    @property
    def weight(self) -> float:
        return float(self.blocks + self.units) * (_BESIDE if self.beside_others else 1.0)

    @property
    def is_down_weighted(self) -> bool:
        """Whether every number is biased by weights, and less so under Gaussian noise: counts and sums by groups."""
        has_weights = bool(self.scope.keys) and not self.scope.contribution.one_row_per_unit
        return has_weights and all(one.kind in DOWN_WEIGHTED for one in self.aggregates)

    @property
    def by_mass(self) -> bool:
        """Whether Laplace noise goes with a limit on what is summed, and is no more for that.

        A total of replaced units moves by the length of the interval in which it lies, which for numbers of both signs
        and for several sums is less if rows are weighted.
        """
        contribution = self.scope.contribution
        if contribution.one_row_per_unit or any(one.kind != "sum" for one in self.aggregates):
            return False
        if self.scope.keys or not contribution.replaces:
            return True
        summed = {one.of for one in self.aggregates}
        return len(summed) == 1 and all(of.type.low >= 0 or of.type.high <= 0 for of in summed if of)

    @property
    def blocks(self) -> int:
        """Among how many blocks Laplace noise would divide its ε."""
        return len(laplace_layout(requested_columns(self.aggregates), 1).blocks)

    @property
    def units(self) -> bool:
        """Whether units are to be counted too."""
        return any(one.kind == "units" for one in self.aggregates)

    def pure_stage(self, epsilon: Fraction) -> Totals:
        return laplace_totals(self, epsilon)

    def gaussian_stage(self, noise: float) -> Totals:
        return gaussian_totals(self, noise)

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return privacy.gaussian(noise, unit=self.scope.contribution.unit)


@dataclass(frozen=True)
class Totals:
    """Noisy sums that are ready to be drawn."""

    sums: BoundedSums
    laws: tuple[NoiseDistribution, ...]
    guarantee: Guarantee
    estimates: dict[str, ColumnEstimate]

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The noisy columns of these groups; a group that has no row has sums of zero, and noise all the same."""
        exact = self.exact(engine, groups)
        empty = (0,) * len(self.laws)
        table = [exact.get(group, empty) for group in groups]
        noisy = np.empty((len(groups), len(self.laws)))
        for place, law in enumerate(self.laws):
            drawn = law.draw(len(groups)).tolist()
            noisy[:, place] = [row[place] + extra for row, extra in zip(table, drawn, strict=True)]
        return {name: estimate.noisy(noisy) for name, estimate in self.estimates.items()}

    def exact(self, engine: Engine, groups: Sequence[GroupKey] = ()) -> ExactSums:
        """The bounded sums, before any noise; of these groups, and perhaps of others."""
        return guarded(engine.sums, replace(self.sums, among=tuple(groups)))

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """How far each column is off, at most; None where that depends on the size of a group."""
        return {name: estimate.half_width(confidence) for name, estimate in self.estimates.items()}

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        return {name: estimate.describe(confidence) for name, estimate in self.estimates.items()}

    def expected_errors(self) -> dict[str, float]:
        return {name: estimate.half_width_for(_MANY) for name, estimate in self.estimates.items()}


def laplace_totals(asked: TotalsStrategy, epsilon: Fraction) -> Totals:
    """Totals with ε-differential privacy: every block gets the same part of ε."""
    if asked.by_mass:
        return _mass_totals(asked, epsilon)
    share = exactly(float_below(epsilon / asked.blocks))
    draft = _finest(asked.scope.contribution, lambda bits, fine: _laplace_draft(asked, share, bits, fine))
    contribution, fine = asked.scope.contribution, draft.fine
    parts = [privacy.discrete_laplace(scale, moved, unit=contribution.unit) for scale, moved in draft.moved]
    sums = BoundedSums(
        asked.scope.rows, asked.scope.keys, tuple(draft.layout.features), RowScheme(contribution.rows, fine)
    )
    units = [Fraction(1, fine)] * len(draft.scales)
    laws = tuple(LaplaceDistribution(scale) for scale in draft.scales)
    return Totals(
        sums, laws, compose([(part, 1) for part in parts]), _estimates(asked, draft.layout, laws, units)
    )


def _mass_totals(asked: TotalsStrategy, epsilon: Fraction) -> Totals:
    """Sums with ε-differential privacy: one bound and one noise for all of them."""
    share = exactly(float_below(epsilon))
    draft = _finest(asked.scope.contribution, lambda bits, fine: _mass_draft(asked, share, bits, fine))
    mass, fine = draft.mass, draft.fine
    assert mass is not None
    features = tuple(map(_times, draft.layout.features, mass.times))
    sums = BoundedSums(asked.scope.rows, asked.scope.keys, features, MassScheme(mass.most, fine))
    ((scale, moved),) = draft.moved
    laws = tuple(LaplaceDistribution(scale) for _ in features)
    guarantee = privacy.discrete_laplace(scale, moved, unit=asked.scope.contribution.unit)
    units = [Fraction(1, fine * times) for times in mass.times]
    return Totals(sums, laws, guarantee, _estimates(asked, draft.layout, laws, units))


def gaussian_totals(asked: TotalsStrategy, noise: float) -> Totals:
    """Totals with the guarantee of Gaussian noise of `noise` sensitivities."""
    draft = _finest(asked.scope.contribution, lambda bits, fine: _gaussian_draft(asked, noise, bits, fine))
    fit, fine = draft.fit, draft.fine
    assert fit is not None
    features = tuple(map(_times, draft.layout.features, fit.times))
    sums = BoundedSums(
        asked.scope.rows, asked.scope.keys, features, NormScheme(fit.most, fine, fit.cells), fit.present
    )
    units = [Fraction(1, fine * times) for times in fit.times]
    units += [Fraction(1, fine * fit.present)] if fit.present else []
    laws = tuple(GaussianDistribution(scale) for scale in draft.scales)
    guarantee = privacy.gaussian(noise, unit=asked.scope.contribution.unit)
    return Totals(sums, laws, guarantee, _estimates(asked, draft.layout, laws, units))


def _times(feature: Expr, times: int) -> Expr:
    if times == 1:
        return feature
    if isinstance(feature, Constant):  # it stays one: an engine knows its sum from the number of rows
        return whole(times * feature.value)
    return Arithmetic("*", whole(times), feature)


@dataclass(frozen=True)
class _Draft:
    """Scales of noise that may still be too large to be drawn."""

    layout: FeatureLayout
    fine: int
    scales: list[float]  # one for each coordinate
    moved: list[tuple[float, int]]  # scale and sensitivity of each block
    fit: NormFit | None = None
    mass: MassFit | None = None

    @property
    def size(self) -> float:
        return max([*self.scales, *(float(moved) for _, moved in self.moved)])


def _laplace_draft(asked: TotalsStrategy, epsilon: Fraction, bits: int, fine: int) -> _Draft:
    contribution = asked.scope.contribution
    layout = laplace_layout(requested_columns(asked.aggregates), bits)
    scales, moves = [0.0] * len(layout.features), []
    for block in layout.blocks:
        one_number = contribution.replaces and not asked.scope.keys and len(block.places) == 1
        moved = (
            contribution.rows
            * fine
            * (block.span if one_number else contribution.replacement_factor_l1() * block.width)
        )
        scale = float_above(moved / epsilon)  # up: the ε that is paid is never above the one that is meant
        moves.append((scale, moved))
        for place in block.places:
            scales[place] = scale
    return _Draft(layout, fine, scales, moves)


def _mass_draft(asked: TotalsStrategy, epsilon: Fraction, bits: int, fine: int) -> _Draft:
    contribution = asked.scope.contribution
    layout = laplace_layout(requested_columns(asked.aggregates), bits)
    mass = fit_mass(layout.reach, contribution)
    moved = mass.most * fine * (contribution.replacement_factor_l1() if asked.scope.keys else 1)
    scale = float_above(moved / epsilon)  # up: the ε that is paid is never above the one that is meant
    return _Draft(layout, fine, [scale] * len(layout.features), [(scale, moved)], mass=mass)


def _gaussian_draft(asked: TotalsStrategy, noise: float, bits: int, fine: int) -> _Draft:
    contribution = asked.scope.contribution
    layout = gaussian_layout(requested_columns(asked.aggregates), bits, units=asked.units)
    fit = fit_norm(layout.reach, layout.shares, layout.present, contribution)
    longest = fit.most * fine * contribution.replacement_factor_l2(signed=layout.signed)
    return _Draft(layout, fine, [float_above(widest(noise) * longest * cell) for cell in fit.cells], [], fit)


def _finest(contribution: Contribution, draft: Callable[[int, int], _Draft]) -> _Draft:
    """The first of a few finenesses whose noise is drawn quickly, or at all."""
    for limit in _NOISE_BITS:
        for bits, fine in _FINENESS:
            found = draft(bits, 1 if contribution.one_row_per_unit else 1 << fine)
            if found.size <= 2.0**limit:
                return found
    raise BadParameter(
        "DP102",
        "the noise that this question needs is too large to be drawn exactly.",
        why="so small a budget, spread over so many rows of one unit, drowns every answer.",
        fix="fewer aggregates, or a greater epsilon",
    )


def _estimates(
    asked: TotalsStrategy, layout: FeatureLayout, laws: Sequence[NoiseDistribution], units: Sequence[Fraction]
) -> dict[str, ColumnEstimate]:
    """How to read each aggregate; `units` are what one of each coordinate stands for."""

    def scale(form: LinearForm | None) -> LinearForm | None:
        return None if form is None else {place: weight * units[place] for place, weight in form.items()}

    found = {}
    for one in asked.aggregates:
        if one.kind == "count":
            moments = ColumnMoments(count=layout.rows)
        elif one.kind == "units":
            moments = ColumnMoments(count={len(layout.features): Fraction(1)})
        else:
            moments = layout.moments[one.of]
        read = replace(
            moments,
            count=scale(moments.count),
            total=scale(moments.total),
            squares=scale(moments.squares),
        )
        found[one.name] = ColumnEstimate(
            one, read, NoiseVector(tuple(laws)), whole=asked.scope.contribution.one_row_per_unit
        )
    return found
