# SPDX-License-Identifier: Apache-2.0
"""Questions about private tables, compiled to mechanisms.

    open.py     opening a data set, with an engine for its tables
    data/       what a data set is, and what an engine can be asked about its rows
    ask/        SQL and expressions to a question
    plan/       a question to one mechanism; compile.proof.md, why it is private
    answer/     released numbers to a table
    engines/    DuckDB, PostgreSQL, Spark and Polars, which make the sums

A question goes from `ask` through `plan` and an engine to `answer`. Imports go data ← ask ← answer ← plan; `engines`
imports `data` alone.

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

_FORMULAS = {"greatest", "least", "when"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        with naming_extras():
            home = "formula" if name in _FORMULAS else "aggregates"
            return getattr(import_module(f"discreet.tables.ask.{home}"), name)
    raise AttributeError(f"module 'discreet.tables' has no attribute {name!r}")
