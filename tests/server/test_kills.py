# SPDX-License-Identifier: Apache-2.0
"""A server that is killed at any moment loses no answer and charges no key twice."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from discreet.ledger import Ledger
from discreet.ledger.receipt import NOT_DRAWN
from tests.chance import no_chance
from tests.server.running import COUNT, write_visits

pytestmark = no_chance("answers are drawn in another Python, and any will do")

#: How many questions are asked, by several people's clients at once.
CLIENTS = 3


class Killed:
    """A server in a process of its own, which is killed and started again; its address changes."""

    def __init__(self, folder):
        self.folder, self.description = folder, write_visits(folder, 500)
        self.process, self.where = None, ("", "")

    def start(self):
        words = ["serve", str(self.description), "--port", "0", "--json"]
        command = [sys.executable, "-c", f"from discreet.cli import main; main({words!r})"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        text = ""
        for line in self.process.stdout:
            text += line
            with contextlib.suppress(json.JSONDecodeError):
                facts = json.loads(text)
                self.where = facts["url"], facts["token"]
                return
        raise AssertionError(text)

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def ask(self, key):
        """The answer under a key, however often it takes to ask for it."""
        while True:
            url, token = self.where
            headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
            with contextlib.suppress(httpx.HTTPError):
                body = {"sql": COUNT, "epsilon": 0.01}
                response = httpx.post(
                    f"{url}/v1/datasets/visits/questions", json=body, headers=headers, timeout=60
                )
                if response.status_code in (200, 201):
                    return response.json()["answer"]
            self.pause.wait(0.05)

    pause = threading.Event()


def survive(folder, kills, seconds):
    """Ask while a server is killed so many times; the answers by key, and its ledger."""
    server, answers, done = Killed(folder), {}, threading.Event()
    server.start()

    def client(name):
        for number in range(10_000):
            if done.is_set():
                return
            answers[f"{name}-{number}"] = server.ask(f"{name}-{number}")

    threads = [threading.Thread(target=client, args=(f"c{name}",)) for name in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        for kill in range(kills):
            asked, until = len(answers), time.monotonic() + 120
            while len(answers) == asked and time.monotonic() < until:
                server.pause.wait(0.01)
            # at another moment of the next questions each time
            server.pause.wait(seconds * (kill % 7) / 7)
            server.kill()
            server.start()
    finally:
        done.set()
        for thread in threads:
            thread.join(120)
    again = {key: server.ask(key) for key in answers}
    server.kill()
    assert again == answers
    return answers, Ledger(folder / "visits-server" / "visits.ledger")


@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_server_loses_nothing_and_charges_nothing_twice(tmp_path, kills):
    answers, ledger = survive(tmp_path, kills, 0.3)
    charged = [entry.key.rpartition("/")[2] for entry in ledger.entries() if entry.kind == "reserved"]
    assert len(answers) > kills
    assert len(charged) == len(set(charged))
    assert set(charged) >= set(answers)
    assert NOT_DRAWN not in {entry.answer for entry in ledger.entries() if entry.kind == "committed"}
    assert ledger.verify().intact
    ledger.close()
