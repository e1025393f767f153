# SPDX-License-Identifier: Apache-2.0
"""How a budget is split among the stages of an answer, and with which noise.

    pure ε            each stage gets a share of ε by weight, as a decimal rounded down; the shares add up to at most ε
    ρ, or (ε, δ)      each stage gets a share of one ρ by weight; for (ε, δ) it is the greatest ρ for which the
                      composition of all stages, with the leak of key selection, is proved to be (ε, δ)

For (ε, δ) there are several candidate plans, and the one with the smallest errors of the requested
numbers is taken (their geometric mean). At ε = 1 and δ = 1e-6, Laplace noise is a third of Gaussian
noise for one number, and larger for forty. If groups are public, one candidate costs ε alone, and
no other may have a greater error in any column. In another, grouped counts and sums keep Gaussian
noise and the other columns have Laplace noise: these get their ε first, and the rest gets the
greatest ρ for which both together are (ε, δ). If keys are private, one candidate selects them by
the noisy COUNT(*) itself.

The errors are those of the noise. The bias of rows that are down-weighted depends on data; within
`at_most` rows it is none under either noise.

Equal weights are the best split if the error of each column is measured relative to how far one row
can move it. For variances Δ²/ε² and weights w, ε ∝ (wΔ²)^{1/3} and ρ ∝ Δ√w are best, and with w =
1/Δ² both are equal (compile.proof.md, § 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
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
from discreet.tables.plan.selection import (
    KeySelection,
    count_selection,
    gaussian_selection,
    is_free_count,
    laplace_selection,
)
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.stage import QueryScope, Stage, Strategy
from discreet.tables.plan.totals import TotalsStrategy

__all__ = ["QueryPlan", "leak_of_selection", "split_budget"]

#: The share of δ for key selection where Gaussian noise needs the rest. A tenth costs the noise
#: less than 1 % of its scale, and a limit that adds up the leaks of selections admits ten such
#: questions for one that takes all of δ.
_LEAK = 0.1
#: The share of δ for key selection where nothing else needs δ; the rest is for rounding.
_ALL = 1 - 1e-9
_TOLERANCE = 1e-9
#: The least share of key selection, and of everything else.
_LEAST_SHARE = 0.05
#: The weight of one column.
_ONE_COLUMN = 1.0
#: Errors that differ by less are equal.
_EQUAL = 1 + 1e-9
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
    counts: Sequence[Aggregate] = (),
) -> QueryPlan:
    """The plan that costs no more than `spend`.

    `pure` and `gaussian` are the strategies for the same columns under Laplace and under Gaussian
    noise; without `pure` there is Gaussian noise only. `counts` are the counts of rows that may
    select private keys.
    """
    if spend.is_pure:
        return _pure_plan(pure, spend)
    if not pure and gaussian:
        return _gaussian_plan(gaussian, scope, spend)
    if private_keys:
        gaussian_plan = _gaussian_plan_with_selection(gaussian, scope, spend)
    else:
        gaussian_plan = _gaussian_plan(gaussian, scope, spend)
    if spend.epsilon is None:
        return gaussian_plan
    alone = Spend(epsilon=spend.epsilon)
    makers: list[Callable[[], QueryPlan]]
    if private_keys:
        makers = [lambda: _laplace_plan_with_selection(pure, scope, spend)]
        if counts and not scope.contribution.one_row_per_unit:
            makers.append(lambda: _plan_selected_by_counts(pure, scope, spend, counts))
    else:
        makers = [lambda: _pure_plan(pure, alone), lambda: _mixed_plan(pure, scope, spend)]
    plans = [gaussian_plan]
    for make in makers:
        # Laplace noise may be too large to be drawn.
        with suppress(BadParameter):
            plans.append(make())
    if not private_keys and len(plans) > 1:
        plans = [plan for plan in plans if _is_nowhere_worse(plan, plans[1])]
    return min(plans, key=_log_error)


def _plan_selected_by_counts(
    strategies: Sequence[Strategy], scope: QueryScope, spend: Spend, counts: Sequence[Aggregate]
) -> QueryPlan:
    """Laplace noise, and the groups selected by the count of rows that the question asks for."""
    assert spend.epsilon is not None
    assert spend.delta is not None
    paid = _without(strategies, counts)
    stages, rest = _split_epsilon(paid, exactly(spend.epsilon), _ONE_COLUMN)
    return QueryPlan(stages, count_selection(scope, rest, spend.delta * _ALL, counts))


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


def _mixed_plan(strategies: Sequence[Strategy], scope: QueryScope, spend: Spend) -> QueryPlan:
    """Gaussian noise for grouped counts and sums, a pure ε for all others."""
    assert spend.epsilon is not None
    pure, strategies = strategies, [_as_totals(strategy) for strategy in strategies]
    down_weighted = [strategy for strategy in strategies if _is_down_weighted(strategy)]
    if len(down_weighted) in {0, len(strategies)}:
        return _pure_plan(pure, Spend(epsilon=spend.epsilon))
    others = [strategy for strategy in strategies if not _is_down_weighted(strategy)]
    total = sum(strategy.weight for strategy in down_weighted)
    pure_stages, _ = _split_epsilon(others, exactly(spend.epsilon), total)
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


def leak_of_selection(spend: Spend) -> float:
    """The δ of key selection beside Gaussian noise."""
    assert spend.delta is not None
    return spend.delta * (_LEAK if spend.epsilon is not None else _ALL)


def _gaussian_plan_with_selection(
    strategies: Sequence[Strategy], scope: QueryScope, spend: Spend
) -> QueryPlan:
    assert spend.delta is not None
    contribution = scope.contribution
    leak = leak_of_selection(spend)
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
    totals = [strategy for strategy in strategies if isinstance(strategy, TotalsStrategy | DistinctStrategy)]
    free_counts = [
        count for strategy in totals for count in strategy.aggregates if is_free_count(scope, count)
    ]
    return _without(strategies, free_counts), free_counts


def _without(strategies: Sequence[Strategy], columns: Sequence[Aggregate]) -> list[Strategy]:
    """The strategies without some columns, which key selection releases."""
    rest: list[Strategy] = []
    for strategy in strategies:
        if not isinstance(strategy, TotalsStrategy | DistinctStrategy):
            rest.append(strategy)
        elif paid := tuple(aggregate for aggregate in strategy.aggregates if aggregate not in columns):
            rest.append(replace(strategy, aggregates=paid))
    return rest


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


def _log_error(plan: QueryPlan) -> float:
    """The sum of the logarithms of all errors; if only keys are asked for, of the units that a
    group needs.
    """
    errors = _errors(plan)
    if plan.selection is not None and not errors:
        return math.log(
            plan.selection.units_needed(1) * plan.selection.units_needed(plan.selection.max_groups)
        )
    return sum(math.log(max(error, _NEGLIGIBLE)) for error in errors.values())


def _is_nowhere_worse(plan: QueryPlan, other: QueryPlan) -> bool:
    """Whether no column of a plan has a greater error than in another."""
    errors = _errors(other)
    return all(error <= errors[name] * _EQUAL for name, error in _errors(plan).items())


def _errors(plan: QueryPlan) -> dict[str, float]:
    return {name: error for stage in plan.described_stages for name, error in stage.expected_errors().items()}
