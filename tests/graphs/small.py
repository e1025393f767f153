# SPDX-License-Identifier: Apache-2.0
"""All graphs on a few nodes, as bit masks, and what brute force says about them."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np

from discreet.graphs import Graph


@cache
def pairs(nodes: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(nodes), 2))


@cache
def graphs(nodes: int) -> list[Graph]:
    """The graph of every mask of edges."""
    return [Graph(edges_of(mask, nodes), nodes=nodes) for mask in range(1 << len(pairs(nodes)))]


def edges_of(mask: int, nodes: int) -> list[tuple[int, int]]:
    return [pair for bit, pair in enumerate(pairs(nodes)) if mask >> bit & 1]


def neighbours(nodes: int) -> list[tuple[int, int]]:
    """Every two masks that differ in one edge, each once."""
    bits = range(len(pairs(nodes)))
    return [(mask, mask | 1 << bit) for mask in range(1 << len(bits)) for bit in bits if not mask >> bit & 1]


def triangles_of(mask: int, nodes: int) -> int:
    edges = set(edges_of(mask, nodes))
    corners = itertools.combinations(range(nodes), 3)
    return sum({(a, b), (a, c), (b, c)} <= edges for a, b, c in corners)


def stars_of(mask: int, nodes: int, k: int) -> int:
    """Stars one by one: a middle and a set of k points, every point joined to the middle."""
    joined = {frozenset(edge) for edge in edges_of(mask, nodes)}
    return sum(
        all(frozenset((middle, point)) in joined for point in points)
        for middle in range(nodes)
        for points in itertools.combinations([node for node in range(nodes) if node != middle], k)
    )


def levels(values: np.ndarray, nodes: int) -> np.ndarray:
    """LS at every distance (rows) of every graph (columns), from nothing but the values of a count."""
    masks, bits = np.arange(values.size), range(len(pairs(nodes)))
    found = [np.max([np.abs(values[masks ^ (1 << bit)] - values) for bit in bits], axis=0)]
    for _ in bits:
        last = found[-1]
        found.append(np.max([last, *(last[masks ^ (1 << bit)] for bit in bits)], axis=0))
    return np.array(found)
