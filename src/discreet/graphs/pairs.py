# SPDX-License-Identifier: Apache-2.0
"""Common neighbours of pairs of nodes, in bounded memory, for the sensitivities of the counts.

For two nodes i and j let a be the number of common neighbours, and w = d_i + d_j - 2 [i and j are
joined] the number of edges from one of them to a third node. More of either allows more triangles
around the pair.

`reaches(graph)[a]` is the greatest w among the pairs with at least a common neighbours. Most pairs
are never visited; graphs.proof.md §2 proves that none of them matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.graphs.graph import Graph

Integers = npt.NDArray[np.int64]

BLOCK = 1 << 20  # entries of a product in memory at once, or one row if it has more


def by_degree(graph: Graph) -> tuple[Any, Integers]:
    """The adjacency matrix in decreasing order of degree, and the degrees."""
    order = np.argsort(-graph.degrees, kind="stable")
    matrix = graph.adjacency[order][:, order].tocsr()
    matrix.sort_indices()
    return matrix, graph.degrees[order]


def reaches(graph: Graph) -> Integers:
    """reaches[a] is the greatest w of the pairs with a or more common neighbours, up to the
    greatest a.
    """
    matrix, degrees = by_degree(graph)
    paths = matrix @ degrees
    best = np.full(int(degrees[0]) + 1, -1, np.int64)
    best[0] = max((sum(pair) for pair in widest_pairs(graph)), default=0)
    row = 0
    while (columns := _contenders(best, degrees, row)) > row + 1:
        rows = next(row_blocks(np.minimum(paths[row:], columns))).stop
        _add_pairs(matrix, degrees, (row, row + rows, columns), best)
        best = np.maximum.accumulate(best[::-1])[::-1]
        row += rows
    return best[best >= 0]


def widest_pairs(graph: Graph) -> list[tuple[int, int]]:
    """The pairs of nodes with most neighbours other than each other, as two numbers of neighbours.

    **Guarantee.** Every pair of nodes is dominated by one in the list: it has at least as many
    neighbours on either side.
    """
    order = np.argsort(-graph.degrees, kind="stable")
    degrees = graph.degrees
    if order.size < 2 or not degrees[order[0]]:
        return [(0, 0)] if order.size > 1 else []
    first, second = (int(degrees[node]) for node in order[:2])
    candidates = {(first - 1, second - 1)}
    for node in order[: np.count_nonzero(degrees >= second)]:
        degree, other_degree = int(degrees[node]), _greatest_degree_apart(graph, int(node), order)
        if other_degree is not None:
            candidates.add((max(degree, other_degree), min(degree, other_degree)))
        if (first, second) in candidates:
            return [(first, second)]
    return [pair for pair in candidates if not any(_exceeds(other, pair) for other in candidates)]


def row_blocks(paths: Integers) -> Iterator[slice]:
    """Blocks of rows: at most BLOCK paths, and at least one row."""
    start, total = 0, np.concatenate([[0], np.cumsum(paths)])
    while start < paths.size:
        end = max(start + 1, int(np.searchsorted(total, total[start] + BLOCK, side="right")) - 1)
        yield slice(start, end)
        start = end


def _contenders(best: Integers, degrees: Integers, row: int) -> int:
    """How many of the first nodes can form a pair with this node that no visited pair exceeds."""
    exceeded = best[degrees] >= degrees[min(row, degrees.size - 1)] + degrees
    return int(degrees.size - np.count_nonzero(exceeded))


def _add_pairs(matrix: Any, degrees: Integers, block: tuple[int, int, int], best: Integers) -> None:
    """Adds the pairs of rows start … end with columns before `columns` to `best`."""
    start, end, columns = block
    left = matrix[:, :columns]
    both = (2 * (matrix[start:end] @ left) + left[start:end]).tocoo()
    rows, others = both.row + np.int64(start), both.col
    first_order = others > rows
    rows, others = rows[first_order], others[first_order]
    counts = both.data[first_order].astype(np.int64)
    np.maximum.at(best, counts >> 1, degrees[rows] + degrees[others] - 2 * (counts & 1))


def _greatest_degree_apart(graph: Graph, node: int, order: Integers) -> int | None:
    """The greatest degree among the nodes that are not joined to this one; None if all are."""
    matrix = graph.adjacency
    joined = {node, *matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]].tolist()}
    apart = next((int(other) for other in order[: len(joined) + 1] if int(other) not in joined), None)
    return None if apart is None else int(graph.degrees[apart])


def _exceeds(pair: tuple[int, int], other: tuple[int, int]) -> bool:
    return pair != other and pair[0] >= other[0] and pair[1] >= other[1]
