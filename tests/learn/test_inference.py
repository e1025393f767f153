# SPDX-License-Identifier: Apache-2.0
"""Intervals of a descent: what they cost, what one record changes in them, and that they hold the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import noise as exact
from discreet import testing
from discreet.errors import BadParameter, CannotCertify
from discreet.learn import LinearRegression, LogisticRegression, Ridge, inference
from discreet.learn.budget import FitBudget
from discreet.learn.descent import LARGEST, CellRows, descend, step_responses
from discreet.learn.features import BITS, Box
from discreet.learn.inference import (
    DescentRun,
    _curvature_rows,
    _is_clipped,
    _residual_bound,
    _variance,
    coefficient_covariance,
)
from discreet.learn.losses import Likelihood, Logistic, Squared
from discreet.learn.solvers import Problem
from tests.learn.accounts import Account
from tests.statistical.constants import ALPHA

CLASSES = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-1, 1), "classes": [0, 1]}
TARGETS = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-1, 1), "target_bounds": (-2, 2)}
WEIGHTS = np.array([[0.9], [-2.0], [0.4]])
BOX = Box.of(2, bounds=(-1, 1))


def descent_of(cells: np.ndarray, targets: np.ndarray, clip: float = 0.8) -> DescentRun:
    rows = CellRows.of([(cells, targets)], size=math.sqrt(3) / 2**10, width=3)
    return DescentRun(rows, WEIGHTS, clip, 0.01, 0.5, 0.8, 1.0, 100, float(max(len(cells), 1)))


def drawn(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of very different lengths, and targets."""
    rng = np.random.default_rng(seed)
    cells = np.trunc(rng.normal(size=(count, 3)) * 10.0 ** rng.integers(0, 7, (count, 1)))
    return np.clip(cells, -LARGEST, LARGEST), rng.uniform(-1, 1, (count, 1))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([Logistic(), Squared()]))
def test_the_curvature_moves_by_its_sensitivity_at_most(seed: int, loss: Likelihood) -> None:
    """Σ k kᵀ in exact whole numbers: a record that comes or goes, and every pair that replaces one another."""
    cells, targets = drawn(seed, 8)
    together = np.concatenate(list(_curvature_rows(descent_of(cells, targets), loss)))
    alone = [
        np.concatenate(list(_curvature_rows(descent_of(cells[[i]], targets[[i]]), loss)))[0]
        .astype(np.int64)
        .tolist()
        for i in range(8)
    ]
    assert together.astype(np.int64).tolist() == alone  # a function of the record alone
    outer = [[[a * b for a in row] for b in row] for row in alone]
    for first in outer:
        assert sum(x * x for line in first for x in line) <= 4 ** (2 * BITS)
        for second in outer:
            moved = sum(
                (a - b) ** 2
                for one, two in zip(first, second, strict=True)
                for a, b in zip(one, two, strict=True)
            )
            assert moved <= 2 * 4 ** (2 * BITS)


def test_the_sensitivity_of_the_curvature_is_attained() -> None:
    """A long row at a score of 0, where the second derivative is greatest."""
    far = np.array([[0.0, 0.0, LARGEST]]), np.zeros((1, 1))
    descent = descent_of(*far)
    row = next(_curvature_rows(descent, Squared()))
    assert (row**2).sum() == 4.0**BITS


def problem_of(X: Any, targets: Any, loss: Any, relation: str = "add-remove", **more: Any) -> Problem:
    budget = FitBudget.of(epsilon=1.0, delta=1e-5, relation=relation)
    kept = np.ones(len(X), bool)
    return Problem(BOX, X, targets, kept, loss, budget, np.zeros(3), inference=True, **more)


