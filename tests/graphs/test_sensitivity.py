# SPDX-License-Identifier: Apache-2.0
"""Exact counts and sensitivities: by brute force on all small graphs, by a dense reference on large ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

from discreet.graphs import Graph, pairs, stars, triangles
from discreet.graphs.local import LocalSensitivity
from tests.graphs import small

COUNTS = {
    "triangles": (small.triangles_of, triangles.count, triangles.sensitivity),
    "stars of 2": (
        lambda mask, nodes: small.stars_of(mask, nodes, 2),
        lambda graph: stars.count(graph, 2),
        lambda graph: stars.sensitivity(graph, 2),
    ),
    "stars of 3": (
        lambda mask, nodes: small.stars_of(mask, nodes, 3),
        lambda graph: stars.count(graph, 3),
        lambda graph: stars.sensitivity(graph, 3),
    ),
}
DECAY = Fraction(1, 5)


@cache
def truth(name: str, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of a count and its LS at every distance, by brute force."""
    by_hand = COUNTS[name][0]
    values = np.array([by_hand(mask, nodes) for mask in range(1 << len(small.pairs(nodes)))])
    return values, small.levels(values, nodes)


@cache
def ours(name: str, nodes: int) -> list[LocalSensitivity]:
    return [COUNTS[name][2](graph) for graph in small.graphs(nodes)]


def mismatches(name: str, nodes: int, claimed: list[LocalSensitivity]) -> int:
    _, levels = truth(name, nodes)
    return sum(
        [local.at(s) for s in range(len(levels))] != row
        for local, row in zip(claimed, levels.T.tolist(), strict=True)
    )


# --- all small graphs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", COUNTS)
def test_counts_and_sensitivities_at_every_distance_on_all_small_graphs(name, nodes):
    _, count, sensitivity = COUNTS[name]
    if nodes == 1:
        assert (count(Graph([], nodes=1)), sensitivity(Graph([], nodes=1)).at(0)) == (0, 0)
        return
    values, _ = truth(name, nodes)
    assert [count(graph) for graph in small.graphs(nodes)] == values.tolist()
    assert mismatches(name, nodes, ours(name, nodes)) == 0


def test_wrong_variants_are_caught():
    def greatest_degree(graph, right):
        return LocalSensitivity([int(graph.degrees.max()), *right.levels[1:]], right.cap)

    def one_step_late(graph, right):
        return LocalSensitivity([right.at(0), *right.levels], right.cap)

    def joined_pairs_only(graph, right):
        matrix = graph.adjacency.toarray()
        return LocalSensitivity([int(((matrix @ matrix) * matrix).max()), *right.levels[1:]], right.cap)

    for wrong in (greatest_degree, one_step_late, joined_pairs_only):
        claimed = [wrong(*known) for known in zip(small.graphs(5), ours("triangles", 5), strict=True)]
        assert mismatches("triangles", 5, claimed) > 100


def test_the_greatest_degree_is_only_an_upper_bound():
    _, levels = truth("triangles", 5)
    degrees = np.array([graph.degrees.max() for graph in small.graphs(5)])
    assert (levels[0] <= degrees).all()
    assert (levels[0] == degrees).sum() == 56


@pytest.mark.parametrize("name", COUNTS)
def test_smooth_sensitivity_is_the_discounted_maximum_and_is_smooth(name):
    _, levels = truth(name, 5)
    found = [local.smooth(DECAY) for local in ours(name, 5)]
    with mpmath.workdps(60):
        discounts = [mpmath.exp(-mpmath.mpf(s) / 5) for s in range(len(levels))]
        for bound, row in zip(found, levels.T.tolist(), strict=True):
            exact = max(level * discount for level, discount in zip(row, discounts, strict=True))
            assert 0 <= as_mpf(bound) - exact < 1e-35
        for one, other in small.neighbours(5):
            low, high = sorted((found[one], found[other]))
            assert as_mpf(low) >= discounts[1] * as_mpf(high)


def test_discounts_are_rounded_so_that_smoothness_survives_far_beyond_their_digits():
    with mpmath.workdps(120):
        bounds = [as_mpf(LocalSensitivity([0] * s + [1], 1).smooth(Fraction(3))) for s in range(60)]
        for near, far in itertools.pairwise(bounds):
            assert mpmath.exp(-3) * near <= far <= near


def as_mpf(ratio: Fraction):
    return mpmath.mpf(ratio.numerator) / ratio.denominator


def test_the_published_example():
    graph = Graph([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (3, 5)], nodes=6)
    local = triangles.sensitivity(graph)
    assert triangles.count(graph) == 3
    assert [local.at(s) for s in range(6)] == [2, 3, 4, 4, 4, 4]
    assert float(local.smooth(Fraction(1, 5))) == pytest.approx(2.6812801841425573, abs=1e-14)


