# SPDX-License-Identifier: Apache-2.0
"""Numbers of unknown range: private bounds, and the mean and the sum of numbers within them.

    Bounds(epsilon=0.5)(incomes).value       # such as (0.0, 262144.0), or a Refusal
    UnboundedMean(epsilon=1)(incomes).value  # a float, or a Refusal
    UnboundedSum(epsilon=1)(incomes).value

`Bounds` is a noisy histogram over powers of two. A record x with 2**(e-1) < |x| <= 2**e falls into
the bin of its sign and e. Every bin of a public list gets whole-number Laplace noise, empty bins
too. The bounds are the outer edges of the bins whose noisy count reaches a public threshold.

`UnboundedMean` and `UnboundedSum` spend a part of ε on bounds and the rest on the answer within
them. Records beyond the bounds are clipped, and the bias depends on the data: `error` is None and
there is no interval. If you need one, release `Bounds` first and ask a bounded query afterwards.

**Guarantee.** ε-differential privacy for both steps together, even if the first one refuses. The
threshold depends on the parameters alone.

Why it holds: every record is in exactly one bin, so a record that is added or removed moves one
count by one, and a replaced record moves two; the rest is post-processing (Dwork, McSherry, Nissim,
Smith 2006). The second step is private for a fixed part of ε whatever the released bounds are, so
the steps compose. What would break it: bins only where there are records; records that are not
clipped to the released bounds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.exact import exactly, float_below
from discreet.mechanisms import queries
from discreet.mechanisms.additive import Geometric
from discreet.mechanisms.exact import Floats, Integers, numbers_within
from discreet.mechanisms.mechanism import Mechanism, Refusal
from discreet.privacy.guarantee import Guarantee

__all__ = ["Bounds", "UnboundedMean", "UnboundedSum"]

NOTHING = Refusal("no power of two holds enough records to be told from noise")
_MAX_EXPONENT = 300  # bounds beyond 2**300 have no squares in floating point


class Bounds(Mechanism):
    """Two numbers, each 0 or a signed power of two, between which most records lie.

    **Guarantee.** ε-differential privacy. For all data, with probability 1 - `failure` or more:

    - no empty bin reaches the threshold, so the bounds are edges of bins that hold records;
    - every bin with `enough` = 2·threshold - 1 records reaches it, so every bin beyond the bounds
      holds fewer records. If one bin holds `enough` records, the answer is not refused.

    `exponents` are the public least and greatest powers. Values up to 2**least count as 0, and
    values beyond 2**greatest (and infinities) as 2**greatest. A value that is not a number counts
    as 0. If all values count as 0, the bounds are 0 and 2**least.

    Why it holds: an empty bin reaches the threshold t with probability P(Z >= t) <= failure / bins.
    A bin with 2t - 1 records misses it with P(Z <= -t), which is the same. Each bin can fail in one
    way only, so a union bound over the bins gives `failure`.

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
        self._histogram = Geometric(
            epsilon=epsilon,
            sensitivity=2 if relation == "replace" else 1,
            dimension=bins,
            relation=relation,
            unit=unit,
        )
        # Noise is symmetric, so P(Z >= t) is half of P(|Z| >= t). The threshold is rounded up.
        self.threshold = self._histogram.distribution.tail_bound(2 * self.failure / bins * (1 - 1e-12)) + 1
        self.enough = 2 * self.threshold - 1

    @property
    def guarantee(self) -> Guarantee:
        return self._histogram.guarantee

    def draw(self, data: object) -> tuple[float, float] | Refusal:
        greatest = 2.0 ** self.exponents[1]
        bins = self._bins(numbers_within(data, -greatest, greatest)) + self._sides
        counts = np.bincount(bins, minlength=2 * self._sides + 1)
        full_bins = np.flatnonzero(self._histogram.add_noise(counts) >= self.threshold) - self._sides
        if not full_bins.size:
            return NOTHING
        low, high = 0.0 - self._upper_edge(-int(full_bins[0])), self._upper_edge(int(full_bins[-1]))
        return low, high if high > low else 2.0 ** self.exponents[0]

    def _bins(self, values: Floats) -> Integers:
        """0 for a value that counts as zero; else the signed distance of its exponent from the
        least.
        """
        # |value| = |mantissa| · 2**exponent with 1/2 <= |mantissa| < 1, exactly.
        mantissa, exponent = np.frexp(values)
        distance = exponent - (np.abs(mantissa) <= 0.5) - self.exponents[0]
        return np.asarray(np.sign(mantissa) * np.maximum(distance, 0), np.int64)

    def _upper_edge(self, bin_number: int) -> float:
        if bin_number == 0:
            return 0.0
        power = self.exponents[0] + abs(bin_number)
        return float(2.0**power) if bin_number > 0 else -float(2.0 ** (power - 1))