@pytest.mark.parametrize("loss", [Logistic(), Squared()])
def test_a_record_is_counted_once_however_often_it_was_clipped(loss: Likelihood) -> None:
    """NaN, infinities, a bound that is passed, a long gradient, a clipped target: one bit each, whoever else is there."""
    X = np.array([[0.1, 0.1], [np.nan, 9.0], [np.inf, 0.0], [1.0, 1.0], [1.1, 0.0], [0.0, 0.2], [0.0, 0.0]])
    cells = np.column_stack([np.trunc(np.nan_to_num(X, posinf=1.0) * 600).clip(-600, 600), np.full(7, 500.0)])
    cells[5] *= 900  # its gradient is longer than the clip
    targets = np.full((7, 1), 0.3)
    changed = np.array([False, True, False, False, False, False, True])
    clipped = changed if isinstance(loss, Squared) else None

    def bits(of: Any) -> list[bool]:
        problem = problem_of(
            X[of], targets[of], loss, clipped_targets=None if clipped is None else clipped[of]
        )
        return _is_clipped(problem, descent_of(cells[of], targets[of], clip=3.0), loss, 2.5).tolist()

    found = bits(list(range(7)))
    assert found == [False, True, True, False, True, True, isinstance(loss, Squared)]
    assert [bits([i])[0] for i in range(7)] == found
    assert bits([]) == []


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_residuals_move_by_their_sensitivities_at_most(seed: int) -> None:
    cells, targets = drawn(seed, 6)
    seen: list[Any] = []

    def caught(total: Any, _: float) -> Any:
        seen.append(total)
        return np.asarray(total, float)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference, "noisy_counts", caught)
        patch.setattr(inference, "_add_noise", caught)
        for kept in ([0, 1, 2, 3, 4, 5], *([i for i in range(6) if i != gone] for gone in range(6)), []):
            descent = descent_of(cells[kept], targets[kept])
            _residual_bound(problem_of(np.zeros((len(kept), 2)), targets[kept], Squared()), descent, 1.0)
            _variance(descent, 0.3, 1.0)
    row_shells, sums = seen[0::2], seen[1::2]
    for fewer, less in zip(row_shells[1:-1], sums[1:-1], strict=True):
        part = row_shells[0] - fewer
        assert part.sum() == 1
        assert part.min() == 0
        assert 0 <= sums[0] - less <= 2**10
    assert row_shells[-1].sum() == sums[-1] == 0


def multipliers(model: Any, X: Any, y: Any, monkeypatch: Any, units: list[float]) -> list[float]:
    """Standard deviations over sensitivities of all that a fit draws, by the order in which it draws."""
    scales: list[float] = []

    def silent(scale: Any, size: Any = None) -> Any:
        scales.append(float(scale))
        return np.zeros(size if size is not None else (), np.int64)

    monkeypatch.setattr(exact, "rounded_gaussian", silent)
    model.fit(X, y)
    assert len(scales) == len(units)
    return [scale / unit for scale, unit in zip(scales, units, strict=True) if unit]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("is_asked", [True, False])
@pytest.mark.parametrize("is_regression", [True, False])
def test_all_that_is_drawn_is_the_budget_and_nothing_is_for_who_did_not_ask(
    monkeypatch: pytest.MonkeyPatch, relation: str, is_asked: Any, is_regression: Any
) -> None:
    """Σ (sensitivity / noise)² = μ²; the sensitivities of each release by hand, in the order in which they are drawn."""
    swap, twice = (math.sqrt(2), 2.0) if relation == "replace" else (1.0, 1.0)
    counts = [swap] * (3 if is_regression else 1)
    matrix = [0.0, 4.0**BITS * swap]  # off the diagonal, where it counts twice, and on it
    steps = [2.0**24 * twice] * 100
    extra = [*matrix, *([swap] if is_regression else []), *([2.0**10] if is_regression else []), 1.0]
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (3000, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=3000)).clip(-2, 2)
    kind, given = (LinearRegression, TARGETS) if is_regression else (LogisticRegression, CLASSES)
    model = kind(**given, relation=relation, inference=is_asked)
    units = [*counts, *matrix, *steps, *(extra if is_asked else [])]
    found = multipliers(model, X, y if is_regression else (y > 0).astype(int), monkeypatch, units)
    mu = FitBudget.of(epsilon=1.0, delta=1e-5, relation=relation).mu
    assert math.fsum(1 / m**2 for m in found) == pytest.approx(mu**2, rel=1e-8)
    assert math.fsum(1 / m**2 for m in found) <= mu**2
    assert 1 - 1e-6 < model.guarantee_.epsilon(delta=1e-5) <= 1.0


