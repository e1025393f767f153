# SPDX-License-Identifier: Apache-2.0
"""Stable values without noise: exact if no single unit could have changed them, refused otherwise.

    StableVote(["yes", "no"], epsilon=1, delta=1e-6)(ballots).value         # "yes", or a Refusal
    StableMode(epsilon=1, delta=1e-6)(diseases).value                       # no public candidates
    StableArgmax(epsilon=1, delta=1e-6, sensitivity=1)(scores).value        # the best model
    StableTopK(epsilon=1, delta=1e-6, sensitivity=1, count=3)(scores).value # the best three, as a set
    StableValue(function, distance, epsilon=1, delta=1e-6)(data).value      # your own distance

**Guarantee.** (ε, δ)-differential privacy. A released value is exact. A refusal costs as much as a
value.

Why it holds: "distance to instability" (Thakurta, Smith 2013; propose.proof.md, §3). Two neighbours
with different values both have distance 0, and each is answered with probability at most δ. Two
neighbours with the same value differ in the test alone. What would break it: a wrong distance, or a
sensitivity that does not hold for the scores.

The probability of an answer depends on the gap between the winner and the runner-up, and not on the
number of candidates. `chance(gap)` and `gap_needed(confidence)` state it without data.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio, exactly, float_above, widest
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.canonical import NOTHING, canonical, canonical_each, public_order
from discreet.mechanisms.choice import require_monotone
from discreet.mechanisms.exact import finite, rows
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Refusal
from discreet.mechanisms.stability import StabilityTest, distance_of, total_guarantee
from discreet.noise.scales import Number
from discreet.privacy.guarantee import Guarantee

__all__ = ["StableArgmax", "StableMode", "StableTopK", "StableValue", "StableVote"]

_REFUSED = "a few changed records might have changed the value"


class StableValue(Mechanism):
    """The exact value of any function, if the data are far from all on which one unit changes it.

    **Guarantee.** (ε, δ)-differential privacy, if `distance(data)` moves by at most 1 between
    neighbours and is 0 on both of two neighbours with different values. The largest such distance
    is the number of units that must change to change the value, less one. `check_distance(function,
    distance, domain=…)` tries it on small domains.

    Values are equal if their canonical forms are (canonical.py), and that form is the answer: 1 for
    True, a tuple for a list. The answer is None for a value without one, and if the function
    raises.

    >>> def everybody_agrees(votes): return all(votes)
    >>> def dissenters_but_one(votes): return votes.count(False) - 1
    >>> agreed = StableValue(everybody_agrees, dissenters_but_one, epsilon=1, delta=1e-6)
    >>> agreed([False] * 50 + [True] * 900).value                  # the form of False
    0
    >>> agreed.guarantee
    approximate(epsilon=1.0, delta=1e-06)
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        distance: Callable[[Any], Any],
        *,
        epsilon: float,
        delta: float,
        test: str = "best",
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.function, self.distance = check.function(function=function), check.function(distance=distance)
        self.test = StabilityTest(epsilon=epsilon, delta=delta, test=test)
        self._guarantee = total_guarantee((self.test.epsilon,), self.test.delta, relation, unit)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> object:
        form = canonical(call_quietly(self.function, data))
        value = None if form is NOTHING else form
        return value if self.test.passes(distance_of(self.distance, data)) else Refusal(_REFUSED)


class _Contest(Mechanism):
    """The best candidates; the distance counts how many changes it takes to close the gap behind
    them.
    """

    _count = 1

    def __init__(self, closes: Fraction, test: StabilityTest, relation: str, unit: str) -> None:
        """One change closes `closes` of a gap at most."""
        self.test, self._closes = test, closes
        self._guarantee = total_guarantee((test.epsilon,), test.delta, relation, unit)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def chance(self, gap: Number) -> float:
        """The probability of an answer if the winner leads by this gap."""
        return self.test.chance(self._distance(exactly(check.not_negative(gap=gap))))

    def gap_needed(self, confidence: float = CONFIDENCE) -> float:
        """A winner who leads by more than this is released with this confidence."""
        return float_above(self.test.distance_needed(confidence) * self._closes)

    def _distance(self, gap: Fraction) -> int:
        """The number of changes that it takes to close the gap, less one: propose.proof.md, §3."""
        return max(0, math.ceil(gap / self._closes) - 1)

    def _winners(self, scores: Sequence[Number]) -> tuple[list[int], int]:
        """The indices of the best scores, the first ones of a tie, and the distance."""
        best = heapq.nsmallest(self._count + 1, range(len(scores)), key=lambda index: (-scores[index], index))
        last_winner, runner_up = (as_ratio(scores[index]) for index in best[-2:])
        return sorted(best[:-1]), self._distance(last_winner - runner_up)

    def _release(self, scores: Sequence[Number], candidates: Sequence[Any]) -> list[Any] | Refusal:
        """The best candidates in their own order, if the test passes."""
        winners, distance = self._winners(scores)
        return [candidates[index] for index in winners] if self.test.passes(distance) else Refusal(_REFUSED)


