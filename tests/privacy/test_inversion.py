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
from discreet.privacy.inversion import Inverted, Spectrum
from discreet.privacy.losses import Composition
from discreet.privacy.moments import AtomMoments, GaussianMoments, Moments, narrowed, power_product, sloped
from discreet.privacy.pairs import Pair, diluted, rediluted
from discreet.privacy.quadrature import SampledGaussian

KINDS = ("removed", "added", "replaced")
LAWS = [
    SampledGaussian(mu, rate, kind)
    for kind in KINDS
    for mu, rate in ((1.0, 0.01), (0.23, 0.4), (2.5, 1e-4), (1.4, 0.99999))
]


def moment(law: SampledGaussian, z: mpc) -> mpc:
    """E r(x)^u·r(-x)^v by the trapezoidal rule in 30 digits, with a step far below what the proof asks for."""
    mu, rate = mpf(law.mu), mpf(law.rate)
    step = 1 / mpf(12 + int(2 * abs(z.imag) * mu) + int(3 * mu))
    u, v = (-z, 0) if law.kind == "added" else (z + 1, -z if law.kind == "replaced" else 0)

    def integrand(x: mpf) -> mpc:
        r, mirrored = (1 - rate + rate * mp.exp(side * mu * x - mu * mu / 2) for side in (1, -1))
        return mp.exp(u * mp.log(r) + v * mp.log(mirrored) - x * x / 2)

    reach = 13 + (abs(z.real) + 1) * mu
    nodes = range(-int(reach / step), int(reach / step) + 1)
    return step / mp.sqrt(2 * mp.pi) * mp.fsum(integrand(step * j) for j in nodes)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("tilt", [0.3, 6.0])
def test_moments_of_sampled_gaussians_are_as_exact_as_they_say(law: SampledGaussian, tilt: float) -> None:
    line = law.line(tilt)
    assert line is not None
    with mp.workdps(30):
        real = moment(law, mpc(tilt, 0))
        assert abs(mp.log(real.real) - line.log_moment) <= line.error < 1e-11
        assert abs(mp.log(real.real) - law.log_moments(np.array([tilt]))[0]) <= 1e-12 * (1 + line.log_moment)
        for spacing in (0.2, 4.0):
            values, error = line.values(spacing, 9) or (None, 0.0)
            t = 8 * spacing
            truth = moment(law, mpc(tilt, t)) / real * mp.exp(-1j * mpf(t) * mpf(line.centre))
            assert values is not None
            assert abs(mpc(values[8]) - truth) <= error < 1e-10


