# SPDX-License-Identifier: Apache-2.0
"""Linear models as a user meets them: they learn, they charge first, they keep quiet about the data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import discreet as dp
from discreet import privacy, testing
from discreet.errors import BadParameter, DiscreetError, OverBudget
from discreet.learn import HuberRegression, LinearRegression, LinearSVC, LogisticRegression, Ridge
from discreet.learn.features import Box
from tests.learn.accounts import Account

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
BOUNDED: dict[str, Any] = {**BUDGET, "bounds": (-4, 4)}
TARGET: dict[str, Any] = {"target_bounds": (-3, 3)}


def rows(count: int = 4000, features: int = 3) -> np.ndarray:
    grid = np.arange(count)[:, None] * np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0][:features])
    return 4 * np.sin(grid)


X = rows()
LINE = X @ [0.3, -0.2, 0.1] + 0.5
HALF = (LINE > 0.5).astype(int)
THIRDS = np.digitize(LINE, [0.0, 1.0])

CLASSIFIERS: list[tuple[Any, np.ndarray]] = [
    (LogisticRegression(**BOUNDED, classes=[0, 1]), HALF),
    (LogisticRegression(**BOUNDED, classes=[0, 1, 2]), THIRDS),
    (LinearSVC(**BOUNDED, classes=[0, 1]), HALF),
    (LinearSVC(**BOUNDED, classes=[0, 1, 2]), THIRDS),
    (LogisticRegression(**BOUNDED, classes=[0, 1], solver="gradient"), HALF),
    (LogisticRegression(**BUDGET, norm=6.0, classes=[0, 1], relation="replace"), HALF),
]
REGRESSIONS: list[Any] = [
    LinearRegression(**BOUNDED, **TARGET),
    LinearRegression(**BOUNDED, **TARGET, relation="replace"),
    Ridge(**BOUNDED, **TARGET),
    HuberRegression(**BOUNDED, **TARGET),
]
named = pytest.mark.parametrize


@named(("model", "labels"), CLASSIFIERS, ids=lambda value: type(value).__name__)
def test_a_classifier_learns(model: Any, labels: np.ndarray) -> None:
    fitted = clone(model).fit(X, labels)
    assert fitted.score(X, labels) > 0.7
    assert set(fitted.predict(X)) <= set(model.classes)
    assert fitted.guarantee_.implies(privacy.approximate(1.0, 1e-5, relation=model.relation))
    assert fitted.guarantee_.epsilon(delta=1e-5) > 0.999


@named("model", REGRESSIONS, ids=lambda value: type(value).__name__)
def test_a_regression_learns(model: Any) -> None:
    fitted = clone(model).fit(X, LINE)
    assert fitted.score(X, LINE) > 0.9
    assert np.abs(fitted.coef_ - [0.3, -0.2, 0.1]).max() < 0.1
    assert abs(fitted.intercept_ - 0.5) < 0.2
    assert fitted.guarantee_.epsilon(delta=1e-5) <= 1.0


def test_probabilities_add_up_and_agree_with_the_prediction() -> None:
    for model, labels in CLASSIFIERS[:2]:
        fitted = clone(model).fit(X, labels)
        chances = fitted.predict_proba(X)
        assert np.allclose(chances.sum(axis=1), 1)
        assert (fitted.classes_[chances.argmax(axis=1)] == fitted.predict(X)).all()
        assert np.allclose(np.exp(fitted.predict_log_proba(X)), chances)


def test_probabilities_are_corrected_for_clipping() -> None:
    """Labels by a known model: the corrected probabilities have the lower log-loss."""
    many = rows(40_000)
    chance = 1 / (1 + np.exp(-(many @ [0.5, -0.3, 0.2])))
    labels = (np.abs(np.sin(np.arange(40_000) ** 2)) ** 2 < chance).astype(int)  # not random, but spread out
    fitted = LogisticRegression(**BOUNDED, classes=[0, 1], loss="robust").fit(many, labels)
    plain = 1 / (1 + np.exp(-fitted.decision_function(many)))

    def loss(second: np.ndarray) -> float:
        return float(-np.log(np.where(labels, second, 1 - second)).mean())

    assert loss(fitted.predict_proba(many)[:, 1]) < loss(plain)


def test_labels_are_whatever_was_declared() -> None:
    words = np.where(HALF, "yes", "no")
    fitted = LogisticRegression(**BOUNDED, classes=["yes", "no"]).fit(X, words)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.score(X, words) > 0.9


def same(first: Any, second: Any) -> bool:
    return bool(np.all(first.coef_ == second.coef_) and np.all(first.intercept_ == second.intercept_))


def fitted_with(seed: int, model: Any, *data: Any) -> Any:
    with testing.seeded(seed):
        return clone(model).fit(*data)


def test_a_row_with_another_label_counts_for_nothing() -> None:
    model = LogisticRegression(**BOUNDED, classes=[0, 1])
    stray = np.concatenate([HALF, [7, 7]])
    more = np.concatenate([X, X[:2]])
    assert same(fitted_with(1, model, more, stray), fitted_with(1, model, X, HALF))
    assert not same(fitted_with(1, model, X, HALF), fitted_with(1, model, X[:-1], HALF[:-1]))


@named("value", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_no_value_is_an_error_or_a_warning(value: float) -> None:
    odd, target = X.copy(), LINE.copy()
    odd[3, 1], target[5] = value, value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The released number of rows")
        assert np.isfinite(LogisticRegression(**BOUNDED, classes=[0, 1]).fit(odd, HALF).coef_).all()
        fitted = LinearRegression(**BOUNDED, **TARGET).fit(odd, target)
        assert np.isfinite(fitted.predict(odd)).all()


def test_a_missing_value_is_the_middle_of_its_bounds() -> None:
    odd, plain = X.copy(), X.copy()
    odd[7, 0], plain[7, 0] = np.nan, 0.0
    model = LinearRegression(**BOUNDED, **TARGET)
    assert same(fitted_with(2, model, odd, LINE), fitted_with(2, model, plain, LINE))


@named(
    "model",
    [
        LogisticRegression(**BOUNDED, classes=[0, 1]),
        LogisticRegression(**BOUNDED, classes=[0, 1], solver="gradient"),
    ],
)
def test_no_data_at_all_is_noise(model: Any) -> None:
    fitted = clone(model).fit(np.empty((0, 3)), np.empty(0))
    assert fitted.coef_.shape == (1, 3)
    assert fitted.guarantee_.epsilon(delta=1e-5) <= 1.0


def test_sparse_rows_are_learned_from() -> None:
    stored = sparse.random_array((5000, 40), density=0.1, format="csr", rng=np.random.default_rng(1))
    labels = (np.asarray(stored[:, [0]].todense())[:, 0] > 0).astype(int)
    model = LogisticRegression(epsilon=8.0, delta=1e-5, norm=1.5, classes=[0, 1], solver="gradient")
    fitted = model.fit(stored, labels)
    assert fitted.predict(stored).shape == (5000,)
    assert np.abs(fitted.coef_[0]).argmax() == 0
    dense = LogisticRegression(epsilon=8.0, delta=1e-5, norm=1.5, classes=[0, 1]).fit(stored, labels)
    assert np.abs(dense.coef_[0]).argmax() == 0


def test_sparse_rows_give_the_fit_of_the_same_dense_rows() -> None:
    stored = sparse.random_array((3000, 30), density=0.2, format="csr", rng=np.random.default_rng(2))
    labels = (np.arange(3000) % 3 == 0).astype(int)
    model = LogisticRegression(epsilon=8.0, delta=1e-5, norm=1.5, classes=[0, 1], solver="gradient")
    assert same(fitted_with(4, model, stored, labels), fitted_with(4, model, stored.toarray(), labels))


def test_plain_gradients_learn_more_than_the_larger_class() -> None:
    """Many features, short rows, and 70 % of the records in one class."""
    rng = np.random.default_rng(3)
    table, slopes = rng.normal(size=(8000, 300)), rng.normal(size=300)
    line = table @ slopes
    labels = (line > np.quantile(line, 0.7)).astype(int)
    model = LogisticRegression(**BOUNDED, classes=[0, 1], solver="gradient")
    assert model.fit(table, labels).score(table, labels) > 0.78
    bounds: dict[str, Any] = {"target_bounds": (-60, 60), "solver": "gradient"}
    assert LinearRegression(**BOUNDED, **bounds).fit(table, line).score(table, line) > 0.7


def test_features_may_be_columns_of_a_frame() -> None:
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = LinearRegression(**BOUNDED, **TARGET).fit(frame, pd.Series(LINE))
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.predict(frame).shape == (4000,)


def test_the_session_is_charged_first_and_with_what_was_run() -> None:
    account = Account()
    fitted = LogisticRegression(**BOUNDED, classes=[0, 1], session=account).fit(X, HALF)
    assert account.paid == [(fitted.guarantee_, "LogisticRegression.fit")]
    assert fitted.receipt_ == "receipt"


def test_nothing_is_drawn_before_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(Box, "cells", lambda *_: read.append("cells"))
    model = LogisticRegression(**BOUNDED, classes=[0, 1], session=Account(refuses=True))
    with pytest.raises(OverBudget):
        model.fit(X, HALF)
    assert read == []


def test_what_cannot_be_paid_is_not_fitted() -> None:
    model = LogisticRegression(**BOUNDED, classes=[0, 1], session=Account(refuses=True))
    with pytest.raises(OverBudget):
        model.fit(X, HALF)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "guarantee_")


def test_a_clone_charges_the_same_session() -> None:
    account = Account()
    model = LinearRegression(**BOUNDED, **TARGET, session=account)
    clone(model).fit(X, LINE)
    clone(model).fit(X, LINE)
    assert len(account.paid) == 2


def test_a_real_session_pays(tmp_path: Any) -> None:
    pd = pytest.importorskip("pandas")
    data = dp.open(pd.DataFrame({"person": range(10), "x": 1.0}), protect=dp.each("person", at_most=1))
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1.5, delta=1e-4), ledger=tmp_path / "a.ledger")
    model = LogisticRegression(**BOUNDED, classes=[0, 1], session=session, unit="person")
    model.fit(X, HALF)
    paid = len(session.ledger)
    for _ in range(20):
        try:
            model.fit(X, HALF)
        except OverBudget:
            break
        paid += 1
    assert 0 < paid < 20
    assert len(session.ledger) == paid


def test_explaining_says_what_was_done() -> None:
    with pytest.raises(NotFittedError):
        LogisticRegression(**BOUNDED, classes=[0, 1]).explain()
    said = LogisticRegression(**BOUNDED, classes=[0, 1]).fit(X, HALF).explain()
    assert said.startswith("1. ")
    assert "100 noisy gradients" in said
    assert "e^1" in said


@named(
    ("changed", "code"),
    [
        ({"epsilon": None}, "DP107"),
        ({"delta": None}, "DP107"),
        ({"epsilon": 0}, "DP102"),
        ({"epsilon": -1}, "DP102"),
        ({"epsilon": np.nan}, "DP101"),
        ({"epsilon": np.inf}, "DP101"),
        ({"epsilon": True}, "DP104"),
        ({"epsilon": "1"}, "DP104"),
        ({"delta": 0}, "DP102"),
        ({"delta": 1}, "DP102"),
        ({"bounds": None}, "DP107"),
        ({"classes": None}, "DP107"),
        ({"classes": [1]}, "DP104"),
        ({"classes": [1, 1]}, "DP104"),
        ({"classes": 3}, "DP104"),
        ({"solver": "newton"}, "DP105"),
        ({"relation": "swap"}, "DP105"),
        ({"session": "here"}, "DP104"),
        ({"progress": "yes"}, "DP104"),
    ],
)
def test_bad_parameters_are_refused_when_fitting(changed: dict[str, Any], code: str) -> None:
    model = LogisticRegression(**{**BOUNDED, "classes": [0, 1], **changed})
    with pytest.raises(DiscreetError) as refused:
        model.fit(X, HALF)
    assert refused.value.code == code
    assert not hasattr(model, "guarantee_")


@named(
    ("changed", "code"),
    [({"target_bounds": None}, "DP107"), ({"target_bounds": (1, 0)}, "DP102"), ({"alpha": -1}, "DP102")],
)
def test_bad_parameters_of_a_regression_are_refused(changed: dict[str, Any], code: str) -> None:
    with pytest.raises(BadParameter) as refused:
        Ridge(**{**BOUNDED, **TARGET, **changed}).fit(X, LINE)
    assert refused.value.code == code


@named(
    ("data", "labels"),
    [
        (X, HALF[:-1]),
        (X[:, 0], HALF),
        (X, np.stack([HALF, HALF], 1)),
        (X, None),
        (np.array([["secret"]]), [0]),
    ],
)
def test_bad_shapes_are_refused_without_a_word_of_the_data(data: Any, labels: Any) -> None:
    with pytest.raises(BadParameter) as refused:
        LogisticRegression(**BOUNDED, classes=[0, 1]).fit(data, labels)
    assert "secret" not in str(refused.value)


def test_a_penalty_is_that_of_scikit_learn() -> None:
    from sklearn.linear_model import Ridge as NotPrivate

    ours = Ridge(epsilon=1e5, delta=1e-5, bounds=(-4, 4), target_bounds=(-30, 30), alpha=2e4).fit(X, LINE)
    theirs = NotPrivate(alpha=2e4).fit(X, LINE)
    assert np.abs(theirs.coef_ - [0.3, -0.2, 0.1]).max() > 0.05
    assert np.abs(ours.coef_ - theirs.coef_).max() < 0.01


def test_a_width_keeps_wild_targets_from_mattering() -> None:
    wild = LINE.copy()
    wild[::10] = 50.0
    kept: dict[str, Any] = {"epsilon": 1e4, "delta": 1e-5, "bounds": (-4, 4), "target_bounds": (-50, 50)}
    robust = HuberRegression(**kept, width=1.0).fit(X, wild)
    plain = LinearRegression(**kept).fit(X, wild)
    assert abs(robust.intercept_ - 0.5) < abs(plain.intercept_ - 0.5) / 3


def test_progress_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    LinearRegression(**BOUNDED, **TARGET, progress=lambda *step: seen.append(step)).fit(X[:10], LINE[:10])
    assert seen[-1] == (100, 100)
    LinearRegression(**BOUNDED, **TARGET, progress=True).fit(X[:10], LINE[:10])
    assert capsys.readouterr().err == ""
