# SPDX-License-Identifier: Apache-2.0
"""The questions without privacy, in DuckDB: the floor of what an answer costs, and the truth."""

from __future__ import annotations

import duckdb
from questions import Answer, Question, as_answer, select


def open_table(path: str, _question: Question, _variant: str) -> str:
    return f"'{path}'"


def ask(opened: str, question: Question) -> Answer:
    return as_answer(duckdb.sql(select(question, opened)).fetchall())
