# SPDX-License-Identifier: Apache-2.0
"""Counts and positive amounts: what one record moves, what is spent, and what is learned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from discreet import noise, privacy, testing
from discreet.errors import DiscreetError
from discreet.learn import GammaRegressor, PoissonRegressor
from discreet.learn.losses import Gamma, Poisson
from tests.learn.accounts import Account

DECLARED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-3, 3)}


def made_up(count: int, level: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    rows = draw.normal(0, 0.5, (count, 4))
    return rows, np.exp(level + rows @ [0.8, -0.5, 0.3, 0.0])


def test_coefficients_of_counts_are_found():
    rows, means = made_up(12_000, 0.5, 1)
    counts = np.random.default_rng(2).poisson(means)
    with testing.seeded(1):
        model = PoissonRegressor(**DECLARED, target_bounds=(0, 200)).fit(rows, counts)
    assert model.coef_ == pytest.approx([0.8, -0.5, 0.3, 0.0], abs=0.08)
    assert model.predict(rows).sum() == pytest.approx(counts.sum(), rel=0.1)
    assert model.score(rows, counts) > 0.24
    assert model.guarantee_.epsilon(delta=1e-5) <= 1


def test_the_predictions_stand_at_the_level_of_the_targets():
    """With a little more budget; clipped gradients alone would leave them too low."""
    rows, means = made_up(15_000, 2.0, 1)
    for model, targets in (
        (
            PoissonRegressor(**DECLARED | {"epsilon": 4}, target_bounds=(0, 200)),
            np.random.default_rng(2).poisson(means),
        ),
        (
            GammaRegressor(**DECLARED | {"epsilon": 4}, target_bounds=(1e-3, 500)),
            means * np.random.default_rng(2).gamma(3, 1 / 3, 15_000),
        ),
    ):
        with testing.seeded(3):
            model.fit(rows, targets)
        assert model.predict(rows).sum() == pytest.approx(targets.sum(), rel=0.03)
        assert model.coef_ == pytest.approx([0.8, -0.5, 0.3, 0.0], abs=0.05)


def test_few_records_get_the_mean():
    rows, means = made_up(60, 1.0, 1)
    with testing.seeded(1):
        model = PoissonRegressor(**DECLARED, target_bounds=(0, 50)).fit(rows, means)
    assert not model.coef_.any()
    assert "only the mean was fitted" in model.explain()


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("count", [30, 4_000])
def test_all_releases_together_cost_the_budget(monkeypatch, relation, count):
    """The noise of the three releases beside the descent, by the standard deviations that are drawn."""
    drawn = []
    real = noise.rounded_gaussian
    monkeypatch.setattr(
        noise,
        "rounded_gaussian",
        lambda scale, size=None: (drawn.append((float(scale), size)), real(scale, size))[1],
    )
    rows, means = made_up(count, 1.0, 1)
    model = PoissonRegressor(**DECLARED, relation=relation, target_bounds=(0, 64)).fit(rows, means)
    multiplier = model._budget().noise_multipliers(0.03)[0]
    root = math.sqrt(2) if relation == "replace" else 1.0
    assert drawn[0] == (pytest.approx(multiplier * root), (20,))
    assert drawn[1] == (pytest.approx(multiplier * 2**20), None)
    if count > 100:
        assert drawn[-1] == (pytest.approx(multiplier * math.sqrt(2) * 2**20), 2)
    whole = privacy.approximate(1, 1e-5, relation=relation)
    assert model.guarantee_.epsilon(delta=1e-5) <= whole.epsilon(delta=1e-5)
    assert model.guarantee_.epsilon(delta=1e-5) > 0.98


@pytest.mark.parametrize("loss", [Poisson(20.0, 3.0), Gamma(3.0)])
def test_slopes_are_those_of_the_loss(loss):
    scores, targets = np.linspace(-2, 3, 30)[:, None], np.linspace(0.1, 9, 30)[:, None]

    def value(score):
        if isinstance(loss, Poisson):
            return np.exp(score) - targets * score
        return targets * np.exp(-score) + score

    slopes = (value(scores + 1e-6) - value(scores - 1e-6)) / 2e-6
    unclipped = targets * np.exp(-scores) < 4 if isinstance(loss, Gamma) else np.ones_like(scores, bool)
    assert loss.slopes(scores, targets)[unclipped] == pytest.approx(slopes[unclipped], abs=1e-5)
    assert np.isfinite(loss.slopes(np.array([[800.0], [-800.0]]), np.array([[1.0], [1.0]]))).all()


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (PoissonRegressor(**DECLARED), "DP107"),
        (PoissonRegressor(**DECLARED, target_bounds=(-1, 5)), "DP102"),
        (GammaRegressor(**DECLARED, target_bounds=(0, 5)), "DP102"),
        (GammaRegressor(**DECLARED, target_bounds=(-5, -1)), "DP102"),
        (PoissonRegressor(**DECLARED, target_bounds=(0, math.inf)), "DP101"),
        (PoissonRegressor(**DECLARED, target_bounds=(0, 5), solver="joint"), "DP105"),
        (PoissonRegressor(epsilon=1, delta=1e-5, target_bounds=(0, 5)), "DP107"),
    ],
)
def test_what_is_wrong_is_refused_before_it_costs(model, code):
    account = Account()
    model.set_params(session=account)
    with pytest.raises(DiscreetError) as refused:
        model.fit([[0.0], [1.0]], [1, 2])
    assert refused.value.code == code
    assert not account.paid


@pytest.mark.filterwarnings("ignore:The released number")
def test_odd_records_are_no_errors():
    model = PoissonRegressor(**DECLARED, target_bounds=(0, 5))
    model.fit([[np.nan], [np.inf], [-1e308], ["x"]], [None, np.inf, -3, "many"])
    assert np.isfinite(model.predict([[np.nan], [1e308]])).all()


def test_too_many_features_are_refused():
    with pytest.raises(DiscreetError, match="at most 2000 features"):
        PoissonRegressor(**DECLARED, target_bounds=(0, 5)).fit(np.zeros((2, 2_001)), [0, 1])
