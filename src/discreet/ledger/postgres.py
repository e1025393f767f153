# SPDX-License-Identifier: Apache-2.0
"""A ledger on a PostgreSQL server, for many machines; one ledger in each schema.

The schema belongs to the address (`Address`). Where it names none, the database
must hold no ledger but the one in the schema that the search path leads to. A handle keeps its
schema: tables are named with it, whatever the search path says later.

**Guarantee.** A writer holds one lock of the schema from the beginning of its transaction to the
end, so that what it read is still the last row when it writes. COMMIT returns when the server has
forced the row to disk (`synchronous_commit` is on, whatever the server's default is), as far as the
server itself is honest about disks: one that runs with `fsync = off` is reported by `verify`.

Triggers refuse to change, remove or truncate rows. A superuser can switch them off; the chain of
hashes is for that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from discreet.errors import LedgerError, MissingExtra
from discreet.json_types import JsonObject
from discreet.ledger import chain
from discreet.ledger.chain import LedgerRow
from discreet.ledger.store import (
    PATIENCE,
    SqlRow,
    SqlValue,
    Store,
    lost_error,
    newer_layout_error,
    unreachable_error,
)

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgreSQL"]

LAYOUT = 1
#: Seconds to wait for a connection, and before the server ends a writer that has fallen silent.
_CONNECT, _SILENCE = 10, 60

_COMMENT = "a ledger of discreet, layout "
_REFUSE = "BEGIN RAISE EXCEPTION 'a ledger is only ever added to'; END"
_IN_ORDER = """BEGIN
    IF NEW.number IS DISTINCT FROM (SELECT number + 1 FROM ledger_head) THEN
        RAISE EXCEPTION 'a ledger is only ever added to';
    END IF;
    RETURN NEW;
END"""
_SCHEMA = (
    """CREATE TABLE ledger_entries (
    number bigint PRIMARY KEY,
    kind text NOT NULL,
    key text,
    settles bigint,
    body text NOT NULL,
    hash text NOT NULL UNIQUE,
    answer text)""",
    "CREATE TABLE ledger_head (one integer PRIMARY KEY CHECK (one = 1), number bigint NOT NULL, hash text NOT NULL)",
    "CREATE INDEX ledger_asked ON ledger_entries (key) WHERE key IS NOT NULL",
    "CREATE UNIQUE INDEX ledger_answered ON ledger_entries (key) WHERE kind = 'committed'",
    "CREATE UNIQUE INDEX ledger_settled ON ledger_entries (settles) WHERE settles IS NOT NULL",
    f"CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $${_REFUSE}$$",
    f"CREATE FUNCTION ledger_follow() RETURNS trigger LANGUAGE plpgsql AS $${_IN_ORDER}$$",
    """CREATE TRIGGER ledger_never_changed BEFORE UPDATE OR DELETE ON ledger_entries
    FOR EACH ROW EXECUTE FUNCTION ledger_refuse()""",
    "CREATE TRIGGER ledger_never_emptied BEFORE TRUNCATE ON ledger_entries EXECUTE FUNCTION ledger_refuse()",
    "CREATE TRIGGER ledger_in_order BEFORE INSERT ON ledger_entries FOR EACH ROW EXECUTE FUNCTION ledger_follow()",
    """CREATE TRIGGER ledger_head_goes_forward BEFORE UPDATE ON ledger_head
    FOR EACH ROW EXECUTE FUNCTION ledger_follow()""",
    "CREATE TRIGGER ledger_head_stays BEFORE DELETE ON ledger_head FOR EACH ROW EXECUTE FUNCTION ledger_refuse()",
    "CREATE TRIGGER ledger_head_kept BEFORE TRUNCATE ON ledger_head EXECUTE FUNCTION ledger_refuse()",
    f"COMMENT ON TABLE ledger_head IS '{_COMMENT}{LAYOUT}'",
)
#: Looked up in tables, never by `to_regclass`, which may remember that there was nothing here
#: before we had the lock.
_OURS = """
FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace AND n.nspname = ?
"""
#: Every schema of the database that holds such tables.
_LEDGERS = """
SELECT DISTINCT n.nspname FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE t.relname IN ('ledger_entries', 'ledger_head') AND t.relkind = 'r' AND n.nspname !~ '^pg_' ORDER BY n.nspname
"""
_TABLES = f"""
SELECT t.relname, d.description {_OURS} LEFT JOIN pg_description d
    ON d.objoid = t.oid AND d.objsubid = 0 AND d.classoid = 'pg_catalog.pg_class'::regclass
