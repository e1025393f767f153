# SPDX-License-Identifier: Apache-2.0
"""Stable values without noise: exact if nobody could have changed them, refused if somebody might have.

    StableVote(["yes", "no"], epsilon=1, delta=1e-6)(ballots).value            # "yes", or a Refusal
    StableMode(epsilon=1, delta=1e-6)(diseases).value                          # the candidates need not be known
    StableArgmax(epsilon=1, delta=1e-6, sensitivity=1)(scores).value           # which model is the best
    StableTopK(epsilon=1, delta=1e-6, sensitivity=1, count=3)(scores).value    # which three, as a set
    StableValue(function, distance, epsilon=1, delta=1e-6)(data).value         # anything, with your own distance

**Guarantee.** (ε, δ)-differential privacy. The value, if there is one, is exact. A refusal is an outcome, and is paid for.

Why it holds: "distance to instability" (Thakurta, Smith 2013; propose.proof.md, §3): two neighbours with different values
both have distance 0, and are answered with probability δ at most; two with the same value are told apart by the test
alone. What would break it: a distance that is wrong, or a sensitivity that is not true of the scores.

How likely an answer is depends on the gap between the winner and the next, and not on the number of candidates:
`chance(gap)` and `gap_needed(confidence)` say it before any data are seen.
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

_REFUSED = "a few others might have changed the value"


class StableValue(Mechanism):
    """The exact value of any function, if the data are far from all on which one unit would change it.

    **Guarantee.** (ε, δ)-differential privacy, if `distance(data)` moves by 1 at most between neighbours and is 0 on both of
    two neighbours with different values: the number of units that must change to change the value, less one, is the
    largest such distance. `check_distance(function, distance, domain=…)` tries it on small domains.

    Values are the same if their canonical forms are (canonical.py), and that form is the answer: 1 for True, a tuple for a list.
    A value that has none, and a function that raises, answer None.

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
    """The winners of a contest of scores; the distance is the gap behind them, in units of what one change can close."""

    _count = 1

    def __init__(self, closes: Fraction, test: StabilityTest, relation: str, unit: str) -> None:
        self.test = test
        self._closes = closes  # how much of a gap one change can close, at most
        self._guarantee = total_guarantee((test.epsilon,), test.delta, relation, unit)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def chance(self, gap: Any) -> float:
        """How likely there is an answer if the winner leads by this gap."""
        return self.test.chance(self._distance(exactly(check.not_negative(gap=gap))))

    def gap_needed(self, confidence: float = CONFIDENCE) -> float:
        """Whoever leads by more than this is named with this confidence, however many candidates there are."""
        return float_above(self.test.distance_needed(confidence) * self._closes)

    def _distance(self, gap: Fraction) -> int:
        """propose.proof.md, §3: 0 while one change can close the gap, one more for each further change that it takes."""
        return max(0, math.ceil(gap / self._closes) - 1)

    def _winners(self, scores: Sequence[Any]) -> tuple[list[int], int]:
        """The places of the best scores, the first in order where scores tie, and the distance."""
        best = heapq.nsmallest(self._count + 1, range(len(scores)), key=lambda place: (-scores[place], place))
        last, next_ = (as_ratio(scores[place]) for place in best[-2:])
        return sorted(best[:-1]), self._distance(last - next_)

    def _name_winners(self, scores: Sequence[Any]) -> list[int] | Refusal:
        winners, distance = self._winners(scores)
        return winners if self.test.passes(distance) else Refusal(_REFUSED)


class StableTopK(_Contest):
    """Which `count` candidates have the best scores, as a list in the candidates' own order: who, not in which order.

    **Guarantee.** (ε, δ)-differential privacy for scores of which one protected unit moves each by `sensitivity` at most;
    `monotone=True` says that all move the same way, which doubles the distance. Of tied candidates the first is meant,
    which is hardly ever seen: a tie has distance 0. A score that is no finite number counts as 0.

    Why it holds: a candidate in the set and one that replaces it are as far apart as ranks `count` and `count` + 1 are, at
    least; one change closes 2Δ of that, or Δ if monotone.

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
        closes = moves * (1 if require_monotone(monotone, relation) else 2)
        super().__init__(closes, StabilityTest(epsilon=epsilon, delta=delta, test=test), relation, unit)
        self._count = check.whole(count=count)
        self.candidates = None if candidates is None else list(candidates)

    def draw(self, data: object) -> object:
        with callback_guard():
            scores = [finite(score) for score in rows(data)]
        names = range(len(scores)) if self.candidates is None else self.candidates
        if len(names) != len(scores) or len(scores) <= self._count:
            raise _wrong_number_error(self._count, len(names))
        winners = self._name_winners(scores)
        return (
            winners
            if isinstance(winners, Refusal)
            else self._winner_value([names[place] for place in winners])
        )

    def _winner_value(self, winners: list[Any]) -> Any:
        return winners


class StableArgmax(StableTopK):
    """Which candidate has the best score: a model by its hits, a price by its revenue. `StableTopK` with one winner.

    **Guarantee.** As `StableTopK`. The value is an index, or the candidate itself where `candidates` were given.

    >>> hits = [8_120, 8_790, 8_340]                     # right answers on held-out records: monotone, sensitivity 1
    >>> select = StableArgmax(epsilon=0.1, delta=1e-6, sensitivity=1, monotone=True, candidates=["a", "b", "c"])
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

    def _winner_value(self, winners: list[Any]) -> Any:
        return winners[0]


class StableVote(_Contest):
    """Who of some public candidates has the most votes; a ballot that names nobody of them does not count.

    A ballot names the candidate whose canonical form it has (canonical.py).

    **Guarantee.** (ε, δ)-differential privacy for one ballot. With counts c₁ >= c₂ the distance is max(0, c₁ - c₂ - 1) if a
    ballot is added or removed, and max(0, ⌈(c₁ - c₂) / 2⌉ - 1) if it is replaced.

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
        winners = self._name_winners([counts[form] for form in self._forms])
        return winners if isinstance(winners, Refusal) else self.candidates[winners[0]]


class StableMode(_Contest):
    """The most frequent record, of values that nobody needs to know beforehand. None does not count.

    **Guarantee.** (ε, δ)-differential privacy for one record, with the distance of `StableVote`, where a value that does
    not occur has a count of 0. Two records are the same if their canonical forms are (canonical.py), and that form is what is
    shown: it does not tell of a 1.0 among many 1s. A record that has none does not count either.

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
        winners = self._name_winners([counts[form] for form in forms])
        return winners if isinstance(winners, Refusal) else forms[winners[0]]


def _ballot(relation: str) -> Fraction:
    """How much of a gap between two counts one ballot can close."""
    return Fraction(2 if relation == "replace" else 1)


def _no_form_error() -> BadParameter:
    return BadParameter(
        "DP104",
        "a candidate is a number, a text, bytes, a date, a UUID, or a tuple of them.",
        why="a ballot of another type could not be compared with it in one fixed way.",
        fix="StableVote(['yes', 'no'], epsilon=1, delta=1e-6)",
    )


def _wrong_number_error(count: int, candidates: int) -> BadParameter:
    return BadParameter(
        "DP107",
        f"{count} of {candidates} candidates cannot be told by their scores.",
        why="there must be more candidates than winners, all different, and one score for each.",
        fix="give one score for each candidate, in the same order, and a smaller count",
    )
