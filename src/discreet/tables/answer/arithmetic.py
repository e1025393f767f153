# SPDX-License-Identifier: Apache-2.0
"""Arithmetic between answers, and other tables made from them: sums, ratios, shares, a pivot, a
union.

**Guarantee.** Post-processing: only released answers are read. Intervals are computed from the
noise of both answers, where it is known; noises of different draws are independent, and a number
that stands in both answers is one number. Where an interval cannot be proved there is none. The
guarantee of the result is that of all answers in it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

from discreet.errors import BadParameter
from discreet.privacy.guarantee import Guarantee
from discreet.tables.answer.arrange import computed_column, nodes_of
from discreet.tables.answer.evaluate import column_of_nodes, combine
from discreet.tables.answer.linear import CombinedNoise, add_forms, deviation
from discreet.tables.answer.nodes import Linear, Node
from discreet.tables.answer.noisy import Noisy, Values
from discreet.tables.answer.windows import sort_rows
from discreet.tables.ask.question import SortOrder
from discreet.tables.ask.released import ReleasedColumn, ReleasedOperation, ReleasedWindow

if TYPE_CHECKING:
    from discreet.tables.answer.answer import Answer

__all__ = ["apply", "apply_number", "average", "in_order", "pivot", "running_total", "share", "stack"]

_WHOLE = {"+", "-", "*"}


def apply_number(op: str, answer: Answer, number: float, *, reflected: bool) -> Answer:
    """The answer with `x op number` in the place of each number x, or with `number op x`."""
    public = Linear(number, {})
    if reflected:
        return _map(answer, f"{number:g} {op} {{}}", lambda node: combine(op, [public, node]))
    return _map(answer, f"{{}} {op} {number:g}", lambda node: combine(op, [node, public]))


def apply(op: str, left: Answer, right: Answer) -> Answer:
    """The answer with `left op right` in the place of each number of `left`."""
    rows, others = _matching_rows(left, right)
    columns = {}
    for name, other in _matching_columns(left, right).items():
        mine, theirs = nodes_of(left, ReleasedColumn(name)), nodes_of(right, ReleasedColumn(other))
        nodes = [combine(op, [mine[row], theirs[at]]) for row, at in zip(rows, others, strict=True)]
        left_column, right_column = left.columns[name], right.columns[other]
        columns[name] = column_of_nodes(
            nodes,
            f"{left_column.text or name} {op} {right_column.text or other}",
            whole=op in _WHOLE and left_column.whole and right_column.whole,
            nonnegative=op != "-" and left_column.nonnegative and right_column.nonnegative,
        )
    unmatched = len(left) - len(rows) + len(right) - len(set(others))
    notes = (_unmatched_note(unmatched),) if unmatched else ()
    groups = tuple(left.groups[row] for row in rows)
    return replace(joint_answer([left, right], notes), groups=groups, columns=columns)


def _unmatched_note(count: int) -> str:
    groups = "1 group is" if count == 1 else f"{count} groups are"
    return f"{groups} left out, because only one of the answers shows {'it' if count == 1 else 'them'}."


def _map(answer: Answer, text: str, change: Callable[[Node], Node]) -> Answer:
    columns = {
        name: column_of_nodes(
            [change(node) for node in nodes_of(answer, ReleasedColumn(name))],
            text.format(column.text or name),
            whole=False,
            nonnegative=False,
        )
        for name, column in answer.columns.items()
    }
    return replace(answer, columns=columns)


def average(answers: Sequence[Answer]) -> Answer:
    """Repeated measurements of the same numbers, each weighted by the inverse of its variance."""
    first = answers[0]
    for other in answers[1:]:
        if other.keys != first.keys or {*other.columns} != {*first.columns}:
            raise _unlike_error(
                "their columns differ", "a.combine(b)   where b answers the same question as a"
            )
        if sorted(map(repr, other.groups)) != sorted(map(repr, first.groups)):
            raise _unlike_error("their groups differ", "a.combine(b)   where b shows the same groups as a")
    columns = {}
    for name, column in first.columns.items():
        measured = [
            [nodes_of(answer, ReleasedColumn(name))[row] for row in _matching_rows(first, answer)[1]]
            for answer in answers
        ]
        nodes = [_weighted_mean(name, nodes) for nodes in zip(*measured, strict=True)]
        columns[name] = column_of_nodes(nodes, column.text, whole=False, nonnegative=column.nonnegative)
        columns[name] = replace(columns[name], whole=column.whole)
    return replace(
        joint_answer(answers, ("Each number is a weighted mean of several releases of it.",)),
        columns=columns,
    )


def _weighted_mean(name: str, nodes: Sequence[Node]) -> Linear:
    """The mean of independent measurements with the least variance."""
    linear = [node for node in nodes if isinstance(node, Linear) and node.form and node.is_number]
    if len(linear) < len(nodes):
        raise BadParameter(
            "DP107",
            f"{name!r} cannot be combined.",
            why="only counts and sums have a noise whose variance is known.",
            fix="a.combine(b)   where both answer COUNT(*) or SUM(…)",
        )
    if len({frozenset(node.form) for node in linear}) == 1:
        return linear[0]
    weights = [1 / deviation(node.form) ** 2 for node in linear]
    parts = [weight / sum(weights) for weight in weights]
    value = sum(part * node.value for part, node in zip(parts, linear, strict=True))
    return Linear(value, add_forms(*((part, node.form) for part, node in zip(parts, linear, strict=True))))


def share(answer: Answer, within: Sequence[str]) -> Answer:
    """Each number as a share of the total of the groups that are shown, or of those that agree in
    `within`.
    """
    partition = tuple(ReleasedColumn(answer.key_name(name)) for name in within)

    def of(name: str) -> Noisy:
        number = ReleasedColumn(name)
        total = ReleasedWindow("sum", number, partition)
        column = computed_column(answer, ReleasedOperation("/", (number, total)), name)
        return replace(column, text=f"share of {answer.columns[name].text or name}", whole=False)

    return replace(answer, columns={name: of(name) for name in answer.columns})


def running_total(answer: Answer, within: Sequence[str]) -> Answer:
    """Each number and those of the rows before it, in the order of the answer."""
    partition = tuple(ReleasedColumn(answer.key_name(name)) for name in within)
    columns = {
        name: replace(
            computed_column(
                answer, ReleasedWindow("sum", ReleasedColumn(name), partition, frame=(None, 0)), name
            ),
            text=f"running total of {column.text or name}",
        )
        for name, column in answer.columns.items()
    }
    return replace(answer, columns=columns)


def in_order(answer: Answer, order: SortOrder) -> Answer:
    """The rows in the order of a released value, NULL last."""
    rows = sort_rows(list(range(len(answer))), nodes_of(answer, order.of), descending=order.descending)
    return answer.take(rows)


def pivot(answer: Answer, key: str) -> Answer:
    """The values of a key as columns: one row for each group of the other keys."""
    at = answer.keys.index(answer.key_name(key))
    other_keys = tuple(name for name in answer.keys if name != key)
    values = list(dict.fromkeys(group[at] for group in answer.groups))
    places = {(group[:at] + group[at + 1 :], group[at]): row for row, group in enumerate(answer.groups)}
    groups = tuple(dict.fromkeys(group for group, _ in places))
    columns = {}
    for value in values:
        rows = [places.get((group, value)) for group in groups]
        for name, column in answer.columns.items():
            label = str(value) if len(answer.columns) == 1 else f"{name}_{value}"
            columns[label] = replace(_pick(column, rows), text=f"{column.text or name}, {key} = {value}")
    if len(columns) < len(values) * len(answer.columns) or columns.keys() & set(other_keys):
        raise _unlike_error(
            "two columns would have one name", "give the keys of the question other names with  AS"
        )
    return replace(answer, keys=other_keys, groups=groups, columns=columns)


def _pick(column: Noisy, rows: Sequence[int | None]) -> Noisy:
    """Some rows of a column; None where there is no such row."""
    known = [row for row in rows if row is not None]
    if len(known) == len(rows):
        return column.take(known)

    def of(part: Values) -> Values:
        return tuple(None if row is None else part[row] for row in rows)

    return replace(
        column,
        values=of(column.values),
        lo=of(column.lo),
        hi=of(column.hi),
        interval=None,
        linear=None,
        together="",
    )


def stack(answers: Sequence[Answer]) -> Answer:
    """The rows of several answers below each other."""
    first = answers[0]
    if any(answer.keys != first.keys or [*answer.columns] != [*first.columns] for answer in answers):
        raise _unlike_error("their columns differ", "a.union(b)   where both have the columns of a")

    def below(name: str) -> Noisy:
        parts = [answer.columns[name] for answer in answers]
        forms = [
            [part.linear.form(row) for row in range(len(part.values))]
            for part in parts
            if part.linear is not None
        ]
        return replace(
            parts[0],
            values=tuple(value for part in parts for value in part.values),
            lo=tuple(end for part in parts for end in part.lo),
            hi=tuple(end for part in parts for end in part.hi),
            deviation=None,
            whole=all(part.whole for part in parts),
            nonnegative=all(part.nonnegative for part in parts),
            interval=None,
            together="",
            linear=CombinedNoise(tuple(chain.from_iterable(forms))) if len(forms) == len(parts) else None,
        )

    groups = tuple(group for answer in answers for group in answer.groups)
    return replace(
        joint_answer(answers, ()), groups=groups, columns={name: below(name) for name in first.columns}
    )


def joint_answer(answers: Sequence[Answer], notes: Sequence[str]) -> Answer:
    """The first answer, with the questions, the notes and the guarantee of all of them."""
    releases = {
        str(answer.receipt) if answer.receipt is not None else id(answer): answer for answer in answers
    }
    guarantees = [answer.guarantee for answer in releases.values() if answer.guarantee is not None]
    first = answers[0]
    return replace(
        first,
        question="; ".join(dict.fromkeys(answer.question for answer in answers if answer.question)),
        notes=(*dict.fromkeys(note for answer in answers for note in answer.notes), *notes),
        suppressed=" ".join(dict.fromkeys(answer.suppressed for answer in answers if answer.suppressed)),
        guarantee=reduce(Guarantee.__add__, guarantees) if len(guarantees) == len(releases) else None,
        receipt=first.receipt if len(releases) == 1 else None,
        private=all(answer.private for answer in answers),
    )


def _matching_rows(left: Answer, right: Answer) -> tuple[list[int], list[int]]:
    """The rows of both answers with the same keys; an answer without keys matches every row."""
    if not right.keys and len(right) == 1:
        return list(range(len(left))), [0] * len(left)
    if {*left.keys} != {*right.keys}:
        keys = f"GROUP BY {', '.join(left.keys)}" if left.keys else "no GROUP BY"
        raise _unlike_error("their keys differ", f"ask both with  {keys}")
    order = [right.keys.index(name) for name in left.keys]
    places = {tuple(group[at] for at in order): row for row, group in enumerate(right.groups)}
    if len(places) < len(right) or len(set(left.groups)) < len(left):
        raise _unlike_error(
            "a group stands in one of them twice", "a / b   where no group stands twice in a or b"
        )
    rows = [row for row, group in enumerate(left.groups) if group in places]
    return rows, [places[left.groups[row]] for row in rows]


def _matching_columns(left: Answer, right: Answer) -> dict[str, str]:
    if len(right.columns) == 1:
        return dict.fromkeys(left.columns, next(iter(right.columns)))
    if not set(left.columns) <= set(right.columns):
        raise _unlike_error(
            "their columns differ",
            f"name the column of the second question alike:  AS {_first_missing(left, right)}",
        )
    return {name: name for name in left.columns}


def _first_missing(left: Answer, right: Answer) -> str:
    return next(name for name in left.columns if name not in right.columns)


def _unlike_error(reason: str, fix: str) -> BadParameter:
    return BadParameter(
        "DP107",
        f"these answers cannot be put together: {reason}.",
        why="each number needs one number that belongs to it.",
        fix=fix,
    )
