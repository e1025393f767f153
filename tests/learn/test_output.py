# SPDX-License-Identifier: Apache-2.0
"""Output perturbation: how far one record moves the minimiser, what is guaranteed, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import LogisticRegression as Plain

from discreet import audit, noise, privacy
from discreet.errors import UnsupportedGuarantee
from discreet.learn import output
from discreet.learn.budget import FitBudget
from discreet.learn.features import Box
from discreet.learn.losses import Hinge, Huber, Logistic, Loss, Softmax, Squared
from discreet.learn.minimiser import Point, RegularisedLoss, certifiable_norm, max_slope_norm
from discreet.learn.output import OutputPerturbation, noisy_point
from discreet.learn.solvers import Problem
from discreet.noise.grid import Grid
from tests.learn.test_minimiser import rows_of, some_data

Reals = npt.NDArray[np.float64]

_LOSSES = [(Logistic(), 1), (Hinge(), 1), (Hinge(), 3), (Huber(0.3), 1), (Softmax(), 3)]


def problem_of(x: Any, targets: Any, loss: Loss, **spent: Any) -> Problem:
    """Two features in [-1, 1]; (1, 1e-5) when records come and go, unless stated otherwise."""
    rows = np.asarray(x, float).reshape(-1, 2)
    columns = np.asarray(targets, float).reshape(len(rows), -1) if len(rows) else np.zeros((0, 1))
    box = Box.of(2, bounds=(-1, 1))
    budget = FitBudget.of(**{"epsilon": 1.0, "delta": 1e-5, **spent})
    return Problem(box, rows, columns, np.ones(len(rows), bool), loss, budget, np.zeros(3))


def neighbouring_problems() -> tuple[Problem, Problem]:
    """Two records, and the first of them."""
    return (
        problem_of([[0.2, 0.9], [1.0, 1.0]], [0, 1], Logistic()),
        problem_of([[0.2, 0.9]], [0], Logistic()),
    )


def _silence(_: Any, size: Any = None) -> Any:
    return 0 if size is None else np.zeros(size, int)


def _answer(x: Reals, targets: Reals, loss: Loss, ridge: float) -> Reals:
    found = RegularisedLoss(rows_of(x, targets), loss, ridge, np.zeros((x.shape[1], targets.shape[1])))
    return np.asarray(sum(found.minimiser(2.0**-18 * max_slope_norm(loss, targets.shape[1])).floats))


@pytest.mark.parametrize(("loss", "scores"), _LOSSES)
def test_no_record_moves_the_answer_further_than_stated(loss: Loss, scores: int) -> None:
    """100 random data sets for each loss, 1,000 pairs in all: a record added, and a record replaced."""
    pull, worst = max_slope_norm(loss, scores), 0.0
    for seed in range(100):
        x, targets = some_data(loss, scores, 1 + seed % 12, 2, seed)
        x[0] /= np.linalg.norm(x[0]) * (1 + 1e-9)
        ridge = (0.05, 0.5, 5.0)[seed % 3]
        whole, less = (_answer(x[k:], targets[k:], loss, ridge) for k in (0, 1))
        x[0], targets[0] = -x[0], targets[seed % len(targets)]
        moved = _answer(x, targets, loss, ridge)
        slack = 2 * 2.0**-18 * pull
        worst = max(worst, float(np.linalg.norm(whole - less)) * ridge / pull)
        assert np.linalg.norm(whole - less) <= (pull + slack) / ridge
        assert np.linalg.norm(whole - moved) <= (2 * pull + slack) / ridge
    assert worst > 0.3


@pytest.mark.parametrize(("length", "least"), [(0.1, 0.5), (0.001, 0.985)])
def test_the_bound_is_approached_by_short_rows_and_a_long_one(length: float, least: float) -> None:
    """Very many short rows pull one way and bend little; the long row then pulls with all its force."""
    count = round(30 / length)
    x = np.concatenate([np.full((count, 1), length), [[1.0]]])
    targets = np.concatenate([np.zeros((count, 1)), [[1.0]]])
    far = float(
        abs(_answer(x, targets, Logistic(), 1.0) - _answer(x[:-1], targets[:-1], Logistic(), 1.0))[0, 0]
    )
    assert least < far <= 1 + 2.0**-17


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (8.0, 1e-9)])
def test_the_guarantee_is_the_budget(epsilon: float, delta: float, relation: str) -> None:
    problem = problem_of([[0.0, 0.0]], [1], Logistic(), epsilon=epsilon, delta=delta, relation=relation)
    guarantee = OutputPerturbation().guarantee_for(problem)
    assert guarantee.unit.relation == relation
    assert epsilon * (1 - 1e-6) < guarantee.epsilon(delta=delta) <= epsilon


def test_the_guarantee_is_made_without_the_data() -> None:
    one, other = problem_of([], [], Logistic()), problem_of([[1.0, 1.0]] * 50, [1] * 50, Logistic())
    assert OutputPerturbation().guarantee_for(one) == OutputPerturbation().guarantee_for(other)


def test_without_noise_it_is_the_regularised_minimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (400, 2))
    y = (x[:, 0] + 0.3 * x[:, 1] > 0).astype(int)
    problem = problem_of(x, y, Logistic())
    monkeypatch.setattr(noise, "rounded_gaussian", _silence)
    fit = OutputPerturbation().fit(problem)
    rows = problem.box.cells(x) / 2.0**14
    plain = Plain(C=1 / output._ridge(problem, 400.0), fit_intercept=False, tol=1e-10).fit(rows, y)
    assert fit.count == 400
    assert np.allclose(fit.weights[:, 0], plain.coef_[0], atol=0.01)


def test_the_noise_has_the_stated_size() -> None:
    """4,000 draws: at α = 1e-9 their standard deviation is within 7 % of the right one, and not of one 20 % off."""
    point = Point.near(np.zeros((4_000, 1)))
    found = float(np.std(noisy_point(point, Fraction(3, 7), 5.0)))
    right = 5.0 * 3 / 7
    assert 0.93 < found / right < 1.08


def test_rounding_to_the_grid_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In cells the noise is at least the multiplier times the distance plus √d, whatever the distance is."""
    scales: list[tuple[Fraction, int]] = []

    def seen(scale: Fraction, size: Any = None) -> Any:
        scales.append((scale, math.prod(size)))
        return np.zeros(size, int)

    monkeypatch.setattr(noise, "rounded_gaussian", seen)
    grids: list[Any] = []
    kept = Grid.for_noise

    def kept_grid(*args: Any, **named: Any) -> Any:
        grids.append(kept(*args, **named))
        return grids[-1]

    monkeypatch.setattr(Grid, "for_noise", kept_grid)
    for distance in (Fraction(1, 3), Fraction(10**6), Fraction(1, 10**9)):
        noisy_point(Point.near(np.zeros((7, 3))), distance, 4.0)
        assert scales[-1][0] >= 4 * (distance / grids[-1].step + Fraction(math.sqrt(21)))


