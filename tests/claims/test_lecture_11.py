# SPDX-License-Identifier: Apache-2.0
"""Lecture 11 (concentrated and Rényi privacy, hypothesis testing): what it claims, checked row by row.

A test is named by what it claims, and its docstring begins with its row in docs/notes.md. A statement
that is wrong as written is refuted by its counterexample, and the right one is checked beside it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import cosh, erfc, exp, expm1, inf, log, mpf, ncdf, npdf, quad, sqrt, tanh, workdps

from discreet import errors, privacy
from tests import oracle


def _close(found: float, truth: float, digits: float = 1e-9) -> bool:
    return abs(found - truth) <= digits * abs(truth)


def _log_moment(guarantee: privacy.Guarantee, power: float) -> float:
    """log E[e^(power·L)], which is power times the Rényi divergence of order power + 1."""
    return power * guarantee.renyi(order=power + 1)


# --- concentrated privacy ---------------------------------------------------------------------------


def test_delta_is_an_expectation_over_the_loss() -> None:
    """Row 0.1: δ(ε) = E[(1 - e^(ε-L))₊]; where the neighbour has no mass the loss is +∞ and counts
    fully."""
    leaky = privacy.leaky_randomized_response(epsilon=1.0, delta=0.1)
    loss = leaky.loss()
    assert _close(loss.infinite, 0.1)
    for epsilon in (0.0, 0.5, 0.9, 1.5):
        expected = loss.infinite + np.sum(
            loss.masses * np.maximum(0, -np.expm1(epsilon - np.asarray(loss.losses)))
        )
        assert _close(leaky.delta(epsilon=epsilon), expected)


def test_losses_of_independent_parts_add() -> None:
    """Row 0.2."""
    part, whole = privacy.randomized_response(epsilon=0.5), 8 * privacy.randomized_response(epsilon=0.5)
    assert _close(whole.loss().mean, 8 * part.loss().mean)
    assert _close(whole.loss().variance, 8 * part.loss().variance)
    explicit = oracle.composed(*[oracle.randomized_response(0.5)] * 8)
    for epsilon in (0.0, 0.7, 2.0, 3.9):
        assert _close(whole.delta(epsilon=epsilon), oracle.delta_of(explicit, epsilon))


def test_the_central_limit_is_no_guarantee() -> None:
    """Row 0.3: A normal distribution with the right mean and variance guarantees less δ than ten answers really
    leak."""
    e0, k = mpf("0.5"), 10
    mean, deviation = k * e0 * tanh(e0 / 2), sqrt(k) * e0 / cosh(e0 / 2)
    epsilon = mean + deviation
    guaranteed = ncdf(-1) - exp(epsilon - mean + deviation**2 / 2) * ncdf(-deviation - 1)
    truth = oracle.optimal_composition(e0, 0, k, epsilon)
    assert guaranteed < truth
    assert (10 * privacy.pure(0.5)).delta(epsilon=float(epsilon)) >= truth * (1 - mpf("1e-9"))


def test_the_moment_bound_has_rho_not_its_inverse() -> None:
    """Row 0.4: log E[e^(λL)] ≤ λ(λ+1)ρ, with equality for the Gaussian; λ(λ+1)/ρ is broken by μ = 2."""
    one, two = privacy.gaussian(noise=1.0), privacy.gaussian(noise=0.5)
    assert _close(one.concentrated(), 0.5)
    assert _close(two.concentrated(), 2.0)
    for power in (0.5, 1.0, 3.0):
        assert _close(_log_moment(two, power), power * (power + 1) * 2.0)
    written = 1 * (1 + 1) / two.concentrated()
    assert _close(written, 1.0)
    assert _close(_log_moment(two, 1.0), 4.0)
    assert _log_moment(two, 1.0) > written


@pytest.mark.parametrize("power", [-2, -0.5, 0.25, 1, 3])
def test_the_moments_of_a_normal_variable(power: float) -> None:
    """Row 0.5."""
    with workdps(20):
        moment = quad(lambda x: exp(power * x) * npdf(x), [-inf, power, inf])
    assert abs(moment / exp(mpf(power) ** 2 / 2) - 1) < mpf("1e-15")


def test_a_moment_bound_of_that_form_needs_mean_zero() -> None:
    """Row 0.7: A constant 1 has the lightest tails there are, yet e^λ exceeds e^(K²λ²) for every K
    once λ < 1/K²."""
    for k in (1, 10, 1000):
        small = mpf(1) / (2 * k * k)
        assert exp(small) > exp(k * k * small * small)
    for t in (0.1, 1, 5):  # with mean zero the tail follows with K₁ = 2K₃; for N(0,1), K₃² = 1/2
        assert erfc(mpf(t) / sqrt(2)) <= 2 * exp(-(mpf(t) ** 2) / (4 * mpf("0.5")))


def test_the_power_in_markovs_inequality_depends_on_the_scale() -> None:
    """Row 0.8: λ = t/2 is right only for K₃ = 1; λ = t/(2K₃²) gives e^(-t²/4K₃²)."""
    k3, t = mpf(2), mpf(3)

    def bound(power: mpf) -> mpf:
        return exp(k3**2 * power**2 - power * t)

    assert _close(bound(t / 2), 90.017, 1e-4)  # more than one: it says nothing
    assert _close(bound(t / (2 * k3**2)), exp(-(t**2) / (4 * k3**2)))
    assert _close(bound(t / (2 * k3**2)), 0.5698, 1e-4)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_pure_privacy_is_concentrated(epsilon: float) -> None:
    """Row 0.9: ε²/2 holds; ε·tanh(ε/2) is better and cannot be improved: the divergence reaches it as
    the order falls to 1."""
    found = privacy.pure(epsilon).concentrated()
    assert found <= epsilon**2 / 2
    assert _close(found, epsilon * math.tanh(epsilon / 2))
    answer = oracle.randomized_response(epsilon)
    assert _close(oracle.renyi_of(answer, mpf("1.000001")), found, 1e-5)
    for order in (1.1, 2, 10, 100):
        assert oracle.renyi_of(answer, order) <= order * mpf(found) * (1 + mpf("1e-12"))


def test_concentrated_privacy_gives_approximate_privacy() -> None:
    """Row 0.10: ρ + 2√(ρ log 1/δ) is true; the conversion that is tight per order, and the exact
    Gaussian, are better."""
    half = privacy.concentrated(rho=0.5)
    assert _close(half.epsilon(delta=1e-6, route="zcdp"), 0.5 + 2 * math.sqrt(0.5 * math.log(1e6)))
    assert _close(half.epsilon(delta=1e-6, route="zcdp"), 5.756521769756932)
    assert _close(half.epsilon(delta=1e-6, route="zcdp tight"), 5.221534444530169)
    exact = privacy.gaussian(noise=1.0).epsilon(delta=1e-6)
    assert _close(exact, 4.8866, 1e-4)
    assert half.epsilon(delta=1e-6) > exact


@pytest.mark.parametrize(("sensitivity", "sigma"), [(1.0, 1.0), (2.0, 1.0), (3.0, 12.0)])
def test_the_gaussian_is_concentrated(sensitivity: float, sigma: float) -> None:
    """Row 0.11."""
    gaussian = privacy.gaussian(noise=sigma / sensitivity)
    assert _close(gaussian.concentrated(), sensitivity**2 / (2 * sigma**2))
    assert _close(gaussian.renyi(order=3.0), 3 * sensitivity**2 / (2 * sigma**2))


def test_pure_privacy_implies_half_the_square() -> None:
    """Row 0.12."""
    assert privacy.pure(0.5).implies(privacy.concentrated(rho=0.125))
    assert not privacy.pure(0.5).implies(privacy.concentrated(rho=0.1))


def test_concentrated_privacy_adds() -> None:
    """Row 0.13."""
    assert _close((100 * privacy.concentrated(rho=0.005)).concentrated(), 0.5)
    mixed = privacy.concentrated(rho=0.1) + 3 * privacy.concentrated(rho=0.25) + privacy.gaussian(noise=2.0)
    assert _close(mixed.concentrated(), 0.1 + 0.75 + 0.125)


def test_many_pure_mechanisms() -> None:
    """Row 0.14: ε√(2k log 1/δ) + kε²/2 = 5.7565 holds for a hundred 0.1-private answers; the optimum
    is 4.7746."""
    epsilon, count, delta = 0.1, 100, 1e-6
    written = epsilon * math.sqrt(2 * count * math.log(1 / delta)) + epsilon**2 * count / 2
    many = count * privacy.pure(epsilon)
    assert _close(written, 5.756521769756932)
    assert _close(
        written, (count * privacy.concentrated(rho=epsilon**2 / 2)).epsilon(delta=delta, route="zcdp")
    )
    assert _close(many.epsilon(delta=delta, route="optimal"), 4.774567588107986)
    assert _close(many.epsilon(delta=delta), 4.774567588107986)
    assert many.epsilon(delta=delta, route="zcdp") <= written
    assert _close(many.epsilon(delta=delta, route="advanced (notes)"), written)


# --- Rényi privacy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_renyi_privacy_is_a_moment_of_the_loss(order: float) -> None:
    """Row 0.15."""
    answer = privacy.randomized_response(epsilon=1.0)
    loss = answer.loss()
    moment = np.sum(loss.masses * np.exp((order - 1) * np.asarray(loss.losses)))
    assert _close(moment, math.exp((order - 1) * answer.renyi(order=order)))


def test_a_line_through_all_orders_is_concentrated_privacy() -> None:
    """Row 0.17."""
    line = privacy.concentrated(rho=0.3)
    assert all(_close(line.renyi(order=order), 0.3 * order) for order in (1.001, 2.0, 50.0, 1e4))
    assert _close(line.concentrated(), 0.3)
    two_orders = privacy.renyi_curve({2: 0.6, 8: 2.4})  # some orders are not all
    assert two_orders.concentrated() == math.inf


def test_gaussians_of_different_width_are_not_concentrated() -> None:
    """Row 0.18."""
    uneven = privacy.two_gaussians(shift=1.0, ratio=1.1)
    assert uneven.concentrated() == math.inf
    assert _close(uneven.renyi(order=3.0), 2.62707851061, 1e-11)
    by_quadrature = oracle.renyi_between(
        lambda x: npdf(x, 0, mpf("1.1")), lambda x: npdf(x, 1, 1), 3, [-30, -5, -2, 0, 2, 30]
    )
    assert _close(uneven.renyi(order=3.0), by_quadrature)
    last = 1.1**2 / (1.1**2 - 1)
    assert _close(last, 5.7619, 1e-5)
    assert uneven.renyi(order=last - 0.01) < math.inf
    assert uneven.renyi(order=last + 0.01) == math.inf


def test_the_divergence_has_a_logarithm() -> None:
    """Row 0.19: Without it two equal distributions would be at distance 1, and RR(1) at 2.0862 instead of
    0.7353."""
    answer = oracle.randomized_response(1)
    written = sum(p**2 / q for p, q in answer) / (2 - 1)
    assert _close(written, 2.0862, 1e-4)
    assert _close(privacy.randomized_response(epsilon=1.0).renyi(order=2.0), log(written))
    assert _close(log(written), 0.7353, 1e-4)
    same = privacy.pair([0.4, 0.6], [0.4, 0.6])
    assert sum(p**2 / q for p, q in oracle.atoms([0.4, 0.6], [0.4, 0.6])) == pytest.approx(1)
    assert same.renyi(order=2.0) == pytest.approx(0, abs=1e-12)


def test_the_bound_is_for_neighbours_only() -> None:
    """Row 0.20: Inputs that are two steps apart are further apart than ε."""
    gaussian = privacy.gaussian(noise=1.0)
    assert _close(gaussian.group(2).renyi(order=2.0), 4 * gaussian.renyi(order=2.0))


def test_concentrated_privacy_bounds_every_order() -> None:
    """Row 0.21."""
    for guarantee in (privacy.laplace(2.0), privacy.gaussian(3.0), privacy.randomized_response(epsilon=2.0)):
        rho = guarantee.concentrated()
        assert all(guarantee.renyi(order=a) <= a * rho * (1 + 1e-9) for a in (1.01, 1.5, 2.0, 10.0, 300.0))


@pytest.mark.parametrize(
    ("order", "basic", "improved", "optimal"),
    [(2, 0.2231, 0.0558, 0.02528), (8, 2.754e-5, 1.352e-6, 1.311e-6)],
)
def test_one_order_gives_approximate_privacy(
    order: float, basic: float, improved: float, optimal: float
) -> None:
    """Row 0.22: D ≤ ½ at one order: the δ at which each theorem guarantees ε = 2; the third is the
    least that is true."""
    point = privacy.renyi(order=order, epsilon=0.5)
    assert _close(basic, math.exp((order - 1) * (0.5 - 2)), 1e-3)
    for delta, route in ((basic, "renyi basic"), (improved, "renyi improved"), (optimal, "renyi optimal")):
        assert _close(point.epsilon(delta=delta, route=route), 2.0, 1e-3)
    assert point.delta(epsilon=2.0) <= optimal * 1.001
    assert _close(point.epsilon(delta=1e-6, route="renyi basic"), 0.5 + math.log(1 / 1e-6) / (order - 1))


def test_two_outcomes_reach_the_optimum() -> None:
    """Row 0.22: A pair of coins with D₂ = ½ that leaks .02528 at ε = 2, so no theorem can guarantee
    less."""
    best = mpf(0)
    for step in range(1, 400):
        q = mpf(step) / 10_000
        p = _largest_p(q, mpf("0.5"))
        best = max(best, p - exp(2) * q)
    assert _close(best, 0.02528, 1e-2)
    assert best <= privacy.renyi(order=2, epsilon=0.5).delta(epsilon=2.0)


def _largest_p(q: mpf, divergence: mpf) -> mpf:
    """The p with p²/q + (1-p)²/(1-q) = e^divergence, above q."""
    return q + sqrt(q * (1 - q) * expm1(divergence))


# --- hypothesis testing -----------------------------------------------------------------------------


def test_the_roc_curve_is_the_mirror_of_the_tradeoff() -> None:
    """Row 0.23."""
    for guarantee in (privacy.gaussian(1.0), privacy.laplace(1.0), privacy.randomized_response(epsilon=1.0)):
        roc = guarantee.roc()
        for alarm, detection in list(zip(roc.false_alarm, roc.detection, strict=True))[
            :: max(1, len(roc.detection) // 9)
        ]:
            assert abs(1 - detection - guarantee.tradeoff(false_alarm=float(alarm))) <= 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_randomized_response_has_the_trade_off_of_the_notes(epsilon: float) -> None:
    """Row 0.24."""
    answer = privacy.randomized_response(epsilon=epsilon)
    for alarm in (0.01, 0.2, 0.5, 0.9):
        expected = max(0, 1 - math.exp(epsilon) * alarm, math.exp(-epsilon) * (1 - alarm))
        assert _close(answer.tradeoff(false_alarm=alarm), expected)
    vertex = 1 / (1 + math.exp(epsilon))
    assert _close(answer.tradeoff(false_alarm=vertex), vertex)
    roc = answer.roc()
    expected = np.minimum(
        1, np.minimum(math.exp(epsilon) * roc.false_alarm, 1 - math.exp(-epsilon) * (1 - roc.false_alarm))
    )
    assert np.allclose(roc.detection, expected, rtol=0, atol=1e-9)


def test_the_leaky_mechanism() -> None:
    """Row 0.25: Says nothing, or everything with probability δ: (0, δ)-private, advantage δ."""
    leaky = privacy.leaky(delta=0.1)
    assert _close(leaky.advantage(), 0.1)
    assert leaky.epsilon(delta=0.1) == pytest.approx(0, abs=1e-9)
    assert leaky.epsilon(delta=0.099) == math.inf
    for alarm in (0.0, 0.05, 0.5, 0.95):
        assert _close(leaky.tradeoff(false_alarm=alarm), max(0, 0.9 - alarm))
    rows = [[0.9, 0, 0.1, 0], [0.9, 0, 0, 0.1]]
    assert all(math.isclose(sum(row), 1) for row in rows)
    assert _close(privacy.pair(*rows).delta(epsilon=3.0), leaky.delta(epsilon=3.0))


def test_the_leaky_answer_loses_a_factor() -> None:
    """Row 0.26: As written the second row sums to 1.0731; with the factor 1-δ it is the worst (ε, δ)
    mechanism."""
    tau, delta = 1.0, 0.1
    keep, flip = math.exp(tau) / (1 + math.exp(tau)), 1 / (1 + math.exp(tau))
    first = [keep * (1 - delta), flip * (1 - delta), delta, 0.0]
    written = [flip * (1 - delta), keep, 0.0, delta]
    assert _close(sum(written), 1.0731, 1e-4)
    with pytest.raises(errors.BadParameter):
        privacy.pair(first, written)
    right = privacy.pair(first, [flip * (1 - delta), keep * (1 - delta), 0.0, delta])
    named = privacy.leaky_randomized_response(epsilon=tau, delta=delta)
    worst = privacy.approximate(tau, delta)
    for alarm in (0.05, 0.3, 0.8):
        expected = max(0, 1 - delta - math.exp(tau) * alarm, math.exp(-tau) * (1 - delta - alarm))
        for guarantee in (right, named, worst):
            assert _close(guarantee.tradeoff(false_alarm=alarm), expected)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_laplace_noise_has_the_trade_off_of_the_notes(epsilon: float) -> None:
    """Row 0.27."""
    laplace = privacy.laplace(scale=1 / epsilon)
    low = math.exp(-epsilon) / 2
    pieces = {
        low / 2: 1 - math.exp(epsilon) * low / 2,
        (low + 0.5) / 2: math.exp(-epsilon) / (4 * (low + 0.5) / 2),
        0.7: math.exp(-epsilon) * 0.3,
    }
    for alarm, expected in pieces.items():
        assert _close(laplace.tradeoff(false_alarm=alarm), expected)
    assert _close(laplace.delta(epsilon=epsilon / 2), -math.expm1(-epsilon / 4))
    assert _close(laplace.advantage(), -math.expm1(-epsilon / 2))
    assert laplace.epsilon(delta=0.0) == pytest.approx(epsilon, rel=1e-12)
    assert _close(laplace.renyi(order=4.0), oracle.renyi_laplace(1 / mpf(1 / epsilon), 4))
