# SPDX-License-Identifier: Apache-2.0
"""The tail bound of a weighted sum of noises is a bound, and close to the quantile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution
from discreet.mechanisms.noise_sums import _three_laplaces, tail_bound_of_sum

BETAS = (0.05, 0.01, 1e-4)


def laplace_pmf(scale: float, reach: int) -> np.ndarray:
    """P(z) for |z| <= reach, and all else at the ends."""
    z = np.abs(np.arange(-reach, reach + 1))
    q = math.exp(-1 / scale)
    pmf = (1 - q) / (1 + q) * q**z
    pmf[[0, -1]] += (1 - pmf.sum()) / 2
    return pmf


def gaussian_pmf(scale: float, reach: int) -> np.ndarray:
    z = np.arange(-reach, reach + 1)
    pmf = norm.cdf((z + 0.5) / scale) - norm.cdf((z - 0.5) / scale)
    pmf[[0, -1]] += (1 - pmf.sum()) / 2
    return pmf


def exact_quantile(terms, beta: float) -> int:
    """The least k with P(|Σ weight · noise| > k) <= β, by convolution; weights are whole."""
    total = np.ones(1)
    for weight, noise in terms:
        reach = math.ceil(30 * noise.scale)
        pmf = (laplace_pmf if isinstance(noise, LaplaceDistribution) else gaussian_pmf)(noise.scale, reach)
        spread = np.zeros(2 * weight * reach + 1)
        spread[::weight] = pmf
        total = np.convolve(total, spread)
    middle = len(total) // 2
    beyond = np.cumsum((total[middle:] + total[middle::-1])[::-1])[::-1]
    return int(np.argmax(beyond[1:] <= beta))


L, G = LaplaceDistribution, GaussianDistribution
SUMS = {
    "one": [(1, L(7.0))],
    "two alike": [(1, L(9.0)), (1, L(9.0))],
    "two unlike": [(1, L(20.0)), (3, L(1.5))],
    "one hides the other": [(1, L(40.0)), (1, L(0.4))],
    "five alike": [(1, L(6.0))] * 5,
    "four kinds": [(1, L(12.0)), (2, L(5.0)), (1, L(3.0)), (1, L(3.0))],
    "gaussians": [(1, G(9.0)), (2, G(4.0))],
    "both": [(1, G(12.0)), (1, L(5.0))],
    "both, many": [(1, G(6.0))] * 3 + [(1, L(4.0))] * 3,
}


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("terms", SUMS.values(), ids=SUMS)
def test_the_bound_is_above_the_quantile_and_near_it(terms, beta):
    bound, exact = tail_bound_of_sum(terms, beta), exact_quantile(terms, beta)
    # Each discrete noise may be rounded by one step, or half of one.
    rounding = sum(weight for weight, _ in terms) + 1
    assert exact <= bound <= 1.001 * exact + rounding


def test_what_cancels_or_is_absent_has_no_width():
    assert tail_bound_of_sum([], 0.05) == 0
    assert tail_bound_of_sum([(0.0, L(5.0))], 0.05) == 0


def test_the_sign_and_the_order_of_terms_do_not_matter():
    terms = [(1.0, L(5.0)), (-2.0, G(3.0)), (0.5, L(9.0))]
    assert tail_bound_of_sum(terms, 0.05) == tail_bound_of_sum(
        [(abs(w), noise) for w, noise in reversed(terms)], 0.05
    )


@pytest.mark.parametrize("count", [2, 40, 400, 5000])
def test_many_noises_grow_by_the_root_of_their_number(count):
    bound = tail_bound_of_sum([(1.0, L(1e7))] * count, 0.05) / 1e7
    assert 0.99 <= bound / (1.96 * math.sqrt(2 * count)) <= (1.06 if count == 2 else 1.01)


def tail_by_inversion(scales, t):
    """P(|X + Y + Z| > t), from the characteristic function (Gil-Pelaez 1951)."""

    def integrand(u):
        return math.prod(1 / (1 + (scale * u) ** 2) for scale in scales) / u

    # Near 0 sin(ut)/u is t; beyond, the oscillating integral is done by a weighted rule.
    near = integrate.quad(lambda u: integrand(u) * math.sin(u * t), 1e-12, 1.0, limit=400)[0]
    far = integrate.quad(integrand, 1.0, math.inf, weight="sin", wvar=t, limit=400)[0]
    return 1 - 2 / math.pi * (near + far)


@pytest.mark.parametrize(
    "scales", [(1.0, 1.0, 1.0), (1.0, 0.999, 0.5), (1.0, 0.7, 0.3), (1.0, 1.0, 0.01), (1.0, 0.01, 0.0)]
)
def test_the_quantile_of_three_laplace_noises(scales):
    for beta in (0.3, 0.05, 0.001):
        t = float(_three_laplaces([np.array([scale]) for scale in scales], beta)[0])
        assert tail_by_inversion(scales, t) <= beta * (1 + 1e-5) + 1e-9
        assert tail_by_inversion(scales, 0.985 * t) > beta