WHERE t.relname IN ('ledger_entries', 'ledger_head') ORDER BY t.relname
"""
#: What the server says of the tables, as one list of texts.
_CATALOGUE = f"""
WITH ours AS (SELECT t.oid, t.relname {_OURS} WHERE t.relname IN ('ledger_entries', 'ledger_head'))
SELECT concat_ws(' ', 'column', table_name, column_name, data_type, is_nullable)
FROM information_schema.columns
WHERE table_schema = ? AND table_name IN ('ledger_entries', 'ledger_head')
UNION ALL
SELECT concat_ws(' ', 'trigger', o.relname, t.tgname, p.proname, t.tgtype::text, t.tgenabled::text)
FROM pg_trigger t JOIN ours o ON o.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal
UNION ALL
SELECT concat_ws(' ', 'function', p.proname, p.prosrc)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = ?
WHERE p.proname IN ('ledger_refuse', 'ledger_follow')
UNION ALL
SELECT concat_ws(' ', 'index', c.relname, i.indisunique::text, (i.indpred IS NOT NULL)::text, i.indkey::text)
FROM pg_index i JOIN ours o ON o.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indisvalid
"""  # noqa: S608 - only constants
_EXPECTED = frozenset({
    "column ledger_entries number bigint NO",
    "column ledger_entries kind text NO",
    "column ledger_entries key text YES",
    "column ledger_entries settles bigint YES",
    "column ledger_entries body text NO",
    "column ledger_entries hash text NO",
    "column ledger_entries answer text YES",
    "column ledger_head one integer NO",
    "column ledger_head number bigint NO",
    "column ledger_head hash text NO",
    # the number is what PostgreSQL calls tgtype: row 1, before 2, insert 4, delete 8, update 16,
    # truncate 32
    "trigger ledger_entries ledger_never_changed ledger_refuse 27 O",
    "trigger ledger_entries ledger_never_emptied ledger_refuse 34 O",
    "trigger ledger_entries ledger_in_order ledger_follow 7 O",
    "trigger ledger_head ledger_head_goes_forward ledger_follow 19 O",
    "trigger ledger_head ledger_head_stays ledger_refuse 11 O",
    "trigger ledger_head ledger_head_kept ledger_refuse 34 O",
    f"function ledger_refuse {_REFUSE}",
    f"function ledger_follow {_IN_ORDER}",
    "index ledger_entries_pkey true false 1",
    "index ledger_entries_hash_key true false 6",
    "index ledger_head_pkey true false 1",
    "index ledger_asked false true 3",
    "index ledger_answered true true 3",
    "index ledger_settled true true 4",
})  # fmt: skip


class PostgreSQL(Store):
    """The table of a ledger on a server."""

    def __init__(self, dsn: str, patience: float = PATIENCE) -> None:
        self._driver = _driver()
        self._written, self._address = dsn, Address.of(dsn, self._connection_facts)
        self._schema: str | None = None
        self._connection: psycopg.Connection[SqlRow] | None = None
        #: The connection with the transaction that is open; another one must not take its place.
        self._begun: psycopg.Connection[SqlRow] | None = None
        self._process = os.getpid()
        super().__init__(patience)

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None and self._process == os.getpid():
            self.close()

    @property
    def place(self) -> str:
        """Host, port, database and user."""
        facts = self._connection_facts(self._address.dsn) | (
            {} if self._schema is None else {"schema": self._schema}
        )
        shown = ("host", "port", "dbname", "user", "schema")
        return " ".join(["postgresql", *(f"{k}={facts[k]}" for k in shown if k in facts)])

    def _connection_facts(self, dsn: str) -> JsonObject:
        """What an address says, by the driver's reading."""
        facts: dict[str, Any] = {}
        with suppress(self._driver.Error):
            facts = self._driver.conninfo.conninfo_to_dict(dsn)
        return facts

    @property
    def schema(self) -> str:
        """Where its tables are: looked up once, and kept for as long as this handle lives."""
        if self._schema is None:
            self.alone(self._look_up)
        return str(self._schema)

    def _look_up(self) -> None:
        schema = (
            self._schema_in_address() if self._address.schema is not None else self._schema_in_search_path()
        )
        quoted = _quote(schema)
        self.entries, self.head = f"{quoted}.ledger_entries", f"{quoted}.ledger_head"
        self._schema = schema  # last: an interrupt must not leave it without the names of its tables

    def _schema_in_address(self) -> str:
        """The schema that the address names."""
        name = str(self._address.schema)
        if not self.run("SELECT 1 FROM pg_namespace WHERE nspname = ?", name):
            raise unreachable_error(
                "its database has no schema of the name in the address.",
                fix=f"look at the name; or, for a first ledger there, on the server:  CREATE SCHEMA {_quote(name)}",
            )
        return name

    def _schema_in_search_path(self) -> str:
        """The schema that the search path leads to, unless a ledger of this database is somewhere
        else.
        """
        here: str | None = self.run("SELECT current_schema()")[0][0]
        schemas = self._ledgers()
        if schemas not in ([], [here]):
            raise several_ledgers_error(self._written, schemas, here)
        if here is None:
            raise unreachable_error("its database has no schema that the search path leads to.")
        return here

    def _ledgers(self) -> list[str]:
        return [name for (name,) in self.run(_LEDGERS)]

    def execute(self, sql: str, values: tuple[SqlValue, ...]) -> list[SqlRow]:
        """Execute one statement; the server's own words are never passed on, because they may quote
        a row.
        """
        try:
            cursor = self._live_connection().execute(sql.replace("?", "%s").encode(), values or None)
            return cursor.fetchall() if cursor.description else []
        except self._driver.Error as error:
            raise self._ledger_error(error, sql) from None

    def begin(self) -> None:
        """Take the lock of the schema; on a new connection if the old one has died since it was
        last used.
        """
        try:
            self._begin()
        except LedgerError:
            if self._connection is None or not self._connection.broken:
                raise
            self.close()
            self._begin()
        self._begun = self._connection

    def _begin(self) -> None:
        self.run(f"""BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
            SET LOCAL lock_timeout = {max(1, round(1000 * self.remaining()))};
            SET LOCAL search_path = {_quote(self.schema)}, pg_temp;
            SET LOCAL idle_in_transaction_session_timeout = '{_SILENCE}s';
            SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
            SELECT pg_advisory_xact_lock(hashtext('discreet ledger'), hashtext(current_schema()))""")

    def abandon(self) -> None:
        """Undo the transaction, if there is one; a connection that was interrupted is not used
        again.
        """
        connection, self._begun = self._connection, None
        if connection is None or connection.closed or self._is_idle(connection):
            return
        if self._is_usable(connection):
            with suppress(self._driver.Error):
                connection.execute("ROLLBACK")
        if not self._is_idle(connection):
            self.close()

    def _is_idle(self, connection: psycopg.Connection[SqlRow]) -> bool:
        status = connection.pgconn.transaction_status
        return bool(status == self._driver.pq.TransactionStatus.IDLE and not connection.lock.locked())

    def _is_usable(self, connection: psycopg.Connection[SqlRow]) -> bool:
        """Whether no statement was interrupted on it: the driver would wait for its end, or for its
        own lock, for ever.
        """
        status = self._driver.pq.TransactionStatus
        between = connection.pgconn.transaction_status in {status.IDLE, status.INTRANS, status.INERROR}
        return between and not connection.lock.locked()

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            with suppress(self._driver.Error):
                connection.close()

    def exists(self) -> bool:
        """Whether the schema holds a ledger; tables of that name that are something else are
        refused.
        """
        tables = self.run(_TABLES, self.schema)
        if not tables:
            return False
        layout = (tables[-1][1] or "").removeprefix(_COMMENT)
        if len(tables) != 2 or not layout.isdecimal():
            raise chain.damaged_error("its tables are something else.")
        if int(layout) > LAYOUT:
            raise newer_layout_error(int(layout), LAYOUT)
        return True

    def make(self, first: LedgerRow) -> None:
        """Make the tables in one transaction, unless somebody else was quicker."""
        self.write(lambda: None if self.exists() else self._fill(first))

    def _fill(self, first: LedgerRow) -> None:
        """Only in a schema that the address names, or where the database holds no ledger at all."""
        self.run("SELECT pg_advisory_xact_lock(hashtext('discreet ledger'), 0)")
        if self._address.schema is None and (schemas := self._ledgers()):
            raise several_ledgers_error(self._written, schemas, self.schema)
        for statement in _SCHEMA:
            self.run(statement)
        self.run(f"INSERT INTO {self.head} VALUES (1, -1, ?)", chain.NOTHING)  # noqa: S608
        self.append(first)

    def check(self) -> None:
        """Compare what the server says of columns, indexes, triggers and their functions."""
        if {line for (line,) in self.run(_CATALOGUE, self.schema, self.schema, self.schema)} != _EXPECTED:
            raise chain.damaged_error("its tables, indexes or triggers are not those that were made.")

    def weaknesses(self) -> list[str]:
        """Settings of the server that let a power failure undo a charge."""
        settings = self.run(
            "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"
        )
        return [
            f"the server runs with {name} = off: a power failure can undo what was charged"
            for (name,) in settings
        ]

    def _live_connection(self) -> psycopg.Connection[SqlRow]:
        if self._process != os.getpid():  # psycopg leaves a connection alone that came from a parent
            self._connection, self._process = None, os.getpid()
        if self._connection is not None and not self._is_usable(self._connection):
            self.close()
        if self._begun is not None and self._begun is not self._connection:
            raise lost_error()
        if self._connection is None or self._connection.closed:
            self._connection = self._driver.connect(
                self._address.dsn,
                autocommit=True,
                connect_timeout=_CONNECT,
                prepare_threshold=None,
                application_name="discreet ledger",
            )
        return self._connection

    def _ledger_error(self, error: psycopg.Error, sql: str) -> LedgerError:
        state = error.sqlstate or ""
        if state == "55P03":
            return unreachable_error(f"others kept it busy for {self._patience:g} seconds.")
        if state == "42501" or state.startswith("28"):
            return unreachable_error("the server does not allow it.")
        if isinstance(error, self._driver.IntegrityError) or state[:2] in {"42", "P0", "XX", "22"}:
            return chain.damaged_error(
                "PostgreSQL refuses a row that follows from the others, or its tables."
            )
        return unreachable_error("the PostgreSQL server does not answer.", during=sql)


