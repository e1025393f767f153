# SPDX-License-Identifier: Apache-2.0
"""The sparse vector technique: any number of questions "is it above the line?", paid for only when the answer is yes.

    sparse = SparseVector(epsilon=1, sensitivity=1, threshold=100, positives=3)
    with sparse.open() as questions:
        questions.ask(97)                      # True or False; refused after three times True
    sparse([3, 5, 180, 2]).value               # the same for a list: answers until it stops

`sensitivity` is how much the answer to any one question moves, at most, when one protected unit changes.
`monotone=True` says that all of them then move the same way, as counts do when somebody is added.

**Guarantee.** The whole conversation, with questions that may depend on earlier answers, is ε-differentially private; it
is charged in full when it is opened. Questions, line and noise are whole numbers of a grid, compared exactly.

Why it holds: threshold.proof.md (Lyu, Su, Li 2017, Algorithm 7, for whole-number noise). What would break it, each
done in print by somebody: to go on after the last yes; to draw no fresh noise for each question; to leave the number
of yeses out of the noise; to publish the number that was compared.

A value that is no finite number (NaN, an infinity, None, a text) counts as 0, because an error would reveal it; True counts
as 1. How many questions there are is public; what is no row of them is refused by its shape.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sized
from fractions import Fraction
from threading import Lock
from typing import Any, NoReturn, Self, cast

import numpy as np

from discreet import check, privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.exact import exactly, float_above, widest
from discreet.mechanisms.choice import require_monotone
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.mechanisms.exact import finite, finite_numbers
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.noise.grid import Grid
from discreet.noise.scales import Number, Scales, is_many
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee

__all__ = ["AboveThreshold", "Questions", "SparseVector"]


class SparseVector(Mechanism):
    """Which answers lie above a line: free while they do not, over after `positives` that do.

    **Guarantee.** ε-differential privacy with ε = epsilon, plus `answer_epsilon` where positives are also answered by a
    number. ε is split 1 : (2c)^⅔ between the line and the questions (1 : c^⅔ if monotone), which makes the variance
    of their difference the least.

    >>> sparse = SparseVector(epsilon=1, sensitivity=1, threshold=1_000, positives=2)
    >>> sparse([0, 2_000, 0, 3_000, 0, 4_000]).value           # the rest is not answered
    [False, True, False, True]
    >>> sparse.guarantee
    pure(epsilon=1.0)
    """

    error_unit = "from the line"

    def __init__(
        self,
        *,
        epsilon: float,
        sensitivity: Number,
        threshold: Number,
        positives: int = 1,
        monotone: bool = False,
        answer_epsilon: float | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.epsilon = check.moderate(epsilon=epsilon)
        self.sensitivity = check.moderate(sensitivity=sensitivity)
        self.threshold = check.real(threshold=threshold)
        self.positives = check.whole(positives=positives)
        self.monotone = require_monotone(monotone, relation)
        self.answer_epsilon = (
            None if answer_epsilon is None else check.moderate(answer_epsilon=answer_epsilon)
        )
        self._build(widest(sensitivity))
        self.line = self.grid.cells(exactly(threshold))
        total = exactly(self.epsilon) + exactly(self.answer_epsilon or 0)
        self._guarantee = privacy.pure(float_above(total), relation=relation, unit=unit)

    def _build(self, distance: Fraction) -> None:
        """The grid and the three noises, each at least as wide as its share of ε needs."""
        weight = self.positives * (1 if self.monotone else 2)
        share = Fraction(1 / (1 + weight ** (2 / 3))).limit_denominator(10**15)
        line_epsilon = share * exactly(self.epsilon)
        widths = [1 / line_epsilon, weight / (exactly(self.epsilon) - line_epsilon)]
        if self.answer_epsilon is not None:
            widths.append(self.positives / exactly(self.answer_epsilon))
        self.grid = Grid.for_noise(min(widths) * distance, distance)
        noises = [
            LaplaceDistribution(float_above(width * self.grid.sensitivity(distance))) for width in widths
        ]
        for noise in noises:
            Scales(exactly(noise.scale))  # refuses, now and not while drawing, what cannot be drawn exactly
        self.line_noise, self.question_noise = noises[:2]
        self.answer_noise = noises[2] if noises[2:] else None

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def open(self) -> Questions:
        """A conversation: the noise of the line is drawn now, and the whole ε is spent."""
        return Questions(self)

    def draw(self, data: object) -> list[bool] | list[float | None]:
        values = finite_numbers(data)
        if np.ndim(values) != 1:
            raise _not_a_row_error()
        with self.open() as questions:
            return _until_closed(questions, values.tolist(), numbers=self.answer_noise is not None)

    def error(self, confidence: float = CONFIDENCE, queries: int | None = None) -> float | None:
        """How far from the line, at most, an answer on the wrong side of it lies, with this confidence for all.

        It grows with the number of questions: without it there is no answer.
        """
        beta = (1 - check.inner_probability(confidence=confidence)) / 2
        if queries is None:
            return None
        each = -math.expm1(math.log1p(-beta) / check.whole(queries=queries))
        rounding = 1  # half a cell for the line and half a cell for the question
        cells = self.line_noise.tail_bound(beta) + self.question_noise.tail_bound(each) + rounding
        return float_above(cells * self.grid.step)

    def answer_error(self, confidence: float = CONFIDENCE) -> float | None:
        """How far the number that answers one positive is from the exact one, at most; None if none is given."""
        beta = 1 - check.inner_probability(confidence=confidence)
        if self.answer_noise is None:
            return None
        return float_above((self.answer_noise.tail_bound(beta) + Fraction(1, 2)) * self.grid.step)

    def _error_at_size(self, data: object) -> float | None:
        return self.error(queries=max(1, len(cast(Sized, data))))


class AboveThreshold(SparseVector):
    """Which answer is the first above the line: a `SparseVector` that stops at the first yes.

    >>> AboveThreshold(epsilon=1, sensitivity=1, threshold=1_000)([0, 0, 9_000, 0]).value
    [False, False, True]
    """

    def __init__(
        self,
        *,
        epsilon: float,
        sensitivity: Number,
        threshold: Number,
        monotone: bool = False,
        answer_epsilon: float | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            sensitivity=sensitivity,
            threshold=threshold,
            positives=1,
            monotone=monotone,
            answer_epsilon=answer_epsilon,
            relation=relation,
            unit=unit,
        )


class Questions:
    """A conversation with one noisy line, until its positives are used up.

    **Guarantee.** All answers together have `guarantee`, whoever asks and in whatever order. The object can neither be
    copied nor carried into another process, since two copies would have twice the positives on one line.

    >>> with SparseVector(epsilon=1, sensitivity=1, threshold=1_000).open() as questions:
    ...     first, second = questions.ask(0), questions.ask(5_000)
    >>> first, second, questions.closed
    (False, True, True)
    """

    def __init__(self, rule: SparseVector) -> None:
        self._rule, self._lock, self._process = rule, Lock(), os.getpid()
        self._line = rule.line + rule.line_noise.draw()
        self._remaining = rule.positives
        self.guarantee, self.private = rule.guarantee, is_private()

    @property
    def remaining(self) -> int:
        """How many times the answer can still be yes."""
        return self._remaining

    @property
    def closed(self) -> bool:
        """Whether no more questions are answered."""
        return self._remaining == 0

    def ask(self, value: object) -> bool:
        """Whether the value is above the line, about."""
        self._refuse_a_child()
        with self._lock:
            return self._above(self._cell(value))

    def measure(self, value: object) -> float | None:
        """The value with noise of its own if it is above the line, about; else None. Needs `answer_epsilon`."""
        noise = self._rule.answer_noise
        if noise is None:
            raise BadParameter(
                "DP107",
                "numbers were not paid for when this conversation was opened.",
                why="a number takes noise and ε of its own; the number that was compared must stay secret.",
                fix="SparseVector(…, answer_epsilon=1.0)",
            )
        self._refuse_a_child()
        with self._lock:
            cell = self._cell(value)
            return float(self._rule.grid.reals(cell + noise.draw())) if self._above(cell) else None

    def close(self) -> None:
        """Answer nothing more."""
        self._remaining = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise _conversation_error(
            "a conversation cannot be copied", "the copies would share one noisy line and both answer."
        )

    def _refuse_a_child(self) -> None:
        """Before the lock, which a thread of the parent may have held at the fork: in a child it would be held for ever."""
        if self._process != os.getpid():
            raise _conversation_error(
                "this conversation belongs to another process", "both would answer with one noisy line."
            )

    def _cell(self, value: Any) -> int:
        if self.closed:
            raise _conversation_error(
                "this conversation is over", "ε pays for so many positives, and they were given."
            )
        if is_many(value) and not (isinstance(value, np.ndarray) and value.ndim == 0):
            raise BadParameter(
                "DP104",
                "one question has one number for an answer.",
                why="each comparison takes noise of its own.",
                fix="[questions.ask(value) for value in values]",
            )
        return int(self._rule.grid.cells(finite(value)))

    def _above(self, cell: int) -> bool:
        above = bool(cell + self._rule.question_noise.draw() >= self._line)
        self._remaining -= above
        return above


def _until_closed(questions: Questions, values: Iterable[Any], *, numbers: bool) -> list[Any]:
    answers: list[Any] = []
    for value in values:
        if questions.closed:
            break
        answers.append(questions.measure(value) if numbers else questions.ask(value))
    return answers


def _conversation_error(what: str, why: str) -> UnsupportedGuarantee:
    return UnsupportedGuarantee(
        "DP203", f"{what}.", why=why, fix="questions = sparse.open()   # and pay again"
    )


def _not_a_row_error() -> BadParameter:
    return BadParameter(
        "DP104",
        "the questions must be a list or an array of numbers.",
        why="they are answered in order, until the positives are used up.",
        fix="sparse([12.0, 99.5, 101.0]), or  with sparse.open() as questions: questions.ask(12.0)",
    )
