# SPDX-License-Identifier: Apache-2.0
"""The database of the store: a SQLite file or a schema of PostgreSQL, with numbered migrations.

**Guarantee.** A migration is one transaction: a store is of one version or of the next, never in
between. A store of a newer version is refused. Statements use `?` for their values, which are never
written into their text.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import ServerError
from discreet.extras import naming_extras
from discreet.server.config import settings_error

__all__ = ["Database", "open_database"]

#: What a column holds.
Cell = str | int | None
Rows = list[tuple[Cell, ...]]

#: Each migration makes the next version of the store. None is ever changed once it was published.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT NOT NULL, issuer TEXT, subject TEXT, added TEXT NOT NULL,
        gone TEXT, UNIQUE (issuer, subject));
    CREATE TABLE grants (person TEXT NOT NULL, dataset TEXT NOT NULL, role TEXT NOT NULL, granted_by TEXT,
        since TEXT NOT NULL, until TEXT);
    CREATE TABLE seats (dataset TEXT NOT NULL, seat TEXT NOT NULL, person TEXT NOT NULL, granted_by TEXT,
        since TEXT NOT NULL, until TEXT);
    CREATE TABLE tokens (hash TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL, name TEXT NOT NULL,
        scopes TEXT NOT NULL, made TEXT NOT NULL, expires TEXT NOT NULL, used_on TEXT, revoked TEXT);
    CREATE TABLE links (hash TEXT PRIMARY KEY, person TEXT NOT NULL, expires TEXT NOT NULL, used TEXT);
    CREATE TABLE sessions (hash TEXT PRIMARY KEY, person TEXT NOT NULL, token TEXT, made TEXT NOT NULL,
        seen TEXT NOT NULL, expires TEXT NOT NULL);
    CREATE TABLE descriptions (dataset TEXT NOT NULL, version INTEGER NOT NULL, toml TEXT NOT NULL,
        sha256 TEXT NOT NULL, saved_by TEXT, time TEXT NOT NULL, PRIMARY KEY (dataset, version));
    CREATE TABLE anchors (dataset TEXT NOT NULL, number INTEGER NOT NULL, hash TEXT NOT NULL, time TEXT NOT NULL,
        PRIMARY KEY (dataset, number));
    CREATE TABLE events (number INTEGER PRIMARY KEY, time TEXT NOT NULL, person TEXT, dataset TEXT,
        what TEXT NOT NULL, about TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL);
    CREATE INDEX seats_of ON seats (dataset, person);
    CREATE INDEX grants_of ON grants (person)
    """,
)


class Database(Protocol):
    """Statements with `?` for values; those inside `alone` are on disk together or not at all, and
    nobody else writes meanwhile.
    """

    def run(self, statement: str, values: Sequence[Cell] = ()) -> Rows:
        """The rows that a statement returns; none if it changes something."""
        ...

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One transaction, and the only writer."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


def open_database(place: str | Path) -> Database:
    """The database in a file, or behind `postgresql://…`, brought to this version."""
    database: Database
    if str(place).startswith(("postgresql://", "postgres://")):
        database = PostgresDatabase(str(place))
    else:
        database = FileDatabase(Path(place))
    migrate(database)
    return database


def migrate(database: Database) -> None:
    """Bring a database to this version, each migration in one transaction."""
    database.run("CREATE TABLE IF NOT EXISTS store_version (version INTEGER NOT NULL)")
    with database.alone():
        rows = database.run("SELECT MAX(version) FROM store_version")
        version = int(rows[0][0] or 0)
        if version > len(MIGRATIONS):
            raise settings_error(
                f"the store is of version {version}, and this discreet knows {len(MIGRATIONS)}.",
                "pip install --upgrade discreet",
                "a newer version may have written what this one would misread.",
            )
        for number, statements in enumerate(MIGRATIONS[version:], version + 1):
            for statement in statements.split(";"):
                database.run(statement)
            database.run("INSERT INTO store_version VALUES (?)", (number,))


class FileDatabase:
    """A SQLite file that several processes of one machine may use."""

    def __init__(self, place: Path) -> None:
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(
                place, timeout=20, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error:
            raise _unopened_store_error(place.name) from None
        place.chmod(0o600)

    def run(self, statement: str, values: Sequence[Cell] = ()) -> Rows:
        with self._lock:
            return self._connection.execute(statement, tuple(values)).fetchall()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class PostgresDatabase:
    """A schema `discreet_server` of PostgreSQL that several machines may use."""

    def __init__(self, address: str) -> None:
        with naming_extras():
            import psycopg
        self._errors: type[Exception] = psycopg.Error
        self._lock, self._address, self._depth = threading.RLock(), address, 0
        self._connect: Callable[[], Any] = lambda: psycopg.connect(
            address, autocommit=True, connect_timeout=10
        )
        self._connection = self._connection_to_schema()

    def _connection_to_schema(self) -> Any:
        try:
            connection = self._connect()
            connection.execute("CREATE SCHEMA IF NOT EXISTS discreet_server")
            connection.execute("SET search_path TO discreet_server")
        except self._errors:
            raise _unopened_store_error("at its PostgreSQL address") from None
        return connection

    def run(self, statement: str, values: Sequence[Cell] = ()) -> Rows:
        with self._lock:
            if self._connection.closed and not self._depth:
                self._connection = self._connection_to_schema()
            cursor = self._connection.execute(statement.replace("?", "%s"), tuple(values))
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._lock:
            if self._depth:
                yield
                return
            if self._connection.closed:
                self._connection = self._connection_to_schema()
            self._depth += 1
            try:
                with self._connection.transaction():
                    self._connection.execute("SELECT pg_advisory_xact_lock(7233712)")
                    yield
            finally:
                self._depth -= 1

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _unopened_store_error(name: str) -> ServerError:
    return settings_error(
        f"the store {name} cannot be opened.",
        'state = "discreet-server"   a folder that this user may write to',
    )
