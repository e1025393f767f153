# SPDX-License-Identifier: Apache-2.0
"""Computes the columns of a question from the released numbers: arithmetic, HAVING, ORDER BY,
LIMIT.

**Guarantee.** Only released numbers and public values are read. The interval of an expression is
computed by interval arithmetic on intervals with a joint confidence of 95 %: each of k noisy
columns has the confidence 1 - 5 %/k, where columns whose intervals hold jointly count as one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from discreet.tables.answer.answer import CONFIDENCE, Answer, Noisy
from discreet.tables.ask.question import Question, SortOrder
from discreet.tables.ask.released import PublicValue, ReleasedColumn, ReleasedExpression, ReleasedOperation

__all__ = ["arrange"]


class IntervalValue(NamedTuple):
    """A released value with the ends of its interval; a public value has itself as both ends."""

    value: Any
    lo: Any
    hi: Any


def arrange(answer: Answer, question: Question) -> Answer:
    """The answer with the columns, groups and order of the question."""
    chosen = list(range(len(answer.groups)))
    if question.having is not None:
        passed = _values(answer, question.having)
        chosen = [at for at in chosen if passed[at].value is True]
    for order in reversed(question.order):
        chosen = _sort(answer, order, chosen)
    if question.limit is not None:
        chosen = chosen[: question.limit]
    arranged = _outputs(answer, question) if question.outputs else answer
    return replace(
        arranged,
        groups=tuple(arranged.groups[at] for at in chosen),
        columns={name: _take(column, chosen) for name, column in arranged.columns.items()},
    )


def _outputs(answer: Answer, question: Question) -> Answer:
    keys: list[tuple[str, int]] = []
    columns: dict[str, Noisy] = {}
    for output in question.outputs:
        if isinstance(output.of, ReleasedColumn) and output.of.name in answer.keys:
            keys.append((output.name, answer.keys.index(output.of.name)))
        elif isinstance(output.of, ReleasedColumn):
            columns[output.name] = answer.columns[output.of.name]
        else:
            columns[output.name] = _computed_column(answer, output.of, output.name)
    groups = tuple(tuple(group[at] for _, at in keys) for group in answer.groups)
    return replace(answer, keys=tuple(name for name, _ in keys), groups=groups, columns=columns)


def _computed_column(answer: Answer, expression: ReleasedExpression, name: str) -> Noisy:
    values = _values(answer, expression)
    return Noisy(
        values=tuple(value.value for value in values),
        lo=tuple(value.lo for value in values),
        hi=tuple(value.hi for value in values),
        text=name,
        noise="computed from released numbers",
        whole=_is_whole(answer, expression),
        nonnegative=_is_nonnegative(answer, expression),
    )


def _is_whole(answer: Answer, expression: ReleasedExpression) -> bool:
    """Whether the exact value is whole: sums, differences and products of whole numbers."""
    if isinstance(expression, ReleasedColumn):
        return expression.name in answer.columns and answer.columns[expression.name].whole
    if isinstance(expression, PublicValue):
        return isinstance(expression.value, int)
    if expression.op == "round" and len(expression.parts) == 1:
        return True
    whole = {"+", "-", "*", "abs", "least", "greatest"}
    return expression.op in whole and all(_is_whole(answer, part) for part in expression.parts)


def _is_nonnegative(answer: Answer, expression: ReleasedExpression) -> bool:
    """Whether the exact value cannot be negative."""
    if isinstance(expression, ReleasedColumn):
        return expression.name in answer.columns and answer.columns[expression.name].nonnegative
    if isinstance(expression, PublicValue):
        return isinstance(expression.value, int | float) and expression.value >= 0
    parts = [_is_nonnegative(answer, part) for part in expression.parts]
    if expression.op in {"abs", "greatest"}:
        return expression.op == "abs" or any(parts)
    return expression.op in {"+", "*", "/", "round", "least"} and all(parts)


def _take(column: Noisy, chosen: list[int]) -> Noisy:
    def take(part: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(part[at] for at in chosen)

    def interval(confidence: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        assert column.interval is not None
        lo, hi = column.interval(confidence)
        return take(lo), take(hi)

    ends = {"values": take(column.values), "lo": take(column.lo), "hi": take(column.hi)}
    known = None if column.interval is None else interval
    return replace(column, **ends, interval=known)  # type: ignore[arg-type]


def _sort(answer: Answer, order: SortOrder, chosen: list[int]) -> list[int]:
    """The groups in the order of a released value, NULL last; ties keep the order of the keys."""
    values = _values(answer, order.of)
    known = [at for at in chosen if values[at].value is not None]
    known.sort(key=lambda at: values[at].value, reverse=order.descending)
    return known + [at for at in chosen if values[at].value is None]


# --- expressions on released values -----------------------------------------------------------------


def _values(answer: Answer, expression: ReleasedExpression) -> list[IntervalValue]:
    noisy = sorted(set(_noisy_names(answer, expression)))
    joint = {answer.columns[name].together or name for name in noisy}
    # The union bound over intervals that each hold on their own.
    confidence = 1 - (1 - CONFIDENCE) / len(joint) if len(joint) > 1 else CONFIDENCE
    known = {name: _at(answer.columns[name], confidence) for name in noisy}
    known |= {
        name: [IntervalValue(group[at], group[at], group[at]) for group in answer.groups]
        for at, name in enumerate(answer.keys)
    }
    return [_evaluate(expression, known, at) for at in range(len(answer.groups))]


def _noisy_names(answer: Answer, expression: ReleasedExpression) -> Iterable[str]:
    if isinstance(expression, ReleasedColumn) and expression.name in answer.columns:
        yield expression.name
    for part in expression.parts if isinstance(expression, ReleasedOperation) else ():
        yield from _noisy_names(answer, part)


def _at(column: Noisy, confidence: float) -> list[IntervalValue]:
    lo, hi = (column.lo, column.hi) if column.interval is None else column.interval(confidence)
    return [IntervalValue(*three) for three in zip(column.values, lo, hi, strict=True)]


def _evaluate(
    expression: ReleasedExpression, known: dict[str, list[IntervalValue]], at: int
) -> IntervalValue:
    if isinstance(expression, ReleasedColumn):
        return known[expression.name][at]
    if isinstance(expression, PublicValue):
        return IntervalValue(expression.value, expression.value, expression.value)
    parts = [_evaluate(part, known, at) for part in expression.parts]
    value = _apply(expression.op, [part.value for part in parts])
    return IntervalValue(value, *_ends(expression.op, parts))


_COMPARE: dict[str, Callable[..., Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": lambda left, *right: left - right[0] if right else -left,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else None,
    "abs": abs,
    "round": round,
    "least": min,
    "greatest": max,
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
    return (_COMPARE.get(op) or _ARITHMETIC[op])(*values)


_MONOTONE = {"+", "round", "least", "greatest"}


def _ends(op: str, parts: list[IntervalValue]) -> tuple[Any, Any]:
    """The interval of the result, from those of the operands; None if there is no finite one."""
    if op in _COMPARE or op in {"and", "or", "not"}:
        return None, None
    if any(part.lo is None or part.hi is None for part in parts):
        return None, None
    los, his = [part.lo for part in parts], [part.hi for part in parts]
    if op in _MONOTONE:
        return _apply(op, los), _apply(op, his)
    if op == "-":
        return (los[0] - his[1], his[0] - los[1]) if len(parts) == 2 else (-his[0], -los[0])
    if op == "abs":
        inside = los[0] <= 0 <= his[0]
        return 0 if inside else min(abs(los[0]), abs(his[0])), max(abs(los[0]), abs(his[0]))
    if op == "/" and los[1] <= 0 <= his[1]:
        return None, None
    corners = [_apply(op, [x, y]) for x in (los[0], his[0]) for y in (los[1], his[1])]
    finite = [corner for corner in corners if not math.isnan(corner)]
    return (min(finite), max(finite)) if len(finite) == len(corners) else (None, None)
