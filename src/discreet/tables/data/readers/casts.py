# SPDX-License-Identifier: Apache-2.0
"""Casts texts to the kind that the description gives to their column.

**Guarantee.** Each text is cast by itself, to NULL if it is not a value of that kind. No text makes
another one fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.tables.data.readers.sound import library

__all__ = ["cast", "cast_columns", "quote_name"]

#: Terms of DuckDB; {0} is the column.
_CASTS = {
    "integer": "CASE WHEN regexp_full_match({0}, '[+-]?[0-9]{{1,18}}') THEN TRY_CAST({0} AS BIGINT) END",
    "real": "TRY_CAST({0} AS DOUBLE)",
    "decimal": "TRY_CAST({0} AS DOUBLE)",
    "boolean": "TRY_CAST({0} AS BOOLEAN)",
    "date": "CASE WHEN regexp_full_match({0}, '[0-9]{{4}}(-[0-9]{{2}}){{2}}') THEN TRY_CAST({0} AS DATE) END",
    "timestamp": "CASE WHEN regexp_matches({0}, '^[0-9]{{4}}-') THEN TRY_CAST({0} AS TIMESTAMP) END",
}


def cast(name: str, kind: str) -> str:
    """The term of DuckDB that casts a column of texts to a kind."""
    return _CASTS[kind].format(quote_name(name)) if kind in _CASTS else quote_name(name)


def cast_columns(table: Any, kinds: Mapping[str, str]) -> Any:
    """An Arrow table of sound texts, with columns cast to their kinds."""
    if not any(kind in _CASTS for kind in kinds.values()):
        return table
    names = table.column_names
    terms = ", ".join(f"{cast(name, kinds.get(name, ''))} AS {quote_name(name)}" for name in names)
    with library("duckdb").connect() as connection:
        connection.register("texts", table)
        return connection.sql(f"SELECT {terms} FROM texts").to_arrow_table()  # noqa: S608 - every name is quoted


def quote_name(name: str) -> str:
    """A name in quotes, for DuckDB."""
    return '"' + name.replace('"', '""') + '"'
