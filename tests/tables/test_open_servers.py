# SPDX-License-Identifier: Apache-2.0
"""Tables that lie in a PostgreSQL database, or in a Spark session."""

from __future__ import annotations

import os

import pytest

from discreet.errors import BadDescription, BadParameter, EngineFailed
from discreet.tables.algebra.sums import BoundedSums, OnceScheme, Private
from discreet.tables.ask.columns import unbounded_column
from discreet.tables.data.sources import find
from discreet.tables.open import column, each, open  # noqa: A004 - as it is called
from tests.postgres import database
from tests.tables.test_open import DAYS_IN_ALL, PATIENT, ROWS, UNITS, counted
from tests.tables.test_readers import READERS, odd_table

DAYS = {"days": column(bounds=(0, 60))}
DESCRIBED = """
[dataset]
name = "visits"
source = "{0}"
table = "clinic.visits"
unit = "patient_id"
[limits]
rows_per_unit = 20
[public.wards]
source = "{1}"
table = "clinic.visits"
"""


@pytest.fixture
def clinic(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA clinic")
        connection.execute("CREATE TABLE clinic.visits (patient_id bigint, days integer, ward text)")
        connection.execute("CREATE TABLE clinic.wards (ward text)")
        for row in zip(*ROWS.values(), strict=True):
            connection.execute("INSERT INTO clinic.visits VALUES (%s, %s, %s)", row)
    return postgres_database


def test_a_table_of_postgresql_is_opened_by_its_address(clinic):
    with open(clinic, PATIENT, columns=DAYS, table="clinic.visits") as data:
        assert data.engine.name == "postgres"
        assert counted(data) == (UNITS, DAYS_IN_ALL)


def test_a_table_of_postgresql_is_opened_by_a_connection(clinic):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(clinic) as connection:
        for data in (
            open((connection, "clinic.visits"), PATIENT, columns=DAYS),
            open(connection, PATIENT, columns=DAYS, table="clinic.visits"),
        ):
            assert counted(data) == (UNITS, DAYS_IN_ALL)
            data.close()


def test_a_description_of_a_database_is_read_back(clinic, tmp_path):
    path = tmp_path / "visits.toml"
    with open(clinic, PATIENT, columns=DAYS, table="clinic.visits") as data:
        path.write_text(data.to_toml(), encoding="utf-8")
    with open(path) as again:
        assert counted(again) == (UNITS, DAYS_IN_ALL)


def test_rows_are_not_copied_out_of_a_database(clinic, tmp_path):
    (tmp_path / "wards.csv").write_text("ward\na\n", encoding="utf-8")
    with pytest.raises(BadParameter, match=r"cannot read (visits|wards)"):
        open(clinic, PATIENT, table="clinic.visits", engine="duckdb")
    with pytest.raises(BadParameter, match=r"cannot read (visits|wards)"):
        open(clinic, PATIENT, table="clinic.visits", public={"wards": tmp_path / "wards.csv"})


@pytest.fixture
def elsewhere(postgres_dsn):
    """Another database, in which there is a public table of the name of a private one."""
    psycopg = pytest.importorskip("psycopg")
    with database(postgres_dsn) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA clinic")
            connection.execute("CREATE TABLE clinic.visits (ward text)")
            connection.execute("INSERT INTO clinic.visits VALUES ('public')")
        yield dsn


def test_a_table_of_another_database_is_not_looked_up_in_the_first(clinic, elsewhere, tmp_path):
    psycopg = pytest.importorskip("psycopg")
    options = f"{clinic}&options=-csearch_path%3Dclinic"
    with psycopg.connect(clinic) as ours, psycopg.connect(elsewhere) as theirs:
        same = ((clinic, "clinic.wards"), (ours, "clinic.wards"))
        for source, table in same:
            # an address has its table beside it only in a description
            public = {"wards": (source, table) if source is ours else (ours, table)}
            private = (clinic, "clinic.visits") if source is ours else (ours, "clinic.visits")
            with _opened(private, public) as data:
                assert counted(data) == (UNITS, DAYS_IN_ALL)
        with pytest.raises(BadParameter, match="different database addresses") as refused:
            _opened((ours, "clinic.visits"), {"wards": (theirs, "clinic.visits")})
        assert refused.value.code == "DP107"
        with pytest.raises(BadParameter, match="different database addresses"):
            _opened((clinic, "clinic.visits"), {"wards": (theirs, "clinic.visits")})
    for address in (elsewhere, options):
        path = tmp_path / "visits.toml"
        path.write_text(DESCRIBED.format(clinic, address), encoding="utf-8")
        with pytest.raises(BadParameter, match="different database addresses"):
            open(path)
    path.write_text(DESCRIBED.format(clinic, clinic), encoding="utf-8")
    with open(path) as data:
        assert data.engine.values("wards", ("ward",)) != [("public",)]


def test_a_name_with_a_database_is_looked_up_in_that_database_only(clinic):
    from urllib.parse import urlsplit

    here = urlsplit(clinic).path.strip("/")
    with open(clinic, PATIENT, columns=DAYS, table=f"{here}.clinic.visits") as data:
        assert counted(data) == (UNITS, DAYS_IN_ALL)
    for name in ("postgres.clinic.visits", f"a.{here}.clinic.visits"):
        with pytest.raises(EngineFailed) as failed:
            open(clinic, PATIENT, columns=DAYS, table=name)
        assert failed.value.code == "DP802"


def _opened(private, public):
    if isinstance(private[0], str):
        return open(private[0], PATIENT, columns=DAYS, table=private[1], public=public)
    return open(private, PATIENT, columns=DAYS, public=public)


def test_what_is_not_there_is_refused_without_a_word_of_it(clinic):
    with pytest.raises(EngineFailed) as failed:
        open("postgresql://nobody@/nothing?host=%2Fnowhere", PATIENT, table="visits")
    assert failed.value.code == "DP802"
    assert failed.value.__context__ is None


def test_nobody_is_called_nan(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (who numeric, x double precision, b bytea)")
        connection.execute(
            "INSERT INTO t VALUES ('NaN', 'NaN'), ('NaN', 1), (NULL, 2), (7, 3), (7.0, 4), ('Infinity', 5)"
        )
    with open(postgres_database, each("who", at_most=1), table="t") as data:
        assert data.engine.sums(BoundedSums(Private("t"), (), (), OnceScheme())) == {(): (2,)}
    for unit in ("x", "b"):
        with pytest.raises(BadDescription) as refused:
            open(postgres_database, each(unit, at_most=1), table="t")
        assert refused.value.code == "DP403"


def test_a_password_is_never_shown():
    address = "postgresql://ana:geheim@localhost:5432/clinic?password=geheim&sslmode=require"
    found = find(address, "clinic.visits")
    assert found.address == address
    assert found.label == "postgresql://ana@localhost:5432/clinic?sslmode=require"
    assert found.name == "visits"


@pytest.fixture
def spark(monkeypatch):
    pyspark_sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setitem(os.environ, "SPARK_LOCAL_IP", "127.0.0.1")
    builder = pyspark_sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    return builder.getOrCreate()


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_no_cell_of_a_second_table_makes_spark_fail(spark, reader, tmp_path):
    table = odd_table()
    folder = tmp_path / "t"
    folder.mkdir()
    first = spark.createDataFrame([(who,) for who in range(table.num_rows)], "who bigint")
    source = {"first": first, "t": READERS[reader](table, folder)}
    with open(source, each("who", at_most=1)) as data:
        assert data.engine.name == "spark"
        kinds = {name: told.kind for name, told in data.tables["t"].columns.items()}
        for name in ("string", "dictionary", "at_ms_zoned", "date32", "uint64"):
            keys = tuple(unbounded_column(data.tables["t"], one) for one in ("who", name))
            found = data.engine.sums(BoundedSums(Private("t"), keys, (), OnceScheme()))
            assert sorted(who for who, _ in found) == list(range(table.num_rows)), name
        assert kinds["bytes"] == kinds["list"] == "other"


@pytest.mark.slow
def test_a_spark_frame_is_counted_by_spark(spark, tmp_path):
    frame = spark.createDataFrame(
        list(zip(*ROWS.values(), strict=True)), "patient_id bigint, days int, ward string"
    )
    wards = tmp_path / "wards.csv"
    wards.write_text("ward\nA\nB\n", encoding="utf-8")
    data = open(frame, each("patient_id", 20), columns=DAYS, name="visits", public={"wards": wards})
    assert data.engine.name == "spark"
    assert counted(data) == (UNITS, DAYS_IN_ALL)
    assert data.engine.values("wards", ("ward",)) == [("A",), ("B",)]
