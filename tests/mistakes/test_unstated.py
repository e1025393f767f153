# SPDX-License-Identifier: Apache-2.0
"""Slips where something is not stated: bounds that a session chooses, errors in place of costs, tables without rows."""

from __future__ import annotations

import pytest

from tests.mistakes.clinic import Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

OPEN = 'dp.open(table, dp.each("patient_id", at_most=2), name="visits", columns={"days": dp.column(bounds=(0, 60))})'
DESCRIBED = """
Dataset = type(data)
with open("visits.toml", "w") as file:
    data = dp.open("visits.parquet", dp.each("patient_id", at_most=2))
    file.write(data.to_toml())
def of(toml):
    stated = '[dataset]\\nsource = "visits.parquet"\\nunit = "patient_id"\\n[limits]\\nrows_per_unit = 2\\n'
    return Dataset.from_toml(stated + '[columns.patient_id]\\ntype = "integer"\\n' + toml)
def ask(data):
    return dp.Session(data, Limit.filter(9)).sql("SELECT COUNT(*) FROM visits", epsilon=1)
"""
#: Bounds that were paid for, and could not be chosen.
HIDDEN = """
few = dp.Session(dp.open({"visits": table.slice(0, 3)}, dp.each("patient_id", at_most=1),
    columns={"visits": {"days": dp.column(bounds="auto")}}), Limit.filter(9))
few.suggest_bounds("visits", ["days"], epsilon=0.001)
"""
#: A first step that shows no rows, paid for under its key.
PAID = """
from discreet.errors import DiscreetError
from discreet.tables.plan.spend import Spend
def mean(error, **words):
    return session.sql("SELECT AVG(days) AS d FROM visits", error=error, **words)
faint = {"pilot": Spend(epsilon=0.0001), "confidence": 0.9999999999, "key": "monday"}
try:
    mean("±0.1", **faint)
except DiscreetError:
    pass
"""
STEPS = 'session.preview("SELECT AVG(days) AS d FROM visits", error="±3", pilot=Spend(epsilon=0.2), '


@pytest.fixture
def here(visits, folder):
    return Here(data=visits)


def suggested(arguments: str) -> str:
    return f"session.suggest_bounds({arguments}, epsilon=0.1)"


@mistakes(
    Mistake(suggested('"visits", "cost"'), "DP104", suggested('"visits", ["cost"]')),
    Mistake(suggested('"wards"'), "DP105", suggested('"visits"')),
    Mistake(
        suggested('"visits", ["ward"]'),
        "DP706",
        'values = ["A", "B"]',
        'dp.column("text", values = ["A", "B"])',
    ),
    Mistake(
        'session.suggest_bounds("visits", epsilon=0.1)',
        "DP104",
        'session.suggest_bounds("visits", ["days"], epsilon=0.1)',
        first='session = dp.Session(dp.open(table.select(["ward", "days"]), dp.each_row(), name="visits"), Limit.filter(9))',
    ),
    Mistake(
        'few.sql("SELECT AVG(days) AS d FROM visits", epsilon=1)',
        "DP706",
        "CLAMP(days, 0, 500)",
        'few.sql("SELECT AVG(CLAMP(days, 0, 500)) AS d FROM visits", epsilon=1)',
        first=HIDDEN,
    ),
    Mistake(
        'dp.column("text", bounds="auto")',
        "DP403",
        'values = ["north", "south"]',
        'dp.column("text", values = ["north", "south"])',
    ),
)
def test_a_slip_with_bounds_that_are_chosen_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)


@mistakes(
    Mistake(f"{STEPS}epsilon=0.1)", "DP707", "epsilon=4.0", f"{STEPS}epsilon=4.0)", first=PAID),
    Mistake(
        'mean("±0.1", **faint)',
        "DP706",
        "a greater error, fewer groups, or a greater  pilot=",
        'mean("±40", pilot=Spend(epsilon=50))  # a greater error, fewer groups, or a greater  pilot=',
        first=PAID,
    ),
)
def test_a_slip_with_an_error_in_place_of_a_cost_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)


@mistakes(
    Mistake(
        'dp.each("patient_id", at_most={})',
        "DP104",
        'at_most={"visits": 20}',
        'dp.each("patient_id", at_most={"visits": 20})',
    ),
    Mistake(
        OPEN.replace("at_most=2", 'at_most={"visit": 2}'),
        "DP403",
        'at_most={"visits": 2}',
        OPEN.replace("at_most=2", 'at_most={"visits": 2}'),
    ),
    Mistake(
        "Dataset.from_toml(data)",
        "DP104",
        "Dataset.from_toml(data.to_toml())",
        first=DESCRIBED,
    ),
    Mistake(
        "ask(Dataset.from_toml(data.to_toml()))",
        "DP803",
        'data = dp.open("visits.toml")',
        'data = dp.open("visits.toml"); ask(data)',
        first=DESCRIBED,
    ),
    Mistake(
        "of('[columns.days]\\nbounds = [0, 60]')",
        "DP403",
        'type = "integer"',
        "of('[columns.days]\\nbounds = [0, 60]\\ntype = \"integer\"')",
        first=DESCRIBED,
    ),
    Mistake(
        'of(\'[columns.ward]\\ntype = "text"\\nvalues = "public:wards.ward"\\n[public.wards]\\nsource = "wards.csv"\')',
        "DP403",
        "to_toml() of the opened data set",
        "Dataset.from_toml(data.to_toml())  # to_toml() of the opened data set",
        first=DESCRIBED,
    ),
)
def test_a_slip_in_a_description_without_rows_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)
