# SPDX-License-Identifier: Apache-2.0
"""Spark on a cluster of two worker processes: what a question costs beside the same aggregation without privacy.

    python benchmarks/spark.py                                  # 1e6 and 1e7 generated rows
    python benchmarks/spark.py --rows 1e6 1e7 1e8 --folder /tmp/rows   # rows that Spark wrote to a folder of Parquet files

Needs Java and `pip install pyspark`. Spark generates the rows (`spark.range`): a hundredth as many people as rows, twenty regions,
an amount from 0 to 100. Seconds are of the wall and of the processors, in the driver and both workers; the second question is the
same again. No row may reach Python: every row that Spark hands over is counted, and more than a few for each group end the run.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as Rows

import discreet as dp

REGIONS = 20
SQL = "SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM sales GROUP BY region"
#: So many rows may reach Python for each group of an answer.
FEW = 4
_TICKS = os.sysconf("SC_CLK_TCK")
_WORK = Path(pyspark.__file__).parent / "work"


@contextmanager
def cluster(workers: int = 2, memory: int = 1024) -> Iterator[SparkSession]:
    """A session whose workers are processes of their own; what they wrote is removed."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": f"{memory}m",
        "spark.sql.shuffle.partitions": str(2 * workers),
    }
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,{memory}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    before = set(_WORK.glob("*"))
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        for folder in set(_WORK.glob("*")) - before:
            shutil.rmtree(folder, ignore_errors=True)


def sales(session: SparkSession, rows: int) -> DataFrame:
    """Generated rows, none of which Python has seen."""
    return session.range(0, rows, 1, 8).selectExpr(
        f"(id * 7919) % {max(rows // 100, 1)} AS person",
        f"CAST((id * 31) % {REGIONS} AS STRING) AS region",
        "(id * 17) % 101 AS amount",
    )


def opened(frame: DataFrame, people_rows: int = 200) -> dp.Dataset:
    """The data set."""
    known = {
        "region": dp.column(values=[str(place) for place in range(REGIONS)]),
        "amount": dp.column(bounds=(0, 100)),
    }
    return dp.open(frame, dp.each("person", at_most=people_rows), columns=known, name="sales")


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """The number of rows of everything that Spark hands to Python; other ways to Python are closed."""
    counts: list[int] = []
    plain = Rows.collect
    closed = ("toLocalIterator", "toPandas", "toArrow", "foreach", "foreachPartition", "take", "head", "tail")
    kept = {name: getattr(Rows, name) for name in closed}

    def collect(frame: Any) -> Any:
        rows = plain(frame)
        counts.append(len(rows))
        return rows

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("rows would reach Python")

    Rows.collect = collect  # type: ignore[method-assign]
    for name in closed:
        setattr(Rows, name, refuse)
    try:
        yield counts
    finally:
        Rows.collect = plain  # type: ignore[method-assign]
        for name, method in kept.items():
            setattr(Rows, name, method)


def executors() -> dict[int, str]:
    """The processes that descend from this one and run Java, by what they are: "driver" or "worker"."""
    parents, words = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(place.name)] = (place / "cmdline").read_text()
        except (OSError, ValueError):
            continue
    ours = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in ours} - ours:
        ours |= more
    java = [one for one in ours if "org.apache.spark" in words.get(one, "") and "java" in words[one]]
    return {one: "worker" if "CoarseGrainedExecutorBackend" in words[one] else "driver" for one in java}


def cpu_seconds() -> float:
    """What Spark's processes have used so far."""
    used = 0
    for one in executors():
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        used += int(fields[11]) + int(fields[12])
    return used / _TICKS


def timed(work: Any) -> tuple[Any, float, float]:
    """What it returns, its wall seconds and its processor seconds."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = work()
    return result, time.perf_counter() - wall, cpu_seconds() - cpu


def main() -> None:
    """Ask at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--rows", nargs="+", type=lambda text: int(float(text)), default=[1_000_000, 10_000_000]
    )
    parser.add_argument("--folder", type=Path, help="write the rows to Parquet files below it first")
    arguments = parser.parse_args()
    with cluster() as session, tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        session.range(1000).groupBy("id").count().count()  # the workers are up
        header = f"{'rows':>9} {'':>8} {'seconds':>8} {'CPU':>8} {'× plain':>8}"
        print(f"{header} {'rows in Python':>15} {'MB of Python':>13}", flush=True)
        for rows in arguments.rows:
            frame = sales(session, rows)
            if arguments.folder:
                frame.write.parquet(f"{place}/{rows}")
                frame = session.read.parquet(f"{place}/{rows}")
            ask(frame, rows)


def ask(frame: DataFrame, rows: int) -> None:
    """Ask twice, beside the aggregation without privacy."""
    query = frame.groupBy("region").agg({"*": "count", "amount": "sum"})
    truth, wall, cpu = timed(query.collect)
    print(f"{rows:9.0e} {'plain':>8} {wall:8.2f} {cpu:8.2f}", flush=True)
    exact = {row["region"]: (row["count(1)"], row["sum(amount)"]) for row in truth}
    with opened(frame) as data, counted_rows() as counts:
        session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e9))
        for number in ("first", "again"):
            before = len(counts)
            answer, took, used = timed(lambda: session.sql(SQL, epsilon=1e6))
            handed = counts[before:]
            if sum(handed) > FEW * REGIONS:
                sys.exit(f"{sum(handed)} rows reached Python")
            for place, n, s in zip(
                answer.groups, answer.columns["n"].values, answer.columns["s"].values, strict=True
            ):
                count, total = exact[place[0]]
                if abs(count - n) > 0.5 or abs(total - s) > 0.5:
                    sys.exit(f"{place[0]}: {n} and {s} instead of {count} and {total}")
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            line = f"{rows:9.0e} {number:>8} {took:8.2f} {used:8.2f} {used / cpu:8.1f}"
            print(f"{line} {sum(handed):15} {peak:13.0f}", flush=True)


if __name__ == "__main__":
    main()
