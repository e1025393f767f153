# SPDX-License-Identifier: Apache-2.0
"""The four engines that hold tables and sum them: DuckDB, PostgreSQL, Spark, Polars.

    engines.duckdb({"visits": "visits.parquet"}, units={"visits": "patient_id"})
    engines.postgres("postgresql://…", {"visits": "clinic.visits"}, units={"visits": "patient_id"})
    engines.spark(session, {"visits": frame}, units={"visits": "patient_id"})
    engines.polars({"visits": frame}, units={"visits": ROW})

`units` says which tables are private, and whose a row is: a column, or `ROW` where every row is a
unit of its own. A table that it does not name (or names with None) is public.

**Guarantee.** All four give the same whole numbers for the same rows: those of
`tests/tables/reference.py`, whatever the order of the rows and the number of threads. Rows whose
unit is NULL or NaN belong to nobody and are not counted. A source is opened here and never again: a
file that has changed since is not counted.

Nothing is imported before an engine is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.extras import naming_extras
from discreet.tables.algebra.engine import ROW, Engine
from discreet.tables.algebra.resources import ANY, Resources

__all__ = ["ROW", "duckdb", "polars", "postgres", "spark"]


@naming_extras()
def duckdb(
    tables: Mapping[str, Any], *, units: Mapping[str, str | None], resources: Resources = ANY
) -> Engine:
    """Tables in DuckDB, inside this process.

    A source is the path (or glob) of Parquet or CSV files, an Arrow table, a pandas or Polars
    frame, a DuckDB relation, or (connection, "table").
    """
    from discreet.tables.engines.duckdb_open import open_duckdb

    return open_duckdb(tables, units, resources)


@naming_extras()
def postgres(
    dsn: str, tables: Mapping[str, str], *, units: Mapping[str, str | None], resources: Resources = ANY
) -> Engine:
    """Tables of a PostgreSQL database; a source is the name of a table or view, with its schema if
    it has one.
    """
    from discreet.tables.engines.in_postgres import open_postgres

    return open_postgres(dsn, tables, units, resources)


@naming_extras()
def spark(
    session: Any,
    tables: Mapping[str, Any],
    *,
    units: Mapping[str, str | None],
    resources: Resources = ANY,
) -> Engine:
    """Tables of a Spark session; a source is a data frame or the name of a table."""
    resources.refuse(
        "Spark",
        "its memory and threads belong to the session and its cluster, which others use too.",
        "leave them out; they are set where the session is made:  "
        'SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g")',
    )
    from discreet.tables.engines.in_spark import open_spark

    return open_spark(session, tables, units)


@naming_extras()
def polars(
    tables: Mapping[str, Any], *, units: Mapping[str, str | None], resources: Resources = ANY
) -> Engine:
    """Tables in Polars, inside this process; a source is a frame, a lazy frame, or the path of a
    Parquet or CSV file.
    """
    resources.refuse(
        "Polars",
        "it has one pool of threads for the whole process, and no limit of memory.",
        'engine="duckdb"   or leave them out, and start Python with POLARS_MAX_THREADS=2',
    )
    from discreet.tables.engines.in_polars import open_polars

    return open_polars(tables, units)
