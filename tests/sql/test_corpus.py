# SPDX-License-Identifier: Apache-2.0
"""What analysts write: answered as plain DuckDB does, on every engine, or refused with a Fix that works."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest

import discreet as dp
from discreet.errors import DiscreetError
from tests.sql import homes
from tests.sql.corpus import HUGE, Statement, differences, statements
from tests.sql.made import SHAPES

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
STATEMENTS = statements()


def session_of(data):
    return dp.Session(data, limit=dp.Limit.filter(epsilon=1e9, delta=0.5))


def outcome(session, truth, statement: Statement) -> str:
    """answered, refused, or what is wrong."""
    delta = 1e-6 if statement.delta else None
    if statement.code:
        try:
            session.sql(statement.text, epsilon=1, delta=delta)
        except DiscreetError as error:
            if error.code != statement.code or statement.fix not in error.fix:
                return f"{error.code} {error.what} {error.fix}"
            if error.spent != "nothing":
                return f"{error.code} has spent {error.spent}"
        else:
            return "answered, though it should be refused"
    try:
        answer = session.sql(statement.asked, epsilon=HUGE, delta=delta)
    except DiscreetError as error:
        return f"{error.code} {error.what} {error.fix}"
    table = truth.sql(statement.truth).to_arrow_table()
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    wrong = differences(answer, table.column_names, rows, statement.near)
    return "; ".join(wrong[:3]) or ("refused" if statement.code else "answered")


def must_hold(data, name: str, every: int = 1) -> Counter[str]:
    """Every statement of a data set, or one in so many, has its outcome; how often each."""
    session, truth = session_of(data), homes.plain(name)
    chosen = [one for one in STATEMENTS if one.shape == name][::every]
    outcomes = {one.name: outcome(session, truth, one) for one in chosen}
    wrong = {name: text for name, text in outcomes.items() if text not in {"answered", "refused"}}
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())
    return Counter(outcomes.values())


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("name", SHAPES)
def test_statements_are_answered_as_plain_duckdb_does(engine, name):
    pytest.importorskip(engine)
    with closing(homes.local(name, engine)) as data:
        assert must_hold(data, name)["answered"] > 30


@pytest.mark.parametrize("name", SHAPES)
def test_postgres_answers_them_too(postgres_database, name):
    with closing(homes.in_postgres(name, postgres_database)) as data:
        assert must_hold(data, name)["answered"] > 30


@pytest.mark.parametrize("name", SHAPES)
def test_spark_answers_some_of_them(spark_session, name):
    with closing(homes.in_spark(name, spark_session)) as data:
        assert must_hold(data, name, every=12)["answered"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_spark_answers_them_too(spark_session, name):
    with closing(homes.in_spark(name, spark_session)) as data:
        assert must_hold(data, name)["answered"] > 30


def test_the_corpus_is_large_and_mostly_answered():
    shown = Counter(f"{one.shape} {'refused' if one.code else 'answered'}" for one in STATEMENTS)
    print("\n".join(f"{count:4} {what}" for what, count in sorted(shown.items())))
    assert len(STATEMENTS) >= 200
    assert sum(1 for one in STATEMENTS if not one.code) >= 170
    assert all(one.instead for one in STATEMENTS if one.code)
    texts = [(one.shape, " ".join(one.text.split())) for one in STATEMENTS]
    assert len(set(texts)) == len(texts), "a statement is there twice"


def test_a_wrong_number_a_missing_group_and_a_group_too_many_are_noticed():
    with closing(homes.local("shop", "duckdb")) as data:
        answer = session_of(data).sql(
            "SELECT status, COUNT(*) AS n FROM orders GROUP BY status", epsilon=HUGE
        )
    rows = [(group[0], answer.columns["n"].values[at]) for at, group in enumerate(answer.groups)]
    assert differences(answer, ["status", "n"], rows) == []
    assert differences(answer, ["n", "status"], [row[::-1] for row in rows]) == []
    assert "instead of" in differences(answer, ["status", "n"], [(rows[0][0], rows[0][1] + 1), *rows[1:]])[0]
    assert "no row" in differences(answer, ["status", "n"], [*rows, ("lost", 3)])[0]
    assert "has no rows" in differences(answer, ["status", "n"], rows[1:])[0]
    assert "columns" in differences(answer, ["n"], [])[0]


def test_a_statement_is_read_with_its_outcome():
    named = {one.name: one for one in STATEMENTS}
    refused = named["Everything"]
    assert (refused.code, refused.fix, refused.instead) == (
        "DP702",
        "COUNT(*)",
        "SELECT COUNT(*) FROM census;",
    )
    assert named["Median age"].near == 1
    assert named["Groups of real numbers"].truth.startswith("SELECT (wage >= 25)")
    assert named["Comments, cleaned"].delta
