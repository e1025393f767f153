# SPDX-License-Identifier: Apache-2.0
"""The steps to a stated margin of error, where a first release determines the cost of the next.

    plan = least_spend(question, dataset, error="±0.5")     # TwoSteps
    plan.then(answer_to(plan.question, plan.pilot))          # LastStep, or another TwoSteps

**Guarantee.** What a step costs is a function of the answers before it, and of public parameters.
With the probability that was asked for, each number of the finished answer is within its error.

Why it holds: steps.proof.md. In short, all that is read off first steps fails with a probability
that is set apart for it; and in an average of two releases the weights make the noise, up to a
factor, independent of what the second step costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal

from discreet.errors import RefusedQuestion
from discreet.mechanisms.noise_sums import tail_bound_of_sum
from discreet.tables.algebra.sums import BoundedSums
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.evaluate import column_of_nodes
from discreet.tables.answer.linear import add_forms, deviation
from discreet.tables.answer.nodes import Linear
from discreet.tables.ask.question import Question
from discreet.tables.plan.compile import TableMechanism
from discreet.tables.plan.cube import CubeStage
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import NoiseVector
from discreet.tables.plan.selection import KeySelection
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.totals import Totals

__all__ = [
    "FINER",
    "PILOT_BETA",
    "ErrorSteps",
    "FirstNumbers",
    "LastStep",
    "TwoSteps",
    "averaged_half_width",
    "best_pilot",
    "check_allowed",
    "check_leaves_something",
    "column_estimates",
    "cost_of_steps",
    "may_follow",
    "most_allowed",
    "next_pilot",
    "rows_name",
    "too_few_rows_error",
]

#: The share of the probability of missing the error that is left to the first steps. It is small,
#: because a count is much more precise than a mean.
PILOT_BETA = 0.1
#: All steps together cost at most this many times a stated first one.
TIMES = 20
#: A first step that shows too few rows is followed by one with so many times its ε.
_GROWTH = 4
#: A further first step is worth its cost if it leaves less than this part of it.
_WORTH = 0.98
#: The weight of a first release beside that of the last, in units of their noises.
_BESIDE_LAST = 0.25
_AVERAGED_NOTE = "Each number is a weighted mean of the first release of it and of the last."
#: No last step is averaged with a first one that costs more than this many times as much.
FINER = 4


@dataclass(frozen=True)
class TwoSteps:
    """A small question whose noisy answer determines the cost of the real one.

    Release `question` at `pilot`; `then(answer)` is the last step, or the next small question. All
    together cost at most `most` (an ε); if more is needed, `then` refuses. `number` counts the
    steps, from 0.
    """

    question: Question
    pilot: Spend
    then: Callable[[Answer], LastStep | TwoSteps]
    most: float
    number: int = 0


@dataclass(frozen=True)
class LastStep:
    """What follows the first steps: the question at `spend`, or nothing more where that is None.

    `finish` makes the answer from the last release, before it is arranged: from that of the
    question, or from that of the first step if nothing more is paid.
    """

    spend: Spend | None
    finish: Callable[[Answer], Answer]


@dataclass(frozen=True)
class FirstNumbers:
    """What a first step says: no number that the error depends on is below `least`, and no mean is
    farther from the middle of its bounds than `reaches` says. `typical` is the least number itself.
    """

    least: float
    typical: float
    reaches: dict[str, float]

    @classmethod
    def of(cls, mechanism: TableMechanism, answer: Answer, missing: float) -> FirstNumbers:
        """The numbers of an answer; one of them is wrong with probability at most `missing`."""
        estimates: dict[str, list[ColumnEstimate]] = {}
        for estimate in column_estimates(mechanism):
            estimates.setdefault(estimate.aggregate.name, []).append(estimate)
        counted = {
            name: column for name, column in answer.columns.items() if estimates[name][0].form is not None
        }
        # For means, a half is for the numbers of rows, and a half for the means themselves.
        beta = missing / 2 if len(counted) < len(answer.columns) else missing
        ends: list[float] = []
        for name, column in counted.items():
            ends += _lower_ends(mechanism, estimates[name], list(column.values), beta)
        values = [value for column in counted.values() for value in column.values]
        means = [name for name in answer.columns if name not in counted]
        reaches = {name: max(_mean_reach(of, answer, beta) for of in estimates[name]) for name in means}
        return cls(min(ends, default=0.0), float(min(values, default=0.0)), reaches)


def rows_name(mean: str) -> str:
    """The name of the column of a first step that counts the rows of a mean."""
    return f"rows of {mean}"


def _lower_ends(
    mechanism: TableMechanism, estimates: list[ColumnEstimate], values: list[float], beta: float
) -> list[float]:
    """Numbers that the exact ones are below with probability at most β, from released ones alone."""
    # An answer that the ledger stored has no function for intervals, and must give the same number.
    selection, name = mechanism.selection, estimates[0].aggregate.name
    if selection is not None and name in selection.estimates:
        fine = selection.fine
        return [
            low / fine for low in selection.lower_ends([round(value * fine) for value in values], 1 - beta)
        ]
    # The noise is symmetric, so one side is missed half as often as both. Counts may be rounded.
    half = max(
        each.noise.half_width(each.form or {}, min(2 * beta, 0.5)) + (0.5 if each.whole else 0.0)
        for each in estimates
    )
    return [value - half for value in values]


def _mean_reach(estimate: ColumnEstimate, answer: Answer, beta: float) -> float:
    """How far from the middle the means can be, except with probability β (steps.proof.md, § 2)."""
    name, half = estimate.aggregate.name, float(estimate.moments.half)
    widest, reach = estimate.widest(beta), 0.0
    for mean, rows in zip(answer.columns[name].values, answer.columns[rows_name(name)].values, strict=True):
        # A count that is a whole number was rounded.
        counted = rows - (0.5 if estimate.whole else 0.0)
        off = abs(mean - float(estimate.moments.middle))
        reach = max(reach, off + widest / counted if counted >= 1 else half)
    return min(half, reach)


@dataclass(frozen=True)
class ErrorSteps:
    """The steps from a question to its answer.

    `first` is the question of the first steps. `spend_for(numbers, averaged)` is the least spend of
    the question if the numbers are such, alone or averaged with the first step. `is_precise` says
    whether a first step at some spend answers the question by itself. All first steps together say
    something wrong with probability at most `beta`.
    """

    question: Question
    first: Question
    allowed: float
    # Whether the cost of the first step was stated, so that there is one.
    is_stated: bool
    most_before: float
    beta: float
    compile_first: Callable[[Spend], TableMechanism]
    compile_question: Callable[[Spend], TableMechanism]
    spend_for: Callable[[FirstNumbers, TableMechanism | None], Spend]
    is_precise: Callable[[TableMechanism, FirstNumbers, float], bool]

    def step(self, pilots: tuple[Spend, ...]) -> TwoSteps:
        """The last of these first steps; those before it are paid."""
        check_leaves_something(pilots, self.allowed)
        return TwoSteps(
            self.first, pilots[-1], lambda answer: self._after(pilots, answer), self.allowed, len(pilots) - 1
        )

    def _after(self, pilots: tuple[Spend, ...], answer: Answer) -> LastStep | TwoSteps:
        """What comes after a first step: another one that saves more than it costs, or the last."""
        missing = self.beta if self.is_stated else self.beta * 0.5 ** len(pilots)
        mechanism = self.compile_first(pilots[-1])
        numbers, before = FirstNumbers.of(mechanism, answer, missing), cost_of_steps(pilots)
        if numbers.least <= 0:
            greater = (*pilots, next_pilot(pilots))
            if self._may_ask(greater):
                return self.step(greater)
            raise too_few_rows_error(before)
        if self.is_precise(mechanism, numbers, missing):
            return LastStep(None, self._first_is_answer)
        # A first step that is the last of several because of its own noise is not averaged.
        averaged = mechanism if self.is_stated and self._can_average(mechanism) else None
        spend = self.spend_for(numbers, averaged)
        pilot = best_pilot(pilots[-1].size, numbers, spend.size)
        if pilot is not None and self._may_ask((*pilots, pilot)):
            return self.step((*pilots, pilot))
        check_allowed(spend, self.allowed, before)
        if averaged is None:
            return LastStep(spend, lambda last: last)
        return LastStep(spend, lambda last: average_releases(answer, last))

    def _may_ask(self, pilots: tuple[Spend, ...]) -> bool:
        """Whether there may be these first steps, and they leave something to the last."""
        return not self.is_stated and may_follow(pilots, self.most_before, self.allowed)

    def _first_is_answer(self, answer: Answer) -> Answer:
        """The answer that a first step has given already."""
        columns = {aggregate.name: answer.columns[aggregate.name] for aggregate in self.question.aggregates}
        return replace(answer, columns=columns, question=self.question.text)

    def _can_average(self, mechanism: TableMechanism) -> bool:
        """Whether the last step releases the same numbers as this first one, at any of its costs."""
        spend = mechanism.spend
        same = [each.name for each in self.first.aggregates] == [
            each.name for each in self.question.aggregates
        ]
        linear = all(estimate.form is not None for estimate in column_estimates(mechanism))
        totals = all(isinstance(stage, Totals) for stage in mechanism.stages)
        if not (same and linear and totals and spend.is_pure and mechanism.selection is None):
            return False
        ends = (Spend(epsilon=spend.size / FINER), Spend(epsilon=self.allowed))
        return all(_sums(self.compile_question(end)) == _sums(mechanism) for end in ends)


def average_releases(first: Answer, last: Answer) -> Answer:
    """The weighted means of two releases of the same linear numbers (steps.proof.md, § 3)."""
    columns = {}
    for name, column in last.columns.items():
        other = first.columns[name]
        assert column.linear is not None
        assert other.linear is not None
        nodes = []
        for row, values in enumerate(zip(other.values, column.values, strict=True)):
            forms = other.linear.form(row), column.linear.form(row)
            share = _first_share(*map(deviation, forms))
            shares = share, 1 - share
            value = sum(part * value for part, value in zip(shares, values, strict=True))
            nodes.append(Linear(value, add_forms(*zip(shares, forms, strict=True))))
        averaged = column_of_nodes(nodes, column.text, whole=False, nonnegative=column.nonnegative)
        columns[name] = replace(averaged, whole=column.whole)
    guarantees = [answer.guarantee for answer in (first, last) if answer.guarantee is not None]
    return replace(
        last,
        columns=columns,
        notes=(*last.notes, _AVERAGED_NOTE),
        guarantee=guarantees[0] + guarantees[1] if len(guarantees) == 2 else None,
    )


def averaged_half_width(first: ColumnEstimate | None, last: ColumnEstimate, beta: float) -> float:
    """A bound on the noise of a linear number, averaged with a first release if there is one, that
    fails with probability at most β.
    """
    assert last.form is not None
    if first is None:
        return last.noise.half_width(last.form, beta)
    assert first.form is not None
    share = _first_share(first.noise.deviation(first.form), last.noise.deviation(last.form))
    terms = []
    for part, each in ((share, first), (1 - share, last)):
        assert isinstance(each.noise, NoiseVector), "only totals are averaged"
        for place, weight in (each.form or {}).items():
            terms.append((part * float(abs(weight)), each.noise.distributions[place]))
    return tail_bound_of_sum(terms, beta)


def _first_share(first: float, last: float) -> float:
    """The share of a first release in an average, from the deviations of both noises."""
    ratio = _BESIDE_LAST * last / first
    return ratio / (1 + ratio)


def check_leaves_something(pilots: tuple[Spend, ...], allowed: float) -> None:
    """Refuse first steps that leave nothing to the last."""
    before = cost_of_steps(pilots)
    if allowed <= before:
        raise _pilot_takes_all_error(before, allowed)


def next_pilot(pilots: tuple[Spend, ...]) -> Spend:
    """The first step after one that shows too few rows."""
    return _round_spend(pilots[-1].size * _GROWTH)


def may_follow(pilots: tuple[Spend, ...], most_before: float, allowed: float) -> bool:
    """Whether there may be these first steps, and they leave something to the last."""
    cost = cost_of_steps(pilots)
    return cost <= most_before and cost < allowed


def best_pilot(epsilon: float, numbers: FirstNumbers, cost: float) -> Spend | None:
    """A further first step, if it is expected to save more than it costs."""
    best, total = _best_pilot(epsilon, numbers, cost)
    return _round_spend(best) if total < _WORTH * cost else None


def _best_pilot(epsilon: float, numbers: FirstNumbers, cost: float) -> tuple[float, float]:
    """The ε of a further first step, and what it and the last step are expected to cost then.

    At a first step p no number is below t - w/p, and the last step costs about in proportion to the
    inverse of that.
    """
    typical, width = numbers.typical, (numbers.typical - numbers.least) * epsilon
    scale = cost * numbers.least
    best = (width + math.sqrt(scale * width)) / typical
    return best, best + scale / (typical - width / best) if best > epsilon else math.inf


def column_estimates(mechanism: TableMechanism) -> list[ColumnEstimate]:
    """How every column is read off the sums."""
    described = mechanism.plan.described_stages
    stages = [stage for stage in described if isinstance(stage, Totals | KeySelection)]
    tables = [
        estimates
        for stage in described
        if isinstance(stage, CubeStage)
        for estimates in stage.shown_estimates()
    ]
    return [
        estimate
        for estimates in (*(stage.estimates for stage in stages), *tables)
        for estimate in estimates.values()
    ]


def _sums(mechanism: TableMechanism) -> list[BoundedSums]:
    return [stage.sums for stage in mechanism.stages if isinstance(stage, Totals)]


def check_allowed(spend: Spend, most: float | None, before: float = 0.0) -> Spend:
    """The spend, if it costs at most what is allowed, together with what was paid before."""
    # Compared as decimals, because that is how both are stated.
    needed = _decimal(spend.size) + _decimal(before)
    if most is None or needed <= _decimal(most):
        return spend
    total = f"{_round_up(needed)!r}"
    both_steps = f", which with the ε = {before:g} of the first step is ε = {total}" if before else ""
    retry = "; with the same key= the first step is not paid again" if before else ""
    raise RefusedQuestion(
        "DP707",
        f"this error needs ε = {spend.size:g}{both_steps}, but at most {most:g} is allowed.",
        why="a small error may cost more than expected; nothing more was drawn.",
        fix=f"epsilon={total}   or a greater error{retry}",
    )


def _round_spend(epsilon: float) -> Spend:
    return Spend(epsilon=float(f"{epsilon:.3g}"))


def cost_of_steps(pilots: tuple[Spend, ...]) -> float:
    """What first steps cost together."""
    return float(sum(_decimal(spend.size) for spend in pilots))


def _decimal(value: float) -> Decimal:
    """A number as the decimal that it prints as, which is what the user wrote."""
    return Decimal(repr(value))


def _round_up(value: Decimal) -> float:
    """A number rounded up to six digits."""
    return float(Context(prec=6, rounding=ROUND_CEILING).plus(value))


def most_allowed(stated: float) -> float:
    """The most that all steps cost together, if only the first is stated."""
    return float(TIMES * _decimal(stated))


def _pilot_takes_all_error(first: float, most: float) -> RefusedQuestion:
    return RefusedQuestion(
        "DP707",
        f"the first step costs ε = {first:g}, but at most {most:g} is allowed for all steps.",
        why="the first step determines the cost of the second, which needs a part of the budget too.",
        fix=f"epsilon={_round_up(TIMES * _decimal(first))!r}   or a smaller  pilot=",
    )


def too_few_rows_error(before: float) -> RefusedQuestion:
    return RefusedQuestion(
        "DP706",
        "the first step does not show that every group has enough rows for this error.",
        why="the error of a mean depends on the number of rows, and a percentage on the number; nothing more was drawn "
        f"than for the ε = {before:g} of the first steps.",
        fix="a greater error, fewer groups, or a greater  pilot=",
    )
