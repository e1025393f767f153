# SPDX-License-Identifier: Apache-2.0
"""The data that come with the library are those of their description, and are packed with it."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from discreet import data as shipped
from discreet.errors import BadParameter
from discreet.tables.data import toml
from discreet.tables.data.readers.parquet import Parquet
from tests.chance import no_chance
from tests.house.project import ROOT

pq = pytest.importorskip("pyarrow.parquet")

#: How many rows the published documentation counts, and how many people with more than 50 000 dollars (23.93 %).
ROWS, TRAIN, RICH = 48_842, 32_561, 11_687


@pytest.fixture(scope="module")
def table():
    return pq.read_table(shipped.path("adult.parquet"))


@pytest.fixture(scope="module")
def described():
    return toml.read(shipped.path("adult.toml"))


def test_the_published_numbers_are_there(table):
    assert table.num_rows == ROWS
    assert table.column("split").to_pylist().count("train") == TRAIN
    assert sum(table.column("over_50k").to_pylist()) == RICH
    assert table.column("person_id").to_pylist() == list(range(1, ROWS + 1))
    unknown = sum(
        any(row[name] is None for name in ("workclass", "occupation", "native_country"))
        for row in table.select(["workclass", "occupation", "native_country"]).to_pylist()
    )
    assert ROWS - unknown == 45_222  # "if instances with unknown values are removed"


def test_every_column_is_described_with_its_source(table, described):
    columns = described.private["adult"].columns
    assert list(columns) == table.column_names
    known = [column for column in columns.values() if column.bounds or column.values]
    assert {column.name for column in columns.values()} - {column.name for column in known} == {"person_id"}
    assert all(column.source for column in known)


def test_the_public_categories_are_those_that_occur(table, described):
    for column in described.private["adult"].columns.values():
        if column.values is not None:
            assert set(table.column(column.name).unique().to_pylist()) - {None} <= set(column.values)


def test_it_is_small_and_credited():
    assert shipped.path("adult.parquet").stat().st_size < 1_000_000
    credit = shipped.path("README.md").read_text(encoding="utf-8")
    assert re.search(r"Becker.*Kohavi.*1996", credit)
    for word in ("10.24432/C5XW20", "CC BY 4.0", "What we changed"):
        assert word in credit


def test_the_quick_reader_can_read_it():
    """The other one needs three times the memory of a session."""
    assert Parquet.of([shipped.path("adult.parquet")]).plain_terms() is not None


def test_only_what_is_there_has_a_path():
    with pytest.raises(BadParameter) as wrong:
        shipped.path("../errors.py")
    assert wrong.value.code == "DP105"


@no_chance("a wheel is built and nothing is drawn")
@pytest.mark.slow
def test_the_wheel_holds_the_data(tmp_path):
    words = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("the build backend is not installed here")
    assert done.returncode == 0, done.stderr
    (wheel,) = Path(tmp_path).glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"discreet/data/{name}" for name in ("adult.parquet", "adult.toml", "README.md")} <= names
