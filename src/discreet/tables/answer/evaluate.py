# SPDX-License-Identifier: Apache-2.0
"""Evaluates expressions on released numbers, row by row, with their intervals.

An expression becomes a tree whose leaves are as large as the noise allows: a linear combination of
counts and sums, a quotient of two of them, or a noisy column of another kind. Interval arithmetic
begins above the leaves.

**Guarantee.** Only released numbers and public values are read. The interval of a result has a
confidence of 95 %: each of its k noisy leaves has the confidence 1 - 5 %/k, where leaves that are
equal, and columns whose intervals hold jointly, count as one. Where that cannot be computed there
is no interval.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.tables.answer.linear import (
    CombinedNoise,
    add_forms,
    half_width,
    quotient_ends,
    scale_form,
)
from discreet.tables.answer.nodes import Applied, Cell, Linear, Node, ReleasedQuotient, Unbounded, leaves_of
from discreet.tables.answer.noisy import CONFIDENCE, Noisy
from discreet.tables.answer.statistics import STATISTICS, statistic_ends
from discreet.tables.ask.released import (
    PublicValue,
    ReleasedColumn,
    ReleasedExpression,
    ReleasedOperation,
    ReleasedWindow,
)

__all__ = [
    "NULL",
    "Result",
    "add_nodes",
    "column_of_nodes",
    "combine",
    "evaluate",
    "result_of",
]

#: A quotient with more noises than that has the interval of its parts, which is wider and faster.
_LONGEST_QUOTIENT = 200


@dataclass(frozen=True)
class Result:
    """A computed value with the ends of its interval."""

    value: Any
    lo: Any
    hi: Any


NULL = Linear(None, {})


def evaluate(
    expression: ReleasedExpression,
    keys: Mapping[str, Sequence[Any]],
    columns: Mapping[str, Noisy],
    windows: Callable[[ReleasedWindow], Sequence[Node]],
    rows: Sequence[int],
) -> list[Node]:
    """An expression in some rows of an answer; `windows` evaluates the windows in it."""
    if isinstance(expression, PublicValue):
        return [Linear(expression.value, {})] * len(rows)
    if isinstance(expression, ReleasedColumn):
        if expression.name in columns:
            return [_cell(expression.name, columns[expression.name], row) for row in rows]
        return [Linear(keys[expression.name][row], {}) for row in rows]
    if isinstance(expression, ReleasedOperation):
        parts = [evaluate(part, keys, columns, windows, rows) for part in expression.parts]
        return [combine(expression.op, nodes) for nodes in zip(*parts, strict=True)]
    return list(windows(expression))


def _cell(name: str, column: Noisy, row: int) -> Node:
    value = column.values[row]
    if column.linear is not None and value is not None:
        return Linear(value, column.linear.form(row))
    return Cell(name, row, column)


# --- building ----------------------------------------------------------------------------------------


def combine(op: str, parts: Sequence[Node]) -> Node:
    """An operator on nodes, as a leaf where its noise stays simple."""
    if len(parts) == 2 and all(isinstance(part, Linear) and part.is_number for part in parts):
        left, right = parts
        assert isinstance(left, Linear)
        assert isinstance(right, Linear)
        leaf = _linear(op, left, right)
        if isinstance(leaf, Linear) and not math.isfinite(leaf.value):
            # Beyond the largest float, as after a division by nearly zero, nothing can be said.
            return NULL
        if leaf is not None:
            return leaf
    if op == "surely":
        return Applied(op, tuple(parts), _is_surely_positive(parts[0]))
    return Applied(op, tuple(parts), _apply(op, [part.value for part in parts]), is_leaf=op in STATISTICS)


def _is_surely_positive(node: Node) -> bool | None:
    """Whether the interval of a number lies above 0; where the number is 0, that is rare."""
    low = result_of(node).lo
    return None if node.value is None else low is not None and low > 0


def _linear(op: str, left: Linear, right: Linear) -> Linear | ReleasedQuotient | None:
    if op in {"+", "-"}:
        sign = 1 if op == "+" else -1
        return Linear(left.value + sign * right.value, add_forms((1, left.form), (sign, right.form)))
    if op == "*" and not (left.form and right.form):
        factor, noisy = (right, left) if left.form else (left, right)
        return Linear(left.value * right.value, scale_form(noisy.form, factor.value))
    if op == "/" and right.form:
        return ReleasedQuotient(left, right)
    if op == "/" and right.value:
        return Linear(left.value / right.value, scale_form(left.form, 1 / right.value))
    return None


def add_nodes(nodes: Sequence[Node]) -> Node:
    """The sum of several nodes; those without a value are left out, as SUM does."""
    known = [node for node in nodes if node.value is not None]
    if not known:
        return NULL
    linear = [node for node in known if isinstance(node, Linear)]
    if len(linear) < len(known):
        return Applied("sum", tuple(known), math.fsum(node.value for node in known))
    values = [node.value for node in linear]
    total = sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)
    return Linear(total, add_forms(*((1.0, node.form) for node in linear)))


# --- intervals ---------------------------------------------------------------------------------------


def result_of(node: Node, confidence: float = CONFIDENCE) -> Result:
    """The value of a node and its interval."""
    count = max(1, len(set(leaves_of(node))))
    ends = _ends(node, (1 - confidence) / count)
    low, high = (None, None) if ends is None or node.value is None else ends
    return Result(node.value, low, high)


def column_of_nodes(nodes: Sequence[Node], name: str, *, whole: bool, nonnegative: bool) -> Noisy:
    """A computed column; its noise is kept where it is linear in every row."""
    results: dict[int, Result] = {}
    for node in nodes:
        # The total of a partition stands in many rows.
        if id(node) not in results:
            results[id(node)] = result_of(node)
    rows = [results[id(node)] for node in nodes]
    linear = [node.form for node in nodes if isinstance(node, Linear)]
    return Noisy(
        values=tuple(result.value for result in rows),
        lo=tuple(result.lo for result in rows),
        hi=tuple(result.hi for result in rows),
        text=name,
        noise="computed from released numbers",
        whole=whole,
        nonnegative=nonnegative,
        linear=CombinedNoise(tuple(linear)) if len(linear) == len(nodes) else None,
    )


def _ends(node: Node, beta: float) -> tuple[Any, Any] | None:
    """The ends of an interval whose noisy leaves fail with probability at most β each."""
    if isinstance(node, Linear):
        if not node.form:
            return node.value, node.value
        half = half_width(node.form, beta)
        return node.value - half, node.value + half
    if isinstance(node, ReleasedQuotient):
        return _quotient(node, beta)
    if isinstance(node, Cell):
        return _cell_ends(node, beta)
    if isinstance(node, Unbounded) or node.op in _COMPARE or node.op in {"and", "or", "not", "surely"}:
        return None
    if node.is_leaf:
        return statistic_ends(node, beta, _ends)
    parts = [_ends(part, beta) for part in node.parts]
    if node.op == "within" and (parts[0] is None or None in parts[0]):
        # Without an interval, the exact number is still between the ends.
        return node.parts[1].value, node.parts[2].value
    if any(part is None or None in part for part in parts):
        return None
    return _hull(node.op, [part for part in parts if part is not None])


def _quotient(node: ReleasedQuotient, beta: float) -> tuple[float, float] | None:
    top, bottom = (node.top.value, node.top.form), (node.bottom.value, node.bottom.form)
    if len(node.top.form) + len(node.bottom.form) <= _LONGEST_QUOTIENT:
        return quotient_ends(top, bottom, beta)
    parts = [_ends(part, beta / 2) for part in (node.top, node.bottom)]
    return _hull("/", [part for part in parts if part is not None])


def _cell_ends(node: Cell, beta: float) -> tuple[Any, Any] | None:
    column, confidence = node.column, 1 - beta
    if column.interval is not None:
        lows, highs = column.interval(confidence)
        return lows[node.row], highs[node.row]
    # The ends that were released with it hold with 95 %, and no other confidence is known.
    return (column.lo[node.row], column.hi[node.row]) if confidence <= CONFIDENCE + 1e-12 else None


_COMPARE: dict[str, Callable[..., Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: e to this power is still a float.
_LARGEST_EXPONENT = 709


def _power(x: float, exponent: float) -> float | None:
    """x to a public power; None where that is no real number, or too large for a float."""
    try:
        power = x**exponent
    except (OverflowError, ZeroDivisionError):
        return None
    return power if not isinstance(power, complex) and math.isfinite(power) else None


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": lambda left, *right: left - right[0] if right else -left,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else None,
    "abs": abs,
    "round": round,
    "least": min,
    "greatest": max,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else None,
    "ln": lambda x: math.log(x) if x > 0 else None,
    "exp": lambda x: math.exp(x) if x < _LARGEST_EXPONENT else None,
    "power": _power,
    "within": lambda x, low, high: min(max(x, low), high),
    "sum": lambda *parts: math.fsum(parts),
    "not": operator.not_,
}


def _apply(op: str, values: list[Any]) -> Any:
    """The result of an operator, with the three truth values of SQL."""
    if op in {"and", "or"}:
        decisive = op == "or"
        if any(value is decisive for value in values):
            return decisive
        return None if None in values else not decisive
    if any(value is None for value in values):
        return None
    return (_COMPARE.get(op) or _ARITHMETIC.get(op) or STATISTICS[op])(*values)


_MONOTONE = {"+", "round", "least", "greatest", "sum", "exp", "ln", "within"}


def _hull(op: str, parts: list[tuple[Any, Any]]) -> tuple[Any, Any] | None:
    """The interval of the result, from those of the operands; None if there is no finite one."""
    los, his = [low for low, _ in parts], [high for _, high in parts]
    if op in _MONOTONE:
        ends = _apply(op, los), _apply(op, his)
        return None if None in ends else ends
    if op == "sqrt":
        # The root exists only for the part of the interval from 0 on.
        return (math.sqrt(max(los[0], 0)), math.sqrt(his[0])) if his[0] >= 0 else None
    if op == "power":
        return _power_ends(los[0], his[0], los[1])
    if op == "-":
        return (los[0] - his[1], his[0] - los[1]) if len(parts) == 2 else (-his[0], -los[0])
    if op == "abs":
        inside = los[0] <= 0 <= his[0]
        return 0 if inside else min(abs(los[0]), abs(his[0])), max(abs(los[0]), abs(his[0]))
    if op == "/" and los[1] <= 0 <= his[1]:
        return None
    corners = [_apply(op, [x, y]) for x in (los[0], his[0]) for y in (los[1], his[1])]
    finite = [corner for corner in corners if not math.isnan(corner)]
    return (min(finite), max(finite)) if len(finite) == len(corners) else None


def _power_ends(low: float, high: float, exponent: float) -> tuple[Any, Any] | None:
    """The ends of a public power of a number between `low` and `high`."""
    if low <= 0 and (exponent != int(exponent) or exponent < 0):
        return None
    corners = [_power(end, exponent) for end in (low, high)]
    if low <= 0 <= high and exponent:
        corners.append(0.0)
    known = [corner for corner in corners if corner is not None]
    return (min(known), max(known)) if len(known) == len(corners) else None
