# SPDX-License-Identifier: Apache-2.0
"""The second half of the lecture on data-dependent privacy (stability, propose-test-release), row by row.

A test is named by what it claims, and its docstring begins with its row in docs/notes.md. A statement
that is wrong as written is refuted by its counterexample, and the right one is checked beside it.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet import privacy
from discreet.mechanisms import ExponentialMechanism, StableArgmax, StableTopK, StableVote, ptr
from discreet.mechanisms.guided import HighProbabilityBound
from discreet.mechanisms.propose import ProposeTestRelease
from discreet.mechanisms.stability import StabilityTest
from tests.mechanisms.sticks import cdf, pmf, stick

EPSILON, DELTA = 1.0, 1e-6


def laplace_above(threshold, scale=1.0):
    """P(Lap(scale) > threshold), continuous."""
    x = threshold / scale
    return math.exp(-x) / 2 if x >= 0 else 1 - math.exp(x) / 2


def graphs(nodes):
    edges = list(itertools.combinations(range(nodes), 2))
    for present in itertools.product([0, 1], repeat=len(edges)):
        table = np.zeros((nodes, nodes), int)
        for (i, j), here in zip(edges, present, strict=True):
            table[i, j] = table[j, i] = here
        yield table


def triangles(graph):
    return int(np.trace(graph @ graph @ graph)) // 6


def flipped(graph, i, j):
    other = graph.copy()
    other[i, j] = other[j, i] = 1 - graph[i, j]
    return other


def common(graph):
    """The most common neighbours of any two nodes."""
    paths = graph @ graph
    np.fill_diagonal(paths, 0)
    return int(paths.max())


def test_votes_models_and_top_k_are_argmaxes() -> None:
    """Row 3.26: The notes' three examples: a vote, the best model, and the k most popular, which is a
    set and not a list."""
    assert StableVote("ab", epsilon=1, delta=DELTA)(["a"] * 60).value == "a"
    assert StableArgmax(epsilon=1, delta=DELTA, sensitivity=1)([10, 90, 20]).value == 1
    popular, k = [3_100, 250, 1_900, 1_000], 2
    best = max(itertools.combinations(range(4), k), key=lambda chosen: sum(popular[i] for i in chosen))
    assert StableTopK(epsilon=5, delta=DELTA, sensitivity=1, count=k)(popular).value == list(best)


def test_the_distance_is_one_less_than_the_changes_that_it_takes() -> None:
    """Row 3.27: With the distance to a data set of another value, without less one, δ is 1.36e-6
    instead of 5.0e-7 at ε = 1."""
    right = laplace_above(math.log(1 / DELTA))
    wrong = laplace_above(math.log(1 / DELTA) - 1)
    assert right == pytest.approx(5.0e-7, rel=1e-9)
    assert wrong == pytest.approx(1.36e-6, rel=1e-2)
    assert wrong > DELTA
    vote = StableVote("ab", epsilon=1, delta=DELTA)
    assert vote.chance(gap=1) <= DELTA < vote.chance(gap=2)


def test_a_threshold_of_half_of_delta_suffices() -> None:
    """Row 3.28: P(Lap > ln(1/δ)/ε) = δ/2 and P(Lap > ln(1/2δ)/ε) = δ; on whole numbers the exact tail
    is used."""
    for epsilon in (0.1, 1.0, 3.0):
        assert laplace_above(math.log(1 / DELTA) / epsilon, 1 / epsilon) == pytest.approx(DELTA / 2)
        assert laplace_above(math.log(1 / (2 * DELTA)) / epsilon, 1 / epsilon) == pytest.approx(DELTA)
        test = StabilityTest(epsilon=epsilon, delta=DELTA, test="laplace")
        assert DELTA * math.exp(-epsilon) < test.chance(0) <= DELTA
        assert 1 - cdf(test.threshold - 1, 1 / epsilon) == pytest.approx(test.chance(0), rel=1e-6)


def test_the_two_cases_are_alternatives() -> None:
    """Row 3.29: Either the values differ and both distances are 0, or they are the same and the test
    alone tells: (ε, δ), once."""
    vote = StableVote("ab", epsilon=0.8, delta=0.02, test="laplace")
    worst = 0.0
    for a, b in itertools.product(range(12), repeat=2):
        for c, d in ((a + 1, b), (a, b + 1)):
            (one, near), (other, far) = (vote._winners(counts) for counts in ([a, b], [c, d]))
            p, q = vote.test.chance(near), vote.test.chance(far)
            for x, y in ((p, q), (q, p)):
                said = max(0.0, x - math.exp(0.8) * y) if one == other else x
                worst = max(worst, said + max(0.0, (1 - x) - math.exp(0.8) * (1 - y)))
    assert 0.02 * math.exp(-0.8) < worst <= 0.02


def test_perfect_where_the_margin_is_large_and_useless_where_it_is_small() -> None:
    """Row 3.30: P(refusal) = e^(-ε(d-T))/2 beyond the threshold, and only e^(εd)δ is answered below
    it."""
    test = StabilityTest(epsilon=EPSILON, delta=DELTA, test="laplace")
    q = math.exp(-EPSILON)
    for d in range(test.threshold, test.threshold + 15):
        assert 1 - test.chance(d) == pytest.approx(q ** (d - test.threshold + 1) / (1 + q), rel=1e-6)
    for d in range(test.threshold):
        assert test.chance(d) <= math.exp(EPSILON * d) * DELTA
    best = StabilityTest(epsilon=EPSILON, delta=DELTA)
    assert best.chance(2 * test.threshold) == 1


def test_homework_stability_against_the_exponential_mechanism() -> None:
    """Row 3.31: Stability needs a margin of about ln(1/δ)/ε, whatever the number of candidates; the
    exponential mechanism ln|R|/ε."""

    def exponential_hits(margin, candidates):
        weight = (candidates - 1) * math.exp(-margin * EPSILON)  # counts are monotone: weight e^(εu)
        return 1 / (1 + weight)

    stable = StableArgmax(epsilon=EPSILON, delta=DELTA, sensitivity=1, monotone=True)
    assert stable.chance(gap=10) < 0.05
    assert exponential_hits(10, 10) > 0.99
    assert stable.chance(gap=30) == 1
    assert exponential_hits(30, 10**15) < 0.99
    margin = ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True).error(0.95, candidates=10**15)
    assert margin > 30 > stable.gap_needed(confidence=0.95)


def test_no_data_set_above_the_bound_means_an_infinite_distance() -> None:
    """Row 3.32: Then the test always passes, and costs nothing but its ε."""
    count = ProposeTestRelease(
        len, lambda _: math.inf, bound=1, test_epsilon=0.5, release_epsilon=0.5, delta=DELTA
    )
    assert not any(count([1, 2, 3]).refused for _ in range(100))
    assert ptr.reciprocal.distance(7, bound=0.5) == math.inf


def test_a_threshold_of_log_one_over_epsilon_is_wrong() -> None:
    """Row 3.33: As written the threshold is 0 at ε = 1, and data on which the bound does not hold are
    answered half the time."""
    assert laplace_above(math.log(1 / EPSILON)) == 0.5
    assert laplace_above(math.log(1 / DELTA)) == pytest.approx(DELTA / 2)
    assert StabilityTest(epsilon=EPSILON, delta=DELTA).chance(0) <= DELTA


def bit_and_value(p, q, shift, scale, gamma):
    return max(0.0, (1 - p) - gamma * (1 - q)) + stick(p, gamma * q, shift, scale)


def test_two_epsilon_is_tight_and_delta_is_paid_once() -> None:
    """Row 3.34: (ε₁ + ε₂, δ/2) with ln(1/δ)/ε₁. Exact supremum over distances at ε₁ = ε₂ = 1, with
    ln(1/2δ)/ε₁: δ(2.0) is 0, δ(1.9) is 0.0216."""
    threshold = math.log(1 / (2 * DELTA))

    def continuous(epsilon):
        """sup over whole d of the hockey stick of (passed, q + Lap(1)), answers 1 apart, distances d and d + 1."""
        found, gamma = 0.0, mpmath.exp(epsilon)
        for d in range(60):
            for near, far in ((d, d + 1), (d + 1, d)):
                p, q = (mpmath.mpf(laplace_above(threshold - at)) for at in (near, far))
                refused = max(mpmath.mpf(0), (1 - p) - gamma * (1 - q))
                found = max(found, refused + _real_stick(p, gamma * q))
        return float(found)

    assert continuous(2.0) == pytest.approx(0, abs=1e-12)
    assert continuous(1.9) == pytest.approx(0.0216, abs=1e-4)
    made = ProposeTestRelease(
        sum, lambda _: 5, bound=1, test_epsilon=1, release_epsilon=1, delta=DELTA, test="laplace"
    )
    assert made.guarantee == privacy.approximate(2.0, DELTA)


def _real_stick(a, b):
    """∫(a·l(z) - b·l(z - 1))₊ for the Laplace density l of scale 1."""
    if a * mpmath.e <= b:
        return mpmath.mpf(0)
    if a >= b * mpmath.e:
        return a - b
    z = mpmath.mpf(1) / 2 + mpmath.log(a / b) / 2  # where the two densities meet, within [0, 1]
    return a * (1 - mpmath.exp(-z) / 2) - b * mpmath.exp(z - 1) / 2


def test_one_side_above_the_bound_is_no_bad_pair() -> None:
    """Row 3.35: If LS(x) > β but LS(x') <= β, then |q - q'| <= LS(x') <= β. Every small data set of a
    median."""
    median, bound = ptr.median(bounds=(0, 8), step=1), 2
    sets = [list(s) for n in range(4) for s in itertools.combinations_with_replacement((0, 1, 3, 8), n)]

    def sensitivity(x):
        more = [sorted([*x, v]) for v in (0, 1, 3, 8)]
        less = [x[:i] + x[i + 1 :] for i in range(len(x))]
        return max(abs(median.value(x) - median.value(y)) for y in more + less)

    mixed = 0
    for x in sets:
        for v in (0, 1, 3, 8):
            y = sorted([*x, v])
            if (sensitivity(x) > bound) != (sensitivity(y) > bound):
                mixed += 1
                assert abs(median.value(x) - median.value(y)) <= bound
    assert mixed > 3


def test_otherwise_a_private_test_is_followed_by_a_private_answer() -> None:
    """Row 3.36: ε₁ + ε₂ for every pair of distances that differ by 1 and answers that are β apart;
    never more."""
    made = ptr.reciprocal.release(
        bound=0.1, test_epsilon=0.7, release_epsilon=0.5, delta=0.01, test="laplace"
    )
    scale, shift = made.noise.distribution.scale, made.noise.grid.sensitivity(Fraction(1, 10))
    pairs = [(d, d + 1) for d in range(40)]
    worst = max(
        bit_and_value(made.test.chance(a), made.test.chance(b), shift, scale, math.exp(1.2))
        for one in pairs
        for a, b in (one, one[::-1])
    )
    assert worst <= 1e-12
    assert (
        max(
            bit_and_value(made.test.chance(a), made.test.chance(b), shift, scale, math.exp(1.1))
            for one in pairs
            for a, b in (one, one[::-1])
        )
        > 1e-3
    )


def test_what_to_propose_and_what_is_no_number() -> None:
    """Row 3.37: The two open ends of the notes: a private search over bounds, and stable values of
    any kind."""
    inverse = ptr.reciprocal.search(
        bounds=[10.0**-k for k in range(9)], search_epsilon=0.5, release_epsilon=0.5, delta=DELTA
    )
    assert inverse.guarantee == privacy.approximate(1.0, DELTA)
    assert inverse(10**5).value.bound <= 1e-6
    assert ptr.mode(epsilon=1, delta=DELTA)(["flu"] * 50).value == "flu"


def test_one_edge_moves_the_triangles_by_n_minus_two_at_most() -> None:
    """Row 3.38: Exhaustive for five nodes; reached by the complete graph."""
    worst = max(
        abs(triangles(graph) - triangles(flipped(graph, i, j)))
        for graph in graphs(5)
        for i, j in itertools.combinations(range(5), 2)
    )
    assert worst == 3


def test_the_local_sensitivity_is_the_most_common_neighbours_and_not_the_degree() -> None:
    """Row 3.39: All 1024 graphs of five nodes: the local sensitivity is max |N(i) ∩ N(j)|; the
    maximal degree is it in 56, never less."""
    agree = 0
    for graph in graphs(5):
        local = max(
            abs(triangles(graph) - triangles(flipped(graph, i, j)))
            for i, j in itertools.combinations(range(5), 2)
        )
        degree = int(graph.sum(axis=0).max())
        assert local == common(graph) <= degree
        agree += local == degree
    assert agree == 56


def test_the_local_sensitivity_of_triangles_can_be_released() -> None:
    """Row 3.40: It moves by 1 at most; with margin ln(1/2δ)/ε₁ the bound is too small with
    probability δ; ours counts exactly."""
    for graph in graphs(5):
        for i, j in itertools.combinations(range(5), 2):
            assert abs(common(graph) - common(flipped(graph, i, j))) <= 1
    assert laplace_above(math.log(1 / (2 * 1e-3))) == pytest.approx(1e-3)
    made = HighProbabilityBound(triangles, common, bound_epsilon=1, release_epsilon=1, delta=1e-3)
    assert cdf(-made.margin - 1, made.distribution.scale) <= 1e-3 < cdf(-made.margin, made.distribution.scale)


def test_a_private_bound_and_noise_for_it() -> None:
    """Row 3.41: (Δ~, f + Lap(Δ~/ε₂)) is (ε₁ + ε₂, δ)-private: the exact distribution on graphs of four nodes,
    every edge flipped."""
    made = HighProbabilityBound(triangles, common, bound_epsilon=0.7, release_epsilon=0.5, delta=0.02)
    assert made.guarantee == privacy.approximate(1.2, 0.02)
    gamma, seen = math.exp(1.2), {}
    for graph in graphs(4):
        for i, j in itertools.combinations(range(4), 2):
            other = flipped(graph, i, j)
            key = common(graph), common(other), triangles(graph), triangles(other)
            if key not in seen:
                seen[key] = _joint(made, key, gamma)
    assert max(seen.values()) <= 0.02


def _joint(made, key, gamma):
    m, n, a, b = key
    total = 0.0
    for theta in range(-50, 55):
        run = made._mechanism_for(made._bound_for(theta + made.margin))
        p, q = (float(pmf(theta - at, made.distribution.scale)) for at in (m, n))
        total += stick(p, gamma * q, run.grid.cells(a) - run.grid.cells(b), run.distribution.scale)
    return total


def test_per_instance_privacy_is_a_secret() -> None:
    """Row 3.42: The notes point to it: what one record loses on these data. It is data, so it is
    shown to nobody by accident."""
    from discreet.mechanisms import Laplace

    loss = ptr.per_instance_loss(Laplace(epsilon=1, sensitivity=100), 1_250, 1_225)
    assert repr(loss) == "<secret: what one record loses>"
    assert loss.reveal(because="made-up numbers") == pytest.approx(0.25)
