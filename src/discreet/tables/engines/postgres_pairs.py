# SPDX-License-Identifier: Apache-2.0
"""Pairs of unit and group in temporary tables of a PostgreSQL connection, kept while nothing
changes on the server.

**Guarantee.** A kept table is used only if no transaction but ours has been completed on the whole
server since the snapshot from which it was made, and none was running then. A snapshot sees
everything that transactions below its end have committed, apart from those that were running. So
both snapshots see the same rows of stored tables, and a person who was deleted is not counted. If
anything else has happened, even in another database, the table is made again.

What would break it: rows that change without a transaction. So tables with foreign parts or
policies for rows are never kept, nor is anything on a server in recovery or for a role without the
right to temporary tables, or whose transactions are read-only by default.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import exp

from discreet.tables.data.readers.schema import library
from discreet.tables.engines.base import ResultRows
from discreet.tables.engines.cache import PreparedCache
from discreet.tables.engines.pairs import Pairs

__all__ = ["PairTables"]

#: Whether this role may make temporary tables here, and means to write at all.
_MAY_KEEP: Final = """
    SELECT current_setting('server_version_num')::int >= 130000 AND NOT pg_is_in_recovery()
      AND has_database_privilege(current_database(), 'TEMP') AND NOT current_setting('default_transaction_read_only')::bool
"""
_SNAPSHOT: Final = "SELECT pg_current_snapshot()::text"
_OURS: Final = "SELECT pg_current_xact_id()::text::bigint"


class PairTables:
    """The kept tables of one connection; `begin` is run at the start of each transaction."""

    def __init__(self, connection: Any, begin: str) -> None:
        self._connection, self._begin = connection, begin
        (self._may_keep,) = connection.execute(_MAY_KEEP).fetchone()
        self._stale: list[str] = []
        self._tables: PreparedCache[Pairs, str] = PreparedCache(self._stale.append)
        # The end of the snapshot from which the first kept table was made, and our transactions.
        self._since, self._ours = 0, set[int]()

    def answer(
        self, pairs: Pairs, make: bytes, plain: bytes, ask: Callable[[exp.Table], bytes]
    ) -> ResultRows:
        """What is asked of a table of pairs: of the kept one, of one that `make` makes, or `plain`
        if nothing can be kept.
        """
        if self._tables.find(pairs) is not None:
            try:
                kept = self._from_kept(pairs, ask)
            except library("psycopg").errors.UndefinedTable:
                # A pool of connections gave us another session.
                self._forget(lost=True)
            else:
                if kept is not None:
                    return kept
        return self._make(pairs, make, plain, ask)

    def _from_kept(self, pairs: Pairs, ask: Callable[[exp.Table], bytes]) -> ResultRows | None:
        """The answer of a kept table, or None if something else has happened since."""
        with self._connection.transaction():
            self._connection.execute(self._begin)
            end, _ = self._snapshot()
            if self._is_unchanged(end):
                table = exp.table_(self._tables.get(pairs, str), db="pg_temp")
                return self._rows(ask(table))
        self._forget()
        return None

    def _make(self, pairs: Pairs, make: bytes, plain: bytes, ask: Callable[[exp.Table], bytes]) -> ResultRows:
        name = f"discreet_{secrets.token_hex(8)}"
        with self._connection.transaction():
            if self._may_keep:
                self._connection.execute("SET TRANSACTION READ WRITE")
            self._connection.execute(self._begin)
            end, is_quiet = self._snapshot()
            if not (self._may_keep and is_quiet):
                return self._rows(plain)
            if not self._is_unchanged(end):
                self._forget()
            while self._stale:
                self._connection.execute(f"DROP TABLE IF EXISTS pg_temp.{self._stale.pop()}")
            self._connection.execute(f"CREATE TEMP TABLE {name} AS ".encode() + make)
            (ours,) = self._connection.execute(_OURS).fetchone()
            rows = self._rows(ask(exp.table_(name, db="pg_temp")))
        if not self._tables.keys():
            self._since = end
        self._ours.add(ours)
        self._tables.get(pairs, lambda: name)
        return rows

    def _snapshot(self) -> tuple[int, bool]:
        """The end of the snapshot of this transaction, and whether no other one was running."""
        _, end, running = self._connection.execute(_SNAPSHOT).fetchone()[0].split(":")
        return int(end), not running

    def _is_unchanged(self, end: int) -> bool:
        """Whether every transaction between the two snapshots was ours."""
        return end - self._since == sum(1 for ours in self._ours if self._since <= ours < end)

    def _forget(self, *, lost: bool = False) -> None:
        self._tables.clear()
        self._ours.clear()
        if lost:
            self._stale.clear()

    def _rows(self, statement: bytes) -> Sequence[Sequence[Any]]:
        rows: Sequence[Sequence[Any]] = self._connection.execute(statement).fetchall()
        return rows
