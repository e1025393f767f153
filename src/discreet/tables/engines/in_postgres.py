# SPDX-License-Identifier: Apache-2.0
"""Tables of a PostgreSQL database, counted by its server.

**Guarantee.** A question is answered in a transaction that is isolated from all others: it sees
one state of the data, and writes nothing but a temporary table of this connection, which serves
later questions while nothing on the server changes (`postgres_pairs`). The rows of a view are
evaluated once, whatever functions it calls. A later question sees the tables as they are then, and
is charged for itself, so it is private too.

The name of a table is resolved once, when it is opened. Every transaction has the settings of this
file for everything that changes the meaning of a statement, whatever a role, a database or a
function set.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

from sqlglot import exp

from discreet.paths import unopened_error
from discreet.tables.algebra.engine import outdated_error
from discreet.tables.algebra.resources import ANY, Resources
from discreet.tables.algebra.sums import Relation
from discreet.tables.algebra.types import WIDEST
from discreet.tables.data.readers.schema import guard_opening, library
from discreet.tables.engines import terms as t
from discreet.tables.engines.base import ResultRows
from discreet.tables.engines.dialect import Dialect, unspeakable_text_error
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.postgres_pairs import PairTables
from discreet.tables.engines.read import clamp
from discreet.tables.engines.relation import select
from discreet.tables.engines.source import SourceColumn, SourceTable
from discreet.tables.engines.sql_engine import SqlEngine, stored_within
from discreet.tables.engines.terms import Term
from discreet.tables.engines.tree import all_tables

__all__ = ["Postgres", "open_postgres"]

_KINDS = {
    **dict.fromkeys(("smallint", "integer", "bigint"), "integer"),
    **dict.fromkeys(("real", "double precision"), "real"),
    **dict.fromkeys(("text", "character varying", "character", "uuid", "name", "citext"), "text"),
    "boolean": "boolean",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamp",
    "numeric": "decimal",
}
#: Functions of PostgreSQL come before functions of the database with the same name.
_SESSION = """
    SELECT set_config('search_path', concat_ws(', ', 'pg_catalog', nullif(current_setting('search_path'), '')), false)
"""
_TRANSACTION = """
    SET LOCAL standard_conforming_strings = on; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD';
    SET LOCAL jit = off
