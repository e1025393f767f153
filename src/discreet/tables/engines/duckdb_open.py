# SPDX-License-Identifier: Apache-2.0
"""Opening tables for DuckDB: files, frames, and tables of a database that is open already.

**Guarantee.** Only schemas are read, unless a frame has to be copied. On a connection of the user
no setting is changed and no name is replaced: what is made there is temporary, on a cursor of its
own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from glob import escape
from pathlib import Path
from typing import Any

from sqlglot import exp

from discreet.errors import BadParameter
from discreet.tables.algebra.frozen import Frozen
from discreet.tables.algebra.resources import ANY, Resources
from discreet.tables.data.readers import texts
from discreet.tables.data.readers.casts import quote_name
from discreet.tables.data.readers.parquet import Parquet
from discreet.tables.data.readers.schema import DatabaseFile, connect, guard_opening, library
from discreet.tables.data.readers.sound import sanitize
from discreet.tables.engines import forks
from discreet.tables.engines.in_duckdb import DuckDB, columns_at
from discreet.tables.engines.source import SourceTable
from discreet.tables.engines.temporary import Connected

__all__ = ["open_duckdb"]

#: DuckDB counts keys that lie close together in an array. One unit far from the others would end
#: that, so one row would slow down every answer.
#: DuckDB orders joins by the number of different keys, which it cannot know of computed keys. It
#: then joins tables that share a few values, such as customers and suppliers of one nation, to more
#: rows than there are. The order of the question keeps to the units.
_SETTINGS = {
    "preserve_insertion_order": "false",
    "perfect_ht_threshold": "0",
    "disabled_optimizers": "join_order",
}
#: DuckDB keeps the smaller side of a join in memory, but does not know how many rows Arrow's reader has.
_AS_WRITTEN = "SET disabled_optimizers = 'join_order,build_side_probe_side'"


def open_duckdb(
    tables: Mapping[str, Any], units: Mapping[str, str | None], resources: Resources = ANY
) -> DuckDB:
    """An engine on these tables, in a database of its own or in that of the connections that were
    given.
    """
    # Frames and schemas are read once, now; a connection may be made again after a fork.
    sources = {name: _snapshot(source) for name, source in tables.items()}
    places = {
        name: _table_name(_table_of(source))
        if _is_stored(source)
        else exp.table_(f"discreet_source_{number}")
        for number, (name, source) in enumerate(sources.items())
    }
    if any(_is_stored(source) for source in sources.values()):
        _refuse_limits(sources, resources)
    first = [_connect(sources, places, resources)]
    connection, files, live = first[0].connection, [], set()
    for name, source in sources.items():
        if _is_stored(source):
            read_only = guard_opening(lambda at=source: _read_only_file(connection, _table_of(at)))
            files += read_only
            live |= set() if read_only else {name}
        elif isinstance(source, Parquet):
            files += [str(path) for path in source.paths]
    schemas = {
        name: SourceTable(name, guard_opening(lambda at=place: columns_at(connection, at)), units.get(name))
        for name, place in places.items()
    }
    return DuckDB(
        lambda: first.pop() if first else _connect(sources, places, resources),
        schemas,
        places,
        frozen=Frozen(files),
        live=live,
        is_shared=_is_shared(sources),
    )


def _snapshot(source: Any) -> Any:
    """A source as it is now: a table of a database, Parquet files, or an Arrow table."""
    if _is_stored(source):
        return source
    rows = texts.from_path(source) if isinstance(source, str | Path) else source
    return rows if isinstance(rows, Parquet) else guard_opening(lambda: sanitize(_as_arrow(rows)))


def _is_stored(source: Any) -> bool:
    return isinstance(source, tuple | DatabaseFile)


def _is_shared(sources: Mapping[str, Any]) -> bool:
    """Whether the connection is the user's, and not ours to close."""
    return any(isinstance(source, tuple) for source in sources.values())


def _table_of(source: Any) -> str:
    """The name of a table in its database."""
    name: str = source.table if isinstance(source, DatabaseFile) else source[1]
    return name


def _refuse_limits(sources: Mapping[str, Any], resources: Resources) -> None:
    """Refuse limits for a database that others may have open in this process."""
    source = next(source for source in sources.values() if _is_stored(source))
    path = str(source.path) if isinstance(source, DatabaseFile) else "visits.duckdb"
    limits = {"memory_limit": resources.memory, "threads": resources.threads}
    config = {name: value for name, value in limits.items() if value}
    connected = f"connection = duckdb.connect({path!r}, read_only=True, config={config!r})"
    resources.refuse(
        "an open DuckDB database",
        "its settings hold for everybody who uses it in this process.",
        f"set them where you connect:  {connected},  and  "
        f'dp.open((connection, "{_table_of(source)}"), protect=…)',
    )


