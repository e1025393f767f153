# SPDX-License-Identifier: Apache-2.0
"""Triangles and stars of graphs: the error of every method against that of the global sensitivity; time and memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.graphs import Graph, KStars, Triangles, stars, triangles

TITLE = "Counts of graphs"
EPSILONS = (0.1, 0.5, 1.0)
DELTA = 1e-6
DRAWS = 101
METHODS: dict[str, dict[str, Any]] = {
    "global": {},
    "ladder": {},
    "smooth": {},
    "smooth, δ": {"method": "smooth", "delta": DELTA},
    "bound": {"delta": DELTA},
}
COUNTS: dict[str, tuple[Callable[..., Any], Callable[[Graph], int], Callable[[Graph], Any]]] = {
    "triangles": (Triangles, triangles.count, triangles.sensitivity),
    "2-stars": (
        lambda **words: KStars(k=2, **words),
        lambda graph: stars.count(graph, 2),
        lambda graph: stars.sensitivity(graph, 2),
    ),
    "3-stars": (
        lambda **words: KStars(k=3, **words),
        lambda graph: stars.count(graph, 3),
        lambda graph: stars.sensitivity(graph, 3),
    ),
}


def options(parser) -> None:
    parser.add_argument(
        "--graph",
        nargs=2,
        metavar=("PATH", "NODES"),
        action="append",
        default=[],
        help="an edge list and its number of nodes",
    )


def lines(options) -> Iterator[str]:
    given = {path.rsplit("/", 1)[-1]: (path, int(nodes)) for path, nodes in options.graph}
    graphs = {name: _read(path, nodes) for name, (path, nodes) in given.items()} or dict(_public())
    yield f"Median of |error| over {DRAWS} draws, and in brackets how many times smaller than with the global"
    yield f"sensitivity. 'bound' and 'smooth, δ' are (ε, {DELTA:g})-private, the others ε-private, for one edge."
    yield ""
    yield "| graph | count | exact | local sensitivity | ε | " + " | ".join(METHODS) + " |"
    yield "|---|---|--:|--:|--:|" + "--:|" * len(METHODS)
    for name, (graph, _) in graphs.items():
        for count in COUNTS:
            yield from _errors(name, count, graph)
    yield ""
    yield "What it costs, in seconds of CPU time; memory is the greatest that was held beside the graph."
    yield ""
    yield "| graph | nodes | edges | read | triangles | their sensitivity at all distances | and smooth | MB |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for name, (graph, read) in graphs.items():
        yield _costs(name, graph, read)


def _errors(name: str, count: str, graph: Graph) -> Iterator[str]:
    make, exact, sensitivity = COUNTS[count]
    truth, local = exact(graph), sensitivity(graph).at(0)
    for epsilon in EPSILONS:
        found = {}
        for method, words in METHODS.items():
            mechanism = make(nodes=graph.nodes, epsilon=epsilon, **{"method": method, **words})
            values = [mechanism(graph).value for _ in range(DRAWS)]
            found[method] = float(
                np.median([abs(getattr(value, "value", value) - truth) for value in values])
            )
        cells = [f"{error:.3g} (×{found['global'] / max(error, 0.5):.3g})" for error in found.values()]
        yield f"| {name} | {count} | {truth} | {local} | {epsilon:g} | " + " | ".join(cells) + " |"
        name = ""


def _costs(name: str, graph: Graph, read: float) -> str:
    counted, _ = _seconds(lambda: triangles.count(_fresh(graph)))
    sensed, local = _seconds(lambda: triangles.sensitivity(_fresh(graph)))
    smoothed, _ = _seconds(lambda: local.smooth(Fraction(1, 20)))
    fresh = _fresh(graph)
    tracemalloc.start()
    triangles.sensitivity(fresh)
    megabytes = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    numbers = (read, counted, sensed, smoothed)
    cells = " | ".join(f"{seconds:.2g}" for seconds in numbers)
    return f"| {name} | {graph.nodes} | {len(graph.edges)} | {cells} | {megabytes:.0f} |"


def _fresh(graph: Graph) -> Graph:
    """The same graph without what was remembered of it."""
    return Graph(graph.adjacency)


def _read(path: str, nodes: int) -> tuple[Graph, float]:
    seconds, graph = _seconds(lambda: Graph(path, nodes=nodes))
    return graph, seconds


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def _public() -> Iterator[tuple[str, tuple[Graph, float]]]:
    """Graphs that anybody has: those of networkx, if it is installed, and one that is made here."""
    try:
        import networkx as nx
    except ImportError:
        pass
    else:
        for name, network in (
            ("karate club", nx.karate_club_graph()),
            ("Misérables", nx.les_miserables_graph()),
        ):
            seconds, graph = _seconds(lambda network=network: Graph(network))
            yield name, (graph, seconds)
    seconds, edges = _seconds(lambda: friends_of_friends(nodes=20_000, links=8, seed=1))
    yield "friends of friends", (Graph(edges, nodes=20_000), seconds)


def friends_of_friends(nodes: int, links: int, seed: int) -> list[tuple[int, int]]:
    """A growing network: each newcomer meets somebody by their fame, and then a friend of theirs, in turn."""
    rng = np.random.default_rng(seed)
    ends, edges = [0, 1], [(0, 1)]
    friends: list[list[int]] = [[1], [0]]
    for newcomer in range(2, nodes):
        friends.append([])
        for turn in range(min(links, newcomer)):
            famous = ends[int(rng.integers(len(ends)))]
            circle = friends[famous]
            met = circle[int(rng.integers(len(circle)))] if turn % 2 else famous
            if met != newcomer and met not in friends[newcomer]:
                edges.append((met, newcomer))
                friends[met].append(newcomer)
                friends[newcomer].append(met)
                ends += [met, newcomer]
    return edges
