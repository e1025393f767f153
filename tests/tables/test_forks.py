# SPDX-License-Identifier: Apache-2.0
"""A data set that was opened before a fork is answered in the child from the same rows, or refused before the charge."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import EngineFailed
from discreet.tables.engines import forks
from tests.chance import may_fail
from tests.tables import children

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    may_fail(1e-15, "a few dozen numbers, each off by 50 scales of Laplace noise: e^-50 each"),
]

#: What a child cannot have: the threads of Polars, and a connection of somebody else.
REFUSED = ("polars", "polars lazy", "parquet in polars", "duckdb connection")
EXACT = {"total": [20_000], "by ward": [6668, 6668, 6664]}
# Laplace noise of scale 4 / 10 at most: P(|noise| > 20) < e^-50 for each of a few dozen numbers
OFF = 20


def said_of(source, tmp_path, request):
    if source != "postgres":
        return children.run(source, tmp_path)
    address = request.getfixturevalue("postgres_database")
    with psycopg.connect(address) as made:
        made.execute("CREATE TABLE visits (patient_id bigint, ward text, days bigint)")
        with made.cursor().copy("COPY visits FROM STDIN") as copy:
            for row in zip(*children.visits().to_pydict().values(), strict=True):
                copy.write_row(row)
    return children.run(source, tmp_path, address)


def is_near(found, exact):
    return all(abs(one - other) < OFF for one, other in zip(found, exact, strict=True))


@pytest.mark.parametrize("source", children.SOURCES)
def test_a_child_is_answered_or_refused_for_nothing_and_its_parent_goes_on(source, tmp_path, request):
    said = said_of(source, tmp_path, request)
    answer, is_current = said["child"]["said"]
    if source in REFUSED:
        assert answer == {"found": {"code": "DP803", "spent": "nothing"}, "paid": "0"}
        assert not is_current
    else:
        assert is_near(answer["found"], EXACT["by ward"])
        assert answer["paid"] == "10"
        assert is_current
    # somebody else's connection to DuckDB breaks when a child that has inherited it ends: that is theirs
    if source != "duckdb connection":
        assert (said["quiet"]["ended"], said["child"]["ended"]) == (0, 0)
    first, second = said["after"]
    assert is_near(first["found"], EXACT["total"])
    assert second["paid"] == "10"
    assert said["current"]
    again = said["again"]["said"]
    if source in REFUSED:
        assert again == {"code": "DP803", "spent": "nothing"}
    else:
        assert again["paid"] == "10"


def test_a_fork_that_python_did_not_see_is_refused(monkeypatch):
    data = dp.open(pa.table({"p": [1, 2]}), protect=dp.each("p", at_most=1))
    session = dp.Session(data, dp.Limit.filter(1.0))
    monkeypatch.setattr(forks, "_process", os.getpid() + 1)
    with pytest.raises(EngineFailed) as refused:
        session.sql("SELECT COUNT(*) FROM data", epsilon=0.5)
    assert (refused.value.code, refused.value.spent) == ("DP803", "nothing")
    assert len(session.ledger) == 1


def test_a_connection_that_was_seen_before_the_fork_is_refused_whatever_threads_run(monkeypatch):
    with duckdb.connect() as connection:
        forks.refuse_inherited(connection, 1)
        forks.refuse_inherited(connection, 1)
        here = os.getpid()
        monkeypatch.setattr(forks.os, "getpid", lambda: here + 1)
        with pytest.raises(EngineFailed) as refused:
            forks.refuse_inherited(connection, 1)
    assert refused.value.code == "DP803"


def test_threads_that_python_started_do_not_stand_for_those_of_a_connection(monkeypatch):
    with duckdb.connect() as connection:
        monkeypatch.setattr(forks, "_threads", lambda: ["python"] * 3)
        monkeypatch.setattr(forks.threading, "active_count", lambda: 2)
        forks.refuse_inherited(connection, 2)
        with pytest.raises(EngineFailed):
            forks.refuse_inherited(connection, 3)


def test_a_fork_waits_for_a_question_of_another_thread():
    """A connection is let go of between two questions, never within one."""
    data = dp.open(pa.table({"p": [1, 2]}), protect=dp.each("p", at_most=1))
    engine = data.engine
    with engine.lock:
        made = engine._temporary
        engine.sleep()
        assert engine._sleeps
    data.ready()
    assert engine._temporary is not made
    assert not engine._sleeps


def test_what_was_not_ours_is_not_removed(monkeypatch):
    """The folder of a connection goes with the process that made it, and with no other."""
    data = dp.open(pa.table({"p": [1, 2]}), protect=dp.each("p", at_most=1))
    connection = data.engine._temporary.connection
    (folder,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    assert Path(folder).is_dir()
    assert folder.startswith(tempfile.gettempdir())
    process = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: process + 1)
        from discreet.tables.engines.duckdb_open import _remove

        _remove(folder, process)
        assert Path(folder).is_dir()
    data.close()
    assert not Path(folder).exists()


def _spawned(place, ledger, said):
    data = dp.open(place, protect=dp.each("p", at_most=1))
    said.put(dp.Session(data, ledger=ledger).sql("SELECT COUNT(*) FROM visits", epsilon=0.5, key="k").value)


def test_a_spawned_process_opens_for_itself_and_shares_the_ledger(tmp_path):
    (tmp_path / "visits.csv").write_text("p\n1\n2\n")
    place, ledger = str(tmp_path / "visits.csv"), str(tmp_path / "visits.ledger")
    session = dp.Session(dp.open(place, protect=dp.each("p", at_most=1)), dp.Limit.filter(1.0), ledger)
    first = session.sql("SELECT COUNT(*) FROM visits", epsilon=0.5, key="k").value
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    child = context.Process(target=_spawned, args=(place, ledger, said))
    child.start()
    assert said.get(timeout=120) == first
    child.join(120)
    assert child.exitcode == 0
    assert session.ledger.spent["epsilon"] == 0.5
