# SPDX-License-Identifier: Apache-2.0
"""Functions as pairs of integers that enclose them: exp, log, the normal tail, at any precision.

    low, high = exp_minus(Fraction(1, 3), bits=80)       # low <= 2**80 * exp(-1/3) <= high

**Guarantee**: every function returns integers `low <= 2**bits * f(x) <= high`, and `2**-bits *
(high - low)` tends to zero as `bits` grows. Nothing here is a floating-point number. The error
counts are proved in lazy.proof.md, section 2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

Interval = tuple[int, int]


def ratio(x: Fraction, bits: int) -> Interval:
    """A rational number."""
    scaled = x.numerator << bits
    return scaled // x.denominator, -(-scaled // x.denominator)


def exp_minus(x: Fraction, bits: int) -> Interval:
    """exp(-x) for x >= 0: Taylor's series of a small argument, then squared as often as it was
    halved.
    """
    if x >= bits:
        return 0, 1  # exp(-bits) < 2**-bits
    halvings = max(0, (x.numerator // x.denominator).bit_length()) + 8
    work = bits + halvings + 12
    small = (x.numerator << work) // (x.denominator << halvings)
    low, high = _exp_minus_small(small, work)
    for _ in range(halvings):
        low, high = (low * low) >> work, round_up(high * high, work)
    return low >> (work - bits), round_up(high, work - bits)


def _exp_minus_small(small: int, work: int) -> Interval:
    """exp(-x) at `work` bits for x in [small, small + 1] / 2**work, x <= 2**-7."""
    term, total, count = 1 << work, 1 << work, 0
    while term:
        count += 1
        term = ((term * small) >> work) // count
        total += -term if count % 2 else term
    error = 2 * count + 4
    return max(0, total - error), total + error


def log(x: Fraction, bits: int) -> Interval:
    """The natural logarithm of x > 0: x = m * 2**e with m in [1, 2), eight square roots, then the
    series of atanh.
    """
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** exponent:
        exponent -= 1
    work = bits + 24 + abs(exponent).bit_length()
    low, high = ratio(x / Fraction(2) ** exponent, work)
    for _ in range(8):
        low, high = isqrt(low << work), isqrt(high << work) + 1
    low, high = _twice_atanh(low, high, work)
    two_low, two_high = _log_two(work)
    if exponent < 0:
        two_low, two_high = two_high, two_low
    low, high = (low << 8) + exponent * two_low, (high << 8) + exponent * two_high
    return low >> (work - bits), round_up(high, work - bits)


def _twice_atanh(low: int, high: int, work: int) -> Interval:
    """log(y) = 2 atanh((y - 1) / (y + 1)) for y in [low, high] / 2**work, within [1, 2]."""
    unit = 1 << work
    small = max(0, ((low - unit) << work) // (low + unit))
    large = ((high - unit) << work) // (high + unit) + 1
    power_low, power_high, odd = small, large, 1
    below, above = small, large
    # (y - 1) / (y + 1) <= 1/3, so each power is at most a ninth of the one before
    while power_high > 1:
        odd += 2
        power_low = (((power_low * small) >> work) * small) >> work
        power_high = round_up(round_up(power_high * large, work) * large, work)
        below += power_low // odd
        above += -(-power_high // odd)
    return 2 * below, 2 * (above + 1)


def normal_tails(z: Fraction, bits: int) -> Interval:
    """P(|N| > z) for a standard normal N and z >= 0, that is erfc(z / sqrt 2).

    1 - sqrt(2/pi) exp(-z²/2) (z + z³/3 + z⁵/(3·5) + z⁷/(3·5·7) + …): every term is positive, so
    nothing cancels before the last step.
    """
    square = z * z
    if square >= 2 * bits:
        return 0, 1  # P(|N| > z) <= exp(-z²/2)
    work = bits + int(square) + 16
    series_low, series_high = _odd_factorial_series(z, square, work)
    bell_low, bell_high = exp_minus(square / 2, work)
    two_over_root = _root_two_over_pi(work)
    low = (((series_low * bell_low) >> work) * two_over_root[0]) >> work
    high = round_up(round_up(series_high * bell_high, work) * two_over_root[1], work)
    unit = 1 << work
    return max(0, unit - high) >> (work - bits), round_up(unit - low, work - bits)


def _odd_factorial_series(z: Fraction, square: Fraction, work: int) -> Interval:
    """z + z³/3 + z⁵/(3·5) + …, stopped where the terms halve at least and are below one unit."""
    square_low, square_high = ratio(square, work)
    term_low, term_high = ratio(z, work)
    below, above, odd = term_low, term_high, 1
    while term_high > 1 or odd < 2 * square + 2:
        odd += 2
        term_low = ((term_low * square_low) >> work) // odd
        term_high = -(-round_up(term_high * square_high, work) // odd)
        below += term_low
        above += term_high
    return below, above + 1


@lru_cache(maxsize=64)
def _log_two(work: int) -> Interval:
    extra = work + 8
    low, high = _twice_atanh(2 << extra, 2 << extra, extra)
    return low >> 8, round_up(high, 8)


@lru_cache(maxsize=64)
def _root_two_over_pi(work: int) -> Interval:
    pi_low, pi_high = _pi(work + 8)
    over = 2 << (3 * work + 8)
    return isqrt(over // pi_high), isqrt(-(-over // pi_low)) + 1


def _pi(work: int) -> Interval:
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239)."""
    five, five_error = _atan_inverse(5, work)
    other, other_error = _atan_inverse(239, work)
    middle, error = 16 * five - 4 * other, 16 * five_error + 4 * other_error
    return middle - error, middle + error


def _atan_inverse(n: int, work: int) -> Interval:
    """atan(1/n) as (value, error bound), both at `work` bits."""
    power, total, count = (1 << work) // n, 0, 0
    while power:
        total += -(power // (2 * count + 1)) if count % 2 else power // (2 * count + 1)
        power //= n * n
        count += 1
    return total, 2 * count + 2


def round_up(value: int, bits: int) -> int:
    """The value without its last bits, rounded up."""
    return -(-value >> bits)
