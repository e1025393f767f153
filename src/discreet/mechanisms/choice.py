# SPDX-License-Identifier: Apache-2.0
"""Choosing the best of many, without telling who made it the best: races of noisy scores.

    exponential_mechanism([30, 31, 2], epsilon=1, sensitivity=1).value              # an index
    permute_and_flip(counts, epsilon=1, sensitivity=1, monotone=True, candidates=names).value
    choose(revenue, range(1_000_000), bids, epsilon=1, sensitivity=100).value       # a candidate
    TopK(epsilon=1, sensitivity=1, count=3)(scores).value                           # three indices, in order

`sensitivity` is how much any one score moves, at most, when one protected unit changes. `monotone=True` says that
all scores then move the same way, up or down, none against the others: counts do, when somebody is added. It halves
the noise; said without being true, it doubles the loss.

**Guarantee.** The answer has exactly the distribution of the largest noisy score, whatever the size of the scores, and the
scale is never below the one that ε needs. The guarantee is that of the exact distribution. No score leaves, noisy or not.

Why it holds: choice.proof.md, and `noise.largest`, which compares exactly. What would break it: a sensitivity that
is not true of the scores as they are computed (floats round: give whole numbers or Fractions where it matters), or a
list of candidates that was read off the data.

A score that is no finite number (NaN, an infinity, None, a text) counts as 0, one fixed rule for all data: a refusal would tell
that there is such a score. The sensitivity must be true of the scores as they count: whoever computes them sees to it that no
record turns a score of 1,000 into NaN. The number of scores is public, and so is the type of an array.
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
    """The candidate whose noisy score is the largest. Base of those that follow.

    The data are the scores, one for each candidate, in an order that does not depend on data. The value is the
    index of the chosen one, or the chosen one itself where `candidates` were given.

    **Guarantee.** Every subclass states its own; all hold for scores of which one protected unit moves each by `sensitivity`
    at most. `monotone=True` says that all scores move the same way, which halves the noise. A score that is no finite
    number counts as 0.

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
        self.monotone = require_monotone(monotone, relation)
        self._words = {"relation": relation, "unit": unit}
        self._guarantee = self._total_guarantee()

    @property
    @abstractmethod
    def noise(self) -> str:
        """Which noise races: "gumbel", "exponential" or "laplace"."""

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
        """How far the chosen score is below the best, at most, with this confidence.

        It grows with the number of candidates: state it, or make the mechanism with them; else there is no answer.
        """
        beta = 1 - check.inner_probability(confidence=confidence)
        if candidates is None and self.candidates is not None:
            candidates = len(self.candidates)
        if candidates is None:
            return None
        others = check.whole(candidates=candidates) - 1
        return max(0.0, float(self.scale) * self._behind(others, beta) * _UP) if others else 0.0

    def _error_at_size(self, data: object) -> float | None:
        return self.error(candidates=len(cast(Sized, data)))

    def _total_guarantee(self) -> Guarantee:
        kind = privacy.exponential if self.noise == "gumbel" else privacy.pure
        return kind(self.epsilon, **self._words)

    def _behind(self, others: int, beta: float) -> float:
        """How many scales behind the best all others may be and still win with probability β: choice.proof.md, §4."""
        if self.noise == "gumbel":
            return math.log(others) + math.log1p(-beta) - math.log(beta)
        first = max(0.0, math.log(others) - math.log(2 * beta))
        behind = first
        if self.noise == "laplace":
            behind = 2 * first + 2  # above the root of x = first + log(1 + x/2), and so is every iterate
            for _ in range(60):
                behind = first + math.log1p(behind / 2)
        return behind

    def _scores(self, data: Any) -> Any:
        scores = finite_numbers(data)
        if np.ndim(scores) != 1:
            raise BadParameter(
                "DP101",
                "scores must be one row of numbers.",
                why="each of them belongs to one candidate.",
                fix="give one finite number for each candidate",
            )
        if not scores.size:
            raise _no_candidates_error()
        if self.candidates is not None and len(self.candidates) != scores.size:
            raise BadParameter(
                "DP107",
                f"there are {len(self.candidates)} candidates, and another number of scores.",
                why="the index of a score says which candidate it belongs to.",
                fix="give one score for each candidate, in the same order",
            )
        return scores

    def _candidate_at(self, index: Any) -> Any:
        return int(index) if self.candidates is None else self.candidates[int(index)]


