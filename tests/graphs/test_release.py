# SPDX-License-Identifier: Apache-2.0
"""Triangles and stars in five ways: exact (ε, δ) on all small graphs, the rules, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet import testing
from discreet.errors import BadParameter
from discreet.graphs import Graph, KStars, Triangles, stars, triangles
from discreet.graphs.counts import StarCount, TriangleCount
from discreet.graphs.release import METHODS
from discreet.mechanisms import check_mechanism
from tests.graphs import small
from tests.statistical.fit import discrete_laplace

NODES = 5
WORDS = {
    "ladder": {"floor": 2},
    "smooth": {},
    "bound": {"delta": 1e-3},
    "propose": {"delta": 1e-3, "bound": 2},
    "global": {},
}
KITE = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 1), (0, 4)]


def made(kind, method, epsilon=0.5, nodes=6, **words):
    words = {**WORDS[method], **words}
    if kind == "stars":
        return KStars(k=3, nodes=nodes, epsilon=epsilon, method=method, **words)
    return Triangles(nodes=nodes, epsilon=epsilon, method=method, **words)


# --- the private bound, exactly ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [TriangleCount(NODES), StarCount(NODES, 2), StarCount(NODES, 3)], ids=str)
def test_a_measure_moves_by_one_and_bounds_the_local_sensitivity(count):
    measures = [count.measure(graph) for graph in small.graphs(NODES)]
    assert max(abs(measures[one] - measures[other]) for one, other in small.neighbours(NODES)) == 1
    for graph, measure in zip(small.graphs(NODES), measures, strict=True):
        assert count.sensitivity(graph).at(0) <= count.sensitivity_below(measure) <= count.cap


def joint_distribution(mechanism, count: int, measure: int, margin: int) -> np.ndarray:
    """P(bound, answer) over the bounds 1 … cap (rows) and the answers -400 … 400 (columns)."""
    guided = mechanism.release
    places = np.arange(-600, 601)
    chances = discrete_laplace(places, guided.distribution.scale)
    bounds = np.array([guided.sensitivity(measure + margin + int(z)) for z in places])
    answers = np.arange(-400, 401)
    rows = []
    for bound in sorted(set(bounds.tolist())):
        scale = guided._mechanism_for(float(bound)).distribution.scale
        rows.append(chances[bounds == bound].sum() * discrete_laplace(answers - count, scale))
    missing = mechanism.count.cap - len(rows)
    return np.array([*rows, *[np.zeros(answers.size)] * missing])


def worst_delta(mechanism, margin: int) -> float:
    """The greatest P(S) - e^ε P'(S) over all neighbours on five nodes, in both directions."""
    count, epsilon = mechanism.count, 2.0
    known = [(count.exact(graph), count.measure(graph)) for graph in small.graphs(NODES)]
    worst = 0.0
    for one, other in {(known[a], known[b]) for a, b in small.neighbours(NODES)}:
        p, q = (joint_distribution(mechanism, *side, margin) for side in (one, other))
        for first, second in ((p, q), (q, p)):
            worst = max(worst, float(np.maximum(0, first - math.exp(epsilon) * second).sum()))
    return worst


def test_the_exact_delta_of_a_bound_then_an_answer_is_kept_and_needs_its_margin():
    mechanism = Triangles(nodes=NODES, epsilon=2.0, delta=0.01, method="bound", share=0.5)
    margin = mechanism.release.margin
    assert worst_delta(mechanism, margin) <= 0.01
    assert worst_delta(mechanism, 0) > 0.01  # a bound that is right half of the time
    assert worst_delta(mechanism, -2) > 0.05
    q = math.exp(-1 / mechanism.release.distribution.scale)
    assert q ** (margin + 1) / (1 + q) <= 0.01 < q**margin / (1 + q)  # P(bound < LS), and with one less


def test_an_interval_is_for_the_bound_that_was_released():
    mechanism = made("triangles", "bound")
    release = mechanism(Graph(KITE, nodes=6))
    low, high = release.interval
    assert release.error is None
    assert low < release.value.value < high
    assert 1 <= release.value.bound <= 4
    wide = mechanism.interval(release.value._replace(bound=4.0))
    narrow = mechanism.interval(release.value._replace(bound=1.0))
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


# --- distances for the test of a proposed bound --------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 2])
def test_the_distance_of_a_proposed_bound_is_that_to_a_more_sensitive_graph(bound):
    mechanism = made("triangles", "propose", nodes=NODES, bound=bound)
    distance = [mechanism.release.distance(graph) for graph in small.graphs(NODES)]
    counts = [triangles.count(graph) for graph in small.graphs(NODES)]
    for one, other in small.neighbours(NODES):
        assert abs(distance[one] - distance[other]) <= 1
        if abs(counts[one] - counts[other]) > bound:
            assert distance[one] == distance[other] == 0
    masks = range(len(distance))
    for mask in range(0, 1024, 37):
        nearest = min((mask ^ other).bit_count() for other in masks if distance[other] == 0)
        assert distance[mask] == nearest


