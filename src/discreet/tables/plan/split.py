# SPDX-License-Identifier: Apache-2.0
"""How a budget is split among the stages of an answer, and with which noise.

    pure ε            every stage gets its share of ε by weight, as a decimal rounded down; the shares add up to at most ε
    ρ, or (ε, δ)      every stage gets its share of one ρ by weight; for (ε, δ) the greatest ρ is searched for which the
                      composition of all stages, with the leak of the key selection, is proved to be (ε, δ)

For (ε, δ) two plans are made, one with Laplace and one with Gaussian noise, and the one with the smaller errors is
kept: at ε = 1 and δ = 1e-6 Laplace noise is a third of Gaussian noise on one number, and more on forty. The errors that
are compared are those of the noise, and the number of units that a group needs to be shown. Counts and sums, by groups,
of units with many rows are not compared: their bias from down-weighting is mostly larger than the noise, depends on
data, and is never larger under Gaussian noise. Where groups are public they keep Gaussian noise even if the other
columns are better off with Laplace noise: the ε of the others comes first, and the greatest ρ is searched for which
both together are (ε, δ).

Equal weights are the best split where each column is measured against how much one row can move it: for variances
Δ²/ε² and weights w, ε ∝ (wΔ²)^{1/3} and ρ ∝ Δ√w are best, and with w = 1/Δ² both are equal (compile.proof.md, § 5).
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

# The share of δ that key selection gets where Gaussian noise needs the rest. A tenth costs the noise less than 1 % of its
# scale, and a limit that counts what selections may fail by holds ten such questions for one that takes all of δ.
_LEAK = 0.1
# Nothing else needs δ here; the rest is for rounding.
_ALL = 1 - 1e-9
_TOLERANCE = 1e-9
#: The least share of key selection, and of everything else.
_LEAST_SHARE = 0.05
#: An error that is as good as none.
_NEGLIGIBLE = 1e-9
#: The mean of |z| for a standard normal z.
_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class QueryPlan:
    """The stages of an answer, each with its noise; `selection` finds the groups where keys are private."""

    stages: tuple[Stage, ...]
    selection: KeySelection | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The composition of key selection, if there is one, and all stages."""
        first = [] if self.selection is None else [(self.selection.guarantee, 1)]
        return compose([*first, *((stage.guarantee, 1) for stage in self.stages)])

    @property
    def described_stages(self) -> list[Stage | KeySelection]:
        """Everything that can describe a column: the stages, and key selection if it releases some."""
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

    `pure` and `gaussian` are the strategies for the same columns under Laplace and under Gaussian noise.
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
    """Gaussian noise for what is down-weighted, a pure ε for all else; None where there is nothing else."""
    assert spend.epsilon is not None
    strategies = [_as_totals(strategy) for strategy in strategies]
    down_weighted = [strategy for strategy in strategies if _is_down_weighted(strategy)]
    if len(down_weighted) == len(strategies):
        return None
    others = [strategy for strategy in strategies if not _is_down_weighted(strategy)]
    total = sum(strategy.weight for strategy in down_weighted)
    pure_stages = iter(_split_epsilon(others, exactly(spend.epsilon), total)[0])
    stages: dict[int, Stage] = {
        place: next(pure_stages)
        for place, strategy in enumerate(strategies)
        if not _is_down_weighted(strategy)
    }
    if down_weighted:
        shares = [math.sqrt(total / strategy.weight) for strategy in down_weighted]

        def guarantee_at(noise: float) -> Guarantee:
            gaussian = [
                strategy.gaussian_guarantee(noise * share)
                for strategy, share in zip(down_weighted, shares, strict=True)
            ]
            pure = ((stage.guarantee, 1) for stage in stages.values())
            return compose([*pure, *((guarantee, 1) for guarantee in gaussian)])

        noise = calibrate(guarantee_at, to=spend.target(scope.contribution.unit), tolerance=_TOLERANCE)
        gaussian_stages = (
            strategy.gaussian_stage(noise * share)
            for strategy, share in zip(down_weighted, shares, strict=True)
        )
        stages |= {
            place: next(gaussian_stages)
            for place, strategy in enumerate(strategies)
            if _is_down_weighted(strategy)
        }
    return QueryPlan(tuple(stages[place] for place in range(len(strategies))))


