# SPDX-License-Identifier: Apache-2.0
"""The ladder: its exact distribution on all small graphs, its sampler against that distribution, and ladders that are wrong."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from discreet import testing
from discreet.errors import BadParameter
from discreet.graphs import stars, triangles
from discreet.graphs.counts import StarCount, TriangleCount
from discreet.graphs.ladder import Ladder, cost, scale_for
from discreet.graphs.local import LocalSensitivity
from tests.chance import may_fail
from tests.graphs import small
from tests.statistical.constants import ALPHA, FEW, WRONG
from tests.statistical.fit import accepts

NODES = 5


def distribution(widths: list[int], rate: float, reach: int) -> np.ndarray:
    """P(place) for place = 0 … reach: rung by rung, the last width for ever."""
    weights, total = [1.0], 1.0
    rung = 0
    while len(weights) <= reach or rung < 60 / rate + len(widths):
        width = widths[min(rung, len(widths) - 1)]
        rung += 1
        weights += [math.exp(-rate * rung)] * width if len(weights) <= reach else []
        total += 2 * width * math.exp(-rate * rung)
    return np.array(weights[: reach + 1]) / total


@cache
def situations(kind: str) -> set[tuple[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]]]:
    """The (count, levels) of every two neighbours among all graphs on five nodes."""
    count, sensitivity = {
        "triangles": (triangles.count, triangles.sensitivity),
        "stars": (lambda g: stars.count(g, 3), lambda g: stars.sensitivity(g, 3)),
    }[kind]
    known = [(count(graph), tuple(sensitivity(graph).levels)) for graph in small.graphs(NODES)]
    return {(known[one], known[other]) for one, other in small.neighbours(NODES)}


def worst_loss(kind: str, rate: float, floor: int, levels=lambda levels: levels) -> float:
    """The greatest |ln P(o) / P'(o)| over all neighbours and all numbers o that can tell them apart."""
    worst = 0.0
    for one, other in situations(kind):
        gap = abs(one[0] - other[0])
        distributions = []
        for _, exact in (one, other):
            widths = [max(level, floor) for level in levels(exact)]
            distributions.append((widths, sum(widths) + 4 * widths[-1]))
        reach = max(distributions[0][1], distributions[1][1])
        first, second = (distribution(widths, rate, reach + gap) for widths, _ in distributions)
        places = np.arange(-reach, reach + 1)
        ratio = np.log(first[np.abs(places)]) - np.log(second[np.abs(places + gap)])
        mirrored = np.log(first[np.abs(places)]) - np.log(second[np.abs(places - gap)])
        worst = max(worst, float(np.abs(ratio).max()), float(np.abs(mirrored).max()))
    return worst


@pytest.mark.parametrize("kind", ["triangles", "stars"])
@pytest.mark.parametrize("floor", [1, 2, 50])
@pytest.mark.parametrize("epsilon", [0.2, 0.7, 3.0])
def test_the_exact_loss_never_exceeds_epsilon_on_any_two_neighbours(kind, floor, epsilon):
    count = TriangleCount(NODES) if kind == "triangles" else StarCount(NODES, 3)
    ladder = Ladder(count, epsilon=epsilon, floor=floor)
    assert worst_loss(kind, 1 / ladder.scale, ladder.floor) <= epsilon * (1 + 1e-9)


def test_wrong_ladders_exceed_epsilon_and_the_right_one_uses_nearly_all_of_it():
    epsilon = 2.0
    rate = 1 / scale_for(epsilon, 1, 1)
    assert 0.98 * epsilon < worst_loss("triangles", rate, 1) <= epsilon

    def one_step_late(levels):
        return (levels[0], *levels)

    def too_narrow(levels):
        return tuple(max(0, level - 1) for level in levels)

    def this_graph_only(levels):
        return (levels[0],)

    for wrong in (one_step_late, too_narrow, this_graph_only):
        assert worst_loss("triangles", rate, 1, wrong) > 1.5 * epsilon
    assert worst_loss("triangles", epsilon, 1) > 1.1 * epsilon  # the rate is not ε


@pytest.mark.parametrize("growth", [1, 7, 10**6])
@pytest.mark.parametrize("floor", [1, 10, 10**9])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0, 100.0])
def test_the_scale_keeps_epsilon_and_is_nearly_the_least(growth, floor, epsilon):
    scale = scale_for(epsilon, growth, floor)
    assert cost(1 / scale, growth, floor) <= epsilon
    assert cost(1 / scale * (1 + 1e-9), growth, floor) > epsilon
    assert epsilon / 2 * (1 - 1e-10) <= 1 / scale <= epsilon


def test_the_usual_floor_keeps_seven_eighths_of_epsilon():
    for epsilon in (0.1, 0.5, 1.0):
        assert 1 / Ladder(TriangleCount(10**6), epsilon=epsilon).scale >= 0.875 * epsilon


@may_fail(3 * ALPHA, "one distribution fits, two do not")
def test_the_sampler_has_the_distribution_and_no_distribution_nearby():
    ladder = Ladder(TriangleCount(40), epsilon=1.0, floor=2)
    local = LocalSensitivity([1, 3, 4, 8, *range(9, 39)], 38)
    widths, rate = [max(2, level) for level in local.levels], 1 / ladder.scale
    samples = np.array([ladder.noise(local) for _ in range(FEW)])

    def by(factor):
        reach = int(np.abs(samples).max())
        exact = distribution(widths, rate * factor, reach)
        return lambda k: exact[np.abs(k)]

    accepts(samples, by(1), by(1 - WRONG), by(1 + WRONG))


def test_beyond_the_last_rung_there_are_more():
    """With a tiny rate nearly every draw leaves the listed rungs, and all further ones are as wide as the cap."""
    ladder = Ladder(TriangleCount(4), epsilon=0.01, floor=1)
    local = LocalSensitivity([1, 2], 2)
    with testing.seeded(3):
        samples = Counter(abs(ladder.noise(local)) for _ in range(2000))
    assert max(samples) > 200
    assert Fraction(sum(place > 3 for place in samples.elements()), 2000) > Fraction(9, 10)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 1e-200])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(BadParameter):
        Ladder(TriangleCount(5), epsilon=bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "1"])
def test_bad_floors_are_refused(bad):
    with pytest.raises(BadParameter):
        Ladder(TriangleCount(5), epsilon=1, floor=bad)


def test_what_cannot_be_drawn_exactly_is_refused_before_there_are_data():
    with pytest.raises(BadParameter) as error:
        Ladder(StarCount(10**6, 5), epsilon=1)
    assert error.value.code == "DP108"
    with pytest.raises(BadParameter) as error:
        Ladder(TriangleCount(50), epsilon=1e-20)
    assert error.value.code == "DP108"
