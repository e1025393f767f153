# SPDX-License-Identifier: Apache-2.0
"""The sparse vector technique: any number of questions "is it above the line?", few answers yes.

    sparse = SparseVector(epsilon=1, sensitivity=1, threshold=100, positives=3)
    with sparse.open() as questions:
        questions.ask(97)         # True or False; refused after three times True
    sparse([3, 5, 180, 2]).value  # the same for a list: answers until the last True

`sensitivity` bounds how far one protected unit moves the answer to any one question.
`monotone=True` says that one unit moves all answers in the same direction, as with counts.

**Guarantee.** The whole conversation is ε-differentially private, even if questions depend on
earlier answers. It is charged in full when it is opened. Questions, line and noise are whole
numbers of a grid and are compared exactly.

Why it holds: threshold.proof.md (Lyu, Su, Li 2017, Algorithm 7, for whole-number noise). What would
break it (published variants make each of these mistakes): more questions after the last yes; no
fresh noise for a question; noise that ignores the number of yeses; publishing the noisy number that
was compared.

A value that is not a finite number (NaN, an infinity, None, a text) counts as 0, because an error
would reveal it. True counts as 1. The number of questions is public.
"""

from __future__ import annotations

import math
from collections.abc import Sized
from fractions import Fraction
from typing import cast

import numpy as np

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above, widest
from discreet.mechanisms.choice import require_monotone
from discreet.mechanisms.conversation import OpenConversation
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.mechanisms.exact import finite, finite_numbers
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.noise.grid import Grid
from discreet.noise.scales import Number, Scales, is_many
from discreet.privacy.guarantee import Guarantee

__all__ = ["AboveThreshold", "Questions", "SparseVector"]


class SparseVector(Mechanism):
    """Which answers lie above a line, until `positives` of them do.

    **Guarantee.** ε-differential privacy with ε = `epsilon`. With `answer_epsilon`, each positive
    also gets a noisy number, and `answer_epsilon` is added to ε. ε is split 1 : (2c)^⅔ between the
    line and the questions (1 : c^⅔ if monotone), which minimises the variance of their difference.

    >>> sparse = SparseVector(epsilon=1, sensitivity=1, threshold=1_000, positives=2)
    >>> sparse([0, 2_000, 0, 3_000, 0, 4_000]).value           # it stops at the second True
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
        self.monotone = require_monotone(monotone=monotone, relation=relation)
        self.answer_epsilon = answer_epsilon
        if answer_epsilon is not None:
            self.answer_epsilon = check.moderate(answer_epsilon=answer_epsilon)
        self._build_noise(widest(sensitivity))
        self.line = self.grid.cells(exactly(threshold))
        total = exactly(self.epsilon) + exactly(self.answer_epsilon or 0)
        self._guarantee = privacy.pure(float_above(total), relation=relation, unit=unit)

    def _build_noise(self, distance: Fraction) -> None:
        """The grid and the three noises, each at least as wide as its part of ε needs."""
        weight = self.positives * (1 if self.monotone else 2)
        # The split that minimises the variance of line - question (Lyu, Su, Li 2017, section 4.2).
        line_share = Fraction(1 / (1 + weight ** (2 / 3))).limit_denominator(10**15)
        line_epsilon = line_share * exactly(self.epsilon)
        widths = [1 / line_epsilon, weight / (exactly(self.epsilon) - line_epsilon)]
        if self.answer_epsilon is not None:
            widths.append(self.positives / exactly(self.answer_epsilon))
        self.grid = Grid.for_noise(min(widths) * distance, distance)
        noises = [
            LaplaceDistribution(float_above(width * self.grid.sensitivity(distance))) for width in widths
        ]
        for noise in noises:
            # A scale that cannot be drawn exactly is refused here, before any draw.
            Scales(exactly(noise.scale))
        self.line_noise, self.question_noise = noises[:2]
        self.answer_noise = noises[2] if noises[2:] else None

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def open(self) -> Questions:
        """A conversation. The noise of the line is drawn now, and the whole ε is spent."""
        return Questions(self)

    def draw(self, data: object) -> list[bool] | list[float | None]:
        values = finite_numbers(data)
        if np.ndim(values) != 1:
            raise _not_a_row_error()
        with self.open() as questions:
            answer = questions.ask if self.answer_noise is None else questions.measure
            answers = []
            for value in values.tolist():
                if questions.closed:
                    break
                answers.append(answer(value))
            return cast(list[bool] | list[float | None], answers)

    def error(self, confidence: float = CONFIDENCE, queries: int | None = None) -> float | None:
        """How far from the line a value can lie although its answer is wrong, for all answers at
        once.

        It grows with the number of questions `queries`; without that number it is None.
        """
        beta = (1 - check.inner_probability(confidence=confidence)) / 2
        if queries is None:
            return None
        beta_of_each = -math.expm1(math.log1p(-beta) / check.whole(queries=queries))
        # Rounding adds half a cell for the line and half a cell for the question.
        cells = self.line_noise.tail_bound(beta) + self.question_noise.tail_bound(beta_of_each) + 1
        return float_above(cells * self.grid.step)

    def answer_error(self, confidence: float = CONFIDENCE) -> float | None:
        """The margin of error of the number for one positive; None without `answer_epsilon`."""
        beta = 1 - check.inner_probability(confidence=confidence)
        if self.answer_noise is None:
            return None
        return float_above((self.answer_noise.tail_bound(beta) + Fraction(1, 2)) * self.grid.step)

    def _error_at_size(self, data: object) -> float | None:
        return self.error(queries=max(1, len(cast(Sized, data))))


class AboveThreshold(SparseVector):
    """Which answer is the first above the line: a `SparseVector` with one positive.

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


