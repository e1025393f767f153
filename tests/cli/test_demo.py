# SPDX-License-Identifier: Apache-2.0
"""`discreet demo` asks five questions, is refused the sixth, and leaves a ledger, a statement and a picture."""

from __future__ import annotations

import re

import pytest

from discreet.cli.demo import QUESTIONS
from discreet.ledger import Ledger


@pytest.fixture
def place(discreet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = discreet("demo")
    assert (done.code, done.err) == (0, "")
    return done.out, tmp_path / "discreet-demo"


def test_the_demonstration(discreet, place):
    page, folder = place
    assert max(len(line.rstrip()) for line in page.splitlines()) <= 80
    assert len(page.splitlines()) <= 80
    assert [
        f"{number}. {words[:30]}"
        for number, (words, _, _) in enumerate(QUESTIONS, 1)
        if words[:30] not in page
    ] == []
    assert "DP601" in page
    assert "Spent  nothing." in page
    assert sorted(path.name for path in folder.iterdir()) == ["adult-1.ledger", "hours.svg", "statement.html"]
    _what_is_left_only_falls(page)
    _every_charge_is_in_the_ledger(folder)
    _a_second_run_has_a_ledger_of_its_own(discreet, folder)


def _what_is_left_only_falls(page):
    left = [int(share) for share in re.findall(r"(\d+)% of the limit remains", page)]
    assert len(left) == len(QUESTIONS)
    assert left == sorted(left, reverse=True)


def _every_charge_is_in_the_ledger(folder):
    ledger = Ledger(folder / "adult-1.ledger")
    charged = [entry.question for entry in ledger.entries() if entry.kind == "reserved"]
    assert charged == [sql for _, sql, _ in QUESTIONS]
    assert ledger.verify().intact
    statement = (folder / "statement.html").read_text(encoding="utf-8")
    assert "ε = 1 at δ = 1e-06" in statement
    assert ledger.anchor() in statement


def _a_second_run_has_a_ledger_of_its_own(discreet, folder):
    assert discreet("demo").code == 0
    assert (folder / "adult-2.ledger").exists()


def test_what_to_try_next_can_be_typed_as_it_stands(monkeypatch, tmp_path):
    from discreet.cli.demo import _command

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(tmp_path / ".venv" / "bin" / "discreet"), "demo"])
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert _command() == ".venv/bin/discreet"
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert _command() == "discreet"
