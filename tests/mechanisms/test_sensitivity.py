# SPDX-License-Identifier: Apache-2.0
"""Sensitivities on all small data: the definitions, and a checker that finds every wrong callback."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest

from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.mechanisms.sensitivity import (
    FLOOR,
    SLACK,
    GlobalSensitivity,
    LocalAtDistance,
    SmoothBound,
    Universe,
    check_callback,
    check_smooth_bound,
)

LOW, HIGH = 0, 10
DOMAIN = [0, 1, 4, 10]


def window(x, j, k=None):
    """LS(x, j) of the lower median of numbers in [0, 10], by the formula of order statistics."""
    pad = len(x) + 2
    y = [LOW] * pad + sorted(x) + [HIGH] * pad
    k = pad - 1 + ((len(x) + 1) // 2 if k is None else k)
    reach = range(min(j, pad - 2) + 2)
    j = min(j, pad - 2)
    return max(y[k + step] - y[k + step - j - 1] for step in reach)


def by_definition(f, domain, size, relation, distance):
    """max over y within `distance` changes of x of max over z ~ y of |f(y) - f(z)|, with lists and not bags."""
    sizes = [size] if relation == "replace" else range(size + 1)
    data = [x for n in sizes for x in itertools.product(domain, repeat=n)]

    def near(x):
        if relation == "replace":
            return {(*x[:i], v, *x[i + 1 :]) for i in range(len(x)) for v in domain}
        fewer = {(*x[:i], *x[i + 1 :]) for i in range(len(x))}
        more = {(*x[:i], v, *x[i:]) for i in range(len(x) + 1) for v in domain} if len(x) < size else set()
        return fewer | more

    local = {x: max((abs(f(x) - f(y)) for y in near(x)), default=0) for x in data}
    for _ in range(distance):
        local = {x: max([local[x], *(local[y] for y in near(x))]) for x in data}
    return local


def lower_median(x):
    return sorted(x)[(len(x) - 1) // 2] if x else LOW


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("distance", [0, 1, 2])
def test_a_universe_agrees_with_the_definition(relation, distance):
    universe = Universe(DOMAIN[:3], 3, relation)
    levels = universe.local_at_distance(lower_median, distance)
    truth = by_definition(lower_median, DOMAIN[:3], 3, relation, distance)
    assert all(levels[distance][tuple(sorted(x))] == value for x, value in truth.items())


def test_a_universe_is_symmetric():
    for relation in ("replace", "add-remove"):
        universe = Universe([2, "b", 1], 2, relation)
        for x in universe.all():
            assert all(x in set(universe.neighbours(y)) for y in universe.neighbours(x))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_right_callback_passes(relation):
    check_callback(lower_median, window, DOMAIN, size=3, relation=relation)
    check_callback(len, lambda _x, _j: 1, DOMAIN, size=3, relation=relation)


WRONG = {
    "half of it": (lambda x, j: window(x, j) / 2, "below the local sensitivity"),
    "local sensitivity at every distance": (lambda x, _j: window(x, 0), "exceeds a neighbour"),
    "one distance too few": (lambda x, j: window(x, max(0, j - 1)), "exceeds a neighbour"),
    "one side only": (
        lambda x, j: (
            max(sorted([LOW] * 9 + x + [HIGH] * 9)[9 + (len(x) - 1) // 2 :][1 : j + 2]) - lower_median(x)
        ),
        "exceeds a neighbour",
    ),
    "not monotone": (lambda x, j: window(x, j) + (9 if j == 1 else 0), "falls as the distance grows"),
    "infinite": (lambda _x, _j: math.inf, "not a finite number"),
    "no number": (lambda _x, _j: math.nan, "not a finite number"),
    "negative": (lambda _x, _j: -1.0, "not a finite number"),
    "raises": (lambda _x, _j: 1 / 0, "raises an error"),
    "a text": (lambda _x, _j: "much", "not a finite number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_callback_is_found(name):
    callback, rule = WRONG[name]
    with pytest.raises(UnsupportedGuarantee, match=rule) as caught:
        check_callback(lower_median, callback, DOMAIN, size=3)
    assert caught.value.code == "DP205"


def test_a_smooth_bound_is_checked_too():
    good = LocalAtDistance(window, HIGH).smooth(0.3)
    check_smooth_bound(lower_median, good, DOMAIN, size=3)
    for bad, rule in [
        (lambda x: window(x, 0) + 1e-9, "more than e"),
        (lambda x: 0.99 * good.bound(x), "below the local"),
        (lambda _x: math.nan, "not a finite"),
    ]:
        with pytest.raises(UnsupportedGuarantee, match=rule):
            check_smooth_bound(lower_median, SmoothBound(bad, 0.3, HIGH), DOMAIN, size=3)
    with pytest.raises(UnsupportedGuarantee, match="more than e"):
        check_smooth_bound(lower_median, SmoothBound(good.bound, 0.2, HIGH), DOMAIN, size=3)


@pytest.mark.parametrize("t", [0.05, 0.4, 2.0])
def test_the_smooth_bound_is_the_least_one(t):
    universe = Universe(DOMAIN, 3)
    levels = universe.local_at_distance(statistics.median_low, 4)
    bound = LocalAtDistance(lambda x, j: levels[min(j, 4)][tuple(x)], HIGH).smooth(t)
    for x in universe.all():
        truth = max(math.exp(-t * j) * levels[j][x] for j in range(5))
        assert truth <= bound.bound(list(x)) <= truth * (1 + SLACK)
        assert all(
            bound.bound(list(x)) <= math.exp(t + SLACK) * bound.bound(list(y)) for y in universe.neighbours(x)
        )


def test_what_a_callback_does_at_worst_counts_as_the_most():
    for at in (
        lambda _x, _j: 1 / 0,
        lambda _x, _j: math.nan,
        lambda _x, _j: math.inf,
        lambda _x, _j: -1,
        lambda _x, _j: None,
    ):
        local = LocalAtDistance(at, 7.0)
        assert local.local([1]) == 7.0
        assert local.smooth(0.1).bound([1]) == pytest.approx(7.0, rel=1e-9)
    assert LocalAtDistance(lambda _x, _j: 99, 7.0).local([1]) == 7.0


def test_no_bound_is_zero():
    assert LocalAtDistance(lambda _x, _j: 0.0, 8.0).smooth(0.5).bound([1]) == pytest.approx(8 * FLOOR)


def test_only_the_global_sensitivity_is_a_number():
    assert GlobalSensitivity(3.0).value == 3.0
    assert not hasattr(LocalAtDistance(window, 3.0), "value")
    assert not hasattr(LocalAtDistance(window, 3.0).smooth(0.1), "value")


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 1e200])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(BadParameter):
        LocalAtDistance(window, bad)
    with pytest.raises(BadParameter):
        SmoothBound(lambda _x: 1.0, bad, 1.0)
    if bad != 1e200:
        with pytest.raises(BadParameter):
            GlobalSensitivity(bad)


def test_a_universe_that_is_too_large_is_refused():
    with pytest.raises(BadParameter):
        Universe(range(50), 50)
    with pytest.raises(BadParameter):
        Universe([1, 2], 2, "both")
