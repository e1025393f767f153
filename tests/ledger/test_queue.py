# SPDX-License-Identifier: Apache-2.0
"""Standing in line: one at a time, the next when the first has left, and nobody waits for those who have given up."""

from __future__ import annotations

import fcntl
import os
import threading

import pytest

from discreet.ledger import sqlite
from discreet.ledger.sqlite import wait_in_line
from tests.processes import PATIENCE


def is_taken(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def waiting(folder, patience=PATIENCE):
    """Somebody who stands in line behind us, and the list of what happened to them."""
    happened = []

    def wait():
        wait_in_line(folder, patience, lambda: happened.append("turn"))
        happened.append("left")

    thread = threading.Thread(target=wait)
    thread.start()
    return happened, thread


def test_the_next_gets_their_turn_when_the_first_has_left(tmp_path):
    def first():
        assert is_taken(tmp_path)
        happened, thread = waiting(tmp_path)
        assert happened == []
        return happened, thread

    happened, thread = wait_in_line(tmp_path, PATIENCE, first)
    thread.join(PATIENCE)
    assert happened == ["turn", "left"]
    assert not is_taken(tmp_path)


@pytest.fixture
def nobody_waits(monkeypatch):
    """Returns when those who gave up have had the lock once, and let go of it."""
    started = []

    class Recorded(threading.Thread):
        def start(self):
            started.append(self)
            super().start()

    def joined():
        for thread in started:
            thread.join(PATIENCE)
        return bool(started)

    monkeypatch.setattr(sqlite, "Thread", Recorded)
    return joined


def test_who_waited_too_long_goes_on_and_leaves_the_line(tmp_path, nobody_waits):
    def first():
        assert wait_in_line(tmp_path, 0, lambda: is_taken(tmp_path))  # still by the first
        assert is_taken(tmp_path)

    wait_in_line(tmp_path, PATIENCE, first)
    # the next gets its turn although somebody gave up before
    assert wait_in_line(tmp_path, PATIENCE, lambda: is_taken(tmp_path))
    assert nobody_waits()
    assert not is_taken(tmp_path)


@pytest.mark.parametrize("had_it", [True, False])
def test_who_is_interrupted_leaves_the_line(tmp_path, monkeypatch, nobody_waits, had_it):
    """Before or after the turn came: it is given back."""
    first = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(first, fcntl.LOCK_EX)

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            if had_it:
                fcntl.flock(first, fcntl.LOCK_UN)
                super().wait(timeout)
            raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(sqlite, "Event", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            wait_in_line(tmp_path, PATIENCE, lambda: pytest.fail("it was interrupted"))
    os.close(first)
    assert wait_in_line(tmp_path, PATIENCE, lambda: is_taken(tmp_path))
    assert nobody_waits()
    assert not is_taken(tmp_path)


def test_where_there_is_no_line_everybody_goes_on(tmp_path, monkeypatch):
    assert not wait_in_line(tmp_path / "nowhere", PATIENCE, lambda: is_taken(tmp_path))
    monkeypatch.setattr(sqlite, "_HAS_LINE", False)
    assert not wait_in_line(tmp_path, PATIENCE, lambda: is_taken(tmp_path))
    monkeypatch.undo()
    monkeypatch.setattr(sqlite.fcntl, "flock", _without_locks)
    assert wait_in_line(tmp_path, PATIENCE, lambda: "went on") == "went on"


def _without_locks(*_):
    raise OSError("no locks available")


def test_a_handle_that_was_copied_does_not_keep_the_turn(tmp_path, monkeypatch):
    copies = []
    real = os.open

    def copied(*where):
        handle = real(*where)
        copies.append(os.dup(handle))  # as a fork does
        return handle

    def work():
        monkeypatch.undo()
        return is_taken(tmp_path)

    monkeypatch.setattr(os, "open", copied)
    assert wait_in_line(tmp_path, PATIENCE, work)
    assert not is_taken(tmp_path)
    os.close(copies[0])
