# SPDX-License-Identifier: Apache-2.0
"""Clusters: centres are found, distances are those of the raw features, nothing else is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans as Plain

from discreet import testing
from discreet.errors import BadParameter, DiscreetError
from discreet.learn import KMeans
from discreet.learn.ball import CentredMoments
from discreet.learn.kmeans import BITS, InnerBall, first_centres, lloyd_step

CENTRES = np.array([[2.0, 10.0], [4.0, 90.0], [8.0, 40.0]])
X = np.concatenate([c + np.sin(np.arange(1500)[:, None] * np.sqrt([2.0, 3.0])) * [0.5, 5.0] for c in CENTRES])
GIVEN: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "bounds": ([0, 0], [10, 100])}


def in_order(centres: np.ndarray) -> np.ndarray:
    return centres[centres[:, 1].argsort()]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_centres_are_found(relation: str) -> None:
    found = KMeans(3, **GIVEN, relation=relation, init=[[5, 5], [5, 50], [5, 95]]).fit(X)
    assert np.allclose(in_order(found.cluster_centers_), in_order(CENTRES), atol=3.0)
    assert found.n_iter_ == 5
    assert found.predict(CENTRES).tolist() == found.transform(CENTRES).argmin(axis=1).tolist()


def test_without_noise_a_step_is_that_of_scikit_learn() -> None:
    start = np.array([[5.0, 5.0], [5.0, 50.0], [5.0, 95.0]])
    found = KMeans(3, **{**GIVEN, "epsilon": 1e8}, init=start, max_iter=1).fit(X)
    plain = Plain(3, init=start, max_iter=1, n_init=1).fit(X)
    assert np.allclose(found.cluster_centers_, plain.cluster_centers_, atol=0.05)


def test_seeds_find_the_clusters_where_noise_is_small() -> None:
    found = KMeans(3, **{**GIVEN, "epsilon": 1e6}, max_iter=20).fit(X)
    assert found.score(X) / Plain(3, n_init=3).fit(X).score(X) < 1.05


def test_clusters_that_fill_little_of_the_bounds_are_found_too() -> None:
    found = KMeans(3, epsilon=2.0, delta=1e-5, bounds=(-2000, 2000)).fit(np.repeat(X, 4, axis=0))
    one = ((X - X.mean(axis=0)) ** 2).sum()
    assert -found.score(X) < 0.6 * one


def test_what_was_not_released_is_not_there() -> None:
    found = KMeans(3, **GIVEN).fit(X)
    assert not hasattr(found, "labels_")
    assert not hasattr(found, "inertia_")
    assert found.fit_predict(X).shape == (len(X),)


def test_a_row_belongs_to_the_nearest_centre_and_of_two_to_the_first() -> None:
    space = InnerBall(np.zeros(1), 1 << 10)
    rows = [np.array([[0.0], [1.0], [-1.0]], np.float32)]
    with testing.seeded(1):
        there = lloyd_step(rows, np.array([[8.0], [-8.0]]), space, noise=1e-9, relation="add-remove")
    assert np.allclose(there[:, 0], [0.5, -1.0], atol=1e-6)  # 0 is as near to one as to the other


def test_seeds_know_nothing_but_what_was_released() -> None:
    found = CentredMoments(1000.0, np.zeros(3), np.diag([0.04, 0.01, 0.0]), 1e-9)
    points = first_centres(found, 64) / 2.0**BITS
    assert (points == first_centres(found, 64) / 2.0**BITS).all()
    assert np.allclose(np.cov(points.T), np.diag([0.04, 0.01, 0.0]), atol=0.006)


def test_the_smaller_ball_is_never_larger_than_needed() -> None:
    loud = CentredMoments(2.0, np.array([0.6, 0.0]), np.eye(2) * 5, 10.0)
    assert InnerBall.around(loud).radius <= 1.6 * 2**BITS + 1
    quiet = CentredMoments(1e6, np.array([0.6, 0.0]), np.eye(2) * 1e-4, 1e-3)
    assert InnerBall.around(quiet).radius < 0.03 * 2**BITS


def test_progress_counts_steps() -> None:
    seen: list[tuple[int, int]] = []
    KMeans(2, **GIVEN, max_iter=3, progress=lambda done, total: seen.append((done, total))).fit(X)
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"n_clusters": 0}, "DP102"),
        ({"n_clusters": 2.5}, "DP103"),
        ({"max_iter": 0}, "DP102"),
        ({"init": "k-means++"}, "DP105"),
        ({"init": [[1, 2]]}, "DP104"),
        ({"init": [[1, 2], [3, np.nan], [1, 1]]}, "DP104"),
        ({"init": [["a", 2]]}, "DP104"),
        ({"norm": 0}, "DP102"),
        ({"progress": 3}, "DP104"),
    ],
)
def test_bad_parameters_are_refused_with_a_code(change: dict[str, Any], code: str) -> None:
    with pytest.raises(DiscreetError) as caught:
        KMeans(**{"n_clusters": 3, **GIVEN, **change}).fit(X)
    assert caught.value.code == code
    assert isinstance(caught.value, BadParameter)
