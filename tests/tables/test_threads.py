# SPDX-License-Identifier: Apache-2.0
"""Several threads ask one data set, and one session, at the same time, and Ctrl-C is heard."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pyarrow as pa
import pytest

import discreet as dp
from discreet.tables import engines
from discreet.tables.algebra.expr import Constant, Read
from discreet.tables.algebra.sums import BoundedSums, Lookup, Private, RowScheme
from discreet.tables.algebra.types import NUMBER, Type
from tests.chance import no_chance

MANY = 16
ONE = Constant(1, Type(NUMBER, 1, 1))
ROWS = pa.table({"p": list(range(300)), **{f"x{n}": [n] * 300 for n in range(MANY)}})
CODES = pa.table({"k": list(range(300)), "z": [5] * 300})


@pytest.fixture(autouse=True)
def impatient():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("make", [engines.duckdb, engines.polars])
def test_each_thread_is_given_the_sums_that_it_asked_for(make):
    """A column that is read for the first time by two threads at once is one column, and its rows go to who asked."""
    for _ in range(3):
        engine = make({"t": ROWS, "codes": CODES}, units={"t": engines.ROW})
        start = threading.Barrier(MANY)

        def ask(number, engine=engine, start=start):
            start.wait()
            x = Read("t", f"x{number}", Type(NUMBER, 0, MANY))
            on = (Read("t", "p", Type(NUMBER, 0, 400)), Read("codes", "k", Type(NUMBER, 0, 400)))
            rows = Lookup(Private("t"), "codes", (on,))
            asked = BoundedSums(rows, (), (ONE, x), RowScheme(1, 1))
            engine.check(asked)
            return tuple(engine.sums(asked).values())

        with ThreadPoolExecutor(MANY) as pool:
            found = list(pool.map(ask, range(MANY)))
        assert found == [((300, 300 * number),) for number in range(MANY)]


@no_chance("each key has one answer, whatever it is")
def test_threads_of_one_session_pay_one_charge_for_one_key(tmp_path):
    data = dp.open(ROWS, dp.each("p", at_most=1), name="visits")
    session = dp.Session(data, dp.Limit.filter(1.0), tmp_path / "a.ledger")
    keys = [f"k{number}" for number in range(4)]

    def ask(key):
        return key, session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1, key=key).value

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, [key for key, _ in product(keys, range(4))]))
    assert len(set(found)) == len(keys), "one answer for each key, whoever asks"
    assert float(session.ledger.spent["epsilon"]) == 0.4


def test_who_presses_ctrl_c_while_duckdb_counts_is_heard(monkeypatch):
    """It is no failure of the engine: nothing is run again with other readers, and nothing is kept as the outcome."""
    data = dp.open(ROWS, dp.each("p", at_most=1), name="visits")
    session = dp.Session(data, dp.Limit.filter(1.0))
    kept, again = data.engine._temporary, []

    class Stopped:
        """As DuckDB says it."""

        def execute(self, _):
            raise RuntimeError("Query interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(kept, "connection", Stopped())
        patch.setattr(kept, "_slower", [lambda: again.append(1)])
        with pytest.raises(KeyboardInterrupt):
            session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1, key="k")
    assert again == []
    session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1, key="k")
    assert float(session.ledger.spent["epsilon"]) == 0.1
