# SPDX-License-Identifier: Apache-2.0
"""Exact Gram matrices: X'X of rows of whole numbers, its eigenvalues and its inverse.

**Guarantee.** Every function returns the exact value. No rounding and no order of the rows can
change it, so a result moves with one row as the mathematics says.

Why it holds: products are summed as whole numbers, and determinants are computed by Bareiss's
elimination, whose divisions leave no remainder (Bareiss 1968).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

__all__ = ["Matrix", "gram_matrix", "inverse_form", "is_positive_definite", "minus_identity"]

Matrix = list[list[int]]

_CHUNK = 1 << 20


def gram_matrix(rows: npt.NDArray[np.int64]) -> Matrix:
    """X'X of rows of numbers below 2**21: a chunk's sum of 2**20 products fits into int64.

    >>> gram_matrix(np.array([[1, 2], [3, 4]]))
    [[10, 14], [14, 20]]
    """
    width = rows.shape[1]
    total = np.zeros((width, width), object)
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        total = total + (chunk.T @ chunk).astype(object)
    return [[int(entry) for entry in row] for row in total]


def minus_identity(matrix: Matrix, level: int) -> Matrix:
    """The matrix minus `level` times the identity."""
    return [[entry - level * (i == j) for j, entry in enumerate(row)] for i, row in enumerate(matrix)]


def is_positive_definite(matrix: Matrix) -> bool:
    """Whether all eigenvalues of a symmetric matrix are above zero: Sylvester's criterion.

    >>> is_positive_definite([[2, 1], [1, 1]]), is_positive_definite([[1, 1], [1, 1]])
    (True, False)
    """
    return all(minor > 0 for minor in _leading_minors(matrix))


def inverse_form(gram: Matrix, point: list[Fraction]) -> Fraction | None:
    """x'G⁻¹x of a Gram matrix G; None if it has no inverse.

    -x'G⁻¹x is the determinant of G bordered by x, divided by the determinant of G.

    >>> inverse_form([[2, 0], [0, 4]], [Fraction(1), Fraction(1)])
    Fraction(3, 4)
    """
    denominator = math.lcm(*(x.denominator for x in point))
    border = [int(x * denominator) for x in point]
    bordered = [[*row, x] for row, x in zip(gram, border, strict=True)] + [[*border, 0]]
    minors = list(_leading_minors(bordered))
    # A Gram matrix without an inverse has a leading minor that is 0.
    if 0 in minors[: len(gram)]:
        return None
    return Fraction(-minors[-1], minors[-2]) / denominator**2


def _leading_minors(matrix: Matrix) -> Iterator[int]:
    """The leading principal minors one by one, up to the first that is 0."""
    work, divisor = [row[:] for row in matrix], 1
    for k, pivot_row in enumerate(work):
        pivot = pivot_row[k]
        yield pivot
        if pivot == 0:
            return
        for row in work[k + 1 :]:
            factor = row[k]
            row[k + 1 :] = [
                (pivot * x - factor * y) // divisor
                for x, y in zip(row[k + 1 :], pivot_row[k + 1 :], strict=True)
            ]
        divisor = pivot
