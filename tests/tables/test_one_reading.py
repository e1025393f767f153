# SPDX-License-Identifier: Apache-2.0
"""What bounds a unit is made from the rows that are summed, even if the source says something else each time it is read."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from discreet.errors import BadParameter, EngineFailed
from discreet.tables import engines
from discreet.tables.algebra.expr import Compare, Quotient, Read
from discreet.tables.algebra.sums import (
    BoundedSums,
    Filtered,
    GroupScheme,
    Lookup,
    MassScheme,
    NormScheme,
    OnceScheme,
    Paired,
    Private,
    RowScheme,
    UnitSizes,
)
from discreet.tables.algebra.types import NUMBER, TEXT, Type
from tests.tables.test_conformance import whole

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")

G = Read("t", "g", Type(TEXT))
X = Read("t", "x", Type(NUMBER, 0, 10))
K = Read("t", "k", Type(NUMBER, 0, 3))
HALF = Quotient(X, Read("t", "y", Type(NUMBER, -3, 3)))  # its SQL says the divisor several times
ONE = whole(1)
FINE = 1 << 20
READINGS = 6

T = Private("t")
RELATIONS = {
    "rows": T,
    "filtered": Filtered(T, Compare(">", X, whole(2))),
    "looked up": Lookup(T, "codes", ((K, Read("codes", "k", Type(NUMBER, 0, 3))),)),
    "paired": Paired(T, Private("other")),
}
QUESTIONS = {
    "rows": BoundedSums(T, (G,), (ONE, X), RowScheme(2, FINE)),
    "norm": BoundedSums(T, (G,), (ONE, X, HALF), NormScheme(3, FINE, (1, 10, 10)), 0),
    "mass": BoundedSums(T, (G,), (ONE, X), MassScheme(5, FINE)),
    "groups": BoundedSums(T, (G, K), (), GroupScheme(100, FINE, 1, full=2)),
    "root": BoundedSums(T, (G, K), (), GroupScheme(100, 1 << 10, 2)),
    "once": BoundedSums(T, (), (), OnceScheme()),
}


def excess(asked, answer):
    """How far above its bound one unit is, as a ratio; 1 at most."""
    scheme, rows = asked.scheme, list(answer.values())
    if isinstance(scheme, OnceScheme):
        return max(row[0] for row in rows)
    if isinstance(scheme, RowScheme):
        counted = sum(row[0] for row in rows) / (scheme.most * scheme.fine)
        return max(counted, sum(row[1] for row in rows) / (10 * scheme.most * scheme.fine))
    if isinstance(scheme, MassScheme):
        return sum(abs(v) for row in rows for v in row) / (scheme.most * scheme.fine)
    if isinstance(scheme, NormScheme):
        square = sum((v / cell) ** 2 for row in rows for v, cell in zip(row, scheme.cells, strict=True))
        return math.sqrt(square) / (scheme.most * scheme.fine)
    if scheme.norm == 1:
        return sum(row[0] for row in rows) / (scheme.full * scheme.fine)
    return math.sqrt(sum(row[0] ** 2 for row in rows)) / (math.sqrt(scheme.full) * scheme.fine)


def worst(engine, readings=READINGS, relations=tuple(RELATIONS), questions=tuple(QUESTIONS)):
    """The greatest excess in answers about a source in which there is one unit, which says something else each time."""
    seen, most = set(), 0
    for rows in map(RELATIONS.__getitem__, relations):
        for asked in map(QUESTIONS.__getitem__, questions):
            for _ in range(readings):
                answer = engine.sums(replace(asked, rows=rows))
                most = max(most, excess(asked, answer))
                seen.add(tuple(answer.values()))
        most = max(most, sum(engine.sizes(UnitSizes(rows, (G,), (10, 100, 1000), 2))))
    assert len(seen) > len(relations) * (readings + len(questions)) // 2, "the source has to change"
    return most


WITHIN = 1 + 1e-9  # this is a sum of floats
COLUMNS = """
    CASE WHEN {0} < 0.9 THEN 1 END AS u, SUBSTR('abcde', CAST(FLOOR({0} * 5) AS INT) + 1, 1) AS g,
    {0} * 20 AS x, CAST(FLOOR({0} * 4) AS INT) AS k, CAST(FLOOR({0} * 9) AS INT) - 4 AS y
