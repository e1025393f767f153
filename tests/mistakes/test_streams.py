# SPDX-License-Identifier: Apache-2.0
"""Streams: numbers that are published again every period."""

from __future__ import annotations

import pytest

from tests.mistakes.clinic import Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

COUNT = "'SELECT COUNT(*) FROM visits'"
WEEKS = "every='week', periods=4, start='2026-01-05', epsilon=1, delta=1e-6"
STREAM = f"session.stream({COUNT}, {WEEKS})"
OPENED = f"stream = session.stream({COUNT}, {WEEKS}, name='weekly')"
LATER = "testing.today('2026-01-13')"
PUBLISHED = f"{OPENED}\nwith {LATER}: stream.release()"

#: A table of our own, which other rows can be put into.
OWN = """
def opened(rows, **columns):
    day = datetime.date(2026, 1, 6)
    visits = pa.table({'id': list(range(rows)), 'day': [day] * rows, 'noted': [day] * rows})
    columns = {'day': dp.column(bounds=(datetime.date(2026, 1, 1), datetime.date(2026, 12, 31))), **columns}
    return dp.open(visits, dp.each('id', at_most=1), name='visits', columns=columns)

def own(rows, **columns):
    return dp.Session(opened(rows, **columns), Limit.filter(epsilon=9, delta=1e-5), ledger='own.ledger')
"""
OWN_STREAM = f"session.stream({COUNT}, {WEEKS}, time='day', name='n')"
OWN_PUBLISHED = f"{OWN}\nsession = own(5)\nstream = {OWN_STREAM}\nwith {LATER}: stream.release()"
PUT_BACK = (
    f"{OWN}\nimport shutil\nsession = own(5)\nstream = {OWN_STREAM}\nsession.ledger.close()\n"
    f"shutil.copy('own.ledger', 'copy')\nwith {LATER}: stream.release()\n"
    "session.ledger.close()\nshutil.copy('copy', 'own.ledger')\nsession = own(5)"
)
CHANGED = "with testing.today('2026-01-20'): own(6).find_stream('n').release()"
ROWS = "dp.Session(dp.open(table, dp.each_row(), name='visits'), Limit.filter(epsilon=9, delta=1e-5))"


def stream(question=COUNT, **changes):
    """The opening of a stream with other words."""
    words = {
        "every": "'week'",
        "periods": "4",
        "start": "'2026-01-05'",
        "epsilon": "1",
        "delta": "1e-6",
        **changes,
    }
    return f"session.stream({question}, {', '.join(f'{name}={value}' for name, value in words.items() if value)})"


