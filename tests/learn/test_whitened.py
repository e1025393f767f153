# SPDX-License-Identifier: Apache-2.0
"""The coordinates that the default solver descends in."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as SklearnRegression

from discreet import testing
from discreet.errors import BadParameter
from discreet.learn import LogisticRegression
from discreet.learn.features import Box
from discreet.learn.moments import NoisyMoments
from discreet.learn.whitened import _whitening_about_mean

BOX = Box.of(3, bounds=(-1, 1))


@pytest.fixture
def rows():
    """Features far from the middle of their box, and the constant, in units of the longest row."""
    features = 0.6 + np.random.default_rng(3).normal(size=(500, 3)) * [0.1, 0.03, 0.01]
    return np.concatenate([features, np.full((500, 1), BOX.constant)], axis=1) / BOX.length


@pytest.mark.parametrize("last", [0.1, 1.0])
def test_features_become_round_about_their_mean_and_the_constant_as_long_as_wanted(rows, last):
    turned = rows @ _whitening_about_mean(NoisyMoments(rows.T @ rows, 1e-9), 500.0, BOX, last)
    assert np.allclose(turned[:, :-1].mean(axis=0), 0.0, atol=1e-6)
    assert np.allclose(turned[:, :-1].T @ turned[:, :-1] / 500, np.eye(3), atol=1e-5)
    assert np.allclose(turned[:, -1], last)


def test_a_mean_that_is_all_noise_is_not_believed(rows):
    turn = _whitening_about_mean(NoisyMoments(rows.T @ rows, 1e6), 500.0, BOX, 1.0)
    assert not turn[-1, :-1].any()
    assert np.isfinite(turn).all()


def test_classes_are_learned_from_few_rows_that_are_far_from_the_middle_of_their_box():
    """With coordinates about the middle of the box it is 0.68 instead of 0.76."""
    drawn = np.random.default_rng(5)
    y = np.arange(400) % 3
    X = np.clip(0.85 + (drawn.normal(size=(3, 4)) * 0.03)[y] + drawn.normal(size=(400, 4)) * 0.03, 0, 1)
    scores = []
    for seed in range(10):
        model = LogisticRegression(epsilon=0.5, delta=1e-5, bounds=(0, 1), classes=[0, 1, 2])
        with testing.seeded(seed):
            scores.append(model.fit(X, y).score(X, y))
    assert np.mean(scores) > 0.72


def test_a_rare_class_that_nothing_tells_of_is_not_seen_everywhere():
    """A constant of half that length learns its share too late: 0.91 instead of 0.94."""
    scores = []
    for seed in range(20):
        drawn = np.random.default_rng(seed)
        X, y = drawn.random((500, 5)), drawn.random(500) < 0.05
        model = LogisticRegression(epsilon=0.3, delta=1e-6, bounds=(0, 1), classes=[False, True])
        with testing.seeded(seed):
            scores.append(model.fit(X, y).score(X, y))
    assert np.mean(scores) > 0.93


def _weak_signal(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Skewed features, of which one matters a little."""
    drawn = np.random.default_rng(1)
    X = drawn.exponential(size=(count, 3))
    return X, (drawn.random(count) < 1 / (1 + np.exp(0.3 - 0.25 * X[:, 0]))).astype(int)


def _rare_class(count: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = np.random.default_rng(1)
    X = drawn.normal(size=(count, 3))
    return X, (drawn.random(count) < 1 / (1 + np.exp(4.5 - X[:, 0]))).astype(int)


def _errors(X: np.ndarray, y: np.ndarray, epsilon: float, **more: object) -> np.ndarray:
    """How far coefficients and intercept are from the most likely ones, in standard errors."""
    likely = SklearnRegression(C=1e8, tol=1e-8, max_iter=1000).fit(X, y)
    chances = likely.predict_proba(X)[:, 1]
    wide = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    spread = np.sqrt(np.diag(np.linalg.inv((wide * (chances * (1 - chances))[:, None]).T @ wide)))
    bounds = (X.min(axis=0) - 1, X.max(axis=0) + 1)
    model = LogisticRegression(epsilon=epsilon, delta=1e-5, bounds=bounds, classes=[0, 1], **more)
    with testing.seeded(1):
        model.fit(X, y)
    off = np.append(model.coef_[0] - likely.coef_[0], model.intercept_ - likely.intercept_)
    return np.asarray(off / spread)


@pytest.mark.parametrize("made", [_weak_signal, _rare_class])
def test_with_many_rows_the_fit_is_the_most_likely_one(made):
    """With a clip that stays put the first is off by 23 standard errors; from full speed the second is off by 5."""
    X, y = made(40_000)
    assert np.abs(_errors(X, y, epsilon=10)).max() < 1.5


def test_the_robust_loss_keeps_its_cap_and_its_bias():
    assert np.abs(_errors(*_weak_signal(40_000), epsilon=10, loss="robust")).max() > 10


def test_more_rows_or_a_larger_epsilon_bring_the_fit_closer():
    """In the units of the coefficients, not in standard errors."""
    few, many = (_weak_signal(count) for count in (1_000, 100_000))
    assert np.abs(_errors(*many, epsilon=1)).max() < np.abs(_errors(*few, epsilon=1)).max()
    assert np.abs(_errors(*few, epsilon=20)).max() < np.abs(_errors(*few, epsilon=1)).max()


def test_a_loss_of_another_name_is_refused():
    with pytest.raises(BadParameter) as refused:
        LogisticRegression(epsilon=1, delta=1e-5, bounds=(0, 1), classes=[0, 1], loss="hinge").fit([[0]], [0])
    assert "robust" in str(refused.value)


@pytest.mark.parametrize("solver", ["whitened", "gradient"])
def test_a_fit_that_is_mostly_noise_is_warned_of_and_explained(solver):
    model = LogisticRegression(epsilon=0.1, delta=1e-5, bounds=(0, 1), classes=[0, 1], solver=solver)
    with testing.seeded(1), pytest.warns(UserWarning, match="mostly noise"):
        model.fit(np.zeros((50, 1)), np.full(50, 7))  # labels of no class: every row is left out
    assert "mostly noise" in model.explain()


def test_a_fit_on_many_rows_is_not_warned_of(recwarn):
    X, y = _weak_signal(2_000)
    model = LogisticRegression(epsilon=1, delta=1e-5, bounds=(0, 10), classes=[0, 1])
    with testing.seeded(1):
        model.fit(X, y)
    assert not recwarn.list
    assert "mostly noise" not in model.explain()
