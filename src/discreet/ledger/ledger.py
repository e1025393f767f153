# SPDX-License-Identifier: Apache-2.0
"""The ledger: what was spent on a data set, written down before anything is drawn, and never given back.

ledger = Ledger("visits.ledger", limit=Limit.filter(epsilon=1, delta=1e-6), unit="patient")
receipt = ledger.charge(mechanism.guarantee(), question="how many visits?", key="visits-1")     # on disk before it returns
answer = ledger.commit(receipt, draw())                                                       # show what this returns
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, Self

from discreet import check
from discreet.errors import BadParameter, DiscreetError, LedgerError, UnitMismatch, UnsupportedGuarantee
from discreet.ledger import chain
from discreet.ledger.chain import Row
from discreet.ledger.lanes import State
from discreet.ledger.left import Left
from discreet.ledger.limit import Limit, as_guarantee
from discreet.ledger.opening import check_belongs, label, opened, stated, text, total
from discreet.ledger.receipt import Entry, Receipt, entry_of
from discreet.ledger.store import Store
from discreet.ledger.verify import Verification, verified
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.unit import Unit
from discreet.privacy.wire import from_json

__all__ = ["Ledger"]


class Ledger:
    """A book of what was spent on one data set, with a limit that it never lets through.

    **Promise.** `charge` returns a receipt only after the cost is on disk, and only if the limit admits it; so the total in the
    ledger is never below what was drawn, whatever crashes and whenever, and never above the limit, however many processes,
    threads and machines charge at once. Nothing is ever given back. A refusal writes nothing and is a function of earlier
    charges alone.

    Why it holds: one writer at a time reads the last row, asks the limit and appends, in one transaction of the database
    (`discreet.ledger.store`), before the caller draws; every row carries the running total and the hash of the row before.

    What would break it: drawing without a receipt; two ledgers for the same data; a file that is put back to an older copy
    (`anchor` detects it, if you kept one elsewhere); a disk that lies about having written.

    >>> from discreet import privacy
    >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1), unit="patient")
    >>> receipt = ledger.charge(privacy.pure(0.6, unit="patient"), question="how many?", key="q1")
    >>> ledger.commit(receipt, "[41, 44]"), ledger.find("q1").answer
    ('[41, 44]', '[41, 44]')
    >>> ledger.charge(privacy.pure(0.6, unit="patient"))
    Traceback (most recent call last):
    ...
    discreet.errors.OverBudget: DP601 ...
    """

    def __init__(
        self,
        where: str | Path | Store,
        limit: Limit | None = None,
        unit: Unit | str | None = None,
        dataset: str | None = None,
        *,
        anchor: str | None = None,
    ) -> None:
        self._store, about, last = opened(where, limit, unit, dataset, anchor)
        self.id: str = about["ledger"]
        self.limit: Limit = Limit.from_dict(about["limit"])
        self.unit = Unit(**about["unit"])
        self.dataset: str | None = about["dataset"]
        self._seen = last.number, last.hash

    # --- spending ------------------------------------------------------------------------------------

    def charge(
        self,
        guarantee: Guarantee,
        *,
        question: str = "",
        key: str | None = None,
        analyst: str | None = None,
        project: str | None = None,
        purpose: str | None = None,
        mechanism: str | None = None,
        private: bool = True,
    ) -> Receipt:
        """Pay for an answer; draw it after this returns, and not before.

        Every call pays, also with a key that was used before: ask `find` first. `private` is False for noise that can be
        repeated (`Release.private`), and such an answer is refused.
        """
        _refuse_what_cannot_be_charged(guarantee, self.unit, private=private)
        said = {
            "question": text(question=question),
            "key": None if key is None else label(key=key),
            "analyst": None if analyst is None else label(analyst=analyst),
            "project": None if project is None else label(project=project),
            "purpose": None if purpose is None else text(purpose=purpose),
            "mechanism": None if mechanism is None else text(mechanism=mechanism),
            "guarantee": _described(guarantee),
        }
        cost = self.limit.cost(guarantee)  # before the transaction: it may take a while
        with self._store.writing():
            last, before = self._last()
            self._refuse_another_question(said)
            now = chain.now()
            whose = {"analyst": said["analyst"], "project": said["project"]}
            after = self.limit.admit(self._total(last, before), cost, now=now, **whose)
            row = chain.following(
                last, "reserved", time=now, state=after.to_dict(), cost=cost.to_dict(), **said
            )
            self._store.append(row)
        self._seen = max(self._seen, (row.number, row.hash))
        return Receipt(row.number, row.hash, now, guarantee, cost, key)

    def commit(self, receipt: Receipt, answer: str | None = None) -> str | None:
        """Keep the answer of a charge; returns the answer to show.

        If the receipt, or another one with the same key, has been committed already, that answer is the one that counts,
        and this one must be forgotten: two answers to one question would tell more than one.
        """
        if answer is not None and not isinstance(answer, str):
            raise _not_text(answer)
        with self._store.writing():
            last, before = self._last()
            reserved = self._row_of(receipt)
            done = self._store.settled(reserved.number)
            if done is None and reserved.key is not None:
                done = self._store.answered(reserved.key)
            if done is not None:
                return entry_of(done).answer
            kept = chain.read(reserved)
            row = chain.following(
                last,
                "committed",
                time=chain.now(),
                state=before["state"],
                answer=answer,
                settles=reserved.number,
                **{name: kept[name] for name in _REPEATED},
            )
            self._store.append(row)
        self._seen = max(self._seen, (row.number, row.hash))
        return answer

    def find(
        self,
        key: str,
        question: str | None = None,
        *,
        guarantee: Guarantee | None = None,
        analyst: str | None = None,
        project: str | None = None,
    ) -> Entry | None:
        """The committed answer for a key, which may be shown again for nothing; None if there is none.

        What is given besides the key has to be what was asked under it, or the key is refused.
        """
        label(key=key)
        row = self._store.answered(key) or self._store.asked(key)
        if row is None:
            return None
        entry = entry_of(row)
        promised = None if guarantee is None else as_guarantee(guarantee).to_json()
        given = {"question": question, "guarantee": promised, "analyst": analyst, "project": project}
        if any(value is not None and value != getattr(entry, name) for name, value in given.items()):
            raise _key_reused()
        return entry if entry.kind == "committed" else None

    # --- looking -------------------------------------------------------------------------------------

    def left(self, analyst: str | None = None, project: str | None = None) -> Left:
        """What is left of the limit, or of somebody's share of it."""
        return self.limit.left(self.spent, analyst=analyst, project=project, now=chain.now())

    @property
    def where(self) -> str:
        """The path of the file, or the server and database; no password."""
        return self._store.place

    @property
    def spent(self) -> State:
        """The exact totals, by lane."""
        with self._store.lock:
            return self._total(*self._last())

    def entries(self) -> Iterator[Entry]:
        """Every row of the book, from the first on, each checked by itself; `verify` checks them together."""
        return map(entry_of, self._store.rows())

    def __len__(self) -> int:
        with self._store.lock:
            return self._last()[0].number + 1

    def __bool__(self) -> bool:
        return True

    def guarantee(self) -> Guarantee | None:
        """Everything that was charged, as one guarantee; None if nothing was.

        **Promise.** It describes what was run. Its views hold if the parameters of every charge were fixed in advance (as under
        `Limit.plan`); where they were chosen in view of earlier answers, what holds is the limit's own claim.
        """
        charged = Counter(entry.guarantee for entry in self.entries() if entry.kind == "reserved")
        parts = [(from_json(wire), count) for wire, count in charged.items() if wire is not None]
        return compose(parts) if parts else None

    def anchor(self) -> str:
        """The hash of the last row: write it down elsewhere, and `verify(anchor=…)` notices a roll-back to before it."""
        with self._store.lock:
            return self._last()[0].hash

    def verify(self, anchor: str | None = None) -> Verification:
        """Recompute every hash, cost and total from what is stored; see `discreet.ledger.verify`."""
        return verified(self._store, self.limit, anchor)

    def export(self) -> Iterator[str]:
        """The whole book as lines of JSON; `body` is the text whose SHA-256 is `hash`."""
        for row in self._store.rows():
            chain.read(row)
            yield chain.canonical({"body": row.body, "hash": row.hash, "answer": chain.answer_of(row)})

    def describe(self) -> list[str]:
        """What is promised, to whom, and what is left, in sentences."""
        forgets = ["It is kept in memory, and forgets everything when this process ends."]
        return [
            f"The ledger {self.where} protects {self.unit}"
            + (f" in {self.dataset}." if self.dataset is not None else "."),
            *(forgets if self.where == ":memory:" else []),
            *self.limit.describe(),
            f"It has {len(self)} rows.",
            *str(self.left()).splitlines(),
        ]

    def __repr__(self) -> str:
        return f"Ledger({self.where!r}, protects {self.unit}, {len(self)} rows)"

    def __str__(self) -> str:
        return "\n".join(self.describe())

    def _repr_html_(self) -> str:
        return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in self.describe()) + "</ul>"

    def check_belongs(self, *, limit: Limit | None = None, unit: Unit | None = None, dataset: str) -> None:
        """Refuse a limit, a unit or a data set that this ledger was not made with; one that names no data set takes any."""
        unit_of = {"protects": self.unit.protects, "relation": self.unit.relation}
        about = {"limit": self.limit.to_dict(), "unit": unit_of, "dataset": self.dataset}
        check_belongs(about, stated(limit, unit, None if self.dataset is None else dataset))

    # --- a handle, not a value -------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the file or the server; the ledger opens it again when it is used."""
        with self._store.lock:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def no_copies() -> LedgerError:
        """The refusal to copy or pickle this, or whatever holds it."""
        return LedgerError(
            "DP607",
            "a ledger, or something that holds one, was about to be copied or pickled.",
            why="it is a handle to one book; a copy that is taken for another budget would spend it twice.",
            fix="open it where it is needed:  Ledger('visits.ledger')",
        )

    def __reduce__(self) -> NoReturn:
        raise self.no_copies()

    def __copy__(self) -> NoReturn:
        raise self.no_copies()

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise self.no_copies()

    # --- inside a transaction ----------------------------------------------------------------------------

    def _last(self) -> tuple[Row, dict[str, Any]]:
        """The last row and what it says; refused if the book no longer holds what this process saw in it before."""
        row = self._store.last()
        body = chain.read(row, whole=False)
        number, known = self._seen
        seen = row if row.number == number else self._store.at(number)
        if row.number < number or seen is None or seen.hash != known:
            raise chain.damaged("it was put back to an earlier state while it was in use.")
        self._seen = row.number, row.hash
        return row, body

    def _total(self, row: Row, body: Mapping[str, Any]) -> State:
        return total(self.limit, row.number, body["state"])

    def _row_of(self, receipt: Receipt) -> Row:
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

    def _refuse_another_question(self, said: Mapping[str, Any]) -> None:
        """A key stands for one question, asked with one guarantee by one analyst."""
        if said["key"] is None:
            return
        first = self._store.asked(said["key"])
        if first is not None and any(chain.read(first)[name] != said[name] for name in _SAME):
            raise _key_reused()


