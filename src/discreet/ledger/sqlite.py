# SPDX-License-Identifier: Apache-2.0
"""A ledger in one file, by the SQLite that comes with Python.

**Guarantee.** What a transaction wrote is on disk when COMMIT returns: the journal is a rollback
journal and `synchronous` is EXTRA, so the journal, the file and the folder are each forced to disk
(`fullfsync` asks macOS to mean it). A process that is killed anywhere leaves either all of its
transaction or, after the next opening, nothing of it.

The write-ahead log of SQLite would need one fsync instead of four. It is not used, because until
version 3.51.3 a checkpoint could skip a transaction that had been committed, because a copy of the
file without its log is an older ledger, and because its shared memory does not survive a fork. A
file that somebody switched to it is switched back.

Processes of one machine wait in line for the file (`wait_in_line`).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TypeVar

from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger import chain
from discreet.ledger.chain import LedgerRow
from discreet.ledger.chance import jitter, random_name
from discreet.ledger.interrupts import run_holding, run_then_end
from discreet.ledger.places import inaccessible_error, is_cut_short, not_a_ledger_error, publish, status_of
from discreet.ledger.store import (
    PATIENCE,
    SqlRow,
    SqlValue,
    Store,
    lost_error,
    newer_layout_error,
    unreachable_error,
)
from discreet.paths import short_path

try:
    import fcntl
except ImportError:  # Windows
    _HAS_LINE = False
else:
    _HAS_LINE = True

__all__ = ["SQLite"]

T = TypeVar("T")

MEMORY = ":memory:"
#: "dsct" in the header of the file: this SQLite file is a ledger; and the layout of its tables.
APPLICATION, LAYOUT = 0x64736374, 1

_SETTINGS = ("synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF", "journal_mode = DELETE")
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END"
_SCHEMA = (
    """CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT)""",
    "CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL)",
    "CREATE INDEX ledger_asked ON ledger_entries (key) WHERE key IS NOT NULL",
    "CREATE UNIQUE INDEX ledger_answered ON ledger_entries (key) WHERE kind = 'committed'",
    "CREATE UNIQUE INDEX ledger_settled ON ledger_entries (settles) WHERE settles IS NOT NULL",
    f"CREATE TRIGGER ledger_never_changed BEFORE UPDATE ON ledger_entries {_REFUSE}",
    f"CREATE TRIGGER ledger_never_removed BEFORE DELETE ON ledger_entries {_REFUSE}",
    f"""CREATE TRIGGER ledger_in_order BEFORE INSERT ON ledger_entries
    WHEN NEW.number IS NOT (SELECT number + 1 FROM ledger_head) {_REFUSE}""",  # noqa: S608 - a constant
    f"""CREATE TRIGGER ledger_head_goes_forward BEFORE UPDATE ON ledger_head
    WHEN NEW.number IS NOT OLD.number + 1 {_REFUSE}""",
    f"CREATE TRIGGER ledger_head_stays BEFORE DELETE ON ledger_head {_REFUSE}",
)


class SQLite(Store):
    """The table of a ledger in a file, or in memory for as long as this process lasts."""

    #: Nobody but `make` may make a file: a ledger that was removed must not come back empty.
    _mode = "rw"

    def __init__(self, path: str | Path, patience: float = PATIENCE) -> None:
        try:
            self._path = str(path) if str(path) == MEMORY else str(Path(path).expanduser().resolve())
            os.fsencode(self._path)
        except (OSError, RuntimeError, ValueError) as error:
            raise inaccessible_error(short_path(path), "its path leads nowhere.", error) from None
        self._connection: sqlite3.Connection | None = None
        #: The connection with the transaction that is open; another one must not take its place.
        self._begun: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._file: tuple[int, int] | None = None
        super().__init__(patience)

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self._drop()

    @property
    def place(self) -> str:
        """The path of the file."""
        return self._path

    def execute(self, sql: str, values: tuple[SqlValue, ...]) -> list[SqlRow]:
        """Execute one statement, waiting for other writers if need be."""
        until = time.monotonic() + self.remaining()
        while True:
            try:
                return self._live_connection().execute(sql, values).fetchall()
            except sqlite3.Error as error:
                if not _is_busy(error) or time.monotonic() >= until:
                    raise self._ledger_error(error, sql) from None
            # at random, so that two who look at the same moments do not do so for ever
            time.sleep((0.5 + jitter()) / 1000)

    def in_turn(self, work: Callable[[], T]) -> T:
        """In line with the writers of other processes."""
        return (
            work() if self._path == MEMORY else wait_in_line(Path(self._path).parent, self.remaining(), work)
        )

    def begin(self) -> None:
        """Take the only right to write, unless the file was replaced or removed while we had it
        open.
        """
        self.run("BEGIN IMMEDIATE")
        self._begun = self._connection
        if self._path != MEMORY and self._file != self._identity():
            self._drop()
            raise chain.damaged_error("the file was replaced or removed while it was in use.")

    def abandon(self) -> None:
        """Undo the transaction, if there is one."""
        connection, self._begun = self._connection, None
        if connection is not None and self._process == os.getpid() and connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if connection.in_transaction:
                self._drop()

    def close(self) -> None:
        """Let go of the file. What is kept in memory stays."""
        if self._path != MEMORY:
            self._drop()

    def exists(self) -> bool:
        """Whether there is a ledger; an empty file is none and never becomes one, and anything else
        is refused.
        """
        if self._path == MEMORY:
            return self._connection is not None and self._header()[1] == APPLICATION
        status = status_of(self._path)
        if status is None:
            return False
        if status.st_size == 0:
            raise chain.damaged_error("its file is empty; a ledger never is.")
        _, application, layout = self._first_header()
        if application != APPLICATION:
            raise chain.damaged_error("this file is something else.")
        if layout > LAYOUT:
            raise newer_layout_error(layout, LAYOUT)
        return True

    def _first_header(self) -> tuple[int, int, int]:
        """The header; of a file that SQLite cannot read and whose name is not a ledger's, that it
        is no ledger.
        """
        try:
            return self._header()
        except LedgerDamaged:
            if Path(self._path).suffix == ".ledger" or is_cut_short(Path(self._path)):
                raise
            raise not_a_ledger_error(Path(self._path)) from None

    def make(self, first: LedgerRow) -> None:
        """Make the file under another name, whole and on disk, and only then give it its own."""
        if self._path == MEMORY:
            self.write(lambda: self._fill(first))
            return
        made = Path(self._path).with_name(f".discreet-{random_name()}")
        new = _New(made, self._patience)
        run_then_end(lambda: self._publish(new, made, first), lambda: _remove_made(new, made))

    def _publish(self, new: SQLite, made: Path, first: LedgerRow) -> None:
        try:
            new.write(lambda: new._fill(first))
            new.close()
            publish(made, Path(self._path))
        except OSError as error:
            raise inaccessible_error(self._path, "its file cannot be made.", error) from None

    def _fill(self, first: LedgerRow) -> None:
        for statement in _SCHEMA:
            self.run(statement)
        self.run("INSERT INTO ledger_head VALUES (1, -1, ?)", chain.NOTHING)
        self.run(f"PRAGMA application_id = {APPLICATION}")
        self.run(f"PRAGMA user_version = {LAYOUT}")
        self.append(first)

    def check(self) -> None:
        """Compare what the file says of its tables, word by word."""
        statements = self.run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        if {sql for (sql,) in statements} != set(_SCHEMA):
            raise chain.damaged_error("its tables are not those that were made.")

    def is_consistent(self) -> bool:
        """An answer is found by its key: an index that was changed would hide it, and no hash
        covers an index.
        """
        return self.run("PRAGMA integrity_check(1)") == [("ok",)]

    def _header(self) -> tuple[int, int, int]:
        """How many tables there are, whose file it is, and its layout."""
        questions = ("SELECT count(*) FROM sqlite_master", "PRAGMA application_id", "PRAGMA user_version")
        tables, application, layout = (self.run(question)[0][0] for question in questions)
        return tables, application, layout

    def _live_connection(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            self._disown_inherited()
        if self._begun is not None and self._begun is not self._connection:
            raise lost_error()
        if self._connection is None:
            connection = self._connect()
            self._file, self._connection = self._identity(), connection
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        name = MEMORY if self._path == MEMORY else f"{Path(self._path).as_uri()}?mode={self._mode}"
        connection = sqlite3.connect(
            name, uri=self._path != MEMORY, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}").fetchall()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _disown_inherited(self) -> None:
        """In a child: what came from the parent is never used, and never closed."""
        if self._path == MEMORY:
            raise LedgerError(
                "DP607",
                "a ledger in memory was used in another process than the one that made it.",
                why="two processes with a copy each would each spend the whole limit.",
                fix="give the ledger a file:  Ledger('visits.ledger', …)",
            )
        if self._connection is not None:
            _NEVER_CLOSED.append(self._connection)
        self._connection, self._process = None, os.getpid()

    def _identity(self) -> tuple[int, int] | None:
        with suppress(OSError):
            status = Path(self._path).stat()
            return status.st_dev, status.st_ino
        return None

    def _drop(self) -> None:
        if self._process == os.getpid():
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()

    def _ledger_error(self, error: sqlite3.Error, sql: str) -> LedgerError:
        code = _code(error)
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return unreachable_error(f"others kept it busy for {self._patience:g} seconds.")
        if code in _MAY_NOT:
            return inaccessible_error(self._path, _MAY_NOT[code])
        if code in _REFUSED_BY_THE_SYSTEM:
            return unreachable_error(_REFUSED_BY_THE_SYSTEM[code], during=sql)
        if isinstance(error, sqlite3.ProgrammingError):
            return unreachable_error("its connection was closed by something else.", during=sql)
        return chain.damaged_error("SQLite cannot read it, or refuses a row that follows from the others.")


class _New(SQLite):
    """A file that is being made."""

    _mode = "rwc"


_NEVER_CLOSED: list[sqlite3.Connection] = []


def _remove_made(new: SQLite, made: Path) -> None:
    """What was made is there under its own name, or never was."""
    new.close()
    for left in (made, made.with_name(f"{made.name}-journal")):
        left.unlink(missing_ok=True)


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: sqlite3.Error) -> int | None:
    """The primary result code, if the error is SQLite's."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


