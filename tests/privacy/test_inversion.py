# SPDX-License-Identifier: Apache-2.0
"""Moments keep the error that they state, and inversion is on the safe side whatever tilt it is done with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp, mpc, mpf

from discreet import privacy
from discreet.privacy import families
from discreet.privacy.cells import Cells, Ratio
from discreet.privacy.comonotone import GaussianShifts, GroupRatio
from discreet.privacy.inversion import Inversion, Spectrum
from discreet.privacy.losses import Composition
from discreet.privacy.moments import (
    AtomMoments,
    GaussianMoments,
    RenyiMoments,
    merge,
    power_product,
    sloped_moments,
    uniform_decay,
)
from discreet.privacy.pairs import Pair, dilute, dilute_other
from discreet.privacy.quadrature import Dilution, SampledGaussian, SampledSum

KINDS = ("removed", "added", "replaced")
DISTRIBUTIONS = [
    SampledGaussian(mu, rate, kind)
    for kind in KINDS
    for mu, rate in ((1.0, 0.01), (0.23, 0.4), (2.5, 1e-4), (1.4, 0.99999))
]


def moment(distribution: SampledGaussian, z: mpc) -> mpc:
    """E r(x)^u·r(-x)^v by the trapezoidal rule in 30 digits, with a step far below what the proof asks for."""
    mu, rate = mpf(distribution.mu), mpf(distribution.rate)
    step = 1 / mpf(12 + int(2 * abs(z.imag) * mu) + int(3 * mu))
    u, v = (-z, 0) if distribution.kind == "added" else (z + 1, -z if distribution.kind == "replaced" else 0)

    def integrand(x: mpf) -> mpc:
        r, mirrored = (1 - rate + rate * mp.exp(side * mu * x - mu * mu / 2) for side in (1, -1))
        return mp.exp(u * mp.log(r) + v * mp.log(mirrored) - x * x / 2)

    reach = 13 + (abs(z.real) + 1) * mu
    nodes = range(-int(reach / step), int(reach / step) + 1)
    return step / mp.sqrt(2 * mp.pi) * mp.fsum(integrand(step * j) for j in nodes)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@pytest.mark.parametrize("tilt", [0.3, 6.0])
def test_moments_of_sampled_gaussians_are_as_exact_as_they_say(
    distribution: SampledGaussian, tilt: float
) -> None:
    line = distribution.line(tilt)
    assert line is not None
    with mp.workdps(30):
        real = moment(distribution, mpc(tilt, 0))
        assert abs(mp.log(real.real) - line.log_moment) <= line.error < 1e-11
        assert abs(mp.log(real.real) - distribution.log_moments(np.array([tilt]))[0]) <= 1e-12 * (
            1 + line.log_moment
        )
        for spacing in (0.2, 4.0):
            values, error = line.values(spacing, 9) or (None, 0.0)
            t = 8 * spacing
            truth = moment(distribution, mpc(tilt, t)) / real * mp.exp(-1j * mpf(t) * mpf(line.centre))
            assert values is not None
            assert abs(mpc(values[8]) - truth) <= np.broadcast_to(error, 9)[8] < 1e-10


def cut_moment(distribution: SampledSum, mu: float, rate: float, z: mpc) -> mpc:
    """E χ(x)·r(x)^{z+1}·r(-x)^v in 30 digits, with a step far below the width of the cut."""
    step = mpf(distribution.cut.width) / 8
    m, q = mpf(mu), mpf(rate)

    def integrand(x: mpf) -> mpc:
        r, mirrored = (1 - q + q * mp.exp(side * m * x - m * m / 2) for side in (1, -1))
        v = -z if distribution.kind == "replaced" else 0
        kept = mp.ncdf((distribution.cut.at - x) / mpf(distribution.cut.width))
        return kept * mp.exp((z + 1) * mp.log(r) + v * mp.log(mirrored) - x * x / 2)

    nodes = range(-int(12 / step), int((distribution.cut.at + 1) / step) + 1)
    return step / mp.sqrt(2 * mp.pi) * mp.fsum(integrand(step * j) for j in nodes)


@pytest.mark.parametrize("kind", ["removed", "replaced"])
@pytest.mark.parametrize(("mu", "rate", "tilt"), [(0.5, 1e-6, 4_000.0), (1.7, 1e-4, 9.0)])
def test_moments_of_what_is_not_cut_off_are_as_exact_as_they_say(
    kind: str, mu: float, rate: float, tilt: float
) -> None:
    ((distribution, _),) = merge([(SampledGaussian(mu, rate, kind), 1)])
    assert isinstance(distribution, SampledSum)
    distribution = distribution.cut_to(-40.0, -40.0, 0.05)
    line = distribution.line(tilt) if distribution else None
    assert distribution is not None
    assert line is not None
    # as far as a thousand steps need
    spacing = 0.1 / math.sqrt(1_000 * line.variance)
    values, errors = line.values(spacing, 9) or (np.zeros(9), np.zeros(9))
    with mp.workdps(30):
        real = cut_moment(distribution, mu, rate, mpc(tilt, 0))
        assert abs(mp.log(real.real) - line.log_moment) <= line.error < 1e-11
        truth = cut_moment(distribution, mu, rate, mpc(tilt, 8 * spacing)) / real
        truth *= mp.exp(-1j * 8 * mpf(spacing) * mpf(line.centre))
        assert abs(mpc(values[8]) - truth) <= errors[8] < 1e-11


def test_what_a_cut_takes_away_is_counted() -> None:
    ((distribution, _),) = merge([(SampledGaussian(1.0, 0.01), 50)])
    assert isinstance(distribution, SampledSum)
    cut = distribution.cut_to(math.log(1e-6), 0.0, 0.3)
    assert cut is not None
    x = np.linspace(-12, 14, 400_001)
    q = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0]) * cut.cut.lost_share(x)
    p = q * (0.99 + 0.01 * np.exp(x - 0.5))
    for log_lost, masses in zip(cut.lost, (p, q), strict=True):
        assert math.log(50 * masses.sum()) <= log_lost <= math.log(50 * masses.sum()) + 1e-6
    assert cut.lost[0] <= math.log(1e-6)


OTHERS: dict[str, RenyiMoments] = {
    "gaussian": GaussianMoments(0.7),
    "laplace": sloped_moments(0.8, 0.5, 0.5),
    "exponential": sloped_moments(1.1, 0.0, 1 / -math.expm1(-1.1)),
    "answer": AtomMoments(np.array([-1.0, 1.0]), np.array([0.2689414213699951, 0.7310585786300049])),
}
PAIRS: dict[str, Pair] = {
    "gaussian": families.gaussian(0.7),
    "laplace": families.laplace(0.8),
    "exponential": families.bounded_range(1.1),
    "answer": families.randomized_response(1.0),
}


def moment_of_masses(pair: Pair, z: complex) -> complex:
    """∫ e^{zl} dP(l): by parts over the cumulative masses, and the atoms."""
    total = complex(np.sum(pair.p * np.exp(z * pair.losses)))
    if pair.smooth is not None:
        edges = np.linspace(pair.low, pair.high, 400_001)
        below = pair.smooth(edges)[0]
        middle = (edges[1:] + edges[:-1]) / 2
        total += complex(np.sum(np.diff(below) * np.exp(z * middle)))
    return total


@pytest.mark.parametrize("name", OTHERS)
def test_elementary_moments_are_those_of_their_pair(name: str) -> None:
    tilt, spacing, count = 2.0, 0.7, 6
    line = OTHERS[name].line(tilt)
    assert line is not None
    real = moment_of_masses(PAIRS[name], tilt).real
    assert line.log_moment == pytest.approx(math.log(real), abs=1e-8)
    values, error = line.values(spacing, count) or (np.zeros(count), 0.0)
    assert 0 < error < 1e-12
    for n in range(count):
        truth = moment_of_masses(PAIRS[name], tilt + 1j * n * spacing) / real
        assert abs(values[n] - truth * np.exp(-1j * n * spacing * line.centre)) < 1e-7


@pytest.mark.parametrize(
    "distribution", [*DISTRIBUTIONS, *OTHERS.values()], ids=lambda distribution: type(distribution).__name__
)
@pytest.mark.parametrize("tilt", [0.5, 8.0])
def test_the_bound_beyond_a_frequency_holds_for_all_of_them(distribution: RenyiMoments, tilt: float) -> None:
    line = distribution.line(tilt)
    assert line is not None
    for spacing in (0.05, 0.5, 4.0):
        values, error = line.values(spacing, 96) or (np.zeros(1), 0.0)
        sizes = np.log(np.maximum.accumulate(np.abs(values)[::-1])[::-1] + 1e-300)
        for first in (1, 3, 10, 50):
            assert sizes[first] <= max(line.log_bound(first * spacing), -600.0) + 1e-12 + np.max(error)


def test_the_bound_of_a_sampled_gaussian_is_of_use() -> None:
    line = SampledGaussian(1.0, 0.01).line(6.0)
    assert line is not None
    assert 1_000 * line.log_bound(30.0) < -20


def test_the_characteristic_function_of_uniform_distributions() -> None:
    s = np.linspace(1e-3, 60.0, 600_001)
    sizes = np.maximum.accumulate(np.abs(np.sin(s) / s)[::-1])[::-1]
    assert np.all(uniform_decay(s) >= sizes - 1e-15)
    assert uniform_decay(np.array([0.1]))[0] == pytest.approx(math.sin(0.1) / 0.1)


def test_the_error_of_a_product_of_powers_covers_what_wrong_factors_do() -> None:
    exact = np.array([[0.9999 * np.exp(0.01j), 0.3j, 1.0]])
    counts, off = np.array([5_000.0, 2.0, 7.0]), np.array([1e-9, 1e-6, 0.0])
    truth, _ = power_product(exact, counts, 0 * off)
    for turn in (1, -1, 1j):
        found, error = power_product(exact + turn * off, counts, off)
        assert 0 < abs(found[0] - truth[0]) <= error[0] < 1.01 * (5e-6 + 2e-6)


BAGS: dict[str, tuple[list[tuple[Pair, int]], float]] = {
    "removed": ([(dilute(families.gaussian(1.0), 0.01), 1_000)], 1e-12),
    "added": ([(dilute_other(families.gaussian(1 / 0.6), 0.001), 100_000)], 1e-5),
    "replaced": ([(families.antipodal_gaussian(0.5, 0.1), 300)], 1e-6),
    "laplace": ([(families.laplace(0.1), 10_000)], 1e-6),
    "mixed": (
        [
            (families.gaussian(0.8), 1),
            (families.laplace(0.3), 4),
            (dilute(families.gaussian(1.2), 0.05), 30),
            (families.randomized_response(0.4, 3, 1e-9), 2),
        ],
        1e-6,
    ),
    "likely": ([(dilute(families.gaussian(0.5), 0.1), 1_000)], 0.3),
    "unlikely": ([(dilute(families.gaussian(0.5), 0.1), 1_000)], 1e-200),
}


@pytest.mark.parametrize("name", BAGS)
def test_inversion_agrees_with_convolution(name: str) -> None:
    """Two computations that share nothing but the pairs; both brackets hold the truth, so they overlap."""
    entries, delta = BAGS[name]
    bag = Composition(entries)
    assert bag.spectrum is not None
    low, high = (bag.spectrum.epsilon(delta, upper=upper) for upper in (False, True))
    assert low is not None
    assert high is not None
    assert 0 < low <= high <= low * (1 + 1e-7)
    assert bag._epsilon(delta, upper=False) <= high
    assert bag._epsilon(delta, upper=True) >= low


@pytest.mark.parametrize("name", BAGS)
def test_every_tilt_and_period_brackets_the_same_delta(name: str) -> None:
    entries, delta = BAGS[name]
    bag = Composition(entries)
    epsilon = bag.upper_epsilon(delta)
    assert bag.spectrum is not None
    best = bag.spectrum.for_epsilon(epsilon)
    assert best is not None
    brackets = []
    for share in (0.6, 0.8, 0.95, 1.0, 1.05, 1.15):
        for guess in (-3.0, 0.0, 3.0):
            made = bag.spectrum.invert(best.tilt * share, epsilon, math.log(delta) + guess)
            if made is not None:
                brackets.append([made.log_delta(epsilon, upper=upper) for upper in (False, True)])
    assert len(brackets) > 3
    assert max(low for low, _ in brackets) <= min(high for _, high in brackets)


def test_gaussians_are_inverted_to_their_closed_form() -> None:
    for mu, epsilon in ((0.3, 0.1), (1.0, 4.0), (2.0, 30.0)):
        spectrum = Spectrum([(GaussianMoments(mu / 2), 4)], 0.0)
        made = spectrum.for_epsilon(epsilon)
        assert made is not None
        low, high = (made.log_delta(epsilon, upper=upper) for upper in (False, True))
        assert low <= families.gaussian_log_delta(mu, epsilon) <= high <= low + 1e-8


def inverted() -> Inversion:
    made = Spectrum([(GaussianMoments(1.0), 1)], 0.0).for_epsilon(4.0)
    assert made is not None
    return made


@pytest.mark.parametrize(
    "wrong",
    [
        lambda distribution: replace(distribution, error=distribution.error + 1e-5),
        lambda distribution: replace(distribution, slack=distribution.slack + 1e-5),
        lambda distribution: replace(
            distribution, others=tuple((away, more + 12) for away, more in distribution.others)
        ),
    ],
    ids=["terms", "moment", "periods"],
)
def test_every_stated_error_moves_the_answer_to_the_safe_side(
    wrong: Callable[[Inversion], Inversion],
) -> None:
    clean, worse = inverted(), wrong(inverted())
    assert worse.log_delta(4.0, upper=False) < clean.log_delta(4.0, upper=False) - 1e-7
    assert worse.log_delta(4.0, upper=True) >= clean.log_delta(4.0, upper=True)


def test_without_a_tilt_above_within_reach_nothing_is_claimed() -> None:
    """What the periods above add is bounded with a greater tilt; where there is none, lattices take over."""
    spectrum = Spectrum([(SampledGaussian(2.86, 0.008), 4)], 0.0)
    reached = np.isfinite(spectrum.log_moments(np.geomspace(1, 1e4, 200)))
    last = np.geomspace(1, 1e4, 200)[reached][-1]
    assert 0 < reached.sum() < 200
    # a lesser tilt, down to one half, is taken if that is of use
    assert spectrum._frame(2.1 * last, 1.0, -18.0) is None
    assert spectrum.invert(2.1 * last, 1.0, -18.0) is None


def test_each_period_is_bounded_from_either_side() -> None:
    for entries, _ in BAGS.values():
        spectrum = Composition(entries).spectrum
        made = spectrum.for_epsilon(3.0) if spectrum else None
        if made is not None:
            assert sorted(np.sign([away for away, _ in made.others])) == [-1, 1]


def test_the_time_does_not_grow_with_the_count() -> None:
    """A hundred times as many steps take as many frequencies, give or take a few."""
    step = dilute(families.gaussian(1.0), 0.01)
    few, many = (Composition([(step, count)]).spectrum for count in (10**3, 10**5))
    assert few is not None
    assert many is not None
    sizes = [
        found[0].terms.size
        for distribution in (few, many)
        if (found := distribution.for_delta(math.log(1e-6)))
    ]
    assert len(sizes) == 2
    assert max(sizes) < 400


def test_brackets_of_training_runs_are_tight() -> None:
    for noise, rate, steps in ((1.0, 0.01, 1_000), (0.6, 0.001, 100_000), (2.0, 0.1, 10_000)):
        bound = (steps * privacy.gaussian(noise).sampled(rate)).bound(delta=1e-12)
        assert 0 < bound.lower <= bound.upper <= bound.lower * (1 + 1e-7)


def mixture(mu: float, rate: float, size: int) -> tuple[Ratio, np.ndarray, np.ndarray]:
    """r as a mixture of e^{cx}: for the quadrature, the logarithms of its weights, and c."""
    j = np.arange(size + 1.0)
    chosen = np.array([math.comb(size, int(n)) for n in j])
    log_weights = np.log(chosen) + j * math.log(rate) + (size - j) * math.log1p(-rate) - (j * mu) ** 2 / 2
    if size == 1:
        return Dilution(np.array([[mu]]), np.array([[rate]])), log_weights, mu * j
    return GroupRatio(GaussianShifts(mu, rate, size)), log_weights, mu * j


@pytest.mark.parametrize(
    ("mu", "rate", "size"), [(1.0, 0.01, 1), (2.5, 0.3, 1), (0.3, 0.9, 1), (1.0, 0.02, 10)]
)
def test_a_ratio_turns_and_shrinks_in_a_strip_no_more_than_is_said(mu: float, rate: float, size: int) -> None:
    ratio, log_weights, slopes = mixture(mu, rate, size)
    x = np.linspace(-12, 25, 400)
    slope = ratio.log_ratio(x)[1]
    sharpest = 0.0
    for share in (0.01, 0.3, 0.7, 1.0):
        y = share * math.pi / 3 / float(ratio.steepness.max())
        theta = ratio.steepness * y
        logs = log_weights + np.multiply.outer(x, slopes)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        mean = (weights * np.exp(1j * y * slopes)).sum(axis=1) / weights.sum(axis=1)
        turned = Cells._strip(slope, theta, 1.0, 0.0)[0]
        shrunk = Cells._strip(slope, theta, 0.0, -1.0)[0]
        assert (np.abs(mean) <= 1 + 1e-12).all()
        assert (np.abs(np.angle(mean)) <= turned + 1e-12).all()
        assert (-np.log(np.abs(mean)) <= shrunk + 1e-12).all()
        sharpest = max(sharpest, float(np.max(np.abs(np.angle(mean)) / (turned + 1e-12))))
    # the bound is reached, so that less would be too little
    assert sharpest > 0.99


def test_bounds_of_strips_grow_with_the_slope() -> None:
    """So the greater end of a cell is the greatest of the cell."""
    slope = np.linspace(0, 1, 500)[None, :]
    for theta in np.linspace(0.01, math.pi / 3, 7):
        assert (np.diff(Cells._strip(slope, np.array([[theta]]), 3.0, -2.0)) >= 0).all()


def test_a_lesser_tilt_needs_fewer_frequencies_where_the_best_one_sees_two_places() -> None:
    distributions = [(SampledGaussian(1 / (1 + i / 1000), 0.001 + 1e-6 * i), 1) for i in range(100)]
    spectrum = Spectrum([*distributions], 0.0)
    found = spectrum.for_delta(math.log(1e-6), (0.05, math.log(1e-6)))
    assert found is not None
    assert found[0].terms.size < 600
    assert found[0].is_tight(0.07427766)
    sides = [found[0].epsilon(math.log(1e-6), found[1], upper=upper) for upper in (False, True)]
    assert 0.0742775 < sides[0] <= sides[1] < 0.0742779


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_what_is_about_the_moments_is_close_to_them(distribution: SampledGaussian) -> None:
    """The tilts are chosen by it; only their cost depends on it, but they are no good if it is far off."""
    for tilt in (0.1, 1.0, 10.0):
        line = distribution.line(tilt)
        assert line is not None
        about = float(distribution.log_moments(np.array([tilt]))[0])
        assert about == pytest.approx(line.log_moment, rel=1e-9, abs=1e-11)
