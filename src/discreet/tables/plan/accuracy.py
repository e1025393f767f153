# SPDX-License-Identifier: Apache-2.0
"""The least that an answer with a stated error costs.

    least_spend(question, dataset, error="±50")        # a Spend: counts and sums err as they will, before any data
    least_spend(question, dataset, error="±0.5")       # of a mean: TwoSteps, because its error depends on the count
    least_spend(question, dataset, error="±2 %")       # TwoSteps: two percent of what is not known yet

**Guarantee.** With the stated confidence a number of the answer is within the error of its exact one (of the bounded
rows). Where that needs something of the data, it is bought first, with noise, and the second cost is a function of
what was released: such a sequence belongs in a ledger that is a filter, because its second step is not fixed in advance.

What cannot be promised is refused: the error of a quantile in values, what clipping takes away, which groups are shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from discreet import check
from discreet.errors import BadParameter, RefusedQuestion
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Aggregate, Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.compile import TableMechanism, compile_question
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.selection import KeySelection
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.totals import Totals

__all__ = ["TwoSteps", "least_spend", "read_error"]

_WRITTEN = re.compile(r"\s*(?:±|\+/?-)?\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*(%?)\s*")
_LEAST, _MOST = 1e-6, 1e3  # of an ε that is searched
_FIXED = ("count", "count_of", "units", "sum")
_FIRST = 0.05  # the ε of the first of two steps, if none is stated
_TIMES = 20  # both steps together cost so many times the first at most, if nothing else is stated


@dataclass(frozen=True)
class TwoSteps:
    """A small question first, whose noisy answer says what the real one costs.

    Release `question` at `pilot`; `then(answer)` is what the question that was asked may then be released at. Both together
    cost `most` (an ε) at most: where more is needed, `then` refuses.
    """

    question: Question
    pilot: Spend
    then: Callable[[Answer], Spend]
    most: float


def read_error(error: Any) -> tuple[float, bool]:
    """A half-width, and whether it is a share: "±50" is (50.0, False), "±2 %" is (0.02, True).

    >>> read_error("±2 %"), read_error(50)
    ((0.02, True), (50.0, False))
    """
    if isinstance(error, str):
        found = _WRITTEN.fullmatch(error)
        if found is not None and float(found[1]) > 0:
            size, share = float(found[1]), bool(found[2])
            return (size / 100, True) if share else (size, False)
    elif not isinstance(error, bool) and isinstance(error, int | float):
        return check.positive(error=error), False
    raise BadParameter(
        "DP104",
        "error must say how far an answer may be off.",
        why="the least cost is searched that keeps it.",
        fix='error="±50"   or  error="±2 %"   (on the command line:  --error ±50)',
    )


def least_spend(
    question: Question,
    dataset: Dataset,
    error: Any,
    *,
    confidence: float = CONFIDENCE,
    delta: float | None = None,
    pilot: Spend | None = None,
    epsilon: float | None = None,
    cap: int | None = None,
) -> Spend | TwoSteps:
    """What a question with that error costs; `delta` allows Gaussian noise, `pilot` pays for the first of two steps.

    `epsilon` is the most that it may cost, both steps together. Without it one step may cost anything, because that is known
    before it is paid, and two steps may cost twenty times the first. (A first step that is stated by ρ counts as √2ρ.)
    """
    most = None if epsilon is None else check.moderate(epsilon=epsilon)
    size, share = read_error(error)
    beta = 1 - check.inner_probability(confidence=confidence)
    for one in question.aggregates:
        if one.kind not in {*_FIXED, "mean"}:
            raise _unpredictable_error(one)

    def compile_at(spend: Spend, asked: Question = question) -> TableMechanism:
        return compile_question(asked, dataset, spend, cap)

    means = any(one.kind == "mean" for one in question.aggregates)
    if not share and not means:
        return _check_allowed(
            _search(lambda spend: _errors(compile_at(spend), 1 - beta) <= size, delta), most
        )
    first = _pilot_question(question, share=share)
    paid = pilot or Spend(epsilon=_FIRST, delta=delta)
    allowed = float(_TIMES * _decimal(paid.size)) if most is None else most
    if allowed <= paid.size:
        raise _pilot_takes_all_error(paid.size, allowed)

    def then(answer: Answer) -> Spend:
        least = _least_lower_end(compile_at(paid, first), answer, 1 - beta / 3)
        if share:
            found = _search(lambda spend: _errors(compile_at(spend), 1 - beta * 2 / 3) <= size * least, delta)
        else:
            found = _search(lambda spend: _worst_error(compile_at(spend), least, beta / 3) <= size, delta)
        return _check_allowed(found, allowed, paid.size)

    return TwoSteps(first, paid, then, allowed)


def _check_allowed(found: Spend, most: float | None, before: float = 0.0) -> Spend:
    """A cost, if with what was paid before it is not more than was allowed; compared as decimals, as they are stated."""
    needed = _decimal(found.size) + _decimal(before)
    if most is None or needed <= _decimal(most):
        return found
    total = f"{_round_up(needed)!r}"
    paid = f", with the first step ε = {total} in all" if before else ""
    again = "; with the same key= the first step is not paid again" if before else ""
    raise RefusedQuestion(
        "DP707",
        f"this error needs ε = {found.size:g}{paid}, and at most {most:g} was allowed.",
        why="what an error costs may be much more than it is worth; nothing more was drawn.",
        fix=f"epsilon={total}   or a greater error{again}",
    )


def _pilot_takes_all_error(first: float, most: float) -> RefusedQuestion:
    return RefusedQuestion(
        "DP707",
        f"the first of two steps costs ε = {first:g}, and at most {most:g} was allowed for both.",
        why="the first step says what the second has to cost, and something has to be left for it.",
        fix=f"epsilon={_round_up(_TIMES * _decimal(first))!r}   or a smaller  pilot=",
    )


def _decimal(value: float) -> Decimal:
    """A number as the decimal that it prints as, which is what its author meant."""
    return Decimal(repr(value))


def _round_up(value: Decimal) -> float:
    """Six digits of it, rounded up."""
    return float(Context(prec=6, rounding=ROUND_CEILING).plus(value))


def _errors(mechanism: TableMechanism, confidence: float) -> float:
    """The greatest error of a count or a sum."""
    return max(off for off in mechanism.error(confidence).values() if off is not None)


def _worst_error(mechanism: TableMechanism, rows: float, beta: float) -> float:
    """How far a mean of that many rows is off, at most, save with probability 2β: q(H) / (N − q_N); or a count or sum."""
    worst = 0.0
    for estimate in _estimates(mechanism):
        if estimate.form is not None:
            worst = max(worst, estimate.noise.half_width(estimate.form, 2 * beta))
            continue
        room = rows - estimate.noise.half_width(estimate.moments.count or {}, beta)
        worst = max(worst, estimate.widest(beta) / room if room > 0 else math.inf)
    return worst


def _estimates(mechanism: TableMechanism) -> list[ColumnEstimate]:
    parts = (part for part in mechanism.plan.described_stages if isinstance(part, Totals | KeySelection))
    return [one for part in parts for one in part.estimates.values()]


def _search(keeps: Callable[[Spend], bool], delta: float | None) -> Spend:
    """The least ε, to four digits and rounded up, at which the error is kept."""

    def is_kept(epsilon: float) -> bool:
        try:
            return keeps(Spend(epsilon=epsilon, delta=delta))
        except BadParameter:  # so little ε that its noise cannot be drawn
            return False

    low, high = _LEAST, _MOST
    if not is_kept(high):
        raise _unreachable_error()
    while high > 1.00001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_kept(middle) else (middle, high)
    digit = Decimal(1).scaleb(math.floor(math.log10(high)) - 3)
    digits = math.ceil(Decimal(high) / digit)
    while not is_kept(float(digits * digit)):
        digits += 1
    return Spend(epsilon=float(digits * digit), delta=delta)


def _pilot_question(question: Question, *, share: bool) -> Question:
    """What has to be known first: the same numbers, or the counts that means are divided by."""
    plain = {"outputs": (), "having": None, "order": (), "limit": None}
    if share:
        for one in question.aggregates:
            if one.kind == "mean" or (one.of is not None and one.kind == "sum" and one.of.type.low < 0):
                raise _unpredictable_error(one)
        return replace(question, **plain)  # type: ignore[arg-type]
    counts = {one.of: one for one in question.aggregates if one.kind == "mean"}
    asked = tuple(Aggregate("count_of", of, one.name, f"COUNT of {one.text}") for of, one in counts.items())
    return replace(question, aggregates=asked, **plain)  # type: ignore[arg-type]


def _least_lower_end(mechanism: TableMechanism, answer: Answer, confidence: float) -> float:
    """The least lower end of all intervals, from the numbers alone: the same for an answer that is shown again."""
    halves, selection = mechanism.error(confidence), mechanism.selection
    ends: list[float] = []
    for name, column in answer.columns.items():
        if selection is not None and name in selection.estimates:
            ends += selection.lower_ends([round(value) for value in column.values], confidence)
        else:
            ends += [value - (halves[name] or math.inf) for value in column.values]
    least = min(ends, default=0.0)
    if least > 0:
        return float(least)
    raise RefusedQuestion(
        "DP706",
        "the first step does not show that every group has enough rows for this error.",
        why="the error of a mean, and a share of a number, depend on how large it is; nothing more was drawn.",
        fix="a greater error, fewer groups, or a greater  pilot=",
    )


def _unpredictable_error(one: Aggregate) -> RefusedQuestion:
    return RefusedQuestion(
        "DP706",
        f"the error of {one.text or one.kind} cannot be stated in advance in this form.",
        why="it depends on where the data lie, and a promise must hold for all data.",
        fix="epsilon=… instead of error=…; the answer shows an interval or a rank",
    )


def _unreachable_error() -> BadParameter:
    return BadParameter(
        "DP102",
        "no reasonable epsilon keeps an error as small as that.",
        why="the noise of one unit is already more.",
        fix="a greater error, or fewer groups: each has noise of its own",
    )
