# SPDX-License-Identifier: Apache-2.0
"""Exact Gram matrices against fractions, and against matrices whose eigenvalues are known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.mechanisms import gram


def solve(matrix, right):
    """matrix⁻¹ right by Gauss-Jordan elimination with fractions; None if there is no inverse."""
    work = [[Fraction(entry) for entry in row] + [Fraction(x)] for row, x in zip(matrix, right, strict=True)]
    for k in range(len(work)):
        pivot = next((i for i in range(k, len(work)) if work[i][k] != 0), None)
        if pivot is None:
            return None
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [entry / work[k][k] for entry in work[k]]
        for i in range(len(work)):
            if i != k:
                work[i] = [a - work[i][k] * b for a, b in zip(work[i], work[k], strict=True)]
    return [row[-1] for row in work]


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_the_inverse_form_is_what_a_linear_system_gives(width):
    random = np.random.default_rng(width)
    for length in range(2 * width):
        rows = random.integers(-(1 << 20), 1 << 20, (length, width))
        point = [Fraction(int(x), 8) for x in random.integers(1, 100, width)]
        matrix = gram.gram_matrix(rows)
        solution = solve(matrix, point)
        expected = None if solution is None else sum(a * b for a, b in zip(point, solution, strict=True))
        assert gram.inverse_form(matrix, point) == expected
        assert (expected is None) == (length < width)


def test_no_inverse_is_found_wherever_the_zero_minor_is():
    point = [Fraction(1), Fraction(2), Fraction(3)]
    for rows in ([[0, 1, 1], [0, 1, 2]], [[1, 1, 0], [2, 2, 1]], [[1, 0, 1], [0, 1, 1]]):
        assert gram.inverse_form(gram.gram_matrix(np.array(rows)), point) is None


def test_sums_beyond_int64_are_exact(monkeypatch):
    monkeypatch.setattr(gram, "_CHUNK", 2)
    rows = np.full((5, 2), 1 << 30, np.int64)
    assert gram.gram_matrix(rows) == [[5 << 60] * 2] * 2
    assert gram.gram_matrix(rows[:0]) == [[0, 0], [0, 0]]


def test_definiteness_changes_at_the_least_eigenvalue():
    # The eigenvalues of [[a, b], [b, a]] are a - b and a + b.
    matrix = [[10**20, 10**20 - 7], [10**20 - 7, 10**20]]
    assert gram.is_positive_definite(gram.minus_identity(matrix, 6))
    assert not gram.is_positive_definite(gram.minus_identity(matrix, 7))
    assert not gram.is_positive_definite(gram.minus_identity(matrix, 8))
    assert not gram.is_positive_definite([[-1, 0], [0, -1]])
