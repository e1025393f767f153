# SPDX-License-Identifier: Apache-2.0
"""Code that an interrupt cannot leave half done: locks that are released, and ends that are
reached.

A `KeyboardInterrupt` can come between any two steps of Python, also inside `finally` and in the
middle of a context manager that is written in Python: a generator that was interrupted while it was
entered never ends. So what has to be undone here is a function that is called, and never a block
that is left.

**Guarantee.** After `run_holding` the lock is released, and after `run_then_end` the ending has run
whole, wherever one exception came in between.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

T = TypeVar("T")


def run_holding(lock: AbstractContextManager[object], work: Callable[[], T]) -> T:
    """Do some work under a lock that is written in C.

    On one line: between the last line of a block and the release of its lock there would be a place
    for an interrupt.
    """
    with lock: return work()  # fmt: skip  # noqa: E701


def run_then_end(work: Callable[[], T], end: Callable[[], object]) -> T:
    """Do some work, and then end it, whatever happens; the ending is run twice, because the first
    may be interrupted.
    """
    try:
        try:
            return work()
        finally:
            end()
    finally:
        end()