def test_distances_to_a_more_sensitive_graph():
    local = LocalSensitivity([2, 2, 5, 7], 7)
    assert [local.distance_above(bound) for bound in (0, 1, 2, 4, 5, 6, 7, 8)] == [
        0,
        0,
        2,
        2,
        3,
        3,
        math.inf,
        math.inf,
    ]
    assert repr(local) == "LocalSensitivity()"


# --- larger graphs, against a dense reference ----------------------------------------------------------------------


def random_graph(nodes: int, share: float, seed: int, hubs: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    matrix = np.triu(rng.random((nodes, nodes)) < share, 1)
    for hub in range(hubs):
        matrix[hub, hub + 1 :] |= rng.random(nodes - hub - 1) < 0.3
    return Graph(np.argwhere(matrix), nodes=nodes)


def dense_levels(graph: Graph, distances) -> list[int]:
    matrix = graph.adjacency.toarray().astype(float)
    a = matrix @ matrix
    b = graph.degrees[:, None] + graph.degrees[None, :] - 2 * a - 2 * matrix
    off = ~np.eye(graph.nodes, dtype=bool)
    return [int(np.minimum(a + (s + np.minimum(s, b)) // 2, graph.nodes - 2)[off].max()) for s in distances]


@pytest.mark.parametrize("block", [300, pairs.BLOCK])
@pytest.mark.parametrize(
    ("nodes", "share", "hubs"),
    [(60, 0.0, 0), (60, 1.0, 0), (80, 0.1, 0), (150, 0.02, 2), (150, 0.01, 5), (40, 0.6, 1)],
)
def test_large_graphs_in_blocks_of_any_size(monkeypatch, nodes, share, hubs, block):
    monkeypatch.setattr(pairs, "BLOCK", block)
    for seed in range(2):
        graph = random_graph(nodes, share, seed, hubs)
        matrix = graph.adjacency.toarray().astype(float)
        local = triangles.sensitivity(graph)
        distances = range(2 * nodes)
        assert [local.at(s) for s in distances] == dense_levels(graph, distances)
        assert triangles.count(graph) == np.trace(matrix @ matrix @ matrix) // 6


def test_a_pair_that_is_wider_by_one_is_not_taken_for_exceeded(monkeypatch):
    """0 and 1 are joined: a = 3, w = 6 + 4 - 2. 10 and 11 are not: a = 3, w = 6 + 3, seen one row later."""
    joined = [(0, 1), *((end, i) for i in (2, 3, 4) for end in (0, 1)), (0, 5), (0, 6)]
    apart = [*((end, i) for i in (12, 13, 14) for end in (10, 11)), (10, 15), (10, 16), (10, 17)]
    graph = Graph(joined + apart, nodes=60)
    monkeypatch.setattr(pairs, "BLOCK", 1)
    assert pairs.reaches(graph).tolist() == [12, 9, 9, 9]
    local = triangles.sensitivity(graph)
    assert [local.at(s) for s in range(30)] == dense_levels(graph, range(30))


def test_the_last_two_contenders_are_looked_at(monkeypatch):
    """0, 1, 2 have more neighbours, but 3 and 4 have more in common: 0, 1 and 2."""
    leaves = [(hub, 5 + 3 * hub + i) for hub in range(3) for i in range(3)]
    graph = Graph([(hub, end) for hub in range(3) for end in (3, 4)] + leaves, nodes=14)
    monkeypatch.setattr(pairs, "BLOCK", 1)
    assert triangles.sensitivity(graph).at(0) == 3


def test_hubs_without_common_neighbours_do_not_hide_a_dense_corner():
    """Two stars are the widest pair; a clique of small degree has the most common neighbours."""
    stars_ = [(0, i) for i in range(2, 60)] + [(1, i) for i in range(60, 118)]
    clique = [(i, j) for i in range(120, 140) for j in range(i) if j >= 120]
    graph = Graph(stars_ + clique, nodes=140)
    local = triangles.sensitivity(graph)
    assert local.at(0) == 18
    assert [local.at(s) for s in range(280)] == dense_levels(graph, range(280))


def test_pruning_looks_at_few_pairs_of_a_graph_with_hubs(monkeypatch):
    graph = random_graph(600, 0.005, 7, hubs=3)
    looked = []
    look = pairs._add_pairs
    monkeypatch.setattr(pairs, "BLOCK", 2000)
    monkeypatch.setattr(
        pairs, "_add_pairs", lambda *arguments: (looked.append(arguments[2]), look(*arguments))
    )
    assert triangles.sensitivity(graph).at(0) == dense_levels(graph, [0])[0]
    assert sum(end - start for start, end, _ in looked) < 100


def test_star_counts_are_whole_numbers_of_any_size():
    graph = Graph([(0, i) for i in range(1, 500)], nodes=500)
    assert stars.count(graph, 60) == math.comb(499, 60)
    assert stars.sensitivity(graph, 60).at(0) == math.comb(498, 59)
