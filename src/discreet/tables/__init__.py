# SPDX-License-Identifier: Apache-2.0
"""Questions about private tables, compiled to mechanisms.

    types.py, expr.py       values and expressions on one row, with proved bounds
    plan.py, engine.py      what an engine is asked: bounded sums of whole numbers
    engines/                DuckDB, PostgreSQL, Spark and Polars
    dataset.py, open.py     what is publicly known of a data set, and where it lies; toml.py, describe.py
    question.py             rows, keys, aggregates                              ◄ read this first
    sql/, query.py          SQL and expressions to a question; leaf.py, where a column is read
    compile.py              a question to one mechanism; compile.proof.md, why it is private
    answer.py               what comes back: values, intervals, what was withheld

The words for expressions are here: `count`, `mean`, …, `when`, `least`, `greatest`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from discreet.extras import naming_extras

__all__ = [
    "count",
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
    "when",
]

_HOMES = {"greatest": "formula", "least": "formula", "when": "formula"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        with naming_extras():
            return getattr(import_module(f"discreet.tables.{_HOMES.get(name, 'aggregates')}"), name)
    raise AttributeError(f"module 'discreet.tables' has no attribute {name!r}")
