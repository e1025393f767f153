# SPDX-License-Identifier: Apache-2.0
"""The columns that were asked for, from the numbers that were released: arithmetic, HAVING, ORDER BY, LIMIT.

**Guarantee.** Only released numbers and public values are read. The interval of an arithmetic expression is that of
interval arithmetic on intervals whose joint confidence is 95 % (each at 1 - 5 %/k for k noisy columns, where those that
hold together count as one).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from discreet.tables.answer.answer import CONFIDENCE, Answer, Noisy
from discreet.tables.ask.after import After, Column, Combined, Literal
from discreet.tables.ask.question import Order, Question

__all__ = ["arrange"]


class Value(NamedTuple):
    """A released value with the ends of its interval; the same three times for what is public."""

    at: Any
    lo: Any
    hi: Any


def arrange(answer: Answer, question: Question) -> Answer:
    """The answer with the outputs, the groups and the order that the question asks for."""
    chosen = list(range(len(answer.groups)))
    if question.having is not None:
        kept = _values(answer, question.having)
        chosen = [at for at in chosen if kept[at].at is True]
    for order in reversed(question.order):
        chosen = _sorted(answer, order, chosen)
    if question.limit is not None:
        chosen = chosen[: question.limit]
    shown = _outputs(answer, question) if question.outputs else answer
    return shown.with_(
        groups=tuple(shown.groups[at] for at in chosen),
        columns={name: _taken(column, chosen) for name, column in shown.columns.items()},
    )


def _outputs(answer: Answer, question: Question) -> Answer:
    keys: list[tuple[str, int]] = []
    columns: dict[str, Noisy] = {}
    for output in question.outputs:
        if isinstance(output.of, Column) and output.of.name in answer.keys:
            keys.append((output.name, answer.keys.index(output.of.name)))
        elif isinstance(output.of, Column):
            columns[output.name] = answer.columns[output.of.name]
        else:
            columns[output.name] = _computed(answer, output.of, output.name)
    groups = tuple(tuple(group[at] for _, at in keys) for group in answer.groups)
    return answer.with_(keys=tuple(name for name, _ in keys), groups=groups, columns=columns)


def _computed(answer: Answer, expression: After, name: str) -> Noisy:
    values = _values(answer, expression)
    return Noisy(
        values=tuple(value.at for value in values),
        lo=tuple(value.lo for value in values),
        hi=tuple(value.hi for value in values),
        text=name,
        noise="computed from released numbers",
        whole=_is_whole(answer, expression),
        nonnegative=_is_nonnegative(answer, expression),
    )


def _is_whole(answer: Answer, expression: After) -> bool:
    """Whether it is a number of things: counts that are added, subtracted or multiplied."""
    if isinstance(expression, Column):
        return expression.name in answer.columns and answer.columns[expression.name].whole
    if isinstance(expression, Literal):
        return isinstance(expression.value, int)
    if expression.op == "round" and len(expression.parts) == 1:
        return True
    whole = {"+", "-", "*", "abs", "least", "greatest"}
    return expression.op in whole and all(_is_whole(answer, part) for part in expression.parts)


def _is_nonnegative(answer: Answer, expression: After) -> bool:
    """Whether it cannot be below zero."""
    if isinstance(expression, Column):
        return expression.name in answer.columns and answer.columns[expression.name].nonnegative
    if isinstance(expression, Literal):
        return isinstance(expression.value, int | float) and expression.value >= 0
    parts = [_is_nonnegative(answer, part) for part in expression.parts]
    if expression.op in {"abs", "greatest"}:
        return expression.op == "abs" or any(parts)
    return expression.op in {"+", "*", "/", "round", "least"} and all(parts)


def _taken(column: Noisy, chosen: list[int]) -> Noisy:
    def taken(part: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(part[at] for at in chosen)

    def interval(confidence: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        assert column.interval is not None
        lo, hi = column.interval(confidence)
        return taken(lo), taken(hi)

    ends = {"values": taken(column.values), "lo": taken(column.lo), "hi": taken(column.hi)}
    known = None if column.interval is None else interval
    return replace(column, **ends, interval=known)  # type: ignore[arg-type]


def _sorted(answer: Answer, order: Order, chosen: list[int]) -> list[int]:
    """By a released value, NULL last; ties stay in the order of the keys."""
    values = _values(answer, order.of)
    known = [at for at in chosen if values[at].at is not None]
    known.sort(key=lambda at: values[at].at, reverse=order.descending)
    return known + [at for at in chosen if values[at].at is None]


# --- expressions on released values -----------------------------------------------------------------


def _values(answer: Answer, expression: After) -> list[Value]:
    noisy = sorted(set(_noisy_names(answer, expression)))
    apart = {answer.columns[name].together or name for name in noisy}
    confidence = 1 - (1 - CONFIDENCE) / len(apart) if len(apart) > 1 else CONFIDENCE
    known = {name: _at(answer.columns[name], confidence) for name in noisy}
    known |= {
        name: [Value(group[at], group[at], group[at]) for group in answer.groups]
        for at, name in enumerate(answer.keys)
    }
    return [_evaluate(expression, known, at) for at in range(len(answer.groups))]


def _noisy_names(answer: Answer, expression: After) -> Iterable[str]:
    if isinstance(expression, Column) and expression.name in answer.columns:
        yield expression.name
    for part in expression.parts if isinstance(expression, Combined) else ():
        yield from _noisy_names(answer, part)


def _at(column: Noisy, confidence: float) -> list[Value]:
    lo, hi = (column.lo, column.hi) if column.interval is None else column.interval(confidence)
    return [Value(*three) for three in zip(column.values, lo, hi, strict=True)]


def _evaluate(expression: After, known: dict[str, list[Value]], at: int) -> Value:
    if isinstance(expression, Column):
        return known[expression.name][at]
    if isinstance(expression, Literal):
        return Value(expression.value, expression.value, expression.value)
    parts = [_evaluate(part, known, at) for part in expression.parts]
    value = _apply(expression.op, [part.at for part in parts])
    lo, hi = _ends(expression.op, parts)
    return Value(value, lo, hi)


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
    """An operator on values, with SQL's three truth values."""
    if op in {"and", "or"}:
        decisive = op == "or"
        if any(value is decisive for value in values):
            return decisive
        return None if None in values else not decisive
    if any(value is None for value in values):
        return None
    return (_COMPARE.get(op) or _ARITHMETIC[op])(*values)


_MONOTONE = {"+", "round", "least", "greatest"}


def _ends(op: str, parts: list[Value]) -> tuple[Any, Any]:
    """The hull of what the operator gives on the intervals of its parts; None where nothing can be said."""
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
