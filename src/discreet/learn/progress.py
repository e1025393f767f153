# SPDX-License-Identifier: Apache-2.0
"""How far a long fit has come: a bar, or whatever a caller wants to do with it.

Progress counts steps that were fixed in advance, so it says nothing of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet import check

__all__ = ["Progress", "shown"]

Progress = Callable[[int, int], None]


def shown(progress: Any, title: str) -> Progress | None:
    """None for no progress, a bar for True, a function of (done, total) as it is."""
    if progress is None or progress is False:
        return None
    return _bar(title) if progress is True else check.function(progress=progress)


def _bar(title: str) -> Progress:
    from rich.progress import Progress as Bar

    bar = Bar(transient=True)
    task = bar.add_task(title)

    def advance(done: int, total: int) -> None:
        if done == 1:
            bar.start()
        bar.update(task, completed=done, total=total)
        if done == total:
            bar.stop()

    return advance
