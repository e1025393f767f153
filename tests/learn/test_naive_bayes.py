# SPDX-License-Identifier: Apache-2.0
"""Naive Bayes: it is scikit-learn's where noise is small, and it learns where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB as Plain

from discreet.errors import BadParameter
from discreet.learn import GaussianNB
from discreet.learn.cube import GroupSums
from discreet.learn.naive_bayes import _class_statistics

X, Y = load_iris(return_X_y=True)
IRIS: dict[str, Any] = {"delta": 1e-5, "bounds": ([4, 2, 1, 0], [8, 4.5, 7, 2.6]), "classes": [0, 1, 2]}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_without_noise_it_is_that_of_scikit_learn(relation: str) -> None:
    found, plain = GaussianNB(epsilon=1e7, relation=relation, **IRIS).fit(X, Y), Plain().fit(X, Y)
    width = np.array([4, 2.5, 6, 2.6])
    assert np.allclose((found.theta_ - plain.theta_) / width, 0, atol=2e-3)
    assert np.allclose((found.var_ - plain.var_) / width**2, 0, atol=3e-3)
    assert np.allclose(found.class_prior_, 1 / 3, atol=0.02)
    assert np.allclose(found.class_count_, 50, atol=1)
    assert (found.predict(X) == plain.predict(X)).mean() > 0.97
    assert np.allclose(found.predict_proba(X).sum(axis=1), 1)
    assert np.allclose(np.exp(found.predict_log_proba(X)), found.predict_proba(X))


def test_densities_are_those_of_raw_features() -> None:
    found, inside = GaussianNB(epsilon=1e7, **IRIS).fit(X, Y), X[100:110]
    by_hand = [
        [
            np.log(prior) - 0.5 * (np.log(2 * np.pi * var) + (row - mean) ** 2 / var).sum()
            for prior, mean, var in zip(found.class_prior_, found.theta_, found.var_, strict=True)
        ]
        for row in np.clip(inside, *IRIS["bounds"])
    ]
    assert np.allclose(found.predict_joint_log_proba(inside), by_hand)


def test_it_learns_from_many_rows_at_a_small_epsilon() -> None:
    many, labels = np.tile(X, (30, 1)), np.tile(Y, 30)
    assert GaussianNB(epsilon=1, **IRIS).fit(many, labels).score(X, Y) > 0.85


def test_rows_with_other_labels_are_left_out() -> None:
    model = GaussianNB(epsilon=1e7, **{**IRIS, "classes": ["a", "b"]})
    found = model.fit(X, np.array(["a", "b", "?"])[Y])
    assert found.classes_.tolist() == ["a", "b"]
    assert np.allclose(found.class_count_, 50, atol=1)


def test_declared_priors_are_taken_as_they_are() -> None:
    found = GaussianNB(epsilon=1.0, priors=[0.0, 0.5, 0.5], **IRIS).fit(X, Y)
    assert found.class_prior_.tolist() == [0.0, 0.5, 0.5]
    assert 0 not in found.predict(X)
    for bad in ([0.5, 0.5], [0.5, 0.5, 0.5], [-1, 1, 1], "no", [[1, 0, 0]]):
        with pytest.raises(BadParameter) as caught:
            GaussianNB(epsilon=1.0, priors=bad, **IRIS).fit(X, Y)
        assert caught.value.code == "DP102"


def test_a_class_of_noise_alone_has_the_variance_of_all() -> None:
    spread = 1.0
    sums = GroupSums(np.array([-3.0, 1000.0]), np.array([[5.0], [0.0]]), np.array([[-9.0], [250.0]]), spread)
    counts, means, variances = _class_statistics(sums)
    assert counts.tolist() == [8.0, 1000.0]
    assert (np.abs(means) <= 1).all()
    assert variances[0, 0] >= spread / 8
    assert variances[1, 0] == pytest.approx(0.25, rel=0.01)


@pytest.mark.parametrize("classes", [None, [1], [1, 1], "ab", 3])
def test_classes_are_declared(classes: Any) -> None:
    with pytest.raises(BadParameter):
        GaussianNB(epsilon=1.0, **{**IRIS, "classes": classes}).fit(X, Y)
    with pytest.raises(BadParameter):
        GaussianNB(epsilon=1.0, **IRIS).fit(X, Y[:-1])
