# SPDX-License-Identifier: Apache-2.0
"""Computes the columns of a question from the released numbers: HAVING, windows, arithmetic,
QUALIFY, ORDER BY, LIMIT, in this order.

**Guarantee.** Only released numbers and public values are read (`evaluate.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.tables.answer.evaluate import column_of_nodes, evaluate
from discreet.tables.answer.nodes import Node
from discreet.tables.answer.noisy import Noisy
from discreet.tables.answer.windows import sort_rows, window_nodes
from discreet.tables.ask.question import Question
from discreet.tables.ask.released import (
    PublicValue,
    ReleasedColumn,
    ReleasedExpression,
    ReleasedWindow,
)

if TYPE_CHECKING:
    from discreet.tables.answer.answer import Answer

__all__ = ["arrange", "computed_column", "nodes_of"]


def arrange(answer: Answer, question: Question) -> Answer:
    """The answer with the columns, groups and order of the question."""
    if question.having is not None:
        answer = answer.take(_passing(answer, question.having))
    # A range takes no room, and most questions keep all rows.
    rows: Sequence[int] = range(len(answer))
    if question.qualify is not None:
        rows = _passing(answer, question.qualify)
    for order in reversed(question.order):
        rows = sort_rows(rows, nodes_of(answer, order.of), descending=order.descending)
    if question.limit is not None:
        rows = rows[: question.limit]
    arranged = _outputs(answer, question) if question.outputs else answer
    return arranged if rows == range(len(arranged)) else arranged.take(rows)


def _passing(answer: Answer, condition: ReleasedExpression) -> list[int]:
    return [row for row, node in enumerate(nodes_of(answer, condition)) if node.value is True]


def nodes_of(answer: Answer, expression: ReleasedExpression) -> Sequence[Node]:
    """An expression in all rows of an answer."""
    keys = {name: [group[at] for group in answer.groups] for at, name in enumerate(answer.keys)}

    def windows(window: ReleasedWindow) -> Sequence[Node]:
        return window_nodes(window, len(answer), lambda of: nodes_of(answer, of))

    return evaluate(expression, keys, answer.columns, windows, range(len(answer)))


def _outputs(answer: Answer, question: Question) -> Answer:
    keys: list[tuple[str, int]] = []
    columns: dict[str, Noisy] = {}
    for output in question.outputs:
        if isinstance(output.of, ReleasedColumn) and output.of.name in answer.keys:
            keys.append((output.name, answer.keys.index(output.of.name)))
        elif isinstance(output.of, ReleasedColumn):
            columns[output.name] = answer.columns[output.of.name]
        else:
            columns[output.name] = computed_column(answer, output.of, output.name)
    order = [at for _, at in keys]
    groups = answer.groups
    if order != list(range(len(answer.keys))):
        groups = tuple(tuple(group[at] for at in order) for group in groups)
    return replace(answer, keys=tuple(name for name, _ in keys), groups=groups, columns=columns)


def computed_column(answer: Answer, expression: ReleasedExpression, name: str) -> Noisy:
    """A column that is computed from the released numbers."""
    nodes = nodes_of(answer, expression)
    return column_of_nodes(
        nodes,
        name,
        whole=_is_whole(answer, expression),
        nonnegative=_is_nonnegative(answer, expression),
    )


def _is_whole(answer: Answer, expression: ReleasedExpression) -> bool:
    """Whether the exact value is whole: sums, differences and products of whole numbers."""
    if isinstance(expression, ReleasedColumn):
        return expression.name in answer.columns and answer.columns[expression.name].whole
    if isinstance(expression, PublicValue):
        return isinstance(expression.value, int)
    if isinstance(expression, ReleasedWindow):
        if expression.of is None or expression.name == "count":
            return True
        return expression.name != "avg" and _is_whole(answer, expression.of)
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
    if isinstance(expression, ReleasedWindow):
        counts = expression.of is None or expression.name == "count"
        return counts or (expression.of is not None and _is_nonnegative(answer, expression.of))
    parts = [_is_nonnegative(answer, part) for part in expression.parts]
    if expression.op in {"abs", "greatest"}:
        return expression.op == "abs" or any(parts)
    if expression.op in {"sqrt", "exp"}:
        return True
    if expression.op == "within":
        return parts[1]
    return expression.op in {"+", "*", "/", "round", "least", "power"} and all(parts[:2])
