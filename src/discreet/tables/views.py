# SPDX-License-Identifier: Apache-2.0
"""Views of an answer that are easier to read and no more exact: cut at zero, rounded, adding up.

All of it is post-processing, and says so in `notes`. Intervals are intersected with what is known of the truth (that
it is not negative, that it is whole), which never costs coverage; they are not moved with the number.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.tables.answer import Answer, Noisy

__all__ = ["consistent", "nonnegative", "rounded"]

_Z95 = 1.959964  # of the normal law, rounded up


def nonnegative(answer: Answer) -> Answer:
    changed = {name: _cut(column) for name, column in answer.columns.items() if column.nonnegative}
    return _seen(
        answer, changed, "Negative numbers were set to 0; totals of such numbers are biased upwards."
    )


def rounded(answer: Answer) -> Answer:
    changed = {name: _rounded(column) for name, column in answer.columns.items() if column.whole}
    return _seen(answer, changed, "Numbers that are whole in truth were rounded.")


def consistent(answer: Answer, total: Answer) -> Answer:
    """Least squares for leaves y with variance s² and their total t with variance v, in each group of `total`.

    The fit is y + s² (t - Σ y) / (G s² + v), with variance s² - s⁴ / (G s² + v) for each of G leaves: the formula for
    (AᵀΣ⁻¹A)⁻¹ with one parent. Both are free of data. For Gaussian noise the interval is that of the fit; else the
    interval stays that of the leaf, which is valid as well.
    """
    shared = [at for at, name in enumerate(answer.keys) if name in total.keys]
    together = [
        name
        for name in answer.columns
        if name in total.columns and _linear(answer.columns[name]) and _linear(total.columns[name])
    ]
    if len(shared) != len(total.keys) or len(total.keys) >= len(answer.keys) or not together:
        raise BadParameter(
            "DP107",
            "these answers do not add up: the total must have some of the keys, and a column in common.",
            why="the fit moves counts and sums of groups so that they add up to their total.",
            fix="by_ward_and_sex.consistent(total=by_ward)",
        )
    order = [answer.keys.index(name) for name in total.keys]
    parents = [tuple(group[at] for at in order) for group in answer.groups]
    changed = {
        name: _fitted(answer.columns[name], total.columns[name], parents, list(total.groups))
        for name in together
    }
    return _seen(
        answer, changed, "Numbers were moved by least squares so that they add up to a separate total."
    )


def _linear(column: Noisy) -> bool:
    return column.deviation is not None and all(value is not None for value in column.values)


def _fitted(leaf: Noisy, total: Noisy, parents: list[Any], groups: list[Any]) -> Noisy:
    assert leaf.deviation is not None
    assert total.deviation is not None
    members: dict[Any, list[int]] = {group: [] for group in groups}
    for at, parent in enumerate(parents):
        members.get(parent, []).append(at)
    values, lo, hi = list(leaf.values), list(leaf.lo), list(leaf.hi)
    one, whole = leaf.deviation**2, total.deviation**2
    for value, group in zip(total.values, groups, strict=True):
        inside = members[group]
        if not inside:
            continue
        pull = one / (len(inside) * one + whole)
        gap = value - sum(leaf.values[at] for at in inside)
        half = _Z95 * math.sqrt(one * (1 - pull)) + leaf.step + total.step  # noise is rounded
        for at in inside:
            values[at] = leaf.values[at] + pull * gap
            if leaf.gaussian and total.gaussian:
                lo[at], hi[at] = values[at] - half, values[at] + half
    return replace(leaf, values=tuple(values), lo=tuple(lo), hi=tuple(hi), deviation=None, interval=None)


def _cut(column: Noisy) -> Noisy:
    def cut(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if value is None else max(value, 0 * value) for value in values)

    return replace(column, values=cut(column.values), lo=cut(column.lo), hi=cut(column.hi), deviation=None, interval=None)  # fmt: skip


def _rounded(column: Noisy) -> Noisy:
    def each(values: tuple[Any, ...], to: Any) -> tuple[Any, ...]:
        return tuple(None if value is None or math.isinf(value) else int(to(value)) for value in values)

    lo, hi = each(column.lo, math.ceil), each(column.hi, math.floor)
    return replace(column, values=each(column.values, round), lo=lo, hi=hi, deviation=None, interval=None)


def _seen(answer: Answer, changed: dict[str, Noisy], note: str) -> Answer:
    columns = {name: changed.get(name, column) for name, column in answer.columns.items()}
    return replace(
        answer, columns=columns, notes=(*answer.notes, f"View: {note}") if changed else answer.notes
    )
