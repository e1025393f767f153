# SPDX-License-Identifier: Apache-2.0
"""Views of an answer that are easier to read and no more exact: cut at zero, rounded.

**Guarantee.** All of it is post-processing, and `nonnegative` and `rounded` say so in `notes`. An interval is intersected with
what is known of the truth (that it is not negative) or rounded outwards, so its coverage never falls; a number stays inside
its interval, because both are moved by the same monotone function.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.tables.answer.answer import Answer, Noisy

__all__ = ["nonnegative", "rounded"]


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
