# SPDX-License-Identifier: Apache-2.0
"""Filters: limits under which prices, too, may depend on earlier answers.

| kind | admit while | claim at the end | theorem |
|---|---|---|---|
| tracks | Σδᵢ ≤ d and (Σεᵢ ≤ ε or ΣDᵢ(α) ≤ B) | (ε, δ) | below |
| basic | Σδᵢ ≤ δ and Σεᵢ ≤ ε | (ε, δ) | basic composition holds under any adaptivity (Rogers et al. 2016) |
| pure | Σεᵢ ≤ ε | ε | densities multiply |
| zcdp | Σδᵢ ≤ d and Σρᵢ ≤ ρ | d-approximate ρ-zCDP, hence (ε, δ) | Feldman, Zrnic 2021; Whitehouse et al. 2023 |
| gdp | Σμᵢ² ≤ μ² | μ-GDP, the whole Gaussian curve | Smith, Thakurta 2022; Koskela et al. 2023 |

Why a sum is enough: after the first answer what is left is one number, the same whatever that
answer was. A mechanism that costs c, followed by anything that keeps within what is left of B,
keeps B; go backwards from the last question.

**Tracks.** Let d be the δ account, P̂ the process without leaks and L̂ its loss. Then H_{e^ε}(P‖Q)
≤ d + (1-d)·E_P̂(1 - e^{ε-L̂})₊. Totals only grow, so on each path some track was open throughout.
Paths of the pure track have L̂ ≤ ε and add nothing. Paths of the Rényi track are, with the same
probabilities, paths of the process stopped by that track alone, and add at most w = CKS(α, B, ε).
So the claim is (ε, d + (1-d)·w). Leaks use up δ linearly, the conversion only its logarithm: of d =
¾·δ and w = the rest, the account holds three quarters of all δ and the track keeps nine tenths of
its ρ. α and B are fixed before anything is answered, and stored: another α afterwards, or δ
exchanged against B, is covered by no proof. That d + w must not exceed δ is no weakness of the
proof: an analyst who leaks on one answer and spends B on the other reaches 99.98 % of it. Which
split serves best depends on the questions; see `discreet.ledger.candidates`.

**Basic.** The pure track with all of δ as its account, w = 0: it admits what is (ε, δ) by itself,
which no other split can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property, partial

from discreet.errors import BadParameter
from discreet.exact import exactly, float_above, float_below
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger import pinned, pricing
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget, TrackBudget
from discreet.ledger.costs import (
    Amount,
    Cost,
    CostRow,
    Lead,
    Menu,
    Repetition,
    State,
    menu,
    near_float,
    read_amount,
)
from discreet.ledger.limit import (
    Limit,
    Shortage,
    another_limit_error,
    as_guarantee,
    how_many_like,
    over_budget_error,
    pay_row,
)
from discreet.ledger.pricing import Track
from discreet.privacy import constructors as make
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

_THEOREMS = {
    "lanes": "one δ account, a free pure track and one Rényi track of fixed order (Feldman, Zrnic 2021; Lécuyer 2021)",
    "basic": "basic composition: ε and δ add under any adaptivity (Rogers et al. 2016, Lemma 3.5)",
    "renyi": "one δ account and one Rényi track of fixed order (Feldman, Zrnic 2021; Whitehouse et al. 2023)",
    "pure": "greatest losses add under any adaptivity",
    "zcdp": "approximate zCDP filter (Feldman, Zrnic 2021; Whitehouse et al. 2023)",
    "gdp": "Gaussian filter (Smith, Thakurta 2022; Koskela et al. 2023)",
}


_WHOLE = Fraction(1)
#: In fractions of this part of δ answers take δ on themselves beyond what they need.
_STEP = Fraction(1, 10)
#: Rooms that differ by more than this are told apart by floats, if every total is between these
#: two.
_CLEARLY, _SMALLEST, _GREATEST = 1e-9, 1e-25, 1e290
#: Of the reach of a lead this part is used, so that roundings do not end it early.
_NEARLY = 0.99
#: A row of last resort takes this part of the account.
_LAST = Fraction(4, 5)


@dataclass(frozen=True, repr=False)
class Filter(Limit):
    """A δ account and one or more tracks, of which one has to stay open.

    `epsilon` and `delta` are what was asked for (None where a track's own measure was given);
    `leak` is the account d.
    """

    kind = "filter"

    sort: str
    epsilon: Fraction | None
    delta: Fraction
    leak: Fraction
    tracks: tuple[Track, ...]

    def __post_init__(self) -> None:
        if not _is_proved(self):
            raise BadParameter(
                "DP107",
                "these constants do not prove the (ε, δ) that they are stored with.",
                why="a limit whose budgets are too large promises more than it keeps.",
                fix="Limit.filter(epsilon=1, delta=1e-6)",
            )

    @property
    def theorem(self) -> str:
        return _THEOREMS[self.sort]

    def guarantee_for(self, unit: Unit) -> Guarantee:
        words = {"unit": unit.protects, "relation": unit.relation}
        (first, *_) = self.tracks
        if first.kind == "mu2":
            return make.gaussian(noise_below(first.total), **words)
        if self.epsilon is not None:
            return make.approximate(float_above(self.epsilon), float_above(self.delta), **words)
        return make.approximate_concentrated(float_above(self.leak), float_above(first.total), **words)

    def describe(self) -> list[str]:
        lines = [
            f"All answers together keep {self._amount_words}, whatever is asked next and however it is chosen."
        ]
        if self.leak:
            lines.append(f"Mechanisms may fail with probability {float(self.leak):g} in all.")
        lines += [f"{_track_words(track)}: up to {float(track.total):.6g}." for track in self.tracks]
        if len(self.tracks) > 1:
            lines.append(
                "At least one of these tracks has to stay within its total; a track that has exceeded it is closed for good."
            )
        if any(track.kind == "renyi" for track in self.tracks):
            lines.append(f"For Gaussian noise that is ρ = {float(self.shown_rho):.4g} in all.")
        return [*lines, f"Why it holds: {self.theorem}."]

    @property
    def _amount_words(self) -> str:
        if self.epsilon is None:
            (track,) = self.tracks
            size = math.sqrt(track.total) if track.kind == "mu2" else float(track.total)
            return f"{'μ' if track.kind == 'mu2' else 'ρ'} = {size:g}"
        return f"ε = {float(self.epsilon):g}" + (f" at δ = {float(self.delta):g}" if self.delta else "")

    @property
    def former_limit(self) -> Limit | None:
        from discreet.ledger.filter_choice import former_filter

        return former_filter(self)

    @property
    def shown_rho(self) -> Fraction:
        """The budget of the Rényi track as a ρ, the measure in which Gaussian noise is priced: B/α."""
        (track,) = [track for track in self.tracks if track.kind == "renyi"]
        return track.total / Fraction(track.order)

    def start(self) -> State:
        return State(dict.fromkeys(("delta", *(track.name for track in self.tracks)), Fraction(0)))

    @cached_property
    def names(self) -> frozenset[str]:
        """What is counted."""
        return frozenset(self.start())

    @cached_property
    def _names_in_order(self) -> tuple[str, ...]:
        """What is counted: the account, then the tracks."""
        return tuple(self.start())

    @property
    def account(self) -> pricing.DeltaAccount:
        """The δ account, and how much of it one answer may take beyond what it needs."""
        if self.epsilon is None:
            return pricing.DeltaAccount(self.leak, self.leak)
        step = min(_STEP * self.delta, self.leak)
        if self.sort == "basic":
            return pricing.DeltaAccount(self.leak, step, whole=True)
        last = _LAST * self.leak
        return pricing.DeltaAccount(self.leak, step, last if last > _LAST * step else Fraction(0))

    def cost(self, guarantee: Guarantee) -> Cost:
        return menu(list(pricing.cost_rows(as_guarantee(guarantee), self.tracks, self.account)))

    def capacity(self, cost: Cost, fraction: Fraction = _WHOLE) -> Amount:
        """How many answers at that cost an untouched filter, or that fraction of it, admits if all
        are paid in one way.
        """
        return max((self._copies(row, fraction) for row in self._rows(cost)), default=Fraction(0))

    def _copies(self, row: CostRow, fraction: Fraction) -> Amount:
        leaks = _how_often(row.amounts["delta"], fraction * self.leak)
        return min(
            leaks, max(_how_often(row.amounts[track.name], fraction * track.total) for track in self.tracks)
        )

    def _rows(self, cost: Cost) -> list[CostRow]:
        """The rows in our own measures, of those that several filters may be paid with."""
        return list(cost.rows_by_names.get(self.names, ()))

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> State:
        payment = self.pay_best(state, cost)
        if payment is None:
            raise over_budget_error(self.budget(state), self.shortage(state, cost))
        return payment[0]

    def repetition(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Repetition | None:
        return self.repetition_within(state, cost)

    def repetition_within(self, state: State, cost: Cost, fraction: Fraction = _WHOLE) -> Repetition | None:
        """How `pay_best` pays a cost again in that fraction of every track.

        Why it holds: `pay_best` takes a row that is the only one of its menu, or leads in it, if
        the account and some track are open afterwards. The account and one track are open as long
        as no more is spent than `until` says. A row leads as long as `Lead.holds` confirms it;
        whatever was spent, what it compares are amounts that were rounded to floats and divided by
        floats, which keeps their order. So if it confirms the lead in this state and where every
        amount is that of `until`, it confirms it between the two.
        """
        usual = (cost.menus.get(self._names_in_order) or self._split_rows(cost))[0]
        until: dict[str, Amount] = {}
        if len(usual.rows) == 1:
            (row,) = usual.rows
        else:
            totals = self._about(fraction)
            lead = usual.leads.get(totals)
            reached = None if lead is None else _where_lead_ends(self._names_in_order, state, lead, totals)
            if lead is None or reached is None:
                return None
            row, until = lead.row, reached
        room = {"delta": fraction * self.leak - row.amounts["delta"]}
        longest = max(self.tracks, key=lambda track: _times_left(state, row, track, fraction))
        room[longest.name] = fraction * longest.total - row.amounts[longest.name]
        until |= {name: min(amount, until.get(name, amount)) for name, amount in room.items()}
        return Repetition(row.amounts, until) if _is_within(state, until) else None

    def pay_best(self, state: State, cost: Cost, fraction: Fraction = _WHOLE) -> tuple[State, CostRow] | None:
        """The state after the best row that fits into that fraction of every track, and the row;
        None if none fits.
        """
        menus = cost.menus.get(self._names_in_order) or self._split_rows(cost)
        return self._pay_roomiest(state, menus[0], fraction) or self._pay_roomiest(state, menus[1], fraction)

    def _split_rows(self, cost: Cost) -> tuple[Menu, Menu]:
        """The rows to pay with, and those of last resort."""
        rows = self._rows(cost)
        if cost.rows and not rows:
            raise another_limit_error()
        last = [row for row in rows if pricing.is_last_resort(row)]
        usual = [row for row in rows if not pricing.is_last_resort(row)]
        names = self._names_in_order
        return cost.menus.setdefault(names, (Menu(usual, names), Menu(last, names)))

    def _pay_roomiest(self, state: State, menu: Menu, fraction: Fraction) -> tuple[State, CostRow] | None:
        contenders = menu.rows if len(menu.rows) == 1 else self._contenders(state, menu, fraction)
        if len(contenders) == 1:
            paid = pay_row(state, contenders[0])
            return (paid, contenders[0]) if self._is_open(paid, fraction) else None
        best: tuple[list[Amount], State, CostRow] | None = None
        for row in contenders:
            paid = pay_row(state, row)
            room = self._room(paid, fraction)
            if room and (best is None or room > best[0]):
                best = room, paid, row
        return (best[1], best[2]) if best else None

    def _contenders(self, state: State, menu: Menu, fraction: Fraction) -> Sequence[CostRow]:
        """The rows that may be the best: all but those that floats show to be clearly worse.

        Exact fractions then choose among these rows, with the same outcome as among all of them.

        Why it holds: floats are right to 2⁻⁵³ of themselves, and what is spent is rounded up by at
        most 2⁻¹²⁸, which is 3e-14 of a total of 1e-25. So where a part of a total is at most two,
        it is right to 1e-13, and so are rooms; where it is more, the path is closed by far more
        than 1e-9. A row that is closed looks no roomier than 1e-13, an open one no less roomy than
        -1e-13. What is left out is closed for sure, or less roomy than another open row.

        **While it leads.** Let the best row be the only one left, its room r, and no other row's
        room above s ≥ 0. After more was spent, at most the part u ≤ 1 of each total, no room has
        grown. The free part of the account and that of its track are at most 1 and have each lost u
        at most, so its room has lost 3u at most: with 3u < r - s it is still the only one left.
        """
        totals = self._about(fraction)
        if not totals:
            return menu.rows
        if state.keys() != self.names:
            raise another_limit_error()
        spent = _fractions_spent(map(state.__getitem__, self._names_in_order), totals)
        lead = menu.leads.get(totals)
        if lead is not None and lead.holds(spent):
            return (lead.row,)
        rooms = [_about_room(spent, amounts, totals) for amounts in menu.floats]
        best = max((room for room in rooms if room is not None), default=-math.inf)
        contenders = [
            row for row, room in zip(menu.rows, rooms, strict=True) if room is None or room >= best - _CLEARLY
        ]
        if len(contenders) == 1 and best > 0:
            second = max([0.0, *(room for room in rooms if room is not None and room < best)])
            menu.leads[totals] = Lead(contenders[0], spent, (best - second - _CLEARLY) / 3)
        return contenders

    def _about(self, fraction: Fraction) -> tuple[float, ...]:
        """That fraction of the account and every track, as floats; nothing if one is too small or
        too great for floats.
        """
        if fraction is _WHOLE:
            return self._totals
        leak, *sums = (
            near_float(fraction * total) for total in (self.leak, *(track.total for track in self.tracks))
        )
        sizes = [*sums, leak] if leak else sums
        return (leak, *sums) if min(sizes) >= _SMALLEST and max(sizes) <= _GREATEST else ()

    @cached_property
    def _track_totals(self) -> list[tuple[str, Fraction]]:
        return [(track.name, track.total) for track in self.tracks]

    @cached_property
    def _totals(self) -> tuple[float, ...]:
        # another object of the same value, so that it is computed here
        return self._about(Fraction(1))

    def _is_open(self, state: State, fraction: Fraction) -> bool:
        """Whether the account and some track are not overdrawn."""
        if fraction is not _WHOLE:
            return bool(self._room(state, fraction))
        leaked = state["delta"]
        if leaked and leaked > self.leak:
            return False
        for name, total in self._track_totals:
            amount = state[name]
            # a float is infinity, and slow to compare with a fraction
            if not isinstance(amount, float) and amount <= total:
                return True
        return False

    def shortage(self, state: State, cost: Cost, fraction: Fraction = _WHOLE) -> Shortage:
        """What an answer lacks that does not fit: δ, if no row fits the account; loss, if none fits
        a track.
        """
        rows, room = self._rows(cost), fraction * self.leak - state["delta"]
        parts = [
            _part(track, row, fraction * track.total - state[track.name])
            for row in rows
            for track in self.tracks
        ]
        part = max(parts, default=0.0)
        return Shortage(
            needed=min((row.amounts["delta"] for row in rows), default=Fraction(0)),
            remaining=max(Fraction(0), room),
            loss_part=part if part < 1 else None,
        )

    def _room(self, state: State, fraction: Fraction) -> list[Amount]:
        """What is left of each open path, the roomiest first; none if all are closed.

        A path is the δ account with one track. Its room is the product of what is left of both, as
        fractions: so much δ is given for a smaller loss as that loss is worth, and no more.
        """
        leaked = 1 - _ratio(state["delta"], fraction * self.leak)
        tracks = (1 - _ratio(state[track.name], fraction * track.total) for track in self.tracks)
        return sorted((leaked * track for track in tracks if leaked >= 0 and track >= 0), reverse=True)

    def fullness(self, state: State, fraction: Fraction = _WHOLE) -> Amount:
        """How full the emptiest path is: 0 untouched, 1 just full, more if all are closed."""
        leaked = _ratio(state["delta"], fraction * self.leak)
        return max(leaked, min(_ratio(state[track.name], fraction * track.total) for track in self.tracks))

    def budget(
        self,
        state: State,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Budget:
        used = min(1.0, float(self.fullness(state)))
        return Budget(self.track_budgets(state), used, partial(how_many_like, self.admit, state, self.cost))

    def track_budgets(
        self, state: State, fraction: Fraction = _WHOLE, whose: str = ""
    ) -> tuple[TrackBudget, ...]:
        """The running totals against that fraction of every track."""
        account = [TrackBudget(f"{whose}δ", fraction * self.leak, state["delta"])] if self.leak else []
        tracks = [
            TrackBudget(whose + _track_words(track), fraction * track.total, state[track.name])
            for track in self.tracks
        ]
        return (*account, *tracks)

    def fields(self) -> JsonObject:
        tracks: list[JsonObject] = [
            {"kind": track.kind, "total": str(track.total), "order": track.order} for track in self.tracks
        ]
        epsilon = None if self.epsilon is None else str(self.epsilon)
        constants = {"sort": self.sort, "epsilon": epsilon, "delta": str(self.delta), "leak": str(self.leak)}
        return {**constants, "lanes": tracks}

    @classmethod
    def from_fields(cls, fields: JsonFacts) -> Filter:
        tracks = tuple(
            Track(track["kind"], _ratio_of(track["total"]), float(track["order"]))
            for track in fields["lanes"]
        )
        epsilon = fields["epsilon"]
        return cls(
            sort=fields["sort"],
            epsilon=None if epsilon is None else _ratio_of(epsilon),
            delta=_ratio_of(fields["delta"]),
            leak=_ratio_of(fields["leak"]),
            tracks=tracks,
        )


def noise_below(squared_mu: Fraction) -> float:
    """Noise for which 1/noise is not below μ."""
    noise = float_below(Fraction(math.sqrt(float(1 / squared_mu))))
    while 1 / exactly(noise) ** 2 < squared_mu:
        noise = math.nextafter(noise, 0.0)
    return noise


def _is_proved(limit: Filter) -> bool:
    """Whether the budgets give what was asked for, by the theorem of the kind; computed afresh."""
    kinds = tuple(track.kind for track in limit.tracks)
    shapes = {
        "lanes": ("epsilon", "renyi"),
        "renyi": ("renyi",),
        "basic": ("epsilon",),
        "pure": ("epsilon",),
        "zcdp": ("rho",),
        "gdp": ("mu2",),
    }
    if shapes.get(limit.sort) != kinds or any(track.total <= 0 for track in limit.tracks):
        return False
    if not 0 <= limit.leak <= limit.delta < 1:
        return False
    if limit.epsilon is None:
        return limit.sort in ("zcdp", "gdp") and limit.delta == limit.leak
    return limit.epsilon > 0 and all(_keeps(limit, track, limit.epsilon) for track in limit.tracks)


def _keeps(limit: Filter, track: Track, epsilon: Fraction) -> bool:
    """Whether a track that is filled to the brim stays within (ε, δ)."""
    if track.kind == "epsilon":
        return track.total <= epsilon
    if limit.delta <= limit.leak:
        return False
    if track.kind == "mu2":
        noise = make.gaussian(noise_below(track.total))
        return not limit.leak and noise.implies(
            make.approximate(float_below(epsilon), float_below(limit.delta))
        )
    rest = (limit.delta - limit.leak) / (1 - limit.leak)
    if track.kind == "renyi":
        return track.order > 1 and pinned.holds(epsilon, rest, track.order, track.total)
    order = pinned.best_order(epsilon, rest)
    return pinned.holds(epsilon, rest, order, track.total * Fraction(order))


def _about_room(spent: Sequence[float], amounts: Sequence[float], totals: Sequence[float]) -> float | None:
    """The room of the roomiest path after a row, to nine digits; -inf if all are clearly closed,
    None if floats cannot say.

    What is spent comes as fractions of the totals; the account is the first of them.
    """
    track = -math.inf
    for used, amount, total in zip(spent[1:], amounts[1:], totals[1:], strict=True):
        track = max(track, 1 - (used + amount / total))
    if not totals[0]:
        return None if spent[0] or amounts[0] else track
    free = 1 - (spent[0] + amounts[0] / totals[0])
    return -math.inf if free < -_CLEARLY or track < -_CLEARLY else free * track


def _fractions_spent(spent: Iterable[Amount], totals: Sequence[float]) -> list[float]:
    """What is spent as fractions of the totals, in floats; where the total is nothing, what is
    spent.
    """
    return [
        amount / total if total else amount
        for amount, total in zip(map(near_float, spent), totals, strict=True)
    ]


def _is_within(amounts: Mapping[str, Amount], until: Mapping[str, Amount]) -> bool:
    return all(amounts[name] <= most for name, most in until.items())


def _times_left(state: State, row: CostRow, track: Track, fraction: Fraction) -> Amount:
    """How often a row fits into what is left of that fraction of a track; -1 if nothing is."""
    spent, total = state[track.name], fraction * track.total
    return _how_often(row.amounts[track.name], total - spent) if spent <= total else Fraction(-1)


def _where_lead_ends(
    names: Sequence[str], state: State, lead: Lead, totals: Sequence[float]
) -> dict[str, Amount] | None:
    """Amounts up to which the lead of a row holds from this state on; None if it does not hold."""
    until = {
        name: math.inf if spent == math.inf else Fraction((spent + _NEARLY * lead.reach) * (total or 1.0))
        for name, spent, total in zip(names, lead.spent, totals, strict=True)
    }
    holds = _is_within(state, until) and all(
        lead.holds(_fractions_spent(map(amounts.__getitem__, names), totals)) for amounts in (state, until)
    )
    return until if holds else None


def _part(track: Track, row: CostRow, room: Amount) -> float:
    """How much of the ε of an answer would fit into a track, about: losses are ε or, in the other
    measures, like ε².
    """
    needed = row.amounts[track.name]
    if room <= 0 or needed == math.inf:
        return 0.0
    part = 1.0 if needed <= room else float(room / needed)
    return part if track.kind == "epsilon" else math.sqrt(part)


def _how_often(amount: Amount, total: Amount) -> Amount:
    """How often an amount goes into a total."""
    if amount == 0:
        return math.inf
    return Fraction(0) if amount == math.inf else Fraction(math.floor(total / amount))


def _ratio(spent: Amount, total: Fraction) -> Amount:
    if total and spent != math.inf:
        return spent / total
    return Fraction(0) if spent == 0 else math.inf


def _ratio_of(text: str) -> Fraction:
    amount = read_amount(text)
    if amount == math.inf:
        raise ValueError(text)
    return Fraction(amount)


def _track_words(track: Track) -> str:
    return {
        "epsilon": "pure track (ε)",
        "renyi": f"Rényi track of order {track.order:g}",
        "rho": "concentrated track (ρ)",
        "mu2": "Gaussian track (μ²)",
    }[track.kind]
