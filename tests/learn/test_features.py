# SPDX-License-Identifier: Apache-2.0
"""Rows become whole numbers of bounded norm, each by itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from discreet.errors import BadParameter
from discreet.learn.features import BITS, Box, blocks, stored_blocks, truncate_rows
from discreet.learn.inputs import as_matrix, as_target, feature_bounds

anything = st.floats(width=64, allow_nan=True, allow_infinity=True)
tables = arrays.arrays(np.float64, st.tuples(st.integers(0, 6), st.just(3)), elements=anything)


def squares(cells: np.ndarray) -> list[int]:
    return [sum(int(x) ** 2 for x in row) for row in cells]


@given(
    tables,
    st.sampled_from([None, 0.3, 1.0, 1e90]),
    st.sampled_from(["boxed", "raw"]),
    st.sampled_from([0.0, 0.7]),
)
def test_no_row_is_longer_than_declared(
    table: np.ndarray, norm: float | None, boxed: str, constant: float
) -> None:
    bounds = (-2.0, 5.0) if boxed == "boxed" or norm is None else None
    cells = Box.of(3, bounds=bounds, norm=norm, constant=constant).cells(table)
    assert (cells == np.trunc(cells)).all()
    assert all(square <= 4**BITS for square in squares(cells))


@given(tables)
def test_a_row_depends_on_itself_alone(table: np.ndarray) -> None:
    box = Box.of(3, bounds=([-1, 0, 3], [1, 9, 3.001]), norm=1.2)
    together = box.cells(table)
    alone = [box.cells(row[None])[0] for row in table]
    assert all((a == b).all() for a, b in zip(together, alone, strict=True))


def test_values_outside_are_the_nearest_bound_and_nan_is_the_middle() -> None:
    box = Box.of(1, bounds=(0, 10))
    given_, same = [np.nan, np.inf, -np.inf, 1e300], [5.0, 10.0, 0.0, 10.0]
    assert (box.cells(np.array(given_)[:, None]) == box.cells(np.array(same)[:, None])).all()


def test_a_row_is_scaled_to_its_bounds_and_shortened_to_its_norm() -> None:
    box = Box.of(2, bounds=([0, 0], [2, 4]), norm=0.5, constant=0.0)
    cells = box.cells(np.array([[2.0, 4.0], [1.0, 2.0], [1.5, 2.0]])) / 2**BITS
    assert np.abs(cells - [[2**-0.5, 2**-0.5], [0, 0], [1, 0]]).max() < 2.0 ** (2 - BITS)


@given(tables, st.sampled_from([0.3, 4.0]))
def test_sparse_rows_are_the_same_rows(table: np.ndarray, norm: float) -> None:
    box = Box.of(3, norm=norm)
    stored = sparse.csr_array(np.where(np.isnan(table), 0.0, table))
    assert np.abs(box.sparse_cells(stored).toarray() - box.cells(stored)).max(initial=0.0) <= 1.0
    assert all(square <= 4**BITS for square in squares(box.sparse_cells(stored).toarray()))


def test_a_row_that_rounding_left_too_long_is_shortened() -> None:
    assert (
        truncate_rows(np.array([[3.0, 4.0], [3.0, 4.1], [300.0, 0.0]]), 25) == [[3, 4], [3, 4], [0, 0]]
    ).all()
    assert (truncate_rows(np.array([[4.0, 4.0]]), 25) == [[3, 3]]).all()
    assert (truncate_rows(np.array([[-5.001, 0.0]]), 25) == [[-5, 0]]).all()


def test_coefficients_go_back_to_the_raw_features() -> None:
    box = Box.of(2, bounds=([0, -5], [10, 5]))
    raw, weights = np.array([[3.0, 2.0], [9.0, -4.0]]), np.array([1.5, -2.0, 0.7])
    slopes, intercept = box.coefficients(weights)
    assert np.allclose(box.cells(raw) / 2**BITS @ weights, raw @ slopes + intercept, atol=1e-3)


@pytest.mark.parametrize("stored", [0, 3, 900])
def test_sparse_rows_are_cut_by_what_they_store(stored: int) -> None:
    indptr = np.arange(0, stored * 2001, stored) if stored else np.zeros(2001, int)
    table = sparse.csr_array(
        (np.ones(stored * 2000), np.arange(stored * 2000) % 10**4, indptr), (2000, 10**4)
    )
    covered = list(stored_blocks(table))
    assert [part.start for part in covered] == [0, *(part.stop for part in covered[:-1])]
    assert covered[-1].stop == 2000
    assert len(covered) == (1 if stored < 10 else 4)


def test_blocks_cover_every_row_once() -> None:
    table = np.empty((1_000_003, 7), np.int8)
    covered = list(blocks(table))
    assert covered[0].start == 0
    assert covered[-1].stop == len(table)
    assert all(a.stop == b.start for a, b in pairwise(covered))


@pytest.mark.parametrize(
    ("bounds", "norm", "code"),
    [
        (None, None, "DP107"),
        ((0, np.inf), None, "DP101"),
        ((0, np.nan), None, "DP101"),
        ((1, 1), None, "DP102"),
        (([0, 0], [1, -1]), None, "DP102"),
        ((0,), None, "DP104"),
        (([0, 0, 0], [1, 1, 1]), None, "DP104"),
        (("low", "high"), None, "DP104"),
        (7, None, "DP104"),
        (None, 0, "DP102"),
        (None, -1.0, "DP102"),
        (None, np.nan, "DP101"),
        (None, True, "DP104"),
        (None, "1", "DP104"),
        ((-1e308, 1e308), None, "DP101"),
    ],
)
def test_bad_bounds_are_refused(bounds: object, norm: object, code: str) -> None:
    with pytest.raises(BadParameter) as refused:
        Box.of(2, bounds=bounds, norm=norm)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "values", [np.zeros(3), np.zeros((2, 0)), np.array([["a", "b"]]), np.zeros((2, 2), complex)]
)
def test_what_is_no_table_of_numbers_is_refused(values: object) -> None:
    with pytest.raises(BadParameter, match="DP10") as refused:
        as_matrix(values)
    assert "'a'" not in str(refused.value)


def test_a_column_of_objects_is_read_and_what_is_no_number_is_missing() -> None:
    table = as_matrix(np.array([[1, "secret"], [None, 2.5]], object))
    assert np.array_equal(table, [[1, np.nan], [np.nan, 2.5]], equal_nan=True)


@pytest.mark.parametrize("target", [np.zeros((3, 2)), np.zeros(2), 7.0])
def test_a_target_of_another_shape_is_refused(target: object) -> None:
    with pytest.raises(BadParameter):
        as_target(target, 3)


def test_bounds_are_one_number_or_one_for_each_feature() -> None:
    assert [end.tolist() for end in feature_bounds((0, [1, 2]), 2)] == [[0, 0], [1, 2]]
