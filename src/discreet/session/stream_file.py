# SPDX-License-Identifier: Apache-2.0
"""The stream file beside a ledger: a secret for digests, and the last hashes that were seen in the
ledger.

    visits.ledger            public: charges, published rows, digests
    visits.ledger.streams    as private as the data

**Guarantee.** The secret is random, is made once, and is the same for all processes that use the
file. A ledger that was put back to before a row that was published through this file is noticed, if
the file was not put back with it.

Why it holds: the file appears complete, by a link that fails if there is one already; after each
published row the hash of the last row of the ledger is appended, and before the next row the ledger
must hold these hashes. What would break it: a copy of the file in the hands of others, who could
test guesses of the sums; a backup that restores both files.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet import check
from discreet.errors import LedgerError
from discreet.ledger import Ledger

__all__ = ["StreamFile", "stream_file"]

#: So many of the last hashes are looked for in the ledger; processes may have written them out of order.
_LATEST = 32
_ENDING = ".streams"
_MEMORY = ":memory:"


@dataclass(frozen=True)
class StreamFile:
    """A secret, and the hashes that the ledger had; `path` is None for a ledger in memory."""

    path: Path | None
    secret: bytes
    seen: list[str] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        """What tells this secret from any other, and does not reveal it."""
        return hmac.new(self.secret, b"discreet stream", hashlib.sha256).hexdigest()[:32]

    def secret_of(self, stream: str) -> bytes:
        """The secret of one stream: rows of two streams that count the same do not look alike."""
        return hmac.new(self.secret, f"digests of {stream}".encode(), hashlib.sha256).digest()

    def record(self, anchor: str) -> None:
        """Note the hash of the last row of the ledger."""
        self.seen.append(anchor)
        if self.path is not None:
            try:
                descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
                try:
                    os.write(descriptor, f"{anchor}\n".encode())
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise _unusable_error(self.path, error.strerror or "it cannot be written") from None

    def check(self, ledger: Ledger) -> None:
        """Refuse a ledger that lacks a row that was seen in it."""
        anchors = self.seen if self.path is None else _read(self.path, ledger)[1]
        if all(ledger.holds(anchor) for anchor in anchors[-_LATEST:]):
            return
        raise LedgerError(
            "DP610",
            "the ledger lacks rows of a stream that were published: it was put back to an older copy.",
            why="a row that is drawn twice tells twice as much, and only one of the two is paid for.",
            fix="put back the copy of the ledger that has them; if it is lost, treat what it held as spent, and open a new stream:  "
            "name='visits from 2027', file='visits-2027.streams'",
        )


#: The files of ledgers in memory, by the id of the ledger.
_IN_MEMORY: dict[str, StreamFile] = {}


def stream_file(ledger: Ledger, path: str | Path | None, *, new: bool) -> StreamFile:
    """The stream file of a ledger; made if need be, where a stream is opened (`new`)."""
    if path is None and ledger.where == _MEMORY:
        return _IN_MEMORY.setdefault(ledger.id, StreamFile(None, check.random_bytes(32)))
    place = _place(ledger, path)
    if new and not place.exists():
        _make(place, ledger)
    secret, seen = _read(place, ledger)
    return StreamFile(place, secret, seen)


def _place(ledger: Ledger, path: str | Path | None) -> Path:
    if path is not None:
        if not isinstance(path, str | Path) or not str(path).strip() or "\0" in str(path):
            raise _unusable_error(path, "it is not a path")
        return Path(path).expanduser()
    if "://" not in ledger.where:
        return Path(ledger.where + _ENDING)
    # Whoever reads the ledger could test guesses of the sums, if the secret lay there too.
    raise _unusable_error("of a ledger on a server", "it has to be named")


def _make(place: Path, ledger: Ledger) -> None:
    """Make the file, complete or not at all; whoever was quicker has made it."""
    head = {"discreet.streams": 1, "ledger": ledger.id, "secret": check.random_bytes(32).hex()}
    draft = place.with_name(f"{place.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, (json.dumps(head) + "\n").encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(draft, place)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise _unusable_error(place, error.strerror or "it cannot be written") from None


def _read(place: Path, ledger: Ledger) -> tuple[bytes, list[str]]:
    try:
        lines = place.read_text("ascii").splitlines()
        head: Any = json.loads(lines[0])
        secret = bytes.fromhex(head["secret"])
        whole = len(secret) == 32 and head["discreet.streams"] == 1
        belongs = head["ledger"] == ledger.id
    except OSError as error:
        raise _unusable_error(place, error.strerror or "it cannot be read") from None
    except (ValueError, KeyError, IndexError, TypeError):
        raise _unusable_error(place, "it is not a stream file") from None
    if not whole or not belongs:
        raise _unusable_error(place, "it belongs to another ledger")
    # A line that was cut off by a crash is no hash.
    return secret, [line for line in lines[1:] if len(line) == 64]


def _unusable_error(place: object, reason: str) -> LedgerError:
    return LedgerError(
        "DP610",
        f"the stream file {place} cannot be used: {reason}.",
        why="it holds the secret with which a stream notices that the data of a published period have changed.",
        fix="put back the stream file that was made with the ledger, or name one that nobody else can read:  file='visits.streams'",
    )
