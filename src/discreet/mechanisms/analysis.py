# SPDX-License-Identifier: Apache-2.0
"""Adaptive data analysis: many questions to the same records, each chosen after the answers before it.

    rule = AdaptiveQueries(records=10_000, queries=50, rho=0.01)
    rule.error(0.95), rule.population_error(0.95)       # for all answers at once, before any data are seen
    with rule.open(records) as conversation:            # the whole price is due now
        conversation.ask(lambda record: record.smokes)

    rule = Thresholdout(records=5_000, threshold=0.04, overfits=10, queries=1_000, epsilon=1)
    with rule.open(train=train, holdout=holdout) as conversation: ...

A question is a function of *one* record with a value in [0, 1], which is asked of every record; the answer is about its
mean. A value beyond 0 or 1 is clipped; one that is no number, or a function that raises, counts as 1/2, because an error
would reveal that such a record exists.

**Guarantee.** All answers together have `guarantee`, for one *replaced* record; their number is public. Values are
whole multiples of a power of two and summed as exact integers, noise is drawn exactly, and answers are clipped to
[0, 1] afterwards.

Why it holds: analysis.proof.md. What would break it: a question that remembers, prints or sends what it sees, that looks
at more than one record, or that takes long for some records (an analyst who cannot be trusted with that needs a
sandbox); opening the same records twice without adding both guarantees.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from threading import Lock
from typing import Any, NoReturn, Self

import numpy as np

from discreet import check, privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.exact import exactly, float_above
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.mechanisms.exact import numbers_within
from discreet.mechanisms.generalisation import expected_gap, population_error
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise.grid import Grid
from discreet.noise.scales import Scales
from discreet.noise.source import is_private
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

__all__ = ["AdaptiveQueries", "Conversation", "Thresholdout"]

Question = Callable[[Any], Any]

_NUDGE = 1e-15
_LEAST_BITS, _MOST_BITS = 10, 30  # of the fractions that a value in [0, 1] is rounded to


class _Analysis(ABC):
    """What both rules have in common: a public number of records, a guarantee, errors."""

    def __init__(self, records: int, queries: int, unit: str) -> None:
        self.records = check.whole(records=records)
        self.queries = check.whole(queries=queries)
        self._words = {"relation": "replace", "unit": unit}
        self._guarantee: Guarantee

    @property
    def guarantee(self) -> Guarantee:
        """What the whole conversation costs one record that is replaced."""
        return self._guarantee

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._guarantee.unit

    def guarantee_at(self, distance: int) -> Guarantee:
        """The guarantee of the whole conversation for `distance` records at once."""
        return self._guarantee.at_distance(check.whole(distance=distance))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """How far any answer is from the mean over the records, at most, all of them at once."""
        beta = 1 - check.inner_probability(confidence=confidence)
        rounding = Fraction(1, 1 << self._bits)  # half of it by rounding values, the rest by dividing
        return float_above(Fraction(self._reach(beta), self.records << self._bits) + rounding)

    def population_error(self, confidence: float = CONFIDENCE) -> float:
        """How far any answer is from the mean over the population, at most, all of them at once.

        The population is what the records are independent draws from; see `mechanisms.generalisation`.
        """
        return population_error(self._guarantee, self.error, confidence)

    def expected_gap(self) -> float:
        """A bound on |E[φ(records) - φ(population)]| for the question φ that somebody chose by the answers."""
        return expected_gap(self._guarantee)

    def _scale_in_cells(self, multiplier: float, widest: int = 1) -> float:
        """The scale on a grid on which rounding stays below a tenth of the noise, and n values fit in 62 bits."""
        wanted = math.ceil(math.log2(self.records / multiplier)) + 3
        self._bits = min(max(_LEAST_BITS, wanted), _MOST_BITS, 61 - self.records.bit_length())
        scale = multiplier * (1 << self._bits)
        Scales(exactly(widest * scale))  # refuses, now and not while answering, what cannot be drawn exactly
        return scale

    @abstractmethod
    def _reach(self, beta: float) -> int:
        """How many cells the sum may be off, save with probability β."""


class AdaptiveQueries(_Analysis):
    """A fixed number of adaptively chosen questions, each answered with noise of its own.

    **Guarantee.** `queries` answers with Gaussian noise for `rho`, or for `epsilon` and `delta`; with Laplace noise for
    `epsilon` alone. Never more than was asked for, and the whole of it when `open` is called.

    >>> rule = AdaptiveQueries(records=1_000, queries=10, epsilon=1)
    >>> rule.guarantee.epsilon(delta=0), round(rule.error(0.95), 3)
    (1.0, 0.054)
    >>> with rule.open(range(1_000)) as conversation:
    ...     0 <= conversation.ask(lambda record: record < 500) <= 1
    True
    """

    def __init__(
        self,
        *,
        records: int,
        queries: int,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        unit: str = "record",
    ) -> None:
        super().__init__(records, queries, unit)
        kind, multiplier, kept = _amount(epsilon, delta, rho, self.queries)
        scale = self._scale_in_cells(multiplier)
        self.distribution, self._guarantee = self._with(kind(scale))
        nudge = _NUDGE
        while not kept(self._guarantee):  # past every rounding
            scale, nudge = scale * (1 + nudge), 2 * nudge
            self.distribution, self._guarantee = self._with(kind(scale))

    def open(self, data: Sequence[Any]) -> Conversation:
        """A conversation about these records; the whole guarantee is spent now."""
        return _Answers(self, _snapshot("data", data, self.records))

    def _with(self, distribution: NoiseDistribution) -> tuple[NoiseDistribution, Guarantee]:
        return distribution, self.queries * distribution.guarantee_for(1 << self._bits, 1, **self._words)

    def _reach(self, beta: float) -> int:
        return self.distribution.tail_bound(beta / self.queries)


class Thresholdout(_Analysis):
    """A hold-out set that can be used again and again, until the training set has misled `overfits` times.

    A question is asked of a training set, which the analyst may look at, and of the hold-out. While both agree to within
    about `threshold`, the answer is the training mean; otherwise it is the hold-out mean with noise, and one
    overfit is used up. After the last one, or after `queries` questions, the conversation is over.

    **Guarantee.** ε-differential privacy of one replaced hold-out record for the whole conversation, ε = `epsilon`.

    Why it holds: analysis.proof.md (after Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015): a sparse vector with a
    fresh line after every overfit, and one noisy answer for each.

    >>> rule = Thresholdout(records=1_000, threshold=0.1, overfits=1, queries=100, epsilon=1)
    >>> rule.guarantee.epsilon(delta=0)
    1.0
    >>> with rule.open(train=[0] * 1_000, holdout=[1] * 1_000) as conversation:
    ...     round(conversation.ask(lambda record: 0.25), 2), conversation.ask(lambda record: record) > 0.5
    (0.25, True)
    """

    def __init__(
        self,
        *,
        records: int,
        threshold: float,
        overfits: int,
        queries: int,
        epsilon: float,
        unit: str = "record",
    ) -> None:
        super().__init__(records, queries, unit)
        self.threshold = check.probability(threshold=threshold)
        self.overfits = check.whole(overfits=overfits)
        self.epsilon = check.moderate(epsilon=epsilon)
        scale = self._scale_in_cells(2 * self.overfits / self.epsilon, widest=4)
        self.line = int(Grid(-self._bits).cells(exactly(self.threshold) * self.records))
        self._guarantee, nudge = self._with(scale), _NUDGE
        while self._guarantee.epsilon(0.0) > self.epsilon:  # past every rounding
            scale, nudge = scale * (1 + nudge), 2 * nudge
            self._guarantee = self._with(scale)

    def open(self, *, train: Sequence[Any], holdout: Sequence[Any]) -> Conversation:
        """A conversation about this hold-out; the noise of the line is drawn and the whole guarantee spent now."""
        return _HeldOut(self, _snapshot("train", train, None), _snapshot("holdout", holdout, self.records))

    def _with(self, scale: float) -> Guarantee:
        """Line Lap(2s), comparison Lap(4s), answer Lap(s): ε/4, ε/4 and ε/2 of every overfit's share."""
        self.line_noise, self.question_noise = LaplaceDistribution(2 * scale), LaplaceDistribution(4 * scale)
        self.answer_noise = LaplaceDistribution(scale)
        cell = 1 << self._bits
        compared = cell / exactly(self.line_noise.scale) + 2 * cell / exactly(self.question_noise.scale)
        spent = privacy.pure(float_above(compared), **self._words)
        return self.overfits * (spent + self.answer_noise.guarantee_for(cell, 1, **self._words))

    def _reach(self, beta: float) -> int:
        """The line and the comparisons, or the noise of an answer, whichever is more; a third of β for each."""
        share = beta / 3
        quiet = self.line + self.line_noise.tail_bound(share / self.overfits)
        quiet += self.question_noise.tail_bound(share / self.queries) + 1
        return max(quiet, self.answer_noise.tail_bound(share / self.overfits))


