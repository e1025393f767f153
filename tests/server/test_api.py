# SPDX-License-Identifier: Apache-2.0
"""The API: what each role may do, what a question costs, and how refusals look."""

from __future__ import annotations

import io
import json

import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Budget, Receipt
from discreet.server.people import PERMISSIONS
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.preview import Preview
from tests.chance import no_chance
from tests.server.running import COUNT

pytestmark = no_chance("answers are drawn in the process of an engine, and any will do")

BASE = "/v1/datasets/visits"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def test_an_answer_is_paid_for_once_and_shown_again(running):
    before = running.charges
    first, again = running.ask("ana", "once", BY_WARD), running.ask("ana", "once", BY_WARD)
    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.json()["paid"], again.json()["paid"]) == (True, False)
    assert first.headers["location"] == f"{BASE}/questions/once"
    assert first.json()["answer"] == again.json()["answer"]
    assert running.charges == before + 1
    answer = Answer.from_json(json.dumps(first.json()["answer"]))
    assert answer.header == ["ward", "n", "n_lo", "n_hi"]
    receipt = Receipt.from_json(json.dumps(first.json()["receipt"]))
    assert receipt.key == f"q/{running.people['ana']}/once"
    assert running.ledger.find_for_all(receipt.key) is not None


def test_a_key_stands_for_one_question(running):
    running.ask("ana", "taken")
    other = running.ask("ana", "taken", BY_WARD)
    assert other.status_code == 422
    assert other.json()["code"] == "DP604"
    assert running.ask("bo", "taken", BY_WARD).status_code == 201


def test_a_question_that_does_not_fit_costs_nothing_and_says_what_fits(running):
    before = running.charges
    refused = running.ask("ana", "huge", epsilon=1e6)
    assert refused.status_code == 409
    problem = refused.json()
    assert (problem["code"], problem["spent"]) == ("DP601", "nothing")
    assert refused.headers["content-type"] == "application/problem+json"
    assert running.charges == before
    assert running.ask("ana", "fits", epsilon=problem["fits"]["epsilon"] / 1e6).status_code == 201


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"sql": "SELECT nope FROM visits", "epsilon": 0.1}, 422, "DP701"),
        ({"sql": "SELEC", "epsilon": 0.1}, 422, "DP702"),
        ({"sql": COUNT}, 422, "DP107"),
        ({"sql": COUNT, "epsilon": -1}, 422, "DP102"),
        ({"sql": COUNT, "epsilon": "0.1"}, 400, "DP851"),
        ({"sql": COUNT, "epsilon": 0.1, "analyst": "bo"}, 400, "DP851"),
        ({"sql": "x" * 100_001, "epsilon": 0.1}, 400, "DP851"),
        ({"sql": "(" * 2000, "epsilon": 0.1}, 422, "DP702"),
        ({"epsilon": 0.1}, 400, "DP851"),
        ([], 400, "DP851"),
    ],
)
def test_a_wrong_question_is_refused_and_costs_nothing(running, body, status, code):
    before = running.charges
    with running.client("ana") as client:
        response = client.post(f"{BASE}/questions", json=body, headers={"Idempotency-Key": "wrong"})
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert running.charges == before


@pytest.mark.parametrize("key", ["", "a" * 129, "../bo", "q/x", "ü"])
def test_a_key_is_a_short_plain_word(running, key):
    with running.client("ana") as client:
        headers = {b"Idempotency-Key": key.encode()}
        response = client.post(f"{BASE}/questions", json={"sql": COUNT, "epsilon": 0.1}, headers=headers)
    assert response.json()["code"] == "DP851"


def test_a_preview_costs_nothing_and_reads_as_one_of_a_session(running):
    before = running.charges
    with running.client("ana") as client:
        found = client.post(f"{BASE}/previews", json={"sql": BY_WARD, "epsilon": 0.1}).json()
        toml = client.get(BASE, headers={"Accept": "application/toml"}).text
    preview = Preview.from_json(json.dumps(found["preview"]))
    assert preview.cost.epsilon(delta=0) == 0.1
    assert found["fits"]
    assert running.charges == before
    assert "parquet" not in toml
    assert Dataset.from_toml(toml).unit.protects == "patient"


def test_the_budget_is_that_of_the_own_seat(running):
    running.add("cy", "analyst", seat="seat 3")
    running.ask("cy", "a", epsilon=0.5)
    with running.client("cy") as client:
        body = client.get(f"{BASE}/budget").json()
        wire = Budget.from_json(json.dumps(body["budget"]))
        like = client.post(f"{BASE}/budget/like", json={"guarantee": wire.last.to_json()}).json()["like"]
    assert body["seat"] == "seat 3"
    assert 0 < body["spent_fraction"] < 0.01
    assert like > 10
    running.services.store.vacate_seat("visits", "seat 3")
    with running.client("cy") as client:
        assert client.get(f"{BASE}/budget").json()["code"] == "DP853"
    assert running.ask("cy", "b").status_code == 403


