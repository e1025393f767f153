# SPDX-License-Identifier: Apache-2.0
"""A ledger that was cut, emptied, removed, replaced or half made is never begun anew; what is in the way has a code and a fix."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from discreet import privacy
from discreet.errors import DiscreetError, LedgerDamaged, LedgerError
from discreet.ledger import Ledger, Limit, places, sqlite, store
from discreet.ledger.sqlite import SQLite
from tests.ledger.workers import writing
from tests.postgres import schema
from tests.refusals import refusal

TENTH = privacy.pure(0.1)
LIMIT = Limit.filter(epsilon=1)
NOBODY = 65534


@pytest.fixture
def path(tmp_path):
    """A ledger with nine tenths of its limit spent."""
    return nearly_spent(tmp_path)


def nearly_spent(folder):
    made = folder / "a.ledger"
    with Ledger(made, limit=LIMIT) as ledger:
        for _ in range(9):
            ledger.charge(TENTH)
    return made


def spends_at_most_the_limit(path):
    """Opens it as somebody does who states a limit, charges what fits, and says how much that was; a code if it is refused."""
    try:
        with Ledger(path, limit=LIMIT) as ledger:
            fits = 0
            while fits < 20:
                try:
                    ledger.charge(TENTH)
                except DiscreetError as error:
                    if error.code == "DP601":
                        break
                    raise
                fits += 1
            return fits
    except DiscreetError as error:
        return error.code


# --- cut, emptied, removed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["b.ledger", "b.db", "budget"])
def test_cut_to_any_length_it_never_starts_anew(path, tmp_path, name):
    whole, cut = path.read_bytes(), tmp_path / name
    lengths = {*range(130), *range(130, len(whole), 509), *range(0, len(whole), 512), len(whole) - 1}
    for length in sorted(lengths):
        cut.write_bytes(whole[:length])
        assert spends_at_most_the_limit(cut) == "DP602", length
        assert cut.read_bytes() == whole[:length]
    cut.write_bytes(whole)
    assert spends_at_most_the_limit(cut) == 1


def test_an_empty_file_is_never_a_new_ledger_and_the_fix_forgets_nothing(tmp_path):
    empty = tmp_path / "a.ledger"
    empty.touch()
    error = refusal(Ledger, empty, limit=LIMIT)
    assert (error.code, error.spent) == ("DP602", "nothing")
    assert "empty" in error.what
    assert "whole budget as spent" in error.fix
    assert empty.stat().st_size == 0


@pytest.mark.parametrize("left", ["-journal", "-wal", "-shm"])
def test_a_file_that_is_gone_while_something_of_it_is_left_is_missed(path, left):
    path.with_name(path.name + left).write_bytes(b"something")
    path.unlink()
    assert refusal(Ledger, path, limit=LIMIT).code == "DP602"
    assert refusal(Ledger, path).code == "DP602"
    assert not path.exists()


def test_a_link_that_leads_nowhere_any_more_makes_no_ledger_elsewhere(path, tmp_path):
    link = tmp_path / "link.ledger"
    link.symlink_to(path)
    assert spends_at_most_the_limit(link) == 1
    with Ledger(link) as ledger:
        path.unlink()
        path.symlink_to(tmp_path / "elsewhere.ledger")
        assert refusal(ledger.charge, TENTH).code in {"DP602", "DP606"}
    assert refusal(Ledger, str(tmp_path / "loop"), limit=None).code == "DP603"
    loop = tmp_path / "loop.ledger"
    loop.symlink_to(loop)
    assert refusal(Ledger, loop, limit=LIMIT).code in {"DP602", "DP606"}


def test_where_the_anchor_says_that_there_was_one_none_is_made(path, tmp_path, postgres_dsn):
    with Ledger(path) as ledger:
        anchor = ledger.anchor()
    path.unlink()
    for place in (path, schema(postgres_dsn)):
        assert refusal(Ledger, place, limit=LIMIT, anchor=anchor).code == "DP602"
        assert refusal(Ledger, place).code == "DP603"  # still none
    assert refusal(Ledger, path, limit=LIMIT, anchor="short").code == "DP102"


def test_a_schema_that_was_dropped_and_made_anew_is_noticed_by_whoever_had_it_open(postgres_dsn):
    psycopg = pytest.importorskip("psycopg")
    place = schema(postgres_dsn)
    with Ledger(place, limit=LIMIT) as ledger:
        ledger.charge(TENTH)
        name, anchor = ledger._store.schema, ledger.anchor()
        with psycopg.connect(postgres_dsn, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{name}" CASCADE')
            connection.execute(f'CREATE SCHEMA "{name}"')
        assert refusal(ledger.charge, TENTH).code == "DP602"
        assert refusal(Ledger, place, limit=LIMIT, anchor=anchor).code == "DP602"
        Ledger(place, limit=LIMIT).close()
        assert refusal(ledger.charge, TENTH).code == "DP602"


@pytest.mark.parametrize("forgotten", ["ledger_entries", "ledger_head"])
def test_what_is_left_of_a_ledger_on_a_server_is_no_place_for_a_new_one(postgres_dsn, forgotten):
    psycopg = pytest.importorskip("psycopg")
    place = schema(postgres_dsn)
    with Ledger(place, limit=LIMIT) as ledger:
        name = ledger._store.schema
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(f'DROP TABLE "{name}".{forgotten}')
        assert refusal(Ledger, place, limit=LIMIT).code == "DP602"
        connection.execute(f'DROP TABLE IF EXISTS "{name}".ledger_entries, "{name}".ledger_head')
    assert refusal(Ledger, place, limit=LIMIT).code == "DP602"  # its functions are still there


# --- how a new one appears -----------------------------------------------------------------------------------------


def test_the_second_to_make_a_ledger_opens_that_of_the_first(tmp_path, monkeypatch):
    """Somebody else makes it at the last moment: theirs stays, with what was charged to it."""
    path = tmp_path / "a.ledger"
    publish = places.publish

    def late(made, final):
        monkeypatch.undo()
        with Ledger(path, limit=LIMIT) as quicker:
            quicker.charge(TENTH)
        publish(made, final)

    monkeypatch.setattr(sqlite, "publish", late)
    with Ledger(path, limit=LIMIT) as second:
        assert len(second) == 2
    assert [left.name for left in tmp_path.iterdir()] == ["a.ledger"]


@pytest.mark.parametrize("error", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_where_files_have_one_name_only_it_is_copied_and_never_over_another(tmp_path, monkeypatch, error):
    def no_links(*_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "a.ledger"
    with Ledger(path, limit=LIMIT) as ledger:
        ledger.charge(TENTH)
    places.publish(Path(shutil.copy(path, tmp_path / "b")), path)
    with Ledger(path) as again:
        assert len(again) == 2
        assert again.verify().intact


def test_a_disk_that_fills_up_while_it_is_made_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(os, "fsync", full)
    error = refusal(Ledger, tmp_path / "a.ledger", limit=LIMIT)
    assert (error.code, error.what) == ("DP606", "the ledger cannot be reached: the disk is full.")
    assert list(tmp_path.iterdir()) == []


# --- out of reach ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("x" * 300, "too long"),
        ("x/" * 3000 + "a.ledger", "too long"),
        ("\ud800.ledger", "no text"),
        ("no/such/folder/a.ledger", "there is no folder"),
        (".", "is a folder"),
        ("a.ledger/b.ledger", "there is no folder"),
    ],
    ids=["name", "path", "surrogate", "folder", "itself", "file as a folder"],
)
def test_a_path_that_cannot_be_used_has_a_code_a_reason_and_a_fix(path, name, says):
    error = refusal(Ledger, str(path.parent / name) if name != "." else path.parent, limit=LIMIT)
    assert error.code == "DP606"
    assert says in error.what
    assert "try again" not in error.fix
    assert error.spent == "nothing"


def test_an_unknown_home_has_a_code():
    assert refusal(Ledger, "~nobody-of-this-name/a.ledger", limit=LIMIT).code == "DP606"


def as_nobody(work):
    """What a function says in a child that is not root and may do nothing special."""
    reading, writing_end = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing_end, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing_end)
    with os.fdopen(reading) as said:
        text = said.read()
    os.waitpid(process, 0)
    return json.loads(text)


@pytest.fixture
def readable(open_folder):
    """One in a folder that everybody may look into."""
    return nearly_spent(open_folder)


def told(path):
    def work():
        try:
            with Ledger(path) as ledger:
                rows = len(ledger)
                ledger.charge(TENTH)
        except DiscreetError as error:
            return [error.code, error.what, error.fix, error.spent]
        return rows

    return as_nobody(work)


root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")


@root
def test_a_read_only_ledger_is_called_so_and_nothing_is_charged(readable):
    readable.chmod(0o444)
    readable.parent.chmod(0o777)
    code, what, fix, spent = told(readable)
    assert (code, spent) == ("DP606", "nothing")
    assert "read-only" in what
    assert "chmod u+w" in fix
    assert "try again" not in fix
    with Ledger(readable) as ledger:
        assert len(ledger) == 10


@root
def test_a_folder_that_may_not_be_written_is_named(readable):
    readable.chmod(0o666)
    readable.parent.chmod(0o755)
    code, what, fix, _ = told(readable)
    assert code == "DP606"
    assert f"the folder {readable.parent} may not be written" in what
    assert "chmod" in fix


@root
def test_a_folder_that_may_not_be_searched_is_named(readable):
    readable.parent.chmod(0o600)
    try:
        code, _, fix, spent = told(readable)
    finally:
        readable.parent.chmod(0o700)
    assert (code, spent) == ("DP606", "nothing")
    assert "try again" not in fix


def test_a_ledger_that_becomes_read_only_while_it_is_open(path, monkeypatch):
    with Ledger(path) as ledger:
        ledger._store.run("PRAGMA query_only = ON")
        error = refusal(ledger.charge, TENTH)
        assert (error.code, error.spent) == ("DP606", "nothing")
        ledger._store.run("PRAGMA query_only = OFF")
        assert ledger.charge(TENTH).number == 10


def test_a_file_that_may_not_grow_is_charged_once_or_not_at_all(path):
    """The system refuses to write beyond some size, at every size: what a charge said is what is in the book."""
    size = path.stat().st_size

    def charge(most, where):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        try:
            with Ledger(where) as ledger:
                ledger.charge(TENTH, question="x" * 20_000)
        except DiscreetError as error:
            return error.code
        return "charged"

    import signal

    outcomes = set()
    for most in [*range(512, size + 60_000, 4096)]:
        copy = Path(shutil.copy(path, path.with_name("b.ledger")))
        process = os.fork()
        if not process:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            said = charge(most, copy)
            os._exit({"charged": 0, "DP606": 6, "DP602": 2}.get(said, 1))
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        outcomes.add(ended)
        assert ended in {0, 6}
        with Ledger(copy) as ledger:
            assert len(ledger) == (11 if ended == 0 else 10)
            assert ledger.verify().intact
        copy.unlink()
    assert outcomes == {0, 6}


# --- how long it waits ----------------------------------------------------------------------------------------------


class Clock:
    """Time that passes when somebody waits for it, and not otherwise."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        for module in (store, sqlite):
            monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(sqlite.time, "sleep", self.wait)
        clock = self

        class Event(sqlite.Event):
            def wait(self, timeout=None):
                clock.wait(timeout)
                return False

        monkeypatch.setattr(sqlite, "Event", Event)

    def wait(self, seconds):
        self.now += max(seconds, 0.5)