_MAY_NOT = {
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened.",
    sqlite3.SQLITE_READONLY: "its file is read-only.",
    sqlite3.SQLITE_PERM: "its file is read-only.",
    sqlite3.SQLITE_AUTH: "its file is read-only.",
}
_REFUSED_BY_THE_SYSTEM = {
    sqlite3.SQLITE_FULL: "the disk is full.",
    sqlite3.SQLITE_IOERR: "the disk reports an error.",
    sqlite3.SQLITE_NOMEM: "there is no memory left.",
    sqlite3.SQLITE_TOOBIG: "a text is too long for it.",
    sqlite3.SQLITE_INTERRUPT: "it was interrupted.",
    sqlite3.SQLITE_PROTOCOL: "its locks do not work on this file system.",
    sqlite3.SQLITE_NOLFS: "the file system does not hold files of this size.",
    sqlite3.SQLITE_MISUSE: "its connection was closed by something else.",
}


def wait_in_line(folder: Path, patience: float, work: Callable[[], T]) -> T:
    """Do some work when it is our turn, or after `patience` seconds; the turn ends with it.

    SQLite has no queue: whoever looks at the right moment may write, and among many processes
    somebody is passed over for a long time. So writers line up at a lock of the folder (`flock`,
    which queues those who wait).

    **Guarantee.** Nothing depends on the line but fairness. Whoever waited too long, or cannot
    stand in line on this system, goes on without, and SQLite keeps writers apart. A process that is
    killed leaves the line.
    """
    place = _Place(folder)
    return run_then_end(lambda: _work_in_line(place, patience, work), place.leave)


