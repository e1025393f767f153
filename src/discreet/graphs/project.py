# SPDX-License-Identifier: Apache-2.0
"""Node privacy: a graph with few neighbours for everybody, which one person more or less changes
only a little.

    projected_degrees(graph, at_most=50)      # the degrees after the projection; exact, and secret

A person with a thousand friends changes a thousand edges, so under node privacy no count of edges
can be released with little noise. The projection goes through the edges in the order of their ends
and keeps an edge if both ends have kept fewer than `at_most` so far. Whatever one person did
before, they are now part of `at_most` edges.

**Guarantee.** Let G' be G with one node v and its edges more, and d', d the degrees after the
projection. Then Σ over u ≠ v of |d'(u) - d(u)| <= d'(v) <= at_most.

Why it holds: Day, Li, Lyu 2016; our proof is in graphs.proof.md §5. What would break it: an order
of edges that depends on anything but their ends, such as their order in a file. `Graph` sorts them.
Nodes that leave must not change the order of the others: state `nodes` in an order that says
nothing of who is there, for example sorted.

The projected graph is not the graph: counts are too small where many nodes have more than `at_most`
neighbours. Triangles are not offered: the projection moves edges along paths of any length, and
triangles with them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.graphs.graph import Graph, remember

Integers = npt.NDArray[np.int64]


@remember
def projected_degrees(graph: Graph, at_most: int) -> Integers:
    """How many edges each node keeps."""
    kept = [0] * graph.nodes
    for one, other in graph.edges.tolist():
        if kept[one] < at_most and kept[other] < at_most:
            kept[one] += 1
            kept[other] += 1
    return np.array(kept, np.int64)
