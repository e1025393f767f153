# SPDX-License-Identifier: Apache-2.0
"""What was measured, and how far the answers are from the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean, variance

from libraries import Library
from questions import Answer, Question

Cost = tuple[float, float]  # CPU seconds, wall seconds


@dataclass(frozen=True)
class Measured:
    """One library, one question: what it cost, what it said; or the reason why there is nothing."""

    library: Library
    first: Cost | None = None
    later: Cost | None = None
    regrouped: Cost | None = None  # a later question with another grouping
    megabytes: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    trouble: str = ""


@dataclass
class Result:
    """All libraries on one question; the first of them, which is not private, tells the truth."""

    question: Question
    rows: int
    measured: list[Measured] = field(default_factory=list)

    @property
    def truth(self) -> Answer:
        return self.measured[0].answers[0]

    def reference(self) -> Measured | None:
        """Ours, with a pure ε where that is possible."""
        return next((one for one in self.measured if one.library.ours and one.first), None)


def errors(answers: list[Answer], truth: Answer) -> list[float]:
    """For each column, the mean over the groups of |answer - truth|. A group that was not answered counts as zero."""
    return [
        fmean(
            abs(_number(answer, key, column) - _number(truth, key, column))
            for answer in answers
            for key in keys
        )
        for column, keys in _columns([truth, *answers])
    ]


def scatters(answers: list[Answer]) -> list[float]:
    """For each column, how much a repeated answer varies: the root of the mean over the groups of its variance."""
    if len(answers) < 2:
        return []
    return [
        fmean(variance([_number(answer, key, column) for answer in answers]) for key in keys) ** 0.5
        for column, keys in _columns(answers)
    ]


def sizes(truth: Answer) -> list[float]:
    """The mean truth of each column."""
    return [fmean(abs(_number(truth, key, column)) for key in keys) for column, keys in _columns([truth])]


def groups_shown(answers: list[Answer]) -> float:
    return fmean(len(answer) for answer in answers)


def _columns(answers: list[Answer]) -> Iterator[tuple[int, list[str]]]:
    """Each column, with the keys of all groups that anybody has named."""
    keys = sorted({key for answer in answers for key in answer})
    width = max((len(numbers) for answer in answers for numbers in answer.values()), default=0)
    return ((column, keys) for column in range(width))


def _number(answer: Answer, key: str, column: int) -> float:
    return answer[key][column] if key in answer else 0.0
