# SPDX-License-Identifier: Apache-2.0
"""The minimiser: its certificate against arithmetic with many digits, on data that are easy, hard and absent."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf, workdps
from scipy.linalg import LinAlgError

from discreet.errors import UnsupportedGuarantee
from discreet.learn import minimiser
from discreet.learn.descent import CellRows
from discreet.learn.features import BITS
from discreet.learn.losses import Hinge, Huber, Logistic, Loss, Softmax, Squared
from discreet.learn.minimiser import (
    MAX_ROWS,
    Point,
    RegularisedLoss,
    _slack,
    certifiable_norm,
    max_slope_norm,
    refuse_too_many_rows,
)
from discreet.noise.grid import Grid

Reals = npt.NDArray[np.float64]

_LOSSES = [(Logistic(), 1), (Hinge(), 1), (Hinge(), 3), (Huber(0.3), 1), (Softmax(), 3)]


def rows_of(values: Reals, targets: Reals) -> CellRows:
    """Rows of norm at most 1, given in units of that norm."""
    cells = np.trunc(values * 2.0**BITS)
    return CellRows.of([(cells, targets)], size=2.0**-BITS, width=values.shape[1])


def some_data(loss: Loss, scores: int, count: int, width: int, seed: int) -> tuple[Reals, Reals]:
    """Rows of norm at most 1, some of them very short, and targets of the kind that the loss takes."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, width))
    x *= (generator.random(count) ** 4 / np.linalg.norm(x, axis=1))[:, None]
    labels = generator.integers(0, max(scores, 2), count)
    match loss:
        case Softmax():
            return x, np.eye(scores)[labels]
        case Hinge():
            return x, np.where(generator.random((count, scores)) < 0.5, 1.0, -1.0)
        case Huber():
            return x, generator.uniform(-1, 1, (count, 1))
    return x, labels[:, None].astype(float)


def _slopes(loss: Loss, scores: list[mpf], targets: list[float]) -> list[mpf]:
    match loss:
        case Softmax():
            total = mp.fsum(mp.exp(score) for score in scores)
            return [mp.exp(score) / total - target for score, target in zip(scores, targets, strict=True)]
        case Hinge():
            return [
                -t * min(max(mpf(1.5) - t * score, 0), 1) for score, t in zip(scores, targets, strict=True)
            ]
        case Huber():
            return [min(max(scores[0] - targets[0], -mpf(loss.width)), mpf(loss.width))]
    return [1 / (1 + mp.exp(-scores[0])) - targets[0]]


@workdps(60)
def _gradient(problem: RegularisedLoss, point: Point) -> list[list[mpf]]:
    """With 60 digits, entry by entry."""
    high, low = point.floats
    width, scores = problem.push.shape
    weights = [[mpf(high[j, k]) + mpf(low[j, k]) for k in range(scores)] for j in range(width)]
    out = [
        [mpf(problem.ridge) * weights[j][k] + mpf(problem.push[j, k]) for k in range(scores)]
        for j in range(width)
    ]
    if not problem.rows.parts:
        return out
    cells, targets = problem.rows.parts[0], problem.rows.targets[0]
    for row, target in zip(cells.tolist(), targets.tolist(), strict=True):
        x = [mpf(cell) / 2**BITS for cell in row]
        score = [mp.fsum(x[j] * weights[j][k] for j in range(width)) for k in range(scores)]
        for k, slope in enumerate(_slopes(problem.loss, score, target)):
            for j in range(width):
                out[j][k] += slope * x[j]
    return out


def _norm(entries: list[list[mpf]]) -> float:
    return float(mp.sqrt(mp.fsum(entry**2 for row in entries for entry in row)))


@pytest.mark.parametrize(("loss", "scores"), _LOSSES)
@pytest.mark.parametrize(
    ("count", "ridge", "push"), [(0, 1.0, 3.0), (1, 0.01, 0.0), (40, 0.02, 5.0), (60, 10.0, 0.1)]
)
def test_the_gradient_at_the_answer_is_as_short_as_certified(
    loss: Loss, scores: int, count: int, ridge: float, push: float
) -> None:
    x, targets = some_data(loss, scores, count, 3, seed=count)
    pushes = push * np.random.default_rng(7).normal(size=(3, scores))
    problem = RegularisedLoss(rows_of(x, targets), loss, ridge, pushes)
    found = problem.minimiser(2.0**-24)
    assert _norm(_gradient(problem, found)) <= 2.0**-24


@pytest.mark.parametrize(("loss", "scores"), _LOSSES)
def test_the_error_of_a_gradient_is_within_its_bound_anywhere(loss: Loss, scores: int) -> None:
    """Far out and near, where scores are large and slopes are flat or steep; and the bound is not idle."""
    x, targets = some_data(loss, scores, 150, 4, seed=3)
    generator = np.random.default_rng(5)
    problem = RegularisedLoss(rows_of(x, targets), loss, 0.5, np.zeros((4, scores)))
    for size in (0.0, 1e-8, 1.0, 30.0, 1e5):
        point = Point.near(
            size * generator.normal(size=(4, scores)), 1e-9 * generator.normal(size=(4, scores))
        )
        found, slack = problem.gradient(point)
        truth = _gradient(problem, point)
        error = _norm([[mpf(found[j, k]) - truth[j][k] for k in range(scores)] for j in range(4)])
        assert error <= slack < 1e-12 * (1 + size)


