# SPDX-License-Identifier: Apache-2.0
"""How discreet is asked: SQL in a session, with a pure ε or with (ε, δ)."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

import duckdb  # noqa: F401 - the engine is loaded now, as those of the peers are
from questions import (
    AT_MOST,
    BOUNDS,
    BUDGET,
    DELTA,
    EPSILON,
    QUANTILES,
    REGIONS,
    Answer,
    Question,
    Unsupported,
    as_answer,
)

import discreet as dp

# Modules that load on first use are loaded now: importing is not part of the question.
for _package in ("tables", "ledger", "mechanisms", "privacy", "noise"):
    for _module in pkgutil.walk_packages(
        importlib.import_module(f"discreet.{_package}").__path__, f"discreet.{_package}."
    ):
        importlib.import_module(_module.name)

_SELECT = {
    "Q1": "COUNT(*) AS a",
    "Q2": "SUM(amount) AS a, AVG(amount) AS b",
    "Q3": "COUNT(*) AS a",
    "Q4g": ", ".join(f"QUANTILE(amount, {q}) AS {name}" for q, name in zip(QUANTILES, "abc", strict=True)),
    "Q5": "COUNT(DISTINCT user_id) AS a",
}


@dataclass(frozen=True)
class _Table:
    session: dp.Session
    pure: bool


def open_table(path: str, question: Question, variant: str) -> _Table:
    if variant == "pure" and not question.keys_are_public:
        raise Unsupported("keys that nobody has stated need a δ")
    data = dp.open(
        path,
        protect=dp.each("user_id", at_most=AT_MOST),
        columns={
            "region": dp.column("text", values=REGIONS),
            "amount": dp.column("real", bounds=BOUNDS),
        },
    )
    limit = dp.Limit.filter(epsilon=BUDGET * EPSILON, delta=BUDGET * DELTA)
    return _Table(dp.Session(data, limit=limit), pure=variant == "pure")


def ask(opened: _Table, question: Question) -> Answer:
    text = f"SELECT {question.group}, {_SELECT[question.key]} FROM orders GROUP BY {question.group}"
    delta = {} if opened.pure and question.keys_are_public else {"delta": DELTA}
    found = opened.session.sql(text, epsilon=EPSILON, **delta)
    places = [found.header.index(name) for name in (question.group, *"abc"[: len(question.columns)])]
    return as_answer([tuple(row[place] for place in places) for row in found.rows()])
