# SPDX-License-Identifier: Apache-2.0
"""What a statement is made with besides the rows of the ledger, carried in every form of it.

**Guarantee.** With these words and the first `rows` rows of the ledger the same statement is made
again, letter by letter: that is how it is verified (`statement_check.py`). None of them can be
checked against the ledger, so each is shown, as asserted.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from discreet.errors import BadParameter
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger import chain

__all__ = ["Provenance", "software_digest"]

_BEGIN, _END = "<!-- discreet statement ", " -->"
_BLOCK = re.compile(re.escape(_BEGIN) + r"(\{[^<>\n]*\})" + re.escape(_END) + r"(?:</body></html>)?\s*\Z")


@dataclass(frozen=True)
class Provenance:
    """How many rows of which ledger, when, by which software, with which words of a person."""

    ledger: str
    rows: int
    made: str
    version: str
    software: str
    answers: bool = False
    in_memory: bool = False
    weaknesses: tuple[str, ...] = ()
    declared: JsonFacts = field(default_factory=dict)
    #: The digest of a description that was given, and, if no row holds it, what it says.
    given: str | None = None
    given_facts: JsonFacts | None = None

    def to_dict(self) -> JsonObject:
        """As plain JSON types."""
        return {**asdict(self), "weaknesses": list(self.weaknesses)}

    @classmethod
    def from_dict(cls, fields: Any) -> Provenance:
        """What `to_dict` wrote; refused if it is anything else."""
        try:
            provenance = cls(**{**fields, "weaknesses": tuple(fields["weaknesses"])})
            kinds = {"ledger": str, "rows": int, "made": str, "version": str, "declared": dict}
            whole = all(isinstance(getattr(provenance, name), kind) for name, kind in kinds.items())
        except (TypeError, KeyError):
            whole = False
        if not whole or provenance.rows < 1:
            raise not_a_statement_error()
        return provenance

    def block(self) -> str:
        """For a page: a comment that nobody sees, and that cannot end before its end."""
        text = json.dumps(self.to_dict(), ensure_ascii=True, sort_keys=True)
        safe = text.replace("-", "\\u002d").replace("<", "\\u003c").replace(">", "\\u003e")
        return f"{_BEGIN}{safe}{_END}"

    @classmethod
    def in_text(cls, text: str) -> Provenance:
        """The block at the end of a page; what looks like one elsewhere is somebody's words."""
        block = _BLOCK.search(text)
        if block is None:
            raise not_a_statement_error()
        try:
            return cls.from_dict(json.loads(block[1]))
        except ValueError:
            raise not_a_statement_error() from None


def not_a_statement_error() -> BadParameter:
    return BadParameter(
        "DP105",
        "this is not a statement that can be verified.",
        why="a statement carries how many rows of which ledger it was made from, and this file does not.",
        fix="discreet statement visits.ledger --out statement.html   makes one that can be verified",
    )


@cache
def software_digest() -> str:
    """The SHA-256 of every source file of this installation, by name and content."""
    package = Path(chain.__file__).parents[1]
    total = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()
