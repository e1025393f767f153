# SPDX-License-Identifier: Apache-2.0
"""Tables with every value that engines are known to disagree about, and how to bring them to each engine.

visits      private, unit `u`: some people have one row, some many; some rows belong to nobody
calls       private, the same units
notes       private, units that are text
points      private, every row a unit of its own
wards       public, with keys that are there twice, and NULL
codes       public, each key once
"""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa

from discreet.tables.engines import ROW
from tests.tables.reference import Reference

NAN, INF = float("nan"), float("inf")
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
PARIS = timezone(timedelta(hours=1))


def plain(*parts):
    """A moment without a time zone."""
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)


REALS = [
    1.5,
    -1.5,
    NAN,
    INF,
    -INF,
    None,
    0.0,
    -0.0,
    1e308,
    -1e308,
    5e-324,
    -5e-324,
    0.49999999999999994,
    2.0**53,
    2.5,
]
REALS += [-(2.0**62), 2.0**63, 3.0000000000000004, -2.0000000000000004, 1e16, 0.1]
WHOLES = [
    0,
    1,
    -1,
    7,
    -7,
    None,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    -(2**62),
    2**63 - 1,
    -(2**63),
    60,
    1000,
    12,
    3,
]
SMALL = [-7, -3, -2, -1, 0, 1, 2, 3, 5, 7, None]
DECIMALS = [
    "0",
    "1.5",
    "-1.5",
    "-0.000000000000000001",
    "12345678901234567890.123456789012345678",
    None,
    "0.1",
    "-0.1",
]
DECIMALS += ["-12345678901234567890.1", "0.999999999999999999", "59.5", "1000"]
MONEY = ["0.00", "0.01", "-0.01", "99999999.99", "-99999999.99", None, "12.34", "-12.35"]
TEXTS = [
    "a",
    "A",
    "a ",
    "",
    None,
    COMPOSED,
    DECOMPOSED,
    "\U0001f600",
    "\U0001f600\U0001f600",
    "O'Reilly",
    'say "x"',
    "a%b",
]
TEXTS += [
    "a_b",
    "a\\b",
    "line\nbreak",
    "stra\u00dfe",
    "\u0130",
    "NULL",
    "ab",
    "axb",
    "`tick`",
    "{brace}",
    "$1",
    "a\\%b",
]
NUMERALS = [
    "1",
    "-1",
    "+7",
    "007",
    "1.5",
    "-1.5",
    "-0.5",
    "abc",
    "",
    " 1",
    "1 ",
    "1\n",
    "1e5",
    "NaN",
    "inf",
    None,
    "12.",
    ".5",
]
NUMERALS += [
    "\uff11\uff12",
    "999999999999999999",
    "-999999999999999999.999999999999999999",
    "1234567890123456789",
    "--1",
]
NUMERALS += ["0.000000000000000001", "-0.000000000000000001", "0x10", "1_000", "59.999999999999999999"]
DATES = [
    date(1970, 1, 1),
    date(1969, 12, 31),
    date(2024, 2, 29),
    date(1900, 3, 1),
    date(1, 1, 1),
    None,
    date(9999, 12, 31),
]
DATES += [date(2000, 12, 31), date(2023, 1, 1), date(1582, 10, 10), date(2100, 2, 28), date(2016, 1, 3)]
MOMENTS = [
    plain(1970, 1, 1),
    plain(1969, 12, 31, 23, 59, 59, 999999),
    plain(2024, 2, 29, 12, 30, 15, 1),
    None,
]
MOMENTS += [
    plain(1900, 1, 1, 0, 0, 0, 5),
    plain(2038, 1, 19, 3, 14, 8),
    plain(1677, 1, 1),
    plain(2262, 4, 12),
]
GROUPS = ["north", "south", "east", None, "north", "nörd", "north"]
TRUTHS = [True, False, None, True]
#: Some people have many rows, some few; None is nobody.
PEOPLE = [1, 1, 1, 2, 3, None, 4, 4, 1, 5, 1, 6, 2, 1, 7, 8, 1, None, 9, 1, 2, 10, 2]
assert all(len(PEOPLE) % len(values) for values in (REALS, WHOLES, TEXTS, GROUPS)), (
    "else a value is always nobody's"
)
NAMED = ["ann", "Ann", "ann ", COMPOSED, DECOMPOSED, None, "\U0001f600", "ann", "", "O'Neil"]
FRACTIONS = [1.0, 2.5, NAN, -0.0, 0.0, None, 1e308, INF, 1.0]

WARDS = [
    {"code": "north", "number": 1, "label": "N", "beds": 10, "price": 2.5},
    {"code": "north", "number": 2, "label": COMPOSED, "beds": None, "price": NAN},
    {"code": "south", "number": 2, "label": None, "beds": -4, "price": INF},
    {"code": None, "number": None, "label": "nobody", "beds": 7, "price": 1.0},
    {"code": "west", "number": -7, "label": "O'W", "beds": 2**40, "price": -0.0},
    {"code": "nörd", "number": 60, "label": "é", "beds": 3, "price": 5e-324},
]
CODES = [{"number": n, "label": f"code {n}"} for n in (-7, 0, 1, 2, 3, 7, None, None)]

#: Answers that are long in one sense and not in another: 2^31 steps in all, and 2^30 or a little more in length.
LONG = [
    *((1, group, 2**29) for group in "abcd"),
    *((2, group, 2**29 + (group == "d")) for group in "abcd"),
    *((3, group, -(2**29)) for group in "abc"),
    (4, "a", 2**31 - 1),
    (5, "a", 2**31),
    (6, "b", 2**62),
    (6, "c", 2**62),
    (7, "d", -(2**62)),
    (7, "d", -(2**62)),
    (8, "d", 3),
]

