# SPDX-License-Identifier: Apache-2.0
"""Views of an answer that are easier to read and no more exact: cut at zero, rounded, with sensible digits.

**Promise.** All of it is post-processing, and `nonnegative` and `rounded` say so in `notes`. An interval is intersected with
what is known of the truth (that it is not negative) or rounded outwards, so its coverage never falls; a number stays inside
its interval, because both are moved by the same monotone function.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.tables.answer import Answer, Noisy

__all__ = ["cells", "nonnegative", "rounded", "word"]

_FIXED = 1e15  # a greater number is shown by its powers of ten
_EXACT = Context(prec=400)  # quantize never runs out of digits


def nonnegative(answer: Answer) -> Answer:
    changed = {name: _cut(column) for name, column in answer.columns.items() if column.nonnegative}
    return _seen(
        answer, changed, "Negative numbers were set to 0; totals of such numbers are biased upwards."
    )


def rounded(answer: Answer) -> Answer:
    changed = {name: _rounded(column) for name, column in answer.columns.items() if column.whole}
    return _seen(
        answer, changed, "Numbers of things were rounded to whole ones, the ends of their intervals outwards."
    )


def cells(column: Noisy, at: int) -> tuple[str, str, str]:
    """A number and its interval for people: so many decimals that the margin of error has two digits; ends go outwards."""
    number, low, high = column.values[at], column.lo[at], column.hi[at]
    known = [end for end in (low, high) if isinstance(end, int | float) and math.isfinite(end)]
    width = known[1] - known[0] if len(known) == 2 else 0
    if not isinstance(number, float) or width <= 0 or max(map(abs, (number, *known))) >= _FIXED:
        return word(number), word(low), word(high)
    decimals = max(0, 1 - math.floor(math.log10(width / 2)))
    return (
        _fixed(number, decimals, ROUND_HALF_EVEN),
        _fixed(low, decimals, ROUND_FLOOR),
        _fixed(high, decimals, ROUND_CEILING),
    )


def word(cell: Any) -> str:
    """A cell that stands for itself."""
    if cell is None:
        return "–"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _fixed(number: float, decimals: int, rounding: str) -> str:
    cell = Decimal(1).scaleb(-decimals)
    shown = Decimal(repr(number)).quantize(cell, rounding=rounding, context=_EXACT)
    return f"{abs(shown) if shown.is_zero() else shown:f}"


def _cut(column: Noisy) -> Noisy:
    def cut(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(type(value)(0) if value is not None and value < 0 else value for value in values)

    return _moved(column, cut(column.values), cut(column.lo), cut(column.hi))


def _rounded(column: Noisy) -> Noisy:
    def each(values: tuple[Any, ...], to: Any) -> tuple[Any, ...]:
        return tuple(
            None if value is None or not math.isfinite(value) else int(to(value)) for value in values
        )

    ends = each(column.lo, math.floor), each(column.hi, math.ceil)
    return _moved(column, each(column.values, round), *ends)


def _moved(column: Noisy, values: tuple[Any, ...], lo: tuple[Any, ...], hi: tuple[Any, ...]) -> Noisy:
    return replace(column, values=values, lo=lo, hi=hi, deviation=None, interval=None)


def _seen(answer: Answer, changed: dict[str, Noisy], note: str) -> Answer:
    columns = {name: changed.get(name, column) for name, column in answer.columns.items()}
    return replace(
        answer, columns=columns, notes=(*answer.notes, f"View: {note}") if changed else answer.notes
    )
