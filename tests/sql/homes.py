# SPDX-License-Identifier: Apache-2.0
"""The made-up data sets on each engine, and in plain DuckDB."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa

import discreet as dp
from tests.sql.made import SHAPES, Shape

_POSTGRES = {
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
}


@cache
def shape(name: str) -> Shape:
    """A data set, made once."""
    return SHAPES[name]()


def local(name: str, engine: str) -> dp.Dataset:
    """A data set in an engine of this process."""
    made = shape(name)
    return dp.open(
        made.tables, made.protect, columns=made.columns, public=made.public, name=name, engine=engine
    )


def in_postgres(name: str, address: str) -> dp.Dataset:
    """A data set in a database of its own."""
    psycopg = __import__("psycopg")
    made = shape(name)
    with psycopg.connect(address, autocommit=True) as connection:
        for label, table in {**made.tables, **made.public}.items():
            columns = ", ".join(f'"{field.name}" {_POSTGRES[field.type]}' for field in table.schema)
            connection.execute(f'CREATE TABLE "{label}" ({columns})')
            with connection.cursor() as cursor, cursor.copy(f'COPY "{label}" FROM STDIN') as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
        sources = {label: (connection, label) for label in made.tables}
        public = {label: (connection, label) for label in made.public}
        return dp.open(sources, made.protect, columns=made.columns, public=public, name=name)


def in_spark(name: str, session: Any) -> dp.Dataset:
    """A data set in a Spark session."""
    from pyspark.sql.pandas.types import from_arrow_schema

    made = shape(name)

    def frame(table: pa.Table) -> Any:
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return session.createDataFrame(list(rows), from_arrow_schema(table.schema))

    return dp.open(
        {label: frame(table) for label, table in made.tables.items()},
        made.protect,
        columns=made.columns,
        public={label: frame(table) for label, table in made.public.items()},
        name=name,
    )


def plain(name: str) -> Any:
    """The rows that belong to somebody in plain DuckDB, with the functions of ours that it lacks."""
    import duckdb

    connection = duckdb.connect()
    for label, table in shape(name).owned().items():
        connection.register(label, table)
    inside = "greatest(least(x, high), low)"
    connection.execute(f"CREATE MACRO clamp(x, low, high) AS CASE WHEN x IS NOT NULL THEN {inside} END")
    return connection
