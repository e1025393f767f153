# SPDX-License-Identifier: Apache-2.0
"""Threads fork while others charge a ledger and ask a data set: nobody waits for ever, and nothing is lost or spent twice.

The storm runs in a process of its own, so that forks copy nothing of pytest:  python -m tests.test_forks_together FOLDER
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import forks, privacy
from discreet.ledger import Ledger, Limit
from tests.chance import no_chance
from tests.processes import PATIENCE, run_module

FORKS = 5
TINY, PIECE = privacy.pure(1e-6), Fraction(1, 10**6)
COUNT = "SELECT COUNT(*) FROM visits"


def storm(folder: Path) -> None:  # noqa: C901 - one storm
    """Forks from three threads, while two charge and two ask; every child charges and asks, and every thread must end."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)  # whoever waits for ever is shown, and ends
    people = [row // 4 for row in range(4_000)]
    pq.write_table(pa.table({"patient_id": people, "days": [1] * len(people)}), folder / "visits.parquet")
    data = dp.open(folder / "visits.parquet", protect=dp.each("patient_id", at_most=4), engine="duckdb")
    session = dp.Session(data, limit=Limit.filter(epsilon=10**6), ledger=str(folder / "asked.ledger"))
    ledger = Ledger(folder / "charged.ledger", limit=Limit.filter(epsilon=1))
    over, failed = threading.Event(), []
    counts = {"charges": 0, "questions": 0, "ended": []}
    counting = threading.Lock()

    def both() -> None:
        ledger.charge(TINY)
        session.sql(COUNT, epsilon=1)

    def fork() -> None:
        for _ in range(FORKS):
            process = os.fork()
            if not process:
                _leave(both)
            _, status = os.waitpid(process, 0)
            counts["ended"].append(os.waitstatus_to_exitcode(status))

    def until_over(work, name) -> None:
        while not over.is_set():
            work()
            with counting:
                counts[name] += 1

    def kept(work, *about) -> None:
        try:
            work(*about)
        except BaseException:  # noqa: BLE001 - whatever it is, it is said
            failed.append(traceback.format_exc())
            over.set()

    forkers = [threading.Thread(target=kept, args=(fork,)) for _ in range(3)]
    workers = [
        threading.Thread(target=kept, args=(until_over, work, name))
        for work, name in (
            (lambda: ledger.charge(TINY), "charges"),
            (lambda: session.sql(COUNT, epsilon=1), "questions"),
        )
        for _ in range(2)
    ]
    for thread in (*forkers, *workers):
        thread.start()
    for thread in forkers:
        thread.join()
    over.set()
    for thread in workers:
        thread.join()
    books = (ledger, session.ledger)
    spent = [str(book.spent["epsilon"]) for book in books]
    print(
        json.dumps(
            counts | {"failed": failed, "spent": spent, "intact": [book.verify().intact for book in books]}
        )
    )


def _leave(work) -> None:
    """The end of a child: 0, if it could do its work; it is ended if it waits for ever."""
    signal.alarm(int(PATIENCE / 2))  # faulthandler would wait here for its thread, which is not in a child
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent hears of it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@no_chance("asks how much was charged, never what was answered")
def test_threads_fork_while_others_charge_a_ledger_and_ask_a_data_set(tmp_path):
    done = run_module("tests.test_forks_together", str(tmp_path))
    said = json.loads(done.stdout)
    assert said["failed"] == []
    assert said["ended"] == [0] * (3 * FORKS), done.stderr
    assert said["intact"] == [True, True]
    children = len(said["ended"])
    assert Fraction(said["spent"][0]) == (said["charges"] + children) * PIECE
    assert Fraction(said["spent"][1]) == said["questions"] + children


IMPORTS = """
import sys
import discreet as dp, pyarrow as pa
rows = pa.table({"p": [1, 2, 1], "w": ["a", "b", "a"], "d": [1.0, 2.0, 3.0]})
one = dp.open({"t": rows}, protect=dp.each("p", at_most=2), engine=sys.argv[1], columns={"d": dp.column(bounds=(0, 5))})
session = dp.Session(one, limit=dp.Limit.filter(100, 1e-3))
before = set(sys.modules)
for what in ("COUNT(*)", "AVG(d), SUM(d)", "MEDIAN(d)", "VARIANCE(d)", "COUNT(DISTINCT p)"):
    for text in (f"SELECT {what} FROM t", f"SELECT w, {what} FROM t GROUP BY w"):
        session.preview(text, epsilon=1, delta=1e-6)
        session.sql(text, epsilon=1, delta=1e-6, key=text)
session.sql("SELECT COUNT(*) FROM t", error="±50")
session.release_batch({"all": ("SELECT COUNT(*) FROM t", {"epsilon": 1})})
session.budget()
print(*sorted(name for name in set(sys.modules) - before if name.startswith("discreet")))
"""


@no_chance("asks what is imported, whatever is drawn")
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_question_imports_nothing(engine):
    """A fork while a thread imports leaves the child waiting for that import for ever."""
    words = [sys.executable, "-c", IMPORTS, engine]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


class Busy:
    """Something that is hardly ever free: whoever holds it holds it longer than a fork waits at first."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.slept = 0

    def sleep(self) -> None:
        self.slept += 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_waits_longer_where_it_waited_in_vain(monkeypatch):
    waited = []

    class Lock:
        """Is free for whoever waits half a second for it."""

        def acquire(self, timeout=-1):
            waited.append(timeout)
            return timeout > 0.5

        def release(self):
            pass

    busy = Busy()
    busy.lock = Lock()
    monkeypatch.setattr(forks, "_all", {busy})
    monkeypatch.setattr(forks.time, "sleep", lambda _: None)
    forks._before_fork()
    forks._after_fork()
    assert waited == sorted(set(waited))
    assert waited[0] < 0.1
    assert waited[-1] > 0.5
    assert busy.slept == 1


if __name__ == "__main__":
    storm(Path(sys.argv[1]))
