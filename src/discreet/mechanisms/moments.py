# SPDX-License-Identifier: Apache-2.0
"""Sums, and means and variances of a public number of records.

Each record counts as a number within public bounds low, high (see exact.py for what is no number). With w = high - low
and n records, one record moves

    answer            add-remove              replace
    sum               max(|low|, |high|)      w
    mean              -                       w / n
    variance          -                       w² (n - 1) / n²

The mean and the variance divide by n, so n must be public, and only a replaced record leaves it as it is. Where n is
protected too, leave out `size`: see shares.py.

Why the last row holds: n² times the variance is Σ (x_i - x_j)² over all pairs. A record is in n - 1 pairs, and none
of their squares lies outside [0, w²]. All others at low, and this one going from low to high, reach it.

Noise is added to the exact sum (of n² variances), and the result is divided by public numbers. What clipping does to
records beyond the bounds is a bias that no error here includes: the exact answer is that of the clipped records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.errors import BadParameter
from discreet.exact import float_above
from discreet.mechanisms.exact import Floats, Function, numbers_within, total, total_of_squares
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.query import ClippingBounds, RecordQuery, query_with_noise, records_needed


@dataclass(frozen=True)
class Sum(RecordQuery):
    """The sum of the records within bounds."""

    bounds: ClippingBounds
    of: Function | None = None

    def exact(self, records: object) -> Fraction:
        return total(numbers_within(records, self.bounds.low, self.bounds.high, self.of))

    def moves(self, relation: str, norm: int) -> Fraction:
        return self.bounds.max_abs if relation == "add-remove" else self.bounds.width


@dataclass(frozen=True)
class _Sized(RecordQuery):
    """A question about a public number of records, each within bounds."""

    bounds: ClippingBounds
    size: int
    of: Function | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        return ("replace",)

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
        size = records_needed(
            error, query_with_noise(replace(self, size=2), amount, relation).noise.error(confidence)
        )
        while size > 2 and not self._reaches(error, confidence, size, amount, relation):
            size += math.ceil(size / 1000)  # the grid of a variance depends on n a little
        return size

    def _reaches(
        self,
        error: float,
        confidence: float,
        size: int,
        amount: dict[str, float | None],
        relation: str | None,
    ) -> bool:
        found = query_with_noise(replace(self, size=size), amount, relation).error(confidence)
        return found is not None and found <= error

    def _values(self, records: Any) -> Floats:
        values = numbers_within(records, self.bounds.low, self.bounds.high, self.of)
        if values.size != self.size:
            raise BadParameter(
                "DP107",
                f"this question is about exactly {self.size} records.",
                why="its noise is made for that public number, and another one would not be protected.",
                fix="state the public number of records, or leave out size= so that it is protected too",
            )
        return values


@dataclass(frozen=True)
class Mean(_Sized):
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


@dataclass(frozen=True)
class Variance(_Sized):
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
