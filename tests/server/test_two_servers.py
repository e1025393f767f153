# SPDX-License-Identifier: Apache-2.0
"""Two servers with one ledger and one store in PostgreSQL: one answer and one charge for a key, wherever it is sent."""

from __future__ import annotations

import concurrent.futures
import shutil
from pathlib import Path

import pytest

from discreet.server.database import open_database
from discreet.server.store import ServerStore
from discreet.server.tokens import Keyring
from tests.chance import no_chance
from tests.server.running import config_for, serving, write_visits

pytest.importorskip("psycopg")
pytestmark = no_chance("answers are drawn in the process of an engine, and any will do")


def charges_of_pairs(dsn: str, folder: Path, count: int) -> int:
    """How many charges there are when `count` keys were each sent to both servers at once."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA visits")
    configs = []
    for name in ("first", "second"):
        (folder / name / "state").mkdir(parents=True)
        hosted = {"ledger": f"{dsn}&schema=visits"}
        configs.append(config_for(folder / name, write_visits(folder), store=dsn, hosted=hosted))
    Keyring.at(configs[0].state / "secret")
    shutil.copy(configs[0].state / "secret", configs[1].state / "secret")
    with serving(configs[0]) as first, serving(configs[1], people={}) as second:
        second.tokens = first.tokens
        # One after the other: the first request to a route builds it, and two servers of one process that build at
        # once restore each other's filters of warnings. The second shows what the first has paid for.
        assert [server.ask("ana", "first").status_code for server in (first, second)] == [201, 200]
        before = first.charges
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            for number in range(count):
                sent = [threads.submit(server.ask, "ana", f"k{number}") for server in (first, second)]
                replies = [one.result() for one in sent]
                assert {reply.status_code for reply in replies} <= {200, 201}, [r.text for r in replies]
                assert len({str(reply.json()["answer"]) for reply in replies}) == 1
        assert first.ledger.verify().intact
        assert first.charges == second.charges
        return first.charges - before


def test_a_key_that_is_sent_to_two_servers_is_one_charge(postgres_database, tmp_path):
    assert charges_of_pairs(postgres_database, tmp_path, 4) == 4


@pytest.mark.slow
def test_a_thousand_keys_that_are_sent_to_two_servers(postgres_database, tmp_path):
    assert charges_of_pairs(postgres_database, tmp_path, 1000) == 1000


def test_a_store_in_postgresql_is_a_store(postgres_database):
    first, second = (ServerStore(open_database(postgres_database)) for _ in range(2))
    person = first.add_person("ana")
    first.grant(person.id, "visits", "analyst")
    first.take_seat("visits", "seat 1", person.id)
    assert second.seat_of("visits", person.id) == "seat 1"
