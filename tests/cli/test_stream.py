# SPDX-License-Identifier: Apache-2.0
"""`discreet stream` opens, publishes and shows; only opening it is charged."""

from __future__ import annotations

import csv
import datetime as dt
import json
from pathlib import Path

import polars as pl
import pytest

from discreet import testing
from discreet.ledger import Ledger

TOML = """
[dataset]
source = "calls.parquet"
name = "calls"
unit = "caller"

[limits]
rows_per_unit = 2

[columns.region]
values = ["east", "west"]

[columns.day]
bounds = [2026-01-01, 2027-12-31]

[budget]
epsilon = 2.0
delta = 1e-6
ledger = "calls.ledger"
"""
COUNT = "'SELECT region, COUNT(*) AS n FROM calls GROUP BY region'"
WEEKS = "--every week --periods 52 --start 2026-01-05"
OPEN = f"stream open {COUNT} --data calls.toml {WEEKS} --epsilon 1 --delta 1e-7 --name weekly"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = dt.date(2026, 1, 5)
    calls = {
        "caller": [at % 90 for at in range(300)],
        "region": [("east", "west")[at % 2] for at in range(300)],
        "day": [first + dt.timedelta(days=at % 60) for at in range(300)],
    }
    pl.DataFrame(calls).write_parquet(tmp_path / "calls.parquet")
    (tmp_path / "calls.toml").write_text(TOML, encoding="utf-8")
    with testing.today("2026-02-03"):
        yield tmp_path


def kinds():
    return [entry.kind for entry in Ledger("calls.ledger").entries()]


def test_a_stream_is_opened_once_and_published(discreet):
    opened = discreet(OPEN)
    assert opened.code == 0, opened.err
    assert "receipt" in opened.out
    assert "#1" in opened.out
    again = discreet(f"{OPEN} --json").object
    assert (again["paid"], again["shown"], again["periods"]) == (False, 0, 52)
    published = discreet("stream release weekly --data calls.toml --out weekly.csv --json")
    assert published.code == 0, published.err
    assert published.object["shown"] == 4
    with Path("weekly.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["week_from"] for row in rows[::2]] == ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"]
    assert (
        discreet("stream release weekly --data calls.toml --json").object["rows"] == published.object["rows"]
    )
    assert kinds().count("reserved") == 1
    assert kinds().count("period") == 4


def test_figures_are_shown_for_nothing(discreet):
    discreet(OPEN)
    discreet("stream release weekly --data calls.toml --until 2026-01-25")
    for figures, rows in (
        ("totals", 6),
        ("periods", 6),
        ("total", 2),
        ("window=2", 4),
        ("2026-01-12..2026-01-25", 2),
    ):
        shown = discreet(f"stream show weekly --data calls.toml --figures {figures} --json")
        assert shown.code == 0, shown.err
        assert len(shown.object["rows"]) == rows
        assert "n_lo" in discreet(f"stream show weekly --data calls.toml --figures {figures} --together").out
    listed = discreet("stream show --data calls.toml --json").object["streams"]
    assert [(one["name"], one["shown"]) for one in listed] == [("weekly", 3)]
    assert "weekly" in discreet("stream show --data calls.toml").out
    assert kinds().count("period") == 3


def test_a_chart_is_drawn(discreet, here):
    pytest.importorskip("matplotlib")
    discreet(OPEN)
    discreet("stream release weekly --data calls.toml")
    done = discreet("stream show weekly --data calls.toml --plot totals.svg --out totals.csv")
    assert done.code == 0, done.err
    assert "<svg" in (here / "totals.svg").read_text(encoding="utf-8")
    assert (here / "totals.csv").exists()


def test_a_preview_charges_nothing(discreet, here):
    shown = discreet(f"{OPEN} --preview")
    assert shown.code == 0, shown.err
    assert "Margin of error of the total" in shown.out
    assert json.loads(discreet(f"{OPEN} --preview --json").out)["errors"]["the total"]["n"] > 0
    assert not (here / "calls.ledger").exists()
    assert "No stream was opened." in discreet("stream show --data calls.toml").out


