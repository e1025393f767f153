# SPDX-License-Identifier: Apache-2.0
"""A folder of .sql files is a release: each file is a table, whose cost stands in its first lines."""

from __future__ import annotations

import json

import pytest

from discreet.cli.releases import read_release
from tests.refusals import assert_refused

HEAD = '[release]\nname = "clinic"\ndata = "adult"\nledger = "clinic.ledger"\nepsilon = 0.1\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "release.toml").write_text(HEAD, encoding="utf-8")
    (tmp_path / "by_sex.sql").write_text(
        "-- Everybody, by sex; ages >= 17 = all.\n-- epsilon = 0.2\n-- format = 'csv'\nSELECT sex, COUNT(*) AS n\nFROM adult GROUP BY sex\n",
        encoding="utf-8",
    )
    (tmp_path / "total.sql").write_text("SELECT COUNT(*) AS n FROM adult", encoding="utf-8")
    return tmp_path


def test_each_file_is_a_table_with_the_keys_of_its_first_lines(folder):
    release = read_release(folder)
    assert [(table.name, table.spend, table.formats) for table in release.tables] == [
        ("by_sex", {"epsilon": 0.2}, ("csv",)),
        ("total", {"epsilon": 0.1}, ("csv", "parquet")),
    ]
    assert release.tables[0].sql == "SELECT sex, COUNT(*) AS n\nFROM adult GROUP BY sex"
    assert release.ledger == str(folder / "clinic.ledger")


def test_a_folder_is_released_with_a_description_beside_each_csv_file(folder, discreet):
    assert discreet(f"plan {folder} --limit eps=1,delta=1e-6").code == 0
    result = discreet(f"release {folder} --out {folder / 'out'} --limit eps=1,delta=1e-6")
    assert result.code == 0, result
    names = {path.name for path in (folder / "out").iterdir()}
    assert {"by_sex.csv", "by_sex.csv-metadata.json", "total.csv", "total.parquet", "statement.html"} <= names
    described = json.loads((folder / "out" / "by_sex.csv-metadata.json").read_text(encoding="utf-8"))
    assert described["discreet.question"].startswith("SELECT sex")


@pytest.mark.parametrize("front", ["-- epsilon = many", "-- sql = 'SELECT 1'", "-- epsilom = 0.1"])
def test_first_lines_that_are_not_understood_are_refused(folder, front):
    (folder / "total.sql").write_text(f"{front}\nSELECT COUNT(*) FROM adult", encoding="utf-8")
    assert_refused("DP403", lambda: read_release(folder))
