# SPDX-License-Identifier: Apache-2.0
"""A ledger in one file, by the SQLite that comes with Python.

**Promise.** What a transaction wrote is on disk when COMMIT returns: the journal is a rollback journal and
`synchronous` is EXTRA, so the journal, the file and the folder are each forced to disk (`fullfsync` asks macOS to
mean it). A process that is killed anywhere leaves either all of its transaction or, after the next opening, nothing of it.

The write-ahead log of SQLite would need one fsync instead of four. It is not used, because until version 3.51.3 a checkpoint
could skip a transaction that had been committed, because a copy of the file without its log is an older ledger, and
because its shared memory does not survive a fork. A file that somebody switched to it is switched back.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger import chain
from discreet.ledger.queue import in_line
from discreet.ledger.store import Store, newer, out_of_reach
from discreet.paths import shown

__all__ = ["SQLite"]

MEMORY = ":memory:"
#: "dsct" in the header of the file: this SQLite file is a ledger; and the layout of its tables.
APPLICATION, LAYOUT = 0x64736374, 1
#: Seconds to wait for other writers before giving up.
PATIENCE = 30.0

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

    def __init__(self, path: str | Path, patience: float = PATIENCE) -> None:
        super().__init__()
        self._path = str(path) if str(path) == MEMORY else _resolved(path)
        self._patience = patience
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._file: tuple[int, int] | None = None
        self._creating = False

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None and self._process == os.getpid():
            self._drop()

    @property
    def place(self) -> str:
        """The path of the file."""
        return self._path

    def execute(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Execute one statement, waiting for other writers if need be."""
        began = time.monotonic()
        while True:
            try:
                return self._connected().execute(sql, values).fetchall()
            except sqlite3.Error as error:
                waited = time.monotonic() - began
                if not _busy(error) or waited >= self._patience:
                    raise _translated(error, sql) from None
            # at random, so that two who look at the same moments do not do so for ever
            time.sleep((0.5 + secrets.randbelow(1000) / 1000) / 1000)

    def turn(self) -> AbstractContextManager[None]:
        """In line with the writers of other processes."""
        return nullcontext() if self._path == MEMORY else in_line(Path(self._path).parent, self._patience)

    def begin(self) -> None:
        """Take the only right to write, unless the file was replaced or removed while we had it open."""
        self.run("BEGIN IMMEDIATE")
        if self._path != MEMORY and self._file != self._identity():
            self.abandon()
            self._drop()
            raise chain.damaged("the file was replaced or removed while it was in use.")

    def abandon(self) -> None:
        """Undo the transaction, if there is one."""
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
                return
            self._drop()

    def close(self) -> None:
        """Let go of the file. What is kept in memory stays."""
        if self._path != MEMORY:
            self._drop()

    def exists(self) -> bool:
        """Whether the file holds a ledger; an empty or missing file does not, and anything else is refused."""
        self._creating = self._path == MEMORY or not Path(self._path).exists()
        if self._creating and self._connection is None:
            return False
        if self._first_header()[:2] == (0, 0) and (
            self._path == MEMORY or Path(self._path).stat().st_size == 0
        ):
            return False
        _, application, layout = self._header()  # somebody may have made it just now
        if application != APPLICATION:
            raise chain.damaged("this file is something else.")
        if layout > LAYOUT:
            raise newer(layout, LAYOUT)
        return True

    def _first_header(self) -> tuple[int, int, int]:
        """The header; of a file that SQLite cannot read and whose name is not a ledger's, that it is no ledger.

        The file is asked through SQLite alone: to open and close it beside SQLite would end the locks of this process.
        """
        try:
            return self._header()
        except LedgerDamaged:
            if Path(self._path).suffix == ".ledger":
                raise
            raise _another_kind(Path(self._path)) from None

    def create(self) -> None:
        """Make the tables; the folder is forced to disk, so that the new file cannot vanish from it."""
        for statement in _SCHEMA:
            self.run(statement)
        self.run("INSERT INTO ledger_head VALUES (1, -1, ?)", chain.NOTHING)
        self.run(f"PRAGMA application_id = {APPLICATION}")
        self.run(f"PRAGMA user_version = {LAYOUT}")
        if self._path != MEMORY:
            _sync_folder(Path(self._path).parent)

    def check(self) -> None:
        """Compare what the file says of its tables, word by word."""
        found = self.run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        if {sql for (sql,) in found} != set(_SCHEMA):
            raise chain.damaged("its tables are not those that were made.")

    def is_consistent(self) -> bool:
        """An answer is found by its key: an index that was changed would hide it, and no hash covers an index."""
        return self.run("PRAGMA integrity_check(1)") == [("ok",)]

    def _header(self) -> tuple[int, int, int]:
        """How many tables there are, whose file it is, and its layout."""
        questions = ("SELECT count(*) FROM sqlite_master", "PRAGMA application_id", "PRAGMA user_version")
        tables, application, layout = (self.run(question)[0][0] for question in questions)
        return tables, application, layout

    def _connected(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            self._inherited()
        if self._connection is None:
            self._connection = self._connect()
            self._file = self._identity()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        # Only `create` may make a file: a ledger that was removed must not come back empty.
        mode = "rwc" if self._creating else "rw"
        name = MEMORY if self._path == MEMORY else f"{Path(self._path).as_uri()}?mode={mode}"
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

    def _inherited(self) -> None:
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
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


_NEVER_CLOSED: list[sqlite3.Connection] = []


def _busy(error: sqlite3.Error) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: sqlite3.Error) -> int | None:
    """The primary result code, if the error is SQLite's."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _resolved(path: str | Path) -> str:
    """The whole path of a file that can exist."""
    try:
        whole = Path(path).expanduser().resolve()
        whole.exists()
        os.fsencode(whole)
    except (OSError, RuntimeError, ValueError):
        what = f"{shown(path)} is no path that a file can have."
        raise out_of_reach(what, fix="Ledger('visits.ledger')") from None
    return str(whole)


def _translated(error: sqlite3.Error, sql: str) -> LedgerError:
    code = _code(error)
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return out_of_reach("others kept it busy for too long.")
    if code in _REFUSED_BY_THE_SYSTEM:
        place = "name a file in a folder that exists and is yours:  ledger='visits.ledger'"
        fix = place if code == sqlite3.SQLITE_CANTOPEN else ""
        return out_of_reach(_REFUSED_BY_THE_SYSTEM[code], during=sql, fix=fix)
    return chain.damaged("SQLite cannot read it, or refuses a row that follows from the others.")


_REFUSED_BY_THE_SYSTEM = {
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened.",
    sqlite3.SQLITE_READONLY: "its file may not be written.",
    sqlite3.SQLITE_PERM: "its file may not be written.",
    sqlite3.SQLITE_AUTH: "its file may not be written.",
    sqlite3.SQLITE_FULL: "the disk is full.",
    sqlite3.SQLITE_IOERR: "the disk reports an error.",
    sqlite3.SQLITE_NOMEM: "there is no memory left.",
    sqlite3.SQLITE_TOOBIG: "a text is too long for it.",
    sqlite3.SQLITE_INTERRUPT: "it was interrupted.",
    sqlite3.SQLITE_PROTOCOL: "its locks do not work on this file system.",
    sqlite3.SQLITE_NOLFS: "the file system does not hold files of this size.",
    sqlite3.SQLITE_MISUSE: "its connection was closed by something else.",
}


def _another_kind(path: Path) -> LedgerError:
    return LedgerError(
        "DP603",
        f"{path.name} is no ledger but a file of another kind.",
        why="a ledger is a file of its own, and what is in this one would be lost; it is left as it is.",
        fix=f"ledger='{path.stem}.ledger'   (if it was a ledger once, put back a copy of it)",
    )


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some systems do not let a folder be opened; there SQLite's own rules hold
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
