# SPDX-License-Identifier: Apache-2.0
"""Answers from the published rows of a stream: single periods, ranges, windows and running totals.

**Guarantee.** Post-processing of published rows and public numbers: every figure here is free. Each
interval contains the exact number of the kept rows with the stated confidence, on its own; with
`together` those of all periods of the stream hold at once, for each group and column.

Why it holds: decoding has no bias, and the noise of a figure is a sum of the noises of its rows
(`noise.py`, `streams/decoding.py`). What would break it: rows of another stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet import check
from discreet.streams.decoding import simultaneous_beta, weights_of_range
from discreet.tables.algebra.sums import GroupKey, sorted_groups
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.arrange import arrange
from discreet.tables.answer.noisy import CONFIDENCE, Noisy, Values
from discreet.tables.streams.plan import StreamPlan
from discreet.tables.streams.row import StreamRow, appearances

__all__ = ["PublishedRows"]

Range = tuple[int, int]


@dataclass(frozen=True)
class PublishedRows:
    """The rows of a stream that were published, from the first one on."""

    plan: StreamPlan
    rows: tuple[StreamRow, ...]

    @cached_property
    def since(self) -> dict[GroupKey, int]:
        """The period in which each group appeared."""
        return appearances(self.plan, self.rows)

    def over(
        self,
        ranges: Sequence[Range],
        *,
        named: bool = True,
        together: bool = False,
        confidence: float = CONFIDENCE,
    ) -> Answer:
        """The sums over ranges of periods, for every group that has figures there.

        With `named` the first and the last day of each range are columns of the answer.
        """
        beta = 1 - check.inner_probability(confidence=confidence)
        if check.flag(together=together):
            beta = simultaneous_beta(beta, self.plan.calendar.periods, gaussian=self.plan.noise == "gaussian")
        parts = [part for ends in ranges for part in self._parts(ends, named=named)]
        names = [aggregate.name for aggregate in self.plan.question.aggregates]
        columns = {
            name: _join([columns[name] for _, columns in parts], beta, self._empty(name)) for name in names
        }
        days = (f"{self.plan.calendar.every}_from", f"{self.plan.calendar.every}_to") if named else ()
        answer = Answer.of(
            keys=[*days, *(key.name for key in self.plan.question.keys)],
            groups=[group for groups, _ in parts for group in groups],
            columns=columns,
            question=self.plan.question.text,
            notes=self._notes(together=together, confidence=confidence),
            guarantee=self.plan.guarantee,
        )
        return self._arrange_columns(answer, len(days))

    def _arrange_columns(self, answer: Answer, days: int) -> Answer:
        """The columns that the question computes; the days of a range stay in front."""
        question = self.plan.question
        if not question.outputs:
            return answer
        arranged = arrange(replace(answer, keys=answer.keys), question)
        fronts = [group[:days] for group in answer.groups]
        groups = [front + group for front, group in zip(fronts, arranged.groups, strict=True)]
        return replace(arranged, keys=answer.keys[:days] + arranged.keys, groups=tuple(groups))

    def _parts(self, ends: Range, *, named: bool) -> Iterable[tuple[list[GroupKey], dict[str, Noisy]]]:
        """The groups of one range with their columns; groups that appeared together have one noise."""
        first, last = ends
        shown = [
            group
            for group, since in self.since.items()
            # What came before a group appeared is in its first figure, so no range begins in between.
            if since <= last and (first == 0 or since == 0 or since < first)
        ]
        days = (self.plan.calendar.edges[first], self.plan.calendar.last_day(last)) if named else ()
        for since in sorted({self.since[group] for group in shown}):
            own = sorted_groups(group for group in shown if self.since[group] == since)
            begin, end = max(first - since, 0), last - since
            estimates = self.plan.estimates(begin, end)
            sums = self._decoded_sums(own, since, begin, end)
            yield (
                [(*days, *group) for group in own],
                {name: estimate.noisy(sums) for name, estimate in estimates.items()},
            )

    def _decoded_sums(self, groups: Sequence[GroupKey], since: int, begin: int, end: int) -> Any:
        """The decoded sums of every coordinate, for groups that appeared in one period."""
        weights = weights_of_range(self.plan.factor, begin, end)
        order = {group: at for at, group in enumerate(self.since)}
        width = len(self.plan.layout.features)
        sums = np.zeros((len(groups), width))
        for at, group in enumerate(groups):
            place = order[group]
            noisy = np.array([self.rows[since + step].noisy[place] for step in range(end + 1)], np.float64)
            sums[at] = weights @ noisy.reshape(-1, width)
        return sums

    def _empty(self, name: str) -> Noisy:
        """The column of an answer without groups."""
        estimate = self.plan.estimates(0, 0)[name]
        return estimate.noisy(np.zeros((0, len(self.plan.layout.features))))

    def _notes(self, *, together: bool, confidence: float) -> list[str]:
        plan, every = self.plan, self.plan.calendar.every
        notes = [plan.reason]
        if not plan.source.one_row_per_unit:
            notes.append(
                f"{plan.participation.describe(plan.unit.protects, every)}; later rows are not counted, so numbers may be "
                "too low. The intervals do not include this bias."
            )
        if plan.entry is not None:
            notes.append(
                f"A group appears in the first {every} with about {plan.entry.threshold} rows or more. Totals contain what came "
                f"before; its other figures begin in the {every} after that. Smaller groups may exist."
            )
        if together:
            notes.append(
                f"With probability {confidence:g} the intervals of all {plan.calendar.periods} {every}s hold at once, for each "
                "group and column."
            )
        elif confidence != CONFIDENCE:
            notes.append(f"The confidence of each interval is {confidence:g}.")
        return notes


def _join(parts: Sequence[Noisy], beta: float, empty: Noisy) -> Noisy:
    """Columns of several ranges, one below the other, with intervals that fail with probability β."""
    first = parts[0] if parts else empty

    def interval(confidence: float) -> tuple[Values, Values]:
        pairs = [_interval_of(part, confidence) for part in parts]
        return tuple(x for low, _ in pairs for x in low), tuple(x for _, high in pairs for x in high)

    low, high = interval(1 - beta)
    deviations = {part.deviation for part in parts}
    return replace(
        first,
        values=tuple(value for part in parts for value in part.values),
        lo=low,
        hi=high,
        deviation=first.deviation if len(deviations) == 1 else None,
        noise=first.noise if len(deviations) == 1 else "noise whose standard deviation grows with the range",
        interval=interval,
    )


def _interval_of(part: Noisy, confidence: float) -> tuple[Values, Values]:
    assert part.interval is not None, "a column that was estimated has an interval"
    return part.interval(confidence)
