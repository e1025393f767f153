# SPDX-License-Identifier: Apache-2.0
"""Whether a source is still as it was opened is asked before a charge: a refusal costs nothing, and a kept answer is shown."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DiscreetError, EngineFailed

TOTAL, UNITS = "SELECT COUNT(*) FROM visits", "SELECT COUNT(DISTINCT p) FROM visits"
ROWS = pa.table({"p": [1, 1, 2, 3], "x": [1, 2, 3, 4]})
FEWER = ROWS.slice(1)


def write_arrow(rows, place):
    with pa.ipc.new_file(place, rows.schema) as file:
        file.write_table(rows)


def write_csv(rows, place):
    place.write_text("p,x\n" + "".join(f"{p},{x}\n" for p, x in zip(*rows.to_pydict().values(), strict=True)))


def write_sqlite(rows, place):
    place.unlink(missing_ok=True)
    made = sqlite3.connect(place)
    made.execute("CREATE TABLE visits (p INTEGER, x INTEGER)")
    made.executemany("INSERT INTO visits VALUES (?, ?)", zip(*rows.to_pydict().values(), strict=True))
    made.commit()
    made.close()


def write_duckdb(rows, place):
    place.unlink(missing_ok=True)
    with duckdb.connect(str(place)) as made:
        made.register("rows", rows)
        made.execute("CREATE TABLE visits AS SELECT * FROM rows")


WRITERS = {
    "visits.parquet": pq.write_table,
    "visits.csv": write_csv,
    "visits.arrow": write_arrow,
    "visits.sqlite": write_sqlite,
    "visits.duckdb": write_duckdb,
}


def replaced(place, write):
    write(FEWER, place.with_name(f"new{place.suffix}"))
    place.with_name(f"new{place.suffix}").replace(place)


def appended(place, _):
    with place.open("ab") as file:
        file.write(b"\n")


def removed(place, _):
    place.unlink()


def unreadable(place, _):
    place.chmod(0)


def opened(source, **more):
    columns = {name: dp.column("integer", bounds=(0, 9)) for name in ("p", "x")}
    return dp.open(source, dp.each("p", at_most=2), name="visits", columns=columns, **more)


def refused(session, text=TOTAL):
    """A question is refused before it is charged."""
    before = len(session.ledger)
    with pytest.raises(EngineFailed) as caught:
        session.sql(text, epsilon=0.1)
    assert (caught.value.code, caught.value.spent) == ("DP803", "nothing")
    assert len(session.ledger) == before
    assert not session.data.is_current()
    return caught.value


def asked(session, text=TOTAL, **more):
    return session.sql(text, epsilon=0.1, **more).value


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("change", [replaced, appended, removed, unreadable])
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_has_changed_is_refused_before_the_charge(tmp_path, name, change, engine):
    if engine == "polars" and name.endswith("duckdb"):
        pytest.skip("a DuckDB file is counted by DuckDB")
    if change is unreadable and os.geteuid() == 0:
        pytest.skip("everything is readable for this user")
    place, write = tmp_path / name, WRITERS[name]
    write(ROWS, place)
    session = dp.Session(opened(place, engine=engine), dp.Limit.filter(1.0), tmp_path / "a.ledger")
    first = asked(session, key="k")
    assert session.data.is_current()
    change(place, write)
    error = refused(session)
    assert name in str(error)
    refused(session, UNITS)
    assert asked(session, key="k") == first, "what was paid for is shown, whatever became of the file"
    with pytest.raises(EngineFailed):
        session.release_batch({"a": (UNITS, {"epsilon": 0.1}), "b": (TOTAL, {"epsilon": 0.1})})
    assert len(session.ledger) == 3
    if change is replaced:  # the fix
        asked(dp.Session(opened(place, engine=engine), ledger=tmp_path / "a.ledger"))


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("change", ["gains", "loses"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_pattern_means_the_files_that_it_meant(tmp_path, change, ending, engine):
    write = WRITERS[f"visits.{ending}"]
    for number in range(2):
        write(ROWS, tmp_path / f"part-{number}.{ending}")
    session = dp.Session(opened(tmp_path / f"*.{ending}", engine=engine), dp.Limit.filter(1.0))
    asked(session)
    (tmp_path / "notes.txt").write_text("beside them")
    assert session.data.is_current()
    if change == "gains":
        write(ROWS, tmp_path / f"part-2.{ending}")
    else:
        (tmp_path / f"part-1.{ending}").unlink()
    refused(session)


def test_rows_that_sqlite_keeps_beside_its_file_are_a_change(tmp_path):
    write_sqlite(ROWS, tmp_path / "visits.sqlite")
    writer = sqlite3.connect(tmp_path / "visits.sqlite")
    writer.execute("PRAGMA journal_mode = WAL")
    session = dp.Session(opened(tmp_path / "visits.sqlite"), dp.Limit.filter(1.0))
    asked(session)
    writer.execute("INSERT INTO visits VALUES (9, 9)")
    writer.commit()
    assert "visits.sqlite" in str(refused(session))
    writer.close()


@pytest.mark.parametrize(
    "frame",
    [ROWS, ROWS.to_pandas(), pl.DataFrame(ROWS), pl.DataFrame(ROWS).lazy()],
    ids=lambda f: type(f).__name__,
)
def test_a_frame_is_always_current(frame):
    session = dp.Session(opened(frame), dp.Limit.filter(1.0))
    asked(session)
    if isinstance(frame, pd.DataFrame):
        frame.loc[0, "x"] = 5
    assert session.data.is_current()
    asked(session)


def test_a_table_of_a_connection_may_change_but_not_go(tmp_path):
    write_duckdb(ROWS, tmp_path / "visits.duckdb")
    connection = duckdb.connect(str(tmp_path / "visits.duckdb"))
    session = dp.Session(opened((connection, "visits")), dp.Limit.filter(1.0))
    connection.execute("INSERT INTO visits VALUES (4, 4)")
    connection.execute("ALTER TABLE visits ADD COLUMN z INTEGER")
    assert session.data.is_current()
    asked(session)
    connection.execute("ALTER TABLE visits ALTER x TYPE VARCHAR")
    assert "visits" in str(refused(session))
    connection.execute("DROP TABLE visits")
    refused(session)


def test_a_server_that_let_go_of_us_is_asked_again_and_a_table_that_is_gone_costs_nothing(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as admin:
        admin.execute("CREATE TABLE visits (p bigint, x bigint)")
        admin.execute("INSERT INTO visits VALUES (1, 1), (1, 2), (2, 3)")
        session = dp.Session(opened(postgres_database, table="visits"), dp.Limit.filter(1.0))
        asked(session)
        others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        assert admin.execute(others).fetchone()[0] > 0
        asked(session)
        assert session.data.is_current()
        admin.execute("ALTER TABLE visits RENAME TO stored; CREATE VIEW visits AS SELECT * FROM stored")
        refused(session)
        admin.execute("DROP VIEW visits")
        refused(session)


def test_a_file_that_changes_while_it_is_counted_is_the_outcome_of_its_charge(tmp_path):
    """Between the check and the end of the reading: the charge stays, and so does what came of it."""
    place = tmp_path / "visits.parquet"
    pq.write_table(ROWS, place)
    plain = opened(place)

    class Slow:
        name = plain.engine.name

        def __getattr__(self, name):
            return getattr(plain.engine, name)

        def sums(self, wanted):
            replaced(place, pq.write_table)
            return plain.engine.sums(wanted)

    session = dp.Session(replace(plain, engine=Slow()), dp.Limit.filter(1.0), tmp_path / "a.ledger")
    with pytest.raises(EngineFailed) as caught:
        asked(session, key="k")
    assert (caught.value.code, caught.value.spent) == ("DP803", "what this answer costs")
    assert float(session.ledger.spent["epsilon"]) == 0.1
    rows = len(session.ledger)
    for again in (session, dp.Session(opened(place), ledger=tmp_path / "a.ledger")):
        with pytest.raises(EngineFailed) as kept:
            asked(again, key="k")
        assert (kept.value.code, kept.value.spent) == ("DP801", "nothing")
    refused(session, UNITS)
    assert len(session.ledger) == rows


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_one_that_was_closed_is_refused_for_nothing(engine):
    session = dp.Session(opened(ROWS, engine=engine), dp.Limit.filter(1.0))
    asked(session)
    session.data.close()
    session.data.close()
    assert "closed" in str(refused(session))


def test_the_choice_of_at_most_is_not_paid_either(tmp_path):
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    data = dp.open(tmp_path / "visits.parquet", dp.each("p", at_most="auto"))
    session = dp.Session(data, dp.Limit.filter(1.0))
    replaced(tmp_path / "visits.parquet", pq.write_table)
    with pytest.raises(DiscreetError) as caught:
        asked(session)
    assert (caught.value.code, caught.value.spent, len(session.ledger)) == ("DP803", "nothing", 1)


def test_files_that_a_spark_frame_has_listed_are_looked_at(tmp_path, spark_session):
    place = tmp_path / "a visit.parquet"
    pq.write_table(ROWS, place)
    session = dp.Session(opened(spark_session.read.parquet(str(place))), dp.Limit.filter(1.0))
    asked(session)
    assert session.data.is_current()
    replaced(place, pq.write_table)
    assert "a visit.parquet" in str(refused(session))
    asked(dp.Session(opened(spark_session.read.parquet(str(place))), dp.Limit.filter(1.0)))
    made = spark_session.range(3).selectExpr("id AS p", "id AS x")
    assert dp.Session(opened(made), dp.Limit.filter(1.0)).data.is_current()
