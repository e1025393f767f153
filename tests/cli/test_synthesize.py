# SPDX-License-Identifier: Apache-2.0
"""`discreet synthesize` charges, then makes a copy; what it refuses costs nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from pyarrow import parquet

from discreet.ledger import Ledger
from discreet.tables.synthetic.copy import SyntheticCopy

ASK = "synthesize --data visits.toml --epsilon 0.5 --delta 1e-7"

pytestmark = pytest.mark.usefixtures("here")


def lines_of(path):
    return list(csv.reader(Path(path).read_text(encoding="utf-8").splitlines()))


def charges():
    return [entry for entry in Ledger("visits.ledger").entries() if entry.kind == "reserved"]


def test_a_copy_has_rows_a_statement_and_a_receipt(discreet):
    done = discreet(f"{ASK} --out copy.csv --rows 40 --analyst ana")
    assert done.code == 0, done.err
    for word in (
        "synthetic copy",
        "Guarantee",
        "wrong cell",
        "Do not use",
        "receipt",
        "#1",
        "limit",
        "copy.csv",
    ):
        assert word in done.out
    lines = lines_of("copy.csv")
    assert lines[0] == ["ward", "days"]
    assert len(lines) == 41
    (charge,) = charges()
    assert charge.analyst == "ana"


def test_other_rows_of_the_same_copy_cost_nothing(discreet):
    first = discreet(f"{ASK} --key may --out a.csv --json").object
    again = discreet(f"{ASK} --key may --seed 3 --rows 7 --out b.parquet --json").object
    whole = discreet(f"{ASK} --key may --out c.json --json").object
    assert (first["paid"], again["paid"], whole["paid"]) == (True, False, False)
    assert first["quality"] == again["quality"]
    assert first["quality"]["tables"] == 1
    assert again["budget"] == first["budget"]
    assert parquet.read_table("b.parquet").num_rows == 7
    copy = SyntheticCopy.from_json(Path("c.json").read_text(encoding="utf-8"))
    written = [tuple(line) for line in lines_of("a.csv")][1:]
    shown = [tuple("" if value is None else str(value) for value in row) for row in copy.to_rows()]
    assert written == shown
    assert len(charges()) == 1


def test_bins_columns_and_tables(discreet):
    found = discreet(f"{ASK} --columns days --bins days=0:10:30 --table visits --check 0 --json").object
    assert found["columns"] == ["days"]
    assert found["quality"] is None
    (charge,) = charges()
    assert "days (0, 10, 30, 61" in charge.question


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ("--columns nothing", 4, "DP701"),
        ("--columns patient_id", 4, "DP704"),
        ("--columns ''", 4, "DP701"),
        ("--bins days", 2, "DP104"),
        ("--bins days=x", 2, "DP104"),
        ("--bins days=3:2", 2, "DP107"),
        ("--bins ward=3", 2, "DP107"),
        ("--check 0.9", 2, "DP102"),
        ("--check nan", 2, "DP101"),
        ("--check x", 2, "DP104"),
        ("--rows -1", 2, "DP102"),
        ("--rows 1.5", 2, "DP103"),
        ("--seed x", 2, "DP104"),
        ("--out copy.txt", 2, "DP105"),
        ("--out nowhere/copy.csv", 2, "DP"),
        ("--table nothing", 4, "DP701"),
        ("--epsilon 50", 3, "DP601"),
    ],
)
def test_what_is_refused_costs_nothing(discreet, words, code, error):
    done = discreet(f"{ASK} {words}")
    assert (done.code, done.err[: len(error)]) == (code, error), done.err
    assert not any(entry.kind == "reserved" for entry in entries())


def entries():
    return Ledger("visits.ledger").entries() if Path("visits.ledger").exists() else []


def test_a_pure_epsilon_is_refused(discreet):
    done = discreet("synthesize --data visits.toml --epsilon 0.5")
    assert (done.code, done.err[:5]) == (2, "DP107")
    assert json.dumps(done.err).count("delta=1e-6") == 1