@pytest.mark.parametrize("in_line", [True, False])
def test_the_wait_behind_a_stopped_writer_is_what_the_documentation_says(path, monkeypatch, in_line):
    """In line for the folder, for the file, or for both."""
    with Ledger(path) as stopped, Ledger(path) as waits, writing(stopped._store):
        clock = Clock(monkeypatch)
        began = clock.now
        if in_line:
            error = sqlite.wait_in_line(path.parent, 30, lambda: refusal(waits.charge, TENTH))
        else:
            error = refusal(waits.charge, TENTH)
        waited = clock.now - began
    assert (error.code, error.spent) == ("DP606", "nothing")
    assert "30 seconds" in error.what
    assert 30 <= waited <= 31
    assert isinstance(error, LedgerError)
    assert not isinstance(error, LedgerDamaged)


def test_a_reader_that_was_stopped_is_waited_for_as_long(path, monkeypatch):
    with Ledger(path) as waits, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM ledger_entries").fetchone()
        clock = Clock(monkeypatch)
        began = clock.now
        assert refusal(waits.charge, TENTH).code == "DP606"
        assert 30 <= clock.now - began <= 31
        reader.execute("ROLLBACK")
        monkeypatch.undo()
        assert waits.charge(TENTH).number == 10


def test_a_server_is_told_the_same_patience(postgres_dsn):
    place = schema(postgres_dsn)
    Ledger(place, limit=LIMIT).close()
    from discreet.ledger.postgres import PostgreSQL

    seen = []

    class Watched(PostgreSQL):
        def execute(self, sql, values):
            seen.append(sql)
            return super().execute(sql, values)

    with Ledger(Watched(place)) as ledger:
        ledger.charge(TENTH)
        (begin,) = [sql for sql in seen if "lock_timeout" in sql]
        (milliseconds,) = [
            int(line.split("=")[1].strip(" ;")) for line in begin.splitlines() if "lock_timeout" in line
        ]
        assert 29_000 < milliseconds <= 30_000
        ledger._store._until = time.monotonic() + 0.2
        ledger._store._begin()
        ledger._store.abandon()
        assert "lock_timeout = 30000" not in seen[-2]


