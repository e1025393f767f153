# SPDX-License-Identifier: Apache-2.0
"""Opening a data set and a session: whom it protects, where it lies, what is known of its columns."""

from __future__ import annotations

import sqlite3

import pytest

from tests.mistakes.clinic import Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

PROTECT = 'protect=dp.each("patient_id", at_most=20)'
OPEN = f'dp.open("visits.parquet", {PROTECT}'
EACH = 'dp.each("patient_id", at_most=20)'
DAILY = 'dp.Session(dp.open("visits.parquet", dp.each("patient_id", at_most=5, per="day")), dp.Limit.filter(epsilon=9, delta=1e-5))'
WEEKS = "every='week', periods=4, start='2026-01-05', epsilon=1, delta=1e-6"
NUMBER = 'dp.column("integer", bounds = [0, 60])'


@pytest.fixture
def here(visits, folder):
    with sqlite3.connect(folder / "clinic.sqlite") as database:
        database.execute("CREATE TABLE visits (patient_id INTEGER, days INTEGER)")
        database.execute("CREATE TABLE beds (patient_id INTEGER)")
    database.close()
    (folder / "visits.xlsx").write_text("Quill07", encoding="utf-8")
    return Here(data=visits)


def shop(links: str) -> str:
    """Items that reach their customer through an order."""
    tables = '{"orders": pa.table({"uid": [1], "oid": [2]}), "items": pa.table({"oid": [2], "price": [3.5]})}'
    return f'dp.open({tables}, dp.each("uid", at_most=5, {links}))'


