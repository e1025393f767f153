# SPDX-License-Identifier: Apache-2.0
"""The edges of a histogram whose buckets nobody stated.

**Guarantee.** They follow from the public bounds of a number alone.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from discreet.tables.algebra.types import Type

__all__ = ["round_edges"]

#: The greatest number of edges between the bounds.
_MOST = 14


def round_edges(kind: Type) -> list[int | Decimal]:
    """The multiples of 1, 2 or 5 times a power of ten between the bounds: 5 to 14 of them where the
    grid allows it, and at least one.

    >>> from discreet.tables.algebra.types import NUMBER
    >>> round_edges(Type(NUMBER, 0, 60))
    [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]
    """
    low, high = kind.bounds
    width = max(high - low, Fraction(1, 2**kind.places))
    power = math.floor(math.log10(width)) - 2
    steps = (Decimal(digit).scaleb(power + place) for place in range(5) for digit in (1, 2, 5))
    step = next(step for step in steps if width / Fraction(step) <= _MOST and (kind.places or step >= 1))
    first, last = math.floor(low / Fraction(step)) + 1, math.ceil(high / Fraction(step)) - 1
    return [_plain(number * step) for number in range(first, max(first, last) + 1)]


def _plain(edge: Decimal) -> int | Decimal:
    """A number that is written without an exponent."""
    return int(edge) if edge == int(edge) else Decimal(f"{edge:f}")
