# SPDX-License-Identifier: Apache-2.0
"""Objective perturbation: noise and ridge of the plan, the answer without noise, refusals, and an audit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import LogisticRegression as Plain

from discreet import audit, noise, privacy
from discreet.errors import UnsupportedGuarantee
from discreet.learn import minimiser, objective
from discreet.learn.budget import FitBudget
from discreet.learn.classification import LinearSVC, LogisticRegression
from discreet.learn.losses import Hinge, Huber, Logistic, Loss, Softmax, Squared
from discreet.learn.minimiser import certifiable_norm
from discreet.learn.objective import TOLERANCE, ObjectivePerturbation, _plan_for
from discreet.ledger import Limit
from tests.learn.test_output import neighbouring_problems, problem_of

Reals = npt.NDArray[np.float64]


@pytest.mark.parametrize(
    ("epsilon", "sigma", "ridge"),
    [
        (0.1, 30.75, 9.9),
        (0.5, 7.032, 1.98),
        (1, 3.731, 0.966),
        (2, 1.994, 0.47),
        (4, 1.081, 0.23),
        (8, 0.600, 0.106),
    ],
)
def test_the_plan_of_logistic_regression_is_the_gaussian_mechanism(
    epsilon: float, sigma: float, ridge: float
) -> None:
    """At δ = 1e-5, but for 0.2 % that pay for the blur."""
    plan = _plan_for(problem_of([], [], Logistic(), epsilon=epsilon))
    assert sigma * 0.999 < plan.sigma < sigma * 1.0035
    assert plan.ridge == pytest.approx(ridge, rel=0.03)
    assert plan.ridge >= 1 / (epsilon + 1 / (2 * plan.sigma**2))


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Huber(0.2), Softmax()])
def test_the_guarantee_is_within_the_budget_and_uses_it(loss: Loss, relation: str) -> None:
    targets = np.eye(3) if isinstance(loss, Softmax) else np.ones((3, 1))
    problem = problem_of(np.zeros((3, 2)), targets, loss, epsilon=4.0, delta=1e-6, relation=relation)
    guarantee = ObjectivePerturbation().guarantee_for(problem)
    assert guarantee.unit.relation == relation
    assert guarantee.delta(epsilon=4.0) <= 1e-6
    assert 3.9 < guarantee.epsilon(delta=1e-6) <= 4.0
    assert privacy.from_json(guarantee.to_json()) == guarantee


TAU = certifiable_norm(Logistic(), 1, TOLERANCE)


def test_the_guarantee_is_made_without_the_data() -> None:
    one, other = problem_of([], [], Logistic()), problem_of([[1.0, 1.0]] * 50, [1] * 50, Logistic())
    assert ObjectivePerturbation().guarantee_for(one) == ObjectivePerturbation().guarantee_for(other)


def test_the_guarantee_composes_with_others() -> None:
    problem = problem_of([], [], Logistic())
    alone = ObjectivePerturbation().guarantee_for(problem)
    both = alone + privacy.gaussian(noise=1 / FitBudget.of(epsilon=1.0, delta=1e-5).mu)
    assert 1.0 < both.epsilon(delta=1e-5) < 1.7


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(("kind", "fits"), [("lanes", 3), ("zcdp", 2)])
def test_limits_charge_what_is_not_lost_by_its_own_curve(relation: str, kind: str, fits: int) -> None:
    """What is lost, far below δ, is charged to δ; by its greatest loss alone not one would fit into the second."""
    problem = problem_of(
        np.zeros((3, 2)), np.ones((3, 1)), Logistic(), epsilon=1, delta=1e-6, relation=relation
    )
    guarantee = ObjectivePerturbation().guarantee_for(problem)
    limit = Limit.filter(epsilon=3, delta=1e-5, kind=kind)
    plain = limit.cost(guarantee).ways[0][0]
    assert plain.name == "plain"
    assert float(plain.amounts["delta"]) < 1e-15
    assert limit.budget(limit.start()).like(guarantee) >= fits


def test_without_noise_it_is_the_regularised_minimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (400, 2))
    y = (x[:, 0] + 0.3 * x[:, 1] > 0).astype(int)
    problem = problem_of(x, y, Logistic())
    monkeypatch.setattr(noise, "rounded_gaussian", lambda _, size: np.zeros(size, int))
    rows = problem.box.cells(x) / 2.0**14
    plain = Plain(C=1 / _plan_for(problem).ridge, fit_intercept=False, tol=1e-10).fit(rows, y)
    assert np.allclose(ObjectivePerturbation().fit(problem).weights[:, 0], plain.coef_[0], atol=1e-3)


def test_the_push_is_added_as_it_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rows the minimiser is -b/Λ; the push lies on a grid so fine that it is within τ/4 of the real one."""
    scales: list[Any] = []

    def ones(scale: Any, size: Any = None) -> Any:
        scales.append(scale)
        return np.ones(size, int) * (10**6 if len(scales) == 1 else 0)

    problem = problem_of([], [], Logistic())
    plan = _plan_for(problem)
    monkeypatch.setattr(noise, "rounded_gaussian", ones)
    weights = ObjectivePerturbation().fit(problem).weights
    step = plan.sigma / float(scales[0])
    assert math.sqrt(3) * step / 2 <= TAU / 4
    assert math.frexp(step)[0] == pytest.approx(0.5, rel=1e-12)
    assert np.allclose(weights, -(10**6) * step / plan.ridge, atol=1e-6)
    assert float(scales[1]) > plan.blur * math.sqrt(3)


