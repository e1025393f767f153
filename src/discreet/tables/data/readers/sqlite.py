# SPDX-License-Identifier: Apache-2.0
"""Reads tables of SQLite files by the declared types of their columns.

An SQLite cell can hold a value of any type. **Guarantee.** The declaration decides: a cell of
another type is NULL, so no cell decides a type or makes reading fail.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

__all__ = ["columns", "kinds", "tables"]

_WIDEST = 2**63


def tables(path: Path) -> list[str]:
    """The names of the tables."""
    query = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
    with closing(_connection(path)) as connection:
        return [name for (name,) in connection.execute(query)]


def kinds(path: Path, table: str) -> dict[str, str]:
    """The columns of a table and their declared kinds."""
    with closing(_connection(path)) as connection:
        query = connection.execute("SELECT name, type FROM pragma_table_info(?)", [table])
        return {name: _kind(declared) for name, declared in query}


def columns(path: Path, table: str) -> dict[str, tuple[str, list[Any]]]:
    """Every column with its kind and its cells."""
    declared_kinds = kinds(path, table)
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in [*declared_kinds, table]}
    with closing(_connection(path)) as connection:
        connection.text_factory = _decode
        names = ", ".join(quoted[name] for name in declared_kinds)
        rows = connection.execute(f"SELECT {names} FROM {quoted[table]}").fetchall()  # noqa: S608 - quoted
    cells = zip(*rows, strict=True) if rows else [()] * len(declared_kinds)
    return {
        name: (kind, [_CELLS[kind](cell) for cell in column])
        for (name, kind), column in zip(declared_kinds.items(), cells, strict=True)
    }


def _connection(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _kind(declared: str) -> str:
    """The kind of a declaration, by the rules of SQLite."""
    word = declared.upper()
    found = {
        "INT": "integer",
        "BOOL": "boolean",
        "REAL": "real",
        "FLOA": "real",
        "DOUB": "real",
        "NUM": "real",
        "DEC": "real",
    }
    if word == "DATE":
        return "date"
    return next((kind for part, kind in found.items() if part in word), "text")


def _decode(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _date(cell: Any) -> date | None:
    try:
        return date.fromisoformat(cell) if isinstance(cell, str) else None
    except ValueError:
        return None


_CELLS: dict[str, Callable[[Any], Any]] = {
    "integer": lambda cell: cell if isinstance(cell, int) and -_WIDEST <= cell < _WIDEST else None,
    "real": lambda cell: float(cell) if isinstance(cell, int | float) else None,
    "boolean": lambda cell: bool(cell) if cell in {0, 1} else None,
    "text": lambda cell: cell if isinstance(cell, str) else None,
    "date": _date,
}
