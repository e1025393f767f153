# SPDX-License-Identifier: Apache-2.0
"""Questions about dates and moments, as people write them who have asked databases before."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import discreet as dp
from tests.mistakes.clinic import PROTECT, Asked, watched
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

COUNT = "SELECT COUNT(*) FROM visits"
ROWS = [
    {
        "patient_id": 880_001 + person,
        "came_on": dt.date(2031, 5, 1 + person % 28),
        "left_on": dt.date(2031, 6, 1 + person % 28),
        "seen_at": dt.datetime(2031, 5, 1 + person % 28, 13, 7, tzinfo=dt.UTC),
    }
    for person in range(60)
]
COLUMNS = {
    "left_on": dp.column(bounds=(dt.date(2030, 1, 1), dt.date(2035, 12, 31))),
    "seen_at": dp.column(
        bounds=(dt.datetime(2030, 1, 1, tzinfo=dt.UTC), dt.datetime(2035, 12, 31, tzinfo=dt.UTC))
    ),
}


def dated_visits():
    """A table with dates and moments."""
    return watched(dp.open(pa.Table.from_pylist(ROWS), PROTECT, name="visits", columns=COLUMNS))


@pytest.fixture
def asked():
    return Asked(data=dated_visits())


def known(value):
    return f"{COUNT} WHERE {value} IS NOT NULL"


@mistakes(
    Mistake(
        known("DATE_TRUNC('decade', came_on)"),
        "DP705",
        "DATE_TRUNC('month', came_on)",
        known("DATE_TRUNC('month', came_on)"),
    ),
    Mistake(
        known("DATE_TRUNC(came_on, month)"),
        "DP702",
        "DATE_TRUNC('month', came_on)",
        known("DATE_TRUNC('month', came_on)"),
    ),
    Mistake(
        known("EXTRACT(dow FROM left_on)"),
        "DP705",
        "EXTRACT(isodow FROM left_on)",
        known("EXTRACT(isodow FROM left_on)"),
    ),
    Mistake(
        known("HOUR(left_on)"), "DP705", "EXTRACT(hour FROM seen_at)", known("EXTRACT(hour FROM seen_at)")
    ),
    Mistake(
        known("DATE_PART(year, came_on)"),
        "DP702",
        "DATE_PART('year', came_on)",
        known("DATE_PART('year', came_on)"),
    ),
    Mistake(
        f"{COUNT} WHERE came_on + '7 days' > left_on",
        "DP705",
        "came_on + 7",
        f"{COUNT} WHERE came_on + 7 > left_on",
    ),
    Mistake(
        f"{COUNT} WHERE came_on + INTERVAL '1 fortnight' > left_on",
        "DP705",
        "INTERVAL 7 DAY",
        f"{COUNT} WHERE came_on + INTERVAL 7 DAY > left_on",
    ),
    Mistake(
        f"{COUNT} WHERE came_on + INTERVAL '1 month' > left_on",
        "DP705",
        "bounds = [2020-01-01, 2029-12-31]",
        f"{COUNT} WHERE left_on + INTERVAL '1 month' > came_on   -- bounds = [2020-01-01, 2029-12-31]",
    ),
    Mistake(
        f"{COUNT} WHERE seen_at - seen_at > 3",
        "DP705",
        "DATE_DIFF('hour', came_on, seen_at)",
        f"{COUNT} WHERE DATE_DIFF('hour', came_on, seen_at) > 3",
    ),
    Mistake(
        known("DATE_DIFF('decade', came_on, left_on)"),
        "DP705",
        "DATE_DIFF('day', came_on, left_on)",
        known("DATE_DIFF('day', came_on, left_on)"),
    ),
    Mistake(
        known("HOUR(seen_at AT TIME ZONE 'Berlin')"),
        "DP705",
        "AT TIME ZONE 'Europe/Berlin'",
        known("HOUR(seen_at AT TIME ZONE 'Europe/Berlin')"),
    ),
    Mistake(
        known("HOUR(seen_at AT TIME ZONE UTC)"),
        "DP705",
        "seen_at AT TIME ZONE 'Europe/Berlin'",
        known("HOUR(seen_at AT TIME ZONE 'Europe/Berlin')"),
    ),
    Mistake(
        known("HOUR(seen_at AT TIME ZONE 'Asia/Tokyo' AT TIME ZONE 'Europe/Berlin')"),
        "DP705",
        "seen_at AT TIME ZONE 'Europe/Berlin'",
        known("HOUR(seen_at AT TIME ZONE 'Europe/Berlin')"),
    ),
    Mistake(
        "SELECT came_on, COUNT(*) FROM visits WHERE came_on BETWEEN DATE '2031-01-01' AND DATE '2031-01-02' AND came_on > DATE '2031-01-02' GROUP BY came_on",
        "DP704",
        "leave out one of the conditions",
        left_out=" AND came_on > DATE '2031-01-02'",
    ),
    Mistake(
        f"{COUNT} WHERE INTERVAL 1 DAY > 3",
        "DP702",
        "came_on + INTERVAL 7 DAY > DATE '2026-01-01'",
        f"{COUNT} WHERE came_on + INTERVAL 7 DAY > DATE '2026-01-01'",
    ),
)
def test_asking_about_dates(mistake, asked):
    error = check_mistake(mistake, asked)
    assert error.what
