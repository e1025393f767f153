# SPDX-License-Identifier: Apache-2.0
"""The steps to a stated margin of error of means: every release says itself whether it is precise
enough.

The margin of a mean is known once it is released, because it depends on the noise and on the noisy
number of rows. So small releases only predict what the error costs; the one that follows is made at
that cost, and is the answer if its own margin is small enough. If it is not, which is rare, another
one follows.

**Guarantee.** With the probability that was asked for, each number of the finished answer is within
its error of the exact one. What a step costs is a function of the answers before it, and of public
parameters.

Why it holds: steps.proof.md, § 2. In short, a release that is accepted at a margin which fails
with probability β' misses with probability β' at most, and the β' of all steps add up to β at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from scipy.special import ndtri

from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.plan.compile import TableMechanism
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.steps import (
    FirstNumbers,
    LastStep,
    TwoSteps,
    best_pilot,
    check_allowed,
    check_leaves_something,
    column_estimates,
    cost_of_steps,
    may_follow,
    next_pilot,
    rows_name,
    too_few_rows_error,
)

__all__ = ["MeanSteps"]

#: The shares of what is left of the probability to miss, for a small step and for one that is likely
#: to be the answer.
_SMALL, _LIKELY = 0.01, 0.95
#: How rarely a release that is likely to be the answer is not precise enough, about.
_RARELY = 0.05
#: How often the margin of a mean is narrowed by how far the mean can be from the middle.
_ROUNDS = 3


@dataclass(frozen=True)
class MeanSteps:
    """The steps from a question about means to its answer.

    `first` asks for the means and for the rows of each. `spend_for(margin)` is the least spend at
    which the margin of a mechanism is at most `size`. All steps together cost at most `allowed`,
    the small ones `most_before`.
    """

    question: Question
    first: Question
    size: float
    allowed: float
    most_before: float
    compile_first: Callable[[Spend], TableMechanism]
    spend_for: Callable[[Callable[[TableMechanism], float]], Spend]

    def start(self, pilot: Spend, beta: float) -> TwoSteps:
        """The first step; all steps together miss with probability at most β."""
        check_leaves_something((pilot,), self.allowed)
        return self._small_step((pilot,), beta)

    def _small_step(self, pilots: tuple[Spend, ...], left: float) -> TwoSteps:
        return self._step(pilots, left * _SMALL, left * (1 - _SMALL))

    def _step(self, pilots: tuple[Spend, ...], beta: float, left: float) -> TwoSteps:
        """The last of these steps, whose margin fails with probability β; `left` is for others."""
        return TwoSteps(
            self.first,
            pilots[-1],
            lambda answer: self._after(pilots, beta, left, answer),
            self.allowed,
            len(pilots) - 1,
        )

    def _after(
        self, pilots: tuple[Spend, ...], beta: float, left: float, answer: Answer
    ) -> LastStep | TwoSteps:
        mechanism, before = self.compile_first(pilots[-1]), cost_of_steps(pilots)
        means = [estimate for estimate in column_estimates(mechanism) if estimate.form is None]
        if max(released_margin(mean, answer, beta) for mean in means) <= self.size:
            return LastStep(None, self._finish)
        numbers = _predict(means, answer)
        if numbers.least <= 1:
            greater = (*pilots, next_pilot(pilots))
            if self._may_follow(greater):
                return self._small_step(greater, left)
            raise too_few_rows_error(before)
        spend = self.spend_for(lambda planned: _likely_margin(planned, numbers, left * _LIKELY))
        pilot = best_pilot(pilots[-1].size, numbers, spend.size)
        if pilot is not None and self._may_follow((*pilots, pilot)):
            return self._small_step((*pilots, pilot), left)
        check_allowed(spend, self.allowed, before)
        return self._step((*pilots, spend), left * _LIKELY, left * (1 - _LIKELY))

    def _may_follow(self, pilots: tuple[Spend, ...]) -> bool:
        return may_follow(pilots, self.most_before, self.allowed)

    def _finish(self, answer: Answer) -> Answer:
        """The answer to the question itself."""
        columns = {aggregate.name: answer.columns[aggregate.name] for aggregate in self.question.aggregates}
        return replace(answer, columns=columns, question=self.question.text)


def released_margin(mean: ColumnEstimate, answer: Answer, beta: float) -> float:
    """How far the exact means can be from the released ones, except with probability β for each."""
    name, half, worst = mean.aggregate.name, float(mean.moments.half), 0.0
    for value, rows in zip(answer.columns[name].values, answer.columns[rows_name(name)].values, strict=True):
        # A count that is a whole number was rounded.
        counted = rows - (0.5 if mean.whole else 0.0)
        if counted < 1:
            return math.inf
        off, reach, margin = abs(value - float(mean.moments.middle)), half, math.inf
        for _ in range(_ROUNDS):
            margin = mean.widest(beta, reach) / counted
            reach = min(half, off + margin)
        worst = max(worst, margin)
    return worst


def _predict(means: list[ColumnEstimate], answer: Answer) -> FirstNumbers:
    """What the numbers of the next release are likely to be, at worst; nothing is proved by it."""
    least, typical, reaches = math.inf, math.inf, {}
    for mean in means:
        name = mean.aggregate.name
        rows = answer.columns[rows_name(name)].values
        deviation = mean.noise.deviation(mean.moments.count or {})
        fewest = min(rows, default=0.0)
        typical = min(typical, fewest)
        least = min(least, fewest - _deviations(len(rows)) * deviation)
        off = max(abs(value - float(mean.moments.middle)) for value in answer.columns[name].values)
        spread = mean.noise.deviation(mean.moments.total or {}) / max(fewest, 1.0)
        reaches[name] = min(off + spread, float(mean.moments.half))
    return FirstNumbers(least, typical, reaches)


def _likely_margin(planned: TableMechanism, numbers: FirstNumbers, beta: float) -> float:
    """The margin that a planned release is likely to have, at most."""
    worst = 0.0
    for mean in column_estimates(planned):
        if mean.form is None:
            rows = numbers.least - mean.noise.deviation(mean.moments.count or {})
            reach = numbers.reaches[mean.aggregate.name]
            # The margin itself is part of how far the mean can be, and is about what is asked for.
            margin = mean.widest(beta, reach) / rows if rows >= 1 else math.inf
            margin = mean.widest(beta, reach + margin) / rows if rows >= 1 else math.inf
            worst = max(worst, margin)
    return worst


def _deviations(groups: int) -> float:
    """The standard deviations by which no count of several groups is off, but rarely."""
    return -float(ndtri(_RARELY / max(groups, 1)))
