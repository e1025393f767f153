# SPDX-License-Identifier: Apache-2.0
"""Triangles: their exact number and its sensitivities.

    count(graph)  # exact
    sensitivity(graph)  # local at every distance, and smooth

An edge between i and j is in one triangle for each of their common neighbours. So the local
sensitivity is the greatest number of common neighbours of any two nodes, joined or not. The
greatest degree is only an upper bound.

All results are exact and secret; `Triangles` releases the count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.graphs.graph import Graph, remember
from discreet.graphs.local import LocalSensitivity
from discreet.graphs.pairs import by_degree, reaches, row_blocks

Integers = npt.NDArray[np.int64]


@remember
def count(graph: Graph) -> int:
    """The number of triangles.

    Every edge points to the end with more neighbours, so a node has at most √(2m) successors. Every
    triangle is a path of two such edges and a third edge from its start to its end.

    >>> count(Graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 1)], nodes=4))
    2
    """
    if not len(graph.edges):
        return 0
    matrix, _ = by_degree(graph)
    successors = sparse.tril(matrix, k=-1, format="csr")
    paths = successors @ np.diff(successors.indptr)
    total = 0
    for rows in row_blocks(paths):
        block = successors[rows]
        total += int((block @ successors).multiply(block).sum(dtype=np.int64))
    return total


def global_sensitivity(nodes: int) -> int:
    """The greatest number of triangles that one edge can be in: one for each other node."""
    return max(0, nodes - 2)


@remember
def sensitivity(graph: Graph) -> LocalSensitivity:
    """The local sensitivity of the number of triangles at every distance, exactly.

    Why it holds: let a pair have a common neighbours, and b nodes that are joined to exactly one of
    the two. Each of the first b edges adds one common neighbour, then every two edges add one:
    min(a + s, ⌊(s + 2a + b) / 2⌋) (Nissim, Raskhodnikova, Smith 2007; graphs.proof.md §1).

    >>> edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (3, 5)]
    >>> local = sensitivity(Graph(edges, nodes=6))
    >>> [local.at(distance) for distance in range(4)], local.distance_above(3)
    ([2, 3, 4, 4], 2)
    """
    cap = global_sensitivity(graph.nodes)
    if not cap:
        return LocalSensitivity([0], 0)
    reach = reaches(graph)
    return LocalSensitivity(_levels(reach, cap).tolist(), cap)


def _levels(reach: Integers, cap: int) -> Integers:
    """max over a of min(a + s, (s + reach[a]) // 2), for s = 0, 1, … until the cap.

    The first term is the smaller one if s <= reach[a] - 2a, which decreases in a. So for each s the
    best a is the last such a or the one after it.
    """
    distances = np.arange(2 * cap + 1)
    spare = reach - 2 * np.arange(reach.size)
    # The first a for which the second term is the smaller one.
    after = np.searchsorted(-spare, -distances, side="right")
    closing = np.where(after > 0, after - 1 + distances, 0)
    padded = np.append(reach, -1)
    opening = np.where(after < reach.size, (distances + padded[np.minimum(after, reach.size)]) // 2, 0)
    levels = np.minimum(np.maximum(closing, opening), cap)
    return levels[: int(np.argmax(levels == cap)) + 1]
