# SPDX-License-Identifier: Apache-2.0
"""Dates and moments: what a question means is what plain SQL means; types have every value; sources of every kind are read alike."""

from __future__ import annotations

import datetime as dt
import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables.algebra import civil
from discreet.tables.algebra.expr import AsDate, DatePart, Expr, Read, Shifted, Steps, Truncated
from discreet.tables.algebra.types import DATE, MOMENT, Type, days, micros
from discreet.tables.ask.dates import difference, interval
from discreet.tables.ask.sql import parse
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Each, Table
from tests.tables.nasty import plain as naive
from tests.tables.reference import value
from tests.tables.world import Shelf

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

FIRST, LAST = date(1890, 1, 1), date(2030, 12, 31)
START, STOP = datetime(1960, 1, 1, tzinfo=UTC), datetime(2030, 12, 31, tzinfo=UTC)
COLUMNS = {
    "who": Column("who", "integer"),
    "d": Column("d", "date", (date(2015, 1, 1), LAST)),
    "e": Column("e", "date", (FIRST, LAST)),
    "t": Column("t", "timestamp", (START, STOP)),
    "wide": Column("wide", "timestamp"),
}
DATA = Dataset("clinic", {"visits": Table("visits", COLUMNS, "who")}, Each("who", at_most=3), Shelf())
#: Leap days, ends of months, years with 53 weeks, hours that clocks lack or show twice.
NASTY_DAYS = [
    date(2016, 2, 29),
    date(2020, 2, 29),
    date(2020, 12, 31),
    date(2021, 1, 3),
    date(2024, 12, 30),
    date(2019, 1, 31),
]
NASTY = [
    naive(2021, 3, 28, 0, 59, 59, 999_999),
    naive(2021, 3, 28, 1),
    naive(2021, 3, 28, 1, 30),
    naive(2021, 10, 31, 0, 30),
    naive(2021, 10, 31, 1, 30),
    naive(1969, 12, 31, 23, 59, 59, 1),
    naive(1970, 1, 1),
    naive(2020, 2, 29, 23, 59),
]


def _rows():
    chance = random.Random(3)
    found = [(a, b, c) for a, b, c in zip(NASTY_DAYS * 2, reversed(NASTY_DAYS * 2), NASTY * 2, strict=False)]
    for _ in range(150):
        at = naive(1960, 1, 1) + timedelta(seconds=chance.randrange(70 * 365 * 86_400))
        found.append((date(2015, 1, 1) + timedelta(chance.randrange(5_000)), at.date(), at))
    return [*found, (None, None, None)]


ROWS = _rows()


@pytest.fixture(scope="module")
def database():
    connection = duckdb.connect()
    columns = zip(*ROWS, strict=True)
    kinds = (pa.date32(), pa.date32(), pa.timestamp("us"))
    table = pa.table(
        {name: pa.array(cells, kind) for name, cells, kind in zip("det", columns, kinds, strict=True)}
    )
    connection.register("visits", table)
    yield connection
    connection.close()


SAME = [
    *(
        f"EXTRACT({part} FROM d)"
        for part in ("year", "quarter", "month", "day", "doy", "isodow", "week", "isoyear")
    ),
    *(f"EXTRACT({part} FROM t)" for part in ("year", "month", "week", "isoyear", "doy", "hour", "minute")),
    *(f"DATE_TRUNC('{part}', d)" for part in ("year", "quarter", "month", "week", "day")),
    *(
        f"DATE_TRUNC('{part}', t)"
        for part in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    ),
    "CAST(t AS DATE)",
    "CAST(d AS TIMESTAMP)",
    "d::timestamp",
    "d + 40",
    "40 + d",
    "d - 40",
    "d + INTERVAL 1 MONTH",
    "d - INTERVAL '1 month'",
    "d + INTERVAL '1 year 2 months 3 days'",
    "d - INTERVAL 7 DAYS",
    "t + INTERVAL '36 hours'",
    "t - INTERVAL '5' MONTH",
    "t + INTERVAL '-1 week 20 seconds'",
    "d - e",
    *(f"DATE_DIFF('{part}', e, d)" for part in ("day", "month", "quarter", "year")),
    *(f"DATE_DIFF('{part}', t, t + INTERVAL 100 MINUTE)" for part in ("hour", "minute", "second", "day")),
    "d > TIMESTAMP '2019-01-31 00:00:00'",
    "d > e + INTERVAL 10 YEAR",
    "DATE_TRUNC('month', d) = DATE '2020-02-01'",
    "t < DATE '1990-05-05'",
    "d < DATE '2020-03-31' - INTERVAL 1 MONTH",
]


