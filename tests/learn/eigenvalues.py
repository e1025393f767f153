# SPDX-License-Identifier: Apache-2.0
"""An oracle for eigenvalues: the sign of the least one in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any


def least_eigenvalue_is_above(matrix: Any, bound: float) -> bool:
    """Whether all eigenvalues of a symmetric matrix of whole numbers exceed `bound`: all pivots are positive."""
    size = len(matrix)
    rows = [
        [Fraction(int(matrix[i][j])) - (Fraction(bound) if i == j else 0) for j in range(size)]
        for i in range(size)
    ]
    for k in range(size):
        if rows[k][k] <= 0:
            return False
        for i in range(k + 1, size):
            factor = rows[i][k] / rows[k][k]
            for j in range(k, size):
                rows[i][j] -= factor * rows[k][j]
    return True
