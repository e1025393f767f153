# SPDX-License-Identifier: Apache-2.0
"""Lecture 15 (smooth sensitivity), row by row: rows 3.1 to 3.25 of the table of claims.

A test is named by what it claims, and its docstring begins with its row in docs/notes.md. A statement
that is wrong as written is refuted by its counterexample, and the right one is checked beside it.
"""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from scipy import integrate, stats

from discreet import privacy
from discreet.mechanisms import Laplace, smooth
from discreet.mechanisms.query import ClippingBounds
from discreet.mechanisms.sensitivity import LocalAtDistance, Universe, check_smooth_bound
from discreet.mechanisms.smooth import OrderStatistic, SmoothBudget, SmoothMechanism, TrimmedMean, hockey

TEN = ClippingBounds.of((0, 10))
WORLD = Universe([0, 2, 3, 10], 3)


def median(x):
    return float(statistics.median_low(x))


def test_the_global_sensitivity_is_over_neighbours() -> None:
    """Row 3.1: As written, a maximum over one x of q at two different places; it is over pairs of
    neighbours."""
    local = WORLD.local(median)
    assert max(local.values()) == 10
    assert max(local.values()) == max(
        abs(median(x) - median(y)) for x in WORLD.all() for y in WORLD.neighbours(x)
    )


def test_the_local_sensitivity_is_over_the_neighbours_of_these_data() -> None:
    """Row 3.2."""
    local = WORLD.local(median)
    assert local[(2, 2, 2)] == 0
    assert local[(2, 2, 3)] == 1
    assert local[(0, 0, 10)] == 10


@pytest.mark.parametrize("t", [0.2, 1.0])
def test_smooth_sensitivity_is_the_least_smooth_bound(t: float) -> None:
    """Row 3.3: max over all x' of LS(x') e^(-t d): a smooth bound; 1 % less somewhere is none."""
    levels = WORLD.local_at_distance(median, 3)
    least = {x: max(math.exp(-t * j) * level[x] for j, level in enumerate(levels)) for x in levels[0]}
    bound = LocalAtDistance(lambda x, j: levels[min(j, 3)][tuple(x)], 10).smooth(t)
    check_smooth_bound(median, bound, WORLD.domain, size=3)
    for x in WORLD.all():
        needed = max([levels[0][x], *(math.exp(-t) * least[y] for y in WORLD.neighbours(x))])
        assert least[x] == pytest.approx(max(needed, least[x]))
        assert (
            least[x] * (1 - 1e-12)
            <= OrderStatistic(TEN, q=0.5).measure(list(x), t)[1]
            <= least[x] * (1 + 1e-9)
        )


def test_cauchy_noise_is_admissible_up_to_a_sixth() -> None:
    """Row 3.5: The definition: sliding and dilation, each with ε/2 and δ/2."""
    assert smooth.is_admissible(smooth.SmoothCauchy(), 1 / 6, 1 / 6, epsilon=1.0)
    assert not smooth.is_admissible(smooth.SmoothCauchy(), 1.0, 1 / 6, epsilon=1.0)
    assert not smooth.is_admissible(smooth.SmoothCauchy(), 1 / 6, 0.6, epsilon=1.0)


def test_the_figure_shows_a_shifted_and_a_stretched_density() -> None:
    """Row 3.6: h(z + 0.3) is the density of Z - 0.3, and e^0.3 h(e^0.3 z) that of e^(-0.3) Z."""
    for z in (-1.0, 0.2, 2.0):
        density = math.exp(0.3) * math.exp(-abs(z) * math.exp(0.3)) / 2
        assert stats.laplace.pdf(z, scale=math.exp(-0.3)) == pytest.approx(density)
        assert stats.laplace.pdf(z, loc=-0.3) == pytest.approx(math.exp(-abs(z + 0.3)) / 2)


