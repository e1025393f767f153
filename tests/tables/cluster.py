# SPDX-License-Identifier: Apache-2.0
"""Spark with workers in processes of their own: run as  python -m tests.tables.cluster WHAT FOLDER.

    rows      a million generated rows, and the same from a folder of Parquet files
    killed    a worker dies while rows are stored; both die after that
    connect   a session that speaks to a server (Spark Connect)

What came of it is printed as JSON. It runs in a process of its own, because a process has one Spark context.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

import discreet as dp
from discreet.errors import DiscreetError
from tests.processes import PATIENCE, ROOT, run_module

sys.path.insert(0, str(ROOT / "benchmarks"))
import spark  # type: ignore[import-not-found]

ROWS = 1_000_000


def run(what: str, folder: Path) -> dict[str, Any]:
    """What came of it."""
    done = run_module("tests.tables.cluster", what, str(folder))
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def answer_of(session: dp.Session, **more: Any) -> dict[str, list[int]]:
    """The rounded numbers of the question."""
    answer = session.sql(spark.SQL, epsilon=1e6, **more)
    numbers = zip(answer.columns["n"].values, answer.columns["s"].values, strict=True)
    return {group[0]: [round(n), round(s)] for group, (n, s) in zip(answer.groups, numbers, strict=True)}


def truth_of(frame: Any) -> dict[str, list[int]]:
    """The same without privacy."""
    rows = frame.groupBy("region").agg({"*": "count", "amount": "sum"}).collect()
    return {row["region"]: [row["count(1)"], row["sum(amount)"]] for row in rows}


def rows(folder: Path) -> dict[str, Any]:
    """Whether answers are right, and how many rows reached Python."""
    said = {}
    with spark.cluster() as session:
        generated = spark.sales(session, ROWS)
        generated.write.parquet(str(folder / "sales"))
        for name, frame in (
            ("generated", generated),
            ("parquet", session.read.parquet(str(folder / "sales"))),
        ):
            truth = truth_of(frame)
            with spark.opened(frame) as data, spark.counted_rows() as counts:
                asked = dp.Session(data, dp.Limit.filter(1e9))
                said[name] = {"right": answer_of(asked) == truth, "rows": sum(counts)}
        said["workers"] = list(spark.executors().values()).count("worker")
    return said


def _workers() -> list[int]:
    return [one for one, kind in spark.executors().items() if kind == "worker"]


def _kill(workers: list[int]) -> int:
    for one in workers:
        os.kill(one, signal.SIGKILL)
    return len(workers)


def killed(folder: Path) -> dict[str, Any]:
    """What came of a question during which workers died, and what was paid for it."""
    said = {}
    with spark.cluster() as session:
        frame = spark.sales(session, ROWS)
        truth = truth_of(frame)
        with spark.opened(frame) as data:
            asked = dp.Session(data, dp.Limit.filter(1e9), folder / "a.ledger")
            said["while stored"] = _question(asked, truth, lambda: _while_stored(session))
            engine = data.engine
            fetch = engine._fetch

            def after_both_died(statement: str) -> Any:
                _kill(_workers())
                return fetch(statement)

            def forget_rows() -> int:
                engine._fetch = after_both_died
                return 0

            said["after that"] = _question(asked, truth, forget_rows)
            engine._fetch = fetch
            said["later"] = _question(asked, truth, lambda: 0)
    return said


def _question(asked: dp.Session, truth: Any, disturb: Any) -> dict[str, Any]:
    """One question while something happens: what came of it, and the charges that it left."""
    before, spent = len(asked.ledger), float(asked.ledger.spent["epsilon"])
    key = f"question {before}"
    happened: list[int] = []
    thread = threading.Thread(target=lambda: happened.append(disturb()))
    thread.start()
    try:
        came = "right" if answer_of(asked, key=key) == truth else "wrong"
    except DiscreetError as error:
        came = f"{error.code} {error.spent}"
    thread.join()
    charges = len(asked.ledger) - before
    # Asked again under its key it costs nothing more, whatever came of it.
    try:
        again = "right" if answer_of(asked, key=key) == truth else "wrong"
    except DiscreetError as error:
        again = f"{error.code} {error.spent}"
    return {
        "killed": happened[0],
        "came": came,
        "again": again,
        "charges": charges,
        "rows": len(asked.ledger) - before,
        "epsilon": float(asked.ledger.spent["epsilon"]) - spent,
    }


def _while_stored(session: Any) -> int:
    """Kill one worker as soon as Spark has begun to work."""
    tracker, end = session.sparkContext.statusTracker(), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if tracker.getActiveJobsIds():
            return _kill(_workers()[:1])
    return 0


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A server of Spark Connect, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": 2,
    }
    words = [home / "bin" / "spark-submit", "--master", "local[2]"]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        words += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*words, "spark-internal"], env=environment, stdout=log, stderr=log)
    try:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                threading.Event().wait(0.2)
            else:
                break
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def connect(folder: Path) -> dict[str, Any]:
    """Whether the questions of a remote session are answered rightly, and what it leaves on the server."""
    from pyspark.sql.connect.session import SparkSession

    with server(folder) as address:
        session = SparkSession.builder.remote(address).create()
        frame = spark.sales(session, 10_000)
        truth = truth_of(frame)
        with spark.opened(frame) as data:
            asked = dp.Session(data, dp.Limit.filter(1e9))
            right = answer_of(asked) == truth
            people = round(asked.sql("SELECT COUNT(DISTINCT person) AS n FROM sales", epsilon=1e6).value)
            session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
            current = data.is_current()
        left = [table.name for table in session.catalog.listTables()]
        # At the end of the process it would ask the server, which is gone, for minutes.
        session.stop()
    return {"right": right, "people": people, "current": current, "left": left}


if __name__ == "__main__":
    print(json.dumps({"rows": rows, "killed": killed, "connect": connect}[sys.argv[1]](Path(sys.argv[2]))))
