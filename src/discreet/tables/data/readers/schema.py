# SPDX-License-Identifier: Apache-2.0
"""The columns of a file and their kinds, from its schema alone.

**Guarantee.** No row is read. Of a Parquet or an Arrow file only the schema block is read, of a
text file the first line, of a database the catalogue. A text file declares no types, so each of its
columns is text until a description says otherwise; types guessed from rows would depend on the
rows.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import STOPPED, DiscreetError, EngineFailed
from discreet.extras import naming_extras
from discreet.paths import ENDINGS, first_file, one_file, unopened_error
from discreet.tables.data import rules
from discreet.tables.data.readers import parquet, sqlite
from discreet.tables.data.readers.sound import kind_of, library

__all__ = [
    "DELIMITERS",
    "DatabaseFile",
    "catalogue",
    "check_kind",
    "header",
    "is_database",
    "is_sqlite",
    "kinds",
    "library",
    "unreadable_error",
]

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ARROW = (".arrow", ".feather", ".ipc")
_DUCKDB = ".duckdb"
_SQLITE = (".sqlite", ".sqlite3", ".db")
_LONGEST_HEADER = 1_000_000


def kinds(path: str | Path, table: str = "") -> dict[str, str]:
    """The columns of a file and their kinds; of a database file, those of one of its tables."""
    path_of_file = first_file(path)
    suffix = path_of_file.suffix.lower()
    if suffix in DELIMITERS:
        return dict.fromkeys(header(path_of_file), "text")
    if suffix in parquet.ENDINGS:
        schema = guard_opening(lambda: parquet.footer(path_of_file), path_of_file)
    elif suffix in _ARROW:
        schema = guard_opening(
            lambda: library("pyarrow").ipc.open_file(str(path_of_file)).schema, path_of_file
        )
    elif suffix in _SQLITE:
        return dict(guard_opening(lambda: sqlite.kinds(path_of_file, table), path_of_file))
    elif suffix == _DUCKDB:
        schema = guard_opening(lambda: _of_database(path_of_file, table), path_of_file)
    else:
        check_kind(path_of_file)
        raise unopened_error(f"{path_of_file.name}: files of this format have no schema.")
    return {field.name: kind_of(field.type) for field in schema}


def check_kind(path: Path) -> None:
    """Refuse a file whose ending is not a supported format."""
    if path.suffix.lower() not in ENDINGS:
        what = f"{path.name}: files of this format are not supported; supported are {', '.join(ENDINGS)}."
        raise unopened_error(what, f"save it as  {path.stem}.parquet  or  {path.stem}.csv")


def is_database(path: str | Path) -> bool:
    """Whether a file is a database of DuckDB or SQLite."""
    return Path(path).suffix.lower() in {_DUCKDB, *_SQLITE}


def is_sqlite(path: str | Path) -> bool:
    """Whether a file is an SQLite database."""
    return Path(path).suffix.lower() in _SQLITE


def header(path: str | Path) -> list[str]:
    """The column names in the first line of a text file; nothing below it is read."""
    path_of_file = one_file(Path(path))
    try:
        first_line = guard_opening(lambda: _first_line(path_of_file)).decode("utf-8-sig")
    except UnicodeDecodeError:
        fix = f"save it as UTF-8:  iconv -f utf-16 -t utf-8 {path_of_file} > {path_of_file.stem}-utf8{path_of_file.suffix}"
        raise rules.description_error(path_of_file.name, "its first line is not UTF-8 text.", fix) from None
    if "\r" in first_line:
        fix = f"end its lines with a line feed:  tr '\\r' '\\n' < {path_of_file} > {path_of_file.stem}-lf{path_of_file.suffix}"
        raise rules.description_error(path_of_file.name, "its lines end in a carriage return alone.", fix)
    delimiter = DELIMITERS[path_of_file.suffix.lower()]
    names = (
        guard_opening(lambda: next(csv.reader([first_line], delimiter=delimiter), []))
        if _is_one_line(first_line)
        else []
    )
    if names and all(name.strip() for name in names) and len(set(names)) == len(names):
        return names
    fix = "write the names of the columns into its first line, each once, and end every line with a line feed"
    raise rules.description_error(
        path_of_file.name, "its first line must list the names of the columns, each once.", fix
    )


def _first_line(place: Path) -> bytes:
    """The first line as bytes, because a decoder reads ahead and could fail on a row."""
    with place.open("rb") as file:
        return file.readline(_LONGEST_HEADER).removesuffix(b"\n").removesuffix(b"\r")


def _is_one_line(text: str) -> bool:
    """Whether no character ends a line for another reader, which would take the rest for rows."""
    return len(text) < _LONGEST_HEADER and len(text.splitlines()) == 1 and "\0" not in text


@dataclass(frozen=True)
class DatabaseFile:
    """A table of a DuckDB file; the connection is opened when needed, because it must not cross a
    fork.
    """

    path: Path
    table: str


def catalogue(path: str | Path) -> list[str]:
    """The names of the tables of a database file."""
    place = Path(path)
    if is_sqlite(place):
        names = list(guard_opening(lambda: sqlite.tables(place), place))
    else:
        query = "SELECT table_name FROM duckdb_tables() ORDER BY table_name"
        names = [name for (name,) in guard_opening(lambda: connect(place).execute(query).fetchall(), place)]
    if names:
        return names
    raise unopened_error(f"{place.name} has no tables.", f"write the rows into a table of {place.name} first")


def connect(path: Path) -> Any:
    """A read-only connection to a DuckDB file."""
    return guard_opening(lambda: library("duckdb").connect(str(path), read_only=True), path)


def guard_opening(work: Any, path: Path | None = None) -> Any:
    """The result of `work`; its errors are replaced by one that quotes nothing of the file or
    database.
    """
    try:
        with naming_extras():
            return work()
    except (DiscreetError, *STOPPED):
        raise
    except BaseException:  # noqa: BLE001 - a reader's error may quote a row, and one of them has panics that are no Exception
        failed = unopened_error("the source could not be opened.") if path is None else unreadable_error(path)
    raise failed


def unreadable_error(path: Path) -> EngineFailed:
    """The error for a file that is damaged, or has the wrong ending."""
    kind = path.suffix.removeprefix(".").lower()
    return unopened_error(
        f"{path.name} is damaged, or it is not a .{kind} file.",
        f"write {path.name} again, or rename it if it has another format",
    )


def _of_database(place: Path, table: str) -> Any:
    name = table.replace('"', '""')
    return connect(place).sql(f'SELECT * FROM "{name}" LIMIT 0').to_arrow_table().schema  # noqa: S608 - quoted
