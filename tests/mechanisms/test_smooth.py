# SPDX-License-Identifier: Apache-2.0
"""The released distribution on tiny worlds, computed and not sampled; and everything that must not leave."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from discreet import testing
from discreet.errors import BadParameter, CannotCertify, DiscreetError
from discreet.mechanisms import Laplace, check_mechanism, smooth
from discreet.mechanisms.query import ClippingBounds
from discreet.mechanisms.sensitivity import LocalAtDistance, SmoothBound, Universe
from discreet.mechanisms.smooth import (
    Custom,
    OrderStatistic,
    SmoothBudget,
    SmoothMechanism,
    SmoothPlan,
    TrimmedMean,
)
from discreet.noise import heavy

TEN = ClippingBounds.of((0, 10))
MEDIAN = OrderStatistic(TEN, q=0.5)
LETTERS = [0, 1, 3, 10]
CELL = Fraction(1, 2)
REACH = 400


def tail(noise, z):
    """P(Z > z), from the enclosure that the sampler uses."""
    low, _ = noise.tails(abs(z), 90) if z else (1 << 90, 0)
    half = Fraction(low, 2 << 90)
    return half if z >= 0 else 1 - half


def released(mechanism, data, measure=None):
    """P of every cell of a coarse grid, and of what lies beyond on either side."""
    value, bound = (measure or mechanism.statistic.measure)(list(data), mechanism.plan.smoothing)
    scale = bound / Fraction(repr(mechanism.plan.shift))
    edges = [CELL * (Fraction(k) - Fraction(1, 2)) for k in [*range(-30, 51), 80, 200, 1000, 10**5, 10**9]]
    above = [
        Fraction(1),
        *(tail(mechanism.plan.family.noise, (edge - value) / scale) for edge in edges),
        Fraction(0),
    ]
    return np.array([float(a - b) for a, b in itertools.pairwise(above)])


def worst(mechanism, universe, measure=None):
    """The greatest log ratio of a cell; what is below 1e-22 counts as that, which only lowers it."""
    logs = {x: np.log(np.maximum(released(mechanism, x, measure), 1e-22)) for x in universe.all()}
    return max(float(np.abs(logs[x] - logs[y]).max()) for x in logs for y in universe.neighbours(x))


FAMILIES = [smooth.SmoothCauchy(), smooth.SmoothStudentT(3.0), smooth.SmoothLomax(4.0)]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_no_cell_of_the_released_distribution_betrays_more_than_epsilon(family, epsilon, relation):
    """All data of a tiny world, all neighbours, every cell and both tails; and nearly ε is reached."""
    universe = Universe(LETTERS, 3, relation)
    mechanism = SmoothMechanism(
        MEDIAN, SmoothBudget(epsilon=epsilon), family=family, smoothing=epsilon / 8, relation=relation
    )
    seen = worst(mechanism, universe)
    assert seen <= epsilon * (1 + 1e-9)
    assert seen >= epsilon / 3


@pytest.mark.parametrize("statistic", [TrimmedMean(TEN, trim=1), smooth.InterquantileRange(TEN)], ids=str)
def test_other_statistics_keep_their_guarantee_too(statistic):
    mechanism = SmoothMechanism(statistic, SmoothBudget(epsilon=1.0), size=4)
    assert worst(mechanism, Universe(LETTERS, 4)) <= 1 + 1e-9


@pytest.mark.parametrize("family", [smooth.SmoothLaplace(), smooth.SmoothGaussian()], ids=str)
def test_light_noise_keeps_its_delta(family):
    universe = Universe(LETTERS, 3)
    budget = SmoothBudget(epsilon=1.0, delta=1e-3)
    mechanism = SmoothMechanism(MEDIAN, budget, family=family, smoothing=0.05)
    distributions = {x: released(mechanism, x) for x in universe.all()}
    deltas = [
        float(np.maximum(0, distributions[x] - math.e * distributions[y]).sum())
        for x in distributions
        for y in universe.neighbours(x)
    ]
    assert max(deltas) <= 1e-3
    assert max(deltas) >= 1e-4


WRONG = {
    "local sensitivity instead of smooth": lambda x, t: (
        MEDIAN.measure(x, t)[0],
        max(MEDIAN.measure(x, 50.0)[1], Fraction(1, 100)),
    ),
    "twice the discount": lambda x, t: MEDIAN.measure(x, 8 * t),
    "half of the bound": lambda x, t: (MEDIAN.measure(x, t)[0], MEDIAN.measure(x, t)[1] / 3),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_bound_shows_in_the_released_distribution(name):
    mechanism = SmoothMechanism(
        MEDIAN, SmoothBudget(epsilon=1.0), family=smooth.SmoothStudentT(3.0), smoothing=0.125
    )
    assert worst(mechanism, Universe(LETTERS, 3), WRONG[name]) > 1.05


@pytest.mark.parametrize("family", [smooth.SmoothLaplace(), smooth.SmoothGaussian()], ids=str)
def test_light_noise_is_not_pure(family):
    """Laplace or Gaussian noise of a data-dependent scale, claimed to be pure: some tail betrays far more."""
    mechanism = SmoothMechanism(MEDIAN, SmoothBudget(epsilon=1.0, delta=1e-6), family=family, smoothing=0.02)
    assert worst(mechanism, Universe(LETTERS, 3)) > 1.1


@pytest.mark.parametrize("seed", range(6))
def test_the_draw_is_the_rounded_noise_about_the_exact_answer(seed):
    mechanism = SmoothMechanism(MEDIAN, SmoothBudget(epsilon=4.0))
    data = [1, 2, 3.3, 4, 5] * 5
    with testing.seeded(seed):
        answer = mechanism(data)
    value, bound = MEDIAN.measure(data, mechanism.plan.smoothing)
    step = mechanism.grid.step
    scale = bound / Fraction(repr(mechanism.plan.shift)) / step
    with testing.seeded(seed):
        cells = heavy.rounded_noise(mechanism.plan.family.noise, scale, value / step)
    assert answer.value == float(min(max(cells * step, 0), 10))
    assert 0 < answer.value < 10
    assert not answer.private


def test_the_plan_is_public():
    """Noise, scale and smoothing do not depend on the data that are released."""
    plans = {str(SmoothMechanism(MEDIAN, SmoothBudget(epsilon=1.0), size=100).plan) for _ in range(3)}
    assert len(plans) == 1
    mechanism = SmoothMechanism(MEDIAN, SmoothBudget(epsilon=1.0), size=100)
    answer = mechanism([5.0] * 100)
    assert answer.error is None
    assert answer.interval is None
    assert mechanism.error_on([5.0] * 100) < 1e-6 < mechanism.error_on(np.linspace(0, 10, 100))


@pytest.mark.parametrize(
    ("words", "guarantee"),
    [
        ({"epsilon": 1.0}, "pure(epsilon=1.0, relation='replace')"),
        ({"epsilon": 1.0, "relation": "add-remove", "unit": "patient"}, "pure(epsilon=1.0, unit='patient')"),
        (
            {"rho": 0.1, "family": smooth.SmoothLaplaceLogNormal(0.4), "smoothing": 0.05},
            "concentrated(rho=0.1, xi=0.0, delta=0.0, relation='replace')",
        ),
        (
            {"epsilon": 1.0, "delta": 1e-6, "family": smooth.SmoothLaplace(), "smoothing": 0.05},
            "approximate(epsilon=1.0, delta=1e-06, relation='replace')",
        ),
    ],
)
def test_the_guarantee_is_what_was_asked_for(words, guarantee):
    assert repr(smooth.median([1, 2, 3], (0, 10), **words).guarantee) == guarantee


def test_pure_noise_is_guaranteed_as_such_where_less_was_asked():
    made = SmoothMechanism(MEDIAN, SmoothBudget(rho=0.5))
    assert made.guarantee.concentrated() <= 0.5
    assert made.guarantee.epsilon(delta=0) > 1


EXAMPLES = [
    SmoothMechanism(MEDIAN, SmoothBudget(epsilon=1.0), size=3),
    SmoothMechanism(TrimmedMean(TEN), SmoothBudget(epsilon=0.5, delta=1e-6), size=3),
    SmoothMechanism(smooth.InterquantileRange(TEN), SmoothBudget(rho=0.1), size=3, relation="add-remove"),
    SmoothMechanism(MEDIAN, SmoothBudget(rho=0.1), family=smooth.SmoothUniformLogNormal(0.7), smoothing=0.02),
]


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=lambda m: repr(m.guarantee))
def test_they_keep_the_rules_of_every_mechanism(mechanism):
    check_mechanism(mechanism, [1.0, 2.0, 7.0], neighbour=[1.0, 2.0, 10.0])


def test_every_entry_point_answers():
    x = [1.0, 2.0, 3.5, 7.0, 9.0]
    answers = [
        smooth.median(x, bounds=(0, 100), epsilon=1.0),
        smooth.minimum(x, (0, 100), epsilon=1.0),
        smooth.maximum(x, (0, 100), epsilon=1.0, relation="add-remove"),
        smooth.quantile(x, 0.9, (0, 100), epsilon=1.0),
        smooth.order_statistic(x, 2, (0, 100), epsilon=1.0),
        smooth.trimmed_mean(np.array(x), (0, 100), trim=1, epsilon=1.0),
        smooth.interquantile_range(x, (0, 100), epsilon=1.0),
        smooth.release(MEDIAN, x, epsilon=1.0),
    ]
    assert all(0 <= answer.value <= 100 for answer in answers)
    assert 0 <= smooth.reciprocal(x, where=lambda v: v > 2, epsilon=1.0).value <= 1
    rows = [(0.5, 0.1), (0.1, 0.5)] * 50
    assert -9 <= smooth.prediction_variance(rows, (1.0, 0.5), between=(-9, 3), epsilon=1.0).value <= 3


def test_kind_data_get_little_noise():
    """A thousand records about 50 in (0, 1000): far closer than the global sensitivity allows, whatever the luck."""
    x = np.linspace(40, 60, 1001)
    mechanism = SmoothMechanism(OrderStatistic((0, 1000), q=0.5), SmoothBudget(epsilon=1.0), public=x)
    assert mechanism.error_on(x, 0.99) < 2
    assert Laplace(epsilon=1, sensitivity=1000).error(0.99) > 4000
    assert (
        sum(abs(mechanism(x).value - 50) < 2 for _ in range(40)) >= 25
    )  # fails with probability below 1e-12


def test_a_function_of_ones_own():
    def median(x):
        return sorted(x)[(len(x) - 1) // 2]

    def at(x, j):
        y = [0] * (j + 1) + sorted(x) + [10] * (j + 1)
        k = j + (len(x) + 1) // 2
        return max(y[k + i] - y[k + i - j - 1] for i in range(j + 2))

    local = LocalAtDistance(at, 10)
    own = Custom(median, local, 0, 10)
    for x in Universe(LETTERS, 3).all():
        assert own.measure(list(x), 0.3) == MEDIAN.measure(list(x), 0.3)
    assert 0 <= smooth.release(median, [1, 2, 3], sensitivity=local, between=(0, 10), epsilon=1.0).value <= 10
    assert SmoothMechanism(own, SmoothBudget(epsilon=1.0)).plan.smoothing == 1 / 8
    assert SmoothMechanism(own, SmoothBudget(epsilon=1.0), public=list(range(10))).plan.smoothing != 1 / 8
    direct = local.smooth(0.1)
    fixed = SmoothMechanism(Custom(median, direct, 0, 10), SmoothBudget(epsilon=1.0))
    assert fixed.plan.smoothing == 0.1


@pytest.mark.parametrize(
    "f", [lambda _x: 1 / 0, lambda _x: math.nan, lambda _x: None, lambda _x: math.inf, lambda _x: "5"]
)
def test_a_function_that_fails_is_no_error(f):
    own = Custom(f, SmoothBound(lambda _x: 1 / 0, 0.1, 3.0), 0, 10)
    value, bound = own.measure([1], 0.1)
    assert value in {0, 10}
    assert float(bound) == pytest.approx(3.0)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 1e300])
def test_bad_amounts_are_refused(bad):
    with pytest.raises(BadParameter):
        smooth.median([1, 2], (0, 10), epsilon=bad)
    if bad is not None:
        with pytest.raises(BadParameter):
            smooth.median([1, 2], (0, 10), rho=bad)
        with pytest.raises(DiscreetError):
            smooth.median([1, 2], (0, 10), epsilon=1.0, delta=bad)
        with pytest.raises(DiscreetError):
            smooth.median([1, 2], (0, 10), epsilon=1.0, smoothing=bad)


def test_other_bad_parameters_are_refused():
    cases = [
        lambda: smooth.median([1, 2], (10, 0), epsilon=1.0),
        lambda: smooth.median([1, 2], None, epsilon=1.0),
        lambda: smooth.median([1, 2], (0, 10), epsilon=1.0, relation="both"),
        lambda: smooth.trimmed_mean([1, 2], (0, 10), epsilon=1.0, relation="add-remove"),
        lambda: smooth.trimmed_mean([1, 2], (0, 10), trim=0.5, epsilon=1.0),
        lambda: smooth.trimmed_mean([1, 2], (0, 10), trim=-1, epsilon=1.0),
        lambda: smooth.interquantile_range([1, 2], (0, 10), lower=0.5, upper=0.5, epsilon=1.0),
        lambda: smooth.quantile([1, 2], 1.5, (0, 10), epsilon=1.0),
        lambda: smooth.order_statistic([1, 2], 0, (0, 10), epsilon=1.0),
        lambda: smooth.release(max, [1, 2], epsilon=1.0),
        lambda: smooth.release("max", [1, 2], epsilon=1.0),
        lambda: smooth.prediction_variance([], (0.0, 0.0), between=(0, 1), epsilon=1.0),
        lambda: SmoothMechanism(MEDIAN, SmoothBudget(epsilon=1.0), family="cauchy"),
        lambda: SmoothMechanism(MEDIAN, 1.0),
        lambda: SmoothMechanism(max, SmoothBudget(epsilon=1.0)),
        lambda: OrderStatistic(TEN),
        lambda: OrderStatistic(TEN, q=0.5, rank=1),
    ]
    for case in cases:
        with pytest.raises(BadParameter):
            case()


def test_a_budget_that_no_noise_keeps_is_refused_by_parameters_alone():
    with pytest.raises(CannotCertify) as caught:
        SmoothMechanism(MEDIAN, SmoothBudget(epsilon=0.1), smoothing=0.2)
    assert caught.value.code == "DP302"
    with pytest.raises(CannotCertify):
        smooth.median([1, 2], (0, 10), epsilon=1e-9)


def test_a_plan_estimates_what_samples_show():
    """Of 3,000 samples of Lomax noise about one in twenty exceeds the planned error."""
    plan = SmoothPlan(smooth.SmoothLomax(7.0), 0.2, 0.05)
    line = plan.error(3.0, 0.95)
    scale = Fraction(3) / Fraction(repr(0.2)) * 1000
    over = sum(abs(heavy.rounded_noise(plan.family.noise, scale)) > line * 1000 for _ in range(3000))
    assert 60 <= over <= 260


@pytest.mark.parametrize(
    "ask",
    [
        smooth.median,
        smooth.minimum,
        smooth.maximum,
        partial(smooth.quantile, q=0.5),
        partial(smooth.order_statistic, rank=1),
        smooth.trimmed_mean,
        smooth.interquantile_range,
    ],
)
def test_missing_bounds_are_asked_for(ask):
    with pytest.raises(BadParameter, match="bounds must be two numbers") as caught:
        ask([1, 2, 3], epsilon=1.0)
    assert caught.value.code == "DP104"
