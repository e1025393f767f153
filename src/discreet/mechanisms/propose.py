# SPDX-License-Identifier: Apache-2.0
"""Propose-test-release: answer with noise for a small sensitivity, if the data are far from all where it is larger.

    rare = ProposeTestRelease(query, distance, bound=0.1, test_epsilon=0.5, release_epsilon=0.5, delta=1e-6)
    rare(data).value                                   # a number, or a Refusal, which is paid for as well

`bound` is how far the answer moves, at most, on the data that the proposer has in mind. `distance(data)` is how many
protected units must change to get to data of which a neighbour has an answer further away than that: 0 there, infinity
if there are none. A smaller number is safe as well, if it moves by 1 at most between neighbours.

**Guarantee.** (test_epsilon + release_epsilon, δ)-differential privacy for every query, whether it answers or refuses.

Why it holds: Dwork, Lei 2009; propose.proof.md. Of two neighbours, either the answers differ by more than the bound;
then both have distance 0, and each is answered with probability δ at most. Or they do not, and a private test is followed
by a private answer. A pair is one or the other, so δ is paid once. What would break it: a distance that is wrong (try
`check_distance`); a bound that was read off the data; a test without noise; a threshold without δ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet import check
from discreet.exact import widest
from discreet.mechanisms.additive import Laplace
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Refusal
from discreet.mechanisms.stability import StabilityTest, answer_of, distance_of, total_guarantee
from discreet.noise.scales import Number
from discreet.privacy.guarantee import Guarantee

__all__ = ["ProposeTestRelease"]

_REFUSED = "the data seem too close to data on which the proposed bound does not hold"


class ProposeTestRelease(Mechanism):
    """A number with Laplace noise of scale bound / release_epsilon, if a noisy test says that the bound is safe.

    **Guarantee.** As above. `error` and `interval` hold for the answer if there is one: the noise does not depend on the
    test. A query that raises, or answers no finite number, counts as if it had answered 0.

    >>> def count_of_ones(data): return 1 / max(1, sum(data))
    >>> def enough_ones(data): return sum(data) - 32                # 1/32 - 1/33 < 0.001 < 1/31 - 1/32
    >>> inverse = ProposeTestRelease(count_of_ones, enough_ones, bound=0.001,
    ...                              test_epsilon=0.5, release_epsilon=0.5, delta=1e-9)
    >>> inverse.guarantee
    approximate(epsilon=1.0, delta=1e-09)
    >>> inverse([0, 1, 1]).refused, inverse([1] * 500).refused
    (True, False)
    >>> round(inverse.error(confidence=0.95), 4)
    0.006
    """

    def __init__(
        self,
        query: Callable[[Any], Any],
        distance: Callable[[Any], Any],
        *,
        bound: Number,
        test_epsilon: float,
        release_epsilon: float,
        delta: float,
        test: str = "best",
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.query, self.distance = check.function(query=query), check.function(distance=distance)
        self.test = StabilityTest(epsilon=test_epsilon, delta=delta, test=test)
        self.bound = check.moderate(bound=bound)
        words: dict[str, Any] = {"relation": relation, "unit": unit}
        self.noise = Laplace(epsilon=release_epsilon, sensitivity=widest(bound), **words)
        self._guarantee = total_guarantee((test_epsilon, release_epsilon), self.test.delta, relation, unit)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> float | Refusal:
        noisy = self.noise.draw(
            answer_of(self.query, data)
        )  # drawn always: the time says nothing of the test
        passed = self.test.passes(distance_of(self.distance, data))
        return noisy if passed else Refusal(_REFUSED)

    def error(self, confidence: float = CONFIDENCE) -> float:
        """How far the answer, if there is one, is from the exact one, at most, with this confidence."""
        return self.noise.error(confidence)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Where the exact answer lies with this confidence."""
        return self.noise.interval(value, confidence)
