# SPDX-License-Identifier: Apache-2.0
"""Questions about public tables alone: exact on every engine, free, and unable to reach anything else."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables.answer import public
from discreet.tables.ask.sql import public as parsed

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

VISITS = pa.table({"patient_id": [1, 1, 2], "ward": ["A", "B", "A"], "days": [3, 4, 5]})
WARDS = pa.table(
    {
        "ward": ["A", "B", "C", None],
        "beds": [10, 20, None, 40],
        "rent": [Decimal("1.50"), None, Decimal("3.25"), Decimal("0.25")],
        "share": [0.5, None, 0.25, 1.0],
        "opened": [date(2020, 1, 1), None, date(2021, 5, 6), date(1999, 1, 1)],
        "closed": [True, False, None, True],
    }
)
ENGINES = ["duckdb", "polars"]


def opened(engine: str) -> dp.Dataset:
    pytest.importorskip(engine)
    return dp.open(
        {"visits": VISITS},
        protect=dp.each("patient_id", at_most=2),
        columns={"visits": {"days": dp.column(bounds=(0, 60))}},
        public={"wards": WARDS},
        engine=engine,
    )


def session_of(data: dp.Dataset) -> dp.Session:
    return dp.Session(data, limit=dp.Limit.filter(epsilon=1))


EXACT = {
    "SELECT COUNT(*) AS n FROM wards": [(4,)],
    "SELECT * FROM wards WHERE beds > 15 AND ward IS NOT NULL": [("B", 20, None, None, None, False)],
    "SELECT SUM(rent), MAX(opened), AVG(share) FROM wards": [(5, date(2021, 5, 6), 1.75 / 3)],
    "SELECT a.ward, COUNT(*) FROM wards a JOIN wards b ON a.beds < b.beds GROUP BY 1 ORDER BY 1": [
        ("A", 2),
        ("B", 1),
    ],
    "WITH big AS (SELECT * FROM wards WHERE beds >= 20) SELECT MIN(beds) FROM big": [(20,)],
    # A query may be named like a private table: then it stands for the query.
    "WITH visits AS (SELECT * FROM wards) SELECT COUNT(beds) FROM visits": [(3,)],
    "SELECT ward FROM wards WHERE CLAMP(beds, 0, 15) = 15 ORDER BY beds LIMIT 1": [("B",)],
}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_answer_is_exact_and_free(engine):
    session = session_of(opened(engine))
    before = len(session.ledger)
    for text, rows in EXACT.items():
        answer = session.sql(text)
        assert answer.rows() == rows, text
        assert answer.guarantee is None
        assert dp.tables.Answer.from_json(answer.to_json()).rows() == rows
    assert session.sql("SELECT COUNT(*) FROM wards WHERE beds > ?", parameters=[15]).value == 2
    assert session.sql("SELECT COUNT(*) FROM wards").interval == (4, 4)
    assert len(session.ledger) == before
    assert session.budget().spent_fraction == 0


def _in_postgres(address: str) -> dp.Dataset:
    psycopg = __import__("psycopg")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE visits (patient_id bigint, ward text, days bigint)")
        connection.execute(
            "CREATE TABLE wards (ward text, beds bigint, rent numeric(9,2), share double precision, opened date, closed boolean)"
        )
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s)", _rows(VISITS))
            cursor.executemany("INSERT INTO wards VALUES (%s, %s, %s, %s, %s, %s)", _rows(WARDS))
        return dp.open(
            {"visits": (connection, "visits")},
            protect=dp.each("patient_id", at_most=2),
            public={"wards": (connection, "wards")},
        )


def _rows(table):
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_postgres_answers_alike(postgres_database):
    session = session_of(_in_postgres(postgres_database))
    for text, rows in EXACT.items():
        assert session.sql(text).rows() == rows, text


def test_spark_answers_alike(spark_session):
    def frame(table):
        from pyspark.sql.pandas.types import from_arrow_schema

        return spark_session.createDataFrame(_rows(table), from_arrow_schema(table.schema))

    data = dp.open(
        {"visits": frame(VISITS)},
        protect=dp.each("patient_id", at_most=2),
        public={"wards": frame(WARDS)},
    )
    session = session_of(data)
    for text, rows in EXACT.items():
        assert session.sql(text).rows() == rows, text


REACHING = [
    "SELECT COUNT(*) FROM wards, visits",
    "SELECT (SELECT COUNT(*) FROM visits) FROM wards",
    "WITH x AS (SELECT * FROM visits) SELECT COUNT(*) FROM x, wards",
    # Named in one place, and read in another where the name means the private table.
    "SELECT COUNT(*) FROM wards, (WITH visits AS (SELECT 1 AS one) SELECT * FROM visits) AS a, visits AS b",
    "SELECT COUNT(*) FROM wards, read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM wards, '/etc/passwd'",
    "SELECT COUNT(*) FROM wards, VISITS_ROWS",
    "SELECT COUNT(*) FROM wards, main.visits",
    "SELECT read_text('/etc/passwd') FROM wards",
    "SELECT (SELECT content FROM read_text('/etc/passwd')) FROM wards",
    "SELECT nope FROM wards",
    "SELECT ward FROM wards; SELECT 1",
]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT current_setting('secret_directory') FROM wards",
        "SELECT system.main.\"Current_Setting\"('allowed_paths') FROM wards",
        "SELECT value FROM pg_settings, wards WHERE EXISTS (WITH pg_settings AS (SELECT 1) SELECT * FROM pg_settings)",
    ],
)
def test_settings_of_the_machine_are_not_shown(text):
    with pytest.raises(DiscreetError) as refused:
        session_of(opened("duckdb")).sql(text)
    assert refused.value.spent == "nothing"
    assert "public tables cannot be run" not in refused.value.what


@pytest.mark.parametrize("text", REACHING)
def test_nothing_but_public_tables_can_be_reached(text):
    VISITS_ROWS = VISITS  # noqa: F841 - a variable that DuckDB could find
    session = session_of(opened("duckdb"))
    before = len(session.ledger)
    with pytest.raises(DiscreetError) as refused:
        session.sql(text)
    assert refused.value.spent == "nothing"
    assert len(session.ledger) == before


def test_the_database_of_public_questions_holds_the_public_tables_alone(monkeypatch):
    """Even if a text is taken for a public one, it reaches nothing else."""
    monkeypatch.setattr(parsed, "public_tables", lambda *_: ("wards",))
    session = session_of(opened("duckdb"))
    for text in REACHING[:-1]:
        if "visits AS b" in text:
            continue
        with pytest.raises(DiscreetError):
            session.sql(text)


def test_a_question_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(public, "_LONGEST_SECONDS", 0.2)
    many = ", ".join(f"wards AS w{number}" for number in range(30))
    with pytest.raises(DiscreetError) as stopped:
        session_of(opened("duckdb")).sql(
            f"SELECT COUNT(*) FROM {many} WHERE w0.beds + w29.beds > w3.beds * 9"
        )
    assert stopped.value.code == "DP702"


def test_an_answer_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(public, "_LONGEST_ANSWER", 3)
    session = session_of(opened("duckdb"))
    with pytest.raises(DiscreetError, match="more than 3 rows"):
        session.sql("SELECT ward FROM wards")
    assert len(session.sql("SELECT ward FROM wards LIMIT 3")) == 3
    assert session.sql("SHOW TABLES").header[0] == "table"


def test_a_table_without_rows_has_its_columns():
    empty = WARDS.slice(0, 0)
    data = dp.open(
        {"visits": VISITS}, protect=dp.each("patient_id", at_most=2), public={"wards": empty}, engine="polars"
    )
    assert session_of(data).sql("SELECT COUNT(*) AS n, SUM(beds), MAX(ward) FROM wards").rows() == [
        (0, None, None)
    ]


def test_a_private_question_is_asked_as_before():
    session = session_of(opened("duckdb"))
    assert session.sql("SELECT COUNT(*) FROM visits JOIN wards USING (ward)", epsilon=0.5).receipt is not None
    with pytest.raises(DiscreetError) as refused:
        session.sql("SELECT COUNT(*) FROM visits")
    assert refused.value.spent == "nothing"
