# SPDX-License-Identifier: Apache-2.0
"""Filters: limits under which prices, too, may depend on earlier answers.

| kind | admit while | claim at the end | theorem |
|---|---|---|---|
| lanes | Σδᵢ ≤ d and (Σεᵢ ≤ ε or ΣDᵢ(α) ≤ B) | (ε, δ) | below |
| basic | Σδᵢ ≤ δ and Σεᵢ ≤ ε | (ε, δ) | basic composition holds under any adaptivity (Rogers et al. 2016) |
| pure | Σεᵢ ≤ ε | ε | densities multiply |
| zcdp | Σδᵢ ≤ d and Σρᵢ ≤ ρ | d-approximate ρ-zCDP, hence (ε, δ) | Feldman, Zrnic 2021; Whitehouse et al. 2023 |
| gdp | Σμᵢ² ≤ μ² | μ-GDP, the whole Gaussian curve | Smith, Thakurta 2022; Koskela et al. 2023 |

Why a sum is enough: after the first answer what is left is one number, the same whatever that answer was. A mechanism
that costs c, followed by anything that keeps within what is left of B, keeps B; go backwards from the last question.

**Lanes.** Let d be the δ account, P̂ the process without leaks and L̂ its loss. Then H_{e^ε}(P‖Q) ≤ d + (1-d)·E_P̂(1 - e^{ε-L̂})₊.
Totals only grow, so on each path some lane was open throughout. Paths of the pure lane have L̂ ≤ ε and add nothing.
Paths of the Rényi lane are, with the same probabilities, paths of the process stopped by that lane alone, and
add at most w = CKS(α, B, ε). So the claim is (ε, d + (1-d)·w). Leaks use up δ linearly, the conversion only its logarithm:
of d = ¾·δ and w = the rest, the account holds three quarters of all δ and the lane keeps nine tenths of its ρ. α and B
are fixed before anything is answered, and stored: another α afterwards, or δ exchanged against B, is covered by no proof.
That d + w must not exceed δ is no weakness of the proof: an analyst who leaks on one answer and spends B on the other
reaches 99.98 % of it. Which split serves best depends on the questions; see `discreet.ledger.candidates`.

**Basic.** The pure lane with all of δ as its account, w = 0: it admits what is (ε, δ) by itself, which no other split can.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from discreet.errors import BadParameter
from discreet.exact import exactly, float_above, float_below
from discreet.ledger import embed, pinned
from discreet.ledger.embed import Lane
from discreet.ledger.lanes import Amount, Cost, Row, State, about, menu, read_amount
from discreet.ledger.left import LaneLeft, Left
from discreet.ledger.limit import Limit, Shortage, as_guarantee, how_many_like, over_budget, pay
from discreet.privacy import constructors as make
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

_THEOREMS = {
    "lanes": "one δ account, a free pure lane and one Rényi lane of fixed order (Feldman, Zrnic 2021; Lécuyer 2021)",
    "basic": "basic composition: ε and δ add under any adaptivity (Rogers et al. 2016, Lemma 3.5)",
    "renyi": "one δ account and one Rényi lane of fixed order (Feldman, Zrnic 2021; Whitehouse et al. 2023)",
    "pure": "greatest losses add under any adaptivity",
    "zcdp": "approximate zCDP filter (Feldman, Zrnic 2021; Whitehouse et al. 2023)",
    "gdp": "Gaussian filter (Smith, Thakurta 2022; Koskela et al. 2023)",
}


_WHOLE = Fraction(1)
#: In shares of this part of δ answers take δ on themselves beyond what they need.
_STEP = Fraction(1, 10)
#: Rooms that differ by more than this are told apart by floats, if every total is between these two.
_CLEARLY, _SMALLEST, _GREATEST = 1e-9, 1e-25, 1e290
#: A row of last resort takes this part of the account.
_LAST = Fraction(4, 5)


@dataclass(frozen=True)
class Filter(Limit):
    """A δ account and one or more lanes, of which one has to stay open.

    `epsilon` and `delta` are what was asked for (None where a lane's own measure was given); `leak` is the account d.
    """

    kind = "filter"

    sort: str
    epsilon: Fraction | None
    delta: Fraction
    leak: Fraction
    lanes: tuple[Lane, ...]

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
        (first, *_) = self.lanes
        if first.kind == "mu2":
            return make.gaussian(noise_below(first.total), **words)
        if self.epsilon is not None:
            return make.approximate(float_above(self.epsilon), float_above(self.delta), **words)
        return make.approximate_concentrated(float_above(self.leak), float_above(first.total), **words)

    def describe(self) -> list[str]:
        lines = [f"All answers together keep {self._said}, whatever is asked next and however it is chosen."]
        if self.leak:
            lines.append(f"Mechanisms may fail with probability {float(self.leak):g} in all.")
        lines += [f"{_words(lane)}: up to {float(lane.total):.6g}." for lane in self.lanes]
        if len(self.lanes) > 1:
            lines.append(
                "One of these lanes has to stay open; a lane that is overdrawn once is closed for good."
            )
        if any(lane.kind == "renyi" for lane in self.lanes):
            lines.append(f"For Gaussian noise that is ρ = {float(self.shown_rho):.4g} in all.")
        return [*lines, f"Why it holds: {self.theorem}."]

    @property
    def _said(self) -> str:
        if self.epsilon is None:
            (lane,) = self.lanes
            size = math.sqrt(lane.total) if lane.kind == "mu2" else float(lane.total)
            return f"{'μ' if lane.kind == 'mu2' else 'ρ'} = {size:g}"
        return f"ε = {float(self.epsilon):g}" + (f" at δ = {float(self.delta):g}" if self.delta else "")

    @property
    def former(self) -> Limit | None:
        from discreet.ledger.asked import former_split

        return former_split(self)

    @property
    def shown_rho(self) -> Fraction:
        """The budget of the Rényi lane as a ρ, the measure in which Gaussian noise is priced: B/α."""
        (lane,) = [lane for lane in self.lanes if lane.kind == "renyi"]
        return lane.total / Fraction(lane.order)

    def start(self) -> State:
        return State(dict.fromkeys(("delta", *(lane.name for lane in self.lanes)), Fraction(0)))

    @cached_property
    def names(self) -> frozenset[str]:
        """What is counted."""
        return frozenset(self.start())

    @property
    def account(self) -> embed.Account:
        """The δ account, and how much of it one answer may take beyond what it needs."""
        if self.epsilon is None:
            return embed.Account(self.leak, self.leak)
        step = min(_STEP * self.delta, self.leak)
        if self.sort == "basic":
            return embed.Account(self.leak, step, whole=True)
        last = _LAST * self.leak
        return embed.Account(self.leak, step, last if last > _LAST * step else Fraction(0))

    def cost(self, guarantee: Guarantee) -> Cost:
        return menu(list(embed.offers(as_guarantee(guarantee), self.lanes, self.account)))

    def capacity(self, cost: Cost, share: Fraction = _WHOLE) -> Amount:
        """How many answers at that cost an untouched filter, or that share of it, admits if all are paid in one way."""
        return max((self._copies(row, share) for row in self._rows(cost)), default=Fraction(0))

    def _copies(self, row: Row, share: Fraction) -> Amount:
        leaks = _times(row.amounts["delta"], share * self.leak)
        return min(leaks, max(_times(row.amounts[lane.name], share * lane.total) for lane in self.lanes))

    def _rows(self, cost: Cost) -> list[Row]:
        """The rows in our own measures, of those that several filters may be paid with."""
        return list(cost.by_names.get(self.names, ()))

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        analyst: str | None = None,
        project: str | None = None,
        now: datetime | str | None = None,
    ) -> State:
        found = self.after(state, cost)
        if found is None:
            raise over_budget(self.left(state), self.shortage(state, cost))
        return found[0]

    def after(self, state: State, cost: Cost, share: Fraction = _WHOLE) -> tuple[State, Row] | None:
        """The state after the best row that fits into that share of every lane, and the row; None if none fits."""
        usual, rest = cost.parted.get(self.names) or self._parted(cost)
        return self._roomiest(state, usual, share) or self._roomiest(state, rest, share)

    def _parted(self, cost: Cost) -> tuple[list[Row], list[Row]]:
        """The rows to pay with, and those of last resort."""
        rows = self._rows(cost) or list(cost.rows)
        usual = [row for row in rows if not embed.is_last(row)]
        return cost.parted.setdefault(self.names, (usual, [row for row in rows if embed.is_last(row)]))

    def _roomiest(self, state: State, rows: list[Row], share: Fraction) -> tuple[State, Row] | None:
        best: tuple[list[Amount], State, Row] | None = None
        contenders = rows if len(rows) == 1 else self._contenders(state, rows, share)
        if len(contenders) == 1:
            paid = pay(state, contenders[0])
            return (paid, contenders[0]) if self._is_open(paid, share) else None
        for row in contenders:
            paid = pay(state, row)
            room = self._room(paid, share)
            if room and (best is None or room > best[0]):
                best = room, paid, row
        return (best[1], best[2]) if best else None

    def _contenders(self, state: State, rows: list[Row], share: Fraction) -> list[Row]:
        """The rows without those that are so clearly beaten that floats can tell; who decides among these decides among all.

        Why it holds: floats are right to 2⁻⁵³ of themselves, and what is spent is rounded up by at most 2⁻¹²⁸, which is 3e-14
        of a total of 1e-25. So where a part of a total is at most two, it is right to 1e-13, and so are rooms; where it is
        more, the path is closed by far more than 1e-9. A row that is closed looks no roomier than 1e-13, an open one
        no less roomy than -1e-13. What is left out is closed for sure, or less roomy than another open row.
        """
        leak, totals = self._about_totals if share is _WHOLE else self._about(share)
        sizes = [total for _, total in totals] + ([leak] if leak else [])
        if min(sizes) < _SMALLEST or max(sizes) > _GREATEST:
            return rows
        spent = {name: about(of) for name, of in state.items()}
        rooms = [_about_room(spent, row, leak, totals) for row in rows]
        sure = max((room for room in rooms if room is not None), default=-math.inf) - _CLEARLY
        return [row for row, room in zip(rows, rooms, strict=True) if room is None or room >= sure]

    def _about(self, share: Fraction) -> tuple[float, list[tuple[str, float]]]:
        """The account and every lane, as floats."""
        return about(share * self.leak), [(lane.name, about(share * lane.total)) for lane in self.lanes]

    @cached_property
    def _about_totals(self) -> tuple[float, list[tuple[str, float]]]:
        return self._about(_WHOLE)

    def _is_open(self, state: State, share: Fraction) -> bool:
        """Whether the account and some lane are not overdrawn."""
        if share is _WHOLE:
            leaked = state["delta"]
            return (not leaked or leaked <= self.leak) and any(
                state[one.name] <= one.total for one in self.lanes
            )
        return bool(self._room(state, share))

    def shortage(self, state: State, cost: Cost, share: Fraction = _WHOLE) -> Shortage:
        """What an answer lacks that does not fit: δ, if no row fits the account; loss, if none fits a lane."""
        rows, room = self._rows(cost), share * self.leak - state["delta"]
        parts = [
            _part(lane, row, share * lane.total - state[lane.name]) for row in rows for lane in self.lanes
        ]
        part = max(parts, default=0.0)
        return Shortage(
            needed=min((row.amounts["delta"] for row in rows), default=Fraction(0)),
            left=max(Fraction(0), room),
            loss_part=part if part < 1 else None,
        )

    def _room(self, state: State, share: Fraction) -> list[Amount]:
        """What is left of each open path, the roomiest first; none if all are closed.

        A path is the δ account with one lane. Its room is the product of what is left of both, as shares: so much δ
        is given for a smaller loss as that loss is worth, and no more.
        """
        leaked = 1 - _ratio(state["delta"], share * self.leak)
        lanes = (1 - _ratio(state[lane.name], share * lane.total) for lane in self.lanes)
        return sorted((leaked * lane for lane in lanes if leaked >= 0 and lane >= 0), reverse=True)

    def fullness(self, state: State, share: Fraction = _WHOLE) -> Amount:
        """How full the emptiest path is: 0 untouched, 1 just full, more if all are closed."""
        leaked = _ratio(state["delta"], share * self.leak)
        return max(leaked, min(_ratio(state[lane.name], share * lane.total) for lane in self.lanes))

    def left(
        self,
        state: State,
        *,
        analyst: str | None = None,
        project: str | None = None,
        now: datetime | str | None = None,
    ) -> Left:
        used = min(1.0, float(self.fullness(state)))
        return Left(self.shown(state), used, partial(how_many_like, self.admit, state, self.cost))

    def shown(self, state: State, share: Fraction = _WHOLE, whose: str = "") -> tuple[LaneLeft, ...]:
        """The running totals against that share of every lane."""
        account = [LaneLeft(f"{whose}δ", share * self.leak, state["delta"])] if self.leak else []
        lanes = [LaneLeft(whose + _words(lane), share * lane.total, state[lane.name]) for lane in self.lanes]
        return (*account, *lanes)

    def fields(self) -> dict[str, Any]:
        lanes = [{"kind": lane.kind, "total": str(lane.total), "order": lane.order} for lane in self.lanes]
        asked = None if self.epsilon is None else str(self.epsilon)
        constants = {"sort": self.sort, "epsilon": asked, "delta": str(self.delta), "leak": str(self.leak)}
        return {**constants, "lanes": lanes}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Filter:
        lanes = tuple(
            Lane(lane["kind"], _ratio_of(lane["total"]), float(lane["order"])) for lane in fields["lanes"]
        )
        asked = fields["epsilon"]
        return cls(
            sort=fields["sort"],
            epsilon=None if asked is None else _ratio_of(asked),
            delta=_ratio_of(fields["delta"]),
            leak=_ratio_of(fields["leak"]),
            lanes=lanes,
        )


def noise_below(squared_mu: Fraction) -> float:
    """Noise for which 1/noise is not below μ."""
    noise = float_below(Fraction(math.sqrt(float(1 / squared_mu))))
    while 1 / exactly(noise) ** 2 < squared_mu:
        noise = math.nextafter(noise, 0.0)
    return noise


def _is_proved(limit: Filter) -> bool:
    """Whether the budgets give what was asked for, by the theorem of the kind; computed afresh."""
    kinds = tuple(lane.kind for lane in limit.lanes)
    shapes = {
        "lanes": ("epsilon", "renyi"),
        "renyi": ("renyi",),
        "basic": ("epsilon",),
        "pure": ("epsilon",),
        "zcdp": ("rho",),
        "gdp": ("mu2",),
    }
    if shapes.get(limit.sort) != kinds or any(lane.total <= 0 for lane in limit.lanes):
        return False
    if not 0 <= limit.leak <= limit.delta < 1:
        return False
    if limit.epsilon is None:
        return limit.sort in ("zcdp", "gdp") and limit.delta == limit.leak
    return limit.epsilon > 0 and all(_keeps(limit, lane, limit.epsilon) for lane in limit.lanes)


def _keeps(limit: Filter, lane: Lane, epsilon: Fraction) -> bool:
    """Whether a lane that is filled to the brim stays within (ε, δ)."""
    if lane.kind == "epsilon":
        return lane.total <= epsilon
    if limit.delta <= limit.leak:
        return False
    if lane.kind == "mu2":
        noise = make.gaussian(noise_below(lane.total))
        return not limit.leak and noise.implies(
            make.approximate(float_below(epsilon), float_below(limit.delta))
        )
    rest = (limit.delta - limit.leak) / (1 - limit.leak)
    if lane.kind == "renyi":
        return lane.order > 1 and pinned.holds(epsilon, rest, lane.order, lane.total)
    order = pinned.best_order(epsilon, rest)
    return pinned.holds(epsilon, rest, order, lane.total * Fraction(order))


def _about_room(
    spent: Mapping[str, float], row: Row, leak: float, totals: list[tuple[str, float]]
) -> float | None:
    """The room of the roomiest path after a row, to nine digits; -inf if all are clearly closed, None if floats cannot say."""
    more, lane = row.floats, -math.inf
    if spent.keys() != more.keys():
        return None
    for name, total in totals:
        room = 1 - (spent[name] + more[name]) / total
        lane = max(lane, room)
    leaked = spent["delta"] + more["delta"]
    if not leak:
        return None if leaked else lane
    free = 1 - leaked / leak
    return -math.inf if free < -_CLEARLY or lane < -_CLEARLY else free * lane


def _part(lane: Lane, row: Row, room: Amount) -> float:
    """How much of the ε of an answer would fit into a lane, about: losses are ε or, in the other measures, like ε²."""
    needed = row.amounts[lane.name]
    if room <= 0 or needed == math.inf:
        return 0.0
    part = 1.0 if needed <= room else float(room / needed)
    return part if lane.kind == "epsilon" else math.sqrt(part)


def _times(amount: Amount, total: Amount) -> Amount:
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


def _words(lane: Lane) -> str:
    return {
        "epsilon": "pure lane (ε)",
        "renyi": f"Rényi lane of order {lane.order:g}",
        "rho": "concentrated lane (ρ)",
        "mu2": "Gaussian lane (μ²)",
    }[lane.kind]
