# SPDX-License-Identifier: Apache-2.0
"""A small private table, its description and its release, as files."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import parquet

WARDS = ("east", "north", "south", "west")
TOML = """
[dataset]
source = "visits.parquet"
name = "visits"
version = "2026-01"
unit = "patient_id"
word = "patient"

[limits]
rows_per_unit = 2

[columns.ward]
values = ["east", "north", "south", "west"]
source = "the map of the hospital"

[columns.days]
bounds = [0, 60]
source = "the rules of the hospital"
"""
BUDGET = """
[budget]
epsilon = 1.0
delta = 1e-6
ledger = "visits.ledger"
"""
RELEASE = """
[release]
name = "annual-2026"
data = "visits.toml"
epsilon = 0.1
analyst = "ana"
purpose = "annual report"

[[table]]
name = "by_ward"
sql = "SELECT ward, COUNT(*), AVG(days) FROM visits GROUP BY ward"

[[table]]
name = "total"
sql = "SELECT COUNT(*) FROM visits"
epsilon = 0.2
format = "csv"
"""
COUNTS = '"SELECT ward, COUNT(*) FROM visits GROUP BY ward"'


def make(folder, *, budget=True, limits=None, people=300):
    """The files in a folder."""
    rows = [
        (person, WARDS[person % 4], person % 30) for person in range(people) for _ in range(1 + person % 2)
    ]
    columns = dict(zip(("patient_id", "ward", "days"), map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), folder / "visits.parquet")
    text = TOML if limits is None else TOML.replace("rows_per_unit = 2", f"rows_per_unit = {limits}")
    (folder / "visits.toml").write_text(text + (BUDGET if budget else ""), encoding="utf-8")
    (folder / "release.toml").write_text(RELEASE, encoding="utf-8")
