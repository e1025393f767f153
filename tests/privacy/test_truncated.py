# SPDX-License-Identifier: Apache-2.0
"""Truncated pairs, against sums over the outcomes and a plain convolution on a fine grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.fft import irfft, rfft
from scipy.special import ndtr

from discreet import privacy
from discreet.privacy.truncated import truncations


def cut(losses, p, delta, order):
    """δ, t and D of a distribution without an infinite part, straight from the definition, with Q̂ normalised."""
    at = np.argsort(losses)
    at = at[p[at] > 0]
    losses, p = losses[at], p[at]
    tails = np.append(np.cumsum(p[::-1])[::-1][1:], 0.0)
    last = int(np.flatnonzero((tails <= delta) & (losses >= 0))[0])
    p, losses, lost = p[: last + 1], losses[: last + 1], tails[last]
    shift = math.log(float(np.sum(p * np.exp(-losses))) / float(p.sum()))  # log dP̂/dQ̂ is so much more
    moment = float(np.sum(p * np.exp((order - 1) * (losses + shift)))) / float(p.sum())
    return lost, float(losses[-1]) + shift, math.log(moment) / (order - 1)


@pytest.mark.parametrize("seed", range(8))
def test_tables_are_truncated_as_the_definition_says(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet([0.5] * 6, 2) * 0.99 + 0.01 / 6
    guarantee = privacy.pair((p / p.sum()).tolist(), (q / q.sum()).tolist())
    (row,) = truncations(guarantee, (0.2,), 4.0)
    ways = [cut(np.log(a / b), a / a.sum(), 0.2, 4.0) for a, b in ((p, q), (q, p))]
    for i, value in enumerate((row.delta, row.greatest, row.divergence)):
        assert value >= max(way[i] for way in ways) * (1 - 1e-9)
    # Q(L ≤ t) is taken to be 1, which is all that is lost
    assert row.delta <= 0.2
    assert row.divergence <= max(way[2] for way in ways) + 4 / 3 * 0.25


def test_a_bound_that_forgets_to_renormalise_would_be_too_low():
    """With P̂ divided by 1 - δ the divergence grows; the row has to cover it."""
    p, q = [0.1, 0.6, 0.3], [0.001, 0.599, 0.4]
    (row,) = truncations(privacy.pair(p, q), (0.1 + 1e-6,), 3.0)
    kept = np.array([0.6, 0.3]) / 0.9, np.array([0.599, 0.4]) / 0.999
    truth = math.log(float(np.sum(kept[0] ** 3 * kept[1] ** -2))) / 2
    back = np.array([0.001, 0.599, 0.4]), np.array([0.1, 0.6, 0.3])
    other = math.log(float(np.sum(back[0] ** 3 * back[1] ** -2))) / 2
    assert row.divergence >= max(truth, other)
    unnormalised = math.log(0.6**3 / 0.599**2 + 0.3**3 / 0.4**2) / 2
    assert unnormalised < truth


def sampled_gaussian_distribution(rate, noise, steps, removes, *, step=4e-5, low=-2.0, high=4.0):
    """The loss of a run by an FFT on a fine grid, masses split between neighbours so that the mean is kept."""
    x = np.linspace(-12 * noise, 1 + 12 * noise, 1_000_001)
    middle = (x[1:] + x[:-1]) / 2
    without = np.where(middle > 0, ndtr(-x[:-1] / noise) - ndtr(-x[1:] / noise), np.diff(ndtr(x / noise)))
    z = (x - 1) / noise
    present = np.where(middle > 1, ndtr(-z[:-1]) - ndtr(-z[1:]), np.diff(ndtr(z)))
    loss = np.log1p(rate * np.expm1((2 * middle - 1) / (2 * noise**2)))
    p = (1 - rate) * without + rate * present if removes else without
    loss = loss if removes else -loss
    size = int((high - low) / step)
    inside = (loss < high - 2 * step) & (loss > low)
    index = np.floor(loss[inside] / step).astype(int)
    share = loss[inside] / step - index
    distribution = np.bincount(index % size, p[inside] * (1 - share), size) + np.bincount(
        (index + 1) % size, p[inside] * share, size
    )
    composed = np.maximum(irfft(rfft(distribution) ** steps, size), 0.0)
    losses = step * np.arange(size)
    return np.where(losses >= high, losses - (high - low), losses), composed


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "order"),
    [(0.001, 0.8, 1000, 22.0), (0.01, 2.0, 300, 22.0), (0.001, 0.8, 1000, 9.0)],
)
def test_a_truncated_training_run_has_its_computed_divergence(rate, noise, steps, order):
    run = steps * privacy.gaussian(noise).sampled(rate)
    (row,) = truncations(run, (8e-8,), order)
    ways = [
        cut(*sampled_gaussian_distribution(rate, noise, steps, removes), 8e-8, order)
        for removes in (True, False)
    ]
    assert row.divergence == pytest.approx(max(way[2] for way in ways), rel=5e-3)
    assert row.greatest == pytest.approx(max(way[1] for way in ways), rel=5e-3)
    assert 7.5e-8 < row.delta <= 8e-8


def test_a_tiny_probability_is_resolved_too():
    run = 500 * privacy.gaussian(2.0).sampled(0.01)
    (row,) = truncations(run, (1e-30,), 100.0)
    assert 1e-31 < row.delta <= 1e-30
    assert row.divergence <= run.renyi(100.0) * (1 + 1e-3)
    assert truncations(run, (1e-30,), 1.5) == [], "not under the slight tilt that so low an order allows"


def test_a_truncated_gaussian_has_its_closed_form():
    """Loss N(μ²/2, μ²): the tail and the truncated moment in closed form."""
    mu, order, delta = 0.5, 10.0, 1e-6
    (row,) = truncations(privacy.gaussian(1 / mu), (delta,), order)
    t = row.greatest
    assert ndtr(-(t - mu**2 / 2) / mu) == pytest.approx(delta, rel=2e-3)
    moment = (order - 1) * order * mu**2 / 2 + math.log(ndtr((t - mu**2 / 2) / mu - (order - 1) * mu))
    assert row.divergence == pytest.approx(moment / (order - 1), rel=1e-3)
    assert row.divergence < order * mu**2 / 2


def test_what_is_known_by_a_curve_alone_or_reveals_more_is_left_out():
    assert truncations(privacy.renyi(8, 1.0), (1e-6,), 4.0) == []
    for leaking in (privacy.leaky(1e-3) + privacy.gaussian(2.0), 3 * privacy.approximate(0.5, 1e-3)):
        assert truncations(leaking, (1e-6,), 4.0) == []
