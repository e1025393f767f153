# SPDX-License-Identifier: Apache-2.0
"""The command: missing files, unknown flags, bad numbers, no budget; each leaves with the exit code of its kind."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.errors import DiscreetError
from discreet.ledger import Ledger
from tests.mistakes.clinic import SECRETS
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

DESCRIPTION = """[dataset]
source = "visits.parquet"
name = "visits"
unit = "patient_id"

[limits]
rows_per_unit = 2

[columns.ward]
values = ["A", "B", "C"]

[columns.days]
bounds = [0, 60]
"""
BUDGET = '\n[budget]\nepsilon = 1.0\ndelta = 1e-6\nledger = "visits.ledger"\n'
RELEASE = '[release]\nname = "annual"\ndata = "visits.toml"\nepsilon = 0.1\n\n[[table]]\nname = "total"\nsql = "SELECT COUNT(*) FROM visits"\n'
ASK = 'discreet query "SELECT ward, COUNT(*) FROM visits GROUP BY ward"'
HERE = f"{ASK} --data visits.toml"
BARE = f"{ASK} --data bare.toml --epsilon 0.1"


class Refused(DiscreetError):
    """What the command printed, and the code that it left with."""

    def __init__(self, printed: str, left: int) -> None:
        code, what, why, fix, spent = _PRINTED.fullmatch(printed.strip()).groups()
        super().__init__(code, what, why=why, fix=fix, spent=spent)
        self.left = left


_PRINTED = re.compile(r"(DP\d+)  (.+)\nWhy    (.+)\nFix    (.+)\nSpent  (.+)\.", re.DOTALL)


class Shell:
    """A folder with data, a description with and one without a budget, and a ledger with a charge in it."""

    secrets = SECRETS

    def run(self, text: str) -> None:
        for line in text.split("\n"):
            name, *words = shlex.split(line)
            assert name == "discreet"
            left, printed = called(words)
            if left:
                raise Refused(printed, left)

    def spent(self) -> list[tuple[str, int]]:
        return sorted((str(path), len(Ledger(path))) for path in Path().glob("*.ledger"))


def called(words: list[str]) -> tuple[int, str]:
    """The exit code, and what was printed for people to worry about."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as left, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(words)
    return int(left.value.code or 0), err.getvalue()


@pytest.fixture(scope="module")
def charged(written, tmp_path_factory):
    """A folder in which one question was asked."""
    place = tmp_path_factory.mktemp("charged")
    shutil.copytree(written, place, dirs_exist_ok=True)
    (place / "visits.toml").write_text(DESCRIPTION + BUDGET, encoding="utf-8")
    (place / "bare.toml").write_text(DESCRIPTION, encoding="utf-8")
    (place / "release.toml").write_text(RELEASE, encoding="utf-8")
    with contextlib.chdir(place):
        Shell().run(f"{HERE} --epsilon 0.1 --key monday")
    return place


@pytest.fixture
def shell(charged, folder):
    shutil.copytree(charged, folder, dirs_exist_ok=True)
    return Shell()


