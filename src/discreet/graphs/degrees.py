# SPDX-License-Identifier: Apache-2.0
"""The number of edges and the degrees of the nodes, to protect one edge or one node.

    EdgeCount(epsilon=0.5)(graph).value
    DegreeSequence(nodes=22_470, epsilon=0.5)(graph).value  # sorted, with isotonic regression
    DegreeHistogram(most=100, epsilon=0.5)(graph).value  # nodes with 0, 1, …, 100 or more edges
    DegreeHistogram(most=100, epsilon=0.5, unit="node")(graph).value  # after a projection
    CumulativeDegrees(most=100, epsilon=0.5)(graph).value  # at most 0, 1, …, 100; unit "node"

Under node privacy one person with a thousand friends changes a thousand edges. So the graph is
projected first: the projection goes through the edges in the order of their ends, and keeps an edge
if both ends have kept fewer than D so far.

The l1 sensitivity of the exact numbers:

| | one edge | one node, after the projection to D neighbours |
|---|---|---|
| `EdgeCount` | 1 | D |
| `DegreeSequence` | 2 | |
| `DegreeHistogram` | 4 | 2D + 1 |
| `CumulativeDegrees` | | D + 1 |

Why it holds: an edge moves two degrees by one, and each of them changes its bin. For nodes: Day,
Li, Lyu 2016, and graphs.proof.md §5. Under edge privacy the nodes are public. Under node privacy
they are not, and only noisy numbers depend on them.

What would break it: an order of edges that depends on anything but their ends, such as their order
in a file (`Graph` sorts them); an order of `nodes` that depends on who is present.

The projection drops edges of nodes with more than D neighbours, so counts may be too low. Triangles
are not offered: the projection changes edges along paths of any length, and triangles with them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from discreet import check
from discreet.errors import BadParameter
from discreet.graphs.graph import Graph, graph_of, remember
from discreet.mechanisms.additive import Geometric
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.privacy.guarantee import Guarantee

__all__ = [
    "UNITS",
    "CumulativeDegrees",
    "DegreeHistogram",
    "DegreeSequence",
    "EdgeCount",
    "projected_degrees",
]

UNITS = ("edge", "node")

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@remember
def projected_degrees(graph: Graph, at_most: int) -> Integers:
    """The degrees after the projection to `at_most` neighbours; exact, and secret.

    **Guarantee.** Let G' be G with one more node v and its edges, and d', d the degrees after the
    projection. Then Σ over u ≠ v of |d'(u) - d(u)| <= d'(v) <= at_most.
    """
    degrees = [0] * graph.nodes
    for i, j in graph.edges.tolist():
        if degrees[i] < at_most and degrees[j] < at_most:
            degrees[i] += 1
            degrees[j] += 1
    return np.array(degrees, np.int64)


class _Degrees(Mechanism):
    """Whole numbers computed from the degrees, with whole-number Laplace noise."""

    noise: Geometric

    @property
    def guarantee(self) -> Guarantee:
        return self.noise.guarantee

    def draw(self, data: object) -> object:
        return self.noise.draw(self.exact(graph_of(data)))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """The margin of error of all numbers at once."""
        return self.noise.error(confidence)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any]:
        return self.noise.interval(value, confidence)

    @abstractmethod
    def exact(self, graph: Graph) -> Any:
        """The numbers without noise. Secret."""


class EdgeCount(_Degrees):
    """The number of edges; for unit "node", of those that the projection to `at_most` keeps.

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
    """The degrees of all nodes, sorted or node by node.

    **Guarantee.** ε-differential privacy for one edge. With `order="size"`, isotonic regression
    makes the noisy degrees non-decreasing, and they are clipped to 0 … nodes - 1 (Hay, Li, Miklau,
    Jensen 2009). That is post-processing: the largest error does not grow, and most errors shrink.
    With `order="node"` the noisy degrees are returned as they are.

    Why it holds: sorting never increases the distance of two sequences.

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
    """The number of nodes with 0, 1, …, `most` neighbours.

    For unit "edge" the last number counts nodes with `most` or more; for unit "node" the graph is
    projected to `most` neighbours.

    **Guarantee.** ε-differential privacy for one edge, or for one node with all its edges.

    >>> DegreeHistogram(most=10, epsilon=1.0).guarantee.epsilon(delta=0)
    1.0
    >>> DegreeHistogram(most=10, epsilon=1.0, unit="node")(Graph([(0, 1)], nodes=3)).value.shape
    (11,)
    """

    def __init__(self, *, most: int, epsilon: float, unit: str = "edge") -> None:
        self.most, self.unit_word = check.whole(most=most), check.choice(UNITS, unit=unit)
        sensitivity = 4 if unit == "edge" else 2 * self.most + 1
        self.noise = Geometric(epsilon=epsilon, sensitivity=sensitivity, dimension=self.most + 1, unit=unit)

    def exact(self, graph: Graph) -> Integers:
        degrees = graph.degrees if self.unit_word == "edge" else projected_degrees(graph, self.most)
        return np.bincount(np.minimum(degrees, self.most), minlength=self.most + 1).astype(np.int64)


class CumulativeDegrees(_Degrees):
    """The number of nodes with at most 0, 1, …, `most` neighbours after the projection.

    **Guarantee.** ε-differential privacy for one node with all its edges, with about half the noise
    of `DegreeHistogram`. Isotonic regression makes the noisy numbers non-decreasing; that is
    post-processing, and the largest error does not grow. The last number counts all nodes.

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
    """The non-decreasing numbers nearest in least squares, clipped to 0 … `most`.

    If non-decreasing exact numbers are within e of the noisy ones, they are within e of the result
    (graphs.proof.md §6).

    >>> isotonic_fit(np.array([3, 1, 5])).tolist()
    [2.0, 2.0, 5.0]
    """
    fitted: Floats = isotonic_regression(noisy.astype(np.float64)).x
    return np.clip(fitted, 0, most)


def _projection_error() -> BadParameter:
    return BadParameter(
        "DP107",
        "unit='node' needs at_most, and unit='edge' takes none.",
        why="one node can have any number of edges; the projection keeps at most at_most of them.",
        fix="EdgeCount(epsilon=0.5, unit='node', at_most=50)",
    )
