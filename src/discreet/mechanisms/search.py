# SPDX-License-Identifier: Apache-2.0
"""Which bound to propose? A private search over a public list of bounds, in the place of the test.

    ProposeSearchRelease(query, distance, bounds=[1, 10, 100], search_epsilon=0.5, release_epsilon=0.5, delta=1e-6)

**Guarantee.** (search_epsilon + release_epsilon, δ)-differential privacy for the bound that was chosen and the answer
together, however many bounds there are: the search costs nothing beyond the test that it replaces, but a threshold
that grows with the logarithm of their number.

Why it holds: propose.proof.md, §6. A sparse vector asks for each bound, the smallest first, whether its distance is above a
threshold, and stops at the first that is. It is private (threshold.proof.md), and it stops at a bound that is not true
of a pair of neighbours with probability δ at most; that probability is summed over the exact distributions, rounded up.
What would break it: bounds that were read off the data; the true distances published beside the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import bisect_whole, widest
from discreet.mechanisms.additive import Laplace
from discreet.mechanisms.guided import WithBound
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Refusal
from discreet.mechanisms.stability import answer_of, distance_of, total_guarantee
from discreet.mechanisms.threshold import AboveThreshold
from discreet.privacy.guarantee import Guarantee

__all__ = ["ProposeSearchRelease"]

_FURTHEST = 10**12  # distances beyond it count as it: no threshold comes near
_LONGEST = 10_000
_UP = 1 + 1e-9  # far more than the rounding of the sums below
_REFUSED = "the data seem too close to data on which none of the bounds holds"


class ProposeSearchRelease(Mechanism):
    """The least bound that seems safe, and the answer with noise of scale bound / release_epsilon.

    **Guarantee.** As above. `distance(data, bound)` is as in `ProposeTestRelease`, for each of the bounds.

    >>> from discreet.mechanisms.proposals import ProposedReciprocal
    >>> inverse = ProposedReciprocal().search(bounds=[10.0**-k for k in range(8)],
    ...                               search_epsilon=0.5, release_epsilon=0.5, delta=1e-6)
    >>> inverse.guarantee
    approximate(epsilon=1.0, delta=1e-06)
    >>> round(inverse.threshold)
    105
    >>> inverse(10_000).value.bound             # 1 / 3163 moves by less than that, and 10,000 is far above 3163
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
        """The distance that passes about half the time."""
        return self.search.threshold

    def draw(self, data: object) -> WithBound | Refusal:
        answer = answer_of(self.query, data)
        distances = [min(distance_of(self.distance, data, bound), _FURTHEST) for bound in self.bounds]
        answers = self.search.draw(distances)
        if not answers[-1]:
            return Refusal(_REFUSED)
        bound = self.bounds[len(answers) - 1]
        return WithBound(self._noises[bound].draw(answer), bound)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Where the exact answer lies with this confidence, given the bound that was chosen."""
        answer = cast(WithBound, value)
        return self._noises[answer.bound].interval(answer.value, confidence)


def leak(search: AboveThreshold, count: int, threshold: int) -> float:
    """P(some of `count` questions of answer 0 is above the line), for a threshold in cells; rounded up.

    Given the noise r of the line they are independent: Σ_r P(r) (1 - (1 - P(noise >= threshold + r))^count). Where
    |r| is so large that it has probability below 2**-60 of the sum's size, the sum takes 1 for the rest.
    """
    wide, narrow = search.question_noise.scale, search.line_noise.scale
    reach = math.ceil(narrow * (60 + threshold / wide)) + 1
    r = np.arange(-reach, reach + 1)
    line = np.exp(-np.abs(r) / narrow) * math.tanh(1 / (2 * narrow))
    return float(np.sum(line * _some_above(threshold + r, wide, count))) * _UP + search.line_noise.tail(
        reach + 1
    )


def _some_above(k: Any, scale: float, count: int) -> Any:
    """P(the largest of `count` discrete Laplace numbers is k or more)."""
    q = math.exp(-1 / scale)
    above = np.exp(-np.maximum(k, 1) / scale) / (1 + q)
    below = np.where(k > 0, np.log1p(-above), (np.minimum(k, 0) - 1) / scale - math.log1p(q))
    return -np.expm1(count * below)


def _threshold(search: AboveThreshold, count: int, delta: float) -> Fraction:
    """The least threshold, as a distance, whose leak is δ at most."""
    low, high = 0, 1
    while leak(search, count, high) > delta:
        low, high = high, 2 * high
    return bisect_whole(lambda far: leak(search, count, far) <= delta, yes=high, no=low) * search.grid.step


def _sorted_bounds(bounds: Any) -> list[float]:
    """The bounds in rising order, each once."""
    try:
        listed = sorted({check.moderate(bound=bound) for bound in bounds})
    except TypeError:
        listed = []
    if 1 <= len(listed) <= _LONGEST:
        return listed
    raise BadParameter(
        "DP104",
        f"bounds must be a list of 1 to {_LONGEST:,} numbers.",
        why="they are public, and tried one after the other.",
        fix="bounds=[1, 10, 100, 1_000]",
    )
