# SPDX-License-Identifier: Apache-2.0
"""Many tables under a pure ε: estimates and variances by dense least squares, and shares that beat even ones."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from discreet.tables.workloads.laplace import cell_coefficients, plan_shares, pooled_noise, pooled_residuals
from discreet.tables.workloads.residuals import ResidualSystem, closure_of
from tests.tables.workloads import dense

SIZES = (2, 3, 4)
MEASURED = {(0, 1): 3.0, (1, 2): 0.7, (0, 2): 1.1, (1,): 5.0}


def test_pooled_tables_are_those_of_weighted_least_squares():
    system = ResidualSystem(SIZES, ((0, 1), (0, 2), (1, 2)))
    tables = {
        keys: np.cos(np.arange(system.cells(keys)) * 1.9).reshape(system.shape(keys)) for keys in MEASURED
    }
    matrix = np.concatenate([dense.marginal(SIZES, keys) / MEASURED[keys] ** 0.5 for keys in MEASURED])
    numbers = np.concatenate([tables[keys].ravel() / MEASURED[keys] ** 0.5 for keys in MEASURED])
    best = np.linalg.pinv(matrix) @ numbers
    inverse = np.linalg.pinv(matrix.T @ matrix)
    residuals, noise = pooled_residuals(system, tables, MEASURED), pooled_noise(system, MEASURED)
    variances = system.variances(noise)
    for keys in system.closure:
        query = dense.marginal(SIZES, keys)
        assert np.allclose(system.table(residuals, keys).ravel(), query @ best, atol=1e-12)
        assert np.allclose((query @ inverse @ query.T).diagonal(), variances[keys])


def test_the_coefficients_are_those_of_weighted_least_squares():
    system = ResidualSystem(SIZES, ((0, 1), (0, 2), (1, 2)))
    for keys in system.closure:
        for table in MEASURED:
            # One in a single cell of one measured table, and nothing elsewhere.
            tables = {other: np.zeros(system.shape(other)) for other in MEASURED}
            tables[table].flat[1] = 1.0
            response = system.table(pooled_residuals(system, tables, MEASURED), keys)
            stated = [
                (value, count)
                for other, value, count in cell_coefficients(system, MEASURED, keys)
                if other == table
            ]
            # Each cell of a table sees each coefficient as often as a measured cell shows it to others.
            assert sum(count for _, count in stated) == system.cells(table)
            assert set(np.abs(response).ravel().round(12)) <= {round(value, 12) for value, _ in stated}
            variance = sum(
                count * value**2 * MEASURED[other]
                for other, value, count in cell_coefficients(system, MEASURED, keys)
            )
            assert np.isclose(variance, system.variances(pooled_noise(system, MEASURED))[keys])


#: Root mean square deviations over the tables at ε = 1, from an independent search with random starts.
REACHED = {
    "cube": ((2, 5, 16, 2), closure_of([(0, 1, 2, 3)]), 7.14),
    "two-way": ((5,) * 8, tuple(combinations(range(8), 2)), 32.83),
    "one-way": ((5,) * 8, tuple(combinations(range(8), 1)), 10.28),
}


@pytest.mark.parametrize("name", list(REACHED))
def test_the_shares_are_good_and_add_up(name):
    sizes, sets, reached = REACHED[name]
    system = ResidualSystem(sizes, sets)
    plan = plan_shares(system)
    assert sum(plan.shares.values()) == pytest.approx(1, rel=1e-12)
    found = system.variances(plan.variances())
    deviation = (sum(found[keys] for keys in sets) / len(sets)) ** 0.5
    even = 2**0.5 * len(sets)
    assert deviation <= reached * 1.002
    assert deviation < even


def test_the_least_greatest_variance_is_less_than_that_of_the_sum():
    system = ResidualSystem((2, 5, 16, 2), closure_of([(0, 1, 2, 3)]))
    peaks = [
        max(system.variances(plan_shares(system, objective).variances()).values())
        for objective in ("each", "worst")
    ]
    assert peaks[1] < peaks[0]


def test_weights_and_cells_are_objectives_too():
    system = ResidualSystem((2, 3), closure_of([(0, 1)]))
    cells, total = plan_shares(system, "cells"), plan_shares(system, {(): 1.0})
    assert system.variances(cells.variances())[0, 1] < system.variances(total.variances())[0, 1]
