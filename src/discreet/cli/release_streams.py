# SPDX-License-Identifier: Apache-2.0
"""The streams of a release file: opened once, and published as far as their periods are over.

    [[stream]]      name, sql, every, periods, epsilon | rho | delta, start, time, per_unit, best_for, open_ended, file, format

**Guarantee.** Running a release again opens no stream twice and publishes only periods that are
new. A stream is refused before anything of the release is charged, if the whole does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import LedgerError

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.session import Session, Stream, StreamPreview
    from discreet.tables.answer.answer import Answer

#: The words of a section that `Session.stream` takes as they are.
WORDS = ("every", "periods", "start", "time", "per_unit", "best_for", "open_ended")


@dataclass(frozen=True)
class StreamSection:
    """One stream of a release; `file` is the stream file, if one is named."""

    name: str
    sql: str
    words: dict[str, Any]
    cost: dict[str, Any]
    formats: tuple[str, ...]
    file: str | None = None

    def preview(self, session: Session) -> StreamPreview:
        """Its cost and its margins of error; nothing is charged."""
        return session.preview_stream(self.sql, name=self.name, **self.words, **self.cost)

    def open(self, session: Session) -> Stream:
        """The stream; charged if it was not opened before."""
        return session.stream(self.sql, name=self.name, file=self.file, **self.words, **self.cost)

    def files(self, target: Path) -> list[Path]:
        """The files of its single periods and of its totals."""
        return [target / f"{self.name}{which}.{form}" for which in ("", "_totals") for form in self.formats]


@dataclass(frozen=True)
class PublishedStream:
    """What is written of a stream: nothing, while its first period is not over."""

    section: StreamSection
    stream: Stream
    answers: dict[Path, Answer] = field(default_factory=dict)

    def facts(self) -> dict[str, object]:
        """For JSON, and for the table that is printed."""
        receipt = self.stream.receipt
        return {
            "name": self.stream.name,
            "periods": self.stream.periods,
            "shown": self.stream.shown,
            "paid": receipt is not None and receipt.cost is not None,
            "files": [str(path) for path in self.answers],
        }


def unpaid_streams(session: Session, sections: tuple[StreamSection, ...]) -> list[Guarantee]:
    """The costs of the streams that were not opened before."""
    opened = session.streams() if sections else []
    return [section.preview(session).guarantee for section in sections if section.name not in opened]


def publish(section: StreamSection, stream: Stream, target: Path) -> PublishedStream:
    """The figures of all periods that are over, as they are to be written."""
    try:
        weekly = stream.release()
    except LedgerError as error:
        if error.code != "DP611":
            raise
        return PublishedStream(section, stream)
    totals = stream.totals()
    half = len(section.formats)
    answers = dict.fromkeys(section.files(target)[:half], weekly)
    return PublishedStream(section, stream, answers | dict.fromkeys(section.files(target)[half:], totals))
