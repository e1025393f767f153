# SPDX-License-Identifier: Apache-2.0
"""Rare large losses next to many small ones: both sides hold, and other ways of counting agree with them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.fft
from mpmath import mp, mpf
from scipy.special import ndtr

from discreet import privacy
from discreet.privacy import jumps
from discreet.privacy.inversion import Spectrum
from discreet.privacy.jumps import Jumps, jumps_of
from discreet.privacy.quadrature import SampledGaussian

Run = tuple[float, float, int]


def spectrum_of(*runs: Run) -> Spectrum:
    return Spectrum([(SampledGaussian(1 / noise, rate), steps) for noise, rate, steps in runs], 0.0)


def split(*runs: Run) -> Jumps:
    (entry,) = spectrum_of(*runs).entries
    found = jumps_of(*entry)
    assert found is not None
    return found


def known(found: float | None) -> float:
    assert found is not None
    return found


# here one tilt is enough, and the inversion of moments is exact to many digits
CLOSE = [
    ([(2.0, 1e-6, 10**6)], 1e-5),
    ([(1.0, 1e-5, 10**6)], 1e-5),
    ([(1.0, 1e-6, 10**6)], 1e-12),
    ([(0.6, 1e-4, 10**6)], 1e-5),
    ([(10.0, 1e-4, 10**6)], 1e-50),
    ([(1.0, 0.01, 1000)], 1e-5),
    ([(0.8, 1e-3, 300)], 1e-4),
    ([(1.0, 1e-4, 10**5), (0.7, 1e-5, 10**6), (2.0, 1e-3, 10**4)], 1e-6),
]


@pytest.mark.parametrize(("runs", "delta"), CLOSE, ids=str)
def test_both_sides_hold_where_the_truth_is_known(runs: list[Run], delta: float) -> None:
    spectrum, by_jumps = spectrum_of(*runs), split(*runs)
    low, high = (known(spectrum.epsilon(delta, upper=upper)) for upper in (False, True))
    assert high - low <= 1e-4 * high
    below, above = (known(by_jumps.epsilon(delta, upper=upper)) for upper in (False, True))
    assert below <= high
    assert low <= above
    for epsilon in (0.3 * low, low, 1.7 * low):
        inverted = spectrum.for_epsilon(epsilon)
        lower, upper = (known(by_jumps.log_delta(epsilon, upper=side)) for side in (False, True))
        assert lower <= upper
        if inverted is not None:
            assert lower <= inverted.log_delta(epsilon, upper=True)
            assert upper >= inverted.log_delta(epsilon, upper=False)


def power(base: np.ndarray, count: int) -> np.ndarray:
    """(1 + base)^count; numpy's own log1p of complex numbers loses the digits of small ones."""
    size = np.log1p(2 * base.real + base.real**2 + base.imag**2) / 2
    return np.exp(count * (size + 1j * np.arctan2(base.imag, 1 + base.real)))


