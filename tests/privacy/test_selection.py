# SPDX-License-Identifier: Apache-2.0
"""The best of a secret number of runs: every rule against the exact distribution of the winner."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet import errors, privacy
from discreet.privacy.selection import chance_of_one, gamma_for, mean_runs

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)
DISTRIBUTIONS = [
    ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    ([0.6, 0.4], [0.4, 0.6]),
    ([0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]),
    ([0.01, 0.09, 0.9], [0.02, 0.08, 0.9]),
    ([0.3, 0.3, 0.3, 0.1], [0.3, 0.3, 0.4, 0.0]),
    ([0.97, 0.02, 0.01], [0.99, 0.01, 0.0]),
]
COUNTS = [
    (0.5, 0.0),
    (0.02, 0.0),
    (1e-4, 0.0),
    (0.1, 1.0),
    (0.01, 0.5),
    (0.3, 3.0),
    (0.01, -0.5),
    (1e-3, -0.9),
]


def generating(x, gamma, eta):
    """E[x^K] for K ~ TNB(η, γ)."""
    if eta == 0:
        return np.log1p(-(1 - gamma) * x) / math.log(gamma)
    return ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


def winner(distribution, gamma, eta):
    """The distribution of the greatest of K draws, outcomes in rising order."""
    distribution = np.asarray(distribution)
    upto = np.minimum(np.cumsum(distribution), 1.0)
    last = int(np.flatnonzero(distribution)[-1])
    upto[last:] = 1.0
    below = np.append(0.0, upto[:-1])
    return np.where(distribution > 0, generating(upto, gamma, eta) - generating(below, gamma, eta), 0.0)


def winners(p, q, gamma, eta):
    """Both distributions of the winner, for every order of the outcomes and in both directions."""
    for order in itertools.permutations(range(len(p))):
        pair = [winner([distribution[i] for i in order], gamma, eta) for distribution in (p, q)]
        yield pair
        yield pair[::-1]


@pytest.mark.parametrize(("gamma", "eta"), COUNTS)
def test_the_generating_function_belongs_to_the_stated_distribution(gamma, eta):
    k = np.arange(1, round(60 / gamma) if gamma > 1e-3 else 400_000)
    ratios = np.append(1.0, (k[:-1] + eta) / (k[:-1] + 1))
    weights = np.exp(k * math.log1p(-gamma) + np.cumsum(np.log(ratios)))
    distribution = weights / weights.sum()
    assert distribution @ 0.7**k == pytest.approx(generating(0.7, gamma, eta), rel=1e-6)
    assert mean_runs(gamma, eta) == pytest.approx(distribution @ k, rel=1e-6)
    if eta == 0:
        assert distribution[2] == pytest.approx((1 - gamma) ** 3 / (3 * -math.log(gamma)), rel=1e-6)


@pytest.mark.parametrize(("gamma", "eta"), COUNTS)
@pytest.mark.parametrize(("p", "q"), DISTRIBUTIONS)
def test_no_rule_is_below_the_exact_distribution_of_the_winner(p, q, gamma, eta):
    best = privacy.selected(privacy.pair(p, q), gamma=gamma, eta=eta)
    leaks = best.failure > 0
    for a, b in winners(p, q, gamma, eta):
        for epsilon in EPSILONS:
            assert np.maximum(a - math.exp(epsilon) * b, 0).sum() <= best.delta(epsilon) + 1e-12
        if not leaks:
            assert np.log(a / b).max() <= best.worst_loss() + 1e-9
            for order in (1.5, 2.0, 8.0):
                assert math.log(np.sum(a**order * b ** (1 - order))) / (order - 1) <= best.renyi(order) + 1e-9


@pytest.mark.parametrize("eta", [0.0, 1.0, 2.0])
def test_pure_privacy_grows_by_a_factor_that_is_reached(eta):
    """(2+η)ε at most, and nearly that for an outcome that gains while all that is better loses."""
    epsilon, gamma = 0.1, 1e-7
    best = privacy.selected(privacy.pure(epsilon), gamma=gamma, eta=eta)
    assert best.epsilon(delta=0) <= (2 + eta) * epsilon
    rare, top = 1e-8, 0.5  # rising: what is left, an outcome that is likelier under p, and all that is better
    q = [1 - rare - top, rare, top]
    p = [0.0, rare * math.exp(epsilon), top * math.exp(-epsilon)]
    p[0] = 1 - p[1] - p[2]
    losses = np.log(winner(p, gamma, eta) / winner(q, gamma, eta))
    assert losses[1] > 0.99 * (2 + eta) * epsilon
    assert losses.max() <= best.epsilon(delta=0) + 1e-6


def test_a_known_number_of_runs_has_no_such_bound():
    """The worse of two outcomes wins ten known runs only if all ten give it: ten times the loss of one run."""
    rare = 1e-3
    p, q = [1 - rare, rare], [1 - rare * math.exp(0.1), rare * math.exp(0.1)]
    worst_of_ten = max(abs(math.log(x**10 / y**10)) for x, y in ((p[1], q[1]), (p[0], q[0])))
    assert worst_of_ten == pytest.approx(1.0)
    assert privacy.pair(p, q).epsilon(delta=0) <= 0.1 + 1e-9
    assert privacy.selected(privacy.pair(p, q), mean_runs=10).epsilon(delta=0) < 0.2


def test_the_rule_of_papernot_and_steinke():
    """Theorem 2 for a Gaussian, which is ε(λ) = λ/2σ²: our number is at most theirs."""
    noise, gamma = 4.0, 0.01
    best = privacy.selected(privacy.gaussian(noise), gamma=gamma)
    for order in (2.0, 8.0, 32.0):
        theirs = min(
            order / (2 * noise**2)
            + (1 - 1 / hat) * hat / (2 * noise**2)
            - math.log(gamma) / hat
            + math.log(mean_runs(gamma)) / (order - 1)
            for hat in np.geomspace(1.01, 1000, 2000)
        )
        assert best.renyi(order) <= theirs * (1 + 1e-3)
        assert best.renyi(order) >= privacy.gaussian(noise).renyi(order)


def test_failing_runs_add_up():
    """A run that reveals all with probability δ does so in one of K runs with probability 1 - E(1-δ)^K."""
    best = privacy.selected(privacy.approximate(0.5, 1e-6), mean_runs=10)
    gamma = best.gamma
    leak = 1 - generating(1 - 1e-6, gamma, 0.0)
    assert best.failure == pytest.approx(leak, rel=1e-6)
    assert leak < 1.0001e-5
    assert best.epsilon(delta=1.01e-5) <= 1.0
    assert best.epsilon(delta=1e-7) == math.inf
    assert privacy.selected(privacy.leaky(0.5), gamma=1e-6).failure < 1


@pytest.mark.parametrize(
    "inner",
    [
        privacy.gaussian(noise=2.0),
        privacy.laplace(scale=2.0, relation="replace", unit="patient"),
        privacy.approximate(0.5, 1e-8),
        privacy.concentrated(rho=0.1),
        privacy.renyi(order=8, epsilon=0.1),
        10 * privacy.gaussian(noise=10.0).sampled(0.1),
        privacy.one_of(privacy.gaussian(noise=3.0), privacy.pure(0.1)),
        privacy.parallel(privacy.pure(0.5), privacy.pure(0.2)),
    ],
    ids=repr,
)
def test_every_view_answers_on_the_safe_side(inner):
    best = privacy.selected(inner, mean_runs=5)
    assert best.unit == inner.unit
    assert privacy.from_json(best.to_json()) == best
    bound = best.bound(delta=1e-6)
    assert inner.epsilon(1e-6) * (1 - 1e-6) <= bound.upper
    assert bound.lower <= inner.epsilon(1e-6) * (1 + 1e-6)
    assert best.delta(bound.upper * (1 + 1e-9)) <= 1e-6 * (1 + 1e-6)
    assert inner.advantage() <= best.advantage() <= 1
    assert best.epsilon(1e-6) <= (2 * best).epsilon(1e-6)
    assert best.epsilon(1e-3) <= best.epsilon(1e-6)
    more = privacy.selected(inner, mean_runs=50)
    assert more.epsilon(1e-6) >= bound.upper * (1 - 1e-6)


@pytest.mark.parametrize("tiny", [1e-6, 1e-17, 1e-90])
def test_nothing_is_lost_to_rounding(tiny):
    """To first order the tilt of a pure ε lies between (1+η)(1-γ)/(1+γ)·ε and (1+η)(1-γ)·ε, and a leak δ grows to E[K]·δ."""
    for gamma, eta in ((0.02, 0.0), (0.9, 1.0), (1e-12, 0.0), (0.999999, 0.0)):
        best = privacy.selected(privacy.pure(tiny), gamma=gamma, eta=eta)
        low, high = (tiny * (1 + (1 + eta) * (1 - gamma) / by) for by in (1 + gamma, 1))
        assert low * (1 - 2 * tiny / gamma) <= best.epsilon(delta=0) <= high * (1 + 1e-9)
        leak = privacy.selected(privacy.leaky(tiny * gamma), gamma=gamma, eta=eta).failure
        assert leak == pytest.approx(mean_runs(gamma, eta) * tiny * gamma, rel=1e-5)


def test_a_group_is_inside():
    best = privacy.selected(privacy.pure(0.5), gamma=0.1)
    assert best.group(3) == privacy.selected(privacy.pure(0.5).group(3), gamma=0.1)
    several = privacy.one_of(privacy.pure(0.5), privacy.laplace(scale=1))
    assert several.group(2) == privacy.one_of(privacy.pure(0.5).group(2), privacy.laplace(scale=1).group(2))


def test_one_of_several_is_the_worst_at_every_point():
    a, b = privacy.gaussian(noise=1.0), privacy.pure(2.0)
    either = privacy.one_of(a, b)
    for delta in (1e-12, 1e-6, 1e-2):
        assert either.epsilon(delta) == max(a.epsilon(delta), b.epsilon(delta))
    assert privacy.one_of(a, a) == a
    assert privacy.from_json(either.to_json()) == either
    assert repr(either) == "one_of(gaussian(noise=1.0), pure(epsilon=2.0))"
    mixed = 0.5 * np.array([0.5, 0.3, 0.2, 0, 0]) + 0.5 * np.array([0, 0, 0, 0.9, 0.1])
    other = 0.5 * np.array([0.2, 0.3, 0.5, 0, 0]) + 0.5 * np.array([0, 0, 0, 0.6, 0.4])
    greatest = privacy.one_of(
        privacy.pair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), privacy.pair([0.9, 0.1], [0.6, 0.4])
    )
    for epsilon in EPSILONS:
        gap = max(np.maximum(mixed - math.exp(epsilon) * other, 0).sum(), 0)
        assert gap <= greatest.delta(epsilon) + 1e-12


@pytest.mark.parametrize("runs", [1.5, 2, 10, 1000, 1e9])
def test_gamma_gives_the_mean_that_was_asked_for(runs):
    assert mean_runs(gamma_for(runs)) == pytest.approx(runs, rel=1e-4)


def test_a_lesser_shape_costs_less_for_the_same_mean():
    """Known values, with a mean of 100 runs and of 10."""
    pure, noisy = privacy.pure(0.5), privacy.gaussian(4.0)
    found = [privacy.selected(pure, 100, eta=eta).epsilon(1e-6) for eta in (-0.9, -0.5, 0.0, 1.0)]
    assert found == pytest.approx([0.55, 0.75, 0.999, 1.48], abs=2e-3)
    found = [privacy.selected(noisy, 10, eta=eta).epsilon(1e-6) for eta in (-0.9, -0.5, 0.0, 1.0)]
    # Up to what E[K]·δ gives; 1 - E[(1-δ)^K] is less.
    assert found == pytest.approx([1.2934, 1.4489, 1.5282, 1.6322], abs=1e-3)
    assert all(ours <= known for ours, known in zip(found, (1.333, 1.449, 1.529, 1.633), strict=True))


def test_the_least_shape_runs_more_than_once_often_enough():
    inner = privacy.gaussian(4.0)
    least = privacy.selected(inner, mean_runs=10, eta="least")
    assert least.eta < 0
    assert 1 - chance_of_one(least.gamma, least.eta) >= 0.5
    assert least.epsilon(1e-6) <= privacy.selected(inner, mean_runs=10).epsilon(1e-6)
    rare = privacy.selected(inner, mean_runs=10, eta="least", repeats=0.1)
    assert rare.eta < least.eta
    assert rare.epsilon(1e-6) < least.epsilon(1e-6)
    for mistake in ({"eta": "best"}, {"eta": "least", "repeats": 1.5}, {"eta": "least", "repeats": 0.999}):
        with pytest.raises(errors.BadParameter):
            privacy.selected(inner, mean_runs=10, **mistake)
    with pytest.raises(errors.BadParameter, match="mean_runs"):
        privacy.selected(inner, gamma=0.1, eta="least")


@pytest.mark.parametrize(("gamma", "eta"), COUNTS)
def test_the_chance_of_one_run(gamma, eta):
    assert chance_of_one(gamma, eta) == pytest.approx(generating(1e-9, gamma, eta) / 1e-9, rel=1e-5)


def test_the_curve_of_a_composition_keeps_its_small_values():
    """As one pair a composition of rare steps has an error that outweighs its δ."""
    inner = 100 * privacy.gaussian(1.0).sampled(1e-3)
    best = privacy.selected(inner, mean_runs=10)
    assert inner.epsilon(1e-9) < best.epsilon(1e-9) < 2.5 * inner.epsilon(1e-10)


def test_bad_parameters_are_refused():
    pure = privacy.pure(1.0)
    for bad in (1, 1.0, 0, -3, math.nan, math.inf, "10", True, 1e300):
        with pytest.raises(errors.BadParameter):
            privacy.selected(pure, mean_runs=bad)
    for bad in (0, 1, -0.1, math.nan, "x", 1e-200):
        with pytest.raises(errors.BadParameter):
            privacy.selected(pure, gamma=bad)
    for call in (
        lambda: privacy.selected(pure),
        lambda: privacy.selected(pure, mean_runs=10, gamma=0.1),
        lambda: privacy.selected(pure, mean_runs=10, eta=-1),
        lambda: privacy.selected(1.0, mean_runs=10),
        privacy.one_of,
        lambda: privacy.one_of(pure, 2.0),
    ):
        with pytest.raises(errors.BadParameter):
            call()
    with pytest.raises(errors.UnitMismatch):
        privacy.one_of(pure, privacy.pure(1.0, relation="replace"))


def test_a_selection_shows_the_call_that_makes_it():
    assert repr(privacy.selected(privacy.pure(1.0), gamma=0.1)) == "selected(pure(epsilon=1.0), gamma=0.1)"
    assert (
        repr(privacy.selected(privacy.pure(1.0), gamma=0.1, eta=1))
        == "selected(pure(epsilon=1.0), gamma=0.1, eta=1.0)"
    )
