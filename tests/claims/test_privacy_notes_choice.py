# SPDX-License-Identifier: Apache-2.0
"""The notes on choosing privately (noisy max, the auction, the exponential mechanism) and their summary, row by row.

A test is named by what it claims, and its docstring begins with its row in docs/notes.md. A statement
that is wrong as written is refuted by its counterexample, and the right one is checked beside it.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.mechanisms.choice import ExponentialMechanism, NoisyMax, PermuteAndFlip
from tests.finite import em_distribution, pf_distribution

# exact, since sums of floats move by more than their prices: 3 * 3.02 - 2 * 3.02 is 3.0200000000000005
PRICES = tuple(Fraction(cents, 100) for cents in (100, 101, 301, 302))
BIDS = (PRICES[0], PRICES[0], PRICES[0], PRICES[2])


def revenue(bids, price):
    return price * sum(bid >= price for bid in bids)


def first_of_two(lead, scale):
    """P(the first of two Laplace-noisy scores is the larger), the first being ahead by `lead`."""
    x = abs(lead) / float(scale)
    behind = (2 + x) * math.exp(-x) / 4
    return 1 - behind if lead >= 0 else behind


def test_noisy_max_with_one_over_epsilon_needs_monotone_scores() -> None:
    """Row 4.35: The notes add Lap(1/ε) to every count. That is ε-private for counts when somebody is added or removed.

    In general it is not: scores (0, 10) and (-1, 11) are neighbours, and the ratio is 6.333 > e.
    """
    noise = NoisyMax(epsilon=1, sensitivity=1, monotone=True)
    assert noise.scale == 1
    ratio = first_of_two(-10, noise.scale) / first_of_two(-12, noise.scale)
    assert ratio == pytest.approx(6.333, abs=1e-3)
    assert ratio > math.e
    counts = [(a, b) for a in range(12) for b in range(12)]
    losses = [
        abs(math.log(first_of_two(a - b, noise.scale) / first_of_two(a + i - b - j, noise.scale)))
        for a, b in counts
        for i, j in ((0, 1), (1, 0), (1, 1))
    ]
    assert 0.9 < max(losses) <= 1
    general = NoisyMax(epsilon=1, sensitivity=1)
    assert general.scale == 2
    assert first_of_two(-10, general.scale) / first_of_two(-12, general.scale) <= math.e


def test_the_revenue_of_the_auction_jumps_with_the_price() -> None:
    """Row 4.36: Bids of 1, 1, 1 and 3.01: the revenue is 4 at price 1, 1.01 at 1.01, 3.01 at 3.01,
    and nothing at 3.02."""
    assert [revenue(BIDS, price) for price in PRICES] == [4, PRICES[1], PRICES[2], 0]


def test_the_revenue_is_stable_and_the_best_price_is_not() -> None:
    """Row 4.37: One bid moves the revenue of a price by that price at most, and moves the best price
    from 1 to 3.01."""
    grid = (0, *PRICES)
    moves = [
        abs(revenue(bids, price) - revenue(bids[1:], price))
        for bids in itertools.product(grid, repeat=3)
        for price in PRICES
    ]
    assert max(moves) == max(PRICES)
    best = [max(PRICES, key=lambda price, b=bids: revenue(b, price)) for bids in (BIDS, BIDS[1:])]
    assert best == [1, PRICES[2]]


def test_the_exponential_mechanism_chooses_from_a_range() -> None:
    """Row 4.38: A range, a score for each member, and the aim of a large score: the value is a member
    of the range."""
    auction = ExponentialMechanism(epsilon=1, sensitivity=max(PRICES), candidates=PRICES)
    assert auction([revenue(BIDS, price) for price in PRICES]).value in PRICES


def test_weight_exp_epsilon_u_over_delta_is_two_epsilon_private() -> None:
    """Row 4.39: Tight in general (7.38901 of e² = 7.38906), ε-private for monotone scores, and
    2ε-bounded range."""
    plain = ExponentialMechanism(
        epsilon=2, sensitivity=1
    )  # scale 1: the weight of the notes with their ε = 1
    assert plain.scale == 1
    one, other = (0, *[10] * 50), (1, *[9] * 50)
    ratio = em_distribution(other, plain.scale)[0] / em_distribution(one, plain.scale)[0]
    assert ratio == pytest.approx(7.38901, abs=1e-5)
    assert math.e < ratio < math.e**2
    monotone = ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True)
    assert monotone.scale == 1
    up = (1, *[10] * 50)
    assert em_distribution(up, 1)[0] / em_distribution(one, 1)[0] == pytest.approx(2.71828, abs=1e-4)
    assert em_distribution(up, 1)[0] / em_distribution(one, 1)[0] <= math.e
    assert plain.guarantee.concentrated() == pytest.approx(0.5)
    assert plain.guarantee.concentrated() < privacy.pure(2).concentrated()


def test_the_sensitivity_is_taken_over_neighbours() -> None:
    """Row 4.40: Over all pairs of data sets the revenue of a price can move by three prices; over
    neighbours by one."""
    small = list(itertools.product((0, 1, PRICES[3]), repeat=3))
    everywhere = max(abs(revenue(x, p) - revenue(y, p)) for x in small for y in small for p in PRICES)
    neighbours = max(abs(revenue(x, p) - revenue(x[1:], p)) for x in small for p in PRICES)
    assert everywhere == 3 * neighbours
    assert neighbours == max(PRICES)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_numerator_moves_by_e_to_the_epsilon(epsilon: float) -> None:
    """Row 4.41."""
    scale = 1 / epsilon  # of the notes: weight exp(ε u/Δ), Δ = 1
    for move in (-1.0, -0.4, 0.0, 1.0):
        assert math.exp((7 + move) / scale) <= math.exp(epsilon) * math.exp(7 / scale) * (1 + 1e-15)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_denominator_moves_by_e_to_the_epsilon(epsilon: float) -> None:
    """Row 4.42: With the Δ that the notes lose: Σ exp(ε u/Δ). Without it, Δ = 3 would give e^{3ε}."""
    scores, delta = np.array([0.0, 6.0, 9.0]), 3.0
    for move in itertools.product((-delta, 0.0, delta), repeat=3):
        ratio = np.exp(epsilon * (scores + move) / delta).sum() / np.exp(epsilon * scores / delta).sum()
        assert math.exp(-epsilon) * (1 - 1e-12) <= ratio <= math.exp(epsilon) * (1 + 1e-12)
    without = np.exp(epsilon * (scores + delta)).sum() / np.exp(epsilon * scores).sum()
    assert without == pytest.approx(math.exp(3 * epsilon))


def test_both_together_give_e_to_the_two_epsilon() -> None:
    """Row 4.43: e^ε·e^ε is e^{2ε}, and with many candidates nothing less will do."""
    ratios = [
        em_distribution((1, *[9] * count), 1)[0] / em_distribution((0, *[10] * count), 1)[0]
        for count in (1, 10, 1_000, 100_000)
    ]
    assert ratios == sorted(ratios)
    assert math.e**2 * (1 - 1e-6) < ratios[-1] <= math.e**2


@pytest.mark.parametrize("t", [0.5, 2.0, 5.0])
def test_the_chosen_score_is_close_to_the_best(t: float) -> None:
    """Row 4.44: P(u < OPT - (Δ/ε)(ln|R| + t)) <= e^{-t} for the weight exp(ε u/Δ); ours is sharper;
    permute-and-flip is better."""
    generator = np.random.default_rng(7)
    scale = 0.5
    for _ in range(200):
        scores = generator.integers(0, 12, size=generator.integers(2, 12)).astype(float)
        cut = scores.max() - scale * (math.log(scores.size) + t)
        assert em_distribution(scores, scale)[scores < cut].sum() <= math.exp(-t)
    ours = ExponentialMechanism(epsilon=1, sensitivity=1)
    assert ours.error(1 - math.exp(-t), candidates=9) < 2 * (math.log(9) + t)
    fixture = np.array([0, 1, 2.5, 3])
    behind = [
        3 - float(distribution(fixture, 2) @ fixture) for distribution in (pf_distribution, em_distribution)
    ]
    assert behind == pytest.approx([0.637, 0.757], abs=1e-3)
    assert PermuteAndFlip(epsilon=1, sensitivity=1).error(candidates=9) < ours.error(candidates=9)


def test_the_summary_repeats_noisy_max_the_exponential_mechanism_and_gaussian_noise() -> None:
    """Row 4.63: As rows 4.35 and 4.39; and Gaussian noise by the classic formula is too little at
    large ε."""
    assert NoisyMax(epsilon=1, sensitivity=1).guarantee.epsilon(delta=0) == 1
    assert ExponentialMechanism(epsilon=1, sensitivity=1).guarantee.epsilon(delta=0) == 1
    classic = math.sqrt(2 * math.log(1.25 / 0.1)) / 10
    assert privacy.gaussian(noise=classic).bound(epsilon=10).lower > 0.1


def test_the_deltas_of_the_parts_are_paid_for_too() -> None:
    """Row 4.64: k mechanisms of (ε₀, δ₀): the total δ is kδ₀ + δ′, at most, and without kδ₀ there is
    no finite ε."""
    count, delta = 20, 1e-4
    many = count * privacy.approximate(0.1, delta)
    assert many.epsilon(delta=0.5 * count * delta) == math.inf
    advanced = 0.1 * math.sqrt(2 * count * math.log(1 / 1e-3)) + count * 0.1 * math.expm1(0.1)
    assert many.epsilon(delta=count * delta + 1e-3) <= advanced


def test_the_weight_of_the_homework_prefers_the_worst_price() -> None:
    """Row 4.66: e^{ε - u/Δ} as written gives the worst price .425 and the best .113; it must be
    e^{ε·u/Δ}."""
    scores = np.array([float(revenue(BIDS, price)) for price in PRICES])
    written = np.exp(1 - scores / 3.02)
    written /= written.sum()
    assert written[np.argmin(scores)] == written.max() == pytest.approx(0.425, abs=1e-3)
    assert written[np.argmax(scores)] == written.min() == pytest.approx(0.113, abs=1e-3)
    right = em_distribution(scores, ExponentialMechanism(epsilon=2, sensitivity=max(PRICES)).scale)
    assert right[np.argmax(scores)] == right.max() == pytest.approx(0.424091140737, abs=1e-12)


def test_the_homework_states_the_accuracy_of_the_exponential_mechanism() -> None:
    """Row 4.67: On the auction, for every t: the revenue is below OPT - (Δ/ε)(ln 4 + t) with
    probability e^{-t} at most."""
    scores = np.array([float(revenue(BIDS, price)) for price in PRICES])
    distribution = em_distribution(scores, 0.1)
    for t in np.linspace(0, 30, 61):
        assert distribution[scores < 4 - 0.1 * (math.log(4) + t)].sum() <= math.exp(-t)
