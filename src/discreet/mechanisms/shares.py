# SPDX-License-Identifier: Apache-2.0
"""Means and variances where the number of records is protected too.

A record within bounds low, high is a number t = (x - low) / (high - low) in [0, 1], and splits into shares that are
not negative and add up to 1:

    mean          t, 1 - t                              mean     = P / N
    variance      t², 2t(1 - t), (1 - t)²               variance = (PR - Q²/4) / N²

The sums P, Q, R of the shares over all records get noise, all by one draw with one guarantee; N is their total, the
number of records. One record moves the sums by

    relation      l1     l2
    add-remove    1      1
    replace       2      √2

Why it holds: what a record adds lies in the simplex {v >= 0, Σv = 1}. Its points have l1 norm 1 and l2 norm at most
1; two of them are at most 2 and √2 apart. The ends t = 0 and t = 1 reach all four. (A noisy sum of x - middle beside a
noisy count carries the same information, and costs Laplace noise of twice the variance.)

The margin of error depends on N, which is secret, so there is no `error`. The interval follows from the released
sums. If each is off by at most e, then the mean of t is off by at most e / N, and the variance by 2e / (N - 3e):

- mean: P/(P + R) grows with P and falls with R, so the corners of the box hold the exact one. If P is off by a and R
  by b, P/N is off by (aR - bP) / (N(N + a + b)); at a = -b = e that is e/N, and nowhere more, where a negative sum
  counts as zero.
- variance: it is the least value over c in [0, 1] of the mean of (t - c)², which is a mean of the three numbers (1-c)²,
  -c(1-c) and c² with weights P, Q, R. If the weights are off by e, this mean is off by at most e times the sum of the
  distances of the three numbers from it, over the other total. They lie within a range of max(c, 1-c) <= 1, so the sum
  is at most 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from discreet import check
from discreet.exact import as_ratio
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.exact import Function, numbers_within, total, total_of_squares
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.query import (
    ClippingBounds,
    RecordQuery,
    query_with_noise,
    records_needed,
    root_above,
)


class FromShares(float):
    """A released number that remembers the noisy sums that it was read off; they were paid for together.

    `size` is the noisy number of records.
    """

    __slots__ = ("shares",)
    shares: tuple[float, ...]

    def __new__(cls, value: float, shares: tuple[float, ...] = ()) -> Self:
        """A float with its shares."""
        made = super().__new__(cls, value)
        made.shares = shares
        return made

    @property
    def size(self) -> float:
        """The noisy number of records."""
        return math.fsum(self.shares)


@dataclass(frozen=True)
class _Shares(RecordQuery):
    """Sums of shares, which each record has 1 of in all."""

    bounds: ClippingBounds
    of: Function | None = None

    def moves(self, relation: str, norm: int) -> Fraction:
        both = 1 if relation == "add-remove" else 2
        return Fraction(both) if norm == 1 else root_above(both)

    def error(self, noise: Additive, confidence: float) -> None:
        check.inner_probability(confidence=confidence)

    def _moments(self, records: Any, powers: int) -> list[Fraction]:
        """n, Σt, …: exactly."""
        values = numbers_within(records, self.bounds.low, self.bounds.high, self.of)
        low, width = Fraction(self.bounds.low), self.bounds.width
        size, first = Fraction(values.size), total(values)
        moments = [size, (first - size * low) / width]
        if powers > 1:
            squares = total_of_squares(values) - 2 * low * first + size * low * low
            moments.append(squares / width**2)
        return moments


@dataclass(frozen=True)
class ProtectedMean(_Shares):
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
        if highest <= 0 or lower + error <= 0:  # has a chance of 1 - confidence at most
            return self.range
        least = self._between(lowest, lower + error)
        most = self._between(highest, lower - error)
        return least, most

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
        """The number of records that suffice for this error, with this confidence, whatever the records are.

        State the noise as for `laplace` (epsilon) or `gaussian` (rho, scale, or epsilon and delta).
        """
        amount = {"epsilon": epsilon, "delta": delta, "rho": rho, "scale": scale}
        sums = as_ratio(query_with_noise(self, amount, relation).noise.error(confidence))
        return records_needed(error, float(sums * self.bounds.width * (1 + Fraction(1, 2**50))))

    def _between(self, upper: float, lower: float) -> float:
        """low + width · upper / (upper + lower), where negative sums count as zero; the middle of nothing."""
        upper, lower = max(upper, 0.0), max(lower, 0.0)
        share = upper / (upper + lower) if upper + lower > 0 else 0.5
        low, high = self.range
        return min(max(low * (1 - share) + high * share, low), high)


@dataclass(frozen=True)
class ProtectedVariance(_Shares):
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
        error, most = noise.error(confidence), self.range[1]
        size = math.fsum(max(share, 0.0) for share in getattr(value, "shares", ())) - 3 * error
        if size <= 0:
            return self.range
        off = 8 * most * error / size  # 2 error / size, times width²
        return max(float(value) - off, 0.0), min(float(value) + off, most)

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
        """The number of records that suffice for this error, with this confidence, whatever the records are.

        State the noise as for `laplace` (epsilon) or `gaussian` (rho, scale, or epsilon and delta).
        """
        amount = {"epsilon": epsilon, "delta": delta, "rho": rho, "scale": scale}
        sums = as_ratio(query_with_noise(self, amount, relation).noise.error(confidence))
        more = math.ceil(3 * sums)
        return more + records_needed(error, float(2 * sums * self.bounds.width**2 * (1 + Fraction(1, 2**50))))
