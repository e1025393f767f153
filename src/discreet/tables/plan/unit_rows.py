# SPDX-License-Identifier: Apache-2.0
"""How many rows a unit can have in a relation, whatever the data are: one in a group of its own.

**Guarantee.** No unit has more rows than the number here, for any data; None says nothing. A
question whose units have one row each is noised for one row, not for `at_most`. The engine bounds
each unit by the number all the same, so a mistake here could bias an answer, and could not break
its guarantee.
"""

from __future__ import annotations

from math import prod

from discreet.tables.algebra.expr import Compare, Constant, Expr, Logic, Read
from discreet.tables.algebra.sums import (
    Filtered,
    Paired,
    PerUnit,
    Relation,
    Stacked,
    Windowed,
    WindowFunction,
)
from discreet.tables.algebra.types import TRUTH, Type

__all__ = ["unit_rows"]


def unit_rows(rows: Relation) -> int | None:
    """The number of rows that no unit exceeds; None if the data decide."""
    match rows:
        case PerUnit():
            return _product([_type_size(key.type) for _, key in rows.keys])
        case Filtered():
            known = [unit_rows(rows.rows), *(_place_bound(part, rows) for part in _parts(rows.condition))]
            return min((number for number in known if number is not None), default=None)
        case Windowed():
            return unit_rows(rows.rows)
        case Stacked():
            counts = [unit_rows(part) for part, _ in rows.parts]
            return None if None in counts else sum(count for count in counts if count is not None)
        case Paired():
            return _pair_rows(rows)
    return None


def _pair_rows(rows: Paired) -> int | None:
    ours, theirs = unit_rows(rows.rows), unit_rows(rows.other)
    if rows.kind in {"semi", "anti"}:
        return ours
    if ours is None or theirs is None:
        return None
    # Of so many rows some match, and the others are kept: the sum is greatest where all do, or
    # none.
    unmatched = {"left": ours, "full": ours + theirs}.get(rows.kind, 0)
    return max(ours * theirs, unmatched)


def _product(sizes: list[int | None]) -> int | None:
    return None if None in sizes else prod(size for size in sizes if size is not None)


def _type_size(of: Type) -> int | None:
    """The number of values that a type has."""
    if of.kind == TRUTH:
        return 2 + of.null
    return of.high - of.low + 1 + of.null if of.is_ordered else None


def _parts(condition: Expr) -> tuple[Expr, ...]:
    return condition.items if isinstance(condition, Logic) and condition.op == "and" else (condition,)


def _place_bound(condition: Expr, rows: Relation) -> int | None:
    """ROW_NUMBER() = 3 leaves one row, ROW_NUMBER() <= 3 three of them."""
    if not isinstance(condition, Compare) or not isinstance(condition.left, Read):
        return None
    read, limit = condition.left, condition.right
    if not isinstance(limit, Constant) or limit.value is None or not _numbers_rows(read, rows):
        return None
    # Beyond its bounds a number is clamped, and the comparison says nothing.
    if condition.op == "=" and read.of.low < limit.value < read.of.high:
        return 1
    number = {"<=": limit.value, "<": limit.value - 1}.get(condition.op)
    return max(number, 0) if number is not None and number < read.of.high else None


def _numbers_rows(read: Read, rows: Relation) -> bool:
    """Whether a column numbers the rows of a unit, of which each has at most one in the relation."""
    match rows:
        case Windowed():
            function = dict(rows.columns).get(read.column) if rows.name == read.table else None
            return _is_row_number(function) or (function is None and _numbers_rows(read, rows.rows))
        case Filtered():
            return _numbers_rows(read, rows.rows)
        case Paired():
            return rows.kind in {"semi", "anti"} and _numbers_rows(read, rows.rows)
    return False


def _is_row_number(function: WindowFunction | None) -> bool:
    return function is not None and function.kind == "row_number" and not function.partition
