# SPDX-License-Identifier: Apache-2.0
"""Questions about private tables, compiled to mechanisms.

    open.py     opening a data set, with an engine for its tables
    algebra/    expressions, relations and sums, and what an engine must do with them
    data/       what a data set is: its tables, and what is publicly known of them
    ask/        SQL and expressions to a question
    plan/       a question to one mechanism; compile.proof.md, why it is private
    answer/     released numbers to a table
    engines/    DuckDB, PostgreSQL, Spark and Polars, which make the sums

A question goes from `ask` through `plan` and an engine to `answer`. Imports go algebra ← data ← ask
← answer ← plan; `engines` imports `algebra` and `data`, and `workloads` nothing.

Here are the aggregates and functions of expressions (`count`, `mean`, …, `when`, `least`,
`greatest`), and the classes of what users hold: `Dataset`, `Each`, `Column`, `Query`,
`AggregateQuery`, `AggregateSpec`, `Expression`, `Answer` and `CubeAnswer`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.extras import naming_extras

if TYPE_CHECKING:
    from discreet.tables.answer.answer import Answer as Answer
    from discreet.tables.answer.cube import CubeAnswer as CubeAnswer
    from discreet.tables.ask.aggregates import AggregateSpec as AggregateSpec
    from discreet.tables.ask.aggregates import correlation as correlation
    from discreet.tables.ask.aggregates import count as count
    from discreet.tables.ask.aggregates import count_distinct as count_distinct
    from discreet.tables.ask.aggregates import covariance as covariance
    from discreet.tables.ask.aggregates import max as max  # noqa: A004 - as people say it
    from discreet.tables.ask.aggregates import mean as mean
    from discreet.tables.ask.aggregates import median as median
    from discreet.tables.ask.aggregates import min as min  # noqa: A004 - as people say it
    from discreet.tables.ask.aggregates import mode as mode
    from discreet.tables.ask.aggregates import quantile as quantile
    from discreet.tables.ask.aggregates import stddev as stddev
    from discreet.tables.ask.aggregates import sum as sum  # noqa: A004 - as people say it
    from discreet.tables.ask.aggregates import units as units
    from discreet.tables.ask.aggregates import variance as variance
    from discreet.tables.ask.aggregates import weighted_mean as weighted_mean
    from discreet.tables.ask.expressions import Expression as Expression
    from discreet.tables.ask.expressions import greatest as greatest
    from discreet.tables.ask.expressions import least as least
    from discreet.tables.ask.expressions import when as when
    from discreet.tables.ask.query import AggregateQuery as AggregateQuery
    from discreet.tables.ask.query import Query as Query
    from discreet.tables.ask.start import Dataset as Dataset
    from discreet.tables.data.dataset import Column as Column
    from discreet.tables.data.dataset import Each as Each
    from discreet.tables.plan.preview import Preview as Preview

__all__ = [
    "AggregateQuery",
    "AggregateSpec",
    "Answer",
    "Column",
    "CubeAnswer",
    "Dataset",
    "Each",
    "Expression",
    "Preview",
    "Query",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "greatest",
    "least",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "quantile",
    "stddev",
    "sum",
    "units",
    "variance",
    "weighted_mean",
    "when",
]

#: The module of each name; it is loaded when the name is first used.
_HOMES = {
    "AggregateQuery": "ask.query",
    "AggregateSpec": "ask.aggregates",
    "Answer": "answer.answer",
    "Column": "data.dataset",
    "CubeAnswer": "answer.cube",
    "Dataset": "ask.start",
    "Each": "data.dataset",
    "Expression": "ask.expressions",
    "Preview": "plan.preview",
    "Query": "ask.query",
    "count": "ask.aggregates",
    "correlation": "ask.aggregates",
    "count_distinct": "ask.aggregates",
    "covariance": "ask.aggregates",
    "weighted_mean": "ask.aggregates",
    "greatest": "ask.expressions",
    "least": "ask.expressions",
    "max": "ask.aggregates",
    "mean": "ask.aggregates",
    "median": "ask.aggregates",
    "min": "ask.aggregates",
    "mode": "ask.aggregates",
    "quantile": "ask.aggregates",
    "stddev": "ask.aggregates",
    "sum": "ask.aggregates",
    "units": "ask.aggregates",
    "variance": "ask.aggregates",
    "when": "ask.expressions",
}


def __getattr__(name: str) -> object:
    if name in __all__:
        with naming_extras():
            return getattr(import_module(f"discreet.tables.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'discreet.tables' has no attribute {name!r}")
