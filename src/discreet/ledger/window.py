# SPDX-License-Identifier: Apache-2.0
"""Limits that renew by the calendar, under a limit for life.

**Guarantee.** In each window all answers together keep the window's limit. Over a lifetime they
keep the `lifetime` limit, to which every answer is charged as well, in tracks with orders of their
own. Without a lifetime limit nothing is guaranteed of more than one window but what
`guarantee_after(windows)` states: the windows composed, each as its (ε, δ).

Why. Each limit is a filter of its own over all charges that reach it. The windows are fixed in
advance by a public calendar (UTC), so how many there are says nothing about the data; K windows are
K slots of a plan. A sum at the order of one window cannot be re-optimised for many windows
afterwards, hence the separate lifetime tracks. In each window the first charge chooses anew how δ
is split: given all that was seen before, it is one filter with the window's claim.

The clock is a parameter. If it goes backwards, the later window stays: time that was seen once is
not unseen. What would break the guarantee per window: a clock in the hands of the analyst. The
lifetime limit does not depend on any clock.

**A clock that was ahead** renewed the window too early, and keeps the ledger in a window that has
not begun. Nothing in the ledger can tell which of its times were true, so it waits. What is safe:
charge nothing more to it, and from the beginning of the next window on by a clock that is right use
a new ledger, with the same limit for each window and a lifetime limit of what this one leaves, (E -
Σε, D - Σδ). Why: all that the old one charged was charged before now, so in true windows up to this
one, and the new one charges in later ones only: no true window has charges of both, and what was
spent in one is never forgotten in it. For life, every charge of the old one is (εᵢ, δᵢ), the new
one keeps its limit whatever is asked, and basic composition holds under any adaptivity: all
together keep (E, D). Where Σε is more than E (a Rényi track was left open), nothing is left in that
sense.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import lru_cache, partial

from discreet import check
from discreet.errors import BadParameter, OverBudget
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger.allocations import AllocatedLimit
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget, TrackBudget
from discreet.ledger.candidates import Candidates
from discreet.ledger.costs import Cost, Repetition, State
from discreet.ledger.filters import Filter
from discreet.ledger.limit import Limit, how_many_like
from discreet.ledger.odometer import Odometer
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

_WINDOW, _LIFETIME, _NUMBER, _FIRST = "window/", "lifetime/", "number", "first"
_LENGTH = re.compile(r"(?:([1-9][0-9]{0,5}) )?(hour|day|week|month|year)s?")
_HOURS = {"hour": 1, "day": 24, "week": 168}


@dataclass(frozen=True, repr=False)
class WindowedLimit(Limit):
    """One limit for each window, and one for all of them."""

    kind = "windowed"

    each: Filter | Candidates | AllocatedLimit
    length: str
    lifetime: Filter | Candidates | Odometer | None = None

    def __post_init__(self) -> None:
        _period(self.length)
        if self.lifetime is not None and isinstance(self.each, AllocatedLimit) and self.each.reserved:
            raise _window_error(
                "reserved allocations and a lifetime limit exclude each other.",
                "reserve allocations of a limit for life, or do not reserve them",
            )

    @property
    def theorem(self) -> str:
        return self.each.theorem if self.lifetime is None else self.lifetime.theorem

    def guarantee_for(self, unit: Unit) -> Guarantee | None:
        """What holds for life; None without a lifetime limit."""
        return None if self.lifetime is None else self.lifetime.guarantee_for(unit)

    def guarantee_after(self, windows: int, unit: Unit | None = None) -> Guarantee:
        """What holds for somebody whose data were there for that many windows, by the windows'
        limits alone.
        """
        return check.whole(windows=windows) * self.each.guarantee_for(unit or Unit())

    def describe(self) -> list[str]:
        lines = [f"In each window ({self.length}): {line}" for line in self.each.describe()]
        if self.lifetime is None:
            return [*lines, "Over a lifetime: no guarantee beyond what so many windows add up to."]
        return [*lines, *(f"Over a lifetime: {line}" for line in self.lifetime.describe())]

    @property
    def former_limit(self) -> Limit | None:
        each = self.each.former_limit or self.each
        lifetime = None if self.lifetime is None else self.lifetime.former_limit or self.lifetime
        return make_windowed(each, self.length, lifetime)

    def open_ways(self, cost: Cost, state: State) -> Cost:
        ways = self.each.open_ways(Cost(cost.ways), state.under(_WINDOW)).ways
        if self.lifetime is None or cost.lifetime is None:
            return Cost(ways)
        return Cost(ways, self.lifetime.open_ways(cost.lifetime, state.under(_LIFETIME)))

    def knows(self, state: State) -> bool:
        lifetime = self.lifetime is None or self.lifetime.knows(state.under(_LIFETIME))
        return lifetime and self.each.knows(state.under(_WINDOW)) and self._is_dated(state)

    def _is_dated(self, state: State) -> bool:
        """Whether a state was never charged, or lies in a window of the calendar, not before its
        first one.
        """
        if _NUMBER not in state:
            return _FIRST not in state
        first, number = state.get(_FIRST, math.inf), state[_NUMBER]
        in_order = 0 <= first <= number <= _window_number(self.length, datetime.max.replace(tzinfo=UTC))
        return in_order and first == int(first) and number == int(number)

    def start(self) -> State:
        state = State({}).replace_under(_WINDOW, self.each.start())
        return state if self.lifetime is None else state.replace_under(_LIFETIME, self.lifetime.start())

    def cost(self, guarantee: Guarantee) -> Cost:
        inner = self.each.cost(guarantee)
        return Cost(inner.ways, None if self.lifetime is None else self.lifetime.cost(guarantee))

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> State:
        return self._charge(self.enter(state, now), cost, asker=asker, now=now)

    def repetition(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Repetition | None:
        if now is None or self.enter(state, now) is not state:
            return None
        ends = _window_end(self.length, int(state[_NUMBER]))
        parts = {_WINDOW: self.each.repetition(state.under(_WINDOW), cost.without_lifetime, asker=asker)}
        if self.lifetime is not None and cost.lifetime is not None:
            parts[_LIFETIME] = self.lifetime.repetition(state.under(_LIFETIME), cost.lifetime)
        return None if ends is None else Repetition.join(parts, ends)

    def _charge(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker,
        now: datetime | str | None = None,
    ) -> State:
        """To the window and to the lifetime; whichever refuses, nothing is charged to either."""
        try:
            inside = self.each.admit(state.under(_WINDOW), cost.without_lifetime, asker=asker)
        except OverBudget as refused:
            self._say_if_ahead(refused, state, now)
            raise
        state = state.replace_under(_WINDOW, inside)
        if self.lifetime is None:
            return state
        if cost.lifetime is None:
            raise _window_error("this cost was made by a limit without a lifetime.", "limit.cost(guarantee)")
        return state.replace_under(_LIFETIME, self.lifetime.admit(state.under(_LIFETIME), cost.lifetime))

    def _say_if_ahead(self, refused: OverBudget, state: State, now: datetime | str | None) -> None:
        """What to do about a window that is full and lies ahead of the clock; see above. Times are
        public.
        """
        number = -1 if now is None else _window_number(self.length, _moment(now))
        stored = int(state[_NUMBER])
        if not 0 <= number < stored:
            return
        begins, following = _window_start(self.length, stored), _window_start(self.length, number + 1)
        refused.what += (
            f" The window of this ledger begins on {begins}: a charge was made while the clock was ahead."
        )
        refused.fix = (
            f"wait until {begins}. Or charge nothing more to this ledger, and begin another one on {following} or later, whose "
            f"lifetime limit is what this one leaves: see 'Clocks' in the sharp edges of the ledger."
        )

    def enter(self, state: State, now: datetime | str | None) -> State:
        """The state in the window of that time, with nothing spent in it if it is a new one."""
        number = (
            _window_at(self.length, now)
            if isinstance(now, str)
            else _window_number(self.length, _moment(now))
        )
        if number <= state.get(_NUMBER, -1):
            return state
        entered = state.replace_under(_WINDOW, self.each.start())
        return State({_FIRST: Fraction(number), **entered, _NUMBER: Fraction(number)})

    def budget(
        self,
        state: State,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Budget:
        """What is left in the window of that time (of the last charge, if none is given), and for
        life.
        """
        entered = state if now is None else self.enter(state, now)
        views = [self.each.budget(entered.under(_WINDOW), asker=asker)]
        tracks = list(views[0].tracks)
        if self.lifetime is not None:
            views.append(self.lifetime.budget(entered.under(_LIFETIME)))
            tracks += [
                TrackBudget(f"lifetime: {track.name}", track.total, track.spent) for track in views[1].tracks
            ]
        begun = int(entered[_NUMBER] - entered[_FIRST]) + 1 if _NUMBER in entered else 0
        notes = (f"{begun} windows begun", *(note for view in views for note in view.notes))
        charge = partial(self._charge, asker=asker)
        spent = max(view.spent_fraction for view in views)
        return Budget(tuple(tracks), spent, partial(how_many_like, charge, entered, self.cost), notes)

    def fields(self) -> JsonObject:
        lifetime = None if self.lifetime is None else self.lifetime.to_dict()
        return {"each": self.each.to_dict(), "length": self.length, "lifetime": lifetime}

    @classmethod
    def from_fields(cls, fields: JsonFacts) -> WindowedLimit:
        inner, lifetime = Limit.from_dict(fields["each"]), fields["lifetime"]
        return make_windowed(inner, fields["length"], None if lifetime is None else Limit.from_dict(lifetime))


def make_windowed(each: Limit, length: str, lifetime: Limit | None) -> WindowedLimit:
    """See `Limit.filter`.

    >>> from discreet import privacy
    >>> life = Limit.filter(epsilon=3)
    >>> limit = Limit.filter(epsilon=1, window="month", lifetime=life)
    >>> state = limit.admit(limit.start(), limit.cost(privacy.pure(0.9)), now="2030-01-31")
    >>> [limit.budget(state, now=day).like(privacy.pure(0.1)) for day in ("2030-01-31", "2030-02-01")]
    [1, 10]
    """
    within, beyond = Filter | Candidates | AllocatedLimit, Filter | Candidates | Odometer | None
    if not isinstance(each, within) or not isinstance(lifetime, beyond):
        raise _window_error(
            "windows renew a filter, under a filter or an odometer for life.",
            "Limit.filter(epsilon=1, delta=1e-6, window='month', lifetime=Limit.filter(epsilon=5, delta=1e-5))",
        )
    return WindowedLimit(each, length, lifetime)


def allocated_limit(limit: Limit) -> AllocatedLimit | None:
    """The limit with allocations that this limit is, or renews in every window; None without
    allocations.
    """
    inner = limit.each if isinstance(limit, WindowedLimit) else limit
    return inner if isinstance(inner, AllocatedLimit) else None


def _period(length: object) -> tuple[int, str]:
    """How many of which unit of time."""
    period = _read_period(length) if isinstance(length, str) else None
    if period is None:
        raise _window_error("a window is a length of time in words.", "window='30 days', window='month'")
    return period


@lru_cache(maxsize=100)
def _read_period(length: str) -> tuple[int, str] | None:
    match = _LENGTH.fullmatch(length)
    return None if match is None else (int(match[1] or 1), match[2])


@lru_cache(maxsize=100)
def _window_at(length: str, now: str) -> int:
    """The number of the window of that time."""
    return _window_number(length, _moment(now))


def _window_number(length: str, moment: datetime) -> int:
    """The number of the window in which a moment lies, on a calendar that begins with the year 1."""
    count, unit = _period(length)
    if unit in _HOURS:
        return (moment.toordinal() * 24 + moment.hour) // (count * _HOURS[unit])
    months = moment.year * 12 + moment.month - 1
    return months // (count if unit == "month" else 12 * count)


def _window_start(length: str, number: int) -> str:
    """When a window begins, in UTC."""
    count, unit = _period(length)
    if unit in _HOURS:
        day, hour = divmod(number * count * _HOURS[unit], 24)
        return date.fromordinal(day).isoformat() + (f" at {hour:02}:00 UTC" if unit == "hour" else "")
    year, month = divmod(number * (count if unit == "month" else 12 * count), 12)
    return f"{year:04}-{month + 1:02}-01"


def _window_end(length: str, number: int) -> datetime | None:
    """When the next window begins; None if no calendar has that day."""
    try:
        day, _, hour = _window_start(length, number + 1).partition(" at ")
        return datetime.fromisoformat(day).replace(hour=int(hour[:2] or 0), tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _moment(now: datetime | str | None) -> datetime:
    """The time in UTC; a time without a zone is taken to be UTC."""
    try:
        moment = datetime.fromisoformat(now) if isinstance(now, str) else now
        assert isinstance(moment, datetime)
    except (ValueError, AssertionError) as error:
        raise _window_error("a limit with windows needs the time.", "now=datetime.now(UTC)") from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _window_error(what: str, fix: str) -> BadParameter:
    return BadParameter(
        "DP107",
        what,
        why="which window an answer belongs to, and what holds beyond it, follows from a public calendar.",
        fix=fix,
    )