def test_admissible_noise_gives_more_delta_than_it_says() -> None:
    """Row 3.7: Two steps of (ε/2, δ/2) give (ε, (δ/2)(1 + e^(ε/2))), not (ε, δ); the exact divergence
    is far smaller."""
    epsilon, delta = 1.0, 1e-6
    two_steps = delta / 2 * (1 + math.exp(epsilon / 2))
    assert two_steps == pytest.approx(1.32e-6, rel=1e-2)
    alpha, beta = epsilon / 2, epsilon / (2 * math.log(2 / delta))
    assert smooth.is_admissible(smooth.SmoothLaplace(), alpha, beta, epsilon, delta)
    exact = hockey.delta_bound(hockey.laplace, epsilon=epsilon, shift=alpha, stretch=beta)
    assert exact < 1e-8 < delta < two_steps


def test_the_bound_must_be_smooth() -> None:
    """Row 3.7: With the local sensitivity in its place the scale alone tells neighbours apart."""
    local = WORLD.local(median)
    ratios = [local[x] / local[y] for x in local for y in WORLD.neighbours(x) if local[y] > 0]
    assert max(ratios) > math.exp(2)
    assert any(local[y] == 0 < local[x] for x in local for y in WORLD.neighbours(x))


def test_the_constant_of_cauchy_noise_is_loose() -> None:
    """Row 3.8: (ε/6, ε/6) is admissible; the exact s at t = 1/6 is six times as large."""
    budget = SmoothBudget(epsilon=1.0)
    best = smooth.SmoothCauchy().most(1 / 6, budget)
    assert best == pytest.approx(2 * math.sinh(0.5), rel=1e-8)
    assert best / (1 / 6) == pytest.approx(6.25, rel=1e-3)
    assert smooth.SmoothCauchy().loss(1.0, 0.2) == pytest.approx(math.acosh(1.5), rel=1e-9)


