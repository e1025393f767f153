# SPDX-License-Identifier: Apache-2.0
"""A noisy test of a distance: is this data set far from all those on which an answer would not be safe?

    test = StabilityTest(epsilon=1, delta=1e-6)
    test.chance(20)                        # how likely a distance of 20 passes; no data needed
    test.passes(distance)                  # draws

A *distance* is a number that moves by 1 at most when one protected unit changes, and that is 0 where an answer is not
safe. It counts as the whole number below it, and as 0 at least; infinity means that no data are unsafe. What is no
number (NaN, None, a function that raises) counts as 0, because an error would reveal it.

**Guarantee.** A distance of 0 passes with probability δ at most. Whether the test passes is (ε, δ)-private for distances
that differ by 1; with test="laplace" it is ε-private.

Why it holds: "best" is partition selection of one key with distance + 1 users, and no (ε, δ)-private test with that
guarantee passes any distance more often (Desfontaines, Voss, Gipson 2022; partition.proof.md, §4). "laplace" adds
whole-number Laplace noise and compares with the least threshold whose exact tail is δ at most; see propose.proof.md, §1.
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
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.mechanisms.exact import finite, finite_numbers
from discreet.mechanisms.partition import PartitionSelection
from discreet.noise.scales import Number
from discreet.privacy.guarantee import Guarantee

__all__ = ["StabilityTest", "answer_of", "distance_of", "scores_of", "total_guarantee"]

FAR = (
    10**18
)  # an infinite distance: noise of any scale that can be drawn reaches it with probability exp(-14,000)
_COUNTED = 10**15  # beyond it every test passes, but for a chance that no float shows
_TESTS = ("best", "laplace")


class StabilityTest:
    """Whether a distance is above zero, told with noise.

    **Guarantee.** As above, for every ε and δ; `chance` is a function of public numbers.

    What would break it: a distance that jumps by more than 1 between neighbours, or is not 0 where it should be.
    `check_distance` finds such distances on small domains.

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
        self._rule = _best(self.epsilon, self.delta) if test == "best" else None

    @property
    def threshold(self) -> int:
        """The noisy distance that passes with test="laplace": the least k with P(noise >= k) <= δ, never a smaller one."""
        return self._distribution.tail_bound(min(1.0, 2 * self.delta)) + 1

    def chance(self, distance: object) -> float:
        """The probability that this distance passes."""
        far = min(as_distance(distance), _COUNTED - 1)
        if self._rule is not None:
            return self._rule.chance(far + 1)
        missing = self.threshold - far
        return (
            self._distribution.tail(missing) / 2
            if missing > 0
            else 1 - self._distribution.tail(1 - missing) / 2
        )

    def distance_needed(self, confidence: float = 0.5) -> int:
        """The least distance that passes with this confidence."""
        check.inner_probability(confidence=confidence)
        near, far = -1, 1
        while self.chance(far) < confidence:
            near, far = far, 2 * far
        return bisect_whole(lambda distance: self.chance(distance) >= confidence, yes=far, no=near)

    def passes(self, distance: object) -> bool:
        """Whether it passes: a fresh draw."""
        far = as_distance(distance)
        if self._rule is not None:
            return bool(self._rule.draw({"pass": far + 1}))
        return bool(far + self._distribution.draw() >= self.threshold)


def as_distance(value: Any) -> int:
    """The whole number that a distance counts as."""
    return math.floor(clamp(value, 0, FAR))


def clamp(value: Any, low: int, high: int) -> Fraction:
    """The nearest number between the two; of what is no number (nor is True) that nearest to 0."""
    number = None if isinstance(value, bool | np.bool_) else exact_ratio(value)
    return Fraction(min(max(0 if number is None else number, low), high))


def distance_of(function: Callable[..., Any], *data: Any) -> int:
    """The distance of the data, by the rules above."""
    return as_distance(call_quietly(function, *data))


def answer_of(function: Callable[[Any], Any], data: object) -> Number:
    """The number that a query answers; what is no finite number counts as 0."""
    return finite(call_quietly(function, data))


def scores_of(function: Callable[[Any], Any], data: Any) -> Any:
    """The row of numbers that a query answers; what is no row counts as one score of 0. Its length is public."""
    scores = call_quietly(finite_numbers, call_quietly(function, data))
    return scores if np.ndim(scores) == 1 and np.size(scores) else np.zeros(1)


def total_guarantee(epsilons: tuple[Any, ...], delta: float, relation: str, unit: str) -> Guarantee:
    """(Σ ε, δ), the sum rounded up."""
    total = sum((exactly(epsilon) for epsilon in epsilons), start=exactly(0))
    return privacy.approximate(float_above(total), delta, relation=relation, unit=unit)


def _best(epsilon: float, delta: float) -> PartitionSelection:
    try:
        return PartitionSelection(epsilon=epsilon, delta=delta)
    except BadParameter:
        raise BadParameter(
            "DP102",
            "epsilon is too small, for this delta, to list the chances of all distances.",
            why="each distance has a chance of its own, and there would be more than a hundred thousand.",
            fix="test='laplace', which needs no list",
        ) from None