def _work_in_line(place: _Place, patience: float, work: Callable[[], T]) -> T:
    if not place.is_first(patience):
        place.leave()
    return work()


class _Place:
    """Our place in line: an open folder, and its lock once it is our turn."""

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        self._decided = Lock()
        self._got = Event()
        self._waits = self._given_up = False
        with suppress(OSError):
            self._handle = os.open(folder, os.O_RDONLY) if _HAS_LINE else None

    def is_first(self, patience: float) -> bool:
        """Whether it is our turn within that time."""
        if self._handle is None:
            return False
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # In a thread, because only waiting keeps a place in line, and it has no time limit.
            self._waits = True
            Thread(target=self._wait, args=(self._handle,), daemon=True).start()
            return self._got.wait(patience)
        except OSError:  # no such locks here
            return False
        return True

    def leave(self) -> None:
        """Give the lock back, now or as soon as it comes; as often as you like."""
        run_holding(self._decided, self._leave)

    def _leave(self) -> None:
        self._given_up = True
        if self._waits and not self._got.is_set():
            return  # whoever waits for the lock gives it back
        if self._handle is not None:
            with suppress(OSError):
                fcntl.flock(self._handle, fcntl.LOCK_UN)  # also if a fork has copied the handle
            handle, self._handle = self._handle, None
            os.close(handle)

    def _wait(self, handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with self._decided:
            self._got.set()
        if self._given_up:
            self.leave()
