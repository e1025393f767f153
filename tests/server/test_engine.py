# SPDX-License-Identifier: Apache-2.0
"""The engine process and its watcher: how questions end, and what each end costs."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import discreet as dp
from discreet.ledger import Charge
from discreet.ledger.receipt import NOT_DRAWN
from discreet.server.config import EngineSettings
from discreet.server.engine import EngineHost, EngineOrder, EngineWatcher
from tests.chance import no_chance
from tests.server.running import COUNT, config_for, serving, write_rows, write_visits

pytestmark = no_chance("answers are drawn in the process of an engine, and any will do")

LIMIT = {"epsilon": 1, "delta": 1e-6}


class Pipe:
    """What an engine tells the server."""

    def __init__(self):
        self.told = []

    def send(self, message):
        self.told.append(message)


@pytest.fixture
def host(tmp_path):
    """An engine in this process, with its ledger."""
    made = EngineHost(Pipe(), write_visits(tmp_path), EngineSettings())
    place = str(tmp_path / "visits.ledger")
    dp.Ledger(place, limit=dp.Limit.filter(**LIMIT), unit=made.data.unit, dataset="visits")
    made.use_ledger(place)
    yield made
    made.data.close()


def order(key="k", sql=COUNT, **cost):
    return EngineOrder({key: (sql, cost or {"epsilon": 0.1}, ())}, "seat 1")


class Failing:
    """An engine that fails where rows would be read."""

    def __init__(self, inner):
        self.inner, self.name = inner, inner.name

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def sums(self, asked):
        raise MemoryError("a value of the data")


def test_the_server_is_told_of_a_charge_before_the_answer(host):
    reply = host.reply(order())
    assert (reply.state, reply.charged) == ("answered", True)
    assert host._pipe.told == [("charged", (2, ["k"]))]
    again = host.reply(order())
    assert (again.state, again.charged) == ("answered", False)
    assert again.answers["k"][0] == reply.answers["k"][0]


def test_an_engine_that_fails_by_its_rows_is_an_outcome_that_was_paid_for(host):
    host.data = replace(host.data, engine=Failing(host.data.engine))
    first, again = host.reply(order()), host.reply(order())
    assert (first.state, first.charged, first.error) == ("not drawn", True, None)
    assert (again.state, again.charged) == ("not drawn", False)
    assert host._ledger.find_for_all("k").answer == NOT_DRAWN
    assert "a value" not in repr((first, again))


def test_a_refusal_before_the_charge_is_none_after_it(host):
    reply = host.reply(order(epsilon=50.0))
    assert (reply.state, reply.charged, reply.error.code) == ("refused", False, "DP601")
    assert host._pipe.told == []


def test_data_that_were_replaced_are_opened_again_and_cost_nothing(host, tmp_path):
    write_rows(tmp_path, 100)
    assert not host.data.is_current()
    assert host.reply(order()).state == "answered"
    assert [kind for kind, _ in host._pipe.told] == ["reopened", "charged"]
    (tmp_path / "visits.parquet").unlink()
    gone = host.reply(order("other"))
    assert (gone.state, gone.charged) == ("not ready", False)
    assert [entry.kind for entry in host._ledger.entries()] == ["open", "described", "reserved", "committed"]


class Scripted(EngineWatcher):
    """A watcher whose engine says what a script says, and is ended in earnest."""

    def __init__(self, ledger, script):
        self._ledger, self._script, self.restarts, self.stopped = ledger, iter(script), 0, 0

    is_alive = True

    def _send(self, message):
        pass

    def _receive(self, seconds):
        return next(self._script)

    def stop(self):
        self.stopped += 1


@pytest.fixture
def ledger():
    return dp.Ledger(":memory:", limit=dp.Limit.filter(**LIMIT))


def hold(ledger, key):
    """A charge that waits for its answer."""
    (receipt,) = ledger.charge_all([Charge(dp.privacy.pure(0.1), COUNT, key)])
    return receipt


@pytest.mark.parametrize("end", ["died", "late"])
def test_an_engine_that_ends_after_the_charge_is_not_paid_again_and_not_drawn_again(ledger, end):
    receipt = hold(ledger, "k")
    watcher, told = Scripted(ledger, [("charged", (receipt.number, ["k"])), (end, None)]), []
    reply = watcher.run(order(), 60, told.append)
    assert (reply.state, reply.charged) == ("not drawn", True)
    assert (watcher.stopped, told) == (1, [receipt.number])
    assert ledger.find_for_all("k").answer == NOT_DRAWN
    assert ledger.find_pending("k") is None


def test_an_engine_that_dies_between_the_charge_and_its_report_is_found_out(ledger):
    hold(ledger, "k")
    reply = Scripted(ledger, [("died", None)]).run(order(), 60, lambda _: None)
    assert (reply.state, reply.charged) == ("not drawn", True)
    assert ledger.find_for_all("k").answer == NOT_DRAWN


def test_an_engine_that_ends_before_the_charge_costs_nothing(ledger):
    reply = Scripted(ledger, [("late", None)]).run(order(), 60, lambda _: None)
    assert (reply.state, reply.charged) == ("not ready", False)
    assert len(ledger) == 1


def test_a_step_that_was_paid_for_is_settled_too(ledger):
    receipt = hold(ledger, "first step")
    watcher = Scripted(ledger, [("charged", (receipt.number, ["first step"])), ("late", None)])
    assert watcher.run(order(), 60, lambda _: None).state == "not drawn"
    assert ledger.find_for_all("first step").answer == NOT_DRAWN


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are read from /proc")
def test_an_engine_process_gets_no_more_memory_than_the_settings_allow(tmp_path):
    watcher = EngineWatcher(write_visits(tmp_path), EngineSettings(memory=2**32))
    try:
        assert "visits" in watcher.start()
        limits = Path(f"/proc/{watcher.pid}/limits").read_text(encoding="ascii")
        (line,) = [line for line in limits.splitlines() if line.startswith("Max address space")]
        assert line.split()[3:5] == [str(2 * 2**32 + 2**30)] * 2
        assert int(Path(f"/proc/{watcher.pid}/oom_score_adj").read_text(encoding="ascii")) == 900
    finally:
        watcher.stop()


def test_an_engine_that_was_killed_is_started_by_the_next_question(tmp_path):
    with serving(config_for(tmp_path, write_visits(tmp_path))) as running:
        ((watcher, _),) = running.services.asking.datasets["visits"].engines
        os.kill(watcher.pid, signal.SIGKILL)
        watcher._process.join()
        assert running.ask("ana", "after").status_code == 201
        before = len(running.ledger)
        write_rows(tmp_path, 300)
        assert running.ask("ana", "replaced").status_code == 201
        assert len(running.ledger) == before + 2
        assert "data opened again" in {event.what for event in running.services.store.events()}
        # a charge whose server went away is answered for the same payment
        hosted = running.services.asking.datasets["visits"]
        key = f"q/{running.people['ana']}/held"
        preview = hosted.session("seat 1").preview(COUNT, epsilon=0.1)
        about = hosted.data.public_description()
        running.ledger.charge_all(
            [Charge(preview.cost, preview.question, key, "TableMechanism")],
            asker=dp.ledger.Asker("seat 1"),
            description=about,
            compiled=True,
            in_session=True,
        )
        charges = running.charges
        with running.client("ana") as client:
            place = "/v1/datasets/visits/questions/held"
            assert client.get(place).json()["state"] == "charged"
            answered = running.ask("ana", "held")
            assert (answered.status_code, answered.json()["paid"]) == (200, False)
            assert client.get(place).json()["state"] == "answered"
        assert running.charges == charges