OTHERS: dict[str, Moments] = {
    "gaussian": GaussianMoments(0.7),
    "laplace": sloped(0.8, 0.5, 0.5),
    "exponential": sloped(1.1, 0.0, 1 / -math.expm1(-1.1)),
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


@pytest.mark.parametrize("law", [*LAWS, *OTHERS.values()], ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("tilt", [0.5, 8.0])
def test_the_bound_beyond_a_frequency_holds_for_all_of_them(law: Moments, tilt: float) -> None:
    line = law.line(tilt)
    assert line is not None
    for spacing in (0.05, 0.5, 4.0):
        values, error = line.values(spacing, 96) or (np.zeros(1), 0.0)
        sizes = np.log(np.maximum.accumulate(np.abs(values)[::-1])[::-1] + 1e-300)
        for first in (1, 3, 10, 50):
            assert sizes[first] <= max(line.log_bound(first * spacing), -600.0) + 1e-12 + error


def test_the_bound_of_a_sampled_gaussian_is_of_use() -> None:
    line = SampledGaussian(1.0, 0.01).line(6.0)
    assert line is not None
    assert 1_000 * line.log_bound(30.0) < -20


def test_the_characteristic_function_of_uniform_laws() -> None:
    s = np.linspace(1e-3, 60.0, 600_001)
    sizes = np.maximum.accumulate(np.abs(np.sin(s) / s)[::-1])[::-1]
    assert np.all(narrowed(s) >= sizes - 1e-15)
    assert narrowed(np.array([0.1]))[0] == pytest.approx(math.sin(0.1) / 0.1)


def test_the_error_of_a_product_of_powers_covers_what_wrong_factors_do() -> None:
    exact = np.array([[0.9999 * np.exp(0.01j), 0.3j, 1.0]])
    counts, off = np.array([5_000.0, 2.0, 7.0]), np.array([1e-9, 1e-6, 0.0])
    truth, _ = power_product(exact, counts, 0 * off)
    for turn in (1, -1, 1j):
        found, error = power_product(exact + turn * off, counts, off)
        assert 0 < abs(found[0] - truth[0]) <= error[0] < 1.01 * (5e-6 + 2e-6)


BAGS: dict[str, tuple[list[tuple[Pair, int]], float]] = {
    "removed": ([(diluted(families.gaussian(1.0), 0.01), 1_000)], 1e-12),
    "added": ([(rediluted(families.gaussian(1 / 0.6), 0.001), 100_000)], 1e-5),
    "replaced": ([(families.antipodal_gaussian(0.5, 0.1), 300)], 1e-6),
    "laplace": ([(families.laplace(0.1), 10_000)], 1e-6),
    "mixed": (
        [
            (families.gaussian(0.8), 1),
            (families.laplace(0.3), 4),
            (diluted(families.gaussian(1.2), 0.05), 30),
            (families.randomized_response(0.4, 3, 1e-9), 2),
        ],
        1e-6,
    ),
    "likely": ([(diluted(families.gaussian(0.5), 0.1), 1_000)], 0.3),
    "unlikely": ([(diluted(families.gaussian(0.5), 0.1), 1_000)], 1e-200),
}


@pytest.mark.parametrize("name", BAGS)
def test_inversion_agrees_with_convolution(name: str) -> None:
    """Two computations that share nothing but the pairs; both brackets hold the truth, so they overlap."""
    entries, delta = BAGS[name]
    bag = Composition(entries)
    low, high = (bag._inverted_epsilon(delta, upper=upper) for upper in (False, True))
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
            made = bag.spectrum._inverted(best.tilt * share, epsilon, math.log(delta) + guess)
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


def inverted() -> Inverted:
    made = Spectrum([(GaussianMoments(1.0), 1)], 0.0).for_epsilon(4.0)
    assert made is not None
    return made


@pytest.mark.parametrize(
    "wrong",
    [
        lambda law: replace(law, error=law.error + 1e-5),
        lambda law: replace(law, slack=law.slack + 1e-5),
        lambda law: replace(law, others=tuple((away, more + 12) for away, more in law.others)),
    ],
    ids=["terms", "moment", "periods"],
)
def test_every_stated_error_moves_the_answer_to_the_safe_side(wrong: Callable[[Inverted], Inverted]) -> None:
    clean, worse = inverted(), wrong(inverted())
    assert worse.log_delta(4.0, upper=False) < clean.log_delta(4.0, upper=False) - 1e-7
    assert worse.log_delta(4.0, upper=True) >= clean.log_delta(4.0, upper=True)


def test_without_a_tilt_above_within_reach_nothing_is_claimed() -> None:
    """What the periods above add is bounded with a greater tilt; where there is none, lattices take over."""
    law = SampledGaussian(2.86, 0.008)
    spectrum = Spectrum([(law, 4)], 0.0)
    assert spectrum._period(0.995 * law.greatest_tilt, 1.0, -18.0) is None
    assert spectrum._inverted(0.995 * law.greatest_tilt, 1.0, -18.0) is None


def test_each_period_is_bounded_from_either_side() -> None:
    for entries, _ in BAGS.values():
        spectrum = Composition(entries).spectrum
        made = spectrum.for_epsilon(3.0) if spectrum else None
        if made is not None:
            assert sorted(np.sign([away for away, _ in made.others])) == [-1, 1]


def test_the_time_does_not_grow_with_the_count() -> None:
    """A hundred times as many steps take as many frequencies, give or take a few."""
    step = diluted(families.gaussian(1.0), 0.01)
    few, many = (Composition([(step, count)]).spectrum for count in (10**3, 10**5))
    assert few is not None
    assert many is not None
    sizes = [found[0].terms.size for law in (few, many) if (found := law.for_delta(math.log(1e-6)))]
    assert len(sizes) == 2
    assert max(sizes) < 400


def test_brackets_of_training_runs_are_tight() -> None:
    for noise, rate, steps in ((1.0, 0.01, 1_000), (0.6, 0.001, 100_000), (2.0, 0.1, 10_000)):
        bound = (steps * privacy.gaussian(noise).sampled(rate)).bound(delta=1e-12)
        assert 0 < bound.lower <= bound.upper <= bound.lower * (1 + 1e-7)
