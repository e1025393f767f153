# SPDX-License-Identifier: Apache-2.0
"""Where the rows of a ledger lie: a table that is only ever added to, by one writer at a time.

`Store` says what a ledger needs of a database, in plain SQL; `SQLite` keeps the table in one file, and
`discreet.ledger.postgres` on a server. A store knows rows, and nothing of privacy.

**Promise.** Between the beginning and the end of `writing()` nobody else writes, in this process or another. When
`writing()` ends without an error, its rows are on disk and stay there. When it ends with an error, or the process is
killed inside it, all of its rows are there or none; only where the database fails while it says COMMIT, the error
cannot tell which.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from weakref import WeakSet

from discreet.errors import BadDescription, LedgerError
from discreet.ledger import chain
from discreet.ledger.chain import Row

#: Rows that are read at a time, so that a long reading never keeps a writer waiting.
_PAGE = 500
_COLUMNS = "number, kind, key, settles, body, hash, answer"
_LAST = """
SELECT e.number, e.kind, e.key, e.settles, e.body, e.hash, NULL
FROM {head} h JOIN {entries} e ON e.number = h.number AND e.hash = h.hash
WHERE NOT EXISTS (SELECT 1 FROM {entries} later WHERE later.number > h.number)
"""


class Store(ABC):
    """The table of a ledger."""

    #: The tables; a database with several places for them says which place.
    entries, head = "ledger_entries", "ledger_head"

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _STORES.add(self)

    # --- what a database has to know -----------------------------------------------------------------

    @abstractmethod
    def execute(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Execute one statement; every failure is one of our own errors, without a value in its text."""

    @abstractmethod
    def begin(self) -> None:
        """Start a transaction that no other writer can enter."""

    @abstractmethod
    def abandon(self) -> None:
        """Undo the transaction, if there is one; never fails."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection; the next statement opens another."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a ledger here; refused if there is something else."""

    @abstractmethod
    def create(self) -> None:
        """Make the tables, inside a transaction."""

    @abstractmethod
    def check(self) -> None:
        """Refuse tables, indexes and triggers that are not those that `create` makes."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, for people; no password."""

    def turn(self) -> AbstractContextManager[None]:
        """Our turn to write, where the database has no queue of its own."""
        return nullcontext()

    def is_consistent(self) -> bool:
        """Whether the database finds by its indexes what its rows hold; looks at all of it."""
        return True

    def weaknesses(self) -> list[str]:
        """What in the settings of the database weakens the promise, in words."""
        return []

    # --- what a ledger asks ------------------------------------------------------------------------

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute one statement, while no other thread is in a transaction."""
        with self.lock:
            return self.execute(sql, values)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The only writer, until the rows are on disk."""
        with self.lock, self.turn():
            self.begin()
            try:
                yield
                self.run("COMMIT")
            except BaseException:
                self.abandon()
                raise

    def append(self, row: Row) -> None:
        """Add a row behind the last one."""
        self.run(f"INSERT INTO {self.entries} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", *row)  # noqa: S608
        self.run(f"UPDATE {self.head} SET number = ?, hash = ?", row.number, row.hash)  # noqa: S608

    def last(self) -> Row:
        """The last row, without its answer."""
        found = self.run(_LAST.format(entries=self.entries, head=self.head))
        if len(found) != 1:
            raise chain.damaged("its last row is not the one that its head names.")
        return Row(*found[0])

    def at(self, number: int) -> Row | None:
        """The row with that number."""
        return self._first("number = ?", number)

    def settled(self, number: int) -> Row | None:
        """The row that holds the answer of the reserved row `number`."""
        return self._first("settles = ?", number)

    def answered(self, key: str) -> Row | None:
        """The row that holds the answer for a key."""
        return self._first("kind = 'committed' AND key = ?", key)

    def asked(self, key: str) -> Row | None:
        """The first row with that key."""
        return self._first("key = ?", key)

    def reserved(self, key: str) -> list[Row]:
        """Every charge with that key, the first one first."""
        return self._select("kind = 'reserved' AND key = ? ORDER BY number", key)

    def described(self, after: int) -> list[Row]:
        """The rows behind that one which describe the data, the first one first."""
        return self._select("kind = 'described' AND number > ? ORDER BY number", after)

    def has(self, anchor: str) -> bool:
        """Whether some row has this hash."""
        return bool(self.run(f"SELECT 1 FROM {self.entries} WHERE hash = ?", anchor))  # noqa: S608

    def count(self) -> int:
        """How many rows there are."""
        found: int = self.run(f"SELECT count(*) FROM {self.entries}")[0][0]  # noqa: S608
        return found

    def rows(self, start: int = 0) -> Iterator[Row]:
        """All rows from `start` on, in order, a page at a time."""
        while True:
            page = self._select("number >= ? ORDER BY number LIMIT ?", start, _PAGE)
            yield from page
            if len(page) < _PAGE:
                return
            start = page[-1].number + 1

    def _first(self, condition: str, *values: Any) -> Row | None:
        found = self._select(f"{condition} ORDER BY number LIMIT 1", *values)
        return found[0] if found else None

    def _select(self, condition: str, *values: Any) -> list[Row]:
        found = self.run(f"SELECT {_COLUMNS} FROM {self.entries} WHERE {condition}", *values)  # noqa: S608
        return [Row(*row) for row in found]


def out_of_reach(what: str, *, during: str = "", fix: str = "") -> LedgerError:
    """The error for a database that does not do what it was asked, during this statement."""
    spent = "nothing, or what was to be charged if it was written" if during == "COMMIT" else "nothing"
    return LedgerError(
        "DP606",
        f"the ledger cannot be reached: {what}",
        why="an answer that is not written down first is never drawn.",
        fix=fix or "try again, with the same key if the question has one.",
        spent=spent,
    )


def newer(layout: int, known: int) -> BadDescription:
    """The error for tables that a later release made."""
    return BadDescription(
        "DP402",
        f"this ledger has layout {layout}, and this release reads up to {known}.",
        why="a newer version may mean something that this one would misread.",
        fix="upgrade discreet.",
    )


# --- forks ---------------------------------------------------------------------------------------------
# A connection must not cross a fork, not even to be closed in the child. So a fork waits until no transaction of this process
# runs, and connections are closed before it; parent and child each open their own when they need it.

_STORES: WeakSet[Store] = WeakSet()
_held: list[Store] = []


def _before_fork() -> None:
    for store in list(_STORES):
        store.lock.acquire()
        _held.append(store)
        store.close()


def _after_fork() -> None:
    while _held:
        _held.pop().lock.release()


if hasattr(os, "register_at_fork"):  # where there is a fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
