# SPDX-License-Identifier: Apache-2.0
"""Windows over released rows: shares of a total, running totals, ranks, differences between
periods.

**Guarantee.** Post-processing: only the rows and numbers that were released are read. A window sees
the groups that the answer shows, after HAVING.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

from discreet.tables.algebra.types import Value
from discreet.tables.answer.evaluate import NULL, add_nodes, combine
from discreet.tables.answer.nodes import Applied, Linear, Node, Unbounded
from discreet.tables.ask.released import ReleasedExpression, ReleasedWindow

__all__ = ["sort_rows", "window_nodes"]

#: Numbers that the frames of one window read together; beyond that sums have no intervals.
_MOST_READ = 200_000
Evaluate = Callable[[ReleasedExpression], Sequence[Node]]
#: For each row of a partition the values that it is ordered by; rows of one rank are equals.
Ranks: TypeAlias = list[tuple[Value, ...]]


def window_nodes(window: ReleasedWindow, count: int, nodes_of: Evaluate) -> list[Node]:
    """The value of a window in each of `count` rows; `nodes_of` evaluates an expression in all of
    them.
    """
    partition = [nodes_of(key) for key in window.partition]
    order = [(nodes_of(key), descending) for key, descending in window.order]
    operand = None if window.of is None else nodes_of(window.of)
    parts: dict[tuple[Value, ...], list[int]] = {}
    for row in range(count):
        parts.setdefault(tuple(nodes[row].value for nodes in partition), []).append(row)
    values: list[Node] = [NULL] * count
    for unsorted_rows in parts.values():
        rows = unsorted_rows
        for nodes, descending in reversed(order):
            rows = sort_rows(rows, nodes, descending=descending)
        ranks = [tuple(nodes[row].value for nodes, _ in order) for row in rows]
        read = None if operand is None else [operand[row] for row in rows]
        for row, node in zip(rows, _part(window, ranks, read), strict=True):
            values[row] = node
    return values


def sort_rows(rows: Sequence[int], nodes: Sequence[Node], *, descending: bool) -> list[int]:
    """The rows in the order of a released value, NULL last; ties keep their order."""
    known = sorted(
        (row for row in rows if nodes[row].value is not None),
        key=lambda row: nodes[row].value,
        reverse=descending,
    )
    return known + [row for row in rows if nodes[row].value is None]


def _part(window: ReleasedWindow, ranks: Ranks, read: list[Node] | None) -> list[Node]:
    """The values of one partition, whose rows are in order; rows of the same rank are equals."""
    if window.name in _ORDINAL:
        return [Unbounded(number) for number in _ORDINAL[window.name](ranks)]
    assert read is not None or window.name == "count"
    size = len(ranks)
    if window.name in {"lag", "lead"}:
        assert read is not None
        step = window.offset if window.name == "lead" else -window.offset
        return [read[at + step] if 0 <= at + step < size else NULL for at in range(size)]
    frames = _frames(window, ranks)
    if not window.order and window.frame is None:
        return [_over(window.name, read, frames[0])] * size
    if read is not None and window.name in {"sum", "avg"} and sum(map(len, frames)) > _MOST_READ:
        return _without_intervals(window.name, read, frames)
    return [_over(window.name, read, frame) for frame in frames]


def _without_intervals(name: str, read: list[Node], frames: list[range]) -> list[Node]:
    """Sums and averages of very many numbers, from running totals."""
    values = [0.0 if node.value is None else float(node.value) for node in read]
    totals = [0.0, *accumulate(values)]
    counts = [0, *accumulate(node.value is not None for node in read)]
    nodes: list[Node] = []
    for frame in frames:
        known = counts[frame.stop] - counts[frame.start] if frame else 0
        total = totals[frame.stop] - totals[frame.start] if known else None
        nodes.append(Unbounded(total / known if total is not None and name == "avg" else total))
    return nodes


def _frames(window: ReleasedWindow, ranks: Ranks) -> list[range]:
    """The rows that each row's value is about."""
    size = len(ranks)
    if window.frame is not None:
        before, after = window.frame
        return [
            range(
                0 if before is None else min(max(0, at + before), size),
                size if after is None else min(max(0, at + after + 1), size),
            )
            for at in range(size)
        ]
    if not window.order:
        return [range(size)] * size
    ends = [0] * size
    for at in reversed(range(size)):
        ends[at] = ends[at + 1] if at + 1 < size and ranks[at + 1] == ranks[at] else at + 1
    return [range(end) for end in ends]


def _over(name: str, read: list[Node] | None, frame: range) -> Node:
    """A function of the rows of a frame; NULL is left out, as everywhere in SQL."""
    if read is None:
        return Linear(len(frame), {})
    nodes = read[frame.start : frame.stop]
    if name in {"first_value", "last_value"}:
        return nodes[0 if name == "first_value" else -1] if nodes else NULL
    known = [node for node in nodes if node.value is not None]
    if name == "count":
        return Linear(len(known), {})
    if not known:
        return NULL
    if name == "sum":
        return add_nodes(known)
    if name == "avg":
        return combine("/", [add_nodes(known), Linear(len(known), {})])
    if len(known) == 1:
        return known[0]
    choose = min if name == "min" else max
    op = "least" if name == "min" else "greatest"
    return Applied(op, tuple(known), choose(node.value for node in known))


def _row_numbers(ranks: Ranks) -> list[int]:
    return list(range(1, len(ranks) + 1))


def _ranks(ranks: Ranks) -> list[int]:
    numbers: list[int] = []
    for at, rank in enumerate(ranks):
        numbers.append(numbers[-1] if at and rank == ranks[at - 1] else at + 1)
    return numbers


def _dense_ranks(ranks: Ranks) -> list[int]:
    numbers: list[int] = []
    for at, rank in enumerate(ranks):
        numbers.append(1 if not at else numbers[-1] + (rank != ranks[at - 1]))
    return numbers


_ORDINAL: dict[str, Callable[[Ranks], list[int]]] = {
    "row_number": _row_numbers,
    "rank": _ranks,
    "dense_rank": _dense_ranks,
}
