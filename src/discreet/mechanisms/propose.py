# SPDX-License-Identifier: Apache-2.0
"""Propose-test-release: noise for a small sensitivity, if the data are far from all where it is
larger.

    rare = ProposeTestRelease(query, distance, bound=0.1,
                              test_epsilon=0.5, release_epsilon=0.5, delta=1e-6)
    rare(data).value  # a number, or a Refusal; both cost the same
    ProposeSearchRelease(query, distance, bounds=[1, 10, 100],
                         search_epsilon=0.5, release_epsilon=0.5, delta=1e-6)

`bound` is a proposed bound on how far one protected unit moves the answer. `distance(data)` is the
number of units that must change until a neighbour's answer is further away than the bound: 0 on
such data, infinity if there are none. A smaller distance is safe as well, if it moves by 1 at most
between neighbours.

`ProposeSearchRelease` chooses the bound from a public list. It asks a sparse vector for each bound,
the smallest first, whether `distance(data, bound)` is above a threshold, and stops at the first
yes. The search costs as much as the test that it replaces, whatever the number of bounds; only the
threshold grows with the logarithm of that number.

**Guarantee.** (test_epsilon + release_epsilon, δ)-differential privacy for every query, whether it
answers or refuses; for the search (search_epsilon + release_epsilon, δ) for bound and answer.

Why it holds: Dwork, Lei 2009; propose.proof.md, §2. If the answers of two neighbours differ by more
than the bound, both have distance 0 and are answered with probability at most δ. Otherwise a
private test is followed by a private answer. Each pair is one case or the other, so δ is paid once.
For the search: propose.proof.md, §6. It stops at a bound that does not hold with probability at
most δ, summed over the exact distributions and rounded up.

What would break it: a wrong distance (try `check_distance`); bounds that were read off the data; a
test without noise; a threshold without δ; publishing the exact distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import bisect_whole, widest
from discreet.mechanisms.additive import Laplace
from discreet.mechanisms.guided import WithBound
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Refusal
from discreet.mechanisms.stability import StabilityTest, answer_of, distance_of, total_guarantee
from discreet.mechanisms.threshold import AboveThreshold
from discreet.noise.scales import Number
from discreet.privacy.guarantee import Guarantee

__all__ = ["ProposeSearchRelease", "ProposeTestRelease"]

_BOUND_REFUSED = "the data seem too close to data on which the proposed bound does not hold"
_BOUNDS_REFUSED = "the data seem too close to data on which none of the bounds holds"
_MAX_DISTANCE = 10**12  # larger distances count as this one: no threshold comes near
_MAX_BOUNDS = 10_000
_UP = 1 + 1e-9  # far more than the rounding of the sums below


class ProposeTestRelease(Mechanism):
    """A number with Laplace noise of scale bound / release_epsilon, if a noisy test says that the
    bound is safe.

    **Guarantee.** As above. `error` and `interval` hold for an answer, if there is one: the noise
    does not depend on the test. A query that raises, or answers no finite number, counts as if it
    had answered 0.

    >>> def count_of_ones(data): return 1 / max(1, sum(data))
    >>> def enough_ones(data): return sum(data) - 32  # 1/32 - 1/33 < 0.001 < 1/31 - 1/32
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
        # The noise is drawn even for a refusal, so the time does not reveal the outcome of the
        # test.
        noisy = self.noise.draw(answer_of(self.query, data))
        passed = self.test.passes(distance_of(self.distance, data))
        return noisy if passed else Refusal(_BOUND_REFUSED)

    def error(self, confidence: float = CONFIDENCE) -> float:
        """The margin of error of an answer, if there is one."""
        return self.noise.error(confidence)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """A confidence interval for the exact answer."""
        return self.noise.interval(value, confidence)


