# SPDX-License-Identifier: Apache-2.0
"""A question means what the same SQL means to a database, where the data keep to their description.

The exact answer of what `parse` made, by the interpreter of `reference.py`, is compared with DuckDB's answer to the same
text. Noise, clipping and selection come later; here are only the rows, the keys and what is summed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest

from discreet.tables.ask.sql import parse
from tests.tables.reference import Reference, key_of, value
from tests.tables.test_sql_fuzz import UNITS
from tests.tables.world import REGIONS, TABLES, WARDS, world

duckdb = pytest.importorskip("duckdb")

WORLD = world()
KINDS = {"integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE"}
MACROS = """
CREATE MACRO clamp(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END;
CREATE MACRO bucket3(x, a, b, c) AS CASE WHEN x IS NULL THEN NULL ELSE (x >= a)::INT + (x >= b)::INT + (x >= c)::INT END;
CREATE MACRO width_bucket(x, lo, hi, n) AS
    CASE WHEN x < lo THEN 0 WHEN x >= hi THEN n + 1 ELSE 1 + floor((x - lo) * n / (hi - lo))::INT END;
"""


def _visit(chance, number):
    def maybe(found):
        return None if chance.random() < 0.15 else found

    return {
        "patient_id": number,  # one row each, so that a row is known by it
        "ward": maybe(chance.choice("ABC")),
        "note": maybe(chance.choice(["a", "ab", "ba", "x", "A%"])),
        "days": maybe(chance.randint(0, 60)),
        "age": maybe(chance.randint(0, 99)),
        "zip": maybe(chance.randint(0, 99_999)),
        "cost": maybe(chance.randint(0, 4_000) / 8),
        "weight": maybe(chance.randint(0, 1_600) / 16),
        "urgent": chance.choice([True, False]),
        "day": maybe(date(2024, 1, 1) + timedelta(days=chance.randrange(730))),
        "born": maybe(date(1950, 1, 1) + timedelta(days=chance.randrange(20_000))),
        "seen_at": maybe(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=chance.randrange(1_000_000))),
    }


def _data():
    chance = random.Random(7)
    labs = [
        {
            "patient_id": chance.randrange(40),
            "ward": chance.choice("ABC"),
            "value": chance.randint(-8, 8) / 8,
            "kind": "k",
        }
        for _ in range(60)
    ]
    return {
        "visits": [_visit(chance, number) for number in range(60)],
        "labs": labs,
        "wards": [dict(zip(("ward", "region", "beds"), ward, strict=True)) for ward in WARDS[:2]],
        "regions": [dict(zip(("region", "coast"), region, strict=True)) for region in REGIONS],
    }


DATA = _data()
REFERENCE = Reference(DATA, UNITS)


@pytest.fixture(scope="module")
def database():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, rows in DATA.items():
        columns = list(rows[0])
        kinds = [KINDS.get(TABLES[name].columns[column].kind, "TIMESTAMP") for column in columns]
        connection.execute(
            f"CREATE TABLE {name} ({', '.join(map(' '.join, zip(columns, kinds, strict=True)))})"
        )
        for row in rows:
            cells = [
                cell.replace(tzinfo=None) if isinstance(cell, datetime) else cell for cell in row.values()
            ]
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(cells))})", cells)
    connection.execute(MACROS)
    yield connection
    connection.close()


def _in_duckdb(text):
    return (
        text.replace("BUCKET(", "bucket3(")
        .replace("WIDTH_bucket3(", "width_bucket(")
        .replace("COUNT_IF", "countif")
    )


VALUES = [
    "days + 1",
    "days - cost * 2",
    "-days",
    "cost * cost",
    "days / 4",
    "days / (zip + 1)",
    "cost / (days + 1)",
    "days // 7",
    "days % 7",
    "MOD(zip, 100)",
    "ABS(days - 30)",
    "CLAMP(weight, 10, 50)",
    "CLAMP(age, 18, 65)",
    "CLAMP(age, 18.5, 65)",
    "CLAMP(days * 3, 20, 100)",
    "COALESCE(days, -1)",
    "COALESCE(days, cost, 0.5)",
    "IFNULL(days, 3)",
    "NULLIF(days, 30)",
    "NULLIF(days, cost)",
    "CASE WHEN urgent THEN days ELSE 100 END",
    "CASE WHEN days > 30 THEN 1 WHEN days > 10 THEN 0.5 END",
    "CASE ward WHEN 'A' THEN 1 WHEN 'B' THEN 2 ELSE 3 END",
    "IF(days > 10, days, -days)",
    "FLOOR(cost)",
    "CEIL(cost)",
    "POWER(days, 3)",
    "YEAR(day)",
    "EXTRACT(quarter FROM day)",
    "MONTH(day)",
    "DAY(born)",
    "ISODOW(day)",
    "HOUR(seen_at)",
    "DATE_PART('minute', seen_at)",
    "day - born",
    "day - DATE '2024-01-01'",
    "BUCKET(cost, 0, 100, 250.5)",
    "BUCKET(days, 2.5, 10, 20)",
    "WIDTH_BUCKET(days, 0, 60, 6)",
    "WIDTH_BUCKET(age, 10, 50, 8)",
    "CAST(days AS DOUBLE) / 2",
    "CAST(urgent AS INTEGER)",
    "2 * 3 - days",
]


@pytest.mark.parametrize("text", VALUES)
def test_an_expression_has_the_value_that_a_database_gives_it(database, text):
    of = parse(f"SELECT SUM({text}) FROM visits", WORLD).question.aggregates[0].of
    ours = [value(of, {("visits", name): cell for name, cell in row.items()}) for row in DATA["visits"]]
    theirs = database.execute(f"SELECT {_in_duckdb(text)} FROM visits ORDER BY patient_id").fetchall()
    assert any(cells is not None for cells in ours)
    for cells, (number,) in zip(ours, theirs, strict=True):
        if cells is None or number is None:
            assert cells is None, (text, cells, number)
            assert number is None, (text, cells, number)
        else:
            scale = max(1.0, abs(float(number)), *(abs(float(end)) for end in of.type.bounds))
            assert abs(Fraction(cells, 2**of.type.places) - Fraction(number)) <= 4e-6 * scale, text


CONDITIONS = [
    "days > 30",
    "days >= 30.5",
    "days < 30.5",
    "NOT days <= 30.5",
    "days = 12.5",
    "days <> 12.5",
    "days = 12 OR days <> 12",
    "cost = 0.5 OR cost > 400.25",
    "30.5 > days",
    "days = cost",
    "days < cost AND cost < zip",
    "cost > weight",
    "CLAMP(age, 0, 99) > days",
    "days BETWEEN 10 AND 20.5",
    "days NOT BETWEEN 10 AND 20",
    "days IN (1, 2, 3, 30, 31, 32.5)",
    "days NOT IN (1, 2, 3)",
    "ward IN ('A', 'B')",
    "ward NOT IN ('A', 'B')",
    "ward = 'A' OR note = 'x'",
    "ward <> 'A'",
    "ward = note",
    "note LIKE 'a%'",
    "note NOT LIKE '_a'",
    "note LIKE 'A%' AND note LIKE '%'",
    "note IS NULL",
    "note IS NOT NULL AND days IS NULL",
    "(days > 3) IS TRUE",
    "(days > 3) IS NOT TRUE",
    "(days > 3) IS FALSE",
    "(days > 3) IS NULL",
    "urgent",
    "NOT urgent",
    "urgent = TRUE AND urgent <> FALSE",
    "urgent AND days > 3 OR ward = 'C'",
    "NOT (days > 3 AND cost > 100)",
    "NOT (days > 3 OR cost > 100)",
    "day >= DATE '2024-06-01'",
    "day < '2024-06-01'",
    "day = born OR day <> born",
    "day BETWEEN '2024-03-01' AND '2024-09-30'",
    "day IN ('2024-03-01', '2024-09-30')",
    "seen_at >= TIMESTAMP '2025-01-01 12:30:00'",
    "seen_at < '2025-01-01'",
    "YEAR(day) = 2024 AND MONTH(day) IN (1, 2, 12)",
    "COALESCE(ward, 'none') = 'none'",
    "CASE WHEN days > 10 THEN ward ELSE note END = 'A'",
    "TRUE",
    "1 < 2 AND days > 5",
    "1 > 2",
    "days / 7 > 3.5",
    "cost * 2 >= days + 100",
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_keeps_the_rows_that_a_database_keeps(database, text):
    rows = REFERENCE.rows(parse(f"SELECT COUNT(*) FROM visits WHERE {text}", WORLD).question.rows)
    theirs = database.execute(f"SELECT patient_id FROM visits WHERE {text} ORDER BY patient_id").fetchall()
    assert sorted(unit for unit, _ in rows) == [unit for (unit,) in theirs]


def test_equality_of_real_numbers_is_that_of_cells():
    """70.1 is no binary fraction: a column that holds it equals the number that was written."""
    row = {("visits", "weight"): 70.1, ("visits", "cost"): 0.1}
    for text in ("weight = 70.1", "cost = 0.1", "cost IN (0.1, 2)", "cost <= 0.1", "cost >= 0.1"):
        condition = parse(f"SELECT COUNT(*) FROM visits WHERE {text}", WORLD).question.rows.condition
        assert value(condition, row) is True, text


def exactly(question):
    """The exact counts and sums of each group."""
    groups = defaultdict(lambda: [0] * len(question.aggregates))
    people = defaultdict(set)
    for unit, row in REFERENCE.rows(question.rows):
        key = tuple(key_of(one.of, row) for one in question.keys)
        people[key].add(unit)
        for at, one in enumerate(question.aggregates):
            cells = None if one.of is None else value(one.of, row)
            if one.kind == "count" or (one.kind == "count_of" and cells is not None):
                groups[key][at] += 1
            elif one.kind == "sum":
                groups[key][at] += Fraction(cells or 0, 2**one.of.type.places)
            elif one.kind == "units":
                groups[key][at] = len(people[key])
            else:
                assert one.kind == "count_of"
                groups[key][at] += 0
    return {key: tuple(map(float, sums)) for key, sums in groups.items()}


SELECTS = [
    "SELECT ward, COUNT(*), SUM(days), COUNT(note) FROM visits GROUP BY ward",
    "SELECT ward, urgent, COUNT(*) FROM visits WHERE days > 10 GROUP BY ward, urgent",
    "SELECT COUNT(*) FROM visits JOIN wards USING (ward)",
    "SELECT region, COUNT(*), SUM(beds) FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY region",
    "SELECT region, COUNT(*) FROM visits v LEFT JOIN wards w ON v.ward = w.ward GROUP BY region",
    "SELECT region, COUNT(*), COUNT(beds) FROM visits LEFT JOIN wards USING (ward) WHERE days > 3 GROUP BY region",
    "SELECT coast, COUNT(*) FROM visits JOIN wards USING (ward) JOIN regions USING (region) GROUP BY coast",
    "SELECT v.ward, COUNT(*) FROM wards w JOIN visits v ON v.ward = w.ward AND w.beds > v.days GROUP BY v.ward",
    "SELECT COUNT(*), SUM(value) FROM visits v JOIN labs l ON v.patient_id = l.patient_id",
    "SELECT v.ward, COUNT(*) FROM visits v JOIN labs l ON v.patient_id = l.patient_id AND v.ward = l.ward GROUP BY v.ward",
    (
        "SELECT kind, COUNT(DISTINCT l.patient_id) FROM labs l JOIN visits v ON v.patient_id = l.patient_id "
        "WHERE value < days GROUP BY kind"
    ),
    "SELECT COUNT(DISTINCT patient_id), COUNT(*) FROM labs WHERE value > 0",
    "SELECT COUNT(*) FILTER (WHERE days > 3), SUM(days) FILTER (WHERE urgent), COUNT_IF(days > 50) FROM visits",
    "SELECT BUCKET(days, 10, 20, 40.5) AS b, COUNT(*) FROM visits GROUP BY b",
    "SELECT YEAR(day) AS y, MONTH(day), COUNT(*) FROM visits GROUP BY 1, 2",
    "SELECT CASE WHEN days > 30 THEN 'long' WHEN days > 10 THEN 'middle' END AS stay, COUNT(*) FROM visits GROUP BY stay",
    "SELECT day, COUNT(*) FROM visits GROUP BY day",
    "SELECT COALESCE(note, 'none') AS n, COUNT(*) FROM visits GROUP BY n",
    "SELECT days > 30 AS long, COUNT(*) FROM visits GROUP BY long",
    "SELECT ward, SUM(d2) FROM (SELECT ward, days * 2 AS d2 FROM visits WHERE urgent) AS t WHERE d2 > 20 GROUP BY ward",
    (
        "WITH u AS (SELECT * FROM visits WHERE urgent), t AS (SELECT ward AS w, cost FROM u) "
        "SELECT w, SUM(cost) FROM t GROUP BY w"
    ),
    "SELECT days, COUNT(*) FROM visits GROUP BY days",
    "SELECT note, COUNT(*) FROM visits WHERE note IN ('a', 'x') GROUP BY note",
]


@pytest.mark.parametrize("text", SELECTS)
def test_a_question_has_the_groups_and_sums_that_a_database_gives(database, text):
    question = parse(text, WORLD).question
    width = len(question.keys)
    theirs = {
        row[:width]: tuple(float(cell or 0) for cell in row[width:])
        for row in database.execute(_in_duckdb(text)).fetchall()
    }
    ours = exactly(question)
    assert ours.keys() == theirs.keys() if width else len(theirs) == 1
    assert all(ours[key] == pytest.approx(theirs[key], abs=1e-3) for key in ours)
    for at, key in enumerate(question.keys):
        stated = {group[at] for group in ours} if key.values is None else set(key.values)
        assert {group[at] for group in ours} - {None} <= stated, "a group would be left out"
