# SPDX-License-Identifier: Apache-2.0
"""Checking a whole ledger: every hash, every cost and every total, computed anew from what is
stored.

**Guarantee.** `intact` means: every row is what was written and follows the one before it; the
totals follow from the stored costs by the rules of the limit, and never exceed it; every answer
belongs to a charge and is found by its key; every description that a charge names was written down
before it and protects whom the earlier ones did; and the row of the anchor, if one was given, is
there. What is worth knowing and no damage is a finding that begins with W:

    W1  charged, and no answer was kept: paid for, and perhaps seen; or held, and not answered yet
    W2  a window ended: what holds for life is the lifetime limit, not the window's W3  written by
    another version of discreet W4  today's code finds a lower cost for the same mechanism W5
    today's code finds a greater cost for the same mechanism: less was charged than is proved today
    W6  the database is set up so that a power failure could undo a charge W9  the clock went
    backwards

A lower cost today does not give anything back: `recomputed` is what the same charges would add up
to, entry by entry, in the same tracks at the same orders, which is the only recomputation that is
sound where questions were chosen adaptively.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache

from discreet import check
from discreet.errors import DiscreetError, LedgerDamaged, LedgerError
from discreet.json_types import JsonFacts
from discreet.ledger import chain
from discreet.ledger.asker import Asker
from discreet.ledger.budget import Budget
from discreet.ledger.chain import LedgerRow
from discreet.ledger.costs import Cost, State
from discreet.ledger.description import Description, refuse_another
from discreet.ledger.limit import Limit
from discreet.ledger.opening import check_link, first_description, running_total, validate_anchor
from discreet.ledger.periods import period_key
from discreet.ledger.receipt import Entry, entry_of
from discreet.ledger.running import RepeatableCharge, RunningTotals
from discreet.ledger.split import BodySplitter
from discreet.ledger.store import Store
from discreet.ledger.window import WindowedLimit
from discreet.privacy.wire import from_json

__all__ = ["Finding", "Verification"]

Progress = Callable[[int, int], None]

#: Rows that change no total.
_NO_CHARGE = frozenset({"open", "described", "committed", "period"})
#: Costs that are kept as they were read.
_KEPT = 1000
#: Rows from one report of progress to the next.
_REPORTED = 1000
#: Numbers of rows that are listed in one finding.
_LISTED = 8


@dataclass(frozen=True)
class Finding:
    """Something that an auditor should know; a code that begins with DP is damage.

    >>> print(Finding("DP602", "entry 3 was changed."))
    DP602  entry 3 was changed.
    """

    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.code}  {self.text}"


@dataclass(frozen=True)
class Verification:
    """What a check of the whole ledger found.

    `spent` is what the last row says is left and spent; `recomputed` is the same with today's
    costs, or None if they do not fit the limit. `anchor` is the hash of the last row: write it down
    elsewhere.

    **Guarantee.** If `intact` is true, every hash, cost and total was recomputed from what is
    stored and agrees. A ledger that was rolled back as a whole is found only by an anchor that was
    kept elsewhere.

    >>> from discreet.ledger import Ledger, Limit
    >>> Ledger(":memory:", limit=Limit.filter(epsilon=1)).verify().intact
    True
    """

    entries: int
    intact: bool
    findings: tuple[Finding, ...]
    spent: Budget
    recomputed: Budget | None
    anchor: str

    def __bool__(self) -> bool:
        return self.intact

    def __str__(self) -> str:
        again = "beyond the limit" if self.recomputed is None else _line(self.recomputed)
        return "\n".join(
            [
                f"{self.entries} entries · {'hash chain intact' if self.intact else 'DAMAGED'} · last sha256:{self.anchor}",
                f"spent       {_line(self.spent)}",
                f"recomputed  {again}",
                *map(str, self.findings),
            ]
        )


def verify_store(
    store: Store,
    limit: Limit,
    anchor: str | None = None,
    rows: int | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check every row of a store, or its first rows, against the limit."""
    if anchor is not None:
        validate_anchor(anchor)
    walk = _Walk(limit)
    last = store.last()
    end = last.number if rows is None else min(last.number, check.whole(rows=rows) - 1)
    for row in _up_to(end, store.rows()):
        walk.see(row, is_anchor=row.hash == anchor)
        if progress is not None and (walk.rows % _REPORTED == 0 or row.number == end):
            progress(walk.rows, end + 1)
    if anchor is not None and not walk.anchored:
        walk.damage("it does not hold the row of this anchor: it was put back, cut off or exchanged.")
    if not store.is_consistent():
        walk.damage("its indexes do not agree with its rows.")
    findings = [*walk.findings(), *(Finding("W6", weakness) for weakness in store.weaknesses())]
    return Verification(
        walk.rows,
        not walk.damages,
        tuple(sorted(findings, key=lambda finding: finding.code)),
        limit.budget(walk.totals.state),
        None if walk.recomputed is None else limit.budget(walk.recomputed),
        last.hash if walk.before is None else walk.before.hash,
    )