"""
#: The place of a table, and whether it is stored here: a view or a foreign table may change
#: meanwhile.
_PLACE = """
    SELECT n.nspname, c.relname, c.relkind IN ('r', 'p', 'm'),
      c.relkind IN ('r', 'm') AND NOT c.relrowsecurity AND NOT c.relhassubclass
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s::regclass
"""
#: The columns of a table or view with their types; a domain stands for what it is made of, an
#: enumeration is text.
_SCHEMA = """
    SELECT a.attname, CASE WHEN b.typtype = 'e' THEN 'text' ELSE
      format_type(b.oid, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
    WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


class PostgresDialect(Dialect):
    """PostgreSQL's SQL."""

    name: ClassVar[str] = "postgres"
    wide: ClassVar[exp.DataType] = exp.DataType.build("NUMERIC", dialect="postgres")
    decimal_has_nan: ClassVar[bool] = True

    def __init__(self, encoding: str = "UTF8", codec: str = "utf-8") -> None:
        self.encoding, self.codec = encoding, codec

    def literal(self, value: str) -> Term:
        try:
            value.encode(self.codec)
        except UnicodeError:
            raise unspeakable_text_error() from None
        return super().literal(value)

    def characters(self, term: Term) -> Term:
        """SQL_ASCII counts bytes, which could split a character, so only ASCII texts are read."""
        if self.encoding != "SQL_ASCII":
            return term
        stored = t.call("ENCODE", t.call("CONVERT_TO", term, t.text(self.encoding)), t.text("hex"))
        return t.cases([(self.matches(stored, "([0-7][0-9a-f])*"), term.copy())], t.nothing("TEXT"))

    def is_nan(self, term: Term) -> Term:
        return t.binary(exp.EQ, term, t.text("NaN"))

    def over(self, left: Term, right: Term, *, wide: bool = False) -> Term:
        return t.call("DIV" if wide else "INT8DIV", left, right)

    def matches(self, term: Term, pattern: str) -> Term:
        return exp.RegexpLike(this=term, expression=t.text(rf"\A({pattern})\Z"))

    def exact_text(self, term: Term, column: SourceColumn) -> Term:
        """A text that Python cannot read is NULL, whatever the question."""
        value = t.cast(term, "TEXT")
        if self.encoding != "UTF8":
            stored = t.call("ENCODE", t.call("CONVERT_TO", value, t.text(self.encoding)), t.text("hex"))
            is_readable = self.matches(stored, readable_bytes(self.codec))
            value = t.cases([(is_readable, value.copy())], t.nothing("TEXT"))
        return exp.Collate(this=value, expression=exp.to_identifier("C", quoted=True))

    def unit_text(self, term: Term, column: SourceColumn) -> Term:
        return exp.Collate(this=t.cast(term, "TEXT"), expression=exp.to_identifier("C", quoted=True))

    def fraction(self, term: Term, digits: int, column: SourceColumn) -> Term:
        raise AssertionError("decimals are exact here, however many digits they have")

    def day_number(self, term: Term, column: SourceColumn) -> Term:
        return t.cast(t.binary(exp.Sub, term, t.date("1970-01-01")), t.BIGINT)

    def micro_number(self, term: Term, column: SourceColumn) -> Term:
        """Clamped, because 64 bits hold too few microseconds for the last years of PostgreSQL."""
        seconds = exp.Extract(this=exp.var("EPOCH"), expression=term)
        whole = t.call("FLOOR", t.times(seconds, t.number(1_000_000, self.wide)))
        return t.cast(clamp(whole, t.number(-WIDEST, self.wide), t.number(WIDEST, self.wide)), t.BIGINT)


class Postgres(SqlEngine):
    """Tables of a PostgreSQL database."""

    name: str = "postgres"

    def __init__(
        self,
        connect: Callable[[], Any],
        dialect: PostgresDialect,
        tables: Mapping[str, SourceTable],
        places: Mapping[str, exp.Table],
        *,
        derived: set[str],
        kept: set[str],
        threads: int | None = None,
    ) -> None:
        super().__init__(dialect, tables, places)
        self._connect, self._codec, self._derived = connect, dialect.codec, derived
        self._kept = kept
        self._places = dict(places)
        # One process leads, and the others help it.
        helpers = "" if threads is None else f"; SET LOCAL max_parallel_workers_per_gather = {threads - 1}"
        self._settings = _TRANSACTION + helpers
        self._begin()

    def _begin(self) -> None:
        """Connect, with nothing kept."""
        self._connection, self._process = self._connect(), os.getpid()
        self._pair_tables = PairTables(self._connection, self._settings)

    def _fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        with self._connection.transaction():
            self._connection.execute(self._settings)
            rows: Sequence[Sequence[Any]] = self._connection.execute(statement.encode(self._codec)).fetchall()
        return rows

    def _from_stored(
        self, relation: Relation, rows: exp.Select, answer: Callable[[exp.Table], exp.Select]
    ) -> ResultRows:
        derived = not self._derived.isdisjoint(all_tables(relation))
        return self._fetch(self._dialect.sql(stored_within(rows, answer, materialized=derived)))

    def _from_pairs(
        self, pairs: Pairs, answer: Callable[[exp.Table], exp.Select]
    ) -> Callable[[], ResultRows]:
        if self._is_single(pairs.rows) or not self._kept.issuperset(all_tables(pairs.rows)):
            return super()._from_pairs(pairs, answer)
        rows, whole_answer = self._rows_and_answer(pairs, answer)
        _, whole_pairs = self._rows_and_answer(pairs, lambda table: select([exp.Star()], table))
        plain = self._encode(stored_within(rows.copy(), whole_answer, materialized=False))
        make = self._encode(stored_within(rows, whole_pairs, materialized=False))
        # The names of tables are looked up when it is asked: a connection may be made again.
        return lambda: self._pair_tables.answer(pairs, make, plain, lambda table: self._encode(answer(table)))

    def _encode(self, statement: exp.Select) -> bytes:
        return self._dialect.sql(statement).encode(self._codec)

    def _release(self) -> None:
        self._connection.close()

    def sleep(self) -> None:
        """Close the connection, which two processes would use at once."""
        if self._process == os.getpid():
            self._connection.close()

    def _wake(self) -> None:
        """Connect again, if the connection was closed here or by the server."""
        if self._connection.closed:
            self._begin()

    def _check_source(self) -> None:
        try:
            self._compare_schemas()
        except library("psycopg").OperationalError:
            # The server closed the connection, which is known only when it is used.
            self._connection.close()
            self._wake()
            self._compare_schemas()

    def _compare_schemas(self) -> None:
        """Refuse a table or a column that is gone, became a view, or has another type."""
        for name, table in self._tables.items():
            at = self._places[name].sql(dialect="postgres")
            *_, is_stored, is_kept = self._connection.execute(_PLACE, [at]).fetchone()
            now = _columns(self._connection, at)
            # A policy for rows, or a part, may have been added.
            self._kept -= set() if is_kept else {name}
            if is_stored == (name in self._derived) or not table.columns.items() <= now.items():
                raise outdated_error(
                    f"{name} is another table, or has other columns, than when it was opened."
                )


def open_postgres(
    dsn: str, tables: Mapping[str, str], units: Mapping[str, str | None], resources: Resources = ANY
) -> Postgres:
    """Connect, find the tables, and read their schemas."""
    replace(resources, threads=None).refuse(
        "PostgreSQL",
        "its server limits the memory of each step of a statement, not of a question.",
        "leave memory out; the server has its own limit:  ALTER ROLE analyst SET work_mem = '64MB'",
    )
    named = {name: table_named(source).sql(dialect="postgres") for name, source in tables.items()}
    places, sources = {}, {}
    derived, kept = set[str](), set[str]()
    with ExitStack() as undo:
        connection = _connect(dsn)
        undo.callback(connection.close)
        for name, at in named.items():
            schema, table, is_stored, is_kept = guard_opening(
                lambda at=at: connection.execute(_PLACE, [at]).fetchone()
            )
            places[name] = exp.table_(table, db=schema, quoted=True)
            derived |= set() if is_stored else {name}
            kept |= {name} if is_kept else set()
            columns = guard_opening(lambda at=at: _columns(connection, at))
            sources[name] = SourceTable(name, columns, units.get(name))
        dialect = PostgresDialect(
            connection.info.parameter_status("server_encoding"), connection.info.encoding
        )
        guard_opening(lambda: connection.execute(_SESSION))
        undo.pop_all()
    first = [connection]

    def connect() -> Any:
        if first:
            return first.pop()
        again = _connect(dsn)
        guard_opening(lambda: again.execute(_SESSION))
        return again

    return Postgres(connect, dialect, sources, places, derived=derived, kept=kept, threads=resources.threads)


def _connect(dsn: str) -> Any:
    """A read-only connection in the encoding of the database, so that no text is ever converted."""
    psycopg = library("psycopg")
    connection = guard_opening(lambda: psycopg.connect(dsn, autocommit=True, prepare_threshold=None))
    with ExitStack() as undo:
        undo.callback(connection.close)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        encoding = connection.info.parameter_status("server_encoding")
        spoken = "UTF8" if encoding == "SQL_ASCII" else encoding
        guard_opening(lambda: connection.execute(f"SET client_encoding = '{spoken}'"))
        undo.pop_all()
    return connection


def _columns(connection: Any, at: str) -> dict[str, SourceColumn]:
    """The columns of a table or view, from the catalogue."""
    return {row[0]: column_of(*row) for row in connection.execute(_SCHEMA, [at]).fetchall()}


def table_named(name: str) -> exp.Table:
    """A table by its exact name: table, schema.table or database.schema.table."""
    *within, table = name.split(".")
    if len(within) > 2:
        raise unopened_error(f"{name} is no name of a table.", "schema.table")
    database, schema = [None, None, *within][-2:]
    return exp.table_(table, db=schema, catalog=database, quoted=True)


def column_of(name: str, native: str) -> SourceColumn:
    """A column from PostgreSQL's name of its type."""
    plain = re.sub(r"\(.*?\)", "", native)
    kind = _KINDS.get(plain, "other")
    return SourceColumn(name, kind, plain, zoned=plain.endswith("with time zone"))


_HIGH = range(0x80, 0x100)
#: EUC_JP writes the characters of JIS X 0212 with three bytes, of which this is the first.
_THREE = 0x8F
_DIGITS = "0123456789abcdef"
_MORE = "[89ab][0-9a-f]"
#: Well-formed UTF-8 (Unicode, table 3-7), byte by byte.
_UTF8 = "|".join(
    (
        "[0-7][0-9a-f]",
        f"(?:c[2-9a-f]|d[0-9a-f]){_MORE}",
        f"e0[ab][0-9a-f]{_MORE}",
        f"e[1-9a-cef](?:{_MORE}){{2}}",
        f"ed[89][0-9a-f]{_MORE}",
        f"f0[9ab][0-9a-f](?:{_MORE}){{2}}",
        f"f[1-3](?:{_MORE}){{3}}",
        f"f48[0-9a-f](?:{_MORE}){{2}}",
    )
)


@cache
def readable_bytes(codec: str) -> str:
    """A pattern for the whole of a text that Python reads with this codec, in hexadecimal.

    A database in another encoding than UTF-8 may hold texts that exist only there: any bytes under
    SQL_ASCII, or characters of EUC_JP that Unicode lacks. One of them among the keys would make the
    whole answer fail.

    **Guarantee.** A text whose bytes match is decoded without an error, and two different texts
    stay different: every character is one code point, which is encoded to the same bytes.
    """
    return f"(?:{_UTF8 if codec == 'utf-8' else _characters(codec)})*"


def _characters(codec: str) -> str:
    """All characters of a codec: those of one byte, then those that begin with the same bytes
    together.
    """
    alone = [byte for byte in range(1, 0x100) if _is_character(bytes([byte]), codec)]
    patterns = [_one_of(alone)]
    for first in (b"", bytes([_THREE])):
        starts: dict[frozenset[int], list[int]] = defaultdict(list)
        for start in _HIGH:
            is_single = start in alone and not first
            ends = {
                last for last in _HIGH if not is_single and _is_character(first + bytes([start, last]), codec)
            }
            starts[frozenset(ends)].append(start)
        patterns += [
            f"{first.hex()}{_one_of(start)}{_one_of(ends)}" for ends, start in starts.items() if ends
        ]
    return "|".join(patterns)


def _is_character(text: bytes, codec: str) -> bool:
    try:
        sign = text.decode(codec)
        return len(sign) == 1 and sign.encode(codec) == text
    except UnicodeError:
        return False


def _one_of(values: Iterable[int]) -> str:
    """A pattern for one byte of these, in hexadecimal."""
    lows: dict[int, list[str]] = defaultdict(list)
    for value in sorted(values):
        lows[value >> 4].append(_DIGITS[value & 15])
    highs: dict[str, list[str]] = defaultdict(list)
    for high, low in lows.items():
        highs["".join(low)].append(_DIGITS[high])
    return "(?:" + "|".join(f"[{''.join(high)}][{low}]" for low, high in highs.items()) + ")"
