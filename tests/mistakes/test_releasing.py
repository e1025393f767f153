# SPDX-License-Identifier: Apache-2.0
"""A release file with a stream, and a synthetic copy, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mistakes.mistakes import Mistake, check_mistake, mistakes
from tests.mistakes.test_command_line import Shell, charged, shell  # noqa: F401 - fixtures

RIGHT = """[release]
name = "weekly"
data = "visits.toml"

[[stream]]
name = "visits"
sql = "SELECT COUNT(*) FROM visits"
every = "week"
periods = 52
epsilon = 0.1
"""


class ReleaseShell(Shell):
    """The same folder; the text is the release file that is run."""

    def run(self, text: str) -> None:
        Path("weekly.toml").write_text(text, encoding="utf-8")
        super().run("discreet release weekly.toml --out tables")


def slip(old: str, new: str, fix: str) -> Mistake:
    """The release file with one thing wrong in it."""
    assert old in RIGHT
    return Mistake(RIGHT.replace(old, new, 1), "DP403", fix, RIGHT)


@pytest.fixture
def releasing(shell):  # noqa: F811
    return ReleaseShell()


FILES = (
    slip("epsilon = 0.1", 'error = "±50"', "epsilon = 0.1"),
    slip('every = "week"\n', "", 'every = "week"'),
    slip("periods = 52\n", "", "periods = 52"),
)
MADE_UP = """[release]
name = "weekly"
data = "visits.toml"
delta = 1e-7

[[copy]]
name = "made_up"
epsilon = 0.1
rows = 30
format = "csv"
"""


def copy_slip(right: str, wrong: str, fix: str) -> Mistake:
    """The release file of a copy with one line wrong, and with the line of the fix."""
    return Mistake(MADE_UP.replace(right, wrong), "DP403", fix, MADE_UP.replace(right, fix))


FILES = (
    *FILES,
    copy_slip("epsilon = 0.1", 'error = "±5"', "rho = 0.005"),
    copy_slip('format = "csv"', 'format = "xlsx"', 'format = ["csv", "parquet"]'),
    copy_slip("rows = 30", "rows = -1", "rows = 1000"),
)
COPY = "discreet synthesize --data visits.toml --columns ward,days --epsilon 0.5 --delta 1e-7"
COPIES = (Mistake(f"{COPY} --bins days", "DP104", "--bins days=10", f"{COPY} --bins days=10"),)


@mistakes(*FILES)
def test_release_files(mistake, releasing):
    assert check_mistake(mistake, releasing).left == 2


def test_only_what_is_missing_is_to_be_added(releasing):
    error = check_mistake(slip('every = "week"\n', "", 'every = "week"'), releasing)
    assert "periods" not in error.fix


@mistakes(*COPIES)
def test_synthetic_copies(mistake, shell):  # noqa: F811
    assert check_mistake(mistake, shell).left == 2
