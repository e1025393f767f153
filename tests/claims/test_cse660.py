# SPDX-License-Identifier: Apache-2.0
"""The CSE660 slides (composition, the Gaussian mechanism, Rényi and concentrated privacy), row by row.

A test is named by what it claims, and its docstring begins with its row in docs/notes.md. A statement
that is wrong as written is refuted by its counterexample, and the right one is checked beside it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mpmath import exp, factorial, log, mpf, ncdf, sqrt

import discreet as dp
from discreet import errors, privacy
from tests import oracle


def _close(found: float, truth: float, digits: float = 1e-9) -> bool:
    return abs(found - truth) <= digits * abs(truth)


def test_the_definition_holds_for_every_set_of_outcomes() -> None:
    """Row 1.1: δ(ε) is the greatest P(S) - e^ε Q(S) over all sets S, in either direction: here all 16
    are tried."""
    p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.2, 0.35, 0.25]
    sets = [s for size in range(5) for s in itertools.combinations(range(4), size)]
    for epsilon in (0.0, 0.3, 1.0):
        gap = max(
            math.fsum(a[i] for i in s) - math.exp(epsilon) * math.fsum(b[i] for i in s)
            for s in sets
            for a, b in ((p, q), (q, p))
        )
        assert _close(privacy.pair(p, q).delta(epsilon=epsilon), gap)


def test_pure_privacy_adds() -> None:
    """Row 1.2."""
    parts = [0.1, 0.25, 1.5, 3.0]
    whole = sum(map(privacy.pure, parts[1:]), start=privacy.pure(parts[0]))
    assert _close(whole.epsilon(delta=0.0), sum(parts))
    assert _close(whole.epsilon(delta=0.0, route="basic"), sum(parts))
    assert whole.epsilon(delta=1e-3) < sum(parts)


def test_deltas_add_but_less_suffices() -> None:
    """Row 1.3: (Σε, Σδ) is true; 1 - Π(1-δ) is what really leaks."""
    ten = 10 * privacy.approximate(0.5, 0.01)
    assert ten.epsilon(delta=0.1, route="basic") == pytest.approx(5.0, rel=1e-9)
    assert _close(ten.delta(epsilon=5.0), 1 - 0.99**10)
    assert ten.delta(epsilon=5.0) < 0.1


def test_advanced_composition_needs_no_small_count() -> None:
    """Row 1.4: A hundred 0.1-private mechanisms at δ = 1e-6: basic 10, advanced 6.308, optimal 4.775.

    The slides ask for k < 1/ε; here k = 100 > 10, and the explicit theorem still holds.
    """
    epsilon, count, delta = 0.1, 100, 1e-6
    many = count * privacy.pure(epsilon)
    drv = epsilon * math.sqrt(2 * count * math.log(1 / delta)) + count * epsilon * math.expm1(epsilon)
    assert _close(drv, 6.308, 1e-4)
    assert _close(many.epsilon(delta=delta, route="advanced"), drv)
    assert _close(many.epsilon(delta=delta, route="basic"), 10.0)
    assert _close(many.epsilon(delta=delta, route="optimal"), 4.774567588107986)
    truth = oracle.epsilon_of(lambda e: oracle.optimal_composition(epsilon, 0, count, e), delta)
    for row in many.compare(delta=delta):
        assert row.upper >= truth * (1 - mpf("1e-9")), f"{row.route} promises too much"
    assert {"basic", "advanced", "advanced (notes)", "optimal"} <= {
        row.route for row in many.compare(delta=delta)
    }


@pytest.mark.parametrize("n", [10**4, 10**6])
def test_how_many_questions_at_the_accuracy_of_sampling(n: int) -> None:
    """Row 1.5: A mean of n people has sensitivity 1/n. With noise 1/√n: √n questions at pure ε = 1, n
    at ρ = ½."""
    noise = n**-0.5
    pure = round(n**0.5) * privacy.laplace(scale=noise * n)
    assert _close(pure.epsilon(delta=0.0), 1.0)
    concentrated = n * privacy.gaussian(noise=noise * n)
    assert _close(concentrated.concentrated(), 0.5)
    assert concentrated.epsilon(delta=1e-6) < 5


def _textbook_noise(epsilon: float, delta: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_the_textbook_gaussian_needs_a_small_epsilon(delta: float) -> None:
    """Row 1.6."""
    for epsilon in (0.01, 0.3, 1.0):
        assert privacy.gaussian(_textbook_noise(epsilon, delta)).delta(epsilon=epsilon) <= delta
    first_violation = {1e-2: 6.78, 1e-5: 8.42, 1e-9: 9.63}[delta]
    for epsilon, holds in ((first_violation - 0.01, True), (first_violation, False)):
        guarantee = privacy.gaussian(_textbook_noise(epsilon, delta))
        assert (guarantee.bound(epsilon=epsilon).lower <= delta) is holds


def test_the_least_noise_is_less_than_the_textbook_says() -> None:
    """Row 1.6."""
    least = dp.calibrate(privacy.gaussian, to=privacy.approximate(1.0, 1e-5))
    assert _close(least, 3.7306, 1e-4)
    assert _close(_textbook_noise(1.0, 1e-5), 4.8448, 1e-4)
    assert privacy.gaussian(least).delta(epsilon=1.0) <= 1e-5


def test_the_theorem_without_a_condition_is_false() -> None:
    """Row 1.7: At ε = 20, δ = 1e-5 the textbook noise leaks δ = 1.53e-3, a hundred and fifty times
    the guarantee."""
    claimed = privacy.gaussian(_textbook_noise(20.0, 1e-5))
    bound = claimed.bound(epsilon=20.0)
    assert _close(bound.lower, 1.53e-3, 1e-2)
    assert bound.lower > 100 * 1e-5
    assert not claimed.implies(privacy.approximate(20.0, 1e-5))


def test_the_gaussian_loss_has_no_bound() -> None:
    """Row 1.9."""
    gaussian = privacy.gaussian(1.0)
    assert gaussian.epsilon(delta=0.0) == math.inf
    assert all(gaussian.bound(epsilon=epsilon).lower > 0 for epsilon in (1.0, 10.0, 30.0))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_expected_loss_is_second_order(epsilon: float) -> None:
    """Row 1.10."""
    mean = privacy.randomized_response(epsilon=epsilon).loss().mean
    assert _close(mean, epsilon * math.tanh(epsilon / 2))
    assert mean <= epsilon**2 / 2 <= epsilon * math.expm1(epsilon)
    if epsilon == 1.0:
        assert _close(mean, 0.46212, 1e-4)
        assert _close(epsilon * math.expm1(epsilon), 1.71828, 1e-5)


def test_exchanging_the_inputs_changes_the_sign_of_the_loss() -> None:
    """Row 1.11."""
    p, q = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    there, back = privacy.pair(p, q), privacy.pair(q, p)
    for order in (2.0, 5.0):
        assert _close(there.renyi(order=order), back.renyi(order=order))
    assert _close(there.epsilon(delta=0.0), max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True)))
    losses = np.asarray(privacy.randomized_response(epsilon=1.5).loss().losses)
    assert np.max(np.abs(losses)) == pytest.approx(1.5)


def test_an_approximate_mechanism_as_a_mixture() -> None:
    """Row 1.12: (1-δ) of a pure pair and δ of anything at all is (ε, δ)-private; disjoint parts reach
    it."""
    pure, delta = oracle.randomized_response(0.7, 4), mpf("0.05")
    rests = [[(1, 0), (0, 1)], [(mpf("0.5"), mpf("0.5")), (mpf("0.5"), mpf("0.5"))]]
    for rest in rests:
        mixed = [((1 - delta) * p, (1 - delta) * q) for p, q in pure] + [
            (delta * p, delta * q) for p, q in rest
        ]
        assert oracle.delta_of(mixed, mpf("0.7")) <= delta
    reached = [((1 - delta) * p, (1 - delta) * q) for p, q in pure] + [(delta, 0), (0, delta)]
    assert oracle.delta_of(reached, mpf("0.7")) == delta


def test_a_tail_bound_is_stronger_than_approximate_privacy() -> None:
    """Row 1.13: RR(1) is (0.9, 0.0696)-private although its loss exceeds 0.9 always."""
    answer = privacy.randomized_response(epsilon=1.0)
    loss = answer.loss()
    beyond = math.fsum(np.asarray(loss.masses)[np.abs(np.asarray(loss.losses)) > 0.9])
    assert _close(beyond, 1.0)
    assert _close(answer.delta(epsilon=0.9), 0.0696, 1e-3)
    tail = ncdf(mpf("0.5") - 1)  # the Gaussian's loss is N(1/2, 1)
    assert _close(tail, 0.3085, 1e-3)
    assert _close(privacy.gaussian(1.0).delta(epsilon=1.0), 0.1269, 1e-3)
    converse = privacy.gaussian(1.0).delta(epsilon=1.0) / -math.expm1(-1.0)
    assert _close(ncdf(mpf("0.5") - 2), 0.0668, 1e-3)
    assert ncdf(mpf("0.5") - 2) <= converse
    assert _close(converse, 0.2008, 1e-3)


def _moments(around: float = 0.0, powers: int = 40) -> list[mpf]:
    """E[(L - around)^n] of the loss of RR(1), from the library's own loss distribution."""
    loss = privacy.randomized_response(epsilon=1.0).loss()
    pairs = list(zip(map(mpf, map(float, loss.losses)), map(mpf, map(float, loss.masses)), strict=True))
    return [sum((mass * (value - around) ** n for value, mass in pairs), mpf(0)) for n in range(powers)]


