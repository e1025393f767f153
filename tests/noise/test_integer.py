# SPDX-License-Identifier: Apache-2.0
"""Shapes, kinds and limits of whole-number noise; its distribution is tested in tests/statistical."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet import testing
from discreet.errors import BadParameter
from discreet.noise import coin, integer

SAMPLERS = [integer.geometric, integer.discrete_laplace, integer.rounded_gaussian, integer.discrete_gaussian]
ALL = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.__name__)


@ALL
def test_one_number_or_an_array(sampler):
    assert isinstance(sampler(3), int)
    assert sampler(3, 5).shape == (5,)
    assert sampler(3, (2, 3)).shape == (2, 3)
    assert sampler(3, 0).shape == (0,)
    assert sampler([1.0, 2.0]).shape == (2,)
    assert sampler(np.ones((4, 1)), (4, 6)).shape == (4, 6)
    assert sampler(3, 5).dtype == np.int64


@ALL
def test_a_scale_is_any_kind_of_number(sampler):
    for scale in (2, 2.5, Fraction(1, 3), np.float32(0.1), np.int64(3), np.float64(7)):
        assert isinstance(sampler(scale), int)
        assert sampler(scale, 9000).size == 9000  # more than a chunk


@ALL
@pytest.mark.parametrize(
    "scale",
    [
        0,
        -1,
        float("nan"),
        float("inf"),
        True,
        "1",
        None,
        {},
        [1.0, 0.0],
        [float("nan")],
        ["1"],
        [1j],
        [True],
        [Fraction(1, 3)],
        [None],
    ],
)
def test_what_is_no_scale_is_refused(sampler, scale):
    with pytest.raises(BadParameter):
        sampler(scale)


@ALL
@pytest.mark.parametrize("scale", [2.0**47, 2.0**-47, 1e300, [1.0, 1e20]])
def test_a_scale_beyond_exact_integers_is_refused(sampler, scale):
    with pytest.raises(BadParameter) as caught:
        sampler(scale)
    assert caught.value.code == "DP108"


@ALL
@pytest.mark.parametrize("size", [-1, 1.5, "3", (2, -1), True])
def test_what_is_no_size_is_refused(sampler, size):
    with pytest.raises(BadParameter):
        sampler(1.0, size)


@ALL
def test_scales_that_do_not_fit_the_size_are_refused(sampler):
    with pytest.raises(BadParameter) as caught:
        sampler([1.0, 2.0, 3.0], (2,))
    assert caught.value.code == "DP107"


@ALL
def test_the_largest_and_the_least_scale_work(sampler):
    assert np.abs(sampler(2.0**46, 5)).max() > 2**30
    assert (sampler(2.0**-46, 1000) == 0).all()


@ALL
def test_a_seed_gives_the_same_array(sampler):
    with testing.seeded(1):
        first = sampler(5.5, 20_000)
    with testing.seeded(1):
        assert (sampler(5.5, 20_000) == first).all()


def test_a_scale_that_rounds_up_to_a_whole_number_keeps_its_distribution(monkeypatch):
    """The float of this scale has another floor than the scale itself; both paths must use one and the same."""
    monkeypatch.setattr(coin, "SLACK", 2.0)
    samples = integer.discrete_gaussian(3 - Fraction(1, 10**20), 4000)
    assert 2.6 < samples.std() < 3.4


def test_uniform_integers_cover_their_range():
    assert set(integer.uniform(3, 1000).tolist()) == {0, 1, 2}
    assert integer.uniform(1) == 0
    assert integer.uniform(1, 4).tolist() == [0, 0, 0, 0]
    assert 0 <= integer.uniform(2**46, 1000).min() <= integer.uniform(2**46, 1000).max() < 2**46
    for below in (0, -1, 2.0, True, 2**47):
        with pytest.raises(BadParameter):
            integer.uniform(below)


def test_coins_that_cannot_fail_do_not():
    assert coin.bernoulli(1, 1000).all()
    assert not coin.bernoulli(0, 1000).any()
    assert coin.bernoulli(np.array([0.0, 1.0] * 500)).reshape(-1, 2).sum(axis=0).tolist() == [0, 500]
    assert coin.bernoulli_exp_minus(0, 1000).all()
    assert not coin.bernoulli_exp_minus(1e300, 1000).any()
    assert isinstance(coin.bernoulli(0.5), bool)
    assert isinstance(coin.bernoulli_exp_minus(0.5), bool)
    assert coin.bernoulli_exp_minus([0.5, 1.0], (3, 2)).shape == (3, 2)


@pytest.mark.parametrize(
    "p", [-0.1, 1.1, float("nan"), True, "a", {}, [0.5, 1.5], [float("nan")], ["a"], [Fraction(1, 3)]]
)
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(BadParameter):
        coin.bernoulli(p)


@pytest.mark.parametrize("x", [-0.1, float("nan"), float("inf"), True, [0.5, -1.5], [float("nan")]])
def test_what_is_no_exponent_is_refused(x):
    with pytest.raises(BadParameter):
        coin.bernoulli_exp_minus(x)


@pytest.mark.parametrize("many", [False, True])
def test_a_coin_on_its_threshold_reads_on(many):
    """p = 2**-64 / 3: sixty-four zeros leave it open, and the next bits decide."""
    p = 2.0**-66
    chance = [p] if many else p
    for next_word, outcome in ((0, True), (2**62 - 1, True), (2**62, False), (2**64 - 1, False)):
        with testing.using(testing.ScriptedSource(words=[0, next_word])):
            assert np.all(coin.bernoulli(chance, 1) == outcome)
    with testing.using(testing.ScriptedSource(words=[1])):
        assert not coin.bernoulli(chance, 1).any()
