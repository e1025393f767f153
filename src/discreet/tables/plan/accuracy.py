# SPDX-License-Identifier: Apache-2.0
"""The least cost of an answer with a stated margin of error.

    least_spend(question, dataset, error="±50")        # a Spend: the error of counts and sums is known without data
    least_spend(question, dataset, error="±0.5")       # of a mean: TwoSteps, because its error depends on the count
    least_spend(question, dataset, error="±2 %")       # TwoSteps: a percentage of a number that is not known yet

**Guarantee.** With the stated confidence, a number of the answer is within the error of the exact
one (of the bounded rows). If the cost depends on data, a first step releases a noisy number, and
the cost of the second step is a function of that release. Such a sequence needs a privacy filter as
its limit, because the second step is not fixed in advance.

If no first step is stated and the keys are public, the first step is the smallest of a few, each at
four times the ε of the one before. They stop as soon as a more precise one would cost more than it
saves.

What cannot be guaranteed is refused: the error of a quantile in values, bias from clipping, which
groups are shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal

from discreet import check
from discreet.errors import BadParameter, RefusedQuestion
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Aggregate, Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.compile import TableMechanism, compile_question
from discreet.tables.plan.cube import CubeStage
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.selection import KeySelection
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.totals import Totals

__all__ = ["TwoSteps", "least_spend", "read_error"]

_WRITTEN = re.compile(r"\s*(?:±|\+/?-)?\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*(%?)\s*")
#: The range in which an ε is searched.
_LEAST, _MOST = 1e-6, 1e3
#: The aggregates whose error does not depend on data.
_FIXED = ("count", "count_of", "units", "distinct", "sum")
#: The most ε of all steps before the last, if none is stated, and that of the first of them.
_PILOT_EPSILON, _FIRST_PILOT, _GROWTH = 0.05, 0.0005, 4
#: All steps together cost at most this many times a stated first one.
_TIMES = 20
#: The share of the probability of missing the error that is left to the first steps, and to the
#: count of a mean. Both are small, because a count is much more precise than a mean.
_PILOT_BETA, _COUNT_BETA = 0.05, 0.05


@dataclass(frozen=True)
class TwoSteps:
    """A small question whose noisy answer determines the cost of the real one.

    Release `question` at `pilot`; `then(answer)` is the spend of the real question, or the next
    small question. All together cost at most `most` (an ε); if more is needed, `then` refuses.
    `number` counts the steps, from 0.
    """

    question: Question
    pilot: Spend
    then: Callable[[Answer], Spend | TwoSteps]
    most: float
    number: int = 0


def read_error(error: object) -> tuple[float, bool]:
    """A half-width, and whether it is relative: "±50" is (50.0, False), "±2 %" is (0.02, True).

    >>> read_error("±2 %"), read_error(50)
    ((0.02, True), (50.0, False))
    """
    if isinstance(error, str):
        written = _WRITTEN.fullmatch(error)
        if written is not None and float(written[1]) > 0:
            size, is_percent = float(written[1]), bool(written[2])
            return (size / 100, True) if is_percent else (size, False)
    elif not isinstance(error, bool) and isinstance(error, int | float):
        return check.positive(error=error), False
    raise BadParameter(
        "DP104",
        'error must be a margin of error, such as 50 or "±2 %".',
        why="the query gets the least cost at which its error is within this margin.",
        fix='error="±50"   or  error="±2 %"   (on the command line:  --error ±50)',
    )


def least_spend(
    question: Question,
    dataset: Dataset,
    error: str | float,
    *,
    confidence: float = CONFIDENCE,
    delta: float | None = None,
    pilot: Spend | None = None,
    epsilon: float | None = None,
    cap: int | None = None,
) -> Spend | TwoSteps:
    """The cost of a question with that error; `delta` allows Gaussian noise, `pilot` pays for the
    first of two steps.

    `epsilon` is the greatest cost of both steps together. Without it, one step may cost anything,
    because its cost is known before it is paid, and two steps may cost twenty times the first. (A
    first step that is stated by ρ counts as √2ρ.)
    """
    most = None if epsilon is None else check.moderate(epsilon=epsilon)
    size, is_relative = read_error(error)
    beta = 1 - check.inner_probability(confidence=confidence)
    for aggregate in question.aggregates:
        if aggregate.kind not in {*_FIXED, "mean"}:
            raise _unpredictable_error(aggregate)

    def compile_at(spend: Spend, asked: Question = question) -> TableMechanism:
        return compile_question(asked, dataset, spend, cap)

    means = any(aggregate.kind == "mean" for aggregate in question.aggregates)
    if not is_relative and not means:
        spend = _search(lambda spend: _greatest_error(compile_at(spend), 1 - beta) <= size, delta)
        return _check_allowed(spend, most)
    private_keys = question.combinations is None and any(key.values is None for key in question.keys)
    first = _pilot_question(question, is_relative=is_relative)
    if pilot is not None or private_keys:
        pilots = [pilot or Spend(epsilon=_PILOT_EPSILON, delta=delta)]
    else:
        pilots = _pilot_ladder(lambda spend: compile_at(spend, first))
    stated = _PILOT_EPSILON if pilot is None else pilots[0].size

    def spend_for(least: float) -> Spend:
        def is_precise(spend: Spend) -> bool:
            if is_relative:
                return _greatest_error(compile_at(spend), 1 - beta * (1 - _PILOT_BETA)) <= size * least
            return _worst_error(compile_at(spend), least, beta) <= size

        return _search(is_precise, delta)

    return _Steps(
        first,
        tuple(pilots),
        allowed=float(_TIMES * _decimal(stated)) if most is None else most,
        beta=beta * _PILOT_BETA,
        compile_pilot=lambda spend: compile_at(spend, first),
        spend_for=spend_for,
    ).step(0)


@dataclass(frozen=True)
class _Steps:
    """The steps to a stated error: `pilots` until a count is precise enough, and then the question.

    `spend_for(least)` is the spend of the question if no number that it depends on is below
    `least`. All pilots together miss such a number with probability at most `beta`.
    """

    first: Question
    pilots: tuple[Spend, ...]
    allowed: float
    beta: float
    compile_pilot: Callable[[Spend], TableMechanism]
    spend_for: Callable[[float], Spend]

    def step(self, number: int) -> TwoSteps:
        """One of the pilots."""
        before = self._cost_up_to(number)
        if self.allowed <= before:
            raise _pilot_takes_all_error(before, self.allowed)
        return TwoSteps(
            self.first, self.pilots[number], lambda answer: self._after(number, answer), self.allowed, number
        )

    def _after(self, number: int, answer: Answer) -> Spend | TwoSteps:
        """What comes after a pilot: the question, or a pilot that saves more than it costs."""
        missing = self.beta if len(self.pilots) == 1 else self.beta * 0.5 ** (number + 1)
        mechanism = self.compile_pilot(self.pilots[number])
        least, typical = _least_numbers(mechanism, answer, 1 - missing)
        before, is_last = self._cost_up_to(number), number + 1 == len(self.pilots)
        can_go_on = not is_last and self._cost_up_to(number + 1) < self.allowed
        if least <= 0:
            if can_go_on:
                return self.step(number + 1)
            raise _too_few_rows_error(before)
        spend = self.spend_for(least)
        # The spend is about in proportion to 1/least, so this is what a precise number would save.
        if can_go_on and spend.size * (1 - least / typical) > self.pilots[number + 1].size:
            return self.step(number + 1)
        return _check_allowed(spend, self.allowed, before)

    def _cost_up_to(self, number: int) -> float:
        """What the pilots up to one of them cost together."""
        return float(sum(_decimal(spend.size) for spend in self.pilots[: number + 1]))


def _pilot_ladder(compile_at: Callable[[Spend], object]) -> list[Spend]:
    """First steps, each at four times the ε of the one before, from the least whose noise can be
    drawn.
    """
    pilots: list[Spend] = []
    epsilon, total = _FIRST_PILOT, 0.0
    while total + epsilon <= _PILOT_EPSILON or not pilots:
        try:
            compile_at(Spend(epsilon=epsilon))
        except BadParameter:
            if epsilon > _MOST:
                raise
        else:
            pilots.append(Spend(epsilon=epsilon))
            total += epsilon
        epsilon *= _GROWTH
    return pilots


def _check_allowed(spend: Spend, most: float | None, before: float = 0.0) -> Spend:
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


def _pilot_takes_all_error(first: float, most: float) -> RefusedQuestion:
    return RefusedQuestion(
        "DP707",
        f"the first step costs ε = {first:g}, but at most {most:g} is allowed for all steps.",
        why="the first step determines the cost of the second, which needs a part of the budget too.",
        fix=f"epsilon={_round_up(_TIMES * _decimal(first))!r}   or a smaller  pilot=",
    )


def _decimal(value: float) -> Decimal:
    """A number as the decimal that it prints as, which is what the user wrote."""
    return Decimal(repr(value))


def _round_up(value: Decimal) -> float:
    """A number rounded up to six digits."""
    return float(Context(prec=6, rounding=ROUND_CEILING).plus(value))


def _greatest_error(mechanism: TableMechanism, confidence: float) -> float:
    """The greatest margin of error of a count or a sum."""
    return max(margin for margin in mechanism.error(confidence).values() if margin is not None)


def _worst_error(mechanism: TableMechanism, rows: float, beta: float) -> float:
    """The error of a count, sum or mean of that many rows, except with the part of the probability
    β that first steps leave.
    """
    worst = 0.0
    for estimate in _estimates(mechanism):
        if estimate.form is not None:
            worst = max(worst, estimate.noise.half_width(estimate.form, beta * (1 - _PILOT_BETA)))
            continue
        # For a mean q(H) / (N − q_N).
        room = rows - estimate.noise.half_width(estimate.moments.count or {}, beta * _COUNT_BETA)
        widest = estimate.widest(beta * (1 - _PILOT_BETA - _COUNT_BETA))
        worst = max(worst, widest / room if room > 0 else math.inf)
    return worst


def _estimates(mechanism: TableMechanism) -> list[ColumnEstimate]:
    described = mechanism.plan.described_stages
    stages = [stage for stage in described if isinstance(stage, Totals | KeySelection)]
    tables = [
        stage.estimates(keys)
        for stage in described
        if isinstance(stage, CubeStage)
        for keys in stage.strategy.layout.system.sets
    ]
    return [
        estimate
        for estimates in (*(stage.estimates for stage in stages), *tables)
        for estimate in estimates.values()
    ]


def _search(is_precise: Callable[[Spend], bool], delta: float | None) -> Spend:
    """The least ε, to four digits and rounded up, at which the error is small enough."""

    def is_enough(epsilon: float) -> bool:
        try:
            return is_precise(Spend(epsilon=epsilon, delta=delta))
        except BadParameter:
            # The noise of so small an ε cannot be drawn.
            return False

    low, high = _LEAST, _MOST
    if not is_enough(high):
        raise _unreachable_error()
    while high > 1.00001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    digit = Decimal(1).scaleb(math.floor(math.log10(high)) - 3)
    digits = math.ceil(Decimal(high) / digit)
    while not is_enough(float(digits * digit)):
        digits += 1
    return Spend(epsilon=float(digits * digit), delta=delta)


def _pilot_question(question: Question, *, is_relative: bool) -> Question:
    """The question of the first step: the same numbers, or the counts that means are divided by."""
    plain = {"outputs": (), "having": None, "order": (), "limit": None}
    if is_relative:
        for aggregate in question.aggregates:
            of = aggregate.of
            if aggregate.kind == "mean" or (of is not None and aggregate.kind == "sum" and of.type.low < 0):
                raise _unpredictable_error(aggregate)
        return replace(question, **plain)  # type: ignore[arg-type]
    means = {mean.of: mean for mean in question.aggregates if mean.kind == "mean"}
    counts = tuple(
        Aggregate("count_of", of, mean.name, f"COUNT of {mean.text}") for of, mean in means.items()
    )
    return replace(question, aggregates=counts, **plain)  # type: ignore[arg-type]


def _least_numbers(mechanism: TableMechanism, answer: Answer, confidence: float) -> tuple[float, float]:
    """The least lower end of all intervals and the least number, from the released numbers alone."""
    # An answer that the ledger stored has no function for intervals, and must give the same number.
    halves, selection = mechanism.error(confidence), mechanism.selection
    ends: list[float] = []
    for name, column in answer.columns.items():
        if selection is not None and name in selection.estimates:
            fine = selection.fine
            cells = [round(value * fine) for value in column.values]
            ends += [low / fine for low in selection.lower_ends(cells, confidence)]
        else:
            ends += [value - (halves[name] or math.inf) for value in column.values]
    values = [value for column in answer.columns.values() for value in column.values]
    return min(ends, default=0.0), float(min(values, default=0.0))


def _too_few_rows_error(before: float) -> RefusedQuestion:
    return RefusedQuestion(
        "DP706",
        "the first step does not show that every group has enough rows for this error.",
        why="the error of a mean depends on the number of rows, and a percentage on the number; nothing more was drawn "
        f"than for the ε = {before:g} of the first steps.",
        fix="a greater error, fewer groups, or a greater  pilot=",
    )


def _unpredictable_error(aggregate: Aggregate) -> RefusedQuestion:
    return RefusedQuestion(
        "DP706",
        f"the error of {aggregate.text or aggregate.kind} cannot be stated in advance in this form.",
        why="this error depends on the data, and a margin of error must hold for all data.",
        fix="epsilon=… instead of error=…; the answer shows an interval or a rank",
    )


def _unreachable_error() -> BadParameter:
    return BadParameter(
        "DP102",
        "no reasonable epsilon gives an error as small as that.",
        why="the noise that hides one unit is larger than this error.",
        fix="a greater error, or fewer groups: each has noise of its own",
    )
