# SPDX-License-Identifier: Apache-2.0
"""Two ways, one function: floating point answers what exact arithmetic answers, or leaves it open."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet import testing
from discreet.noise import coin, integer, lazy
from discreet.noise.enclosure import exp_minus
from discreet.noise.scales import Scales
from tests.noise.sources import Replay

DISTRIBUTIONS = [integer.GeometricNoise, integer.LaplaceMagnitude, integer.GaussianMagnitude]
KINDS = pytest.mark.parametrize("kind", DISTRIBUTIONS, ids=lambda kind: kind.__name__)
SCALES = [Fraction(1, 3), 0.9, 10.0, 1000.5, 2.0**20]


def tail_at(distribution, k, bits=lazy.KNOWN_BITS):
    low, high = distribution.tail(0, k, bits)
    return low if high - low <= 1 else (low + high) // 2


def around_thresholds(distribution):
    """(prefix, sample) for prefixes near, and not on, the places where the sample changes."""
    pairs = []
    k = 1
    while tail_at(distribution, k) > 2 ** (lazy.KNOWN_BITS - 25):
        here, above, below = tail_at(distribution, k), 1 << lazy.KNOWN_BITS, tail_at(distribution, k + 1)
        above = tail_at(distribution, k - 1) if k > 1 else above
        near = [here + sign * 2**power for power in range(2, 48) for sign in (-1, 1)]
        inside = [prefix for prefix in near if below + 4 < prefix < above - 4]
        pairs += [(prefix, k if prefix < here else k - 1) for prefix in inside]
        k = max(k + 1, int(k * 1.7))
    return pairs


def draw(distribution, pairs):
    return lazy.draw(distribution, len(pairs), Replay([prefix << 1 for prefix, _ in pairs])).tolist()


@KINDS
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_samples_next_to_a_threshold_are_right(kind, scale):
    distribution = kind(Scales(scale))
    pairs = around_thresholds(distribution)
    assert len(pairs) > 100
    assert draw(distribution, pairs) == [sample for _, sample in pairs]
    for prefix, sample in pairs[::7]:
        scripted = testing.ScriptedSource(words=[prefix << 1] * 2)
        assert lazy.draw_one(distribution, scripted) == sample


@KINDS
def test_without_slack_the_same_words_go_wrong(kind, monkeypatch):
    monkeypatch.setattr(lazy, "SLACK", 0.0)
    distribution = kind(Scales(1000.5))
    pairs = around_thresholds(distribution)
    assert draw(distribution, pairs) != [sample for _, sample in pairs]


@KINDS
@pytest.mark.parametrize("scale", [0.9, 300.0])
def test_both_paths_agree_on_the_same_words(kind, scale, monkeypatch):
    distribution = kind(Scales(scale))
    with testing.seeded("words") as seeded:
        words = seeded.words(3000)
    fast = lazy.draw(distribution, words.size, Replay(words), signed=True)
    monkeypatch.setattr(lazy, "SLACK", 1.0)
    exact = lazy.draw(distribution, words.size, Replay(words), signed=True)
    assert (fast == exact).all()


@KINDS
def test_small_uniforms_are_left_to_exact_arithmetic(kind):
    distribution = kind(Scales(3.0))
    replay = Replay([0, 2, 2**20, 2**44])
    samples = lazy.draw(distribution, 4, replay)
    assert (np.diff(samples) <= 0).all()
    assert samples[0] > samples[3] > 10
    assert replay.refined >= 1  # sixty-three zeros say too little about any sample


@KINDS
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2)])
def test_a_walk_of_the_bit_tree_brackets_every_probability(kind, scale):
    distribution, depth = kind(Scales(scale)), 12
    decided, rest = testing.walk(lambda source: lazy.define(distribution, source), depth)
    assert sum(decided.values()) + rest == 1
    assert rest <= Fraction(40, 2**depth)
    for k, mass in decided.items():
        low = (
            tail_at(distribution, k, 80) - tail_at(distribution, k + 1, 80) - 4
            if k
            else 2**80 - tail_at(distribution, 1, 80) - 4
        )
        truth = Fraction(low, 2**80)
        assert mass <= truth + Fraction(8, 2**80)
        assert truth <= mass + rest


def test_a_signed_walk_is_symmetric():
    distribution = integer.LaplaceMagnitude(Scales(1))
    decided, _ = testing.walk(lambda source: lazy.define(distribution, source, signed=True), 11)
    assert all(decided[-k] == mass for k, mass in decided.items())


@pytest.mark.parametrize("p", [Fraction(5, 16), Fraction(1, 2), Fraction(0), Fraction(1), Fraction(255, 256)])
def test_a_dyadic_coin_has_exactly_its_probability(p):
    decided, rest = testing.walk(lambda source: coin.flip(p, lazy.Uniform(source, step=1)), 8)
    assert decided.get(True, 0) == p
    assert decided.get(False, 0) == 1 - p
    assert rest == 0


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(7, 10)])
def test_any_coin_leaves_one_string_open(p):
    depth = 16
    decided, rest = testing.walk(lambda source: coin.flip(p, lazy.Uniform(source, step=1)), depth)
    assert rest == Fraction(1, 2**depth)
    assert decided[True] == Fraction(p.numerator * 2**depth // p.denominator, 2**depth)


def test_an_exponential_coin_brackets_its_probability():
    threshold = lambda bits: exp_minus(Fraction(1), bits)  # noqa: E731
    decided, rest = testing.walk(lambda source: lazy.Uniform(source, step=1).below(threshold), 16)
    assert rest == Fraction(1, 2**16)
    assert (
        decided[True]
        < Fraction(36787944117, 10**11) + Fraction(1, 10**10)
        < decided[True] + rest + Fraction(1, 10**9)
    )


def test_a_walk_notices_a_biased_sampler():
    decided, rest = testing.walk(lambda source: source.bits(2) == 0, 4)
    assert (decided[True], decided[False], rest) == (Fraction(1, 4), Fraction(3, 4), 0)


def test_a_uniform_keeps_its_digits_when_refined():
    uniform = lazy.Uniform(testing.ScriptedSource(words=[9]), prefix=3, known=2)
    uniform.refine()
    assert (uniform.prefix, uniform.known) == ((3 << 64) + 9, 66)


@pytest.mark.parametrize("start", [0, 1, 17, 1000])
def test_the_search_finds_the_sample_from_anywhere(start):
    distribution = integer.GeometricNoise(Scales(10))
    uniform = lazy.Uniform(testing.ScriptedSource(words=[0]), prefix=1 << 60, known=63)  # 1/8: -10 log = 20.8
    assert lazy.locate(uniform, distribution, 0, start) == 20
