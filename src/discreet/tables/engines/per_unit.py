# SPDX-License-Identifier: Apache-2.0
"""Aggregates and windows over the rows of one unit, in SQL.

**Guarantee.** Every GROUP BY and every PARTITION BY begins with the unit, so a value depends on the
rows of one unit. No sum leaves its type: it has at most 2^40 terms, each within 2^62. Rows are
ordered by their values, never by their position: rows that are still equal are the same to the
question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from discreet.tables.algebra.sums import UnitAggregate, WindowFunction
from discreet.tables.algebra.types import WIDEST, Type
from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.read import clamp
from discreet.tables.engines.terms import UNIT, Term
from discreet.tables.engines.write import Writer

__all__ = ["aggregate_term", "clamp_cell", "is_wide", "window_term"]

#: Windows whose value depends on the order of rows one by one, so that no two may be equal.
_ONE_BY_ONE: Final = {"row_number", "lag", "lead", "first"}
_NAMES: Final = {
    "row_number": "ROW_NUMBER",
    "rank": "RANK",
    "dense_rank": "DENSE_RANK",
    "first": "FIRST_VALUE",
}


def is_wide(kind: str) -> bool:
    """Whether an aggregate or a window may have more than 64 bits."""
    return kind == "sum"


def clamp_cell(dialect: Dialect, of: Type, value: Term, *, wide: bool) -> Term:
    """A value as a cell of its type; texts and truth values as they are."""
    if not of.is_ordered or (not wide and of.low <= -WIDEST and of.high >= WIDEST):
        return value
    kind = dialect.wide if wide else t.BIGINT
    typed = value if wide else t.cast(value, t.BIGINT)
    clamped = t.cast(clamp(typed, t.number(of.low, kind), t.number(of.high, kind)), t.BIGINT)
    return t.cases([(t.is_null(value.copy()), t.nothing(t.BIGINT))], clamped)


def aggregate_term(dialect: Dialect, aggregate: UnitAggregate, operand: str) -> Term:
    """An aggregate over the rows of a group; its operand is a column."""
    if aggregate.kind == "count":
        return t.everyone()
    value = t.column(operand)
    if aggregate.kind == "distinct":
        return exp.Count(this=exp.Distinct(expressions=[value]))
    if aggregate.kind == "sum":
        return t.call("SUM", dialect.widen(value))
    return t.call({"count_of": "COUNT", "min": "MIN", "max": "MAX"}[aggregate.kind], value)


def window_term(writer: Writer, function: WindowFunction, ties: Sequence[Term]) -> Term:
    """A window over the rows of one unit; `ties` are all columns that are read of them."""
    order = [
        exp.Ordered(this=writer.write(of), desc=descends, nulls_first=False)
        for of, descends in function.order
    ]
    if function.kind in _ONE_BY_ONE or (function.order and function.rows and _is_total(function.kind)):
        order += [exp.Ordered(this=tie.copy(), desc=False, nulls_first=False) for tie in ties]
    partition = [t.column(UNIT), *(writer.write(of) for of in function.partition)]
    window = exp.Window(this=_call(writer, function), partition_by=partition)
    if order:
        window.set("order", exp.Order(expressions=order))
    if function.order and _is_total(function.kind):
        kind = "ROWS" if function.rows else "RANGE"
        spec = exp.WindowSpec(kind=kind, start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
        window.set("spec", spec)
    return window


def _is_total(kind: str) -> bool:
    return kind in {"sum", "count", "count_of", "min", "max"}


def _call(writer: Writer, function: WindowFunction) -> Term:
    if function.kind == "count":
        return t.everyone()
    if function.of is None:
        return t.call(_NAMES[function.kind])
    value = writer.write(function.of)
    if function.kind in {"lag", "lead"}:
        return t.call(function.kind.upper(), value, t.number(function.offset, "INT"))
    if function.kind == "first":
        return t.call(_NAMES["first"], value)
    if function.kind == "sum":
        return t.call("SUM", writer.dialect.widen(value))
    return t.call({"count_of": "COUNT", "min": "MIN", "max": "MAX"}[function.kind], value)
