# SPDX-License-Identifier: Apache-2.0
"""CPU seconds and peak memory of this process and of all that it started."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Of this process (exact), of those that it started (to 10 ms each), and of those that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = (
        sum(sum(map(int, fields[11:15])) for fields in _statistics()) / _TICK
    )  # its own ended ones included
    return time.process_time() + ended.ru_utime + ended.ru_stime + running


def peak_megabytes() -> float:
    """The peaks of all of them, added: at most this much was taken at one time. Shared pages are counted twice."""
    return sum(_peak(process) for process in (os.getpid(), *_descendants(os.getpid())))


def _statistics() -> Iterator[list[str]]:
    for process in _descendants(os.getpid()):
        try:
            text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        except OSError:  # it has ended meanwhile
            continue
        yield text.rpartition(")")[2].split()


def _descendants(process: int) -> Iterator[int]:
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(word) for thread in threads for word in (thread / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from _descendants(child)


def _peak(process: int) -> float:
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")) / 1024
