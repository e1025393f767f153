# SPDX-License-Identifier: Apache-2.0
"""`discreet release`: all tables or none, paid for once, whole files, and a statement."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest
from pyarrow import parquet

import discreet as dp
from discreet.cli import release as command
from discreet.ledger import Ledger
from tests.chance import no_chance
from tests.cli import visits
from tests.processes import PATIENCE

RUN = "release release.toml --out tables"
WRITTEN = [
    "by_ward.csv",
    "by_ward.csv-metadata.json",
    "by_ward.parquet",
    "statement.html",
    "statement.json",
    "statement.md",
    "total.csv",
    "total.csv-metadata.json",
]


pytestmark = pytest.mark.usefixtures("here")


def charges():
    return [entry.question for entry in Ledger("visits.ledger").entries() if entry.kind == "reserved"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(here, text):
    (here / "release.toml").write_text(text, encoding="utf-8")


def test_a_release_is_tables_and_a_statement(discreet, here):
    done = discreet(RUN)
    assert (done.code, done.err) == (0, "")
    assert names(here / "tables") == WRITTEN
    with (here / "tables" / "by_ward.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["ward"] for row in rows] == list(visits.WARDS)
    assert {"count_lo", "count_hi", "avg_days_lo", "avg_days_hi"} <= set(rows[0])
    schema = parquet.read_schema(here / "tables" / "by_ward.parquet")
    assert b"discreet.receipt" in schema.metadata
    stated = json.loads((here / "tables" / "statement.json").read_text(encoding="utf-8"))
    assert [line["purpose"] for line in stated["released"]] == ["annual report"] * 2
    assert stated["claim"]["epsilon"] == 1.0


def test_a_second_run_pays_for_nothing_and_writes_the_same(discreet, here):
    first = discreet(f"{RUN} --json").object
    before = (here / "tables" / "by_ward.csv").read_bytes()
    again = discreet("release release.toml --out elsewhere --json").object
    assert [table["paid"] for table in first["tables"]] == [True, True]
    assert [table["paid"] for table in again["tables"]] == [False, False]
    assert (here / "elsewhere" / "by_ward.csv").read_bytes() == before
    assert len(charges()) == 2
    assert "paid before" in discreet("plan release.toml").out


def test_stopped_while_files_are_written_there_are_none_and_a_second_run_pays_nothing(
    discreet, here, monkeypatch
):
    real, calls = command.writer, []

    def stops(answer, path):
        def write(place):
            calls.append(path)
            if len(calls) == 2:
                raise KeyboardInterrupt
            real(answer, path)(place)

        return write

    monkeypatch.setattr(command, "writer", stops)
    assert discreet(RUN).code == 130
    assert names(here / "tables") == []
    monkeypatch.setattr(command, "writer", real)
    again = discreet(f"{RUN} --json").object
    assert [table["paid"] for table in again["tables"]] == [False, False]
    assert len(charges()) == 2


#: Runs the release of this folder, and kills itself at the n-th of some calls.
KILLED = """
import os, signal, sys
from discreet.cli import main
module, name, point = sys.argv[1], sys.argv[2], int(sys.argv[3])
home = __import__(module, fromlist=["_"])
owner, _, method = name.rpartition(".")
home = getattr(home, owner) if owner else home
real, calls = getattr(home, method), []
def dies(*given, **named):
    calls.append(1)
    if len(calls) == point:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **named)
