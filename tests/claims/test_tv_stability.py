# SPDX-License-Identifier: Apache-2.0
"""The lecture on total-variation stability and differential privacy, row by row.

A test is named by what it claims, and its docstring begins with its row in docs/notes.md. A statement
that is wrong as written is refuted by its counterexample, and the right one is checked beside it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mpmath import erf, exp, mpf, pi, quad, sqrt

from discreet import privacy
from discreet.mechanisms import AdaptiveQueries, Gaussian, Laplace, expected_gap

REPLACE = {"relation": "replace"}


def gaussian_stability(m: int, sigma: float) -> mpf:
    """2Φ(1/(2mσ)) - 1, the exact total variation distance of two means of m records that differ in one."""
    return erf(1 / (2 * m * mpf(sigma)) / sqrt(mpf(2)))


def normal(x: mpf, sigma: float) -> mpf:
    return exp(-(x**2) / (2 * mpf(sigma) ** 2)) / (mpf(sigma) * sqrt(2 * pi))


def test_records_with_a_label() -> None:
    """Row 2.1: X = {0,1}^d with Y = {0,1}: a question maps a labelled record to [0, 1]; a bit of
    either is one."""
    records = list(itertools.product((0, 1), repeat=3))
    with AdaptiveQueries(records=8, queries=1, epsilon=1e5).open(records) as talk:
        assert abs(talk.ask(lambda record: record[0] == record[-1]) - 0.5) < 0.01


def test_stability_is_zero_epsilon_privacy() -> None:
    """Row 2.2: ε-TV stable is (0, ε)-private: the advantage is δ at ε = 0."""
    for guarantee in (
        privacy.pair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
        privacy.gaussian(2.0),
        privacy.leaky(0.1),
    ):
        assert guarantee.advantage() == guarantee.delta(epsilon=0)
    assert privacy.pair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]).advantage() == pytest.approx(0.3)


def test_a_mean_moves_by_one_over_m_when_a_record_is_replaced() -> None:
    """Row 2.3."""
    m = 6
    means = {bits: sum(bits) / m for bits in itertools.product((0, 1), repeat=m)}
    moved = max(
        abs(means[a] - means[b])
        for a in means
        for b in means
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    )
    assert moved == pytest.approx(1 / m)
    assert Gaussian(scale=0.1, sensitivity=1 / m, **REPLACE).unit.relation == "replace"


@pytest.mark.parametrize(("m", "sigma", "exact"), [(50, 0.1, 0.0796557), (1, 0.2, 0.98758), (10, 1.0, None)])
def test_the_gaussian_mechanism_is_stable(m: int, sigma: float, exact: float | None) -> None:
    """Row 2.4: 1/(√(2π)·m·σ), not 1/√(2π·m·σ): at m = 1, σ = 0.2 the truth 0.98758 is above the
    written 0.89206."""
    truth = gaussian_stability(m, sigma)
    if exact is not None:
        assert float(truth) == pytest.approx(exact, rel=1e-5)
    assert float(truth) <= 1 / (math.sqrt(2 * math.pi) * m * sigma)
    stated = privacy.gaussian(noise=m * sigma, **REPLACE).advantage()
    assert float(truth) <= stated == pytest.approx(float(truth), rel=1e-9)
    mechanism = Gaussian(scale=sigma, sensitivity=1 / m, **REPLACE)
    assert mechanism.guarantee.advantage() == pytest.approx(float(truth), rel=2e-3)


def test_as_written_it_is_false() -> None:
    """Row 2.4."""
    written = 1 / math.sqrt(2 * math.pi * 1 * 0.2)
    assert written == pytest.approx(0.89206, rel=1e-5)
    assert float(gaussian_stability(1, 0.2)) > written + 0.09


@pytest.mark.parametrize("mean", [0.0, 0.3])
def test_the_densities_live_on_the_real_line(mean: float) -> None:
    """Row 2.5: Not on X: on all of R they integrate to 1, on any set of records they do not."""
    assert float(quad(lambda x: normal(x - mean, 0.2), [-3, mean, 3])) == pytest.approx(1.0, rel=1e-9)


def test_the_densities_cross_in_the_middle() -> None:
    """Row 2.6."""
    m, sigma, mean = 7, 0.3, 0.2
    x = np.linspace(-2, 2, 40_001)
    first = np.exp(-((x - mean) ** 2) / (2 * sigma**2))
    second = np.exp(-((x - mean - 1 / m) ** 2) / (2 * sigma**2))
    crossing = x[np.flatnonzero(np.diff(np.sign(first - second)))]
    assert crossing == pytest.approx([mean + 1 / (2 * m)], abs=1e-3)


@pytest.mark.parametrize(("m", "sigma"), [(50, 0.1), (1, 0.2), (3, 1.0)])
def test_the_distance_is_an_integral_around_zero(m: int, sigma: float) -> None:
    """Row 2.7."""
    half = mpf(1) / (2 * m)
    integral = quad(lambda x: normal(x, sigma), [-half, 0, half])
    assert float(integral) == pytest.approx(float(gaussian_stability(m, sigma)), rel=1e-10)
    assert privacy.gaussian(noise=m * sigma, **REPLACE).advantage() == pytest.approx(
        float(integral), rel=1e-9
    )


def test_the_last_line_loses_a_root() -> None:
    """Row 2.8: (1/√(2πσ²))·(1/m) is 1/(√(2π)·m·σ); the written 1/√(2π·m·σ) equals it only where m·σ =
    1."""
    for m, sigma in ((50, 0.1), (1, 0.2), (4, 0.25)):
        right = 1 / math.sqrt(2 * math.pi * sigma**2) / m
        assert right == pytest.approx(1 / (math.sqrt(2 * math.pi) * m * sigma))
        written = 1 / math.sqrt(2 * math.pi * m * sigma)
        assert (written == pytest.approx(right)) is (m * sigma == 1)


def test_the_multiplicative_distance_needs_a_rule_for_nothing_over_nothing() -> None:
    """Row 2.9: Outcomes that neither distribution reaches do not count; it is the greater of the two greatest
    losses."""
    p, q = [0.5, 0.5, 0.0], [0.4, 0.6, 0.0]
    events = [s for size in (1, 2, 3) for s in itertools.combinations(range(3), size)]
    ratios = [
        abs(math.log(sum(p[i] for i in s) / sum(q[i] for i in s))) for s in events if sum(q[i] for i in s) > 0
    ]
    assert privacy.pair(p, q).epsilon(delta=0) == pytest.approx(max(ratios))


def test_it_bounds_every_event() -> None:
    """Row 2.10."""
    p, q = [0.5, 0.3, 0.2], [0.4, 0.25, 0.35]
    epsilon = privacy.pair(p, q).epsilon(delta=0)
    for size in (1, 2, 3):
        for s in itertools.combinations(range(3), size):
            a, b = sum(p[i] for i in s), sum(q[i] for i in s)
            assert a <= math.exp(epsilon) * b + 1e-12
            assert b <= math.exp(epsilon) * a + 1e-12


def test_differential_privacy_is_that_for_all_neighbours() -> None:
    """Row 2.11."""
    laplace = Laplace(epsilon=0.5, sensitivity=1)
    assert laplace.guarantee.epsilon(delta=0) <= 0.5
    assert laplace.guarantee.delta(epsilon=0.5) == 0.0


def test_the_letter_is_a_scale() -> None:
    """Row 2.12: Lap(ε, μ) of the notes has *scale* ε: its density integrates to 1 and its mean
    distance is the scale."""
    scale = mpf("0.7")
    density = lambda x: exp(-abs(x) / scale) / (2 * scale)  # noqa: E731
    assert float(quad(density, [-40, 0, 40])) == pytest.approx(1.0, rel=1e-9)
    assert float(quad(lambda x: abs(x) * density(x), [-40, 0, 40])) == pytest.approx(0.7, rel=1e-9)
    assert privacy.laplace(scale=0.7).epsilon(delta=0) == pytest.approx(1 / 0.7)


def test_the_parameter_of_the_algorithm_is_the_privacy() -> None:
    """Row 2.13: Called a scale parameter there; the scale is 1/(mε). Taking ε itself for the scale
    guarantees 1/(mε) instead."""
    m, epsilon = 20, 0.5
    right = Laplace(scale=1 / (m * epsilon), sensitivity=1 / m, **REPLACE)
    assert right.guarantee.epsilon(delta=0) == pytest.approx(epsilon, rel=2e-3)
    misread = Laplace(scale=epsilon, sensitivity=1 / m, **REPLACE)
    assert misread.guarantee.epsilon(delta=0) == pytest.approx(1 / (m * epsilon), rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_laplace_mechanism_is_private_and_not_more(epsilon: float) -> None:
    """Row 2.14."""
    m = 10
    x = np.linspace(-3, 3, 2001)
    ratios = m * epsilon * (np.abs(x - 0.5 - 1 / m) - np.abs(x - 0.5))
    assert np.abs(ratios).max() == pytest.approx(epsilon)
    assert privacy.laplace(scale=1 / epsilon, **REPLACE).bound(delta=0).lower == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_privacy_implies_stability(epsilon: float) -> None:
    """Row 2.15: (e^ε - 1)/2 is true, loose, and says nothing from ln 3 on; tanh(ε/2) is what
    randomized response reaches."""
    written, right = math.expm1(epsilon) / 2, math.tanh(epsilon / 2)
    assert privacy.pure(epsilon).advantage() == pytest.approx(right, rel=1e-9)
    assert privacy.randomized_response(epsilon).bound(epsilon=0).lower == pytest.approx(right, rel=1e-9)
    assert right < written
    assert (written >= 1) is (epsilon >= math.log(3))
    assert privacy.laplace(scale=1 / epsilon).advantage() == pytest.approx(
        -math.expm1(-epsilon / 2), rel=1e-9
    )
    assert privacy.exponential(epsilon).advantage() == pytest.approx(math.tanh(epsilon / 4), rel=1e-9)
    delta = 1e-3
    both = (math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1)
    assert privacy.approximate(epsilon, delta).advantage() == pytest.approx(both, rel=1e-9)
    assert expected_gap(privacy.pure(epsilon, **REPLACE)) == pytest.approx(right, rel=1e-9)


def test_the_proof_splits_by_event() -> None:
    """Row 2.16: For each event the half with D'(E) ≤ 1/2 gives (e^ε - 1)/2, the other half by the
    complement; all are tried."""
    p, q = [0.5, 0.3, 0.15, 0.05], [0.35, 0.35, 0.2, 0.1]
    epsilon = privacy.pair(p, q).epsilon(delta=0)
    for size in range(5):
        for s in itertools.combinations(range(4), size):
            a, b = sum(p[i] for i in s), sum(q[i] for i in s)
            small = min(b, 1 - b)
            assert abs(a - b) <= math.expm1(epsilon) * small + 1e-12 <= math.expm1(epsilon) / 2 + 1e-9
            assert b - a <= -math.expm1(-epsilon) * b + 1e-12
