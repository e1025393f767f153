# SPDX-License-Identifier: Apache-2.0
"""A simple undirected graph: the exact data that the mechanisms of this part are asked about.

    Graph(edges, nodes=37_700)  # pairs of 0 … 37,699: an array, a list, a CSV or Parquet file, a table
    Graph(edges, nodes=["ann", "bob", …])  # pairs of labels
    Graph(matrix)  # scipy.sparse: every entry that is not zero joins its row and its column
    Graph(network)  # networkx: its own nodes

**Guarantee.** The graph is a function of the *set* of the rows, row by row: neither their order,
nor a row that is repeated or turned round, changes it. A row is dropped, and nothing is said, if it
joins a node to itself, or if one of its ends is none of `nodes`: unknown, negative, NaN, a
fraction, empty. So one row more or less is one edge more or less, or none.

Nodes are stated and never read off the edges, because a node that has no edge would vanish from
there, and with it whoever was its only neighbour. Printing a graph shows nothing of it.
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

_MOST_NODES = 2**31 - 1  # so that a pair of places is one 64-bit number


@check.named_fields
class Graph:
    """Nodes that are stated, and the edges between them; immutable.

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
        places = read.NodeIndex(self.labels, as_text=source.is_text)
        one, other = (places.of(column) for column in source.ends)
        self.edges = _edges(one, other, self.nodes)
        self.edges.flags.writeable = False
        self.known: dict[Any, Any] = {}

    @cached_property
    def degrees(self) -> Integers:
        """How many neighbours each node has."""
        found: Integers = np.bincount(self.edges.ravel(), minlength=self.nodes).astype(np.int64)
        found.flags.writeable = False
        return found

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
    """A function of a graph that is computed once for each: a graph does not change."""

    @wraps(function)
    def once(graph: Graph, /, *arguments: Parameters.args, **words: Parameters.kwargs) -> Result:
        key = (function, arguments, tuple(words.items()))
        if key not in graph.known:
            graph.known[key] = function(graph, *arguments, **words)
        found: Result = graph.known[key]
        return found

    return once


def graph_of(data: Any, nodes: int | None = None) -> Graph:
    """The data as a graph; where the number of nodes is public, it must be that one."""
    graph = data if isinstance(data, Graph) else Graph(data, nodes=nodes)
    if nodes is None or graph.nodes == nodes:
        return graph
    raise BadParameter(
        "DP107",
        f"this mechanism is made for graphs of {nodes} nodes, and was given one with another number of them.",
        why="the guarantee is for graphs on one public set of nodes, and the noise depends on how many there are.",
        fix="nodes=graph.nodes",
    )


def _labels(nodes: Any) -> Sequence[Hashable]:
    if isinstance(nodes, int | np.integer) and not isinstance(nodes, bool):
        count = check.whole(at_least=0, nodes=nodes)
        if count > _MOST_NODES:
            raise _bad_nodes_error("DP102", f"there can be at most {_MOST_NODES} nodes.")
        return range(count)
    if nodes is None or isinstance(nodes, str | bytes | bool | float) or not hasattr(nodes, "__iter__"):
        raise _bad_nodes_error("DP104", "nodes must be the number of nodes, or a list of their labels.")
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in nodes)
    if not all(isinstance(label, Hashable) for label in labels):
        raise _bad_nodes_error("DP104", "the label of a node must be hashable.")
    if len(set(labels)) < len(labels):
        raise _bad_nodes_error("DP107", "every label must be there once.")
    return labels


def _edges(one: Integers, other: Integers, nodes: int) -> Integers:
    """The pairs of two known and different nodes, each once, the smaller place first, in order."""
    known = (one >= 0) & (other >= 0) & (one != other)
    low, high = np.minimum(one, other)[known], np.maximum(one, other)[known]
    wide = np.int64(max(1, nodes))
    keys = np.unique(low * wide + high)
    return np.stack([keys // wide, keys % wide], axis=1)


def _bad_nodes_error(code: str, what: str) -> BadParameter:
    return BadParameter(
        code,
        what,
        why="the nodes are stated and not read off the edges: an edge that is added must not add a node.",
        fix="Graph(edges, nodes=37_700)",
    )
