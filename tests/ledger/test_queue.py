# SPDX-License-Identifier: Apache-2.0
"""Standing in line: one at a time, the next when the first has left, and nobody waits for those who have given up."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import contextmanager

import pytest

from discreet.ledger import queue
from discreet.ledger.queue import in_line

LONG = 60.0  # never reached, unless something is wrong


def is_taken(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextmanager
def waiting(folder, patience=LONG):
    """Somebody who stands in line behind us; gives the list of what happened to them."""
    happened = []

    def wait():
        with in_line(folder, patience):
            happened.append("turn")
        happened.append("left")

    thread = threading.Thread(target=wait)
    thread.start()
    yield happened, thread


def test_the_next_gets_their_turn_when_the_first_has_left(tmp_path):
    with in_line(tmp_path, LONG):
        assert is_taken(tmp_path)
        with waiting(tmp_path) as (happened, thread):
            assert happened == []
    thread.join(LONG)
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
            thread.join(LONG)
        return bool(started)

    monkeypatch.setattr(queue, "Thread", Recorded)
    return joined


def test_who_waited_too_long_goes_on_and_leaves_the_line(tmp_path, nobody_waits):
    with in_line(tmp_path, LONG):
        with in_line(tmp_path, 0):
            assert is_taken(tmp_path)  # still by the first
        assert is_taken(tmp_path)
    with in_line(tmp_path, LONG):  # gets its turn although somebody gave up before
        assert is_taken(tmp_path)
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
        interrupted.setattr(queue, "Event", Interrupted)
        with pytest.raises(KeyboardInterrupt), in_line(tmp_path, LONG):
            pytest.fail("it was interrupted")
    os.close(first)
    with in_line(tmp_path, LONG):
        assert is_taken(tmp_path)
    assert nobody_waits()
    assert not is_taken(tmp_path)


def test_where_there_is_no_line_everybody_goes_on(tmp_path, monkeypatch):
    with in_line(tmp_path / "nowhere", LONG):
        assert not is_taken(tmp_path)
    monkeypatch.setattr(queue, "_HAS_LINE", False)
    with in_line(tmp_path, LONG):
        assert not is_taken(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(queue.fcntl, "flock", _without_locks)
    with in_line(tmp_path, LONG):
        pass


def _without_locks(*_):
    raise OSError("no locks available")


def test_a_handle_that_was_copied_does_not_keep_the_turn(tmp_path, monkeypatch):
    copies = []
    real = queue._first_in_line

    def copied(*where):
        handle = real(*where)
        copies.append(os.dup(handle))  # as a fork does
        return handle

    monkeypatch.setattr(queue, "_first_in_line", copied)
    with in_line(tmp_path, LONG):
        assert is_taken(tmp_path)
    assert not is_taken(tmp_path)
    os.close(copies[0])
