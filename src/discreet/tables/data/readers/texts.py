# SPDX-License-Identifier: Apache-2.0
"""Reads text files, Arrow files, SQLite tables and pandas frames to Arrow tables, whose types do
not depend on the rows.

**Guarantee.** No cell makes reading fail, decides a type, or changes how another cell is read. A
line of a text file is a record (`lines`). Its columns are text, or have the type of the
description, and a cell that is not of that type is NULL (`casts`). Everything that is not a value
of the type of its column is NULL (`sanitize`).

What would break it: a reader that guesses types, delimiters or quotes from a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from discreet.errors import BadParameter
from discreet.paths import files
from discreet.tables.algebra.types import days, micros
from discreet.tables.data import rules
from discreet.tables.data.dataset import Column
from discreet.tables.data.readers import casts, lines, parquet, schema, sqlite
from discreet.tables.data.readers.sound import sanitize, sanitize_column

__all__ = ["from_arrow_files", "from_pandas", "from_path", "from_sqlite", "from_text_files"]

#: The kinds of numpy types that are used unchanged, and their greatest size in bytes.
_PLAIN = "biufM"
#: The kinds of column that Python objects may be described as, beside text.
_DATED = frozenset({"date", "timestamp"})
_WIDEST = 8


def from_text_files(paths: list[Path], columns: Mapping[str, Column]) -> Any:
    """CSV or TSV files with one header, as an Arrow table with the types of the description."""
    names = schema.header(paths[0])
    if any(schema.header(path) != names for path in paths):
        raise rules.description_error(
            paths[0].name, "the files have different columns.", "give all files the same first line"
        )
    kinds = {name: columns[name].kind if name in columns else "" for name in names}
    delimiter = schema.DELIMITERS[paths[0].suffix.lower()]

    def work() -> Any:
        parts = [lines.read(path, delimiter, names) for path in paths]
        return casts.cast_columns(schema.library("pyarrow").concat_tables(parts), kinds)

    return schema.guard_opening(work, paths[0])


def from_path(path: str | Path) -> Any:
    """The files at a path or a pattern, without a description: as Parquet files or as an Arrow
    table.
    """
    paths = files(path)
    if paths[0].suffix.lower() in parquet.ENDINGS:
        return schema.guard_opening(lambda: parquet.Parquet.of(paths), paths[0])
    if paths[0].suffix.lower() in schema.DELIMITERS:
        return from_text_files(paths, {})
    return from_arrow_files(paths)


def from_arrow_files(paths: list[Path]) -> Any:
    """Arrow or Feather files as one Arrow table."""
    pyarrow = schema.library("pyarrow")
    tables = [
        schema.guard_opening(lambda at=path: pyarrow.ipc.open_file(str(at)).read_all(), path)
        for path in paths
    ]
    made = [sanitize(table) for table in tables]
    if any(table.schema != made[0].schema for table in made):
        fix = "save all files with the same columns, of the same types"
        raise rules.description_error(paths[0].name, "the files have different columns or types.", fix)
    return schema.guard_opening(lambda: pyarrow.concat_tables(made))


def from_sqlite(path: Path, table: str) -> Any:
    """A table of an SQLite file as an Arrow table of its declared types."""
    pyarrow = schema.library("pyarrow")
    types = {
        "integer": pyarrow.int64(),
        "real": pyarrow.float64(),
        "boolean": pyarrow.bool_(),
        "date": pyarrow.date32(),
        "text": pyarrow.string(),
    }
    columns = schema.guard_opening(lambda: sqlite.columns(path, table), path)
    return pyarrow.table({name: pyarrow.array(cells, types[kind]) for name, (kind, cells) in columns.items()})


def from_pandas(frame: Any, columns: Mapping[str, Column] | None = None) -> Any:
    """A pandas frame as an Arrow table; in a column of Python objects everything but `str` is NULL,
    or everything but dates where it is described as a date or a timestamp.
    """
    if not all(isinstance(name, str) and name for name in frame.columns) or not frame.columns.is_unique:
        raise BadParameter(
            "DP104",
            "the columns of a frame must have names that are texts, each once.",
            why="descriptions and questions use columns by name.",
            fix="frame.columns = [str(name) for name in frame.columns]",
        )
    pyarrow = schema.library("pyarrow")
    dated = {name: column.kind for name, column in (columns or {}).items() if column.kind in _DATED}
    arrays = [
        schema.guard_opening(lambda at=name: _array(frame[at], pyarrow, dated.get(at, "")))
        for name in frame.columns
    ]
    return pyarrow.table(arrays, names=list(frame.columns))


def _array(series: Any, pyarrow: Any, kind: str = "") -> Any:
    """A column by its dtype; of an unknown dtype no cell is read. `kind` is what objects are
    described as.
    """
    dtype = series.dtype
    if dtype.name == "category":
        codes = pyarrow.array(series.cat.codes.to_numpy())
        # With its dtype, because pandas would guess one from the categories.
        listed = _array(type(series)(dtype.categories, dtype=dtype.categories.dtype), pyarrow)
        there = schema.library("pyarrow.compute").greater_equal(codes, 0)
        return listed.take(schema.library("pyarrow.compute").if_else(there, codes, None))
    if hasattr(dtype, "pyarrow_dtype"):
        column = pyarrow.chunked_array(series.array.__arrow_array__())
        return sanitize_column(column, column.type).combine_chunks()
    if dtype.name == "object" and kind:
        return _dates(series, pyarrow) if kind == "date" else _moments(series, pyarrow)
    if dtype.name in {"object", "str", "string"}:
        return _texts(series, pyarrow)
    if getattr(dtype, "tz", None) is not None:
        return pyarrow.array(series.dt.tz_convert("UTC"), from_pandas=True)
    plain = getattr(dtype, "numpy_dtype", dtype)
    if hasattr(plain, "byteorder") and plain.kind in _PLAIN and plain.itemsize <= _WIDEST:
        return pyarrow.array(series, from_pandas=True)
    return pyarrow.nulls(len(series), pyarrow.binary())


def _texts(series: Any, pyarrow: Any) -> Any:
    """Python objects as text; everything but an encodable `str` is NULL."""
    cells = [cell if isinstance(cell, str) else None for cell in series]
    try:
        return pyarrow.array(cells, pyarrow.large_string())
    except UnicodeError:
        return pyarrow.array([_encodable(cell) for cell in cells], pyarrow.large_string())


def _dates(series: Any, pyarrow: Any) -> Any:
    """Python objects as dates; everything but a date without a time is NULL."""
    cells = [days(cell) if type(cell) is date else None for cell in series]
    return pyarrow.array(cells, pyarrow.int32()).cast(pyarrow.date32())


def _moments(series: Any, pyarrow: Any) -> Any:
    """Python objects as moments of UTC, which is also meant where there is no time zone; the rest
    is NULL.
    """
    return pyarrow.array([_micros(cell) for cell in series], pyarrow.int64()).cast(
        pyarrow.timestamp("us", "UTC")
    )


def _micros(cell: Any) -> int | None:
    # NaT is a datetime by its class, and equal to nothing.
    if not isinstance(cell, datetime) or cell != cell:  # noqa: PLR0124
        return None
    try:
        return micros(cell.to_pydatetime(warn=False) if hasattr(cell, "to_pydatetime") else cell)
    except Exception:  # noqa: BLE001 - the code of a time zone, which may be anybody's
        return None


def _encodable(cell: str | None) -> str | None:
    try:
        return None if cell is None else str.encode(cell).decode()
    except UnicodeError:
        return None
