# SPDX-License-Identifier: Apache-2.0
"""The columns of a file and their kinds, from its schema alone.

**Promise.** No row is read: of a Parquet or an Arrow file its schema block, of a text file its first line, of a
database its catalogue. A text file says nothing of kinds, so every column of it is text until a description says
otherwise: types that a reader guesses from the rows depend on them.
"""

from __future__ import annotations

import csv
from difflib import get_close_matches
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError, EngineFailed, MissingExtra
from discreet.tables import rules, sqlite

__all__ = [
    "DELIMITERS",
    "arrow_kind",
    "beside",
    "catalogue",
    "check_kind",
    "files",
    "first_file",
    "header",
    "is_database",
    "is_sqlite",
    "kinds",
    "library",
    "unopened",
]

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ARROW = (".arrow", ".feather", ".ipc")
_DUCKDB = ".duckdb"
_SQLITE = (".sqlite", ".sqlite3", ".db")
_LONGEST_HEADER = 1_000_000


def kinds(path: str | Path, table: str = "") -> dict[str, str]:
    """The columns of a file and their kinds; of a database file, those of one of its tables."""
    place = first_file(path)
    suffix = place.suffix.lower()
    if suffix in DELIMITERS:
        return dict.fromkeys(header(place), "text")
    if suffix in {".parquet", ".pq"}:
        schema = opened(lambda: library("pyarrow.parquet").read_schema(place))
    elif suffix in _ARROW:
        schema = opened(lambda: library("pyarrow").ipc.open_file(str(place)).schema)
    elif suffix in _SQLITE:
        return dict(opened(lambda: sqlite.kinds(place, table)))
    elif suffix == _DUCKDB:
        schema = opened(lambda: _of_database(place, table))
    else:
        check_kind(place)
        raise unopened(f"{place.name}: files of this kind have no schema of their own.")
    return {field.name: arrow_kind(field.type) for field in schema}


def check_kind(path: Path) -> None:
    """Refuse a file of a kind that is not read, by its ending."""
    known = (".parquet", ".pq", *DELIMITERS, *_ARROW, _DUCKDB, *_SQLITE)
    if path.suffix.lower() not in known:
        what = f"{path.name}: files of this kind are not read; those are {', '.join(known)}."
        raise unopened(what, f"save it as  {path.stem}.parquet  or  {path.stem}.csv")


def is_database(path: str | Path) -> bool:
    """Whether a file holds several tables."""
    return Path(path).suffix.lower() in {_DUCKDB, *_SQLITE}


def is_sqlite(path: str | Path) -> bool:
    """Whether a file is one of SQLite."""
    return Path(path).suffix.lower() in _SQLITE


def first_file(path: str | Path) -> Path:
    """A file, or the first of those that a pattern means."""
    return files(path)[0]


def files(path: str | Path) -> list[Path]:
    """A file, or all that a pattern means, in the order of their names."""
    if Path(path).is_file():
        return [Path(path)]
    found = [Path(name) for name in sorted(glob(str(path), recursive=True))]  # noqa: PTH207 - it may be absolute
    if found and all(place.is_file() for place in found):
        return found
    raise unopened(f"there is no file {path}.", beside(Path(path)))


def header(path: str | Path) -> list[str]:
    """The column names in the first line of a text file; nothing below it is read."""
    place = Path(path)
    with place.open("rb") as file:
        # bytes, because a decoder reads ahead and would stumble over a row
        line = opened(lambda: file.readline(_LONGEST_HEADER).decode("utf-8-sig"))
    names = next(csv.reader([line], delimiter=DELIMITERS[place.suffix.lower()]), [])
    if names and all(name.strip() for name in names) and len(set(names)) == len(names):
        return names
    fix = "write the names of the columns into its first line, each once"
    raise rules.wrong(place.name, "its first line is not a list of different column names.", fix)


def catalogue(path: str | Path) -> list[str]:
    """The names of the tables of a database file."""
    if is_sqlite(path):
        return list(opened(lambda: sqlite.tables(Path(path))))
    asked = connect(Path(path)).execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name")
    return [name for (name,) in asked.fetchall()]


def connect(path: Path) -> Any:
    """A connection to a DuckDB file that cannot write."""
    return opened(lambda: library("duckdb").connect(str(path), read_only=True))


def arrow_kind(kind: Any) -> str:
    """The kind of an Arrow type."""
    types = library("pyarrow").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = {
        "boolean": types.is_boolean,
        "integer": types.is_integer,
        "real": types.is_floating,
        "decimal": types.is_decimal,
        "date": types.is_date,
        "timestamp": types.is_timestamp,
    }
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return next((name for name, test in tests.items() if test(kind)), "other")


def library(name: str) -> Any:
    """An optional library, or the line that installs it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(
            "DP501",
            f"this needs {name.split('.', maxsplit=1)[0]}, which is not installed.",
            why="engines and file formats are optional, so that the core stays small.",
            fix="pip install 'discreet[tables]'",
        ) from None


def opened(work: Any) -> Any:
    """What `work` returns; where a file or a database cannot be opened, an error that quotes nothing of it."""
    try:
        return work()
    except DiscreetError:
        raise
    except Exception:  # noqa: BLE001 - a reader's error may quote a row
        failed = unopened("the source could not be opened.")
    raise failed


def unopened(what: str, fix: str = "check the path, the address and the name of the table") -> EngineFailed:
    return EngineFailed("DP802", what, why="no row was read and nothing was charged.", fix=fix)


def beside(path: Path) -> str:
    """The file that was probably meant."""
    if path.is_dir():
        return f'dp.open("{path}/*.parquet", …)   for all files of a folder'
    there = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, there, n=1)
    return f"is  {near[0]}  meant?" if near else f"give the whole path of {path.name}"


def _of_database(place: Path, table: str) -> Any:
    name = table.replace('"', '""')
    return connect(place).sql(f'SELECT * FROM "{name}" LIMIT 0').to_arrow_table().schema  # noqa: S608 - quoted
