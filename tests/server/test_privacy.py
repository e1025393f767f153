# SPDX-License-Identifier: Apache-2.0
"""What a server tells: nothing before the charge that depends on rows, and after it nothing but outcomes on ticks."""

from __future__ import annotations

import asyncio
import itertools
import re

import pytest

from discreet.errors import ServerError
from discreet.server import ticks
from discreet.server.config import ShowingSettings
from discreet.server.engine import EngineWatcher
from discreet.server.line import AT_ONCE, IN_ALL, PER_PERSON, WaitingLine
from tests.chance import no_chance
from tests.server.running import COUNT, config_for, serving, write_visits

pytestmark = no_chance("answers are drawn in the process of an engine, and any will do")

BASE = "/v1/datasets/visits"


def test_nothing_before_a_charge_needs_an_engine(running, monkeypatch):
    running.ask("ana", "stored")

    def touched(*_):
        raise AssertionError

    monkeypatch.setattr(EngineWatcher, "run", touched)
    requests = [
        ("GET", BASE, None),
        ("GET", f"{BASE}/budget", None),
        ("POST", f"{BASE}/previews", {"sql": COUNT, "epsilon": 0.1}),
        ("POST", f"{BASE}/previews", {"sql": COUNT, "error": "±50"}),
        ("POST", f"{BASE}/questions", {"sql": "SELECT nope FROM visits", "epsilon": 0.1}),
        ("POST", f"{BASE}/questions", {"sql": COUNT}),
        ("GET", f"{BASE}/questions", None),
        ("GET", f"{BASE}/questions/stored", None),
        ("GET", f"{BASE}/questions/unknown", None),
        ("GET", f"{BASE}/statement", None),
        ("GET", f"{BASE}/ledger/entries", None),
        ("POST", f"{BASE}/ledger/verification", None),
        ("GET", "/readyz", None),
        ("GET", "/metrics", None),
    ]
    with running.client("ana") as client:
        for method, path, body in requests:
            response = client.request(method, path, json=body, headers={"Idempotency-Key": "untouched"})
            assert response.status_code != 500, (path, response.text)
    assert running.ask("ana", "stored").status_code == 200


#: What differs between two runs of one server on the same data: times, hashes, identities, and noise.
_CHANGING = re.compile(
    r'"(time|hash|previous|anchor|number)": ?("[^"]*"|\d+)|[pt]_[0-9a-f]{12}|[0-9a-f]{32,}'
)


def trace(folder, rows):
    """Everything about some questions that others than the one who asks may see."""
    folder.mkdir()
    description = write_visits(folder, rows)
    seen = []
    questions = [
        (COUNT, 0.1),
        ("SELECT ward, AVG(days) FROM visits GROUP BY ward", 0.2),
        ("SELECT COUNT(*) FROM visits WHERE patient_id = 5000", 0.1),
        ("SELECT days, COUNT(*) FROM visits GROUP BY days", 0.1),
        (COUNT, 1e6),
        ("SELECT nope FROM visits", 0.1),
    ]
    with serving(config_for(folder, description)) as running:
        for number, (sql, epsilon) in enumerate(questions * 2):
            response = running.ask("ana", f"k{number % len(questions)}", sql, epsilon=epsilon)
            names = sorted(name for name in response.headers if name not in ("date", "content-length"))
            seen.append((response.status_code, names, response.json().get("code")))
        with running.client("ana") as client:
            events = client.get("/v1/events").text
            counted = client.get("/metrics").text
        return seen, _CHANGING.sub("", events), counted


def test_neighbouring_data_have_equal_statuses_logs_and_metrics(tmp_path):
    with_person, without = trace(tmp_path / "with", 5001), trace(tmp_path / "without", 5000)
    assert with_person == without
    assert {status for status, _, _ in with_person[0]} == {200, 201, 409, 422}


