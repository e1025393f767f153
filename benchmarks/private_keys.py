# SPDX-License-Identifier: Apache-2.0
"""Private keys, many of them: what the first and the later questions cost in processor time and memory.

    python benchmarks/private_keys.py                           # 1e7 rows, 1e6 keys, 1e6 people, in DuckDB
    python benchmarks/private_keys.py --rows 1e6 --engine polars

Half of the rows are under a thousand frequent keys, the others under a million rare ones, nearly all of which are suppressed. Each
question is COUNT(*) and SUM by key at ε = 1, δ = 1e-6. The file is made in another process, so that the peak is that of the answers.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SQL = "SELECT k, COUNT(*) AS n, SUM(CLAMP(x, 0, 100)) AS s FROM visits GROUP BY k"


def write(path: Path, rows: int) -> None:
    """The file; the data of a benchmark may be repeated, so they are."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    generator = np.random.default_rng(7)
    frequent = generator.zipf(1.3, rows) % 1000
    keys = np.where(generator.random(rows) < 0.5, frequent, generator.integers(0, rows // 10, rows))
    columns = {
        "u": generator.integers(0, rows // 10, rows),
        "k": pc.binary_join_element_wise("key ", pa.array(keys).cast(pa.string()), ""),
        "x": generator.integers(0, 101, rows),
    }
    pq.write_table(pa.table(columns), path)


def ask(path: Path, engine: str, questions: int) -> None:
    """Print what each question costs."""
    import discreet as dp

    data = dp.open(path, protect=dp.each("u", at_most=20), engine=engine)
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=2.0 * questions, delta=1e-4))
    for number in range(1, questions + 1):
        before = time.process_time()
        answer = session.sql(SQL, epsilon=1, delta=1e-6)
        spent = time.process_time() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"question {number}: {spent:6.2f} s CPU, {peak:6.0f} MB peak, {len(answer)} groups", flush=True)


def main() -> None:
    """Make the file, then ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--engine", choices=["duckdb", "polars"], default="duckdb")
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.rows)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        made = [sys.executable, __file__, "--rows", str(options.rows), "--write", str(path)]
        subprocess.run(made, check=True)
        ask(path, options.engine, options.questions)


if __name__ == "__main__":
    main()
