# SPDX-License-Identifier: Apache-2.0
"""Whatever cannot be answered is refused with a code, a fix and an exit code; in JSON too; never with a traceback."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.console import Console

from discreet.cli import app, terminal
from discreet.errors import CannotCertify

BAD_INPUT = {
    "account gaussian(1e999)": "DP101",
    "account gaussian(-1)": "DP102",
    "account gaussian(0)": "DP102",
    "account gaussian(1).sampled(1.5)": "DP102",
    "account 0*gaussian(1)": "DP102",
    "account gaussian(1) --delta 1": "DP102",
    "account gaussian(1) --epsilon -1": "DP102",
    "account gaussian(?) --epsilon 0": "DP102",
    "account gaussian(1) --plot nowhere/curve.svg": "DP102",
    "account 2.5*gaussian(1)": "DP103",
    "account gaussian(1) --delta small": "DP104",
    "account gaussian(1) --unit ' '": "DP104",
    "account gausian(1)": "DP105",
    "account gaussian(1) --gaussian 1": "DP105",
    "account --gaussian 1": "DP105",
    "account 5": "DP105",
    "acount": "DP105",
    "account gaussian(1) --relation swap": "DP105",
    "account gaussian(1) --route magic": "DP105",
    "account gaussian(1) --plot curve.gif": "DP105",
    "account --delta 1e-6": "DP107",
    "account ''": "DP107",
    "account gaussian(1": "DP107",
    "account gaussian(1) --delta": "DP107",
    "account gaussian(1) --delta 1e-6 --epsilon 1": "DP107",
    "account gaussian(1) --epsilon 1 --compare": "DP107",
    "account gaussian(1) --epsilon 1 --route gdp": "DP107",
    "account gaussian(?)": "DP107",
    "account ?*gaussian(?) --epsilon 1": "DP107",
    "account dpsgd": "DP107",
    "account dpsgd --n 100 --batch 200 --noise 1 --epochs 1": "DP107",
    "account dpsgd --n 100 --batch 10 --noise 1": "DP107",
    "account dpsgd --n 100 --batch 10 --epochs 1": "DP107",
    "account dpsgd --n 100 --batch 10 --noise 1 --epochs 1 --steps 10": "DP107",
    "account dpsgd --n 100 --batch 10 --noise 1 --epochs 1 --epsilon 1": "DP107",
    "account dpsgd --n 100 --batch 10 --epsilon 1": "DP107",
    "account dpsgd --n 100 --batch": "DP107",
    "account dpsgd --n 100 --batch 10 --noise 1 --epochs 0": "DP102",
    "account dpsgd --n 100 --batch 10 --noise 1 --epochs ten": "DP104",
    "account dpsgd --n 1e2.5 --batch 10 --noise 1 --epochs 1": "DP104",
    "account dpsgd --n 100.5 --batch 10 --noise 1 --epochs 1": "DP103",
    "account dpsgd --n 100 --batch 10 --noise 1 --epochs 1 --scheme shuffle": "DP105",
}
REFUSED = {
    "account approximate(1,0.1).group(9)": "DP203",
    "account laplace(1) --route gdp": "DP204",
    "account gaussian(?)+pure(3) --epsilon 1": "DP302",
    "account ?*gaussian(1)+pure(3) --epsilon 1": "DP302",
    "account dpsgd --n 100 --batch 100 --noise 0.01 --epsilon 1": "DP302",
}


@pytest.mark.parametrize("line", BAD_INPUT | REFUSED)
def test_a_refusal_has_four_lines_and_an_exit_code(discreet, line):
    done = discreet(line)
    assert done.code == (2 if line in BAD_INPUT else 3)
    assert done.out == ""
    lines = done.err.splitlines()
    assert [words.split()[0] for words in lines] == [(BAD_INPUT | REFUSED)[line], "Why", "Fix", "Spent"]
    assert "Traceback" not in done.err


@pytest.mark.parametrize("line", BAD_INPUT | REFUSED)
def test_a_refusal_is_one_object_with_json(discreet, line):
    # at the end a flag without a value would take --json for it, so it comes as early as it can
    command = "account dpsgd" if line.startswith("account dpsgd") else line.split()[0]
    done = discreet(f"{command} --json {line.removeprefix(command)}")
    assert done.code == (2 if line in BAD_INPUT else 3)
    assert done.err == ""
    assert set(done.object["error"]) == {"code", "what", "why", "fix", "spent", "bracket"}
    assert done.object["error"]["code"] == (BAD_INPUT | REFUSED)[line]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("account gausian(1)", "gaussian(1)"),
        ("acount", "account"),
        ("account gaussian", "gaussian(1.0)"),
        ("account 3", "gaussian(1.0)"),
        ("account gaussian(1) --route magic", "loss distribution"),
        ("account dpsgd --n 100 --batch 10 --epochs 1", "--noise"),
    ],
)
def test_a_refusal_says_what_to_write_instead(discreet, line, hint):
    assert hint in discreet(line).err


def test_a_missing_dependency_is_named_with_the_line_that_installs_it(discreet, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = discreet(f"account 'gaussian(1)' --plot {tmp_path / 'curve.png'}")
    assert done.code == 3
    assert done.err.startswith("DP501")
    assert "pip install 'discreet[plot]'" in done.err


def test_a_bracket_travels_with_the_error(capsys):
    error = CannotCertify("DP301", "no bound.", why="numerics.", fix="wait", bracket=(1.0, float("inf")))
    assert app._print_refusal(error, ["--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["bracket"] == [1.0, "Infinity"]


def test_on_a_terminal_the_four_lines_keep_their_columns(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=40, color_system=None)
    monkeypatch.setattr(terminal, "console", lambda **_: screen)
    terminal.print_error(CannotCertify("DP301", "words " * 20, why="because", fix="[bold]x[/bold]"))
    lines = screen.file.getvalue().splitlines()
    assert lines[0].startswith("DP301  words")
    assert lines[1].startswith("       words")
    assert any("Fix    [bold]x[/bold]" in line for line in lines)
