# SPDX-License-Identifier: Apache-2.0
"""Views of an answer that are easier to read: without negative numbers, or rounded.

**Guarantee.** Both are post-processing, and add a note that says so. An interval is intersected
with the possible values, or rounded outwards, so its coverage never falls. A number stays inside
its interval, because the same monotone function acts on both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.tables.answer.noisy import Noisy, Values

if TYPE_CHECKING:
    from discreet.tables.answer.answer import Answer

__all__ = ["nonnegative", "round_counts"]


def nonnegative(answer: Answer) -> Answer:
    """The answer with negative numbers set to 0 where the exact number cannot be negative."""
    changed = {name: _clip(column) for name, column in answer.columns.items() if column.nonnegative}
    return _with_view(
        answer, changed, "Negative numbers were set to 0; totals of such numbers are biased upwards."
    )


def round_counts(answer: Answer) -> Answer:
    """The answer with whole numbers where the exact number is whole."""
    changed = {name: _round(column) for name, column in answer.columns.items() if column.whole}
    return _with_view(
        answer,
        changed,
        "Counts and sums of whole numbers were rounded to whole numbers, and their intervals outwards.",
    )


def _clip(column: Noisy) -> Noisy:
    def at_zero(values: Values) -> Values:
        return tuple(type(value)(0) if value is not None and value < 0 else value for value in values)

    return _replace_numbers(column, at_zero(column.values), at_zero(column.lo), at_zero(column.hi))


def _round(column: Noisy) -> Noisy:
    def to_whole(values: Values, to: Callable[[float], int]) -> Values:
        return tuple(
            None if value is None or not math.isfinite(value) else int(to(value)) for value in values
        )

    ends = to_whole(column.lo, math.floor), to_whole(column.hi, math.ceil)
    return _replace_numbers(column, to_whole(column.values, round), *ends)


def _replace_numbers(column: Noisy, values: Values, lo: Values, hi: Values) -> Noisy:
    return replace(column, values=values, lo=lo, hi=hi, deviation=None, interval=None, linear=None)


def _with_view(answer: Answer, changed: dict[str, Noisy], note: str) -> Answer:
    columns = {name: changed.get(name, column) for name, column in answer.columns.items()}
    return replace(
        answer, columns=columns, notes=(*answer.notes, f"View: {note}") if changed else answer.notes
    )