def _as_totals(strategy: Strategy) -> Strategy:
    """Numbers of units in groups as totals: Gaussian noise down-weights them less, too."""
    if not isinstance(strategy, DistinctStrategy):
        return strategy
    totals = TotalsStrategy(strategy.scope, strategy.aggregates)
    return totals if totals.is_down_weighted else strategy


def _is_down_weighted(strategy: Strategy) -> bool:
    return isinstance(strategy, TotalsStrategy) and strategy.is_down_weighted


def _split_epsilon(
    strategies: Sequence[Strategy], epsilon: Fraction, selection_weight: float
) -> tuple[tuple[Stage, ...], Fraction]:
    """The stages, each with its share of ε by weight; and the share of key selection."""
    unit = epsilon / exactly(sum(strategy.weight for strategy in strategies) + selection_weight)
    stages = tuple(strategy.pure_stage(unit * exactly(strategy.weight)) for strategy in strategies)
    return stages, unit * exactly(selection_weight)


def _gaussian_plan(strategies: Sequence[Strategy], scope: QueryScope, spend: Spend) -> QueryPlan:
    total = sum(strategy.weight for strategy in strategies)
    shares = [math.sqrt(total / strategy.weight) for strategy in strategies]

    def guarantee_at(noise: float) -> Guarantee:
        return compose([(guarantee, 1) for guarantee in _gaussian_guarantees(strategies, shares, noise)])

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
    shares = [math.sqrt(total / strategy.weight) for strategy in paid]

    def guarantee_at(noise: float) -> Guarantee:
        guarantees = _gaussian_guarantees(paid, shares, noise)
        alone = privacy.gaussian(noise * math.sqrt(total / selection_weight), unit=contribution.unit)
        return compose(
            [(one, 1) for one in (*guarantees, privacy.leaky(leak, unit=contribution.unit), alone)]
        )

    noise = calibrate(guarantee_at, to=spend.target(contribution.unit), tolerance=_TOLERANCE)
    selection_noise = noise * math.sqrt(total / selection_weight)
    return QueryPlan(
        _gaussian_stages(paid, shares, noise), gaussian_selection(scope, selection_noise, leak, free_counts)
    )


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
        free_counts += [one for one in strategy.aggregates if is_free_count(scope, one)]
        paid = tuple(one for one in strategy.aggregates if not is_free_count(scope, one))
        if paid:
            paid_strategies.append(replace(strategy, aggregates=paid))
    return paid_strategies, free_counts


def _selection_weight(strategies: Sequence[Strategy], load: float, power: int) -> float:
    """The weight of key selection, as a share f of all with (1 - f)^power = load · (weight of the others) · f.

    That f minimises what is lost with suppressed groups and what noise there is on the others, together, for sizes as
    of Zipf's law (compile.proof.md, § 5). It is a matter of use, not of privacy.
    """
    others = sum(strategy.weight for strategy in strategies)
    if not others:
        return 1.0
    low, high = 0.0, 1.0
    low, _ = bisect(lambda f: (1 - f) ** power > load * others * f, yes=low, no=high, steps=40)
    share = min(max(low, _LEAST_SHARE), 1 - _LEAST_SHARE)
    return share / (1 - share) * others


def _log_error(plan: QueryPlan, scope: QueryScope) -> float:
    """The sum of the logarithms of all errors that are compared, and of the units that a group needs."""
    sizes = 0.0
    if plan.selection is not None:
        many = min(scope.contribution.groups, plan.selection.max_groups)
        sizes = math.log(plan.selection.units_needed(1) * plan.selection.units_needed(many)) / 2
    errors = [error for stage in plan.described_stages for error in _compared_errors(stage, scope)]
    return sizes + sum(math.log(max(error, _NEGLIGIBLE)) for error in errors)


def _compared_errors(stage: Stage | KeySelection, scope: QueryScope) -> Iterator[float]:
    """The errors that differ by their noise alone.

    Means and choices are not biased by weights, nor are rows that are units. What is not grouped is biased as much
    under both noises.
    """
    weights_bias = isinstance(stage, Totals) and bool(scope.keys) and not scope.contribution.one_row_per_unit
    for name, error in stage.expected_errors().items():
        if not (weights_bias and isinstance(stage, Totals) and stage.estimates[name].form is not None):
            yield error
