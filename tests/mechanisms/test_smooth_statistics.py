# SPDX-License-Identifier: Apache-2.0
"""Smooth sensitivities in closed form against brute force on all small data."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.mechanisms.query import ClippingBounds
from discreet.mechanisms.sensitivity import FLOOR, SLACK, Universe
from discreet.mechanisms.smooth import (
    InterquantileRange,
    OrderStatistic,
    PredictionVariance,
    Reciprocal,
    TrimmedMean,
)
from discreet.mechanisms.smooth.statistics import widest_window

DATA = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
TEN = ClippingBounds.of((0, 10))
LETTERS = [0, 1, 4, 9, 10]
MEDIAN = OrderStatistic(TEN, q=0.5)

FIXTURES = {
    ("median", 0.1): (MEDIAN, 3.8416814526581846),
    ("max", 0.1): (OrderStatistic(TEN, q=1), 4.093653765389909),
    ("min", 0.1): (OrderStatistic(TEN, q=0), 3.3287108369807954),
    ("third", 0.1): (OrderStatistic(TEN, rank=3), 3.659126937665392),
    ("trimmed", 0.1): (TrimmedMean(TEN, trim=2), 0.952480569447923),
    ("median", 0.5): (MEDIAN, 1.2130613194252668),
    ("max", 0.5): (OrderStatistic(TEN, q=1), 3.0),
    ("min", 0.5): (OrderStatistic(TEN, q=0), 1.0),
    ("third", 0.5): (OrderStatistic(TEN, rank=3), 1.2130613194252668),
    ("trimmed", 0.5): (TrimmedMean(TEN, trim=2), 0.6065306597126334),
}
EXACT = {
    "median": MEDIAN,
    "minimum": OrderStatistic(TEN, q=0),
    "maximum": OrderStatistic(TEN, q=1),
    "upper quartile": OrderStatistic(TEN, q=0.75),
    "second": OrderStatistic(TEN, rank=2),
    "mean": TrimmedMean(TEN, trim=0),
    "trimmed 1": TrimmedMean(TEN, trim=1),
    "trimmed 2": TrimmedMean(TEN, trim=2),
    "trimmed a third": TrimmedMean(TEN, trim=1 / 3),
}
QUARTILES = InterquantileRange(TEN)


def value(statistic, x):
    return float(statistic.measure(list(x), 1.0)[0])


def bound(statistic, x, t):
    return float(statistic.measure(list(x), t)[1])


def truths(statistic, universe, t):
    """SS by the definition: the greatest e^(-t j) LS(x, j)."""
    levels = universe.local_at_distance(lambda x: value(statistic, x), universe.size * 2)
    return {x: max(math.exp(-t * j) * level[x] for j, level in enumerate(levels)) for x in levels[0]}


@pytest.mark.parametrize("key", FIXTURES, ids=str)
def test_a_smooth_bound_is_that_of_the_reference_values(key):
    statistic, truth = FIXTURES[key]
    assert truth * (1 - 1e-12) <= bound(statistic, DATA, key[1]) <= truth * (1 + 2 * SLACK)


@pytest.mark.parametrize(
    ("count", "truth"),
    [
        (0, 0.45241870901797976),
        (1, 0.5),
        (2, 0.5),
        (3, 0.45241870901797976),
        (10, 0.22466448205861078),
        (50, 0.004114873524510012),
        (100, 0.00010101010101010101),
        (200, 2.5125628140703518e-05),
    ],
)
def test_the_fixtures_of_the_reciprocal(count, truth):
    assert truth * (1 - 1e-12) <= bound(Reciprocal(), [1] * count, 0.1) <= truth * (1 + 2 * SLACK)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("t", [0.1, 0.7])
def test_under_replace_the_formula_is_the_definition(name, t):
    """All 126 bags of five of five letters, the ends of the range among them."""
    statistic, universe = EXACT[name], Universe(LETTERS, 5)
    for x, truth in truths(statistic, universe, t).items():
        assert truth * (1 - 1e-12) <= bound(statistic, x, t) <= truth * (1 + 2 * SLACK) + 11 * FLOOR


@pytest.mark.parametrize(
    "statistic",
    [
        MEDIAN,
        OrderStatistic(TEN, q=0),
        OrderStatistic(TEN, q=1),
        OrderStatistic(TEN, q=0.75),
        OrderStatistic(TEN, rank=2),
        QUARTILES,
    ],
    ids=str,
)
@pytest.mark.parametrize("t", [0.1, 0.7])
def test_under_add_remove_the_bound_is_a_smooth_bound(statistic, t):
    universe = Universe(LETTERS[1:], 4, "add-remove")
    assert_smooth(statistic, universe, t)


@pytest.mark.parametrize("t", [0.1, 0.7])
def test_the_interquantile_range_under_replace(t):
    universe = Universe(LETTERS, 5)
    assert_smooth(QUARTILES, universe, t)
    found = truths(QUARTILES, universe, t)
    assert max(bound(QUARTILES, x, t) / found[x] for x in found if found[x] > 0) < 2.01


def assert_smooth(statistic, universe, t):
    local = universe.local(lambda x: value(statistic, x))
    bounds = {x: bound(statistic, x, t) for x in local}
    for x in local:
        assert bounds[x] >= local[x]
        assert all(bounds[x] <= math.exp(t + SLACK) * bounds[y] for y in universe.neighbours(x))


def test_the_check_of_smoothness_can_fail():
    """The local sensitivity alone, and an off-by-one discount, are no smooth bounds."""

    class Local(OrderStatistic):
        def of(self, y, t):
            return super().of(y, 50.0)

    class Early(OrderStatistic):
        def of(self, y, t):
            answer, found = super().of(y, t)
            return answer, found * Fraction(math.exp(-t))

    for wrong in (Local(TEN, q=0.5), Early(TEN, q=0.5)):
        with pytest.raises(AssertionError):
            assert_smooth(wrong, Universe(LETTERS, 3), 0.3)


@pytest.mark.parametrize("t", [0.1, 0.5, 1.0])
def test_the_reciprocal_is_the_definition(t):
    """On all counts up to 60: LS(k) from its neighbours k - 1 and k + 1, and the greatest discounted one."""
    top = 200
    g = [1 / max(k, 1) for k in range(top + 1)]
    local = [max(abs(g[k] - g[i]) for i in (k - 1, k + 1) if i >= 0) for k in range(top)]
    for k in range(61):
        truth = max(math.exp(-t * abs(i - k)) * local[i] for i in range(top))
        assert truth * (1 - 1e-12) <= bound(Reciprocal(), [1] * k, t) <= truth * (1 + 2 * SLACK)
    assert value(Reciprocal(), []) == 1.0
    assert value(Reciprocal(where=lambda x: x > 2), [1, 2, 3, 4, None]) == 0.5


def slow_widest(y, first, last, t):
    width = last - first + 1
    pairs = itertools.product(range(first + 1), range(last, len(y)))
    found = [math.exp(-t * (b - a - width)) * (y[b] - y[a]) for a, b in pairs if b - a >= width]
    return max(found, default=0.0)


@pytest.mark.parametrize("t", [1e-3, 0.05, 0.3, 3.0])
def test_the_fast_search_finds_what_the_slow_one_finds(t):
    rng = np.random.default_rng(7)
    for size in (1, 2, 3, 7, 40, 90):
        for make in (rng.random, lambda n: rng.integers(0, 4, n) / 4, lambda n: rng.random(n) ** 9):
            y = np.concatenate(([0.0], np.sort(make(size)), [1.0]))
            for first in {0, 1, size // 2, size, size + 1}:
                last = min(size + 1, first + int(rng.integers(0, 3)))
                truth = slow_widest(y.tolist(), first, last, t)
                assert (
                    truth * (1 - 1e-13)
                    <= widest_window(y, first, last, t)
                    <= truth * (1 + 2 * SLACK) + 2 * FLOOR
                )


def test_windows_that_are_far_are_left_out_and_nothing_else():
    """With a million equal records every window nearby is empty: the bound is the floor, and never zero."""
    y = np.concatenate(([0.0], np.full(10**6, 0.5), [1.0]))
    assert widest_window(y, 500_000, 500_000, 0.01) == pytest.approx(FLOOR, rel=1e-9)
    y[400_000:] = 0.75
    truth = math.exp(-0.001 * 100_000) * 0.25
    assert widest_window(y, 500_000, 500_000, 0.001) == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize("statistic", [MEDIAN, EXACT["trimmed 1"], QUARTILES], ids=str)
def test_what_is_no_number_counts_as_the_middle(statistic):
    odd = [math.nan, math.inf, -math.inf, None, "x", 1e308, -0.0]
    plain = [5, 10, 0, 5, 5, 10, 0]
    assert statistic.measure(odd, 0.3) == statistic.measure(plain, 0.3)


@pytest.mark.parametrize("statistic", [*EXACT.values(), QUARTILES, Reciprocal()], ids=str)
def test_no_records_are_data_like_any(statistic):
    answer, found = statistic.measure([], 0.3)
    assert statistic.range[0] <= answer <= statistic.range[1]
    assert found > 0


def test_a_trimmed_mean_is_the_exact_mean_of_what_is_left():
    x = [0.1] * 7 + [9.0, -3.0, 0.2]
    expected = (7 * Fraction(0.1) + Fraction(0.2)) / 8
    assert TrimmedMean(TEN, trim=1).measure(x, 1.0)[0] == expected
    assert TrimmedMean(TEN, trim=0.1).measure(x, 1.0)[0] == expected
    assert TrimmedMean(TEN, trim=99).measure([1, 2, 9], 1.0)[0] == 2


ROWS = [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (0.5, 0.5)]


def variance(rows, x):
    gram = sum(np.outer(r, r) for r in rows)
    return float(x @ np.linalg.inv(gram) @ x)


def test_the_variance_of_a_prediction():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 3)) / 4
    cut = rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    statistic = PredictionVariance((1.0, -0.5, 0.25), -20.0, 5.0)
    answer, found = statistic.measure(rows, 1.0)
    least = np.linalg.eigvalsh(cut.T @ cut)[0]
    assert float(answer) == pytest.approx(math.log(variance(cut, np.array([1.0, -0.5, 0.25]))), abs=1e-4)
    assert math.log(least / (least - 1)) * 0.999 < float(found) < math.log(least / (least - 1)) * 1.01


@pytest.mark.parametrize("t", [0.2, 1.0])
def test_the_bound_of_a_prediction_is_a_smooth_bound(t):
    """On all bags of up to eight of four rows: at least the local sensitivity, and smooth."""
    universe = Universe([(*row,) for row in ROWS], 8, "add-remove")
    statistic = PredictionVariance((1.0, 0.5), -3.0, 3.0)
    values = {x: statistic.measure(list(x), t) for x in universe.all()}
    tight = 0
    for x, (answer, found) in values.items():
        for y in universe.neighbours(x):
            assert abs(answer - values[y][0]) <= min(found, values[y][1])
            assert float(found) <= math.exp(t + SLACK) * float(values[y][1])
            tight += found < 5.4
    assert tight > 100, "the bound is the whole range everywhere"


def test_rows_that_are_no_rows_count_as_zeros():
    statistic = PredictionVariance((1.0, 0.5), -9.0, 3.0)
    good = [(0.5, 0.1), (0.1, 0.5)] * 4
    odd = [None, 7, "ab", (1.0,), (math.nan, 0.0), (math.inf, 0.0), (1, 2, 3)]
    assert statistic.measure(good + odd, 0.3) == statistic.measure(good, 0.3)
    assert statistic.measure([], 0.3)[0] == 3
