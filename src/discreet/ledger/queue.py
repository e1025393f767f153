# SPDX-License-Identifier: Apache-2.0
"""Processes that wait in line for a file, first come, first served, as far as the operating system can.

SQLite has no queue: whoever looks at the right moment gets the right to write, and with many processes somebody is
passed over for a long time. So writers line up at a lock of the folder (`flock`, which queues those who wait).

**Promise.** Nothing depends on the line but fairness: whoever waited too long, or cannot stand in line on this system,
goes on without, and SQLite keeps writers apart. A process that is killed leaves the line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread

try:
    import fcntl
except ImportError:  # Windows
    _HAS_LINE = False
else:
    _HAS_LINE = True


@contextmanager
def in_line(folder: Path, patience: float) -> Iterator[None]:
    """Wait for our turn, at most `patience` seconds; the turn ends with the block."""
    handle = _first_in_line(folder, patience) if _HAS_LINE else None
    try:
        yield
    finally:
        if handle is not None:
            _leave(handle)


def _first_in_line(folder: Path, patience: float) -> int | None:
    """A handle that holds the lock; None if we have to go on without."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return handle if _Waiting(handle).ended(patience) else None
    except OSError:  # no such locks here
        os.close(handle)
        return None
    return handle


def _leave(handle: int) -> None:
    fcntl.flock(handle, fcntl.LOCK_UN)  # also if a fork has copied the handle
    os.close(handle)


class _Waiting:
    """A thread that waits for the lock, because only waiting keeps a place in line, and it has no time limit."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._decided = Lock()
        self._got = Event()
        self._given_up = False
        Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        with self._decided:
            if self._given_up:
                _leave(self._handle)
            else:
                self._got.set()

    def ended(self, patience: float) -> bool:
        """Whether the lock is ours; if not, or if we are interrupted, it is given back as soon as it comes."""
        ours = False
        try:
            ours = self._got.wait(patience)
        finally:
            if not ours:
                self._give_up()
        return ours

    def _give_up(self) -> None:
        with self._decided:
            self._given_up = True
            if self._got.is_set():
                _leave(self._handle)
