# SPDX-License-Identifier: Apache-2.0
"""The least cost of an answer with a stated margin of error.

    least_spend(question, dataset, error="±50")        # a Spend: the error of counts and sums is known without data
    least_spend(question, dataset, error="±0.5")       # of a mean: TwoSteps, because its error depends on the count
    least_spend(question, dataset, error="±2 %")       # TwoSteps: a percentage of a number that is not known yet

**Guarantee.** With the stated confidence, a number of the answer is within the error of the exact
one (of the bounded rows). If the cost depends on data, a first step releases noisy numbers, and
the cost of the second step is a function of that release. Such a sequence needs a privacy filter as
its limit, because the second step is not fixed in advance.

If no first step is stated and the keys are public, the first steps are small, and each has the ε
with which it and what follows are expected to cost least. What they release is used: a first step
that is precise enough is the answer, and no second is paid; counts and sums of the last one are
averaged with those of the answer, if its cost was stated. Where only means are asked for, every
release says itself whether it is precise enough, and first steps only predict what that costs
(`mean_steps.py`, steps.proof.md).

What cannot be guaranteed is refused: the error of a quantile in values, bias from clipping, which
groups are shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from discreet import check
from discreet.errors import BadParameter, RefusedQuestion
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.tables.ask.question import Aggregate, Question
from discreet.tables.ask.released import ReleasedExpression, ReleasedOperation, read_parts
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.compile import TableMechanism, compile_question
from discreet.tables.plan.mean_steps import MeanSteps
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.steps import (
    FINER,
    PILOT_BETA,
    ErrorSteps,
    FirstNumbers,
    TwoSteps,
    averaged_half_width,
    check_allowed,
    column_estimates,
    most_allowed,
    rows_name,
)

__all__ = ["least_spend", "read_error"]

_WRITTEN = re.compile(r"\s*(?:±|\+/?-)?\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*(%?)\s*")
#: The range in which an ε is searched.
_LEAST, _MOST = 1e-6, 1e3
#: The aggregates whose error does not depend on data.
_FIXED = ("count", "count_of", "units", "distinct", "sum")
#: The most ε of all first steps, if none is stated, and the ε of the first of them.
_PILOT_EPSILON, _FIRST_PILOT = 0.05, 0.0005
#: The share of the probability of missing the error that is left to the count of a mean.
_COUNT_BETA = 0.05


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
    finds_keys = question.workload is not None and any(key.values is None for key in question.keys)
    if finds_keys and delta is not None:
        # The noise of a table depends on how many values of its keys are found.
        raise _unpredictable_error(question.aggregates[0])
    if any(_is_curved(column.of) for column in question.outputs):
        # An error of the parts would be another one than that of the number asked for.
        raise _unpredictable_error(question.aggregates[0])

    def compile_at(spend: Spend, asked: Question = question) -> TableMechanism:
        return compile_question(asked, dataset, spend, cap)

    means = any(aggregate.kind == "mean" for aggregate in question.aggregates)
    if not is_relative and not means:
        spend = _search(lambda spend: _greatest_error(compile_at(spend), 1 - beta) <= size, delta)
        return check_allowed(spend, most)
    return _steps(
        question, compile_at, size, beta, is_relative=is_relative, delta=delta, pilot=pilot, most=most
    )


def _steps(
    question: Question,
    compile_at: Callable[..., TableMechanism],
    size: float,
    beta: float,
    *,
    is_relative: bool,
    delta: float | None,
    pilot: Spend | None,
    most: float | None,
) -> TwoSteps:
    """The first of the steps to a question whose cost depends on data."""
    private_keys = question.combinations is None and any(key.values is None for key in question.keys)
    first = _pilot_question(question, is_relative=is_relative)
    is_stated = pilot is not None or private_keys
    if pilot is None:
        pilot = (
            Spend(epsilon=_PILOT_EPSILON, delta=delta) if private_keys else _least_pilot(first, compile_at)
        )
    stated = pilot.size if is_stated else _PILOT_EPSILON
    allowed = most_allowed(stated) if most is None else most
    # A first step that counts only the means of a question answers no other part of it.
    answers_all = not is_relative and len(first.aggregates) == 2 * len(question.aggregates)
    if answers_all and not is_stated:
        return MeanSteps(
            question,
            first,
            size,
            allowed,
            stated,
            compile_first=lambda spend: compile_at(spend, first),
            spend_for=lambda margin: _search(lambda spend: margin(compile_at(spend)) <= size, delta),
        ).start(pilot, beta)

    def is_enough(mechanism: TableMechanism, numbers: FirstNumbers, beta: float) -> bool:
        if is_relative:
            return _greatest_error(mechanism, 1 - beta) <= size * numbers.least
        return answers_all and _worst_error(mechanism, numbers, beta, share=1.0) <= size

    def spend_for(numbers: FirstNumbers, averaged: TableMechanism | None) -> Spend:
        def is_precise(spend: Spend) -> bool:
            if is_relative:
                margin = _greatest_error(compile_at(spend), 1 - beta * (1 - PILOT_BETA), averaged)
                return margin <= size * numbers.least
            return _worst_error(compile_at(spend), numbers, beta, share=1 - PILOT_BETA) <= size

        return _search(is_precise, delta, least=averaged.spend.size / FINER if averaged else _LEAST)

    return ErrorSteps(
        question,
        first,
        allowed=allowed,
        most_before=stated,
        is_stated=is_stated,
        beta=beta * PILOT_BETA,
        compile_first=lambda spend: compile_at(spend, first),
        compile_question=compile_at,
        spend_for=spend_for,
        is_precise=is_enough,
    ).step((pilot,))


def _least_pilot(first: Question, compile_at: Callable[[Spend, Question], object]) -> Spend:
    """The least first step whose noise can be drawn."""
    epsilon = _FIRST_PILOT
    while True:
        try:
            compile_at(Spend(epsilon=epsilon), first)
        except BadParameter:
            if epsilon > _MOST:
                raise
        else:
            return Spend(epsilon=epsilon)
        epsilon *= 4


def _greatest_error(
    mechanism: TableMechanism, confidence: float, averaged: TableMechanism | None = None
) -> float:
    """The greatest margin of error of a count or a sum, averaged with a first release of it or not."""
    if averaged is None:
        return max(margin for margin in mechanism.error(confidence).values() if margin is not None)
    firsts = {estimate.aggregate.name: estimate for estimate in column_estimates(averaged)}
    return max(
        averaged_half_width(firsts[estimate.aggregate.name], estimate, 1 - confidence)
        for estimate in column_estimates(mechanism)
    )


def _worst_error(mechanism: TableMechanism, numbers: FirstNumbers, beta: float, *, share: float) -> float:
    """The error of each count, sum or mean, except with a share of the probability β; of a mean if
    the first numbers are right.
    """
    worst = 0.0
    for estimate in column_estimates(mechanism):
        if estimate.form is not None:
            if not estimate.aggregate.name.startswith(rows_name("")):
                worst = max(worst, estimate.noise.half_width(estimate.form, beta * share))
            continue
        # For a mean q(θ) / (N − q_N).
        room = numbers.least - estimate.noise.half_width(estimate.moments.count or {}, beta * _COUNT_BETA)
        reach = numbers.reaches.get(estimate.aggregate.name)
        widest = estimate.widest(beta * (share - _COUNT_BETA), reach)
        worst = max(worst, widest / room if room > 0 else math.inf)
    return worst


def _search(is_precise: Callable[[Spend], bool], delta: float | None, least: float = _LEAST) -> Spend:
    """The least ε from `least` on, to four digits and rounded up, at which the error is small
    enough.
    """

    def is_enough(epsilon: float) -> bool:
        try:
            return is_precise(Spend(epsilon=epsilon, delta=delta))
        except BadParameter:
            # The noise of so small an ε cannot be drawn.
            return False

    low, high = least, _MOST
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
    means = [mean for mean in question.aggregates if mean.kind == "mean"]
    counts = [Aggregate("count_of", mean.of, rows_name(mean.name), f"COUNT of {mean.text}") for mean in means]
    return replace(question, aggregates=(*means, *counts), **plain)  # type: ignore[arg-type]


def _is_curved(of: ReleasedExpression) -> bool:
    """Whether a number is neither a part of the answer nor arithmetic on such parts."""
    curved = isinstance(of, ReleasedOperation) and of.op in {"sqrt", "ln", "exp", "power", "within", "surely"}
    return curved or any(map(_is_curved, read_parts(of)))


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