class ProposeSearchRelease(Mechanism):
    """The least bound that seems safe, and the answer with noise of scale bound / release_epsilon.

    Use it if you cannot name one bound; with one bound, `ProposeTestRelease` passes more often.

    **Guarantee.** As above. `distance(data, bound)` is as for `ProposeTestRelease`, for each bound.

    >>> from discreet.mechanisms.proposals import ProposedReciprocal
    >>> inverse = ProposedReciprocal().search(bounds=[10.0**-k for k in range(8)],
    ...                               search_epsilon=0.5, release_epsilon=0.5, delta=1e-6)
    >>> inverse.guarantee
    approximate(epsilon=1.0, delta=1e-06)
    >>> round(inverse.threshold)
    105
    >>> inverse(10_000).value.bound  # it holds from a count of 3163 on; 10,000 is far above
    1e-07
    """

    def __init__(
        self,
        query: Callable[[Any], Any],
        distance: Callable[[Any, float], Any],
        *,
        bounds: Iterable[float],
        search_epsilon: float,
        release_epsilon: float,
        delta: float,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.query, self.distance = check.function(query=query), check.function(distance=distance)
        self.bounds = _sorted_bounds(bounds)
        self.delta = check.inner_probability(delta=check.moderate(delta=delta))
        words: dict[str, Any] = {"relation": relation, "unit": unit}
        search = partial(AboveThreshold, epsilon=search_epsilon, sensitivity=1, **words)
        self.search = search(threshold=_threshold(search(threshold=0), len(self.bounds), self.delta))
        self._noises = {
            bound: Laplace(epsilon=release_epsilon, sensitivity=widest(bound), **words)
            for bound in self.bounds
        }
        self._guarantee = total_guarantee((search_epsilon, release_epsilon), self.delta, relation, unit)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    @property
    def threshold(self) -> float:
        """The distance that passes with probability about one half."""
        return self.search.threshold

    def draw(self, data: object) -> WithBound | Refusal:
        answer = answer_of(self.query, data)
        distances = [min(distance_of(self.distance, data, bound), _MAX_DISTANCE) for bound in self.bounds]
        answers = self.search.draw(distances)
        if not answers[-1]:
            return Refusal(_BOUNDS_REFUSED)
        bound = self.bounds[len(answers) - 1]
        return WithBound(self._noises[bound].draw(answer), bound)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """A confidence interval for the exact answer, given the released bound."""
        answer = cast(WithBound, value)
        return self._noises[answer.bound].interval(answer.value, confidence)


def leak(search: AboveThreshold, count: int, threshold: int) -> float:
    """P(one of `count` questions with answer 0 is above a threshold in cells), rounded up.

    Given the noise r of the line the questions are independent, so the probability is
    Σ_r P(r) (1 - (1 - P(noise >= threshold + r))^count). Beyond a range of r with all but a share
    2**-60 of the sum, the factor of P(r) counts as 1.
    """
    question_scale, line_scale = search.question_noise.scale, search.line_noise.scale
    max_r = math.ceil(line_scale * (60 + threshold / question_scale)) + 1
    r = np.arange(-max_r, max_r + 1)
    chances = np.exp(-np.abs(r) / line_scale) * math.tanh(1 / (2 * line_scale))
    inner = float(np.sum(chances * _some_above(threshold + r, question_scale, count)))
    return inner * _UP + search.line_noise.tail(max_r + 1)


def _some_above(k: npt.NDArray[np.int64], scale: float, count: int) -> npt.NDArray[np.float64]:
    """P(the largest of `count` discrete Laplace numbers is k or more)."""
    q = math.exp(-1 / scale)
    above = np.exp(-np.maximum(k, 1) / scale) / (1 + q)
    below = np.where(k > 0, np.log1p(-above), (np.minimum(k, 0) - 1) / scale - math.log1p(q))
    return np.asarray(-np.expm1(count * below))


def _threshold(search: AboveThreshold, count: int, delta: float) -> Fraction:
    """The least threshold, as a distance, whose leak is at most δ."""
    low, high = 0, 1
    while leak(search, count, high) > delta:
        low, high = high, 2 * high
    return (
        bisect_whole(lambda cells: leak(search, count, cells) <= delta, yes=high, no=low) * search.grid.step
    )


def _sorted_bounds(bounds: Iterable[float]) -> list[float]:
    """The bounds in rising order, each once."""
    try:
        in_order = sorted({check.moderate(bound=bound) for bound in bounds})
    except TypeError:
        in_order = []
    if 1 <= len(in_order) <= _MAX_BOUNDS:
        return in_order
    raise BadParameter(
        "DP104",
        f"bounds must be a list of 1 to {_MAX_BOUNDS:,} numbers.",
        why="the search tries them one after the other.",
        fix="bounds=[1, 10, 100, 1_000]",
    )
