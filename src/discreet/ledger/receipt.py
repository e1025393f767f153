# SPDX-License-Identifier: Apache-2.0
"""What a ledger hands out: a receipt for what was charged, and the entries of its book."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields
from functools import lru_cache
from typing import Any

from discreet import check
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger import chain
from discreet.ledger.chain import LedgerRow
from discreet.ledger.costs import Cost
from discreet.ledger.split import split_body
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.wire import from_json, read_text, read_texts, read_versioned, write_versioned

__all__ = ["NOT_DRAWN", "Entry", "Receipt"]

#: What is kept in the place of an answer that could not be drawn.
NOT_DRAWN = '{"not drawn": true}'


@dataclass(frozen=True)
class Receipt:
    """Proof that an answer was paid for before it was drawn.

    **Guarantee.** Whoever holds a receipt finds the row `number` with this `hash` in the ledger,
    and its cost in the total, also after a crash and after a power failure. `cost` is None for an
    answer that was paid for earlier and is shown again. `closes` names the accounting tracks that
    this charge has closed for everybody.

    Why it holds: `Ledger.charge` returns a receipt after the transaction of its row is on disk.
    What would break it: an older copy of the ledger that is put in its place.

    >>> from discreet import privacy
    >>> from discreet.ledger import Ledger, Limit
    >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1))
    >>> receipt = ledger.charge(privacy.pure(0.5), key="monday")
    >>> receipt.number, receipt.key, receipt.guarantee
    (1, 'monday', pure(epsilon=0.5))
    """

    number: int
    hash: str
    time: str
    guarantee: Guarantee
    cost: Cost | None
    key: str | None = None
    closes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """One line of JSON, from which `from_json` makes an equal receipt."""
        cost = None if self.cost is None else self.cost.to_dict()
        plain = {
            **vars(self),
            "guarantee": self.guarantee.to_json(),
            "cost": cost,
            "closes": list(self.closes),
        }
        return write_versioned("receipt", plain)

    @classmethod
    @check.arguments
    def from_json(cls, text: str) -> Receipt:
        """The receipt that `to_json` wrote; any other text is refused (DP401, DP402).

        **Guarantee.** An equal receipt. Whether it is one of some ledger is checked where it is
        used: `Ledger.commit` refuses a receipt whose number and hash are not those of a charge
        (DP603).

        >>> from discreet import privacy
        >>> from discreet.ledger import Ledger, Limit
        >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1))
        >>> receipt = ledger.charge(privacy.pure(0.5), key="monday")
        >>> Receipt.from_json(receipt.to_json()) == receipt
        True
        """
        return read_versioned(text, "receipt", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: JsonFacts) -> Receipt:
        number, digest, key = fields["number"], read_text(fields["hash"]), fields["key"]
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError("number")
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise ValueError("hash")
        cost = None if fields["cost"] is None else Cost.from_dict(fields["cost"])
        return cls(
            number,
            digest,
            read_text(fields["time"]),
            from_json(fields["guarantee"]),
            cost,
            None if key is None else read_text(key),
            read_texts(fields["closes"]),
        )

    def __str__(self) -> str:
        closed = "".join(f" · closes the {name}" for name in self.closes)
        return f"#{self.number} · {self.time} · sha256:{self.hash[:16]}…{closed}"


@dataclass(frozen=True)
class Entry:
    """One row of a ledger.

    >>> from discreet import privacy
    >>> from discreet.ledger import Ledger, Limit
    >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1))
    >>> receipt = ledger.charge(privacy.pure(0.5), question="how many?")
    >>> [(entry.number, entry.kind, entry.question) for entry in ledger.entries()]
    [(0, 'open', None), (1, 'reserved', 'how many?')]

    `kind` is "open" (the first row: limit, unit and data set, in `about`), "described" (a new
    version of the description of the data, in `describes`), "reserved" (charged: `cost` was added,
    and `state` is the total after it), "committed" (the answer of the reserved row `settles`) or
    "period" (a row of the stream whose answer is in row `stream`; it was paid for then).
    `description` names the version that a charge was made under, by its SHA-256; None if that was
    not recorded. Only a `compiled` charge was computed from that description: any other was stated
    by whoever charged it. The answer of an `in_session` charge was drawn by the session that made
    it; of any other, nobody here knows how it was drawn. `guarantee` is JSON that
    `privacy.from_json` reads. A `held` charge was made together with others, and nothing that was
    drawn under it is shown before it is committed.
    """

    number: int
    kind: str
    time: str
    analyst: str | None
    project: str | None
    purpose: str | None
    question: str | None
    mechanism: str | None
    guarantee: str | None
    cost: JsonFacts | None
    state: JsonFacts
    key: str | None
    settles: int | None
    answer: str | None
    about: JsonFacts | None
    version: str
    previous: str
    hash: str
    held: bool = False
    description: str | None = None
    describes: JsonFacts | None = None
    compiled: bool = False
    in_session: bool = False
    stream: int | None = None

    @property
    def receipt(self) -> Receipt | None:
        """The receipt of a row that was charged, or of an answer that is shown again; None for the
        first row.
        """
        if self.guarantee is None:
            return None
        cost = None if self.cost is None else Cost.from_dict(self.cost)
        return Receipt(self.number, self.hash, self.time, from_json(self.guarantee), cost, self.key)

    def to_dict(self) -> JsonObject:
        """As JSON."""
        return asdict(self)


def entry_of(row: LedgerRow, split: Callable[[str], dict[str, Any] | None] = split_body) -> Entry:
    """The entry that a row holds, after it was checked; `split` as in `chain.read_row`."""
    body = chain.read_row(row, split=split)
    body["answer"], body["hash"] = chain.answer_of(row), row.hash
    if not _are_fields(tuple(body)):
        raise chain.damaged_error(f"row {row.number} has other fields than were written.")
    # `__init__` would set each field on its own, and a long ledger has a hundred thousand entries.
    entry = object.__new__(Entry)
    object.__setattr__(entry, "__dict__", body)
    return entry


@lru_cache(maxsize=100)
def _are_fields(names: tuple[str, ...]) -> bool:
    """Whether these are fields of an entry, and all that it needs."""
    needed = {field.name for field in fields(Entry) if field.default is MISSING}
    return needed <= set(names) <= {field.name for field in fields(Entry)}
