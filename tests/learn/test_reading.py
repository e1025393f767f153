# SPDX-License-Identifier: Apache-2.0
"""What a record is read as depends on that record and the schema alone; no value is an error or a warning."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest.mock import ANY

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from discreet import learn
from discreet.errors import BadParameter
from discreet.learn.features import Box
from discreet.learn.inputs import (
    as_column,
    as_floats,
    as_matrix,
    as_target,
    class_membership,
    declared_classes,
    feature_bounds,
)
from tests.mechanisms.odd import ODD

GIVEN: dict[str, Any] = {"epsilon": 1, "delta": 1e-5}
BIG = 2**53
ROWS = 40
X = np.linspace(-1, 1, 2 * ROWS).reshape(ROWS, 2)
Y = [0, 1] * (ROWS // 2)


class Book:
    """Counts what is charged."""

    charges = 0

    def charge(self, guarantee: Any, *, question: str) -> None:
        self.charges += 1


class Odd:
    """A label that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        return 0


class Agreeing:
    """A label that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def kind_of(value: Any) -> str:
    return type(value).__name__


def signalling(kind: type) -> np.ndarray:
    values = X.astype(kind)
    bits = {np.float32: (np.uint32, 0x7F800001), np.float64: (np.uint64, 0x7FF0000000000001)}[kind]
    values.view(bits[0])[0, 0] = bits[1]
    return values


def models(bounds: Any = (-1, 1), **more: Any) -> list[Any]:
    boxed = {**GIVEN, **more, "bounds": bounds}
    return [
        learn.LogisticRegression(**boxed, classes=[0, 1]),
        learn.LogisticRegression(**GIVEN, **more, norm=1, classes=[0, 1], solver="gradient"),
        learn.GaussianNB(**boxed, classes=[0, 1]),
        learn.LinearRegression(**boxed, target_bounds=(0, 1)),
        learn.StandardScaler(**boxed),
        learn.PCA(1, **boxed),
        learn.KMeans(2, **boxed),
    ]


def fits_without_a_word(data: Any, target: Any, bounds: Any = (-1, 1)) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The released number of rows")
        return all(hasattr(model.fit(data, target), "guarantee_") for model in models(bounds))


# Labels: one at a time, and one class at most.


ODD_LABELS = [
    "x",
    b"x",
    None,
    pd.NA,
    Decimal("sNaN"),
    [1, 2],
    np.array([0, 1]),
    np.nan,
    10**400,
    Odd(),
    {},
    np.datetime64("NaT"),
]


@pytest.mark.parametrize("odd", ODD_LABELS, ids=kind_of)
@pytest.mark.parametrize("objects", [False, True])
def test_an_odd_label_leaves_its_own_row_out_and_no_other(odd: Any, objects: Any) -> None:
    labels: Any = [*Y, odd]
    if objects:
        labels = np.empty(ROWS + 1, object)
        labels[:ROWS], labels[ROWS] = Y, None
        labels[ROWS : ROWS + 1] = np.fromiter([odd], object, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The released number of rows")
        belongs = class_membership(labels, declared_classes([0, 1]), ROWS + 1)
    assert belongs[:ROWS].tolist() == [[label == 0, label == 1] for label in Y]
    assert not belongs[ROWS].any()


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([1, 2]), ["1", "2"]),
        (np.array(["1", "2"]), [1, 2]),
        (np.array([b"1", b"2"]), ["1", "2"]),
        (np.array([], int), ["1", "2"]),
        (pd.Series(["1", "2"], dtype="string"), [1, 2]),
        (pd.Series([1, 2], dtype="Int64"), ["1", "2"]),
        (pd.DataFrame({"y": [1.0, 2.0]}), ["1", "2"]),
        (pl.Series(["1", "2"]), [1, 2]),
        (pl.DataFrame({"y": ["1", "2"]}), [1, 2]),
        (pa.array(["1", "2"]), [1, 2]),
        (pa.table({"y": [1, 2]}), ["1", "2"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_labels_that_can_be_no_class_by_their_type_are_refused_before_anything_is_paid(
    labels: Any, classes: Any
) -> None:
    model = learn.LogisticRegression(epsilon=1, delta=1e-5, bounds=(0, 1), classes=classes, session=Book())
    with pytest.raises(BadParameter) as refused:
        model.fit(np.zeros((len(labels), 1)), labels)
    assert refused.value.code == "DP104"
    assert model.session.charges == 0


@pytest.mark.parametrize(
    ("labels", "classes", "found"),
    [
        (np.array([2.0**53, 5]), [BIG, BIG + 1], [0, -1]),
        (np.array([BIG + 1, BIG]), [BIG, BIG + 1], [1, 0]),
        (np.array([BIG + 1, BIG]), [float(BIG), 0.5], [-1, 0]),
        (np.array([np.longdouble(BIG) + 1, BIG]), [BIG, BIG + 1], [1, 0]),
        (pd.array([BIG + 1, None], dtype="Int64"), [BIG, BIG + 1], [1, -1]),
        (pd.array([BIG + 1, 5], dtype="Int64"), [BIG, BIG + 1], [1, -1]),
        (pl.Series([BIG + 1, None]), [BIG, BIG + 1], [1, -1]),
        (pa.array([BIG + 1, None]), [BIG, BIG + 1], [1, -1]),
        ([BIG + 1, 0.5], [BIG, BIG + 1], [1, -1]),
        ([np.int64(BIG + 1), np.float32(BIG)], [BIG, BIG + 1], [1, 0]),
        (np.array([ANY, 0], object), [0, 1, 2], [-1, 0]),
        (np.array([Agreeing(), 0], object), [0, 1, 2], [1, 0]),
        (np.array(["a", "b"]), np.array(["a", "a\0"], object), [0, -1]),
        (np.array([2**64 - 1, 2**63], np.uint64), [-1, 0], [-1, -1]),
        (np.array([1, -1], np.int8), [1, 257, 255], [0, -1]),
        (np.array([True, False]), [0, 1, 2], [1, 0]),
        (np.array([1, 2]), [False, True], [1, -1]),
        (np.array([0.1, 0.5], np.float32), [0.1, 0.5], [-1, 1]),
        (np.array([1, 2]), [0.5, 1.0, np.inf, np.nan], [1, -1]),
        ([np.nan, 1], np.array([np.nan, 1.0], object), [-1, 1]),
        ([1, 2], ["1", "2"], [-1, -1]),
        (np.array(["1", "2"], object), [1, 2], [-1, -1]),
        (pd.Series([pd.NA, True], dtype="boolean"), [False, True], [-1, 1]),
        (pd.Series([pd.NA, "b"], dtype="string"), ["a", "b"], [-1, 1]),
        (pd.Series(["b", "c"], dtype="category"), ["a", "b"], [1, -1]),
        (pd.DataFrame({"y": pd.array([1, None], dtype="Int64")}), [0, 1], [1, -1]),
        (pl.DataFrame({"y": [1, None]}), [0, 1], [1, -1]),
        ([[1], (0,)], [0, 1], [1, 0]),
        (np.array([[1], [0]]), [0, 1], [1, 0]),
        (range(2), [0, 1], [0, 1]),
    ],
)
def test_a_row_is_in_the_one_class_that_its_label_equals(labels: Any, classes: Any, found: list[int]) -> None:
    declared = declared_classes(classes)
    belongs = class_membership(labels, declared, 2)
    ordered = declared.tolist()
    expected = [-1 if at < 0 else ordered.index(list(classes)[at]) for at in found]
    assert belongs.sum(axis=1).tolist() == [int(at >= 0) for at in found]
    assert [int(row.argmax()) if row.any() else -1 for row in belongs] == expected


def test_one_text_among_the_labels_does_not_empty_the_classes() -> None:
    X = np.zeros((2001, 1))
    model = learn.GaussianNB(**GIVEN, bounds=(-1, 1), classes=[0, 1]).fit(X, [0, 1] * 1000 + ["x"])
    assert model.class_count_.min() > 800


@pytest.mark.parametrize(
    "classes",
    [
        [0, None],
        [0, "a"],
        ["a", "a\0"],
        [0, 0.0],
        [[0], [1, 2]],
        np.zeros((2, 2)),
        np.array(["2020", "2021"], "M8[Y]"),
        "ab",
        {0, 1},
        5,
        [1],
        [{}, {}],
    ],
    ids=kind_of,
)
def test_classes_that_have_no_order_are_refused(classes: Any) -> None:
    with pytest.raises(BadParameter) as refused:
        declared_classes(classes)
    assert refused.value.code == "DP104"


# Features and targets: one value at a time.


ODD_NUMBERS = [
    ("x", np.nan),
    (b"1", np.nan),
    (None, np.nan),
    (pd.NA, np.nan),
    (Decimal("sNaN"), np.nan),
    (Decimal("1e400"), np.inf),
    (np.complex128(1j), np.nan),
    (2j, np.nan),
    ([1.0], np.nan),
    (np.array([5.0]), np.nan),
    (np.datetime64("2020-01-01"), np.nan),
    (10**400, np.inf),
    (-(10**400), -np.inf),
    (Fraction(-(10**400), 3), -np.inf),
    (np.longdouble("1e4000"), np.inf),
    (Odd(), np.nan),
    (True, 1.0),
]


@pytest.mark.parametrize(("odd", "read"), ODD_NUMBERS, ids=kind_of)
def test_what_is_no_number_is_missing_in_its_own_row(odd: Any, read: float) -> None:
    objects = np.empty((3, 2), object)
    objects[:] = [[0.5, 1], [2, 0.25], [3, 4]]
    objects[1:2, 0] = np.fromiter([odd], object, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The released number of rows")
        for table in ([[0.5, 1], (odd, 0.25), np.array([3, 4])], objects):
            assert np.array_equal(as_matrix(table), [[0.5, 1], [read, 0.25], [3, 4]], equal_nan=True)
    if not isinstance(odd, list):
        assert np.array_equal(as_target([0.5, odd, 3], 3), [0.5, read, 3], equal_nan=True)


@pytest.mark.parametrize("table", [[1.0, 2.0], ["ab", "cd"], [], None, 3.0])
def test_what_is_no_list_of_rows_is_refused(table: Any) -> None:
    with pytest.raises(BadParameter) as refused:
        as_matrix(table)
    assert refused.value.code == "DP104"


@pytest.mark.parametrize("empty", [pd.DataFrame(index=range(3)), pa.table({}), np.empty((3, 0))])
def test_a_table_without_columns_is_refused(empty: Any) -> None:
    model = learn.AdditiveRegressor(epsilon=1, delta=1e-5, bounds=(0, 1), target_bounds=(0, 1))
    with pytest.raises(BadParameter) as refused:
        model.fit(empty, np.zeros(3))
    assert refused.value.code == "DP102"


@pytest.mark.parametrize("column", [[1, 2], "abc", {1, 2, 3}, 5, pd.DataFrame(np.ones((3, 2))), [[1, 2]]])
def test_a_column_of_another_length_is_refused(column: Any) -> None:
    with pytest.raises(BadParameter) as refused:
        as_column(column, 3)
    assert refused.value.code == "DP104"


def test_the_number_of_records_is_in_no_message() -> None:
    for model in models():
        with pytest.raises(BadParameter) as refused:
            model.fit(X[:, []], Y)
        assert str(ROWS) not in str(refused.value)


# Frames: the type of a column is public.


TEXTS = {
    "text": pd.DataFrame({"a": pd.Series(["1", "2"], dtype="str"), "b": [1, 2]}),
    "string": pd.DataFrame({"a": pd.Series(["1", "2"], dtype="string"), "b": [1, 2]}),
    "category": pd.DataFrame({"a": pd.Categorical([1, 2]), "b": [1, 2]}),
    "time": pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 2), "b": [1, 2]}),
    "zoned": pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 2, utc=True), "b": [1, 2]}),
    "complex": pd.DataFrame({"a": [1j, 2j], "b": [1, 2]}),
    "polars": pl.DataFrame({"a": ["1", "2"], "b": [1, 2]}),
    "arrow": pa.table({"a": ["1", "2"], "b": [1, 2]}),
}


@pytest.mark.parametrize("kind", [kind for kind in TEXTS if pd.__version__ >= "3" or kind != "text"])
def test_a_column_whose_type_is_not_of_numbers_is_refused_by_its_name(kind: str) -> None:
    book = Book()
    with pytest.raises(BadParameter, match="'a'") as refused:
        learn.LogisticRegression(**GIVEN, bounds=(-1, 1), classes=[0, 1], session=book).fit(
            TEXTS[kind], [0, 1]
        )
    assert refused.value.code == "DP104"
    assert "'1'" not in str(refused.value)
    assert book.charges == 0


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0.5, 2]}),
        pd.DataFrame({"a": pd.array([True, None], dtype="boolean"), "b": [0.5, 2]}),
        pd.DataFrame({"a": pd.array([1.0, None], dtype="Float64"), "b": np.array([0.5, 2], np.float32)}),
        pd.DataFrame({"a": pd.Series([1, "x"], dtype=object), "b": [0.5, 2]}),
        pd.DataFrame({"a": pd.arrays.SparseArray([1.0, np.nan]), "b": [0.5, 2]}),
        pd.DataFrame(np.array([[1, 0.5], [np.nan, 2]]), columns=["same", "same"]),
        pl.DataFrame({"a": [1, None], "b": [0.5, 2]}),
        pl.DataFrame({"a": [True, None], "b": [0.5, 2]}),
        pa.table({"a": [1, None], "b": [0.5, 2]}),
    ],
    ids=lambda frame: type(frame).__module__.split(".")[0],
)
def test_columns_of_numbers_are_read_with_what_is_missing(frame: Any) -> None:
    assert np.array_equal(as_matrix(frame), [[1, 0.5], [np.nan, 2]], equal_nan=True)


def test_an_ordinary_array_is_not_copied() -> None:
    assert as_matrix(X) is X
    frame = pd.DataFrame(X)
    assert np.shares_memory(as_matrix(frame), np.asarray(frame))


def test_a_sparse_table_of_complex_numbers_or_objects_is_refused() -> None:
    with pytest.raises(BadParameter, match="DP104"):
        as_matrix(sparse.csr_array(X.astype(complex)))


# Warnings, and errors of arithmetic.


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_signalling_nan_is_a_nan(kind: type) -> None:
    assert fits_without_a_word(signalling(kind), Y)
    assert fits_without_a_word(sparse.csr_array(signalling(kind)), Y)
    assert fits_without_a_word(X, signalling(kind)[:, 0])
    assert np.isnan(as_floats(signalling(kind))[0, 0])


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, np.inf, np.nan, 5e-324, np.longdouble("1e4000")])
@pytest.mark.parametrize("bounds", [(-1, 1), (0, 1), (0, 1e-3)])
def test_no_value_is_a_warning_or_an_error(value: Any, bounds: Any) -> None:
    table = X.astype(np.result_type(value))
    table[0, 0] = value
    assert fits_without_a_word(table, Y, bounds)
    assert fits_without_a_word(X, table[:, 0], bounds)


@pytest.mark.parametrize("value", [5e-324, 1.7e308, np.inf])
def test_no_value_is_an_error_where_all_arithmetic_is(value: float) -> None:
    table = X.copy()
    table[0, 0] = value
    for model in [learn.PCA(1, **GIVEN, bounds=(-1, 1)), learn.KMeans(2, **GIVEN, bounds=(-1, 1))]:
        with np.errstate(all="raise"):
            assert hasattr(model.fit(table), "guarantee_")


def test_the_cells_of_a_row_do_not_depend_on_what_else_is_in_the_list() -> None:
    box = Box.of(2, bounds=(-1, 1))
    alone = box.cells(as_matrix(X.tolist()))
    among = box.cells(as_matrix([*X.tolist(), ["x", None]]))
    assert (among[:ROWS] == alone).all()


# Bounds.


@pytest.mark.parametrize(
    ("bounds", "code"),
    [
        ((0, 5e-324), "DP102"),
        ((0, 1e-310), "DP102"),
        ((0, 1e-200), "DP102"),
        ((0, 10**400), "DP101"),
        ((-(10**400), 0), "DP101"),
        ("01", "DP104"),
        ((False, True), "DP104"),
        (([0, False], 1), "DP104"),
        ((np.zeros(2, bool), 1), "DP104"),
        ((0, 1j), "DP104"),
        ((None, 1), "DP104"),
        (([[0, 1], 2], 1), "DP104"),
    ],
)
def test_bounds_that_arithmetic_cannot_use_are_refused(bounds: Any, code: str) -> None:
    with pytest.raises(BadParameter) as refused:
        feature_bounds(bounds, 2)
    assert refused.value.code == code
    book = Book()
    for model in models(bounds, session=book):
        if model.get_params().get("norm") is None:
            with pytest.raises(BadParameter):
                model.fit(X, Y)
    assert book.charges == 0


def test_bounds_may_be_arrays_and_narrow() -> None:
    low, high = feature_bounds((np.array([0, 1], np.int8), pd.Series([1e-99, 1.5])), 2)
    assert (low.tolist(), high.tolist()) == ([0, 1], [1e-99, 1.5])


# Prediction.


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
def test_a_missing_feature_counts_as_zero_in_prediction_where_there_are_no_bounds(as_given: Any) -> None:
    model = learn.LogisticRegression(**GIVEN, norm=1, classes=[0, 1]).fit(X, Y)
    model.intercept_ = np.array([3.0])
    rows = np.array([[np.nan, np.nan], [np.nan, 0.5]])
    kept = rows.copy()
    expected = model.decision_function(np.array([[0.0, 0.0], [0.0, 0.5]]))
    assert expected[0] == 3.0
    assert np.allclose(model.decision_function(as_given(rows)), expected)
    assert np.array_equal(rows, kept, equal_nan=True)


# --- masked arrays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [False, True, [[True, False]] * ROWS])
@pytest.mark.parametrize("kind", [np.float64, np.int32, object])
def test_a_masked_array_is_refused_by_its_type_before_anything_is_paid(mask: Any, kind: Any) -> None:
    """Whether or not anything is masked: an error that depends on the mask would tell of a record."""
    book = Book()
    model = learn.LogisticRegression(**GIVEN, bounds=(-1, 1), classes=[0, 1], session=book)
    said = set()
    for features, labels in (
        (np.ma.masked_array(X.astype(kind), mask=mask), Y),
        (X, np.ma.masked_array(Y, mask=np.ravel(mask)[0])),
        (X, np.ma.masked_array(np.reshape(Y, (-1, 1)).astype(kind))),
    ):
        with pytest.raises(BadParameter) as refused:
            model.fit(features, labels)
        assert refused.value.code == "DP104"
        said.add(str(refused.value))
    assert len(said) == 1
    assert book.charges == 0
    with pytest.raises(BadParameter, match="DP104"):
        as_target(np.ma.masked_array([1.0, 2.0], mask=[True, False]), 2)


@pytest.mark.parametrize(
    "model",
    [
        learn.StandardScaler(**GIVEN, bounds=(-1, 1)),
        learn.PCA(1, **GIVEN, bounds=(-1, 1)),
        learn.KMeans(2, **GIVEN, bounds=(-1, 1)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_masked_array_is_refused_after_the_fit_too(model: Any) -> None:
    model.fit(X)
    masked = np.ma.masked_array(X)
    for answer in (model.fit, model.transform):
        with pytest.raises(BadParameter, match="DP104"):
            answer(masked)
        model.fit(X)
    if hasattr(model, "inverse_transform"):
        with pytest.raises(BadParameter, match="DP104"):
            model.inverse_transform(np.ma.masked_array(model.transform(X)))


def test_what_is_masked_in_a_list_is_no_number() -> None:
    row = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The released number of rows")
        assert np.isnan(as_matrix([row, [3.0, np.ma.masked]])).tolist() == [[False, True], [False, True]]
        assert not class_membership([np.ma.masked, 1], declared_classes([0, 1]), 2)[0].any()


@pytest.mark.parametrize("name", ODD)
def test_one_odd_row_value_or_label_is_read_by_itself(name: str) -> None:
    """A row that is none, or of another length, counts as one of NaN; the others are read as if it were not there."""
    odd, good = ODD[name], [[1.0, 2.0], [3.0, 4.0]]
    for table in ([*good, odd], [*good, [odd, 1.0]], [*good, [odd, odd, odd]]):
        matrix = as_matrix(table)
        assert matrix.shape == (3, 2)
        assert matrix.dtype == np.float64
        assert matrix[:2].tolist() == good
    places = class_membership(["a", odd, "b"], declared_classes(["a", "b"]), rows=3)
    assert places.tolist()[::2] == [[True, False], [False, True]]
    assert as_target([1.0, odd, 2.0], rows=3)[::2].tolist() == [1.0, 2.0]
