# SPDX-License-Identifier: Apache-2.0
"""Forks: what an engine has open never crosses one.

The threads of a library are not in a forked child, but their locks are: a statement on an inherited connection waits for ever,
and a connection that a child closes, or drops when it ends, may end that of its parent. So a fork waits until no question runs,
and engines let go of their connections before it (`discreet.forks`, `Base.sleep`); parent and child each connect when they are
asked next. What cannot be had again (somebody else's connection, a Spark session, the threads of Polars) is refused in the child.

**Guarantee.** In a forked child a question is answered from the same source, or refused with DP803 before it is charged; it never
waits for threads that are not there, and nothing that the child does ends or removes what its parent has open.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from discreet.errors import EngineFailed
from discreet.tables.data.engine import outdated_error

__all__ = ["other_process", "refuse_inherited", "refuse_unseen", "refuse_without_polars"]

_process = os.getpid()
#: The process in which each connection of somebody else was first given to us.
_first_seen: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
#: Whether the threads of Polars ran before a fork: a process has one pool of them, made once, and a child has none.
_polars_runs = _polars_is_lost = False


def refuse_unseen() -> None:
    """Refuse to go on after a fork that Python did not see: nothing has let go of anything."""
    if os.getpid() != _process:
        raise other_process()


def other_process() -> EngineFailed:
    """The error for a data set that another process has opened."""
    return outdated_error(
        "the data set was opened in another process, and cannot be had again in this one.",
        'data = dp.open(…)  in each process, after the fork; or start processes with  multiprocessing.get_context("spawn")',
    )


def refuse_without_polars() -> None:
    """Refuse to wait for threads that a fork has left behind."""
    if _polars_is_lost:
        raise outdated_error(
            "Polars was used before this process was forked off, and cannot be used in it.",
            'start processes with  multiprocessing.get_context("spawn");  or open the file itself, with  engine="duckdb"',
        )


def refuse_inherited(connection: Any, threads: int) -> None:
    """Refuse somebody's connection, which has so many threads, if they are not in this process.

    A connection that was given to us before the fork is known for certain. Of any other one it can
    only be seen that too few threads run which Python has not started.
    """
    if _first_seen.setdefault(connection, os.getpid()) != os.getpid():
        raise other_process()
    running = _threads()
    # The calling thread works for DuckDB, too.
    if running is not None and len(running) - threading.active_count() + 1 < threads:
        raise other_process()


def _polars_has_threads() -> bool:
    """Whether Polars has started its threads; where that cannot be seen, it may have."""
    if "polars" not in sys.modules:
        return False
    running = _threads()
    return running is None or any(re.match(r"polars-[0-9]", name) for name in running)


def _threads() -> list[str] | None:
    """The names of the threads of this process; None on a system that does not show them."""
    try:
        return [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return None


def _before() -> None:
    global _polars_runs  # noqa: PLW0603 - of the fork that follows
    _polars_runs = _polars_has_threads()


def _after_in_child() -> None:
    global _process, _polars_is_lost
    _process, _polars_is_lost = os.getpid(), _polars_is_lost or _polars_runs


if hasattr(os, "register_at_fork"):  # where there is a fork
    os.register_at_fork(before=_before, after_in_child=_after_in_child)
