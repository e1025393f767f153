# SPDX-License-Identifier: Apache-2.0
"""The value of an expression for many assignments of public values to its columns at once.

**Guarantee.** `evaluate` gives what an engine would give for a row with these values (the meaning
is that of `expr`). It is used for public values alone: which groups a question can have. No row is
read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.tables.algebra import civil, strings
from discreet.tables.algebra import expr as e
from discreet.tables.algebra.curves import RealFunction
from discreet.tables.algebra.types import DATE, MOMENT, TEXT, TRUTH

__all__ = ["Assignment", "Values", "evaluate"]


@dataclass(frozen=True)
class Values:
    """Cells, texts or truth values, and which of them are NULL; what stands at a NULL has no
    meaning.
    """

    cells: NDArray[Any]
    null: NDArray[np.bool_]

    def take(self, places: NDArray[Any]) -> Values:
        """The values at some places."""
        return Values(self.cells[places], self.null[places])

    def to_list(self) -> list[Any]:
        """The values as Python has them, with None for NULL."""
        pairs = zip(self.cells.tolist(), self.null.tolist(), strict=True)
        return [None if null else cell for cell, null in pairs]


@dataclass(frozen=True)
class Assignment:
    """What columns and other parts of an expression are, place by place; all have the same length."""

    # By table, column and places.
    columns: Mapping[tuple[str, str, int], Values]
    terms: Mapping[e.Expr, Values]
    length: int

    def covers(self, expr: e.Expr) -> bool:
        """Whether the value of an expression is known."""
        if expr in self.terms or isinstance(expr, e.Constant):
            return True
        if isinstance(expr, e.Read):
            return (expr.table, expr.column, expr.of.places) in self.columns
        return all(self.covers(part) for part in expr.parts)


def evaluate(expr: e.Expr, known: Assignment) -> Values:
    """The value of an expression at each place of an assignment that covers it."""
    return known.terms[expr] if expr in known.terms else _value(expr, known)


@singledispatch
def _value(expr: e.Expr, known: Assignment) -> Values:  # noqa: ARG001 - the others use it
    raise AssertionError(f"{type(expr).__name__} has no value here")


@_value.register
def _(expr: e.Read, known: Assignment) -> Values:
    raw = known.columns[expr.table, expr.column, expr.of.places]
    if not expr.of.is_ordered:
        return raw
    return Values(np.clip(raw.cells, expr.of.low, expr.of.high), raw.null)


@_value.register
def _(expr: e.Constant, known: Assignment) -> Values:
    null = np.full(known.length, expr.value is None)
    kind: Any = {TEXT: object, TRUTH: np.bool_}.get(expr.of.kind, np.int64)
    cells = np.empty(known.length, dtype=kind)
    cells[:] = {TEXT: "", TRUTH: False}.get(expr.of.kind, 0) if expr.value is None else expr.value
    return Values(cells, null)


@_value.register
def _(expr: e.Scaled, known: Assignment) -> Values:
    inner = evaluate(expr.of, known)
    return Values(inner.cells << (expr.places - expr.of.type.places), inner.null)


@_value.register
def _(expr: e.Arithmetic, known: Assignment) -> Values:
    left, right = evaluate(expr.left, known), evaluate(expr.right, known)
    make = {"+": np.add, "-": np.subtract, "*": np.multiply}[expr.op]
    return Values(make(left.cells, right.cells), left.null | right.null)


@_value.register
def _(expr: e.Quotient, known: Assignment) -> Values:
    left, right = evaluate(expr.left, known), evaluate(expr.right, known)
    null = left.null | right.null | (right.cells == 0)
    return Values((left.cells << expr.shift) // np.where(null, 1, right.cells), null)


@_value.register
def _(expr: e.Modulo, known: Assignment) -> Values:
    left = evaluate(expr.left, known)
    return Values(left.cells % expr.divisor, left.null)


@_value.register
def _(expr: e.Extreme, known: Assignment) -> Values:
    items = [evaluate(item, known) for item in expr.items]
    best = reduce(np.minimum if expr.op == "least" else np.maximum, [item.cells for item in items])
    return Values(best, _any_null(items))


@_value.register
def _(expr: e.Clamp, known: Assignment) -> Values:
    inner = evaluate(expr.of, known)
    return Values(np.clip(inner.cells, expr.low, expr.high), inner.null)


@_value.register
def _(expr: e.Compare, known: Assignment) -> Values:
    left, right = evaluate(expr.left, known), evaluate(expr.right, known)
    make: Any = {
        "=": np.equal,
        "<>": np.not_equal,
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
    }[expr.op]
    return Values(make(left.cells, right.cells).astype(np.bool_), left.null | right.null)


@_value.register
def _(expr: e.IsIn, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    listed = frozenset(expr.values)
    return Values(_each(lambda cell: cell in listed, of, np.bool_), of.null)


@_value.register
def _(expr: e.Like, known: Assignment) -> Values:
    signs = {"%": ".*", "_": "."}
    pattern = re.compile("".join(signs.get(sign, re.escape(sign)) for sign in expr.pattern), re.DOTALL)
    of = evaluate(expr.of, known)
    return Values(_each(lambda cell: pattern.fullmatch(cell) is not None, of, np.bool_), of.null)


@_value.register
def _(expr: e.IsNull, known: Assignment) -> Values:
    null = evaluate(expr.of, known).null
    return Values(null, np.zeros_like(null))


@_value.register
def _(expr: e.Logic, known: Assignment) -> Values:
    items = [evaluate(item, known) for item in expr.items]
    # The value that decides, whatever the others are: TRUE for OR, FALSE for AND.
    decides = expr.op == "or"
    decided = reduce(np.logical_or, [~item.null & (item.cells == decides) for item in items])
    return Values(decided == decides, ~decided & _any_null(items))


@_value.register
def _(expr: e.Not, known: Assignment) -> Values:
    inner = evaluate(expr.of, known)
    return Values(~inner.cells, inner.null)


@_value.register
def _(expr: e.Case, known: Assignment) -> Values:
    result = evaluate(expr.otherwise, known)
    for when, then in reversed(expr.whens):
        holds, value = evaluate(when, known), evaluate(then, known)
        result = _choose(holds.cells & ~holds.null, value, result)
    return result


@_value.register
def _(expr: e.Coalesce, known: Assignment) -> Values:
    *first, result = (evaluate(item, known) for item in expr.items)
    for item in reversed(first):
        result = _choose(~item.null, item, result)
    return result


@_value.register
def _(expr: e.DatePart, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    if expr.part in {"hour", "minute", "second"}:
        length = civil.TRUNCATED[expr.part]
        return Values(of.cells // length % (24 if expr.part == "hour" else 60), of.null)
    days = of.cells if expr.of.type.kind == DATE else of.cells // civil.DAY
    return Values(civil.part(expr.part, days), of.null)


@_value.register
def _(expr: e.AsDate, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    return Values(of.cells // civil.DAY, of.null)


@_value.register
def _(expr: e.AsMoment, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    return Values(of.cells * civil.DAY, of.null)


@_value.register
def _(expr: e.Truncated, known: Assignment) -> Values:
    of, length = evaluate(expr.of, known), civil.TRUNCATED[expr.part]
    if expr.of.type.kind == MOMENT:
        return Values(of.cells // length * length, of.null)
    return Values(civil.truncate(expr.part, of.cells), of.null)


@_value.register
def _(expr: e.Shifted, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    return Values(of.cells + expr.cells, of.null)


@_value.register
def _(expr: e.Steps, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    edges, values = (np.array(cells, dtype=np.int64) for cells in (expr.edges, expr.values))
    return Values(of.cells + values[np.searchsorted(edges, of.cells, side="right")], of.null)


@_value.register
def _(expr: e.Bucket, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    edges = np.array(expr.edges, dtype=np.int64)
    return Values(np.searchsorted(edges, of.cells, side="right").astype(np.int64), of.null)


@_value.register
def _(expr: e.Root, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    null = of.null | (of.cells < 0)
    return Values(
        np.sqrt((np.where(null, 0, of.cells) << expr.shift).astype(np.float64)).astype(np.int64), null
    )


@_value.register
def _(expr: RealFunction, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    # What stands in the place of NULL may be outside of the domain.
    return Values(expr.cells_of(np.where(of.null, expr.of.type.high, of.cells)), of.null)


@_value.register
def _(expr: strings.Joined, known: Assignment) -> Values:
    items = [evaluate(item, known) for item in expr.items]
    return Values(reduce(np.add, [item.cells for item in items]), _any_null(items))


@_value.register
def _(expr: strings.Cased, known: Assignment) -> Values:
    table = str.maketrans(*strings.CASES[expr.case])
    return _each_text(lambda text: text.translate(table), evaluate(expr.of, known))


@_value.register
def _(expr: strings.Trimmed, known: Assignment) -> Values:
    return _each_text(lambda text: text.strip(" "), evaluate(expr.of, known))


@_value.register
def _(expr: strings.Substring, known: Assignment) -> Values:
    first = expr.start - 1
    return _each_text(lambda text: text[first : first + expr.length], evaluate(expr.of, known))


@_value.register
def _(expr: strings.Length, known: Assignment) -> Values:
    of = evaluate(expr.of, known)
    return Values(_each(len, of, np.int64), of.null)


def _each_text(make: Callable[[str], str], of: Values) -> Values:
    made = np.empty(len(of.null), dtype=object)
    pairs = zip(of.cells.tolist(), of.null.tolist(), strict=True)
    made[:] = ["" if null else make(cell) for cell, null in pairs]
    return Values(made, of.null)


def _any_null(items: list[Values]) -> NDArray[np.bool_]:
    return np.asarray(reduce(np.logical_or, [item.null for item in items]))


def _choose(first: NDArray[np.bool_], yes: Values, no: Values) -> Values:
    return Values(np.where(first, yes.cells, no.cells), np.where(first, yes.null, no.null))


def _each(make: Any, of: Values, kind: Any) -> NDArray[Any]:
    """A function of each value that is not NULL."""
    made = np.zeros(len(of.null), dtype=kind)
    pairs = zip(of.cells.tolist(), of.null.tolist(), strict=True)
    made[:] = [False if null else make(cell) for cell, null in pairs]
    return made
