# SPDX-License-Identifier: Apache-2.0
"""Local privacy: everybody randomises their own answer, and the collector never sees a true one.

    device    = RandomizedResponse(epsilon=1)  # or bias=0.1, or outcomes=100
    report    = device.privatise(1)            # on the device of one person, or for many at once
    estimate  = device.estimate(reports)       # at the collector: shares, low, high
    device.shuffled(people=10_000).guarantee   # if a shuffler stands between them

The relation is always "replace": whoever takes part sends a report, so that taking part is not
hidden; what is hidden is the answer. Replacing one answer changes the distribution of that one
report, and the guarantee is about it. It holds against the collector too, who need not be trusted.

Answers are whole numbers 0, 1, …, outcomes - 1. What lies beyond counts as the nearest of them, a
fraction as the whole number below, and what is no number as the middle, rounded down (for bits: 0).

**Guarantee.** A report that names an answer is more likely, by the odds `truth / lie` at most, if
that is the answer. The odds are rational, rounded towards less privacy loss, and the coins have
exactly those chances. Estimates of shares are unbiased, and all shares lie in their intervals with
the stated confidence, whatever the answers are.

Why it holds: Warner 1965; Kairouz, Bonawitz, Ramage 2016 (k-ary); Wang, Blocki, Li, Jha 2017 (unary
encodings). Each number of reports is a sum of independent coins, so Hoeffding 1963, Theorem 1,
gives its interval: P(mean of n coins is x or further out) <= exp(-n KL(x, θ)) for any coins with
mean chance θ. What would break it: a second report about the same answer, which costs the guarantee
a second time.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from discreet import check, noise, privacy
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.mechanisms.exact import Floats, Integers, numbers_within
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.noise.enclosure import exp_minus
from discreet.noise.scales import is_many
from discreet.noise.source import current
from discreet.privacy.guarantee import Guarantee

__all__ = [
    "HadamardResponse",
    "LocalEstimate",
    "LocalMechanism",
    "OptimisedUnary",
    "RandomizedResponse",
    "ShuffledReports",
    "SymmetricUnary",
]

_MOST_OUTCOMES, _MOST_TRANSFORMED = 2**24, 2**22
_CHUNK = 1 << 20  # coins that are tossed together
_MARGIN = 1e-12  # by which a table of floats is worse than the coins that it describes


@dataclass(frozen=True, eq=False)
class LocalEstimate:
    """Shares of the answers 0, 1, … among `size` reports: unbiased, so that some may lie outside
    [0, 1].

    With this confidence all true shares lie between `low` and `high` at once: the shares among
    those who reported, and, if these were drawn at random and independently from a larger
    population, also the shares in that.

    >>> estimate = RandomizedResponse(epsilon=1).estimate([0, 1, 1, 0, 1])
    >>> estimate.size, bool((estimate.low <= estimate.high).all())
    (5, True)
    """

    shares: Floats
    low: Floats
    high: Floats
    confidence: float
    size: int

    def heavy_hitters(self, share: float = 0.0) -> Integers:
        """The answers whose true share is above `share` with this confidence, the most frequent
        first.

        >>> device = HadamardResponse(epsilon=4, outcomes=1_000)
        >>> device.estimate(device.privatise([7] * 5_000 + [300] * 5_000)).heavy_hitters(0.2).size
        2
        """
        above = np.flatnonzero(self.low > check.probability(share=share))
        return above[np.argsort(-self.shares[above], kind="stable")].astype(np.int64)


class LocalMechanism(Mechanism):
    """Base of those that follow. A report names its answer with chance `truth` and any other
    with chance `lie`.

    **Guarantee.** Every subclass states its own. It is about the report of one person, and it holds
    against the collector too.

    >>> device = RandomizedResponse(epsilon=1)
    >>> isinstance(device, LocalMechanism), device.privatise(1) in (0, 1)
    (True, True)
    """

    truth: Fraction
    lie: Fraction

    def __init__(self, outcomes: int, unit: str) -> None:
        self.outcomes = _outcomes(outcomes)
        self._words: dict[str, Any] = {"relation": "replace", "unit": unit}

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    _guarantee: Guarantee

    def draw(self, data: object) -> object:
        return self.privatise(cast(npt.ArrayLike, data))

    def privatise(self, values: npt.ArrayLike) -> int | npt.NDArray[Any]:
        """One report for each value; for one value one report."""
        if is_many(values) or isinstance(values, range):
            return np.asarray(self._reports(self._answers(values)))
        (report,) = self._reports(self._answers([values]))
        return int(report) if np.ndim(report) == 0 else np.asarray(report)

    def estimate(self, reports: npt.ArrayLike, confidence: float = CONFIDENCE) -> LocalEstimate:
        """The shares of the answers, from reports made with these parameters."""
        beta = 1 - check.inner_probability(confidence=confidence)
        named, size = self._count_reports(reports)
        observed, divergence = named / size, math.log(2 * self._separate / beta) / size
        low, high = (
            self._share(_edge(observed, divergence, 0.0)),
            self._share(_edge(observed, divergence, 1.0)),
        )
        return LocalEstimate(self._share(observed), np.clip(low, 0, 1), np.clip(high, 0, 1), confidence, size)

    def variance(self, size: int, share: float = 0.0) -> float:
        """The variance of the estimate of a true share among `size` people, whose answers are
        fixed.
        """
        f = exactly(check.probability(share=share))
        coins = f * self.truth * (1 - self.truth) + (1 - f) * self.lie * (1 - self.lie)
        return float(coins / check.whole(size=size) / (self.truth - self.lie) ** 2)

    def sample_size(self, error: float, confidence: float = CONFIDENCE) -> int:
        """So many reports suffice for all shares to be off by at most `error`, and for intervals no
        wider than that.

        n = ln(2m / β) / (2 error² (truth - lie)²), for m intervals at once (Hoeffding 1963).
        """
        beta = 1 - check.inner_probability(confidence=confidence)
        gap = exactly(check.positive(error=error)) * (self.truth - self.lie)
        return math.ceil(Fraction(math.log(2 * self._separate / beta) * (1 + 1e-12)) / (2 * gap * gap))

    def shuffled(self, people: int) -> ShuffledReports:
        """The same reports, seen only after a shuffler mixed those of so many people or more."""
        return ShuffledReports(self, people)

    @property
    def _separate(self) -> int:
        """How many intervals must hold at once."""
        return self.outcomes

    @abstractmethod
    def _reports(self, answers: Integers) -> Any:
        """Fresh reports, one for each answer."""

    @abstractmethod
    def _count_reports(self, reports: Any) -> tuple[Floats, int]:
        """How many reports name each answer, and how many reports there are."""

    def _answers(self, values: Any) -> Integers:
        return np.floor(numbers_within(values, 0.0, float(self.outcomes - 1))).astype(np.int64)

    def _share(self, observed: Floats) -> Floats:
        return (observed - float(self.lie)) / float(self.truth - self.lie)


class RandomizedResponse(LocalMechanism):
    """The true answer with odds e^ε against each other one; for bits also by `bias`: the truth with
    chance 1/2 + bias.

    **Guarantee.** ε-differential privacy of every report; `bias` d is ε = ln((1/2 + d)/(1/2 - d)) =
    2 artanh(2d).

    Why it holds: with r = e^(-ε), rounded up, the chances are 1/(1 + (k-1)r) and r/(1 + (k-1)r).

    >>> RandomizedResponse(bias=0.1).guarantee
    randomized_response(epsilon=0.40546510810816, outcomes=2, relation='replace')
    >>> device = RandomizedResponse(epsilon=1, outcomes=100)
    >>> device.privatise([3, 14, 15]).shape
    (3,)
    >>> RandomizedResponse(epsilon=1).sample_size(error=0.05, confidence=0.95)
    3455
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        bias: float | None = None,
        outcomes: int = 2,
        unit: str = "record",
    ) -> None:
        super().__init__(outcomes, unit)
        if (epsilon is None) == (bias is None) or (bias is not None and self.outcomes != 2):
            raise BadParameter(
                "DP107",
                "state either epsilon or, for two outcomes, bias.",
                why="both say how often a report is true, and they could contradict each other.",
                fix="RandomizedResponse(epsilon=1.0)",
            )
        if epsilon is not None:
            epsilon = check.moderate(epsilon=epsilon)
            odds = _exp_minus_above(exactly(epsilon))
        else:
            odds, epsilon = _odds_of_bias(bias)
        self.truth = 1 / (1 + (self.outcomes - 1) * odds)
        self.lie = odds * self.truth
        self._guarantee = privacy.randomized_response(epsilon, self.outcomes, **self._words)

    @property
    def bias(self) -> float:
        """By how much the truth is likelier than a half."""
        return float(self.truth - Fraction(1, 2))

    @property
    def _separate(self) -> int:
        return 1 if self.outcomes == 2 else self.outcomes  # the two shares of a bit are one number

    def _reports(self, answers: Integers) -> Integers:
        honest = noise.bernoulli(self.truth, answers.size)
        step = noise.uniform(self.outcomes - 1, answers.size) if self.outcomes > 2 else 0
        return np.where(honest, answers, (answers + 1 + step) % self.outcomes)

    def _count_reports(self, reports: Any) -> tuple[Floats, int]:
        array = np.asarray(reports)
        if array.ndim != 1 or not array.size or array.dtype.kind not in "biu":
            raise _unfit_reports_error(f"a list of whole numbers below {self.outcomes}")
        if int(array.min()) < 0 or int(array.max()) >= self.outcomes:
            raise _unfit_reports_error(f"a list of whole numbers below {self.outcomes}")
        return np.bincount(array.astype(np.int64), minlength=self.outcomes).astype(np.float64), array.size