@mistakes(
    Mistake('dp.open("visits.parquet")', "DP107", OPEN + ")"),
    Mistake(
        shop('links={"items": "price -> orders.oid"}'),
        "DP403",
        'links={"items": "oid -> orders.oid"}',
        shop('links={"items": "oid -> orders.oid"}'),
    ),
    Mistake(
        shop('links={"item": "oid -> orders.oid"}'),
        "DP403",
        'links={"items": "oid -> orders.oid"}',
        shop('links={"items": "oid -> orders.oid"}'),
    ),
    Mistake(
        'data.view("visits", "SELECT * FROM visits")',
        "DP701",
        'data.view("long_visits", "SELECT * FROM visits WHERE days > 7")',
    ),
    Mistake('dp.open("visits.parquet", protect="patient_id")', "DP107", PROTECT, OPEN + ")"),
    Mistake(
        f'dp.open("visits.parquet", [{EACH}, dp.each("ward", at_most=9)])',
        "DP107",
        f"protect={EACH}",
        OPEN + ")",
    ),
    Mistake(
        f'dp.open("visits.parquet", [dp.each("patient_id", at_most=5, per="day"), {EACH}])',
        "DP107",
        f"protect={EACH}",
        OPEN + ")",
    ),
    Mistake(
        'dp.each("patient_id", at_most=5, when="came_on")',
        "DP107",
        'dp.each("patient_id", at_most=5, per="day", when="came_on")',
    ),
    Mistake(
        'dp.open("visits.parquet", dp.each("patient_id", at_most=5, per="day", when="days"))',
        "DP403",
        'when={"visits": "came_on"}',
        'dp.open("visits.parquet", dp.each("patient_id", at_most=5, per="day", when={"visits": "came_on"}))',
    ),
    Mistake(
        'dp.open("visits.parquet", dp.each("came_on", at_most=5, per="day", when="came_on"))',
        "DP403",
        "leave out per and when",
        left_out=', per="day", when="came_on"',
    ),
    Mistake(
        f'{DAILY}.sql("SELECT COUNT(DISTINCT patient_id) FROM visits", epsilon=1)',
        "DP703",
        "SELECT COUNT(*) FROM visits",
        f'{DAILY}.sql("SELECT COUNT(*) FROM visits", epsilon=1)',
    ),
    Mistake(
        f'{DAILY}.stream("SELECT COUNT(*) FROM visits", {WEEKS})',
        "DP107",
        "leave out per",
        left_out=', per="day"',
    ),
    Mistake(
        'dp.open(pa.table({"id": [1], "days": [2], "Days": [3]}), dp.each("id", at_most=1), engine="polars")',
        "DP403",
        "rename one of them",
        left_out=', "Days": [3]',
    ),
    Mistake('dp.each("patient_id")', "DP107", 'dp.each("patient_id", at_most=20)'),
    Mistake('dp.each("patient_id", at_most=0)', "DP102", "at_most=1", 'dp.each("patient_id", at_most=1)'),
    Mistake(
        'dp.each("patient_id", at_most="20")', "DP103", "at_most=10", 'dp.each("patient_id", at_most=10)'
    ),
    Mistake('dp.each(["patient_id", "ward"], at_most=20)', "DP104", PROTECT, OPEN + ")"),
    Mistake(
        'dp.each("patient_id", at_most=20, relation="swap")',
        "DP105",
        "relation='add-remove'",
        """dp.each("patient_id", at_most=20, relation='add-remove')""",
    ),
    Mistake(
        'dp.open("visits.parquet", protect=dp.each("patientid", at_most=20))',
        "DP403",
        'protect=dp.each("patient_id", at_most=',
        OPEN + ")",
    ),
    Mistake(f'dp.open("visit.parquet", {PROTECT})', "DP802", "visits.parquet", OPEN + ")"),
    Mistake(f'dp.open("visits.xlsx", {PROTECT})', "DP802", "visits.parquet", OPEN + ")"),
    Mistake(f'dp.open(table["days"], {PROTECT})', "DP104", 'dp.open("visits.parquet", protect=', OPEN + ")"),
    Mistake(
        f'dp.open("clinic.sqlite", {PROTECT})',
        "DP107",
        'dp.open("clinic.sqlite", table="beds", protect=',
        f'dp.open("clinic.sqlite", table="beds", {PROTECT})',
    ),
    Mistake(
        f'dp.open("clinic.sqlite", table="visit", {PROTECT})',
        "DP802",
        'table="visits"',
        f'dp.open("clinic.sqlite", table="visits", {PROTECT})',
    ),
    Mistake(f'{OPEN}, engine="DuckDB")', "DP105", 'engine="duckdb"', f'{OPEN}, engine="duckdb")'),
    Mistake(f'{OPEN}, memory="lots")', "DP104", 'memory="1GB"', f'{OPEN}, memory="1GB")'),
    Mistake(f"{OPEN}, threads=5000)", "DP102", "threads=2", f"{OPEN}, threads=2)"),
    Mistake(
        f'{OPEN}, engine="polars", threads=2)',
        "DP107",
        'engine="duckdb"',
        f'{OPEN}, engine="duckdb", threads=2)',
    ),
    Mistake(
        f'dp.open("sales", {PROTECT})',
        "DP802",
        "dp.open(frame, protect=",
        f"frame = table; dp.open(frame, {PROTECT})",
        first='import os; os.makedirs("sales/_delta_log"); open("sales/_delta_log/0.json", "w").close()',
    ),
    Mistake(
        f'{OPEN}, columns=["days"])',
        "DP403",
        'columns={"days": dp.column(bounds=(0, 60))}',
        f'{OPEN}, columns={{"days": dp.column(bounds=(0, 60))}})',
    ),
    Mistake(
        f'{OPEN}, columns={{"days": (0, 60)}})',
        "DP403",
        'columns={"days": dp.column(bounds=(0, 60))}',
        f'{OPEN}, columns={{"days": dp.column(bounds=(0, 60))}})',
    ),
    Mistake(
        f'{OPEN}, columns={{"dais": {NUMBER}}})',
        "DP403",
        'columns={"days": dp.column(',
        f'{OPEN}, columns={{"days": {NUMBER}}})',
    ),
    Mistake('dp.column("integer", bounds=(60, 0))', "DP403", "bounds = [0, 60]", NUMBER),
    Mistake('dp.column("integer", bounds=("0", "60"))', "DP403", "bounds = [0, 60]", NUMBER),
    Mistake('dp.column("integer", bounds=60)', "DP403", "bounds = [0, 60]", NUMBER),
    Mistake(
        'dp.column("real", bounds=(0, nan))',
        "DP403",
        "bounds = [0, 500]",
        'dp.column("real", bounds = [0, 500])',
    ),
    Mistake("dp.column((0, 60))", "DP403", 'dp.column("integer"', NUMBER),
    Mistake(
        f'dp.open("visits.csv", {PROTECT}, columns={{"days": dp.column(bounds=(0, 60))}})',
        "DP403",
        'dp.column("integer", ',
        f'dp.open("visits.csv", {PROTECT}, columns={{"days": dp.column("integer", bounds=(0, 60))}})',
    ),
    Mistake(
        'dp.column("text", values="north")',
        "DP403",
        'values = ["north", "south"]',
        'dp.column("text", values = ["north", "south"])',
    ),
    Mistake(
        f'{OPEN}, public=["wards.csv"])',
        "DP403",
        'public={"wards": "wards.csv"}',
        f'{OPEN}, public={{"wards": "wards.csv"}})',
    ),
    Mistake(
        f'{OPEN}, public={{"wards": "wards.csv"}}, hierarchies={{"wrads": ["region", "ward"]}})',
        "DP403",
        'hierarchies={"wards": ["region", "district"]}',
        f'{OPEN}, public={{"wards": "wards.csv"}}, hierarchies={{"wards": ["region", "ward"]}})'
        '  # hierarchies={"wards": ["region", "district"]}',
    ),
    Mistake(
        f'{OPEN}, public={{"wards": "wards.csv"}}, hierarchies={{"wards": ["region"]}})',
        "DP403",
        'hierarchies={"wards": ["region", "ward"]}',
        f'{OPEN}, public={{"wards": "wards.csv"}}, hierarchies={{"wards": ["region", "ward"]}})',
    ),
    Mistake(
        "dp.Session(table, limit=Limit.filter(epsilon=1))",
        "DP104",
        f"data = dp.open(source, {PROTECT})",
        f"source = table; data = dp.open(source, {PROTECT}); dp.Session(data, limit=Limit.filter(epsilon=1))",
    ),
    Mistake("dp.Session(data)", "DP603", "dp.Session(data, dp.Limit.filter(epsilon=1, delta=1e-6))"),
    Mistake(
        "dp.Session(data, limit=1)",
        "DP104",
        "limit=Limit.filter(epsilon=1, delta=1e-6)",
        "dp.Session(data, limit=Limit.filter(epsilon=1, delta=1e-6))",
    ),
)
def test_opening(mistake, here):
    error = check_mistake(mistake, here)
    assert error.what
