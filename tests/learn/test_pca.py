# SPDX-License-Identifier: Apache-2.0
"""Components: those of scikit-learn where noise is small, distances as they are in the raw features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import decomposition

from discreet.errors import BadParameter, DiscreetError
from discreet.learn import PCA

Plain = decomposition.PCA
QUIET: dict[str, Any] = {"epsilon": 1e7, "delta": 1e-5}
WAVES = np.sin(np.arange(4000)[:, None] * np.sqrt([2.0, 3.0, 5.0, 7.0]))
X = WAVES * [4.0, 2.0, 1.0, 0.5] @ np.linalg.qr(np.vander([1.0, 2.0, 3.0, 4.0]))[0] + [1.0, 2.0, 0.0, -1.0]
LOW, HIGH = X.min(axis=0) - 0.1, X.max(axis=0) + 1.0  # in a test the data are public


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "declared", [{"bounds": (LOW, HIGH)}, {"norm": 8.0}, {"bounds": (-9, 9), "norm": 12.0}]
)
def test_without_noise_they_are_those_of_scikit_learn(declared: dict[str, Any], relation: str) -> None:
    found, plain = PCA(**QUIET, **declared, relation=relation).fit(X), Plain().fit(X)
    assert np.allclose(np.abs((found.components_ * plain.components_).sum(axis=1)), 1, atol=1e-3)
    assert np.allclose(found.explained_variance_ / plain.explained_variance_, 1, atol=0.02)
    assert np.allclose(found.explained_variance_ratio_, plain.explained_variance_ratio_, atol=5e-3)
    assert np.allclose(found.mean_, plain.mean_, atol=0.02)
    assert np.allclose(found.get_covariance(), plain.get_covariance(), atol=0.05)
    assert abs(found.n_samples_ - 4000) <= 4
    assert np.allclose(found.components_ @ found.components_.T, np.eye(4))


def test_rows_go_there_and_back() -> None:
    for whiten in (False, True):
        found = PCA(**QUIET, bounds=(LOW, HIGH), whiten=whiten).fit(X)
        turned = found.transform(X)
        assert np.allclose(found.inverse_transform(turned), X)
        assert not whiten or np.allclose(turned.var(axis=0), 1, atol=0.05)


def test_components_can_be_asked_for_by_the_variance_that_they_explain() -> None:
    assert PCA(0.9, **QUIET, bounds=(LOW, HIGH)).fit(X).n_components_ == 2
    assert PCA(0.999, **QUIET, bounds=(LOW, HIGH)).fit(X).n_components_ == 4
    assert PCA(3, **QUIET, bounds=(LOW, HIGH)).fit(X).transform(X).shape == (4000, 3)


def test_a_direction_has_one_sign() -> None:
    for _ in range(5):
        rows = PCA(epsilon=1.0, delta=1e-5, bounds=(LOW, HIGH)).fit(X).components_
        assert (rows[np.arange(4), np.abs(rows).argmax(axis=1)] > 0).all()


def test_the_first_component_is_found_at_a_small_epsilon() -> None:
    found = PCA(1, epsilon=1.0, delta=1e-5, bounds=(LOW, HIGH)).fit(X)
    assert abs(found.components_[0] @ Plain(1).fit(X).components_[0]) > 0.9


@pytest.mark.parametrize("wanted", [0, 5, 1.5, True, "mle", -1, 0.0])
def test_a_number_of_components_is_checked(wanted: Any) -> None:
    with pytest.raises(DiscreetError):
        PCA(wanted, **QUIET, bounds=(-9, 9)).fit(X)


def test_coordinates_have_as_many_columns_as_components() -> None:
    with pytest.raises(BadParameter) as caught:
        PCA(2, **QUIET, bounds=(-9, 9)).fit(X).inverse_transform(X)
    assert caught.value.code == "DP104"
