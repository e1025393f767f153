# SPDX-License-Identifier: Apache-2.0
"""Opening tables for DuckDB: files, frames, and tables of a database that is open already.

**Promise.** Nothing is read but schemas, unless a frame has to be copied; no setting of somebody else's connection is
changed, and no name of theirs is taken: what is made there is temporary and belongs to a cursor of its own.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlglot import exp

from discreet.errors import BadParameter
from discreet.tables import texts
from discreet.tables.engines import terms as t
from discreet.tables.engines.duckdb_dialect import column_of
from discreet.tables.engines.frozen import Frozen
from discreet.tables.engines.in_duckdb import DuckDB
from discreet.tables.engines.relation import select
from discreet.tables.engines.source import SourceTable
from discreet.tables.schema import library, opened

__all__ = ["open_duckdb"]

#: Up to 2^20 units whose numbers are close together are counted in an array, not in a table of hashes: three times as fast.
_SETTINGS = {"preserve_insertion_order": "false", "perfect_ht_threshold": "20"}
_TEXT_FILES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def open_duckdb(tables: Mapping[str, Any], units: Mapping[str, str | None]) -> DuckDB:
    """An engine on these tables, in a database of its own or in that of the connections that were given."""
    connection, close = _connected(tables)
    places, sources, files = {}, {}, []
    for number, (name, source) in enumerate(tables.items()):
        place = exp.table_(f"discreet_source_{number}")
        if isinstance(source, tuple):
            place = _named(source[1])
        elif isinstance(source, str | Path):
            files.append(str(source))
            opened(lambda at=place, path=str(source): connection.execute(_view(at, path)))
        else:
            opened(lambda at=place, frame=source: connection.register(at.name, _as_arrow(frame)))
        places[name] = place
        shape = select([exp.Star()], place).sql(dialect="duckdb")
        rows = opened(lambda at=shape: connection.execute(f"DESCRIBE {at}").fetchall())
        sources[name] = SourceTable(
            name, {row[0]: column_of(row[0], row[1]) for row in rows}, units.get(name)
        )
    live = {name for name, source in tables.items() if isinstance(source, tuple)}
    return DuckDB(connection, sources, places, frozen=Frozen(files), close=close, live=live)


def _connected(tables: Mapping[str, Any]) -> tuple[Any, Callable[[], object]]:
    """A connection, and how to let go of it."""
    given = {id(source[0]): source[0] for source in tables.values() if isinstance(source, tuple)}
    if len(given) > 1:
        raise BadParameter(
            "DP107",
            "the tables lie in different databases.",
            why="they are counted in one place; rows are not copied out of a database.",
            fix="attach one database to the other, and use one connection",
        )
    if given:
        cursor = next(iter(given.values())).cursor()
        return cursor, cursor.close
    folder = tempfile.TemporaryDirectory(prefix="discreet-")
    connection = library("duckdb").connect(config={"temp_directory": folder.name, **_SETTINGS})
    weakref.finalize(connection, folder.cleanup)

    def close() -> None:
        connection.close()
        folder.cleanup()

    return connection, close


def _view(place: exp.Table, path: str) -> str:
    """Files as a view; a text file is text, because a reader's guess at types would depend on the rows."""
    reader = t.call("READ_PARQUET", t.text(path))
    if path.lower().endswith(_TEXT_FILES):
        delimiter = "\t" if ".tsv" in path.lower() else ","
        options = {
            "header": True,
            "all_varchar": True,
            "null_padding": True,
            "ignore_errors": True,
            "strict_mode": False,
        }
        words = [
            exp.PropertyEQ(this=exp.to_identifier(key), expression=t.truth(value))
            for key, value in options.items()
        ]
        signs = {"delim": delimiter, "quote": '"', "escape": '"', "nullstr": ""}
        words += [
            exp.PropertyEQ(this=exp.to_identifier(key), expression=t.text(value))
            for key, value in signs.items()
        ]
        reader = t.call("READ_CSV", t.text(path), *words)
    rows = exp.Select(expressions=[exp.Star()]).from_(exp.Table(this=reader), copy=False)
    return f"CREATE TEMP VIEW {place.name} AS {rows.sql(dialect='duckdb')}"


def _named(name: str) -> exp.Table:
    """A table by its exact name, with its schema and database if they are given, points between them."""
    catalog, schema, table = [None, None, *name.split(".")][-3:]
    return exp.table_(table or name, db=schema, catalog=catalog, quoted=True)


def _as_arrow(frame: Any) -> Any:
    """A frame as Arrow: one type for each column, whatever is in it."""
    package = type(frame).__module__.split(".")[0].removeprefix("_")
    if package == "pandas":
        return texts.from_pandas(frame)
    if package == "polars":
        return (frame.collect() if hasattr(frame, "collect") else frame).to_arrow()
    return frame.to_arrow_table() if package == "duckdb" else frame