_SAME = ("question", "guarantee", "analyst", "project")
_REPEATED = (*_SAME, "purpose", "mechanism", "key")


def _refuse_what_cannot_be_charged(guarantee: Any, unit: Unit, *, private: Any) -> None:
    if not check.flag(private=private):
        raise LedgerError(
            "DP605",
            "this answer was drawn from a source that can be repeated.",
            why="whoever knows the seed can take the noise away.",
            fix="leave out  testing.seeded(…)  where data are real.",
        )
    if as_guarantee(guarantee).unit != unit:
        raise UnitMismatch(
            "DP201",
            f"this ledger protects {unit}, and the guarantee is about {guarantee.unit}.",
            why="their losses are about different neighbours, so a sum of them bounds neither.",
            fix=f"state it with  unit={unit.protects!r}, relation={unit.relation!r}.",
        )


@lru_cache(maxsize=256)
def _described(guarantee: Guarantee) -> str:
    """The guarantee as text, from which it can be had again: an auditor recomputes the cost from it."""
    try:
        wire = guarantee.to_json()
        known = from_json(wire) == guarantee
    except (DiscreetError, AssertionError, KeyError, TypeError, ValueError):
        known = False
    if known:
        return wire
    raise UnsupportedGuarantee(
        "DP203",
        f"a guarantee of the type {type(guarantee).__name__} cannot be written down.",
        why="what a ledger stores is the mechanism, so that every cost can be computed again.",
        fix="state it with  privacy.pair(…),  privacy.approximate(…)  or another one that from_json reads.",
    )


def _key_reused() -> LedgerError:
    return LedgerError(
        "DP604",
        "this key was used for another question.",
        why="a key stands for one question, so that asking it again shows the same answer and costs nothing.",
        fix="take a new key for a new question:  key='tuesday'",
    )


def _not_text(answer: Any) -> BadParameter:
    return BadParameter(
        "DP104",
        f"an answer is kept as text, not as {type(answer).__name__}.",
        why="it is shown again, letter by letter, to whoever asks with the same key.",
        fix="ledger.commit(receipt, json.dumps(answer))",
        spent="what the receipt says",
    )
