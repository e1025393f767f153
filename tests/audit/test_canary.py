# SPDX-License-Identifier: Apache-2.0
"""One run with canaries: the tail is never below the exact worst case, and the bound covers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from discreet import privacy
from discreet.audit import one_run
from discreet.audit.canary import _epsilon_bound, _liftable_mass, tail
from discreet.errors import BadParameter


def worst_case(canaries, guesses, right, epsilon, delta):
    """max P(W >= right) over all (ε, δ)-DP maps from coins to guesses: a linear program.

    What a map does beyond its guesses is post-processed away, so its outputs are the guesses. Variables: P(t | s) for
    every s and t, and for every ordered pair of neighbours the excess of each outcome.
    """
    coins = list(itertools.product((-1, 1), repeat=canaries))
    outputs = [t for t in itertools.product((-1, 0, 1), repeat=canaries) if sum(map(abs, t)) == guesses]
    near = [
        (a, b)
        for a, s in enumerate(coins)
        for b, u in enumerate(coins)
        if sum(x != y for x, y in zip(s, u, strict=True)) == 1
    ]
    distribution, size = len(coins) * len(outputs), len(outputs)
    total = distribution + len(near) * size
    upper, limits = lil_matrix((len(near) * (size + 1), total)), np.zeros(len(near) * (size + 1))
    for n, (a, b) in enumerate(near):
        for o in range(size):
            row = n * (size + 1) + o
            upper[row, a * size + o], upper[row, b * size + o] = 1, -math.exp(epsilon)
            upper[row, distribution + n * size + o] = -1
            upper[n * (size + 1) + size, distribution + n * size + o] = 1
        limits[n * (size + 1) + size] = delta
    sums = lil_matrix((len(coins), total))
    for a in range(len(coins)):
        sums[a, a * size : (a + 1) * size] = 1
    gain = np.zeros(total)
    for a, s in enumerate(coins):
        for o, t in enumerate(outputs):
            gain[a * size + o] = -(sum(x * y > 0 for x, y in zip(s, t, strict=True)) >= right) / len(coins)
    done = linprog(
        gain, A_ub=upper.tocsr(), b_ub=limits, A_eq=sums.tocsr(), b_eq=np.ones(len(coins)), method="highs"
    )
    assert done.success
    _is_private(done.x[:distribution].reshape(len(coins), size), near, epsilon, delta)
    return -done.fun


def _is_private(distributions, near, epsilon, delta):
    """The solution is what it is meant to be: distributions that are (ε, δ)-close for every pair of neighbours."""
    assert np.allclose(distributions.sum(axis=1), 1)
    for a, b in near:
        assert np.maximum(distributions[a] - math.exp(epsilon) * distributions[b], 0).sum() <= delta + 1e-7


CASES = [(1, 1), (2, 2), (2, 1), (3, 3), (3, 2)]


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1])
@pytest.mark.parametrize(("canaries", "guesses"), CASES)
def test_the_tail_is_never_below_the_exact_worst_case(canaries, guesses, delta):
    for epsilon in (0.0, 0.5, 1.5):
        for right in range(1, guesses + 1):
            worst = worst_case(canaries, guesses, right, epsilon, delta)
            assert tail(canaries, guesses, right, epsilon, delta) >= worst - 1e-7


def circulating_tail(canaries, guesses, right, epsilon, delta):
    """The binomial tail plus 2mδ·max_i P(v - i <= B < v)/i."""
    rate = 1 / (1 + math.exp(-epsilon))
    reach = np.arange(1, right + 1)
    masses = stats.binom.cdf(right - 1, guesses, rate) - stats.binom.cdf(right - reach - 1, guesses, rate)
    return stats.binom.sf(right - 1, guesses, rate) + 2 * canaries * delta * (masses / reach).max()


def test_a_correction_that_is_in_circulation_is_no_bound_for_few_canaries():
    worst = worst_case(3, 3, 1, 0.0, 0.1)
    assert worst == pytest.approx(0.9625)
    assert circulating_tail(3, 3, 1, 0.0, 0.1) == pytest.approx(0.95)
    assert tail(3, 3, 1, 0.0, 0.1) >= worst


@pytest.mark.parametrize("budget", [0.0, 1e-3, 0.05, 0.4, 5.0])
def test_the_budget_lifts_the_cheapest_mass_first(budget):
    masses = stats.binom.pmf(np.arange(6, -1, -1), 10, 0.6)
    costs = np.arange(1, 8)
    best = linprog(-np.ones(7), A_ub=[costs], b_ub=[budget], bounds=list(zip([0] * 7, masses, strict=True)))
    assert _liftable_mass(masses, budget) == pytest.approx(-best.fun, abs=1e-9)


@pytest.mark.parametrize(("canaries", "guesses"), CASES)
def test_without_delta_the_tail_is_the_worst_case(canaries, guesses):
    for right in range(1, guesses + 1):
        worst = worst_case(canaries, guesses, right, 1.0, 0.0)
        assert tail(canaries, guesses, right, 1.0, 0.0) == pytest.approx(worst, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("canaries", [5, 50, 400])
def test_the_bound_covers_randomized_response_by_exact_sums(canaries, epsilon):
    alpha = 0.05
    right = np.arange(canaries + 1)
    masses = stats.binom.pmf(right, canaries, 1 / (1 + math.exp(-epsilon)))
    bounds = np.array([_epsilon_bound(canaries, canaries, int(v), 0.0, alpha) for v in right])
    failing = masses[bounds > epsilon].sum()
    assert failing <= alpha
    assert (np.diff(bounds) >= 0).all()
    if canaries == 400:
        assert failing > alpha / 4  # and the bound gives away little


def test_a_leak_is_paid_for_by_delta():
    included = np.arange(400) % 2 == 0
    score = included * 1.0
    score[:4] = 1 - score[:4]
    sharp, eased = one_run(included, score, guesses=400), one_run(included, score, guesses=400, delta=1e-4)
    assert 0 < eased.epsilon_at_least < sharp.epsilon_at_least
    assert one_run(included, score, guesses=400, delta=0.1).epsilon_at_least == 0


def test_guesses_are_the_extremes_of_both_ends():
    included = np.array([True] * 5 + [False] * 5)
    report = one_run(included, np.arange(10, 0, -1), guesses=4)
    assert (report.tried, report.canaries) == (((4, 4),), 10)
    assert one_run(included, np.arange(10), guesses=4).tried == ((4, 0),)
    assert "4 of 4" in str(report)


def test_trying_several_sizes_costs_confidence():
    included = np.arange(1000) % 2 == 0
    score = included + np.zeros(1000)
    alone, tried = one_run(included, score, guesses=1000), one_run(included, score)
    assert tried.epsilon_at_least <= alone.epsilon_at_least
    assert tried.epsilon_at_least == pytest.approx(_epsilon_bound(1000, 1000, 1000, 0.0, 0.05 / 6), rel=1e-6)


def test_a_curve_is_refuted_at_its_best_point():
    included = np.arange(2000) % 2 == 0
    score = included + np.where(np.arange(2000) % 7 == 0, -2 * included + 1.0, 0.0)  # six of seven are right
    report = one_run(included, score, guesses=2000)
    assert report.refutes(privacy.pure(1.5))
    assert not report.refutes(privacy.pure(math.log(6)))
    assert report.refutes(privacy.gaussian(2.5))  # its best guess is right in 58 of 100 cases
    assert not report.refutes(privacy.gaussian(0.45))  # 87 of 100
    assert 0.4 < report.mu_at_least < 2 * stats.norm.ppf(6 / 7)
    assert one_run(included, np.zeros(2000)).mu_at_least == 0


def test_scores_without_meaning_are_no_guess_by_themselves():
    included = np.random.default_rng().random(200) < 0.5
    report = one_run(included, np.full(200, np.nan), confidence=1 - 1e-9)
    assert report.epsilon_at_least < 1


@pytest.mark.parametrize(
    ("included", "score", "settings", "code"),
    [
        ([1, 0], [1.0, 2.0], {}, "DP107"),
        ([True, False], [1.0], {}, "DP107"),
        ([True, False], [1.0, 2.0], {"guesses": 3}, "DP102"),
        ([True, False], [1.0, 2.0], {"guesses": 1.0}, "DP103"),
        ([True, False], [1.0, 2.0], {"delta": 1.0}, "DP102"),
        ([True, False], [1.0, 2.0], {"confidence": 1}, "DP102"),
    ],
)
def test_bad_canaries_are_refused(included, score, settings, code):
    with pytest.raises(BadParameter) as caught:
        one_run(included, score, **settings)
    assert caught.value.code == code
