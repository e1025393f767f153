# SPDX-License-Identifier: Apache-2.0
"""Bounds that are too wide: counts of which one record moves one, and what follows from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from discreet import privacy, testing
from discreet.learn import HuberRegression, LinearRegression, LogisticRegression, Ridge
from discreet.learn.budget import FitBudget
from discreet.learn.features import Box
from discreet.learn.losses import Logistic, Squared
from discreet.learn.ranges import NarrowedProblem, core_range, count_bins, length_ratio, row_shells
from discreet.learn.solvers import Problem
from discreet.learn.whitened import WhitenedDescent

DRAWN = np.random.default_rng(4)
X = DRAWN.normal(size=(4_000, 3))
LINE = X @ [1.0, -0.5, 0.0] + DRAWN.normal(size=4_000) * 0.3


def problem_of(rows: np.ndarray, targets: np.ndarray, loss: Any, wide: float = 4.0, **budget: Any) -> Problem:
    box = Box.of(rows.shape[1], bounds=(-wide, wide))
    allowed = FitBudget.of(
        **{"epsilon": 1.0, "delta": 1e-5, "relation": "add-remove", "unit": "record"} | budget
    )
    kept = np.ones(len(rows), bool)
    return Problem(box, rows, targets[:, None], kept, loss, allowed, np.zeros(box.width))


@pytest.mark.parametrize(
    "row", [[0.0, 0, 0], [4, 4, 4], [1e300, -1, 0], [np.nan] * 3, [0.01, 0, 0], [1e-9, 0, 0]]
)
def test_one_record_moves_one_shell_by_one(row):
    without = row_shells(problem_of(X, LINE, Logistic()))
    with_one = row_shells(problem_of(np.vstack([X, row]), np.append(LINE, 0), Logistic()))
    assert sorted(with_one - without) == [0] * 11 + [1]
    assert with_one.sum() == len(X) + 1


@pytest.mark.parametrize("value", [-1.0, 1.0, 0.0, 0.1, np.nextafter(0.1, 0), 5.0])
def test_one_target_moves_one_bin_by_one_at_most(value):
    values = np.clip(LINE / 4, -1, 1)
    moved = count_bins(np.append(values, value), -1.0, 1.0) - count_bins(values, -1.0, 1.0)
    assert sorted(moved) == [0] * 19 + [int(abs(value) <= 1)]


def test_lengths_are_read_to_a_factor_of_a_root_of_two():
    """All rows have length 0.3 of the longest."""
    rows = np.full((5_000, 3), 0.3 * 4)
    ratio = length_ratio(row_shells(problem_of(rows, LINE[:1].repeat(5_000), Logistic())).astype(float), 1.0)
    assert 0.3 <= ratio <= 0.3 * 2**0.5


def test_counts_that_are_noise_narrow_nothing():
    assert length_ratio(np.array([3.0, -8, 5, 1, -2, 9, 4, -7, 0, 2, 6, -1]), 10.0) == 1.0
    assert core_range(np.array([3.0, -8] * 10), 10.0, -1.0, 1.0) == (-1.0, 1.0)


def test_a_target_without_a_core_keeps_its_range():
    """Most values lie in bins that are too empty to be seen."""
    counts = np.full(20, 24.0)
    counts[10] = 100
    assert core_range(counts, 10.0, -1.0, 1.0) == (-1.0, 1.0)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("loss", [Logistic(), Squared()])
def test_the_whole_budget_is_taken_and_no_more(loss, relation):
    problem = problem_of(X, LINE, loss, relation=relation)
    guarantee = WhitenedDescent().guarantee_for(problem)
    assert guarantee.implies(privacy.approximate(1.0, 1e-5, relation=relation))
    assert guarantee.epsilon(delta=1e-5) > 0.999


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_noise_of_the_counts_is_what_the_guarantee_says(monkeypatch, relation):
    scales = []

    def drawn(scale, shape):
        scales.append(float(scale))
        return np.zeros(shape, np.int64)

    monkeypatch.setattr("discreet.learn.ranges.exact.rounded_gaussian", drawn)
    NarrowedProblem.release(problem_of(X, np.clip(LINE / 4, -1, 1), Squared(), relation=relation), 7.0)
    # replacing a record takes one from a count and adds one to another
    expected = 7.0 * (2**0.5 if relation == "replace" else 1.0)
    assert scales == [pytest.approx(expected, rel=1e-12)] * 3


def test_weights_go_back_to_the_declared_box_and_target():
    problem = replace(problem_of(X, np.clip(LINE / 40, -1, 1), Squared(), wide=40.0), penalty=np.zeros(4))
    with testing.seeded(1):
        narrow = NarrowedProblem.release(problem, 1.0)
    assert narrow.ratio < 0.2
    assert narrow.half < 0.5
    found = np.array([[0.3], [-0.2], [0.1], [0.05]])
    slopes, intercept = narrow.problem.box.coefficients(found.T)
    declared, shifted = problem.box.coefficients(narrow.weights(found.copy()).T)
    assert np.allclose(declared, slopes * narrow.half)
    assert np.allclose(shifted, intercept * narrow.half + narrow.middle)


@pytest.mark.parametrize("model", [LinearRegression, Ridge, HuberRegression])
def test_bounds_ten_times_too_wide_cost_a_regression_little(model):
    """It was 0.2 or less: the noise is that of rows and targets as long as the bounds allow."""
    wide = model(epsilon=0.5, delta=1e-5, bounds=(-40, 40), target_bounds=(-50, 50))
    with testing.seeded(1):
        assert wide.fit(X, LINE).score(X, LINE) > 0.85


def test_bounds_ten_times_too_wide_cost_a_classifier_little():
    labels = LINE > 0
    tight, wide = (
        LogisticRegression(epsilon=0.3, delta=1e-5, bounds=(-b, b), classes=[False, True]) for b in (4, 40)
    )
    with testing.seeded(1):
        assert wide.fit(X, labels).score(X, labels) > tight.fit(X, labels).score(X, labels) - 0.02


def test_a_penalty_means_the_same_in_a_narrower_box():
    with testing.seeded(1):
        tight, wide = (
            Ridge(alpha=4e3, epsilon=20, delta=1e-5, bounds=(-b, b), target_bounds=(-4, 4)).fit(X, LINE)
            for b in (4, 40)
        )
    assert np.allclose(tight.coef_, wide.coef_, atol=0.05)
    assert wide.coef_[0] < 0.7


def test_twenty_thousand_sparse_features_are_left_to_plain_descent():
    rows = sparse.random_array((300, 20_000), density=0.001, rng=1, format="csr")
    model = LogisticRegression(epsilon=1, delta=1e-5, norm=3.0, classes=[0, 1]).fit(rows, np.arange(300) % 2)
    assert model.coef_.shape == (1, 20_000)
    assert model.guarantee_.epsilon(delta=1e-5) <= 1
    assert "squared norms" in model.explain()
