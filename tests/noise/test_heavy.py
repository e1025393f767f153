# SPDX-License-Identifier: Apache-2.0
"""Noise of any scale is the rounding of one mathematical real, and never an error."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet import testing
from discreet.errors import BadParameter
from discreet.noise import heavy, lazy
from discreet.noise.enclosure import normal_tails

PLAIN = [
    heavy.LaplaceNoise(),
    heavy.GaussianNoise(),
    heavy.CauchyNoise(),
    heavy.StudentTNoise(Fraction(5, 2)),
    heavy.LomaxNoise(Fraction(9, 2)),
    heavy.ArsinhNormalNoise(Fraction(3, 4)),
]
MIXED = [heavy.LaplaceLogNormalNoise(Fraction(1, 2)), heavy.UniformLogNormalNoise(Fraction(2, 3))]
ALL = pytest.mark.parametrize("noise", PLAIN + MIXED, ids=str)
SIMPLE = pytest.mark.parametrize("noise", PLAIN, ids=str)


@ALL
@pytest.mark.parametrize(
    "scale", [0, Fraction(1, 10**300), 1e-300, 0.1, 7, 2.0**70, Fraction(10) ** 40], ids=str
)
def test_no_scale_is_refused(noise, scale):
    for centre in (Fraction(7, 2), -0.3, 10**30):
        assert type(heavy.rounded_noise(noise, scale, centre)) is int


def test_not_even_one_beyond_every_float():
    assert abs(heavy.rounded_noise(heavy.LaplaceNoise(), Fraction(10) ** 400)) > 10**300


@ALL
def test_without_noise_the_centre_is_rounded_half_up(noise):
    found = [heavy.rounded_noise(noise, 0, Fraction(n, 4)) for n in range(-6, 7)]
    assert found == [math.floor(Fraction(n, 4) + Fraction(1, 2)) for n in range(-6, 7)]


@SIMPLE
@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1, 3)])
@pytest.mark.parametrize("centre", [Fraction(0), Fraction(1, 3), Fraction(-7, 8), Fraction(1, 2)])
def test_a_walk_of_the_bit_tree_brackets_every_probability(noise, scale, centre, monkeypatch):
    """P(floor(centre + scale Z + 1/2) = k) from the tails of Z, against all strings of a few bits."""
    monkeypatch.setattr(heavy, "_FIRST_BITS", 1)

    def tail(z, bits=60):  # P(Z > z), exactly enough
        low, _ = noise.tails(abs(z), bits) if z else (1 << bits, 0)
        half = Fraction(low, 2 << bits)
        return half if z >= 0 else 1 - half

    def draw(source):
        with testing.using(source):
            return heavy.rounded_noise(noise, scale, centre)

    decided, rest = testing.walk(draw, 9)
    assert sum(decided.values()) + rest == 1
    for k, mass in decided.items():
        edge = [(k + side * Fraction(1, 2) - centre) / scale for side in (-1, 1)]
        truth = tail(edge[0]) - tail(edge[1])
        assert mass <= truth + Fraction(1, 2**50)
        assert truth <= mass + rest + Fraction(1, 2**50)


def test_a_lazy_normal_is_one_number_however_closely_it_is_asked_for():
    with testing.seeded(5) as source:
        normal = heavy._LazyNormal(source)
        ends = [normal.magnitude(bits) for bits in (4, 10, 40, 130)]
        for (low, high), bits in zip(ends, (4, 10, 40, 130), strict=True):
            assert high - low <= Fraction(1, 2**bits)
        assert max(low for low, _ in ends) <= min(high for _, high in ends)


def test_a_lazy_normal_is_the_quantile_of_its_uniform():
    with testing.seeded("normal") as source:
        normal = heavy._LazyNormal(source)
        low, high = normal.magnitude(50)
        u = normal._uniform
        assert normal_tails(high, 80)[0] <= (u.prefix + 1) << (80 - u.known)
        assert normal_tails(low, 80)[1] >= u.prefix << (80 - u.known)


@pytest.mark.parametrize("noise", MIXED, ids=str)
def test_a_mixture_is_its_inner_distribution_stretched(noise):
    """Given Y, the tail of X exp(σY) is enclosed, at every precision, around the float one."""
    with testing.seeded(11) as source:
        for _ in range(20):
            distribution = noise.begin(source)
            low, high = distribution.normal.magnitude(60)
            y = float(low + high) / 2 * (-1 if distribution.normal.negative else 1)
            x = 0.4 * math.exp(-float(noise.sigma) * y)
            truth = math.exp(-x) if isinstance(noise, heavy.LaplaceLogNormalNoise) else max(0.0, 1 - x)
            for bits in (10, 50, 90):
                under, over = distribution.tails(Fraction(2, 5), bits)
                assert under * 2.0**-bits <= truth * (1 + 1e-12) + 1e-15
                assert truth * (1 - 1e-12) - 1e-15 <= over * 2.0**-bits
                assert over - under <= 2 + float(noise.sigma) * 4


def test_the_same_words_give_the_same_noise_at_every_first_precision(monkeypatch):
    """How many bits are looked at first changes the time and not the function of the bits."""

    class Stream:
        private = False

        def __init__(self):
            self.left = testing.SeededSource(3).bits(4000)
            self.count = 4000

        def bits(self, count):
            self.count -= count
            return (self.left >> self.count) & ((1 << count) - 1)

    answers = set()
    for first in (1, 8, 20, 64):
        monkeypatch.setattr(heavy, "_FIRST_BITS", first)
        with testing.using(Stream()):
            answers.add(heavy.rounded_noise(heavy.LomaxNoise(Fraction(3)), Fraction(50)))
    assert len(answers) == 1


@pytest.mark.parametrize("scale", [-1, math.nan, math.inf, True, "1", None])
def test_what_is_no_scale_is_refused(scale):
    with pytest.raises(BadParameter):
        heavy.rounded_noise(heavy.CauchyNoise(), scale)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "2", None, 10**9, 1e-9])
@pytest.mark.parametrize(
    "kind",
    [heavy.StudentTNoise, heavy.LaplaceLogNormalNoise, heavy.UniformLogNormalNoise, heavy.ArsinhNormalNoise],
)
def test_what_is_no_parameter_is_refused(kind, bad):
    with pytest.raises(BadParameter):
        kind(bad)


@pytest.mark.parametrize("bad", [1, 0.5, -1, math.nan, math.inf, True, "2", None])
def test_what_is_no_shape_is_refused(bad):
    with pytest.raises(BadParameter):
        heavy.LomaxNoise(bad)


def test_a_wrong_tail_is_noticed_by_the_walk(monkeypatch):
    """The walk above can fail: with the rounding half a cell off, the probabilities are others."""
    monkeypatch.setattr(heavy, "_FIRST_BITS", 1)
    distribution = heavy._Cells(heavy.LaplaceNoise(), Fraction(1), Fraction(0))  # floor instead of nearest
    decided, rest = testing.walk(lambda s: lazy.locate(lazy.Uniform(s, step=1), distribution, 0, 0), 9)
    assert decided[0] > Fraction(math.exp(0)) - Fraction(math.exp(-0.5)) + rest