def _quote(name: str) -> str:
    """An identifier of SQL; what a placeholder begins with is none that a ledger's schema may have."""
    if not name or re.search("[?%\0]", name):
        raise unreachable_error("its schema has a name that cannot be used.", fix="?schema=visits")
    return '"' + name.replace('"', '""') + '"'


def _driver() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError:
        why = "the core of discreet stays small; drivers of servers are an extra."
        raise MissingExtra.of("psycopg", "a ledger on a PostgreSQL server", why=why) from None
    return psycopg


#: The one schema of a search path that was set in the address.
_ONE_PATH = re.compile(r"""(?:-c\s*|--)search_path=(?:"(?P<exact>[^"]+)"|(?P<folded>\w+))(?=\s|$)""")
_ANY_PATH = re.compile(r"(?:-c\s*|--)search_path\s*=")
#: Variables that libpq takes a server from.
_SERVERS = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE")


@dataclass(frozen=True)
class Address:
    """Where a ledger lies: what the driver is given, and the schema that the address names; None if
    it names none.

        postgresql://user@host/database?schema=visits

    **Guarantee.** An address that means one ledger today means the same one tomorrow, or is
    refused. Nothing that decides which ledger it is comes from an environment variable, from the
    name of the user, or from what else there is on the server.

    Why that is needed: a default can change. A schema that appears in front of the others, a role
    with another search path or a variable in the environment would lead to a place where there is
    no ledger yet. A limit would make one there, and all that was spent would be forgotten.
    """

    dsn: str
    schema: str | None

    @classmethod
    def of(cls, text: str, conninfo: Any) -> Address:
        """From what somebody wrote; `conninfo` is the driver's reader, for which an unreadable one
        says nothing.
        """
        parts = urlsplit(text)
        options = [part for part in parts.query.split("&") if part]
        own = [part for part in options if part.startswith("schema=")]
        rest = "&".join(part for part in options if part not in own)
        dsn = f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else "")
        settings = conninfo(dsn)
        _check_says_it_all(text, settings)
        named = (
            unquote(own[-1].removeprefix("schema="))
            if own
            else _schema_in_path(str(settings.get("options", "")))
        )
        return cls(dsn, named)


