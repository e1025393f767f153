# SPDX-License-Identifier: Apache-2.0
"""Synthetic copies in a release file: charged once, written again for nothing, and refused before anything is charged."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from pyarrow import parquet

from discreet.ledger import Ledger

pytestmark = pytest.mark.usefixtures("here")

HEAD = '[release]\nname = "may"\ndata = "visits.toml"\nledger = "visits.ledger"\ndelta = 1e-7\n'
COPY = '[[copy]]\nname = "made_up"\nepsilon = 0.5\ncheck = 0.02\nbins = {days = [10, 30]}\nformat = ["csv", "parquet"]\nrows = 30\n'
TABLE = '[[table]]\nname = "wards"\nsql = "SELECT COUNT(*) AS n FROM visits"\nepsilon = 0.2\n'
RUN = "release may.toml --out tables"


def written(*sections):
    Path("may.toml").write_text("\n".join([HEAD, *sections]), encoding="utf-8")


def charges():
    if not Path("visits.ledger").exists():
        return []
    return [entry for entry in Ledger("visits.ledger").entries() if entry.kind == "reserved"]


def test_a_copy_is_planned_charged_once_and_written(discreet):
    written(TABLE, COPY)
    planned = discreet("plan may.toml --json").object
    assert charges() == []
    assert planned["copies"]["made_up"]["codes"]["days"] == 4
    assert "made_up" in discreet("plan may.toml").out
    done = discreet(f"{RUN} --json").object
    (copy,) = done["copies"]
    assert (copy["name"], copy["rows"], copy["paid"]) == ("made_up", 30, True)
    lines = list(csv.reader(Path("tables/made_up.csv").read_text(encoding="utf-8").splitlines()))
    assert lines[0] == ["ward", "days"]
    assert len(lines) == 31
    assert parquet.read_table("tables/made_up.parquet").num_rows == 30
    assert "Do not use the copy" in Path("tables/made_up.txt").read_text(encoding="utf-8")
    assert Path("tables/wards.csv").exists()
    assert len(charges()) == 2
    # The plan names the cost that was charged.
    assert planned["copies"]["made_up"]["question"] in {charge.question for charge in charges()}


def test_running_it_again_costs_nothing(discreet):
    written(COPY)
    discreet(RUN)
    first = Path("tables/made_up.csv").read_bytes()
    again = discreet(f"{RUN} --json").object
    assert again["copies"][0]["paid"] is False
    assert Path("tables/made_up.csv").read_bytes() == first
    written(COPY.replace("rows = 30", "rows = 7\nseed = 3"))
    assert discreet(f"{RUN} --json").object["copies"][0]["paid"] is False
    assert len(Path("tables/made_up.csv").read_text(encoding="utf-8").splitlines()) == 8
    assert "paid before" in discreet(RUN).out
    assert len(charges()) == 1
    written(COPY.replace("0.5", "0.4"))
    done = discreet(RUN)
    assert done.err.startswith("DP604")
    assert "copy made_up" in done.err
    assert len(charges()) == 1


def test_nothing_is_charged_if_the_whole_does_not_fit(discreet):
    written(TABLE, COPY.replace("0.5", "50.0"))
    done = discreet(RUN)
    assert (done.code, done.err[:5]) == (3, "DP601")
    assert charges() == []
    assert discreet("plan may.toml").code == 3


@pytest.mark.parametrize(
    ("section", "code"),
    [
        (COPY + "colums = ['ward']", "DP403"),
        (COPY.replace("rows = 30", "rows = -1"), "DP403"),
        (COPY.replace("rows = 30", "rows = 1.5"), "DP403"),
        (COPY.replace("rows = 30", "rows = true"), "DP403"),
        (COPY.replace("rows = 30", "rows = 99_000_000"), "DP403"),
        (COPY.replace("rows = 30", "seed = 'x'"), "DP403"),
        (COPY.replace('["csv", "parquet"]', '"xlsx"'), "DP403"),
        (COPY.replace("epsilon = 0.5", "error = '±5'"), "DP403"),
        (COPY.replace("epsilon = 0.5", ""), "DP107"),
        (COPY.replace('name = "made_up"', 'name = "../up"'), "DP403"),
        (COPY + COPY, "DP403"),
        (COPY + "table = 3", "DP403"),
        (COPY + "table = 'nothing'", "DP701"),
        (COPY + "columns = 'ward'", "DP104"),
        (COPY + "columns = ['age']", "DP701"),
        (COPY.replace("check = 0.02", "check = 0.9"), "DP102"),
        (COPY + "method = 'gan'", "DP105"),
        ("copy = 3", "DP403"),
    ],
)
def test_what_is_refused_costs_nothing(discreet, section, code):
    if section.startswith("copy"):
        Path("may.toml").write_text(f"{section}\n{HEAD}", encoding="utf-8")
    else:
        written(TABLE, section)
    done = discreet(RUN)
    assert done.err[: len(code)] == code, done.err
    assert charges() == []


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ("rows = -1", "rows = 1000"),
        ("seed = -2", "seed = 1000"),
        ('format = "xlsx"', 'format = ["csv", "parquet"]'),
    ],
)
def test_the_fix_of_a_refusal_works(discreet, wrong, fix):
    bare = COPY.replace("rows = 30\n", "").replace('format = ["csv", "parquet"]\n', "")
    written(f"{bare}{wrong}\n")
    assert fix in discreet(RUN).err
    written(f"{bare}{fix}\n")
    assert discreet(RUN).code == 0
    assert len(charges()) == 1