class Time:
    """A loop whose time passes only while somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def time(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


def shown_at(monkeypatch, showing, ready):
    """When an outcome is shown that is ready at a time."""
    clock = Time()
    monkeypatch.setattr(ticks.asyncio, "get_running_loop", lambda: clock)

    class Outcome:
        def done(self):
            return clock.now >= ready

        def result(self):
            return clock.now

    with monkeypatch.context() as patch:
        patch.setattr(ticks.asyncio, "sleep", clock.sleep)
        coroutine = ticks.show_at_tick(showing, Outcome(), 0.0)
        # the clock above never suspends the coroutine, so that its first step is its last
        with pytest.raises(StopIteration) as ended:
            coroutine.send(None)
    return ended.value.value


def test_outcomes_are_shown_on_ticks_alone(monkeypatch):
    showing = ShowingSettings(tick=0.25)
    found = {
        ready: shown_at(monkeypatch, showing, ready) for ready in (0.0, 0.01, 0.24, 0.26, 0.9, 3.0, 63.0)
    }
    assert found == {0.0: 0.25, 0.01: 0.25, 0.24: 0.25, 0.26: 0.5, 0.9: 1.0, 3.0: 4.0, 63.0: 64.0}
    assert len({*itertools.islice(ticks.moments(showing), 9)}) == 9


def test_a_fixed_time_is_the_same_for_all(monkeypatch):
    showing = ShowingSettings(fixed=True, deadline=2.0)
    assert {shown_at(monkeypatch, showing, ready) for ready in (0.0, 0.3, 1.9)} == {2.0}


class Item:
    def __init__(self, person, number=0):
        self.person, self.number = person, number


def test_people_take_turns():
    async def order():
        line = WaitingLine()
        for person, count in (("ana", 3), ("bo", 1), ("cy", 2)):
            for number in range(count):
                line.join(Item(person, number))
        before = line.before(list(line._waiting["ana"])[2])
        taken = []
        for _ in range(6):
            item = await line.take()
            taken.append((item.person, item.number))
            line.finish(item)
        return before, taken

    before, taken = asyncio.run(order())
    assert taken == [("ana", 0), ("bo", 0), ("cy", 0), ("ana", 1), ("cy", 1), ("ana", 2)]
    assert before == 5


def test_a_line_is_never_too_long():
    async def fill():
        line, refused = WaitingLine(), 0
        for person in range(IN_ALL // PER_PERSON + 2):
            for number in range(PER_PERSON + 1):
                try:
                    line.join(Item(str(person), number))
                except ServerError:
                    refused += 1
        first = [await line.take() for _ in range(AT_ONCE)]
        return len(line) + len(first), refused

    assert asyncio.run(fill()) == (IN_ALL, IN_ALL // PER_PERSON + 2 * (PER_PERSON + 1))


def test_nobody_has_more_drawn_at_once_than_allowed():
    async def take():
        line = WaitingLine()
        for number in range(5):
            line.join(Item("ana", number))
        for _ in range(AT_ONCE):
            await line.take()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.take(), 0)
        return len(line)

    assert asyncio.run(take()) == 5 - AT_ONCE


def test_an_answer_that_is_late_is_fetched_with_its_key(tmp_path):
    slow = ShowingSettings(tick=1.0)
    with serving(config_for(tmp_path, write_visits(tmp_path), showing=slow)) as running:
        early = running.ask("ana", "slow", headers={"Prefer": "wait=0"})
        assert early.status_code == 202
        assert early.headers["retry-after"]
        assert early.json()["state"] in ("waiting", "charged")
        waiting = running.ask("ana", "next", headers={"Prefer": "wait=0"})
        assert waiting.json()["before"] == 0
        with running.client("ana") as client:
            assert client.delete(f"{BASE}/questions/next").status_code == 204
            assert client.get(f"{BASE}/questions/next").status_code == 404
            with client.stream("GET", f"{BASE}/questions/slow/events") as stream:
                names = [line[7:] for line in stream.iter_lines() if line.startswith("event: ")]
            assert names[-1] == "answer"
            assert client.delete(f"{BASE}/questions/slow").status_code == 409
        assert running.charges == 1
