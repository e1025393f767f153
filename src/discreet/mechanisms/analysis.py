# SPDX-License-Identifier: Apache-2.0
"""Adaptive data analysis: many questions to the same records, each chosen by earlier answers.

    rule = AdaptiveQueries(records=10_000, queries=50, rho=0.01)
    rule.error(0.95), rule.population_error(0.95)  # for all answers at once; needs no data
    with rule.open(records) as conversation:  # the whole guarantee is spent now
        conversation.ask(lambda record: record.smokes)

    rule = Thresholdout(records=5_000, threshold=0.04, overfits=10, queries=1_000, epsilon=1)
    with rule.open(train=train, holdout=holdout) as conversation: ...

A question φ is a function of *one* record with a value in [0, 1]. The answer is the noisy mean of φ
over the records, φ(S). Values beyond 0 or 1 are clipped. A value that is not a number counts as
1/2, and so does a question that raises: an error would reveal the record.

**Guarantee.** All answers together have `guarantee`, for one *replaced* record; their number is
public. Values are multiples of a power of two and are summed as exact integers, noise is drawn
exactly, and answers are clipped to [0, 1] afterwards.

If the records are independent draws from a population, the same guarantee bounds how far an answer
is from the mean of φ over the population, φ(P). `expected_gap` and `population_error` state that
bound for every population, every analyst and any number of adaptive questions.

Why it holds: analysis.proof.md. What would break it: a question that stores or sends what it sees,
looks at more than one record, or runs longer for some records (run untrusted questions in a
sandbox); the same records opened twice without adding both guarantees. For the population also
records that are not independent, and a guarantee for records that are added or removed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check, privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.exact import exactly, float_above
from discreet.mechanisms.amount import APPROXIMATE, CONCENTRATED, PURE, one_amount
from discreet.mechanisms.conversation import OpenConversation
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.mechanisms.exact import numbers_within
from discreet.mechanisms.expression import CallRepr
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise.grid import Grid
from discreet.noise.scales import Scales
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

__all__ = ["AdaptiveQueries", "Conversation", "Thresholdout", "expected_gap", "population_error"]

Question = Callable[[Any], Any]

_NUDGE = 1e-15
_MIN_BITS, _MAX_BITS = 10, 30  # of the fractions that a value in [0, 1] is rounded to
#: The parts of the error probability that `population_error` tries for the answers; the rest is drift.
_SHARES = (0.5, 0.9, 0.99, 1.0)
_SLACKS = np.geomspace(1e-4, 0.5, 30)
_EPSILONS = np.append(0.0, np.geomspace(1e-3, 4.0, 16))
_UP = 1 + 1e-9


class _Analysis(CallRepr, ABC):
    """The public number of records, the guarantee and the margins of error of both rules."""

    def __init__(self, records: int, queries: int, unit: str) -> None:
        self.records = check.whole(records=records)
        self.queries = check.whole(queries=queries)
        self._words = {"relation": "replace", "unit": unit}
        self._guarantee: Guarantee

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole conversation for one replaced record."""
        return self._guarantee

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._guarantee.unit

    def guarantee_at(self, distance: int) -> Guarantee:
        """The guarantee of the whole conversation for `distance` records at once."""
        return self._guarantee.at_distance(check.whole(distance=distance))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """The margin of error of all answers at once, as estimates of the mean over the records."""
        beta = 1 - check.inner_probability(confidence=confidence)
        # Rounding the values takes half of it, the division at the end the rest.
        rounding = Fraction(1, 1 << self._bits)
        return float_above(Fraction(self._reach(beta), self.records << self._bits) + rounding)

    def population_error(self, confidence: float = CONFIDENCE) -> float:
        """The margin of error of all answers at once, as estimates of the mean over the population."""
        return population_error(self._guarantee, self.error, confidence)

    def expected_gap(self) -> float:
        """A bound on |E[φ(S) - φ(P)]| for any question φ that is chosen by looking at the answers."""
        return expected_gap(self._guarantee)

    def _scale_in_cells(self, multiplier: float, widest: int = 1) -> float:
        """The scale in cells of a grid: rounding is below a tenth of the noise, and sums fit in 62
        bits.
        """
        bits_for_noise = math.ceil(math.log2(self.records / multiplier)) + 3
        self._bits = min(max(_MIN_BITS, bits_for_noise), _MAX_BITS, 61 - self.records.bit_length())
        scale = multiplier * (1 << self._bits)
        # A scale that cannot be drawn exactly is refused here, before any answer.
        Scales(exactly(widest * scale))
        return scale

    @abstractmethod
    def _reach(self, beta: float) -> int:
        """The margin of error of the sum in cells, exceeded with probability at most β."""