def of_visits(row):
    return {("visits", name): cell for name, cell in zip("det", row, strict=True)}


def asked(text) -> Expr:
    """The expression that a text means."""
    return parse(f"SELECT COUNT({text}) FROM visits", DATA).question.aggregates[0].of


def plain(expr, cells):
    """A value of an expression as a database shows it."""
    if cells is None:
        return None
    if expr.type.kind == DATE:
        return date(1970, 1, 1) + timedelta(days=cells)
    return naive(1970, 1, 1) + timedelta(microseconds=cells) if expr.type.kind == MOMENT else cells


@pytest.mark.parametrize("text", SAME)
def test_an_expression_of_dates_means_what_it_means_in_sql(database, text):
    of = asked(text)
    theirs = [cell for (cell,) in database.execute(f"SELECT {text} FROM visits").fetchall()]
    for row, cell in zip(ROWS, theirs, strict=True):
        ours = plain(of, value(of, of_visits(row)))
        if isinstance(cell, datetime) and type(ours) is date:
            assert cell == naive(ours.year, ours.month, ours.day), (text, row)
        else:
            assert ours == cell, (text, row)


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Africa/Monrovia", "UTC"]
)
def test_the_clock_of_a_time_zone_is_that_of_python(zone):
    of = asked(f"t AT TIME ZONE '{zone}'")
    chance = random.Random(9)
    found = [START + timedelta(seconds=chance.randrange(70 * 365 * 86_400)) for _ in range(400)]
    edges, _ = civil.transitions(zone, micros(START), micros(STOP))
    near = [edge + step for edge in edges for step in (-1, 0, 1)]
    found += [START + timedelta(microseconds=edge - micros(START)) for edge in near]
    for at in found:
        shown = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        assert plain(of, value(of, {("visits", "t"): at})) == shown, at


def test_the_hour_that_a_clock_lacks_is_no_hour_of_that_day():
    of = asked("HOUR(t AT TIME ZONE 'Europe/Berlin')")
    hours = {value(of, {("visits", "t"): datetime(2021, 3, 28, hour, tzinfo=UTC)}) for hour in range(22)}
    assert hours == set(range(24)) - {0, 2}