@pytest.mark.parametrize("settle", [1.0, 0.25])
def test_responses_are_those_of_the_descent_itself(monkeypatch: pytest.MonkeyPatch, settle: float) -> None:
    """A push in one step of a descent on squares, against the same without it; and where it is after so many steps."""
    rng = np.random.default_rng(2)
    cells = np.rint(rng.normal(size=(400, 2)) * [6000.0, 2000.0])
    rows = CellRows.of([(cells, np.zeros((400, 1)))], size=2.0**-12, width=2)
    values, axes = np.linalg.eigh(cells.T @ cells * 4.0**-12 / 400)
    how = {"rate": 0.2, "momentum": 0.8, "steps": 30, "settle": settle}
    pushes, start = step_responses(values, **how)

    def average(at: int | None, first: np.ndarray) -> np.ndarray:
        turn = iter(range(30))

        def noise(_: Any, size: Any) -> Any:
            pushed = next(turn) == at
            return np.rint(axes.sum(axis=1, keepdims=True) * 1e9 * pushed).astype(np.int64).reshape(size)

        monkeypatch.setattr(exact, "rounded_gaussian", noise)
        found = descend(
            rows,
            Squared(),
            first,
            clip=1e4,
            noise=1.0,
            penalty=np.zeros(2),
            count=400.0,
            relation="add-remove",
            **how,
        )
        return np.asarray(axes.T @ found)[:, 0]

    unit = 1e9 * 1e4 / 2**24 / 400
    rest = np.zeros((2, 1))
    for step in (0, 7, 15, 29):
        assert np.allclose(average(step, rest) / unit, pushes[step], rtol=0.01, atol=2e-4)
    assert np.allclose(average(None, axes @ np.ones((2, 1)) * 100) / 100, start, rtol=0.01, atol=2e-4)


RUNS, ROWS = 150, 10_000
TRUTH = np.array([1.2, -0.5, -0.3])


@pytest.mark.parametrize("kind", [LogisticRegression, LinearRegression])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_intervals_hold_the_truth_and_those_without_noise_do_not(kind: Any, relation: str) -> None:
    """Seeded: intervals of the sampling error alone hold coefficients so rarely that a binomial test rejects 95 %."""
    more = {"classes": [0, 1]} if kind is LogisticRegression else {"target_bounds": (-8, 8)}
    given = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-5, 5), "relation": relation, "inference": True} | more
    held, bare = [], []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        wide = np.column_stack([np.clip(rng.normal(size=(ROWS, 2)), -5, 5), np.ones(ROWS)])
        score = wide @ TRUTH
        chances = 1 / (1 + np.exp(-score))
        if kind is LogisticRegression:
            y, bend = rng.random(ROWS) < chances, chances * (1 - chances)
        else:
            y, bend = score + 0.3 * rng.normal(size=ROWS), np.full(ROWS, 1 / 0.3**2)
        with testing.seeded(seed):
            model = kind(**given).fit(wide[:, :2], y)
        if model._fit_.covariance is None:
            continue
        found = model.conf_int()
        ends = np.vstack([found.coef, found.intercept])
        usual = 1.96 * np.sqrt(np.diag(np.linalg.inv((wide * bend[:, None]).T @ wide)))
        held += ((ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH)).tolist()
        bare += (np.abs(ends.mean(axis=1) - TRUTH) <= usual).tolist()
    assert len(held) > 0.7 * 3 * RUNS
    assert stats.binomtest(sum(held), len(held), 0.95).pvalue > 0.01
    assert stats.binomtest(sum(bare), len(bare), 0.95).pvalue < ALPHA


