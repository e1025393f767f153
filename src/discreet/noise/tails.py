# SPDX-License-Identifier: Apache-2.0
"""Tails of heavy distributions as pairs of integers that enclose them: powers, Student's t, the
inverse of sinh.

    low, high = student_tails(Fraction(5, 2), Fraction(3), bits=80)  # 2**80 * P(|T| > 3) lies between

**Guarantee**: as in enclosure.py, integers `low <= 2**bits * f(x) <= high` whose distance, divided
by 2**bits, tends to zero as `bits` grows. Nothing here is a floating-point number. The error counts
are proved in heavy.proof.md.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from discreet.noise.enclosure import Interval, exp_minus, log, normal_tails, ratio, round_up

_HALF = Fraction(1, 2)


def power(x: Fraction, exponent: Fraction, bits: int) -> Interval:
    """x**exponent for 0 < x <= 1 and an exponent >= 0, as exp(-exponent * log(1/x))."""
    work = bits + 8 + exponent.numerator.bit_length()
    low, high = log(1 / x, work)
    return exp_minus(exponent * Fraction(high, 1 << work), bits)[0], exp_minus(
        exponent * Fraction(max(0, low), 1 << work), bits
    )[1]


def lomax_tails(shape: Fraction, z: Fraction, bits: int) -> Interval:
    """P(|Z| > z) = (1 + z)**(1 - shape) for the density proportional to (1 + |z|)**-shape, shape >
    1.
    """
    return power(1 / (1 + z), shape - 1, bits)


def student_tails(degrees: Fraction, z: Fraction, bits: int) -> Interval:
    """P(|T| > z) for Student's t with any positive number of degrees: a regularised incomplete beta
    function.
    """
    a, x = degrees / 2, degrees / (degrees + z * z)
    far = x <= _HALF
    work = bits + int(a) + 32
    whole_low, whole_high = _beta(a, work)
    low, high = _lower_beta(a, _HALF, x, work) if far else _lower_beta(_HALF, a, 1 - x, work)
    low, high = (low << bits) // whole_high, min(1 << bits, -((-high << bits) // whole_low))
    return (low, high) if far else ((1 << bits) - high, (1 << bits) - low)


@lru_cache(maxsize=256)
def _beta(a: Fraction, work: int) -> Interval:
    """B(a, 1/2), in two halves."""
    left, right = _lower_beta(a, _HALF, _HALF, work), _lower_beta(_HALF, a, _HALF, work)
    return left[0] + right[0], left[1] + right[1]


def _lower_beta(a: Fraction, b: Fraction, x: Fraction, work: int) -> Interval:
    """∫ v**(a-1) (1-v)**(b-1) from 0 to x <= 1/2: x**a (1-x)**b / a times Σ x**n (a+b)…(a+b+n-1) /
    (a+1)…(a+n).

    Every term is positive. The sum stops where the terms shrink to 3/4 at least and the last is
    four units at most.
    """
    x_low, x_high = ratio(x, work)
    common = (a + b).denominator * a.denominator
    top, bottom = int((a + b) * common), int((a + 1) * common)
    term_low = term_high = below = above = 1 << work
    while term_high > 4 or 4 * top * x_high > (3 * bottom) << work:
        term_low = (term_low * x_low * top) // (bottom << work)
        term_high = -((-term_high * x_high * top) // (bottom << work))
        below, above = below + term_low, above + term_high
        top, bottom = top + common, bottom + common
    above += 12  # the terms that are left out: at most 3/4 + 9/16 + … = 3 times the last one
    first, second = power(x, a, work), power(1 - x, b, work)
    low = ((below * first[0] >> work) * second[0] >> work) * a.denominator // a.numerator
    high = -(-round_up(round_up(above * first[1], work) * second[1], work) * a.denominator // a.numerator)
    return low, high


def arsinh_normal_tails(sigma: Fraction, z: Fraction, bits: int) -> Interval:
    """P(|sinh(sigma N)| / sigma > z) for a standard normal N: that |N| exceeds arsinh(sigma z) /
    sigma.
    """
    work = bits + 16 + max(0, (1 / sigma).numerator.bit_length() - (1 / sigma).denominator.bit_length())
    low, high = arsinh(sigma * z, work)
    near, far = (Fraction(end, 1 << work) / sigma for end in (max(0, low), high))
    return normal_tails(far, bits)[0], normal_tails(near, bits)[1]


def arsinh(x: Fraction, bits: int) -> Interval:
    """log(x + sqrt(1 + x²)) for x >= 0."""
    work = bits + 8
    low, high = ratio(x, work)
    unit = 1 << (2 * work)
    below, above = low + isqrt(unit + low * low), high + isqrt(unit + high * high) + 1
    return log(Fraction(below, 1 << work), bits)[0], log(Fraction(above, 1 << work), bits)[1]
