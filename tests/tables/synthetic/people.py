# SPDX-License-Identifier: Apache-2.0
"""Small tables of people that copies are made of."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa

import discreet as dp

COLUMNS = {
    "sex": dp.column(values=["F", "M"]),
    "ward": dp.column(values=["east", "north", "south"]),
    "days": dp.column(bounds=(0, 60)),
    "cost": dp.column(bounds=(0, 1)),
    "born": dp.column(bounds=(date(1950, 1, 1), date(1989, 12, 31))),
    "smokes": dp.column(),
}


def rows(count):
    """Rows in which the ward follows from the sex, and the days from the ward, in most cases."""
    found = {
        "id": list(range(count)),
        "sex": ["FM"[n % 2] for n in range(count)],
        "ward": [("east", "north", "south")[(n % 2) + (n % 7 == 0)] for n in range(count)],
        "days": [10 * (n % 2) + n % 5 for n in range(count)],
        "cost": [(n % 10) / 10 for n in range(count)],
        "born": [date(1950, 1, 1) + timedelta(days=(37 * n) % 14_600) for n in range(count)],
        "smokes": [None if n % 11 == 0 else n % 3 == 0 for n in range(count)],
    }
    types = {"sex": pa.string(), "ward": pa.string(), "days": pa.int64(), "cost": pa.float64()}
    types |= {"id": pa.int64(), "born": pa.date32(), "smokes": pa.bool_()}
    return pa.table(list(found.values()), schema=pa.schema([(name, types[name]) for name in found]))


def opened(count=400, protect=None, columns=COLUMNS, table=None):
    """A data set of so many people with one row each, or of another table."""
    source = rows(count) if table is None else table
    described = {name: column for name, column in columns.items() if name in source.column_names}
    return dp.open(source, protect or dp.each("id", at_most=1), columns=described, name="people")


def session_on(data, **limit):
    return dp.Session(data, limit=dp.Limit.filter(**(limit or {"epsilon": 20, "delta": 1e-5})))