def test_raw_moments_are_not_central_moments() -> None:
    """Row 1.14: E[Xⁿ] are raw moments: the first is the mean. The first central moment is zero, the
    second the variance."""
    loss = privacy.randomized_response(epsilon=1.0).loss()
    raw, central = _moments(), _moments(around=loss.mean)
    assert _close(raw[1], loss.mean)
    assert abs(central[1]) < 1e-12
    assert _close(central[2], loss.variance)
    assert not _close(raw[2], loss.variance, 0.1)


def test_the_moment_series_needs_raw_moments() -> None:
    """Row 1.15."""
    loss, power = privacy.randomized_response(epsilon=1.0).loss(), mpf("1.5")

    def series(moments: list[mpf]) -> mpf:
        return sum((power**n * moment / factorial(n) for n, moment in enumerate(moments)), mpf(0))

    truth = exp(power * privacy.randomized_response(epsilon=1.0).renyi(order=2.5))
    assert _close(series(_moments()), truth)
    assert not _close(series(_moments(around=loss.mean)), truth, 0.1)


@pytest.mark.parametrize("order", [1.1, 2.0, 16.0])
def test_the_renyi_divergence(order: float) -> None:
    """Row 1.16."""
    table = ([0.5, 0.3, 0.2], [0.25, 0.25, 0.5])
    forth, back = oracle.atoms(*table), oracle.swapped(oracle.atoms(*table))
    truth = max(oracle.renyi_of(forth, order), oracle.renyi_of(back, order))
    assert _close(privacy.pair(*table).renyi(order=order), truth)


