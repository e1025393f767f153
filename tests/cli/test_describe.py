# SPDX-License-Identifier: Apache-2.0
"""`discreet describe` writes what the schema says, and nothing that the rows say."""

from __future__ import annotations

import tomllib

import pytest

from tests.cli import visits

pytestmark = pytest.mark.usefixtures("here")


def test_a_first_description_is_toml_without_a_value_of_the_data(discreet):
    done = discreet("describe visits.parquet")
    assert done.code == 0, done.err
    told = tomllib.loads(done.out)
    assert told["columns"] == {
        "patient_id": {"type": "integer"},
        "ward": {"type": "text"},
        "days": {"type": "integer"},
    }
    assert [ward for ward in visits.WARDS if f'"{ward}"' in done.out and ward not in ("north", "south")] == []


def test_it_is_the_same_whatever_the_rows_are(discreet, here):
    before = discreet("describe visits.parquet").out
    visits.make(here, people=3)
    assert discreet("describe visits.parquet").out == before


def test_it_is_written_but_never_over_something(discreet, here):
    assert discreet("describe visits.parquet --out new.toml").code == 0
    assert tomllib.loads((here / "new.toml").read_text(encoding="utf-8"))["dataset"]["name"] == "visits"
    again = discreet("describe visits.parquet --out new.toml")
    assert (again.code, again.err[:5]) == (2, "DP102")
    assert discreet("describe visits.parquet --out new.txt").err[:5] == "DP105"
    assert discreet("describe visits.parquet --out nowhere/new.toml").err[:5] == "DP102"


def test_a_description_is_looked_at(discreet):
    done = discreet("describe visits.toml")
    assert done.code == 0, done.err
    assert "the map of the hospital" in done.out
    found = discreet("describe visits.toml --json").object
    assert found["description"]["tables"]["visits"]["columns"]["days"]["bounds"] == [0, 60]
    assert found["missing"] == []
    assert "adult" in discreet("describe adult").out


def test_a_description_in_json_holds_its_toml(discreet):
    found = discreet("describe visits.parquet --json").object
    assert tomllib.loads(found["toml"])["dataset"]["source"] == "visits.parquet"


def test_a_file_that_is_not_there(discreet):
    done = discreet("describe nowhere.parquet")
    assert done.code == 2, done.err
