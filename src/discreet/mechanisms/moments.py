# SPDX-License-Identifier: Apache-2.0
"""Sums, means and variances of records within public bounds.

Each record counts as a number within public bounds low, high (exact.py). Let w = high - low. With a
public number n of records, one record moves

    answer            add-remove              replace
    sum               max(|low|, |high|)      w
    mean              -                       w / n
    variance          -                       w² (n - 1) / n²

Mean and variance divide by n, so n must be public, and only a replaced record leaves it as it is.
The last row holds because n² times the variance is Σ (x_i - x_j)² over all pairs. A record is in
n - 1 pairs, whose squares lie in [0, w²]. If all others are at low, one record that moves from low
to high reaches it. Noise is added to the exact sum (of n² variances), and the result is divided by
public numbers.

With a protected number of records, a record is t = (x - low) / w in [0, 1]. It splits into shares
that are not negative and add up to 1:

    mean          t, 1 - t                              mean     = P / N
    variance      t², 2t(1 - t), (1 - t)²               variance = (PR - Q²/4) / N²

The sums P, Q, R of the shares get noise by one draw with one guarantee; their total N is the number
of records. One record moves the sums by

    relation      l1     l2
    add-remove    1      1
    replace       2      √2

Why it holds: the shares of a record lie in the simplex {v >= 0, Σv = 1}. Its points have l1 norm 1
and l2 norm at most 1; two of them are at most 2 and √2 apart. The ends t = 0 and t = 1 reach all
four. (A noisy sum of x - middle beside a noisy count carries the same information, and costs
Laplace noise of twice the variance.)

The margin of error depends on N, which is secret, so `error` is None. The interval follows from the
released sums. If each sum has an error of at most e, the mean of t has an error of at most e / N,
and the variance of t one of at most 2e / (N - 3e):

- mean: P/(P + R) grows with P and falls with R, so the corners of the box hold the exact value.
  With errors a of P and b of R, the error of P/N is (aR - bP) / (N(N + a + b)). At a = -b = e that
  is e/N, the largest value, if a negative sum counts as zero.
- variance: it is the minimum over c in [0, 1] of the mean of (t - c)², which is the mean of the
  numbers (1-c)², -c(1-c) and c² with weights P, Q, R. If each weight has an error of at most e, the
  error of this mean is at most e times the sum of the distances of the three numbers from it,
  divided by the other total. They lie in a range of max(c, 1-c) <= 1, so the sum is at most 2.

No margin of error includes the bias from clipping: the exact answer is that of the clipped records.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio, float_above
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.exact import Floats, Function, numbers_within, total, total_of_squares
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.query import (
    ClippingBounds,
    QueryAnswer,
    RecordQuery,
    query_with_noise,
    records_needed,
    root_above,
)

WithNoise = Callable[[RecordQuery], QueryAnswer]

_ROUNDING = Fraction(1, 2**50)  # more than a float loses


@dataclass(frozen=True, repr=False)
class Sum(RecordQuery):
    """The sum of the records within bounds."""

    bounds: ClippingBounds
    of: Function | None = None

    def exact(self, records: object) -> Fraction:
        return total(numbers_within(records, self.bounds.low, self.bounds.high, self.of))

    def moves(self, relation: str, norm: int) -> Fraction:
        return self.bounds.max_abs if relation == "add-remove" else self.bounds.width


class _PlannedQuery(RecordQuery):
    """A query that knows how many records a margin of error needs."""

    def sample_size(
        self,
        *,
        error: float,
        confidence: float = CONFIDENCE,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        scale: float | None = None,
        relation: str | None = None,
    ) -> int:
        """A number of records that suffices for this margin of error, whatever the records are.

        State the noise as for `laplace` (epsilon) or `gaussian` (rho, scale, or epsilon and delta).
        """
        amount = {"epsilon": epsilon, "delta": delta, "rho": rho, "scale": scale}
        return self._records_for(error, confidence, lambda query: query_with_noise(query, amount, relation))

    @abstractmethod
    def _records_for(self, error: float, confidence: float, with_noise: WithNoise) -> int:
        """The number of records that `sample_size` returns; `with_noise` adds the stated noise."""


@dataclass(frozen=True, repr=False)
class _SizedQuery(_PlannedQuery):
    """A query about a public number of records, each within bounds."""

    bounds: ClippingBounds
    size: int
    of: Function | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        return ("replace",)

    def _records_for(self, error: float, confidence: float, with_noise: WithNoise) -> int:
        size = records_needed(error, with_noise(replace(self, size=2)).noise.error(confidence))
        # The grid of a variance depends on n a little, so the first size may just miss the error.
        while size > 2 and (with_noise(replace(self, size=size)).error(confidence) or 0.0) > error:
            size += math.ceil(size / 1000)
        return size

    def _values(self, records: Any) -> Floats:
        values = numbers_within(records, self.bounds.low, self.bounds.high, self.of)
        if values.size != self.size:
            raise BadParameter(
                "DP107",
                f"this query takes exactly {self.size} records.",
                why="its noise is made for that public number; another number is not protected.",
                fix="state the public number of records, or leave out size= to protect that number too",
            )
        return values


@dataclass(frozen=True, repr=False)
class Mean(_SizedQuery):
    """The mean of a public number of records within bounds."""

    @property
    def per(self) -> int:
        return self.size

    @property
    def range(self) -> tuple[float, float]:
        return self.bounds.low, self.bounds.high

    def exact(self, records: object) -> Fraction:
        return total(self._values(records))

    def moves(self, relation: str, norm: int) -> Fraction:
        return self.bounds.width


@dataclass(frozen=True, repr=False)
class Variance(_SizedQuery):
    """The variance (about the mean, divided by n) of a public number of records within bounds."""

    @property
    def per(self) -> int:
        return self.size**2

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, float_above(self.bounds.width**2 / 4)

    def exact(self, records: object) -> Fraction:
        values = self._values(records)
        return self.size * total_of_squares(values) - total(values) ** 2

    def moves(self, relation: str, norm: int) -> Fraction:
        return (self.size - 1) * self.bounds.width**2


class FromShares(float):
    """A released number with the noisy sums that it was computed from; all have one guarantee.

    `size` is the noisy number of records.
    """

    __slots__ = ("shares",)
    shares: tuple[float, ...]

    def __new__(cls, value: float, shares: tuple[float, ...] = ()) -> Self:
        """A float with its shares."""
        number = super().__new__(cls, value)
        number.shares = shares
        return number

    @property
    def size(self) -> float:
        """The noisy number of records."""
        return math.fsum(self.shares)


@dataclass(frozen=True, repr=False)
class _ShareSums(_PlannedQuery):
    """Sums of shares; the shares of a record add up to 1."""

    bounds: ClippingBounds
    of: Function | None = None

    def moves(self, relation: str, norm: int) -> Fraction:
        l1_distance = 1 if relation == "add-remove" else 2
        return Fraction(l1_distance) if norm == 1 else root_above(l1_distance)

    def error(self, noise: Additive, confidence: float) -> None:
        check.inner_probability(confidence=confidence)

    def _moments(self, records: Any, powers: int) -> list[Fraction]:
        """n, Σt and, for 2 powers, Σt²: exactly."""
        values = numbers_within(records, self.bounds.low, self.bounds.high, self.of)
        low, width = Fraction(self.bounds.low), self.bounds.width
        size, first = Fraction(values.size), total(values)
        moments = [size, (first - size * low) / width]
        if powers > 1:
            squares = total_of_squares(values) - 2 * low * first + size * low * low
            moments.append(squares / width**2)
        return moments


@dataclass(frozen=True, repr=False)
class ProtectedMean(_ShareSums):
    """The mean of a protected number of records within bounds."""

    @property
    def dimension(self) -> int:
        return 2

    @property
    def range(self) -> tuple[float, float]:
        return self.bounds.low, self.bounds.high

    def exact(self, records: object) -> list[Fraction]:
        size, first = self._moments(records, 1)
        return [first, size - first]

    def answer_from(self, noisy: Any) -> FromShares:
        upper, lower = (float(share) for share in noisy)
        return FromShares(self._between(upper, lower), (upper, lower))

    def interval(self, noise: Additive, value: Any, confidence: float) -> tuple[float, float]:
        error = noise.error(confidence)
        if not isinstance(value, FromShares) or len(value.shares) != 2:
            return self.range
        upper, lower = value.shares
        lowest, highest = upper - error, upper + error
        # This happens with probability 1 - confidence at most.
        if highest <= 0 or lower + error <= 0:
            return self.range
        return self._between(lowest, lower + error), self._between(highest, lower - error)

    def _records_for(self, error: float, confidence: float, with_noise: WithNoise) -> int:
        sums = as_ratio(with_noise(self).noise.error(confidence))
        return records_needed(error, float(sums * self.bounds.width * (1 + _ROUNDING)))

    def _between(self, upper: float, lower: float) -> float:
        """low + width · upper / (upper + lower); negative sums count as 0, and 0 / 0 as 1/2."""
        upper, lower = max(upper, 0.0), max(lower, 0.0)
        share = upper / (upper + lower) if upper + lower > 0 else 0.5
        low, high = self.range
        return min(max(low * (1 - share) + high * share, low), high)


@dataclass(frozen=True, repr=False)
class ProtectedVariance(_ShareSums):
    """The variance (about the mean, divided by n) of a protected number of records within bounds."""

    @property
    def dimension(self) -> int:
        return 3

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, float(self.bounds.width**2 / 4)

    def exact(self, records: object) -> list[Fraction]:
        size, first, second = self._moments(records, 2)
        return [second, 2 * (first - second), size - 2 * first + second]

    def answer_from(self, noisy: Any) -> FromShares:
        shares = tuple(float(share) for share in noisy)
        upper, both, lower = (max(share, 0.0) for share in shares)
        size = upper + both + lower
        share = ((upper / size) * (lower / size) - (both / size) ** 2 / 4) if size > 0 else 0.125
        return FromShares(min(max(share * 4, 0.0), 1.0) * self.range[1], shares)

    def interval(self, noise: Additive, value: Any, confidence: float) -> tuple[float, float]:
        error, max_variance = noise.error(confidence), self.range[1]
        size = math.fsum(max(share, 0.0) for share in getattr(value, "shares", ())) - 3 * error
        if size <= 0:
            return self.range
        # 2 error / size in units of width², and max_variance is width² / 4.
        margin = 8 * max_variance * error / size
        return max(float(value) - margin, 0.0), min(float(value) + margin, max_variance)

    def _records_for(self, error: float, confidence: float, with_noise: WithNoise) -> int:
        sums = as_ratio(with_noise(self).noise.error(confidence))
        more = math.ceil(3 * sums)
        return more + records_needed(error, float(2 * sums * self.bounds.width**2 * (1 + _ROUNDING)))
