# SPDX-License-Identifier: Apache-2.0
"""What scikit-learn expects of an estimator, where privacy allows it; each exception has its reason."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from discreet import learn

# So much ε that the noise does not matter: these checks are about manners.
LOOSE: dict[str, Any] = {"epsilon": 1e6, "delta": 1e-5, "bounds": (-10, 10)}
TARGET: dict[str, Any] = {"target_bounds": (-200, 200)}

NOT_AN_ERROR = "an error that depends on the data would tell of it: there is a stated rule instead"
DECLARED = "the check trains on other labels than were declared, and labels are never read off the data"
FRESH = "noise is fresh in every fit"
COLUMN = "a target that is one column means what it says, and needs no warning"

ALLOWED = {
    "check_dtype_object": NOT_AN_ERROR,
    "check_estimators_empty_data_messages": NOT_AN_ERROR,
    "check_supervised_y_no_nan": NOT_AN_ERROR,
    "check_classifiers_regression_target": NOT_AN_ERROR,
    "check_supervised_y_2d": COLUMN,
    "check_fit_idempotent": FRESH,
    "check_classifiers_classes": DECLARED,
    "check_classifiers_train": DECLARED,
    "check_classifier_data_not_an_array": DECLARED,
    "check_regressor_data_not_an_array": FRESH,
    "check_regressors_int": FRESH,
}
LABELS = {
    "check_estimator_sparse_array": DECLARED,
    "check_estimator_sparse_matrix": DECLARED,
    "check_decision_proba_consistency": DECLARED,
}

ESTIMATORS = [
    (learn.LogisticRegression(**LOOSE, classes=[0, 1]), LABELS),
    (learn.LogisticRegression(**LOOSE, classes=[0, 1, 2]), LABELS),
    (learn.LinearSVC(**LOOSE, classes=[0, 1, 2]), LABELS),
    (learn.LinearRegression(**LOOSE, **TARGET), {}),
    (learn.Ridge(**LOOSE, **TARGET), {}),
    (learn.HuberRegression(**LOOSE, **TARGET), {}),
    (learn.PoissonRegressor(**LOOSE, target_bounds=(0, 200)), {}),
    (learn.GammaRegressor(**LOOSE, target_bounds=(0.1, 200)), {}),
    (learn.AdditiveClassifier(**LOOSE, classes=[0, 1]), LABELS),
    (learn.AdditiveClassifier(**LOOSE, classes=[0, 1, 2]), LABELS),
    (learn.AdditiveRegressor(**LOOSE, **TARGET), {}),
]


@pytest.mark.parametrize(("estimator", "more"), ESTIMATORS, ids=lambda value: type(value).__name__)
def test_it_is_a_scikit_learn_estimator(estimator: Any, more: dict[str, str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that are skipped or fail as expected
        found = check_estimator(estimator, expected_failed_checks={**ALLOWED, **more}, on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in found) > 30


@pytest.mark.parametrize(
    "estimator", [estimator for estimator, _ in ESTIMATORS], ids=lambda value: type(value).__name__
)
def test_a_clone_is_not_fitted_and_has_the_same_parameters(estimator: Any) -> None:
    copy = clone(estimator)
    assert repr(copy) == repr(estimator)
    assert not hasattr(copy, "guarantee_")


@pytest.mark.parametrize(
    "estimator", [estimator for estimator, _ in ESTIMATORS], ids=lambda value: type(value).__name__
)
def test_its_representation_is_the_expression_that_makes_it(estimator: Any) -> None:
    twin = eval(repr(estimator), vars(learn) | {type(estimator).__name__: type(estimator)})
    assert type(twin) is type(estimator)
    assert twin.get_params() == estimator.get_params()


def test_it_works_in_a_pipeline_and_in_cross_validation() -> None:
    X = np.linspace(-1, 1, 400).reshape(-1, 2)
    y = (X[:, 0] > 0).astype(int)
    model = make_pipeline(learn.LogisticRegression(**LOOSE, classes=[0, 1]))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.5


def test_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name, name="sklearn")

    monkeypatch.setattr(learn, "import_module", absent)
    with pytest.raises(ImportError, match=r"pip install 'discreet\[learn\]'"):
        _ = learn.PCA


def test_an_unknown_name_is_no_estimator() -> None:
    with pytest.raises(AttributeError):
        _ = learn.RandomForest
    assert "PCA" in dir(learn)