class ExponentialMechanism(Choice):
    """Candidate i with a probability proportional to exp(ε·score_i / 2Δ), or exp(ε·score_i / Δ) if monotone.

    **Guarantee.** ε-bounded range, which implies ε-differential privacy and (ε²/8)-concentrated privacy.

    Why it holds: McSherry, Talwar 2007; Dong, Durfee, Rogers 2020 for the range; choice.proof.md, §1.
    What would break it: `monotone=True` on scores that are not: the loss is then up to 2ε.

    >>> prices, bids = [100, 101, 301, 302], [100, 100, 100, 301]       # in cents: whole numbers add up exactly
    >>> auction = ExponentialMechanism(epsilon=2, sensitivity=302, candidates=prices)
    >>> auction([price * sum(bid >= price for bid in bids) for price in prices]).value in prices
    True
    >>> auction.guarantee
    exponential(epsilon=2.0)
    """

    noise = "gumbel"


class PermuteAndFlip(Choice):
    """The first, in random order, that passes a coin of bias exp(ε·(score - best) / 2Δ); Δ for 2Δ if monotone.

    **Guarantee.** ε-differential privacy, and an expected score never below that of the exponential mechanism.

    Why it holds: McKenna, Sheldon 2020. It is the largest score plus exponential noise (Ding et al. 2021), which is
    how it is drawn; choice.proof.md, §2. It has no bounded range: many compose better as exponential mechanisms.

    >>> diseases, patients = ["flu", "gout", "mumps"], [310, 25, 190]
    >>> common = PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True, candidates=diseases)
    >>> common(patients).value       # any other is behind by 120 times the scale of the noise
    'flu'
    """

    noise = "exponential"


