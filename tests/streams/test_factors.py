# SPDX-License-Identifier: Apache-2.0
"""Factors, sensitivities and errors of streams against brute force, linear algebra and published tables."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from discreet.streams import (
    Factor,
    Participation,
    banded_inverse,
    best_factor,
    independent,
    predict,
    square_root,
)
from discreet.streams.decoding import decode, deviations, simultaneous_beta, weights_of_range

ONCE = Participation()


def matrix(factor: Factor) -> np.ndarray:
    """The whole matrix, in floats."""
    n = np.zeros((factor.periods, factor.periods))
    for lag, number in enumerate(factor.coefficients):
        n += number * np.eye(factor.periods, k=-lag)
    return n


FACTORS = [independent(9), square_root(9), banded_inverse(9, 2), banded_inverse(9, 4), Factor((5, 5, 1), 9)]


@st.composite
def falling(draw):
    numbers = draw(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    return Factor(tuple(sorted([draw(st.integers(1, 6)), *numbers], reverse=True))[:6], 6)


def patterns(bound: Participation, periods: int, signs=(1,)):
    """Every pattern of extreme contributions that a bound allows."""
    if bound.periods is None:
        for rows in itertools.product(range(bound.rows + 1), repeat=periods):
            if sum(rows) <= bound.rows:
                yield from itertools.product(*[{sign * row for sign in signs} for row in rows])
        return
    for size in range(bound.periods + 1):
        for places in itertools.combinations(range(periods), size):
            if all(later - before >= bound.apart for before, later in itertools.pairwise(places)):
                for values in itertools.product([sign * bound.rows for sign in signs], repeat=size):
                    pattern = [0] * periods
                    for place, value in zip(places, values, strict=True):
                        pattern[place] = value
                    yield tuple(pattern)


@settings(max_examples=60, deadline=None)
@given(
    falling(),
    st.sampled_from(
        [
            Participation(1),
            Participation(3),
            Participation(1, 2),
            Participation(2, 3),
            Participation(1, 2, 3),
            Participation(1, 3, 2),
            Participation(1, 6),
        ]
    ),
)
def test_the_sensitivity_is_the_greatest_of_all_patterns(factor, bound):
    n = matrix(factor).astype(int).tolist()

    def moved(pattern):
        return sum(sum(a * v for a, v in zip(row, pattern, strict=True)) ** 2 for row in n)

    greatest = max(moved(pattern) for pattern in patterns(bound, 6, (1, -1)))
    assert greatest == bound.squared_sensitivity(factor)


@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: f"{factor.name}-{len(factor.coefficients)}")
def test_decoding_inverts_encoding(factor):
    sums = [7, 0, -3, 12, 5, 5, 0, 1, 100]
    rows = [factor.encode(sums[: t + 1]) for t in range(9)]
    for first, last in itertools.combinations_with_replacement(range(9), 2):
        estimate = decode(weights_of_range(factor, first, last), rows[: last + 1])
        assert estimate == pytest.approx(sum(sums[first : last + 1]), abs=1e-9)


@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: f"{factor.name}-{len(factor.coefficients)}")
def test_deviations_are_those_of_linear_algebra(factor):
    inverse = np.linalg.inv(matrix(factor))
    total = np.tril(np.ones((9, 9)))
    window = total - np.tril(np.ones((9, 9)), k=-3)
    for measure, statistic in (("totals", total), ("periods", np.eye(9)), (3, window)):
        assert deviations(factor, measure) == pytest.approx(np.linalg.norm(statistic @ inverse, axis=1))


def test_the_coefficients_of_the_square_root_are_rounded_exactly():
    exact, numbers = Fraction(1), square_root(400).coefficients
    for k, number in enumerate(numbers):
        if k:
            exact *= Fraction(2 * k - 1, 2 * k)
        assert abs(number - exact * 1024) <= Fraction(1, 2) + Fraction(1, 10**9)


# Greatest and mean standard deviation of totals for noise of one sensitivity; units take part once.
ONCE_TABLE = [
    (12, "independent", 3.464, 2.550),
    (12, "square root", 1.851, 1.709),
    (52, "independent", 7.211, 5.148),
    (52, "square root", 2.322, 2.164),
    (365, "square root", 2.944, 2.782),
    (10_000, "square root", 3.998, 3.836),
]
# The same for units that come back.
BACK_TABLE = [
    (52, Participation(periods=4), "square root", 8.04, 7.49),
    (52, Participation(periods=4, apart=13), 8, 5.85, 4.86),
    (52, Participation(periods=12, apart=4), 4, 14.51, 11.20),
    (52, Participation(periods=52), "independent", 52.00, 37.12),
    (365, Participation(periods=52, apart=7), 8, 58.97, 43.35),
]


def made(name: str | int, periods: int) -> Factor:
    if isinstance(name, int):
        return banded_inverse(periods, name)
    return {"independent": independent, "square root": square_root}[name](periods)


@pytest.mark.parametrize(
    ("periods", "bound", "name", "greatest", "mean"),
    [(periods, ONCE, *rest) for periods, *rest in ONCE_TABLE] + BACK_TABLE,
)
def test_the_errors_are_those_of_the_literature(periods, bound, name, greatest, mean):
    prediction = predict(made(name, periods), bound)
    assert (prediction.greatest, prediction.mean) == pytest.approx((greatest, mean), rel=1e-3)


def test_no_factor_is_far_below_the_bound_for_all_factorisations():
    """The mean error of every factorisation is at least the nuclear norm over T (Henzinger, Upadhyay 2025)."""
    for periods, slack in ((12, 1.11), (52, 1.10), (365, 1.08)):
        angles = (2 * np.arange(1, periods + 1) - 1) * math.pi / (4 * periods + 2)
        least = float(np.sum(1 / (2 * np.sin(angles)))) / periods
        assert least <= predict(square_root(periods), ONCE).mean <= slack * least


def test_the_choice_follows_what_is_asked():
    def chosen(*arguments, **named):
        return best_factor(*arguments, **named).factor.name

    assert chosen(52) == "square root"
    assert chosen(52, measure="periods") == "independent"
    assert chosen(52, measure=4) == "banded inverse of 2 bands"
    assert chosen(52, measure=13) == "banded inverse of 4 bands"
    assert chosen(52, Participation(periods=12, apart=4)) == "banded inverse of 4 bands"
    assert chosen(52, Participation(periods=52)) == "independent"
    assert chosen(1) == "independent"


@pytest.mark.parametrize("periods", [1, 2, 3, 5, 52])
def test_the_choice_is_the_best_of_its_candidates(periods):
    for bound in (ONCE, Participation(periods=3, apart=2), Participation(periods=60)):
        best = best_factor(periods, bound)
        assert best.greatest <= predict(independent(periods), bound.within(periods)).greatest
        assert best.greatest <= predict(square_root(periods), bound.within(periods)).greatest


def test_intervals_that_hold_together():
    beta = simultaneous_beta(0.05, 52, gaussian=True)
    assert 1 - (1 - beta) ** 52 == pytest.approx(0.05, abs=1e-9)
    assert (1 - beta) ** 52 >= 0.95
    assert simultaneous_beta(0.05, 52, gaussian=False) < beta
    assert simultaneous_beta(0.05, 1, gaussian=True) == 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Factor((), 3),
        lambda: Factor((0,), 3),
        lambda: Factor((1, 2), 3),
        lambda: Factor((2, -1), 3),
        lambda: Factor((2.0, 1.0), 3),
        lambda: Factor((True,), 3),
        lambda: Factor((2, 1, 1, 1), 3),
        lambda: Factor([2, 1], 3),
        lambda: independent(0),
        lambda: square_root(10_001),
        lambda: square_root(2.5),
        lambda: banded_inverse(5, 1),
        lambda: banded_inverse(5, 6),
        lambda: banded_inverse(1, 2),
        lambda: Participation(0),
        lambda: Participation(-1),
        lambda: Participation(math.nan),
        lambda: Participation(math.inf),
        lambda: Participation("3"),
        lambda: Participation(10**7),
        lambda: Participation(periods=0),
        lambda: Participation(apart=2),
        lambda: Participation(periods=2, apart=0),
        lambda: best_factor(52, measure="weeks"),
        lambda: best_factor(52, measure=0),
        lambda: best_factor(52, measure=True),
        lambda: best_factor(52, measure=1.5),
    ],
)
def test_bad_input_is_refused(wrong):
    with pytest.raises(DiscreetError):
        wrong()


def test_a_bound_is_described():
    assert Participation(rows=3).describe("person", "week") == (
        "Each person contributes at most 3 rows in all weeks together"
    )
    assert Participation(periods=1).describe("person") == (
        "Each person contributes in at most 1 period, 1 row in each"
    )
