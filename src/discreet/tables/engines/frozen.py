# SPDX-License-Identifier: Apache-2.0
"""Files that must stay as they were when they were opened.

**Promise.** A file that has been replaced or written to since then is not counted: half of a statement could see the old
rows and half the new ones, and a unit's weight would not be made from the rows that it is multiplied with.
"""

from __future__ import annotations

from pathlib import Path

from discreet.errors import EngineFailed

__all__ = ["Frozen"]


class Frozen:
    """Remembers size, time and identity of some files."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._seen = self._look()

    def _look(self) -> list[tuple[str, int, int, int]]:
        facts = [(name, Path(name).stat()) for name in self._names if Path(name).is_file()]
        return [(name, fact.st_size, fact.st_mtime_ns, fact.st_ino) for name, fact in facts]

    def check(self) -> None:
        """Raise if any of them has changed."""
        if self._look() != self._seen:
            raise EngineFailed(
                "DP801",
                "a file has changed since it was opened.",
                why="an answer must come from one state of the data; what was charged stays charged.",
                fix="open the data set again, with another version",
                spent="what this question costs",
            )
