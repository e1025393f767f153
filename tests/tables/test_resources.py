# SPDX-License-Identifier: Apache-2.0
"""The most memory and threads that an engine may use: kept, or refused where the engine cannot keep them."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables import Dataset
from tests.refusals import assert_refused

ROWS = pa.table({"p": [1, 1, 2, 3], "x": [1, 2, 3, 4]})
PROTECT = dp.each("p", at_most=2)
TOTAL = "SELECT COUNT(*) AS n FROM visits"
#: An answer at this ε is off by less than a half, but for a chance of e^-5e5.
HUGE = 1e6


def opened(source, **limits):
    return dp.open(source, PROTECT, name="visits", **limits)


def total(data):
    return round(dp.Session(data, dp.Limit.filter(1e9)).sql(TOTAL, epsilon=HUGE).value)


def setting(data, name):
    return data.engine._temporary.connection.execute(f"SELECT current_setting('{name}')").fetchone()[0]


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
def test_duckdb_keeps_them(tmp_path, kind):
    source = ROWS
    if kind == "parquet":
        source = tmp_path / "visits.parquet"
        pq.write_table(ROWS, source)
    if kind == "csv":
        source = tmp_path / "visits.csv"
        source.write_text("p,x\n1,1\n1,2\n2,3\n3,4\n")
    with opened(source, memory="512MiB", threads=1) as data:
        assert (setting(data, "memory_limit"), setting(data, "threads")) == ("512.0 MiB", 1)
        assert total(data) == 4
        data.engine.sleep()  # as before a fork
        assert total(data) == 4
        assert (setting(data, "memory_limit"), setting(data, "threads")) == ("512.0 MiB", 1)


def test_one_of_them_leaves_the_other_alone():
    with opened(ROWS) as free, opened(ROWS, threads=1) as few, opened(ROWS, memory="1.5 gb") as small:
        assert setting(few, "memory_limit") == setting(free, "memory_limit")
        assert setting(small, "threads") == setting(free, "threads")
        assert setting(small, "memory_limit") == "1.3 GiB"


def test_a_question_that_needs_more_is_written_to_disk():
    """Three million pairs of unit and group take about 200 MB in memory."""
    count = 3_000_000
    rows = pa.table({"p": pa.array(range(count)), "x": pa.array([number % 1000 for number in range(count)])})
    columns = {"x": dp.column(values=range(1000))}
    with opened(rows, memory="128MB", threads=1, columns=columns) as data:
        session = dp.Session(data, dp.Limit.filter(1e9))
        answer = session.sql("SELECT x, COUNT(*) AS n FROM visits GROUP BY x", epsilon=HUGE)
        assert {round(number) for number in answer.columns["n"].values} == {count // 1000}


def test_a_description_states_them_and_says_them_again(tmp_path):
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    place = tmp_path / "visits.toml"
    place.write_text(
        '[dataset]\nsource = "visits.parquet"\nunit = "p"\nmemory = "256MB"\nthreads = 1\n[limits]\nrows_per_unit = 2\n'
    )
    with dp.open(place) as data:
        assert setting(data, "threads") == 1
        assert data.view("again", "SELECT * FROM visits").resources == data.resources
        written = data.to_toml()
    assert 'memory = "256MB"\nthreads = 1\n' in written
    assert Dataset.from_toml(written).to_toml() == written
    with opened(tmp_path / "visits.parquet") as free:
        assert "memory" not in free.to_toml()
        # they are no part of what is promised, so a ledger does not care
        assert free.public_description()["tables"] == data.public_description()["tables"]
    refused = assert_refused("DP107", dp.open, place, memory="1GB")
    assert "visits.toml" in refused.fix


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ('memory = "lots"', 'memory = "1GB"'),
        ("memory = 5", 'memory = "1GB"'),
        ("memory = true", 'memory = "1GB"'),
        ('threads = "two"', "threads = 2"),
        ("threads = 0", "threads = 2"),
        ("threads = 5000", "threads = 2"),
    ],
)
def test_a_wrong_one_in_a_description_is_refused(tmp_path, line, fix):
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    place = tmp_path / "visits.toml"
    text = '[dataset]\nsource = "visits.parquet"\nunit = "p"\n{}\n[limits]\nrows_per_unit = 2\n'
    place.write_text(text.format(line))
    assert assert_refused("DP403", dp.open, place).fix == fix
    place.write_text(text.format(fix))
    dp.open(place).close()


@pytest.mark.parametrize(
    "memory", ["1", "GB", "10MB", "-1GB", "1GBs", "nan GB", "1e3GB", "0GB", "1 000 MB", "1PB"]
)
def test_what_is_no_size_of_memory_is_refused(memory):
    assert assert_refused("DP104", opened, ROWS, memory=memory).fix == 'memory="1GB"'
    opened(ROWS, memory="1GB").close()


@pytest.mark.parametrize(
    "threads", [0, -1, 1025, 10**30, True, 2.5, float("nan"), float("inf"), "2"], ids=repr
)
def test_what_is_no_number_of_threads_is_refused(threads):
    with pytest.raises(DiscreetError) as caught:
        opened(ROWS, threads=threads)
    assert caught.value.code in {"DP102", "DP103", "DP104"}
    assert caught.value.spent == "nothing"


@pytest.mark.parametrize(
    "limits", [{"memory": "1GB"}, {"threads": 2}, {"memory": "1GB", "threads": 2}], ids=str
)
def test_polars_cannot_keep_them_and_duckdb_can(limits):
    polars = pytest.importorskip("polars")
    error = assert_refused("DP107", opened, polars.DataFrame(ROWS), **limits)
    assert all(name in error.what for name in limits)
    assert 'engine="duckdb"' in error.fix
    with opened(polars.DataFrame(ROWS), **limits, engine="duckdb") as data:
        assert total(data) == 4
    assert_refused("DP107", opened, ROWS, **limits, engine="polars")


@pytest.mark.parametrize("limits", [{"memory": "1GB"}, {"threads": 2}], ids=str)
def test_a_database_of_duckdb_that_is_open_keeps_its_settings(tmp_path, limits):
    place = tmp_path / "visits.duckdb"
    with duckdb.connect(str(place)) as made:
        made.register("rows", ROWS)
        made.execute("CREATE TABLE visits AS SELECT * FROM rows")
    error = assert_refused("DP107", opened, place, **limits)
    line = error.fix.partition("connect:  ")[2].partition(",  and")[0]
    names = {"duckdb": duckdb}
    exec(line, names)
    assert 'dp.open((connection, "visits")' in error.fix
    with opened((names["connection"], "visits")) as data:
        assert total(data) == 4
        wanted = ("953.6 MiB",) if "memory" in limits else (2,)
        asked = "memory_limit" if "memory" in limits else "threads"
        assert names["connection"].execute(f"SELECT current_setting('{asked}')").fetchone() == wanted
    assert "duckdb.connect" in assert_refused("DP107", opened, (names["connection"], "visits"), **limits).fix
    names["connection"].close()


def test_postgres_limits_processes_and_not_memory(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as admin:
        admin.execute("CREATE TABLE visits (p bigint, x bigint)")
        admin.execute("INSERT INTO visits VALUES (1, 1), (1, 2), (2, 3)")
    error = assert_refused("DP107", opened, postgres_database, table="visits", memory="1GB", threads=2)
    assert 'memory="1GB"' in error.what
    assert "threads" not in error.what
    assert "leave memory out" in error.fix
    for threads, helpers in ((1, "0"), (3, "2")):
        with opened(postgres_database, table="visits", threads=threads) as data:
            shown = data.engine._fetch("SHOW max_parallel_workers_per_gather")
            assert [tuple(row) for row in shown] == [(helpers,)]
            assert total(data) == 3


def test_spark_has_those_of_its_session(spark_session):
    frame = spark_session.createDataFrame([(1, 1), (1, 2), (2, 3)], "p long, x long")
    error = assert_refused("DP107", opened, frame, memory="1GB", threads=2)
    assert "leave them out" in error.fix
    with opened(frame) as data:
        assert total(data) == 3
