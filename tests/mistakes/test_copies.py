# SPDX-License-Identifier: Apache-2.0
"""Slips of people who ask for a synthetic copy, and who take rows from it."""

from __future__ import annotations

import pytest

from discreet.tables.synthetic import copy as copies
from tests.mistakes.clinic import Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

COPIED = 'copy = session.synthesize(data, columns=["ward", "days"], rho=0.5)'
BARE = """
def described(toml):
    with open("visits.toml", "w") as file:
        file.write('[dataset]\\nsource = "visits.parquet"\\nunit = "patient_id"\\n[limits]\\nrows_per_unit = 2\\n' + toml)
    return dp.open("visits.toml")
def copied(toml):
    data = described(toml)
    return dp.Session(data, Limit.filter(epsilon=9, delta=1e-3)).synthesize(data, rho=0.5)
"""

TWO = """
two = dp.open(
    {"visits": "visits.parquet", "stays": "visits.parquet"},
    protect=dp.each("patient_id", at_most=2),
    columns={"visits": {"ward": dp.column(values=["A", "B"])}},
)
apart = dp.Session(two, limit=Limit.filter(epsilon=9, delta=1e-3))
"""


@pytest.fixture
def here(visits, folder):
    return Here(data=visits)


def asked(arguments: str, data: str = "data", cost: str = "rho=0.5") -> str:
    return f"session.synthesize({data}, {arguments}{', ' * bool(arguments)}{cost})"


def slip(wrong: str, code: str, fix: str, right: str = "") -> Mistake:
    """A mistake in the arguments of a copy."""
    return Mistake(asked(wrong), code, fix, asked(right or fix))


def taken(wrong: str, code: str, fix: str, right: str) -> Mistake:
    """A mistake with a copy that is there."""
    return Mistake(wrong, code, fix, right, first=COPIED)


@mistakes(
    slip('columns="ward"', "DP104", "columns=['ward', 'days', 'cost']"),
    slip('columns=["wrad"]', "DP701", "ward", 'columns=["ward"]'),
    slip('columns=["ward", "name"]', "DP704", "columns=['ward', 'days', 'cost']"),
    slip('columns=["patient_id"]', "DP704", "columns=['ward', 'days', 'cost']"),
    slip('bins={"weight": 5}', "DP107", 'bins={"days": 20}'),
    slip(
        'columns=["ward", "cost"], bins=[5]',
        "DP107",
        'bins={"cost": 20}',
        'columns=["ward", "cost"], bins={"cost": 20}',
    ),
    Mistake(
        asked('columns=["ward"], bins={"days": 5}'), "DP107", "leave bins out", left_out=', bins={"days": 5}'
    ),
    Mistake(asked('bins={"ward": 2}'), "DP107", "leave out the bins of ward", left_out='bins={"ward": 2}, '),
    slip('bins={"days": "20"}', "DP107", 'bins={"days": 20}'),
    slip('bins={"cost": 4_000}', "DP107", 'bins={"cost": 20}'),
    slip('columns=["days"], bins={"days": [900, 1_000]}', "DP107", 'bins={"days": 20}'),
    Mistake(
        "apart.synthesize(two, rho=0.5)",
        "DP701",
        'session.synthesize(data["visits"], …)',
        'apart.synthesize(two["visits"], rho=0.5)  # session.synthesize(data["visits"], …)',
        first=TWO,
    ),
    slip("check=0.6", "DP102", "check=0.01"),
    Mistake(
        asked("", data='"SELECT * FROM visits"'), "DP104", "session.synthesize(data, ", asked("check=0.01")
    ),
    Mistake(
        asked("", cost="epsilon=1"), "DP107", "epsilon=1, delta=1e-6", asked("", cost="epsilon=1, delta=1e-6")
    ),
    Mistake(
        "copied('')",
        "DP704",
        '[columns.ward]  values = ["north", "south"]',
        """copied('[columns.ward]\\nvalues = ["north", "south"]')  # [columns.ward]  values = ["north", "south"]""",
        first=BARE,
    ),
)
def test_a_slip_in_asking_for_a_copy_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)


@mistakes(
    taken(
        'copy.to_rows(where={"ward": "Z"})',
        "DP102",
        "where={\"ward\": 'A'}",
        "copy.to_rows(where={\"ward\": 'A'})",
    ),
    taken(
        'copy.to_rows(where={"days": (40, 30)})',
        "DP102",
        'where={"days": (0, 60)}',
        'copy.to_rows(where={"days": (0, 60)})',
    ),
    taken('copy.to_rows(where="A")', "DP107", "where={\"ward\": 'A'}", "copy.to_rows(where={\"ward\": 'A'})"),
    taken('copy.table("wrad")', "DP105", "'ward'", "copy.table('ward')"),
    taken('copy.table("ward", "ward")', "DP107", "copy.table('ward', 'days')", "copy.table('ward', 'days')"),
    taken(
        'type(copy).from_json("ward,days")',
        "DP401",
        "SyntheticCopy.from_json(copy.to_json())",
        "SyntheticCopy = type(copy); SyntheticCopy.from_json(copy.to_json())",
    ),
    taken(
        "copy.to_rows(rows=20_000_000)",
        "DP102",
        "rows=5000, seed=0   and then  rows=5000, seed=1",
        "copy.to_rows(rows=5000, seed=0), copy.to_rows(  # rows=5000, seed=0   and then  rows=5000, seed=1\n"
        "rows=5000, seed=1)",
    ),
)
def test_a_slip_with_a_copy_is_answered_and_its_fix_works(mistake, here, monkeypatch):
    # As many rows as a copy makes at once take a minute.
    monkeypatch.setattr(copies, "_MOST_ROWS", 5_000)
    check_mistake(mistake, here)
