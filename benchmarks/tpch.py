# SPDX-License-Identifier: Apache-2.0
"""TPC-H with customers as the privacy unit: which queries are answered, how exactly, and in what time.

    python benchmarks/tpch.py --scale 0.05      # makes the data with tpchgen-cli (pip install tpchgen-cli), and asks

Each query is asked twice: at a huge ε, where it must equal plain DuckDB up to the grid of its columns, and at ε = 1. Seconds are
those of the processor in all threads, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from tpch_queries import ANSWERED, AT_MOST, AVERAGE, LINKS, OTHERS, PRIVATE, PUBLIC, REFUSED, columns

import discreet as dp
from discreet.errors import DiscreetError

HUGE = 1e9


def generate(folder: Path, scale: float) -> None:
    """The tables as Parquet files."""
    command = ["tpchgen-cli", "parquet", "-s", str(scale), "--output-dir", str(folder), "--quiet"]
    subprocess.run(command, check=True)


def opened(folder: Path) -> dp.Dataset:
    """The data set."""
    return dp.open(
        {name: folder / f"{name}.parquet" for name in PRIVATE},
        protect=dp.each("c_custkey", at_most=AT_MOST, word="customer", links=LINKS),
        public={name: folder / f"{name}.parquet" for name in OTHERS},
        columns=columns(),
        name="tpch",
    )


def plain(folder: Path) -> Any:
    """The same tables in DuckDB, with the one function of ours that it lacks."""
    connection = duckdb.connect()
    for name in (*PRIVATE, *OTHERS):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")
    connection.execute("CREATE MACRO clamp(x, low, high) AS greatest(least(x, high), low)")
    return connection


def errors(answer: Any, truth: list[tuple[Any, ...]]) -> list[float]:
    """The relative errors of the numbers of a true answer; a missing row is an error of its own."""
    keys = len(answer.keys)
    found = {row[:keys]: row[keys::3] for row in answer.rows()}
    wrong = []
    for row in truth:
        group = tuple(int(part) if isinstance(part, int) else part for part in row[:keys])
        for true, noisy in zip(row[keys:], found.get(group, [None] * len(row[keys:])), strict=True):
            wrong.append(
                1.0 if noisy is None else abs(float(true or 0) - noisy) / max(abs(float(true or 0)), 1)
            )
    return wrong


def main() -> None:
    """Make the data, and ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--data", type=Path, help="a folder with the files, if they are there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.data or Path(made)
        if arguments.data is None:
            generate(folder, arguments.scale)
        ask(folder)


def ask(folder: Path) -> None:
    """Ask all of them."""
    data, truth = opened(folder), plain(folder)
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e12))
    average = truth.execute(AVERAGE).fetchone()[0]
    print(f"{'query':>5} {'huge ε':>9} {'ε = 1':>9} {'seconds':>8} {'plain':>7} {'times':>6}")
    for number, written in ANSWERED.items():
        text = written.format(average=f"{float(average):.2f}")
        before = time.process_time()
        exact = session.sql(text, epsilon=HUGE)
        spent = time.process_time() - before
        before = time.process_time()
        rows = truth.execute(text).fetchall()
        direct = time.process_time() - before
        worst = max(errors(exact, rows), default=0.0)
        noisy = statistics.median(errors(session.sql(text, epsilon=1), rows) or [0.0])
        times = spent / direct
        print(
            f"{number:>5} {worst:>9.1e} {noisy:>9.1e} {spent:>8.2f} {direct:>7.3f} {times:>6.1f}", flush=True
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak of both together: {peak:.0f} MB")
    for number, (refused, instead) in REFUSED.items():
        try:
            session.sql(refused, epsilon=1)
        except DiscreetError as error:
            print(f"{number:>5} refused, {error.code}: {error.what}")
        else:
            sys.exit(f"query {number} was answered")
        session.sql(instead, epsilon=1)
    for number, text in PUBLIC.items():
        spent, before = session.budget().spent_fraction, time.process_time()
        rows = session.sql(text).rows()
        seconds = time.process_time() - before
        if len(rows) != len(truth.execute(text).fetchall()) or session.budget().spent_fraction != spent:
            sys.exit(f"query {number} is not answered exactly and for nothing")
        print(f"{number:>5} public tables only: exact and free, {seconds:.2f} s")


if __name__ == "__main__":
    main()
