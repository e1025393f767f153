# SPDX-License-Identifier: Apache-2.0
"""One turn at a ledger: what a writer does between its first look and COMMIT, while nobody else
writes.

**Guarantee.** Rows that are written in one turn are on disk together or not at all, and each is
admitted by the limit after all rows before it, those of the same turn included. So charges that
belong together are made together, or none of them.

A charge is *held* if whoever makes it shows nothing of what it draws before the answer is
committed. Then a charge that was not answered was seen by nobody, and may be answered later, or by
somebody else, for the same payment: of all draws that are made under it only the one that was
committed first is ever shown.

What would break it: showing a draw under a held charge before `answer` has returned it, or that it
failed before that is committed in its place; a crash or a time that depends on what was drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from discreet import check
from discreet.errors import BadParameter, DiscreetError, LedgerError, UnitMismatch, UnsupportedGuarantee
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger import chain
from discreet.ledger.asker import Asker
from discreet.ledger.budget import closed_tracks
from discreet.ledger.chain import LedgerRow
from discreet.ledger.costs import Cost, State
from discreet.ledger.description import Description, list_changes, refuse_another
from discreet.ledger.limit import Limit, as_guarantee
from discreet.ledger.opening import validate_label, validate_text
from discreet.ledger.receipt import Entry, Receipt, entry_of
from discreet.ledger.store import Store
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit
from discreet.privacy.wire import from_json

__all__ = ["Charge"]

#: What a key stands for, besides the description of the data: it is refused for anything else.
_SAME = ("question", "guarantee", "analyst", "project")
_REPEATED = (*_SAME, "purpose", "mechanism", "key")

#: The versions of the description that a ledger has been charged under, by their digests, the first
#: one first.
Versions = Mapping[str, Description]


@dataclass(frozen=True)
class Charge:
    """One of several answers that `Ledger.charge_all` pays for together.

    `guarantee` is what the answer costs; `question` and `mechanism` are recorded. With a `key` the
    answer can be asked for again.

    **Guarantee.** All charges of one call are in the ledger, or none of them.

    Why it holds: they are written in one transaction. What would break it: showing one of the
    answers before `commit_all` has returned.

    >>> from discreet import privacy
    >>> from discreet.ledger import Ledger, Limit
    >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1))
    >>> charges = [Charge(privacy.pure(0.3), word, key=word) for word in ("men", "women")]
    >>> [receipt.number for receipt in ledger.charge_all(charges)]
    [1, 2]
    """

    guarantee: Guarantee
    question: str = ""
    key: str | None = None
    mechanism: str | None = None


@dataclass(frozen=True)
class ChargeSubject:
    """What a charge is about: a description of the data, whether the charge was computed from it,
    and who draws.
    """

    description: Description | None
    compiled: bool
    in_session: bool

    @classmethod
    def of(
        cls, description: JsonFacts | Description | None, *, compiled: bool, in_session: bool
    ) -> ChargeSubject:
        """As it was given; nothing is computed from a description that is not there."""
        version = None if description is None else Description.of(description)
        computed = check.flag(compiled=compiled) and version is not None
        return cls(version, computed, check.flag(in_session=in_session))

    @property
    def fields(self) -> JsonObject:
        """What the row of the charge says of it."""
        return {
            "description": None if self.description is None else self.description.digest,
            "compiled": self.compiled,
            "in_session": self.in_session,
        }


@dataclass(frozen=True)
class Bill:
    """A charge that is ready to be made: what its row says, and what it costs."""

    guarantee: Guarantee
    fields: JsonFacts
    cost: Cost
    description: Description | None = None

    @classmethod
    def of(
        cls,
        wanted: Charge,
        limit: Limit,
        unit: Unit,
        subject: ChargeSubject,
        asker: Asker,
        *,
        private: object,
    ) -> Bill:
        """Priced before the turn begins, because that may take a while; refused if it cannot be
        charged at all.
        """
        if not isinstance(wanted, Charge):
            raise _not_charge_error(wanted)
        _refuse_what_cannot_be_charged(wanted.guarantee, unit, private=private)
        row_fields = {
            "question": validate_text("question", wanted.question),
            "key": None if wanted.key is None else validate_label("key", wanted.key),
            "mechanism": None if wanted.mechanism is None else validate_text("mechanism", wanted.mechanism),
            "guarantee": _guarantee_json(wanted.guarantee),
            **_asker_fields(asker),
            **subject.fields,
        }
        return cls(wanted.guarantee, row_fields, limit.cost(wanted.guarantee), subject.description)


def _asker_fields(asker: object) -> dict[str, str | None]:
    """Who asks, as the row of the charge says it."""
    if not isinstance(asker, Asker):
        raise _not_asker_error(asker)
    return {
        "analyst": None if asker.analyst is None else validate_label("analyst", asker.analyst),
        "project": None if asker.project is None else validate_label("project", asker.project),
        "purpose": None if asker.purpose is None else validate_text("purpose", asker.purpose),
    }


class Turn:
    """The only writer of a ledger, with its last row, its running total and the versions of its
    description.
    """

    def __init__(self, store: Store, limit: Limit, last: LedgerRow, total: State, versions: Versions) -> None:
        self._store, self._limit = store, limit
        self.last, self.total, self.versions = last, total, dict(versions)
        #: The version in the first row, which need not be written again if the first charge is made
        #: under it.
        self.made_with: frozenset[str] = frozenset()
        self.now = chain.now()

    def charge(self, bill: Bill, *, held: bool = False) -> Receipt:
        """Add a charge; `OverBudget` if the limit does not admit it, and then the turn has to be
        given up.
        """
        self._refuse_another_question(bill)
        self._describe(bill.description)
        asker = Asker(bill.fields["analyst"], bill.fields["project"])
        before = self._limit.budget(self.total, asker=asker, now=self.now)
        total = self._limit.admit(self.total, bill.cost, asker=asker, now=self.now)
        closed = closed_tracks(before, self._limit.budget(total, asker=asker, now=self.now))
        row = self._append("reserved", total, cost=bill.cost.to_dict(), held=held, **bill.fields)
        return Receipt(row.number, row.hash, self.now, bill.guarantee, bill.cost, bill.fields["key"], closed)

    def charge_or_find(self, bill: Bill) -> Receipt | Entry:
        """The answer that its key has, or the charge that waits for one (then without a cost), or a
        new charge.
        """
        key = bill.fields["key"]
        if key is not None:
            self._refuse_another_question(bill)
            answered = self._store.answer_for_key(key)
            if answered is not None:
                return entry_of(answered)
            before = pending_charge(self._store, key)
            if before is not None:
                return before
        # without a key nobody can ask for its answer later
        return self.charge(bill, held=key is not None)

    def answer(self, receipt: Receipt, answer: str | None) -> str | None:
        """Add an answer; if its charge or its key has one, that is the one that counts."""
        reserved = self._row_of(receipt)
        done = self._store.answer_of_charge(reserved.number)
        if done is None and reserved.key is not None:
            done = self._store.answer_for_key(reserved.key)
        if done is not None:
            return entry_of(done).answer
        fields = chain.read_row(reserved)
        repeated = {name: fields[name] for name in _REPEATED} | {"description": fields.get("description")}
        self._append("committed", self.total, answer=answer, settles=reserved.number, **repeated)
        return answer

    def add_uncharged(self, kind: str, **fields: Any) -> LedgerRow:
        """Add a row that was paid for before; the total stays what it is."""
        return self._append(kind, self.total, **fields)

    @property
    def store(self) -> Store:
        """The table that is written to."""
        return self._store

    def _describe(self, description: Description | None) -> None:
        """Write down a version that is new; one that protects somebody else is refused, in the
        transaction of its charge.
        """
        if description is None:
            return
        refuse_another(self.versions.values(), description)
        if description.digest not in self.versions:
            if self.last.number > 0 or description.digest not in self.made_with:
                self._append("described", self.total, describes=description.facts)
            self.versions[description.digest] = description

    def _append(self, kind: str, total: State, **fields: Any) -> LedgerRow:
        row = chain.next_row(self.last, kind, time=self.now, state=total.to_dict(), **fields)
        self._store.append(row)
        self.last, self.total = row, total
        return row

    def _row_of(self, receipt: Receipt) -> LedgerRow:
        """The row that a receipt is for."""
        row = None
        if isinstance(receipt, Receipt) and 0 <= receipt.number < 1 << 62:
            row = self._store.at(receipt.number)
        if row is None or row.kind != "reserved" or row.hash != receipt.hash:
            raise LedgerError(
                "DP603",
                "this receipt is not from this ledger.",
                why="an answer is kept beside the charge that paid for it.",
                fix="ledger.commit(ledger.charge(…), answer)",
            )
        return row

    def _refuse_another_question(self, bill: Bill) -> None:
        """A key stands for one question about one data set, asked with one guarantee by one
        analyst.
        """
        first = None if bill.fields["key"] is None else self._store.first_with_key(bill.fields["key"])
        if first is None:
            return
        asked = chain.read_row(first)
        if any(asked[name] != bill.fields[name] for name in _SAME):
            raise key_reused_error()
        _refuse_key_of_other_data(self.versions, asked.get("description"), bill.description)


def pending_charge(store: Store, key: str) -> Receipt | None:
    """The held charge under a key that no answer settles; without a cost, because it was paid
    earlier.
    """
    for row in store.charges_with_key(key):
        entry = entry_of(row)
        if entry.held and store.answer_of_charge(row.number) is None and entry.receipt is not None:
            return replace(entry.receipt, cost=None)
    return None


def refuse_other_use(
    entry: Entry,
    asked: Mapping[str, str | None],
    versions: Versions,
    description: JsonFacts | Description | None,
) -> None:
    """Refuse to show an answer to anybody else than who asked, or for anything that is given and is
    not what was asked.
    """
    given = {name for name, value in asked.items() if value is not None} | {"analyst", "project"}
    if any(asked[name] != getattr(entry, name) for name in given):
        raise key_reused_error()
    if description is not None:
        _refuse_key_of_other_data(versions, entry.description, Description.of(description))


def _refuse_key_of_other_data(versions: Versions, digest: str | None, now: Description | None) -> None:
    """Refuse a key whose question meant something else: another data set, or one that was described
    otherwise.

    What was only added since then changes no question that could be asked before; where nothing was
    recorded there is nothing to compare.
    """
    if digest is None or now is None or digest == now.digest:
        return
    before = versions.get(digest)
    if before is None or any(change.alters for change in list_changes(before, now)):
        raise key_reused_error("under another description of the data")


def key_reused_error(how: str = "for another question, or by somebody else") -> LedgerError:
    """The error for a key that stands for something else."""
    return LedgerError(
        "DP604",
        f"this key was used {how}.",
        why="a key stands for one question, so that asking it again shows the same answer and costs nothing.",
        fix="take a new key for a new question:  key='tuesday'",
    )


def _not_charge_error(given: object) -> BadParameter:
    return BadParameter(
        "DP104",
        f"charge_all takes a list of Charge objects, not of {type(given).__name__}.",
        why="each answer has its own guarantee, question and key.",
        fix="ledger.charge_all([Charge(guarantee, 'how many?', key='monday')])",
    )


def _not_asker_error(given: object) -> BadParameter:
    return BadParameter(
        "DP104",
        f"asker must be an Asker, not {type(given).__name__}.",
        why="it names the analyst, the project and the purpose that a charge is recorded under.",
        fix="asker=Asker(analyst='ana')",
    )


def _refuse_what_cannot_be_charged(guarantee: object, unit: Unit, *, private: object) -> None:
    if not check.flag(private=private):
        raise LedgerError(
            "DP605",
            "the noise of this answer can be repeated.",
            why="whoever knows the seed can take the noise away.",
            fix="leave out  testing.seeded(…)  where data are real.",
        )
    known = as_guarantee(guarantee)
    if known.unit != unit:
        raise UnitMismatch(
            "DP201",
            f"this ledger protects {unit}, but the guarantee is for {known.unit}.",
            why="their losses are about different neighbours, so a sum of them bounds neither.",
            fix=f"compute the guarantee for {unit}, with everything that belongs to it, and name the unit:  "
            f"unit={unit.protects!r}, relation={unit.relation!r}",
        )


@lru_cache(maxsize=256)
def _guarantee_json(guarantee: Guarantee) -> str:
    """The guarantee as text, from which it can be had again: an auditor recomputes the cost from
    it.
    """
    try:
        wire = guarantee.to_json()
        is_readable = from_json(wire) == guarantee
    except (DiscreetError, AssertionError, KeyError, TypeError, ValueError):
        is_readable = False
    if is_readable:
        return wire
    raise UnsupportedGuarantee(
        "DP203",
        f"a guarantee of the type {type(guarantee).__name__} cannot be written down.",
        why="what a ledger stores is the mechanism, so that every cost can be computed again.",
        fix="state it with  privacy.pair(…),  privacy.approximate(…)  or another one that from_json reads.",
    )
