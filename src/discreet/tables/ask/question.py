# SPDX-License-Identifier: Apache-2.0
"""A question about a private table: rows, keys, aggregates, and what is done to the noisy numbers
afterwards.

SQL (`sql.py`) and expressions (`query.py`) both become this, and only this is compiled to a
mechanism (`compile.py`). A question holds no data and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.tables.ask.released import ReleasedExpression
from discreet.tables.data.expr import Expr
from discreet.tables.data.sums import Relation

__all__ = ["AGGREGATES", "Aggregate", "AnswerColumn", "Key", "Question", "SortOrder"]

#: What can be asked of a group. `of` is a number on any grid, but for count (no `of`), units (no `of`), count_of
#: (anything) and mode (a key-like expression with public `values`).
AGGREGATES = (
    "count",  # COUNT(*)
    "count_of",  # COUNT(x): rows whose x is not NULL
    "units",  # COUNT(DISTINCT unit)
    "sum",
    "mean",
    "variance",
    "stddev",
    "quantile",  # `fraction`; the median is 1/2, MIN and MAX are extreme quantiles and say so
    "min",
    "max",
    "mode",  # `values`: the public candidates
)


@dataclass(frozen=True)
class Aggregate:
    """One noisy column."""

    kind: str
    of: Expr | None = None
    name: str = ""  # the column that it becomes
    text: str = ""  # as a person wrote it: AVG(days)
    fraction: tuple[int, int] | None = None  # of a quantile: (9, 10)
    values: tuple[Any, ...] | None = None  # of a mode


@dataclass(frozen=True)
class Key:
    """One column to group by. `values` are its public values (None among them if NULL is to be a
    group); None for values nobody has stated, which are then found by a private selection.
    """

    name: str
    of: Expr
    values: tuple[Any, ...] | None


@dataclass(frozen=True)
class AnswerColumn:
    """A column of the answer: a key, an aggregate, or arithmetic on released numbers."""

    name: str
    of: ReleasedExpression


@dataclass(frozen=True)
class SortOrder:
    """Sort by a column of the answer."""

    of: ReleasedExpression
    descending: bool = False


@dataclass(frozen=True)
class Question:
    """What is asked.

    `combinations` lists the public groups where they are known jointly (the rows of a public
    table); else the product of the keys' values is meant. `having`, `order` and `limit` act on
    released numbers only. `quotients` names aggregates that are divided with others: they are
    bounded alike, so that their quotient is that of the same rows.
    """

    rows: Relation
    aggregates: tuple[Aggregate, ...]
    keys: tuple[Key, ...] = ()
    outputs: tuple[AnswerColumn, ...] = ()
    having: ReleasedExpression | None = None
    order: tuple[SortOrder, ...] = ()
    limit: int | None = None
    text: str = ""
    combinations: tuple[tuple[Any, ...], ...] | None = None
    quotients: frozenset[str] = frozenset()
