# SPDX-License-Identifier: Apache-2.0
"""How tmlt.analytics is asked: on Spark, in local mode with all cores."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from questions import AT_MOST, BOUNDS, BUDGET, DELTA, EPSILON, QUANTILES, REGIONS, Answer, Question, as_answer
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PrivacyBudget,
    PureDPBudget,
    QueryBuilder,
    Session,
)

_SETTINGS = {
    "spark.driver.memory": "8g",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


def start(path: str, _variant: str) -> None:
    """The Java machine is up before anything is measured."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers import the library, too
    builder = SparkSession.builder.master("local[*]")
    builder = builder.config("spark.sql.warehouse.dir", str(Path(path).resolve().parent / "spark"))
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    builder.getOrCreate().range(1).count()


def open_table(path: str, question: Question, _variant: str) -> Session:
    rows = SparkSession.builder.getOrCreate().read.parquet(path)
    return Session.from_dataframe(
        privacy_budget=_spent(question, BUDGET),
        source_id="orders",
        dataframe=rows,
        protected_change=AddRowsWithID(id_column="user_id"),
    )


def ask(opened: Session, question: Question) -> Answer:
    query = QueryBuilder("orders")
    if question.key == "Q5":
        query = query.enforce(MaxGroupsPerID("region", AT_MOST)).enforce(MaxRowsPerGroupPerID("region", 1))
    else:
        query = query.enforce(MaxRowsPerID(AT_MOST))
    if question.keys_are_public:
        keys = KeySet.from_dict({"region": REGIONS})
        parts = _aggregates(query.groupby(keys), question)
    else:
        keys = opened.evaluate(query.get_groups(["product"]), _spent(question, 0.5))
        parts = [query.groupby(KeySet.from_dataframe(keys)).count()]
    share = 1.0 if question.keys_are_public else 0.5
    columns = [opened.evaluate(part, _spent(question, share / len(parts))).collect() for part in parts]
    found: dict[str, list[float]] = {}
    for rows in columns:
        for key, number in rows:
            found.setdefault(key, []).append(number)
    if question.key == "Q2":
        return as_answer([(key, total, total / max(1, count)) for key, (total, count) in found.items()])
    return as_answer([(key, *numbers) for key, numbers in found.items()])


def _aggregates(grouped: object, question: Question) -> list:
    low, high = BOUNDS
    match question.key:
        case "Q1":
            return [grouped.count()]
        case "Q2":
            return [grouped.sum("amount", low, high), grouped.count()]
        case "Q4g":
            return [grouped.quantile("amount", q, low, high) for q in QUANTILES]
        case _:
            return [grouped.count_distinct(["user_id"])]


def _spent(question: Question, share: float) -> PrivacyBudget:
    if question.keys_are_public:
        return PureDPBudget(EPSILON * share)
    return ApproxDPBudget(EPSILON * share, DELTA * share)