class Questions(OpenConversation):
    """A conversation with one noisy line, until its positives are used up.

    **Guarantee.** As `OpenConversation`: `remaining` positives on one line, in one process.

    >>> with SparseVector(epsilon=1, sensitivity=1, threshold=1_000).open() as questions:
    ...     first, second = questions.ask(0), questions.ask(5_000)
    >>> first, second, questions.closed
    (False, True, True)
    """

    _reopen = "questions = sparse.open()   # spends the guarantee again"

    def __init__(self, rule: SparseVector) -> None:
        super().__init__(rule.guarantee, rule.positives)
        self._rule = rule
        self._line = rule.line + rule.line_noise.draw()

    def ask(self, value: object) -> bool:
        """Whether the noisy value is above the noisy line."""
        with self._one_answer():
            return self._is_above(self._cell_of(value))

    def measure(self, value: object) -> float | None:
        """The value with fresh noise if `ask` would say True, else None. Needs `answer_epsilon`."""
        noise = self._rule.answer_noise
        if noise is None:
            raise BadParameter(
                "DP107",
                "this conversation does not answer with numbers.",
                why="a number needs fresh noise and its own ε; the noisy number that was compared stays secret.",
                fix="SparseVector(…, answer_epsilon=1.0)",
            )
        with self._one_answer():
            cell = self._cell_of(value)
            return float(self._rule.grid.reals(cell + noise.draw())) if self._is_above(cell) else None

    def _cell_of(self, value: object) -> int:
        if is_many(value) and not (isinstance(value, np.ndarray) and value.ndim == 0):
            raise BadParameter(
                "DP104",
                "a question takes one number.",
                why="each comparison draws fresh noise.",
                fix="[questions.ask(value) for value in values]",
            )
        return int(self._rule.grid.cells(finite(value)))

    def _is_above(self, cell: int) -> bool:
        above = bool(cell + self._rule.question_noise.draw() >= self._line)
        self._remaining -= above
        return above


def _not_a_row_error() -> BadParameter:
    return BadParameter(
        "DP104",
        "the questions must be a list or an array of numbers.",
        why="they are answered in order, until the positives are used up.",
        fix="sparse([12.0, 99.5, 101.0])",
    )
