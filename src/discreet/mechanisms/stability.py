# SPDX-License-Identifier: Apache-2.0
"""A noisy test of a distance: is this data set far from all data on which an answer is unsafe?

    test = StabilityTest(epsilon=1, delta=1e-6)
    test.chance(20)        # the probability that a distance of 20 passes; needs no data
    test.passes(distance)  # draws

A *distance* moves by 1 at most if one protected unit changes, and is 0 on data for which an answer
is not safe. It is rounded down, and to 0 if it is negative; infinity means that all data are safe.
A distance that is not a number (NaN, None, a function that raises) counts as 0, because an error
would reveal it.

**Guarantee.** A distance of 0 passes with probability at most δ. The outcome of the test is
(ε, δ)-private for distances that differ by 1; with test="laplace" it is ε-private.

Why it holds: "best" is key selection for one key with distance + 1 users. No (ε, δ)-private test
that passes 0 with probability at most δ passes any distance more often (Desfontaines, Voss, Gipson
2022; partition.proof.md, §4). "laplace" adds whole-number Laplace noise and compares it with the
least threshold whose exact tail is at most δ; see propose.proof.md, §1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.exact import bisect_whole, exactly, float_above
from discreet.mechanisms.callbacks import call_quietly
from discreet.mechanisms.canonical import exact_ratio
from discreet.mechanisms.distributions import LaplaceDistribution, upper_tail
from discreet.mechanisms.exact import finite, finite_numbers
from discreet.mechanisms.expression import CallRepr
from discreet.mechanisms.partition import PartitionSelection
from discreet.noise.scales import Number
from discreet.privacy.guarantee import Guarantee

__all__ = ["StabilityTest", "answer_of", "distance_of", "scores_of", "total_guarantee"]

#: An infinite distance: noise of any scale reaches it with probability exp(-14,000) at most.
FAR = 10**18
_MAX_TESTED = 10**15  # larger distances pass with a probability that rounds to 1
_TESTS = ("best", "laplace")


class StabilityTest(CallRepr):
    """A noisy test whether a distance is above zero.

    **Guarantee.** As above, for every ε and δ; `chance` is a function of public numbers.

    What would break it: a distance that moves by more than 1 between neighbours, or is not 0 where
    an answer is not safe. `check_distance` finds such distances on small domains.

    >>> test = StabilityTest(epsilon=1, delta=1e-6)
    >>> test.chance(0) <= 1e-6, test.distance_needed(confidence=0.5), test.chance(30)
    (True, 13, 1.0)
    >>> StabilityTest(epsilon=1, delta=1e-6, test="laplace").threshold
    14
    """

    def __init__(self, *, epsilon: float, delta: float, test: str = "best") -> None:
        self.epsilon, self.delta = check.moderate(epsilon=epsilon), check.inner_probability(delta=delta)
        self.kind = check.choice(_TESTS, test=test)
        self._distribution = LaplaceDistribution(float_above(1 / exactly(self.epsilon)))
        self._selection = _optimal_test(self.epsilon, self.delta) if test == "best" else None

    @property
    def threshold(self) -> int:
        """The noisy distance that passes with test="laplace": the least k with P(noise >= k) <= δ."""
        return self._distribution.tail_bound(min(1.0, 2 * self.delta)) + 1

    def chance(self, distance: object) -> float:
        """The probability that this distance passes."""
        tested = min(as_distance(distance), _MAX_TESTED - 1)
        if self._selection is not None:
            return self._selection.chance(tested + 1)
        return upper_tail(self._distribution, self.threshold - tested)

    def distance_needed(self, confidence: float = 0.5) -> int:
        """The least distance that passes with this confidence."""
        check.inner_probability(confidence=confidence)
        too_near, enough = -1, 1
        while self.chance(enough) < confidence:
            too_near, enough = enough, 2 * enough
        return bisect_whole(lambda distance: self.chance(distance) >= confidence, yes=enough, no=too_near)

    def passes(self, distance: object) -> bool:
        """Whether the distance passes: a fresh draw."""
        whole_distance = as_distance(distance)
        if self._selection is not None:
            return bool(self._selection.draw({"pass": whole_distance + 1}))
        return bool(whole_distance + self._distribution.draw() >= self.threshold)


def as_distance(value: object) -> int:
    """The whole number that a distance counts as."""
    return math.floor(clamp(value, 0, FAR))


def clamp(value: object, low: int, high: int) -> Fraction:
    """The value clipped to the range; a value that is not a number, such as True, counts as 0."""
    number = None if isinstance(value, bool | np.bool_) else exact_ratio(value)
    return Fraction(min(max(0 if number is None else number, low), high))


def distance_of(function: Callable[..., Any], *data: Any) -> int:
    """The distance of the data as a whole number."""
    return as_distance(call_quietly(function, *data))


def answer_of(function: Callable[[Any], Any], data: object) -> Number:
    """The answer of a query; an answer that is not a finite number counts as 0."""
    return finite(call_quietly(function, data))


def scores_of(function: Callable[[Any], Any], data: object) -> Any:
    """The scores that a query answers, whose number is public; an answer of another form is one 0."""
    scores = call_quietly(finite_numbers, call_quietly(function, data))
    return scores if np.ndim(scores) == 1 and np.size(scores) else np.zeros(1)


def total_guarantee(epsilons: tuple[float, ...], delta: float, relation: str, unit: str) -> Guarantee:
    """(Σ ε, δ), with the sum rounded up."""
    total = sum((exactly(epsilon) for epsilon in epsilons), start=exactly(0))
    return privacy.approximate(float_above(total), delta, relation=relation, unit=unit)


def _optimal_test(epsilon: float, delta: float) -> PartitionSelection:
    try:
        return PartitionSelection(epsilon=epsilon, delta=delta)
    except BadParameter:
        raise BadParameter(
            "DP102",
            "epsilon is too small for this delta.",
            why="the test lists a chance for each distance, and there are too many.",
            fix="test='laplace', which needs no list",
        ) from None