@pytest.mark.parametrize(
    ("line", "status", "code"),
    [
        (OPEN.replace("--periods 52", "--periods many"), 2, "DP104"),
        (OPEN.replace("--every week", "--every fortnight"), 2, "DP105"),
        (f"{OPEN} --per-unit 3", 2, "DP105"),
        (f"{OPEN} --per-unit rows=two", 2, "DP104"),
        (f"{OPEN} --best-for weeks", 2, "DP102"),
        (OPEN.replace("--epsilon 1 ", "--epsilon 9 "), 3, "DP601"),
        (OPEN.replace("COUNT(*)", "MAX(caller)"), 4, "DP7"),
        ("stream release monthly --data calls.toml", 3, "DP610"),
        ("stream show weekly --data calls.toml --figures all", 3, "DP610"),
    ],
)
def test_a_refusal_charges_nothing(discreet, line, status, code):
    done = discreet(line)
    assert (done.code, done.err[: len(code)]) == (status, code), done.err


def test_figures_that_are_none_are_refused(discreet):
    discreet(f"{OPEN} --per-unit periods=4,apart=13 --best-for 4")
    assert discreet("stream show weekly --data calls.toml").err.startswith("DP611")
    discreet("stream release weekly --data calls.toml")
    assert discreet("stream show weekly --data calls.toml --figures all").err.startswith("DP105")
    assert discreet("stream release weekly --data calls.toml --until 2026-12-31").err.startswith("DP611")


RELEASE = """
[release]
name = "weekly-2026"
data = "calls.toml"

[[table]]
name = "total"
sql = "SELECT COUNT(*) FROM calls"
epsilon = 0.1
format = "csv"

[[stream]]
name = "by_region"
sql = "SELECT region, COUNT(*) AS n FROM calls GROUP BY region"
every = "week"
periods = 52
start = 2026-01-05
per_unit = {rows = 2}
epsilon = 1.0
delta = 1e-7
format = "csv"
"""


def test_a_release_file_opens_its_streams_and_publishes_what_is_over(discreet, here):
    (here / "release.toml").write_text(RELEASE, encoding="utf-8")
    planned = discreet("plan release.toml")
    assert planned.code == 0, planned.err
    assert "Margin of error of the total" in planned.out
    assert "by_region" in discreet("plan release.toml --json").object["streams"]
    assert not (here / "calls.ledger").exists()
    with testing.today("2026-01-08"):
        early = discreet("release release.toml --out tables --json")
        assert early.code == 0, early.err
        assert early.object["streams"] == [
            {"name": "by_region", "periods": 52, "shown": 0, "paid": True, "files": []}
        ]
    done = discreet("release release.toml --out tables")
    assert done.code == 0, done.err
    assert "4 of 52 periods published" in done.out
    written = sorted(path.name for path in (here / "tables").iterdir() if path.suffix == ".csv")
    assert written == ["by_region.csv", "by_region_totals.csv", "total.csv"]
    first = (here / "tables" / "by_region.csv").read_text(encoding="utf-8")
    again = discreet("release release.toml --out tables --json").object
    assert again["streams"][0]["paid"] is False
    assert (here / "tables" / "by_region.csv").read_text(encoding="utf-8") == first
    assert kinds().count("reserved") == 2
    assert discreet("stream show by_region --data calls.toml --figures total").code == 0


def test_a_release_with_a_stream_that_does_not_fit_charges_nothing(discreet, here):
    (here / "release.toml").write_text(RELEASE.replace("epsilon = 1.0", "epsilon = 9.0"), encoding="utf-8")
    done = discreet("release release.toml --out tables")
    assert (done.code, done.err[:5]) == (3, "DP601")
    assert not (here / "calls.ledger").exists() or kinds() == ["open"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('every = "week"', ""),
        ("periods = 52", ""),
        ("periods = 52", "period = 52"),
        ('name = "by_region"', 'name = "total"'),
        ("epsilon = 1.0\ndelta = 1e-7", 'error = "±5"'),
        ('sql = "SELECT region', 'file = 3\nsql = "SELECT region'),
    ],
)
def test_a_section_that_is_not_understood_is_refused(discreet, here, old, new):
    assert old in RELEASE
    (here / "release.toml").write_text(RELEASE.replace(old, new), encoding="utf-8")
    done = discreet("release release.toml --out tables")
    assert (done.code, done.err[:5]) == (2, "DP403")
