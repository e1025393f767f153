# SPDX-License-Identifier: Apache-2.0
"""Who asks, and the ledger that is charged before anything is drawn; what was drawn is kept, and shown again for nothing.

**Guarantee.** Nothing is shown before it was charged and kept, and only what the ledger keeps is shown. Whoever is stopped in between
has seen nothing, and pays nothing more when they ask again with the same key. What cannot be counted now is refused
before it is charged; an error after the charge is kept as its outcome, because it may depend on what was drawn.

The order is what makes it hold: look for kept answers, ask whether the data are ready, charge everything in one transaction,
draw everything, keep everything in one transaction, and only then show anything.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import STOPPED, BadParameter, DiscreetError, EngineFailed
from discreet.ledger import Asker, Budget, Charge, Entry, Ledger, Receipt, chain
from discreet.ledger.budget import closing_notes
from discreet.ledger.description import Description
from discreet.ledger.receipt import NOT_DRAWN
from discreet.mechanisms.mechanism import Mechanism, Refusal, Release
from discreet.noise.source import is_private, reserve
from discreet.privacy.guarantee import Guarantee

COSTS = "what this answer costs"
_NOT_KEPT = "not kept"


@dataclass(frozen=True)
class Due:
    """An answer to be paid for: what is charged, how it is drawn, as the text that is kept, and what follows."""

    wanted: Charge
    draw: Callable[[], Any]
    written: Callable[[Any], str]
    after: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Settled:
    """What the ledger keeps of an answer, the receipt of its charge or of what is shown again, and what was drawn for it.

    `drawn` is None if what is kept was drawn earlier, or by somebody else.
    """

    text: str | None
    receipt: Receipt | None
    drawn: Any = None


@dataclass(frozen=True)
class Account:
    """A ledger, and in whose name it is charged."""

    ledger: Ledger
    analyst: str | None
    project: str | None
    purpose: str | None
    description: Description

    @property
    def asker(self) -> Asker:
        """In whose name it is charged, and for what."""
        return Asker(self.analyst, self.project, self.purpose)

    def left(self) -> Budget:
        """What is left of the limit, or of our share of it."""
        return self.ledger.budget(self.asker)

    def closing(self, guarantee: Guarantee) -> tuple[str, ...]:
        """What this charge would take from everybody, beyond its cost; nothing if it is not admitted."""
        limit, before, now = self.ledger.limit, self.ledger.spent, chain.now()
        try:
            after = limit.admit(before, limit.cost(guarantee), asker=self.asker, now=now)
        except DiscreetError:
            return ()
        return closing_notes(*(limit.budget(state, asker=self.asker, now=now) for state in (before, after)))

    def find(self, key: str | None, question: str, guarantee: Guarantee | None) -> Entry | None:
        """The answer that is kept under a key, if that stands for this question."""
        if key is None:
            return None
        return self.ledger.find(
            key, question, guarantee=guarantee, asker=self.asker, description=self.description
        )

    def charge(
        self,
        guarantee: Guarantee,
        question: str,
        key: str | None,
        mechanism: str | None = None,
        *,
        compiled: bool = False,
    ) -> Receipt:
        """Pay for one answer; `compiled` says that its guarantee was computed from the description of the data.

        With a `mechanism` this session draws it next; without one it is drawn elsewhere.
        """
        reserve()
        return self.ledger.charge(
            guarantee,
            question=question,
            key=key,
            mechanism=mechanism,
            private=is_private(),
            description=self.description,
            compiled=compiled,
            in_session=mechanism is not None,
            asker=self.asker,
        )

    def settle(
        self, due: Sequence[Due], ready: Callable[[], object], *, compiled: bool, spent: str
    ) -> list[Settled]:
        """Charge, draw and keep several answers, all or none; those that are kept already cost nothing.

        `ready` refuses what could not be drawn; `spent` says in an error what was paid by then.
        """
        kept = [self.find(each.wanted.key, each.wanted.question, each.wanted.guarantee) for each in due]
        for entry in kept:
            refuse_not_drawn(None if entry is None else entry.answer)
        if None in kept:
            ready()
            reserve()
        found = self.ledger.charge_all(
            [each.wanted for each in due],
            private=is_private(),
            description=self.description,
            compiled=compiled,
            in_session=True,
            asker=self.asker,
        )
        receipts = [one for one in found if isinstance(one, Receipt)]
        try:
            drawn, failure = _drawn(zip(found, due, strict=True))
            new = iter(self._kept(receipts, drawn, failure))
        except DiscreetError as error:
            error.spent = spent if any(receipt.cost is not None for receipt in receipts) else "nothing"
            raise
        return [next(new) if isinstance(one, Receipt) else Settled(one.answer, one.receipt) for one in found]

    def _kept(
        self, receipts: list[Receipt], drawn: list[tuple[str, Any]], failure: BaseException | None
    ) -> list[Settled]:
        """What is kept from now on, ours or what somebody else has drawn for the same charge meanwhile."""
        if failure is not None:
            drawn = [(NOT_DRAWN, None)] * len(receipts)
        texts = [text for text, _ in drawn]
        now = self.ledger.commit_all(zip(receipts, texts, strict=True)) if receipts else []
        if failure is not None and NOT_DRAWN in now:
            raise failure
        for text in now:
            refuse_not_drawn(text)
        return [
            Settled(text, receipt, what if text == ours else None)
            for text, receipt, (ours, what) in zip(now, receipts, drawn, strict=True)
        ]

    def release(
        self,
        mechanism: Mechanism,
        data: Any,
        key: str | None,
        *,
        ready: Callable[[], object] = lambda: None,
        compiled: bool = False,
    ) -> Release:
        """A mechanism of any kind, charged, drawn and kept; an answer that is kept already is shown again."""
        mechanism = mechanism.for_size_of(data)
        named = type(mechanism).__name__
        wanted = Charge(mechanism.guarantee, named, key, named)
        due = Due(wanted, lambda: mechanism.draw(data), _written)
        (settled,) = self.settle([due], ready, compiled=compiled, spent=COSTS)
        value = value_of(settled.text) if settled.drawn is None else settled.drawn
        return mechanism.release_of(value, data, receipt=settled.receipt)


def _drawn(
    charged: Iterable[tuple[Receipt | Entry, Due]],
) -> tuple[list[tuple[str, Any]], BaseException | None]:
    """What is due, and why it could not be drawn. An error of `after` is like a crash: nothing was shown or kept."""
    drawn = []
    for charge, due in charged:
        if isinstance(charge, Receipt):
            try:
                what = due.draw()
                drawn.append((due.written(what), what))
            except STOPPED:
                raise
            except BaseException as error:  # noqa: BLE001 - not every error of an engine is an Exception
                return [], error
        due.after()
    return drawn, None


@contextmanager
def having_spent(before: str) -> Iterator[None]:
    """An error says what had been paid before it."""
    try:
        yield
    except DiscreetError as error:
        if before:
            error.spent = before if error.spent == "nothing" else f"{error.spent}, and {before}"
        raise


def refuse_not_drawn(kept: str | None) -> None:
    """That an answer could not be drawn is an outcome too, and stays one."""
    if kept == NOT_DRAWN:
        raise EngineFailed(
            "DP801",
            "this answer was paid for, and could not be drawn.",
            why="that it failed may depend on what was drawn, so it is not drawn again for the same payment.",
            fix="key='…' or a name of the release that is new, once the engine answers",
        )


def value_of(written: str | None) -> Any:
    """A released value from what was kept of it."""
    kept = {} if written is None else json.loads(written)
    if written is None or _NOT_KEPT in kept:
        raise BadParameter(
            "DP107",
            "an answer of this kind is not kept, so it cannot be shown again.",
            why="only numbers, texts and lists of them are written into the ledger.",
            fix="leave out key=, and pay for a fresh answer",
        )
    if "refused" in kept:
        return Refusal(kept["refused"])
    value = kept["value"]
    return np.array(value) if isinstance(value, list) else value


def _written(value: Any) -> str:
    """A released value as JSON; of what JSON does not know, only that it was drawn, told apart from any other draw."""
    if isinstance(value, Refusal):
        return json.dumps({"refused": value.reason})
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    try:
        return json.dumps({"value": plain})
    except (TypeError, ValueError):
        return json.dumps({_NOT_KEPT: secrets.token_hex(16)})
