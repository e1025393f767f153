# SPDX-License-Identifier: Apache-2.0
"""Edges, degrees and histograms: how far one edge and one node move them, on all small graphs."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from discreet import testing
from discreet.errors import BadParameter
from discreet.graphs import CumulativeDegrees, DegreeHistogram, DegreeSequence, EdgeCount, Graph
from discreet.graphs.degrees import isotonic_fit, projected_degrees
from discreet.mechanisms import check_mechanism
from tests.graphs import small

NODES = 5


@cache
def without(graph: Graph, node: int) -> Graph:
    """The graph after a node has left, with its edges; the others keep their order."""
    rest = [label for label in range(graph.nodes) if label != node]
    return Graph(graph.edges.tolist(), nodes=rest)


def moves_by_edge(mechanism) -> int:
    exact = [np.atleast_1d(mechanism.exact(graph)) for graph in small.graphs(NODES)]
    return max(int(np.abs(exact[one] - exact[other]).sum()) for one, other in small.neighbours(NODES))


def moves_by_node(mechanism) -> int:
    return max(
        int(np.abs(mechanism.exact(graph) - mechanism.exact(without(graph, node))).sum())
        for graph in small.graphs(NODES)
        for node in range(NODES)
    )


# --- one edge ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "moves"),
    [
        (EdgeCount(epsilon=1), 1),
        (DegreeSequence(nodes=NODES, epsilon=1), 2),
        (DegreeSequence(nodes=NODES, epsilon=1, order="node"), 2),
        (DegreeHistogram(most=4, epsilon=1), 4),
        (DegreeHistogram(most=2, epsilon=1), 4),
    ],
)
def test_one_edge_moves_them_by_their_sensitivity_and_no_further(mechanism, moves):
    assert moves_by_edge(mechanism) == moves == mechanism.noise.sensitivity
    assert mechanism.guarantee.unit.protects == "edge"


# --- one node ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_node_moves_the_degrees_of_the_others_by_no_more_than_its_own(most):
    worst = 0
    for graph, node in itertools.product(small.graphs(NODES), range(NODES)):
        after = projected_degrees(graph, most)
        rest = np.delete(after, node)
        moved = int(np.abs(rest - projected_degrees(without(graph, node), most)).sum())
        assert moved <= after[node] <= most
        assert (after <= np.minimum(graph.degrees, most)).all()
        worst = max(worst, moved)
    assert worst == most


@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_node_moves_projected_numbers_by_their_sensitivity(most):
    assert moves_by_node(EdgeCount(epsilon=1, unit="node", at_most=most)) == most
    assert moves_by_node(CumulativeDegrees(most=most, epsilon=1)) == most + 1
    assert 2 * most <= moves_by_node(DegreeHistogram(most=most, epsilon=1, unit="node")) <= 2 * most + 1
    assert EdgeCount(epsilon=1, unit="node", at_most=most).noise.sensitivity == most
    assert CumulativeDegrees(most=most, epsilon=1).noise.sensitivity == most + 1
    assert DegreeHistogram(most=most, epsilon=1, unit="node").noise.sensitivity == 2 * most + 1


def test_without_a_projection_or_with_an_order_that_nodes_change_it_would_be_wrong():
    """A node moves the plain number of edges by its degree; and edges in the order of degrees are not a stable order."""
    plain = EdgeCount(epsilon=1)
    assert moves_by_node(plain) == NODES - 1

    def by_degrees(graph, most):
        order = np.lexsort((graph.edges[:, 1], graph.degrees[graph.edges].sum(axis=1)))
        kept = [0] * graph.nodes
        for one, other in graph.edges[order].tolist():
            if kept[one] < most and kept[other] < most:
                kept[one] += 1
                kept[other] += 1
        return np.array(kept)

    worst = max(
        int(np.abs(np.delete(by_degrees(graph, 1), node) - by_degrees(without(graph, node), 1)).sum())
        for graph, node in itertools.product(small.graphs(NODES), range(NODES))
    )
    assert worst > 1


def test_a_graph_that_is_within_the_bound_stays_as_it_is():
    graph = Graph([(0, 1), (1, 2), (2, 3)], nodes=4)
    assert projected_degrees(graph, 2).tolist() == graph.degrees.tolist()
    assert projected_degrees(Graph([], nodes=0), 2).tolist() == []
    assert EdgeCount(epsilon=1, unit="node", at_most=2).exact(graph) == 3


# --- numbers that grow again ---------------------------------------------------------------------------------------


def test_growing_again_takes_no_number_further_away():
    for noisy in itertools.product(range(-2, 5), repeat=4):
        found = isotonic_fit(np.array(noisy), 3)
        assert (np.diff(found) >= 0).all()
        for exact in ([0, 0, 1, 3], [1, 1, 1, 1], [0, 1, 2, 3]):
            assert np.abs(found - exact).max() <= np.abs(np.array(noisy) - exact).max() + 1e-12


def test_sequences_in_order_are_nearer_than_node_by_node():
    graph = Graph([(0, i) for i in range(1, 200)] + [(1, i) for i in range(2, 100)], nodes=200)
    with testing.seeded(5):
        ordered = DegreeSequence(nodes=200, epsilon=0.5)(graph).value
        noisy = DegreeSequence(nodes=200, epsilon=0.5, order="node")(graph).value
    assert np.abs(ordered - np.sort(graph.degrees)).mean() < np.abs(noisy - graph.degrees).mean() / 3


# --- all together --------------------------------------------------------------------------------------------------

MECHANISMS = [
    EdgeCount(epsilon=0.5),
    EdgeCount(epsilon=0.5, unit="node", at_most=2),
    DegreeSequence(nodes=6, epsilon=0.5),
    DegreeSequence(nodes=6, epsilon=0.5, order="node"),
    DegreeHistogram(most=3, epsilon=0.5),
    DegreeHistogram(most=3, epsilon=0.5, unit="node"),
    CumulativeDegrees(most=3, epsilon=0.5),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: f"{type(m).__name__} {m.unit.protects}")
def test_they_pass_the_suite_of_mechanisms(mechanism):
    one = Graph([(0, 1), (1, 2), (2, 0), (2, 3)], nodes=6)
    other = Graph([(0, 1), (1, 2), (2, 0)], nodes=6)
    check_mechanism(mechanism, one, neighbour=other)
    assert mechanism.guarantee.epsilon(delta=0) == 0.5


@pytest.mark.parametrize(
    "mechanism", [m for m in MECHANISMS if m.unit.protects == "node"], ids=lambda m: type(m).__name__
)
def test_under_node_privacy_shapes_say_nothing_of_the_number_of_nodes(mechanism):
    shapes = {np.shape(mechanism(Graph([], nodes=nodes)).value) for nodes in (0, 1, 7)}
    assert len(shapes) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: EdgeCount(epsilon=1, unit="node"),
        lambda: EdgeCount(epsilon=1, at_most=3),
        lambda: EdgeCount(epsilon=1, unit="graph"),
        lambda: EdgeCount(epsilon=1, unit="node", at_most=0),
        lambda: EdgeCount(epsilon=1, unit="node", at_most=2.5),
        lambda: EdgeCount(epsilon=0),
        lambda: DegreeSequence(nodes=0, epsilon=1),
        lambda: DegreeSequence(nodes=5, epsilon=1, order="sorted"),
        lambda: DegreeHistogram(most=True, epsilon=1),
        lambda: DegreeHistogram(most=3, epsilon=float("nan")),
        lambda: CumulativeDegrees(most="3", epsilon=1),
        lambda: DegreeSequence(nodes=5, epsilon=1)(Graph([], nodes=6)),
        lambda: EdgeCount(epsilon=1)([(0, 1)]),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(BadParameter):
        make()
