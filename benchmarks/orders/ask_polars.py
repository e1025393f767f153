# SPDX-License-Identifier: Apache-2.0
"""The questions without privacy, in Polars."""

from __future__ import annotations

import polars as pl
from questions import BOUNDS, QUANTILES, Answer, Question, as_answer

_AMOUNT = pl.col("amount").clip(*BOUNDS)
_AGGREGATES = {
    "Q1": [pl.len()],
    "Q2": [_AMOUNT.sum().alias("sum"), _AMOUNT.mean().alias("mean")],
    "Q3": [pl.len()],
    "Q4g": [pl.col("amount").quantile(q, "linear").alias(str(q)) for q in QUANTILES],
    "Q5": [pl.col("user_id").n_unique()],
}


def open_table(path: str, _question: Question, _variant: str) -> pl.LazyFrame:
    return pl.scan_parquet(path)


def ask(opened: pl.LazyFrame, question: Question) -> Answer:
    return as_answer(opened.group_by(question.group).agg(_AGGREGATES[question.key]).collect().rows())
