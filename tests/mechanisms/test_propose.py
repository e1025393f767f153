# SPDX-License-Identifier: Apache-2.0
"""Propose-test-release: its exact output distribution on all small data sets, and wrong variants of it that break the guarantee."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet import privacy, testing
from discreet.errors import DiscreetError, UnsupportedGuarantee
from discreet.mechanisms import Laplace, PartitionSelection, ptr
from discreet.mechanisms.conformance import check_mechanism
from discreet.mechanisms.distance import check_distance
from discreet.mechanisms.propose import ProposeTestRelease
from discreet.mechanisms.stability import StabilityTest
from tests.chance import may_fail, risk
from tests.mechanisms.sticks import bags, cdf, neighbours, pmf, stick, to_unsafe
from tests.statistical.constants import ALPHA, FEW
from tests.statistical.fit import accepts

TESTS = ["best", "laplace"]
AMOUNTS = {"test_epsilon": 0.7, "release_epsilon": 0.5, "delta": 0.03}
EPSILON = 1.2
LETTERS = (0, 1, 4, 8)


def sum_of_squares(x):
    return sum(v * v for v in x)


def ones(x):
    return sum(1 for v in x if v == 1)


def inverse(x):
    return Fraction(1, max(1, ones(x)))


def steep(x):
    return inverse(x) if ones(x) > 1 else 1_000


def inverse_distance(x):
    return ones(x) - 2  # from 2 to 3 it moves by 1/6, from 1 to 2 by 1/2


def worst_delta(mechanism, distance, most, relation, chance=None):
    """The greatest H over all ordered pairs of neighbours, from the exact distribution of (refusal or number)."""
    chance = chance or mechanism.test.chance
    scale, grid = mechanism.noise.distribution.scale, mechanism.noise.grid
    seen: dict[tuple, float] = {}
    for one, other in neighbours(LETTERS, most, relation):
        shift = abs(grid.cells(mechanism.query(one)) - grid.cells(mechanism.query(other)))
        key = distance(one), distance(other), shift
        if key not in seen:
            p, q, gamma = chance(key[0]), chance(key[1]), math.exp(EPSILON)
            refused = max(0.0, (1 - p) - gamma * (1 - q))
            seen[key] = refused + stick(p, gamma * q, shift, scale)
    return max(seen.values())


# --- the helpers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, 1, 5, 12])
@pytest.mark.parametrize(("a", "b"), [(0.3, 0.4), (0.9, 0.2), (0.5, 0.5), (0.01, 0.3)])
def test_the_closed_form_of_a_stick(shift, a, b):
    z = np.arange(-400, 400)
    p = np.array([pmf(k, 4.0) for k in z])
    q = np.array([pmf(k - shift, 4.0) for k in z])
    assert stick(a, b, shift, 4.0) == pytest.approx(np.maximum(0, a * p - b * q).sum(), abs=1e-13)
    assert cdf(3, 4.0) == pytest.approx(p[z <= 3].sum(), abs=1e-13)


# --- the test ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-9])
def test_chances_are_private_and_zero_passes_with_delta_at_most(test, epsilon, delta):
    rule = StabilityTest(epsilon=epsilon, delta=delta, test=test)
    chances = [rule.chance(d) for d in range(400)]
    slack = delta if test == "best" else 0.0
    assert delta * math.exp(-epsilon) * (1 - 1e-9) < chances[0] <= delta
    for last, this in itertools.pairwise(chances):
        assert last <= this <= (math.exp(epsilon) * last + slack) * (1 + 1e-11)
        assert 1 - last <= (math.exp(epsilon) * (1 - this) + slack) * (1 + 1e-11) + 1e-13


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_best_passes_as_often_as_the_continuous_threshold_at_least(epsilon, delta):
    """d + Lap(1/ε) > ln(1/2δ)/ε, whose chance at 0 is δ."""
    threshold = math.log(1 / (2 * delta)) / epsilon
    best = StabilityTest(epsilon=epsilon, delta=delta)
    for d in range(math.ceil(3 * threshold)):
        missing = epsilon * (threshold - d)
        continuous = math.exp(-missing) / 2 if missing >= 0 else 1 - math.exp(missing) / 2
        assert best.chance(d) >= continuous * (1 - 1e-11)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 2.0])
@pytest.mark.parametrize("delta", [0.3, 1e-6, 1e-60])
def test_the_laplace_threshold_is_the_least_that_the_exact_tail_allows(epsilon, delta):
    threshold = StabilityTest(epsilon=epsilon, delta=delta, test="laplace").threshold
    with mpmath.workdps(80):
        q = mpmath.exp(-mpmath.mpf(str(epsilon)))
        assert q**threshold / (1 + q) <= mpmath.mpf(str(delta))
        assert threshold == 1 or q ** (threshold - 1) / (1 + q) > mpmath.mpf(str(delta))
    assert threshold <= math.log(1 / (2 * delta)) / epsilon + 1 + math.log(2 / (1 + float(q))) / epsilon


def test_the_best_test_is_partition_selection_with_one_user_more():
    keys, test = PartitionSelection(epsilon=1, delta=1e-5), StabilityTest(epsilon=1, delta=1e-5)
    assert [test.chance(d) for d in range(40)] == [keys.chance(d + 1) for d in range(40)]


@may_fail(2 * ALPHA, "one distribution fits, one does not")
@pytest.mark.parametrize("test", TESTS)
def test_passing_has_its_chance(test):
    rule = StabilityTest(epsilon=0.5, delta=0.01, test=test)
    distance = rule.distance_needed(0.5)
    passed = np.array([rule.passes(distance) for _ in range(FEW)], int)
    right, wrong = (np.array([1 - rule.chance(d), rule.chance(d)]) for d in (distance, distance + 1))
    accepts(passed, lambda k: right[k], lambda k: wrong[k])


@pytest.mark.parametrize("test", TESTS)
def test_what_a_distance_counts_as(test):
    rule = StabilityTest(epsilon=1, delta=1e-6, test=test)
    zero = rule.chance(0)
    for nothing in (math.nan, None, "7", True, -3, -math.inf, 0.99, [5], np.nan):
        assert rule.chance(nothing) == zero
    assert rule.chance(14.9) == rule.chance(np.int64(14)) == rule.chance(Fraction(29, 2)) == rule.chance(14)
    assert rule.chance(math.inf) == rule.chance(10**40) == 1
    assert rule.passes(math.inf)
    assert rule.passes(10**40)


def test_distance_needed_is_the_least():
    for rule in (StabilityTest(epsilon=0.3, delta=1e-5, test=test) for test in TESTS):
        for confidence in (1e-9, 0.5, 0.999):
            needed = rule.distance_needed(confidence)
            assert rule.chance(needed) >= confidence
            assert needed == 0 or rule.chance(needed - 1) < confidence


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[(n, v) for n in ("epsilon", "delta") for v in (0, -1, math.nan, math.inf, True, "1", None)],
        ("delta", 1),
        ("epsilon", 1e-9),  # a list of chances would be too long; "laplace" does it
        ("test", "none"),
    ],
)
def test_bad_parameters_of_the_test_are_refused(name, bad):
    with pytest.raises(DiscreetError):
        StabilityTest(**{"epsilon": 1.0, "delta": 1e-6, name: bad})
    assert StabilityTest(epsilon=1e-9, delta=1e-6, test="laplace").threshold > 10**9


# --- the exact distribution on all small data sets --------------------------------------------------------------------------


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_guarantee_holds_on_all_small_data_sets_and_is_used_up(test, relation):
    made = ProposeTestRelease(
        steep, inverse_distance, bound=Fraction(1, 6), test=test, relation=relation, **AMOUNTS
    )
    assert made.guarantee == privacy.approximate(EPSILON, 0.03, relation=relation)
    found = worst_delta(made, inverse_distance, 5, relation)
    assert 0.4 * 0.03 < found <= 0.03


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("bound", [1, 3])
def test_the_guarantee_holds_for_medians(relation, bound):
    median = ptr.median(bounds=(0, 8), step=1)
    made = median.release(bound=bound, relation=relation, **AMOUNTS)
    assert worst_delta(made, lambda x: median.distance(x, bound), 5, relation) <= 0.03 * (1 + 1e-9)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_guarantee_holds_for_spreads(relation):
    spread = ptr.log_spread(bounds=(0, 8), step=1)
    made = spread.release(bound=0.7, relation=relation, **AMOUNTS)
    assert worst_delta(made, lambda x: spread.distance(x, 0.7), 5, relation) <= 0.03 * (1 + 1e-9)


def test_an_infinite_distance_always_answers():
    made = ProposeTestRelease(len, lambda _: math.inf, bound=1, **AMOUNTS)
    assert not any(made([1, 2]).refused for _ in range(200))


# --- wrong variants ------------------------------------------------------------------------------------------------


def proposed(**words):
    return ProposeTestRelease(steep, inverse_distance, bound=Fraction(1, 6), **{**AMOUNTS, **words})


def test_a_threshold_without_delta_breaks_it():
    """The notes: pass if the noisy distance is above log(1/ε)."""
    scale, threshold = 1 / 0.7, math.log(1 / 0.7)
    found = worst_delta(
        proposed(),
        inverse_distance,
        4,
        "add-remove",
        lambda d: 1 - cdf(math.floor(threshold - max(0, d)), scale),
    )
    assert found > 0.25 > 8 * 0.03


def test_a_distance_that_is_one_too_large_breaks_it():
    found = worst_delta(proposed(), lambda x: inverse_distance(x) + 1, 5, "add-remove")
    assert found > 1.5 * 0.03
    with pytest.raises(UnsupportedGuarantee) as caught:
        check_distance(inverse, lambda x: ones(x) - 1, domain=(0, 1), bound=Fraction(1, 6))
    assert caught.value.code == "DP205"


def test_a_test_without_noise_breaks_it():
    assert worst_delta(
        proposed(), inverse_distance, 5, "add-remove", lambda d: float(d > 0)
    ) == pytest.approx(1.0)


# --- the checker ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_checker_accepts_the_exact_distance_and_every_smaller_one(relation):
    bound = Fraction(1, 6)
    exact = to_unsafe((0, 1), 8, relation, lambda a, b: abs(inverse(a) - inverse(b)) > bound)
    checked = check_distance(
        inverse, lambda x: exact[tuple(x)], domain=(0, 1), bound=bound, most=8, relation=relation
    )
    assert checked == len(neighbours((0, 1), 8, relation)) // 2
    check_distance(inverse, inverse_distance, domain=(0, 1), bound=bound, most=8, relation=relation)
    check_distance(inverse, lambda _: 0, domain=(0, 1), bound=bound, most=8, relation=relation)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: ones(x) - 1,  # one too far
        lambda x: 2 * (ones(x) - 2),  # jumps by two
        lambda x: ones(x) - 2 if ones(x) != 1 else 5,  # one bad data set is overlooked
        lambda _: math.inf,  # all of them are
        lambda x: math.inf if ones(x) > 3 else ones(x) - 2,  # infinite for some
        len,
    ],
)
def test_the_checker_finds_wrong_distances(relation, wrong):
    with pytest.raises(UnsupportedGuarantee) as caught:
        check_distance(inverse, wrong, domain=(0, 1), bound=Fraction(1, 6), most=6, relation=relation)
    assert caught.value.code == "DP205"
    assert "neighbour" in str(caught.value)


def test_the_checker_reads_distances_and_answers_as_the_mechanism_does():
    """A query that raises counts as 0, and so does a distance."""
    with pytest.raises(UnsupportedGuarantee):
        check_distance(lambda x: 5 // (2 - len(x)), lambda _: 1, domain="ab", bound=3)
    assert check_distance(lambda x: 5 // (2 - len(x)), lambda _: 1 // 0, domain="ab", bound=3) > 0


def test_the_checker_refuses_what_it_cannot_look_at():
    for words in ({"most": 0}, {"most": True}, {"bound": -1}, {"relation": "swap"}, {"domain": range(10**4)}):
        with pytest.raises(DiscreetError):
            check_distance(len, len, **{"domain": "ab", "bound": 1, **words})


# --- what is drawn -------------------------------------------------------------------------------------------------


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_what_is_released_has_its_distribution():
    made = ProposeTestRelease(sum_of_squares, ones, bound=1, test_epsilon=1, release_epsilon=1, delta=0.05)
    data = [1, 1, 1, 2]
    cells = np.array(
        [isinstance(made.draw(data), float) for _ in range(FEW // 4)],
        int,
    )
    chance = made.test.chance(3)
    accepts(
        cells,
        lambda k: np.where(np.asarray(k) == 1, chance, 1 - chance),
        lambda k: np.where(np.asarray(k) == 1, chance * 0.8, 1 - chance * 0.8),
    )
    drawn = (made.draw(data) for _ in itertools.count())
    values = list(itertools.islice((value for value in drawn if isinstance(value, float)), 301))
    # 151 of 301 lie beyond one scale on the same side, each with chance exp(-1)/2 < 0.2: 5e-31
    risk(2 * stats.binom.sf(150, 301, 0.2))
    assert abs(float(np.median(values)) - 7) < 1


def test_the_error_and_the_interval_are_those_of_the_noise():
    made, noise = proposed(delta=1e-12), Laplace(epsilon=0.5, sensitivity=Fraction(1, 6))
    assert made.error(0.9) == noise.error(0.9)
    assert made.interval(1.0, 0.9) == noise.interval(1.0, 0.9)
    release = made([1] * 200)
    assert release.interval is not None
    refusal = made([])
    assert refusal.refused
    assert (refusal.error, refusal.interval) == (None, None)
    assert refusal.guarantee == release.guarantee


def test_nothing_of_the_data_leaves_through_errors():
    for query in (lambda _: 1 / 0, lambda _: None, lambda _: math.nan, lambda _: "seven", lambda _: True):
        for distance in (lambda _: math.inf, lambda _: {}[0]):
            made = ProposeTestRelease(query, distance, bound=1, **AMOUNTS)
            value = made([1, 2, 3]).value
            assert not value or isinstance(value, float)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[
            (name, value)
            for name in ("bound", "test_epsilon", "release_epsilon", "delta")
            for value in (0, -1, math.nan, math.inf, True, "1", None)
        ],
        ("delta", 1.0),
        ("relation", "swap"),
        ("unit", ""),
        ("test", "noiseless"),
        ("query", 3),
        ("distance", None),
    ],
)
def test_bad_parameters_are_refused(name, bad):
    words = {"query": inverse, "distance": ones, "bound": 1, **AMOUNTS, name: bad}
    with pytest.raises(DiscreetError):
        ProposeTestRelease(**words)


@pytest.mark.parametrize("test", TESTS)
def test_it_keeps_the_rules_of_mechanisms(test):
    made = ProposeTestRelease(inverse, inverse_distance, bound=0.2, test=test, **AMOUNTS)
    check_mechanism(made, [1] * 90, neighbour=[1] * 89 + [0])
    with testing.seeded(1):
        assert made([1] * 50).private is False


def test_the_bags_are_all_bags():
    assert len(bags("abc", 3)) == 1 + 3 + 6 + 10
    assert len(neighbours("ab", 2, "add-remove")) == 2 * (2 + 4)