class NoisyMax(Choice):
    """Report noisy max: the index of the largest score after noise was added to each; the noise stays secret.

    **Guarantee.** ε-differential privacy for all three noises; with "gumbel" it is the exponential mechanism, with
    "exponential" it is permute-and-flip, with "laplace" the textbook's.

    Why it holds: choice.proof.md, §2. What would break it: to publish the noisy score of the winner with it.

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
    """The best, the best of the rest, and so on, `count` times: the value is a list in that order.

    **Guarantee.** `count` exponential mechanisms of ε/count each, on what is left every time; together ε.

    Why it holds: the `count` largest of one race of Gumbel noise have exactly the distribution of that repeated choice
    (choice.proof.md, §3), and a repeated choice is an adaptive composition with parameters fixed in advance.

    >>> three = TopK(epsilon=1.5, sensitivity=1, count=3)
    >>> three.guarantee
    3 * exponential(epsilon=0.5)
    >>> sorted(three([0, 900, 400, 1, 800]).value)      # the rest is behind by 99 scales or more
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
        self._each = float_below(exactly(check.moderate(epsilon=epsilon)) / self.count)
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
        return (1 if self.monotone else 2) * self._distance / exactly(self._each)

    def draw(self, data: object) -> object:
        chosen = noise.largest(self._scores(data), self.scale, noise=self.noise, count=self.count)
        return [self._candidate_at(index) for index in chosen]

    def _total_guarantee(self) -> Guarantee:
        return self.count * privacy.exponential(self._each, **self._words)

    def _behind(self, others: int, beta: float) -> float:
        """Each of the choices is so close to the best of its round, except with a share of β."""
        return super()._behind(others, beta / self.count)


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
    """One run of `ExponentialMechanism`: which of the scores is the largest, about.

    >>> exponential_mechanism([0, 1_000], epsilon=1, sensitivity=1, candidates=["no", "yes"]).value
    'yes'
    """
    mechanism = ExponentialMechanism(
        epsilon=epsilon,
        sensitivity=sensitivity,
        monotone=monotone,
        candidates=candidates,
        relation=relation,
        unit=unit,
    )
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
    """One run of `PermuteAndFlip`: which of the scores is the largest, about.

    >>> permute_and_flip([0, 1_000], epsilon=1, sensitivity=1).value
    1
    """
    mechanism = PermuteAndFlip(
        epsilon=epsilon,
        sensitivity=sensitivity,
        monotone=monotone,
        candidates=candidates,
        relation=relation,
        unit=unit,
    )
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
    """One run of `NoisyMax`: which of the scores is the largest, about.

    >>> noisy_max([0, 1_000], epsilon=1, sensitivity=1, noise="laplace").value
    1
    """
    mechanism = NoisyMax(
        epsilon=epsilon,
        sensitivity=sensitivity,
        noise=noise,
        monotone=monotone,
        candidates=candidates,
        relation=relation,
        unit=unit,
    )
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
    """The candidate with about the greatest utility(data, candidate); a million of them are no problem.

    **Guarantee.** That of `mechanism`, for a utility that moves by `sensitivity` at most, for every candidate. With
    `vectorised=True` the utility is called once, with all candidates, and returns all scores. `noise` is a parameter of
    `NoisyMax`, and `count` of `TopK`.

    What a utility returns that is no finite number counts as 0, and so does a candidate for which it raises; so do all
    of them where a vectorised one raises, or does not return one score for each. An error would tell of the data. The
    `sensitivity` must be true of the scores as they count.

    >>> bids = [1, 1, 1, 3]
    >>> choose(lambda bids, price: price * sum(bid >= price for bid in bids), range(1, 5), bids,
    ...        epsilon=200, sensitivity=4).value
    1
    """
    own = {name: value for name, value in (("noise", noise), ("count", count)) if value is not None}
    chooser = mechanism(
        epsilon=epsilon,
        sensitivity=sensitivity,
        monotone=monotone,
        candidates=candidates,
        relation=relation,
        unit=unit,
        **own,
    )
    ask = check.function(utility=utility)
    if check.flag(vectorised=vectorised):
        return chooser(_one_each(call_quietly(ask, data, candidates), len(candidates)))
    return chooser(results(lambda candidate: ask(data, candidate), list(candidates)))


def _one_each(scores: Any, count: int) -> Any:
    """What a vectorised utility returned, as `count` finite numbers."""
    found = call_quietly(finite_numbers, scores if is_many(scores) else call_quietly(list, scores))
    return found if np.shape(found) == (count,) else [0] * count


def _check_candidates(candidates: Any) -> Any:
    if isinstance(candidates, Mapping) or not (
        hasattr(candidates, "__len__") and hasattr(candidates, "__getitem__")
    ):
        raise BadParameter(
            "DP104",
            "candidates must be a sequence: a list, a tuple, a range or an array.",
            why="the order of the candidates says which score belongs to which, and must not depend on data.",
            fix="candidates=['a', 'b', 'c']",
        )
    if not len(candidates):
        raise _no_candidates_error()
    return candidates


def _no_candidates_error() -> BadParameter:
    return BadParameter(
        "DP102",
        "there are no candidates.",
        why="one of them is the answer.",
        fix="give one score for each candidate, and at least one",
    )


def require_monotone(monotone: Any, relation: str) -> bool:
    """The flag, if it is one and can be true: also for the queries of a sparse vector."""
    if check.flag(monotone=monotone) and relation == "replace":
        raise UnsupportedGuarantee(
            "DP203",
            "scores are not taken as monotone where a record is replaced.",
            why="one score loses the old record while another gains the new one, so they move against each other.",
            fix="leave monotone out",
        )
    return bool(monotone)
