# SPDX-License-Identifier: Apache-2.0
"""Pairs are neighbours, the worst ones are found, and a search spends no confidence."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from discreet import privacy
from discreet.audit import register_pair, search, worst_pair
from discreet.audit.pairs import _KNOWN, neighbours
from discreet.errors import DiscreetError
from discreet.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace, NoisyMax, SparseVector
from discreet.mechanisms.mechanism import Mechanism


@pytest.mark.parametrize("kind", [Laplace, Gaussian, Geometric, DiscreteGaussian])
@pytest.mark.parametrize("dimension", [None, 3])
def test_additive_noise_has_its_greatest_shift(kind, dimension):
    mechanism = kind(scale=2.0, sensitivity=3, dimension=dimension)
    first, second = worst_pair(mechanism)
    assert np.abs(np.asarray(first) - np.asarray(second)).sum() == 3
    assert np.size(first) == (dimension or 1)
    mechanism.draw(first)
    mechanism.draw(second)


class Own(Mechanism):
    guarantee = privacy.pure(1.0)

    def draw(self, data):
        return data


def test_a_mechanism_of_ones_own_says_its_pair(monkeypatch):
    with pytest.raises(DiscreetError) as caught:
        worst_pair(Own())
    assert caught.value.code == "DP203"
    monkeypatch.setitem(_KNOWN, Own, None)
    register_pair(Own)(lambda _: (1, 2))
    assert worst_pair(Own()) == (1, 2)

    class Other(Own):
        def worst_pair(self):
            return 3, 4

    assert worst_pair(Other()) == (3, 4)


def test_neighbours_are_all_there_is():
    pairs = list(neighbours([0, 1], 2, "add-remove"))
    assert all(len(x) == len(y) + 1 for x, y in pairs)
    assert len({(tuple(x), tuple(y)) for x, y in pairs}) == len(pairs) == 2 + 4
    swaps = list(neighbours([0, 1, 2], 2, "replace"))
    assert all(len(x) == len(y) and sorted(x) != sorted(y) for x, y in swaps)
    seen = {frozenset([tuple(sorted(x)), tuple(sorted(y))]) for x, y in swaps}
    sets = [(a,) for a in range(3)] + [(a, b) for a in range(3) for b in range(a, 3)]
    different = [
        frozenset([x, y])
        for x, y in combinations(sets, 2)
        if len(x) == len(y) and sum(min(x.count(v), y.count(v)) for v in range(3)) == len(x) - 1
    ]
    assert seen == set(different)


def test_a_search_finds_the_record_that_breaks_a_function():
    def leaks_on_seven(data):
        return 7 in data

    report = search(leaks_on_seven, [1, 2, 7], size=2, claim=privacy.pure(1.0), trials=2_000, scouting=200)
    assert report.refutes()
    assert report.trials == 2_000
    assert sum(7 in data for data in report.inputs) == 1
    clean = search(lambda _: 0, [1, 7], size=2, claim=privacy.pure(1.0), trials=400, scouting=100)
    assert not clean.refutes()


def test_a_search_is_thinned_out_and_checked():
    seen = []

    def remember(data):
        seen.append(tuple(data))
        return 0

    search(remember, list(range(6)), size=2, trials=100, scouting=100, most=5)
    assert len(set(seen)) <= 10
    with pytest.raises(DiscreetError):
        search(remember, [0], relation="swap")


def test_scores_of_a_choice_move_no_further_than_they_may():
    first, second = worst_pair(NoisyMax(epsilon=1, sensitivity=2))
    assert np.abs(np.subtract(first, second)).max() == 2
    assert np.subtract(first, second).min() < 0 < np.subtract(first, second).max()
    first, second = worst_pair(NoisyMax(epsilon=1, sensitivity=2, monotone=True))
    assert np.subtract(first, second).min() >= 0
    first, second = worst_pair(SparseVector(epsilon=1, sensitivity=3, threshold=7, positives=2))
    assert np.abs(np.subtract(first, second)).max() == 3