OPENINGS = (
    Mistake(stream(periods="20_000"), "DP102", "periods=520", stream(periods="520")),
    Mistake(stream(start="'9990-01-01'"), "DP102", 'start="2026-01-05"', stream(start='"2026-01-05"')),
    Mistake(stream(name="''"), "DP102", 'name="weekly visits"', stream(name='"weekly visits"')),
    Mistake(
        stream(per_unit="3"),
        "DP104",
        "per_unit={'periods': 4, 'apart': 13}",
        stream(per_unit="{'periods': 4, 'apart': 13}"),
    ),
    Mistake(stream(best_for="'weeks'"), "DP102", 'best_for="totals"', stream(best_for='"totals"')),
    Mistake(stream(epsilon="1e-30"), "DP102", "epsilon=1", stream()),
    Mistake(
        stream("'EXPLAIN PRIVACY SELECT COUNT(*) FROM visits'"),
        "DP107",
        f"session.preview_stream({COUNT}, every='week', periods=52, epsilon=1, delta=1e-6)",
    ),
    Mistake(stream(time="'days'"), "DP708", "time='came_on'", stream(time="'came_on'")),
    Mistake(
        stream(
            "'SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS u'"
        ),
        "DP708",
        "SELECT COUNT(*) FROM visits",
        STREAM,
    ),
    Mistake(stream("'SELECT MEDIAN(days) FROM visits'"), "DP708", "SELECT COUNT(*) FROM visits", STREAM),
    Mistake(
        stream("'SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 3'"),
        "DP708",
        "leave them out",
        left_out=" HAVING COUNT(*) > 3",
    ),
    Mistake(
        stream("'SELECT name, COUNT(*) FROM visits GROUP BY name'", delta=""),
        "DP704",
        "delta=1e-6",
        stream("'SELECT name, COUNT(*) FROM visits GROUP BY name'"),
    ),
    Mistake(
        stream(file="'no/such/folder/x'"), "DP610", "file='visits.streams'", stream(file="'visits.streams'")
    ),
)
OTHERS = (
    Mistake(
        f"session = dp.Session(data, Limit.filter(epsilon=9, delta=1e-5, window='month'))\n{STREAM}",
        "DP610",
        "session.sql('SELECT COUNT(*) FROM visits', epsilon=0.1)",
        "session = dp.Session(data, Limit.filter(epsilon=9, delta=1e-5, window='month'))\n"
        "session.sql('SELECT COUNT(*) FROM visits', epsilon=0.1)",
    ),
    Mistake(
        f"session = dp.Session(auto, Limit.filter(epsilon=9, delta=1e-5))\n{STREAM}",
        "DP107",
        "per_unit=dp.streams.Participation(rows=3)",
        f"session = dp.Session(auto, Limit.filter(epsilon=9, delta=1e-5))\n"
        f"{stream(per_unit='dp.streams.Participation(rows=3)')}",
    ),
    Mistake(
        f"session = {ROWS}\n{stream(per_unit='dp.streams.Participation(rows=3)')}",
        "DP107",
        "leave out per_unit",
        left_out=", per_unit=dp.streams.Participation(rows=3)",
    ),
    Mistake(
        f"{OWN}\nsession = dp.Session(opened(5), Limit.filter(epsilon=9, delta=1e-5))\n{STREAM}",
        "DP708",
        'time="day"',
        f"{OWN}\nsession = dp.Session(opened(5), Limit.filter(epsilon=9, delta=1e-5))\n{stream(time=chr(34) + 'day' + chr(34))}",
    ),
    Mistake(
        f"{OWN}\nsession = dp.Session(opened(5, day=dp.column(bounds=(datetime.date(2026, 1, 1), datetime.date(2026, 1, 31)))), "
        f"Limit.filter(epsilon=9, delta=1e-5))\n{OWN_STREAM}",
        "DP708",
        "bounds",
        f"{OWN}\nsession = dp.Session(opened(5, day=dp.column(bounds=(datetime.date(2026, 1, 5), datetime.date(2026, 2, 1)))), "
        f"Limit.filter(epsilon=9, delta=1e-5))\n{OWN_STREAM}",
    ),
)
PUBLISHING = (
    Mistake(
        f"with {LATER}: stream.release(until='2026-01-18')",
        "DP611",
        'stream.release(until="2026-01-11")',
        f'with {LATER}: stream.release(until="2026-01-11")',
        first=OPENED,
    ),
    Mistake("stream.total()", "DP611", "stream.release()", f"with {LATER}: stream.release()", first=OPENED),
    Mistake(
        f"with {LATER}, testing.seeded(3): stream.release()",
        "DP605",
        "leave out  testing.seeded(…)",
        left_out=", testing.seeded(3)",
        first=OPENED,
    ),
    Mistake(
        "stream.between('2026-01-06', '2026-01-11')",
        "DP102",
        'stream.between("2026-01-05", "2026-01-11")',
        first=PUBLISHED,
    ),
    Mistake("stream.window(4)", "DP102", "stream.window(1)", first=PUBLISHED),
    Mistake("session.find_stream('monthly')", "DP610", "session.find_stream('weekly')", first=OPENED),
    Mistake(
        "session.find_stream('n', file='other.streams')",
        "DP610",
        "session.find_stream('n', file='visits.streams')",
        first=f"{stream(name=chr(39) + 'n' + chr(39), file=repr('visits.streams'))}\n"
        f"{stream(name=chr(39) + 'm' + chr(39), file=repr('other.streams'))}",
    ),
    Mistake(
        CHANGED,
        "DP610",
        "name='visits from 2027'",
        f"own(6).stream({COUNT}, {WEEKS}, time='day', name='visits from 2027')",
        first=OWN_PUBLISHED,
    ),
    Mistake(
        "with testing.today('2026-01-20'): session.find_stream('n').release()",
        "DP610",
        "name='visits from 2027', file='visits-2027.streams'",
        f"session.stream({COUNT}, {WEEKS}, time='day', name='visits from 2027', file='visits-2027.streams')",
        first=PUT_BACK,
    ),
    Mistake(
        "session.ledger.add_period('weekly', 0, '{}')",
        "DP610",
        'session.stream("SELECT COUNT(*) FROM visits", every="week", periods=52, epsilon=1, delta=1e-6)',
    ),
    Mistake(
        "session.ledger.add_period('discreet: stream weekly', 3, '{}')",
        "DP610",
        "stream.release()",
        f"with {LATER}: stream.release()",
        first=OPENED,
    ),
)
NUMBERS = (
    Mistake(
        "testing.today('soon').__enter__()", "DP104", 'day="2026-02-01"', 'testing.today(day="2026-02-01")'
    ),
    Mistake("dp.streams.Factor((1, 2), 3)", "DP102", "dp.streams.square_root(52)"),
    Mistake(
        "dp.streams.banded_inverse(5, bands=9)", "DP102", "bands=5", "dp.streams.banded_inverse(5, bands=5)"
    ),
    Mistake("dp.streams.Participation(apart=2)", "DP107", "dp.streams.Participation(periods=4, apart=2)"),
    Mistake("dp.streams.Participation(rows=10**7)", "DP102", "rows=1", "dp.streams.Participation(rows=1)"),
    Mistake(
        "dp.plot.periods({})",
        "DP107",
        "plot.periods({'visits': ([date(2026, 1, 11)], [3], [1], [5])})",
        "from datetime import date\nfrom discreet import plot\n"
        "plot.periods({'visits': ([date(2026, 1, 11)], [3], [1], [5])})",
    ),
)


@pytest.fixture
def streaming(visits, unknown_cap, folder):
    return Here(data=visits, auto=unknown_cap)


@mistakes(*OPENINGS, *OTHERS, *PUBLISHING, *NUMBERS)
def test_streams(mistake, streaming):
    check_mistake(mistake, streaming)
