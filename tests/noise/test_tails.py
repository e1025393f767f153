# SPDX-License-Identifier: Apache-2.0
"""Every enclosure of a heavy tail contains the value that mpmath computes with 150 digits, and shrinks."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.noise import tails
from discreet.noise.enclosure import log

PARAMETER = st.fractions(min_value=Fraction(1, 5), max_value=40, max_denominator=1000)
POINT = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9, max_denominator=10**9)
BITS = st.integers(min_value=1, max_value=160)


def mpf(x):
    return mpmath.mpf(x.numerator) / x.denominator


def student(d, z):
    return mpmath.betainc(d / 2, mpmath.mpf(1) / 2, 0, d / (d + z * z), regularized=True)


def arsinh_normal(sigma, z):
    return mpmath.erfc(mpmath.asinh(sigma * z) / (sigma * mpmath.sqrt(2)))


FUNCTIONS = {
    tails.student_tails: student,
    tails.arsinh_normal_tails: arsinh_normal,
    tails.lomax_tails: lambda a, z: (1 + z) ** (1 - a),
}
ALL = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)


def assert_encloses(function, parameter, z, bits):
    shift = 1 if function is tails.lomax_tails else 0
    with mpmath.workdps(150):
        low, high = function(parameter + shift, z, bits)
        value = FUNCTIONS[function](mpf(parameter + shift), mpf(z)) * mpmath.mpf(2) ** bits
        tiny = mpmath.mpf(10) ** -100 * (1 + abs(value))
        assert low <= value + tiny
        assert value - tiny <= high
        assert high - low <= 6


@ALL
@given(parameter=PARAMETER, z=POINT, bits=BITS)
@settings(max_examples=40)
def test_the_truth_lies_inside(function, parameter, z, bits):
    assert_encloses(function, parameter, z, bits)


@ALL
@pytest.mark.parametrize("parameter", [Fraction(1), Fraction(2), Fraction(5, 2), Fraction(64)])
@pytest.mark.parametrize("z", [Fraction(1, 10**6), Fraction(1), Fraction(3, 2), Fraction(10**12)])
def test_the_truth_lies_inside_at_plain_numbers(function, parameter, z):
    assert_encloses(function, parameter, z, 79)


def test_one_degree_is_the_arctangent():
    low, high = tails.student_tails(Fraction(1), Fraction(7, 2), 100)
    with mpmath.workdps(60):
        value = 2 / mpmath.pi * mpmath.atan(mpmath.mpf(2) / 7) * 2**100
        assert low <= value <= high


@given(x=POINT, bits=BITS)
@settings(max_examples=40)
def test_the_inverse_of_sinh_is_enclosed(x, bits):
    low, high = tails.arsinh(x, bits)
    with mpmath.workdps(150):
        value = mpmath.asinh(mpf(x)) * mpmath.mpf(2) ** bits
        assert low <= value + mpmath.mpf(10) ** -80
        assert value - mpmath.mpf(10) ** -80 <= high
        assert high - low <= 6


def test_the_check_sees_a_wrong_value(monkeypatch):
    monkeypatch.setattr(tails, "log", lambda x, bits: tuple(end + (1 << (bits - 50)) for end in log(x, bits)))
    with pytest.raises(AssertionError):
        assert_encloses(tails.lomax_tails, Fraction(5, 2), Fraction(1), 79)
