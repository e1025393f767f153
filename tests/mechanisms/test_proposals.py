# SPDX-License-Identifier: Apache-2.0
"""Recipes: their distances against every small data set, and the search over bounds by its exact distribution."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.errors import DiscreetError
from discreet.mechanisms import ptr
from discreet.mechanisms.conformance import check_mechanism
from discreet.mechanisms.distance import check_distance
from discreet.mechanisms.proposals import ProposedLogSpread, ProposedOrderStatistic, ProposedReciprocal
from discreet.mechanisms.propose import ProposeSearchRelease, leak
from tests.mechanisms.sticks import bags, cdf, neighbours, pmf, stick, to_unsafe

RELATIONS = ["add-remove", "replace"]
LETTERS = (0, 1, 3, 7, 8)
BOUNDS = (0, 8)
AMOUNTS = {"test_epsilon": 0.5, "release_epsilon": 0.5, "delta": 1e-3}
SEARCH = {"search_epsilon": 0.7, "release_epsilon": 0.5, "delta": 0.03}


def differ(proposal, bound):
    return lambda x, y: abs(Fraction(proposal.value(x)) - Fraction(proposal.value(y))) > bound


# --- reciprocals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [0.5, 0.4, 1 / 6, Fraction(1, 6), 0.1, 0.01, 0.0012, 1 / 56])
def test_the_distance_of_a_reciprocal_is_the_exact_one_of_a_line_of_counts(bound):
    values = [Fraction(1, max(1, k)) for k in range(200)]
    bad = {j for k in range(1, 200) if values[k - 1] - values[k] > Fraction(bound) for j in (k - 1, k)}
    for k in range(1, 150):  # at 0 and 1 the reciprocal is 1: the distance of 0 is 0 as well, which is safe
        exact = min((abs(k - j) for j in bad), default=math.inf)
        assert ProposedReciprocal().distance(k, bound) == exact
    for k in range(199):
        near, far = (ProposedReciprocal().distance(j, bound) for j in (k, k + 1))
        assert near == far or abs(near - far) <= 1


def test_the_fixture_of_the_reciprocal():
    """1/k(k-1) at 100 and at 200: 1.0101e-4 and 2.5126e-5."""
    assert ProposedReciprocal().distance(100, 1.0102e-4) == 1
    assert ProposedReciprocal().distance(100, 1.0100e-4) == 0
    assert ProposedReciprocal().distance(200, 1.0102e-4) == 101


def test_a_reciprocal_of_no_number_is_refused_quietly():
    made = ProposedReciprocal().release(bound=0.1, **AMOUNTS)
    for bad in (math.nan, None, "many", math.inf):
        assert made(bad).value is not None


# --- order statistics ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0, 0.25, 0.5, 0.75, 1])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bound", [0, 1, 2, 4])
def test_the_distance_of_an_order_statistic_is_safe(q, relation, bound):
    which = ProposedOrderStatistic(q, bounds=BOUNDS, step=1)
    checked = check_distance(
        which.value,
        lambda x: which.distance(x, bound),
        domain=LETTERS,
        bound=bound,
        most=5,
        relation=relation,
    )
    assert checked > 500


@pytest.mark.parametrize("q", [0.25, 0.5, 1])
@pytest.mark.parametrize("bound", [1, 4])
def test_the_distance_is_exact_where_records_are_replaced(q, bound):
    """On all bags of five records; the bounds must be letters, since changed records go there."""
    which = ProposedOrderStatistic(q, bounds=BOUNDS, step=1)
    exact = to_unsafe(LETTERS, 5, "replace", differ(which, bound))
    for bag in bags(LETTERS, 5):
        if len(bag) == 5:
            assert which.distance(bag, bound) == exact[tuple(bag)]


def test_the_distance_is_not_far_below_the_exact_one_where_records_are_added():
    which = ProposedOrderStatistic(0.5, bounds=BOUNDS, step=1)
    exact = to_unsafe(LETTERS, 7, "add-remove", differ(which, 2))
    pairs = [(which.distance(bag, 2), exact[tuple(bag)]) for bag in bags(LETTERS, 4)]
    assert all(found <= true for found, true in pairs)
    assert any(found > 0 for found, _ in pairs)


def test_the_value_is_the_order_statistic():
    assert ptr.median(bounds=(0, 100), step=1).value([5, 3, 9]) == 5
    assert ptr.median(bounds=(0, 100), step=1).value([5, 3, 9, 11]) == 5  # the lower one
    assert ProposedOrderStatistic(0.9, bounds=(0, 100), step=1).value(list(range(1, 11))) == 9
    assert ptr.median(bounds=(0, 100), step=1).value([]) == 0
    assert ptr.median(bounds=(0, 100), step=1).value([math.nan, None, "x"]) == 50
    assert ptr.median(bounds=(0, 100), step=1).value([1e9, math.inf, -math.inf]) == 100


def test_a_bound_as_wide_as_the_bounds_is_always_safe():
    which = ProposedOrderStatistic(0.5, bounds=BOUNDS, step=1)
    assert which.distance([], 8) == which.distance([0, 8, 8], 8) == math.inf
    assert which.distance([], 7.9) == 0
    assert which.distance([1, 2], 1e90) == math.inf


def test_a_large_median_is_fast_and_right():
    """The least window around the middle of 0, 1, …, n-1 that spans more than 10.5 holds 12 records."""
    which = ProposedOrderStatistic(0.5, bounds=(0, 2**20), step=1)
    assert which.distance(np.arange(1_000_001.0), 10.5) == 10


def test_a_window_without_the_bounds_would_be_wrong():
    """The classic slip: records beyond the ends are ignored, so that few records look very stable."""
    which = ProposedOrderStatistic(0.5, bounds=BOUNDS, step=1)

    def forgetful(x):
        inner = [b - a for a in range(len(x)) for b in range(a + 1, len(x)) if x[b] - x[a] > 2]
        return min(inner, default=len(x) + 1) - 1

    with pytest.raises(DiscreetError):
        check_distance(which.value, forgetful, domain=LETTERS, bound=2, most=5)


# --- spreads -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bound", [0.3, 0.7, 1.2, 5.0])
def test_the_distance_of_a_spread_is_safe(relation, bound):
    spread = ProposedLogSpread(bounds=BOUNDS, step=1)
    check_distance(
        spread.value,
        lambda x: spread.distance(x, bound),
        domain=LETTERS,
        bound=bound,
        most=6,
        relation=relation,
    )
    assert spread.distance([0, 8], 5.0) == math.inf  # log 8 < 5
    assert spread.distance([], 2.0) == 0


def test_a_spread_of_one_rank_less_would_be_wrong():
    spread = ProposedLogSpread(bounds=BOUNDS, step=1)
    with pytest.raises(DiscreetError):
        check_distance(spread.value, lambda x: spread.distance(x, 0.7) + 1, domain=LETTERS, bound=0.7, most=5)


def test_a_wide_sample_of_unknown_scale_is_answered():
    pay = [1_000 + 7 * k for k in range(2_000)]
    made = ProposedLogSpread(bounds=(0, 1e6)).release(bound=1, **{**AMOUNTS, "delta": 1e-12})
    release = made(pay)
    assert not release.refused
    low, high = release.interval
    assert low < high
    assert abs(release.value - math.log(7_000)) < 60  # noise of scale 2
    assert made([5, 5, 5]).refused


def test_bad_proposals_are_refused():
    for make in (
        lambda: ProposedLogSpread(bounds=(0, 1), low=0.75, high=0.25),
        lambda: ProposedLogSpread(bounds=(1, 0)),
        lambda: ProposedOrderStatistic(1.5, bounds=(0, 1)),
        lambda: ProposedOrderStatistic(0.5, bounds=(0, math.nan)),
        lambda: ProposedOrderStatistic(0.5, bounds=(0, 1)).release(bound=0, **AMOUNTS),
        lambda: ProposedOrderStatistic(0.5, bounds=(0, 1)).search(bounds=[], **SEARCH),
    ):
        with pytest.raises(DiscreetError):
            make()


# --- which bound? --------------------------------------------------------------------------------------------------


def distribution_of_search(made, distances):
    """P(refused), and P(stopped at bound i) for each i, summed over the noise of the line."""
    line, question, grid = made.search.line_noise.scale, made.search.question_noise.scale, made.search.grid
    reach = round(45 * line)
    r = np.arange(-reach, reach + 1)
    weight = pmf(r, line)
    stops, below = [], np.ones(r.size)
    for distance in distances:
        least = made.search.line + r - grid.cells(min(distance, 10**9))
        above = 1 - cdf(least - 1, question)
        stops.append(float((weight * below * above).sum()))
        below = below * (1 - above)
    return [float((weight * below).sum()), *stops]


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_search_keeps_its_guarantee_on_all_small_data_sets(relation):
    median = ptr.median(bounds=BOUNDS, step=1)
    made = median.search(bounds=[1, 3, 7], relation=relation, **SEARCH)
    assert made.guarantee == privacy.approximate(1.2, 0.03, relation=relation)
    gamma, distributions, worst = math.exp(1.2), {}, 0.0
    for one, other in neighbours((0, 1, 7, 8), 4, relation):
        both = []
        for bag in (one, other):
            key = tuple(max(0, median.distance(bag, bound)) for bound in made.bounds)
            if key not in distributions:
                distributions[key] = distribution_of_search(made, key)
            both.append(distributions[key])
        found = max(0.0, both[0][0] - gamma * both[1][0])
        for i, bound in enumerate(made.bounds, start=1):
            noise = made._noises[bound]
            shift = noise.grid.cells(median.value(one)) - noise.grid.cells(median.value(other))
            found += stick(both[0][i], gamma * both[1][i], shift, noise.distribution.scale)
        worst = max(worst, found)
    assert worst <= 0.03
    assert worst > 0.002


@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_leak_is_the_exact_probability_and_the_threshold_the_least(count):
    made = ProposeSearchRelease(len, lambda _, __: 0, bounds=range(1, count + 1), **SEARCH)
    refused, *_ = distribution_of_search(made, [0] * count)
    cells = made.search.line
    assert 1 - refused <= leak(made.search, count, cells) <= 0.03
    assert leak(made.search, count, cells) == pytest.approx(1 - refused, rel=1e-6)
    assert leak(made.search, count, cells - 1) > 0.03


def test_more_bounds_cost_only_a_higher_threshold():
    few, many = (
        ProposeSearchRelease(len, lambda _, __: 0, bounds=[2.0**k for k in range(count)], **SEARCH)
        for count in (1, 64)
    )
    assert few.guarantee == many.guarantee
    assert few.threshold < many.threshold < few.threshold + 4.5 * math.log(64) / 0.7


def test_the_search_takes_the_least_bound_that_is_safe():
    made = ProposedReciprocal().search(bounds=[1e-9, 1e-6, 1e-3, 1], **{**SEARCH, "delta": 1e-12})
    for _ in range(20):
        release = made(10**4)
        assert release.value.bound == 1e-6
        low, high = release.interval
        assert low < release.value.value < high
    assert made(10**6).value.bound == 1e-9
    small = made(3).value
    assert small.bound == 1  # no distance is more than 3 but that of the last bound, which is infinite


def test_a_search_may_refuse():
    made = ProposedReciprocal().search(bounds=[1e-9, 1e-6], **{**SEARCH, "delta": 1e-12})
    assert made(3).refused
    assert made(3).guarantee == made.guarantee


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *[
            (name, value)
            for name in ("search_epsilon", "release_epsilon", "delta")
            for value in (0, -1, math.nan, True, "1", None)
        ],
        *[("bounds", value) for value in ([], 3, [0], [-1], [math.nan], [True], ["1"], range(1, 20_000))],
        ("relation", "swap"),
        ("query", 1),
        ("distance", 1),
    ],
)
def test_bad_parameters_of_a_search_are_refused(name, bad):
    words = {"query": len, "distance": lambda _, __: 0, "bounds": [1, 2], **SEARCH, name: bad}
    with pytest.raises(DiscreetError):
        ProposeSearchRelease(**words)


def test_proposals_pass_the_suite_of_mechanisms():
    many = list(range(400))
    check_mechanism(
        ptr.median(bounds=(0, 400)).release(bound=200, **AMOUNTS), [*many[:-1], 0], neighbour=many
    )
    check_mechanism(
        ptr.log_spread(bounds=(0, 400)).release(bound=2, **AMOUNTS), [*many[:-1], 0], neighbour=many
    )
    check_mechanism(ptr.reciprocal.release(bound=0.01, **AMOUNTS), 400, neighbour=401)
    check_mechanism(ptr.reciprocal.search(bounds=[0.5, 1], **SEARCH), 10**6, neighbour=10**6 + 1)
