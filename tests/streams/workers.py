# SPDX-License-Identifier: Apache-2.0
"""Processes that publish a stream, and are killed: run as  python -m tests.streams.workers TASK ARGUMENTS."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from discreet import testing
from discreet.errors import DiscreetError
from tests.ledger.workers import child, say, wait
from tests.processes import run_module
from tests.streams.world import data, day

NAME = "n"


def run(task: str, **arguments: Any) -> list[dict[str, Any]]:
    """What a task says, line by line."""
    done = run_module("tests.streams.workers", task, json.dumps(arguments))
    return [json.loads(line) for line in done.stdout.splitlines()]


def publish(where: str, file: str, periods: int) -> None:
    """Publish period by period, and say what was shown, as soon as it is."""
    import discreet as dp

    session = dp.Session(data(), ledger=where)
    stream = session.find_stream(NAME, file=file)
    for period in range(periods):
        with testing.today(day(7 * (period + 1))):
            rows = stream.release().rows()
        say(shown=[[str(value) for value in row] for row in rows])


def kill_at_any_time(where: str, file: str, kills: int, periods: int) -> None:
    """Processes are killed at moments that go through all of their work; the last one ends."""
    start = time.monotonic()
    say(ended=wait(child(lambda: publish(where, file, 1))))
    whole = max(0.05, time.monotonic() - start)
    for number in range(kills):
        process = child(lambda: publish(where, file, periods))
        time.sleep(whole * 1.5 * (number % 25) / 25)
        os.kill(process, signal.SIGKILL)
        wait(process)
    say(ended=wait(child(lambda: publish(where, file, periods))))


def race(where: str, file: str, processes: int, periods: int) -> None:
    """All at once."""
    children = [child(lambda: publish(where, file, periods)) for _ in range(processes)]
    say(ended=wait(*children))


if __name__ == "__main__":
    try:
        {"kill_at_any_time": kill_at_any_time, "race": race}[sys.argv[1]](**json.loads(sys.argv[2]))
    except DiscreetError as error:
        say(error=str(error))
        raise
