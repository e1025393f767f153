# SPDX-License-Identifier: Apache-2.0
"""Fixes in the names of a table that is like no example: a shop, whose columns and values occur in no fix that is written down."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import discreet as dp
from tests.mistakes import clinic
from tests.mistakes.clinic import Asked, Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

ORDERS = pa.table(
    {
        "client": [770_001 + at for at in range(40)],
        "branch": ["Xanten", "Yverdon"] * 20,
        "basket": [31.4375 + at for at in range(40)],
        "note": [f"Zither{at}" for at in range(40)],
        "age": [20 + at for at in range(40)],
        "bought": [dt.date(2033, 3, 1 + at % 28) for at in range(40)],
        "paid_at": [dt.datetime(2033, 3, 1 + at % 28, 12, tzinfo=dt.UTC) for at in range(40)],
        "vip": [True, False] * 20,
    }
)
SCORES = pa.table({"client": [770_001 + at for at in range(40)], "score": [float(at) for at in range(40)]})
COLUMNS = {"branch": dp.column(values=["Xanten", "Yverdon"]), "age": dp.column(bounds=(18, 99))}
WHOM = 'dp.each("client", at_most=1)'
COUNT = "SELECT COUNT(*) FROM orders"
BY_BRANCH = "SELECT branch, COUNT(*) FROM orders GROUP BY branch"
NOTED = "CASE WHEN note = 'A' THEN 1 ELSE 0 END"
NO_DELTA, SOME = "dp.Limit.filter(epsilon=1)", "dp.Limit.filter(epsilon=1, delta=1e-6)"
BY_NOTE = '"SELECT note, COUNT(*) FROM orders GROUP BY note"'


@pytest.fixture(scope="module")
def orders():
    return clinic.watched(dp.open(ORDERS, dp.each("client", at_most=1), name="orders", columns=COLUMNS))


@pytest.fixture(scope="module")
def both():
    sources = {"orders": ORDERS, "scores": SCORES}
    return clinic.watched(
        dp.open(sources, dp.each("client", at_most=1), name="shop", columns={"orders": COLUMNS})
    )


def where(wrong: str, code: str, fix: str) -> Mistake:
    """A condition in place of another one."""
    return Mistake(f"{COUNT} WHERE {wrong}", code, fix, f"{COUNT} WHERE {fix}")


def selected(wrong: str, code: str, fix: str, right: str = "{}") -> Mistake:
    """Something else selected."""
    return Mistake(f"SELECT {wrong} FROM orders", code, fix, f"SELECT {right.format(fix)} FROM orders")


SQL = (
    selected("AVG(note)", "DP705", NOTED, "AVG({})"),
    selected("AVG(branch)", "DP705", "CASE WHEN branch = 'Xanten' THEN 1 ELSE 0 END", "AVG({})"),
    selected("SUM(CAST(note AS INT))", "DP705", NOTED, "SUM({})"),
    selected("MEDIAN(note)", "DP705", NOTED, "MEDIAN({})"),
    selected("AVG(bought)", "DP705", "YEAR(bought)", "AVG({})"),
    selected("AVG(paid_at)", "DP705", "HOUR(paid_at)", "AVG({})"),
    selected("KURTOSIS(age)", "DP706", "AVG(age), VAR_POP(age), MEDIAN(age)"),
    selected("CORR(age, basket)", "DP104", "CORR(age, CLAMP(basket, 0, 500))"),
    selected("AVG(basket)", "DP104", "AVG(CLAMP(basket, 0, 500))"),
    selected("STRING_AGG(note, ',')", "DP706", "COUNT(*)"),
    selected("AVG(CLAMP(basket))", "DP702", "CLAMP(basket, 0, 60)", "AVG({})"),
    selected("APPROX_COUNT_DISTINCT(note)", "DP706", "COUNT(DISTINCT note)"),
    selected("SUM(age, basket)", "DP706", "SUM(age)"),
    Mistake(
        "SELECT branch FROM orders WHERE COUNT(*) > 3",
        "DP706",
        "HAVING COUNT(*) > 100",
        f"{BY_BRANCH} HAVING COUNT(*) > 100",
    ),
    Mistake(
        "SELECT SUM(age) OVER (PARTITION BY branch) FROM orders",
        "DP702",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY client ORDER BY age) AS n FROM orders) AS v "
        "WHERE n = 1",
    ),
    Mistake("SELECT DISTINCT branch FROM orders", "DP702", BY_BRANCH),
    Mistake("SELECT * FROM orders", "DP702", COUNT),
    Mistake("how many orders?", "DP702", COUNT),
    Mistake("", "DP702", COUNT),
    Mistake(
        "SELECT HISTOGRAM(age) FROM orders",
        "DP706",
        "SELECT BUCKET(age, 0, 10, 20) AS bucket, COUNT(*) FROM orders GROUP BY bucket",
    ),
    where("age IN (SELECT age FROM orders)", "DP702", "age IN (1, 2)"),
    where("note IN (SELECT note FROM orders)", "DP702", "note IN ('A', 'B')"),
    where("branch IN (SELECT branch FROM orders)", "DP702", "branch IN ('Xanten', 'Yverdon')"),
    where(
        "bought IN (SELECT bought FROM orders)", "DP702", "bought IN (DATE '2026-01-01', DATE '2026-01-02')"
    ),
    where("vip IN (SELECT vip FROM orders)", "DP702", "vip IN (TRUE)"),
    Mistake(
        f"{COUNT} WHERE client IN (SELECT score FROM scores)",
        "DP702",
        "FROM orders JOIN scores USING (client)",
        "SELECT COUNT(*) FROM orders JOIN scores USING (client)",
    ),
    Mistake(
        f"{COUNT} WHERE client IN (SELECT age FROM orders)",
        "DP702",
        "leave client out",
        left_out=" WHERE client IN (SELECT age FROM orders)",
    ),
    Mistake(
        f"{COUNT} WHERE EXISTS (SELECT 1 FROM scores)",
        "DP702",
        "EXISTS (SELECT * FROM scores WHERE scores.client = orders.client)",
        f"{COUNT} WHERE EXISTS (SELECT * FROM scores WHERE scores.client = orders.client)",
    ),
    selected("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, basket)", "DP706", "QUANTILE(age, 0.9)"),
    selected("COUNT(NULL)", "DP706", "COUNT(*)"),
    selected("SUM(age % vip)", "DP705", "age % 7", "SUM({})"),
    where("note LIKE age", "DP705", "note LIKE 'A%'"),
    where("age IN (1, 'a')", "DP705", "age IN (1, 2, 3)"),
    where("(age, basket) = (1, 2)", "DP702", "age = 1 AND basket = 2"),
    where("INTERVAL 3 DAY > DATE '2026-01-01'", "DP702", "bought + INTERVAL 7 DAY > DATE '2026-01-01'"),
    Mistake(
        f"{COUNT} NATURAL JOIN scores",
        "DP703",
        "JOIN scores USING (client)",
        f"{COUNT} JOIN scores USING (client)",
    ),
    Mistake(f"{COUNT} GROUP BY 'x'", "DP704", "leave it out", left_out=" GROUP BY 'x'"),
    Mistake(f"{COUNT} FETCH FIRST 3 ROWS ONLY", "DP702", "LIMIT 10", f"{COUNT} LIMIT 10"),
    Mistake(f"{COUNT} WHERE note = 'A", "DP702", "note = 'A'", f"{COUNT} WHERE note = 'A'"),
    where("age > ANY (SELECT age FROM orders)", "DP702", "age > 3"),
    where("age = 'x'", "DP705", "age = 3"),
    where("note = 3", "DP705", "note = 'A'"),
    where("branch = 3", "DP705", "branch = 'Xanten'"),
    where("bought > 3", "DP705", "bought > DATE '2026-01-01'"),
    where("paid_at > 3", "DP705", "paid_at > TIMESTAMP '2026-01-01 00:00:00'"),
    where("note", "DP705", "note = 'A'"),
    where("age", "DP705", "age > 3"),
    where("bought", "DP705", "bought >= DATE '2026-01-01'"),
    where("vip = 1", "DP705", "NOT vip"),
    where("INITCAP(note) = 'Q'", "DP705", "UPPER(note) = 'A'"),
    Mistake(
        f"{COUNT} CROSS JOIN scores",
        "DP703",
        "JOIN scores USING (client)",
        f"{COUNT} JOIN scores USING (client)",
    ),
    where("CONTAINS(note, 'a_b')", "DP705", "note LIKE '%A_B%'"),
    where("STARTS_WITH(note, branch)", "DP705", "note LIKE 'A%'"),
    selected("AVG(LENGTH(note))", "DP104", "AVG(CLAMP(LENGTH(note), 0, 500))"),
    Mistake(
        f"{COUNT} LEFT JOIN (SELECT DISTINCT client FROM orders) AS o ON orders.client = o.client WHERE o.client IS NULL",
        "DP706",
        "1 AS found",
        f"{COUNT} LEFT JOIN (SELECT DISTINCT client, 1 AS found FROM orders) AS o ON orders.client = o.client WHERE found IS NULL",
    ),
    where("bought > CURRENT_DATE", "DP702", "bought >= DATE '2026-01-01'"),
    where("age = NULL", "DP705", "age IS NULL"),
    where("note < 'M'", "DP705", "note IN ('A', 'B')"),
    Mistake(
        "SELECT EXTRACT(DOW FROM bought), COUNT(*) FROM orders GROUP BY 1",
        "DP705",
        "EXTRACT(isodow FROM bought)",
        "SELECT EXTRACT(isodow FROM bought), COUNT(*) FROM orders GROUP BY 1",
    ),
)


@mistakes(*SQL)
def test_in_sql(mistake, both):
    place = Asked(data=both)
    assert check_mistake(mistake, place).what


def opened(more: str) -> str:
    return f"dp.open(orders_table, protect={WHOM}{more})"


def asked(limit: str, cost: str, question: str = BY_NOTE) -> str:
    return f"dp.Session(data, {limit}).sql({question}, {cost})"


def counted(question: str) -> str:
    return f"session.release({question}, epsilon=1)"


PYTHON = (
    Mistake(
        f"session.release_batch({{'a': '{COUNT}'}})",
        "DP104",
        f"session.release_batch({{'a': ('{COUNT}', {{'epsilon': 0.1}})}})"
    ),
    Mistake("dp.Session(data, dp.Limit.filter(epsilon=1), response_time='soon')", "DP102", 'response_time="2s"', 'dp.Session(data, dp.Limit.filter(epsilon=1), response_time="2s")'),
    Mistake(counted('data.mode("notes", values=["a"])'), "DP107", "data.mode(\"note\", values=['a'])", counted("data.mode(\"note\", values=['a'])")),
    Mistake(counted('data.mode("note", values="ab")'), "DP104", "values=['ab']", counted("data.mode(\"note\", values=['ab'])")),
    Mistake("session.sql(5, epsilon=1)", "DP104", f'session.sql("{COUNT}", epsilon=0.1)'),
    Mistake("dp.Session(data)", "DP603", f"dp.Session(data, {SOME})"),
    Mistake(
        "dp.Session(data, ledger='shop.ledger')",
        "DP603",
        f"dp.Session(data, {SOME}, ledger='shop.ledger')"
    ),
    Mistake(
        "dp.Ledger('shop.ledger')",
        "DP603",
        f"dp.Ledger('shop.ledger', limit={SOME})"
    ),
    Mistake(
        opened(", columns={'age': (18, 99)}"),
        "DP403",
        'columns={"age": dp.column(bounds=(18, 99))}',
        opened(', columns={"age": dp.column(bounds=(18, 99))}'),
    ),
    Mistake(
        opened(", columns={'branch': ['Xanten', 'Yverdon']}"),
        "DP403",
        "columns={\"branch\": dp.column(values=['Xanten', 'Yverdon'])}",
        opened(", columns={\"branch\": dp.column(values=['Xanten', 'Yverdon'])}"),
    ),
    Mistake(
        "dp.column('integer', bounds=(99, 18))",
        "DP403",
        "bounds = [18, 99]",
        "dp.column('integer', bounds = [18, 99])",
    ),
    Mistake(
        asked(SOME, "epsilon=0.1"), "DP704", "epsilon=0.1, delta=1e-6", asked(SOME, "epsilon=0.1, delta=1e-6")
    ),
    Mistake(
        asked("dp.Limit.filter(epsilon=1, delta=1e-8)", "epsilon=0.1"),
        "DP704",
        "epsilon=0.1, delta=1e-8",
        asked("dp.Limit.filter(epsilon=1, delta=1e-8)", "epsilon=0.1, delta=1e-8"),
    ),
    Mistake(
        asked(NO_DELTA, "epsilon=0.1"),
        "DP704",
        "WHERE note IN ('A', 'B')",
        asked(NO_DELTA, "epsilon=0.1", BY_NOTE.replace(" GROUP", " WHERE note IN ('A', 'B') GROUP")),
    ),
    Mistake(
        asked(NO_DELTA, "epsilon=0.1, delta=1e-3"),
        "DP203",
        "WHERE note IN ('A', 'B')",
        asked(NO_DELTA, "epsilon=0.1", BY_NOTE.replace(" GROUP", " WHERE note IN ('A', 'B') GROUP")),
    ),
    Mistake(
        asked(SOME, "epsilon=0.1, delta=1e-3"),
        "DP601",
        "epsilon=0.1, delta=1e-6",
        asked(SOME, "epsilon=0.1, delta=1e-6"),
    ),
    Mistake(asked(NO_DELTA, "rho=0.1", f'"{COUNT}"'), "DP203", "epsilon=0.5", asked(NO_DELTA, "epsilon=0.5", f'"{COUNT}"')),
    Mistake(counted("data.group_by().count()"), "DP107", 'data.group_by("branch")', counted('data.group_by("branch").count()')),
    Mistake(
        counted('data.group_by("branch").aggregate()'),
        "DP104",
        'data.group_by("branch").aggregate(n=count())',
        counted('data.group_by("branch").aggregate(n=count())'),
    ),
    Mistake(counted('both["orders"].join("scorez").count()'), "DP701", '.join("scores")', counted('both["orders"].join("scores").count()')),
    Mistake(counted('data.where("age > 30").count()'), "DP104", 'dp.col("age") > 30', counted('data.where(dp.col("age") > 30).count()')),
    Mistake(counted('data.where("branch = \'Xanten\'").count()'), "DP104", "dp.col(\"branch\") == 'Xanten'", counted("data.where(dp.col(\"branch\") == 'Xanten').count()")),
    Mistake(counted('data.group_by("branch", keys="Xanten").count()'), "DP104", "['Xanten']", counted("data.group_by(\"branch\", keys=['Xanten']).count()")),
)  # fmt: skip


@mistakes(*PYTHON)
def test_in_python(mistake, orders, both, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = Here(data=orders, both=both)
    place.sessions["data"] = place.sessions["both"] if "both[" in mistake.wrong else place.sessions["data"]
    place.words["session"] = place.sessions["data"]
    place.words["orders_table"] = ORDERS
    assert check_mistake(mistake, place).what


def test_a_unit_that_is_not_there_names_the_columns_that_are():
    with pytest.raises(dp.errors.DiscreetError) as refused:
        dp.open(ORDERS, dp.each("patientid", at_most=1))
    assert "one of: client, branch, note, age, bought" in refused.value.fix
    assert "each(" not in refused.value.fix  # nobody is protected in the place of somebody else
