# SPDX-License-Identifier: Apache-2.0
"""Intervals and bands fail no more often than they say: by exact sums, not by sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from discreet.audit.bounds import Corners, clopper_pearson, dkw, excess
from discreet.errors import BadParameter


def corner(false_alarm, detection):
    return Corners(np.array([false_alarm]), np.array([detection]))


@pytest.mark.parametrize("trials", [1, 2, 7, 40, 1000])
@pytest.mark.parametrize("alpha", [0.2, 1e-3, 1e-9])
def test_clopper_pearson_covers_by_exact_sums(trials, alpha):
    hits = np.arange(trials + 1)
    lower, upper = clopper_pearson(hits, trials, alpha)
    for p in [1e-6, 0.01, 0.3, 0.5, 0.77, 0.999]:
        masses = stats.binom.pmf(hits, trials, p)
        assert masses[lower > p].sum() <= alpha
        assert masses[upper < p].sum() <= alpha


def test_clopper_pearson_is_not_wider_than_it_must_be():
    trials, alpha = 40, 0.01
    hits = np.arange(trials + 1)
    lower, _ = clopper_pearson(hits, trials, alpha)
    # just above the bound of k hits, k or more hits have probability alpha
    failing = [stats.binom.sf(k - 1, trials, lower[k] * (1 + 1e-6)) for k in hits[1:]]
    assert np.allclose(failing, alpha, rtol=1e-3)


def test_nothing_and_everything_have_the_ends_of_the_interval():
    lower, upper = clopper_pearson([0, 10], 10, 0.05)
    assert lower[0] == 0
    assert upper[1] == 1
    assert upper[0] == pytest.approx(1 - 0.05 ** (1 / 10))


@pytest.mark.parametrize("trials", [1, 3, 20, 500])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
def test_the_band_covers_by_the_exact_distribution_of_smirnov(trials, alpha):
    width = dkw(trials, alpha)
    assert width >= 1 or stats.ksone.sf(width, trials) <= alpha
    if trials == 500:
        assert stats.ksone.sf(0.9 * width, trials) > alpha  # and is not much too wide


def test_a_corner_proves_what_its_rates_say():
    assert corner(0.1, 0.5).epsilon(0.0) == pytest.approx(math.log(5))
    assert corner(0.1, 0.5).epsilon(0.2) == pytest.approx(math.log(3))
    assert corner(0.5, 0.9).epsilon(0.0) == pytest.approx(math.log(5))  # by the complement: 0.5 against 0.1
    assert corner(0.5, 0.5).epsilon(0.0) == 0
    assert corner(0.7, 0.3).epsilon(0.0) == 0
    assert corner(0.0, 0.0).epsilon(0.0) == 0
    assert corner(stats.norm.cdf(-1.0), 0.5).mu() == pytest.approx(1.0)
    assert corner(0.5, 0.4).mu() == 0


@pytest.mark.parametrize(
    "claim",
    [privacy.pure(1.0), privacy.gaussian(1.0), privacy.approximate(0.5, 0.01), privacy.laplace(1.0)],
    ids=repr,
)
@pytest.mark.parametrize("false_alarm", [1e-4, 0.02, 0.3, 0.8])
def test_a_claim_is_refuted_exactly_above_its_curve(claim, false_alarm):
    most = 1 - claim.tradeoff(false_alarm)
    assert excess(corner(false_alarm, most - 1e-6), claim).amount < 0
    above = excess(corner(false_alarm, most + 1e-6), claim)
    assert above.amount > 0
    flipped = excess(corner(1 - most - 1e-6, 1 - false_alarm), claim)  # the same test, of the other direction
    assert flipped.amount > 0
    assert excess(corner(1 - most + 1e-6, 1 - false_alarm), claim).amount < 0


def test_the_index_of_the_excess_is_that_of_the_corner():
    corners = Corners(np.array([0.5, 0.1, 0.2]), np.array([0.5, 0.9, 0.25]))
    highest = excess(corners, privacy.pure(1.0))
    assert highest.index == 1
    assert not highest.reversed or highest.amount == pytest.approx(0.9 - math.e * 0.1)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1, math.nan, True, "0.1"])
def test_an_error_probability_must_be_one(alpha):
    with pytest.raises(BadParameter):
        clopper_pearson(1, 10, alpha)
    with pytest.raises(BadParameter):
        dkw(10, alpha)