def rows_of(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (count, 2))
    return X, (rng.random(count) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)


def test_what_has_no_interval_says_why() -> None:
    X, y = rows_of(5_000)
    out = np.where(np.arange(5_000)[:, None] % 20 == 0, 1.5, X)
    rare = np.arange(5_000) % 1000 == 0
    cases = {
        "hides some direction": (X[:300], y[:300], {}),
        "were clipped": (out, y, {"epsilon": 4.0}),
        "not reached": (X, rare.astype(int), {"epsilon": 500.0}),
        "did not pay for them": (X, y, {"inference": False}),
    }
    for reason, (features, labels, more) in cases.items():
        with testing.seeded(3):
            model = LogisticRegression(**CLASSES | {"inference": True} | more).fit(features, labels)
        with pytest.raises(CannotCertify) as caught:
            model.conf_int()
        assert caught.value.code == "DP301"
        assert reason in caught.value.why
        assert (reason in model.explain()) is (reason != "did not pay for them")
        assert np.isfinite(model.coef_).all()


def test_clipped_targets_have_no_interval() -> None:
    X, _ = rows_of(5_000)
    y = 3 * X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=5_000)
    with testing.seeded(3):
        model = LinearRegression(**TARGETS | {"epsilon": 4.0}, inference=True).fit(X, y)
    with pytest.raises(CannotCertify, match="were clipped"):
        model.conf_int()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (LogisticRegression, {"solver": "gradient"}),
        (LogisticRegression, {"solver": "objective"}),
        (LogisticRegression, {"solver": "output"}),
        (LogisticRegression, {"loss": "robust"}),
        (LogisticRegression, {"classes": [0, 1, 2]}),
        (LogisticRegression, {"inference": "yes"}),
        (LinearRegression, {"solver": "adassp"}),
        (LinearRegression, {"inference": 1}),
        (Ridge, {"alpha": 0.1}),
    ],
)
def test_intervals_that_there_can_never_be_are_refused_before_they_are_paid_for(
    kind: Any, change: dict[str, Any]
) -> None:
    X, y = rows_of(100)
    payer = Account()
    given = (
        (CLASSES if kind is LogisticRegression else TARGETS) | {"inference": True, "session": payer} | change
    )
    with pytest.raises(BadParameter) as refused:
        kind(**given).fit(X, y)
    assert refused.value.code in ("DP104", "DP107")
    assert payer.paid == []


def test_a_joint_release_has_its_intervals_with_and_without_the_word() -> None:
    X, _ = rows_of(5_000)
    for word in (True, False):
        with testing.seeded(2):
            model = LinearRegression(**TARGETS, solver="joint", inference=word).fit(X, X[:, 0])
        assert model.conf_int().coef.shape == (2, 2)


def test_a_covariance_is_that_of_the_narrowed_problem_on_raw_features() -> None:
    """Bounds and targets ten times as wide, and moved: the same intervals, up to the noise."""
    X, _ = rows_of(20_000)
    y = X @ [1.0, -0.5] + 0.3 * np.random.default_rng(4).normal(size=20_000)
    spreads = []
    for bounds, target_bounds in (((-1, 1), (-2.5, 2.5)), ((-12, 8), (-30, 20))):
        with testing.seeded(7):
            given = TARGETS | {"bounds": bounds, "target_bounds": target_bounds, "epsilon": 20.0}
            model = LinearRegression(**given, inference=True).fit(X, y)
        spreads.append(np.sqrt(np.diag(coefficient_covariance(model._fit_, model._box_, half=model._half_))))
        assert np.abs(model.coef_ - [1.0, -0.5]).max() < 6 * spreads[-1][:2].max()
    usual = 0.3 / math.sqrt(20_000 / 3)
    assert (np.abs(np.array(spreads)[:, :2] / usual - 1.4) < 0.5).all()