@dataclass
class _Walk:
    """What is known after some rows."""

    limit: Limit
    rows: int = 0
    anchored: bool = False
    before: LedgerRow | None = None
    damages: list[str] = field(default_factory=list)
    remarks: dict[str, list[int]] = field(default_factory=dict)
    versions: dict[str, list[int]] = field(default_factory=dict)
    unsettled: dict[int, tuple[str | None, bool]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    described: dict[str, Description] = field(default_factory=dict)
    made_with: dict[str, Description] = field(default_factory=dict)
    latest: str = ""
    #: The key of each answered charge by the row of its answer, and how many periods of it were stored.
    answers: dict[int, str | None] = field(default_factory=dict)
    periods: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.totals = RunningTotals(self.limit)
        #: The totals at today's costs, if one of those was another one; None if they exceed the
        #: limit.
        self.totals_today: State | None = None
        self.costs_agree = True
        self.stated_totals: JsonFacts = self.totals.state.to_dict()
        #: The stated totals of a charge that followed, of which each text is known to be that of
        #: its amount.
        self.checked_totals: JsonFacts = {}
        # for this walk alone, because its entries share costs
        self.split = BodySplitter().split
        self.prices: dict[tuple[int, int], _Price] = {}
        self.charge = lru_cache(_KEPT)(
            lambda price, analyst, project: RepeatableCharge(price.stored, Asker(analyst, project))
        )
        self.cost_today = cache(lambda wire: self.limit.cost(from_json(wire)))

    @property
    def recomputed(self) -> State | None:
        """The total of the same charges at today's costs; None if it exceeds the limit."""
        return self.totals.state if self.costs_agree else self.totals_today

    def see(self, row: LedgerRow, *, is_anchor: bool) -> None:
        """Check the next row."""
        self.rows += 1
        self.anchored |= is_anchor
        try:
            entry = entry_of(row, self.split)
            self._link(row, entry)
            self._follow(entry)
            if entry.time < self.latest:
                self._remark("W9", row.number)
            self.latest = max(self.latest, entry.time)
            if entry.version != chain.version():
                self.versions.setdefault(entry.version, []).append(row.number)
        except LedgerDamaged as error:
            self.damages.append(error.what)
        except (DiscreetError, KeyError, TypeError, AttributeError, ArithmeticError):
            self.damage(f"row {self.rows - 1} says something that cannot be read.")
        self.before = row

    def _link(self, row: LedgerRow, entry: Entry) -> None:
        try:
            check_link(row, entry.previous, self.before)
        except LedgerDamaged as error:  # what the row says is followed all the same
            self.damages.append(error.what)

    def damage(self, what: str) -> None:
        self.damages.append(chain.damaged_error(what).what)

    def findings(self) -> list[Finding]:
        """Everything found, each kind once."""
        findings = [Finding("DP602", what) for what in dict.fromkeys(self.damages)]
        findings += [
            Finding("W3", f"version {version} wrote {_numbers(rows)}")
            for version, rows in self.versions.items()
        ]
        for number, (key, held) in self.unsettled.items():
            quicker = key is not None and key in self.answered
            self._remark("W1a" if quicker else "W1b" if held else "W1", number)
        findings += [
            Finding(code[:2], _REMARKS[code].format(_numbers(rows))) for code, rows in self.remarks.items()
        ]
        return findings

    def _remark(self, code: str, number: int) -> None:
        self.remarks.setdefault(code, []).append(number)

    def _follow(self, entry: Entry) -> None:
        """The total after this row, from the total before it."""
        if entry.kind == "reserved":
            self._charge(entry)
        else:
            self._check_uncharged(entry)
        if entry.kind == "committed":
            self._settle(entry)
        if entry.kind == "period":
            self._count_period(entry)
        self._describe(entry)
        self.stated_totals = entry.state

    def _check_uncharged(self, entry: Entry) -> None:
        """The total that a row carries which is no charge: that of the row before it."""
        if (entry.kind == "open") != (entry.number == 0) or entry.kind not in _NO_CHARGE:
            self.damage(f"row {entry.number} is of a kind that has no place there.")
        if entry.state == self.stated_totals:
            return
        self.checked_totals = {}
        after = running_total(self.limit, entry.number, entry.state)
        if after != self.totals.state:
            self.damage(f"row {entry.number} changes the total without a charge.")
            self.totals_today, self.costs_agree = self.recomputed, False
            self.totals.state = after

    def _describe(self, entry: Entry) -> None:
        """Every description is compatible with those before it, and every charge names one that was
        written down earlier.
        """
        if entry.kind == "open":
            self.made_with = first_description(entry.about or {})
        if entry.number == 1 and entry.kind != "described":
            self.described |= self.made_with
        if entry.kind == "described":
            new = Description.of(entry.describes)
            try:
                refuse_another(self.described.values(), new)
            except LedgerError:
                self.damage(f"row {entry.number} describes other people than the rows before it.")
            self.described[new.digest] = new
        if entry.description is not None and entry.description not in self.described:
            self.damage(f"row {entry.number} names a description that there is not.")

    def _charge(self, entry: Entry) -> None:
        """The total after a charge, from its cost by the rules of the limit; what the row says is
        compared with it.
        """
        price = self._price(entry)
        charge = self.charge(price, entry.analyst, entry.project)
        if price.agrees and self.costs_agree and self.totals.follow(charge, entry.time, entry.state):
            self.checked_totals = entry.state
        else:
            self._charge_anew(entry, price, charge)
        if not price.agrees:
            self._remark("W4" if _not_above(price.today, price.stored) else "W5", entry.number)
        self.unsettled[entry.number] = entry.key, entry.held

    def _charge_anew(self, entry: Entry, price: _Price, charge: RepeatableCharge) -> None:
        """The total after a charge that is not known to be paid as one before it."""
        before = self.totals.state
        after = self._admit(before, price.stored, entry.time, charge.asker)
        follows = after is not None and after.is_stated(entry.state, before, self.checked_totals)
        self.checked_totals = entry.state if follows else {}
        if after is None or not follows:
            after = running_total(self.limit, entry.number, entry.state)
            self.damage(
                f"row {entry.number} has a total that does not follow from its cost, or exceeds the limit."
            )
        recomputed = self.recomputed
        self.totals.state = after
        # The same cost in the same state, by the split that was chosen then, leads to the same
        # total.
        if not (price.agrees and follows and self.costs_agree):
            self.costs_agree, self.totals_today = False, recomputed
            if recomputed is not None:
                # with the split that was chosen then: choosing again, by today's costs, would be
                # covered by no proof
                today = self.limit.open_ways(price.today, after)
                self.totals_today = self._admit(recomputed, today, entry.time, charge.asker)
        if follows:
            self.totals.learn(charge, entry.time)
        if (
            isinstance(self.limit, WindowedLimit)
            and self.limit.enter(before, entry.time) is not before
            and before != self.limit.start()
        ):
            self._remark("W2", entry.number)

    def _price(self, entry: Entry) -> _Price:
        """The costs of a charge; where the same texts were read, which gives the same objects, they
        are the same.
        """
        key = id(entry.cost), id(entry.guarantee)
        price = self.prices.get(key)
        if price is None:
            if len(self.prices) > _KEPT:
                self.prices.clear()
            stored, today = Cost.from_dict(entry.cost or {}), self.cost_today(entry.guarantee)
            price = _Price(stored, today, today == stored, (entry.cost, entry.guarantee))
            self.prices[key] = price
        return price

    def _admit(self, state: State, cost: Cost, time: str, asker: Asker) -> State | None:
        try:
            return self.limit.admit(state, cost, asker=asker, now=time)
        except DiscreetError:
            return None

    def _count_period(self, entry: Entry) -> None:
        """A row of a stream follows its opening and the row of the period before it."""
        opening = -1 if entry.stream is None else entry.stream
        key = self.answers.get(opening)
        if key is None or entry.key != period_key(key, self.periods[opening]):
            self.damage(f"row {entry.number} is a row of a stream that is not its next one.")
        self.periods[opening] += 1

    def _settle(self, entry: Entry) -> None:
        self.answers[entry.number] = entry.key
        if entry.settles not in self.unsettled:
            self.damage(f"row {entry.number} answers a charge that there is not.")
        elif entry.key in self.answered:
            self.damage(f"row {entry.number} is a second answer for its key.")
        else:
            del self.unsettled[entry.settles]
        if entry.key is not None:
            self.answered.add(entry.key)


@dataclass(frozen=True, eq=False)
class _Price:
    """What a charge cost then and costs today, and whether these are the same; it keeps alive what
    it was read from.
    """

    stored: Cost
    today: Cost
    agrees: bool
    source: tuple[object, object]


_REMARKS = {
    "W1": "no answer was kept for {}: charged, and perhaps seen",
    "W1a": "no answer was kept for {}: charged, and another charge with the same key was quicker",
    "W1b": "no answer is kept yet for {}: charged with others; asking again with the same keys answers it for nothing",
    "W2": "a new window began at {}: what holds for life is the lifetime limit, not the window's",
    "W4": "today's code finds a lower cost for {}",
    "W5": "today's code finds a greater cost for {}: less was charged than is proved today",
    "W9": "the clock went backwards at {}",
}


def _up_to(number: int, rows: Iterator[LedgerRow]) -> Iterable[LedgerRow]:
    """The rows up to that number: those that are added while we read are left for the next time."""
    for row in rows:
        if row.number > number:
            return
        yield row


def _not_above(today: Cost, stored: Cost) -> bool:
    """Whether every way to pay that was stored is still there and costs no more."""
    ways = {tuple(row.name for row in way): way for way in today.ways}
    for way in stored.ways:
        again = ways.get(tuple(row.name for row in way))
        if again is None or any(
            new.amounts.get(track, 0) > old.amounts.get(track, 0)
            for new, old in zip(again, way, strict=True)
            for track in {*new.amounts, *old.amounts}
        ):
            return False
    if today.lifetime is None or stored.lifetime is None:
        return today.lifetime is stored.lifetime
    return _not_above(today.lifetime, stored.lifetime)


def _numbers(rows: list[int]) -> str:
    shown = ", ".join(f"#{number}" for number in rows[:_LISTED])
    return shown if len(rows) <= _LISTED else f"{shown} and {len(rows) - _LISTED} more"


def _line(left: Budget) -> str:
    return "; ".join(map(str, left.tracks))
