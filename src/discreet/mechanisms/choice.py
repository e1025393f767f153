# SPDX-License-Identifier: Apache-2.0
"""The best of many candidates: mechanisms that compare noisy scores.

    exponential_mechanism([30, 31, 2], epsilon=1, sensitivity=1).value  # an index
    permute_and_flip(counts, epsilon=1, sensitivity=1, monotone=True, candidates=names).value
    choose(revenue, range(1_000_000), bids, epsilon=1, sensitivity=100).value  # a candidate
    TopK(epsilon=1, sensitivity=1, count=3)(scores).value  # three indices, in order

`sensitivity` bounds how far one protected unit moves any one score.
`monotone=True` says that one unit moves all scores in the same direction, as an added record does
with counts. It halves the noise. If it is not true, it doubles the loss.

**Guarantee.** The answer has exactly the distribution of the largest noisy score, whatever the size
of the scores. The scale is never below the one that ε needs. Scores are not released, with or
without noise.

Why it holds: choice.proof.md, and `noise.largest`, which compares exactly. What would break it: a
sensitivity that does not hold for the scores as they are computed (floats round: use whole numbers
or Fractions where it matters); candidates that were read off the data.

A score that is not a finite number (NaN, an infinity, None, a text) counts as 0, because a refusal
would reveal it. The sensitivity must hold for the scores as they count: no record may turn a score
of 1,000 into NaN. The number of scores and the type of an array are public.

Each class has a function for a single run: `ExponentialMechanism` and `exponential_mechanism`. Use
the class with a session, with `error`, or to run it more than once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Sized
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet import check, noise, privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.exact import exactly, float_below, widest
from discreet.mechanisms.callbacks import call_quietly
from discreet.mechanisms.exact import finite_numbers, results
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Release
from discreet.noise.race import NOISES
from discreet.noise.scales import Number, is_many
from discreet.privacy.guarantee import Guarantee

__all__ = [
    "Choice",
    "ExponentialMechanism",
    "NoisyMax",
    "PermuteAndFlip",
    "TopK",
    "choose",
    "exponential_mechanism",
    "noisy_max",
    "permute_and_flip",
]

_UP = 1 + 1e-12  # far more than the rounding of a logarithm


class Choice(Mechanism):
    """The candidate whose noisy score is the largest. Base of the mechanisms below.

    The data are the scores, one for each candidate, in an order that does not depend on data. The
    value is the index of the chosen candidate, or the candidate itself if `candidates` are stated.

    **Guarantee.** Every subclass states its own. All require that one protected unit moves each
    score by at most `sensitivity`.

    >>> chooser = ExponentialMechanism(epsilon=1, sensitivity=1, candidates=["no", "yes"])
    >>> isinstance(chooser, Choice), chooser([0, 1_000]).value
    (True, 'yes')
    """

    error_unit = "below the best score"

    def __init__(
        self,
        *,
        epsilon: float,
        sensitivity: Number,
        monotone: bool = False,
        candidates: Sequence[Any] | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.epsilon = check.moderate(epsilon=epsilon)
        self.sensitivity = check.moderate(sensitivity=sensitivity)
        self.candidates = None if candidates is None else _check_candidates(candidates)
        self._distance = widest(sensitivity)
        self.monotone = require_monotone(monotone=monotone, relation=relation)
        self._words = {"relation": relation, "unit": unit}
        self._guarantee = self._total_guarantee()

    @property
    @abstractmethod
    def noise(self) -> str:
        """The noise on each score: "gumbel", "exponential" or "laplace"."""

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each score: 2Δ/ε, or Δ/ε where the scores are monotone."""
        return (1 if self.monotone else 2) * self._distance / exactly(self.epsilon)

    def draw(self, data: object) -> object:
        return self._candidate_at(noise.largest(self._scores(data), self.scale, noise=self.noise)[0])

    def error(self, confidence: float = CONFIDENCE, candidates: int | None = None) -> float | None:
        """The margin of error: how far the chosen score is below the best at most.

        It grows with the number of candidates. It is None if neither `candidates` here nor those
        of the mechanism state that number.
        """
        beta = 1 - check.inner_probability(confidence=confidence)
        if candidates is None and self.candidates is not None:
            candidates = len(self.candidates)
        if candidates is None:
            return None
        others = check.whole(candidates=candidates) - 1
        return max(0.0, float(self.scale) * self._margin_in_scales(others, beta) * _UP) if others else 0.0

    def _error_at_size(self, data: object) -> float | None:
        return self.error(candidates=len(cast(Sized, data)))

    def _total_guarantee(self) -> Guarantee:
        kind = privacy.exponential if self.noise == "gumbel" else privacy.pure
        return kind(self.epsilon, **self._words)

    def _margin_in_scales(self, others: int, beta: float) -> float:
        """How many scales below the best a winner is with probability at most β: choice.proof.md,
        §4.
        """
        if self.noise == "gumbel":
            return math.log(others) + math.log1p(-beta) - math.log(beta)
        first = max(0.0, math.log(others) - math.log(2 * beta))
        if self.noise != "laplace":
            return first
        # The start is above the root of x = first + log(1 + x/2), and so is every iterate.
        margin = 2 * first + 2
        for _ in range(60):
            margin = first + math.log1p(margin / 2)
        return margin

    def _scores(self, data: object) -> npt.NDArray[Any]:
        scores = finite_numbers(data)
        if np.ndim(scores) != 1:
            raise BadParameter(
                "DP101",
                "scores must be one row of numbers.",
                why="each score belongs to one candidate.",
                fix="give one finite number for each candidate",
            )
        if not scores.size:
            raise _no_candidates_error()
        if self.candidates is not None and len(self.candidates) != scores.size:
            raise BadParameter(
                "DP107",
                f"there are {len(self.candidates)} candidates and {scores.size} scores.",
                why="each score belongs to the candidate with the same index.",
                fix="give one score for each candidate, in the same order",
            )
        return np.asarray(scores)

    def _candidate_at(self, index: Any) -> Any:
        return int(index) if self.candidates is None else self.candidates[int(index)]