@pytest.mark.parametrize("degrees", [1.0, 2.0, 3.0, 10.0])
def test_the_constant_of_student_noise_is_true_and_loose(degrees: float) -> None:
    """Row 3.9: (d + 1)(t + s/(2√d)) is true and loose."""
    family = smooth.SmoothStudentT(degrees)
    for s, t in ((0.3, 0.1), (1.0, 0.02), (0.05, 0.3)):
        assert family.loss(s, t) < (degrees + 1) * (t + s / (2 * math.sqrt(degrees)))
    assert smooth.SmoothStudentT(3.0).loss(0.3, 0.1) == pytest.approx(0.48491, abs=1e-5)


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_tails_too_light_for_pure_privacy(sigma: float) -> None:
    """Row 3.10: Log-normal tails: under a stretch of 0.1 the log ratio of tails has no bound."""

    def log_tail(z: float) -> float:  # of UniformLogNormal
        x = math.log(z) / sigma
        value = stats.norm.sf(x) - z * math.exp(sigma**2 / 2) * stats.norm.sf(x + sigma)
        return math.log(value)

    gaps = [log_tail(z) - log_tail(z * math.exp(0.1)) for z in (2.0, 10.0, 30.0)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 2 * gaps[0]
    assert not smooth.is_admissible(smooth.SmoothUniformLogNormal(sigma), 0.01, 0.01, epsilon=1.0)


@pytest.mark.parametrize("family", [smooth.SmoothLaplace(), smooth.SmoothGaussian()], ids=str)
def test_laplace_and_gaussian_need_delta(family: smooth.Family) -> None:
    """Row 3.11."""
    assert family.most(0.01, SmoothBudget(epsilon=1.0)) == 0
    assert family.most(0.01, SmoothBudget(epsilon=1.0, delta=1e-6)) > 0
    assert smooth.SmoothLaplace().most(0.01, SmoothBudget(epsilon=1.0, delta=1e-6)) == pytest.approx(
        0.9245, abs=5e-4
    )


@pytest.mark.parametrize("sigma", [0.3, 0.7])
def test_laplace_log_normal(sigma: float) -> None:
    """Row 3.12: X e^(σY) has variance 2 e^(2σ²)."""
    second = integrate.quad(lambda y: stats.norm.pdf(y) * 2 * math.exp(2 * sigma * y), -12, 12)[0]
    assert second == pytest.approx(2 * math.exp(2 * sigma**2), rel=1e-9)


def laplace_log_normal(z: np.ndarray, sigma: float) -> np.ndarray:
    y, step = np.linspace(-10, 14, 961, retstep=True)
    weight = np.exp(-(y**2) / 2 - sigma * y) * step / (2 * math.sqrt(2 * math.pi))
    return np.exp(-np.abs(z)[:, None] * np.exp(-sigma * y)) @ weight


def renyi(order: float, sigma: float, u: float, v: float) -> float:
    y = np.linspace(-6, 6, 1501)
    x = np.sinh(y)
    p = np.log(laplace_log_normal(x, sigma))
    q = np.log(laplace_log_normal((x - v) * math.exp(-u), sigma)) - u
    return math.log(np.trapezoid(np.exp(order * p + (1 - order) * q) * np.cosh(y), y)) / (order - 1)


@pytest.mark.parametrize(("sigma", "s", "t"), [(0.5, 0.2, 0.1), (0.8, 0.3, 0.2)])
def test_laplace_log_normal_noise_is_concentrated(sigma: float, s: float, t: float) -> None:
    """Row 3.13: ε²/2-concentrated with ε = t/σ + e^(3σ²/2) s: never exceeded, in both directions of t, and loose."""
    rho = smooth.SmoothLaplaceLogNormal(sigma).rho(s, t)
    assert rho == pytest.approx((t / sigma + math.exp(1.5 * sigma**2) * s) ** 2 / 2)
    for order in (1.5, 4.0, 16.0):
        for u in (-t, t):
            assert renyi(order, sigma, u, s * min(1, math.exp(u))) <= 0.6 * order * rho


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_best_spread(epsilon: float) -> None:
    """Row 3.13: The variance 2 e^(2σ²)/s² is least at the positive root of 5 ε σ³ - 5 t σ² - t = 0."""
    t = 0.05
    roots = np.roots([5 * epsilon, -5 * t, 0, -t])
    (best,) = [root.real for root in roots if abs(root.imag) < 1e-9]

    def variance(sigma: float) -> float:
        return (
            2
            * math.exp(2 * sigma**2)
            / smooth.SmoothLaplaceLogNormal(sigma).most(t, SmoothBudget(rho=epsilon**2 / 2)) ** 2
        )

    assert variance(best) < min(variance(best * 0.98), variance(best * 1.02))


def test_the_shift_is_below_both_bounds() -> None:
    """Row 3.15: |f - f'| <= g(x) for all neighbours, so by symmetry it is at most the smaller of g(x)
    and g(x')."""
    statistic = OrderStatistic(TEN, q=0.5)
    for x in WORLD.all():
        for y in WORLD.neighbours(x):
            one, other = (float(statistic.measure(list(z), 0.3)[1]) for z in (x, y))
            assert abs(median(x) - median(y)) <= min(one, other)
            assert math.exp(-0.3) * one <= other * (1 + 1e-9)


def test_the_triangle_inequality_of_concentration() -> None:
    """Row 3.16: Gaussians at 0, 0.3 and 0.8 with a = 0.045, b = 0.125: (√a + √b)² is reached, and at
    most 2(a + b)."""
    a, b = 0.3**2 / 2, 0.5**2 / 2
    assert privacy.gaussian(1 / 0.8).concentrated() == pytest.approx((math.sqrt(a) + math.sqrt(b)) ** 2)
    assert (math.sqrt(a) + math.sqrt(b)) ** 2 <= 2 * (a + b)


def test_both_directions_are_needed() -> None:
    """Row 3.17: D(Z || e^t Z) and D(e^t Z || Z) differ."""
    wide, narrow = renyi(4.0, 0.8, 0.3, 0.0), renyi(4.0, 0.8, -0.3, 0.0)
    assert abs(wide - narrow) > 1e-3


@pytest.mark.parametrize("sigma", [0.5, 0.8])
def test_a_stretch_costs_no_more_than_a_shift_of_the_logarithm(sigma: float) -> None:
    """Row 3.18."""
    for order in (2.0, 8.0):
        for t in (-0.2, 0.2):
            assert renyi(order, sigma, t, 0.0) <= order * t**2 / (2 * sigma**2)


def test_by_post_processing() -> None:
    """Row 3.19: The bound is that of σY against σY + t, which the mixture cannot exceed."""
    assert smooth.SmoothLaplaceLogNormal(0.5).stretch_cost(0.1) ** 2 / 2 == pytest.approx(
        privacy.gaussian(5).concentrated()
    )


@pytest.mark.parametrize("sigma", [0.5, 0.8])
def test_the_divergence_of_a_shift_has_two_bounds(sigma: float) -> None:
    """Row 3.20: D_α(Z || Z + s) <= min(e^(3σ²) s² α/2, e^(3σ²/2) s). (As written, s for σ in the
    first exponent.)"""
    slope = math.exp(1.5 * sigma**2)
    assert smooth.SmoothLaplaceLogNormal(sigma).slope == pytest.approx(slope)
    for s in (0.1, 0.3):
        for order in (1.5, 4.0, 32.0):
            assert renyi(order, sigma, 0.0, s) <= min(slope**2 * s**2 * order / 2, slope * s)


def test_the_trimmed_mean() -> None:
    """Row 3.21."""
    x = [9, 1, 5, 2, 100]
    value, _ = TrimmedMean((0, 200), trim=1).measure(x, 0.1)
    assert float(value) == pytest.approx((2 + 5 + 9) / 3)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_the_improvement_is_substantial(epsilon: float) -> None:
    """Row 3.22: 1,000 normal records in (-50, 50): the planned error of a trimmed mean against that
    of the mean."""
    x = stats.norm.ppf(np.linspace(0.0005, 0.9995, 1000))
    trimmed = SmoothMechanism(TrimmedMean((-50, 50), trim=0.05), SmoothBudget(epsilon=epsilon), public=x)
    usual = Laplace(epsilon=epsilon, sensitivity=100 / 1000).error()
    assert trimmed.error_on(x) < usual / 5


def test_heavy_tails_are_the_price() -> None:
    """Row 3.23: The noise that pure privacy needs has tails that fall like a power; Laplace's fall
    like an exponential."""
    assert smooth.SmoothCauchy().tail_bound(1e-6) > 1e5
    assert smooth.SmoothLaplace().tail_bound(1e-6) < 14


def test_the_reciprocal_of_a_count() -> None:
    """Row 3.24: With 1/max(f, 1): LS(k) = 1/(k(k-1)), SS(k) = max(1/(k(k-1)), e^(-β(k-2))/2), SS(1) =
    1/2, SS(0) = e^(-β)/2."""
    statistic, beta = smooth.Reciprocal(), 0.1

    def closed(k: int) -> float:
        if k < 2:
            return 0.5 * math.exp(-beta * (1 - k))
        return max(1 / (k * (k - 1)), math.exp(-beta * (k - 2)) / 2)

    for k in (0, 1, 2, 3, 10, 50, 100, 200):
        assert float(statistic.measure([1] * k, beta)[1]) == pytest.approx(closed(k), rel=1e-9)


def test_the_variance_of_a_prediction() -> None:
    """Row 3.25: Rows of norm 1: a removed row moves log v by at most ln(λ/(λ-1)), an added one by
    ln((λ+1)/λ); λ moves by 1."""
    rng = np.random.default_rng(25)
    for _ in range(60):
        rows = rng.normal(size=(int(rng.integers(8, 40)), 3))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        new = rng.normal(size=3)
        gram = rows.T @ rows
        least = np.linalg.eigvalsh(gram)[0]
        if least <= 1.05:
            continue
        before = math.log(new @ np.linalg.solve(gram, new))
        fewer, more = gram - np.outer(rows[0], rows[0]), gram + np.outer(rows[0], rows[0])
        assert 0 <= math.log(new @ np.linalg.solve(fewer, new)) - before <= math.log(least / (least - 1))
        assert 0 <= before - math.log(new @ np.linalg.solve(more, new)) <= math.log((least + 1) / least)
        assert least - 1 <= np.linalg.eigvalsh(fewer)[0] <= least
