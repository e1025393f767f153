# SPDX-License-Identifier: Apache-2.0
"""The settings of somebody else's session, role or database change no number."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from discreet.errors import EngineFailed
from discreet.tables import engines
from discreet.tables.algebra.expr import Arithmetic, Compare, Constant, DatePart, Like, Read
from discreet.tables.algebra.sums import BoundedSums, OnceScheme, Private
from discreet.tables.algebra.types import NUMBER, TEXT, TRUTH, Type
from discreet.tables.engines.results import _WHOLE
from tests.tables.reference import Reference
from tests.tables.test_conformance import whole

duckdb = pytest.importorskip("duckdb")


def naive(*parts):
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)


TEXTS = ["a\\b", "a\\\\b", "${env:HOME}", "it's", 'say "x"', "A\\B", "a\nb", "%", "é"]
#: Hours that some time zone does not have, or has twice.
MOMENTS = [
    naive(2024, 3, 10, 2, 30),
    naive(2024, 11, 3, 1, 30),
    naive(1969, 12, 31, 23, 59, 59, 1),
    naive(1883, 11, 18, 12),
]
ROWS = [
    {
        "u": place,
        "t": text,
        "ts": MOMENTS[place % 4],
        "tz": MOMENTS[place % 4].replace(tzinfo=UTC),
        "d": date(1999, 1, 2 + place),
        "n": Decimal(place) / 8 - 1,
        "x": place / 7 - 1,
        "tn": f"-{place}.5",
        "b": place % 2 == 0,
    }
    for place, text in enumerate(TEXTS)
]
T = Read("t", "t", Type(TEXT))
KEYS = (
    T,
    *(Compare("=", T, Constant(text, Type(TEXT))) for text in ("a\\b", "${env:HOME}", "it's")),
    *(Like(T, pattern) for pattern in ("a\\b", "a\\%", "%${%", "a_b")),
    *(Arithmetic("+", Read("t", name, _WHOLE["timestamp"]), whole(0)) for name in ("ts", "tz")),
    DatePart("hour", Read("t", "ts", _WHOLE["timestamp"])),
    DatePart("day", Read("t", "d", _WHOLE["date"])),
    *(Read("t", name, Type(NUMBER, -8 << 20, 8 << 20, 20)) for name in ("n", "x", "tn")),
    Read("t", "b", Type(TRUTH)),
)
ASKED = BoundedSums(Private("t"), KEYS, (), OnceScheme())
EXPECTED = Reference({"t": ROWS}, {"t": "u"}).sums(ASKED)
TYPES = "u int, t {text}, ts {naive}, tz {zoned}, d date, n decimal(10,4), x {real}, tn {text}, b boolean"


# --- DuckDB ----------------------------------------------------------------------------------------

DUCKDB = {
    "default_collation": "'NOCASE'",
    "default_null_order": "'nulls_first'",
    "default_order": "'DESC'",
    "integer_division": "true",
    "TimeZone": "'America/Los_Angeles'",
    "old_implicit_casting": "true",
    "preserve_insertion_order": "false",
    "preserve_identifier_case": "false",
    "perfect_ht_threshold": "0",
}


def test_no_setting_of_duckdb_changes_a_number():
    connection = duckdb.connect()
    for name, value in DUCKDB.items():
        connection.execute(f"SET GLOBAL {name} = {value}")
    types = TYPES.format(text="varchar", naive="timestamp", zoned="timestamptz", real="double")
    connection.execute(f"CREATE TABLE t ({types})")
    for row in ROWS:
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", list(row.values()))
    engine = engines.duckdb({"t": (connection, "t")}, units={"t": "u"})
    assert engine.sums(ASKED) == EXPECTED
    engine.close()


# --- PostgreSQL ------------------------------------------------------------------------------------

POSTGRES = {
    "standard_conforming_strings": "off",
    "TimeZone": "America/Los_Angeles",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "client_encoding": "LATIN1",
    "transform_null_equals": "on",
    "default_transaction_isolation": "read committed",
    "search_path": "shadow, pg_catalog",
}


def test_no_setting_of_postgres_changes_a_number(postgres_database):
    """Those of a database apply to every session; a function of a view sets some while it is counted."""
    psycopg = pytest.importorskip("psycopg")
    name = postgres_database.split("@/")[1].split("?")[0]
    types = TYPES.format(text="text", naive="timestamp", zoned="timestamptz", real="double precision")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE public.t ({types})")
        for row in ROWS:
            words = ", ".join(["%s"] * len(row))
            connection.execute(f"INSERT INTO t VALUES ({words})", list(row.values()))
        connection.execute("""
            CREATE FUNCTION meddle(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
              PERFORM set_config('TimeZone', 'Asia/Kathmandu', false);
              PERFORM set_config('standard_conforming_strings', 'off', false); RETURN i; END $$;
            CREATE VIEW public.v AS SELECT meddle(u) AS u, t, ts, tz, d, n, x, tn, b FROM public.t;
            CREATE SCHEMA shadow;
            CREATE FUNCTION shadow.int8div(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
            CREATE FUNCTION shadow.split_part(text, text, int) RETURNS text LANGUAGE sql AS $$SELECT '1'$$;
        """)
        for setting, value in POSTGRES.items():
            written = value if setting == "search_path" else f"'{value}'"
            connection.execute(f"ALTER DATABASE {name} SET {setting} = {written}")
    for place in ("public.t", "public.v"):
        engine = engines.postgres(postgres_database, {"t": place}, units={"t": "u"})
        for _ in range(2):
            assert engine.sums(ASKED) == EXPECTED
        engine.close()


def test_a_table_that_is_created_later_takes_no_place(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    count = BoundedSums(Private("t"), (), (), OnceScheme())
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.t AS SELECT 1 AS u; CREATE SCHEMA postgres")
        engine = engines.postgres(postgres_database, {"t": "t"}, units={"t": "u"})
        connection.execute("CREATE TABLE postgres.t AS SELECT * FROM generate_series(1, 9) AS r(u)")
        assert engine.sums(count) == {(): (1,)}
        engine.close()


# --- Spark -----------------------------------------------------------------------------------------

SPARK = [
    {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
    },
    {
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.legacy.literal.pickMinimumPrecision": "false",
        "spark.sql.groupByOrdinal": "false",
        "spark.sql.groupByAliases": "false",
        "spark.sql.datetime.java8API.enabled": "true",
        "spark.sql.legacy.timeParserPolicy": "EXCEPTION",
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
    },
]


@pytest.fixture
def spark_table(spark_session):
    types = TYPES.format(text="string", naive="timestamp_ntz", zoned="timestamp", real="double")
    return spark_session.createDataFrame([tuple(row.values()) for row in ROWS], types)


@pytest.mark.parametrize("settings", SPARK, ids=["one", "other"])
def test_no_setting_of_spark_changes_a_number(spark_session, spark_table, setting, settings):
    engine = engines.spark(spark_session, {"t": spark_table}, units={"t": "u"})
    for name, value in settings.items():
        setting(name, value)
    assert engine.sums(ASKED) == EXPECTED
    assert all(spark_session.conf.get(name) == value for name, value in settings.items()), "none is changed"
    engine.close()


def test_a_setting_that_makes_patterns_of_names_is_refused(spark_session, spark_table, setting):
    engine = engines.spark(spark_session, {"t": spark_table}, units={"t": "u"})
    setting("spark.sql.parser.quotedRegexColumnNames", "true")
    with pytest.raises(EngineFailed, match="patterns") as refused:
        engine.sums(ASKED)
    assert refused.value.code == "DP802"
    engine.close()
