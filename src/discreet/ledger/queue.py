# SPDX-License-Identifier: Apache-2.0
"""Processes that wait in line for a file, first come, first served, as far as the operating system
can.

SQLite has no queue: whoever looks at the right moment gets the right to write, and with many
processes somebody is passed over for a long time. So writers line up at a lock of the folder
(`flock`, which queues those who wait).

**Guarantee.** Nothing depends on the line but fairness: whoever waited too long, or cannot stand in
line on this system, goes on without, and SQLite keeps writers apart. A process that is killed
leaves the line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TypeVar

from discreet.ledger.interrupts import run_holding, run_then_end

T = TypeVar("T")

try:
    import fcntl
except ImportError:  # Windows
    _HAS_LINE = False
else:
    _HAS_LINE = True


def wait_in_line(folder: Path, patience: float, work: Callable[[], T]) -> T:
    """Do some work when it is our turn, or after `patience` seconds; the turn ends with it."""
    place = _Place(folder)
    return run_then_end(lambda: _work_in_line(place, patience, work), place.leave)


def _work_in_line(place: _Place, patience: float, work: Callable[[], T]) -> T:
    if not place.is_first(patience):
        place.leave()
    return work()


class _Place:
    """Our place in line: an open folder, and its lock once it is our turn."""

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        self._decided = Lock()
        self._got = Event()
        self._waits = self._given_up = False
        with suppress(OSError):
            self._handle = os.open(folder, os.O_RDONLY) if _HAS_LINE else None

    def is_first(self, patience: float) -> bool:
        """Whether it is our turn within that time."""
        if self._handle is None:
            return False
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # In a thread, because only waiting keeps a place in line, and it has no time limit.
            self._waits = True
            Thread(target=self._wait, args=(self._handle,), daemon=True).start()
            return self._got.wait(patience)
        except OSError:  # no such locks here
            return False
        return True

    def leave(self) -> None:
        """Give the lock back, now or as soon as it comes; as often as you like."""
        run_holding(self._decided, self._leave)

    def _leave(self) -> None:
        self._given_up = True
        if self._waits and not self._got.is_set():
            return  # whoever waits for the lock gives it back
        if self._handle is not None:
            with suppress(OSError):
                fcntl.flock(self._handle, fcntl.LOCK_UN)  # also if a fork has copied the handle
            handle, self._handle = self._handle, None
            os.close(handle)

    def _wait(self, handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with self._decided:
            self._got.set()
        if self._given_up:
            self.leave()
