# SPDX-License-Identifier: Apache-2.0
"""Groups that are chosen by their weights alone: the same on every engine, and no other key leaves it."""

from __future__ import annotations

import datetime as dt
import threading

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from discreet import testing
from discreet.errors import EngineFailed
from discreet.tables import engines
from discreet.tables.algebra.engine import groups_from_sums, selected_groups
from discreet.tables.algebra.expr import Read
from discreet.tables.algebra.sums import BoundedSums, GroupScheme, Private
from discreet.tables.algebra.types import DATE, NUMBER, TEXT, Type, days
from discreet.tables.engines import in_duckdb
from discreet.tables.engines.temporary import Temporary
from discreet.tables.plan.selection import gaussian_selection, laplace_selection
from discreet.tables.plan.stage import QueryScope
from tests.tables.small import contribution

DAY = dt.date(2024, 2, 28)
TEXTS = ["b", "a", None, "", "ä", "a' OR 1", "Z", "😀", "\\", "a\nb"]
KEYS = {
    "text": Read("t", "k", Type(TEXT)),
    "day": Read("t", "d", Type(DATE, days(DAY), days(DAY) + 9)),
    "number": Read("t", "x", Type(NUMBER, -5, 5)),
}


def table(rows=600):
    place = np.arange(rows)
    return pa.table(
        {
            "u": pa.array(place * 7 % 83),
            "k": pa.array([TEXTS[i // 3 % len(TEXTS)] for i in place]),
            "d": pa.array([DAY + dt.timedelta(days=int(i) % 7) for i in place]),
            "x": pa.array([None if i % 11 == 0 else int(i) % 7 - 3 for i in place]),
        }
    )


def asked(*keys, most=9, norm=2):
    return BoundedSums(Private("t"), tuple(KEYS[key] for key in keys), (), GroupScheme(most, 4096, norm))


def open_engine(name, unit):
    if name == "connection":
        connection = duckdb.connect()
        connection.register("frame", table())
        connection.execute("CREATE TABLE rows AS SELECT * FROM frame")
        return engines.duckdb({"t": (connection, "rows")}, units={"t": unit})
    return getattr(engines, name)({"t": table()}, units={"t": unit})


ENGINES = pytest.mark.parametrize("name", ["duckdb", "polars", "connection"])
QUESTIONS = [asked("text"), asked("day", "text"), asked("number", norm=1), asked("text", "number", most=7)]


@ENGINES
@pytest.mark.parametrize("unit", ["u", engines.ROW])
@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_weights_and_keys_are_those_of_the_sums(name, unit, question):
    engine = open_engine(name, unit)
    seen = []

    def every_third(weights):
        seen.append(weights)
        return np.arange(weights.size)[::3]

    picked = selected_groups(engine, question, every_third)
    plain = groups_from_sums(engine, question, every_third)
    assert picked == plain
    assert len(picked) > 1
    assert seen[0].dtype == seen[1].dtype == np.int64
    assert seen[0].tolist() == seen[1].tolist()
    sums = engine.sums(question)
    assert all(sums[group][0] == weight for group, weight in zip(picked, seen[0][::3].tolist(), strict=True))


@ENGINES
def test_nothing_chosen_is_no_group_and_order_is_the_caller_s(name):
    engine = open_engine(name, "u")
    assert selected_groups(engine, asked("text"), lambda weights: weights[:0]) == []
    forward = selected_groups(engine, asked("text"), lambda weights: np.arange(weights.size))
    backward = selected_groups(engine, asked("text"), lambda weights: np.arange(weights.size)[::-1])
    assert backward == forward[::-1]
    assert set(forward) == {(text,) for text in TEXTS if (text,) in forward}


def test_no_key_of_another_group_leaves_duckdb(monkeypatch):
    rows = 5000
    place = np.arange(rows)
    texts = pa.array([f"key {i % 1200}" for i in place])
    engine = engines.duckdb({"t": pa.table({"u": place, "k": texts})}, units={"t": "u"})
    fetched = []
    fetch = Temporary.fetch
    monkeypatch.setattr(
        Temporary, "fetch", lambda self, text: (fetched.append(found := fetch(self, text)), found)[1]
    )
    picked = selected_groups(engine, asked("text"), lambda weights: np.array([5, weights.size - 1]))
    assert len(picked) == 2
    assert max(map(len, fetched)) <= 2


def test_weights_are_in_the_order_of_the_numbers_whatever_order_they_come_in():
    class Shuffled:
        def fetch_arrays(self, _):
            return {"g": np.array([3, 1, 2]), "s0": np.array([30, 10, 20])}

        def fetch(self, _):
            return [(3, "c"), (1, "a")]

    table = exp.table_("numbered")
    assert in_duckdb.group_weights(Shuffled(), table).tolist() == [10, 20, 30]
    assert in_duckdb.key_rows(Shuffled(), table, ["k0"], np.array([0, 2])) == [["a"], ["c"]]


def test_groups_are_picked_while_other_questions_push_tables_out():
    engine = open_engine("duckdb", "u")
    started, other_asked = threading.Event(), threading.Event()

    def other():
        started.wait()
        for most in range(2, 9):
            selected_groups(engine, asked("text", most=most), lambda weights: weights[:0])
        other_asked.set()

    thread = threading.Thread(target=other)
    thread.start()

    def choose(weights):
        started.set()
        # the other thread is either waiting for the lock or about to: its tables cannot replace this one
        assert not other_asked.is_set()
        return np.arange(weights.size)

    first = selected_groups(engine, asked("text"), choose)
    thread.join()
    assert len(first) == len(TEXTS)


def test_a_failing_choice_is_not_an_engine_s_failure():
    engine = open_engine("duckdb", "u")
    with pytest.raises(ZeroDivisionError):
        selected_groups(engine, asked("text"), lambda _: 1 // 0)
    assert selected_groups(engine, asked("text"), lambda _: np.arange(2))


@pytest.mark.parametrize("name", ["duckdb", "polars"])
def test_a_file_that_changed_is_not_selected_from(name, tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    pq.write_table(table(), path)
    engine = getattr(engines, name)({"t": str(path)}, units={"t": "u"})
    assert selected_groups(engine, asked("text"), lambda _: np.arange(2))
    pq.write_table(table(900), path)
    with pytest.raises(EngineFailed):
        selected_groups(engine, asked("text"), lambda _: np.arange(2))


@pytest.mark.parametrize(("make", "amount"), [(gaussian_selection, 6), (laplace_selection, 1)])
def test_the_same_bits_name_the_same_groups_on_every_engine(make, amount):
    scope = QueryScope(Private("t"), (KEYS["text"],), contribution(at_most=3, groups=9))
    selection = make(scope, amount, 1e-3)
    named = []
    for name in ("duckdb", "polars", "connection"):
        with testing.seeded(3):
            named.append(selection.draw(open_engine(name, "u")).groups)
    assert named[0] == named[1] == named[2]
    assert 0 < len(named[0]) < len(TEXTS)
