# SPDX-License-Identifier: Apache-2.0
"""A released number and its interval as people read them: as many digits as the margin of error
leaves.

**Guarantee.** The ends are rounded outwards, so the interval that is read holds the one that was
released, and the number stays inside. Files and frames have all digits.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from numbers import Real
from typing import Any

__all__ = ["cell_text", "number_cells"]

_FIXED = 1e15  # a greater number is shown by its powers of ten
_EXACT = Context(prec=400)  # quantize never runs out of digits


def number_cells(number: Any, low: Any, high: Any) -> tuple[str, str, str]:
    """A number and the ends of its interval: so many decimals that half of the width has two
    digits.

    >>> number_cells(505.39712, 475.4401, 535.3549), number_cells(12, 10, 14), number_cells(0.5, None, None)
    (('505', '475', '536'), ('12', '10', '14'), ('0.5', '–', '–'))
    """
    cells = (number, low, high)
    if not all(isinstance(cell, Real) and abs(float(cell)) < _FIXED for cell in cells) or low >= high:
        return cell_text(number), cell_text(low), cell_text(high)
    are_whole = all(float(cell).is_integer() for cell in cells)
    places = 0 if are_whole else max(0, 1 - math.floor(math.log10((float(high) - float(low)) / 2)))
    return (
        _fixed_digits(float(number), places, ROUND_HALF_EVEN),
        _fixed_digits(float(low), places, ROUND_FLOOR),
        _fixed_digits(float(high), places, ROUND_CEILING),
    )


def cell_text(cell: Any) -> str:
    """A cell that stands for itself."""
    if cell is None:
        return "–"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _fixed_digits(number: float, places: int, rounding: str) -> str:
    cell = Decimal(1).scaleb(-places)
    rounded = Decimal(repr(number)).quantize(cell, rounding=rounding, context=_EXACT)
    return f"{abs(rounded) if rounded.is_zero() else rounded:f}"