class _Unary(LocalMechanism):
    """A row of bits, one for each answer, of which the true one is 1 before each bit is randomised
    by itself.
    """

    def _reports(self, answers: Integers) -> Any:
        rows = np.empty((answers.size, self.outcomes), np.bool_)
        step = max(1, _CHUNK // self.outcomes)
        for start in range(0, answers.size, step):
            part = rows[start : start + step]
            part[:] = noise.bernoulli(self.lie, part.shape)
            own = answers[start : start + step]
            part[np.arange(own.size), own] = noise.bernoulli(self.truth, own.size)
        return rows

    def _count_reports(self, reports: Any) -> tuple[Floats, int]:
        array = np.asarray(reports)
        if (
            array.ndim != 2
            or array.shape[1] != self.outcomes
            or not array.size
            or array.dtype.kind not in "biu"
        ):
            raise _unfit_reports_error(f"rows of {self.outcomes} bits")
        if int(array.min()) < 0 or int(array.max()) > 1:
            raise _unfit_reports_error(f"rows of {self.outcomes} bits")
        return array.sum(axis=0, dtype=np.int64).astype(np.float64), len(array)


class SymmetricUnary(_Unary):
    """A row of bits, each of which is kept with odds e^(ε/2) (also called basic RAPPOR).

    **Guarantee.** ε-differential privacy of every row, and a little better when composed: the
    guarantee is that of the two bits in which two rows differ, each with odds e^(ε/2).

    >>> device = SymmetricUnary(epsilon=1, outcomes=5)
    >>> float(device.truth), float(device.lie)
    (0.62245933, 0.37754067)
    >>> device.privatise(3).shape
    (5,)
    """

    def __init__(self, *, epsilon: float, outcomes: int, unit: str = "record") -> None:
        super().__init__(outcomes, unit)
        epsilon = _table_epsilon(epsilon)
        odds = _exp_minus_above((exactly(epsilon) - 2 * exactly(_MARGIN)) / 2)
        self.truth, self.lie = 1 / (1 + odds), odds / (1 + odds)
        flip = math.exp(-(epsilon - _MARGIN) / 2)
        self._guarantee = _of_two_bits(flip * flip, 2 * flip, self._words)


class OptimisedUnary(_Unary):
    """A row of bits: the true one is a fair coin, and any other is 1 with chance 1/(e^ε + 1).

    **Guarantee.** ε-differential privacy of every row, and the least variance of rare shares among
    unary encodings, about that of many outcomes 4e^ε/(n(e^ε - 1)²) (Wang, Blocki, Li, Jha 2017).

    >>> device = OptimisedUnary(epsilon=1, outcomes=5)
    >>> float(device.truth), float(device.lie)
    (0.5, 0.26894142)
    >>> round(device.variance(size=1_000), 6), round(SymmetricUnary(epsilon=1, outcomes=5).variance(size=1_000), 6)
    (0.003683, 0.003918)
    """

    def __init__(self, *, epsilon: float, outcomes: int, unit: str = "record") -> None:
        super().__init__(outcomes, unit)
        epsilon = _table_epsilon(epsilon)
        odds = _exp_minus_above(exactly(epsilon) - 2 * exactly(_MARGIN))
        self.truth, self.lie = Fraction(1, 2), odds / (1 + odds)
        flip = math.exp(-(epsilon - _MARGIN))
        self._guarantee = _of_two_bits(flip, 1 + flip, self._words)


class HadamardResponse(LocalMechanism):
    """One whole number for a report, whatever the number of answers: for large domains and heavy
    hitters.

    An answer stands for half of a block of numbers, chosen by a row of a Hadamard matrix. The
    report is a number of that half, with odds e^ε against each other half of a block.

    **Guarantee.** ε-differential privacy of every report. The variance of a share does not grow
    with the number of answers, and is at most about twice that of `OptimisedUnary`. All shares lie
    in their intervals at once with the stated confidence.

    Why it holds: halves have equally many numbers, so a number is likelier by e^ε at most. Rows are
    orthogonal, so in the difference between both halves of an answer all other answers cancel
    (Acharya, Sun, Zhang 2019). That difference is a sum of independent numbers in {-1, 0, 1}, whose
    second moment is the chance of the block; Bennett 1962 bounds it by that.

    >>> device = HadamardResponse(epsilon=1, outcomes=1_000_000)
    >>> device.privatise([3, 14, 15]).shape
    (3,)
    >>> round(device.variance(size=1_000), 5)
    0.00468
    """

    def __init__(self, *, epsilon: float, outcomes: int, unit: str = "record") -> None:
        super().__init__(outcomes, unit)
        if self.outcomes > _MOST_TRANSFORMED:
            raise _too_many_outcomes_error(_MOST_TRANSFORMED)
        epsilon = _table_epsilon(epsilon)
        odds = _exp_minus_above(exactly(epsilon) - 2 * exactly(_MARGIN))
        # With so many blocks a report is in the right half about every second time.
        self._blocks = max(1, min(self.outcomes // 2, round(1 / (2 * odds) - Fraction(1, 2))))
        self._width = 1 << (-(-self.outcomes // self._blocks)).bit_length()
        self.truth = 1 / (1 + (2 * self._blocks - 1) * odds)
        self.lie = odds * self.truth
        flip = math.exp(-(epsilon - _MARGIN))
        even = 1 + flip if self._blocks == 1 else (2 * self._blocks - 2) * flip
        self._guarantee = _of_two_bits(flip, even, self._words)

    def estimate(self, reports: npt.ArrayLike, confidence: float = CONFIDENCE) -> LocalEstimate:
        """The shares of the answers, from reports made with these parameters."""
        beta = 1 - check.inner_probability(confidence=confidence)
        array = self._checked_reports(reports)
        size = array.size
        counts = np.bincount(array, minlength=self._blocks * self._width).reshape(self._blocks, -1)
        surplus = _transform(counts)[self._places(np.arange(self.outcomes, dtype=np.int64))]
        # One interval for each side of each answer, and one side for the chance of each block.
        room = math.log((2 * self.outcomes + self._blocks) / beta) / size
        chances = _edge(counts.sum(axis=1) / size, room, 1.0)
        away = _bennett(chances, room)[np.arange(self.outcomes) % self._blocks]
        scale = 1 / float(self.truth - self.lie)
        shares = surplus / size * scale
        low, high = shares - away * scale, shares + away * scale
        return LocalEstimate(shares, np.clip(low, 0, 1), np.clip(high, 0, 1), confidence, size)

    def variance(self, size: int, share: float = 0.0) -> float:
        """The variance of the estimate of a true share among `size` people, if the answers of all
        others are spread evenly over the blocks.
        """
        f, blocks = exactly(check.probability(share=share)), self._blocks
        in_block = (self.truth + self.lie, 2 * self.lie)
        others = in_block[0] / blocks + in_block[1] * (1 - Fraction(1, blocks))
        spread = f * (in_block[0] - (self.truth - self.lie) ** 2) + (1 - f) * others
        return float(spread / check.whole(size=size) / (self.truth - self.lie) ** 2)

    def sample_size(self, error: float, confidence: float = CONFIDENCE) -> int:
        """So many reports suffice for all shares to be off by at most `error`, whatever the answers
        are (Hoeffding 1963).
        """
        beta = 1 - check.inner_probability(confidence=confidence)
        gap = exactly(check.positive(error=error)) * (self.truth - self.lie)
        return math.ceil(Fraction(2 * math.log(2 * self.outcomes / beta) * (1 + 1e-12)) / (gap * gap))

    def _reports(self, answers: Integers) -> Integers:
        block, row = answers % self._blocks, answers // self._blocks + 1
        honest = noise.bernoulli(self.truth, answers.size)
        place = noise.uniform(self._width, answers.size)
        lie = noise.uniform(2 * self._blocks - 1, answers.size) if self._blocks > 1 else 0 * answers
        # The other half of the own block, or one of two halves of another block.
        own = honest | (lie == 0)
        is_odd = np.bitwise_count(place & row) % 2 == 1
        flipped = np.where(is_odd == honest, place ^ (row & -row), place)
        elsewhere = (block + (lie + 1) // 2) % self._blocks
        return np.where(own, block * self._width + flipped, elsewhere * self._width + place)

    def _count_reports(self, reports: Any) -> tuple[Floats, int]:
        array = self._checked_reports(reports)
        counts = np.bincount(array, minlength=self._blocks * self._width)
        return counts.astype(np.float64), array.size

    def _checked_reports(self, reports: Any) -> Integers:
        array, numbers = np.asarray(reports), self._blocks * self._width
        if array.ndim != 1 or not array.size or array.dtype.kind not in "biu":
            raise _unfit_reports_error(f"a list of whole numbers below {numbers}")
        if int(array.min()) < 0 or int(array.max()) >= numbers:
            raise _unfit_reports_error(f"a list of whole numbers below {numbers}")
        return array.astype(np.int64)

    def _places(self, answers: Integers) -> tuple[Integers, Integers]:
        """Block and row of each answer. Row 0 has no second half, and stands for nothing."""
        return answers % self._blocks, answers // self._blocks + 1


class ShuffledReports(Mechanism):
    """Local reports of many people, of which only the shuffled list is seen.

    **Guarantee.** That of `privacy.shuffled`: among `people` honest reports in random order, one
    answer is hidden better than in its own report. The list is shuffled uniformly, by fresh words
    of the cryptographic source, and a list of fewer reports is refused. Against whoever sees single
    reports, the shuffler itself for one, the guarantee is that of the `device`.

    >>> shuffled = RandomizedResponse(epsilon=1).shuffled(people=1_000)
    >>> round(shuffled.guarantee.epsilon(delta=1e-6), 3)
    0.149
    >>> reports = [shuffled.privatise(answer) for answer in [0, 1] * 500]
    >>> shuffled.estimate(shuffled.shuffle(reports)).size
    1000
    """

    def __init__(self, device: LocalMechanism, people: int) -> None:
        if not isinstance(device, LocalMechanism):
            raise BadParameter(
                "DP104",
                "device must be a local mechanism.",
                why="a shuffler mixes reports that were randomised before.",
                fix="RandomizedResponse(epsilon=1.0).shuffled(people=1_000)",
            )
        self.device, self.people = device, check.whole(people=people)
        self._guarantee = privacy.shuffled(device.guarantee, self.people)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def privatise(self, values: npt.ArrayLike) -> int | npt.NDArray[Any]:
        """One report for each value, as on the devices."""
        return self.device.privatise(values)

    def shuffle(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        """The reports in uniformly random order; refused if they are fewer than `people`."""
        array = np.asarray(reports)
        if array.ndim == 0 or len(array) < self.people:
            raise BadParameter(
                "DP104",
                f"there must be {self.people:,} reports or more.",
                why="the guarantee holds among so many reports, and fewer hide less.",
                fix="collect more reports, or state fewer people:  device.shuffled(people=…)",
            )
        return np.asarray(array[_random_order(len(array))])

    def draw(self, data: object) -> object:
        return self.shuffle(cast(npt.ArrayLike, self.privatise(cast(npt.ArrayLike, data))))

    def estimate(self, reports: npt.ArrayLike, confidence: float = CONFIDENCE) -> LocalEstimate:
        """The shares of the answers; the order of the reports does not matter."""
        return self.device.estimate(reports, confidence)


def _random_order(size: int) -> Integers:
    """A uniformly random permutation: the order of random words, drawn again if two are equal."""
    while True:
        words = current().words(size)
        order = np.argsort(words, kind="stable")
        if size < 2 or not np.any(words[order][1:] == words[order][:-1]):
            return order.astype(np.int64)


def _transform(counts: npt.NDArray[Any]) -> Floats:
    """The Walsh-Hadamard transform of each row: Σ_j (-1)^|i & j| · counts[j], exactly."""
    rows, width = counts.shape
    values = counts.astype(np.int64)
    half = 1
    while half < width:
        pairs = values.reshape(rows, width // (2 * half), 2, half)
        values = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        values = values.reshape(rows, width)
        half *= 2
    return values.astype(np.float64)


def _bennett(chances: Floats, room: float) -> Floats:
    """The t with s·h(t/s) = room for each s, h(u) = (1 + u)·log(1 + u) - u, rounded up.

    Independent numbers in [-1, 1] with mean second moment s have a mean that exceeds its
    expectation by t with probability e^(-n·s·h(t/s)) at most.
    """
    low, high = np.zeros_like(chances), np.full_like(chances, 2.0 + 2 * room)
    for _ in range(80):
        middle = (low + high) / 2
        within = chances * ((1 + middle / chances) * np.log1p(middle / chances)) - middle <= room
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return high


def _of_two_bits(wrong: float, even: float, words: dict[str, Any]) -> Guarantee:
    """What two rows that differ in two bits reveal: right, even and wrong are as 1 : even : wrong.

    The coins have an ε that is smaller by _MARGIN than this table, which also has less weight on
    what reveals nothing: both are worse than the truth by far more than rounding, and such a table
    can be coarsened to the coins.
    """
    silent = even / (1 + even + wrong) * (1 - _MARGIN)
    right, false = (1 - silent) / (1 + wrong), (1 - silent) * wrong / (1 + wrong)
    return privacy.pair([right, silent, false], [false, silent, right], **words)


def _exp_minus_above(x: Fraction) -> Fraction:
    """e^(-x) rounded up, so finely that neither it nor its distance from 1 loses digits."""
    small = max(0, x.denominator.bit_length() - x.numerator.bit_length())
    bits = 66 + min(2 * math.ceil(x), 2000) + small
    return Fraction(exp_minus(x, bits)[1], 1 << bits)


def _odds_of_bias(bias: Any) -> tuple[Fraction, float]:
    """The exact odds of a lie, and ε rounded up."""
    check.positive(bias=bias)
    d = exactly(bias)
    if d >= Fraction(1, 2):
        raise BadParameter(
            "DP102",
            f"bias must be below 1/2, not {float(d)!r}.",
            why="at 1/2 every report is true, and nobody is protected.",
            fix="bias=0.25",
        )
    half = Fraction(1, 2)
    return (half - d) / (half + d), math.log1p(float(2 * d / (half - d))) * (1 + 1e-15)


def _edge(observed: Floats, divergence: float, end: float) -> Floats:
    """The chance between `observed` and `end` at this KL distance from `observed`, rounded towards
    `end`.
    """
    inner, outer = observed.copy(), np.full_like(observed, end)
    for _ in range(60):
        middle = (inner + outer) / 2
        within = rel_entr(observed, middle) + rel_entr(1 - observed, 1 - middle) <= divergence
        inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
    return outer


def _outcomes(outcomes: Any) -> int:
    count = check.whole(at_least=2, outcomes=outcomes)
    if count <= _MOST_OUTCOMES:
        return count
    raise _too_many_outcomes_error(_MOST_OUTCOMES)


def _too_many_outcomes_error(most: int) -> BadParameter:
    return BadParameter(
        "DP102",
        f"outcomes must be at most {most}.",
        why="the collector keeps a number for each of them.",
        fix="group the answers",
    )


def _table_epsilon(epsilon: Any) -> float:
    number = check.positive(epsilon=epsilon)
    if 1e-9 <= number <= 700:
        return number
    raise BadParameter(
        "DP102",
        f"epsilon must lie between 1e-9 and 700, not {number!r}.",
        why="the guarantee of a unary encoding is a table of floats, which cannot hold more.",
        fix="epsilon=1.0",
    )


def _unfit_reports_error(what: str) -> BadParameter:
    return BadParameter(
        "DP104",
        f"reports must be {what}, and not empty.",
        why="only reports that were made with these parameters can be read.",
        fix="mechanism.estimate(mechanism.privatise(values))",
    )
