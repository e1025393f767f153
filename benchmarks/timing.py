# SPDX-License-Identifier: Apache-2.0
"""How much longer an answer takes because of one person: a far id, a million keys, many rows (docs/sharp-edges/timing.md).

    python benchmarks/timing.py

Processor time of the exact part of an answer, the least of five runs, each on a fresh engine: noise takes the same time. Of one
person with three million rows, the first question to an engine and a second one are measured apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from discreet.tables import engines
from discreet.tables.algebra.engine import Engine
from discreet.tables.algebra.expr import Constant, Read
from discreet.tables.algebra.sums import BoundedSums, GroupScheme, Private, RowScheme
from discreet.tables.algebra.types import NUMBER, TEXT, Type

ONE = Constant(1, Type(NUMBER, 1, 1))
X, KEY = Read("t", "x", Type(NUMBER, 0, 100)), Read("t", "g", Type(TEXT))


def table(units: np.ndarray, keys: np.ndarray) -> pa.Table:
    """Rows of some units under some keys."""
    return pa.table({"u": units, "x": units % 100, "g": pa.array(keys).cast(pa.string())})


def total(engine: Engine) -> None:
    """A sum over everybody."""
    engine.sums(BoundedSums(Private("t"), (), (ONE, X), RowScheme(5, 4096)))


def by_key(engine: Engine) -> None:
    """A count by keys that nobody has stated: find the groups, then count in those that were found."""
    found = engine.sums(BoundedSums(Private("t"), (KEY,), (), GroupScheme(1000, 4096, 2)))
    asked = BoundedSums(Private("t"), (KEY,), (ONE,), RowScheme(5, 4096))
    engine.sums(replace(asked, among=tuple(found)))


def again(engine: Engine) -> None:
    """Another sum over everybody, from what was prepared for the first."""
    engine.sums(BoundedSums(Private("t"), (), (ONE, X), RowScheme(7, 4096)))


def least(
    make: Callable[..., Engine],
    rows: pa.Table,
    ask: Callable[[Engine], None],
    first: Callable[[Engine], None] = lambda _: None,
) -> float:
    """Milliseconds of processor time, after a first question that is not counted."""
    best = float("inf")
    for _ in range(5):
        engine = make({"t": rows}, units={"t": "u"})
        first(engine)
        before = time.process_time()
        ask(engine)
        best = min(best, time.process_time() - before)
        engine.close()
    return 1000 * best


def main() -> None:
    """Print both cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    many = parser.parse_args().rows
    place = np.arange(many, dtype=np.int64)
    people, keys = place * 7919 % (many // 10), place * 104_729 % 50
    far = people.copy()
    far[0] = 2**60
    crowd = table(people, keys)
    pairs = {
        "a far id, SUM": (total, crowd, table(far, keys)),
        "a million keys, GROUP BY": (
            by_key,
            crowd,
            table(np.append(people, np.full(many, -1)), np.append(keys, 1000 + place)),
        ),
        "a million rows under one key, GROUP BY": (
            by_key,
            crowd,
            table(np.append(people, np.full(many, -1)), np.append(keys, np.zeros(many, np.int64))),
        ),
    }
    heavy = table(np.append(people, np.full(3 * many, -1)), np.append(keys, np.zeros(3 * many, np.int64)))
    for what, ask, first in (("first", total, lambda _: None), ("second", again, total)):
        before, after = (least(engines.duckdb, rows, ask, first) for rows in (crowd, heavy))
        print(
            f"{f'three million rows, {what} SUM':40} {before:8.0f} ms without, {after:8.0f} ms with one person: {after / before:.2f} times"
        )
    for what, (ask, without, with_one) in pairs.items():
        before, after = (least(engines.duckdb, rows, ask) for rows in (without, with_one))
        print(
            f"{what:40} {before:8.0f} ms without, {after:8.0f} ms with one person: {after / before:.2f} times"
        )


if __name__ == "__main__":
    main()
