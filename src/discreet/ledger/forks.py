# SPDX-License-Identifier: Apache-2.0
"""Forks: a connection to a database must not cross one, not even to be closed in the child.

SQLite remembers in memory which locks its process holds, and a child would believe to hold those of its parent. So a fork
waits until nobody uses a store, and connections are closed before it; parent and child open their own when they need it.

**Promise.** Threads may fork at the same time, while others charge, open ledgers, or fork from inside of a transaction: no fork
waits for another one that waits for it. In a child every lock is a new one.

Why it holds: one thread at a time prepares a fork. If it cannot have all locks at once, it lets go of all that it has before it
tries again, so that nobody ever waits for it while it waits for them.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakSet

from discreet.ledger.chance import jitter
from discreet.ledger.interrupts import holding

#: Seconds that a fork waits for one store before it lets the others go on.
_PATIENCE = 0.05


class Quiet(Protocol):
    """What must not be in use during a fork."""

    lock: Any

    def close(self) -> None:
        """Let go of what must not cross the fork."""


def quiet_at_forks(store: Quiet) -> None:
    """From now on no fork happens while the lock of this store is held, and it is closed before each."""
    holding(_preparing, lambda: _stores.add(store))


class _Mine(threading.local):
    """The locks that this thread holds for its forks, the innermost fork last."""

    def __init__(self) -> None:
        self.forks: list[list[Any]] = []


def _before_fork() -> None:
    """Hold every lock. An interrupt is reported afterwards: a fork happens all the same, and must find all of them held."""
    interrupted: BaseException | None = None
    _mine.forks.append([])
    while True:
        try:
            if _all_quiet(_mine.forks[-1]):
                break
            # at random, so that two who prepare a fork do not meet for ever
            time.sleep(_PATIENCE * jitter())
        except BaseException as error:  # noqa: BLE001 - see above
            interrupted = error
            _let_go(_mine.forks[-1])
    if interrupted is not None:
        raise interrupted


def _all_quiet(held: list[Any]) -> bool:
    """Whether every store is ours now; if not, none is."""
    held.append(_preparing)
    _preparing.acquire()
    for store in list(_stores):
        # written down first: an interrupt right after the lock was taken must not lose it
        held.append(store.lock)
        if not held[-1].acquire(timeout=_PATIENCE):
            held.pop()
            _let_go(held)
            return False
        with suppress(Exception):  # one that was never opened has nothing to close
            store.close()
    return True


def _let_go(held: list[Any]) -> None:
    while held:
        with suppress(RuntimeError):  # an interrupt came before it was taken
            held.pop().release()


def _after_fork() -> None:
    _let_go(_mine.forks.pop())


def _in_child() -> None:
    """Other threads are gone, with whatever they held."""
    global _preparing  # noqa: PLW0603 - one lock for each process
    _mine.forks.clear()
    _preparing = threading.RLock()
    for store in list(_stores):
        store.lock = threading.RLock()


_preparing = threading.RLock()
_stores: WeakSet[Any] = WeakSet()
_mine = _Mine()
if hasattr(os, "register_at_fork"):  # where there is a fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
