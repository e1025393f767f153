# SPDX-License-Identifier: Apache-2.0
"""Opening tables for DuckDB: files, frames, and tables of a database that is open already.

**Promise.** Nothing is read but schemas, unless a frame has to be copied; no setting of somebody else's connection is
changed, and no name of theirs is taken: what is made there is temporary and belongs to a cursor of its own.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Mapping
from glob import escape
from pathlib import Path
from typing import Any

from sqlglot import exp

from discreet.errors import BadParameter
from discreet.tables import texts
from discreet.tables.casts import quoted
from discreet.tables.engines.duckdb_dialect import column_of
from discreet.tables.engines.frozen import Frozen
from discreet.tables.engines.in_duckdb import DuckDB
from discreet.tables.engines.relation import select
from discreet.tables.engines.source import SourceTable
from discreet.tables.parquet import Parquet
from discreet.tables.schema import library, opened
from discreet.tables.sound import sound

__all__ = ["open_duckdb"]

#: Units whose numbers lie close together would be counted in an array, and one number far from the others would end that:
#: everybody's answer would take longer because of one row.
_SETTINGS = {"preserve_insertion_order": "false", "perfect_ht_threshold": "0"}


def open_duckdb(tables: Mapping[str, Any], units: Mapping[str, str | None]) -> DuckDB:
    """An engine on these tables, in a database of its own or in that of the connections that were given."""
    connection, close = _connected(tables)
    is_shared = any(isinstance(source, tuple) for source in tables.values())
    places, sources, files, live, slower = {}, {}, [], set(), []
    for number, (name, source) in enumerate(tables.items()):
        place = exp.table_(f"discreet_source_{number}")
        if isinstance(source, tuple):
            place = _named(source[1])
            kept_in = opened(lambda at=source[1]: _unchanging_file(connection, at))
            files += kept_in
            live |= set() if kept_in else {name}
        else:
            rows = texts.from_path(source) if isinstance(source, str | Path) else source
            if isinstance(rows, Parquet):
                files += [str(path) for path in rows.paths]
                quick = None if is_shared else rows.plain_terms()
                if quick is None:
                    opened(lambda at=place, these=rows: _view(connection, at, these))
                else:
                    opened(
                        lambda at=place, these=rows, terms=quick: _quick_view(connection, at, these, terms)
                    )
                    slower.append(lambda at=place, these=rows: _view(connection, at, these))
            else:
                opened(lambda at=place, frame=rows: connection.register(at.name, sound(_as_arrow(frame))))
        places[name] = place
        shape = select([exp.Star()], place).sql(dialect="duckdb")
        rows = opened(lambda at=shape: connection.execute(f"DESCRIBE {at}").fetchall())
        sources[name] = SourceTable(
            name, {row[0]: column_of(row[0], row[1]) for row in rows}, units.get(name)
        )
    return DuckDB(connection, sources, places, frozen=Frozen(files), close=close, live=live, slower=slower)


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


def _view(connection: Any, place: exp.Table, files: Parquet) -> None:
    """Files as a view: their bytes and numbers, read by Arrow, and what each column means."""
    raw = f"{place.name}_raw"
    connection.register(raw, files.dataset())
    _create_view(connection, place, files.terms(), raw)


def _quick_view(connection: Any, place: exp.Table, files: Parquet, terms: Mapping[str, str]) -> None:
    """The same by DuckDB's own reader, which is twice as fast, and fails on a text that is not UTF-8."""
    paths = ", ".join("'" + escape(str(path)).replace("'", "''") + "'" for path in files.paths)
    options = "hive_partitioning = false, union_by_name = false, filename = false"
    _create_view(connection, place, terms, f"READ_PARQUET([{paths}], {options})")


def _create_view(connection: Any, place: exp.Table, terms: Mapping[str, str], source: str) -> None:
    columns = ", ".join(f"{term} AS {quoted(name)}" for name, term in terms.items())
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {place.name} AS SELECT {columns} FROM {source}")  # noqa: S608 - every name is quoted


def _named(name: str) -> exp.Table:
    """A table by its exact name, with its schema and database if they are given, points between them."""
    catalog, schema, table = [None, None, *name.split(".")][-3:]
    return exp.table_(table or name, db=schema, catalog=catalog, quoted=True)


def _unchanging_file(connection: Any, name: str) -> list[str]:
    """The file of a table that nobody can write to while it is open; empty for a view, which may say anything."""
    here, schema = connection.execute("SELECT lower(current_database()), lower(current_schema())").fetchone()
    *within, table = [part.lower() for part in name.split(".")]
    # one word before the name is a schema of this database, or another database
    wanted = {(here, *within), (*within, "main"), tuple(within)} if within else {(here, schema)}
    found = connection.execute(
        "SELECT lower(database_name), lower(schema_name), readonly, path FROM duckdb_tables() "
        "JOIN duckdb_databases() USING (database_name) WHERE lower(table_name) = ? AND NOT temporary",
        [table],
    ).fetchall()
    places = [(readonly, path) for *at, readonly, path in found if tuple(at) in wanted]
    return [path for readonly, path in places if readonly and path and len(places) == 1]


def _as_arrow(frame: Any) -> Any:
    """A frame as Arrow: one type for each column, whatever is in it."""
    package = type(frame).__module__.split(".")[0].removeprefix("_")
    if package == "pandas":
        table = texts.from_pandas(frame)
    elif package == "polars":
        table = (frame.collect() if hasattr(frame, "collect") else frame).to_arrow()
    else:
        table = frame.to_arrow_table() if package == "duckdb" else frame
    return table
