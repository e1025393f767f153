# SPDX-License-Identifier: Apache-2.0
"""Visits with a day, small enough to count by hand, and sessions about them."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections import defaultdict

import polars as pl

import discreet as dp

START = dt.date(2026, 1, 5)
BOUNDS = (dt.date(2026, 1, 1), dt.date(2029, 12, 31))
#: Bounded and unknown keys, with the same values.
WARDS = ("A", "B", "C")


def day(number: int) -> dt.date:
    return START + dt.timedelta(days=number)


def visits(rows: int = 300, people: int = 60, days: int = 84, seed: int = 1) -> pl.DataFrame:
    """Rows in the order in which they were written: some people come often, most do not."""
    random.seed(seed)
    return pl.DataFrame(
        {
            "id": [int(people * random.random() ** 2) for _ in range(rows)],
            "ward": [random.choice(WARDS) for _ in range(rows)],
            "day": [day(random.randrange(days)) for _ in range(rows)],
            "cost": [random.randrange(50) for _ in range(rows)],
        },
        schema={"id": pl.Int64, "ward": pl.String, "day": pl.Date, "cost": pl.Int64},
    )


def data(frame: pl.DataFrame | None = None, *, at_most=3, keys=True, relation="add-remove", **more):
    columns = {"day": dp.column("date", bounds=BOUNDS), "cost": dp.column(bounds=(0, 40))}
    if keys:
        columns["ward"] = dp.column(values=list(WARDS))
    protect = dp.each("id", at_most=at_most, relation=relation)
    return dp.open({"visits": visits() if frame is None else frame}, protect=protect, columns=columns | more)


def session(frame=None, *, ledger=":memory:", epsilon=1e6, delta=1e-5, **words):
    return dp.Session(
        data(frame, **words), limit=dp.Limit.filter(epsilon=epsilon, delta=delta), ledger=ledger
    )


def kept(frame: pl.DataFrame, bound: dp.streams.Participation, days: int = 7) -> list[tuple]:
    """The rows that a bound keeps, counted in plain Python: (period, ward, cost)."""
    by_unit = defaultdict(list)
    for who, ward, when, cost in frame.rows():
        if when >= START:
            by_unit[who].append((when, cost, ward))
    found = []
    for unordered in by_unit.values():
        # Rows of one day are ordered by the columns that the question reads.
        rows = sorted(unordered, key=lambda row: row[0])
        period = {row[0]: (row[0] - START).days // days for row in rows}
        if bound.periods is None:
            found += [(period[row[0]], row[2], row[1]) for row in rows[: bound.rows]]
            continue
        active = sorted(set(period.values()))
        far = [
            here for before, here in itertools.pairwise([-(10**6), *active]) if here - before >= bound.apart
        ][: bound.periods]
        for here in far:
            own = [row for row in rows if period[row[0]] == here]
            found += [(here, row[2], row[1]) for row in own[: bound.rows]]
    return found
