# SPDX-License-Identifier: Apache-2.0
"""The largest noisy scores: the right odds, the right order, decided exactly where floats cannot."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet import testing
from discreet.errors import BadParameter
from discreet.noise import race
from tests.noise.sources import Replay

NOISES = pytest.mark.parametrize("noise", race.NOISES)


def with_words(words, scores, **options):
    with testing.using(Replay(words)):
        return race.largest(scores, **options).tolist()


def exact_keys(words, scores, noise):
    """The same noisy scores in plain floats: good enough to check an order that is not close."""
    v = (np.asarray(words, np.uint64) >> np.uint64(1)).astype(float) * 2.0**-63
    sign = np.where(np.asarray(words, np.uint64) & np.uint64(1), -1, 1)
    noises = {"exponential": -np.log(v), "laplace": -sign * np.log(v), "gumbel": -np.log(-np.log1p(-v))}
    return np.asarray(scores, float) + noises[noise]


def precise_noise(word, noise):
    """The noise of a word with 50 digits."""
    with mpmath.workdps(50):
        v = mpmath.mpf(2 * (word >> 1) + 1) / 2**64
        value = -mpmath.log(-mpmath.log(1 - v)) if noise == "gumbel" else -mpmath.log(v)
        value = -value if noise == "laplace" and word & 1 else value
        return Fraction(int(mpmath.nint(value * 2**120)), 2**120)


@NOISES
@pytest.mark.parametrize("forced", [False, True])
def test_the_order_is_that_of_the_noisy_scores(noise, forced, monkeypatch):
    with testing.seeded("race") as seeded:
        words = seeded.words(40)
    scores = np.arange(40) % 7 / 3
    if forced:
        monkeypatch.setattr(race, "LEAST", 2.0)
    order = with_words(words, scores, noise=noise, count=40)
    assert order == np.argsort(-exact_keys(words, scores, noise)).tolist()
    assert with_words(words, scores, noise=noise, count=3) == order[:3]
    assert with_words(words, scores, noise=noise) == order[:1]


@NOISES
def test_neighbouring_words_are_told_apart(noise):
    for word in (2**62, 2**63 + 2**40, 2**64 - 2**41, 2**33, 6, 2**64 - 12):
        assert with_words([word, word + 2], [5, 5], noise=noise) == [
            0
        ]  # the smaller uniform, the larger noise
        assert with_words([word + 2, word], [5, 5], noise=noise) == [1]


@NOISES
def test_equal_words_are_told_apart_by_more_bits(noise):
    replay = Replay([2**62, 2**62])
    with testing.using(replay):
        assert race.largest([0, 0], noise=noise, count=2).tolist() in ([0, 1], [1, 0])
    assert replay.refined >= 2


@NOISES
def test_a_difference_no_float_can_see_decides(noise):
    word, third = 2**63 + 2**50, Fraction(1, 3)
    for scores, scale in (
        ([2**62, 2**62 + 1], 2**40),
        ([third, third + Fraction(1, 10**30)], Fraction(1, 10**15)),
    ):
        assert with_words([word, word], scores, noise=noise, scale=scale) == [1]
        assert with_words([word, word], scores[::-1], noise=noise, scale=scale) == [0]


@NOISES
def test_a_photo_finish_is_decided_exactly(noise):
    """Scores that undo the difference of two noises up to 1e-17, less than a float of that size can show."""
    with testing.seeded("photo") as seeded:
        words = (seeded.words(80) >> np.uint64(3)) + np.uint64(3 << 61)  # uniforms between 3/8 and 1/2
    for first, second in words.reshape(-1, 2).tolist():
        gap = precise_noise(second, noise) - precise_noise(first, noise)
        for winner, lead in ((0, 1e-17), (1, -1e-17)):
            assert with_words([first, second], [gap + Fraction(lead), 0], noise=noise) == [winner]


def test_weights_are_added_exactly():
    word, tiny = 2**63 + 2**50, Fraction(1, 10**17)
    assert with_words([word, word], [0, 0], weights=[Fraction(1, 3), Fraction(1, 3) + tiny]) == [1]
    assert with_words([word, word], [0, 0], weights=[Fraction(1, 3) + tiny, Fraction(1, 3)]) == [0]
    assert with_words([word], [0, 0, 9], weights=[0, 1, 0]) == [1]


def test_scores_of_any_size_take_part():
    far = [-1e308, 1e308, 0.0]
    assert all(race.largest(far, 1.0)[0] == 1 for _ in range(20))
    assert race.largest(far, 1.0, count=3).tolist() == [1, 2, 0]
    assert race.largest([-(2**63), 2**63 - 1], 1.0).tolist() == [1]
    assert race.largest(np.array([0, 2**64 - 1], np.uint64), 1.0).tolist() == [1]
    chosen = {int(race.largest(far, 1e308)[0]) for _ in range(400)}
    assert chosen == {0, 1, 2}  # each is chosen with a probability of at least 9 percent


def test_one_of_a_million_candidates_wins_by_far():
    scores = np.zeros(1_000_000)
    scores[123_456] = 60.0
    assert race.largest(scores, 1.0).tolist() == [123_456]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"scores": [1.0, float("nan")]}, "DP101"),
        ({"scores": [1.0, float("inf")]}, "DP101"),
        ({"scores": [[1.0]]}, "DP101"),
        ({"scores": ["a"]}, "DP101"),
        ({"scores": [True]}, "DP101"),
        ({"scores": []}, "DP102"),
        ({"scores": [1], "count": 2}, "DP102"),
        ({"scores": [1], "count": 0}, "DP102"),
        ({"scores": [1], "scale": 0}, "DP102"),
        ({"scores": [1], "noise": "normal"}, "DP105"),
        ({"scores": [1], "weights": [1], "noise": "laplace"}, "DP105"),
        ({"scores": [1], "weights": [-1]}, "DP101"),
        ({"scores": [1, 2], "weights": [1]}, "DP101"),
        ({"scores": [1], "weights": [Fraction(1, 10**400)]}, "DP101"),
        ({"scores": [1, 2], "weights": [1, 0], "count": 2}, "DP102"),
    ],
)
def test_what_has_no_distribution_is_refused(arguments, code):
    with pytest.raises(BadParameter) as caught:
        race.largest(**arguments)
    assert caught.value.code == code


def test_orders_of_all_candidates_occur():
    seen = {tuple(race.largest([0, 0, 0], count=3).tolist()) for _ in range(400)}
    assert seen == set(itertools.permutations(range(3)))
