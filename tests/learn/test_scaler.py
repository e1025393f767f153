# SPDX-License-Identifier: Apache-2.0
"""The scaler: right where noise is small, careful where it is not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.preprocessing import StandardScaler as Plain

from discreet.errors import BadParameter
from discreet.learn import StandardScaler
from discreet.learn.budget import FitBudget
from discreet.learn.cube import sensitivity
from tests.statistical.constants import ALPHA, WRONG

QUIET: dict[str, Any] = {"epsilon": 1e6, "delta": 1e-5}
LOW, HIGH = [-3.0, 0.0, 100.0], [3.0, 1.0, 300.0]
X = (np.sin(np.arange(3000)[:, None] * np.sqrt([2.0, 3.0, 5.0])) * [1.5, 0.3, 60.0]) + [0.5, 0.4, 180.0]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_without_noise_it_is_the_scaler_of_scikit_learn(relation: str) -> None:
    found = StandardScaler(**QUIET, bounds=(LOW, HIGH), relation=relation).fit(X)
    plain = Plain().fit(X)
    assert np.allclose((found.mean_ - plain.mean_) / plain.scale_, 0, atol=2e-3)
    assert np.allclose(found.scale_ / plain.scale_, 1, atol=2e-3)
    assert np.allclose(found.transform(X), plain.transform(X), atol=1e-2)
    assert abs(found.n_samples_seen_ - 3000) <= (0 if relation == "replace" else 2)


def test_the_inverse_transform_gives_the_rows_back() -> None:
    for options in ({}, {"with_mean": False}, {"with_std": False}):
        found = StandardScaler(**QUIET, bounds=(LOW, HIGH), **options).fit(X)
        assert np.allclose(found.inverse_transform(found.transform(X)), X)
        assert (found.scale_ is None) == ("with_std" in options)


def test_sparse_rows_stay_sparse_if_they_are_not_shifted() -> None:
    rows = sparse.csr_matrix(X * (X > 0.5))
    found = StandardScaler(**QUIET, bounds=(LOW, HIGH), with_mean=False).fit(rows)
    turned = found.transform(rows)
    assert sparse.issparse(turned)
    assert np.allclose(turned.toarray(), found.transform(rows.toarray()))
    assert np.allclose(found.inverse_transform(turned).toarray(), rows.toarray())
    with pytest.raises(BadParameter) as caught:
        StandardScaler(**QUIET, bounds=(LOW, HIGH)).fit(rows).transform(rows)
    assert caught.value.code == "DP107"


def test_a_scale_is_not_below_what_noise_hides() -> None:
    same = np.full((50, 2), 0.25)
    for epsilon in (0.1, 1e6):
        scale = StandardScaler(epsilon=epsilon, delta=1e-5, bounds=(-1, 1)).fit(same).scale_
        assert (scale >= 0.05).all()
    with pytest.raises(BadParameter):
        StandardScaler(**QUIET, bounds=(0, 1), with_mean=1).fit(X)


def test_the_mean_has_the_noise_that_the_budget_says() -> None:
    rows = np.zeros((4000, 60))  # so many that no mean is clipped
    spread = FitBudget.of(epsilon=1.0, delta=1e-5, relation="replace").noise * sensitivity(60, 1, "replace")
    model = StandardScaler(epsilon=1.0, delta=1e-5, bounds=(-1, 1), relation="replace")
    squares = sum(float((model.fit(rows).mean_ ** 2).sum()) for _ in range(30)) * (4000 / spread) ** 2
    for factor, fits in ((1.0, True), (1 + WRONG, False), (1 - WRONG, False)):
        distribution = stats.chi2(30 * 60)
        extreme = 2 * min(distribution.cdf(squares * factor**2), distribution.sf(squares * factor**2))
        assert bool(extreme > ALPHA) is fits


@pytest.mark.parametrize("options", [{}, {"with_mean": False}, {"with_std": False}])
@pytest.mark.parametrize("kind", ["float32", "float64", "longdouble", "object", "list", "sparse"])
def test_no_value_is_a_warning(kind: str, options: dict[str, Any]) -> None:
    """Among them NaN that signal, and numbers that are infinite after they were scaled."""
    found = StandardScaler(**QUIET, bounds=(0, 1e-3), **options).fit(np.full((50, 3), 5e-4))
    if kind == "float32":
        signalling = np.array([0x7FA00001], np.uint32).view(np.float32)[0]
    else:
        signalling = np.array([0x7FF4000000000001], np.uint64).view(np.float64)[0]
    rows = np.full((4, 3), 5e-4, np.float64 if kind in ("object", "list", "sparse") else kind)
    with np.errstate(all="ignore"):
        rows[0, 0], rows[1], rows[2] = signalling, [np.inf, -np.inf, np.nan], np.finfo(rows.dtype).max
    given: Any = rows.astype(object) if kind == "object" else rows.tolist() if kind == "list" else rows
    sparsely = kind == "sparse" and options == {"with_mean": False}
    given = sparse.csr_array(rows) if sparsely else given
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there = found.transform(given)
        back = found.inverse_transform(there)
    there, back = (made.toarray() if sparsely else made for made in (there, back))
    assert there.dtype == back.dtype == np.float64
    assert np.isnan(there[[0, 1], [0, 2]]).all()
    assert there[1, :2].tolist() == [np.inf, -np.inf]
    assert np.isfinite(there[3]).all()
    assert np.allclose(back[3], 5e-4)
    assert not np.isnan(there[2]).any()