def test_answers_come_in_four_formats(running):
    running.ask("ana", "formats", BY_WARD)
    kinds = ("text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream")
    with running.client("ana") as client:
        csv, parquet, arrow = (
            client.get(f"{BASE}/questions/formats", headers={"Accept": kind}).content for kind in kinds
        )
        other = client.get(f"{BASE}/questions/formats", headers={"Accept": "image/png"})
    assert csv.decode().splitlines()[0] == "ward,n,n_lo,n_hi"
    tables = [pq.read_table(io.BytesIO(parquet)), pyarrow.ipc.open_stream(arrow).read_all()]
    assert tables[0].equals(tables[1])
    assert b"discreet.guarantee" in tables[0].schema.metadata
    assert (other.status_code, other.json()["code"]) == (406, "DP854")


def test_a_format_that_is_not_written_is_refused_before_the_charge(running):
    before = running.charges
    assert running.ask("ana", "png", headers={"Accept": "image/png"}).status_code == 406
    assert running.charges == before


def test_a_batch_is_answered_as_a_whole(running):
    questions = {"m": {"sql": COUNT, "epsilon": 0.1}, "n": {"sql": BY_WARD, "epsilon": 0.1}}
    with running.client("ana") as client:
        done = client.post(f"{BASE}/batches", json={"questions": questions})
        again = client.post(f"{BASE}/batches", json={"questions": questions})
        before = running.charges
        questions["o"] = {"sql": COUNT, "epsilon": 1e6}
        refused = client.post(f"{BASE}/batches", json={"questions": questions})
    assert (done.status_code, again.status_code, refused.status_code) == (201, 200, 409)
    assert done.json()["answers"]["m"]["answer"] == again.json()["answers"]["m"]["answer"]
    assert running.charges == before


def test_an_error_in_two_steps_is_paid_once(running):
    body = {"sql": "SELECT SUM(days) AS s FROM visits", "error": "±20%", "epsilon": None}
    first = running.ask("ana", "steps", **body)
    assert first.status_code == 201
    before = running.charges
    again = running.ask("ana", "steps", **body)
    assert again.status_code == 200
    assert again.json()["answer"] == first.json()["answer"]
    assert running.charges == before


