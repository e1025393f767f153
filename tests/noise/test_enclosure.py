# SPDX-License-Identifier: Apache-2.0
"""Every enclosure contains the value that mpmath computes with 300 digits, and shrinks."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.noise import enclosure

mpmath.mp.dps = 300

BITS = st.integers(min_value=1, max_value=300)
POSITIVE = st.one_of(
    st.floats(min_value=1e-30, max_value=60.0).map(Fraction),
    st.fractions(min_value=Fraction(1, 10**40), max_value=60, max_denominator=10**40),
)
FUNCTIONS = {
    enclosure.exp_minus: lambda x: mpmath.exp(-x),
    enclosure.log: mpmath.log,
    enclosure.normal_tails: lambda z: mpmath.erfc(z / mpmath.sqrt(2)),
    enclosure.ratio: lambda x: x,
}
ALL = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)


def exact(x: Fraction):
    return mpmath.mpf(x.numerator) / x.denominator


def assert_encloses(function, x, bits):
    low, high = function(x, bits)
    value = FUNCTIONS[function](exact(x)) * mpmath.mpf(2) ** bits
    tiny = mpmath.mpf(10) ** -180 * (1 + abs(value))  # what mpmath itself may be wrong by
    assert low <= value + tiny
    assert value - tiny <= high
    assert high - low <= 4


@ALL
@given(x=POSITIVE, bits=BITS)
@settings(max_examples=150)
def test_the_truth_lies_inside(function, x, bits):
    assert_encloses(function, x, bits)


@ALL
@pytest.mark.parametrize("bits", [1, 63, 64, 79, 200])
@pytest.mark.parametrize(
    "x", [1, 2, 3, Fraction(1, 2), Fraction(1, 3), Fraction(2**64 - 1, 2**64), Fraction(45, 7)]
)
def test_the_truth_lies_inside_at_plain_numbers(function, x, bits):
    assert_encloses(function, Fraction(x), bits)


def test_the_ends_of_the_range():
    assert enclosure.exp_minus(Fraction(0), 10)[0] <= 1024 <= enclosure.exp_minus(Fraction(0), 10)[1]
    assert enclosure.exp_minus(Fraction(10**30), 64) == (0, 1)
    assert enclosure.normal_tails(Fraction(0), 10)[1] == 1024
    assert enclosure.normal_tails(Fraction(10**30), 64) == (0, 1)
    assert_encloses(enclosure.log, Fraction(1, 2**500), 64)
    assert_encloses(enclosure.log, Fraction(3**400), 64)


def test_the_check_sees_a_wrong_value(monkeypatch):
    monkeypatch.setitem(FUNCTIONS, enclosure.log, lambda x: mpmath.log(x) * (1 + mpmath.mpf(2) ** -60))
    with pytest.raises(AssertionError):
        assert_encloses(enclosure.log, Fraction(45, 7), 79)
