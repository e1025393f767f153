# SPDX-License-Identifier: Apache-2.0
"""A ledger in a file: what is damaged, cut off, exchanged or out of reach is refused with a code, and never raw."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import privacy
from discreet.errors import DiscreetError, LedgerDamaged, LedgerError
from discreet.ledger import Ledger, Limit, chain
from discreet.ledger.sqlite import _SCHEMA, SQLite
from tests.ledger.workers import writing

TENTH = privacy.pure(0.1)
LIMIT = Limit.filter(epsilon=1)
ANSWER = "a secret that nobody may see"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A ledger with eight charges, five of them answered, and its anchor."""
    path = tmp_path_factory.mktemp("book") / "a.ledger"
    with Ledger(path, limit=LIMIT) as ledger:
        for number in range(8):
            receipt = ledger.charge(TENTH, question=f"q{number}", key=f"k{number}")
            if number < 5:
                ledger.commit(receipt, ANSWER)
        return path, ledger.anchor()


@pytest.fixture
def copy(book, tmp_path):
    return Path(shutil.copy(book[0], tmp_path / "b.ledger"))


def tamper(path, *statements):
    """What somebody does who holds the file and knows SQL: triggers off, statements, triggers on."""
    triggers = [sql for sql in _SCHEMA if sql.startswith("CREATE TRIGGER")]
    with closing(sqlite3.connect(path)) as connection, connection:
        for sql in triggers:
            connection.execute(f"DROP TRIGGER {sql.split()[2]}")
        for statement, *values in statements:
            connection.execute(statement, values)
        for sql in triggers:
            connection.execute(sql)


def refused(path, **named):
    with pytest.raises(DiscreetError) as caught:
        Ledger(path, **named)
    assert ANSWER not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value.code


# --- triggers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET body = ''",
        "UPDATE ledger_entries SET answer = NULL WHERE number = 2",
        "DELETE FROM ledger_entries",
        "DELETE FROM ledger_entries WHERE number = 13",
        "INSERT INTO ledger_entries VALUES (99, 'reserved', NULL, NULL, '{}', 'x', NULL)",
        "INSERT OR REPLACE INTO ledger_entries VALUES (3, 'reserved', NULL, NULL, '{}', 'x', NULL)",
        "UPDATE ledger_head SET number = 3",
        "DELETE FROM ledger_head",
    ],
)
def test_rows_can_only_be_added(copy, statement):
    with (
        closing(sqlite3.connect(copy)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="only ever added"),
    ):
        connection.execute(statement)


# --- what somebody with the file can do, and is seen ----------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            ("UPDATE ledger_entries SET body = replace(body, '1/10', '1/99') WHERE number = 1",), id="cost"
        ),
        pytest.param(
            ("UPDATE ledger_entries SET body = replace(body, 'q7', 'q8') WHERE number = 13",), id="question"
        ),
        pytest.param(
            ("UPDATE ledger_entries SET answer = '\"other\"' WHERE kind = 'committed'",), id="answer"
        ),
        pytest.param(("UPDATE ledger_entries SET answer = NULL WHERE kind = 'committed'",), id="no answer"),
        pytest.param(("UPDATE ledger_entries SET key = 'other' WHERE number = 13",), id="key"),
        pytest.param(("UPDATE ledger_entries SET kind = 'committed' WHERE number = 13",), id="kind"),
        pytest.param(("UPDATE ledger_entries SET settles = 99 WHERE number = 13",), id="settles"),
        pytest.param(("UPDATE ledger_entries SET hash = ? WHERE number = 4", "f" * 64), id="hash"),
        pytest.param(("UPDATE ledger_entries SET body = ? WHERE number = 4", b"{}"), id="bytes"),
        pytest.param(
            ("UPDATE ledger_entries SET body = CAST(x'ff80' AS TEXT) WHERE number = 4",), id="no text"
        ),
        pytest.param(("UPDATE ledger_entries SET body = ? WHERE number = 4", "[" * 100_000), id="deep"),
        pytest.param(("UPDATE ledger_entries SET body = ? WHERE number = 4", "9" * 100_000), id="a number"),
        pytest.param(("UPDATE ledger_entries SET body = '[]' WHERE number = 0",), id="first"),
        pytest.param(("DELETE FROM ledger_entries WHERE number = 0",), id="first removed"),
        pytest.param(("DELETE FROM ledger_entries WHERE number = 5",), id="removed"),
        pytest.param(("DELETE FROM ledger_entries WHERE number = 13",), id="last removed"),
        pytest.param(("DELETE FROM ledger_entries WHERE number > 3",), id="cut off"),
        pytest.param(("DELETE FROM ledger_entries",), id="emptied"),
        pytest.param(("DELETE FROM ledger_head",), id="headless"),
        pytest.param(("UPDATE ledger_head SET number = 12",), id="head moved"),
        pytest.param(("UPDATE ledger_head SET number = 'x'",), id="head nowhere"),
        pytest.param(
            (
                "UPDATE ledger_head SET (number, hash) = (SELECT number, hash FROM ledger_entries WHERE number = 3)",
            ),
            id="head put back",
        ),
        pytest.param(("CREATE TABLE more (x)",), id="table added"),
        pytest.param(("DROP INDEX ledger_answered",), id="index dropped"),
        pytest.param(("ALTER TABLE ledger_entries ADD COLUMN more TEXT",), id="column added"),
        pytest.param(("DROP TABLE ledger_head",), id="table dropped"),
    ],
)
def test_what_was_changed_is_refused(copy, change):
    try:
        tamper(copy, change)
    except sqlite3.OperationalError:  # a trigger of a table that is gone cannot be made again
        assert "DROP TABLE" in change[0]
    assert refused(copy) == "DP602"