def _exponents(exponents: Sequence[int]) -> tuple[int, int]:
    if isinstance(exponents, Sequence) and not isinstance(exponents, str) and len(exponents) == 2:
        least = check.whole(at_least=-_MAX_EXPONENT, exponents=exponents[0])
        greatest = check.whole(at_least=-_MAX_EXPONENT, exponents=exponents[1])
        if least < greatest <= _MAX_EXPONENT:
            return least, greatest
    raise BadParameter(
        "DP107",
        f"exponents must be two rising whole numbers between {-_MAX_EXPONENT} and {_MAX_EXPONENT}.",
        why="they define the public list of bins.",
        fix="pass exponents=(-64, 64)",
    )


class _Unbounded(Mechanism):
    """Private bounds, and then a query about records within them."""

    def __init__(
        self,
        *,
        epsilon: float,
        share: float = 0.25,
        failure: float = 1e-3,
        exponents: Sequence[int] = (-64, 64),
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        total_epsilon = exactly(check.moderate(epsilon=epsilon))
        bounds_epsilon = float_below(total_epsilon * exactly(check.inner_probability(share=share)))
        self.bounds = Bounds(
            epsilon=bounds_epsilon, failure=failure, exponents=exponents, relation=relation, unit=unit
        )
        self._answer_epsilon = float_below(total_epsilon - exactly(bounds_epsilon))
        answer_guarantee = privacy.pure(self._answer_epsilon, relation=relation, unit=unit)
        self._guarantee = self.bounds.guarantee + answer_guarantee

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> object:
        bounds = self.bounds.draw(data)
        if isinstance(bounds, Refusal):
            return bounds
        query = self._query(bounds)
        answer = query.laplace(
            epsilon=self._answer_epsilon, relation=self.unit.relation, unit=self.unit.protects
        )
        return answer.draw(data)

    @staticmethod
    @abstractmethod
    def _query(bounds: tuple[float, float]) -> queries.RecordQuery:
        """The query about records within these bounds."""


class UnboundedMean(_Unbounded):
    """The mean of records whose range, and whose number, is not known.

    **Guarantee.** ε-differential privacy in all, `share` of it for the bounds; `failure` and
    `exponents` are those of `Bounds`. If the bounds are refused, so is the mean.

    Why it holds: `Bounds`, then `queries.mean` within them.

    >>> mechanism = UnboundedMean(epsilon=1.0, failure=1e-12)
    >>> mechanism.guarantee
    discrete_laplace(scale=4.0, sensitivity=1) + pure(epsilon=0.75)
    >>> abs(mechanism([3.0] * 10_000).value - 3.0) < 0.1
    True
    """

    @staticmethod
    def _query(bounds: tuple[float, float]) -> queries.RecordQuery:
        return queries.mean(bounds)


class UnboundedSum(_Unbounded):
    """The sum of records whose range is not known.

    **Guarantee.** ε-differential privacy in all, `share` of it for the bounds; `failure` and
    `exponents` are those of `Bounds`. If the bounds are refused, so is the sum.

    Why it holds: `Bounds`, then `queries.sum` within them.

    >>> abs(UnboundedSum(epsilon=1.0, failure=1e-12)([3.0] * 10_000).value - 30_000) < 500
    True
    """

    @staticmethod
    def _query(bounds: tuple[float, float]) -> queries.RecordQuery:
        return queries.sum(bounds)
