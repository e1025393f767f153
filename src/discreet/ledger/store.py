# SPDX-License-Identifier: Apache-2.0
"""Where the rows of a ledger lie: a table that is only ever added to, by one writer at a time.

`Store` says what a ledger needs of a database, in plain SQL; `SQLite` keeps the table in one file,
and `discreet.ledger.postgres` on a server. A store knows rows, and nothing of privacy.

**Guarantee.** While `write(work)` works nobody else writes, in this process or another. When it
returns, the rows are on disk and stay there. When it raises, or the process is killed inside it,
all of its rows are there or none; only where it fails or is interrupted while the database commits,
the error cannot tell which. It waits for others as long as its `patience` says, whatever it waits
for. An interrupt (Ctrl-C, or any other exception) ends the transaction and lets go of every lock,
wherever it comes.

Why that holds: locks are taken and released by C code, in one line, and a transaction that did not
end is undone twice, so that an interrupt of the first undoing is made up for by the second.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from discreet.errors import BadDescription, LedgerError
from discreet.forks import quiet_at_forks
from discreet.ledger import chain
from discreet.ledger.chain import LedgerRow
from discreet.ledger.interrupts import run_holding, run_then_end

T = TypeVar("T")

#: Seconds to wait for other writers before giving up.
PATIENCE = 30.0
#: Rows that are read at a time, so that a long reading never keeps a writer waiting.
_PAGE = 500
_COLUMNS = "number, kind, key, settles, body, hash, answer"
_LAST = """
SELECT e.number, e.kind, e.key, e.settles, e.body, e.hash, NULL
FROM {head} h JOIN {entries} e ON e.number = h.number AND e.hash = h.hash
WHERE NOT EXISTS (SELECT 1 FROM {entries} later WHERE later.number > h.number)
"""


#: What a statement is given, and a row of what it returns.
SqlValue: TypeAlias = int | str | None
SqlRow: TypeAlias = tuple[Any, ...]


class Store(ABC):
    """The table of a ledger."""

    #: The tables; a database with several places for them says which place.
    entries, head = "ledger_entries", "ledger_head"

    def __init__(self, patience: float = PATIENCE) -> None:
        self.lock = threading.RLock()
        self._patience = patience
        #: When to give up waiting: set for a whole transaction, so that its statements do not each
        #: wait as long.
        self._until: float | None = None
        quiet_at_forks(self)

    # --- what a database has to know --------------------------------------------------------------

    @abstractmethod
    def execute(self, sql: str, values: tuple[SqlValue, ...]) -> list[SqlRow]:
        """Execute one statement; every failure is one of our own errors, without a value in its
        text.
        """

    @abstractmethod
    def begin(self) -> None:
        """Start a transaction that no other writer can enter."""

    @abstractmethod
    def abandon(self) -> None:
        """Undo the transaction, if there is one; never fails."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection; the next statement opens another."""

    def sleep(self) -> None:
        """Let go of the connection before a fork."""
        self.close()

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a ledger here; refused if there is something else."""

    @abstractmethod
    def make(self, first: LedgerRow) -> None:
        """Make the tables with their first row, at once and for good; leave alone what somebody
        else has made meanwhile.
        """

    @abstractmethod
    def check(self) -> None:
        """Refuse tables, indexes and triggers that are not those that `create` makes."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, for people; no password."""

    def in_turn(self, work: Callable[[], T]) -> T:
        """Do some work when it is our turn to write, where the database has no queue of its own."""
        return work()

    def is_consistent(self) -> bool:
        """Whether the database finds by its indexes what its rows hold; looks at all of it."""
        return True

    def weaknesses(self) -> list[str]:
        """What in the settings of the database weakens the guarantee, in words."""
        return []

    # --- what a ledger asks -----------------------------------------------------------------------

    def run(self, sql: str, *values: SqlValue) -> list[SqlRow]:
        """Execute one statement, while no other thread is in a transaction."""
        return self.alone(lambda: self.execute(sql, values))

    def alone(self, work: Callable[[], T]) -> T:
        """Do some work while no other thread of this process uses the store."""
        return run_holding(self.lock, work)

    def write(self, work: Callable[[], T]) -> T:
        """Do some work as the only writer; when this returns, what it wrote is on disk."""
        until = time.monotonic() + self._patience
        return self.alone(lambda: run_then_end(lambda: self._write(work, until), self._end))

    def _write(self, work: Callable[[], T], until: float) -> T:
        self._end()  # what an earlier interrupt may have left
        self._until = until
        return self.in_turn(lambda: run_then_end(lambda: self._transaction(work), self.abandon))

    def _transaction(self, work: Callable[[], T]) -> T:
        self.begin()
        result = work()
        self.run("COMMIT")
        return result

    def _end(self) -> None:
        """No transaction, and no hurry."""
        self.abandon()
        self._until = None

    def remaining(self) -> float:
        """For how many seconds the transaction, or a statement that begins now, may still wait for
        others.
        """
        return self._patience if self._until is None else max(0.0, self._until - time.monotonic())

    def append(self, row: LedgerRow) -> None:
        """Add a row behind the last one."""
        self.run(f"INSERT INTO {self.entries} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", *row)  # noqa: S608
        self.run(f"UPDATE {self.head} SET number = ?, hash = ?", row.number, row.hash)  # noqa: S608

    def last(self) -> LedgerRow:
        """The last row, without its answer."""
        rows = self.run(_LAST.format(entries=self.entries, head=self.head))
        if len(rows) != 1:
            raise chain.damaged_error("its last row is not the one that its head names.")
        return LedgerRow(*rows[0])

    def at(self, number: int) -> LedgerRow | None:
        """The row with that number."""
        return self._first("number = ?", number)

    def answer_of_charge(self, number: int) -> LedgerRow | None:
        """The row that holds the answer of the reserved row `number`."""
        return self._first("settles = ?", number)

    def answer_for_key(self, key: str) -> LedgerRow | None:
        """The row that holds the answer for a key."""
        return self._first("kind = 'committed' AND key = ?", key)

    def first_with_key(self, key: str) -> LedgerRow | None:
        """The first row with that key."""
        return self._first("key = ?", key)

    def period_with_key(self, key: str) -> LedgerRow | None:
        """The row of a period of a stream with that key."""
        return self._first("kind = 'period' AND key = ?", key)

    def charges_with_key(self, key: str) -> list[LedgerRow]:
        """Every charge with that key, the first one first."""
        return self._select("kind = 'reserved' AND key = ? ORDER BY number", key)

    def description_rows(self, after: int) -> list[LedgerRow]:
        """The rows behind that one which describe the data, the first one first."""
        return self._select("kind = 'described' AND number > ? ORDER BY number", after)

    def has(self, anchor: str) -> bool:
        """Whether some row has this hash."""
        return bool(self.run(f"SELECT 1 FROM {self.entries} WHERE hash = ?", anchor))  # noqa: S608

    def count(self) -> int:
        """How many rows there are."""
        rows: int = self.run(f"SELECT count(*) FROM {self.entries}")[0][0]  # noqa: S608
        return rows

    def rows(self, start: int = 0, limit: int | None = None) -> Iterator[LedgerRow]:
        """The rows from `start` on, in order, a page at a time; no more than `limit`."""
        while limit is None or limit > 0:
            size = _PAGE if limit is None else min(_PAGE, limit)
            page = self._select("number >= ? ORDER BY number LIMIT ?", start, size)
            yield from page
            if len(page) < size:
                return
            start = page[-1].number + 1
            limit = None if limit is None else limit - size

    def _first(self, condition: str, *values: SqlValue) -> LedgerRow | None:
        rows = self._select(f"{condition} ORDER BY number LIMIT 1", *values)
        return rows[0] if rows else None

    def _select(self, condition: str, *values: SqlValue) -> list[LedgerRow]:
        rows = self.run(f"SELECT {_COLUMNS} FROM {self.entries} WHERE {condition}", *values)  # noqa: S608
        return [LedgerRow(*row) for row in rows]


def unreachable_error(what: str, *, during: str = "", fix: str = "") -> LedgerError:
    """The error for a database that does not do what it was asked, during this statement."""
    spent = "nothing, or what was to be charged if it was written" if during == "COMMIT" else "nothing"
    return LedgerError(
        "DP606",
        f"the ledger cannot be reached: {what}",
        why="an answer that is not written down first is never drawn.",
        fix=fix or "try again, with the same key if the question has one.",
        spent=spent,
    )


def lost_error() -> LedgerError:
    """The error for a transaction that ended while it was used: a fork inside of it, or a
    connection that was lost.
    """
    return unreachable_error("its transaction was ended by something else.")


def newer_layout_error(layout: int, known: int) -> BadDescription:
    """The error for tables that a later release made."""
    return BadDescription(
        "DP402",
        f"this ledger has layout {layout}, and this release reads up to {known}.",
        why="a newer version may mean something that this one would misread.",
        fix="upgrade discreet.",
    )
