# SPDX-License-Identifier: Apache-2.0
"""A released bound, then an answer: the exact joint distribution on all small data sets; triangles; predictions by brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.errors import DiscreetError, UnsupportedGuarantee
from discreet.mechanisms import ExponentialMechanism, Gaussian, Geometric, Laplace, PermuteAndFlip, TopK
from discreet.mechanisms.conformance import check_mechanism
from discreet.mechanisms.guided import HighProbabilityBound, WithBound
from discreet.mechanisms.prediction import LogVariance, log_ratio, prediction_variance
from tests.chance import may_fail
from tests.mechanisms.sticks import cdf, neighbours, pmf, stick
from tests.statistical.constants import ALPHA, FEW
from tests.statistical.fit import accepts

AMOUNTS = {"bound_epsilon": 0.7, "release_epsilon": 0.5, "delta": 0.03}
EPSILON, DELTA = 1.2, 0.03


def largest(x):
    return max(x, default=0)


def worst_delta(mechanism, data_pairs, margin=None, epsilon=EPSILON):
    """The greatest H of (bound, number) over the pairs, summed over every released bound."""
    margin = mechanism.margin if margin is None else margin
    gamma, scale, worst, seen = math.exp(epsilon), mechanism.distribution.scale, 0.0, set()
    for one, other in data_pairs:
        m, n = mechanism._rounded_measure(one), mechanism._rounded_measure(other)
        a, b = mechanism.query(one), mechanism.query(other)
        if (m, n, a, b) in seen:
            continue
        seen.add((m, n, a, b))
        found = 0.0
        for theta in range(min(m, n) - 60, max(m, n) + 61):
            p, q = pmf(theta - m, scale), pmf(theta - n, scale)
            bound = mechanism._bound_for(theta + mechanism._sign * margin)
            if bound is None:
                found += max(0.0, p - gamma * q)
            else:
                run = mechanism._mechanism_for(bound)
                found += stick(p, gamma * q, run.grid.cells(a) - run.grid.cells(b), run.distribution.scale)
        worst = max(worst, found)
    return worst


# --- handshakes: the answer n(n-1)/2 moves by n at most, and n moves by 1 --------------------------------------------


def sizes(most):
    """Data are the number of guests."""
    return [pair for n in range(most) for pair in ((n, n + 1), (n + 1, n))]


def hands(n):
    return 50 * n * (n - 1)


def test_the_guarantee_holds_on_all_sizes_and_is_nearly_used_up():
    made = HighProbabilityBound(hands, int, sensitivity=hundredfold, **AMOUNTS)
    assert made.guarantee == privacy.approximate(EPSILON, DELTA)
    assert worst_delta(made, sizes(9)) <= DELTA
    assert worst_delta(made, sizes(9), epsilon=0.6 * EPSILON) > DELTA


def hundredfold(n):
    return max(1, 100 * n)


def test_half_of_the_bound_breaks_it():
    made = HighProbabilityBound(hands, int, sensitivity=lambda n: max(1, 25 * n), **AMOUNTS)
    assert worst_delta(made, sizes(9)) > DELTA


def test_a_measure_that_jumps_breaks_it():
    """The largest record is no measure: it moves by more than 1."""
    made = HighProbabilityBound(sum, largest, **AMOUNTS)
    assert worst_delta(made, neighbours((0, 1, 9), 2, "add-remove")) > 2 * DELTA


def graph_neighbours(nodes):
    edges = list(itertools.combinations(range(nodes), 2))
    for size in range(len(edges) + 1):
        for graph in itertools.combinations(edges, size):
            for edge in edges:
                other = tuple(sorted(set(graph) ^ {edge}))
                yield (nodes, graph), (nodes, other)


def triangles(graph):
    _, edges = graph
    return sum(
        {(a, b), (b, c), (a, c)} <= set(edges) for a, b, c in itertools.combinations(range(graph[0]), 3)
    )


def common_neighbours(graph):
    nodes, edges = graph
    around = [{b for a, b in edges if a == v} | {a for a, b in edges if b == v} for v in range(nodes)]
    return max(len(around[i] & around[j]) for i, j in itertools.combinations(range(nodes), 2))


def max_degree(graph):
    nodes, edges = graph
    return max(sum(v in edge for edge in edges) for v in range(nodes))


def test_triangles_with_a_private_bound_on_their_local_sensitivity():
    made = HighProbabilityBound(triangles, common_neighbours, unit="edge", **AMOUNTS)
    pairs = list(graph_neighbours(4))
    assert all(abs(common_neighbours(x) - common_neighbours(y)) <= 1 for x, y in pairs)
    assert all(abs(triangles(x) - triangles(y)) <= common_neighbours(x) for x, y in pairs)
    assert worst_delta(made, pairs) <= DELTA


def test_without_a_margin_the_bound_is_wrong_too_often():
    """Two data sets whose measure is 40 and whose answers are 40 apart: half of the bounds would be too small."""
    made = HighProbabilityBound(sum, lambda _: 40, **AMOUNTS)
    assert worst_delta(made, [([0], [40])]) <= DELTA
    assert worst_delta(made, [([0], [40])], margin=-36) > DELTA


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-12])
def test_the_margin_is_the_least(epsilon, delta):
    made = HighProbabilityBound(sum, largest, bound_epsilon=epsilon, release_epsilon=1, delta=delta)
    scale = made.distribution.scale
    tail = [math.exp(-(k + 1) / scale) / (1 + math.exp(-1 / scale)) for k in (made.margin, made.margin - 1)]
    assert tail[0] <= delta
    assert made.margin == 0 or tail[1] > delta * (1 - 1e-9)
    assert cdf(-made.margin - 1, scale) == pytest.approx(tail[0], rel=1e-9)


# --- choices -------------------------------------------------------------------------------------------------------


def test_a_posterior_over_finitely_many_candidates():
    """Log-likelihoods whose local sensitivity is released: two lists of scores that are 2 apart, each exactly."""
    gamma = math.exp(EPSILON)
    one, other = [0.0, 3.0, 1.0], [2.0, 1.0, 1.0]
    made = HighProbabilityBound(
        lambda x: x, lambda _: 2, mechanism=ExponentialMechanism, **{**AMOUNTS, "bound_epsilon": 0.7}
    )
    found = 0.0
    for theta in range(-60, 62):
        bound = made._bound_for(theta + made.margin)
        scale = float(made._mechanism_for(bound).scale)
        distributions = [np.exp(np.array(scores) / scale) for scores in (one, other)]
        p, q = (pmf(theta - 2, made.distribution.scale) * law / law.sum() for law in distributions)
        found += float(np.maximum(0, p - gamma * q).sum())
    assert found <= DELTA
    released = made([0.0, 300.0, 1.0])
    assert released.value.value in {0, 1, 2}
    assert released.interval is None


@pytest.mark.parametrize("mechanism", [Laplace, Geometric, ExponentialMechanism, PermuteAndFlip])
def test_every_run_is_drawn(mechanism):
    answer = 12 if mechanism in {Laplace, Geometric} else [3, 1, 2]
    made = HighProbabilityBound(lambda _: answer, len, mechanism=mechanism, **AMOUNTS)
    value = made([1, 2, 3]).value
    assert isinstance(value, WithBound)
    assert value.bound >= 1


@pytest.mark.parametrize("mechanism", [Gaussian, TopK, int, None, Laplace(epsilon=1, sensitivity=1)])
def test_other_runs_are_refused(mechanism):
    with pytest.raises(UnsupportedGuarantee):
        HighProbabilityBound(sum, largest, mechanism=mechanism, **AMOUNTS)


# --- what leaves ---------------------------------------------------------------------------------------------------


def test_the_interval_is_that_of_the_released_bound():
    made = HighProbabilityBound(sum, largest, **AMOUNTS)
    release = made([3, 4, 5])
    assert release.interval == Laplace(epsilon=0.5, sensitivity=release.value.bound).interval(
        release.value.value
    )
    assert release.error is None


@may_fail(2 * ALPHA, "one distribution fits, one does not")
@pytest.mark.parametrize("upper", [True, False])
def test_the_bound_that_is_released_has_its_distribution(upper):
    made = HighProbabilityBound(float, int, upper=upper, **AMOUNTS)
    middle = 500 + made.margin * (1 if upper else -1)
    samples = np.array([int(made.draw(500).bound) - middle for _ in range(FEW // 4)])
    accepts(samples, lambda k: pmf(k, made.distribution.scale), lambda k: pmf(k - 1, made.distribution.scale))


def test_measures_and_bounds_that_are_no_numbers():
    for measure in (lambda _: math.nan, lambda _: None, lambda _: 1 / 0, lambda _: math.inf, lambda _: "9"):
        assert isinstance(HighProbabilityBound(sum, measure, **AMOUNTS)([1, 2]).value.bound, float)
    for sensitivity in (lambda _: None, lambda _: math.inf, lambda _: math.nan, lambda _: 0, lambda _: -1):
        assert HighProbabilityBound(sum, largest, sensitivity=sensitivity, **AMOUNTS)([1]).refused


def test_fractions_are_rounded_to_the_safe_side():
    up = HighProbabilityBound(sum, lambda _: 2.25, **AMOUNTS)
    down = HighProbabilityBound(sum, lambda _: 2.25, upper=False, **AMOUNTS)
    assert (up._rounded_measure([]), down._rounded_measure([])) == (3, 2)
    bound = HighProbabilityBound(sum, len, sensitivity=lambda _: Fraction(1, 3), **AMOUNTS)._bound_for(4)
    assert Fraction(bound) >= Fraction(1, 3) or Fraction(repr(bound)) >= Fraction(1, 3)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[
            (name, value)
            for name in ("bound_epsilon", "release_epsilon", "delta")
            for value in (0, -1, math.nan, math.inf, True, "1", None)
        ],
        ("delta", 1.0),
        ("upper", 1),
        ("relation", "swap"),
        ("query", 3),
        ("measure", None),
        ("sensitivity", 5),
    ],
)
def test_bad_parameters_are_refused(name, bad):
    with pytest.raises(DiscreetError):
        HighProbabilityBound(**{"query": sum, "measure": largest, **AMOUNTS, name: bad})


def test_it_keeps_the_rules_of_mechanisms():
    check_mechanism(HighProbabilityBound(sum, largest, **AMOUNTS), [1, 2, 3], neighbour=[1, 2])
    design = [[0.6, 0.8], [0.8, -0.6]] * 400
    variance = prediction_variance([1.0, 0.0], bound_epsilon=1, release_epsilon=1, delta=1e-3)
    check_mechanism(variance, design[1:], neighbour=design[:-2] + design[-1:])


# --- predictions ---------------------------------------------------------------------------------------------------


def designs(seed, count, rows, width):
    """Rows of length up to 1.5 and so sometimes too long, without chance: a low-discrepancy sequence."""
    steps = np.sqrt([2.0, 3.0, 5.0, 7.0])[:width]
    for number in range(count):
        places = np.outer(np.arange(1, rows + 1) + 97 * number + seed, steps) % 1.0
        yield 2.2 * places - 1.1


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_exact_eigenvalue_and_variance_agree_with_numpy(width):
    point = [0.5, -1.0, 0.25][:width]
    of = LogVariance(point)
    for design in designs(0, 10, 30, width):
        rows = design / np.maximum(1, np.linalg.norm(design, axis=1))[:, None]
        gram = rows.T @ rows
        least = np.linalg.eigvalsh(gram)[0]
        variance = np.array(point) @ np.linalg.solve(gram, point)
        assert (
            of.least_eigenvalue(design) == of.least_eigenvalue(design.tolist()) == math.ceil(least - 1e-3) - 1
        )
        assert of.value(design) == pytest.approx(math.log(variance), abs=1e-4)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_one_row_moves_them_by_no_more_than_is_claimed(width):
    of = LogVariance([0.5, -1.0, 0.25][:width])
    used = 0.0
    for design in designs(5, 6, 14, width):
        before, least = of.value(design), of.least_eigenvalue(design)
        for place in range(len(design)):
            fewer = np.delete(design, place, axis=0)
            assert abs(of.least_eigenvalue(fewer) - least) <= 1
            bound = log_ratio(least)
            if bound is not None:
                used = max(used, abs(of.value(fewer) - before) / bound)
            back = log_ratio(of.least_eigenvalue(fewer))
            if back is not None:
                used = max(used, abs(of.value(fewer) - before) / back)
    assert 0.1 < used <= 1


def test_the_worst_row_uses_the_bound_up():
    """One direction: λ is the number of unit rows, v = 1/λ, and one row less gives λ/(λ-1)."""
    of = LogVariance([1.0])
    moves = of.value([[1.0]] * 6) - of.value([[1.0]] * 7)
    assert moves == pytest.approx(-math.log(6) + math.log(7)) or moves == pytest.approx(math.log(7 / 6))
    assert abs(moves) <= log_ratio(of.least_eigenvalue([[1.0]] * 7))
    assert of.least_eigenvalue([[1.0]] * 7) == 6


def test_rows_are_scaled_and_cleaned():
    of = LogVariance([1.0, 0.0])
    wild = [[1e300, 1e300], [math.nan, 1.0], [math.inf, 0.0], [1.0], "no row", None, [5.0, 0.0], [0.3, 0.4]]
    gram = of._gram(wild)
    expected = [[0.5 + 1 + 0.09, 0.5 + 0.12], [0.5 + 0.12, 0.5 + 1 + 0.16]]
    assert np.allclose(np.array(gram, float) / 4**20, expected, atol=1e-5)


def of_cells(rows):
    from discreet.mechanisms.prediction import _cells

    return _cells(np.asarray(rows, float))


def test_the_grid_never_lengthens_a_row():
    angles = np.linspace(0, 2 * math.pi, 20_001)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for factor in (1.0, 1 + 1e-15, 3.7, 1e200):
        cells = of_cells(rows * factor)
        assert (cells.astype(object) ** 2).sum(axis=1).max() <= 4**20
        assert np.abs(cells / 2**20 - rows).max() < 3e-6
    wide = np.array([[0.7] * 4, [1 / 3] * 4, [1e-300] * 4, [3.0, 4.0, 0.0, 1e-9]])
    assert (of_cells(wide).astype(object) ** 2).sum(axis=1).max() <= 4**20


def test_a_design_without_an_inverse_is_refused_quietly():
    variance = prediction_variance([1.0, 0.0], bound_epsilon=1, release_epsilon=1, delta=1e-12)
    for design in ([], [[0.0, 0.0]] * 50, [[0.0, 1.0]] * 500):
        assert variance(design).refused


@pytest.mark.parametrize("point", [[], [0.0, 0.0], [math.nan], ["1"], 3.0, [True], [1.0] * 65])
def test_bad_points_are_refused(point):
    with pytest.raises(DiscreetError):
        prediction_variance(point, bound_epsilon=1, release_epsilon=1, delta=1e-6)


def test_replacement_is_refused():
    with pytest.raises(UnsupportedGuarantee):
        prediction_variance([1.0], bound_epsilon=1, release_epsilon=1, delta=1e-6, relation="replace")
