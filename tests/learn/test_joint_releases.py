# SPDX-License-Identifier: Apache-2.0
"""Sums that are released together: no row moves them by more than is claimed, some rows move them by that much."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import privacy
from discreet.audit import batched
from discreet.learn import adassp, cube, kmeans
from discreet.learn.adassp import AdaSSP, least_eigenvalue_steps
from discreet.learn.ball import Ball
from discreet.learn.budget import FitBudget
from discreet.learn.cube import Cube
from discreet.learn.features import BITS, Box
from discreet.learn.joint import JointSolver, rows_with_targets
from discreet.learn.kmeans import InnerBall, lloyd_step
from discreet.learn.losses import Huber, Squared
from discreet.learn.solvers import Problem
from tests.learn.eigenvalues import least_eigenvalue_is_above
from tests.statistical.constants import ALPHA

SILENT = 1e-10  # a noise multiplier so small that the noise rounds to zero
RELATIONS = ["add-remove", "replace"]


def added(row: Any, group: int, groups: int, features: int) -> np.ndarray:
    """What one row adds to (count, Σx, Σ(x² - ½)) of each group."""
    member = np.arange(groups)[None, :] == group
    sums = Cube.of(features, (-1, 1)).release(np.array([row]), member, noise=SILENT, relation="add-remove")
    return np.concatenate([sums.count, sums.first.ravel(), (sums.second - sums.count[:, None] / 2).ravel()])


def farthest(vectors: np.ndarray) -> float:
    squares = (vectors**2).sum(axis=1)
    return math.sqrt((squares[:, None] + squares - 2 * vectors @ vectors.T).max())


@pytest.mark.parametrize(("features", "groups"), [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2)])
def test_one_row_moves_the_sums_of_a_cube_as_far_as_is_claimed(features: int, groups: int) -> None:
    ticks = np.linspace(-1, 1, 5 if features == 3 else 9)
    vectors = np.array(
        [
            added(row, group, groups, features)
            for row in product(ticks, repeat=features)
            for group in range(groups)
        ]
    )
    alone, swapped = (cube.sensitivity(features, groups, relation) for relation in RELATIONS)
    assert np.linalg.norm(vectors, axis=1).max() == pytest.approx(alone, rel=1e-9)
    assert farthest(vectors) == pytest.approx(swapped, rel=1e-9)
    assert np.linalg.norm(vectors, axis=1).max() <= alone
    assert farthest(vectors) <= swapped


def test_no_random_row_moves_the_sums_of_a_cube_further() -> None:
    rng = np.random.default_rng(1)
    t, other = rng.uniform(-1, 1, (2, 500_000))
    assert (t**2 + (t**2 - 0.5) ** 2).max() <= 1.25
    assert ((t - other) ** 2 + (t**2 - other**2) ** 2).max() <= 4.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_one_row_moves_sizes_and_sums_of_clusters_as_far_as_is_claimed(relation: str) -> None:
    radius = 5
    centres = np.array([[-3.0, 0.0], [3.0, 0.0]])
    claimed, weight = kmeans.lloyd_sensitivity(relation)
    found = []
    for row in product(range(-radius, radius + 1), repeat=2):
        if row[0] ** 2 + row[1] ** 2 <= radius**2:
            sizes, sums = kmeans._cluster_sums([np.array([row], np.float32)], centres)
            found.append(np.concatenate([weight * radius * sizes, sums.ravel()]))
    vectors = np.array(found)
    moved = np.linalg.norm(vectors, axis=1).max() if relation == "add-remove" else farthest(vectors)
    assert moved <= claimed * radius
    assert moved == pytest.approx(claimed * radius, rel=1e-9)


def test_one_row_moves_the_products_with_its_target_as_far_as_is_claimed() -> None:
    """All whole (x, y) with ‖x‖ <= 5 and |y| <= 5, in two dimensions."""
    rows = np.array([row for row in product(range(-5, 6), repeat=3) if row[0] ** 2 + row[1] ** 2 <= 25])
    products = np.einsum("ki,kj->kij", rows, rows).reshape(len(rows), -1).astype(float)
    assert np.linalg.norm(products, axis=1).max() == 2 * 25
    assert farthest(products[::2]) <= 2 * math.sqrt(2) * 25 * (1 + 1e-12)
    assert farthest(products) == pytest.approx(2 * math.sqrt(2) * 25)


def problem(
    X: Any, y: Any, *, relation: str = "add-remove", loss: Any = None, epsilon: float = 1.0
) -> Problem:
    X, y = np.asarray(X, float), np.asarray(y, float)
    box = Box.of(X.shape[1], bounds=(-1, 1))
    budget = FitBudget.of(epsilon=epsilon, delta=1e-5, relation=relation)
    return Problem(box, X, y[:, None], np.ones(len(X), bool), loss or Squared(), budget, np.zeros(box.width))


def test_rows_with_targets_are_whole_and_not_too_long_whatever_comes() -> None:
    strange = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e300, 5e-324, 1 / 3])
    X, y = np.array(list(product(strange, repeat=2))), np.resize(strange, 100)
    (rows,) = rows_with_targets(problem(X, y))
    assert (rows == np.rint(rows)).all()
    assert ((rows[:, :-1] ** 2).sum(axis=1) <= 4**BITS).all()
    assert (np.abs(rows[:, -1]) <= 2**BITS).all()


def test_a_row_is_the_same_alone_and_among_others() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 7))
    ball = Ball.of(7, bounds=(-2, 2), norm=3.0, constant=0.5)
    space = InnerBall(np.arange(7.0) * 1000, 1 << 17)
    together = space.cells(ball.cells(X, kmeans.BITS)[:, :7])
    alone = np.concatenate([space.cells(ball.cells(X[i : i + 1], kmeans.BITS)[:, :7]) for i in range(300)])
    assert (together == alone).all()
    lengths = np.linalg.norm(together.astype(float), axis=1)
    assert lengths.max() <= 1 << 17
    assert np.quantile(lengths, 0.01) > 0.99 * 2**15  # long rows are shortened, not dropped
    (joint,) = rows_with_targets(problem(X, X[:, 0]))
    (turned,) = rows_with_targets(problem(X[::-1], X[::-1, 0]))
    assert (joint == turned[::-1]).all()


def test_sums_of_a_cube_are_exact_in_any_order() -> None:
    rng = np.random.default_rng(3)
    X, member = rng.normal(size=(2000, 3)), np.arange(2000)[:, None] % 2 == [[0, 1]]
    order = rng.permutation(2000)
    of = Cube.of(3, (-1, 1))
    first = of.release(X, member, noise=SILENT, relation="add-remove")
    second = of.release(X[order], member[order], noise=SILENT, relation="add-remove")
    assert (first.first == second.first).all()
    assert (first.second == second.second).all()
    assert first.count.tolist() == [1000, 1000]


# --- the least eigenvalue --------------------------------------------------------------------------


def wide_products(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole products of rows that nearly lie in a plane, many times over, and rows of norm 1 in cells."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-64, 65, (6, 4))
    rows[:, 3] = rows[:, 0] + rng.integers(0, 2, 6)
    products = rows.T @ rows * 2 ** rng.integers(0, 12)
    unit = rng.normal(size=(4, 4))
    return products, np.trunc(unit / np.linalg.norm(unit, axis=1, keepdims=True) * 64).astype(np.int64)


@pytest.mark.parametrize("seed", range(12))
def test_the_least_eigenvalue_is_found_to_a_step_and_moves_by_one(seed: int) -> None:
    products, units = wide_products(seed)
    step, most, scale = adassp._STEP, 1 << 20, 64**2
    found = least_eigenvalue_steps(products / scale, most)
    assert least_eigenvalue_is_above(products, (found - 1) * step * scale)
    assert not least_eigenvalue_is_above(products, (found + 2) * step * scale)
    for unit in units:
        more = products + np.outer(unit, unit)
        swapped = products + np.outer(units[0], units[0])
        assert abs(least_eigenvalue_steps(more / scale, most) - found) * step <= 1 + 3 * step
        assert (
            abs(least_eigenvalue_steps(more / scale, most) - least_eigenvalue_steps(swapped / scale, most))
            * step
            <= 1 + 3 * step
        )


def test_the_least_eigenvalue_is_capped() -> None:
    assert least_eigenvalue_steps(np.diag([100.0, 7.0]), 10**6) in {7 * 32 - 1, 7 * 32}
    assert least_eigenvalue_steps(np.diag([100.0, 7.0]), 50) == 50
    assert least_eigenvalue_steps(np.zeros((3, 3)), 50) == 0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("solver", [JointSolver(), AdaSSP()])
def test_a_solver_takes_the_whole_budget_and_no_more(solver: Any, relation: str) -> None:
    given = problem(np.zeros((3, 2)), np.zeros(3), relation=relation)
    assert 0.9999 < solver.guarantee_for(given).epsilon(delta=1e-5) <= 1.0
    assert solver.guarantee_for(given).implies(privacy.approximate(1.0, 1e-5, relation=relation))


@pytest.mark.parametrize("solver", [JointSolver(), AdaSSP()])
def test_a_solver_of_squares_fits_squares_only(solver: Any) -> None:
    with pytest.raises(dp.errors.UnsupportedGuarantee) as caught:
        solver.guarantee_for(problem(np.zeros((3, 2)), np.zeros(3), loss=Huber(1.0)))
    assert caught.value.code == "DP203"


# --- audits of what is released, on tiny data ------------------------------------------------------

ONE, NONE = np.array([[1.0, -1.0]]), np.zeros((0, 2))
CLAIM = privacy.gaussian(1.0)
SURE = 1 - ALPHA


def many_of_cube(noise: float) -> Any:
    """Many runs at once: as many groups, each of which holds all rows."""

    def runs(X: np.ndarray, count: int) -> np.ndarray:
        everywhere = np.ones((len(X), count), bool)
        sums = Cube.of(2, (-1, 1)).release(X, everywhere, noise=noise, relation="add-remove")
        return np.column_stack([sums.first, sums.second - sums.count[:, None] / 2, sums.count])

    return dp.audit(batched(runs), ONE, NONE, trials=6_000, confidence=SURE, claim=CLAIM)


def test_an_audit_of_a_cube_finds_nothing_but_refutes_half_the_noise() -> None:
    assert not many_of_cube(1.0).refutes()
    assert many_of_cube(0.5).refutes()


def of_step(X: np.ndarray) -> np.ndarray:
    space = InnerBall(np.zeros(2), 1 << 10)
    centres = np.array([[512.0, 0.0], [-512.0, 0.0]])
    return lloyd_step([space.cells(X * 2.0**10)], centres, space, noise=1.0, relation="add-remove").ravel()


def of_ball(X: np.ndarray) -> np.ndarray:
    ball = Ball.of(2, bounds=(-1, 1), norm=None, constant=0.5)
    found = ball.release(X, noise=1.0, budget=FitBudget(1.0, 1e-5, "add-remove", "record"))
    return np.concatenate([found.covariance[np.triu_indices(2)], found.mean, [found.count]])


@pytest.mark.parametrize("release", [of_step, of_ball])
def test_an_audit_of_a_step_and_of_moments_finds_nothing(release: Any) -> None:
    assert not dp.audit(release, ONE, NONE, trials=300, confidence=SURE, claim=CLAIM, workers=1).refutes()
    assert dp.audit(len, ONE, NONE, trials=300, confidence=SURE, claim=CLAIM, workers=1).refutes()