def test_a_bound_that_holds_everywhere_is_never_refused():
    mechanism = made("triangles", "propose", bound=4)
    assert not any(mechanism(Graph(KITE, nodes=6)).refused for _ in range(20))
    assert made("triangles", "propose", bound=1)(Graph(KITE, nodes=6)).refused


# --- all methods ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["triangles", "stars"])
@pytest.mark.parametrize("method", METHODS)
def test_they_pass_the_suite_of_mechanisms(kind, method):
    mechanism = made(kind, method)
    check_mechanism(mechanism, Graph(KITE, nodes=6), neighbour=Graph(KITE[:-1], nodes=6))
    pure = method in {"ladder", "smooth", "global"}
    assert mechanism.guarantee.epsilon(delta=0 if pure else 1e-3) == pytest.approx(0.5, abs=1e-12)
    assert mechanism.unit.protects == "edge"
    assert mechanism(KITE).guarantee == mechanism.guarantee


@pytest.mark.parametrize("kind", ["triangles", "stars"])
def test_with_a_large_epsilon_every_method_is_right(kind):
    graph = Graph(KITE, nodes=6)
    exact = triangles.count(graph) if kind == "triangles" else stars.count(graph, 3)
    for method in METHODS:
        value = made(kind, method, epsilon=500.0, **({"bound": 12} if method == "propose" else {}))(
            graph
        ).value
        value = value.value if method == "bound" else value
        assert abs(value - exact) < 1


def test_noise_follows_the_graph_and_not_the_worst_graph():
    """2,000 nodes in a ring of triangles: one edge moves the count by few, the worst case is 1,998."""
    ring = [(i, (i + step) % 2000) for i in range(2000) for step in (1, 2)]
    graph = Graph(ring, nodes=2000)
    local = triangles.sensitivity(graph).at(0)
    assert local == 2
    with testing.seeded(1):
        errors = {
            method: np.median(
                [abs(_number(made("triangles", method, 1.0, 2000)(graph).value) - 2000) for _ in range(9)]
            )
            for method in ("ladder", "smooth", "bound", "global")
        }
    assert errors["global"] > 300
    assert max(errors["ladder"], errors["smooth"], errors["bound"]) < errors["global"] / 4


def _number(value):
    return value.value if hasattr(value, "value") else value


def test_smooth_answers_may_use_delta():
    assert made("triangles", "smooth", delta=1e-6).guarantee.epsilon(delta=1e-6) <= 0.5 + 1e-12


@pytest.mark.parametrize(
    "words",
    [
        {"nodes": 2}, {"nodes": 5.0}, {"nodes": True}, {"epsilon": 0}, {"epsilon": math.nan}, {"epsilon": "1"},
        {"method": "guess"}, {"delta": 1e-6}, {"method": "bound"}, {"method": "propose", "delta": 1e-6},
        {"method": "propose", "bound": 3}, {"method": "global", "floor": 3}, {"bound": 3}, {"share": 0.5},
        {"method": "bound", "delta": 0}, {"method": "bound", "delta": 1}, {"method": "bound", "delta": math.nan},
        {"method": "bound", "delta": 1e-6, "share": 0}, {"method": "bound", "delta": 1e-6, "share": "half"},
        {"method": "bound", "delta": 1e-6, "share": 1},
        {"method": "propose", "delta": 1e-6, "bound": 2.5}, {"floor": 0},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused(words):
    for make in (Triangles, lambda **more: KStars(k=2, **more)):
        with pytest.raises(BadParameter):
            make(**{"nodes": 9, "epsilon": 1.0, "method": "ladder", **words})


@pytest.mark.parametrize("k", [0, 1, 2.0, True, "2", 9])
def test_stars_have_two_points_or_more_and_fit_into_the_graph(k):
    with pytest.raises(BadParameter):
        KStars(k=k, nodes=9, epsilon=1.0)


def test_every_small_number_of_nodes_is_answered():
    for nodes, method in itertools.product((3, 4), METHODS):
        words = {"bound": 1} if method == "propose" else {}
        assert made("triangles", method, nodes=nodes, **words)(Graph([], nodes=nodes)) is not None


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_drawn_exactly_is_refused_before_there_are_data(method):
    words = {"bound": 10**14} if method == "propose" else {}
    codes = []
    for k in (12, 60):
        try:
            KStars(k=k, nodes=5000, epsilon=1e-3, method=method, **{**WORDS[method], **words})
        except BadParameter as error:
            codes.append(error.code)
    expected = {"smooth": ["DP108"], "propose": ["DP108"]}.get(method, ["DP108", "DP108"])
    assert codes == expected


def test_stars_with_many_points_keep_exact_whole_numbers():
    graph = Graph([(0, i) for i in range(1, 300)], nodes=300)
    local = stars.sensitivity(graph, 40)
    assert local.at(0) == math.comb(298, 39)
    assert local.at(38) == math.comb(298, 39)
    assert local.at(39) == math.comb(298, 39) + 1
    assert local.cap == 2 * math.comb(298, 39)
