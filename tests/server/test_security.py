# SPDX-License-Identifier: Apache-2.0
"""Attacks on a server: wrong tokens, other hosts, large bodies, old ledgers."""

from __future__ import annotations

import concurrent.futures
import contextlib
import shutil
import sqlite3
import stat
from functools import partial

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DiscreetError
from discreet.server.config import HostedDescription, ServerConfig
from discreet.server.database import MIGRATIONS, FileDatabase, open_database
from discreet.server.rates import RateLimiter
from discreet.server.store import ServerStore
from discreet.server.tokens import Keyring, looks_like_token, new_token
from tests.chance import no_chance
from tests.server.running import config_for, serving, write_visits

pytestmark = no_chance("answers are drawn in the process of an engine, and any will do")

BASE = "/v1/datasets/visits"


def test_the_same_question_is_paid_once_however_often_it_is_asked(running):
    before = running.charges
    answers = {
        running.ask("ana", "again").text.partition('"answer"')[2].partition('"receipt"')[0] for _ in range(50)
    }
    assert len(answers) == 1
    assert running.charges == before + 1


def test_of_many_at_once_only_one_gets_the_last_that_fits(tmp_path):
    with serving(config_for(tmp_path, write_visits(tmp_path, epsilon=1.0))) as running:
        running.ask("ana", "first", epsilon=0.6)
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            found = list(
                threads.map(
                    lambda n: running.ask(("ana", "bo")[n % 2], f"k{n}", epsilon=0.3).status_code, range(8)
                )
            )
        assert sorted(found) == [201] + 7 * [409]
        assert running.ledger.verify().intact


def test_one_key_sent_many_times_at_once_is_one_charge(running):
    before = running.charges
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        found = [one.json() for one in threads.map(lambda _: running.ask("ana", "race"), range(8))]
    assert len({str(one["answer"]) for one in found}) == 1
    assert running.charges == before + 1


@pytest.mark.parametrize(
    "token",
    ["x", "dscr_", "Bearer", new_token(), new_token()[:-1] + "!", "ü" * 54],
    ids=["short", "prefix", "word", "unknown", "damaged", "letters"],
)
def test_whatever_is_wrong_with_a_token_is_told_in_one_text(running, token):
    with running.client() as client:
        response = client.get("/v1/me", headers={b"Authorization": f"Bearer {token}".encode()})
        none = client.get("/v1/me")
    assert response.status_code == none.status_code == 401
    assert response.content == none.content


def test_a_token_in_an_address_is_none(running):
    with running.client() as client:
        assert client.get("/v1/me", params={"token": running.tokens["ana"]}).status_code == 401
        assert (
            client.get("/v1/me", headers={"Cookie": f"discreet={running.tokens['ana']}"}).status_code == 401
        )


def test_a_revoked_token_is_none(running):
    running.add("fay", "analyst")
    with running.client("fay") as client:
        (token,) = client.get("/v1/tokens").json()["tokens"]
        assert client.delete(f"/v1/tokens/{token['id']}").status_code == 204
        assert client.get("/v1/me").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
def test_another_host_name_is_refused(running, host):
    with running.client("ana") as client:
        assert client.get("/v1/me", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_of_another_site_is_no_question(running, kind):
    with running.client("ana") as client:
        headers = {"Content-Type": kind, "Idempotency-Key": "form"}
        body = b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.1}'
        assert client.post(f"{BASE}/questions", content=body, headers=headers).status_code == 415


def test_a_body_that_is_too_large_is_cut_off(running):
    def chunks():
        for _ in range(1000):
            yield b" " * 10_000

    with running.client("ana") as client:
        headers = {"Content-Type": "application/json", "Idempotency-Key": "large"}
        # the server may close the connection before all is sent
        with contextlib.suppress(httpx.TransportError):
            response = client.post(f"{BASE}/questions", content=chunks(), headers=headers)
            assert (response.status_code, response.json()["code"]) == (413, "DP854")
        content = b" " * (256 * 1024 + 1)
        response = client.post(f"{BASE}/questions", content=content, headers=headers)
        assert (response.status_code, response.json()["code"]) == (413, "DP854")
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/../etc/passwd", f"{BASE}/questions/..%2F..", "/static/../server.db"],
)
def test_a_path_leads_nowhere_else(running, path):
    with running.client("ana") as client:
        assert client.get(running.url + path).status_code in (401, 404)


def test_every_response_forbids_scripts_and_frames(running):
    with running.client("ana") as client:
        for path in ("/healthz", "/nope", f"{BASE}", f"{BASE}/statement"):
            headers = client.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


def test_a_link_works_once(running):
    link = running.services.people.make_link(running.people["ana"])
    with running.client() as client:
        first = client.post("/v1/sign-in", json={"once": link})
        again = client.post("/v1/sign-in", json={"once": link})
    assert (first.status_code, again.status_code) == (201, 401)
    caller = running.services.people.caller_of_token(first.json()["token"])
    assert caller.person.id == running.people["ana"]


def test_what_a_token_may_spend_in_a_day_and_gaussian_noise_are_limited(tmp_path):
    config = config_for(tmp_path, write_visits(tmp_path), hosted={"gaussian": False})
    with serving(config) as running:
        running.add("gil", "analyst", seat="seat 3", most=0.25)
        found = [running.ask("gil", f"d{number}", epsilon=0.1) for number in range(3)]
        assert [one.status_code for one in found] == [201, 201, 403]
        assert found[2].json()["code"] == "DP853"
        gaussian = running.ask("ana", "g", epsilon=None, rho=0.001)
        assert (gaussian.status_code, gaussian.json()["code"]) == (403, "DP853")
        assert running.charges == 2