COLUMNS = {
    "rid": pa.int64(),
    "u": pa.int64(),
    "i": pa.int64(),
    "small": pa.int32(),
    "x": pa.float64(),
    "x32": pa.float32(),
    "dec": pa.decimal128(38, 18),
    "money": pa.decimal128(10, 2),
    "t": pa.string(),
    "tn": pa.string(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "ts": pa.timestamp("us"),
    "tz": pa.timestamp("us", tz="UTC"),
    "g": pa.string(),
}


def _cycle(values, count):
    return list(itertools.islice(itertools.cycle(values), count))


def _visits(count):
    lists = {
        "rid": list(range(count)),
        "u": PEOPLE,
        "i": WHOLES,
        "small": SMALL,
        "x": REALS,
        "x32": [1.5, -2.25, NAN, INF, None, 0.1, 3.4e38],
        "dec": [None if text is None else Decimal(text) for text in DECIMALS],
        "money": [None if text is None else Decimal(text) for text in MONEY],
        "t": TEXTS,
        "tn": NUMERALS,
        "b": TRUTHS,
        "d": DATES,
        "ts": MOMENTS,
        "tz": [None if at is None else at.replace(tzinfo=PARIS) for at in reversed(MOMENTS)],
        "g": GROUPS,
    }
    columns = {name: _cycle(values, count) for name, values in lists.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for row in rows:  # a float32 has the value that it has
        row["x32"] = None if row["x32"] is None else pa.scalar(row["x32"], pa.float32()).as_py()
    return rows


TABLES = {
    "visits": _visits(113),
    "calls": [{"u": u, "y": y, "h": h} for u, y, h in zip(PEOPLE, SMALL * 2, GROUPS * 3, strict=False)],
    "notes": [{"who": who, "y": y} for who, y in zip(NAMED * 3, SMALL * 3, strict=False)],
    "gauges": [{"who": who, "y": y} for who, y in zip(FRACTIONS * 2, SMALL * 3, strict=False)],
    "points": [{"x": x, "n": n, "g": g} for x, n, g in zip(REALS * 2, SMALL * 4, GROUPS * 7, strict=False)],
    "wards": WARDS,
    "codes": CODES,
    "long": [{"u": u, "y": y, "g": g} for u, g, y in LONG],
    "nothing": [],
    "nobody": [{"u": None, "y": 1, "g": "a"}, {"u": None, "y": 2, "g": None}],
}
SCHEMAS = {
    "visits": COLUMNS,
    "calls": {"u": pa.int64(), "y": pa.int64(), "h": pa.string()},
    "notes": {"who": pa.string(), "y": pa.int64()},
    "gauges": {"who": pa.float64(), "y": pa.int64()},
    "points": {"x": pa.float64(), "n": pa.int64(), "g": pa.string()},
    "wards": {
        "code": pa.string(),
        "number": pa.int64(),
        "label": pa.string(),
        "beds": pa.int64(),
        "price": pa.float64(),
    },
    "codes": {"number": pa.int64(), "label": pa.string()},
    "long": {"u": pa.int64(), "y": pa.int64(), "g": pa.string()},
    "nothing": {"u": pa.int64(), "y": pa.int64(), "g": pa.string()},
    "nobody": {"u": pa.int64(), "y": pa.int64(), "g": pa.string()},
}
UNITS = {
    "visits": "u",
    "calls": "u",
    "notes": "who",
    "gauges": "who",
    "points": ROW,
    "long": "u",
    "nothing": "u",
    "nobody": "u",
}

REFERENCE = Reference(TABLES, UNITS)


def arrow(name, rows=None):
    """A table in Arrow, with the types that its schema says."""
    schema = SCHEMAS[name]
    rows = TABLES[name] if rows is None else rows
    columns = {}
    for column, kind in schema.items():
        cells = [row[column] for row in rows]
        if pa.types.is_timestamp(kind) and kind.tz:
            cells = [None if cell is None else cell.astimezone(UTC) for cell in cells]
        columns[column] = pa.array(cells, kind, from_pandas=False)
    return pa.table(columns)


def arrows():
    return {name: arrow(name) for name in TABLES}


_POSTGRES = {
    pa.int64(): "bigint",
    pa.int32(): "integer",
    pa.float64(): "double precision",
    pa.float32(): "real",
    pa.string(): "text",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", tz="UTC"): "timestamptz",
    pa.decimal128(38, 18): "numeric(38,18)",
    pa.decimal128(10, 2): "numeric(10,2)",
}


def fill_postgres(dsn):
    """Create all tables in a database."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, schema in SCHEMAS.items():
            columns = ", ".join(f'"{column}" {_POSTGRES[kind]}' for column, kind in schema.items())
            connection.execute(f'CREATE TABLE "{name}" ({columns})')
            with connection.cursor() as cursor, cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
                for row in TABLES[name]:
                    copy.write_row(tuple(row[column] for column in schema))


_SPARK = {
    **{kind: word for kind, word in _POSTGRES.items() if word in {"bigint", "boolean", "date"}},
    pa.int32(): "int",
    pa.float64(): "double",
    pa.float32(): "float",
    pa.string(): "string",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.decimal128(38, 18): "decimal(38,18)",
    pa.decimal128(10, 2): "decimal(10,2)",
}


def spark_frames(session):
    """All tables as frames of a session."""
    return {
        name: session.createDataFrame(
            [tuple(row[column] for column in schema) for row in TABLES[name]],
            ", ".join(f"`{column}` {_SPARK[kind]}" for column, kind in schema.items()),
        )
        for name, schema in SCHEMAS.items()
    }