class ExponentialMechanism(Choice):
    """Candidate i with probability proportional to exp(ε·score_i / 2Δ); Δ for 2Δ if monotone.

    **Guarantee.** ε-bounded range, which implies ε-differential privacy and (ε²/8)-concentrated
    privacy.

    Why it holds: McSherry, Talwar 2007; Dong, Durfee, Rogers 2020 for the range; choice.proof.md,
    §1. What would break it: `monotone=True` for scores that are not monotone; the loss is then up
    to 2ε.

    >>> prices, bids = [100, 101, 301, 302], [100, 100, 100, 301]  # whole cents add up exactly
    >>> auction = ExponentialMechanism(epsilon=2, sensitivity=302, candidates=prices)
    >>> auction([price * sum(bid >= price for bid in bids) for price in prices]).value in prices
    True
    >>> auction.guarantee
    exponential(epsilon=2.0)
    """

    noise = "gumbel"


class PermuteAndFlip(Choice):
    """The first candidate, in random order, whose coin of bias exp(ε·(score - best) / 2Δ) is heads.

    **Guarantee.** ε-differential privacy, and an expected score never below that of the exponential
    mechanism. If the scores are monotone, Δ takes the place of 2Δ.

    Why it holds: McKenna, Sheldon 2020. It is the largest score plus exponential noise (Ding et al.
    2021), and is drawn that way; choice.proof.md, §2. It has no bounded range, so exponential
    mechanisms compose better.

    >>> diseases, patients = ["flu", "gout", "mumps"], [310, 25, 190]
    >>> common = PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True, candidates=diseases)
    >>> common(patients).value  # the others are behind by 120 scales of the noise or more
    'flu'
    """

    noise = "exponential"