def test_a_later_step_that_is_refused_is_an_outcome_whenever_it_is_asked(running):
    body = {"sql": "SELECT SUM(days) AS s FROM visits WHERE days = 61", "error": "±1%", "epsilon": None}
    first, again = running.ask("ana", "refused", **body), running.ask("ana", "refused", **body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["state"] == again.json()["state"] == "refused"
    assert first.json()["code"] == again.json()["code"]
    assert "first" in first.json()["spent"]
    with running.client("ana") as client:
        assert client.get(f"{BASE}/questions/refused").json()["state"] == "charged"


def test_the_own_questions_are_listed_by_their_keys(running):
    for number in range(3):
        running.ask("bo", f"list-{number}")
    with running.client("bo") as client:
        page = client.get(f"{BASE}/questions", params={"limit": 1}).json()
        rest = client.get(f"{BASE}/questions", params={"after": page["next"]}).json()
    keys = [one["key"] for one in page["questions"] + rest["questions"]]
    assert [key for key in keys if key.startswith("list-")] == ["list-0", "list-1", "list-2"]
    assert rest["next"] is None
    assert {one["state"] for one in rest["questions"]} == {"answered"}


def test_events_tell_the_outcome_of_a_question(running):
    running.ask("ana", "events")
    with running.client("ana") as client:
        text = client.get(f"{BASE}/questions/events/events").text
    assert text.splitlines()[0] == "event: answer"


#: For each route: the request, and the roles that are let through.
ROUTES = {
    ("GET", BASE): "read description",
    ("POST", f"{BASE}/previews"): "preview",
    ("POST", f"{BASE}/questions"): "ask",
    ("POST", f"{BASE}/batches"): "ask",
    ("GET", f"{BASE}/questions"): "read own answers",
    ("GET", f"{BASE}/ledger/entries"): "read ledger",
    ("GET", f"{BASE}/ledger/export"): "read ledger",
    ("GET", f"{BASE}/ledger/anchor"): "read ledger",
    ("POST", f"{BASE}/ledger/verification"): "read ledger",
    ("GET", f"{BASE}/statement"): "read statement",
    ("GET", f"{BASE}/people"): "read people",
    ("GET", f"{BASE}/seats"): "read people",
    ("PUT", f"{BASE}/seats/seat 4"): "change people",
}
BODIES = {
    f"{BASE}/previews": {"sql": COUNT, "epsilon": 0.1},
    f"{BASE}/questions": {"sql": COUNT, "epsilon": 0.1},
    f"{BASE}/batches": {"questions": {"k": {"sql": COUNT, "epsilon": 0.1}}},
    f"{BASE}/seats/seat 4": {"person": None},
}


@pytest.mark.parametrize("role", ["curator", "analyst", "auditor", "stranger", "nobody"])
@pytest.mark.parametrize(("method", "path"), list(ROUTES), ids=str)
def test_each_route_lets_its_roles_through_and_nobody_else(running, method, path, role):
    if role not in running.tokens and role != "nobody":
        running.add(
            role,
            *([role] if role != "stranger" else ["analyst"]),
            seat=None,
            dataset="visits" if role != "stranger" else "other",
        )
        if role in ("curator", "analyst"):
            running.services.store.take_seat(
                "visits", "seat 3" if role == "analyst" else "seat 4", running.people[role]
            )
    with running.client(None if role == "nobody" else role) as client:
        headers = {"Idempotency-Key": f"route-{role}"}
        response = client.request(method, path, json=BODIES.get(path), headers=headers)
    allowed = role in PERMISSIONS[ROUTES[method, path]]
    expected = {"nobody": {401}, "stranger": {404}}.get(role, {200, 201} if allowed else {403})
    assert response.status_code in expected, response.text


def test_whose_answer_it_is_nobody_else_can_tell(running):
    running.ask("ana", "mine")
    with running.client("bo") as client:
        theirs, unknown = (client.get(f"{BASE}/questions/{key}") for key in ("mine", "unknown"))
    assert theirs.status_code == unknown.status_code == 404
    assert theirs.content == unknown.content


def test_people_are_let_in_by_curators(running):
    with running.client("ana") as client:
        made = client.post("/v1/people", json={"name": "Di", "dataset": "visits", "seat": "seat 3"}).json()
        session = running.services.sign_in.enter(made["link"], "127.0.0.1")
        assert running.services.sign_in.caller(session).person.id == made["id"]
        assert client.delete(f"/v1/people/{made['id']}").status_code == 204
    assert running.services.sign_in.caller(session) is None


def test_a_token_is_shown_once_and_can_do_no_more_than_the_one_that_made_it(running):
    running.add("ed", "analyst", "auditor", roles=["analyst"], most=0.5)
    with running.client("ed") as client:
        made = client.post(
            "/v1/tokens", json={"name": "notebook", "roles": ["auditor", "analyst"], "most": 2.0}
        ).json()
        listed = client.get("/v1/tokens").json()["tokens"]
    caller = running.services.people.caller_of_token(made["token"])
    assert caller.roles == {"visits": frozenset({"analyst"})}
    assert caller.most == 0.5
    assert [one.get("token") for one in listed] == [None, None]


def test_a_token_for_one_data_set_makes_none_for_another(running):
    running.add("jo", "analyst", dataset="visits")
    running.services.store.grant(running.people["jo"], "other", "analyst")
    scoped, _ = running.services.people.make_token(
        running.people["jo"], "one", scopes={"dataset": "visits", "roles": ["analyst"]}
    )
    with running.client(Authorization=f"Bearer {scoped}") as client:
        assert client.post("/v1/tokens", json={"name": "n", "dataset": "other"}).status_code == 404
        made = client.post("/v1/tokens", json={"name": "n", "dataset": "visits"}).json()
    assert running.services.people.caller_of_token(made["token"]).roles == {"visits": frozenset({"analyst"})}


def test_a_session_may_do_what_its_token_may_and_ends_with_it(running):
    running.add("ida", "analyst", "curator", roles=["analyst"], most=0.5)
    sign_in, store = running.services.sign_in, running.services.store
    session = sign_in.enter(running.tokens["ida"], "127.0.0.2")
    caller = sign_in.caller(session)
    assert caller.roles == {"visits": frozenset({"analyst"})}
    assert caller.most == 0.5
    (token,) = store.tokens(running.people["ida"])
    assert store.revoke_token(token.id, running.people["ida"])
    assert sign_in.caller(session) is None


def test_health_and_metrics_need_no_token(running):
    with running.client() as client:
        assert client.get("/healthz").json() == {"state": "alive"}
        # Neither which data sets there are, nor whether an engine was ended by a question.
        assert client.get("/readyz").json() == {"state": "ready"}
        assert 'discreet_spent_fraction{dataset="visits"}' in client.get("/metrics").text


def test_the_access_log_is_chained_and_has_no_secrets(running):
    running.ask("ana", "log")
    with running.client("ana") as client:
        text = client.get("/v1/events", params={"limit": 200}).text
    assert running.services.store.check_events()
    assert "SELECT" not in text
    assert not any(token in text for token in running.tokens.values())
