# SPDX-License-Identifier: Apache-2.0
"""Who asks, and the ledger that is charged before anything is drawn; what was drawn is kept, and shown again for nothing.

**Promise.** `release` shows a draw only after its charge, and only what the ledger keeps for its key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import BadParameter, DiscreetError, EngineFailed, OverBudget
from discreet.ledger import Entry, Ledger, Left, Receipt, Wanted
from discreet.ledger.description import Description
from discreet.ledger.receipt import NOT_DRAWN
from discreet.mechanisms.mechanism import Mechanism, Refusal, Release
from discreet.noise.source import is_private, reserve
from discreet.privacy.guarantee import Guarantee
from discreet.tables.answer import Answer

COSTS = "what this answer costs"


@dataclass(frozen=True)
class Account:
    """A ledger, and in whose name it is charged."""

    ledger: Ledger
    analyst: str | None
    project: str | None
    purpose: str | None
    description: Description

    @property
    def who(self) -> dict[str, str | None]:
        """Whose shares are charged."""
        return {"analyst": self.analyst, "project": self.project}

    def left(self) -> Left:
        """What is left of the limit, or of our share of it."""
        return self.ledger.left(**self.who)

    def find(self, key: str | None, question: str, guarantee: Guarantee | None) -> Entry | None:
        """The answer that is kept under a key, if that stands for this question."""
        if key is None:
            return None
        return self.ledger.find(key, question, guarantee=guarantee, description=self.description, **self.who)

    def charge(
        self,
        guarantee: Guarantee,
        question: str,
        key: str | None,
        mechanism: str | None = None,
        *,
        compiled: bool = False,
    ) -> Receipt:
        """Pay for one answer; `compiled` says that its guarantee was computed from the description of the data."""
        reserve()
        return self.ledger.charge(
            guarantee,
            question=question,
            key=key,
            mechanism=mechanism,
            private=is_private(),
            purpose=self.purpose,
            description=self.description,
            compiled=compiled,
            **self.who,
        )

    def charge_all(self, wanted: Iterable[Wanted]) -> list[Receipt | Entry]:
        """Pay for several answers to questions about the tables together, or for none."""
        reserve()
        return self.ledger.charge_all(
            wanted,
            private=is_private(),
            purpose=self.purpose,
            description=self.description,
            compiled=True,
            **self.who,
        )

    def release(self, mechanism: Mechanism, data: Any, key: str | None, *, compiled: bool = False) -> Release:
        """A mechanism of any kind, charged, drawn and kept; an answer that is kept already is shown again."""
        named = type(mechanism).__name__
        kept = self.find(key, named, mechanism.promise)
        if kept is not None:
            receipt, value = kept.receipt, value_of(kept.answer)
        else:
            receipt = self.charge(mechanism.promise, named, key, named, compiled=compiled)
            value = drawn(mechanism, data)
            written = _written(value)
            shown = self.ledger.commit(receipt, written)
            value = value if shown == written else value_of(shown)
        refused = isinstance(value, Refusal)
        return Release(
            value,
            mechanism.promise,
            None if refused else mechanism.error(),
            None if refused else mechanism.interval(value),
            receipt,
        )


@contextmanager
def having_spent(before: str) -> Iterator[None]:
    """A refusal for want of budget says what had been paid before it."""
    try:
        yield
    except OverBudget as refused:
        refused.spent = before or refused.spent
        raise


def drawn(mechanism: Mechanism, data: Any, spent: str = COSTS) -> Any:
    """What was paid for; an error from here on has cost what the answer costs."""
    try:
        return mechanism.draw(data)
    except DiscreetError as error:
        error.spent = spent
        raise


def again(kept: Entry) -> Answer:
    """An answer that was paid for before."""
    return shown(kept.answer).with_(receipt=kept.receipt)


def shown(kept: str | None, spent: str = "nothing") -> Answer:
    """What the ledger keeps of a table; that it could not be drawn is an outcome too, and stays one."""
    if kept != NOT_DRAWN:
        return Answer.from_json(str(kept))
    raise EngineFailed(
        "DP801",
        "this answer was paid for, and could not be drawn.",
        why="that it failed may depend on what was drawn, so it is not drawn again for the same payment.",
        fix="key='…' or a name of the release that is new, once the engine answers",
        spent=spent,
    )


def value_of(written: str | None) -> Any:
    """A released value from what was kept of it."""
    if written is None:
        raise BadParameter(
            "DP107",
            "an answer of this kind is not kept, so it cannot be shown again.",
            why="only numbers, texts and lists of them are written into the ledger.",
            fix="leave out key=, and pay for a fresh answer",
        )
    kept = json.loads(written)
    if "refused" in kept:
        return Refusal(kept["refused"])
    value = kept["value"]
    return np.array(value) if isinstance(value, list) else value


def _written(value: Any) -> str | None:
    """A released value as JSON; None for what JSON does not know, and then it is not kept."""
    if isinstance(value, Refusal):
        return json.dumps({"refused": value.reason})
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    try:
        return json.dumps({"value": plain})
    except (TypeError, ValueError):
        return None
