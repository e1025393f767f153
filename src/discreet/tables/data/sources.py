# SPDX-License-Identifier: Apache-2.0
"""Where a table can lie, and how it is brought to the engine that will count it.

    home        what it is                                                   counted by
    file        the path (or pattern) of Parquet, CSV, TSV, Arrow files      DuckDB
    arrow       an Arrow table, a pandas frame, a table of an SQLite file    DuckDB
    duckdb      a relation, (connection, "table"), a DuckDB file             DuckDB
    polars      a frame, a lazy frame                                        Polars
    spark       a data frame                                                 Spark
    postgres    an address, or a psycopg connection, with a table            PostgreSQL

**Guarantee.** What a column is (its name, its kind) never depends on the rows. A text file is text, cast as the
description says and to NULL where that fails (`texts.py`); so is a pandas column of Python objects, in which whatever
is no `str` is NULL. A frame is taken as it is when it is opened. No cell of a file or a frame makes opening fail (`sound.py`).
A lazy frame, a relation and a view are programs of their author, who answers for what they do with a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from discreet.errors import BadParameter
from discreet.paths import check_address, expanded, files, first_file, unopened
from discreet.tables.data import rules
from discreet.tables.data.dataset import Column
from discreet.tables.data.frozen import Frozen
from discreet.tables.data.readers import parquet, schema, texts
from discreet.tables.data.readers.sound import for_spark, sound

__all__ = ["HOMES", "Found", "bring", "find", "one_address"]

#: Each home, and the engine that counts what lies there.
HOMES = {
    "file": "duckdb",
    "arrow": "duckdb",
    "duckdb": "duckdb",
    "polars": "polars",
    "spark": "spark",
    "postgres": "postgres",
}

#: The words of an address that say which database it is, and which table a name means there.
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
class Found:
    """A table that has been found: its home, what an engine is handed, a name for it, and where it says it lies."""

    home: str
    handle: Any
    name: str
    label: str = ""  # no password is ever in it: it is shown
    within: str = ""  # the name of the table in a database
    address: str = ""  # of a database on a server, with its password
    files: Frozen | None = None  # as they were when it was found


def find(source: Any, table: str = "") -> Found:
    """What somebody means by a source; nothing is opened yet but the catalogue of a database."""
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        name = _table(table, repr(_without_password(source)))
        return Found("postgres", name, name.rpartition(".")[2], _without_password(source), name, source)
    check_address(source)
    if isinstance(source, str | Path):
        return _file(expanded(source), table)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return _connected(source[0], source[1])
    package = type(source).__module__.split(".")[0].removeprefix("_")
    if package == "psycopg":
        return _connected(source, _table(table, "connection"))
    return _frame(source, package)


def _file(path: Path, table: str) -> Found:
    first = first_file(path)
    # looked at before anything is read: what changes from now on is noticed
    frozen = Frozen.at(path)
    if not schema.is_database(path):
        schema.check_kind(first)
        return Found("file", str(path), first.stem, str(path), files=frozen)
    names = schema.catalogue(first)
    if not table and len(names) == 1:
        table = names[0]
    if _table(table, f'"{path}"', names) not in names:
        raise unopened(f"{path.name} has no table {table}.", f'table="{rules.closest(table, names)}"')
    if schema.is_sqlite(path):
        return Found("arrow", texts.from_sqlite(path, table), table, str(path), table, files=frozen)
    return Found("duckdb", schema.DatabaseFile(path, table), table, str(path), table, files=frozen)


def _connected(connection: Any, table: str) -> Found:
    package = type(connection).__module__.split(".")[0].removeprefix("_")
    name = table.rpartition(".")[2]
    if package == "duckdb":
        return Found("duckdb", (connection, table), name)
    if package == "psycopg":
        told = schema.library("psycopg").conninfo
        address = told.make_conninfo(connection.info.dsn, password=connection.info.password)
        return Found("postgres", table, name, "", table, address)
    raise _unknown()


def _frame(source: Any, package: str) -> Found:
    kind = type(source).__name__
    if package == "pandas" and kind == "DataFrame":
        return Found("arrow", texts.from_pandas(source), "data")
    if package == "pyarrow" and kind == "Table":
        return Found("arrow", source, "data")
    if package == "polars" and kind in {"DataFrame", "LazyFrame"}:
        return Found("polars", source, "data")
    if package == "pyspark" and kind == "DataFrame":
        return Found("spark", source, "data")
    if package == "duckdb" and kind == "DuckDBPyRelation":
        return Found("duckdb", source, "data")
    raise _unknown()


def bring(
    found: Found, engine: str, columns: Mapping[str, Column], *, unit: str | None = None, session: Any = None
) -> Any:
    """A source as an engine takes it. What only another engine could read is refused."""
    if HOMES[found.home] == engine and found.home != "file":
        return found.handle
    if found.home == "file" and engine in {"duckdb", "polars", "spark"}:
        return _from_files(files(found.handle), engine, columns, unit, session)
    if found.home == "arrow" and engine in {"polars", "spark"}:
        return _in_memory(found.handle, engine, unit, session)
    if found.home == "polars" and engine == "duckdb":
        return found.handle
    raise BadParameter(
        "DP107",
        f"{found.name} lies where the engine {engine} cannot read it.",
        why="all tables of a data set are counted in one place; rows are not copied out of a database.",
        fix="put all tables into the same database, or open them all from files",
    )


def _from_files(
    paths: list[Path], engine: str, columns: Mapping[str, Column], unit: str | None, session: Any
) -> Any:
    ending = paths[0].suffix.lower()
    if any(path.suffix.lower() != ending for path in paths):
        raise unopened(
            "the files are of different kinds.", f'dp.open("{paths[0].parent}/*{ending}", protect=…)'
        )
    if ending in schema.DELIMITERS:
        return _in_memory(texts.from_text_files(paths, columns), engine, unit, session)
    if ending not in parquet.ENDINGS:
        return _in_memory(texts.from_arrow_files(paths), engine, unit, session)
    wanted = {name: column.kind for name, column in columns.items()}
    if unit is not None:
        wanted.setdefault(unit, "text")
    table = schema.opened(lambda: parquet.Parquet.of(paths, wanted), paths[0])
    if engine != "spark":
        return table
    return _in_memory(schema.opened(table.table, paths[0]), engine, unit, session)


def _in_memory(table: Any, engine: str, unit: str | None, session: Any) -> Any:
    """A table as a frame of another engine; no error of theirs is shown, because it may quote a cell."""
    if engine == "polars":
        return schema.opened(lambda: schema.library("polars").from_arrow(sound(table)))
    if engine == "spark":
        return schema.opened(lambda: _in_spark(for_spark(sound(table), unit), session))
    return table


def _in_spark(table: Any, session: Any) -> Any:
    types = schema.library("pyspark.sql.pandas.types").from_arrow_schema(table.schema)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return session.createDataFrame(list(rows), types)


def one_address(found: Mapping[str, Found]) -> str:
    """The address of the database that all tables lie in: a name looked up in another one means another table."""
    first, *others = (one.address for one in found.values())
    parts = schema.library("psycopg").conninfo.conninfo_to_dict

    def place(address: str) -> dict[str, Any]:
        return {word: value for word, value in parts(address).items() if word in _PLACE}

    for name, other in zip([*found][1:], others, strict=True):
        if other == first or schema.opened(lambda at=other: place(at) == place(first)):
            continue
        raise BadParameter(
            "DP107",
            f"{name} lies in another database than {next(iter(found))}, or is reached by another address.",
            why="all tables are counted by one server; by the same name it would read another table, and show it as public.",
            fix=f"give {name} and {next(iter(found))} the same address, and copy the table there if it is elsewhere",
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
        "which table of the database is meant?",
        why="a database has several, and each may belong to other people.",
        fix=f'dp.open({where}, table="{names[0]}", protect=…){listed}',
    )


def _unknown() -> BadParameter:
    return BadParameter(
        "DP104",
        "this is nothing that can be opened as a table.",
        why="rows are counted in an engine, which must be able to read them.",
        fix='dp.open("visits.parquet", protect=…), or a pandas, Polars, Arrow or Spark frame, a DuckDB relation',
    )
