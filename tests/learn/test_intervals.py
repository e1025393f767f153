# SPDX-License-Identifier: Apache-2.0
"""Intervals of coefficients: they hold the truth as often as they say, and those that leave the noise out do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.errors import CannotCertify
from discreet.learn import LinearRegression
from discreet.learn.features import Box
from discreet.learn.inference import coefficient_covariance
from discreet.learn.solvers import FittedWeights
from tests.statistical.constants import ALPHA, WRONG

SLOPES, OFFSET, ERROR, HALF = np.array([10.0, -0.7]), 2.0, 0.3, 6.0
LOW, HIGH = np.array([0.0, -1.0]), np.array([0.2, 3.0])
BOX = Box.of(2, bounds=(LOW, HIGH))
RUNS, ROWS = 500, 1500


def one_fit(rng: np.random.Generator, relation: str) -> tuple[Any, np.ndarray]:
    X = rng.uniform(LOW, HIGH, (ROWS, 2))
    y = X @ SLOPES + OFFSET + ERROR * rng.normal(size=ROWS)
    model = LinearRegression(
        epsilon=1.0, delta=1e-3, bounds=(LOW, HIGH), target_bounds=(-6, 6), solver="joint", relation=relation
    )
    return model.fit(X, y), X


@pytest.fixture(scope="module", params=["add-remove", "replace"])
def scores(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """How far coefficients are off, in standard errors: ours, and those of ordinary least squares."""
    rng = np.random.default_rng(7)
    ours, naive = [], []
    for _ in range(RUNS):
        model, X = one_fit(rng, request.param)
        off = np.append(model.coef_ - SLOPES, model.intercept_ - OFFSET)
        ours.append(off / np.sqrt(np.diag(coefficient_covariance(model._fit_, BOX, half=HALF))))
        design = np.column_stack([X, np.ones(ROWS)])
        naive.append(off / (ERROR * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))))
    return np.array(ours), np.array(naive)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_errors_have_the_stated_spread_and_no_other(scores: Any, which: int) -> None:
    ours = scores[0][:, which]
    distribution = stats.chi2(RUNS)
    for factor, fits in ((1.0, True), (1 + 2 * WRONG, False), (1 - 2 * WRONG, False)):
        square = float(((ours * factor) ** 2).sum())
        assert bool(2 * min(distribution.cdf(square), distribution.sf(square)) > ALPHA) is fits


@pytest.mark.parametrize("which", [0, 1, 2])
def test_intervals_cover_and_naive_ones_do_not(scores: Any, which: int) -> None:
    held = [int((np.abs(z[:, which]) < stats.norm.ppf(0.975)).sum()) for z in scores]
    assert stats.binomtest(held[0], RUNS, 0.95).pvalue > ALPHA
    assert stats.binomtest(held[1], RUNS, 0.95).pvalue < ALPHA


def test_ends_lie_about_the_coefficients() -> None:
    model, _ = one_fit(np.random.default_rng(8), "add-remove")
    found = model.conf_int(confidence=0.9)
    errors = np.sqrt(np.diag(coefficient_covariance(model._fit_, BOX, half=HALF)))
    assert np.allclose(found.coef.mean(axis=1), model.coef_)
    assert np.allclose(np.diff(found.coef, axis=1)[:, 0], 2 * stats.norm.ppf(0.95) * errors[:2])
    assert sum(found.intercept) / 2 == pytest.approx(model.intercept_)
    assert np.diff(found.intercept)[0] == pytest.approx(2 * stats.norm.ppf(0.95) * errors[2])
    assert (np.diff(model.conf_int(0.99).coef) > np.diff(found.coef)).all()
    with pytest.raises(ValueError, match="DP102"):
        model.conf_int(confidence=1.0)


def test_the_covariance_of_coefficients_is_that_of_weights_through_the_same_map() -> None:
    rng = np.random.default_rng(9)
    root = rng.normal(size=(3, 3))
    covariance = coefficient_covariance(
        FittedWeights(np.zeros((3, 1)), covariance=root @ root.T), BOX, half=2.0
    )
    weights = root @ rng.normal(size=(3, 200_000))
    slopes, intercepts = BOX.coefficients(weights.T)
    drawn = np.cov(2 * np.column_stack([slopes, intercepts]).T)
    scale = np.sqrt(np.outer(np.diag(drawn), np.diag(drawn)))
    assert np.allclose(covariance / scale, drawn / scale, atol=0.02)


@pytest.mark.parametrize("change", [{"solver": "whitened"}, {"solver": "adassp"}, {"epsilon": 0.01}])
def test_without_a_covariance_there_is_a_reason(change: dict[str, Any]) -> None:
    given = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "bounds": (0, 1),
        "target_bounds": (0, 1),
        "solver": "joint",
        **change,
    }
    model = LinearRegression(**given).fit(np.eye(3)[:, :2], [0, 1, 0])
    with pytest.raises(CannotCertify) as caught:
        model.conf_int()
    assert caught.value.code == "DP301"
    assert np.isfinite(model.coef_).all()
