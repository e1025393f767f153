# SPDX-License-Identifier: Apache-2.0
"""A question about a private table: rows, keys, aggregates, and the post-processing of the released
numbers.

SQL (`ask/sql`) and expressions (`query.py`) both become a question, and only a question is compiled
to a mechanism (`plan/compile.py`). A question holds no data and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.sums import Relation
from discreet.tables.ask.released import ReleasedExpression

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "AnswerColumn",
    "Key",
    "Question",
    "SortOrder",
    "Workload",
    "WorkloadAxis",
]

#: The kinds of aggregates. `of` is a number on any grid, except for count and units (no `of`), count_of (any expression)
#: and mode (an expression that could be a key, with public `values`).
AGGREGATES = (
    "count",  # COUNT(*)
    "count_of",  # COUNT(x): rows whose x is not NULL
    "units",  # COUNT(DISTINCT unit)
    "distinct",  # COUNT(DISTINCT x)
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
    """One noisy column of the answer.

    `name` is its name there, and `text` what the user wrote, such as AVG(days). `fraction` is the
    rank of a quantile, such as (9, 10), and `values` are the candidates of a mode.
    """

    kind: str
    of: Expr | None = None
    name: str = ""
    text: str = ""
    fraction: tuple[int, int] | None = None
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Key:
    """One column to group by.

    `values` are its public values, with None among them if NULL is a group. It is None for private
    keys, which key selection finds. `text` is what the user wrote.
    """

    name: str
    of: Expr
    values: tuple[Any, ...] | None
    text: str = field(default="", compare=False)


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
class WorkloadAxis:
    """An ordered key ("ranges", "prefixes") or the keys of a hierarchy ("tree").

    `leaves` are the values of an ordered key in their order, or the paths of a hierarchy, as
    tuples.
    """

    kind: str
    leaves: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Workload:
    """The tables of a question with grouping sets: CUBE, ROLLUP, GROUPING SETS, MARGINALS, RANGES.

    The keys of the `axes` come first; each table is there for every level of them. `sets` has the
    places of the other keys of each table, in increasing order, each set once. `objective` says
    which errors are to be small: "each", "cells", "worst", or the weight of each table. `grouping`
    is the name of the column of the answer that tells the tables apart.
    """

    sets: tuple[tuple[int, ...], ...]
    objective: str | tuple[tuple[tuple[int, ...], float], ...] = "each"
    grouping: str = "grouping"
    axes: tuple[WorkloadAxis, ...] = ()

    @property
    def first_category(self) -> int:
        """The number of keys of the axes."""
        return sum(len(axis.leaves[0]) for axis in self.axes)


@dataclass(frozen=True)
class Question:
    """A question about the rows of a relation.

    `combinations` lists the public groups if they are known jointly, as rows of a public table;
    otherwise the groups are the product of the keys' values. `having`, `qualify`, `order` and
    `limit` act on released numbers only. `quotients` names aggregates that a quotient or a
    comparison combines: they get the same weights, so that the quotient is about the same rows.
    With a `workload` there is a table for each of its sets of keys.
    """

    rows: Relation
    aggregates: tuple[Aggregate, ...]
    keys: tuple[Key, ...] = ()
    outputs: tuple[AnswerColumn, ...] = ()
    having: ReleasedExpression | None = None
    qualify: ReleasedExpression | None = None
    order: tuple[SortOrder, ...] = ()
    limit: int | None = None
    text: str = ""
    combinations: tuple[tuple[Any, ...], ...] | None = None
    quotients: frozenset[str] = frozenset()
    workload: Workload | None = None
