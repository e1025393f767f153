# SPDX-License-Identifier: Apache-2.0
"""A ledger on a server: rows stay, damage is noticed, and a server that does not answer is an error with a code."""

from __future__ import annotations

import sys

import pytest

from discreet import privacy
from discreet.errors import DiscreetError, LedgerError, MissingExtra
from discreet.ledger import Ledger, Limit
from discreet.ledger.postgres import PostgreSQL
from tests.ledger.workers import writing
from tests.postgres import schema

psycopg = pytest.importorskip("psycopg")

TENTH = privacy.pure(0.1)
LIMIT = Limit.filter(epsilon=1)
ANSWER = "a secret that nobody may see"
OFF, ON = "SET session_replication_role = replica", "SET session_replication_role = origin"


@pytest.fixture
def place(postgres_dsn):
    return schema(postgres_dsn)


@pytest.fixture
def ledger(place):
    with Ledger(place, limit=LIMIT) as opened:
        for key in ("a", "b", "c"):
            opened.commit(opened.charge(TENTH, key=key), ANSWER)
        yield opened


def statements(dsn, *texts):
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in texts:
            connection.execute(text)


def refused(dsn, **named):
    with pytest.raises(DiscreetError) as caught:
        Ledger(dsn, **named)
    assert ANSWER not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value.code


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET body = ''",
        "DELETE FROM ledger_entries WHERE number = 6",
        "TRUNCATE ledger_entries",
        "INSERT INTO ledger_entries VALUES (99, 'reserved', NULL, NULL, '{}', 'x', NULL)",
        "UPDATE ledger_head SET number = 3",
        "DELETE FROM ledger_head",
        "TRUNCATE ledger_head",
    ],
)
def test_rows_can_only_be_added(ledger, place, statement):
    with pytest.raises(psycopg.errors.RaiseException, match="only ever added"):
        statements(place, statement)
    assert ledger.verify().intact


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ledger_entries SET body = replace(body, '1/10', '1/99') WHERE number = 1",
        "UPDATE ledger_entries SET answer = '\"other\"' WHERE number = 2",
        "UPDATE ledger_entries SET key = 'other' WHERE number = 5",
        "DELETE FROM ledger_entries WHERE number = 3",
        "DELETE FROM ledger_entries WHERE number = 6",
        "DELETE FROM ledger_entries",
        "DELETE FROM ledger_head",
        "ALTER TABLE ledger_entries DISABLE TRIGGER ledger_never_changed",
        "DROP TRIGGER ledger_never_emptied ON ledger_entries",
        "CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "DROP INDEX ledger_answered",
        "ALTER TABLE ledger_entries ADD COLUMN more text",
        "DROP TABLE ledger_head",
        "COMMENT ON TABLE ledger_head IS NULL",
    ],
)
def test_what_was_changed_is_refused(ledger, place, change):
    ledger.close()
    statements(place, OFF, change, ON)
    assert refused(place) == "DP602"


def test_damage_under_an_open_ledger_is_noticed_at_the_next_charge(ledger, place):
    statements(place, OFF, "DELETE FROM ledger_entries WHERE number = 6", ON)
    with pytest.raises(LedgerError) as damaged:
        ledger.charge(TENTH)
    assert damaged.value.code == "DP602"


def test_the_words_of_the_server_which_may_quote_a_row_are_not_passed_on(ledger, place):
    statements(
        place,
        "ALTER TABLE ledger_entries ADD CHECK (answer IS NULL OR number < 8 OR length(answer) > 999)",
    )
    with pytest.raises(LedgerError) as refused_by_server:
        ledger.commit(ledger.charge(TENTH), ANSWER)
    assert ANSWER not in str(refused_by_server.value)
    assert refused_by_server.value.__cause__ is None
    assert refused_by_server.value.__suppress_context__


def test_a_layout_from_the_future_is_refused(ledger, place):
    statements(place, "COMMENT ON TABLE ledger_head IS 'a ledger of discreet, layout 2'")
    assert refused(place) == "DP402"


def test_each_schema_holds_a_ledger_of_its_own(ledger, postgres_dsn):
    with Ledger(schema(postgres_dsn), limit=LIMIT) as other:
        assert len(other) == 1
        assert other.anchor() != ledger.anchor()
    assert len(ledger) == 7


def test_a_server_that_is_not_there_is_out_of_reach(tmp_path):
    assert refused(f"postgresql://nobody:secret@/db?host={tmp_path}", limit=LIMIT) == "DP606"


def test_a_password_is_not_shown(ledger, place):
    with Ledger(place.replace("postgres@", "postgres:secret@")) as again:
        assert "secret" not in repr(again) + str(again) + again.where
        assert "user=postgres" in again.where


def test_who_waits_too_long_is_told_and_has_spent_nothing(ledger, place):
    with Ledger(PostgreSQL(place, patience=0.001)) as second:
        with writing(ledger._store):
            with pytest.raises(LedgerError) as busy:
                second.charge(TENTH)
            assert (busy.value.code, busy.value.spent) == ("DP606", "nothing")
        assert second.charge(TENTH).number == 7


def test_a_connection_that_died_in_the_meantime_is_replaced(ledger, place):
    end_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'discreet ledger'"
    )
    statements(place, end_all)
    assert ledger.charge(TENTH).number == 7


def test_a_connection_that_dies_in_a_transaction_leaves_nothing(ledger, place, monkeypatch):
    end_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'discreet ledger'"
    )
    append = ledger._store.append

    def append_and_lose(row):
        append(row)
        statements(place, end_all)

    monkeypatch.setattr(ledger._store, "append", append_and_lose)
    with pytest.raises(LedgerError) as lost:
        ledger.charge(TENTH)
    assert lost.value.code == "DP606"
    assert lost.value.spent != "nothing"  # it was lost while saying COMMIT: nobody can know
    assert ledger.verify().intact
    assert len(ledger) == 7