def _connect(sources: Mapping[str, Any], places: Mapping[str, exp.Table], resources: Resources) -> Connected:
    """A connection with all tables in their places."""
    connection, close = _connection(sources, resources)
    slower = []
    for name, rows in sources.items():
        place = places[name]
        if isinstance(rows, Parquet):
            quick = None if _is_shared(sources) else rows.plain_terms()
            if quick is None:
                guard_opening(lambda at=place, files=rows: _view(connection, at, files))
                if not _is_shared(sources):
                    connection.execute(_AS_WRITTEN)
            else:
                guard_opening(
                    lambda at=place, files=rows, terms=quick: _quick_view(connection, at, files, terms)
                )
                slower.append(lambda at=place, files=rows: _slower_view(connection, at, files))
        elif not _is_stored(rows):
            guard_opening(lambda at=place, frame=rows: connection.register(at.name, frame))
    return Connected(connection, close, slower)


def _connection(sources: Mapping[str, Any], resources: Resources) -> tuple[Any, Callable[[], object]]:
    """A connection, and the function that closes it."""
    given = {id(source[0]): source[0] for source in sources.values() if isinstance(source, tuple)}
    stored = {source.path for source in sources.values() if isinstance(source, DatabaseFile)}
    if len(given) + len(stored) > 1:
        raise BadParameter(
            "DP107",
            "the tables are in different databases.",
            why="one database counts them all; rows are not copied out of a database.",
            fix="attach one database to the other, and use one connection",
        )
    if given:
        connection = next(iter(given.values()))
        cursor = guard_opening(connection.cursor)
        (threads,) = guard_opening(lambda: cursor.execute("SELECT current_setting('threads')").fetchone())
        forks.refuse_inherited(connection, threads)
        return cursor, cursor.close
    if stored:
        connection = connect(stored.pop())
        return connection, connection.close
    folder = tempfile.mkdtemp(prefix="discreet-")
    settings: dict[str, Any] = {"temp_directory": folder, **_SETTINGS}
    if resources.memory:
        settings["memory_limit"] = f"{resources.bytes}B"
    if resources.threads is not None:
        settings["threads"] = resources.threads
    connection = library("duckdb").connect(config=settings)
    remove = weakref.finalize(connection, _remove, folder, os.getpid())

    def close() -> None:
        connection.close()
        remove()

    return connection, close


def _remove(folder: str, process: int) -> None:
    """Remove a folder in the process that made it: a child must not remove it for its parent."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def _view(connection: Any, place: exp.Table, files: Parquet) -> None:
    """Files as a view: Arrow reads bytes and numbers, and the view converts each column."""
    raw = f"{place.name}_raw"
    connection.register(raw, files.dataset())
    _create_view(connection, place, files.terms(), raw)


def _slower_view(connection: Any, place: exp.Table, files: Parquet) -> None:
    """The same on a connection of our own, which had the quicker reader before."""
    connection.execute(_AS_WRITTEN)
    _view(connection, place, files)


def _quick_view(connection: Any, place: exp.Table, files: Parquet, terms: Mapping[str, str]) -> None:
    """The same with DuckDB's own reader: twice as fast, but fails on a text that is not UTF-8."""
    paths = ", ".join("'" + escape(str(path)).replace("'", "''") + "'" for path in files.paths)
    options = "hive_partitioning = false, union_by_name = false, filename = false"
    _create_view(connection, place, terms, f"READ_PARQUET([{paths}], {options})")


def _create_view(connection: Any, place: exp.Table, terms: Mapping[str, str], source: str) -> None:
    columns = ", ".join(f"{term} AS {quote_name(name)}" for name, term in terms.items())
    # Every name is quoted.
    selected = f"SELECT {columns} FROM {source}"  # noqa: S608
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {place.name} AS {selected}")


def _table_name(name: str) -> exp.Table:
    """A table by its exact name: table, schema.table or database.schema.table."""
    catalog, schema, table = [None, None, *name.split(".")][-3:]
    return exp.table_(table or name, db=schema, catalog=catalog, quoted=True)


def _read_only_file(connection: Any, name: str) -> list[str]:
    """The file of a table that nobody can write to while it is open; empty for a view."""
    database, schema = connection.execute(
        "SELECT lower(current_database()), lower(current_schema())"
    ).fetchone()
    *within, table = [part.lower() for part in name.split(".")]
    # One word before the name is a schema of this database, or another database.
    candidates = {(database, *within), (*within, "main"), tuple(within)} if within else {(database, schema)}
    rows = connection.execute(
        "SELECT lower(database_name), lower(schema_name), readonly, path FROM duckdb_tables() "
        "JOIN duckdb_databases() USING (database_name) WHERE lower(table_name) = ? AND NOT temporary",
        [table],
    ).fetchall()
    matches = [(readonly, path) for *at, readonly, path in rows if tuple(at) in candidates]
    return [path for readonly, path in matches if readonly and path and len(matches) == 1]


def _as_arrow(frame: Any) -> Any:
    """A frame as Arrow, with one type for each column."""
    package = type(frame).__module__.split(".")[0].removeprefix("_")
    if package == "pandas":
        return texts.from_pandas(frame)
    if package == "polars":
        return _collect(frame).to_arrow()
    return frame.to_arrow_table() if package == "duckdb" else frame


def _collect(frame: Any) -> Any:
    """A Polars frame; a lazy one is collected, once."""
    if not hasattr(frame, "collect"):
        return frame
    forks.refuse_without_polars()
    return frame.collect()
