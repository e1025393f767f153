# SPDX-License-Identifier: Apache-2.0
"""The steps to a stated margin: how often the answer keeps it, whatever the first step has shown."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import RefusedQuestion
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.noisy import Noisy
from discreet.tables.plan import mean_steps, steps
from discreet.tables.plan.accuracy import least_spend
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.steps import LastStep, TwoSteps
from tests.tables.small import dataset, number, question

X = number(0, 100, null=False)
RUNS = 40


def finished(asked, data, error, **options):
    """The answer after all its steps, and what each of them cost."""
    plan, costs = least_spend(asked, data, error, **options), []
    while isinstance(plan, TwoSteps):
        first = compile_question(plan.question, data, plan.pilot).draw_aggregates(data)
        costs.append(plan.pilot.epsilon)
        # As a session does that finds the first step in its ledger.
        plan = plan.then(Answer.from_json(first.to_json()))
    assert isinstance(plan, LastStep)
    if plan.spend is None:
        return plan.finish(first), costs
    costs.append(plan.spend.epsilon)
    return plan.finish(compile_question(asked, data, plan.spend).draw_aggregates(data)), costs


@pytest.mark.parametrize(
    ("kind", "error", "pilot"),
    [
        ("count", "±5 %", Spend(epsilon=0.05)),
        pytest.param("count", "±5 %", None, marks=pytest.mark.slow),
        pytest.param("mean", "±4", None, marks=pytest.mark.slow),
        pytest.param("mean", "±4", Spend(epsilon=0.02), marks=pytest.mark.slow),
    ],
)
def test_the_error_is_kept(kind, error, pilot):
    data = dataset([(("a", x),) for x in [10, 30, 30, 90] * 400], rows_are_units=True)
    asked = question((kind, X) if kind == "mean" else (kind,))
    exact, margin = (40, 4) if kind == "mean" else (1600, 80)
    missed = 0
    for _ in range(RUNS):
        answer, _ = finished(asked, data, error, pilot=pilot)
        missed += abs(answer.columns[f"{kind}0"].values[0] - exact) > margin
    assert missed <= 11


def test_the_best_first_step_is_where_all_steps_cost_least():
    numbers = steps.FirstNumbers(least=20_000.0, typical=50_000.0, reaches={})
    best, cost = steps._best_pilot(0.0005, numbers, 0.02)

    def total(pilot):
        return pilot + 0.02 * 20_000 / (50_000 - 15.0 / pilot)

    assert cost == pytest.approx(total(best))
    assert all(total(best) <= total(best * by) for by in (0.7, 0.9, 1.1, 1.5))


def averaged_misses(rule, runs, level=0.05):
    """How often an average misses its margin if the last scale depends on the first noise."""
    rng = np.random.default_rng(3)
    first = rng.laplace(size=runs)
    # The worst kind of dependence: a precise last step only where the first is good.
    scale = np.where(np.abs(first) > 1.5, 1.5, 0.6)
    second = scale * rng.laplace(size=runs)
    ratio = rule(scale)
    share = ratio / (1 + ratio)
    error = np.abs(share * first + (1 - share) * second)
    weights = np.array([share, (1 - share) * scale])
    margin = [_margin(tuple(pair), level) for pair in weights.T[: 2 * 10**5]]
    return np.mean(error[: len(margin)] > np.array(margin))


_margins: dict[tuple[float, float], float] = {}


def _margin(pair, level):
    if pair not in _margins:
        a, b = max(pair), min(pair)
        low, high = 0.0, 100.0
        for _ in range(60):
            t = (low + high) / 2
            tail = (a * a * math.exp(-t / a) - b * b * math.exp(-t / b)) / (a * a - b * b)
            low, high = (t, high) if tail > level else (low, t)
        _margins[pair] = high
    return _margins[pair]


def test_fixed_weights_keep_the_level_and_weights_of_least_variance_do_not():
    kept = averaged_misses(lambda scale: steps._BESIDE_LAST * scale, 200_000)
    broken = averaged_misses(lambda scale: scale**2, 200_000)
    assert kept == pytest.approx(0.05, abs=0.003)
    assert broken > 0.06


@pytest.mark.parametrize(("first", "last"), [(20.0, 5.0), (3.0, 8.0)])
def test_the_margin_of_an_average_is_that_of_its_noise(first, last):
    data = dataset(rows_are_units=True)
    ends = [
        steps.column_estimates(compile_question(question(("count",)), data, Spend(epsilon=1 / scale)))[0]
        for scale in (first, last)
    ]
    half = steps.averaged_half_width(*ends, 0.05)
    share = steps._first_share(first, last)
    noises = [LaplaceDistribution(scale).draw(200_000) for scale in (first, last)]
    assert np.mean(np.abs(share * noises[0] + (1 - share) * noises[1]) > half) <= 0.05
    assert np.mean(np.abs(share * noises[0] + (1 - share) * noises[1]) > 0.85 * half) > 0.05


# --- means that check themselves ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["middle", "edge"])
@pytest.mark.parametrize("beta", [0.05, 0.4])
def test_a_released_margin_fails_as_rarely_as_it_says(shape, beta):
    """With so few rows that the noise of their number matters."""
    values = [10, 30, 30, 90] * 100 if shape == "middle" else [98, 100] * 150
    data = dataset([(("a", x),) for x in values], rows_are_units=True)
    first = question(("mean", X), ("count_of", X))
    mechanism = compile_question(first, data, Spend(epsilon=0.1))
    (mean, _) = steps.column_estimates(mechanism)
    mean = replace(mean, aggregate=replace(mean.aggregate, name="m"))
    (stage,) = mechanism.stages
    columns = stage.draw(data.engine, [()] * 4000)
    named = dict(zip(("m", steps.rows_name("m")), columns.values(), strict=True))
    missed, told = 0, 0
    for row in range(4000):
        answer = Answer.of(keys=[], groups=[()], columns={name: c.take([row]) for name, c in named.items()})
        margin = mean_steps.released_margin(mean, answer, beta)
        told += math.isfinite(margin)
        missed += abs(named["m"].values[row] - np.mean(values)) > margin
    assert told > 3900
    # Four standard deviations; the bounds of sums of two Laplace noises are exact but for a percent.
    slack = 4 * math.sqrt(4000 * beta * (1 - beta))
    assert missed <= 4000 * beta + slack
    if shape == "middle":
        assert missed >= 0.75 * 4000 * beta - slack


def test_all_margins_together_fail_as_rarely_as_the_answer_may(monkeypatch):
    """If no release is ever precise enough, the chances of all steps still add up to what was stated."""
    taken = []
    step = mean_steps.MeanSteps._step

    def recorded(self, pilots, beta, left):
        taken.append(beta)
        assert beta + left <= 0.05 - sum(taken[:-1]) + 1e-15
        return step(self, pilots, beta, left)

    monkeypatch.setattr(mean_steps.MeanSteps, "_step", recorded)
    monkeypatch.setattr(mean_steps, "released_margin", lambda *_: math.inf)
    data = dataset([(("a", x),) for x in [10, 30, 30, 90] * 400], rows_are_units=True)
    with pytest.raises(RefusedQuestion) as refused:
        finished(question(("mean", X)), data, "±4")
    assert refused.value.code == "DP707"
    assert len(taken) > 3
    assert sum(taken) <= 0.05


def test_means_cost_little_more_than_what_suffices_where_their_rows_are_known():
    """50,000 rows with the mean 40: ±0.5 needs ε = 0.0085, if their number is known."""
    values = [30, 40, 40, 50]
    data = dataset([(("a", x),) for x in values * 12_500], rows_are_units=True)
    totals = []
    for _ in range(5):
        answer, costs = finished(question(("mean", X)), data, "±0.5")
        assert answer.columns.keys() == {"mean0"}
        assert abs(answer.columns["mean0"].values[0] - 40) < 1
        totals.append(sum(costs))
    assert np.median(totals) <= 0.0125


def test_a_release_that_is_not_precise_enough_is_followed_by_another():
    data = dataset([(("a", x),) for x in [10, 30, 30, 90] * 400], rows_are_units=True)
    plan = least_spend(question(("mean", X)), data, "±4", epsilon=10)
    mean, rows = (aggregate.name for aggregate in plan.question.aggregates)

    def measured(step, answer):
        mechanism = compile_question(step.question, data, step.pilot)
        return steps.column_estimates(mechanism)[0], answer

    def answered(value, count):
        columns = {mean: Noisy((value,), (0.0,), (100.0,)), rows: Noisy((count,), (0,), (90_000,))}
        return Answer.of(keys=[], groups=[()], columns=columns)

    likely = plan.then(answered(40.0, 60_000))
    assert isinstance(likely, TwoSteps)
    assert likely.number == 1
    # There are fewer rows than the first step made one think.
    again = likely
    while not mean_steps.released_margin(*measured(again, answered(40.0, 1600)), 0.001) <= 4:
        again = again.then(answered(40.0, 1600))
        assert isinstance(again, TwoSteps)
        assert again.pilot.size > likely.pilot.size
    last = again.then(answered(40.0, 1600))
    assert last.spend is None
    assert last.finish(answered(40.0, 1600)).columns.keys() == {"mean0"}
    # If too much were needed, nothing more is drawn, and what was paid is said.
    plan = least_spend(question(("mean", X)), data, "±4", epsilon=0.002)
    with pytest.raises(RefusedQuestion) as refused:
        plan.then(answered(40.0, 9_000))
    assert refused.value.code == "DP707"
    assert "of the first step" in refused.value.what