def test_a_trigger_that_is_missing_is_noticed(copy):
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("DROP TRIGGER ledger_never_removed")
    assert refused(copy) == "DP602"


def test_a_ledger_that_is_cut_off_with_care_is_noticed_by_its_anchor(copy, book):
    """Head and all: only what was written down elsewhere can tell."""
    (hash_of_last,) = (
        sqlite3.connect(copy).execute("SELECT hash FROM ledger_entries WHERE number = 9").fetchone()
    )
    cut = ("DELETE FROM ledger_entries WHERE number > 9",)
    tamper(copy, cut, ("UPDATE ledger_head SET number = 9, hash = ?", hash_of_last))
    assert refused(copy, anchor=book[1]) == "DP602"
    with Ledger(copy) as shorter:
        assert not shorter.verify(anchor=book[1]).intact
        assert shorter.spent["epsilon"] == Fraction(1, 2)


def test_a_row_that_is_written_anew_with_its_hash_is_noticed_by_the_next(copy):
    body, answer = (
        sqlite3.connect(copy).execute("SELECT body, answer FROM ledger_entries WHERE number = 5").fetchone()
    )
    forged = chain.canonical({**json.loads(body), "cost": {"ways": []}})
    sql = "UPDATE ledger_entries SET body = ?, hash = ? WHERE number = 5"
    tamper(copy, (sql, forged, chain.digest(forged)))
    assert refused(copy) == "DP602"
    assert answer is None


def test_damage_under_an_open_ledger_is_noticed_at_the_next_charge(copy):
    with Ledger(copy) as ledger:
        tamper(
            copy, ("UPDATE ledger_entries SET body = replace(body, '\"4/5\"', '\"0\"') WHERE number = 13",)
        )
        with pytest.raises(LedgerDamaged):
            ledger.charge(TENTH)


def test_no_byte_can_be_changed_to_spend_more(book, tmp_path):
    """Every 211th byte, flipped: the file is refused, or found damaged, or says what it said."""
    original, copy = book[0].read_bytes(), tmp_path / "c.ledger"
    found = []
    for at in range(0, len(original), 211):
        copy.write_bytes(original[:at] + bytes([original[at] ^ 0x55]) + original[at + 1 :])
        found.append(_what_it_says(copy))
    assert set(found) <= {"DP602", "DP603", "DP606", "DP402", "damaged", Fraction(4, 5)}
    assert found.count("DP602") + found.count("damaged") > 25


def _what_it_says(path):
    """The code of the refusal, "damaged", or what was spent."""
    try:
        with Ledger(path) as ledger:
            return ledger.spent["epsilon"] if ledger.verify().intact else "damaged"
    except DiscreetError as error:
        return error.code


# --- what is no ledger ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"not a database, by any means" * 400, "DP602"),
        (b"\0" * 5000, "DP602"),
        (b"x", "DP602"),
        (b"SQLite format 3\0", "DP602"),
        (b"SQLite format 3\0" + b"\7" * 9000, "DP602"),
    ],
    ids=["text", "zeros", "one byte", "header", "header and garbage"],
)
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path, content, code):
    path = tmp_path / "a.ledger"
    path.write_bytes(content)
    assert refused(path, limit=LIMIT) == code
    assert path.read_bytes() == content