class AdaptiveQueries(_Analysis):
    """A fixed number of adaptively chosen questions, each answered with fresh noise.

    Use it if most questions need an answer; `Thresholdout` answers many more, as long as the
    training set does not mislead.

    **Guarantee.** `queries` answers with Gaussian noise for `rho`, or for `epsilon` and `delta`;
    with Laplace noise for `epsilon` alone. Never more than the stated amount, all of it spent when
    `open` is called.

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
        kind, multiplier, is_within = _noise_for(epsilon, delta, rho, self.queries)
        scale = self._scale_in_cells(multiplier)
        self.distribution, self._guarantee = self._with_noise(kind(scale))
        nudge = _NUDGE
        # Rounding can leave the guarantee just above the amount; then the scale grows.
        while not is_within(self._guarantee):
            scale, nudge = scale * (1 + nudge), 2 * nudge
            self.distribution, self._guarantee = self._with_noise(kind(scale))

    def open(self, data: Sequence[Any]) -> Conversation:
        """A conversation about these records; the whole guarantee is spent now."""
        return _Answers(self, _snapshot("data", data, self.records))

    def _with_noise(self, distribution: NoiseDistribution) -> tuple[NoiseDistribution, Guarantee]:
        return distribution, self.queries * distribution.guarantee_for(1 << self._bits, 1, **self._words)

    def _reach(self, beta: float) -> int:
        return self.distribution.tail_bound(beta / self.queries)


class Thresholdout(_Analysis):
    """A reusable hold-out set: it answers until the training set has misled `overfits` times.

    Each question goes to a training set, which the analyst may look at, and to the hold-out set.
    While both agree to within about `threshold`, the answer is the training mean. Otherwise it is
    the hold-out mean with noise, and one overfit is used up. After the last overfit, or after
    `queries` questions, the conversation is over.

    **Guarantee.** The whole conversation is ε-differentially private for one replaced hold-out
    record, with ε = `epsilon`. The training set is not protected.

    Why it holds: analysis.proof.md (after Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015): a
    sparse vector with a fresh line after every overfit, and one noisy answer for each.

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
        self._guarantee, nudge = self._with_scale(scale), _NUDGE
        # Rounding can leave the guarantee just above ε; then the scale grows.
        while self._guarantee.epsilon(0.0) > self.epsilon:
            scale, nudge = scale * (1 + nudge), 2 * nudge
            self._guarantee = self._with_scale(scale)

    def open(self, *, train: Sequence[Any], holdout: Sequence[Any]) -> Conversation:
        """A conversation about this hold-out set; the whole guarantee is spent now."""
        return _HeldOut(self, _snapshot("train", train, None), _snapshot("holdout", holdout, self.records))

    def _with_scale(self, scale: float) -> Guarantee:
        """Line Lap(2s), comparison Lap(4s), answer Lap(s): ε/4, ε/4 and ε/2 of the ε of one
        overfit.
        """
        self.line_noise, self.question_noise = LaplaceDistribution(2 * scale), LaplaceDistribution(4 * scale)
        self.answer_noise = LaplaceDistribution(scale)
        cell = 1 << self._bits
        compared = cell / exactly(self.line_noise.scale) + 2 * cell / exactly(self.question_noise.scale)
        spent = privacy.pure(float_above(compared), **self._words)
        return self.overfits * (spent + self.answer_noise.guarantee_for(cell, 1, **self._words))

    def _reach(self, beta: float) -> int:
        """The greater of the errors of a training mean and of a noisy answer; β/3 for each noise."""
        beta_of_noise = beta / 3
        training_error = self.line + self.line_noise.tail_bound(beta_of_noise / self.overfits)
        training_error += self.question_noise.tail_bound(beta_of_noise / self.queries) + 1
        return max(training_error, self.answer_noise.tail_bound(beta_of_noise / self.overfits))


class Conversation(OpenConversation, ABC):
    """Answers about the mean of a question over the records.

    **Guarantee.** As `OpenConversation`: `remaining` questions, in one process.
    """

    _reopen = "conversation = rule.open(…)   # spends the guarantee again"

    def __init__(self, rule: _Analysis) -> None:
        super().__init__(rule.guarantee, rule.queries)

    def ask(self, question: Question) -> float:
        """The noisy mean of `question` over the records, within [0, 1]."""
        check.function(question=question)
        with self._one_answer():
            self._remaining -= 1
            return min(1.0, max(0.0, float(self._answer(question))))

    @abstractmethod
    def _answer(self, question: Question) -> Fraction:
        """The answer before it is clipped to [0, 1]."""


class _Answers(Conversation):
    """Each answer is the mean with noise."""

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
        train_mean = Fraction(_total(question, self._train, bits), len(self._train))
        holdout_total = _total(question, self._holdout, bits)
        # The gap is a whole number. One hold-out record moves it by the size of one value at most.
        gap = abs(holdout_total - math.floor(train_mean * rule.records))
        if gap <= self._line + rule.question_noise.draw():
            return train_mean / (1 << bits)
        self.overfits -= 1
        self._line = self._fresh_line()
        if not self.overfits:
            self.close()
        return Fraction(holdout_total + rule.answer_noise.draw(), rule.records << bits)

    def _fresh_line(self) -> int:
        return int(self._rule.line + self._rule.line_noise.draw())


