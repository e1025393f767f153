# SPDX-License-Identifier: Apache-2.0
"""How a budget is split among the stages of an answer, and with which noise.

    pure ε            each stage gets a share of ε by weight, as a decimal rounded down; the shares add up to at most ε
    ρ, or (ε, δ)      each stage gets a share of one ρ by weight; for (ε, δ) it is the greatest ρ for which the
                      composition of all stages, with the leak of key selection, is proved to be (ε, δ)

For (ε, δ) there are two candidate plans, one with Laplace and one with Gaussian noise, and the one
with the smaller errors is taken. At ε = 1 and δ = 1e-6, Laplace noise is a third of Gaussian noise
for one number, and larger for forty. The comparison covers the errors of the noise and the number
of units that a group needs to be shown. It leaves out grouped counts and sums of units with many
rows: their bias from down-weighting is mostly larger than the noise, depends on data, and is never
larger under Gaussian noise. If groups are public, these columns keep Gaussian noise even if Laplace
noise is better for the others. Then the others get their ε first, and the rest gets the greatest ρ
for which both together are (ε, δ).

Equal weights are the best split if the error of each column is measured relative to how far one row
can move it. For variances Δ²/ε² and weights w, ε ∝ (wΔ²)^{1/3} and ρ ∝ Δ√w are best, and with w =
1/Δ² both are equal (compile.proof.md, § 5).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet import privacy
from discreet.errors import BadParameter
from discreet.exact import bisect, exactly
from discreet.mechanisms.distributions import GaussianDistribution
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.distinct import DistinctStrategy
from discreet.tables.plan.selection import KeySelection, gaussian_selection, is_free_count, laplace_selection
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.stage import QueryScope, Stage, Strategy
from discreet.tables.plan.totals import Totals, TotalsStrategy

__all__ = ["QueryPlan", "split_budget"]

#: The share of δ for key selection where Gaussian noise needs the rest. A tenth costs the noise less than 1 % of its
#: scale, and a limit that adds up the leaks of selections admits ten such questions for one that takes all of δ.
_LEAK = 0.1
#: The share of δ for key selection where nothing else needs δ; the rest is for rounding.
_ALL = 1 - 1e-9
_TOLERANCE = 1e-9
#: The least share of key selection, and of everything else.
_LEAST_SHARE = 0.05
#: An error below this counts as this, so that its logarithm is finite.
_NEGLIGIBLE = 1e-9
#: The mean of |z| for a standard normal z.
_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class QueryPlan:
    """The stages of an answer, each with its noise, and the key selection where keys are private."""

    stages: tuple[Stage, ...]
    selection: KeySelection | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The composition of key selection, if there is one, and of all stages."""
        selection = [] if self.selection is None else [(self.selection.guarantee, 1)]
        return compose([*selection, *((stage.guarantee, 1) for stage in self.stages)])

    @property
    def described_stages(self) -> list[Stage | KeySelection]:
        """Everything that describes columns: the stages, and key selection if there is one."""
        return [*self.stages, *([self.selection] if self.selection else [])]


def split_budget(
    *,
    pure: Sequence[Strategy],
    gaussian: Sequence[Strategy],
    scope: QueryScope,
    spend: Spend,
    private_keys: bool,
) -> QueryPlan:
    """The plan that costs no more than `spend`.

    `pure` and `gaussian` are the strategies for the same columns under Laplace and under Gaussian
    noise.
    """
    if spend.is_pure:
        return _pure_plan(pure, spend)
    if private_keys:
        gaussian_plan = _gaussian_plan_with_selection(gaussian, scope, spend)
    else:
        gaussian_plan = _gaussian_plan(gaussian, scope, spend)
    if spend.epsilon is None:
        return gaussian_plan
    try:
        if private_keys:
            laplace_plan = _laplace_plan_with_selection(pure, scope, spend)
        else:
            laplace_plan = _mixed_plan(pure, scope, spend) or gaussian_plan
    except BadParameter:
        # The Laplace noise is too large to be drawn.
        return gaussian_plan
    return min((gaussian_plan, laplace_plan), key=lambda plan: _log_error(plan, scope))


def _pure_plan(strategies: Sequence[Strategy], spend: Spend) -> QueryPlan:
    assert spend.epsilon is not None
    return QueryPlan(_split_epsilon(strategies, exactly(spend.epsilon), 0.0)[0])


