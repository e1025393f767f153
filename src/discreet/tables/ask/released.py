# SPDX-License-Identifier: Apache-2.0
"""What may be done to released numbers: arithmetic, comparison, logic, and windows over released
rows.

All of this is post-processing: it reads released values only, so it costs nothing and reveals
nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = [
    "WINDOWS",
    "PublicValue",
    "ReleasedColumn",
    "ReleasedExpression",
    "ReleasedOperation",
    "ReleasedWindow",
    "column_names",
    "grouping_column",
    "quotient_columns",
    "read_parts",
]


@dataclass(frozen=True)
class ReleasedColumn:
    """A released column: a key or an aggregate, by its name."""

    name: str


@dataclass(frozen=True)
class PublicValue:
    """A public value."""

    value: Any


@dataclass(frozen=True)
class ReleasedOperation:
    """An operator on released values: + - * / abs round least greatest sqrt ln exp power, = <> < <=
    > >=, and or not; `within` moves a number between two ends that its exact value never leaves;
    `surely` says whether a number is above 0 with 95 % confidence. Statistics of aggregates are
    those of `answer/statistics.py`.
    """

    op: str
    parts: tuple[ReleasedExpression, ...]


@dataclass(frozen=True)
class ReleasedWindow:
    """A function over the released rows of a partition, as OVER in SQL.

    `name` is one of WINDOWS. `of` is what it reads, None for functions of the order alone. With an
    `order` a sum, average, count, minimum or maximum runs over the rows up to this one and its
    equals. With a `frame` it runs over the rows from the first to the second number, counted from
    this one; None is the end of the partition. `offset` is that of lag and lead.
    """

    name: str
    of: ReleasedExpression | None
    partition: tuple[ReleasedExpression, ...] = ()
    order: tuple[tuple[ReleasedExpression, bool], ...] = ()
    offset: int = 1
    frame: tuple[int | None, int | None] | None = None


#: The functions of windows over released rows.
WINDOWS = (
    "sum",
    "avg",
    "count",
    "min",
    "max",
    "row_number",
    "rank",
    "dense_rank",
    "lag",
    "lead",
    "first_value",
    "last_value",
)

ReleasedExpression = ReleasedColumn | PublicValue | ReleasedOperation | ReleasedWindow


def read_parts(of: ReleasedExpression) -> tuple[ReleasedExpression, ...]:
    """The expressions that an expression is made of."""
    if isinstance(of, ReleasedOperation):
        return of.parts
    if isinstance(of, ReleasedWindow):
        read = () if of.of is None else (of.of,)
        return (*read, *of.partition, *(key for key, _ in of.order))
    return ()


def column_names(of: ReleasedExpression) -> set[str]:
    """The released columns that are read."""
    if isinstance(of, ReleasedColumn):
        return {of.name}
    return set().union(*map(column_names, read_parts(of)))


def quotient_columns(of: ReleasedExpression) -> set[str]:
    """The released columns that are divided with, or compared with, another one."""
    compares = isinstance(of, ReleasedOperation) and of.op in {"/", "=", "<>", "<", "<=", ">", ">="}
    combined = column_names(of) if compares else set()
    return (combined if len(combined) > 1 else set()).union(*map(quotient_columns, read_parts(of)))


def grouping_column(key: str) -> str:
    """The column that is 1 where a row of a question with grouping sets is a total over a key."""
    return f"GROUPING({key})"