class Conversation(ABC):
    """Answers to questions that may depend on the answers before.

    **Guarantee.** All answers together have `guarantee`. The object can neither be copied nor carried into another process,
    since two copies could ask twice as much. `private` is False once anything was drawn under a test's seed.
    """

    def __init__(self, rule: _Analysis) -> None:
        self.guarantee, self.private, self.remaining = rule.guarantee, is_private(), rule.queries
        self._lock, self._process = Lock(), os.getpid()

    @property
    def closed(self) -> bool:
        """Whether no more questions are answered."""
        return self.remaining == 0

    def ask(self, question: Question) -> float:
        """About the mean of `question` over the records; refused when the conversation is over."""
        check.function(question=question)
        # before the lock, which a thread of the parent may have held at the fork: in a child it would be held for ever
        if self._process != os.getpid():
            raise _conversation_error("this conversation belongs to another process")
        with self._lock:
            if self.closed:
                raise _conversation_error("this conversation is over")
            self.remaining -= 1
            self.private = self.private and is_private()
            return min(1.0, max(0.0, float(self._answer(question))))

    def close(self) -> None:
        """Answer nothing more."""
        self.remaining = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise _conversation_error("a conversation cannot be copied")

    @abstractmethod
    def _answer(self, question: Question) -> Fraction:
        """The answer before it is clipped to [0, 1]."""


