# SPDX-License-Identifier: Apache-2.0
"""Notices files that changed after they were opened.

**Guarantee.** A file that was replaced, written to, removed or made unreadable since then is not
counted. Otherwise one half of a statement could see the old rows and the other half the new ones,
and a unit's weight would belong to other rows than those that it multiplies. If a pattern was
opened, the list of its files must stay the same too. The comparison uses public facts alone: names,
devices, inode numbers, sizes and times of files. It reads no content.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from discreet.tables.algebra.engine import outdated_error

__all__ = ["Frozen"]

#: The log beside a file of SQLite, with rows that are not in the file yet; an empty log is ignored.
_LOG = "-wal"

_Facts = tuple[int, int, int, int, bool] | None


class Frozen:
    """Remembers the size, time and identity of files, and the files that a pattern matches."""

    def __init__(self, names: Sequence[str], pattern: str = "") -> None:
        self._names, self._pattern = tuple(names), pattern
        self._seen = self._look()

    @classmethod
    def at(cls, path: str | Path) -> Frozen:
        """A file, or all files that a pattern matches."""
        return cls([str(path), f"{path}{_LOG}"]) if Path(path).is_file() else cls([], str(path))

    def check(self) -> None:
        """Raise if any of them has changed."""
        now = self._look()
        if now != self._seen:
            changed = sorted(name for name in {*now, *self._seen} if now.get(name) != self._seen.get(name))
            raise outdated_error(
                f"{Path(changed[0].removesuffix(_LOG)).name} has changed since it was opened."
            )

    def _look(self) -> dict[str, _Facts]:
        names = glob(self._pattern, recursive=True) if self._pattern else self._names  # noqa: PTH207 - it may be absolute
        return {name: _facts(name) for name in names}


def _facts(name: str) -> _Facts:
    try:
        fact = Path(name).stat()
    except OSError:
        return None
    if name.endswith(_LOG) and not fact.st_size:
        return None
    return fact.st_dev, fact.st_ino, fact.st_size, fact.st_mtime_ns, os.access(name, os.R_OK)