@pytest.mark.parametrize(("relation", "pulls"), [("add-remove", 1), ("replace", 2)])
@pytest.mark.parametrize(("loss", "scores"), _LOSSES)
def test_the_noise_is_for_the_distance_of_the_theorem(
    loss: Loss, scores: int, relation: str, pulls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(L + 2τ)/Λ where records come and go, (2L + 2τ)/Λ where they are replaced, times the multiplier that is guaranteed."""
    seen: list[tuple[Fraction, float]] = []

    def keep(point: Point, distance: Fraction, multiplier: float) -> Reals:
        seen.append((distance, multiplier))
        return np.zeros(point.coarse.shape)

    x, targets = some_data(loss, scores, 9, 2, seed=1)
    problem = problem_of(x, targets, loss, relation=relation)
    monkeypatch.setattr(noise, "rounded_gaussian", _silence)
    monkeypatch.setattr(output, "noisy_point", keep)
    fit = OutputPerturbation().fit(problem)
    pull = max_slope_norm(loss, scores)
    tau = certifiable_norm(loss, scores, 2.0**-18 * pull)
    expected = (pulls * pull + 2 * tau) / output._ridge(problem, fit.count or 0.0)
    assert float(seen[0][0]) == pytest.approx(expected, rel=1e-12)
    guaranteed = privacy.gaussian(noise=seen[0][1], relation=relation)
    counted = (
        [] if relation == "replace" else [problem.budget.gaussian(problem.budget.noise_multipliers(0.02)[0])]
    )
    assert OutputPerturbation().guarantee_for(problem) == sum(counted, start=guaranteed)


def test_an_empty_data_set_and_unusual_values_have_an_answer() -> None:
    values = [[math.nan, math.inf], [-math.inf, 1e300], [0.0, -0.0]]
    for problem in (problem_of([], [], Logistic()), problem_of(values, [1, 0, 1], Logistic())):
        assert np.isfinite(OutputPerturbation().fit(problem).weights).all()


def test_rows_that_do_not_count_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "rounded_gaussian", _silence)
    x, y = [[0.5, 0.1], [-0.4, 0.2], [0.9, -0.9]], [1, 0, 0]
    whole = problem_of(x, y, Logistic())
    left_out = replace(whole, keep=np.array([True, True, False]))
    assert np.array_equal(
        OutputPerturbation().fit(left_out).weights,
        OutputPerturbation().fit(problem_of(x[:2], y[:2], Logistic())).weights,
    )


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(UnsupportedGuarantee, match="squared loss"):
        OutputPerturbation().guarantee_for(problem_of([[0.0, 0.0]], [0.5], Squared()))
    wide = replace(problem_of([[0.0, 0.0]], [1], Logistic()), box=Box.of(5_000, bounds=(-1, 1)))
    with pytest.raises(UnsupportedGuarantee, match="4096 weights"):
        OutputPerturbation().guarantee_for(wide)


def test_it_says_what_it_does() -> None:
    problem = problem_of([[0.1, 0.2]], [1], Logistic())
    assert any("noise" in sentence for sentence in OutputPerturbation().explain(problem))
    assert any("penalty" in sentence for sentence in OutputPerturbation().fit(problem).notes)
    assert not any(
        "number of rows" in said
        for said in OutputPerturbation().explain(problem_of([], [], Logistic(), relation="replace"))
    )


def _draw(problem: Problem) -> Reals:
    return OutputPerturbation().fit(problem).weights[:, 0]


def test_an_audit_finds_nothing() -> None:
    neighbours = neighbouring_problems()
    claim = OutputPerturbation().guarantee_for(neighbours[0])
    report = audit.audit(_draw, *neighbours, trials=300, confidence=1 - 1e-9, claim=claim, workers=1)
    assert not report.refutes()


def test_an_audit_catches_too_little_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for a distance that is 50 times too small."""
    monkeypatch.setattr(output, "max_slope_norm", lambda *_: 0.02)
    neighbours = neighbouring_problems()
    claim = privacy.approximate(1.0, 1e-5)
    report = audit.audit(_draw, *neighbours, trials=300, confidence=1 - 1e-9, claim=claim, workers=1)
    assert report.refutes()