def test_the_moment_needs_the_logarithm_of_the_ratio() -> None:
    """Row 1.17: For RR(1) at order 2: with the ratio itself 11.467, with its logarithm 2.0862 = e^D."""
    answer = oracle.randomized_response(1)
    written = sum(p * exp(p / q) for p, q in answer)
    right = sum(p * exp(log(p / q)) for p, q in answer)
    assert _close(written, 11.467, 1e-3)
    assert _close(right, 2.0862, 1e-4)
    assert _close(math.exp(privacy.randomized_response(epsilon=1.0).renyi(order=2.0)), right)


def test_renyi_privacy_has_no_upper_limit() -> None:
    """Row 1.18."""
    assert _close(privacy.renyi(order=2, epsilon=3.0).renyi(order=2.0), 3.0)
    assert privacy.gaussian(0.25).renyi(order=2.0) > 1


def test_concentrated_privacy_has_no_upper_limit() -> None:
    """Row 1.19."""
    assert _close(privacy.concentrated(rho=7.0).concentrated(), 7.0)
    assert privacy.gaussian(0.25).concentrated() > 1


def test_concentrated_privacy_of_a_group_grows_with_its_square() -> None:
    """Row 1.20: zCDP of k people is k²ρ, not kρ; a Gaussian is simply k times further away."""
    assert _close(privacy.concentrated(rho=0.1).group(3).concentrated(), 0.9)
    near, far = privacy.gaussian(6.0).group(3), privacy.gaussian(2.0)
    assert _close(near.concentrated(), far.concentrated())
    assert _close(near.epsilon(delta=1e-6), far.epsilon(delta=1e-6))


