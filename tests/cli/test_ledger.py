# SPDX-License-Identifier: Apache-2.0
"""`discreet ledger`, `budget` and `statement` read a ledger, and change nothing in it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from discreet import privacy
from discreet.ledger import Asker, Ledger, Limit
from tests.cli import visits

ANSWER = '{"rows": [41.75]}'


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    limit = Limit.filter(epsilon=1, analysts={"ana": 0.5, "bo": 0.25})
    ledger = Ledger("a.ledger", limit=limit, unit="patient", dataset="visits")
    small = privacy.pure(0.1, unit="patient")
    ledger.commit(
        ledger.charge(small, question="SELECT 1", asker=Asker(analyst="ana"), mechanism="count"), ANSWER
    )
    ledger.charge(small, question="SELECT 2", asker=Asker(analyst="ana"), mechanism="count")
    before = ledger.anchor()
    yield ledger
    assert ledger.anchor() == before


def damage(path="a.ledger"):
    with sqlite3.connect(path) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f"DROP TRIGGER {name}")
        file.execute(
            "UPDATE ledger_entries SET body = replace(body, 'SELECT 1', 'SELECT 9') WHERE number = 1"
        )


def test_show_lists_charges_and_no_answer(discreet, book):
    done = discreet("ledger show a.ledger")
    assert (done.code, done.err) == (0, "")
    for word in ("SELECT 1", "SELECT 2", "ana", "ε = 0.1", "20.0%", "no answer was", book.anchor()):
        assert word in done.words
    assert "41.75" not in done.out + discreet("ledger show a.ledger --json").out
    assert "41.75" in discreet("ledger show a.ledger --answers").out
    assert discreet("ledger show a.ledger --answers --json").object["charges"][0]["answer"] == ANSWER


def test_show_lists_the_last_charges(discreet, book):
    found = discreet("ledger show a.ledger --last 1 --json").object
    assert [line["question"] for line in found["charges"]] == ["SELECT 2"]
    assert discreet("ledger show a.ledger --last 0").code == 2


def test_verify_finds_an_intact_ledger_intact(discreet, book):
    done = discreet("ledger verify a.ledger")
    assert done.code == 0
    assert "4, hash chain intact" in done.words
    assert "W1" in done.out
    found = discreet(f"ledger verify a.ledger --anchor {book.anchor()} --json").object
    assert found["intact"] is True
    assert found["spent"] == found["recomputed"]


def test_verify_finds_a_roll_back_and_exits_with_status_5(discreet, book):
    done = discreet(f"ledger verify a.ledger --anchor {'0' * 63}1")
    assert (done.code, "DAMAGED" in done.out) == (5, True)
    assert discreet(f"ledger verify a.ledger --anchor {'0' * 63}1 --json").object["intact"] is False
    assert discreet("ledger verify a.ledger --anchor 12").code == 2


@pytest.mark.parametrize(
    "line",
    ["ledger verify a.ledger", "ledger show a.ledger", "statement a.ledger", "budget --ledger a.ledger"],
)
def test_a_damaged_ledger_exits_with_status_5(discreet, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("a.ledger", limit=Limit.filter(epsilon=1))
    ledger.charge(privacy.pure(0.1), question="SELECT 1")
    ledger.close()
    damage()
    done = discreet(line)
    assert (done.code, done.err[:5]) == (5, "DP602")


def test_export_is_every_row(discreet, book):
    done = discreet("ledger export a.ledger")
    assert [json.loads(json.loads(line)["body"])["kind"] for line in done.out.splitlines()] == [
        "open",
        "reserved",
        "committed",
        "reserved",
    ]
    whole = json.loads(discreet("ledger export a.ledger --json").out)
    assert [json.dumps(row, sort_keys=True) for row in whole] == [
        json.dumps(json.loads(line), sort_keys=True) for line in done.out.splitlines()
    ]
    assert discreet("ledger export a.ledger --out a.jsonl").code == 0
    assert Path("a.jsonl").read_text(encoding="utf-8") == done.out


@pytest.mark.parametrize(
    "line",
    ["ledger show no.ledger", "ledger verify no.ledger", "ledger export no.ledger", "statement no.ledger"],
)
def test_a_ledger_that_is_not_there_is_not_made(discreet, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    done = discreet(line)
    assert (done.code, done.err[:5]) == (2, "DP603")
    assert list(tmp_path.iterdir()) == []


def test_budget_shows_tracks_and_allocations(discreet, book):
    done = discreet("budget --ledger a.ledger")
    assert done.code == 0, done.err
    for word in (
        "one patient added or removed",
        "pure track (ε)",
        "20.0%",
        "analyst ana: an allocation of 50%",
    ):
        assert word in done.words
    found = discreet("budget --ledger a.ledger --json").object
    assert found["lanes"][0]["left"] == pytest.approx(0.8)
    assert {who["name"]: who["share"] for who in found["shares"]} == {"ana": 0.5, "bo": 0.25}


def test_budget_reads_the_ledger_of_a_description(discreet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visits.make(tmp_path)
    assert "does not exist yet" in discreet("budget --data visits.toml").out
    assert not (tmp_path / "visits.ledger").exists()
    discreet(f"query {visits.COUNTS} --data visits.toml --epsilon 0.25")
    assert discreet("budget --data visits.toml --json").object["rows"] == 3
    assert discreet("budget").code == 2


def test_budget_shows_window_and_lifetime(discreet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    limit = Limit.filter(epsilon=1, window="month", lifetime=Limit.filter(epsilon=5))
    Ledger("w.ledger", limit=limit).charge(privacy.pure(0.1))
    done = discreet("budget --ledger w.ledger")
    assert "lifetime: pure track (ε)" in done.out
    assert "1 windows begun" in done.out


def test_a_statement_to_the_screen_and_into_files(discreet, book, tmp_path):
    visits.make(tmp_path)
    assert discreet("statement a.ledger").out.startswith("# Privacy statement: visits")
    assert json.loads(discreet("statement a.ledger --json").out)["claim"]["epsilon"] == 1.0
    done = discreet("statement a.ledger --data visits.toml --format html,md,json --out told")
    assert done.out.split() == ["told.html", "told.md", "told.json"]
    assert "the map of the hospital" in (tmp_path / "told.html").read_text(encoding="utf-8")
    assert discreet("statement a.ledger --out page.html").out.split() == ["page.html"]
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("statement a.ledger --format pdf", "DP105"),
        ("statement a.ledger --format html,md", "DP105"),
        ("statement a.ledger --json --format html", "DP105"),
        ("statement a.ledger --out nowhere/told.html", "DP102"),
        (f"statement a.ledger --anchor {'0' * 63}1", "DP602"),
    ],
)
def test_a_statement_that_cannot_be_made(discreet, book, line, code):
    done = discreet(line)
    assert (done.code, code in done.err + done.out) == (5 if code == "DP602" else 2, True)


@pytest.mark.parametrize(("options", "is_shown"), [("", True), ("--json", False)])
def test_verify_shows_how_far_it_is_where_somebody_looks(book, discreet, monkeypatch, options, is_shown):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    done = discreet(f"ledger verify a.ledger {options}")
    assert done.code == 0
    assert ("verifying" in done.err) == is_shown
    assert "verifying" not in done.out


def test_verify_shows_nothing_to_a_file(book, discreet):
    assert discreet("ledger verify a.ledger").err == ""