def _schema_in_path(options: str) -> str | None:
    """The schema that a search path in the address names, if it names one and no other."""
    paths = list(_ONE_PATH.finditer(options))
    if len(paths) != 1 or len(_ANY_PATH.findall(options)) != 1:
        return None
    return paths[0]["exact"] or paths[0]["folded"].lower()


def _check_says_it_all(text: str, settings: Mapping[str, object]) -> None:
    if not {"dbname", "service"} & set(settings):
        raise ambiguous_address_error(
            "the address names no database, so the name of the user or PGDATABASE decides which one it is.",
            address_with_schema(text, None, database=os.environ.get("PGDATABASE") or "visits"),
        )
    outside = [name for name in _SERVERS if os.environ.get(name)]
    if outside and not {"host", "hostaddr", "service"} & set(settings):
        raise ambiguous_address_error(
            f"the address names no host, so the environment ({outside[0]}) decides which server it is.",
            address_with_schema(text, None, host=os.environ.get("PGHOST") or "localhost"),
        )


def address_with_schema(text: str, schema: str | None, *, database: str = "", host: str = "") -> str:
    """The address to write instead, without a password."""
    parts = urlsplit(text)
    user, at, place = parts.netloc.rpartition("@")
    options = [part for part in parts.query.split("&") if part]
    arguments = [part for part in options if not part.startswith(("password=", "schema="))]
    arguments += [f"host={quote(host, safe='')}"] if host else []
    arguments += [f"schema={quote(schema)}"] if schema else []
    path = f"/{quote(database)}" if database else parts.path
    return f"postgresql://{user.partition(':')[0]}{at}{place}{path}" + (
        f"?{'&'.join(arguments)}" if arguments else ""
    )


def several_ledgers_error(text: str, schemas: Sequence[str], here: str | None) -> LedgerError:
    """The error for an address without a schema, in a database that holds a ledger elsewhere than
    it would look now.
    """
    where = " and ".join(schemas[:3])
    return ambiguous_address_error(
        f"its database holds a ledger in the schema {where}, and the search path leads to {here or 'none'}.",
        address_with_schema(text, schemas[0]),
    )


def ambiguous_address_error(what: str, address: str) -> LedgerError:
    """The error for an address that could mean several ledgers."""
    return LedgerError(
        "DP609",
        f"this address could mean several ledgers: {what}",
        why="a ledger that is begun anew in another place would forget what was spent.",
        fix=f"say it in the address:  ledger='{address}'",
    )