setattr(home, method, dies)
main(["release", "release.toml", "--out", "tables"])
"""


@no_chance("whatever the noise, the charges are the same")
@pytest.mark.parametrize(
    ("where", "charged", "answered"),
    [
        ("discreet.tables.plan.compile TableMechanism.draw_aggregates 1", 2, 0),
        ("discreet.tables.plan.compile TableMechanism.draw_aggregates 2", 2, 0),
        ("discreet.ledger.ledger Ledger.commit_all 1", 2, 0),
        ("discreet.cli.release write_together 1", 2, 2),
        ("pathlib Path.replace 2", 2, 2),
    ],
)
def test_killed_anywhere_it_is_charged_once_and_a_second_run_completes_it(
    discreet, here, where, charged, answered
):
    done = subprocess.run([sys.executable, "-c", KILLED, *where.split()], check=False, cwd=here)
    assert done.returncode == -9
    kinds = [entry.kind for entry in Ledger("visits.ledger").entries()]
    assert (kinds.count("reserved"), kinds.count("committed")) == (charged, answered)
    paid = Ledger("visits.ledger").spent
    assert "paid before" in discreet("plan release.toml").out
    again = discreet(f"{RUN} --json").object
    assert [table["paid"] for table in again["tables"]] == [False, False]
    assert Ledger("visits.ledger").spent == paid
    assert Ledger("visits.ledger").verify().findings == ()
    assert set(WRITTEN) <= set(names(here / "tables"))


def test_a_release_is_paid_for_whole_or_not_at_all_while_others_spend_the_limit(discreet, here, monkeypatch):
    """The first table alone would still fit when the second session has spent its part, between plan and charge."""
    real = command.can_write

    def meanwhile(paths):
        other = dp.Session(dp.open("visits.toml"), analyst="ben")
        other.sql("SELECT COUNT(*) FROM visits", epsilon=0.8)
        return real(paths)

    monkeypatch.setattr(command, "can_write", meanwhile)
    done = discreet(RUN)
    assert (done.code, done.err[:5]) == (3, "DP601")
    assert "Spent  nothing" in done.err
    assert charges() == ["SELECT COUNT(*) FROM visits"]
    assert not (here / "tables").exists()


@no_chance("whatever the noise, the charges are the same")
def test_two_releases_at_the_same_time_each_get_all_or_nothing(here):
    """Two processes release different tables of the same limit, which has room for one of them."""
    write(here, visits.RELEASE.replace("epsilon = 0.2", "epsilon = 0.7"))
    other = visits.RELEASE.replace("epsilon = 0.2", "epsilon = 0.8").replace("annual-2026", "another")
    (here / "other.toml").write_text(other, encoding="utf-8")
    Ledger("visits.ledger", limit=dp.Limit.filter(1.0, 1e-6), unit="patient", dataset="visits").close()
    words = [sys.executable, "-m", "discreet", "release"]
    running = [
        subprocess.Popen([*words, file, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for file, out in (("release.toml", "one"), ("other.toml", "two"))
    ]
    codes = [process.wait(timeout=PATIENCE) for process in running]
    assert sorted(codes) == [0, 3]
    assert len(charges()) == 2
    assert [(here / out).exists() for out in ("one", "two")] == [code == 0 for code in codes]
    assert Ledger("visits.ledger").verify().findings == ()


def test_nothing_is_charged_unless_everything_fits(discreet, here):
    write(here, visits.RELEASE.replace("epsilon = 0.2", "epsilon = 0.95"))
    done = discreet(RUN)
    assert (done.code, done.err[:5]) == (3, "DP601")
    assert charges() == []
    assert not (here / "tables").exists()


def test_a_private_choice_of_rows_is_part_of_what_has_to_fit(discreet, here):
    """0.9 and a tenth of it fit into 1; 0.95 does, but not with its tenth."""
    visits.make(here, limits='"auto"')
    head = '[release]\ndata = "visits.toml"\n[[table]]\nname = "total"\nsql = "SELECT COUNT(*) FROM visits"\n'
    write(here, f"{head}epsilon = 0.95\n")
    assert discreet(RUN).code == 3
    assert charges() == []
    write(here, f"{head}epsilon = 0.9\n")
    assert discreet(RUN).code == 0
    assert len(charges()) == 2


def test_an_error_is_a_cost_that_is_known_in_advance(discreet, here):
    total = 'sql = "SELECT COUNT(*) FROM visits"\nepsilon = 0.2'
    write(here, visits.RELEASE.replace(total, 'sql = "SELECT COUNT(*) FROM visits"\nerror = "±30"'))
    found = discreet(f"{RUN} --json")
    assert found.code == 0, found.out
    assert discreet(f"{RUN} --json").object["tables"][1]["paid"] is False
    write(here, visits.RELEASE.replace(total, 'sql = "SELECT AVG(days) FROM visits"\nerror = "±1"'))
    done = discreet(RUN)
    assert (done.code, done.err[:5]) == (2, "DP107")


def test_a_changed_release_needs_a_new_name(discreet, here):
    discreet(RUN)
    write(here, visits.RELEASE.replace("epsilon = 0.2", "epsilon = 0.3"))
    done = discreet(RUN)
    assert (done.code, done.err[:5]) == (2, "DP604")
    assert "a new name" in done.err
    assert len(charges()) == 2
    write(
        here, visits.RELEASE.replace("epsilon = 0.2", "epsilon = 0.3").replace("annual-2026", "annual-2027")
    )
    assert discreet(RUN).code == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "total"', 'name = "../total"'),
        ('name = "total"', 'name = "by_ward"'),
        ('name = "total"', "name = 7"),
        ("epsilon = 0.2", "epsilon = -1"),
        ("epsilon = 0.2", "epsilonn = 0.2"),
        ("epsilon = 0.1", ""),
        ('format = "csv"', 'format = "docx"'),
        ('format = "csv"', "format = []"),
        ('data = "visits.toml"', ""),
        ("[release]", "[release"),
        ("[release]", "[other]\n[release]"),
        ("[[table]]", "[[tables]]"),
        ('analyst = "ana"', "analyst = 3"),
    ],
)
def test_a_mistyped_release_is_refused(discreet, here, old, new):
    write(here, visits.RELEASE.replace(old, new))
    done = discreet(RUN)
    assert (done.code, done.err[:5]) == (2, "DP403"), done.err
    assert not (here / "visits.ledger").exists() or charges() == []


def test_a_question_that_is_refused_stops_the_whole_release(discreet, here):
    write(here, visits.RELEASE.replace("SELECT COUNT(*) FROM visits", "SELECT patient_id FROM visits"))
    done = discreet(RUN)
    assert done.code == 4
    assert charges() == []
    assert not (here / "tables").exists()


def test_a_place_that_cannot_be_written_is_found_before_anything_is_charged(discreet, here):
    (here / "tables").write_text("a file", encoding="utf-8")
    done = discreet(RUN)
    assert (done.code, done.err[:5]) == (2, "DP102")
    assert charges() == []
