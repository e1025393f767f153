# SPDX-License-Identifier: Apache-2.0
"""The synthetic copies of a release file: each is made once, and written again at no cost.

    [[copy]]      name, table, columns, bins, method, check, epsilon | rho | delta, rows, seed, format

**Guarantee.** A copy has a key made of the name of the release and its own name, so running a
release again pays for no copy twice. A copy is refused before anything of the release is charged,
if the whole does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.files import Write, text_writer
from discreet.cli.previews import is_released

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.session import Session
    from discreet.tables.synthetic.copy import SyntheticCopy
    from discreet.tables.synthetic.preview import SynthesisPreview

__all__ = ["COPY_FORMATS", "COPY_WORDS", "MOST_COPY_ROWS", "CopySection", "PublishedCopy", "unpaid_copies"]

COPY_FORMATS = ("csv", "parquet")
#: The words of a section that `Session.synthesize` takes as they are.
COPY_WORDS = ("columns", "bins", "method", "check")
#: A copy makes no more rows at once.
MOST_COPY_ROWS = 10**7


@dataclass(frozen=True)
class CopySection:
    """One synthetic copy of a release; `words` go to `Session.synthesize`."""

    name: str
    key: str
    words: dict[str, Any]
    cost: dict[str, Any]
    formats: tuple[str, ...]
    table: str | None = None
    rows: int | None = None
    seed: int = 0

    def preview(self, session: Session) -> SynthesisPreview:
        """Its cost and its margins of error; nothing is charged."""
        return session.preview_synthesis(self._start(session), **self.words, **self.cost)

    def unpaid_cost(self, session: Session) -> Guarantee | None:
        """Its cost, unless it was paid before."""
        preview = self.preview(session)
        paid = is_released(session, self.key, preview.question, preview.cost, f"copy {self.name}")
        return None if paid else preview.cost

    def make(self, session: Session) -> PublishedCopy:
        """The copy; charged if it was not made before."""
        copy = session.synthesize(self._start(session), **self.words, **self.cost, key=self.key)
        return PublishedCopy(self, copy)

    def files(self, target: Path) -> list[Path]:
        """Where its rows are written, and beside them its statement."""
        return [
            target / f"{self.name}{ending}" for ending in (*(f".{form}" for form in self.formats), ".txt")
        ]

    def _start(self, session: Session) -> Any:
        return session.data if self.table is None else session.data[self.table]


@dataclass(frozen=True)
class PublishedCopy:
    """A copy as it is to be written."""

    section: CopySection
    copy: SyntheticCopy

    def writes(self, target: Path) -> dict[Path, Write]:
        """What writes each of its files."""
        section, copy = self.section, self.copy
        writers: dict[str, Write] = {
            ".csv": lambda path: copy.to_csv(path, rows=section.rows, seed=section.seed),
            ".parquet": lambda path: copy.to_parquet(path, rows=section.rows, seed=section.seed),
            ".txt": text_writer(copy.statement() + "\n"),
        }
        return {path: writers[path.suffix] for path in section.files(target)}

    def facts(self, target: Path) -> dict[str, object]:
        """For JSON, and for the table that is printed."""
        receipt = self.copy.receipt
        return {
            "name": self.section.name,
            "rows": self.copy.rows if self.section.rows is None else self.section.rows,
            "paid": receipt is not None and receipt.cost is not None,
            "receipt": None if receipt is None else receipt.number,
            "files": [str(path) for path in self.section.files(target)],
        }


def unpaid_copies(session: Session, sections: tuple[CopySection, ...]) -> list[Guarantee]:
    """The costs of the copies that were not made before."""
    costs = (section.unpaid_cost(session) for section in sections)
    return [cost for cost in costs if cost is not None]
