# SPDX-License-Identifier: Apache-2.0
"""The help lists everything, and asking for it loads no numerics."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata

import pytest

from tests.chance import no_chance

MODULE = [sys.executable, "-m", "discreet", "account", "3 * pure(1)", "--delta", "0"]
ASKS = [
    "--delta",
    "--epsilon",
    "--route",
    "--compare",
    "--bound",
    "--relation",
    "--unit",
    "--json",
    "--plot",
]


@pytest.mark.parametrize("line", ["account --help", "account -h", "account"])
def test_the_help_of_account_lists_every_flag(discreet, line):
    done = discreet(line)
    assert done.code == 0
    words = ["EXPRESSION", "gaussian", "laplace", ".sampled(rate)", "account dpsgd", *ASKS]
    assert [word for word in words if word not in done.out] == []


def test_the_help_of_dpsgd_lists_every_flag(discreet):
    out = discreet("account dpsgd --help").out
    flags = [
        "--n",
        "--batch",
        "--noise",
        "--epochs",
        "--steps",
        "--scheme",
        "--delta",
        "--epsilon",
        "--relation",
        "--json",
        "--plot",
    ]
    assert [name for name in flags if name not in out] == []


@pytest.mark.parametrize("line", ["", "--help", "-h"])
def test_the_help_lists_every_command(discreet, line):
    done = discreet(line)
    assert done.code == 0
    commands = (
        "demo",
        "describe",
        "plan",
        "query",
        "release",
        "budget",
        "ledger",
        "statement",
        "account",
        "audit",
    )
    assert [name for name in (*commands, "version") if name not in done.out] == []


def test_the_help_of_ledger_lists_what_can_be_read(discreet):
    assert [name for name in ("show", "verify", "export") if name not in discreet("ledger --help").out] == []


def test_the_version_is_that_of_the_package(discreet):
    number = metadata.version("discreet")
    assert discreet("--version").out == discreet("version").out == f"discreet {number}\n"
    assert discreet("version --json").object["discreet"] == number


@no_chance("only help and accounting are asked for")
def test_help_loads_no_numerics():
    program = (
        "import sys\nfrom discreet.cli import main\n"
        "for command in ('account', 'query', 'release', 'statement'):\n"
        "    try:\n        main([command, '--help'])\n    except SystemExit:\n        pass\n"
        "heavy = {'numpy', 'scipy', 'duckdb', 'discreet.privacy', 'discreet.ledger', 'discreet.tables'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@no_chance("only help and accounting are asked for")
def test_the_command_runs_as_a_module_without_colour():
    done = subprocess.run(MODULE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ε at δ = 0    3" in done.stdout
    assert "\x1b" not in done.stdout


@no_chance("only help and accounting are asked for")
def test_a_terminal_without_greek_letters_gets_an_answer():
    done = subprocess.run(
        MODULE, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"? at ? = 0    3" in done.stdout


def test_a_section_of_a_description_is_named_in_the_help(discreet):
    assert "the one in [budget]." in " ".join(discreet("query --help").out.replace("│", " ").split())


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("query --help", "Exits with status 3 if the budget is too small"),
        ("release --help", "no table is charged twice"),
        ("statement verify --help", "and with status 5 if they do not."),
    ],
)
def test_a_paragraph_of_the_help_is_not_broken_where_its_docstring_is(discreet, monkeypatch, line, sentence):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 1000)
    help_lines = [text for text in discreet(line).out.splitlines() if sentence in text]
    assert len(help_lines) == 1
