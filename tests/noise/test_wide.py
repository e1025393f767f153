# SPDX-License-Identifier: Apache-2.0
"""Noise of a large scale, in blocks: the same distribution as the plain way, by exact sums, by walks and by samples."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet import testing
from discreet.noise import integer, lazy, wide
from discreet.noise.scales import Scales
from tests.chance import may_fail
from tests.noise.sources import Replay
from tests.statistical import fit
from tests.statistical.constants import ALPHA, FEW, MANY
from tests.statistical.test_integer_distributions import DISTRIBUTIONS, SAMPLERS

FAMILIES = {
    "geometric": (integer.GeometricNoise, wide.WideGeometric, integer.GeometricNoise),
    "gaussian": (integer.GaussianMagnitude, wide.WideGaussian, integer.GaussianMagnitude),
}
BOTH = pytest.mark.parametrize("family", FAMILIES)


def made(family, coarse_scale, shift):
    """The noise in blocks, and the plain distribution that it must have."""
    plain, blocks, coarse = FAMILIES[family]
    scales = Scales(coarse_scale)
    return blocks(coarse(scales), scales, shift), plain(Scales(coarse_scale * 2**shift))


def chance(distribution, k, bits=90):
    """P(sample = k) of a plain magnitude, within 2**-88."""
    upper = Fraction(sum(distribution.tail(0, k, bits)), 2 << bits) if k else Fraction(1)
    return upper - Fraction(sum(distribution.tail(0, k + 1, bits)), 2 << bits)


def define(distribution, source):
    """The definition: block, place and coin a bit at a time, and nothing that is sure beforehand."""
    block = lazy.locate(lazy.Uniform(source, step=1), distribution.coarse, index=0, start=0)
    bits = distribution.shift + distribution.halves
    while True:
        first = source.bits(bits)
        place, coin = lazy.Uniform(source, first, bits, step=1), lazy.Uniform(source, step=1)
        if wide.is_kept(distribution, 0, block, place, coin):
            return abs(distribution.number(block, first, distribution.shift))


@BOTH
@pytest.mark.parametrize(("coarse_scale", "shift"), [(Fraction(3, 2), 1), (Fraction(5, 3), 2)])
def test_blocks_and_places_multiply_to_the_plain_chances(family, coarse_scale, shift):
    distribution, plain = made(family, coarse_scale, shift)
    bits = distribution.shift + distribution.halves
    found = {}
    with mpmath.workdps(30):
        for block in range(6):
            kept = lambda v, b=block: mpmath.exp(-distribution.exponent(0, b, v))  # noqa: E731
            edges = [mpmath.mpf(i) / 2**bits for i in range(2**bits + 1)]
            parts = [mpmath.quad(kept, edges[i : i + 2]) for i in range(2**bits)]
            for place, part in enumerate(parts):
                number = abs(distribution.number(block, place, shift))
                share = part / sum(parts) * mpmath.mpf(chance(distribution.coarse, block).numerator)
                found[number] = found.get(number, 0) + share / chance(distribution.coarse, block).denominator
        for number in range(4 * 2**shift):
            truth = chance(plain, number)
            assert abs(found[number] - mpmath.mpf(truth.numerator) / truth.denominator) < 1e-20


@BOTH
def test_a_walk_of_the_bit_tree_brackets_every_probability(family):
    distribution, plain = made(family, Fraction(1), 1)
    decided, rest = testing.walk(lambda source: define(distribution, source), 15)
    assert sum(decided.values()) + rest == 1
    assert rest < Fraction(1, 5)
    for number, mass in decided.items():
        assert mass <= chance(plain, number) + Fraction(1, 2**80)
        assert chance(plain, number) <= mass + rest


def test_a_walk_notices_a_block_without_its_coin(monkeypatch):
    monkeypatch.setattr(wide, "is_kept", lambda *_: True)
    distribution, plain = made("geometric", Fraction(1), 1)
    decided, rest = testing.walk(lambda source: define(distribution, source), 15)
    assert any(
        not mass - Fraction(1, 2**80) <= chance(plain, k) <= mass + rest for k, mass in decided.items()
    )


@BOTH
@pytest.mark.parametrize("shift", [3, 11, 27])
def test_what_is_sure_is_kept_at_the_worst_place(family, shift):
    """The least coarse scale, the furthest near block, the last place, the greatest coin that is taken for sure."""
    distribution, _ = made(family, Fraction(2**wide.COARSE_BITS), shift)
    bits = shift + distribution.halves
    furthest = int(min(distribution.far(slice(0, 1)), 40 * 2.0**wide.COARSE_BITS))
    for block in (0, 1, 2**wide.COARSE_BITS, furthest):
        for place in (0, 1 << (bits - 1), (1 << bits) - 1):
            sure = lazy.Uniform(None, (wide._first_unsure() - 1) >> bits, 64 - bits)
            known = lazy.Uniform(testing.SeededSource(0), place, bits)
            assert wide.is_kept(distribution, 0, block, known, sure)
    last = lazy.Uniform(testing.SeededSource(0), (1 << bits) - 1, bits)
    coin = lazy.Uniform(testing.SeededSource(0), (1 << (64 - bits)) - 1, 64 - bits)
    assert not wide.is_kept(distribution, 0, furthest, last, coin)


@BOTH
def test_both_paths_agree_on_the_same_words(family, monkeypatch):
    distribution, _ = made(family, Fraction(2**19 - 1), 20)
    with testing.seeded("words") as seeded:
        words = seeded.words(1200)
    words[600:] &= np.uint64(2**63 - 1)  # the coins of these are far from one, so that none is drawn again
    fast = wide.draw(distribution, 600, Replay(words), signed=True)
    monkeypatch.setattr(wide, "_first_unsure", lambda: 0)
    exact = wide.draw(distribution, 600, Replay(words), signed=True)
    assert (fast == exact).all()


def fits(samples, distribution):
    """How likely samples that follow the distribution so badly are, at most."""
    support = np.arange(samples.min(), samples.max() + 1)
    counts = np.bincount(samples - samples.min(), minlength=support.size)
    return fit.p_value(counts, fit._masses(distribution, support))


@pytest.fixture
def coarse_bits(monkeypatch):
    """Small blocks at small scales: what is made for one scale is forgotten before and after."""

    def change(bits):
        monkeypatch.setattr(wide, "COARSE_BITS", bits)
        integer._wide_of_one.cache_clear()

    yield change
    integer._wide_of_one.cache_clear()


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@SAMPLERS
@pytest.mark.parametrize(("bits", "scale", "count"), [(3, 70.5, FEW), (8, 2100.0, MANY)])
def test_small_blocks_follow_the_distribution(sampler, bits, scale, count, coarse_bits):
    """With three bits every coin is decided exactly, with eight one in 32 (α as in constants.py)."""
    coarse_bits(bits)
    assert wide.is_wide(scale)
    fit.accepts_only(sampler, DISTRIBUTIONS[sampler], scale, count)


def test_a_second_zero_would_be_noticed(coarse_bits, monkeypatch):
    coarse_bits(3)
    monkeypatch.setattr(wide.WideLaplace, "two_zeros", False)
    samples = integer.discrete_laplace(64.0, 10 * FEW)
    assert fits(samples, lambda k: fit.discrete_laplace(k, 64.0)) < ALPHA


def test_places_without_a_coin_would_be_noticed(coarse_bits, monkeypatch):
    coarse_bits(0)
    monkeypatch.setattr(wide, "is_kept", lambda *_: True)
    samples = integer.geometric(8.0, MANY)
    assert fits(samples, lambda k: fit.geometric(k, 8.0)) < ALPHA


CONTINUOUS = {
    integer.geometric: stats.expon,
    integer.discrete_laplace: stats.laplace,
    integer.rounded_gaussian: stats.norm,
    integer.discrete_gaussian: stats.norm,
}


@SAMPLERS
@pytest.mark.parametrize("scale", [2.0**22, 3.0 * 2**32, 2.0**46, Fraction(10**15, 21)])
def test_large_scales_follow_the_distribution_above_and_are_uniform_below(sampler, scale):
    """Cells of a 64th of the scale, and the last six bits (α as in constants.py; the sample size rejects WRONG)."""
    samples = sampler(scale, MANY)

    def cells(k, wrong=1.0):
        ends = CONTINUOUS[sampler].cdf(np.array([k, k + 1]) / 64 * wrong)
        return ends[1] - ends[0]

    parts = np.floor(samples / (float(scale) / 64)).astype(np.int64)
    assert fits(parts, cells) > ALPHA
    assert fits(parts, lambda k: cells(k, 1.2)) < ALPHA
    assert fits(samples & 63, lambda k: np.full(k.size, 1 / 64)) > ALPHA
    assert fits(samples // 2 & 63, lambda k: np.where(k < 32, 1.1, 0.9) / 64) < ALPHA


@SAMPLERS
def test_single_samples_and_scales_of_their_own(sampler):
    """The median of |sample| / scale lies within these ends: by Hoeffding each side fails with probability below 1e-15."""
    one = [sampler(2.0**40) for _ in range(400)]
    each = sampler(np.array([3.0, 2.0**21, 2.0**40]), (4000, 3))
    assert isinstance(one[0], int)
    for part, scale in ((one, 2.0**40), *zip(each.T, (3.0, 2.0**21, 2.0**40), strict=True)):
        assert 0.2 < np.median(np.abs(part)) / scale < 1.3
