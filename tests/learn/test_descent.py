# SPDX-License-Identifier: Apache-2.0
"""Noisy gradients in whole numbers: what one record adds, and what noise hides it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from discreet import privacy
from discreet.learn.budget import FitBudget
from discreet.learn.descent import LARGEST, CellRows, clipped_sum, descend
from discreet.learn.losses import Hinge, Huber, Logistic, Loss, Softmax, Squared
from tests.statistical.constants import ALPHA, WRONG

LOSSES: list[tuple[Loss, int]] = [
    (Logistic(), 1),
    (Softmax(), 3),
    (Squared(), 1),
    (Huber(0.5), 1),
    (Hinge(), 3),
]
CLIP = 1 << 24


def case(seed: int, scores: int, count: int = 9, size: float = 2.0**-12) -> tuple[CellRows, np.ndarray]:
    rng = np.random.default_rng(seed)
    cells = np.trunc(rng.normal(size=(count, 4)) * 10.0 ** rng.integers(0, 6, (count, 1)))
    cells = np.clip(cells, -LARGEST, LARGEST)
    targets = rng.choice([-1.0, 0.0, 1.0], (count, scores))
    return CellRows.of([(cells, targets)], size=size, width=4), rng.normal(size=(4, scores)) * 3


def alone(rows: CellRows, record: int) -> CellRows:
    part = slice(record, record + 1)
    return CellRows.of(
        [(rows.parts[0][part].astype(np.float64), rows.targets[0][part])], size=rows.size, width=rows.width
    )


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(LOSSES), st.sampled_from([1e-3, 0.3, 50.0]))
def test_no_record_adds_more_than_the_clip_norm(seed: int, of: tuple[Loss, int], clip: float) -> None:
    loss, scores = of
    rows, weights = case(seed, scores)
    for record in range(9):
        total, _ = clipped_sum(alone(rows, record), loss, weights, clip)
        assert sum(int(x) ** 2 for x in total.ravel()) <= CLIP**2


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(LOSSES))
def test_what_a_record_adds_depends_on_it_alone(seed: int, of: tuple[Loss, int]) -> None:
    loss, scores = of
    rows, weights = case(seed, scores)
    together, _ = clipped_sum(rows, loss, weights, 0.4)
    parts = [clipped_sum(alone(rows, record), loss, weights, 0.4)[0] for record in range(9)]
    assert (together == sum(parts)).all()


@pytest.mark.parametrize(("loss", "scores"), LOSSES)
def test_it_is_the_sum_of_clipped_gradients(loss: Loss, scores: int) -> None:
    rows, weights = case(5, scores, count=200)
    total, cell = clipped_sum(rows, loss, weights, 0.7)
    real = rows.parts[0].astype(np.float64) * rows.size
    pushes = loss.slopes(real @ weights, rows.targets[0])
    gradients = real[:, :, None] * pushes[:, None, :]
    norms = np.sqrt((gradients**2).sum(axis=(1, 2)))
    expected = (gradients * np.minimum(1, 0.7 / np.maximum(norms, 1e-300))[:, None, None]).sum(axis=0)
    assert np.abs(total * cell - expected).max() < 200 * 0.7 * 2e-3


def test_clipping_binds() -> None:
    rows, weights = case(5, 1, count=200)
    one, _ = clipped_sum(alone(rows, int(np.argmax(rows.squares[0]))), Squared(), weights * 100, 0.7)
    assert np.sqrt(sum(int(x) ** 2 for x in one.ravel())) > 0.9 * CLIP


class Pushing(Loss):
    """Slopes that are the targets, whatever those are."""

    curvature = 1.0

    def slopes(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return targets + 0 * scores


def test_a_gradient_that_is_no_number_counts_for_nothing() -> None:
    rows, weights = case(1, 1)
    pushes = np.array([np.nan, np.inf, 1.0, -np.inf, np.nan, -1.0, np.nan, np.inf, 0.5])[:, None]
    cells = rows.parts[0].astype(np.float64)
    all_of_them = CellRows.of([(cells, pushes)], size=rows.size, width=4)
    finite = CellRows.of([(cells[[2, 5, 8]], pushes[[2, 5, 8]])], size=rows.size, width=4)
    total, _ = clipped_sum(all_of_them, Pushing(), weights, 1.0)
    assert total.any()
    assert (total == clipped_sum(finite, Pushing(), weights, 1.0)[0]).all()


def test_sparse_rows_give_the_same_sums() -> None:
    rows, weights = case(3, 3)
    stored = CellRows.of(
        [(sparse.csr_array(rows.parts[0].astype(float)), rows.targets[0])], size=rows.size, width=4
    )
    assert (
        clipped_sum(stored, Softmax(), weights, 0.2)[0] == clipped_sum(rows, Softmax(), weights, 0.2)[0]
    ).all()


def test_long_blocks_are_cut_and_nothing_is_lost() -> None:
    rng = np.random.default_rng(8)
    cells, targets = np.trunc(rng.normal(size=(5000, 70)) * 1000), rng.choice([0.0, 1.0], (5000, 1))
    weights = rng.normal(size=(70, 1))
    cut = CellRows.of([(cells, targets)], size=2.0**-12, width=70)
    single = (CellRows.of([(cells[[k]], targets[[k]])], size=2.0**-12, width=70) for k in range(5000))
    assert len(cut.parts) > 2
    total = sum(clipped_sum(rows, Logistic(), weights, 0.2)[0] for rows in single)
    assert (clipped_sum(cut, Logistic(), weights, 0.2)[0] == total).all()


@given(st.lists(st.integers(0, 2**42), min_size=1, max_size=50))
def test_the_limit_of_a_row_is_checked_in_whole_numbers(squares: list[int]) -> None:
    rows = CellRows((), (np.array(squares, np.float64),), (), 1.0, 4)
    for square, limit in zip(squares, rows.limits[0], strict=True):
        assert limit == int(limit)
        assert int(limit) ** 2 * square <= CLIP**2
        assert (int(limit) + 2) ** 2 * max(square, 1) > CLIP**2


def run(relation: str = "add-remove", **changed: Any) -> np.ndarray:
    rows = CellRows.of([(np.zeros((0, 300)), np.zeros((0, 2)))], size=2.0**-12, width=300)
    kept: dict[str, Any] = {
        "clip": 0.5, "noise": 7.0, "steps": 1, "rate": 1.0, "momentum": 0.8, "count": 10.0,
        "penalty": np.zeros((300, 300)), "relation": relation,
    }  # fmt: skip
    return descend(rows, Logistic(), np.zeros((300, 2)), **(kept | changed))


@pytest.mark.parametrize(("relation", "sensitivity"), [("add-remove", 1.0), ("replace", 2.0)])
def test_noise_is_in_proportion_to_the_sensitivity(relation: str, sensitivity: float) -> None:
    found = run(relation) * 10.0 / (0.5 * 7.0 * sensitivity)
    low, high = stats.chi2.ppf([ALPHA, 1 - ALPHA], 600)
    assert low < (found**2).sum() < high
    for factor in (1 - 2 * WRONG, 1 + 2 * WRONG):
        assert not low < (found**2).sum() / factor**2 < high


def test_progress_counts_steps() -> None:
    seen: list[tuple[int, int]] = []
    run(steps=3, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("shape", [(1, 1), (1,)], ids=["matrix", "diagonal"])
def test_a_penalty_pulls_towards_zero(shape: tuple[int, ...]) -> None:
    rows = CellRows.of([(np.full((1, 1), 2.0**12), np.ones((1, 1)))], size=2.0**-12, width=1)

    def fitted(penalty: float) -> float:
        found = descend(
            rows, Squared(), np.zeros((1, 1)), clip=1.0, noise=1e-7, steps=200, rate=0.1, momentum=0.0,
            penalty=np.full(shape, penalty), count=1.0, relation="add-remove",
        )  # fmt: skip
        return float(found[0, 0])

    assert fitted(0.0) == pytest.approx(1.0, abs=1e-3)
    assert fitted(1.0) == pytest.approx(0.5, abs=1e-3)


@given(st.floats(1e-3, 50.0), st.floats(1e-12, 0.4), st.sampled_from(["add-remove", "replace"]))
@settings(max_examples=25)
def test_shares_of_a_budget_compose_to_no_more_than_the_budget(
    epsilon: float, delta: float, relation: str
) -> None:
    budget = FitBudget.of(epsilon=epsilon, delta=delta, relation=relation)
    first, each = budget.noise_multipliers(0.2)[0], budget.noise_multipliers(0.8 / 100)[0]
    spent = budget.gaussian(first) + 100 * budget.gaussian(each)
    assert spent.implies(privacy.approximate(epsilon, delta, relation=relation))
    assert spent.epsilon(delta=delta) > epsilon * (1 - 1e-3)


def test_more_shares_than_there_are_is_a_bug() -> None:
    with pytest.raises(ValueError, match="more than the budget"):
        FitBudget.of(epsilon=1, delta=1e-5).noise_multipliers(0.6, 0.6)
