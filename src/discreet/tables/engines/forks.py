# SPDX-License-Identifier: Apache-2.0
"""Forks: no connection, thread or lock of an engine crosses one.

A forked child has the locks of a library, but not its threads. A statement on an inherited
connection waits for ever, and a connection that the child closes may end that of its parent. So a
fork waits until no question runs, and engines close their connections before it (`discreet.forks`,
`EngineBase.sleep`). Parent and child each connect again at their next question. What cannot be
opened again (a connection of the user, a Spark session, the threads of Polars) is refused in the
child.

**Guarantee.** A forked child answers from the same source, or refuses with DP803 before the charge.
It never waits for threads that do not exist, and closes or removes nothing that its parent has
open.
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
from discreet.tables.algebra.engine import outdated_error

__all__ = ["other_process_error", "refuse_inherited", "refuse_unseen", "refuse_without_polars"]

_process = os.getpid()
#: The process in which each connection of a user was first used here.
_first_seen: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
#: Whether the threads of Polars ran before a fork: a process starts one pool, and a child has none.
_polars_runs = _polars_is_lost = False


def refuse_unseen() -> None:
    """Refuse after a fork that Python did not see, because nothing was closed before it."""
    if os.getpid() != _process:
        raise other_process_error()


def other_process_error() -> EngineFailed:
    """The error for a data set that another process has opened."""
    return outdated_error(
        "the data set was opened in another process, and cannot be opened again in this one.",
        'data = dp.open(…)  in each process, after the fork; or start processes with  multiprocessing.get_context("spawn")',
    )


def refuse_without_polars() -> None:
    """Refuse to wait for threads that were lost in a fork."""
    if _polars_is_lost:
        raise outdated_error(
            "Polars was used before this process was forked off, and cannot be used in it.",
            'start processes with  multiprocessing.get_context("spawn");  or open the file itself, with  engine="duckdb"',
        )


def refuse_inherited(connection: Any, threads: int) -> None:
    """Refuse a user's connection with so many threads if they do not run in this process.

    A connection that was used here before the fork is recognised. Any other one is refused if too
    few threads run that Python has not started.
    """
    if _first_seen.setdefault(connection, os.getpid()) != os.getpid():
        raise other_process_error()
    running = _threads()
    # The calling thread is one of the threads of DuckDB.
    if running is not None and len(running) - threading.active_count() + 1 < threads:
        raise other_process_error()


def _polars_has_threads() -> bool:
    """Whether Polars may have started its threads; true where the system does not show threads."""
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
    global _polars_runs  # noqa: PLW0603 - read after the fork that follows
    _polars_runs = _polars_has_threads()


def _after_in_child() -> None:
    global _process, _polars_is_lost
    _process, _polars_is_lost = os.getpid(), _polars_is_lost or _polars_runs


if hasattr(os, "register_at_fork"):  # where there is a fork
    os.register_at_fork(before=_before, after_in_child=_after_in_child)
