# SPDX-License-Identifier: Apache-2.0
"""DuckDB's SQL, and its words for types."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.source import SourceColumn
from discreet.tables.engines.terms import Term

__all__ = ["DuckDialect", "column_of"]

_INTEGERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
)
_KINDS = {
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "real"),
    **dict.fromkeys(("VARCHAR", "UUID"), "text"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "timestamp"),
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}


class DuckDialect(Dialect):
    """DuckDB's SQL."""

    name: ClassVar[str] = "duckdb"
    wide: ClassVar[exp.DataType] = exp.DataType.build("HUGEINT", dialect="duckdb")

    def pattern(self, like: str) -> str:
        return like  # no escape character, unless one is named

    def over(self, left: Term, right: Term, *, wide: bool = False) -> Term:
        return t.call("DIVIDE", left, right)

    def summand(self, term: Term) -> Term:
        return t.cast(term, "INT")  # summed with 64 bits, which hold 2^40 of them; 64-bit numbers with 128

    def matches(self, term: Term, pattern: str) -> Term:
        return t.call("REGEXP_FULL_MATCH", term, t.text(pattern))

    def exact_text(self, term: Term, column: SourceColumn) -> Term:
        value = term if column.native == "VARCHAR" else t.cast(term, "TEXT")
        return exp.Collate(this=value, expression=exp.to_identifier("C", quoted=True))

    def fraction(self, term: Term, digits: int) -> Term:
        rest = t.binary(exp.Sub, term, t.call("FLOOR", term.copy()))
        return t.cast(
            t.call("FLOOR", t.times(rest, t.number(10**digits, f"DECIMAL({digits + 1},0)"))), t.BIGINT
        )

    def day_number(self, term: Term, column: SourceColumn) -> Term:
        return t.cast(t.binary(exp.Sub, term, t.date("1970-01-01")), t.BIGINT)

    def micro_number(self, term: Term, column: SourceColumn) -> Term:
        if column.native != "TIMESTAMP_NS":
            return t.call("EPOCH_US", term)
        nanos = t.call("EPOCH_NS", term)
        rest = t.binary(
            exp.Mod, t.add(t.binary(exp.Mod, nanos, t.number(1000)), t.number(1000)), t.number(1000)
        )
        return t.call("DIVIDE", t.binary(exp.Sub, nanos.copy(), rest), t.number(1000))


def column_of(name: str, native: str) -> SourceColumn:
    """A column from DuckDB's word for its type."""
    if native.startswith("DECIMAL("):
        digits, scale = (int(part) for part in native[8:-1].split(","))
        return SourceColumn(name, "decimal", native, digits, scale)
    kind = "text" if native.startswith("ENUM(") else _KINDS.get(native, "other")
    return SourceColumn(name, kind, native, zoned=native.endswith("ZONE"))
