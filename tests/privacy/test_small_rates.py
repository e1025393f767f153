# SPDX-License-Identifier: Apache-2.0
"""Small sampling rates and many steps: brackets stay narrow, and more of anything never costs less."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
from scipy.special import ndtr

import discreet
from discreet import privacy

NOISES = (0.3, 0.5, 0.6, 1.0, 2.0, 10.0, 100.0)
RUNS = (
    (1e-2, 10**3),
    (1e-3, 10**5),
    (1e-4, 10**6),
    (1e-5, 10**6),
    (1e-6, 10**6),
    (1e-6, 10**8),
    (1e-9, 10**9),
    (0.1, 10**4),
)
GRID = [(noise, *run, delta) for noise in NOISES for run in RUNS for delta in (1e-5, 1e-12, 1e-50)]
QUICK = GRID[::17]


def training(noise: float, rate: float, steps: int) -> privacy.Guarantee:
    return steps * privacy.gaussian(noise).sampled(rate)


def check_bracket(noise: float, rate: float, steps: int, delta: float) -> None:
    bound = training(noise, rate, steps).bound(delta=delta)
    assert 0 <= bound.lower <= bound.upper < np.inf
    assert bound.upper - bound.lower <= 1e-3 * min(1.0, bound.upper)


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_brackets_are_narrow(case: tuple[float, float, int, float]) -> None:
    check_bracket(*case)


@pytest.mark.slow
@pytest.mark.parametrize("case", GRID, ids=str)
def test_brackets_are_narrow_on_the_whole_grid(case: tuple[float, float, int, float]) -> None:
    check_bracket(*case)


# by an earlier prototype of the same method, without its bounds on errors; `test_a_plain_transform_agrees` checks the first one
# in another way
KNOWN = [
    ((2.0, 1e-6, 10**6, 1e-5), 0.00090102),
    ((2.0, 1e-6, 10**6, 1e-12), 0.0029863),
    ((1.0, 1e-6, 10**6, 1e-12), 0.0075766),
    ((1.0, 1e-5, 10**6, 1e-5), 0.036884),
    ((0.6, 1e-4, 10**6, 1e-5), 1.61085),
]


@pytest.mark.parametrize(("case", "epsilon"), KNOWN, ids=str)
def test_training_at_small_rates_has_its_known_values(
    case: tuple[float, float, int, float], epsilon: float
) -> None:
    *run, delta = case
    bound = training(*run).bound(delta=delta)
    assert bound.lower == pytest.approx(epsilon, rel=2e-5)
    assert bound.upper == pytest.approx(epsilon, rel=2e-5)


def lattice_delta(noise: float, rate: float, steps: int, epsilon: float) -> float:
    """δ(ε) by one plain FFT: each loss is split between two lattice points so that its mean is kept."""
    step, size = 4e-9, 1 << 21
    mu = 1 / noise
    edges = np.linspace(-9, 10, 200_001)
    x = (edges[1:] + edges[:-1]) / 2
    p = (1 - rate) * np.diff(ndtr(edges)) + rate * np.diff(ndtr(edges - mu))
    losses = np.log1p(rate * np.expm1(mu * x - mu * mu / 2)) / step
    below = np.floor(losses).astype(int)
    share = losses - below
    distribution = np.bincount(below % size, p * (1 - share), size) + np.bincount(
        (below + 1) % size, p * share, size
    )
    composed = scipy.fft.irfft(scipy.fft.rfft(distribution) ** steps, size)
    points = step * ((np.arange(size) + size // 2) % size - size // 2)
    over = points > epsilon
    return float(np.sum(composed[over] * -np.expm1(epsilon - points[over])))


def test_a_plain_transform_agrees() -> None:
    epsilon = training(2.0, 1e-6, 10**6).epsilon(delta=1e-5)
    assert lattice_delta(2.0, 1e-6, 10**6, epsilon) == pytest.approx(1e-5, rel=1e-3)


def test_more_steps_never_cost_less() -> None:
    for noise, rate in ((2.0, 1e-6), (0.6, 1e-5), (1.0, 1e-4)):
        costs = [
            training(noise, rate, steps).epsilon(delta=1e-5)
            for steps in np.geomspace(10, 1e8, 15).astype(int)
        ]
        assert np.all(np.diff(costs) >= 0)


def test_more_noise_fewer_samples_and_a_greater_delta_never_cost_more() -> None:
    by_noise = [training(noise, 1e-5, 10**6).epsilon(delta=1e-6) for noise in np.geomspace(0.4, 50, 9)]
    by_rate = [training(1.0, rate, 10**6).epsilon(delta=1e-6) for rate in np.geomspace(1e-3, 1e-8, 9)]
    by_delta = [training(1.0, 1e-5, 10**6).epsilon(delta=delta) for delta in np.geomspace(1e-30, 1e-3, 9)]
    for costs in (by_noise, by_rate, by_delta):
        assert np.all(np.diff(costs) <= 0)


def test_the_default_is_the_least_of_all_routes() -> None:
    for noise, rate, steps, delta in (
        (2.0, 1e-6, 10**6, 1e-5),
        (0.3, 1e-9, 10**9, 1e-5),
        (0.6, 1e-6, 10**6, 1e-12),
    ):
        guarantee = training(noise, rate, steps)
        assert guarantee.epsilon(delta=delta) <= min(row.upper for row in guarantee.compare(delta=delta))


def test_calibration_finds_the_steps_that_are_proved() -> None:
    steps = discreet.calibrate(
        lambda count: training(2.0, 1e-6, count), to=privacy.approximate(0.01, 1e-5), integer=True
    )
    assert steps > 10**7
    # ε of δ is proved a little less closely than δ of ε, by which the steps are found
    assert training(2.0, 1e-6, int(steps)).delta(epsilon=0.01) <= 1e-5
    assert training(2.0, 1e-6, int(steps)).epsilon(delta=1e-5) <= 0.01 * (1 + 1e-8)


def test_delta_at_epsilon_is_as_close() -> None:
    for noise, rate, steps, delta in (
        (2.0, 1e-6, 10**6, 1e-5),
        (1.0, 1e-5, 10**6, 1e-5),
        (100.0, 1e-9, 10**9, 1e-12),
    ):
        guarantee = training(noise, rate, steps)
        bound = guarantee.bound(epsilon=guarantee.epsilon(delta=delta))
        assert bound.lower <= bound.upper <= delta * (1 + 1e-3)
        assert bound.lower >= delta * (1 - 1e-3)


@pytest.mark.parametrize(
    "other",
    [privacy.laplace(1000.0), privacy.randomized_response(0.001, 2), privacy.gaussian(500.0)],
    ids=str,
)
def test_training_with_another_mechanism_is_bracketed_narrowly(other: privacy.Guarantee) -> None:
    alone = training(2.0, 1e-6, 10**6)
    bound = (alone + other).bound(delta=1e-5)
    assert alone.epsilon(delta=1e-5) <= bound.upper <= bound.lower * (1 + 1e-3)


def test_training_with_replaced_records_costs_more_and_is_bracketed() -> None:
    bound = (10**6 * privacy.gaussian(2.0).sampled(1e-6, relation="replace")).bound(delta=1e-5)
    assert bound.upper - bound.lower <= 1e-6
    assert bound.upper > training(2.0, 1e-6, 10**6).epsilon(delta=1e-5)


@pytest.mark.parametrize(("count", "epsilon"), [(100, 0.074278), (1050, 0.147821)])
def test_many_different_sampled_gaussians_have_their_known_value(count: int, epsilon: float) -> None:
    first, *others = (privacy.gaussian(1 + i / 1000).sampled(0.001 + 1e-6 * i) for i in range(count))
    bound = sum(others, start=first).bound(delta=1e-6)
    assert bound.upper - bound.lower <= 1e-6
    assert bound.upper == pytest.approx(epsilon, rel=2e-5)
