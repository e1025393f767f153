# SPDX-License-Identifier: Apache-2.0
"""The public groups of a question: those that plain SQL can produce on any data that keep to the description, and no others
where that is claimed.

A table with every value of each column, and NULL, is asked in plain DuckDB. Its groups are the truth for keys of one column.
"""

from __future__ import annotations

import itertools
import random
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.evaluate import Assignment, Values, evaluate
from discreet.tables.algebra.expr import Read, leaves
from discreet.tables.algebra.types import TEXT, TRUTH, WIDEST, Type
from discreet.tables.ask.sql import parse
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Each, Table
from tests.tables import nasty
from tests.tables.reference import value
from tests.tables.test_conformance import _MADE as MADE
from tests.tables.world import Shelf, world

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

FIRST, LAST = date(2023, 12, 20), date(2025, 3, 10)
START, STOP = datetime(2024, 2, 27, 5, tzinfo=UTC), datetime(2024, 4, 2, 20, tzinfo=UTC)
COLUMNS = {
    "who": Column("who", "integer"),
    "age": Column("age", "integer", (0, 99)),
    "beds": Column("beds", "integer", (-3, 4)),
    "free": Column("free", "integer"),
    "day": Column("day", "date", (FIRST, LAST)),
    "born": Column("born", "date"),
    "seen": Column("seen", "timestamp", (START, STOP)),
    "sure": Column("sure", "date", (FIRST, LAST), null=False),
    "ward": Column("ward", "text", values=("B", "A", "ab")),
    "note": Column("note", "text"),
    "ill": Column("ill", "boolean"),
    "cost": Column("cost", "real", (0, 500)),
}
DATA = Dataset("clinic", {"visits": Table("visits", COLUMNS, "who")}, Each("who", at_most=3), Shelf())
DAYS = [FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
VALUES = {
    "age": [*range(100), None],
    "beds": [*range(-3, 5), None],
    "free": [*range(-50, 200), None],
    "day": [*DAYS, None],
    "born": [date(1969, 12, 1) + timedelta(days=n) for n in range(900)],
    "seen": [*(START + timedelta(minutes=30 * n) for n in range(2 * 24 * 35 + 31)), None],
    "sure": DAYS,
    "ward": ["A", "B", "ab", None],
    "ill": [True, False, None],
    "cost": [*(n / 4 for n in range(2001)), None],
}
KINDS = {
    "integer": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def create(connection, table, columns):
    """A table of the database with these columns."""
    kinds = {name: KINDS[COLUMNS[name].kind] for name in columns}
    connection.register(
        "given", pa.table({name: pa.array(cells, kinds[name]) for name, cells in columns.items()})
    )
    connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM given")
    connection.unregister("given")


@pytest.fixture(scope="module")
def database():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, values in VALUES.items():
        create(connection, f"all_{name}", {name: values})
    yield connection
    connection.close()


def groups(keys, where=""):
    """The public groups of a question."""
    condition = f" WHERE {where}" if where else ""
    asked = parse(f"SELECT {keys}, COUNT(*) FROM visits{condition} GROUP BY {places(keys)}", DATA).question
    listed = asked.combinations
    if listed is None:
        if any(key.values is None for key in asked.keys):
            return None
        listed = itertools.product(*(key.values for key in asked.keys))
    return {tuple(map(plain, row)) for row in listed}


def places(keys):
    depth, count = 0, 1
    for sign in keys:
        depth += (sign == "(") - (sign == ")")
        count += sign == "," and depth == 0
    return ", ".join(map(str, range(1, count + 1)))


def found(database, table, keys, where=""):
    """The groups that plain SQL finds."""
    condition = f" WHERE {where}" if where else ""
    text = f"SELECT {keys} FROM {table}{condition} GROUP BY {places(keys)}"
    return {tuple(map(plain, row)) for row in database.execute(text).fetchall()}


def plain(value):
    if isinstance(
        value, datetime
    ):  # the first moment of a day is that day: databases disagree which of them it is
        return value.replace(tzinfo=UTC) if value.hour else value.date()
    return int(value) if isinstance(value, float) else value


EXACT = {
    "age": [
        "age // 10 * 10",
        "age % 7",
        "age, age % 2",
        "age // 10, age // 5",
        "age // 10 + age % 2",
        "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END",
        "age > 50",
        "age * age",
        "COALESCE(age, 7)",
        "NULLIF(age, 3)",
        "ABS(age - 50)",
        "age",
    ],
    "day": [
        "YEAR(day), MONTH(day)",
        "MONTH(day), DAY(day)",
        "DATE_TRUNC('month', day)",
        "DATE_TRUNC('week', day)",
        "DATE_TRUNC('quarter', day), YEAR(day)",
        "DATE_TRUNC('year', day)",
        "EXTRACT(week FROM day), EXTRACT(isoyear FROM day)",
        "QUARTER(day)",
        "DAYOFYEAR(day) // 100",
        "day",
        "day + 3",
        "day - DATE '2024-02-29'",
    ],
    "sure": ["MONTH(sure)", "ISODOW(sure), EXTRACT(week FROM sure)", "YEAR(sure)"],
    "seen": [
        "CAST(seen AS DATE)",
        "DATE_TRUNC('week', CAST(seen AS DATE))",
        "DATE_TRUNC('hour', seen)",
        "MONTH(seen), DAY(seen)",
        "EXTRACT(week FROM seen)",
    ],
    "ill": ["ill", "NOT ill", "COALESCE(ill, FALSE)", "ill IS NULL", "CASE WHEN ill THEN 1 END"],
}
WHERE = {
    "age": [
        "",
        "age IS NOT NULL",
        "age IS NULL",
        "age >= 18 AND age < 65",
        "age BETWEEN 30 AND 39",
        "age IN (3, 14, 15)",
        "NOT (age > 10)",
        "age > 17 OR age IS NULL",
        "age % 10 = 3 AND age > 20 AND age < 90",
        "age <> 0",
        "70 < age",
    ],
    "day": [
        "",
        "day IS NOT NULL",
        "day >= DATE '2024-02-27' AND day < DATE '2024-04-01'",
        "day IN (DATE '2024-02-29', DATE '2025-01-01')",
        "MONTH(day) = 2",
        "YEAR(day) = 2024 AND QUARTER(day) > 2",
        "DATE_TRUNC('month', day) = DATE '2024-06-01'",
        "day < DATE '2024-01-31' + INTERVAL '1' MONTH",
        "day > TIMESTAMP '2025-01-01 00:00:00'",
    ],
    "sure": ["", "sure < DATE '2024-01-05'"],
    "seen": [
        "",
        "seen IS NOT NULL",
        "seen >= TIMESTAMP '2024-03-31 01:00:00'",
        "CAST(seen AS DATE) = DATE '2024-03-03'",
    ],
    "ill": ["", "ill", "NOT ill", "ill IS NOT NULL", "ill IS NULL"],
}
CASES = [(name, keys, where) for name, lists in EXACT.items() for keys in lists for where in WHERE[name]]


@pytest.mark.parametrize("column", EXACT)
def test_the_groups_of_one_column_are_exactly_those_that_sql_can_find(database, column):
    for name, keys, where in CASES:
        if name != column:
            continue
        expected, public = found(database, f"all_{name}", keys, where), groups(keys, where)
        assert expected <= public, (keys, where)
        # A value below the bounds is not 0, and its key is that of the bound.
        beyond = found(database, "all_age", keys, "age IN (0, 99)") if "<> 0" in where else set()
        if "hour" in keys and "CAST" in where:  # the hours of other days are listed too
            continue
        assert public <= expected | beyond, (keys, where)


def test_a_group_of_null_is_there_only_where_null_can_be():
    for keys in (
        "MONTH(day)",
        "age // 10",
        "ill",
        "BUCKET(cost, 10, 20)",
        "FLOOR(cost)",
        "CAST(seen AS DATE)",
    ):
        name = next(name for name in COLUMNS if name in keys)
        assert (None,) in groups(keys), keys
        assert (None,) not in groups(keys, f"{name} IS NOT NULL"), keys
    assert (None,) not in groups("MONTH(sure)")
    assert (None,) not in groups("FLOOR(cost)", "NOT cost IN (1, 2)")
    assert (None,) not in groups("BUCKET(cost, 10, 20)", "cost > 3")
    assert (None,) not in groups("HOUR(seen)", "seen > TIMESTAMP '2024-03-01 00:00:00' AND ill")


def test_the_counts_of_groups_are_those_of_the_calendar():
    assert len(groups("YEAR(sure), MONTH(sure)")) == 16
    assert len(groups("MONTH(sure), DAY(sure)")) == 366
    assert (2, 30) not in groups("MONTH(sure), DAY(sure)")
    year = "sure BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'"
    assert groups("MONTH(sure)", year) == {(month,) for month in range(1, 13)}
    assert len(groups("DATE_TRUNC('month', sure)", year)) == 12
    assert groups("age // 10 * 10", "age IS NOT NULL") == {(age,) for age in range(0, 100, 10)}


def test_a_range_makes_the_values_of_a_column_without_bounds_public():
    assert groups("free", "free BETWEEN 3 AND 9") == {(n,) for n in range(3, 10)}
    assert groups("born", "born >= DATE '1970-01-01' AND born < DATE '1970-01-04'") == {
        (date(1970, 1, n),) for n in (1, 2, 3)
    }
    assert groups("DATE_TRUNC('month', born)", "born BETWEEN DATE '1970-02-01' AND DATE '1971-01-15'") == {
        (date(1970 + (month > 12), (month - 1) % 12 + 1, 1),) for month in range(2, 14)
    }
    assert groups("born", "born > DATE '1990-01-01'") is None
    with pytest.raises(RefusedQuestion) as caught:
        groups("free", "free > 3")
    assert caught.value.code == "DP704"


def test_values_beyond_the_bounds_are_counted_at_the_bound():
    """A column is clamped where it is a key, and a condition sees it before: WHERE age > 150 leaves rows whose key is 99."""
    assert groups("age", "age > 150") == {(99,)}
    assert groups("age", "age < 0") == {(0,)}
    assert groups("age % 7 ", "age > 90") == {(n % 7,) for n in range(91, 100)}
    assert (0,) in groups("age", "age <> 0")
    assert (0,) not in groups("age", "age % 7 = 3")  # arithmetic sees the clamped value
    assert (0,) in groups("age", "NOT (age > 3) AND age <> 0")
    assert groups("age", "NOT (age < 200) OR age IS NULL") == {(99,), (None,)}
    assert groups("day", "day > DATE '2030-01-01'") == {(LAST,)}


def test_a_condition_on_a_clamped_value_says_nothing_of_what_lies_beyond():
    assert groups("age", "CLAMP(age, 0, 50) = 50") == {(n,) for n in range(50, 100)}
    assert groups("age", "CLAMP(age, 50, 70) <= 50") == {(n,) for n in range(51)}
    assert groups("FLOOR(cost / 100)", "NOT (cost > 399)") == {(n,) for n in range(4)}
    assert groups("FLOOR(cost)", "cost BETWEEN 3.5 AND 4.25") == {(3,), (4,)}
    assert groups("FLOOR(cost)", "CLAMP(cost, 0, 10) > 9.5 AND cost < 12") == {(n,) for n in range(9, 12)}


def test_values_are_computed_as_engines_compute_them():
    """Every expression that engines are compared on, for every row of their table."""
    rows = [{("visits", name): cell for name, cell in row.items()} for row in nasty.TABLES["visits"]]
    seen = 0
    for expr in MADE:
        columns = {}
        for read in leaves(expr):
            kind = read.of
            if kind.is_ordered:
                kind = Type(kind.kind, -WIDEST, WIDEST, kind.places)
            raw = [value(Read(read.table, read.column, kind), row) for row in rows]
            hole = {TEXT: "", TRUTH: False}.get(kind.kind, 0)
            cells = np.array(
                [hole if cell is None else cell for cell in raw], dtype=object if kind.kind == TEXT else None
            )
            columns[read.table, read.column, kind.places] = Values(
                cells, np.array([cell is None for cell in raw])
            )
        found = evaluate(expr, Assignment(columns, {}, len(rows))).to_list()
        assert found == [value(expr, row) for row in rows], expr
        seen += 1
    assert seen > 200


def test_listed_values_are_what_a_key_is_made_of():
    assert groups("ward") == {("B",), ("A",), ("ab",)}
    assert groups("COALESCE(ward, 'none')") == {("B",), ("A",), ("ab",), ("none",)}
    assert groups("CASE WHEN ward LIKE 'a%' THEN 'a' ELSE ward END") == {("a",), ("B",), ("A",), (None,)}
    assert groups("ward", "ward <> 'A'") == {("B",), ("ab",)}
    assert groups("ward", "ward IN ('A', 'x')") == {("A",)}
    assert groups("ward, ward = 'A'", "ward IS NOT NULL") == {("A", True), ("B", False), ("ab", False)}
    assert groups("note") is None


def test_the_order_of_listed_values_is_kept():
    assert parse("SELECT ward, COUNT(*) FROM visits GROUP BY ward", DATA).question.keys[0].values == (
        "B",
        "A",
        "ab",
    )


def test_joined_tables_keep_their_values():
    joined = "SELECT region, COUNT(*) FROM visits LEFT JOIN wards ON visits.ward = wards.ward GROUP BY region"
    assert parse(joined, world()).question.keys[0].values == ("north", "south", None)
    short = (
        "SELECT region = 'north', COUNT(*) FROM visits LEFT JOIN wards ON visits.ward = wards.ward GROUP BY 1"
    )
    assert parse(short, world()).question.keys[0].values == (False, True, None)


def test_no_question_misses_a_group_that_sql_can_find(database):
    """Several columns at once, at random: the public groups are a superset."""
    chance = random.Random(5)
    names = ["age", "beds", "day", "seen", "ill", "cost", "ward"]
    create(database, "mixed", {name: chance.choices(VALUES[name], k=3_000) for name in names})
    terms = [
        "age",
        "beds",
        "age - beds",
        "day - CAST(seen AS DATE)",
        "beds * 2",
        "MONTH(day)",
        "HOUR(seen)",
        "age // 9",
        "FLOOR(cost / 99)",
    ]
    conditions = [
        "ill",
        "ward = 'A'",
        "cost > 100",
        "day < CAST(seen AS DATE)",
        "age > beds",
        "age IN (1, 50, 60)",
        "seen IS NOT NULL",
    ]
    seen = 0
    for _ in range(150):
        keys = ", ".join(dict.fromkeys(chance.choices([*terms, "ill", "ward"], k=chance.choice([1, 2]))))
        picked = [
            f"{chance.choice(terms)} {chance.choice(['<', '<>', '>=', '='])} {chance.choice(['3', '20', '0'])}",
            *chance.sample(conditions, 2),
        ]
        where = f"({picked[0]} {chance.choice(['AND', 'OR'])} {picked[1]}) {chance.choice(['AND', 'OR'])} {chance.choice(['', 'NOT '])}{picked[2]}"
        public = groups(keys, where)
        if public is not None:
            seen += 1
            listed = {
                row
                for row in found(database, "mixed", keys, where)
                if "ward" not in keys or row[keys.split(", ").index("ward")]
            }
            assert listed <= public, (keys, where)
    assert seen > 100