"""
UNITS = {"t": "u", "other": "u"}
TABLES = ("t", "other", "codes")


def moody_duckdb(draw, extra=""):
    """A database whose views draw all of their cells anew each time."""
    connection = duckdb.connect()
    connection.create_function("lies", lambda _: random.random(), ["BIGINT"], "DOUBLE")
    rows = f"FROM range(60) AS r(i) WHERE {draw} < 0.7 {extra}"
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS SELECT {COLUMNS.format(draw)} {rows}")
    return connection


@pytest.mark.parametrize(
    ("draw", "extra"), [("random()", ""), ("lies(i)", ""), ("random()", "USING SAMPLE 80%")]
)
def test_duckdb_reads_once(draw, extra):
    connection = moody_duckdb(draw, extra)
    engine = engines.duckdb({name: (connection, name) for name in TABLES}, units=UNITS)
    assert worst(engine) <= WITHIN
    tables = "SELECT COUNT(*) FROM duckdb_tables() WHERE temporary"
    assert engine._temporary.connection.execute(tables).fetchone() == (0,), "nothing is kept"
    engine.close()


def moody_frame():
    def drawn(frame):
        count = random.randrange(30, 60)
        return polars.DataFrame(
            {
                "u": [random.choice([1, 1, 1, None]) for _ in range(count)],
                "g": random.choices("abcde", k=count),
                "x": [random.random() * 20 for _ in range(count)],
                "k": random.choices(range(4), k=count),
                "y": random.choices(range(-4, 5), k=count),
            }
        )

    schema = {
        "u": polars.Int64,
        "g": polars.String,
        "x": polars.Float64,
        "k": polars.Int64,
        "y": polars.Int64,
    }
    return polars.LazyFrame({"one": [1]}).map_batches(drawn, schema=schema)


def test_polars_reads_once():
    assert worst(engines.polars({name: moody_frame() for name in TABLES}, units=UNITS)) <= WITHIN


def test_postgres_reads_once(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION lies(i int) RETURNS double precision LANGUAGE plpgsql STABLE AS 'BEGIN RETURN random(); END'"
        )
        for number, draw in enumerate(("random()", "lies(i)")):
            for name in TABLES:
                columns = COLUMNS.format(draw)
                rows = f"FROM generate_series(1, 60) AS r(i) WHERE {draw} < 0.7"
                connection.execute(f"CREATE VIEW {name}{number} AS SELECT {columns} {rows}")
    for number in range(2):
        places = {name: f"{name}{number}" for name in TABLES}
        engine = engines.postgres(postgres_database, places, units=UNITS)
        assert worst(engine) <= WITHIN
        engine.close()


def worst_of_spark(session, draw, relations, questions):
    rows = f"FROM (SELECT id AS i FROM range(60)) WHERE {draw} < 0.7"
    views = {name: session.sql(f"SELECT {COLUMNS.format(draw)} {rows}") for name in TABLES}
    engine = engines.spark(session, views, units=UNITS)
    most = worst(engine, 1, relations, questions)
    engine.close()
    assert not [view for view in session.catalog.listTables() if view.name.startswith("discreet_")]
    return most


RANDOM_IN_SPARK = "CAST(reflect('java.lang.Math', 'random') AS DOUBLE)"


def test_spark_reads_once(spark_session):
    questions = ("rows", "norm", "groups")
    assert worst_of_spark(spark_session, RANDOM_IN_SPARK, ("rows",), questions) <= WITHIN


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet")
def test_spark_reads_once_in_every_case(spark_session):
    """Of the second function the optimizer does not know that it is random, or it would be careful."""
    from pyspark.sql.functions import udf

    spark_session.udf.register("lies", udf(lambda _: random.random(), "double"))
    for draw in (RANDOM_IN_SPARK, "lies(i)"):
        assert worst_of_spark(spark_session, draw, tuple(RELATIONS), tuple(QUESTIONS)) <= WITHIN


# --- later questions -------------------------------------------------------------------------------

COUNT = BoundedSums(T, (), (ONE,), RowScheme(1, 1))
BY_GROUP = BoundedSums(T, (G,), (ONE, X), NormScheme(3, 64, (1, 10)))


def test_duckdb_counts_the_present_rows_of_a_live_table():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS u, 'a' AS g, 1 AS x FROM range(10) AS r(i)")
    engine = engines.duckdb({"t": (connection, "t")}, units={"t": "u"})
    questions = (
        COUNT,
        BY_GROUP,
        replace(COUNT, scheme=GroupScheme(9, 1, 1)),
        replace(COUNT, scheme=MassScheme(9, 1)),
    )
    before = [engine.sums(asked) for asked in questions]
    connection.execute("DELETE FROM t WHERE u = 3")
    connection.execute("INSERT INTO t VALUES (100, 'new', 1), (101, 'new', 1)")
    after = [engine.sums(asked) for asked in questions]
    assert [before[0], after[0]] == [{(): (10,)}, {(): (11,)}]
    assert ("new",) not in before[1]
    assert after[1]["new",] == (128, 128)
    assert after[2] == {(): (11,)}
    assert engine.sizes(UnitSizes(T, (), (1,))) == (11, 0)
    engine.close()


def test_duckdb_keeps_what_it_made_of_a_database_that_nobody_can_write_to(tmp_path):
    path = tmp_path / "a[1].duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i AS u, 'a' AS g, 1 AS x FROM range(10) AS r(i)")
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
    connection = duckdb.connect(str(path), read_only=True)
    engine = engines.duckdb({"t": (connection, "t"), "v": (connection, "v")}, units={"t": "u", "v": "u"})
    assert engine.sums(COUNT) == engine.sums(COUNT) == {(): (10,)}
    made = engine._temporary.made
    engine.sums(COUNT)
    assert engine._temporary.made == made
    engine.sums(replace(COUNT, rows=Private("v")))
    assert engine._temporary.made > made
    path.rename(tmp_path / "old.duckdb")
    path.write_bytes(b"another file")
    with pytest.raises(EngineFailed):
        engine.sums(COUNT)
    engine.close()


def test_polars_counts_the_present_rows_of_a_lazy_frame():
    rows = [polars.DataFrame({"u": range(10), "g": ["a"] * 10, "x": [1] * 10})]
    frame = polars.LazyFrame({"one": [1]}).map_batches(lambda _: rows[-1], schema=rows[0].schema)
    engine = engines.polars({"t": frame}, units={"t": "u"})
    assert engine.sums(COUNT) == {(): (10,)}
    rows.append(rows[0].head(7))
    assert engine.sums(COUNT) == {(): (7,)}


def test_postgres_counts_the_present_rows(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS u, 'a' AS g, 1 AS x FROM generate_series(1, 10) AS r(i)"
        )
        engine = engines.postgres(postgres_database, {"t": "t"}, units={"t": "u"})
        assert engine.sums(COUNT) == {(): (10,)}
        connection.execute("DELETE FROM t WHERE u > 7")
        assert engine.sums(COUNT) == {(): (7,)}
        engine.close()


def test_spark_counts_the_present_rows_of_a_table(spark_session, tmp_path):
    rows = "SELECT id AS u, 'a' AS g, 1 AS x FROM range({0})"
    path = str(tmp_path / "t")
    spark_session.sql(rows.format(10)).write.parquet(path)
    spark_session.sql(f"CREATE TABLE present USING parquet LOCATION '{path}'")
    try:
        engine = engines.spark(spark_session, {"t": "present"}, units={"t": "u"})
        assert engine.sums(COUNT) == {(): (10,)}
        # as another session would do it: this one is told nothing
        spark_session.sql(rows.format(7)).write.parquet(path + "2")
        for part in (tmp_path / "t").glob("part*"):
            part.unlink()
        for part in (tmp_path / "t2").glob("part*"):
            part.rename(tmp_path / "t" / part.name)
        assert engine.sums(COUNT) == {(): (7,)}
        engine.close()
    finally:
        spark_session.sql("DROP TABLE present")


def test_frames_of_two_spark_sessions_are_not_mixed(spark_session):
    ours, other = spark_session.range(3), spark_session.newSession().range(3)
    with pytest.raises(BadParameter, match="different Spark sessions"):
        engines.spark(spark_session, {"t": ours, "other": other}, units={"t": "id"})


def test_a_spark_session_that_may_run_a_task_twice_is_refused():
    class Session:
        conf = {"spark.speculation": "true"}  # noqa: RUF012 - as a session has it

    with pytest.raises(EngineFailed, match="speculation") as refused:
        engines.spark(Session(), {}, units={})
    assert refused.value.code == "DP802"


# --- a public table that changes -------------------------------------------------------------------


def test_a_row_that_is_a_unit_stays_one_row_even_if_a_public_key_becomes_two():
    """The table of keys is asked for copies first; what matters is the statement that joins it."""
    points = pa.table({"k": [1, 1, 2, 3], "x": [1, 2, 3, 4], "g": ["a"] * 4})
    codes = pa.table({"k": [1, 1, 2, 3], "label": ["p", "q", "r", None], "b": [True, True, False, None]})
    label, truth = Read("codes", "label", Type(TEXT)), Read("codes", "b", Type("truth"))
    rows = replace(RELATIONS["looked up"], keep=True)
    asked = BoundedSums(rows, (label, truth), (ONE,), RowScheme(1, 1))
    expected = {(None, None): (3,), ("r", False): (1,)}
    units = {"t": engines.ROW}
    bear = {"t": polars.from_arrow(points), "codes": polars.from_arrow(codes)}
    for engine in (
        engines.duckdb({"t": points, "codes": codes}, units=units),
        engines.polars(bear, units=units),
    ):
        engine._has_copies = lambda _: lambda: False  # as if they came a moment later
        assert engine.sums(asked) == expected
        engine.close()


def test_postgres_joins_a_row_with_one_row_of_a_public_table(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 1 AS k, i AS x, 'a' AS g FROM generate_series(1, 3) AS r(i)"
        )
        connection.execute("CREATE TABLE codes (k int, label text, b boolean)")
        connection.execute("INSERT INTO codes VALUES (1, 'p', true), (2, 'q', true), (2, 'r', false)")
    engine = engines.postgres(postgres_database, {"t": "t", "codes": "codes"}, units={"t": engines.ROW})
    engine._has_copies = lambda _: lambda: False
    label, truth = Read("codes", "label", Type(TEXT)), Read("codes", "b", Type("truth"))
    rows = replace(RELATIONS["looked up"], keep=True)
    assert engine.sums(BoundedSums(rows, (label, truth), (ONE,), RowScheme(1, 1))) == {("p", True): (3,)}
    engine.close()