def test_commits_wait_for_the_disk_whatever_the_server_prefers(place):
    with Ledger(f"{place}%20-csynchronous_commit%3Doff", limit=LIMIT) as ledger:
        assert ledger._store.run("SHOW synchronous_commit") == [("off",)]
        with writing(ledger._store):
            assert ledger._store.run("SHOW synchronous_commit") == [("on",)]


def test_a_server_without_fsync_is_reported(ledger):
    """The server of the tests is one."""
    assert [finding.code for finding in ledger.verify().findings] == ["W6"]


def test_without_the_driver_the_line_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra) as missing:
        PostgreSQL("postgresql:///x")
    assert missing.value.fix == "pip install 'discreet[postgres]'"


# --- the schema belongs to the address ------------------------------------------------------------------


def charged(dsn, **named):
    """How much is spent there, after one more charge."""
    with Ledger(dsn, **named) as opened:
        opened.charge(TENTH)
        return opened.spent["epsilon"] * 10


#: Each leads the search path to another place than before.
TURNS = {
    "a schema of the name of the user": ["CREATE SCHEMA postgres"],
    "a search path of the role": [
        "CREATE SCHEMA a",
        "ALTER ROLE CURRENT_USER IN DATABASE {} SET search_path = a, public",
    ],
    "a search path of the database": ["CREATE SCHEMA a", "ALTER DATABASE {} SET search_path = a"],
    "a search path that leads nowhere": ["ALTER DATABASE {} SET search_path = nowhere"],
}


@pytest.mark.parametrize("turn", TURNS)
def test_a_search_path_that_leads_elsewhere_begins_no_new_ledger(postgres_database, turn):
    name = psycopg.conninfo.conninfo_to_dict(postgres_database)["dbname"]
    open_before = Ledger(postgres_database, limit=LIMIT)
    open_before.charge(TENTH)
    statements(postgres_database, *(text.format(name) for text in TURNS[turn]))
    with pytest.raises(LedgerError) as refusal:
        Ledger(postgres_database, limit=LIMIT)
    assert refusal.value.code == "DP609"
    # the address in the fix means the ledger that was there
    mended = refusal.value.fix.partition("ledger='")[2].removesuffix("'")
    assert mended == f"{postgres_database}&schema=public"
    assert charged(mended) == 2
    open_before.close()
    assert open_before.charge(TENTH).number == 3
    assert open_before.verify().intact
    assert "schema=public" in open_before.where
    open_before.close()


def test_a_table_of_the_same_name_in_front_is_not_read(postgres_database):
    """Rows are named with their schema, and the triggers read the head of the same schema."""
    named = f"{postgres_database}&schema=public"
    with Ledger(named, limit=LIMIT) as book:
        name = psycopg.conninfo.conninfo_to_dict(postgres_database)["dbname"]
        statements(
            postgres_database,
            "CREATE SCHEMA front",
            "CREATE TABLE front.ledger_head (one integer, number bigint, hash text)",
            "INSERT INTO front.ledger_head VALUES (1, 40, 'x')",
            "CREATE TABLE front.ledger_entries (LIKE public.ledger_entries)",
            f"ALTER DATABASE {name} SET search_path = front, public",
        )
        book.close()
        assert book.charge(TENTH).number == 1
        assert charged(named) == 2


def test_a_schema_in_the_address_decides_whatever_else_there_is(postgres_database):
    statements(postgres_database, "CREATE SCHEMA one", 'CREATE SCHEMA "Two schemas"')
    one, two = (f"{postgres_database}&schema={name}" for name in ("one", "Two%20schemas"))
    assert [charged(one, limit=LIMIT), charged(two, limit=LIMIT), charged(one)] == [1, 1, 2]
    path = f"{postgres_database}&options=-csearch_path%3DONE"
    assert charged(path) == 3
    for vague in (postgres_database, f"{postgres_database}&options=-csearch_path%3Done%2Cpublic"):
        assert refused(vague, limit=LIMIT) == "DP609"
    assert refused(f"{postgres_database}&schema=three", limit=LIMIT) == "DP606"
    assert refused(f"{postgres_database}&schema=a%25b", limit=LIMIT) == "DP606"


def test_of_two_who_begin_at_once_in_two_schemas_one_is_refused(postgres_database):
    """Both found no ledger in the database; the second to make one looks again."""
    statements(postgres_database, "CREATE SCHEMA a", "CREATE SCHEMA b")
    ways = [f"{postgres_database}&options=-csearch_path%3D{one}%2Cpublic" for one in "ab"]
    first, second = (PostgreSQL(way) for way in ways)
    assert not first.exists()
    assert not second.exists()
    Ledger(first, limit=LIMIT).close()
    with pytest.raises(LedgerError) as refusal:
        Ledger(second, limit=LIMIT)
    assert refusal.value.code == "DP609"
    second.close()


def test_what_the_environment_would_decide_is_asked_for(place, monkeypatch):
    assert refused("postgresql://nobody@localhost", limit=LIMIT) == "DP609"
    assert refused("postgresql://", limit=LIMIT) == "DP609"
    monkeypatch.setenv("PGHOST", "somewhere")
    assert refused("postgresql:///visits", limit=LIMIT) == "DP609"
    with Ledger(place, limit=LIMIT) as book:
        assert len(book) == 1
    with pytest.raises(LedgerError) as refusal:
        Ledger("postgresql://ana:secret@/visits?password=secret", limit=LIMIT)
    assert refusal.value.fix.endswith("ledger='postgresql://ana@/visits?host=somewhere'")