def lattice_delta(run: Run, epsilon: float, step: float, size: int, tilt: float) -> float:
    """δ(ε) by one plain FFT: each loss is split among three points so that its mean and its variance are kept."""
    noise, rate, steps = run
    mu = 1 / noise
    edges = np.concatenate([np.linspace(-10, 4, 20_000, endpoint=False), np.linspace(4, 30, 1_000_001)])
    x, far = (edges[1:] + edges[:-1]) / 2, edges[:-1] > 0
    absent, present = (
        np.where(far, ndtr(-e[:-1]) - ndtr(-e[1:]), ndtr(e[1:]) - ndtr(e[:-1])) for e in (edges, edges - mu)
    )
    losses = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    p = ((1 - rate) * absent + rate * present) * np.exp(tilt * losses)
    some = losses < 0.4 * size * step
    losses, p = losses[some], p[some]
    nearest = np.rint(losses / step).astype(int)
    away = losses / step - nearest
    distribution = np.bincount((nearest + 1) % size, p * (away**2 + away) / 2, size)
    distribution += np.bincount((nearest - 1) % size, p * (away**2 - away) / 2, size)
    distribution += np.bincount(nearest % size, np.where(nearest == 0, 0.0, p * (1 - away**2)), size)
    # what stays at 0, less 1, so that nothing small is lost next to it
    distribution[0] = 0.0
    distribution[0] = float(np.sum(-p * np.expm1(-tilt * losses))) - distribution.sum()
    composed = scipy.fft.irfft(power(scipy.fft.rfft(distribution), steps), size)
    points = step * ((np.arange(size) + size // 2) % size - size // 2)
    over = points > epsilon
    return float(np.sum((composed * np.exp(-tilt * points) * -np.expm1(epsilon - points))[over]))


@pytest.mark.parametrize(
    ("run", "delta", "lattice", "close"),
    [
        ((0.3, 1e-9, 10**9), 1e-5, (2e-4, 1 << 18, 0.0), 1e-3),
        ((0.3, 1e-9, 10**9), 1e-12, (2e-4, 1 << 19, 1.0), 2e-3),
        pytest.param((0.6, 1e-6, 10**6), 1e-12, (1e-4, 1 << 18, 3.0), 2e-2, marks=pytest.mark.slow),
        ((0.6, 1e-6, 10**8), 1e-12, (1e-3, 1 << 16, 4.0), 2e-2),
    ],
    ids=str,
)
def test_a_plain_transform_agrees(
    run: Run, delta: float, lattice: tuple[float, int, float], close: float
) -> None:
    noise, rate, steps = run
    bound = (steps * privacy.gaussian(noise).sampled(rate)).bound(delta=delta)
    assert bound.upper - bound.lower <= 1e-3 * min(1.0, bound.upper)
    assert lattice_delta(run, bound.upper, *lattice) == pytest.approx(delta, rel=close)


def one_jump_delta(run: Run, epsilon: float) -> float:
    """δ(ε) if one step decides and all others together are Gaussian."""
    noise, rate, steps = run
    mu = 1 / noise
    deviation = rate * math.sqrt(steps * math.expm1(mu * mu))
    x = np.linspace(4, 40, 400_001)
    losses = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    p = np.exp(losses - x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    y, mean = epsilon - losses, deviation**2 / 2
    rest = ndtr((mean - y) / deviation) - np.exp(y) * ndtr((-mean - y) / deviation)
    return steps * float(np.sum(p * rest, where=y < 20 * deviation))


@pytest.mark.parametrize(
    "run",
    [(1.0, 1e-6, 10**6), (0.5, 1e-9, 10**9), (0.6, 1e-9, 10**9), (1.0, 1e-9, 10**9), (1.0, 1e-6, 10**8)],
    ids=str,
)
def test_a_bound_that_one_jump_decides_is_narrow_and_right(run: Run) -> None:
    noise, rate, steps = run
    guarantee = steps * privacy.gaussian(noise).sampled(rate)
    bound = guarantee.bound(delta=1e-50)
    assert bound.upper - bound.lower <= 1e-3 * min(1.0, bound.upper)
    assert one_jump_delta(run, bound.upper) == pytest.approx(1e-50, rel=5e-3)
    delta = guarantee.bound(epsilon=bound.upper)
    assert 0.99e-50 <= delta.lower <= delta.upper <= 1e-50


def test_delta_falls_and_its_two_sides_stay_in_order() -> None:
    by_jumps = split((0.5, 1e-8, 10**8))
    epsilons = [0.0, *np.geomspace(1e-4, 30, 12)]
    lower, upper = (np.array([by_jumps.log_delta(e, upper=side) for e in epsilons]) for side in (False, True))
    assert np.all(lower <= upper)
    assert np.all(upper[2:] - lower[2:] <= 0.01)
    assert np.all(np.diff(upper) < 0)
    assert np.all(np.diff(lower) < 0)


def test_the_exponential_of_a_measure_is_the_sum_of_its_convolutions() -> None:
    """exp of a measure is Σ_j its j-fold convolution over j!."""
    masses = np.array([0.01, 0.2, 0.0, 1e-9, 0.05])
    expected, power_of = np.zeros(40), np.zeros(40)
    power_of[0] = 1.0
    for count in range(1, 60):
        expected += power_of
        power_of = np.convolve(power_of, masses)[:40] / count
    assert jumps._compound(masses, 40) == pytest.approx(expected, rel=1e-12)
    beyond = expected[25:].sum()
    assert beyond <= math.exp(jumps._log_farther(masses, 0.1, 25)) <= 50 * beyond


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_masses_of_jumps_are_on_the_safe_side(side: str) -> None:
    upper = side == "upper"
    noise, rate, steps = 0.5, 1e-4, 10**4
    by_jumps = split((noise, rate, steps))
    cut, knots = by_jumps.steps.cut, np.array([0.0, 0.002, 0.01, 0.02, 0.1, 1.0])
    p, q = by_jumps._cells(knots, upper=upper)
    with mp.workdps(30):
        ends = [
            mpf(-9),
            *((mp.log((mp.expm1(loss) + rate) / rate) + 2) / 2 for loss in knots.tolist()),
            mpf(12),
        ]

        def mass(x: mpf, *, removed: bool) -> mpf:
            ratio = 1 - mpf(rate) + rate * mp.exp(2 * x - 2) if removed else mpf(1)
            return steps * ratio * mp.npdf(x) * mp.ncdf((x - cut.at) / cut.width)

        for i, (low, high) in enumerate(itertools.pairwise(ends)):
            inner = [cut.at + cut.width * away for away in (-12, -4, 0, 4, 12)]
            places = [low, *(mpf(x) for x in inner if low < x < high), high]
            exact = [mp.quad(lambda x, r=removed: mass(x, removed=r), places) for removed in (True, False)]
            # a little of Q is given away, so that losses are rounded to the same side
            if upper:
                assert exact[0] <= p[i] + 1e-290
                assert p[i] <= exact[0] * mpf("1.01") + mpf("1e-20")
                assert p[i] < 1e-20 or q[i] / p[i] <= exact[1] / exact[0] * (1 + 1e-2)
            else:
                assert exact[0] * mpf("0.98") - mpf("1e-20") <= p[i] <= exact[0]


def test_what_is_no_sum_of_sampled_gaussians_has_no_jumps() -> None:
    (added,) = Spectrum([(SampledGaussian(1.0, 0.01, "added"), 1000)], 0.0).entries
    assert jumps_of(*added) is None
    (few,) = spectrum_of((1.0, 0.01, 10)).entries
    assert jumps_of(*few) is None
