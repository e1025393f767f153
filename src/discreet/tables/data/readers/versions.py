# SPDX-License-Identifier: Apache-2.0
"""Refuses files of tables that keep their former versions beside the present one.

**Guarantee.** No file of a Delta, Hudi or Iceberg table is opened by its path. Its folder also has
files with rows that were deleted or replaced, and only its log says which files are the table: a
pattern would count people who were deleted, and others several times.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from discreet.errors import EngineFailed

__all__ = ["refuse_versions"]

#: The folder with the log of a table, and a pattern of the log.
_LOGS = {"Delta": ("_delta_log", "*"), "Hudi": (".hoodie", "*"), "Iceberg": ("metadata", "*.metadata.json")}


def refuse_versions(paths: Iterable[Path]) -> None:
    """Refuse files or folders that belong to such a table."""
    seen = set[Path]()
    for path in paths:
        place = path.resolve()
        for folder in (place, *place.parents):
            if folder in seen:
                break
            seen.add(folder)
            for kind, (log, pattern) in _LOGS.items():
                if _has_log(folder / log, pattern):
                    raise _version_error(folder, kind)


def _has_log(place: Path, pattern: str) -> bool:
    """Whether a folder is such a log. One that may not be read is taken for one."""
    # Path.is_dir would raise where the folder above may not be searched; what is in it cannot be read either.
    if not os.path.isdir(place):  # noqa: PTH112
        return False
    try:
        return any(place.glob(pattern))
    except PermissionError:
        return True


def _version_error(folder: Path, kind: str) -> EngineFailed:
    own = f"frame = deltalake.DeltaTable({str(folder)!r}).to_pyarrow_table()"
    read = own if kind == "Delta" else "frame = …   by the client of its format, or by Spark"
    return EngineFailed(
        "DP802",
        f"{folder.name} is a {kind} table, whose folder also has files with rows that were deleted.",
        why="no row was read and nothing was charged. Only its log says which files are the table.",
        fix=f"{read};  dp.open(frame, protect=…)",
    )
