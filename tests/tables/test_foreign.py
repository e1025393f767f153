# SPDX-License-Identifier: Apache-2.0
"""Questions that SQLAlchemy and Ibis write, and the descriptions that SHOW TABLES and DESCRIBE show."""

from __future__ import annotations

import sys
from datetime import date
from types import ModuleType

import pytest

import discreet as dp
from discreet.errors import BadParameter, RefusedQuestion
from discreet.tables.ask.foreign import sql_of
from discreet.tables.ask.sql import parse
from tests.tables.world import world

pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def session():
    frame = pl.DataFrame(
        {
            "patient_id": [n // 2 for n in range(120)],
            "ward": ["AB"[n % 3 == 0] for n in range(120)],
            "days": [n % 11 for n in range(120)],
            "came on": [date(2026, 1 + n % 12, 1) for n in range(120)],
        }
    )
    columns = {
        "ward": dp.column(values=["A", "B"]),
        "days": dp.column(bounds=(0, 10)),
        "came on": dp.column(bounds=(date(2026, 1, 1), date(2026, 12, 31))),
    }
    data = dp.open({"visits": frame}, protect=dp.each("patient_id", at_most=2), columns=columns)
    return dp.Session(data, limit=dp.Limit.filter(epsilon=1e9))


class Statement:
    """What a library makes, as far as a session sees it."""

    def __init__(self, text, fails=None):
        self.text, self.fails = text, fails

    def compile(self, compile_kwargs=None):
        assert compile_kwargs == {"literal_binds": True}
        if self.fails:
            raise self.fails
        return self.text


Statement.__module__ = "sqlalchemy.sql.selectable"


class Table(Statement):
    pass


Table.__module__ = "ibis.expr.types.relations"


@pytest.fixture
def ibis(monkeypatch):
    def to_sql(expression, dialect):
        assert dialect == "postgres"
        return expression.text

    module = ModuleType("ibis")
    module.to_sql = to_sql
    monkeypatch.setitem(sys.modules, "ibis", module)


COUNT = 'SELECT "t0"."ward", COUNT(*) AS "n" FROM "visits" AS "t0" GROUP BY 1'


@pytest.mark.parametrize("kind", [Statement, Table])
def test_a_session_answers_them(session, ibis, kind):
    answer = session.release(kind(COUNT), epsilon=1e5)
    assert [row[:2] for row in answer.rows()] == [("A", pytest.approx(80)), ("B", pytest.approx(40))]
    assert answer.question == COUNT
    assert session.preview(kind(COUNT), epsilon=1).cost.epsilon(delta=0) == pytest.approx(1)
    batch = session.release_batch({"monday": (kind(COUNT), {"epsilon": 1e5})})
    assert len(batch["monday"]) == 2


def test_what_they_cannot_write_is_refused(session):
    before = session.budget().spent_fraction
    with pytest.raises(RefusedQuestion, match="sqlalchemy cannot write") as refused:
        session.release(Statement("", KeyError("a value of a row")), epsilon=1)
    assert "value of a row" not in str(refused.value)
    for wrong in (Statement("SELECT * FROM visits"), Statement("DROP TABLE visits")):
        with pytest.raises(RefusedQuestion):
            session.release(wrong, epsilon=1)
    with pytest.raises(BadParameter):
        session.release(object(), epsilon=1)
    assert sql_of("SELECT 1") is None
    assert session.budget().spent_fraction == before


def test_a_question_inside_one_that_only_sorts_it():
    data = world()
    inner = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    wrapped = parse(
        f'SELECT * FROM ({inner}) AS "t2" ORDER BY "t2"."n" DESC NULLS LAST LIMIT 3', data
    ).question
    plain = parse(f"{inner} ORDER BY n DESC LIMIT 3", data).question
    assert (wrapped.order, wrapped.limit, wrapped.keys) == (plain.order, plain.limit, plain.keys)
    for text in (
        "SELECT * FROM (SELECT ward FROM visits) AS t",
        "SELECT * FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t",
        f"SELECT * FROM ({inner}) AS t WHERE n > 3",
        f"SELECT * FROM ({inner} LIMIT 2) AS t ORDER BY n",
        "SELECT * FROM (SELECT ward, COUNT(*) OVER () AS n FROM visits) AS t",
    ):
        with pytest.raises(RefusedQuestion):
            parse(text, data)


def test_with_sqlalchemy_itself(session):
    sa = pytest.importorskip("sqlalchemy")
    visits = sa.Table(
        "visits",
        sa.MetaData(),
        *(sa.Column("patient_id", sa.Integer), sa.Column("ward", sa.String), sa.Column("days", sa.Integer)),
        sa.Column("came on", sa.Date),
    )
    asked = (
        sa.select(visits.c.ward, sa.func.count().label("n"), sa.func.avg(visits.c.days).label("stay"))
        .where(visits.c.days > 3, visits.c["came on"] >= date(2026, 3, 1), visits.c.ward.in_(["A", "B"]))
        .group_by(visits.c.ward)
        .order_by(sa.desc("n"))
        .limit(1)
    )
    answer = session.release(asked, epsilon=1e6)
    assert answer.header[:2] == ["ward", "n"]
    assert len(answer) == 1
    people = session.release(sa.select(sa.func.count(sa.distinct(visits.c.patient_id))), epsilon=1e5)
    assert people.value == pytest.approx(60, abs=0.1)


def test_with_ibis_itself(session):
    ibis = pytest.importorskip("ibis")
    kinds = {"patient_id": "int64", "ward": "string", "days": "int64", "came on": "date"}
    visits = ibis.table(kinds, name="visits")
    recent = visits.filter(visits.days > 3, visits["came on"] >= date(2026, 3, 1))
    asked = recent.group_by("ward").agg(n=ibis._.count(), stay=ibis._.days.mean())
    answer = session.release(asked.order_by(ibis.desc("n")).limit(1), epsilon=1e6)
    assert answer.header[:2] == ["ward", "n"]
    assert session.release(visits.patient_id.nunique(), epsilon=1e5).value == pytest.approx(60, abs=0.1)
    long = visits.mutate(long=visits.days > 5).group_by("long").agg(n=ibis._.count())
    assert len(session.release(long, epsilon=1e5)) in {2, 3}


def test_the_description_is_shown_and_costs_nothing(session):
    before = session.budget().spent_fraction
    tables = session.sql("show tables;")
    assert tables.rows() == [("visits", "patient_id", "patient_id, ward, days, came on")]
    described = session.sql('DESCRIBE "visits"')
    assert described.header == ["column", "type", "bounds", "values", "can be NULL", "remark"]
    assert described.rows()[0][-1] == "privacy unit"
    assert described.rows()[1][:4] == ("ward", "text", "", "A, B")
    assert described.rows()[2][:3] == ("days", "integer", "0 to 10")
    assert session.sql("DESC TABLE Visits").rows() == described.rows()
    assert dp.tables.Answer.from_json(described.to_json()).rows() == described.rows()
    assert session.budget().spent_fraction == before


@pytest.mark.parametrize(
    "text",
    [
        "DESCRIBE",
        "SHOW",
        "DESCRIBE nothing",
        "SHOW COLUMNS FROM visits",
        "DESCRIBE visits days",
        'DESC "Visits"',
    ],
)
def test_other_descriptions_are_refused(session, text):
    with pytest.raises(RefusedQuestion) as refused:
        session.sql(text, epsilon=1)
    assert refused.value.code == "DP702"
    assert session.sql(refused.value.fix.split("   or   ")[1])