class StableTopK(_Contest):
    """Which `count` candidates have the best scores: a set, listed in the order of the candidates.

    **Guarantee.** (ε, δ)-differential privacy, if one protected unit moves each score by at most
    `sensitivity`. `monotone=True` says that it moves all scores in the same direction, which
    doubles the distance. Of tied candidates the first counts, but a tie has distance 0 and is
    hardly ever released. A score that is not a finite number counts as 0.

    Why it holds: a candidate in the set and one that replaces it are as far apart as ranks `count`
    and `count` + 1 are, at least; one change closes 2Δ of that, or Δ if monotone.

    >>> best = StableTopK(epsilon=1, delta=1e-6, sensitivity=1, monotone=True, count=2)
    >>> best([310, 25, 190]).value
    [0, 2]
    >>> best.gap_needed(confidence=0.95)
    15.0
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        sensitivity: Number,
        count: int,
        monotone: bool = False,
        candidates: Sequence[Any] | None = None,
        test: str = "best",
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        check.moderate(sensitivity=sensitivity)
        moves = widest(sensitivity)
        closes = moves * (1 if require_monotone(monotone=monotone, relation=relation) else 2)
        super().__init__(closes, StabilityTest(epsilon=epsilon, delta=delta, test=test), relation, unit)
        self._count = check.whole(count=count)
        self.candidates = None if candidates is None else list(candidates)

    def draw(self, data: object) -> object:
        with callback_guard():
            scores = [finite(score) for score in rows(data)]
        candidates = range(len(scores)) if self.candidates is None else self.candidates
        if len(candidates) != len(scores) or len(scores) <= self._count:
            raise _wrong_number_error(self._count, len(candidates))
        return self._release(scores, candidates)


class StableArgmax(StableTopK):
    """Which candidate has the best score: `StableTopK` with one winner.

    **Guarantee.** As `StableTopK`. The value is an index, or the candidate itself if `candidates`
    are stated.

    >>> hits = [8_120, 8_790, 8_340]  # right answers on held-out records: monotone, sensitivity 1
    >>> select = StableArgmax(epsilon=0.1, delta=1e-6, sensitivity=1, monotone=True,
    ...                       candidates=["a", "b", "c"])
    >>> select(hits).value
    'b'
    >>> select.chance(gap=450), select.chance(gap=1) <= 1e-6
    (1.0, True)
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        sensitivity: Number,
        monotone: bool = False,
        candidates: Sequence[Any] | None = None,
        test: str = "best",
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            sensitivity=sensitivity,
            count=1,
            monotone=monotone,
            candidates=candidates,
            test=test,
            relation=relation,
            unit=unit,
        )

    def draw(self, data: object) -> object:
        winners = super().draw(data)
        return winners[0] if isinstance(winners, list) else winners


class StableVote(_Contest):
    """The public candidate with the most votes; ballots for anybody else do not count.

    A ballot is for the candidate with the same canonical form (canonical.py).

    **Guarantee.** (ε, δ)-differential privacy for one ballot. With counts c₁ >= c₂ the distance is
    max(0, c₁ - c₂ - 1) if a ballot is added or removed, and max(0, ⌈(c₁ - c₂) / 2⌉ - 1) if it is
    replaced.

    >>> StableVote(["yes", "no"], epsilon=1, delta=1e-6)(["yes"] * 70 + ["no"] * 30 + ["?"]).value
    'yes'
    """

    def __init__(
        self,
        candidates: Sequence[Any],
        *,
        epsilon: float,
        delta: float,
        test: str = "best",
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        super().__init__(
            _ballot(relation), StabilityTest(epsilon=epsilon, delta=delta, test=test), relation, unit
        )
        self.candidates = list(candidates)
        self._forms = canonical_each(self.candidates)
        if NOTHING in self._forms:
            raise _no_form_error()
        if len(set(self._forms)) != len(self._forms) or len(self._forms) < 2:
            raise _wrong_number_error(1, len(self.candidates))

    def draw(self, data: object) -> object:
        counts = Counter(canonical_each(rows(data)))
        winners = self._release([counts[form] for form in self._forms], self.candidates)
        return winners if isinstance(winners, Refusal) else winners[0]


class StableMode(_Contest):
    """The most frequent record, without a public list of candidates.

    **Guarantee.** (ε, δ)-differential privacy for one record, with the distance of `StableVote`; a
    value that does not occur has a count of 0. Two records are equal if their canonical forms are
    (canonical.py), and that form is released: it does not reveal a 1.0 among many 1s. None does not
    count, nor does a record without a canonical form.

    >>> StableMode(epsilon=1, delta=1e-6)(["flu"] * 40 + ["gout"] * 12).value
    'flu'
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        test: str = "best",
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        super().__init__(
            _ballot(relation), StabilityTest(epsilon=epsilon, delta=delta, test=test), relation, unit
        )

    def draw(self, data: object) -> object:
        counts = Counter(
            form for form in canonical_each(rows(data)) if form is not None and form is not NOTHING
        )
        forms = [*sorted(counts, key=public_order), None, None]
        winners = self._release([counts[form] for form in forms], forms)
        return winners if isinstance(winners, Refusal) else winners[0]


def _ballot(relation: str) -> Fraction:
    """How much of a gap between two counts one ballot can close."""
    return Fraction(2 if relation == "replace" else 1)


def _no_form_error() -> BadParameter:
    return BadParameter(
        "DP104",
        "a candidate must be a number, a text, bytes, a date, a UUID, or a tuple of them.",
        why="ballots are compared with it by their canonical forms, and other types have none.",
        fix="StableVote(['yes', 'no'], epsilon=1, delta=1e-6)",
    )


def _wrong_number_error(count: int, candidates: int) -> BadParameter:
    return BadParameter(
        "DP107",
        f"{count} of {candidates} candidates cannot be chosen by these scores.",
        why="there must be more candidates than winners, all different, and one score for each.",
        fix="give one score for each candidate, in the same order, and a smaller count",
    )