def test_a_file_of_another_kind_is_not_called_damaged(tmp_path):
    """Somebody names the data where the ledger belongs."""
    path = tmp_path / "visits.parquet"
    path.write_bytes(b"PAR1" + b"\7" * 900 + b"PAR1")
    with pytest.raises(LedgerError) as caught:
        Ledger(path, limit=LIMIT)
    assert "visits.parquet is no ledger" in str(caught.value)
    assert "damaged" not in str(caught.value)
    assert "visits.ledger" in caught.value.fix
    Ledger(tmp_path / "visits.ledger", limit=LIMIT).close()


def test_a_huge_file_is_refused_at_once(tmp_path):
    path = tmp_path / "a.ledger"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    assert refused(path, limit=LIMIT) == "DP602"


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.99])
def test_a_file_that_was_cut_short_is_refused(copy, keep):
    whole = copy.read_bytes()
    copy.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(DiscreetError) as caught:
        Ledger(copy).verify()
    assert caught.value.code == "DP602"


def test_somebody_elses_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE patients (name TEXT)")
    before = path.read_bytes()
    assert refused(path, limit=LIMIT) == "DP602"
    assert path.read_bytes() == before


def test_a_layout_from_the_future_is_refused(copy):
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("PRAGMA user_version = 2")
    assert refused(copy) == "DP402"


def test_an_empty_file_never_becomes_a_ledger(tmp_path):
    path = tmp_path / "a.ledger"
    path.touch()
    assert refused(path) == "DP602"
    assert refused(path, limit=LIMIT) == "DP602"
    assert path.stat().st_size == 0


# --- out of reach ---------------------------------------------------------------------------------------------------


def test_a_folder_and_a_missing_folder_are_out_of_reach(tmp_path):
    assert refused(tmp_path, limit=LIMIT) == "DP606"
    assert refused(tmp_path / "no" / "a.ledger", limit=LIMIT) == "DP606"


def test_who_waits_too_long_is_told_and_has_spent_nothing(copy):
    with Ledger(copy) as first, Ledger(SQLite(copy, patience=0)) as second:
        with writing(first._store):
            with pytest.raises(LedgerError) as busy:
                second.charge(TENTH)
            assert (busy.value.code, busy.value.spent) == ("DP606", "nothing")
        assert second.charge(TENTH).number == 14


def test_a_file_that_was_removed_does_not_come_back_empty(copy):
    with Ledger(copy) as ledger:
        copy.unlink()
        with pytest.raises(LedgerDamaged):
            ledger.charge(TENTH)
        with pytest.raises(LedgerError) as again:
            ledger.charge(TENTH)
        assert again.value.code == "DP606"
    assert not copy.exists()


def test_a_file_that_was_replaced_is_noticed(copy, book):
    with Ledger(copy) as ledger:
        ledger.charge(TENTH)
        copy.unlink()
        shutil.copy(book[0], copy)
        with pytest.raises(LedgerDamaged):
            ledger.charge(TENTH)
        with pytest.raises(LedgerDamaged):  # opened again, it lacks what was seen before
            ledger.charge(TENTH)


def test_a_full_disk_is_told_and_nothing_is_written(copy):
    with Ledger(copy) as ledger:
        (pages,) = ledger._store.run("PRAGMA page_count")[0]
        ledger._store.run(f"PRAGMA max_page_count = {pages}")
        rows = len(ledger)
        with pytest.raises(LedgerError) as full:
            ledger.charge(TENTH, question="x" * 100_000)
        assert full.value.code == "DP606"
        assert len(ledger) == rows
    with Ledger(copy) as again:
        assert again.verify().intact


# --- durability -----------------------------------------------------------------------------------------------------


def test_every_commit_is_forced_to_disk_and_nothing_lies_beside_the_file(copy):
    with Ledger(copy) as ledger:
        ledger.charge(TENTH)
        settings = {
            name: ledger._store.run(f"PRAGMA {name}")[0][0]
            for name in ("synchronous", "journal_mode", "fullfsync")
        }
        assert settings == {"synchronous": 3, "journal_mode": "delete", "fullfsync": 1}
        assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_a_file_with_a_write_ahead_log_is_switched_back(copy):
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    with Ledger(copy) as ledger:
        ledger.charge(TENTH)
        assert ledger._store.run("PRAGMA journal_mode") == [("delete",)]


def test_a_charge_reads_the_last_row_and_no_others(copy):
    """However long the book is: a handful of statements, none of which asks for more than one row."""
    seen = []

    class Watched(SQLite):
        def execute(self, sql, values):
            found = super().execute(sql, values)
            seen.append((sql.split()[0], len(found)))
            return found

    with Ledger(Watched(copy)) as ledger:
        seen.clear()
        ledger.charge(TENTH, key="new")
    assert len(seen) <= 9
    assert all(rows <= 1 for _, rows in seen)