class _Answers(Conversation):
    """Every answer is the mean with noise."""

    def __init__(self, rule: AdaptiveQueries, records: tuple[Any, ...]) -> None:
        super().__init__(rule)
        self._rule, self._records = rule, records

    def _answer(self, question: Question) -> Fraction:
        total = _total(question, self._records, self._rule._bits)  # noqa: SLF001 - rule and conversation are one
        return Fraction(total + self._rule.distribution.draw(), self._rule.records << self._rule._bits)  # noqa: SLF001


class _HeldOut(Conversation):
    """The training mean, unless the hold-out disagrees."""

    def __init__(self, rule: Thresholdout, train: tuple[Any, ...], holdout: tuple[Any, ...]) -> None:
        super().__init__(rule)
        self._rule, self._train, self._holdout = rule, train, holdout
        self.overfits = rule.overfits
        self._line = self._fresh_line()

    def _answer(self, question: Question) -> Fraction:
        rule, bits = self._rule, self._rule._bits  # noqa: SLF001 - rule and conversation are one
        seen = Fraction(_total(question, self._train, bits), len(self._train))
        held = _total(question, self._holdout, bits)
        gap = abs(held - math.floor(seen * rule.records))  # a whole number that moves by one value at most
        if gap <= self._line + rule.question_noise.draw():
            return seen / (1 << bits)
        self.overfits -= 1
        self._line = self._fresh_line()
        if not self.overfits:
            self.close()
        return Fraction(held + rule.answer_noise.draw(), rule.records << bits)

    def _fresh_line(self) -> int:
        return int(self._rule.line + self._rule.line_noise.draw())


def _amount(
    epsilon: float | None, delta: float | None, rho: float | None, queries: int
) -> tuple[type[NoiseDistribution], float, Callable[[Guarantee], bool]]:
    """The distribution, its scale in values for so many answers, and whether a guarantee is within what was asked for."""
    given = [value is not None for value in (epsilon, delta, rho)]
    if given == [True, False, False]:
        total = check.moderate(epsilon=epsilon)
        return LaplaceDistribution, queries / total, lambda guarantee: guarantee.epsilon(0.0) <= total
    if given == [False, False, True]:
        most = check.moderate(rho=rho)
        return (
            GaussianDistribution,
            math.sqrt(queries / (2 * most)),
            lambda guarantee: guarantee.concentrated() <= most,
        )
    if given == [True, True, False]:
        point, lost = check.moderate(epsilon=epsilon), check.inner_probability(delta=delta)
        one = calibrate(privacy.gaussian, to=privacy.approximate(point, lost))
        return (
            GaussianDistribution,
            math.sqrt(queries) * one,
            lambda guarantee: guarantee.delta(point) <= lost,
        )
    raise BadParameter(
        "DP107",
        "the amount of noise must be stated in one way: epsilon, or epsilon and delta, or rho.",
        why="two statements could contradict each other, and without one there is no noise to add.",
        fix="epsilon=1.0",
    )


def _total(question: Question, records: tuple[Any, ...], bits: int) -> int:
    """The sum of the values in whole cells; each is asked on its own, and nothing that happens there shows."""
    return int(np.sum(Grid(-bits).cells(numbers_within(records, 0.0, 1.0, question))))


def _snapshot(name: str, data: Any, size: int | None) -> tuple[Any, ...]:
    """The records as they are now; their number is public."""
    if isinstance(data, str) or not hasattr(data, "__len__") or not len(data):
        raise BadParameter(
            "DP104",
            f"{name} must be a list, an array or another sequence of records, and not empty.",
            why="a question is asked of each record.",
            fix=f"{name}=[record, record]",
        )
    if size is not None and len(data) != size:
        raise BadParameter(
            "DP107",
            f"the rule is made for {size} records, and {name} has {len(data)}.",
            why="noise is measured against the number of records, which is public here.",
            fix=f"records={len(data)}",
        )
    return tuple(data)


def _conversation_error(what: str) -> UnsupportedGuarantee:
    return UnsupportedGuarantee(
        "DP203",
        f"{what}.",
        why="what was paid when it was opened covers one conversation of limited length.",
        fix="conversation = rule.open(…)   # and pay again",
    )
