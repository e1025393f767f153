# SPDX-License-Identifier: Apache-2.0
"""Exact numbers: what a float says, the nearest float or text on the safe side, and one bisection.

A float is read in one of two ways. `exactly` reads it as the decimal that it prints as, which is
what its author meant: 0.1 is one tenth. `as_ratio` reads it as the binary number that the machine
holds, a little more than one tenth. Of the way back, `float_above` and `float_below` answer to
`exactly`, and `binary_above` and `binary_below` answer to `as_ratio`.

    ε = 0.3, three answers            exactly(0.3) / 3  is one tenth
    what each of them may cost        float_below(exactly(0.3) / 3)  is 0.1

**Guarantee.** No function here rounds towards the unsafe side, and no arithmetic here is in
floating point, except the midpoints of `bisect`, which are only places to look at.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

__all__ = [
    "as_ratio",
    "binary_above",
    "binary_below",
    "bisect",
    "bisect_whole",
    "exactly",
    "float_above",
    "float_below",
    "geometric_mean",
    "lower_bound_text",
    "upper_bound_text",
    "widest",
]


def as_ratio(value: object) -> Fraction:
    """A number exactly; a numpy number is taken apart into Python's integers, which do not
    overflow.

    What is no number raises TypeError, NaN ValueError and an infinity OverflowError.

    >>> as_ratio(0.5), as_ratio(0.1) == Fraction(1, 10)
    (Fraction(1, 2), False)
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(float(value))


def exactly(value: numbers.Real | float) -> Fraction:
    """A ratio as it is; a float as the decimal that it prints as, which is what its author meant.

    >>> 10 * exactly(0.1) == 1
    True
    """
    return as_ratio(value) if isinstance(value, numbers.Rational) else Fraction(repr(float(value)))


def widest(distance: numbers.Real | float) -> Fraction:
    """A distance exactly; of a float the greater of its two readings, as a binary and as a decimal
    number.
    """
    return max(as_ratio(distance), exactly(distance))


def float_above(value: Fraction) -> float:
    """The least float whose decimal is not below the value.

    >>> float_above(Fraction(1, 10)), exactly(float_above(Fraction(1, 3))) >= Fraction(1, 3)
    (0.1, True)
    """
    near = float(value)
    while exactly(near) < value:
        near = math.nextafter(near, math.inf)
    return near


def float_below(value: Fraction) -> float:
    """The greatest float whose decimal is not above the value."""
    return -float_above(-value)


def binary_above(value: Fraction | float) -> float:
    """The least float that is itself, as a binary number, not below the value; ∞ if none is.

    >>> binary_above(Fraction(1, 10)), Fraction(binary_above(Fraction(1, 3))) >= Fraction(1, 3)
    (0.1, True)
    """
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    return near if math.isinf(near) or Fraction(near) >= value else math.nextafter(near, math.inf)


def binary_below(value: Fraction | float) -> float:
    """The greatest float that is itself, as a binary number, not above the value; -∞ if none is."""
    return -binary_above(-value)


def upper_bound_text(value: float, digits: int = 6) -> str:
    """An upper bound to a few digits, rounded up.

    The digits beyond the eleventh are the margin that numerics add against floating point. They are
    dropped first, so that 0.30000000000000004 reads as 0.3 and not as 0.300001.

    >>> upper_bound_text(0.46211715), upper_bound_text(0.1), upper_bound_text(math.inf)
    ('0.462118', '0.1', '∞')
    """
    return _rounded_text(value, digits, ROUND_CEILING)


def lower_bound_text(value: float, digits: int = 6) -> str:
    """A lower bound to a few digits, rounded down.

    >>> lower_bound_text(0.46211795)
    '0.462117'
    """
    return _rounded_text(value, digits, ROUND_FLOOR)


def _rounded_text(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return "∞"
    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(f"{value:.10e}"))
    return f"{float(rounded):.{max(digits, 6)}g}"


# --- one bisection --------------------------------------------------------------------------------


def _arithmetic_mean(a: float, b: float) -> float:
    return (a + b) / 2


def geometric_mean(a: float, b: float) -> float:
    """The middle for quantities whose size is unknown, such as a scale between 1e-12 and 1e12."""
    return math.sqrt(a * b)


def bisect(
    holds: Callable[[float], bool],
    yes: float,
    no: float,
    *,
    steps: int,
    middle: Callable[[float, float], float] = _arithmetic_mean,
) -> tuple[float, float]:
    """Where a monotone condition changes: a bracket (yes, no), halved that many times.

    **Guarantee.** `holds` was true at the first of the two, or that is the `yes` of the caller; it
    was false at the second, or that is the caller's `no`. So the first is the safe side of a
    condition that makes something safe. Either may be the lower one. Neither of the caller's two
    ends is looked at.

    >>> bisect(lambda x: x * x <= 2, 0.0, 2.0, steps=50)[0]
    1.414213562373094
    """
    for _ in range(steps):
        between = middle(yes, no)
        yes, no = (between, no) if holds(between) else (yes, between)
    return yes, no


def bisect_whole(holds: Callable[[int], bool], yes: int, no: int) -> int:
    """The last whole number, from `yes` towards `no`, at which a monotone condition holds.

    **Guarantee.** `holds` was true there, or it is `yes` itself, which is not looked at; one step
    further it was false, or that is `no`.

    >>> bisect_whole(lambda n: n * n >= 50, 100, 0)
    8
    """
    while abs(yes - no) > 1:
        between = (yes + no) // 2
        yes, no = (between, no) if holds(between) else (yes, between)
    return yes
