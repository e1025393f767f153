# SPDX-License-Identifier: Apache-2.0
"""Tables that lie in a PostgreSQL database, or in a Spark session."""

from __future__ import annotations

import os

import pytest

from discreet.errors import BadParameter, EngineFailed
from discreet.tables.open import column, each, open  # noqa: A004 - as it is called
from discreet.tables.sources import find
from tests.tables.test_open import DAYS_IN_ALL, PATIENT, ROWS, UNITS, counted

DAYS = {"days": column(bounds=(0, 60))}


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
    with pytest.raises(BadParameter, match="cannot read it"):
        open(clinic, PATIENT, table="clinic.visits", engine="duckdb")
    with pytest.raises(BadParameter, match="cannot read it"):
        open(clinic, PATIENT, table="clinic.visits", public={"wards": tmp_path / "wards.csv"})


def test_what_is_not_there_is_refused_without_a_word_of_it(clinic):
    with pytest.raises(EngineFailed) as failed:
        open("postgresql://nobody@/nothing?host=%2Fnowhere", PATIENT, table="visits")
    assert failed.value.code == "DP802"
    assert failed.value.__context__ is None


def test_a_password_is_never_shown():
    address = "postgresql://ana:geheim@localhost:5432/clinic?password=geheim&sslmode=require"
    found = find(address, "clinic.visits")
    assert found.address == address
    assert found.label == "postgresql://ana@localhost:5432/clinic?sslmode=require"
    assert found.name == "visits"


@pytest.mark.slow
def test_a_spark_frame_is_counted_by_spark(tmp_path, monkeypatch):
    pyspark_sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setitem(os.environ, "SPARK_LOCAL_IP", "127.0.0.1")
    builder = pyspark_sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    frame = session.createDataFrame(
        list(zip(*ROWS.values(), strict=True)), "patient_id bigint, days int, ward string"
    )
    wards = tmp_path / "wards.csv"
    wards.write_text("ward\nA\nB\n", encoding="utf-8")
    data = open(frame, each("patient_id", 20), columns=DAYS, name="visits", public={"wards": wards})
    assert data.engine.name == "spark"
    assert counted(data) == (UNITS, DAYS_IN_ALL)
    assert data.engine.values("wards", ("ward",)) == [("A",), ("B",)]