TWO = (
    Mistake(f"{ASK} --epsilon 0.1", "DP107", "discreet query --help"),
    Mistake(HERE, "DP107", "--epsilon 0.2", f"{HERE} --epsilon 0.2"),
    Mistake(f"{HERE} --eps 0.1", "DP105", "--epsilon", f"{HERE} --epsilon 0.1"),
    Mistake(f"{HERE} --epsilon much", "DP104", "--epsilon 0.1", f"{HERE} --epsilon 0.1"),
    Mistake(f"{HERE} --epsilon 0,1", "DP104", "--epsilon 0.1", f"{HERE} --epsilon 0.1"),
    Mistake(f"{HERE} --epsilon 0", "DP102", "--epsilon 0.1", f"{HERE} --epsilon 0.1"),
    Mistake(f"{HERE} --epsilon nan", "DP101", "--epsilon 0.1", f"{HERE} --epsilon 0.1"),
    Mistake(f"{HERE} --epsilon 0.2 --rho 1", "DP107", "--epsilon 0.2", f"{HERE} --epsilon 0.2"),
    Mistake(f"{HERE} --error small", "DP104", "--error ±50", f"{HERE} --error ±50"),
    Mistake(
        f"{ASK} --data visit.toml --epsilon 0.1", "DP403", "discreet describe visits.parquet --out visit.toml"
    ),
    Mistake(
        f"{ASK} --data visits.parquet --epsilon 0.1",
        "DP105",
        "--data adult",
        'discreet query "SELECT COUNT(*) FROM adult" --data adult --epsilon 0.1 --ledger a.ledger --limit eps=1',
    ),
    Mistake(
        f"{HERE} --epsilon 0.1 --out wards.docx",
        "DP105",
        "--out wards.csv",
        f"{HERE} --epsilon 0.1 --out wards.csv",
    ),
    Mistake(
        f"{HERE} --epsilon 0.1 --out no/wards.csv",
        "DP102",
        "wards.csv",
        f"{HERE} --epsilon 0.1 --out wards.csv",
    ),
    Mistake(
        f"{HERE} --epsilon 0.1 --limit eps=5",
        "DP603",
        "leave out limit=… (--limit)",
        left_out=" --limit eps=5",
    ),
    Mistake(
        "discreet query 'SELECT COUNT(*) FROM visits' --data visits.toml --epsilon 0.1 --key monday",
        "DP604",
        "tuesday",
        "discreet query 'SELECT COUNT(*) FROM visits' --data visits.toml --epsilon 0.1 --key tuesday",
    ),
    Mistake(BARE, "DP107", "--ledger visits.ledger", f"{BARE} --ledger visits.ledger"),
    Mistake(
        f"{BARE} --ledger new.ledger",
        "DP107",
        "--limit eps=1,delta=1e-6",
        f"{BARE} --ledger new.ledger --limit eps=1,delta=1e-6",
    ),
    Mistake(
        f"{BARE} --ledger new.ledger --limit 1",
        "DP105",
        "--limit eps=1,delta=1e-6",
        f"{BARE} --ledger new.ledger --limit eps=1,delta=1e-6",
    ),
    Mistake("discreet quer", "DP105", "discreet --help"),
    Mistake("discreet ledger", "DP107", "discreet ledger --help"),
    Mistake("discreet budget", "DP107", "discreet budget --ledger visits.ledger"),
    Mistake(
        "discreet statement visits.ledger --format pdf --out statement",
        "DP105",
        "--format html,md,json --out statement",
        "discreet statement visits.ledger --format html,md,json --out statement",
    ),
    Mistake("discreet describe visit.parquet", "DP802", "visits.parquet", "discreet describe visits.parquet"),
    Mistake(
        "discreet describe visits.parquet --out visits.toml",
        "DP102",
        "--out visits-new.toml",
        "discreet describe visits.parquet --out visits-new.toml",
    ),
    Mistake("discreet release release.toml", "DP107", "discreet release --help"),
    Mistake(
        "discreet release release.tom --out tables",
        "DP403",
        "release.toml",
        "discreet release release.toml --out tables",
    ),
    Mistake("discreet account 'gaussian(-1)'", "DP102", 'discreet account "gaussian(1.0)"'),
    Mistake(
        "discreet account '10 * gausian(1).sampled(0.01)'",
        "DP105",
        'discreet account "10 * gaussian(1).sampled(0.01)"',
    ),
)
THREE = (
    Mistake(
        f"{HERE} --epsilon 10",
        "DP601",
        "discreet budget",
        f"{HERE} --epsilon 0.5\ndiscreet budget --data visits.toml",
    ),
    Mistake(
        f"{BARE} --ledger no/visits.ledger --limit eps=1",
        "DP606",
        "visits.ledger",
        f"{BARE} --ledger visits.ledger",
    ),
)
FOUR = (
    Mistake(
        "discreet query 'SELECT * FROM visits' --data visits.toml --epsilon 0.1",
        "DP702",
        "SELECT COUNT(*) FROM visits",
        "discreet query 'SELECT COUNT(*) FROM visits' --data visits.toml --epsilon 0.1",
    ),
    Mistake(
        "discreet plan 'SELECT AVG(dais) FROM visits' --data visits.toml --epsilon 0.1",
        "DP701",
        "days",
        "discreet plan 'SELECT AVG(days) FROM visits' --data visits.toml --epsilon 0.1",
    ),
)


STREAM = "discreet stream open 'SELECT COUNT(*) FROM visits' --data visits.toml --every week --periods 4 --epsilon 0.1 --name n"
PUBLISHED = f"{STREAM} --start 2026-01-05\ndiscreet stream release n --data visits.toml"


@mistakes(
    Mistake(f"{STREAM} --per-unit 3", "DP105", "--per-unit rows=3", f"{STREAM} --per-unit rows=3"),
    Mistake(
        "discreet stream show n --data visits.toml --figures all",
        "DP105",
        "--figures totals",
        "discreet stream show n --data visits.toml --figures totals",
        first=PUBLISHED,
    ),
)
def test_streams(mistake, shell):
    check_mistake(mistake, shell)


@mistakes(*TWO)
def test_bad_input_exits_with_status_2(mistake, shell):
    assert check_mistake(mistake, shell).left == 2


@mistakes(*THREE)
def test_a_query_that_does_not_fit_exits_with_status_3(mistake, shell):
    assert check_mistake(mistake, shell).left == 3


@mistakes(*FOUR)
def test_a_query_that_cannot_be_proved_private_exits_with_status_4(mistake, shell):
    assert check_mistake(mistake, shell).left == 4


def test_a_damaged_ledger_exits_with_status_5_until_a_copy_is_put_back(shell, folder):
    book = folder / "visits.ledger"
    kept = book.read_bytes()
    book.write_bytes(b"x" * len(kept))
    with pytest.raises(Refused) as refused:
        shell.run(f"{HERE} --epsilon 0.1")
    assert (refused.value.left, refused.value.code, refused.value.spent) == (5, "DP602", "nothing")
    assert "A copy forgets what was charged after it was made" in refused.value.fix
    book.write_bytes(kept)
    shell.run(f"{HERE} --epsilon 0.1")
    # the folder was copied, so that the data lie elsewhere now: that is one row more
    assert len(Ledger(book)) == 6
