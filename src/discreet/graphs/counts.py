# SPDX-License-Identifier: Apache-2.0
"""Counts of subgraphs under edge privacy: the exact count, its sensitivities and their bounds.

One edge moves the number of triangles by a lot on a few graphs, and by little on most. A
`SubgraphCount` has both: the global sensitivity, which holds for all graphs with this number of
nodes and is public, and the local sensitivity of a given graph, which is secret.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from discreet.graphs import stars, triangles
from discreet.graphs.graph import Graph, graph_of
from discreet.graphs.local import LocalSensitivity


@dataclass(frozen=True)
class SubgraphCount(ABC):
    """The number of subgraphs of one kind, in graphs with a public number of nodes."""

    nodes: int

    def graph(self, data: object) -> Graph:
        """The data as a graph on the public nodes."""
        return graph_of(data, self.nodes)

    @property
    @abstractmethod
    def cap(self) -> int:
        """The global sensitivity."""

    @property
    @abstractmethod
    def growth(self) -> int:
        """A bound on the growth of the local sensitivity from one distance to the next."""

    @property
    @abstractmethod
    def most(self) -> int:
        """The number in the complete graph."""

    @abstractmethod
    def exact(self, graph: Graph) -> int:
        """The number in this graph. Secret."""

    @abstractmethod
    def sensitivity(self, graph: Graph) -> LocalSensitivity:
        """The local sensitivity at every distance. Secret."""

    @abstractmethod
    def measure(self, graph: Graph) -> int:
        """A number that one edge moves by at most 1, and that bounds the local sensitivity. Secret."""

    @abstractmethod
    def sensitivity_below(self, measure: int) -> int:
        """The greatest local sensitivity of a graph whose measure is at most this; never 0."""

    @abstractmethod
    def typical(self) -> LocalSensitivity:
        """A public guess of the local sensitivity, for planning: the greatest degree is √nodes."""


@dataclass(frozen=True)
class TriangleCount(SubgraphCount):
    """The number of triangles."""

    @property
    def cap(self) -> int:
        return triangles.global_sensitivity(self.nodes)

    @property
    def growth(self) -> int:
        return 1

    @property
    def most(self) -> int:
        return math.comb(self.nodes, 3)

    def exact(self, graph: Graph) -> int:
        return triangles.count(graph)

    def sensitivity(self, graph: Graph) -> LocalSensitivity:
        return triangles.sensitivity(graph)

    def measure(self, graph: Graph) -> int:
        return self.sensitivity(graph).at(0)

    def sensitivity_below(self, measure: int) -> int:
        return min(max(1, measure), self.cap)

    def typical(self) -> LocalSensitivity:
        return LocalSensitivity(range(min(math.isqrt(self.nodes), self.cap), self.cap + 1), self.cap)


@dataclass(frozen=True)
class StarCount(SubgraphCount):
    """The number of stars with k points."""

    k: int

    @property
    def cap(self) -> int:
        return stars.global_sensitivity(self.nodes, self.k)

    @property
    def growth(self) -> int:
        return stars.growth(self.nodes, self.k)

    @property
    def most(self) -> int:
        return self.nodes * math.comb(self.nodes - 1, self.k)

    def exact(self, graph: Graph) -> int:
        return stars.count(graph, self.k)

    def sensitivity(self, graph: Graph) -> LocalSensitivity:
        return stars.sensitivity(graph, self.k)

    def measure(self, graph: Graph) -> int:
        """The greatest degree; no node has more neighbours other than the second node of a pair."""
        return int(graph.degrees.max())

    def sensitivity_below(self, measure: int) -> int:
        return min(max(1, 2 * math.comb(max(0, measure), self.k - 1)), self.cap)

    def typical(self) -> LocalSensitivity:
        degree = math.isqrt(self.nodes) - 1
        return stars.around([(degree, degree)], self.nodes, self.k)
