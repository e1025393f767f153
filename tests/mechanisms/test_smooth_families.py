# SPDX-License-Identifier: Apache-2.0
"""What each noise guarantees when place and scale both move, against brute force over densities."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import integrate, interpolate, stats
from scipy.special import log_ndtr

from discreet import privacy
from discreet.errors import BadParameter
from discreet.mechanisms import smooth
from discreet.mechanisms.smooth import SmoothBudget, hockey
from discreet.noise import heavy

PURE = [
    smooth.SmoothCauchy(),
    *map(smooth.SmoothStudentT, (1.7, 3.0, 10.0)),
    *map(smooth.SmoothLomax, (1.5, 2.0, 4.5, 21.0)),
]
CONCENTRATED = [
    kind(sigma)
    for kind in (smooth.SmoothLaplaceLogNormal, smooth.SmoothUniformLogNormal, smooth.SmoothArsinhNormal)
    for sigma in (0.3, 0.8, 1.2)
]
ids = str


def log_density(family, z):
    z = np.abs(z)
    if isinstance(family, smooth.SmoothStudentT):
        return stats.t.logpdf(z, family.degrees)
    if isinstance(family, smooth.SmoothLomax):
        return np.log((family.shape - 1) / 2) - family.shape * np.log1p(z)
    sigma = family.sigma
    if isinstance(family, smooth.SmoothArsinhNormal):
        return stats.norm.logpdf(np.arcsinh(sigma * z) / sigma) - np.log1p((sigma * z) ** 2) / 2
    if isinstance(family, smooth.SmoothUniformLogNormal):
        return -math.log(2) + sigma**2 / 2 + log_ndtr(-(np.log(np.maximum(z, 1e-300)) + sigma**2) / sigma)
    return laplace_log_normal(sigma)(np.arcsinh(z))


@cache
def laplace_log_normal(sigma):
    """The log density by quadrature over Y, as a spline in arsinh z."""
    y, step = np.linspace(-12, 60, 2401, retstep=True)
    parts = stats.norm.logpdf(y) - sigma * y - math.log(2) + math.log(step)
    nodes = np.linspace(0, 9.5, 1500)
    values = [np.logaddexp.reduce(parts - z * np.exp(-sigma * y)) for z in np.sinh(nodes)]
    return interpolate.CubicSpline(nodes, values)


def pairs(s, t, count=9):
    for u in np.linspace(-t, t, count):
        for share in np.linspace(0, 1, count):
            yield float(u), float(share * s * min(1.0, math.exp(u)))


@pytest.mark.parametrize("family", PURE, ids=ids)
@pytest.mark.parametrize(("s", "t"), [(0.3, 0.1), (0.05, 0.4), (1.5, 0.02), (0.0, 0.3), (0.7, 0.0)])
def test_the_pure_loss_is_the_greatest_log_ratio(family, s, t):
    """Over shifts, stretches and points, both signs: never above the formula, and it is reached."""
    half = np.geomspace(1e-4, 1e9, 1500)
    seen = 0.0
    for u, v in pairs(s, t):
        x = np.concatenate([-half, half, half + v, v - half, [0.0, v, s, 1.0]])
        gap = log_density(family, x) - (log_density(family, (x - v) * math.exp(-u)) - u)
        seen = max(seen, float(np.abs(gap).max()))
    loss = family.loss(s, t)
    assert seen <= loss * (1 + 1e-9) + 1e-9
    assert seen >= loss * (1 - 2e-3) - 1e-6


def test_the_formulas_at_known_points():
    assert smooth.SmoothCauchy().loss(1.0, 0.0) == pytest.approx(0.962423650, abs=1e-9)  # arccosh 1.5
    assert smooth.SmoothStudentT(3.0).loss(0.3, 0.1) == pytest.approx(0.48491, abs=1e-5)
    assert smooth.SmoothCauchy().most(0.5, SmoothBudget(epsilon=1.0)) == pytest.approx(1.042190611, abs=1e-8)


@pytest.mark.parametrize("family", PURE, ids=ids)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("t", [1e-4, 0.02, 0.09])
def test_the_largest_shift_keeps_the_budget_and_no_more_would(family, epsilon, t):
    s = family.most(t, SmoothBudget(epsilon=epsilon))
    if s == 0:
        assert family.loss(0.0, t) >= epsilon * (1 - 1e-9)
    else:
        assert family.loss(s, t) <= epsilon < family.loss(s * (1 + 1e-6), t)


BEST = [  # (ε, t, least variance of Student's t and of Lomax, in squares of the smooth sensitivity)
    (0.3, 0.01, 37.85, 27.33),
    (0.3, 0.05, 71.25, 68.44),
    (1.0, 0.05, 3.486, 2.471),
    (1.0, 0.1, 4.191, 3.129),
    (3.0, 0.1, 0.3147, 0.2386),
]


@pytest.mark.parametrize(("epsilon", "t", "student", "lomax"), BEST)
def test_each_family_has_the_least_variance_of_its_parameters(epsilon, t, student, lomax):
    budget = SmoothBudget(epsilon=epsilon)
    degrees = [2 + i / 50 for i in range(1, 600)]
    shapes = [3 + i / 50 for i in range(1, 2000)]
    ts = [(d / (d - 2), smooth.SmoothStudentT(d).most(t, budget)) for d in degrees]
    ls = [(2 / ((a - 2) * (a - 3)), smooth.SmoothLomax(a).most(t, budget)) for a in shapes]
    assert min(v / s**2 for v, s in ts if s > 0) == pytest.approx(student, rel=1e-3)
    assert min(v / s**2 for v, s in ls if s > 0) == pytest.approx(lomax, rel=5e-3)


DENSITY = {hockey.laplace: stats.laplace, hockey.gaussian: stats.norm}
LIGHT = pytest.mark.parametrize("divergence", DENSITY, ids=lambda f: f.__name__)


def by_quadrature(distribution, epsilon, scale, middle, other):
    def gap(x):
        return max(
            0.0, distribution.pdf(x, 0, scale) - math.exp(epsilon) * distribution.pdf(x, middle, other)
        )

    edges = [-60, -20, -8, -3, -1, 0, middle / 2, middle, middle + 1, 4, 10, 25, 60]
    edges = sorted(set(edges))
    return sum(integrate.quad(gap, a, b, limit=200)[0] for a, b in itertools.pairwise(edges))


@LIGHT
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize(
    ("scale", "middle", "other"), [(1, 0.5, 1.1), (1.2, 0.3, 1), (1, 0.9, 1), (1, 0, 0.8), (1, 0, 1.3)]
)
def test_the_divergence_of_two_members(divergence, epsilon, scale, middle, other):
    truth = by_quadrature(DENSITY[divergence], epsilon, scale, middle, other)
    found = divergence(epsilon, scale, middle, other)
    assert truth - 1e-8 <= found <= truth + 1e-7


@LIGHT
@pytest.mark.parametrize(("epsilon", "s", "t"), [(1.0, 0.5, 0.034), (0.5, 0.2, 0.1), (2.0, 1.5, 0.3)])
def test_the_bound_is_above_every_pair_and_close(divergence, epsilon, s, t):
    worst = 0.0
    for u, v in pairs(s, t, 31):
        worst = max(worst, divergence(epsilon, 1.0, v, math.exp(u)))
    found = hockey.delta_bound(divergence, epsilon=epsilon, shift=s, stretch=t)
    assert worst <= found
    assert (
        found
        <= hockey.delta_bound(divergence, epsilon=epsilon - t / 16, shift=s, stretch=t, cells=4000) * 1.05
    )


def test_the_known_constants_of_light_noise_are_valid_and_loose():
    """Laplace with α = ε/2, β = ε/(2 ln(2/δ)) has a true δ of 4.06e-9 at δ = 1e-6; the exact s is 0.9245 at t = 0.01."""
    stretch = 1 / (2 * math.log(2e6))
    assert hockey.delta_bound(
        hockey.laplace, epsilon=1, shift=0.5, stretch=stretch, cells=4000
    ) == pytest.approx(4.06e-9, rel=2e-3)
    shift, narrow = 1 / (5 * math.sqrt(2 * math.log(2e6))), 1 / (4 * (1 + math.log(2e6)))
    assert hockey.delta_bound(
        hockey.gaussian, epsilon=1, shift=shift, stretch=narrow, cells=4000
    ) == pytest.approx(1.82e-13, rel=5e-3)
    assert smooth.SmoothLaplace().most(0.01, SmoothBudget(epsilon=1.0, delta=1e-6)) == pytest.approx(
        0.9245, abs=5e-4
    )


@LIGHT
def test_the_bound_grows_with_everything_it_should(divergence):
    def at(epsilon=1.0, shift=0.5, stretch=0.05):
        return hockey.delta_bound(divergence, epsilon=epsilon, shift=shift, stretch=stretch)

    assert at(shift=0.6) > at() > at(epsilon=1.1)
    assert at(stretch=0.1) > at()


@pytest.mark.parametrize("family", CONCENTRATED, ids=ids)
def test_the_slope_is_the_greatest_of_the_log_density(family):
    z = np.concatenate([np.linspace(1e-4, 3, 1500, endpoint=False), np.geomspace(3, 1e3, 300)])
    steps = np.abs(np.diff(log_density(family, z))) / np.diff(z)
    assert steps.max() <= family.slope * (1 + 1e-6)
    if not isinstance(family, smooth.SmoothArsinhNormal):
        assert steps.max() >= family.slope * 0.9


def renyi(family, order, u, v):
    """D_order(Z || e^u Z + v) by quadrature in x = sinh(y)."""
    y = np.linspace(-8, 8, 4001)
    x = np.sinh(y)
    logs = order * log_density(family, x) + (1 - order) * (log_density(family, (x - v) * math.exp(-u)) - u)
    return math.log(np.trapezoid(np.exp(logs) * np.cosh(y), y)) / (order - 1)


@pytest.mark.parametrize("family", CONCENTRATED, ids=ids)
@pytest.mark.parametrize(("s", "t"), [(0.2, 0.1), (0.05, 0.3), (0.5, 0.02)])
def test_every_order_is_below_the_concentrated_bound(family, s, t):
    rho = family.rho(s, t)
    for order in (1.05, 1.5, 2, 4, 8, 24):
        for u in (-t, 0.0, t):
            for sign in (1, -1):
                v = sign * s * min(1.0, math.exp(u))
                assert renyi(family, order, u, v) <= order * rho + 1e-6


@pytest.mark.parametrize("family", CONCENTRATED, ids=ids)
def test_a_stretch_alone_is_below_its_bound(family):
    for t in (0.05, 0.4):
        for order in (1.1, 2, 8):
            for u in (-t, t):
                assert renyi(family, order, u, 0.0) <= order * family.stretch_cost(t) ** 2 / 2 + 1e-6


def test_the_check_of_orders_can_fail():
    """A slope that is too small by half is found."""
    family = smooth.SmoothLaplaceLogNormal(0.3)
    assert renyi(family, 24, 0.0, 0.5) > 24 * (family.slope * 0.5 / 4) ** 2 / 2


def test_the_uniform_mixture_needs_less_than_was_published():
    """e^(3σ²/2) √(2/π)/σ is an upper bound of our exact slope for σ >= √2, as published; below it is not always one."""
    for sigma in (math.sqrt(2), 2.0, 3.0):
        published = math.exp(1.5 * sigma**2) * math.sqrt(2 / math.pi) / sigma
        assert smooth.SmoothUniformLogNormal(sigma).slope < published
    assert smooth.SmoothUniformLogNormal(0.5).slope > math.exp(0.375) * math.sqrt(2 / math.pi) / 0.5


@pytest.mark.parametrize("rho", [0.005, 0.5, 3.0])
def test_a_concentrated_budget_is_kept(rho):
    budget = SmoothBudget(rho=rho)
    assert privacy.pure(budget.pure).concentrated() <= rho
    for family in CONCENTRATED:
        s = family.most(0.01, budget)
        assert s == 0 or family.rho(s, 0.01) <= rho


ADMISSIBLE = [
    (smooth.SmoothCauchy(), 1 / 6, 1 / 6, 1.0, 0.0, True),  # Nissim, Raskhodnikova, Smith 2007
    (smooth.SmoothCauchy(), 2 * math.sinh(0.25), 0.5, 1.0, 0.0, True),  # the most that is possible
    (smooth.SmoothCauchy(), 2.01 * math.sinh(0.25), 0.5, 1.0, 0.0, False),
    (smooth.SmoothCauchy(), 0.1, 0.51, 1.0, 0.0, False),
    (smooth.SmoothStudentT(3.0), 0.2, 0.51 / 3, 1.0, 0.0, False),
    (smooth.SmoothLomax(4.0), math.expm1(0.125), 0.5 / 3, 1.0, 0.0, True),
    (smooth.SmoothLaplace(), 0.5, 1 / (2 * math.log(2e6)), 1.0, 1e-6, True),
    (smooth.SmoothLaplace(), 0.5, 0.01, 1.0, 0.0, False),  # light tails are never pure under dilation
    (smooth.SmoothGaussian(), 0.01, 0.001, 1.0, 0.0, False),
    (
        smooth.SmoothGaussian(),
        1 / (5 * math.sqrt(2 * math.log(2e6))),
        1 / (4 * (1 + math.log(2e6))),
        1.0,
        1e-6,
        True,
    ),
    (smooth.SmoothLaplaceLogNormal(0.5), 0.2, 0.01, 1.0, 1e-6, True),
    (smooth.SmoothLaplaceLogNormal(0.5), 0.2, 0.01, 1.0, 0.0, False),
    (
        smooth.SmoothUniformLogNormal(1.0),
        0.01,
        1e-6,
        1.0,
        0.0,
        False,
    ),  # its δ is below every float, and not zero
    (smooth.SmoothLaplace(), 0.01, 1e-6, 1.0, 0.0, False),
    (smooth.SmoothGaussian(), 1e-6, 0.0, 1.0, 0.0, False),
]


@pytest.mark.parametrize("case", ADMISSIBLE, ids=str)
def test_noise_is_admissible_where_its_theorem_says_so(case):
    *question, answer = case
    assert smooth.is_admissible(*question) is answer


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None])
def test_bad_parameters_are_refused(bad):
    for make in (
        smooth.SmoothStudentT,
        smooth.SmoothLomax,
        smooth.SmoothLaplaceLogNormal,
        smooth.SmoothUniformLogNormal,
        smooth.SmoothArsinhNormal,
        lambda x: SmoothBudget(epsilon=x),
        lambda x: SmoothBudget(rho=x),
        lambda x: smooth.is_admissible(smooth.SmoothCauchy(), 0.1, 0.1, x),
    ):
        with pytest.raises(BadParameter):
            make(bad)
    with pytest.raises(BadParameter):
        smooth.is_admissible(heavy.CauchyNoise(), 0.1, 0.1, 1.0)


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"epsilon": 1.0, "rho": 1.0},
        {"delta": 1e-6},
        {"rho": 1.0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 1.0},
    ],
)
def test_a_budget_is_stated_in_one_way(words):
    with pytest.raises(BadParameter):
        SmoothBudget(**words)
