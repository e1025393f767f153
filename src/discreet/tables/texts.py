# SPDX-License-Identifier: Apache-2.0
"""Text files, Arrow files and pandas frames as Arrow tables whose types do not depend on the rows.

**Promise.** No cell makes reading fail, and none decides a type. The rules, which are those of the documentation:
an empty cell is NULL; a column is text, or what the description says; a cell that cannot be read as that is NULL;
a line with too few cells ends in NULLs, what is too much on it is dropped, and a line that is no text is dropped.

What would break it: letting a reader guess types, delimiters or quotes from a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import BadParameter
from discreet.tables import rules, schema, sqlite
from discreet.tables.dataset import Column

__all__ = ["from_arrow_files", "from_pandas", "from_sqlite", "from_text_files"]

#: How a text becomes a value of a kind, as DuckDB writes it; {0} is the column.
_CASTS = {
    "integer": "CASE WHEN regexp_full_match({0}, '[+-]?[0-9]{{1,18}}') THEN CAST({0} AS BIGINT) END",
    "real": "TRY_CAST({0} AS DOUBLE)",
    "decimal": "TRY_CAST({0} AS DOUBLE)",
    "boolean": "TRY_CAST({0} AS BOOLEAN)",
    "date": "CASE WHEN regexp_full_match({0}, '[0-9]{{4}}(-[0-9]{{2}}){{2}}') THEN TRY_CAST({0} AS DATE) END",
    "timestamp": "CASE WHEN regexp_matches({0}, '^[0-9]{{4}}-') THEN TRY_CAST({0} AS TIMESTAMP) END",
}


def from_text_files(paths: list[Path], columns: Mapping[str, Column]) -> Any:
    """CSV or TSV files with one header, as an Arrow table of the described types."""
    names = schema.header(paths[0])
    if any(schema.header(path) != names for path in paths):
        raise rules.wrong(
            paths[0].name, "other files have other columns.", "give all files the same first line"
        )
    kinds = {name: columns[name].kind if name in columns else "" for name in names}
    casts = ", ".join(f"{_cast(name, kinds[name])} AS {_quoted(name)}" for name in names)
    texts = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names)
    delimiter = schema.DELIMITERS[paths[0].suffix.lower()]
    options = (
        f"auto_detect=false, columns={{{texts}}}, header=true, delim={_text(delimiter)}, quote='\"', escape='\"', "
        "nullstr='', null_padding=true, ignore_errors=true, strict_mode=false, parallel=false"
    )
    question = f"SELECT {casts} FROM read_csv(?, {options})"  # noqa: S608 - every name in it is quoted
    connection = schema.library("duckdb").connect()
    files = [[str(path) for path in paths]]
    return schema.opened(lambda: connection.sql(question, params=files).to_arrow_table())


def from_arrow_files(paths: list[Path]) -> Any:
    """Arrow or Feather files as one Arrow table."""
    pyarrow = schema.library("pyarrow")
    if paths[0].suffix.lower() in {".parquet", ".pq"}:
        return schema.opened(
            lambda: schema.library("pyarrow.parquet").read_table([str(path) for path in paths])
        )
    tables = [schema.opened(lambda at=path: pyarrow.ipc.open_file(str(at)).read_all()) for path in paths]
    return schema.opened(lambda: pyarrow.concat_tables(tables))


def from_sqlite(path: Path, table: str) -> Any:
    """A table of an SQLite file, whose cells may be anything, as an Arrow table of its declared types."""
    pyarrow = schema.library("pyarrow")
    types = {
        "integer": pyarrow.int64(),
        "real": pyarrow.float64(),
        "boolean": pyarrow.bool_(),
        "date": pyarrow.date32(),
        "text": pyarrow.string(),
    }
    columns = schema.opened(lambda: sqlite.columns(path, table))
    return pyarrow.table({name: pyarrow.array(cells, types[kind]) for name, (kind, cells) in columns.items()})


def from_pandas(frame: Any) -> Any:
    """A pandas frame as an Arrow table; a column of Python objects is text, and what is no `str` in it is NULL."""
    if not all(isinstance(name, str) and name for name in frame.columns) or not frame.columns.is_unique:
        raise BadParameter(
            "DP104",
            "the columns of a frame must have different names that are text.",
            why="a description and a question name columns by them.",
            fix="frame.columns = [str(name) for name in frame.columns]",
        )
    pyarrow = schema.library("pyarrow")
    arrays = [schema.opened(lambda at=name: _array(frame[at], pyarrow)) for name in frame.columns]
    return pyarrow.table(arrays, names=list(frame.columns))


def _array(series: Any, pyarrow: Any) -> Any:
    is_category = series.dtype.name == "category"
    if (series.dtype.categories.dtype if is_category else series.dtype).name == "object":
        return pyarrow.array([cell if isinstance(cell, str) else None for cell in series], pyarrow.string())
    array = pyarrow.array(series, from_pandas=True)
    return array.dictionary_decode() if is_category else array


def _cast(name: str, kind: str) -> str:
    return _CASTS[kind].format(_quoted(name)) if kind in _CASTS else _quoted(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
