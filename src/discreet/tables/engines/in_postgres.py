# SPDX-License-Identifier: Apache-2.0
"""Tables of a PostgreSQL database, counted by its server.

**Promise.** One statement for each question, in a read-only session: it sees one state of the data, writes nothing and
keeps nothing. Later questions see the tables as they are then; each is charged for itself, so that is private too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from sqlglot import exp

from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.source import SourceColumn, SourceTable
from discreet.tables.engines.sql_engine import SqlEngine
from discreet.tables.engines.terms import Term
from discreet.tables.schema import library, opened

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
_SESSION = """
    SET default_transaction_read_only = on; SET standard_conforming_strings = on; SET TimeZone = 'UTC';
    SET client_encoding = 'UTF8'; SET jit = off
"""
#: The columns of a table or view with their types; a domain stands for what it is made of, an enumeration is text.
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

    def is_nan(self, term: Term) -> Term:
        return t.binary(exp.EQ, term, t.text("NaN"))

    def over(self, left: Term, right: Term, *, wide: bool = False) -> Term:
        return t.call("DIV" if wide else "INT8DIV", left, right)

    def matches(self, term: Term, pattern: str) -> Term:
        return exp.RegexpLike(this=term, expression=t.text(rf"\A({pattern})\Z"))

    def exact_text(self, term: Term, column: SourceColumn) -> Term:
        return exp.Collate(this=t.cast(term, "TEXT"), expression=exp.to_identifier("C", quoted=True))

    def fraction(self, term: Term, digits: int) -> Term:
        raise AssertionError("decimals are exact here, however many digits they have")

    def day_number(self, term: Term, column: SourceColumn) -> Term:
        return t.cast(t.binary(exp.Sub, term, t.date("1970-01-01")), t.BIGINT)

    def micro_number(self, term: Term, column: SourceColumn) -> Term:
        seconds = exp.Extract(this=exp.var("EPOCH"), expression=term)
        return t.cast(t.call("FLOOR", t.times(seconds, t.number(1_000_000, self.wide))), t.BIGINT)


class Postgres(SqlEngine):
    """Tables of a PostgreSQL database."""

    name: str = "postgres"

    def __init__(
        self, connection: Any, tables: Mapping[str, SourceTable], places: Mapping[str, exp.Table]
    ) -> None:
        super().__init__(PostgresDialect(), tables, places)
        self._connection = connection

    def _fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        rows: Sequence[Sequence[Any]] = self._connection.execute(statement.encode()).fetchall()
        return rows

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def open_postgres(dsn: str, tables: Mapping[str, str], units: Mapping[str, str | None]) -> Postgres:
    """Connect, and read the schemas."""
    psycopg = library("psycopg")
    places = {name: table_named(source) for name, source in tables.items()}
    sources = {}
    with ExitStack() as undo:
        connection = opened(lambda: psycopg.connect(dsn, autocommit=True, prepare_threshold=None))
        undo.callback(connection.close)
        opened(lambda: connection.execute(_SESSION))
        for name, place in places.items():
            text = place.sql(dialect="postgres")
            rows = opened(lambda at=text: connection.execute(_SCHEMA, [at]).fetchall())
            sources[name] = SourceTable(name, {row[0]: column_of(*row) for row in rows}, units.get(name))
        undo.pop_all()
    return Postgres(connection, sources, places)


def table_named(name: str) -> exp.Table:
    """A table by its exact name, or by schema and name with a point between them."""
    *schema, table = name.split(".")
    return exp.table_(table, db=schema[-1] if schema else None, quoted=True)


def column_of(name: str, native: str) -> SourceColumn:
    """A column from PostgreSQL's word for its type."""
    plain = re.sub(r"\(.*?\)", "", native)
    kind = _KINDS.get(plain, "other")
    return SourceColumn(name, kind, plain, zoned=plain.endswith("with time zone"))
