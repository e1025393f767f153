# SPDX-License-Identifier: Apache-2.0
"""Rényi curves of tables, also of those that may reveal everything; and the exact conversion near order 1."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet import privacy
from discreet.ledger.pricing import DeltaAccount, Track, cost_rows
from discreet.privacy import divergences
from discreet.privacy.bag import Bag

ROOM = DeltaAccount(Fraction(1, 10**7), Fraction(1, 10**7))


def losing(p, q, lost):
    """Two tables that each have mass `lost` where the other has none."""
    p, q = np.array(p) * (1 - lost), np.array(q) * (1 - lost)
    return [*p.tolist(), lost, 0.0], [*q.tolist(), 0.0, lost]


def exact_divergence(p, q, order):
    """D_order of two distributions, in fifty digits."""
    with mpmath.workdps(50):
        terms = [
            mpmath.mpf(a) ** order * mpmath.mpf(b) ** (1 - order) for a, b in zip(p, q, strict=True) if a > 0
        ]
        return float(mpmath.log(mpmath.fsum(terms)) / (order - 1))


def distributions(seed, size=4):
    """Two distributions on a few outcomes, the same ones each time."""
    shapes = [[math.exp(math.sin(seed * 7.3 + 3 * n * (1 + side))) for n in range(size)] for side in (0, 1)]
    return [[value / sum(shape) for value in shape] for shape in shapes]


@pytest.mark.parametrize("order", [1.0001, 1.5, 2.0, 24.53, 500.0, 1e8])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.01, 0.5, 1.0, 5.0, 100.0, 1e4])
def test_bounded_range_is_charged_its_worst_pair(epsilon, order):
    """Never below the worst of the pairs with losses t and t - ε, and for losses that matter no more than it."""
    with mpmath.workdps(60):
        e, k = mpmath.mpf(epsilon), mpmath.mpf(order) - 1

        def divergence(t):
            p = (mpmath.exp(e) - mpmath.exp(t)) / mpmath.expm1(e)
            return mpmath.log(p * mpmath.exp(k * t) + (1 - p) * mpmath.exp(k * (t - e))) / k

        best = mpmath.log(k / (k + 1) * (mpmath.exp(e) - mpmath.exp(-k * e)) / -mpmath.expm1(-k * e))
        worst = max(divergence(t) for t in (best, *(e * part / 100 for part in range(1, 100))))
        assert 0 < best < e
        charged = mpmath.mpf(privacy.exponential(epsilon).renyi(order))
        assert worst <= charged <= worst * (1 + mpmath.mpf("1e-3" if epsilon * order < 1 else "1e-6"))
    assert privacy.exponential(epsilon).renyi(order) <= order * epsilon**2 / 8 * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_random_exponential_mechanisms_cost_no_more_than_their_range(seed):
    """P ∝ e^{ε·u/2}, Q the same with scores that moved by 1 at most, by brute force over all orders of interest."""
    rng = np.random.default_rng(seed)
    epsilon, scores = rng.uniform(0.05, 3), rng.uniform(-3, 3, 5)
    p, q = (np.exp(epsilon / 2 * of) for of in (scores, scores + rng.uniform(-1, 1, 5)))
    p, q = p / p.sum(), q / q.sum()
    for order in (1.5, 2.0, 8.0, 24.53, 100.0):
        assert exact_divergence(p, q, order) <= privacy.exponential(epsilon).renyi(order) * (1 + 1e-12)


@pytest.mark.parametrize("lost", [0.0, 1e-17, 1e-6, 0.01, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_lost_has_the_divergence_of_the_rest(seed, lost):
    p, q = distributions(seed)
    tables = privacy.pair(*losing(p, q, lost))
    (part,) = [part for part, _ in tables.bags()[0]]
    assert part.failure == pytest.approx(lost, rel=1e-12)
    for order in (1.01, 1.5, 2.0, 8.0, 40.0):
        exact = max(exact_divergence(p, q, order), exact_divergence(q, p, order))
        found = part.divergence(order)
        assert exact * (1 - 1e-13) <= found <= exact * (1 + 1e-9) + 1e-14
    assert (tables.renyi(2.0) == math.inf) == (lost > 0)


@pytest.mark.parametrize("lost", [0.0, 1e-9, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_rho_is_the_least_that_holds_at_every_order(seed, lost):
    p, q = distributions(seed, size=3)
    ((part, _),) = privacy.pair(*losing(p, q, lost)).bags()[0]
    xi, rho = part.concentration()
    orders = 1 + np.geomspace(1e-5, 1e3, 300)
    ratios = [max(exact_divergence(p, q, o), exact_divergence(q, p, o)) / o for o in orders.tolist()]
    assert xi == 0
    assert max(ratios) <= rho <= max(ratios) * 1.002
    assert rho <= divergences.concentrated_of_pure(part.worst_loss()) * (1 + 1e-12)


def test_rho_of_randomized_response_is_the_known_one():
    """Its supremum lies at order 1: the Kullback-Leibler divergence ε·tanh(ε/2)."""
    for epsilon in (0.01, 1.0, 5.0):
        heads = 1 / (1 + math.exp(-epsilon))
        ((part, _),) = privacy.pair([heads, 1 - heads], [1 - heads, heads]).bags()[0]
        assert part.concentration()[1] == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-3)


#: Mostly the same, and a great loss that is rare: its curve lies far below what that loss alone would allow.
RARE = [0.96, 0.038, 0.002], [0.96, 0.002, 0.038]


def test_tables_that_lose_different_masses_keep_to_the_greatest_loss():
    """The rest of one distribution is then a larger share of it than of the other, and its losses are not those of the tables."""
    p, q = losing(*RARE, 0.03)
    q[0], q[-1] = q[0] + 0.001, q[-1] - 0.001
    ((part, _),) = privacy.pair(p, q).bags()[0]
    worst = part.worst_loss()
    assert part.divergence(3.0) == divergences.of_pure(worst, 3.0)
    assert part.concentration()[1] == pytest.approx(divergences.concentrated_of_pure(worst))
    ((alike, _),) = privacy.pair(*losing(*RARE, 0.03)).bags()[0]
    assert alike.divergence(3.0) < divergences.of_pure(worst, 3.0) / 2


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_every_route_stays_above_the_exact_curve_of_tables_that_lose(relation):
    p, q = losing([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 1e-3)
    tables = privacy.pair(p, q, relation=relation)
    for count in (1, 4):
        run = count * tables
        bag = Bag(list(run.bags()[0]))
        for epsilon in (0.5, 1.0, 2.5):
            exact = _profile(p, q, count, epsilon)
            for order in (1.5, 3.0, 9.0):
                rest = math.exp(divergences.optimal_log_delta(bag.renyi(order), order, epsilon))
                assert exact <= (bag.failure + (1 - bag.failure) * rest) * (1 + 1e-9)
            assert exact <= run.delta(epsilon) * (1 + 1e-9)


def _profile(p, q, count, epsilon):
    first, second = np.ones(1), np.ones(1)
    for _ in range(count):
        first, second = np.outer(first, p).ravel(), np.outer(second, q).ravel()
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def test_a_group_of_what_may_be_lost_does_not_use_the_curve_of_the_rest():
    """From neighbour to neighbour other outcomes are lost, so the rests do not chain; the greatest losses do."""
    worst = 3 * math.log(19)
    ((group, _),) = privacy.pair(*losing(*RARE, 1e-6)).group(3).bags()[0]
    assert group.concentration()[1] >= divergences.concentrated_of_pure(worst) * (1 - 1e-12)
    assert group.divergence(2.0) >= divergences.of_pure(worst, 2.0) * (1 - 1e-12)
    ((whole, _),) = privacy.pair(*RARE).group(3).bags()[0]
    assert whole.concentration()[1] < divergences.concentrated_of_pure(worst) / 2


def test_what_may_be_lost_is_charged_to_delta_and_the_rest_to_the_track():
    p, q = distributions(1)
    lanes = (Track("renyi", 1, 8.0),)
    plain = cost_rows(privacy.pair(*losing(p, q, 1e-12)), lanes, ROOM)[0]
    assert plain.name == "plain"
    assert float(plain.amounts["delta"]) == pytest.approx(1e-12, rel=1e-9)
    exact = max(exact_divergence(p, q, 8.0), exact_divergence(q, p, 8.0))
    assert exact <= float(plain.amounts["renyi 8.0"]) <= exact * (1 + 1e-9)


# --- the exact conversion -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("divergence", "order", "log_delta"),
    [
        (0.0001, 1.01, -5),
        (0.5, 1.02, -5),
        (4, 1.01, -0.1),
        (20, 1.01, -5),
        (100, 1.02, -5),
        (4, 1.3, -5),
        (0.5, 8, -9),
    ],
)
def test_near_order_one_the_conversion_is_exact_too(divergence, order, log_delta):
    """The worst pair has two outcomes: here it is searched for among all of them, q = e^-s."""
    found = divergences.optimal_epsilon(divergence, order, log_delta)
    worst = max(_epsilon_at(s, divergence, order, math.exp(log_delta)) for s in np.geomspace(1e-6, 700, 1500))
    assert worst * (1 - 1e-9) <= found <= worst * 1.01 + 1e-4


def _epsilon_at(s, divergence, order, delta):
    """ε of the pair (p, q) with q = e^-s and D_order = divergence: p - e^ε·q = δ."""
    low, high = -s, -1e-15
    other = (1 - order) * math.log(-math.expm1(-s))
    for _ in range(100):
        log_p = (low + high) / 2
        value = np.logaddexp(order * log_p + (order - 1) * s, order * math.log(-math.expm1(log_p)) + other)
        low, high = (log_p, high) if value <= (order - 1) * divergence else (low, log_p)
    p = math.exp(low)
    return math.log(p - delta) + s if p > delta else 0.0


@pytest.mark.parametrize("above_one", [1e-6, 1e-3, 0.5, 10.0, 1e5])
@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.3, 1.0, 30.0])
def test_curves_of_pure_noise_are_never_too_low(epsilon: float, above_one: float) -> None:
    """Near order 1 two terms nearly cancel, and what is left is divided by next to nothing."""
    order = 1 + above_one
    with mpmath.workdps(60):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        pure = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)
        up, down = a * mpmath.exp((a - 1) * e), (a - 1) * mpmath.exp(-a * e)
        laplace = mpmath.log((up + down) / (2 * a - 1)) / (a - 1)
        assert pure <= divergences.of_pure(epsilon, order) <= pure * (1 + mpmath.mpf("1e-8"))
        assert laplace <= divergences.of_laplace(epsilon, order) <= laplace * (1 + mpmath.mpf("1e-5"))