def _laplace_plan_with_selection(
    strategies: Sequence[Strategy], scope: QueryScope, spend: Spend
) -> QueryPlan:
    assert spend.epsilon is not None
    assert spend.delta is not None
    contribution, delta = scope.contribution, spend.delta * _ALL
    paid, free_counts = _without_free_counts(strategies, scope)
    load = contribution.rows / contribution.groups / math.log(1 / (2 * min(delta, 0.1)))
    stages, rest = _split_epsilon(paid, exactly(spend.epsilon), _selection_weight(paid, load, 2))
    return QueryPlan(stages, laplace_selection(scope, rest, delta, free_counts))


def _mixed_plan(strategies: Sequence[Strategy], scope: QueryScope, spend: Spend) -> QueryPlan | None:
    """Gaussian noise for down-weighted columns, a pure ε for all others; None without others."""
    assert spend.epsilon is not None
    strategies = [_as_totals(strategy) for strategy in strategies]
    down_weighted = [strategy for strategy in strategies if _is_down_weighted(strategy)]
    if len(down_weighted) == len(strategies):
        return None
    others = [strategy for strategy in strategies if not _is_down_weighted(strategy)]
    total = sum(strategy.weight for strategy in down_weighted)
    pure_stages, _ = _split_epsilon(others, exactly(spend.epsilon), total)
    gaussian_stages: tuple[Stage, ...] = ()
    if down_weighted:
        shares = _noise_shares(down_weighted, total)

        def guarantee_at(noise: float) -> Guarantee:
            pure = [stage.guarantee for stage in pure_stages]
            return _compose_all([*pure, *_gaussian_guarantees(down_weighted, shares, noise)])

        noise = calibrate(guarantee_at, to=spend.target(scope.contribution.unit), tolerance=_TOLERANCE)
        gaussian_stages = _gaussian_stages(down_weighted, shares, noise)
    pure_left, gaussian_left = iter(pure_stages), iter(gaussian_stages)
    return QueryPlan(
        tuple(
            next(gaussian_left) if _is_down_weighted(strategy) else next(pure_left) for strategy in strategies
        )
    )


def _as_totals(strategy: Strategy) -> Strategy:
    """Counts of units in groups as totals, because Gaussian noise down-weights them less."""
    if not isinstance(strategy, DistinctStrategy):
        return strategy
    totals = TotalsStrategy(strategy.scope, strategy.aggregates)
    return totals if totals.is_down_weighted else strategy


def _is_down_weighted(strategy: Strategy) -> bool:
    return isinstance(strategy, TotalsStrategy) and strategy.is_down_weighted


def _split_epsilon(
    strategies: Sequence[Strategy], epsilon: Fraction, selection_weight: float
) -> tuple[tuple[Stage, ...], Fraction]:
    """The stages, each with its share of ε by weight, and the share of key selection."""
    unit = epsilon / exactly(sum(strategy.weight for strategy in strategies) + selection_weight)
    stages = tuple(strategy.pure_stage(unit * exactly(strategy.weight)) for strategy in strategies)
    return stages, unit * exactly(selection_weight)


def _gaussian_plan(strategies: Sequence[Strategy], scope: QueryScope, spend: Spend) -> QueryPlan:
    shares = _noise_shares(strategies, sum(strategy.weight for strategy in strategies))

    def guarantee_at(noise: float) -> Guarantee:
        return _compose_all(_gaussian_guarantees(strategies, shares, noise))

    noise = calibrate(guarantee_at, to=spend.target(scope.contribution.unit), tolerance=_TOLERANCE)
    return QueryPlan(_gaussian_stages(strategies, shares, noise))


