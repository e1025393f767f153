# SPDX-License-Identifier: Apache-2.0
"""Many tables at once: the error against separate questions at the same cost, and what a release costs in time and memory.

    python benchmarks/workloads.py              # plans, the adult data set, ranges
    python benchmarks/workloads.py --large      # and 1e7 rows of 1e6 people, a cube of three keys

Errors are root mean squares over the tables of the standard deviation of a cell, from the plan and from one release. Processor
time and peak memory are those of the release, with its answer. Separate questions have an equal part of the budget each.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["DISCREET_CACHE"] = ""

import numpy as np

import discreet as dp
from discreet.tables.answer.cube import CubeAnswer
from discreet.tables.workloads.objectives import plan_noise
from discreet.tables.workloads.residuals import ResidualSystem
from discreet.tables.workloads.strategies import gram_of, optimal_strategy

#: The keys of the data set with which Xiao, He, Zhang and Kifer (2023) compare planners, and their errors at 2ρ = 1.
PAPER = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
PAPER_ERRORS = {"1-way": 3.047, "2-way": 6.359, "3-way": 10.515, "at most 3-way": 10.665}
RHO = 0.02436
#: Thirteen columns of adult in 170 values.
BINS = """(SELECT CLAMP(age, 17, 90) DIV 5 AS age, COALESCE(workclass, '?') AS workclass, education, marital_status,
 COALESCE(occupation, '?') AS occupation, relationship, race, sex, BUCKET(capital_gain, {gains}) AS capital_gain,
 BUCKET(capital_loss, {losses}) AS capital_loss, hours_per_week DIV 5 AS hours,
 COALESCE(native_country, '?') AS country, over_50k FROM adult) AS a"""


def timed(work: Callable[[], object]) -> tuple[object, float]:
    """What some work returns, and its processor time."""
    before = time.process_time()
    return work(), time.process_time() - before


def orders(keys: int, order: str) -> tuple[tuple[int, ...], ...]:
    """The sets of "2-way" or of "at most 3-way"."""
    largest = int(order.split("-", maxsplit=1)[0].rsplit(maxsplit=1)[-1])
    least = 0 if order.startswith("at most") else largest
    return tuple(some for size in range(least, largest + 1) for some in combinations(range(keys), size))


def plans() -> None:
    """The planner on the schema of the paper."""
    for order, stated in PAPER_ERRORS.items():
        system = ResidualSystem(PAPER, orders(len(PAPER), order))
        for objective in ("each", "cells", "worst"):
            plan, seconds = timed(lambda system=system, objective=objective: plan_noise(system, objective))
            variances = plan.table_variances()
            cells = {keys: float(system.cells(keys)) for keys in system.sets}
            error = (sum(cells[keys] * variances[keys] for keys in cells) / sum(cells.values())) ** 0.5
            anchor = f" (published {stated})" if objective == "cells" else ""
            worst = max(variances[keys] for keys in system.sets)
            print(
                f"plan {order:14} {objective:5}: {error:8.3f}{anchor}, worst variance {worst:8.3f}, {seconds:.3f} s CPU"
            )


def ranges() -> None:
    """The strategies for ordered keys, and what no strategy can beat."""
    for kind in ("prefixes", "ranges"):
        for leaves in (16, 64, 74, 256, 1024):
            strategy, seconds = timed(
                lambda kind=kind, leaves=leaves: optimal_strategy(gram_of({kind: 1.0}, leaves))
            )
            excess = (strategy.value / strategy.lower_bound) ** 0.5 - 1
            print(
                f"{kind:8} n = {leaves:4}: {strategy.value**0.5:.3f}, {excess:.3%} above the dual bound, {seconds:.2f} s CPU"
            )


def deviations(cube: CubeAnswer, column: str) -> float:
    """The root mean square over the tables that were asked for of the deviation of a cell."""
    tables = cube.cube_tables
    ((weight, released),) = tables.numbers(column)
    variances = [released.table_variance(keys) * float(weight) ** 2 for keys in tables.shape.system.sets]
    return (sum(variances) / len(variances)) ** 0.5


def measured(cube: CubeAnswer, column: str, other: CubeAnswer) -> float:
    """The same from the numbers, against a release with next to no noise."""
    tables = cube.cube_tables
    squares = [
        float(np.square(tables.table(column, keys) - other.cube_tables.table(column, keys)).mean())
        for keys in tables.shape.system.sets
    ]
    return (sum(squares) / len(squares)) ** 0.5


def adult() -> None:
    """A cube of four keys, and all tables of up to three of thirteen columns."""
    data = dp.open(dp.data.path("adult.toml"))
    names = ["sex", "race", "education", "over_50k"]
    session = dp.Session(data, limit=dp.Limit.filter(rho=1e7, delta=0.5))
    exact = session.release(data.cube(*names).count(), rho=1e6)
    for label, cost in (("ρ = 0.02436", {"rho": RHO}), ("ε = 1, δ = 1e-6", {"epsilon": 1.0, "delta": 1e-6})):
        cube, seconds = timed(lambda cost=cost: session.release(data.cube(*names).count(), **cost))
        noise = cube.columns["count"].noise.split()[0]
        print(
            f"adult cube of 4 keys, {label}: {deviations(cube, 'count'):.2f} planned, {measured(cube, 'count', exact):.2f} measured,"
            f" {seconds:.2f} s CPU, {noise}; 16 separate questions with Gaussian noise: {(16 / (2 * RHO)) ** 0.5:.2f}"
        )
    gains = ", ".join(str(500 * 2**at // 8) for at in range(1, 20))
    losses = ", ".join(str(200 + 400 * at) for at in range(10))
    columns = "age, workclass, education, marital_status, occupation, relationship, race, sex, capital_gain, capital_loss"
    columns += ", hours, country, over_50k"
    for objective in ("each", "cells"):
        sets = ", ".join(f"MARGINALS({order}, {columns})" for order in range(4))
        text = (
            f"SELECT {columns}, COUNT(*) AS n FROM {BINS.format(gains=gains, losses=losses)} GROUP BY GROUPING SETS ({sets})"
            f" WITH (objective = '{objective}')"
        )
        cube, seconds = timed(lambda text=text: session.sql(text, rho=RHO))
        tables = cube.cube_tables
        ((weight, released),) = tables.numbers("n")
        cells = {keys: tables.shape.system.cells(keys) for keys in tables.shape.system.sets}
        squares = sum(count * released.table_variance(keys) for keys, count in cells.items())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"adult, {len(cells)} tables of up to 3 of 13 columns, {len(cube)} rows, {objective}: {deviations(cube, 'n'):.2f} over tables,"
            f" {float(weight) * (squares / sum(cells.values())) ** 0.5:.2f} over cells, {seconds:.2f} s CPU, {peak:.0f} MB peak"
        )


def write(path: Path, rows: int) -> None:
    """A file with ten rows for each person."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(7)
    columns = {
        "u": generator.integers(0, rows // 10, rows),
        "a": generator.integers(0, 2, rows),
        "b": generator.integers(0, 5, rows),
        "c": generator.integers(0, 16, rows),
    }
    pq.write_table(pa.table(columns), path)


def large(rows: int) -> None:
    """A cube of three keys of a large file, where people have several rows."""
    bounds = {"a": (0, 1), "b": (0, 4), "c": (0, 15)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        subprocess.run([sys.executable, __file__, "--rows", str(rows), "--write", str(path)], check=True)
        columns = {name: dp.column(bounds=ends) for name, ends in bounds.items()}
        # Of ten rows in the mean, few people have more than 20, and most have more than 8.
        for bound in (20, 8):
            data = dp.open(path, protect=dp.each("u", at_most=bound), columns=columns)
            session = dp.Session(data, limit=dp.Limit.filter(rho=10))
            for number in (1, 2):
                cube, seconds = timed(
                    lambda session=session: session.sql(
                        "SELECT COUNT(*) FROM visits GROUP BY CUBE (a, b, c)", rho=RHO
                    )
                )
                print(
                    f"{rows} rows, {rows // 10} people, at_most={bound}, cube of 3 keys, question {number}: {seconds:.2f} s CPU,"
                    f" {cube.total.value / rows:.1%} of the rows count"
                )


def main() -> None:
    """Everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.rows)
        return
    plans()
    ranges()
    adult()
    if options.large:
        large(options.rows)


if __name__ == "__main__":
    main()