def test_the_blur_is_for_the_distance_between_two_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """2(τ + η)/Λ with η at most τ/4, at a multiplier that the guarantee contains."""
    seen: list[Any] = []

    def keep(point: Any, distance: Any, multiplier: float) -> Reals:
        seen.extend([float(distance), multiplier])
        return np.zeros(point.coarse.shape)

    problem = problem_of([[0.3, 0.4]], [1], Logistic())
    monkeypatch.setattr(objective, "noisy_point", keep)
    ObjectivePerturbation().fit(problem)
    assert seen[0] == pytest.approx(2 * 1.25 * TAU / _plan_for(problem).ridge, rel=1e-12)
    parts = dict(ObjectivePerturbation().guarantee_for(problem).parts)  # type: ignore[attr-defined]
    assert parts[privacy.gaussian(noise=seen[1])] == 1
    assert len(parts) == 2


def test_the_distribution_of_the_answer_without_rows() -> None:
    """N(0, σ²/Λ²) in each weight: 1,200 draws are within 13 % of it at α = 1e-9, and would not be of 20 % less."""
    problem = problem_of([], [], Logistic())
    plan = _plan_for(problem)
    drawn = np.concatenate([ObjectivePerturbation().fit(problem).weights.ravel() for _ in range(400)])
    assert 0.88 < float(np.std(drawn)) * plan.ridge / plan.sigma < 1.13


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(UnsupportedGuarantee, match="not proved"):
        ObjectivePerturbation().guarantee_for(problem_of([[0.0, 0.0]], [0.5], Squared()))
    with pytest.raises(UnsupportedGuarantee, match="not proved"):
        ObjectivePerturbation().guarantee_for(problem_of([[0.0, 0.0]], [[1, -1, -1]], Hinge()))


def test_too_many_rows_are_refused_before_anything_is_paid_where_their_number_is_public(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(minimiser, "MAX_ROWS", 1)
    with pytest.raises(UnsupportedGuarantee, match="at most 1 rows"):
        ObjectivePerturbation().guarantee_for(
            problem_of([[0.0, 0.0]] * 2, [1, 0], Logistic(), relation="replace")
        )


@pytest.mark.parametrize(
    ("model", "relation"),
    [(LogisticRegression, "add-remove"), (LogisticRegression, "replace"), (LinearSVC, "add-remove")],
)
def test_it_learns(model: Any, relation: str) -> None:
    x = np.random.default_rng(3).uniform(-1, 1, (20_000, 2))
    y = x[:, 0] + x[:, 1] / 2 > 0
    found = model(
        epsilon=1, delta=1e-6, bounds=(-1, 1), classes=[False, True], solver="objective", relation=relation
    ).fit(x, y)
    assert found.score(x, y) > 0.97
    assert "linear term" in found.explain()


def test_three_classes_are_learned() -> None:
    x = np.random.default_rng(4).uniform(-1, 1, (20_000, 2))
    y = np.digitize(x[:, 0], [-0.3, 0.3])
    found = LogisticRegression(
        epsilon=4, delta=1e-6, bounds=(-1, 1), classes=[0, 1, 2], solver="objective"
    ).fit(x, y)
    assert found.score(x, y) > 0.85


def _draw(problem: Any) -> Reals:
    return ObjectivePerturbation().fit(problem).weights[:, 0]


def test_an_audit_finds_nothing() -> None:
    claim = ObjectivePerturbation().guarantee_for(neighbouring_problems()[0])
    report = audit.audit(
        _draw, *neighbouring_problems(), trials=300, confidence=1 - 1e-9, claim=claim, workers=1
    )
    assert not report.refutes()


def test_an_audit_catches_a_push_that_is_too_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    """A 50th of the noise on the objective; the blur of the answer hides nothing of that."""
    right = _plan_for(neighbouring_problems()[0])
    weak = objective._PerturbationPlan(right.sigma / 50, right.ridge, right.blur, right.guarantee)
    monkeypatch.setattr(objective, "_plan_for", lambda _: weak)
    report = audit.audit(
        _draw, *neighbouring_problems(), trials=300, confidence=1 - 1e-9, claim=right.guarantee, workers=1
    )
    assert report.refutes()