def _gaussian_plan_with_selection(
    strategies: Sequence[Strategy], scope: QueryScope, spend: Spend
) -> QueryPlan:
    assert spend.delta is not None
    contribution = scope.contribution
    leak = spend.delta * (_LEAK if spend.epsilon is not None else _ALL)
    paid, free_counts = _without_free_counts(strategies, scope)
    tail = GaussianDistribution(1.0).guess(2 * min(leak, 0.1))
    load = (_MEAN_OF_NORMAL * contribution.rows / tail) ** 2 / contribution.groups
    selection_weight = _selection_weight(paid, load, 3)
    total = sum(strategy.weight for strategy in paid) + selection_weight
    shares, selection_share = _noise_shares(paid, total), math.sqrt(total / selection_weight)

    def guarantee_at(noise: float) -> Guarantee:
        selection = [
            privacy.leaky(leak, unit=contribution.unit),
            privacy.gaussian(noise * selection_share, unit=contribution.unit),
        ]
        return _compose_all([*_gaussian_guarantees(paid, shares, noise), *selection])

    noise = calibrate(guarantee_at, to=spend.target(contribution.unit), tolerance=_TOLERANCE)
    selection = gaussian_selection(scope, noise * selection_share, leak, free_counts)
    return QueryPlan(_gaussian_stages(paid, shares, noise), selection)


def _compose_all(guarantees: Sequence[Guarantee]) -> Guarantee:
    return compose([(guarantee, 1) for guarantee in guarantees])


def _noise_shares(strategies: Sequence[Strategy], total: float) -> list[float]:
    """Factors of the common noise that give each strategy its share of ρ, by weight."""
    return [math.sqrt(total / strategy.weight) for strategy in strategies]


def _gaussian_guarantees(
    strategies: Sequence[Strategy], shares: Sequence[float], noise: float
) -> list[Guarantee]:
    return [
        strategy.gaussian_guarantee(noise * share) for strategy, share in zip(strategies, shares, strict=True)
    ]


def _gaussian_stages(
    strategies: Sequence[Strategy], shares: Sequence[float], noise: float
) -> tuple[Stage, ...]:
    return tuple(
        strategy.gaussian_stage(noise * share) for strategy, share in zip(strategies, shares, strict=True)
    )


def _without_free_counts(
    strategies: Sequence[Strategy], scope: QueryScope
) -> tuple[list[Strategy], list[Aggregate]]:
    """The strategies without the counts that key selection releases anyway, and these counts."""
    paid_strategies: list[Strategy] = []
    free_counts: list[Aggregate] = []
    for strategy in strategies:
        if not isinstance(strategy, TotalsStrategy | DistinctStrategy):
            paid_strategies.append(strategy)
            continue
        free_counts += [count for count in strategy.aggregates if is_free_count(scope, count)]
        paid = tuple(aggregate for aggregate in strategy.aggregates if not is_free_count(scope, aggregate))
        if paid:
            paid_strategies.append(replace(strategy, aggregates=paid))
    return paid_strategies, free_counts


def _selection_weight(strategies: Sequence[Strategy], load: float, power: int) -> float:
    """The weight of key selection, whose share f of all weights solves (1 - f)^power = load ·
    (weight of the others) · f.

    This f minimises the loss from suppressed groups and from the noise on the others together, if
    the sizes of groups follow Zipf's law (compile.proof.md, § 5). It serves accuracy; the guarantee
    does not depend on it.
    """
    others = sum(strategy.weight for strategy in strategies)
    if not others:
        return 1.0
    low, high = 0.0, 1.0
    low, _ = bisect(lambda f: (1 - f) ** power > load * others * f, yes=low, no=high, steps=40)
    share = min(max(low, _LEAST_SHARE), 1 - _LEAST_SHARE)
    return share / (1 - share) * others


def _log_error(plan: QueryPlan, scope: QueryScope) -> float:
    """The sum of the logarithms of all compared errors, and of the units that a group needs."""
    sizes = 0.0
    if plan.selection is not None:
        many = min(scope.contribution.groups, plan.selection.max_groups)
        sizes = math.log(plan.selection.units_needed(1) * plan.selection.units_needed(many)) / 2
    errors = [error for stage in plan.described_stages for error in _compared_errors(stage, scope)]
    return sizes + sum(math.log(max(error, _NEGLIGIBLE)) for error in errors)


def _compared_errors(stage: Stage | KeySelection, scope: QueryScope) -> Iterator[float]:
    """The errors that differ by their noise alone."""
    # Weights bias neither means and choices nor rows that are units. Without groups, the bias is the same under both noises.
    weights_bias = isinstance(stage, Totals) and bool(scope.keys) and not scope.contribution.one_row_per_unit
    for name, error in stage.expected_errors().items():
        if not (weights_bias and isinstance(stage, Totals) and stage.estimates[name].form is not None):
            yield error
