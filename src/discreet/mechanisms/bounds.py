# SPDX-License-Identifier: Apache-2.0
"""Private bounds for numbers whose range nobody knows: a noisy histogram over powers of two.

    Bounds(epsilon=0.5)(incomes).value                 # such as (0.0, 262144.0), or a Refusal

A record x with 2**(e-1) < |x| <= 2**e falls into the bin of its sign and e. Whole-number Laplace noise is added to every
bin of a public list, also to the empty ones, and those that reach a public threshold remain; the answer runs from
the lower edge of the lowest to the upper edge of the highest.

**Guarantee.** That of noise on a histogram: ε-differential privacy, also when the answer is a refusal. The threshold is a
function of the parameters alone.

Why it holds: every record is in exactly one bin, so one that comes or goes moves one count by one, and one that is
replaced moves two; the rest is post-processing (Dwork, McSherry, Nissim, Smith 2006). What would break it: bins that
are made only where there are records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.mechanisms.additive import Geometric
from discreet.mechanisms.exact import Floats, Integers, numbers_within
from discreet.mechanisms.mechanism import Mechanism, Refusal
from discreet.privacy.guarantee import Guarantee

__all__ = ["Bounds"]

NOTHING = Refusal("no power of two holds enough records to be told from noise")
_REACH = 300  # bounds beyond 2**300 have no squares in floating point


class Bounds(Mechanism):
    """Two numbers, each 0 or a power of two with a sign, that most of the records lie between.

    **Guarantee.** ε-differential privacy. And for all data, with probability 1 - `failure` or more, both of these hold:

    - no bin without records counts, so the bounds are edges of bins that hold records;
    - every bin with `enough` = 2·threshold - 1 records counts, so fewer than that lie beyond the bounds in any bin.

    If such a bin exists the answer is not refused, up to that probability. `exponents` are the public least and greatest
    powers: values up to 2**least count as 0, those beyond 2**most (and the infinities) as 2**most. What is no number
    counts as 0. If all of them count as 0, the bounds are 0 and 2**least.

    Why it holds: an empty bin reaches the threshold t with probability P(Z >= t) <= failure / bins; a bin with 2t - 1
    records misses it with P(Z <= -t), which is the same; each bin can fail in one way only, and the bins are summed up.

    >>> mechanism = Bounds(epsilon=1.0)
    >>> mechanism.threshold, mechanism.enough
    (13, 25)
    >>> Bounds(epsilon=1.0, failure=1e-12)([3.0] * 1000).value
    (2.0, 4.0)
    """

    def __init__(
        self,
        *,
        epsilon: float,
        failure: float = 1e-3,
        exponents: Sequence[int] = (-64, 64),
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.failure = check.inner_probability(failure=failure)
        self.exponents = _exponents(exponents)
        self._sides = self.exponents[1] - self.exponents[0]
        bins = 2 * self._sides + 1
        moved = 2 if relation == "replace" else 1
        self._histogram = Geometric(
            epsilon=epsilon, sensitivity=moved, dimension=bins, relation=relation, unit=unit
        )
        # the distribution is symmetric, so P(Z >= t) is half of P(|Z| >= t); rounding is towards a higher threshold
        self.threshold = self._histogram.distribution.tail_bound(2 * self.failure / bins * (1 - 1e-12)) + 1
        self.enough = 2 * self.threshold - 1

    @property
    def guarantee(self) -> Guarantee:
        return self._histogram.guarantee

    def draw(self, data: object) -> tuple[float, float] | Refusal:
        most = 2.0 ** self.exponents[1]
        places = self._bins(numbers_within(data, -most, most)) + self._sides
        counts = np.bincount(places, minlength=2 * self._sides + 1)
        remaining = np.flatnonzero(self._histogram.add_noise(counts) >= self.threshold) - self._sides
        if not remaining.size:
            return NOTHING
        lo, hi = 0.0 - self._edge(-int(remaining[0])), self._edge(int(remaining[-1]))
        return lo, hi if hi > lo else 2.0 ** self.exponents[0]

    def _bins(self, values: Floats) -> Integers:
        """0 for what counts as zero; else the sign, and by how much the exponent is above the least."""
        part, exponent = np.frexp(values)  # |value| = |part| · 2**exponent with 1/2 <= |part| < 1, exactly
        above = exponent - (np.abs(part) <= 0.5) - self.exponents[0]
        return np.asarray(np.sign(part) * np.maximum(above, 0), np.int64)

    def _edge(self, place: int) -> float:
        """The upper edge of a bin."""
        if place == 0:
            return 0.0
        power = self.exponents[0] + abs(place)
        return float(2.0**power) if place > 0 else -float(2.0 ** (power - 1))


def _exponents(exponents: Any) -> tuple[int, int]:
    if isinstance(exponents, Sequence) and not isinstance(exponents, str) and len(exponents) == 2:
        least = check.whole(at_least=-_REACH, exponents=exponents[0])
        most = check.whole(at_least=-_REACH, exponents=exponents[1])
        if least < most <= _REACH:
            return least, most
    raise BadParameter(
        "DP107",
        f"exponents must be two whole numbers, the least and a greater one, between {-_REACH} and {_REACH}.",
        why="they are the public list of bins; a bin for every number that occurs would reveal which do.",
        fix="pass exponents=(-64, 64)",
    )