class NoisyMax(Choice):
    """Report noisy max: the index of the largest noisy score; the noise stays secret.

    **Guarantee.** ε-differential privacy for all three noises. "gumbel" is the exponential
    mechanism, "exponential" is permute-and-flip, and "laplace" is the textbook mechanism.

    Why it holds: choice.proof.md, §2. What would break it: publishing the winner's noisy score too.

    >>> NoisyMax(epsilon=0.5, sensitivity=1, monotone=True).guarantee
    pure(epsilon=0.5)
    """

    noise = ""

    def __init__(
        self,
        *,
        epsilon: float,
        sensitivity: Number,
        noise: str = "laplace",
        monotone: bool = False,
        candidates: Sequence[Any] | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.noise = check.choice(NOISES, noise=noise)
        super().__init__(
            epsilon=epsilon,
            sensitivity=sensitivity,
            monotone=monotone,
            candidates=candidates,
            relation=relation,
            unit=unit,
        )


class TopK(Choice):
    """The `count` best candidates, as a list from the best on.

    **Guarantee.** `count` exponential mechanisms of ε/count each, each on the remaining candidates;
    together ε.

    Why it holds: the `count` largest scores with Gumbel noise have exactly the distribution of that
    repeated choice (choice.proof.md, §3), and a repeated choice is an adaptive composition with
    parameters fixed in advance.

    >>> three = TopK(epsilon=1.5, sensitivity=1, count=3)
    >>> three.guarantee
    3 * exponential(epsilon=0.5)
    >>> sorted(three([0, 900, 400, 1, 800]).value)  # the others are behind by 99 scales or more
    [1, 2, 4]
    """

    noise = "gumbel"

    def __init__(
        self,
        *,
        epsilon: float,
        sensitivity: Number,
        count: int,
        monotone: bool = False,
        candidates: Sequence[Any] | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.count = check.whole(count=count)
        self._epsilon_of_one = float_below(exactly(check.moderate(epsilon=epsilon)) / self.count)
        super().__init__(
            epsilon=epsilon,
            sensitivity=sensitivity,
            monotone=monotone,
            candidates=candidates,
            relation=relation,
            unit=unit,
        )

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each score: 2Δ/ε for the ε of one choice, or Δ/ε if monotone."""
        return (1 if self.monotone else 2) * self._distance / exactly(self._epsilon_of_one)

    def draw(self, data: object) -> object:
        chosen = noise.largest(self._scores(data), self.scale, noise=self.noise, count=self.count)
        return [self._candidate_at(index) for index in chosen]

    def _total_guarantee(self) -> Guarantee:
        return self.count * privacy.exponential(self._epsilon_of_one, **self._words)

    def _margin_in_scales(self, others: int, beta: float) -> float:
        """The margin of each choice, below the best of its round; a union bound over the choices."""
        return super()._margin_in_scales(others, beta / self.count)


@check.arguments
def exponential_mechanism(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: Number,
    monotone: bool = False,
    candidates: Sequence[Any] | None = None,
    relation: str = "add-remove",
    unit: str = "record",
) -> Release:
    """One run of `ExponentialMechanism` in one call; a session and `error` need the class.

    >>> exponential_mechanism([0, 1_000], epsilon=1, sensitivity=1, candidates=["no", "yes"]).value
    'yes'
    """
    words: dict[str, Any] = {"candidates": candidates, "relation": relation, "unit": unit}
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, **words)
    return mechanism(scores)


@check.arguments
def permute_and_flip(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: Number,
    monotone: bool = False,
    candidates: Sequence[Any] | None = None,
    relation: str = "add-remove",
    unit: str = "record",
) -> Release:
    """One run of `PermuteAndFlip` in one call; a session and `error` need the class.

    >>> permute_and_flip([0, 1_000], epsilon=1, sensitivity=1).value
    1
    """
    words: dict[str, Any] = {"candidates": candidates, "relation": relation, "unit": unit}
    mechanism = PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, **words)
    return mechanism(scores)


@check.arguments
def noisy_max(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: Number,
    noise: str = "laplace",
    monotone: bool = False,
    candidates: Sequence[Any] | None = None,
    relation: str = "add-remove",
    unit: str = "record",
) -> Release:
    """One run of `NoisyMax` in one call; a session and `error` need the class.

    >>> noisy_max([0, 1_000], epsilon=1, sensitivity=1, noise="laplace").value
    1
    """
    words: dict[str, Any] = {"candidates": candidates, "relation": relation, "unit": unit}
    mechanism = NoisyMax(epsilon=epsilon, sensitivity=sensitivity, noise=noise, monotone=monotone, **words)
    return mechanism(scores)


@check.arguments
def choose(
    utility: Callable[[Any, Any], Any],
    candidates: Sequence[Any],
    data: object,
    *,
    epsilon: float,
    sensitivity: Number,
    mechanism: Callable[..., Choice] = ExponentialMechanism,
    vectorised: bool = False,
    monotone: bool = False,
    noise: str | None = None,
    count: int | None = None,
    relation: str = "add-remove",
    unit: str = "record",
) -> Release:
    """The candidate with about the greatest utility(data, candidate), of a million if need be.

    **Guarantee.** That of `mechanism`, if one unit moves utility(data, candidate) by at most
    `sensitivity` for every candidate. With `vectorised=True` the utility is called once, with all
    candidates, and returns all scores. `noise` is a parameter of `NoisyMax`, and `count` of `TopK`.

    A utility that raises, or returns something else than a finite number, gives the score 0. If a
    vectorised utility raises, or does not return one score for each candidate, all scores are 0. An
    error would depend on the data. The `sensitivity` must hold for the scores as they count.

    >>> bids = [1, 1, 1, 3]
    >>> choose(lambda bids, price: price * sum(bid >= price for bid in bids), range(1, 5), bids,
    ...        epsilon=200, sensitivity=4).value
    1
    """
    special = {name: value for name, value in (("noise", noise), ("count", count)) if value is not None}
    chooser = mechanism(
        epsilon=epsilon,
        sensitivity=sensitivity,
        monotone=monotone,
        candidates=candidates,
        relation=relation,
        unit=unit,
        **special,
    )
    check.function(utility=utility)
    if check.flag(vectorised=vectorised):
        return chooser(_scores_or_zeros(call_quietly(utility, data, candidates), len(candidates)))
    return chooser(results(lambda candidate: utility(data, candidate), list(candidates)))


def _scores_or_zeros(scores: object, count: int) -> Any:
    """The result of a vectorised utility as `count` finite numbers; zeros if it has another form."""
    numbers = call_quietly(finite_numbers, scores if is_many(scores) else call_quietly(list, scores))
    return numbers if np.shape(numbers) == (count,) else [0] * count


def _check_candidates(candidates: Sequence[Any]) -> Sequence[Any]:
    if isinstance(candidates, Mapping) or not (
        hasattr(candidates, "__len__") and hasattr(candidates, "__getitem__")
    ):
        raise BadParameter(
            "DP104",
            "candidates must be a sequence: a list, a tuple, a range or an array.",
            why="their order says which score belongs to which candidate, so it must be public.",
            fix="candidates=['a', 'b', 'c']",
        )
    if not len(candidates):
        raise _no_candidates_error()
    return candidates


def _no_candidates_error() -> BadParameter:
    return BadParameter(
        "DP102",
        "there are no candidates.",
        why="the answer is one of the candidates.",
        fix="give one score for each candidate, and at least one",
    )


def require_monotone(*, monotone: bool, relation: str) -> bool:
    """The flag, validated: scores cannot be monotone where a record is replaced."""
    if check.flag(monotone=monotone) and relation == "replace":
        raise UnsupportedGuarantee(
            "DP203",
            "scores cannot be monotone under the relation 'replace'.",
            why="one score loses the old record while another gains the new one.",
            fix="leave monotone out",
        )
    return bool(monotone)
