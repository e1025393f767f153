# SPDX-License-Identifier: Apache-2.0
"""Who asks, and the ledger that is charged before anything is drawn. Drawn answers are stored and
shown again at no cost.

**Guarantee.** Nothing is shown before it was charged and stored, and only what the ledger stores is
shown. A process that is stopped in between has shown nothing, and asking again with the same key
costs nothing more. What cannot be counted now is refused before it is charged. An error after the
charge is stored as the outcome, because it may depend on what was drawn.

Why it holds is the order: look for stored answers, ask whether the data are ready, charge
everything in one transaction, draw everything, store everything in one transaction, and only then
show anything.
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

COST_OF_ANSWER = "what this answer costs"
_NOT_STORED = "not kept"


@dataclass(frozen=True)
class PendingAnswer:
    """An answer to be paid for: what is charged, how it is drawn, and how it is written for the
    ledger.
    """

    charge: Charge
    draw: Callable[[], Any]
    serialize: Callable[[Any], str]
    on_drawn: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class SettledAnswer:
    """What the ledger stores of an answer, the receipt, and the value that was drawn for it.

    `drawn` is None if the stored answer was drawn earlier, or by another process.
    """

    text: str | None
    receipt: Receipt | None
    drawn: Any = None


@dataclass(frozen=True)
class SessionAccount:
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

    def budget(self) -> Budget:
        """What is spent and what remains of the limit, or of our allocation."""
        return self.ledger.budget(self.asker)

    def closing_notes(self, guarantee: Guarantee) -> tuple[str, ...]:
        """What this charge would take from everybody, beyond its cost; nothing if it is not
        admitted.
        """
        limit, before, now = self.ledger.limit, self.ledger.spent, chain.now()
        try:
            after = limit.admit(before, limit.cost(guarantee), asker=self.asker, now=now)
        except DiscreetError:
            return ()
        return closing_notes(*(limit.budget(state, asker=self.asker, now=now) for state in (before, after)))

    def find(self, key: str | None, question: str, guarantee: Guarantee | None) -> Entry | None:
        """The answer stored under a key, if the key stands for this question."""
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
        """Pay for one answer; `compiled` says that its guarantee was computed from the description
        of the data.

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
        self, pending: Sequence[PendingAnswer], ready: Callable[[], object], *, compiled: bool, spent: str
    ) -> list[SettledAnswer]:
        """Charge, draw and store several answers, all or none; stored ones cost nothing.

        `ready` raises if the answers could not be drawn; `spent` tells in an error what was paid by
        then.
        """
        stored = [self.find(each.charge.key, each.charge.question, each.charge.guarantee) for each in pending]
        for entry in stored:
            refuse_not_drawn(None if entry is None else entry.answer)
        if None in stored:
            ready()
            reserve()
        charges = self.ledger.charge_all(
            [each.charge for each in pending],
            private=is_private(),
            description=self.description,
            compiled=compiled,
            in_session=True,
            asker=self.asker,
        )
        receipts = [charge for charge in charges if isinstance(charge, Receipt)]
        try:
            drawn, failure = _draw_all(zip(charges, pending, strict=True))
            new = iter(self._commit(receipts, drawn, failure))
        except DiscreetError as error:
            error.spent = spent if any(receipt.cost is not None for receipt in receipts) else "nothing"
            raise
        return [
            next(new) if isinstance(charge, Receipt) else SettledAnswer(charge.answer, charge.receipt)
            for charge in charges
        ]

    def _commit(
        self, receipts: list[Receipt], drawn: list[tuple[str, Any]], failure: BaseException | None
    ) -> list[SettledAnswer]:
        """What is stored from now on: ours, or what another process has drawn for the same charge
        meanwhile.
        """
        if failure is not None:
            drawn = [(NOT_DRAWN, None)] * len(receipts)
        texts = [text for text, _ in drawn]
        stored = self.ledger.commit_all(zip(receipts, texts, strict=True)) if receipts else []
        if failure is not None and NOT_DRAWN in stored:
            raise failure
        for text in stored:
            refuse_not_drawn(text)
        return [
            SettledAnswer(text, receipt, value if text == ours else None)
            for text, receipt, (ours, value) in zip(stored, receipts, drawn, strict=True)
        ]

    def release(
        self,
        mechanism: Mechanism,
        data: object,
        key: str | None,
        *,
        ready: Callable[[], object] = lambda: None,
        compiled: bool = False,
    ) -> Release:
        """A mechanism of any kind: charged, drawn and stored; a stored answer is shown again."""
        mechanism = mechanism.for_size_of(data)
        name = type(mechanism).__name__
        charge = Charge(mechanism.guarantee, name, key, name)
        pending = PendingAnswer(charge, lambda: mechanism.draw(data), _serialize)
        (settled,) = self.settle([pending], ready, compiled=compiled, spent=COST_OF_ANSWER)
        value = parse_value(settled.text) if settled.drawn is None else settled.drawn
        return mechanism.release_of(value, data, receipt=settled.receipt)


def _draw_all(
    charges: Iterable[tuple[Receipt | Entry, PendingAnswer]],
) -> tuple[list[tuple[str, Any]], BaseException | None]:
    """Every answer that was charged, or why one could not be drawn.

    An error of `on_drawn` is like a crash: nothing was shown or stored.
    """
    drawn = []
    for charge, pending in charges:
        if isinstance(charge, Receipt):
            try:
                value = pending.draw()
                drawn.append((pending.serialize(value), value))
            except STOPPED:
                raise
            except BaseException as error:  # noqa: BLE001 - not every error of an engine is an Exception
                return [], error
        pending.on_drawn()
    return drawn, None


@contextmanager
def adding_spent(before: str) -> Iterator[None]:
    """Errors inside this block also tell what was paid before it."""
    try:
        yield
    except DiscreetError as error:
        if before:
            error.spent = before if error.spent == "nothing" else f"{error.spent}, and {before}"
        raise


def refuse_not_drawn(stored: str | None) -> None:
    """That an answer could not be drawn is an outcome too, and stays one."""
    if stored == NOT_DRAWN:
        raise EngineFailed(
            "DP801",
            "this answer was paid for, but drawing it failed.",
            why="the failure may depend on the data, so the same payment is not drawn twice.",
            fix="key='…' or a name of the release that is new, once the engine answers",
        )


def parse_value(stored: str | None) -> Any:
    """A released value from what the ledger stores of it."""
    fields = {} if stored is None else json.loads(stored)
    if stored is None or _NOT_STORED in fields:
        raise BadParameter(
            "DP107",
            "an answer of this kind is not stored, so it cannot be shown again.",
            why="the ledger stores only numbers, texts and lists of them.",
            fix="leave out key=, and pay for a fresh answer",
        )
    if "refused" in fields:
        return Refusal(fields["refused"])
    value = fields["value"]
    return np.array(value) if isinstance(value, list) else value


def _serialize(value: object) -> str:
    """A released value as JSON; where JSON has no form for it, a random mark that tells this draw
    from any other.
    """
    if isinstance(value, Refusal):
        return json.dumps({"refused": value.reason})
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    try:
        return json.dumps({"value": plain})
    except (TypeError, ValueError):
        return json.dumps({_NOT_STORED: secrets.token_hex(16)})