def test_post_processing_is_free() -> None:
    """Row 1.20: Merging outcomes never raises δ: every way to merge five outcomes into fewer is
    tried."""
    p, q = [0.4, 0.25, 0.2, 0.1, 0.05], [0.1, 0.3, 0.05, 0.25, 0.3]
    whole = privacy.pair(p, q)
    for labels in itertools.product(range(2), repeat=4):
        cells = [[i for i, label in enumerate((0, *labels)) if label == wanted] for wanted in (0, 1)]
        merged = [[math.fsum(row[i] for i in cell) for cell in cells] for row in (p, q)]
        for epsilon in (0.0, 0.5, 1.0):
            assert privacy.pair(*merged).bound(epsilon=epsilon).lower <= whole.delta(epsilon=epsilon)


def test_only_the_ratio_of_noise_to_sensitivity_matters() -> None:
    """Row 1.21: Noise σ with sensitivity Δ: the divergence of two normal distributions depends on Δ/σ alone."""
    for sensitivity, sigma in ((1.0, 2.0), (3.0, 6.0)):
        by_quadrature = oracle.renyi_between(
            lambda x, m=sensitivity, s=sigma: oracle.npdf(x, m, s),
            lambda x, s=sigma: oracle.npdf(x, 0, s),
            3,
            [-60, 0, sensitivity, 3 * sensitivity, 80],
        )
        assert _close(privacy.gaussian(2.0).renyi(order=3.0), by_quadrature)


def test_the_divergence_grows_with_the_square_of_the_sensitivity() -> None:
    """Row 1.22: Δ = 2, σ = 1, order 2: written αΔ/2σ² = 2, truth 4. The slide understates the loss."""
    sensitivity, sigma, order = 2.0, 1.0, 2.0
    found = privacy.gaussian(noise=sigma / sensitivity).renyi(order=order)
    assert _close(found, order * sensitivity**2 / (2 * sigma**2))
    assert found > order * sensitivity / (2 * sigma**2) == 2.0
    by_quadrature = oracle.renyi_between(
        lambda x: oracle.npdf(x, 2, 1), lambda x: oracle.npdf(x, 0, 1), 2, [-20, 0, 2, 4, 24]
    )
    assert _close(found, by_quadrature)


def test_concentration_grows_with_the_square_of_the_sensitivity() -> None:
    """Row 1.23."""
    found = privacy.gaussian(noise=0.5).concentrated()
    assert _close(found, 2.0)
    assert found > 2.0 / (2 * 1.0**2) == 1.0


def test_renyi_privacy_adds() -> None:
    """Row 1.24."""
    first, second = privacy.laplace(1.0), privacy.gaussian(2.0)
    whole = first + second
    for order in (1.5, 4.0):
        assert _close(whole.renyi(order=order), first.renyi(order=order) + second.renyi(order=order))
    points = privacy.renyi(order=4, epsilon=0.2) + privacy.renyi(order=4, epsilon=0.3)
    assert _close(points.renyi(order=4.0), 0.5)


def test_shifted_concentrated_privacy_adds() -> None:
    """Row 1.25: D_α ≤ ξ + ρα, both parts of the sum."""
    whole = privacy.concentrated(rho=0.1, xi=0.2) + privacy.concentrated(rho=0.3, xi=0.05)
    for order in (2.0, 10.0):
        assert _close(whole.renyi(order=order), 0.25 + 0.4 * order)


@pytest.mark.parametrize(("order", "epsilon", "delta"), [(2, 0.5, 1e-5), (16, 0.3, 1e-6), (1.5, 2.0, 0.1)])
def test_from_renyi_to_approximate_privacy(order: float, epsilon: float, delta: float) -> None:
    """Row 1.26."""
    point = privacy.renyi(order=order, epsilon=epsilon)
    written = epsilon + math.log(1 / delta) / (order - 1)
    assert _close(point.epsilon(delta=delta, route="renyi basic"), written)
    assert point.epsilon(delta=delta) <= point.epsilon(delta=delta, route="renyi improved") <= written


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (2.0, 1e-9)])
def test_from_concentrated_to_approximate_privacy(rho: float, delta: float) -> None:
    """Row 1.27: True for 0 < δ < 1, not for "any δ > 0": at δ = 2 the root is of a negative number."""
    line = privacy.concentrated(rho=rho)
    written = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert _close(line.epsilon(delta=delta, route="zcdp"), written)
    assert line.epsilon(delta=delta) < written
    assert math.log(1 / 2) < 0
    with pytest.raises(errors.BadParameter):
        line.epsilon(delta=2.0)
    assert privacy.gaussian(noise=float(1 / sqrt(2 * mpf(rho)))).epsilon(delta=delta) <= written
