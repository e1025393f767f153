# SPDX-License-Identifier: Apache-2.0
"""Forks: a connection to a database must not cross one, not even to be closed in the child.

SQLite remembers in memory which locks its process holds, and a child would believe to hold those of
its parent; the threads of an engine are not in a child, but their locks are. So a fork waits until
nobody uses a ledger or an engine, and connections are let go before it; parent and child open their
own when they need it.

**Guarantee.** Threads may fork at the same time, while others charge, ask, open ledgers, or one
forks from inside of a transaction (as a signal handler can, in the main thread): no fork waits for
another one that waits for it. In a child every lock is a new one.

Why it holds: one thread at a time prepares a fork. If it cannot have all locks at once, it lets go
of all that it has before it tries again, so that nobody ever waits for it while it waits for them.
It waits longer each time, so that several who are each busy most of the time do not keep it waiting
for ever. Two threads that each fork from inside of a transaction of their own would wait for each
other; no code of ours calls anybody from there.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakSet

__all__ = ["quiet_at_forks"]

#: Seconds that a fork waits for one of them before it lets the others go on, at first and at most.
_PATIENCE, _MOST_PATIENCE = 0.05, 2.0


class Quiet(Protocol):
    """What must not be in use during a fork."""

    lock: Any

    def sleep(self) -> None:
        """Let go of what must not cross the fork."""


def quiet_at_forks(quiet: Quiet) -> None:
    """From now on no fork happens while the lock of this object is held, and it is put to sleep
    before each.
    """
    with _preparing: _all.add(quiet)  # fmt: skip  # noqa: E701 - on one line there is no place for an interrupt in between


class _Mine(threading.local):
    """The locks that this thread holds for its forks, the innermost fork last."""

    def __init__(self) -> None:
        self.forks: list[list[Any]] = []


def _before_fork() -> None:
    """Hold every lock. An interrupt is reported afterwards: a fork happens all the same, and must
    find all of them held.
    """
    interrupted: BaseException | None = None
    patience = _PATIENCE
    _mine.forks.append([])
    while True:
        try:
            if _all_quiet(_mine.forks[-1], patience):
                break
            patience = min(2 * patience, _MOST_PATIENCE)
            # of uneven length, so that two who wait for each other's locks do not meet for ever
            time.sleep(_PATIENCE * (time.perf_counter_ns() % 1000) / 1000)
        except BaseException as error:  # noqa: BLE001 - see above
            interrupted = error
            _let_go(_mine.forks[-1])
    if interrupted is not None:
        raise interrupted


def _all_quiet(held: list[Any], patience: float) -> bool:
    """Whether every lock is ours now; if not, none is."""
    held.append(_preparing)
    _preparing.acquire()
    for quiet in list(_all):
        # written down first: an interrupt right after the lock was taken must not lose it
        held.append(quiet.lock)
        if not held[-1].acquire(timeout=patience):
            held.pop()
            _let_go(held)
            return False
        # One that was never opened has nothing to let go of.
        with suppress(Exception):
            quiet.sleep()
    return True


def _let_go(held: list[Any]) -> None:
    while held:
        # An interrupt came before it was taken.
        with suppress(RuntimeError):
            held.pop().release()


def _after_fork() -> None:
    _let_go(_mine.forks.pop())


def _in_child() -> None:
    """Other threads are gone, with whatever they held."""
    global _preparing  # noqa: PLW0603 - one lock for each process
    _mine.forks.clear()
    _preparing = threading.RLock()
    for quiet in list(_all):
        quiet.lock = threading.RLock()


_preparing = threading.RLock()
_all: WeakSet[Any] = WeakSet()
_mine = _Mine()
# Where there is a fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
