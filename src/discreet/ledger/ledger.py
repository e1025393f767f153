# SPDX-License-Identifier: Apache-2.0
"""The ledger: what was spent on a data set, written down before anything is drawn, and never given
back.

ledger = Ledger("visits.ledger", limit=Limit.filter(epsilon=1, delta=1e-6), unit="patient")
receipt = ledger.charge(mechanism.guarantee, question="how many visits?", key="visits-1")     # on disk before it returns
answer = ledger.commit(receipt, draw())                                                       # show what this returns
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

from discreet import check
from discreet.errors import BadParameter, LedgerError, OverBudget
from discreet.json_types import JsonFacts
from discreet.ledger import chain
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget
from discreet.ledger.chain import LedgerRow
from discreet.ledger.costs import State
from discreet.ledger.description import Description, refuse_another
from discreet.ledger.limit import Limit, as_guarantee, batch_over_budget_error
from discreet.ledger.opening import (
    check_belongs,
    first_description,
    ledger_facts,
    open_store,
    running_total,
    validate_anchor,
    validate_label,
    versions_after,
)
from discreet.ledger.periods import add_period, stored_periods
from discreet.ledger.receipt import Entry, Receipt, entry_of
from discreet.ledger.store import Store
from discreet.ledger.turn import (
    Bill,
    Charge,
    ChargeSubject,
    Turn,
    pending_charge,
    refuse_other_use,
)
from discreet.ledger.verify import Progress, Verification, verify_store
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.unit import Unit
from discreet.privacy.wire import from_json

__all__ = ["Ledger"]

T = TypeVar("T")

#: How far back the last charge is looked for.
_LATEST = 100


@check.named_fields
class Ledger:
    """A book of what was spent on one data set, with a limit that it never lets through.

    `description` is what `Dataset.public_description` says. A charge names the description that it
    is made under, and one that protects somebody else is refused (`discreet.ledger.description`).

    **Guarantee.** `charge` returns a receipt only after the cost is on disk, and only if the limit
    admits it; so the total in the ledger is never below what was drawn, whatever crashes and
    whenever, and never above the limit, however many processes, threads and machines charge at
    once. Nothing is ever given back. A refusal writes nothing and is a function of earlier charges
    alone.

    Why it holds: one writer at a time reads the last row, asks the limit and appends, in one
    transaction of the database (`discreet.ledger.store`), before the caller draws; every row
    carries the running total and the hash of the row before.

    What would break it: drawing without a receipt; two ledgers for the same data; a file that is
    put back to an older copy (`anchor` detects it, if you kept one elsewhere); a disk that lies
    about having written.

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
        description: Description | JsonFacts | None = None,
    ) -> None:
        self._store, about, last = open_store(where, ledger_facts(limit, unit, dataset, description), anchor)
        self.id: str = about["ledger"]
        self.limit: Limit = Limit.from_dict(about["limit"])
        self.unit = Unit(**about["unit"])
        self.dataset: str | None = about["dataset"]
        self._seen = last.number, last.hash
        self._about, self._versions, self._looked = about, dict[str, Description](), 0

    # --- spending ---------------------------------------------------------------------------------

    def charge(
        self,
        guarantee: Guarantee,
        *,
        question: str = "",
        key: str | None = None,
        asker: Asker = NOBODY,
        mechanism: str | None = None,
        private: bool = True,
        description: Description | JsonFacts | None = None,
        compiled: bool = False,
        in_session: bool = False,
    ) -> Receipt:
        """Pay for an answer; draw it after this returns, and not before.

        Every call pays, also with a key that was used before: ask `find` first. `private` is False
        for noise that can be repeated (`Release.private`), and such an answer is refused.
        `description` says of which data it is an answer (`Dataset.public_description`): one that
        protects somebody else than earlier ones is refused. `compiled` says that the guarantee was
        computed from it. `in_session` is for a `Session`, which draws what it charges; of every
        other charge a statement says that its noise is asserted.
        """
        wanted, subject = (
            Charge(guarantee, question, key, mechanism),
            ChargeSubject.of(description, compiled=compiled, in_session=in_session),
        )
        bill = Bill.of(wanted, self.limit, self.unit, subject, asker, private=private)
        return self._in_turn(lambda turn: turn.charge(bill))

    def charge_all(
        self,
        wanted: Iterable[Charge],
        *,
        asker: Asker = NOBODY,
        private: bool = True,
        description: Description | JsonFacts | None = None,
        compiled: bool = False,
        in_session: bool = False,
    ) -> list[Receipt | Entry]:
        """Pay for several answers together, or for none; draw them after this returns, and show
        none before `commit_all`.

        For each of them, in their order: the entry with the answer, if its key has one, to be shown
        again; else a receipt, whose `cost` is None if it was paid by an earlier call that was never
        answered. Nothing is paid twice.
        """
        subject = ChargeSubject.of(description, compiled=compiled, in_session=in_session)
        bills = [Bill.of(one, self.limit, self.unit, subject, asker, private=private) for one in wanted]

        def charge(turn: Turn) -> list[Receipt | Entry]:
            before = turn.total
            try:
                return [turn.charge_or_find(bill) for bill in bills]
            except OverBudget as refused:
                left = self.limit.budget(before, asker=asker, now=turn.now)
                raise batch_over_budget_error(left, refused, len(bills)) from None

        return self._in_turn(charge)

    def commit(self, receipt: Receipt, answer: str | None = None) -> str | None:
        """Keep the answer of a charge; returns the answer to show.

        If the receipt, or another one with the same key, has been committed already, that answer is
        the one that counts, and this one must be forgotten: two answers to one question would tell
        more than one.
        """
        if answer is not None and not isinstance(answer, str):
            raise _not_text_error(answer)
        return self._in_turn(lambda turn: turn.answer(receipt, answer))

    def commit_all(self, answers: Iterable[tuple[Receipt, str]]) -> list[str | None]:
        """Keep the answers of charges together; returns the answers to show, as `commit` does."""
        pairs = list(answers)
        for _, answer in pairs:
            if not isinstance(answer, str):
                raise _not_text_error(answer)
        return self._in_turn(lambda turn: [turn.answer(receipt, answer) for receipt, answer in pairs])

    def find(
        self,
        key: str,
        question: str | None = None,
        *,
        guarantee: Guarantee | None = None,
        asker: Asker = NOBODY,
        description: Description | JsonFacts | None = None,
    ) -> Entry | None:
        """The committed answer for a key, which may be shown again for nothing; None if there is
        none.

        An answer belongs to whoever asked: with another analyst or project, or without the one who
        asked, the key is refused. Question, guarantee and description are compared if they are
        given.
        """
        entry = self._under(key)
        if entry is None:
            return None
        promised = None if guarantee is None else as_guarantee(guarantee).to_json()
        use = {
            "question": question,
            "guarantee": promised,
            "analyst": asker.analyst,
            "project": asker.project,
        }
        refuse_other_use(entry, use, self.versions(), description)
        return entry if entry.kind == "committed" else None

    def find_for_all(self, key: str) -> Entry | None:
        """The committed answer for a key, whoever asked: for what everybody may know."""
        entry = self._under(key)
        return entry if entry is not None and entry.kind == "committed" else None

    def _under(self, key: str) -> Entry | None:
        row = self._store.answer_for_key(validate_label("key", key)) or self._store.first_with_key(key)
        return None if row is None else entry_of(row)

    def add_period(self, key: str, period: int, text: str, *, asker: Asker = NOBODY) -> str:
        """Keep a row of the stream that was paid for under a key; returns the row to show.

        **Guarantee.** Each period has one row for ever: if it has been stored before, by whomever,
        that row is returned, and this one must be forgotten. It is on disk when this returns.
        """
        if not isinstance(text, str):
            raise _not_text_error(text)
        return self._in_turn(lambda turn: add_period(turn, key, period, text, asker))

    def periods(self, key: str) -> list[str]:
        """The rows of a stream that were stored, the first period first."""
        return stored_periods(self._store, validate_label("key", key))

    def find_pending(self, key: str) -> Receipt | None:
        """What `charge_all` has charged under a key and nobody has answered: asking again answers
        it for nothing.
        """
        return pending_charge(self._store, validate_label("key", key))

    # --- looking ----------------------------------------------------------------------------------

    def budget(self, asker: Asker = NOBODY) -> Budget:
        """What is spent and what remains of the budget, or of the asker's allocation, and how many
        more answers like the last one fit.
        """
        budget = self.limit.budget(self.spent, asker=asker, now=chain.now())
        last = len(self) - 1
        return replace(budget, last=_last_charge(self._store, last, asker))

    @property
    def where(self) -> str:
        """The path of the file, or the server and database; no password."""
        return self._store.place

    @property
    def spent(self) -> State:
        """The exact totals, by accounting track."""
        return self._total(*self._store.alone(self._last))

    @check.arguments
    def entries(self, after: int | None = None, limit: int | None = None) -> Iterator[Entry]:
        """The rows of the book, each checked by itself; `verify` checks them together.

        `after` leaves out the rows up to that number, and `limit` bounds how many are read: only
        these are fetched from the store.

        >>> from discreet import privacy
        >>> from discreet.ledger import Ledger, Limit
        >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1))
        >>> receipts = [ledger.charge(privacy.pure(0.1)) for _ in range(9)]
        >>> [entry.number for entry in ledger.entries(after=3, limit=2)]
        [4, 5]
        """
        start = 0 if after is None else check.whole(at_least=0, after=after) + 1
        rows = self._store.rows(start, None if limit is None else check.whole(limit=limit))
        return map(entry_of, rows)

    def __len__(self) -> int:
        return self._store.alone(self._last)[0].number + 1

    def __bool__(self) -> bool:
        return True

    def versions(self) -> Mapping[str, Description]:
        """Every description of the data that this ledger was charged under, by its digest, the
        first one first.
        """
        return self._store.alone(self._look_for_versions)

    def _look_for_versions(self) -> dict[str, Description]:
        last = self._store.last().number
        self._versions |= versions_after(self._store, self._about, self._looked)
        self._looked = last
        return dict(self._versions)

    @property
    def guarantee(self) -> Guarantee | None:
        """Everything that was charged, as one guarantee; None if nothing was.

        **Guarantee.** It describes what was run. Its views hold if the parameters of every charge
        were fixed in advance (as under `Limit.plan`); where they were chosen in view of earlier
        answers, what holds is the limit's own guarantee.
        """
        charged = Counter(entry.guarantee for entry in self.entries() if entry.kind == "reserved")
        parts = [(from_json(wire), count) for wire, count in charged.items() if wire is not None]
        return compose(parts) if parts else None

    def anchor(self) -> str:
        """The hash of the last row: write it down elsewhere, and `verify(anchor=…)` notices a
        roll-back to before it.
        """
        return self._store.alone(self._last)[0].hash

    def holds(self, anchor: str) -> bool:
        """Whether some row has this hash; if `anchor` returned it earlier and it is gone, the
        ledger was put back.
        """
        return self._store.alone(lambda: self._store.has(validate_anchor(anchor)))

    def verify(
        self, anchor: str | None = None, *, rows: int | None = None, progress: Progress | None = None
    ) -> Verification:
        """Recompute every hash, cost and total from what is stored, or from the first `rows` rows;
        see `discreet.ledger.verify`.

        `progress(done, all)` is called now and then with numbers of rows.
        """
        return verify_store(self._store, self.limit, anchor, rows, progress)

    def export(self) -> Iterator[str]:
        """The whole book as lines of JSON; `body` is the text whose SHA-256 is `hash`."""
        for row in self._store.rows():
            chain.read_row(row)
            yield chain.canonical({"body": row.body, "hash": row.hash, "answer": chain.answer_of(row)})

    def describe(self) -> list[str]:
        """What is guaranteed, to whom, and what remains, in sentences."""
        forgets = ["It is kept in memory, and forgets everything when this process ends."]
        return [
            f"The ledger {self.where} protects {self.unit}"
            + (f" in {self.dataset}." if self.dataset is not None else "."),
            *(forgets if self.where == ":memory:" else []),
            *self.limit.describe(),
            f"It has {len(self)} rows.",
            *str(self.budget()).splitlines(),
        ]

    def __repr__(self) -> str:
        return f"Ledger({self.where!r}, protects {self.unit}, {len(self)} rows)"

    def __str__(self) -> str:
        return "\n".join(self.describe())

    def _repr_html_(self) -> str:
        return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in self.describe()) + "</ul>"

    def check_belongs(
        self,
        *,
        limit: Limit | None = None,
        unit: Unit | None = None,
        dataset: str,
        description: Description | JsonFacts | None = None,
    ) -> None:
        """Refuse what this ledger was not made for: another limit, unit or data set, or a
        description that protects others.

        A ledger that names no data set takes any. A charge is compared again, in its own
        transaction.
        """
        if description is not None:
            refuse_another(self.versions().values(), Description.of(description))
        unit_of = {"protects": self.unit.protects, "relation": self.unit.relation}
        about = {"limit": self.limit.to_dict(), "unit": unit_of, "dataset": self.dataset or dataset}
        check_belongs(about, ledger_facts(limit, unit, dataset))

    # --- a handle, not a value --------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the file or the server; the ledger opens it again when it is used."""
        self._store.alone(self._store.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def no_copies() -> LedgerError:
        """The refusal to copy or pickle this, or whatever holds it."""
        return _no_copies_error()

    def __reduce__(self) -> NoReturn:
        raise self.no_copies()

    def __copy__(self) -> NoReturn:
        raise self.no_copies()

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise self.no_copies()

    # --- inside a transaction ---------------------------------------------------------------------

    def _in_turn(self, work: Callable[[Turn], T]) -> T:
        """Do some work when it is our turn to write; what it wrote is on disk when this returns."""

        def write() -> tuple[T, LedgerRow]:
            last, body = self._last()
            turn = Turn(self._store, self.limit, last, self._total(last, body), self.versions())
            turn.made_with = frozenset(first_description(self._about))
            return work(turn), turn.last

        found, last = self._store.write(write)
        self._seen = max(self._seen, (last.number, last.hash))
        return found

    def _last(self) -> tuple[LedgerRow, dict[str, Any]]:
        """The last row and what it says; refused if the book no longer holds what this process saw
        in it before.
        """
        row = self._store.last()
        body = chain.read_row(row, whole=False)
        number, known = self._seen
        seen = row if row.number == number else self._store.at(number)
        if row.number < number or seen is None or seen.hash != known:
            raise chain.damaged_error("it was put back to an earlier state while it was in use.")
        self._seen = row.number, row.hash
        return row, body

    def _total(self, row: LedgerRow, body: JsonFacts) -> State:
        return running_total(self.limit, row.number, body["state"])


def _last_charge(store: Store, last: int, asker: Asker) -> Guarantee | None:
    """The guarantee of the last charge, among the latest rows; of somebody with an allocation only
    their own.
    """
    rows = (store.at(number) for number in range(last, max(0, last - _LATEST), -1))
    for entry in (entry_of(row) for row in rows if row is not None and row.kind == "reserved"):
        if (
            asker.analyst in (None, entry.analyst)
            and asker.project in (None, entry.project)
            and entry.guarantee
        ):
            return from_json(entry.guarantee)
    return None


def _not_text_error(answer: object) -> BadParameter:
    return BadParameter(
        "DP104",
        f"an answer is kept as text, not as {type(answer).__name__}.",
        why="it is shown again, letter by letter, to whoever asks with the same key.",
        fix="ledger.commit(receipt, json.dumps(answer))",
        spent="what the receipt says",
    )


def _no_copies_error() -> LedgerError:
    return LedgerError(
        "DP607",
        "a ledger, or something that holds one, was about to be copied or pickled.",
        why="it is a handle to one book; a copy that is taken for another budget would spend it twice.",
        fix="open it where it is needed:  Ledger('visits.ledger')",
    )
