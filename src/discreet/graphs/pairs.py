# SPDX-License-Identifier: Apache-2.0
"""What pairs of nodes have in common, in bounded memory: what the sensitivities of triangles and
stars are made of.

For two nodes i and j let a be the number of their common neighbours and w = d_i + d_j - 2 [i and j
are joined], the number of edges that lead from one of them to a third node. More of either means
that more triangles can appear around the pair.

`reaches(graph)[a]` is the greatest w among the pairs with at least a common neighbours. Most pairs
are never looked at: graphs.proof.md §2 says why none of them could have mattered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.graphs.graph import Graph

Integers = npt.NDArray[np.int64]

BLOCK = 1 << 20  # entries of a product that are held at once, or one row if that has more


def by_degree(graph: Graph) -> tuple[Any, Integers]:
    """The adjacency matrix with the nodes of most neighbours first, and their degrees."""
    order = np.argsort(-graph.degrees, kind="stable")
    matrix = graph.adjacency[order][:, order].tocsr()
    matrix.sort_indices()
    return matrix, graph.degrees[order]


def reaches(graph: Graph) -> Integers:
    """reaches[a] = the greatest w of the pairs with a or more common neighbours, for as many a as there are."""
    matrix, degrees = by_degree(graph)
    paths = matrix @ degrees
    best = np.full(int(degrees[0]) + 1, -1, np.int64)
    best[0] = max((sum(pair) for pair in widest_pairs(graph)), default=0)
    row = 0
    while (columns := _contenders(best, degrees, row)) > row + 1:
        rows = next(row_blocks(np.minimum(paths[row:], columns))).stop
        _look(matrix, degrees, (row, row + rows, columns), best)
        best = np.maximum.accumulate(best[::-1])[::-1]
        row += rows
    return best[best >= 0]


def widest_pairs(graph: Graph) -> list[tuple[int, int]]:
    """For the pairs of nodes with most neighbours beside each other: how many each of the two has.

    **Guarantee.** For every pair of nodes there is one in the list that has at least as many on
    either side.
    """
    order = np.argsort(-graph.degrees, kind="stable")
    degrees = graph.degrees
    if order.size < 2 or not degrees[order[0]]:
        return [(0, 0)] if order.size > 1 else []
    first, second = (int(degrees[node]) for node in order[:2])
    found = {(first - 1, second - 1)}
    for node in order[: np.count_nonzero(degrees >= second)]:
        other = _best_stranger(graph, int(node), order)
        if other is not None:
            found.add((max(int(degrees[node]), other), min(int(degrees[node]), other)))
        if (first, second) in found:
            return [(first, second)]
    return [one for one in found if not any(_exceeds(other, one) for other in found)]


def row_blocks(paths: Integers) -> Iterator[slice]:
    """Rows in blocks of at most BLOCK paths together, and at least one row."""
    start, total = 0, np.concatenate([[0], np.cumsum(paths)])
    while start < paths.size:
        end = max(start + 1, int(np.searchsorted(total, total[start] + BLOCK, side="right")) - 1)
        yield slice(start, end)
        start = end


def _contenders(best: Integers, degrees: Integers, row: int) -> int:
    """How many nodes, from the first, may form a pair with this node that no known pair exceeds."""
    exceeded = best[degrees] >= degrees[min(row, degrees.size - 1)] + degrees
    return int(degrees.size - np.count_nonzero(exceeded))


def _look(matrix: Any, degrees: Integers, part: tuple[int, int, int], best: Integers) -> None:
    """Enter the pairs of rows start … end with columns before `columns` into `best`."""
    start, end, columns = part
    left = matrix[:, :columns]
    both = (2 * (matrix[start:end] @ left) + left[start:end]).tocoo()
    rows, others = both.row + np.int64(start), both.col
    once = others > rows
    rows, others, counts = rows[once], others[once], both.data[once].astype(np.int64)
    np.maximum.at(best, counts >> 1, degrees[rows] + degrees[others] - 2 * (counts & 1))


def _best_stranger(graph: Graph, node: int, order: Integers) -> int | None:
    """The greatest degree among the nodes that this one is not joined to."""
    matrix = graph.adjacency
    near = {node, *matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]].tolist()}
    stranger = next((int(other) for other in order[: len(near) + 1] if int(other) not in near), None)
    return None if stranger is None else int(graph.degrees[stranger])


def _exceeds(other: tuple[int, int], one: tuple[int, int]) -> bool:
    return other != one and other[0] >= one[0] and other[1] >= one[1]
