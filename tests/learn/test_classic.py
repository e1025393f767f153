# SPDX-License-Identifier: Apache-2.0
"""What naive Bayes, k-means, components and the scaler have in common: manners, bad input, who pays when."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from discreet import privacy, testing
from discreet.errors import BadParameter, DiscreetError, OverBudget
from discreet.learn import PCA, GaussianNB, KMeans, LinearRegression, StandardScaler
from tests.learn.accounts import Account
from tests.learn.test_sklearn import ALLOWED, LABELS

GIVEN: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-3, 3)}
ESTIMATORS: list[Any] = [
    GaussianNB(**GIVEN, classes=[0, 1]),
    KMeans(2, **GIVEN),
    PCA(2, **GIVEN),
    StandardScaler(**GIVEN),
    LinearRegression(**GIVEN, target_bounds=(-2, 2), solver="joint"),
    LinearRegression(**GIVEN, target_bounds=(-2, 2), solver="adassp"),
]
each = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda made: f"{type(made).__name__}-{getattr(made, 'solver', '')}"
)
relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])

X = np.sin(np.arange(1500)[:, None] * np.sqrt([2.0, 3.0, 5.0])) * [2.0, 1.0, 0.5]
Y = (X[:, 0] > 0).astype(int)


def released(fitted: Any) -> dict[str, Any]:
    """All that scikit-learn would show of a fit."""
    return {
        name: value for name, value in vars(fitted).items() if name.endswith("_") and not name.startswith("_")
    }


@each
@relations
def test_the_guarantee_is_what_was_asked_for(estimator: Any, relation: str) -> None:
    fitted = clone(estimator).set_params(relation=relation).fit(X, Y)
    assert fitted.guarantee_.implies(privacy.approximate(1.0, 1e-5, relation=relation))
    assert fitted.guarantee_.epsilon(delta=1e-5) > 0.9999
    assert fitted.guarantee_.unit.relation == relation
    assert "1e-05" in fitted.explain()


@each
def test_a_session_is_charged_before_anything_is_drawn(estimator: Any) -> None:
    account = Account()
    fitted = clone(estimator).set_params(session=account).fit(X, Y)
    assert account.paid == [(fitted.guarantee_, f"{type(estimator).__name__}.fit")]
    assert fitted.receipt_ == "receipt"
    refused = clone(estimator).set_params(session=Account(refuses=True))
    source = testing.ScriptedSource([])  # has nothing to draw from
    with testing.using(source), pytest.raises(OverBudget):
        refused.fit(X, Y)
    assert not hasattr(refused, "guarantee_")


@each
@relations
def test_no_row_is_an_error_and_no_warning_tells_of_one(estimator: Any, relation: str) -> None:
    strange = np.array([[np.nan, np.inf, -np.inf], [1e308, -1e308, 5e-324], [0.0, -0.0, 1.0]])
    for rows in (strange, np.full((2, 3), np.nan), np.zeros((0, 3)), np.array([[None, "?", 1.0]], object)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = clone(estimator).set_params(relation=relation).fit(rows, np.zeros(len(rows)))
            for view in ("predict", "transform", "predict_proba"):
                if hasattr(fitted, view) and not isinstance(fitted, StandardScaler):
                    assert np.isfinite(getattr(fitted, view)(rows)).all()
        assert all(
            np.isfinite(np.asarray(value, float)).all()
            for value in released(fitted).values()
            if isinstance(value, np.ndarray)
        )


@each
def test_what_is_strange_counts_as_its_bound_or_its_middle(estimator: Any) -> None:
    strange, plain = X.copy(), X.copy()
    strange[:3] = [[np.nan, np.inf, 1.0], [-np.inf, 1e300, np.nan], [-1e300, 4.0, 0.0]]
    plain[:3] = [[0.0, 3.0, 1.0], [-3.0, 3.0, 0.0], [-3.0, 3.0, 0.0]]
    found = []
    for rows in (strange, plain):
        with testing.seeded(5):
            found.append(released(clone(estimator).fit(rows, Y)))
    assert found[0].keys() == found[1].keys()
    assert all(
        np.array_equal(found[0][name], found[1][name])
        for name in found[0]
        if isinstance(found[0][name], np.ndarray)
    )


@each
def test_sparse_rows_mean_the_same(estimator: Any) -> None:
    rows = X * (np.abs(X) > 0.5)
    found = []
    for given in (rows, sparse.csr_matrix(rows), sparse.coo_array(rows)):
        with testing.seeded(6):
            found.append(released(clone(estimator).fit(given, Y)))
    for other in found[1:]:
        assert all(
            np.array_equal(found[0][name], other[name])
            for name in other
            if isinstance(other[name], np.ndarray)
        )


@each
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"epsilon": None}, "DP107"),
        ({"delta": None}, "DP107"),
        ({"epsilon": 0}, "DP102"),
        ({"epsilon": True}, "DP104"),
        ({"delta": 1}, "DP102"),
        ({"epsilon": "1"}, "DP104"),
        ({"bounds": None}, "DP107"),
        ({"bounds": (1, 0)}, "DP102"),
        ({"bounds": (0, np.inf)}, "DP101"),
        ({"bounds": ([0, 0], [1, 1])}, "DP104"),
        ({"bounds": 7}, "DP104"),
        ({"relation": "neighbours"}, "DP105"),
        ({"session": "mine"}, "DP104"),
    ],
)
def test_a_bad_parameter_has_its_code(estimator: Any, change: dict[str, Any], code: str) -> None:
    with pytest.raises(DiscreetError) as caught:
        clone(estimator).set_params(**change).fit(X, Y)
    assert caught.value.code == code


@each
def test_rows_of_another_shape_are_refused(estimator: Any) -> None:
    fitted = clone(estimator)
    for bad in (np.zeros(3), np.zeros((2, 0)), np.zeros((2, 2, 2)), np.array([["a", "b"]])):
        with pytest.raises(BadParameter):
            fitted.fit(bad, np.zeros(len(bad)))
    view = getattr(fitted.fit(X, Y), "transform" if hasattr(fitted, "transform") else "predict")
    with pytest.raises(ValueError, match="3 features"):
        view(np.zeros((2, 2)))


@each
def test_before_fitting_there_is_nothing_to_show(estimator: Any) -> None:
    fresh = clone(estimator)
    for view in ("predict", "transform", "predict_proba", "score"):
        if hasattr(fresh, view):
            with pytest.raises(NotFittedError):
                getattr(fresh, view)(X, *([Y] if view == "score" else []))
    with pytest.raises(NotFittedError):
        fresh.explain()


@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=lambda made: type(made).__name__)
def test_it_is_a_scikit_learn_estimator(estimator: Any) -> None:
    expected = {
        **ALLOWED,
        **LABELS,
        "check_clustering": "the clusters of the data themselves are not released",
    }
    loose = clone(estimator).set_params(epsilon=1e6, bounds=(-10, 10))
    if isinstance(loose, GaussianNB):
        loose.set_params(classes=[0, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that are skipped or fail as expected
        found = check_estimator(loose, expected_failed_checks=expected, on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in found) > 30


def test_they_work_in_a_pipeline_and_in_a_search() -> None:
    steps = make_pipeline(
        StandardScaler(epsilon=50, delta=1e-5, bounds=(-3, 3)),
        PCA(2, epsilon=50, delta=1e-5, norm=4.0),
        GaussianNB(epsilon=50, delta=1e-5, bounds=(-3, 3), classes=[0, 1]),
    )
    found = GridSearchCV(steps, {"pca__n_components": [1, 3]}, cv=3).fit(X, Y)
    assert found.best_score_ > 0.8


def test_names_of_features_are_passed_on() -> None:
    assert StandardScaler(**GIVEN).fit(X).get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert PCA(2, **GIVEN).fit(X).get_feature_names_out().tolist() == ["pca0", "pca1"]
    assert KMeans(2, **GIVEN).fit(X).get_feature_names_out().tolist() == ["kmeans0", "kmeans1"]
