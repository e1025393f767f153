# SPDX-License-Identifier: Apache-2.0
"""Every option of every command, with numbers that are none: a coded error and a documented exit code, never a traceback."""

from __future__ import annotations

import contextlib
import io
import re
import shutil

import pytest
import typer

from discreet.cli import main
from discreet.cli.app import app
from tests.mistakes.test_command_line import BUDGET, DESCRIPTION, RELEASE

SQL = "SELECT COUNT(*) FROM visits"
#: What nobody means by a number; the last is a whole one that no machine counts to.
NUMBERS = (
    "nan",
    "NaN",
    "inf",
    "-inf",
    "0",
    "-1",
    "1e400",
    "1e-400",
    "-0.0",
    "",
    " ",
    "0x10",
    "１",
    "1" + "0" * 400,
)
CODES = {0, 2, 3, 4, 5}
#: A call of each command that works, to which one option is added.
CALLS = {
    ("demo",): (),
    ("describe",): ("visits.parquet",),
    ("plan",): (SQL, "--data", "visits.toml", "--epsilon", "0.1"),
    ("query",): (SQL, "--data", "visits.toml", "--epsilon", "0.1"),
    ("release",): ("release.toml",),
    ("synthesize",): ("--data", "visits.toml", "--epsilon", "0.1", "--delta", "1e-7"),
    ("budget",): ("--data", "visits.toml"),
    ("audit",): ("discreet.mechanisms:nothing",),
    ("version",): (),
    ("ledger", "show"): ("visits.ledger",),
    ("ledger", "verify"): ("visits.ledger",),
    ("ledger", "export"): ("visits.ledger",),
    ("ledger",): (),
    ("stream", "open"): (
        SQL,
        "--data",
        "visits.toml",
        "--every",
        "week",
        "--periods",
        "4",
        "--epsilon",
        "0.1",
    ),
    ("stream", "release"): ("weekly", "--data", "visits.toml"),
    ("stream", "show"): ("weekly", "--data", "visits.toml"),
    ("stream",): (),
    ("statement", "of"): ("visits.ledger",),
    ("statement", "verify"): ("statement.html", "visits.ledger"),
    ("statement",): ("visits.ledger",),
    # A server that starts does not end: these are refused for their settings, whatever the options.
    ("serve", "of"): ("nowhere.toml",),
    ("serve", "check"): ("nowhere.toml",),
    ("serve", "backup"): ("nowhere.toml", "copies"),
    ("serve",): (),
    ("people", "add"): ("nowhere.toml", "ana", "--dataset", "visits"),
    ("people", "list"): ("nowhere.toml",),
    ("people",): (),
    ("login",): ("nowhere",),
    ("account", "dpsgd"): (
        "--n",
        "1000",
        "--batch",
        "10",
        "--noise",
        "1",
        "--epochs",
        "1",
        "--delta",
        "1e-6",
    ),
    ("account", "of"): ("gaussian(1)", "--delta", "1e-6"),
    ("account",): ("gaussian(1)", "--delta", "1e-6"),
    (): (),
}
#: Commands that run for a while if nothing is wrong with them.
SLOW = {("demo",)}


def commands(command=None, path=()):
    """Every command that the help lists, with its options."""
    command = typer.main.get_command(app) if command is None else command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))
    yield path, command


COMMANDS = dict(commands())
OPTIONS = [
    (path, option.opts[0])
    for path, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option" and not option.is_flag and path not in SLOW
]


@pytest.fixture(scope="module")
def place(written, tmp_path_factory):
    """A folder in which every call of the table works."""
    folder = tmp_path_factory.mktemp("options")
    shutil.copytree(written, folder, dirs_exist_ok=True)
    (folder / "visits.toml").write_text(DESCRIPTION + BUDGET, encoding="utf-8")
    (folder / "release.toml").write_text(RELEASE, encoding="utf-8")
    with contextlib.chdir(folder):
        assert called(["query", SQL, "--data", "visits.toml", "--epsilon", "0.1"])[0] == 0
        assert called(["statement", "visits.ledger", "--out", "statement.html"])[0] == 0
    return folder


@pytest.fixture
def folder_of_a_call(place, tmp_path, monkeypatch):
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def called(words):
    """The exit code, and what was printed as an error; anything but a `SystemExit` fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as left, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(list(words))
    return int(left.value.code or 0), err.getvalue()


def check_left(words):
    """Either it is done, or there is an error with a code and all its lines, and an exit code that is documented."""
    code, printed = called(words)
    assert code in CODES, (words, code, printed)
    assert "Traceback" not in printed
    if code and not re.search(r"^(DP\d{3}  |\{)", printed, re.MULTILINE):
        assert code == 5, (words, code, printed)  # an answer in itself: not intact, not true
    return code, printed


def test_the_table_has_every_command():
    assert CALLS.keys() == COMMANDS.keys()


@pytest.mark.parametrize(
    ("path", "option"), OPTIONS, ids=lambda one: one if isinstance(one, str) else " ".join(one)
)
def test_a_number_that_is_none(path, option, folder_of_a_call):
    known = list(CALLS[path])
    if option in known:
        at = known.index(option)
        del known[at : at + 2]
    for number in NUMBERS:
        check_left([*path, *known, option, number])
    check_left([*path, *known, f"{option}=-1"])


@pytest.mark.parametrize(
    ("path", "option"), OPTIONS, ids=lambda one: one if isinstance(one, str) else " ".join(one)
)
def test_an_option_without_its_value(path, option, folder_of_a_call):
    code, printed = check_left([*path, *CALLS[path], option])
    assert code == 2
    assert printed.startswith("DP10")


@pytest.mark.parametrize("path", CALLS, ids=" ".join)
@pytest.mark.parametrize("unknown", ["--nothing", "--nothing=1", "-Z", "--epsilom", "--", "---"])
def test_an_option_that_is_none(path, unknown, folder_of_a_call):
    if path in SLOW and unknown == "--":
        pytest.skip("that is a whole demonstration")
    code, printed = check_left([*path, *CALLS[path], unknown])
    assert unknown == "--" or (code == 2 and printed.startswith("DP10"))


@pytest.mark.parametrize("path", [path for path in CALLS if path not in SLOW], ids=" ".join)
def test_a_command_without_what_it_needs(path, folder_of_a_call):
    """Each word of a call that works is left out in turn."""
    check_left(path)
    for at in range(len(CALLS[path])):
        check_left([*path, *CALLS[path][:at], *CALLS[path][at + 1 :]])
