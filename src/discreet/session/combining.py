# SPDX-License-Identifier: Apache-2.0
"""Which answers can be merged: those to questions about the same numbers of the same rows.

**Guarantee.** Only the texts of questions and released numbers are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.errors import BadParameter
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.least_squares import combine_answers
from discreet.tables.ask.question import Question
from discreet.tables.ask.sql import parse
from discreet.tables.ask.start import Dataset

__all__ = ["combine_released"]


def combine_released(data: Dataset, answers: Sequence[Answer], complete: Sequence[str]) -> Answer:
    """The numbers of all answers, each once."""
    if len(answers) < 2 or not all(isinstance(answer, Answer) for answer in answers):
        raise BadParameter(
            "DP104",
            "combine needs two answers or more.",
            why="numbers of several releases are merged.",
            fix="session.combine(first, second)",
        )
    if isinstance(complete, str):
        complete = (complete,)
    questions = [parse(answer.question, data).question for answer in answers]
    first = questions[0]
    for question in questions:
        if question.rows != first.rows:
            raise _unlike_error("they are about different rows", "ask both with the same FROM and WHERE")
        if question.having is not None or question.qualify is not None or question.limit is not None:
            raise _unlike_error("one shows only some of its rows", "ask it without HAVING, QUALIFY and LIMIT")
        if _numbers(question) != _numbers(first):
            raise _unlike_error("they ask for different numbers", "ask both for the same counts and sums")
        shared = {key.name: key.of for key in first.keys}
        if any(key.of != shared.get(key.name, key.of) for key in question.keys):
            raise _unlike_error("a key means two things", "give different keys different names:  AS …")
    return combine_answers(answers, tuple(complete))


def _numbers(question: Question) -> dict[str, tuple[object, ...]]:
    """The aggregates of a question by their names in the answer."""
    return {aggregate.name: (aggregate.kind, aggregate.of) for aggregate in question.aggregates}


def _unlike_error(reason: str, fix: str) -> BadParameter:
    return BadParameter(
        "DP107",
        f"these answers cannot be merged: {reason}.",
        why="each number must be a sum over the same rows.",
        fix=fix,
    )
