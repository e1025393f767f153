# SPDX-License-Identifier: Apache-2.0
"""A fitted estimator answers by what it was fitted with, whatever its parameters are set to afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from discreet import learn, testing
from discreet.errors import DiscreetError

GIVEN: dict[str, Any] = {"epsilon": 50, "delta": 1e-5, "bounds": ([-1, -2], [1, 2])}
TARGET: dict[str, Any] = {"target_bounds": (-3, 3)}
ROWS = 600
X = np.linspace(-1, 1, 2 * ROWS).reshape(ROWS, 2) * [1, 2]
Y = 2 * X[:, 0]
#: Within the bounds, beyond them, and no numbers at all.
NEW = np.array([[0.3, 0.1], [50.0, -50.0], [np.nan, 1.0], [np.inf, -np.inf]])
#: What each parameter is set to after the fit; all of it would give other answers, or none.
OTHER: dict[str, Any] = {
    "bounds": (-0.1, 0.1),
    "norm": 0.01,
    "target_bounds": (0, 1000),
    "classes": ["x", "y", "z"],
    "priors": [0.9, 0.1],
    "with_mean": False,
    "with_std": False,
    "whiten": True,
    "init": np.zeros((2, 2)),
    "n_components": 2,
    "n_clusters": 7,
    "alpha": 1e9,
    "width": 1e-6,
    "solver": "output",
    "relation": "replace",
    "unit": "patient",
    "epsilon": 0.01,
    "delta": 0.5,
}
ANSWERS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform")
ESTIMATORS = [
    learn.LogisticRegression(**GIVEN, classes=[0, 1]),
    learn.LogisticRegression(epsilon=50, delta=1e-5, norm=2.0, classes=[0, 1]),
    learn.LinearSVC(**GIVEN, classes=[0, 1]),
    learn.LinearRegression(**GIVEN, **TARGET, solver="joint"),
    learn.Ridge(**GIVEN, **TARGET),
    learn.HuberRegression(**GIVEN, **TARGET),
    learn.GaussianNB(**GIVEN, classes=[0, 1]),
    learn.StandardScaler(**GIVEN),
    learn.PCA(1, **GIVEN),
    learn.KMeans(2, **GIVEN),
    learn.PoissonRegressor(**GIVEN, target_bounds=(0, 3)),
    learn.AdditiveClassifier(**GIVEN, classes=[0, 1]),
    learn.AdditiveRegressor(**GIVEN, **TARGET),
]


def answers(model: Any) -> dict[str, Any]:
    found = {name: np.asarray(getattr(model, name)(NEW)) for name in ANSWERS if hasattr(model, name)}
    if hasattr(model, "inverse_transform"):
        found["inverse"] = np.asarray(model.inverse_transform(found["transform"]))
    if hasattr(model, "conf_int") and model._fit_.covariance is not None:
        intervals = model.conf_int()
        found |= {"coef": intervals.coef, "intercept": np.array(intervals.intercept)}
    return found | {"explain": np.array(model.explain())}


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_parameters_that_are_set_after_the_fit_change_nothing_until_the_next(model: Any) -> None:
    model = clone(model).fit(X, Y if hasattr(model, "target_bounds") else (Y > 0).astype(int))
    before = answers(model)
    model.set_params(**{name: value for name, value in OTHER.items() if name in model.get_params()})
    after = answers(model)
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert np.array_equal(value, after[name], equal_nan=value.dtype.kind == "f"), name


def test_intervals_are_among_what_is_compared() -> None:
    """The test above would pass over them if the fit had none."""
    model = learn.LinearRegression(**GIVEN, **TARGET, solver="joint")
    rows = np.array([[x, y] for x in np.linspace(-1, 1, 40) for y in np.linspace(-2, 2, 40)])
    model.fit(rows, rows[:, 0])
    kept = model.conf_int()
    assert {"coef", "intercept"} <= answers(model).keys()
    model.set_params(bounds=(0, 1), target_bounds=(0, 1))
    assert np.array_equal(model.conf_int().coef, kept.coef)


def test_bounds_that_are_changed_in_place_change_nothing() -> None:
    low, high = np.array([-1.0, -2.0]), np.array([1.0, 2.0])
    model = learn.LogisticRegression(epsilon=50, delta=1e-5, bounds=(low, high), classes=[0, 1]).fit(X, Y > 0)
    before = model.decision_function(NEW)
    low *= 0.01
    high *= 0.01
    assert np.array_equal(model.decision_function(NEW), before)


def test_a_scaler_keeps_to_what_it_said_of_sparse_rows() -> None:
    model = learn.StandardScaler(**GIVEN, with_mean=False).fit(X)
    model.set_params(with_mean=True)
    rows = sparse.csr_array(np.eye(2))
    assert np.allclose(model.transform(rows).toarray(), np.eye(2) / model.scale_)


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_a_fit_that_fails_leaves_nothing_to_answer_with(model: Any) -> None:
    model = clone(model)
    y = Y if hasattr(model, "target_bounds") else (Y > 0).astype(int)
    model.fit(X, y)
    model.set_params(epsilon=-1)
    with pytest.raises(DiscreetError):
        model.fit(X, y)
    assert [name for name in vars(model) if name.endswith("_")] == []
    assert {name for name in vars(model) if name.startswith("_")} == set()
    for name in ANSWERS:
        if hasattr(type(model), name):
            with pytest.raises((NotFittedError, AttributeError)):
                getattr(model, name)(NEW)


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_bounds_by_name_are_bounds_by_position(model: Any) -> None:
    target = Y if hasattr(model, "target_bounds") else (Y > 0).astype(int)
    frame = pd.DataFrame(X, columns=["height", "width"])
    released = []
    for bounds in (GIVEN["bounds"], {"width": (-2, 2), "height": (-1, 1)}, {1: (-2, 2), 0: (-1, 1)}):
        with testing.seeded(3):
            copy = clone(model).set_params(bounds=bounds).fit(frame, target)
        released.append(
            [np.asarray(getattr(copy, name)(frame[:9])) for name in ANSWERS if hasattr(copy, name)]
        )
    for other in released[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(released[0], other, strict=True))
    for wrong, code in (({"height": (-1, 1)}, "DP107"), ({"height": (-1, 1), "depth": (0, 1)}, "DP105")):
        with pytest.raises(DiscreetError) as refused:
            clone(model).set_params(bounds=wrong).fit(frame, target)
        assert refused.value.code == code