def test_scores_that_all_classes_share_cost_a_softmax_no_digits() -> None:
    x, targets = some_data(Softmax(), 3, 60, 4, seed=8)
    x /= np.linalg.norm(x, axis=1)[:, None] * (1 + 1e-9)
    problem = RegularisedLoss(rows_of(x, targets), Softmax(), 1e-12, np.zeros((4, 3)))
    shared = 1e6 * np.random.default_rng(8).normal(size=(4, 1)) * np.ones((1, 3))
    point = Point.near(shared, np.random.default_rng(9).normal(size=(4, 3)))
    found, slack = problem.gradient(point)
    truth = _gradient(problem, point)
    assert _norm([[mpf(found[j, k]) - truth[j][k] for k in range(3)] for j in range(4)]) <= slack < 1e-12


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
def test_separable_rows_have_an_answer(scale: float, ridge: float) -> None:
    x = np.random.default_rng(1).uniform(-0.5, 0.5, (3_000, 4)) * scale
    targets = (x[:, :1] > 0).astype(float)
    problem = RegularisedLoss(rows_of(x, targets), Logistic(), ridge, np.zeros((4, 1)))
    gradient, slack = problem.gradient(problem.minimiser(2.0**-24))
    assert float(np.linalg.norm(gradient)) + slack <= 2.0**-24


def test_repeated_and_opposite_rows_have_an_answer() -> None:
    """Many equal rows with both labels: the curvature is as great as it can be, in one direction only."""
    x = np.tile([[0.6, 0.8, 0.0]], (20_000, 1))
    targets = (np.arange(20_000) % 2).astype(float)[:, None]
    problem = RegularisedLoss(rows_of(x, targets), Logistic(), 0.01, np.array([[5.0], [-5.0], [5.0]]))
    gradient, slack = problem.gradient(problem.minimiser(2.0**-24))
    assert float(np.linalg.norm(gradient)) + slack <= 2.0**-24


def test_plain_gradient_steps_lead_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows when Newton's method was tried long enough, or its matrix cannot be factored."""
    x, targets = some_data(Logistic(), 1, 30, 3, seed=2)
    problem = RegularisedLoss(rows_of(x, targets), Logistic(), 5.0, np.ones((3, 1)))
    expected = sum(problem.minimiser(2.0**-24).floats)

    def fails(matrix: Any) -> Any:
        raise LinAlgError

    monkeypatch.setattr(minimiser, "cho_factor", fails)
    assert np.allclose(sum(problem.minimiser(2.0**-24).floats), expected, atol=1e-7)
    monkeypatch.setattr(minimiser, "_PATIENCE", 0)
    assert np.allclose(sum(problem.minimiser(2.0**-24).floats), expected, atol=1e-7)


def test_a_point_is_the_sum_of_its_parts_to_many_digits() -> None:
    generator = np.random.default_rng(4)
    parts = [generator.normal(size=(5, 2)) * size for size in (1e4, 1.0, 1e-9)]
    point = Point.near(*parts)
    high, low = point.floats
    for index in np.ndindex(5, 2):
        exact = sum(Fraction(float(part[index])) for part in parts)
        found = Fraction(float(high[index])) + Fraction(float(low[index]))
        assert abs(exact - found) <= Fraction(2) ** -(point.shift + 30)
        assert math.isclose(float(found), float(exact), rel_tol=1e-12)


def test_cells_of_a_point_are_rounded_once() -> None:
    """The fine part decides ties that the coarse part alone would round the other way."""
    grid = Grid(-1)
    high, low = np.array([[0.25], [0.25]]), np.array([[-(2.0**-40)], [2.0**-40]])
    assert Point.near(high, low).cells(grid).ravel().tolist() == [0, 1]


def test_how_far_a_record_pulls() -> None:
    """The greatest norm of slopes, searched over scores and targets."""
    generator = np.random.default_rng(6)
    for loss, scores in _LOSSES:
        _, targets = some_data(loss, scores, 4_000, 2, seed=9)
        slopes = loss.slopes(40 * generator.normal(size=targets.shape), targets)
        longest = float(np.sqrt((slopes * slopes).sum(axis=1)).max())
        assert 0.95 * max_slope_norm(loss, scores) < longest <= max_slope_norm(loss, scores)
    assert max_slope_norm(Squared(), 1) == math.inf


@pytest.mark.parametrize(
    ("loss", "scores"), [(Logistic(), 1), (Softmax(), 1000), (Huber(1e-6), 1), (Hinge(), 50)]
)
def test_what_is_certified_is_in_reach_of_every_number_of_rows(loss: Loss, scores: int) -> None:
    """Otherwise a refusal would tell how many rows there are."""
    assert certifiable_norm(loss, scores, 0.0) == 4 * MAX_ROWS * _slack(loss, scores)
    assert certifiable_norm(loss, scores, 1.0) == 1.0
    assert certifiable_norm(loss, scores, 0.0) < 0.01


def test_more_rows_than_proved_are_refused() -> None:
    refuse_too_many_rows(MAX_ROWS)
    with pytest.raises(UnsupportedGuarantee, match="at most 2147483648 rows"):
        refuse_too_many_rows(MAX_ROWS + 1)
