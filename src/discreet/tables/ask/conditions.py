# SPDX-License-Identifier: Apache-2.0
"""What the conditions of a question say of its columns: ends, and that a value is not NULL.

**Guarantee.** Every statement holds for every row in which the conditions are TRUE. Only the
question is read. What a condition of another form says is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from discreet.tables.algebra import expr as e
from discreet.tables.algebra.expr import Case, Coalesce, Constant, Expr, Read, leaves
from discreet.tables.algebra.sums import Filtered, Lookup, Paired, Relation, Windowed
from discreet.tables.algebra.types import WIDEST, Type

__all__ = [
    "Ends",
    "conditions_of",
    "ends_by",
    "is_same",
    "may_hold_beyond",
    "needed_columns",
    "rebuild",
]

#: A least and a greatest number of cells.
Ends = tuple[int, int]


def conditions_of(rows: Relation) -> tuple[Expr, ...]:
    """The conditions that are TRUE in every row of a relation; of relations of another kind, none."""
    if isinstance(rows, Filtered):
        return (*_conjuncts(rows.condition), *conditions_of(rows.rows))
    if isinstance(rows, Lookup | Windowed):
        return conditions_of(rows.rows)
    if not isinstance(rows, Paired) or rows.kind == "full":
        return ()
    if rows.kind != "inner":  # what is missing on the other side fulfils none of its conditions
        return conditions_of(rows.rows)
    joined = () if rows.condition is None else tuple(_conjuncts(rows.condition))
    return (*joined, *conditions_of(rows.rows), *conditions_of(rows.other))


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    """Conditions that are all TRUE where this one is."""
    inner = condition.of if isinstance(condition, e.Not) else None
    if isinstance(condition, e.Logic) and condition.op == "and":
        for item in condition.items:
            yield from _conjuncts(item)
    elif isinstance(inner, e.Logic) and inner.op == "or":
        for item in inner.items:
            yield from _conjuncts(e.Not(item))
    elif isinstance(inner, e.Not):
        yield from _conjuncts(inner.of)
    elif isinstance(inner, e.Compare):
        yield replace(inner, op=_OPPOSITE[inner.op])
    else:
        yield condition


def ends_by(condition: Expr, expr: Expr) -> Ends | None:
    """The ends that one condition gives an expression on the grid of that expression, if it does."""
    if isinstance(condition, e.IsIn) and is_same(condition.of, expr) and condition.values:
        if not expr.type.is_ordered:
            return None
        return _regrid(condition.of, min(condition.values), max(condition.values), expr)
    if not isinstance(condition, e.Compare):
        return None
    op, left, right = condition.op, condition.left, condition.right
    if isinstance(left, Constant):
        op, left, right = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op), right, left
    if not isinstance(right, Constant) or right.value is None or not is_same(left, expr):
        return None
    if not expr.type.is_ordered or op == "<>":
        return None
    cell = right.value
    low = {"=": cell, ">=": cell, ">": cell + 1}.get(op, -WIDEST)
    high = {"=": cell, "<=": cell, "<": cell - 1}.get(op, WIDEST)
    return _regrid(left, low, high, expr)


def is_same(expr: Expr, other_expr: Expr) -> bool:
    if isinstance(expr, Read) and isinstance(other_expr, Read):
        return (expr.table, expr.column) == (other_expr.table, other_expr.column)
    return expr == other_expr


def _regrid(read: Expr, low: int, high: int, expr: Expr) -> Ends:
    """Ends in cells of one reading of a column as ends in cells of another one."""
    # A clamped reading says nothing of what lies beyond the end that it is clamped to.
    low = -WIDEST if low <= read.type.low else low
    high = WIDEST if high >= read.type.high else high
    shift = expr.type.places - read.type.places
    if shift == 0:
        return low, high
    # A cell holds the numbers up to the next one.
    first = -WIDEST if low == -WIDEST else _move_point(low, shift)
    last = WIDEST if high == WIDEST else _move_point(high + 1, shift)
    return first, last


def _move_point(cell: int, shift: int) -> int:
    return cell << shift if shift >= 0 else cell >> -shift


def may_hold_beyond(condition: Expr, part: Read, beyond: Ends) -> bool:
    """Whether a condition may be TRUE for values of a column between these ends, beyond its bounds."""
    reads = [read for read in leaves(condition) if is_same(read, part)]
    # Where the column is clamped in the condition too, a value beyond the bounds is that of the bound.
    if all(part.of.low <= read.of.low and read.of.high <= part.of.high for read in reads):
        return False

    def with_moved_column(expr: Expr) -> Expr:
        if not isinstance(expr, Read) or not is_same(expr, part):
            return rebuild(expr, with_moved_column)
        low, high = (min(max(end, expr.of.low), expr.of.high) for end in beyond)
        return Read(expr.table, expr.column, Type(expr.of.kind, low, high, expr.of.places, null=False))

    return _may_be(with_moved_column(condition), truth=True)


def _may_be(condition: Expr, *, truth: bool) -> bool:
    """Whether the types of its parts leave it possible that a condition is TRUE, or FALSE."""
    if isinstance(condition, e.Not):
        return _may_be(condition.of, truth=not truth)
    if isinstance(condition, e.Logic):
        pick = all if (condition.op == "and") == truth else any
        return pick(_may_be(item, truth=truth) for item in condition.items)
    if isinstance(condition, e.IsNull) and truth:
        return condition.of.type.null
    if isinstance(condition, e.IsIn) and truth and condition.of.type.is_ordered:
        return any(condition.of.type.low <= value <= condition.of.type.high for value in condition.values)
    if isinstance(condition, e.Compare) and condition.left.type.is_ordered:
        a, b = condition.left.type, condition.right.type
        op = condition.op if truth else _OPPOSITE[condition.op]
        return {
            "<": a.low < b.high,
            "<=": a.low <= b.high,
            ">": a.high > b.low,
            ">=": a.high >= b.low,
            "=": a.low <= b.high and b.low <= a.high,
            "<>": not a.low == a.high == b.low == b.high,
        }[op]
    return True


_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "<>", "<>": "="}


def needed_columns(condition: Expr) -> frozenset[tuple[str, str]]:
    """Columns that are not NULL where a condition is TRUE."""
    if isinstance(condition, e.Not):
        inner = condition.of
        if isinstance(inner, e.IsNull):
            return _strict(inner.of)
        return _strict(inner)
    if isinstance(condition, e.Logic):
        columns_of_items = [needed_columns(item) for item in condition.items]
        return (
            frozenset().union(*columns_of_items)
            if condition.op == "and"
            else frozenset.intersection(*columns_of_items)
        )
    return _strict(condition)


def _strict(expr: Expr) -> frozenset[tuple[str, str]]:
    """Columns that make an expression NULL where they are NULL."""
    if isinstance(expr, Read):
        return frozenset({(expr.table, expr.column)})
    if isinstance(expr, Case | Coalesce | e.IsNull | e.Logic):
        return frozenset()
    return frozenset[tuple[str, str]]().union(*(_strict(part) for part in expr.parts))


def rebuild(expr: Expr, make: Callable[[Expr], Expr]) -> Expr:
    """The same expression of other parts."""

    def inside(value: Any) -> Any:
        if isinstance(value, Expr):
            return make(value)
        return tuple(inside(part) for part in value) if isinstance(value, tuple) else value

    return (
        replace(expr, **{held.name: inside(getattr(expr, held.name)) for held in fields(expr)})
        if expr.parts
        else expr
    )
