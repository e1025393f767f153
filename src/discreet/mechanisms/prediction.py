# SPDX-License-Identifier: Apache-2.0
"""The variance of a linear regression's prediction at a public point, on a logarithmic scale.

    at_noon = prediction_variance([1.0, 0.5], bound_epsilon=0.5, release_epsilon=0.5, delta=1e-6)
    at_noon(design).value  # WithBound(value=-6.2, bound=0.003), say: log of x'(X'X)⁻¹x

The rows of the design X are the records; a row longer than 1 is scaled down to length 1. Adding or
removing one row moves the least eigenvalue λ of X'X by at most 1. If λ > 1, it moves log x'(X'X)⁻¹x
by at most log(λ / (λ - 1)).

**Guarantee.** (bound_epsilon + release_epsilon, δ)-differential privacy for one row added or
removed.

Why it holds: propose.proof.md, §7, and `HighProbabilityBound`. Rows are whole numbers of a grid;
the eigenvalue is bounded and the variance computed by exact determinants (gram.py), so rounding
moves neither. What would break it: `relation="replace"`, which is refused; a point x that was read
off the data.

An entry that is not a finite number counts as 0, and so does every entry of a row of another
length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.exact import as_ratio, bisect_whole
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.exact import number, rows
from discreet.mechanisms.gram import (
    Matrix,
    gram_matrix,
    inverse_form,
    is_positive_definite,
    minus_identity,
)
from discreet.mechanisms.guided import HighProbabilityBound
from discreet.noise.scales import is_many

__all__ = ["LogVariance", "prediction_variance"]

_BITS = 20  # a row is rounded towards zero to multiples of 2**-20
_MAX_WIDTH = 64
_LOG_SLACK = 1e-9  # far more than the rounding of logarithms of determinants

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def prediction_variance(
    point: Sequence[float],
    *,
    bound_epsilon: float,
    release_epsilon: float,
    delta: float,
    relation: str = "add-remove",
    unit: str = "record",
) -> HighProbabilityBound:
    """The mechanism that releases log x'(X'X)⁻¹x at a public point x, and a bound on its
    sensitivity.

    **Guarantee.** (bound_epsilon + release_epsilon, δ)-differential privacy for one row added or
    removed (propose.proof.md, §7). What would break it: a point that was read off the data.

    >>> variance = prediction_variance([1.0, 0.0], bound_epsilon=1, release_epsilon=1, delta=1e-9)
    >>> variance([[0.1, 0.1]] * 3).refused  # too few rows to bound the sensitivity
    True
    >>> released = variance([[1.0, 0.0], [0.0, 1.0]] * 5_000)
    >>> released.value.bound < 0.001  # the true variance is 1 / 5000
    True
    """
    if relation != "add-remove":
        raise UnsupportedGuarantee(
            "DP203",
            "the prediction variance is bounded under add-remove only.",
            why="a replaced row is one row less and one more, which this bound does not cover.",
            fix="leave out relation=, and use epsilon / 2 and delta / (1 + exp(epsilon / 2)): a replaced row is one row less and one more",
        )
    of_design = LogVariance(point)
    return HighProbabilityBound(
        of_design.value,
        of_design.least_eigenvalue,
        sensitivity=log_ratio,
        upper=False,
        bound_epsilon=bound_epsilon,
        release_epsilon=release_epsilon,
        delta=delta,
        relation=relation,
        unit=unit,
    )


def log_ratio(eigenvalue: int) -> float | None:
    """A bound on how far one row moves the logarithm, for this least eigenvalue; None if there is
    none.
    """
    return math.log1p(1 / (eigenvalue - 1)) * (1 + 1e-12) + _LOG_SLACK if eigenvalue > 1 else None


@dataclass(frozen=True)
class LogVariance:
    """log x'(X'X)⁻¹x of a design X, and a whole number below the least eigenvalue of X'X.

    >>> LogVariance([1.0, 0.0]).value([[1.0, 0.0], [0.0, 1.0]] * 5) == math.log(1 / 5)
    True
    >>> LogVariance([1.0, 0.0]).least_eigenvalue([[1.0, 0.0], [0.0, 1.0]] * 5)
    4
    """

    point: Sequence[float]

    def __post_init__(self) -> None:
        numbers = [check.real(point=x) for x in self.point] if is_many(self.point) else []
        if not any(numbers) or len(numbers) > _MAX_WIDTH:
            raise BadParameter(
                "DP102",
                f"point must be a list of 1 to {_MAX_WIDTH} numbers, not all zero.",
                why="the variance at zero is zero for every design, and determinants of long rows are slow.",
                fix="point=[1.0, 0.5]",
            )

    def value(self, design: object) -> float:
        """The logarithm; it raises if X'X has no inverse."""
        variance = inverse_form(self._gram(design), [as_ratio(x) for x in self.point])
        if variance is None:
            raise ArithmeticError
        variance *= 4**_BITS
        return math.log(variance.numerator) - math.log(variance.denominator)

    def least_eigenvalue(self, design: object) -> int:
        """The greatest whole number below every eigenvalue, or 0; one row moves it by at most 1."""
        gram = self._gram(design)

        def is_below_eigenvalues(level: int) -> bool:
            return is_positive_definite(minus_identity(gram, level << 2 * _BITS))

        # No entry of the diagonal is less than the least eigenvalue.
        too_great = 1 + min(gram[i][i] for i in range(len(gram))) // 4**_BITS
        return bisect_whole(is_below_eigenvalues, yes=0, no=too_great)

    def _gram(self, design: object) -> Matrix:
        """4**20 X'X, in whole numbers."""
        return gram_matrix(_cells(_entries(design, len(self.point))))


def _entries(design: object, width: int) -> Floats:
    """The rows as floats, by the rules above."""
    if isinstance(design, np.ndarray) and design.dtype.kind in "iuf" and design.shape[1:] == (width,):
        entries = design.astype(np.float64)
    else:
        listed = rows(design)
        with callback_guard():
            listed = [call_quietly(_row, row, instead=[]) for row in listed]
        entries = np.array([row if len(row) == width else [0.0] * width for row in listed], np.float64)
    return np.where(np.isfinite(entries), entries, 0.0).reshape(-1, width)


def _row(row: Any) -> list[float]:
    return [number(x) for x in row] if is_many(row) else []


def _cells(entries: Floats) -> Integers:
    """Each row as whole numbers of the grid; their squares sum to at most 4**20.

    Only the row itself enters. The length is accurate to one part in 10**13, and 4**20 is
    1.1 · 10**12: the sum is a whole number below 4**20 + 1.
    """
    largest = np.maximum(1.0, np.abs(entries).max(axis=1, initial=0.0))[:, None]
    scaled = entries / largest
    length = np.sqrt(_sum_of_squares(scaled))[:, None]
    shortened: Floats = scaled / np.maximum(length, 1 / largest)
    return np.trunc(np.ldexp(shortened, _BITS)).astype(np.int64)


def _sum_of_squares(columns: Floats) -> Floats:
    """Column by column: the order of the sum must not depend on the number of rows."""
    total = np.zeros(len(columns))
    for column in columns.T:
        total = total + column * column
    return total