def test_statements_of_one_transaction_share_one_patience(path):
    impatient = SQLite(path, patience=0.0)
    with Ledger(impatient) as ledger:
        impatient._until = time.monotonic() - 1
        assert impatient.remaining() == 0
        impatient._end()
        assert ledger.charge(TENTH).number == 10


# --- random bits ------------------------------------------------------------------------------------------------------


def test_without_random_bits_nothing_is_charged(tmp_path, monkeypatch):
    import pyarrow as pa

    import discreet as dp

    rows = pa.table({"id": [1, 2], "days": [3, 4]})
    data = dp.open(rows, protect=dp.each("id", at_most=1))
    session = dp.Session(data, limit=LIMIT, ledger=str(tmp_path / "a.ledger"))
    (table,) = data.tables
    ask = f"SELECT COUNT(*) AS n FROM {table}"
    session.sql(ask, epsilon=0.1)

    def refuse(_):
        raise OSError(errno.ENOSYS, "no getrandom")

    with monkeypatch.context() as without:
        without.setattr(os, "urandom", refuse)
        for call in (
            lambda: session.sql(ask, epsilon=0.1),
            lambda: session.sql(ask, epsilon=0.1, key="k"),
            lambda: session.charge(privacy.pure(0.1, unit="id"), question="q"),
            lambda: session.release(dp.Laplace(epsilon=0.1, sensitivity=1, unit="id"), 3),
        ):
            error = refusal(call)
            assert (error.code, error.spent) == ("DP805", "nothing"), error
        assert len(session.ledger) == 3
    assert session.sql(ask, epsilon=0.1) is not None


def test_without_random_bits_no_ledger_is_made(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError

    monkeypatch.setattr(os, "urandom", refuse)
    assert refusal(Ledger, tmp_path / "a.ledger", limit=LIMIT).code == "DP805"
    assert list(tmp_path.iterdir()) == []
