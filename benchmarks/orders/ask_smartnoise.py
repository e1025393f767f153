# SPDX-License-Identifier: Apache-2.0
"""How smartnoise-sql is asked: over a pandas frame, which it copies into SQLite, or over a PostgreSQL server."""

from __future__ import annotations

import postgres
import pyarrow.parquet as pq
from questions import AT_MOST, BOUNDS, DELTA, EPSILON, Answer, Question, Unsupported, as_answer
from snsql import Privacy, from_connection
from snsql.sql import PrivateReader

_SELECT = {
    "Q1": "COUNT(*) AS n",
    "Q2": "SUM(amount) AS total, AVG(amount) AS average",
    "Q3": "COUNT(*) AS n",
    "Q5": "COUNT(DISTINCT user_id) AS n",
}
_PARTS = {"Q1": 1, "Q2": 2, "Q3": 2, "Q5": 1}  # it spends ε on each: sum and count, count and the keys


def start(path: str, variant: str) -> None:
    if variant == "PostgreSQL":
        postgres.start(path)


def open_table(path: str, question: Question, variant: str) -> PrivateReader:
    if question.key not in _SELECT:
        raise Unsupported("no quantiles")
    rows = pq.read_metadata(path).num_rows
    terms = {
        "privacy": Privacy(epsilon=EPSILON / _PARTS[question.key], delta=DELTA),
        "metadata": _metadata(rows, censor=not question.keys_are_public),
    }
    if variant == "PostgreSQL":
        return from_connection(postgres.connected(path), engine="postgres", **terms)
    frame = pq.read_table(path, columns=["user_id", question.group, "amount"]).to_pandas()
    return from_connection(frame, engine="pandas", **terms)


def ask(opened: PrivateReader, question: Question) -> Answer:
    text = f"SELECT {question.group}, {_SELECT[question.key]} FROM public.orders GROUP BY {question.group}"
    return as_answer(opened.execute(text)[1:])


def _metadata(rows: int, *, censor: bool) -> dict:
    columns = {
        "user_id": {"type": "int", "private_id": True},
        "region": {"type": "string"},
        "product": {"type": "string"},
        "amount": {"type": "float", "lower": BOUNDS[0], "upper": BOUNDS[1]},
    }
    table = {"max_ids": AT_MOST, "rows": rows, "censor_dims": censor, "clamp_counts": False, **columns}
    return {"": {"public": {"orders": table}}}
