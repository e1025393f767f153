# SPDX-License-Identifier: Apache-2.0
"""The five questions that everybody is asked, and the terms: who is protected, how well, and what is public.

An answer is a dictionary from the key of a group to the numbers of that group, in the order of `columns`.
"""

from __future__ import annotations

from dataclasses import dataclass

EPSILON, DELTA = 1.0, 1e-6  # of one whole question; δ only where the library or the question needs it
AT_MOST = 10  # rows of one user
BOUNDS = (0.0, 500.0)  # of an amount
QUANTILES = (0.25, 0.5, 0.75)
REGIONS = [f"region {i:02d}" for i in range(50)]  # public
PRODUCTS = [f"product {i:05d}" for i in range(10_000)]  # not told to anybody
BUDGET = 1_000.0  # of a session that is asked more than once: the later answers show how far they scatter

Answer = dict[str, list[float]]


class Unsupported(Exception):
    """The library has no way to answer this question under these terms."""


@dataclass(frozen=True)
class Question:
    """What is asked: for people, and in the SQL that a data base without privacy answers."""

    key: str
    title: str
    group: str
    columns: tuple[str, ...]
    sql: str

    @property
    def keys_are_public(self) -> bool:
        return self.group == "region"


_CLIPPED = f"greatest({BOUNDS[0]}, least({BOUNDS[1]}, amount))"
QUESTIONS = {
    question.key: question
    for question in (
        Question("Q1", "count by region", "region", ("count",), "COUNT(*)"),
        Question(
            "Q2",
            "clipped sum and mean by region",
            "region",
            ("sum", "mean"),
            f"SUM({_CLIPPED}), AVG({_CLIPPED})",
        ),
        Question("Q3", "count by product, keys unknown", "product", ("count",), "COUNT(*)"),
        Question(
            "Q4g",
            "quartiles by region",
            "region",
            tuple(f"quantile {q}" for q in QUANTILES),
            ", ".join(f"quantile_cont(amount, {q})" for q in QUANTILES),
        ),
        Question("Q5", "distinct users by region", "region", ("users",), "COUNT(DISTINCT user_id)"),
    )
}


def select(question: Question, table: str) -> str:
    """The question without privacy, in the SQL of DuckDB."""
    return f"SELECT {question.group}, {question.sql} FROM {table} GROUP BY {question.group}"


def as_answer(rows: list[tuple]) -> Answer:
    return {str(key): [float(number) for number in numbers] for key, *numbers in rows}
