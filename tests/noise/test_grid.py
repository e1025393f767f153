# SPDX-License-Identifier: Apache-2.0
"""The lattice: exact both ways, half up, and never less sensitive than it says."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadParameter
from discreet.noise import integer
from discreet.noise.grid import Grid

FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-(2.0**200), max_value=2.0**200)
EXPONENTS = st.integers(min_value=-120, max_value=120)


def by_definition(x, grid):
    return math.floor(Fraction(x) / grid.step + Fraction(1, 2))


@given(values=st.lists(FLOATS, min_size=1, max_size=8), exponent=EXPONENTS)
@settings(max_examples=300)
def test_floats_are_rounded_half_up(values, exponent):
    grid = Grid(exponent)
    expected = [by_definition(x, grid) for x in values]
    assert [int(cell) for cell in grid.cells(np.array(values))] == expected
    assert [grid.cells(x) for x in values] == expected


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8), exponent=EXPONENTS)
@settings(max_examples=300)
def test_integers_are_rounded_half_up(values, exponent):
    grid = Grid(exponent)
    assert [int(c) for c in grid.cells(np.array(values, np.int64))] == [
        by_definition(x, grid) for x in values
    ]


@given(
    halves=st.lists(st.integers(-(2**40), 2**40), min_size=1),
    exponent=EXPONENTS,
    nudge=st.sampled_from([-1, 0, 1]),
)
@settings(max_examples=200)
def test_ties_and_their_neighbours_are_rounded_by_the_definition(halves, exponent, nudge):
    grid = Grid(exponent)
    ties = np.ldexp(np.array(halves) + 0.5, exponent)
    values = np.nextafter(ties, nudge * np.inf) if nudge else ties
    assert grid.cells(values).tolist() == [by_definition(x, grid) for x in values.tolist()]


@given(cells=st.lists(st.integers(-(2**80), 2**80), min_size=1, max_size=5), exponent=EXPONENTS)
@settings(max_examples=200)
def test_the_way_back_is_the_nearest_float(cells, exponent):
    grid = Grid(exponent)
    expected = [float(cell * grid.step) for cell in cells]
    assert [grid.reals(cell) for cell in cells] == expected
    assert grid.reals(np.array(cells, object)).tolist() == expected
    small = [cell for cell in cells if abs(cell) < 2**63]
    assert grid.reals(np.array(small, np.int64)).tolist() == [float(cell * grid.step) for cell in small]


def test_zero_has_one_sign():
    assert math.copysign(1, Grid(-3).reals(Grid(-3).cells(-0.0))) == 1.0
    assert not np.signbit(Grid(-3).reals(Grid(-3).cells(np.array([-0.0, -1e-300])))).any()


def test_casts_are_made_last():
    grid, cells = Grid(-20), np.array([2**40 + 1, 3])
    assert grid.reals(cells, np.float32).dtype == np.float32
    assert grid.reals(cells, np.float32).tolist() == grid.reals(cells).astype(np.float32).tolist()
    assert grid.reals(2**60, np.float16) == math.inf


@given(x=FLOATS, y=FLOATS, exponent=st.integers(-20, 20))
@settings(max_examples=300)
def test_one_number_never_moves_further_than_its_sensitivity(x, y, exponent):
    grid = Grid(exponent)
    assert abs(grid.cells(x) - grid.cells(y)) <= grid.sensitivity(abs(Fraction(x) - Fraction(y)))


def test_the_sensitivity_of_one_number_is_reached_and_half_even_would_break_it():
    grid = Grid(0)
    assert grid.sensitivity(1) == 1
    assert grid.cells(1.5) - grid.cells(0.5) == 1
    assert np.rint(1.5) - np.rint(0.5) == 2
    assert grid.sensitivity(Fraction(1, 10)) == 1 == grid.cells(0.55) - grid.cells(0.45)


def test_vectors_never_move_further_than_their_sensitivity():
    grid, halves = Grid(0), [-0.5, 0.4, 0.5, 0.6, 1.5]
    for pair in itertools.product(itertools.product(halves, repeat=3), repeat=2):
        one, other = np.array(pair)
        moved = np.abs(grid.cells(one) - grid.cells(other))
        real = [abs(Fraction(a) - Fraction(b)) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
        assert moved.sum() <= grid.sensitivity_l1(sum(real), 3)
        square = sum(r * r for r in real)
        root = Fraction(math.isqrt(int(square * 2**100)), 2**50)  # rounded down: the harder case
        assert math.sqrt((moved**2).sum()) <= grid.sensitivity_l2(root, 3)


def test_the_l2_sensitivity_is_rounded_up():
    found = Fraction(Grid(0).sensitivity_l2(1, 2)) - 1
    assert found**2 >= 2
    assert Grid(-10).sensitivity_l2(1, 4) == pytest.approx(1026)


@pytest.mark.parametrize("scale", [2.0**-60, 0.3, 1, 10, 2.0**60])
@pytest.mark.parametrize("share", [2.0**-30, 0.1, 1, 7])
def test_the_step_is_fine_and_wastes_little(scale, share):
    sensitivity = scale * share
    grid = Grid.for_noise(scale, sensitivity)
    assert grid.step * 2**10 <= scale
    assert grid.sensitivity(sensitivity) * grid.step <= Fraction(sensitivity) * Fraction(1025, 1024)
    vector = Grid.for_noise(scale, sensitivity, dimension=100)
    assert vector.sensitivity_l1(sensitivity, 100) * vector.step <= Fraction(sensitivity) * Fraction(
        1026, 1024
    )


def test_a_dyadic_sensitivity_loses_nothing():
    assert Grid.for_noise(4096, 1) == Grid(0)
    assert Grid.for_noise(1, 1) == Grid(-10)
    assert Grid.for_noise(3, 0.75).sensitivity(0.75) * Grid.for_noise(3, 0.75).step == Fraction(3, 4)


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), [1.0, float("nan")], [float("-inf")], np.array([np.nan])]
)
def test_what_is_no_number_is_refused_or_replaced(bad):
    with pytest.raises(BadParameter) as caught:
        Grid(-1).cells(bad)
    assert caught.value.code == "DP101"
    assert "nan" not in str(caught.value).replace("NaN", "")
    replaced = np.atleast_1d(Grid(-1).cells(bad, instead=0.25))
    assert replaced[-1] == 1


@pytest.mark.parametrize("bad", ["1", None, 1j, ["1"], [None], [1j], [True], True])
def test_other_things_are_refused(bad):
    with pytest.raises(BadParameter):
        Grid(0).cells(bad, instead=0)


@pytest.mark.parametrize("exponent", [-961, 901])
def test_a_step_beyond_floats_is_refused(exponent):
    with pytest.raises(BadParameter) as caught:
        Grid(exponent)
    assert caught.value.code == "DP108"


@pytest.mark.parametrize("power", range(-60, 61, 12))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_low_bits_of_an_answer_do_not_tell_its_input(power, dtype):
    """Two inputs, one set of possible answers: whatever either gives is a multiple of the step."""
    unit = 2.0**power
    grid = Grid.for_noise(unit, unit)
    for value in (0.0, unit, unit / 3, unit * 1e6):
        noisy = grid.cells(value) + integer.discrete_laplace(grid.in_cells(unit), 2000)
        answers = grid.reals(noisy, dtype).astype(np.float64)
        steps = answers / float(grid.step)
        assert (steps == np.rint(steps)).all()
        assert len(np.unique(noisy % 2)) == 2


@pytest.mark.parametrize("cell", [10**400, -(10**400)])
def test_a_cell_that_no_float_holds_is_an_infinity(cell) -> None:
    assert Grid(-3).reals(cell) == math.copysign(math.inf, 1 if cell > 0 else -1)
    assert Grid(-3).reals(np.array([cell, 8], object)).tolist()[1] == 1.0
