# SPDX-License-Identifier: Apache-2.0
"""Queries inside FROM, IN and EXISTS: the rows that a question is about are those that plain SQL would select."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DiscreetError, RefusedQuestion
from discreet.tables.algebra.expr import Constant
from discreet.tables.algebra.sums import BoundedSums, RowScheme
from discreet.tables.algebra.types import NUMBER, Type
from discreet.tables.ask.sql import parse
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.groups import kept_rows
from discreet.tables.plan.spend import Spend

duckdb = pytest.importorskip("duckdb")


def _tables():
    draw = random.Random(11)
    start = date(2024, 1, 1)
    visits = [
        {
            "pid": draw.choice((*range(12), None)),
            "ward": draw.choice(("A", "B", "C", None)),
            "days": draw.choice((*range(9), None)),
            "day": start + timedelta(days=place),
        }
        for place in range(90)
    ]
    labs = [
        {"pid": draw.choice((*range(5, 16), None)), "value": draw.choice((0, 1, 2, None))} for _ in range(40)
    ]
    wards = [{"ward": "A", "beds": 3}, {"ward": "B", "beds": 5}, {"ward": "B", "beds": 7}]
    types = {
        "pid": pa.int64(),
        "days": pa.int64(),
        "value": pa.int64(),
        "beds": pa.int64(),
        "day": pa.date32(),
    }
    return {
        name: pa.table(
            {key: pa.array([row[key] for row in rows], types.get(key, pa.string())) for key in rows[0]}
        )
        for name, rows in (("visits", visits), ("labs", labs), ("wards", wards))
    }


TABLES = _tables()
#: Rows of nobody are dropped where a table is read.
PLAIN = """
CREATE VIEW visits AS SELECT * FROM visits_ WHERE pid IS NOT NULL; CREATE VIEW labs AS SELECT * FROM labs_ WHERE pid IS NOT NULL;
CREATE VIEW wards AS SELECT * FROM wards_
"""
COLUMNS = {
    "visits": {
        "ward": dp.column(values=["A", "B", "C"]),
        "days": dp.column(bounds=(0, 9)),
        "day": dp.column(bounds=(date(2024, 1, 1), date(2024, 12, 31))),
    },
    "labs": {"value": dp.column(bounds=(0, 3))},
}
SELECTED = [
    "SELECT COUNT(*), SUM(n), SUM(s) FROM (SELECT pid, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY pid) AS p",
    (
        "SELECT SUM(k), SUM(d), SUM(lo), SUM(c) FROM (SELECT pid, COUNT(days) AS k, COUNT(DISTINCT ward) AS d, MIN(days) AS lo, "
        "COUNT(*) FILTER (WHERE days > 4) AS c FROM visits GROUP BY pid) AS p"
    ),
    "SELECT n, COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 3 AND MAX(days) > 2) AS p GROUP BY n",
    (
        "WITH f AS (SELECT pid, ward, COUNT(*) AS n, MIN(day) AS d FROM visits GROUP BY pid, ward) "
        "SELECT ward, SUM(n) FROM f WHERE d > DATE '2024-01-20' GROUP BY ward"
    ),
    "SELECT SUM(t) FROM (SELECT pid, CASE WHEN SUM(days) > 10 THEN COUNT(*) ELSE 0 END + 1 AS t FROM visits GROUP BY pid) AS p",
    (
        "SELECT m, COUNT(*) FROM (SELECT pid, MAX(n) AS m FROM (SELECT pid, ward, COUNT(*) AS n FROM visits GROUP BY pid, ward) AS a "
        "GROUP BY pid) AS p GROUP BY m"
    ),
    (
        "SELECT ward, COUNT(*), SUM(days) FROM (SELECT ward, days, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) AS rn FROM visits) AS v "
        "WHERE rn = 1 GROUP BY ward"
    ),
    "SELECT COUNT(*) FROM (SELECT day - LAG(day) OVER (PARTITION BY pid ORDER BY day) AS gap FROM visits) AS v WHERE gap <= 7",
    (
        "SELECT COUNT(*), SUM(r), SUM(k), SUM(m), SUM(f) FROM (SELECT SUM(days) OVER (PARTITION BY pid ORDER BY day) AS r, RANK() OVER "
        "(PARTITION BY pid, ward ORDER BY days DESC) AS k, MAX(days) OVER (PARTITION BY pid) AS m, FIRST_VALUE(days) OVER "
        "(PARTITION BY pid ORDER BY day DESC) AS f FROM visits WHERE days IS NOT NULL) AS v"
    ),
    "SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY pid, ward ORDER BY day) = 2) AS v",
    "SELECT SUM(t) FROM (SELECT pid, ward, SUM(COUNT(*)) OVER (PARTITION BY pid) AS t FROM visits GROUP BY pid, ward) AS v",
    "SELECT ward, COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM labs WHERE value > 1) GROUP BY ward",
    "SELECT COUNT(*) FROM visits WHERE pid NOT IN (SELECT pid FROM labs) AND days > 2",
    "SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM labs GROUP BY pid HAVING COUNT(*) > 3)",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM labs l WHERE l.pid = v.pid AND l.value < v.days)",
    "SELECT COUNT(*) FROM visits WHERE NOT EXISTS (SELECT * FROM labs WHERE labs.pid = visits.pid AND value < days)",
    "SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT * FROM visits w WHERE w.pid = v.pid AND w.day < v.day)",
    "SELECT COUNT(*), SUM(value) FROM visits LEFT JOIN labs USING (pid)",
    "SELECT COUNT(*), SUM(value), SUM(days) FROM visits FULL JOIN labs USING (pid)",
    "SELECT COUNT(*), SUM(value), SUM(days) FROM visits RIGHT JOIN labs ON visits.pid = labs.pid AND days > value",
    "SELECT ward, COUNT(*), SUM(value) FROM visits v LEFT JOIN labs l ON v.pid = l.pid AND l.value < v.days GROUP BY ward",
    "SELECT COUNT(*) FROM visits LEFT JOIN labs ON visits.pid = labs.pid AND value > 0 WHERE value IS NULL",
    "SELECT ward, COUNT(*) FROM visits SEMI JOIN labs USING (pid) GROUP BY ward",
    (
        "SELECT COUNT(*), SUM(x) FROM (SELECT pid, days AS x FROM visits UNION ALL SELECT pid, value FROM labs UNION ALL "
        "SELECT pid, days FROM visits WHERE ward = 'A') AS u"
    ),
    "SELECT COUNT(*) FROM visits a JOIN visits b USING (pid) WHERE a.day < b.day",
    "SELECT w2.beds, COUNT(*) FROM visits v JOIN wards w1 ON v.ward = w1.ward JOIN wards w2 ON v.ward = w2.ward GROUP BY w2.beds",
    "SELECT COUNT(*) FROM wards w, visits v, labs l WHERE w.ward = v.ward AND v.pid = l.pid AND w.beds > 3 AND value > 0",
    "SELECT COUNT(*) FROM (SELECT DISTINCT pid, ward FROM visits) AS d",
    "SELECT SUM(f) FROM visits v JOIN (SELECT pid, MIN(days) AS f FROM visits GROUP BY pid) AS g USING (pid)",
    "SELECT SUM(f), COUNT(*) FROM visits v LEFT JOIN (SELECT pid, 1 AS f FROM labs) AS g USING (pid)",
    "SELECT COUNT(*) FROM (SELECT pid FROM visits WHERE days > 7 UNION ALL SELECT pid FROM labs) AS u WHERE pid IN (SELECT pid FROM visits)",
    (
        "SELECT beds, COUNT(*), SUM(n) FROM (SELECT pid, ward, COUNT(*) AS n FROM visits GROUP BY pid, ward) AS g "
        "JOIN wards ON g.ward = wards.ward GROUP BY beds"
    ),
]


def opened(engine="duckdb", **words):
    private = {name: TABLES[name] for name in ("visits", "labs")}
    protect = dp.each("pid", **{"at_most": 50, **words})
    return dp.open(private, protect, columns=COLUMNS, public={"wards": TABLES["wards"]}, engine=engine)


@pytest.fixture(scope="module")
def plain():
    connection = duckdb.connect()
    for name, table in TABLES.items():
        connection.register(f"{name}_", table)
    connection.execute(PLAIN)
    return connection


def exact(text, data):
    """What the engine makes of the rows without any bound, by group."""
    question = parse(text, data).question
    one = Constant(1, Type(NUMBER, 1, 1, 0, null=False))
    features = tuple(one if aggregate.of is None else aggregate.of for aggregate in question.aggregates)
    keys = tuple(key.of for key in question.keys)
    asked = BoundedSums(kept_rows(question), keys, features, RowScheme(10**6, 1))
    return {
        group: sums
        for group, sums in data.engine.sums(asked).items()
        if None not in group or not question.keys
    }


def shown(text, plain, keys):
    rows = plain.execute(text).fetchall()
    found = {row[:keys]: tuple(int(part or 0) for part in row[keys:]) for row in rows}
    return {group: sums for group, sums in found.items() if None not in group}


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_question_is_about_the_rows_that_plain_sql_selects(engine, plain):
    data = opened(engine)
    for text in SELECTED:
        keys = len(parse(text, data).question.keys)
        assert exact(text, data) == shown(text, plain, keys), text


def test_a_unit_with_one_row_of_its_own_has_the_noise_of_one_row():
    data = opened()
    noises = {}
    for text in (
        "SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) AS p WHERE n > 2",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) AS n FROM visits) AS p WHERE n = 1",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) AS n FROM visits) AS p WHERE n < 4",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY pid, ward ORDER BY day) AS n FROM visits) AS p WHERE n = 1",
        "SELECT COUNT(*) FROM visits a JOIN (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) AS p USING (pid)",
    ):
        mechanism = compile_question(parse(text, data).question, data, Spend(epsilon=1.0))
        noises[text] = round(
            mechanism.stages[0].distributions[0].scale / mechanism.stages[0].sums.scheme.fine
        )
    assert list(noises.values()) == [50, 1, 1, 3, 50, 50]


def test_a_count_of_rows_is_bounded_by_at_most_unless_clamp_says_otherwise():
    def bounds(text, **words):
        (aggregate,) = parse(text, opened(**words)).question.aggregates
        return tuple(map(int, aggregate.of.type.bounds))

    counted = "FROM (SELECT pid, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY pid) AS p"
    assert bounds(f"SELECT SUM(n) {counted}") == (0, 50)
    assert bounds(f"SELECT SUM(s) {counted}") == (0, 450)
    assert bounds(f"SELECT SUM(n) {counted}", at_most=3) == (0, 3)
    assert bounds(f"SELECT SUM(CLAMP(n, 0, 1000)) {counted}", at_most="auto") == (0, 1000)
    assert bounds(f"SELECT SUM(CLAMP(n, 0, 1000)) {counted}", at_most=3) == (0, 1000)
    with pytest.raises(DiscreetError) as refused:
        bounds(f"SELECT SUM(n) {counted}", at_most="auto")
    assert refused.value.code == "DP104"
    assert "CLAMP(n, 0, 100)" in refused.value.fix


def test_a_column_that_a_query_makes_cannot_be_read_by_another_one():
    data = opened()
    for name in ("groups (2)", "groups", "windows", "visits (2)"):
        with pytest.raises(RefusedQuestion) as refused:
            parse(
                f'SELECT COUNT(*) FROM (SELECT pid FROM visits GROUP BY pid) AS p JOIN "{name}" USING (pid)',
                data,
            )
        assert refused.value.code == "DP701"
