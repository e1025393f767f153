# SPDX-License-Identifier: Apache-2.0
"""How a text becomes a value of the kind that a description says.

**Guarantee.** Each text for itself, and to NULL where it is not written like a value of that kind: no text makes another one fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.tables.data.readers.sound import library

__all__ = ["cast", "described", "quoted"]

#: As DuckDB writes it; {0} is the column.
_CASTS = {
    "integer": "CASE WHEN regexp_full_match({0}, '[+-]?[0-9]{{1,18}}') THEN TRY_CAST({0} AS BIGINT) END",
    "real": "TRY_CAST({0} AS DOUBLE)",
    "decimal": "TRY_CAST({0} AS DOUBLE)",
    "boolean": "TRY_CAST({0} AS BOOLEAN)",
    "date": "CASE WHEN regexp_full_match({0}, '[0-9]{{4}}(-[0-9]{{2}}){{2}}') THEN TRY_CAST({0} AS DATE) END",
    "timestamp": "CASE WHEN regexp_matches({0}, '^[0-9]{{4}}-') THEN TRY_CAST({0} AS TIMESTAMP) END",
}


def cast(name: str, kind: str) -> str:
    """A column of texts as one of a kind, in DuckDB's SQL."""
    return _CASTS[kind].format(quoted(name)) if kind in _CASTS else quoted(name)


def described(table: Any, kinds: Mapping[str, str]) -> Any:
    """An Arrow table of sound texts, with the columns that have a kind as values of that kind."""
    if not any(kind in _CASTS for kind in kinds.values()):
        return table
    names = table.column_names
    terms = ", ".join(f"{cast(name, kinds.get(name, ''))} AS {quoted(name)}" for name in names)
    with library("duckdb").connect() as connection:
        connection.register("texts", table)
        return connection.sql(f"SELECT {terms} FROM texts").to_arrow_table()  # noqa: S608 - every name is quoted


def quoted(name: str) -> str:
    """A name in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'
