# SPDX-License-Identifier: Apache-2.0
"""The file of a ledger in its folder: whether there is one, how a new one appears, and what stands
in the way.

**Guarantee.** A new file appears under its name whole and on disk, or not at all, and never in the
place of another one. Whatever bears the name of a ledger, or the journal of one, is never taken for
the lack of a ledger: an empty file, a folder, a link that leads nowhere.

What cannot be known: that there was a file, if it was removed with everything beside it.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from discreet.errors import LedgerError
from discreet.ledger import chain
from discreet.ledger.store import unreachable_error

#: What SQLite keeps beside a file that is in use.
_BESIDE = ("-journal", "-wal", "-shm")
_MAGIC = b"SQLite format 3\0"


def status_of(path: str) -> os.stat_result | None:
    """What the system says of the file; None if there is none and never was one, as far as can be
    seen.
    """
    try:
        with suppress(FileNotFoundError):
            return os.stat(path)  # noqa: PTH116 - a Path would hide some errors
        remains = [name for name in (path, *(path + end for end in _BESIDE)) if os.path.lexists(name)]
    except (OSError, ValueError) as error:
        raise inaccessible_error(path, "its file cannot be opened.", error) from None
    if remains:
        raise chain.damaged_error(f"its file is gone, and {Path(remains[0]).name} is still there.")
    return None


def publish(temporary: Path, path: Path) -> None:
    """Give a file that was made its own name, unless somebody else was quicker; the folder is
    forced to disk.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except (OSError, RuntimeError):
        _copy(temporary, path)
    _sync_folder(path.parent)


def _copy(temporary: Path, path: Path) -> None:
    """Where a file cannot have two names: there, only a crash can leave a part of it, which is then
    refused as damaged.
    """
    with suppress(FileExistsError), path.open("xb") as file:
        try:
            file.write(temporary.read_bytes())
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink()
            raise


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some systems do not let a folder be opened; there SQLite's own rules hold
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def is_cut_short(path: Path) -> bool:
    """Whether a file that SQLite cannot read begins as its files do: then it was one, perhaps a
    ledger.

    Only asked after SQLite has refused the file: to open and close it beside SQLite would end the
    locks of this process.
    """
    with suppress(OSError), path.open("rb") as file:
        start = file.read(len(_MAGIC))
        return start == _MAGIC[: len(start)]
    return True


def not_a_ledger_error(path: Path) -> LedgerError:
    """The error for a file that never was a ledger."""
    return LedgerError(
        "DP603",
        f"{path.name} is no ledger but a file of another kind.",
        why="a ledger is a file of its own, and what is in this one would be lost; it is left as it is.",
        fix=f"name the ledger that the answers about these data are charged to:  ledger='{path.stem}.ledger'",
    )


def inaccessible_error(path: str, what: str, error: Exception | None = None) -> LedgerError:
    """The error for a file that cannot be reached or may not be written, by what is in its way."""
    place = Path(path)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return unreachable_error("the disk is full.", fix="make room on the disk, and ask again.")
    if isinstance(error, ValueError) or (isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG):
        return unreachable_error(
            "its path cannot be used: it is too long, or is no text.", fix="ledger='visits.ledger'"
        )
    with suppress(OSError, ValueError):
        if place.is_dir():
            return unreachable_error(
                "its path is a folder.", fix=f"name a file in it:  ledger='{place / 'visits.ledger'}'"
            )
        if not place.parent.is_dir():
            return unreachable_error(
                f"there is no folder {place.parent}.",
                fix=f"make the folder ({_make_folder(place.parent)}), or take one that there is:  ledger='visits.ledger'",
            )
        if not os.access(place.parent, os.W_OK | os.X_OK):
            return unreachable_error(
                f"the folder {place.parent} may not be written, and a charge writes a journal beside the file.",
                fix=f"let this user write there, and ask again:  chmod u+rwx '{place.parent}'",
            )
        if place.exists() and not os.access(place, os.W_OK):
            return unreachable_error(
                "its file is read-only, so nothing can be charged to it.",
                fix=f"let this user write to it, and ask again:  chmod u+w '{place}'",
            )
    return unreachable_error(
        what, fix=f"let this user read and write '{place}' and its folder, and ask again."
    )


def _make_folder(folder: Path) -> str:
    return f"mkdir -p '{folder}'"
