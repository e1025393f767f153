# SPDX-License-Identifier: Apache-2.0
"""The auditor does not accuse the counts of graphs, and catches noise for the local sensitivity of this graph alone."""

from __future__ import annotations

import pytest

from discreet import privacy
from discreet.audit import audit
from discreet.graphs import EdgeCount, Graph, Triangles, triangles
from discreet.mechanisms import Geometric
from tests.statistical.constants import ALPHA

RING = [(0, 1), (1, 2), (2, 3), (0, 3)]
#: A diagonal makes two triangles, as many as any edge can.
X, X_NEIGHBOUR = Graph(RING, nodes=12), Graph([*RING, (0, 2)], nodes=12)
MECHANISMS = {
    "edges": EdgeCount(epsilon=1),
    "ladder": Triangles(nodes=12, epsilon=1, floor=1),
    "smooth": Triangles(nodes=12, epsilon=1, method="smooth"),
    "bound": Triangles(nodes=12, epsilon=1, delta=0.01, method="bound"),
    "propose": Triangles(nodes=12, epsilon=1, delta=0.01, bound=2, method="propose"),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_count_is_not_accused(name):
    report = audit(MECHANISMS[name], X, X_NEIGHBOUR, trials=1_000, confidence=1 - ALPHA)
    assert not report.refutes(), str(report)


def test_noise_for_the_local_sensitivity_alone_is_caught():
    def release(graph):
        sensitivity = max(1, triangles.sensitivity(graph).at(0))
        return Geometric(epsilon=1, sensitivity=sensitivity).draw(triangles.count(graph))

    path, ring = Graph(RING[:3], nodes=12), Graph(RING, nodes=12)  # no triangles, but the sensitivity doubles
    assert [triangles.sensitivity(graph).at(0) for graph in (path, ring)] == [1, 2]
    assert audit(release, path, ring, trials=4_000, claim=privacy.pure(1.0, unit="edge")).refutes()