def _noise_for(
    epsilon: float | None, delta: float | None, rho: float | None, queries: int
) -> tuple[type[NoiseDistribution], float, Callable[[Guarantee], bool]]:
    """The distribution, its scale in values for this number of answers, and whether a guarantee is
    within the amount.
    """
    amount = one_amount({"epsilon": epsilon, "delta": delta, "rho": rho}, PURE, APPROXIMATE, CONCENTRATED)
    if tuple(amount) == PURE:
        return (
            LaplaceDistribution,
            queries / amount["epsilon"],
            lambda guarantee: guarantee.epsilon(0.0) <= amount["epsilon"],
        )
    if tuple(amount) == CONCENTRATED:
        return (
            GaussianDistribution,
            math.sqrt(queries / (2 * amount["rho"])),
            lambda guarantee: guarantee.concentrated() <= amount["rho"],
        )
    multiplier = calibrate(privacy.gaussian, to=privacy.approximate(amount["epsilon"], amount["delta"]))
    return (
        GaussianDistribution,
        math.sqrt(queries) * multiplier,
        lambda guarantee: guarantee.delta(amount["epsilon"]) <= amount["delta"],
    )


def _total(question: Question, records: tuple[Any, ...], bits: int) -> int:
    """The sum of the values in whole cells. The question sees one record at a time and cannot fail."""
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
            f"the rule is for {size} records, but {name} has {len(data)}.",
            why="the noise is made for this public number of records.",
            fix=f"records={len(data)}",
        )
    return tuple(data)


@check.arguments
def expected_gap(guarantee: Guarantee) -> float:
    """A bound on |E[φ(S) - φ(P)]| for any question φ that is chosen by looking at the answers.

    **Guarantee.** It holds for every population and analyst. The bound is the total variation
    distance that one replaced record can cause: stability implies generalisation
    (analysis.proof.md).

    >>> from discreet import privacy
    >>> round(expected_gap(privacy.pure(0.1, relation="replace")), 4)
    0.05
    """
    return _require_replace(guarantee).advantage()


@check.arguments
def population_error(
    guarantee: Guarantee, sample_error: Callable[[float], float], confidence: float
) -> float:
    """The margin of error of all answers at once, as estimates of φ(P).

    `sample_error(confidence)` is the margin of error of all answers as estimates of φ(S).

    **Guarantee.** It holds for every population and analyst (analysis.proof.md). For all ε >= 0 and
    c, d > 0: if α is the sample error at confidence 1 - β, the error exceeds
    α + c + (e^ε - 1 + 2d)/(e^ε + 1) with probability at most β/c + δ(ε)/d. The result is the least
    of these over a grid, and at most 1.

    >>> from discreet import privacy
    >>> one_record = privacy.pure(0.01, relation="replace")
    >>> population_error(one_record, lambda confidence: 0.02, confidence=0.95) < 0.06
    True
    """
    beta = 1 - check.inner_probability(confidence=confidence)
    _require_replace(guarantee)
    errors = [
        _least_sample_error(sample_error, share * beta) + _drift(guarantee, (1 - share) * beta)
        for share in _SHARES
    ]
    return min(1.0, min(errors) * _UP)


def _least_sample_error(sample_error: Callable[[float], float], beta: float) -> float:
    """min over c of α(β·c) + c."""
    below_one = math.nextafter(1.0, 0.0)
    slacks: list[float] = _SLACKS.tolist()
    return min(sample_error(min(1 - beta * c / _UP, below_one)) + c for c in slacks)


def _drift(guarantee: Guarantee, beta: float) -> float:
    """A bound on |φ(S given the answers) - φ(P)|, exceeded with probability at most β."""
    pure_epsilon = guarantee.epsilon(0.0)
    certain_bound = math.tanh(pure_epsilon / 2) if math.isfinite(pure_epsilon) else 1.0
    if beta == 0:
        return certain_bound
    likely_bounds = (
        (math.expm1(epsilon) + 2 * guarantee.delta(epsilon) / beta) / (math.exp(epsilon) + 1)
        for epsilon in _EPSILONS.tolist()
    )
    return min(certain_bound, *likely_bounds)


def _require_replace(guarantee: Guarantee) -> Guarantee:
    if guarantee.unit.relation == "replace":
        return guarantee
    raise UnsupportedGuarantee(
        "DP203",
        "only a guarantee for one replaced record says something about the population.",
        why="the proof replaces one record by a fresh draw and keeps the number of records.",
        fix="compute the guarantee for one replaced record:  privacy.pure(…, relation='replace')",
    )
