# SPDX-License-Identifier: Apache-2.0
"""The sources of tables, and how each one gets to its engine.

    home        source                                                       engine
    file        the path (or pattern) of Parquet, CSV, TSV, Arrow files      DuckDB
    arrow       an Arrow table, a pandas frame, a table of an SQLite file    DuckDB
    duckdb      a relation, (connection, "table"), a DuckDB file             DuckDB
    polars      a frame, a lazy frame                                        Polars
    spark       a data frame                                                 Spark
    postgres    an address, or a psycopg connection, with a table            PostgreSQL

**Guarantee.** The names and kinds of columns never depend on the rows. A text file holds text,
which is cast as the description says, and to NULL where that fails (`texts.py`). In a pandas column
of Python objects, everything but `str` is NULL. A frame is used as it is when it is opened. No cell
of a file or a frame makes opening fail (`sanitize.py`). A lazy frame, a relation and a view are
programs: their author answers for what they do with a row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from discreet.errors import BadParameter
from discreet.paths import check_address, expand_home, files, first_file, unopened_error
from discreet.tables.algebra.frozen import Frozen
from discreet.tables.data import rules
from discreet.tables.data.dataset import Column
from discreet.tables.data.readers import parquet, schema, texts
from discreet.tables.data.readers.sound import sanitize, sanitize_for_spark
from discreet.tables.data.readers.versions import refuse_versions

__all__ = ["HOMES", "TableSource", "as_described", "bring", "find", "one_address"]

#: The default engine of each home.
HOMES = {
    "file": "duckdb",
    "arrow": "duckdb",
    "duckdb": "duckdb",
    "polars": "polars",
    "spark": "spark",
    "postgres": "postgres",
}

#: The parts of an address that decide which database and which table a name means.
_PLACE = {
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "options",
    "service",
    "target_session_attrs",
    "load_balance_hosts",
}


@dataclass(frozen=True)
class TableSource:
    """The source of a table: its home, what its engine gets, its name, and a label that is shown."""

    home: str
    handle: Any
    name: str
    label: str = ""  # shown to people, so it never has a password
    within: str = ""  # the name of the table in a database
    address: str = ""  # of a database on a server, with its password
    files: Frozen | None = None  # to notice later changes
    frame: Any = None  # of pandas, whose columns of objects are read as they are described


def find(source: object, table: str = "") -> TableSource:
    """The table that a source means; only the catalogue of a database is opened."""
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        name = _table(table, repr(_without_password(source)))
        return TableSource("postgres", name, name.rpartition(".")[2], _without_password(source), name, source)
    check_address(source)
    if isinstance(source, str | Path):
        return _file(expand_home(source), table)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return _from_connection(source[0], source[1])
    package = type(source).__module__.split(".")[0].removeprefix("_")
    if package == "psycopg":
        return _from_connection(source, _table(table, "connection"))
    return _frame(source, package)


def _file(path: Path, table: str) -> TableSource:
    # A name that is no path at all is refused by `first_file`; Path.is_dir would raise on some.
    if os.path.isdir(path):  # noqa: PTH112
        refuse_versions([path])
    first = first_file(path)
    refuse_versions(files(path))
    # Recorded before anything is read, so that every later change is noticed.
    frozen = Frozen.at(path)
    if not schema.is_database(path):
        schema.check_kind(first)
        return TableSource("file", str(path), first.stem, str(path), files=frozen)
    names = schema.catalogue(first)
    if not table and len(names) == 1:
        table = names[0]
    if _table(table, f'"{path}"', names) not in names:
        raise unopened_error(f"{path.name} has no table {table}.", f'table="{rules.closest(table, names)}"')
    if schema.is_sqlite(path):
        return TableSource("arrow", texts.from_sqlite(path, table), table, str(path), table, files=frozen)
    return TableSource("duckdb", schema.DatabaseFile(path, table), table, str(path), table, files=frozen)


def _from_connection(connection: Any, table: str) -> TableSource:
    package = type(connection).__module__.split(".")[0].removeprefix("_")
    name = table.rpartition(".")[2]
    if package == "duckdb":
        return TableSource("duckdb", (connection, table), name)
    if package == "psycopg":
        conninfo = schema.library("psycopg").conninfo
        address = conninfo.make_conninfo(connection.info.dsn, password=connection.info.password)
        return TableSource("postgres", table, name, "", table, address)
    raise _unknown_source_error()


def _frame(source: object, package: str) -> TableSource:
    kind = type(source).__name__
    if package == "pandas" and kind == "DataFrame":
        return TableSource("arrow", texts.from_pandas(source), "data", frame=source)
    if package == "pyarrow" and kind == "Table":
        return TableSource("arrow", source, "data")
    if package == "polars" and kind in {"DataFrame", "LazyFrame"}:
        return TableSource("polars", source, "data")
    if package == "pyspark" and kind == "DataFrame":
        return TableSource("spark", source, "data")
    if package == "duckdb" and kind == "DuckDBPyRelation":
        return TableSource("duckdb", source, "data")
    raise _unknown_source_error()


def as_described(source: TableSource, columns: Mapping[str, Column]) -> TableSource:
    """The source, with columns of Python objects read as dates where they are described as such."""
    if source.frame is None or not columns:
        return source
    return replace(source, handle=texts.from_pandas(source.frame, columns), frame=None)


def bring(
    source: TableSource,
    engine: str,
    columns: Mapping[str, Column],
    *,
    unit: str | None = None,
    session: Any = None,
) -> Any:
    """A source in the form that an engine reads, or a refusal if only another engine could read it."""
    if HOMES[source.home] == engine and source.home != "file":
        return source.handle
    if source.home == "file" and engine in {"duckdb", "polars", "spark"}:
        return _from_files(files(source.handle), engine, columns, unit, session)
    if source.home == "arrow" and engine in {"polars", "spark"}:
        return _in_memory(source.handle, engine, unit, session)
    if source.home == "polars" and engine == "duckdb":
        return source.handle
    raise BadParameter(
        "DP107",
        f"the engine {engine} cannot read {source.name}.",
        why="one engine counts all tables of a data set, and rows are never copied out of a database.",
        fix="put all tables into the same database, or open them all from files",
    )


def _from_files(
    paths: list[Path], engine: str, columns: Mapping[str, Column], unit: str | None, session: Any
) -> Any:
    ending = paths[0].suffix.lower()
    if any(path.suffix.lower() != ending for path in paths):
        raise unopened_error(
            "the files have different formats.", f'dp.open("{paths[0].parent}/*{ending}", protect=…)'
        )
    if ending in schema.DELIMITERS:
        return _in_memory(texts.from_text_files(paths, columns), engine, unit, session)
    if ending not in parquet.ENDINGS:
        return _in_memory(texts.from_arrow_files(paths), engine, unit, session)
    wanted = {name: column.kind for name, column in columns.items()}
    if unit is not None:
        wanted.setdefault(unit, "text")
    table = schema.guard_opening(lambda: parquet.Parquet.of(paths, wanted), paths[0])
    if engine != "spark":
        return table
    return _in_memory(schema.guard_opening(table.table, paths[0]), engine, unit, session)


def _in_memory(table: Any, engine: str, unit: str | None, session: Any) -> Any:
    """A table as a frame of another engine; its errors are hidden, because they may quote a cell."""
    if engine == "polars":
        return schema.guard_opening(lambda: schema.library("polars").from_arrow(sanitize(table)))
    if engine == "spark":
        return schema.guard_opening(lambda: _in_spark(sanitize_for_spark(sanitize(table), unit), session))
    return table


def _in_spark(table: Any, session: Any) -> Any:
    types = schema.library("pyspark.sql.pandas.types").from_arrow_schema(table.schema)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return session.createDataFrame(list(rows), types)


def one_address(sources: Mapping[str, TableSource]) -> str:
    """The address of the one database of all tables; in another database a name would mean another
    table.
    """
    (first_name, first), *others = ((name, source.address) for name, source in sources.items())
    parts = schema.library("psycopg").conninfo.conninfo_to_dict

    def server(address: str) -> dict[str, Any]:
        return {word: value for word, value in parts(address).items() if word in _PLACE}

    for name, other in others:
        if other == first or schema.guard_opening(lambda at=other: server(at) == server(first)):
            continue
        raise BadParameter(
            "DP107",
            f"{name} and {first_name} have different database addresses.",
            why="one server counts all tables; it could read another table of the same name, and show it as public.",
            fix=f"give {name} and {first_name} the same address, and copy the table there if it is elsewhere",
        )
    return first


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    options = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != "password"])
    return urlunsplit((parts.scheme, user.partition(":")[0] + at + host, parts.path, options, ""))


def _table(table: str, where: str, names: Sequence[str] = ("visits",)) -> str:
    if isinstance(table, str) and table:
        return table
    listed = f"   ({', '.join(names)})" if len(names) > 1 else ""
    raise BadParameter(
        "DP107",
        "table is missing: the name of a table of the database.",
        why="a database has several tables, and each may belong to other people.",
        fix=f'dp.open({where}, table="{names[0]}", protect=…){listed}',
    )


def _unknown_source_error() -> BadParameter:
    return BadParameter(
        "DP104",
        "this object cannot be opened as a table.",
        why="an engine must be able to read the rows.",
        fix='dp.open("visits.parquet", protect=…), or a pandas, Polars, Arrow or Spark frame, a DuckDB relation',
    )
