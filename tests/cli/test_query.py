# SPDX-License-Identifier: Apache-2.0
"""`discreet query` charges, then answers; what it refuses costs nothing."""

from __future__ import annotations

import csv
import json

import pytest

from discreet.ledger import Ledger
from tests.cli import visits

ASK = f"query {visits.COUNTS} --data visits.toml"


pytestmark = pytest.mark.usefixtures("here")


def charges():
    return [entry for entry in Ledger("visits.ledger").entries() if entry.kind == "reserved"]


def test_an_answer_has_intervals_a_receipt_and_what_is_left(discreet):
    done = discreet(f"{ASK} --epsilon 0.5 --analyst ana --project wards --purpose 'a report'")
    assert done.code == 0, done.err
    for word in ("count_lo", "count_hi", *visits.WARDS, "receipt", "#1", "limit"):
        assert word in done.out
    (charge,) = charges()
    assert (charge.analyst, charge.project, charge.purpose) == ("ana", "wards", "a report")


def test_the_numbers_are_near_the_truth(discreet):
    found = discreet(f"{ASK} --epsilon 0.9 --json").object
    # 450 rows, 112 or 113 in each ward; noise of scale 2/0.9 exceeds 100 with a chance below 1e-19
    assert [row["ward"] for row in found["rows"]] == list(visits.WARDS)
    assert all(abs(row["count"] - 112.5) < 100 for row in found["rows"])
    assert all(row["count_lo"] < row["count"] < row["count_hi"] for row in found["rows"])
    assert found["paid"] is True
    assert found["receipt"]["number"] == 1
    assert found["budget"]["spent_fraction"] > 0.5


def test_the_same_key_shows_the_same_answer_and_costs_nothing(discreet):
    first = discreet(f"{ASK} --epsilon 0.1 --key monday --json").object
    again = discreet(f"{ASK} --epsilon 0.1 --key monday --json").object
    assert again["rows"] == first["rows"]
    assert (first["paid"], again["paid"]) == (True, False)
    assert again["budget"] == first["budget"]
    assert len(charges()) == 1
    reused = discreet("query 'SELECT COUNT(*) FROM visits' --data visits.toml --epsilon 0.1 --key monday")
    assert (reused.code, reused.err[:5]) == (2, "DP604")


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        (f"{ASK} --epsilon 5", 3, "DP601"),
        ("query 'SELECT patient_id FROM visits' --data visits.toml --epsilon 0.1", 4, "DP706"),
        ("query 'SELECT nothing FROM visits' --data visits.toml --epsilon 0.1", 4, "DP7"),
        ("query 'DROP TABLE visits' --data visits.toml --epsilon 0.1", 4, "DP702"),
        (ASK, 2, "DP107"),
        (f"{ASK} --epsilon 0.1 --rho 0.1", 2, "DP107"),
        (f"{ASK} --epsilon nan", 2, "DP101"),
        (f"{ASK} --epsilon -1", 2, "DP102"),
        (f"{ASK} --epsilon much", 2, "DP104"),
        (f"{ASK} --epsilon 0.1 --out wards.docx", 2, "DP105"),
        (f"{ASK} --epsilon 0.1 --out nowhere/wards.csv", 2, "DP102"),
        (f"{ASK} --epsilon 0.1 --plot wards.gif", 2, "DP105"),
        (f"{ASK} --epsilon 0.1 --limit eps=2", 2, "DP603"),
        (f"{ASK} --epsilon 0.1 --limit much", 2, "DP105"),
        (f"query {visits.COUNTS} --data visits.parquet --epsilon 0.1", 2, "DP105"),
        (f"query {visits.COUNTS} --data nowhere.toml --epsilon 0.1", 2, "DP403"),
        (f"query {visits.COUNTS} --epsilon 0.1", 2, "DP107"),
    ],
)
def test_a_refusal_has_its_exit_code_and_costs_nothing(discreet, line, code, error):
    assert discreet("query 'SELECT COUNT(*) FROM visits' --data visits.toml --epsilon 0.01").code == 0
    done = discreet(line)
    assert (done.code, done.err[: len(error)]) == (code, error), done.err
    assert "Spent  nothing." in done.err
    in_json = discreet(f"{line} --json")
    assert in_json.code == code
    assert in_json.object["error"]["code"].startswith(error)
    assert len(charges()) == 1


def test_without_a_ledger_or_a_limit_nothing_is_asked(discreet, here):
    visits.make(here, budget=False)
    assert discreet(f"{ASK} --epsilon 0.1").err.startswith("DP107  no ledger is named")
    refused = discreet(f"{ASK} --epsilon 0.1 --ledger mine.ledger")
    assert refused.err.startswith("DP107  the ledger mine.ledger does not exist yet")
    assert not (here / "mine.ledger").exists()
    assert discreet(f"{ASK} --epsilon 0.1 --ledger mine.ledger --limit eps=1,delta=1e-6").code == 0
    assert discreet(f"{ASK} --epsilon 0.1 --ledger mine.ledger").code == 0


def test_files_are_written_and_hold_the_answer(discreet, here):
    found = discreet(f"{ASK} --epsilon 0.5 --json --out wards.csv --plot wards.svg").object
    assert found["files"] == ["wards.csv", "wards.svg"]
    with (here / "wards.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["count"]) for row in rows] == [row["count"] for row in found["rows"]]
    assert "<title>" in (here / "wards.svg").read_text(encoding="utf-8")
    assert discreet(f"{ASK} --epsilon 0.1 --out wards.json").code == 0
    assert json.loads((here / "wards.json").read_text(encoding="utf-8"))["keys"] == ["ward"]
    assert not [path.name for path in here.iterdir() if path.name.startswith(".")]


def test_a_picture_that_cannot_be_drawn_is_refused_before_it_is_paid_for(discreet, monkeypatch, here):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = discreet(f"{ASK} --epsilon 0.1 --plot wards.svg")
    assert (done.code, done.err[:5]) == (3, "DP501")
    assert not (here / "visits.ledger").exists()


def test_explain_privacy_spends_nothing_and_makes_no_ledger(discreet, here):
    done = discreet('query "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits" --data visits.toml --epsilon 0.1')
    assert done.code == 0, done.err
    assert "limit" in done.out
    assert not (here / "visits.ledger").exists()