REFUSED = [
    "wide AT TIME ZONE 'Europe/Berlin'",
    "d AT TIME ZONE 'UTC'",
    "t AT TIME ZONE '../localtime'",
    "t AT TIME ZONE ''",
    "t AT TIME ZONE 'Europe/Berlin' AT TIME ZONE 'Asia/Tokyo'",
    "wide + INTERVAL 1 MONTH",
    "d + INTERVAL 1 EON",
    "d + INTERVAL '1'",
    "d + INTERVAL ''",
    "d + INTERVAL '99999999999 days'",
    "d + 0.5",
    "d + d",
    "d * 2",
    "t - t",
    "7 - d",
    "INTERVAL 1 DAY - d",
    "d + NULL",
    "DATE_TRUNC('month', NULL)",
    "DATE_TRUNC('hour', who)",
    "DATE_DIFF('day', d, 3)",
    "EXTRACT(dow FROM d)",
    "SECOND(d)",
    "d + 4000000000",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_proved_is_refused(text):
    with pytest.raises(DiscreetError) as caught:
        asked(text)
    assert caught.value.code.startswith("DP")
    assert caught.value.fix


def test_what_leaves_the_calendar_is_refused_as_a_key_before_it_is_counted():
    data = dp.open(
        pa.table({"who": [1], "d": pa.array([None], pa.date32())}), protect=dp.each("who", at_most=1)
    )
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
    with pytest.raises(DiscreetError):
        session.sql("SELECT d + 400, COUNT(*) FROM data GROUP BY 1", epsilon=0.1, delta=1e-8)
    assert session.budget().spent_fraction == 0


@given(
    st.text(alphabet="0123456789 +-daysmonthuryec", max_size=20),
    st.sampled_from(["", "day", "month", "hour"]),
)
def test_an_interval_is_read_or_refused(text, unit):
    try:
        found = interval(None, text, unit)
    except DiscreetError as refused:
        found = refused
    assert getattr(found, "code", "DP705") == "DP705"


WIDE = Type(DATE, days(date(1, 1, 1)), days(date(9999, 12, 31)))
DAYS = st.integers(days(date(10, 1, 1)), days(date(9998, 12, 31)))


@given(DAYS, st.integers(0, 500), st.data())
def test_the_bounds_of_dates_are_sound_and_reached(low, width, data):
    kind = Type(DATE, low, low + width, null=False)
    read = Read("visits", "d", kind)
    cell = data.draw(st.integers(low, low + width))
    exprs = [Truncated(part, read) for part in ("year", "quarter", "month", "week")]
    exprs += [DatePart(part, read) for part in ("year", "isoyear")]
    exprs += [Shifted(read, 17), Steps(read, (low + width // 2, low + width // 2 + 3), (4, -30, 2))]
    for of in exprs:
        at = {("visits", "d"): date(1970, 1, 1) + timedelta(days=cell)}
        assert of.type.low <= value(of, at) <= of.type.high, of
        ends = [
            value(of, {("visits", "d"): date(1970, 1, 1) + timedelta(days=end)}) for end in (low, low + width)
        ]
        if not isinstance(of, Steps):
            assert [of.type.low, of.type.high] == ends


@given(DAYS, st.integers(-30_000, 30_000))
def test_months_later_are_those_of_a_calendar(day, months):
    at = date(1970, 1, 1) + timedelta(days=day)
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    if not 1 <= year <= 9998:
        return
    last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    expected = date(year, month + 1, min(at.day, last))
    assert int(civil.shift_months(np.array(day), months)) == days(expected)


@given(DAYS)
def test_parts_of_dates_are_those_of_python(day):
    at, array = date(1970, 1, 1) + timedelta(days=day), np.array(day)
    iso = at.isocalendar()
    expected = {
        "year": at.year,
        "month": at.month,
        "day": at.day,
        "quarter": (at.month + 2) // 3,
        "doy": at.timetuple().tm_yday,
        "week": iso.week,
        "isoyear": iso.year,
        "isodow": iso.weekday,
    }
    assert {name: int(civil.part(name, array)) for name in expected} == expected


@given(DAYS, st.integers(-3_000, 3_000))
def test_weeks_between_are_the_mondays_that_are_passed(day, later):
    of = difference("week", Read("visits", "d", WIDE), Read("visits", "e", WIDE))
    start, stop = (date(1970, 1, 1) + timedelta(days=end) for end in (day, min(day + later, WIDE.high)))
    passed = [
        1
        for n in range(1, abs((stop - start).days) + 1)
        if (min(start, stop) + timedelta(days=n)).weekday() == 0
    ]
    assert value(of, {("visits", "d"): start, ("visits", "e"): stop}) == len(passed) * (
        1 if stop > start else -1
    )


def test_the_day_of_a_moment_is_rounded_down():
    read = Read("visits", "t", Type(MOMENT, micros(START), micros(STOP)))
    assert value(AsDate(read), {("visits", "t"): naive(1969, 12, 31, 23, 59, 59, 999_999)}) == -1


UNITS = [
    (unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin", "+05:30")
]


@pytest.mark.parametrize(("unit", "zone"), UNITS)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_moment_is_the_same_of_every_unit_and_zone(unit, zone, engine, tmp_path):
    pytest.importorskip("polars")
    from pyarrow import parquet

    at = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)
    table = pa.table(
        {"who": [1, 2], "t": pa.array([at.replace(tzinfo=None), None], pa.timestamp(unit, zone))}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    bounds = (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 12, 31, tzinfo=UTC))
    for source in (table, tmp_path / "a.parquet", table.to_pandas()):
        data = dp.open(
            source,
            protect=dp.each("who", at_most=1),
            name="visits",
            columns={"t": dp.column(bounds=bounds)},
            engine=engine,
        )
        query = (
            data["visits"].where(
                dp.col("t").at_time_zone("Europe/Berlin").truncate("hour")
                == datetime(2024, 3, 31, 1, tzinfo=UTC)
            )
            if zone
            else data["visits"].where(dp.col("t").date == date(2024, 3, 31))
        )
        answer = dp.Session(data, dp.Limit.filter(epsilon=10**6, delta=1e-6)).release(
            query.count(), epsilon=10**5
        )
        assert answer.value == pytest.approx(1, abs=0.01)
        data.close()


def test_python_dates_of_pandas_are_read_where_they_are_described():
    pandas = pytest.importorskip("pandas")
    moments = [
        datetime(2024, 3, 31, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        naive(2024, 3, 31),
        pandas.NaT,
        "2024-03-31",
        3,
    ]
    cells = [date(2024, 3, 31), None, naive(2024, 3, 31), "2024-03-31", float("nan")]
    frame = pandas.DataFrame(
        {"who": range(5), "d": pandas.Series(cells, dtype=object), "t": pandas.Series(moments, dtype=object)}
    )
    described = {
        "d": dp.column("date", bounds=(date(2024, 1, 1), date(2024, 12, 31))),
        "t": dp.column("timestamp", bounds=(naive(2024, 1, 1), naive(2024, 12, 31))),
    }
    data = dp.open(frame, protect=dp.each("who", at_most=1), name="visits", columns=described)
    session = dp.Session(data, dp.Limit.filter(epsilon=10**7, delta=1e-6))
    days_seen = session.sql(
        "SELECT COUNT(d) AS a, COUNT(t) AS b, COUNT_IF(HOUR(t) = 0) AS c FROM visits", epsilon=10**5
    )
    (row,) = days_seen.to_arrow().to_pylist()
    assert [round(row[name]) for name in "abc"] == [1, 2, 2]
    plain_frame = dp.open(frame, protect=dp.each("who", at_most=1), name="visits")
    assert plain_frame.tables["visits"].columns["d"].kind == "text"


class Hostile(dt.tzinfo):
    """A time zone whose code fails."""

    def utcoffset(self, when):
        raise RuntimeError("secret")


def test_no_object_of_a_frame_makes_opening_fail():
    pandas = pytest.importorskip("pandas")
    cells = [
        datetime(2024, 3, 31, tzinfo=Hostile()),
        object(),
        naive(9999, 12, 31),
        naive(1, 1, 1),
        pandas.Timestamp.max,
    ]
    frame = pandas.DataFrame({"who": range(5), "t": pandas.Series(cells, dtype=object)})
    data = dp.open(
        frame,
        protect=dp.each("who", at_most=1),
        name="visits",
        columns={"t": dp.column("timestamp"), "who": dp.column()},
    )
    session = dp.Session(data, dp.Limit.filter(epsilon=10**7, delta=1e-6))
    assert session.sql("SELECT COUNT(t) FROM visits", epsilon=10**5).value == pytest.approx(3, abs=0.01)
