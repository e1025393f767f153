# SPDX-License-Identifier: Apache-2.0
"""Workloads by dense algebra: matrices over all cells, and estimates by numpy's least squares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce

import numpy as np

from discreet.exact import exactly
from discreet.tables.workloads.measurement import Measurement, SparseTable

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def marginal(sizes: Sequence[int], keys: Sequence[int]) -> np.ndarray:
    """Q_A: the table of some keys as a matrix over all cells."""
    parts = [np.eye(size) if key in keys else np.ones((1, size)) for key, size in enumerate(sizes)]
    return reduce(np.kron, parts, np.ones((1, 1)))


def residual(sizes: Sequence[int], keys: Sequence[int]) -> np.ndarray:
    """P_S as a matrix over the cells of the table of S."""
    parts = [np.eye(sizes[key]) - 1 / sizes[key] for key in keys]
    return reduce(np.kron, parts, np.ones((1, 1)))


def information(sizes: Sequence[int], variances: dict) -> np.ndarray:
    """Σ Q_Sᵀ P_S Q_S / σ_S²."""
    return sum(
        marginal(sizes, keys).T @ residual(sizes, keys) @ marginal(sizes, keys) / variance
        for keys, variance in variances.items()
    )


def cells_of(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, sizes))


def shifts(measurement: Measurement, sizes: Sequence[int]) -> dict[tuple[int, ...], list[Fraction]]:
    """For each cell, what one row in it adds to everything that is measured, in units of the noise."""
    found = {}
    for cell in cells_of(sizes):
        table = SparseTable(np.array([cell], dtype=np.int64).reshape(1, -1), np.array([1]))
        found[cell] = [
            Fraction(int(number)) / exactly(measurement.scales[keys])
            for keys, block in measurement.layout.exact_blocks(table, measurement.multipliers)
            for number in block.ravel()
        ]
    return found


def squared(vector: Sequence[Fraction]) -> Fraction:
    return sum((part * part for part in vector), Fraction(0))


def distance(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    return squared([a - b for a, b in zip(one, other, strict=True)])
