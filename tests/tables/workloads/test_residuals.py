# SPDX-License-Identifier: Apache-2.0
"""Residuals against dense algebra: tables, variances, covariances and the adjoint."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.tables.workloads.objectives import plan_noise
from discreet.tables.workloads.residuals import ResidualSystem, closure_of, subsets
from tests.tables.workloads import dense

SIZES = (2, 3, 4)
TWO_WAY = ((0, 1), (0, 2), (1, 2))
WORKLOADS = [TWO_WAY, ((0, 1, 2),), ((0,), (1,), (2,)), ((), (0, 1), (2,)), ((),)]


def table_of_numbers() -> np.ndarray:
    return (np.arange(24.0) ** 1.5 % 7).reshape(SIZES)


def test_a_closure_has_every_subset_once_and_the_small_ones_first():
    assert closure_of([(0, 2), (1,)]) == ((), (0,), (1,), (2,), (0, 2))
    assert closure_of([()]) == ((),)


@pytest.mark.parametrize("sets", WORKLOADS)
def test_every_table_is_the_sum_of_its_residuals(sets):
    system, full = ResidualSystem(SIZES, sets), table_of_numbers()
    for keys in system.closure:
        gone = tuple(axis for axis in range(3) if axis not in keys)
        exact = full.sum(axis=gone)
        residuals = system.residuals_of(exact, keys)
        assert np.allclose(system.table(residuals, keys), exact, atol=1e-12)


@pytest.mark.parametrize("sets", WORKLOADS)
def test_variances_and_covariances_are_those_of_least_squares(sets):
    system = ResidualSystem(SIZES, sets)
    variances = plan_noise(system).variances
    inverse = np.linalg.pinv(dense.information(SIZES, variances))
    tables = system.variances(variances)
    for keys in system.closure:
        matrix = dense.marginal(SIZES, keys)
        covariance = matrix @ inverse @ matrix.T
        assert np.allclose(covariance.diagonal(), tables[keys])
        for other in system.closure:
            across = matrix @ inverse @ dense.marginal(SIZES, other).T
            for at, cell in enumerate(dense.cells_of(system.shape(keys))):
                for place, second in enumerate(dense.cells_of(system.shape(other))):
                    values = dict(zip(keys, cell, strict=True)), dict(zip(other, second, strict=True))
                    assert np.isclose(across[at, place], system.covariance(variances, *values))


def test_the_adjoint_is_the_transpose_of_the_reconstruction():
    system = ResidualSystem(SIZES, TWO_WAY)
    residuals = {
        keys: system.without_means(
            np.cos(np.arange(system.cells(keys)) + len(keys)).reshape(system.shape(keys)), keys
        )
        for keys in system.residuals
    }
    tables = {
        keys: np.sin(np.arange(system.cells(keys)) * 1.7).reshape(system.shape(keys)) for keys in TWO_WAY
    }
    back = system.adjoint(tables)
    forth = sum(float((system.table(residuals, keys) * tables[keys]).sum()) for keys in TWO_WAY)
    assert np.isclose(forth, sum(float((back[keys] * residuals[keys]).sum()) for keys in back))


def test_whole_numbers_stay_whole_and_every_row_is_equally_long():
    system = ResidualSystem(SIZES, ((0, 1, 2),))
    lengths = set()
    for cell in dense.cells_of(SIZES):
        one = np.zeros(SIZES, np.int64)
        one[cell] = 1
        centred = system.center(one, (0, 1, 2))
        assert centred.dtype == np.int64
        lengths.add(int((centred**2).sum()))
    assert lengths == {2 * 1 * 3 * 2 * 4 * 3}


def test_a_key_with_a_single_value_has_no_residual():
    system = ResidualSystem((1, 3), ((0, 1),))
    assert system.residuals == ((), (1,))
    assert system.closure == ((), (0,), (1,), (0, 1))
    residuals = system.residuals_of(np.array([5.0, 7.0, 9.0]).reshape(1, 3), (0, 1))
    assert np.allclose(system.table(residuals, (0, 1)), [[5, 7, 9]])
    assert np.allclose(system.table(residuals, (0,)), [21])
    variances = {(): 2.0, (1,): 3.0}
    assert system.variances(variances)[(0, 1)] == system.variances(variances)[(1,)]
    assert system.covariance(variances, {0: 0}, {}) == 2.0


def test_subsets_are_all_of_them():
    assert len(list(subsets((0, 3, 5, 9)))) == 16
