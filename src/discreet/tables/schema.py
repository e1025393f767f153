# SPDX-License-Identifier: Apache-2.0
"""The columns of a file and their kinds, from its schema alone.

**Promise.** No row is read: of a Parquet or an Arrow file its schema block, of a text file its first line, of a
database its catalogue. A text file says nothing of kinds, so every column of it is text until a description says
otherwise: types that a reader guesses from the rows depend on them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from difflib import get_close_matches
from glob import glob
from pathlib import Path
from typing import Any

from discreet.errors import STOPPED, DiscreetError, EngineFailed
from discreet.tables import parquet, rules, sqlite
from discreet.tables.sound import kind_of, library

__all__ = [
    "DELIMITERS",
    "DatabaseFile",
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
    if suffix in parquet.ENDINGS:
        schema = opened(lambda: parquet.footer(place))
    elif suffix in _ARROW:
        schema = opened(lambda: library("pyarrow").ipc.open_file(str(place)).schema)
    elif suffix in _SQLITE:
        return dict(opened(lambda: sqlite.kinds(place, table)))
    elif suffix == _DUCKDB:
        schema = opened(lambda: _of_database(place, table))
    else:
        check_kind(place)
        raise unopened(f"{place.name}: files of this kind have no schema of their own.")
    return {field.name: kind_of(field.type) for field in schema}


def check_kind(path: Path) -> None:
    """Refuse a file of a kind that is not read, by its ending."""
    known = (*parquet.ENDINGS, *DELIMITERS, *_ARROW, _DUCKDB, *_SQLITE)
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
    told = line.removesuffix("\n").removesuffix("\r")
    delimiter = DELIMITERS[place.suffix.lower()]
    names = opened(lambda: next(csv.reader([told], delimiter=delimiter), [])) if _is_one_line(told) else []
    if names and all(name.strip() for name in names) and len(set(names)) == len(names):
        return names
    fix = "write the names of the columns into its first line, each once, and end every line with a line feed"
    raise rules.wrong(place.name, "its first line is not a list of different column names.", fix)


def _is_one_line(text: str) -> bool:
    """Whether no sign in it would end a line elsewhere: then names of columns could be rows."""
    return len(text) < _LONGEST_HEADER and len(text.splitlines()) == 1 and "\0" not in text


@dataclass(frozen=True)
class DatabaseFile:
    """A table of a DuckDB file, which is connected to when it is needed: a connection is not to cross a fork."""

    path: Path
    table: str


def catalogue(path: str | Path) -> list[str]:
    """The names of the tables of a database file."""
    if is_sqlite(path):
        return list(opened(lambda: sqlite.tables(Path(path))))
    asked = connect(Path(path)).execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name")
    return [name for (name,) in asked.fetchall()]


def connect(path: Path) -> Any:
    """A connection to a DuckDB file that cannot write."""
    return opened(lambda: library("duckdb").connect(str(path), read_only=True))


def opened(work: Any) -> Any:
    """What `work` returns; where a file or a database cannot be opened, an error that quotes nothing of it."""
    try:
        return work()
    except (DiscreetError, *STOPPED):
        raise
    except BaseException:  # noqa: BLE001 - a reader's error may quote a row, and one of them has panics that are no Exception
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
