# SPDX-License-Identifier: Apache-2.0
"""How many edges there are and how many everybody has, to protect one edge or one node.

    EdgeCount(epsilon=0.5)(graph).value
    DegreeSequence(nodes=22_470, epsilon=0.5)(graph).value  # in order, smoothed by isotonic regression
    DegreeHistogram(most=100, epsilon=0.5)(graph).value  # how many nodes have 0, 1, …, 100 or more
    DegreeHistogram(most=100, epsilon=0.5, unit="node")(graph).value  # the same after a projection
    CumulativeDegrees(most=100, epsilon=0.5)(graph).value  # how many have at most 0, 1, …, 100; unit "node"

How far one unit moves the exact numbers, in l1:

| | one edge | one node, after the projection to D neighbours |
|---|---|---|
| `EdgeCount` | 1 | D |
| `DegreeSequence` | 2 | |
| `DegreeHistogram` | 4 | 2D + 1 |
| `CumulativeDegrees` | | D + 1 |

Why it holds: an edge moves two degrees by one, and a degree that moves leaves one bin for another.
For nodes graphs.proof.md §5. Under edge privacy the nodes are public. Under node privacy they are
not, and nothing here depends on their number but through the noise.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from discreet import check
from discreet.errors import BadParameter
from discreet.graphs.graph import Graph, graph_of
from discreet.graphs.project import projected_degrees
from discreet.mechanisms.additive import Geometric
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.privacy.guarantee import Guarantee

__all__ = ["UNITS", "CumulativeDegrees", "DegreeHistogram", "DegreeSequence", "EdgeCount"]

UNITS = ("edge", "node")

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class _Degrees(Mechanism):
    """Whole numbers that are read off the degrees, with whole-number Laplace noise."""

    noise: Geometric

    @property
    def guarantee(self) -> Guarantee:
        return self.noise.guarantee

    def draw(self, data: object) -> object:
        return self.noise.draw(self.exact(graph_of(data)))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """How far any of the numbers is from its exact one, at most, with this confidence."""
        return self.noise.error(confidence)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any]:
        return self.noise.interval(value, confidence)

    @abstractmethod
    def exact(self, graph: Graph) -> Any:
        """The numbers without noise. Secret."""


class EdgeCount(_Degrees):
    """How many edges there are; for unit "node", how many the projection to `at_most` neighbours
    keeps.

    **Guarantee.** ε-differential privacy for one edge, or for one node with all its edges.

    >>> EdgeCount(epsilon=0.5).guarantee
    discrete_laplace(scale=2.0, sensitivity=1, unit='edge')
    >>> EdgeCount(epsilon=0.5, unit="node", at_most=20).guarantee.epsilon(delta=0)
    0.5
    """

    def __init__(self, *, epsilon: float, unit: str = "edge", at_most: int | None = None) -> None:
        by_node = check.choice(UNITS, unit=unit) == "node"
        if by_node != (at_most is not None):
            raise _projection_error()
        self.at_most = None if at_most is None else check.whole(at_most=at_most)
        self.noise = Geometric(epsilon=epsilon, sensitivity=self.at_most or 1, unit=unit)

    def exact(self, graph: Graph) -> int:
        degrees = graph.degrees if self.at_most is None else projected_degrees(graph, self.at_most)
        return int(degrees.sum()) // 2


class DegreeSequence(_Degrees):
    """The degrees of all nodes: in order of size, or node by node.

    **Guarantee.** ε-differential privacy for one edge. With `order="size"`, the noisy degrees are
    then made to grow again and kept within 0 … nodes - 1 (Hay, Li, Miklau, Jensen 2009). That is
    post-processing, and no number gets further from its exact one than the noise moved the
    furthest; most get much nearer. With `order="node"` they are the noisy degrees as they are.

    Why it holds: sorting brings no two sequences further apart.

    >>> sequence = DegreeSequence(nodes=4, epsilon=1.0)([(0, 1), (0, 2), (0, 3)]).value
    >>> sequence.shape, bool((np.diff(sequence) >= 0).all())
    ((4,), True)
    """

    def __init__(self, *, nodes: int, epsilon: float, order: str = "size") -> None:
        self.nodes = check.whole(nodes=nodes)
        self.order = check.choice(("size", "node"), order=order)
        self.noise = Geometric(epsilon=epsilon, sensitivity=2, dimension=self.nodes, unit="edge")

    def draw(self, data: object) -> Floats | Integers:
        noisy = np.asarray(self.noise.draw(self.exact(graph_of(data, self.nodes))))
        return noisy if self.order == "node" else isotonic_fit(noisy, self.nodes - 1)

    def exact(self, graph: Graph) -> Integers:
        return graph.degrees if self.order == "node" else np.sort(graph.degrees)


class DegreeHistogram(_Degrees):
    """How many nodes have 0, 1, …, `most` neighbours; for edges, the last number is of those with
    `most` or more.

    **Guarantee.** ε-differential privacy for one edge; or for one node with all its edges, of the
    graph that is projected to `most` neighbours.

    >>> DegreeHistogram(most=10, epsilon=1.0).guarantee.epsilon(delta=0)
    1.0
    >>> DegreeHistogram(most=10, epsilon=1.0, unit="node")(Graph([(0, 1)], nodes=3)).value.shape
    (11,)
    """

    def __init__(self, *, most: int, epsilon: float, unit: str = "edge") -> None:
        self.most, self.unit_word = check.whole(most=most), check.choice(UNITS, unit=unit)
        moves = 4 if unit == "edge" else 2 * self.most + 1
        self.noise = Geometric(epsilon=epsilon, sensitivity=moves, dimension=self.most + 1, unit=unit)

    def exact(self, graph: Graph) -> Integers:
        degrees = graph.degrees if self.unit_word == "edge" else projected_degrees(graph, self.most)
        return np.bincount(np.minimum(degrees, self.most), minlength=self.most + 1).astype(np.int64)


class CumulativeDegrees(_Degrees):
    """How many nodes have at most 0, 1, …, `most` neighbours after the projection, to protect one
    node.

    **Guarantee.** ε-differential privacy for one node with all its edges, with about half the noise
    of `DegreeHistogram`. The noisy numbers are made to grow again, which is post-processing and
    takes none further away. The last one counts all nodes.

    >>> CumulativeDegrees(most=10, epsilon=1.0).noise.sensitivity
    11.0
    """

    def __init__(self, *, most: int, epsilon: float) -> None:
        self.most = check.whole(most=most)
        self.noise = Geometric(epsilon=epsilon, sensitivity=most + 1, dimension=most + 1, unit="node")

    def draw(self, data: object) -> Floats:
        return isotonic_fit(np.asarray(super().draw(data)))

    def exact(self, graph: Graph) -> Integers:
        degrees = projected_degrees(graph, self.most)
        return np.bincount(degrees, minlength=self.most + 1).cumsum().astype(np.int64)


def isotonic_fit(noisy: Integers, most: int | None = None) -> Floats:
    """The nearest numbers that do not fall, in least squares, and lie between 0 and `most`.

    If exact numbers that do not fall are within e of the noisy ones, they are within e of the
    result (graphs.proof.md §6).

    >>> isotonic_fit(np.array([3, 1, 5])).tolist()
    [2.0, 2.0, 5.0]
    """
    fitted: Floats = isotonic_regression(noisy.astype(np.float64)).x
    return np.clip(fitted, 0, most)


def _projection_error() -> BadParameter:
    return BadParameter(
        "DP107",
        "unit='node' needs at_most, and unit='edge' takes none.",
        why="one node can have any number of edges, until a projection keeps at most so many of them.",
        fix="EdgeCount(epsilon=0.5, unit='node', at_most=50)",
    )
