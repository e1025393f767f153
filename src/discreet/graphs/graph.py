# SPDX-License-Identifier: Apache-2.0
"""A simple undirected graph: the exact data of the mechanisms in this package.

    Graph(edges, nodes=37_700)  # pairs of 0 … 37,699: an array, a list, a file, a table
    Graph(edges, nodes=["ann", "bob", …])  # pairs of labels
    Graph(matrix)  # scipy.sparse: every entry that is not zero joins its row and its column
    Graph(network)  # networkx: its own nodes

**Guarantee.** The graph is a function of the *set* of rows. The order of the rows, repeated rows
and the order of the ends do not matter. A row is dropped silently if it joins a node to itself, or
if one of its ends is not in `nodes` (unknown, negative, NaN, a fraction, empty). So adding or
removing one row adds or removes at most one edge.

The caller states the nodes; they are never read off the edges, because an added edge could then add
a node. Printing a graph shows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet import check
from discreet.errors import BadParameter
from discreet.graphs import read

__all__ = ["Graph", "graph_of", "remember"]

Integers = npt.NDArray[np.int64]
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_MAX_NODES = 2**31 - 1  # so that a pair of nodes is one 64-bit number


@check.named_fields
class Graph:
    """Stated nodes and the edges between them; immutable.

    >>> triangle = Graph([(0, 1), (1, 2), (2, 0), (2, 2), (0, 1), (2, 9)], nodes=4)
    >>> triangle.edges.tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> triangle.degrees.tolist()
    [2, 2, 2, 0]
    >>> triangle
    Graph(…)
    """

    def __init__(self, edges: object, *, nodes: int | Iterable[Hashable] | None = None) -> None:
        source = read.source_of(edges)
        self.labels = _labels(source.nodes if nodes is None else nodes)
        self.nodes = len(self.labels)
        index = read.NodeIndex(self.labels, as_text=source.is_text)
        first, second = (index.of(column) for column in source.ends)
        self.edges = _edges(first, second, self.nodes)
        self.edges.flags.writeable = False
        self.known: dict[Any, Any] = {}

    @cached_property
    def degrees(self) -> Integers:
        """The number of neighbours of each node."""
        degrees: Integers = np.bincount(self.edges.ravel(), minlength=self.nodes).astype(np.int64)
        degrees.flags.writeable = False
        return degrees

    @cached_property
    def adjacency(self) -> Any:
        """The symmetric matrix of zeros and ones, compressed by rows."""
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        ones = np.ones(len(ends), np.int32)
        return sparse.csr_array((ones, (ends[:, 0], ends[:, 1])), shape=(self.nodes, self.nodes))

    def __repr__(self) -> str:
        return "Graph(…)"

    def __getstate__(self) -> dict[str, Any]:
        return {"labels": self.labels, "nodes": self.nodes, "edges": self.edges}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, known={})
        self.edges.flags.writeable = False


def remember(
    function: Callable[Concatenate[Graph, Parameters], Result],
) -> Callable[Concatenate[Graph, Parameters], Result]:
    """Makes a function of a graph compute once for each graph; a graph does not change."""

    @wraps(function)
    def once(graph: Graph, /, *arguments: Parameters.args, **words: Parameters.kwargs) -> Result:
        key = (function, arguments, tuple(words.items()))
        if key not in graph.known:
            graph.known[key] = function(graph, *arguments, **words)
        result: Result = graph.known[key]
        return result

    return once


def graph_of(data: Any, nodes: int | None = None) -> Graph:
    """The data as a graph; if a number of nodes is stated, the graph must have it."""
    graph = data if isinstance(data, Graph) else Graph(data, nodes=nodes)
    if nodes is None or graph.nodes == nodes:
        return graph
    raise BadParameter(
        "DP107",
        f"this mechanism takes graphs with {nodes} nodes, and this graph has another number of nodes.",
        why="the guarantee is for graphs on one public set of nodes, and the noise depends on their number.",
        fix="nodes=graph.nodes",
    )


def _labels(nodes: Any) -> Sequence[Hashable]:
    if isinstance(nodes, int | np.integer) and not isinstance(nodes, bool):
        count = check.whole(at_least=0, nodes=nodes)
        if count > _MAX_NODES:
            raise _bad_nodes_error("DP102", f"there can be at most {_MAX_NODES} nodes.")
        return range(count)
    if nodes is None or isinstance(nodes, str | bytes | bool | float) or not hasattr(nodes, "__iter__"):
        raise _bad_nodes_error("DP104", "nodes must be the number of nodes, or a list of their labels.")
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in nodes)
    if not all(isinstance(label, Hashable) for label in labels):
        raise _bad_nodes_error("DP104", "the labels of nodes must be hashable.")
    if len(set(labels)) < len(labels):
        raise _bad_nodes_error("DP107", "the labels of nodes must be different.")
    return labels


def _edges(first: Integers, second: Integers, nodes: int) -> Integers:
    """The distinct pairs of two known and different nodes, sorted, the smaller node first."""
    is_edge = (first >= 0) & (second >= 0) & (first != second)
    low, high = np.minimum(first, second)[is_edge], np.maximum(first, second)[is_edge]
    width = np.int64(max(1, nodes))
    keys = np.unique(low * width + high)
    return np.stack([keys // width, keys % width], axis=1)


def _bad_nodes_error(code: str, what: str) -> BadParameter:
    return BadParameter(
        code,
        what,
        why="if nodes were read off the edges, an added edge could add a node and reveal itself.",
        fix="Graph(edges, nodes=37_700)",
    )
