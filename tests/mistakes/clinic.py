# SPDX-License-Identifier: Apache-2.0
"""A small clinic whose rows can be told from everything else that an error may say, and the places where texts are run."""

from __future__ import annotations

import copy
import datetime as dt
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

import discreet as dp
from discreet import mechanisms, privacy, tables, testing

WARDS = ("A", "B", "C")
LIMIT = {"epsilon": 1000, "delta": 1e-3}
ROWS = [
    {
        "patient_id": 880_001 + person,
        "ward": WARDS[person % 3],
        "name": f"Quill{person:02d}",
        "days": 37 + 2 * (person % 11),
        "cost": 271.25 + person,
        "weight": 61.8125 + person,
        "came_on": dt.date(2031, 5, 1 + person % 28),
    }
    for person in range(60)
    for _ in range(1 + person % 2)
]
PATIENTS = [
    {"patient_id": 880_001 + person, "age": 40 + person, "ward": WARDS[person % 3]} for person in range(60)
]
SECRETS = frozenset(
    str(row[name]) for row in ROWS for name in ("patient_id", "name", "days", "cost", "weight", "came_on")
)
COLUMNS = {
    "ward": dp.column(values=WARDS),
    "days": dp.column(bounds=(0, 60)),
    "cost": dp.column(bounds=(0, 500)),
}
PUBLIC = pa.table({"ward": list(WARDS), "region": ["north", "north", "south"]})
PROTECT = dp.each("patient_id", at_most=2)


class Watched:
    """An engine that counts how often rows of private tables are read."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.name, self.reads = inner, inner.name, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def sums(self, asked: Any) -> Any:
        self.reads += 1
        return self.inner.sums(asked)

    def sizes(self, asked: Any) -> Any:
        self.reads += 1
        return self.inner.sizes(asked)


def watched(data: Any) -> Any:
    """The same data set, read through an engine that counts."""
    return replace(data, engine=Watched(data.engine))


def visits(protect: Any = PROTECT) -> Any:
    """One private table, and a public one."""
    source = pa.Table.from_pylist(ROWS)
    return watched(dp.open(source, protect, name="visits", columns=COLUMNS, public={"wards": PUBLIC}))


def clinic() -> Any:
    """Two private tables, and a public one."""
    sources = {"visits": pa.Table.from_pylist(ROWS), "patients": pa.Table.from_pylist(PATIENTS)}
    columns = {"visits": COLUMNS, "patients": {"age": dp.column(bounds=(0, 120))}}
    return watched(dp.open(sources, PROTECT, name="clinic", columns=columns, public={"wards": PUBLIC}))


def files(folder: Path) -> None:
    """The same as files."""
    table = pa.Table.from_pylist(ROWS)
    parquet.write_table(table, folder / "visits.parquet")
    csv.write_csv(table, folder / "visits.csv")
    csv.write_csv(PUBLIC, folder / "wards.csv")


class Here:
    """Python, with a session of its own on every data set that is handed over."""

    secrets = SECRETS

    def __init__(self, **data: Any) -> None:
        self.data = data
        self.sessions = {name: dp.Session(one, dp.Limit.filter(**LIMIT)) for name, one in data.items()}
        self.ledgers = [session.ledger for session in self.sessions.values()]
        words = {"inf": float("inf"), "nan": float("nan"), "session": self.sessions.get("data")}
        modules = {"dp": dp, "privacy": privacy, "mechanisms": mechanisms, "testing": testing, "pa": pa}
        short = {
            "col": dp.col,
            "Limit": dp.Limit,
            "Ledger": dp.Ledger,
            "count": tables.count,
            "mean": tables.mean,
        }
        standard = {"copy": copy, "datetime": dt, "json": json, "pickle": pickle}
        self.words = {**words, **modules, **short, **standard, **data, "table": pa.Table.from_pylist(ROWS)}

    def run(self, text: str) -> Any:
        exec(text, self.words)

    def spent(self) -> Any:
        written = sorted((path.name, len(dp.Ledger(path))) for path in Path.cwd().glob("*.ledger"))
        rows = [len(ledger) for ledger in self.ledgers]
        return written, rows, [getattr(one.engine, "reads", 0) for one in self.data.values()]


class Asked(Here):
    """SQL, asked of one data set; several questions are parted by a line."""

    def run(self, text: str) -> Any:
        for question in text.split("\n"):
            self.sessions["data"].sql(question, epsilon=1)


class Described:
    """A description, read from the folder where the data lie."""

    secrets = SECRETS

    def __init__(self, folder: Path) -> None:
        self.file = folder / "visits.toml"

    def run(self, text: str) -> Any:
        self.file.write_text(text, encoding="utf-8")
        dp.open(self.file).close()

    def spent(self) -> Any:
        return sorted(path.name for path in self.file.parent.iterdir() if path != self.file)
