# SPDX-License-Identifier: Apache-2.0
"""How certain a linear regression is of its prediction at a new point: log of xᵀ (XᵀX)⁻¹ x.

With rows of norm at most 1 and λ the least eigenvalue of XᵀX, adding or removing a row moves λ by
at most 1 and the logarithm by at most ln(λ / (λ - 1)) if λ > 1. So ln((λ - j) / (λ - j - 1)) bounds
the local sensitivity at distance j, and the width of the stated range does where λ - j <= 1.

**Guarantee.** As `Statistic`, under add-remove. Rows are whole numbers of 2**-20 after they are cut
to norm 1, and all matrices are exact: whether λ exceeds a number is decided by whole-number
elimination, never by a floating-point eigenvalue. Proof: smooth.proof.md, §8. What would break it:
a range, or an x, that was read off the data.

A row of the wrong length, or with what is no finite number in it, counts as zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import bisect_whole
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.exact import number, rows
from discreet.mechanisms.sensitivity import LocalAtDistance
from discreet.mechanisms.smooth.statistics import Measured, Statistic
from discreet.noise.enclosure import log

__all__ = ["PredictionVariance"]

Matrix = list[list[int]]

_BITS, _LAMBDA_BITS, _LOG_BITS = 20, 10, 60
_ONE = 1 << (2 * _BITS)
_CHUNK = 1 << 20  # rows whose products, at most 2**40 each, are summed in int64
_MOST_FEATURES = 32
_ROUNDING = 2.0**-50  # more than twice what a rounded logarithm is wrong by


@dataclass(frozen=True, repr=False)
class PredictionVariance(Statistic):
    """log xᵀ (XᵀX)⁻¹ x, moved into [low, high]; `high` where XᵀX has no inverse.

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
        if not any(point) or len(point) > _MOST_FEATURES or not self.low < self.high:
            raise BadParameter(
                "DP107",
                f"a prediction needs a point other than zero with up to {_MOST_FEATURES} numbers, and a range.",
                why="the variance at zero is zero, and exact matrices of more numbers are slow.",
                fix="at=(1.0, 0.5), between=(-10, 2)",
            )

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.low), Fraction(self.high)

    def measure(self, records: object, t: float) -> Measured:
        gram = self._gram(records)
        least = _least_eigenvalue(gram)
        width = self.high - self.low
        smooth = LocalAtDistance(lambda lam, j: _moves(lam - j, width), width).smooth(t)
        return self._value(gram), Fraction(smooth.bound(least)) + Fraction(_ROUNDING)

    def typical(self, size: int) -> object:
        features = len(self.at)
        return np.tile(np.eye(features), (min(size, 1 << 17) // features + 1, 1))

    def _value(self, gram: Matrix) -> Fraction:
        low, high = self.range
        variance = _quadratic(gram, [Fraction(float(value)) for value in self.at])
        if variance is None:
            return high
        return min(max(Fraction(log(variance * _ONE, _LOG_BITS)[0], 1 << _LOG_BITS), low), high)

    def _gram(self, records: Any) -> Matrix:
        features = len(self.at)
        listed = rows(records)
        with callback_guard():
            cells = [call_quietly(_cells, row, features, instead=[0] * features) for row in listed]
        whole = np.array(cells, np.int64).reshape(-1, features)
        total = np.zeros((features, features), object)
        for start in range(0, len(whole), _CHUNK):
            part = whole[start : start + _CHUNK]
            total = total + (part.T @ part).astype(object)
        return [[int(value) for value in row] for row in total]


def _moves(lam: float, width: float) -> float:
    return min(width, math.log1p(1 / (lam - 1))) if lam > 1 else width


def _cells(row: Any, features: int) -> list[int]:
    """The row as whole numbers of 2**-20, its norm cut to 1."""
    zeros = [0] * features
    if not isinstance(row, Sequence | np.ndarray) or isinstance(row, str | bytes) or len(row) != features:
        return zeros
    values = [number(value) for value in row]
    if not all(map(math.isfinite, values)):
        return zeros
    norm = math.hypot(*values)
    keep = (1 - 2.0**-40) / max(norm, 1.0) if math.isfinite(norm) else 0.0
    whole = [int(value * keep * (1 << _BITS)) for value in values]
    return whole if sum(cell * cell for cell in whole) <= _ONE else zeros


def _least_eigenvalue(gram: Matrix) -> float:
    """The greatest multiple of 2**-10 below the least eigenvalue of gram / 4**20, found exactly."""

    def exceeds(m: int) -> bool:
        shifted = [[value << _LAMBDA_BITS for value in row] for row in gram]
        for i, row in enumerate(shifted):
            row[i] -= m << (2 * _BITS)
        return _positive_definite(shifted)

    guess = np.linalg.eigvalsh(np.array(gram, np.float64) / _ONE)[0] if gram else 0.0
    low = max(-1, math.floor(guess * (1 << _LAMBDA_BITS))) if math.isfinite(guess) else -1
    stride = 1
    while low > -1 and not exceeds(low):
        low, stride = max(-1, low - stride), 2 * stride
    high, stride = low + 1, 1
    while exceeds(high):
        low, high, stride = high, high + stride, 2 * stride
    return bisect_whole(exceeds, yes=low, no=high) / (1 << _LAMBDA_BITS)


def _positive_definite(matrix: Matrix) -> bool:
    """Whether all leading minors are positive, by Bareiss' whole-number elimination (which is `matrix`'s end)."""
    before = 1
    for k, pivot in enumerate(matrix):
        if pivot[k] <= 0:
            return False
        for row in matrix[k + 1 :]:
            lead = row[k]
            row[k + 1 :] = [
                (pivot[k] * x - lead * y) // before for x, y in zip(row[k + 1 :], pivot[k + 1 :], strict=True)
            ]
        before = pivot[k]
    return True


def _quadratic(gram: Matrix, x: list[Fraction]) -> Fraction | None:
    """xᵀ gram⁻¹ x, exactly; None where there is no inverse."""
    left = [[Fraction(value) for value in row] for row in gram]
    right, total = list(x), Fraction(0)
    for k, pivot in enumerate(left):
        if pivot[k] <= 0:  # a Gram matrix has pivots above zero, or no inverse
            return None
        for i in range(k + 1, len(left)):
            share = left[i][k] / pivot[k]
            left[i][k:] = [a - share * b for a, b in zip(left[i][k:], pivot[k:], strict=True)]
            right[i] -= share * right[k]
        total += right[k] ** 2 / pivot[k]
    return total