def test_a_question_about_public_tables_is_free_for_a_token_with_a_limit(tmp_path):
    place = write_visits(tmp_path)
    pq.write_table(pa.table({"ward": ["A", "B"], "beds": [10, 20]}), tmp_path / "wards.parquet")
    with place.open("a", encoding="utf-8") as file:
        file.write('[public.wards]\nsource = "wards.parquet"\n')
    with serving(config_for(tmp_path, place, hosted={"gaussian": False})) as running:
        running.add("lea", "analyst", seat="seat 3", most=0.25)
        asked = running.ask("lea", "beds", "SELECT SUM(beds) AS beds FROM wards", epsilon=None)
        assert asked.status_code == 200, asked.text
        assert "30" in asked.text
        assert asked.json()["paid"] is False
        assert running.charges == 0


def test_questions_on_their_way_count_towards_what_a_token_may_spend_in_a_day(running):
    running.add("kim", "analyst", seat="seat 3", most=0.25)
    ask = partial(running.ask, "kim", epsilon=0.1)
    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        found = list(threads.map(ask, [f"together{number}" for number in range(6)]))
    assert sorted(one.status_code for one in found) == [201, 201, 403, 403, 403, 403]


def test_a_dump_of_the_store_lets_nobody_in(running):
    place = running.folder / "state" / "server.db"
    session = running.services.sign_in.enter(running.tokens["ana"], "10.0.0.1")
    with sqlite3.connect(place) as database:
        dump = "\n".join(database.iterdump())
    database.close()
    assert not any(secret in dump for secret in (*running.tokens.values(), session))
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE((running.folder / "state" / "secret").stat().st_mode) == 0o600


def test_a_secret_that_others_can_read_is_refused(tmp_path):
    Keyring.at(tmp_path / "secret")
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(DiscreetError, match="DP858"):
        Keyring.at(tmp_path / "secret")


def test_what_a_proxy_says_counts_only_if_it_is_one_of_ours(running):
    from discreet.server.headers import RequestGuard

    scope = {"client": ("10.1.2.3", 1), "headers": [(b"x-forwarded-for", b"1.1.1.1, 2.2.2.2")]}
    ours = ServerConfig(running.folder, (), behind_proxy=("10.0.0.0/8",))
    other = ServerConfig(running.folder, (), behind_proxy=("192.168.0.0/16",))
    addresses = [
        RequestGuard(None, config, running.services.metrics)._address(scope) for config in (ours, other)
    ]
    assert addresses == ["2.2.2.2", "10.1.2.3"]


def test_a_ledger_that_is_gone_or_put_back_stops_the_start(tmp_path):
    config = config_for(tmp_path, write_visits(tmp_path))
    with serving(config) as running:
        running.ask("ana", "a")
        shutil.copy(running.ledger.where, tmp_path / "old.ledger")
        running.ask("ana", "b")
        place = running.ledger.where
    for old in (None, tmp_path / "old.ledger"):
        for ending in ("", "-wal", "-shm", "-journal"):
            (tmp_path / "state" / f"visits.ledger{ending}").unlink(missing_ok=True)
        if old is not None:
            shutil.copy(old, place)
        assert start_failure(config).code == "DP602"


def start_failure(config):
    """Why a server does not start."""
    import asyncio

    from discreet.server.app import make_app, make_services

    services = make_services(config)
    app = make_app(config, services)

    async def start():
        async with app.router.lifespan_context(app):
            raise AssertionError

    with pytest.raises(DiscreetError) as failure:
        asyncio.run(start())
    services.store.close()
    assert app.state.failure is failure.value
    return failure.value


def test_a_changed_line_of_the_access_log_is_noticed(tmp_path):
    database = open_database(tmp_path / "server.db")
    store = ServerStore(database)
    for number in range(5):
        store.log("signed in", f"p_{number}")
    assert store.check_events()
    database.run("UPDATE events SET person = 'p_9' WHERE number = 3")
    assert not store.check_events()
    database.run("UPDATE events SET person = 'p_2' WHERE number = 3")
    assert store.check_events()
    database.run("DELETE FROM events WHERE number = 2")
    assert not store.check_events()
    store.close()


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    database = open_database(tmp_path / "server.db")
    database.run("INSERT INTO store_version VALUES (?)", (len(MIGRATIONS) + 1,))
    database.close()
    with pytest.raises(DiscreetError, match="DP858"):
        open_database(tmp_path / "server.db")
    database = FileDatabase(tmp_path / "server.db")
    database.close()


def test_a_bucket_fills_up_evenly():
    now = 0.0
    rate = RateLimiter(2, 3, clock=lambda: now)
    for _ in range(3):
        rate.take("ana")
    with pytest.raises(DiscreetError) as refused:
        rate.take("ana")
    assert (refused.value.code, refused.value.retry) == ("DP855", 1)
    rate.take("bo")
    now = 0.5
    rate.take("ana")
    with pytest.raises(DiscreetError):
        rate.take("ana")


def test_a_token_has_a_checksum_by_which_it_is_known():
    token = new_token()
    assert looks_like_token(token)
    assert not looks_like_token(token[:-1] + ("a" if token[-1] != "a" else "b"))
    assert not looks_like_token("dscr_" + "a" * 43 + "AAAAAA")


def test_plain_text_to_other_machines_is_refused(tmp_path):
    hosted = (HostedDescription(tmp_path / "visits.toml"),)
    with pytest.raises(DiscreetError, match="DP858"):
        ServerConfig(tmp_path, hosted, host="0.0.0.0").check_binding()
    for works in (
        {"host": "127.0.0.1"},
        {"host": "0.0.0.0", "behind_proxy": ("10.0.0.0/8",)},
        {"host": "0.0.0.0", "tls_cert": "a", "tls_key": "b"},
    ):
        ServerConfig(tmp_path, hosted, **works).check_binding()
