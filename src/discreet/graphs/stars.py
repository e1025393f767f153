# SPDX-License-Identifier: Apache-2.0
"""Stars, a node and k of its neighbours: their exact number and its sensitivities.

    count(graph, 2)  # pairs of edges that share an end; exact
    sensitivity(graph, 2)  # local at every distance, and smooth

A node with d neighbours is the centre of C(d, k) stars with k points. An edge between i and j,
which have p and q other neighbours, is in C(p, k-1) + C(q, k-1) stars.

All results are exact and secret; `KStars` releases the count.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from discreet.graphs.graph import Graph, remember
from discreet.graphs.local import LocalSensitivity
from discreet.graphs.pairs import widest_pairs


@remember
def count(graph: Graph, k: int) -> int:
    """The number of stars with k points.

    >>> count(Graph([(0, 1), (0, 2), (0, 3)], nodes=4), 2)
    3
    """
    degrees, nodes = np.unique(graph.degrees, return_counts=True)
    return sum(comb(d, k) * n for d, n in zip(degrees.tolist(), nodes.tolist(), strict=True))


def global_sensitivity(nodes: int, k: int) -> int:
    """The greatest number of stars with k points that one edge can be in."""
    return 2 * comb(max(0, nodes - 2), k - 1)


def growth(nodes: int, k: int) -> int:
    """A bound on the growth of the local sensitivity from one distance to the next."""
    return comb(max(0, nodes - 3), k - 2)


@remember
def sensitivity(graph: Graph, k: int) -> LocalSensitivity:
    """The local sensitivity of the number of stars at every distance, exactly.

    Why it holds: C(·, k-1) is convex, so s edges add most if they all go to the larger end of a
    pair until it is joined to all others, and then to the smaller one (graphs.proof.md §3).

    >>> local = sensitivity(Graph([(0, 1), (0, 2), (0, 3)], nodes=5), 2)
    >>> [local.at(distance) for distance in range(5)]
    [3, 4, 5, 6, 6]
    """
    return around(widest_pairs(graph), graph.nodes, k)


def around(pairs: list[tuple[int, int]], nodes: int, k: int) -> LocalSensitivity:
    """The same for a graph that is known only by the numbers of neighbours of these pairs."""
    cap, full = global_sensitivity(nodes, k), max(0, nodes - 2)
    if not cap:
        return LocalSensitivity([0], 0)
    kind: Any = np.int64 if cap < 1 << 62 else object
    stars = np.array([comb(d, k - 1) for d in range(full + 1)], kind)
    distances = np.arange(2 * full + 1)
    levels = np.zeros(distances.size, kind)
    for more, fewer in pairs:
        large = np.minimum(more + distances, full)
        small = np.minimum(fewer + distances - (large - more), full)
        levels = np.maximum(levels, stars[large] + stars[small])
    return LocalSensitivity(levels[: int(np.argmax(levels == cap)) + 1].tolist(), cap)
