# SPDX-License-Identifier: Apache-2.0
"""The log variance of a linear regression's prediction at a public point: log xᵀ (XᵀX)⁻¹ x.

Rows have norm at most 1. Let λ be the least eigenvalue of XᵀX. Adding or removing a row moves λ by
at most 1 and, if λ > 1, the logarithm by at most ln(λ / (λ - 1)). So the local sensitivity at
distance j is at most ln((λ - j) / (λ - j - 1)), or the width of the stated range if λ - j <= 1.

**Guarantee.** As `Statistic`, under add-remove. Rows are clipped to norm 1 and rounded to multiples
of 2**-20, and all matrices are exact: whole-number elimination decides whether λ exceeds a number,
never a floating-point eigenvalue. Proof: smooth.proof.md, §8. What would break it: a range, or a
point x, that was read off the data.

A row counts as zeros if its length is wrong or if an entry is not a finite number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import bisect_whole
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.exact import number, rows
from discreet.mechanisms.gram import (
    Matrix,
    gram_matrix,
    inverse_form,
    is_positive_definite,
    minus_identity,
)
from discreet.mechanisms.sensitivity import LocalAtDistance
from discreet.mechanisms.smooth.statistics import Measured, Statistic
from discreet.noise.enclosure import log

__all__ = ["PredictionVariance"]

_BITS, _LAMBDA_BITS, _LOG_BITS = 20, 10, 60
_ONE = 1 << (2 * _BITS)
_MAX_FEATURES = 32
_ROUNDING = 2.0**-50  # more than twice the error of a rounded logarithm


@dataclass(frozen=True, repr=False)
class PredictionVariance(Statistic):
    """log xᵀ (XᵀX)⁻¹ x, clipped to [low, high]; `high` if XᵀX has no inverse.

    **Guarantee.** As `Statistic`, under "add-remove" (smooth.proof.md, §8).

    >>> variance = PredictionVariance((1.0, 0.0), -10, 2)
    >>> round(float(variance.measure([[1.0, 0.0], [0.0, 1.0]] * 5, t=0.1)[0]), 3)
    -1.609
    """

    at: tuple[float, ...]
    low: float
    high: float
    relations = ("add-remove",)

    def __post_init__(self) -> None:
        point = [check.real(at=value) for value in self.at]
        if not any(point) or len(point) > _MAX_FEATURES or not self.low < self.high:
            raise BadParameter(
                "DP107",
                f"a prediction needs a point of 1 to {_MAX_FEATURES} numbers, not all zero, and a range.",
                why="the variance at zero is zero, and exact matrices of more numbers are slow.",
                fix="at=(1.0, 0.5), between=(-10, 2)",
            )

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.low), Fraction(self.high)

    def measure(self, records: object, t: float) -> Measured:
        gram = self._gram(records)
        width = self.high - self.low
        smooth = LocalAtDistance(lambda lam, j: _local_sensitivity(lam - j, width), width).smooth(t)
        return self._value(gram), Fraction(smooth.bound(_least_eigenvalue(gram))) + Fraction(_ROUNDING)

    def typical(self, size: int) -> object:
        features = len(self.at)
        return np.tile(np.eye(features), (min(size, 1 << 17) // features + 1, 1))

    def _value(self, gram: Matrix) -> Fraction:
        low, high = self.range
        variance = inverse_form(gram, [Fraction(float(value)) for value in self.at])
        if variance is None:
            return high
        return min(max(Fraction(log(variance * _ONE, _LOG_BITS)[0], 1 << _LOG_BITS), low), high)

    def _gram(self, records: object) -> Matrix:
        """4**20 XᵀX, in whole numbers."""
        features = len(self.at)
        listed = rows(records)
        with callback_guard():
            cells = [call_quietly(_cells, row, features, instead=[0] * features) for row in listed]
        return gram_matrix(np.array(cells, np.int64).reshape(-1, features))


def _local_sensitivity(lam: float, width: float) -> float:
    """How far one row moves the clipped logarithm at most, for this least eigenvalue."""
    return min(width, math.log1p(1 / (lam - 1))) if lam > 1 else width


def _cells(row: object, features: int) -> list[int]:
    """The row in multiples of 2**-20, clipped to norm 1."""
    zeros = [0] * features
    if not isinstance(row, Sequence | np.ndarray) or isinstance(row, str | bytes) or len(row) != features:
        return zeros
    values = [number(value) for value in row]
    if not all(map(math.isfinite, values)):
        return zeros
    norm = math.hypot(*values)
    factor = (1 - 2.0**-40) / max(norm, 1.0) if math.isfinite(norm) else 0.0
    cells = [int(value * factor * (1 << _BITS)) for value in values]
    return cells if sum(cell * cell for cell in cells) <= _ONE else zeros


def _least_eigenvalue(gram: Matrix) -> float:
    """The greatest multiple of 2**-10 below the least eigenvalue of gram / 4**20, exactly.

    A floating-point eigenvalue says only where the exact search begins.
    """
    scaled = [[entry << _LAMBDA_BITS for entry in row] for row in gram]

    def is_below_eigenvalues(level: int) -> bool:
        return is_positive_definite(minus_identity(scaled, level << (2 * _BITS)))

    guess = np.linalg.eigvalsh(np.array(gram, np.float64) / _ONE)[0] if gram else 0.0
    low = max(-1, math.floor(guess * (1 << _LAMBDA_BITS))) if math.isfinite(guess) else -1
    stride = 1
    while low > -1 and not is_below_eigenvalues(low):
        low, stride = max(-1, low - stride), 2 * stride
    high, stride = low + 1, 1
    while is_below_eigenvalues(high):
        low, high, stride = high, high + stride, 2 * stride
    return bisect_whole(is_below_eigenvalues, yes=low, no=high) / (1 << _LAMBDA_BITS)
