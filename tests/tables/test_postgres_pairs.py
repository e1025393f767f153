# SPDX-License-Identifier: Apache-2.0
"""What PostgreSQL keeps between questions: used while nothing changes, and never for rows that are gone."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import discreet as dp
from discreet.tables.engines.postgres_pairs import PairTables

psycopg = pytest.importorskip("psycopg")
BY_WARD = "SELECT ward, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY ward"
COLUMNS = {"ward": dp.column(values=["a", "b"]), "x": dp.column(bounds=(0, 9))}
TABLE = """
    CREATE TABLE visits (p bigint, ward text, x bigint);
    INSERT INTO visits VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3), (3, 'b', 4)
"""
FIRST = {"a": (2, 4), "b": (2, 6)}


@pytest.fixture
def admin(postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(TABLE)
        yield connection


@pytest.fixture
def address(postgres_database, admin):
    return postgres_database


@contextmanager
def opened(address, table="visits"):
    with dp.open(address, dp.each("p", at_most=5), table=table, name="visits", columns=COLUMNS) as data:
        yield dp.Session(data, dp.Limit.filter(1e9))


def asked(session, text=BY_WARD):
    """The numbers by ward; at this ε the noise is far below a half."""
    answer = session.sql(text, epsilon=1e6)
    columns = [[round(number) for number in column.values] for column in answer.columns.values()]
    return dict(zip((group[0] for group in answer.groups), zip(*columns, strict=True), strict=True))


def kept(session):
    return len(session.data.engine._pair_tables._tables.keys())


@pytest.fixture
def made(monkeypatch):
    """How often pairs were made, or could not be kept."""
    counts, make = [], PairTables._make

    def counted(*words):
        counts.append(1)
        return make(*words)

    monkeypatch.setattr(PairTables, "_make", counted)
    return counts


def test_a_later_question_reads_the_kept_pairs(address, made):
    with opened(address) as session:
        assert asked(session) == FIRST
        assert kept(session) >= 1
        before = len(made)
        assert asked(session) == FIRST
        assert len(made) == before


@pytest.mark.parametrize(
    ("change", "then"),
    [
        ("DELETE FROM visits WHERE p = 1", {"a": (1, 3), "b": (1, 4)}),
        ("INSERT INTO visits VALUES (9, 'a', 9)", {"a": (3, 13), "b": (2, 6)}),
        ("UPDATE visits SET x = 9 WHERE p = 2", {"a": (2, 10), "b": (2, 6)}),
        ("TRUNCATE visits", {"a": (0, 0), "b": (0, 0)}),
        ("CREATE TABLE elsewhere (x int)", FIRST),
        ("SELECT 1", FIRST),
    ],
)
def test_rows_are_those_of_now(address, admin, change, then):
    with opened(address) as session:
        assert asked(session) == FIRST
        admin.execute(change)
        assert asked(session) == then
        assert asked(session) == then


def test_what_another_transaction_has_written_counts_when_it_is_there(address, made):
    with opened(address) as session, psycopg.connect(address) as writer:
        writer.execute("DELETE FROM visits WHERE p = 1")
        assert asked(session) == asked(session) == FIRST
        assert kept(session) == 0, "a transaction is running"
        writer.commit()
        assert asked(session) == {"a": (1, 3), "b": (1, 4)}
        assert kept(session) >= 1
        writer.execute("DELETE FROM visits WHERE p = 2")
        assert asked(session) == {"a": (1, 3), "b": (1, 4)}
        writer.rollback()
        assert asked(session) == {"a": (1, 3), "b": (1, 4)}


def test_two_data_sets_do_not_see_each_others_pairs(address, admin):
    with opened(address) as one, opened(address) as other:
        for _ in range(3):
            assert asked(one) == asked(other) == FIRST
        admin.execute("DELETE FROM visits WHERE p = 1")
        assert asked(one) == asked(other) == {"a": (1, 3), "b": (1, 4)}


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY; ALTER TABLE visits FORCE ROW LEVEL SECURITY",
        "CREATE TABLE part () INHERITS (visits)",
        "ALTER TABLE visits RENAME TO stored; CREATE VIEW visits AS SELECT * FROM stored",
        """ALTER TABLE visits RENAME TO stored; CREATE TABLE visits (LIKE stored) PARTITION BY LIST (ward);
           CREATE TABLE part PARTITION OF visits DEFAULT; INSERT INTO visits SELECT * FROM stored""",
        "ALTER DATABASE {} SET default_transaction_read_only = on",
    ],
    ids=["policies", "inherited", "view", "partitions", "read-only"],
)
def test_of_rows_that_may_change_otherwise_nothing_is_kept(address, admin, change):
    admin.execute(change.format(admin.info.dbname))
    with opened(address) as session:
        assert asked(session) == asked(session) == FIRST
        assert kept(session) == 0


def test_a_policy_that_comes_later_ends_it(address, admin):
    with opened(address) as session:
        assert asked(session) == FIRST
        admin.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
        assert asked(session) == FIRST
        assert not session.data.engine._kept


def test_a_role_that_may_make_no_tables_is_answered(address, admin):
    role = f"reader_{admin.info.dbname}"
    admin.execute(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON visits TO {role}")
    admin.execute(f"REVOKE ALL ON DATABASE {admin.info.dbname} FROM PUBLIC")
    admin.execute(f"GRANT CONNECT ON DATABASE {admin.info.dbname} TO {role}")
    try:
        with opened(address.replace("postgres@", f"{role}@")) as session:
            assert asked(session) == asked(session) == FIRST
            assert kept(session) == 0
    finally:
        admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_tables_that_are_gone_are_made_again(address):
    """As behind a pool, which gives every transaction another session."""
    with opened(address) as session:
        assert asked(session) == FIRST
        session.data.engine._connection.execute("BEGIN READ WRITE; DISCARD TEMP; COMMIT")
        assert asked(session) == asked(session) == FIRST
        session.data.engine.sleep()
        assert asked(session) == FIRST


def test_few_tables_are_kept(address, admin):
    with opened(address) as session:
        for least in range(8):
            asked(session, f"SELECT ward, COUNT(*) AS n FROM visits WHERE x > {least} GROUP BY ward")
        (count,) = admin.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'discreet_%'").fetchone()
        assert 1 <= count <= 4
        assert asked(session) == FIRST
    (count,) = admin.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ).fetchone()
    assert count <= 1, "the tables go with their connection"
