# SPDX-License-Identifier: Apache-2.0
"""A plan: mechanisms fixed in advance, used in any order, and accounted for jointly.

**Guarantee.** All answers together keep the composition of the slots, with its whole curve. The
order in which slots are used, which of them stay unused, what is asked in each, and which mechanism
runs in a slot may all depend on earlier answers, as long as that mechanism provably has the slot's
guarantee.

Why it holds. A slot is a dominating pair, and products of pairs dominate adaptive compositions
(Zhu, Dong, Wang 2022, Theorem 10). What is left of a bag of slots after one was used is the same
bag whatever the answer was, so the next step may take any of them; a mechanism with the slot's
guarantee is dominated by the slot on every branch. Slots that are known by a Rényi curve add their
curves, which hold on every branch too.

What would break it: a slot whose noise is chosen after an answer was seen (that is a `filter`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property, lru_cache, partial

from discreet.errors import BadParameter, CannotCertify
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget, TrackBudget
from discreet.ledger.costs import Amounts, Cost, CostRow, Repetition, State
from discreet.ledger.limit import Limit, as_guarantee, how_many_like, over_budget_error
from discreet.privacy import wire
from discreet.privacy.guarantee import ComposedGuarantee, Guarantee
from discreet.privacy.unit import Unit, same_unit


@dataclass(frozen=True, repr=False)
class PlannedLimit(Limit):
    """A bag of slots; see the module docstring."""

    kind = "plan"

    slots: Guarantee
    within: Guarantee | None = None

    @property
    def theorem(self) -> str:
        return "slots fixed in advance, in any order (Zhu, Dong, Wang 2022, Theorem 10)"

    def guarantee_for(self, unit: Unit) -> Guarantee:
        """The composition of all slots; a plan is made for one unit, and guarantees nothing to
        another.
        """
        same_unit([self.slots.unit, unit])
        return self.slots

    @property
    def guarantee(self) -> Guarantee:
        return self.slots

    def describe(self) -> list[str]:
        lines = [
            f"Up to {count} of {slot!r}, or of anything that is no less private." for slot, count in self._bag
        ]
        target = [f"All of them together keep {self.within!r}."] if self.within is not None else []
        return [*lines, *target, "They may be used in any order.", f"Why it holds: {self.theorem}."]

    @cached_property
    def _bag(self) -> tuple[tuple[Guarantee, int], ...]:
        """The slots, a more private one before those that it would also fit."""
        parts = _parts(self.slots)
        fits = {slot: sum(_implies(slot, other) for other, _ in parts) for slot, _ in parts}
        return tuple(sorted(parts, key=lambda entry: (-fits[entry[0]], entry[0].to_json())))

    def start(self) -> State:
        return State({_name(number): Fraction(0) for number in range(len(self._bag))})

    def cost(self, guarantee: Guarantee) -> Cost:
        """Mechanism by mechanism, or all of it in one slot."""
        parts = _parts(as_guarantee(guarantee))
        ways = [[self._row(part, count) for part, count in parts]]
        if len(parts) > 1 or parts[0][1] > 1:
            ways.append([self._row(guarantee, 1)])
        return Cost(tuple(tuple(way) for way in ways if all(row.amounts for row in way)))

    def _row(self, mechanism: Guarantee, count: int) -> CostRow:
        fitting = {
            _name(n): Fraction(count) for n, (slot, _) in enumerate(self._bag) if _implies(mechanism, slot)
        }
        return CostRow(repr(mechanism), Amounts(fitting))

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> State:
        for way in cost.ways:
            paid = self._pay(state, way)
            if paid is not None:
                return paid
        raise over_budget_error(self.budget(state))

    def _pay(self, state: State, way: tuple[CostRow, ...]) -> State | None:
        """Each mechanism takes the most private slots that it fits; those that fit few slots choose
        first.
        """
        for row in sorted(way, key=lambda row: len(row.amounts)):
            needed = max(row.amounts.values())
            for number, (_, count) in enumerate(self._bag):
                if _name(number) in row.amounts:
                    used = min(needed, count - state[_name(number)])
                    state, needed = state.plus({_name(number): used}), needed - used
            if needed:
                return None
        return state

    def repetition(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Repetition | None:
        if not cost.ways or len(cost.ways[0]) > 1:
            return None
        ((row,),) = cost.ways[:1]
        needed = max(row.amounts.values())
        for number, (_, count) in enumerate(self._bag):
            name = _name(number)
            free = count - state[name] if name in row.amounts else 0
            if free:
                # The slots before this one are full, and stay so.
                return Repetition({name: needed}, {name: count - needed}) if free >= needed else None
        return None

    def budget(
        self,
        state: State,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Budget:
        tracks = tuple(self._track_budgets(state))
        used, total = (
            sum((track.spent for track in tracks), Fraction(0)),
            sum(count for _, count in self._bag),
        )
        return Budget(tracks, float(used / total), partial(how_many_like, self.admit, state, self.cost))

    def _track_budgets(self, state: State) -> Iterator[TrackBudget]:
        for number, (slot, count) in enumerate(self._bag):
            yield TrackBudget(repr(slot), Fraction(count), state[_name(number)])

    def fields(self) -> JsonObject:
        within = None if self.within is None else self.within.to_json()
        return {"slots": self.slots.to_json(), "within": within}

    @classmethod
    def from_fields(cls, fields: JsonFacts) -> Limit:
        within = fields["within"]
        return make_plan(wire.from_json(fields["slots"]), None if within is None else wire.from_json(within))


def make_plan(slots: Guarantee, within: Guarantee | None) -> PlannedLimit:
    """See `Limit.plan`.

    >>> from discreet import privacy
    >>> limit = Limit.plan(5 * privacy.gaussian(10.0) + privacy.laplace(20), within=privacy.approximate(1, 1e-6))
    >>> state = limit.admit(limit.start(), limit.cost(privacy.laplace(25)))
    >>> limit.budget(state).like(privacy.laplace(20)), limit.budget(state).like(privacy.gaussian(12.0))
    (0, 5)
    """
    slots = as_guarantee(slots)
    if within is not None and not slots.implies(as_guarantee(within)):
        raise BadParameter(
            "DP107",
            f"these slots together do not keep {within!r}.",
            why="a plan that may exceed its target would be refused in the middle of the work.",
            fix="plan fewer slots, or slots with more noise.",
        )
    return PlannedLimit(slots, within)


@lru_cache(maxsize=4096)
def _implies(mechanism: Guarantee, slot: Guarantee) -> bool:
    """Whether everything with the mechanism's guarantee provably has the slot's."""
    try:
        return mechanism == slot or mechanism.implies(slot)
    except CannotCertify:
        return False


def _parts(guarantee: Guarantee) -> list[tuple[Guarantee, int]]:
    return list(guarantee.parts) if isinstance(guarantee, ComposedGuarantee) else [(guarantee, 1)]


def _name(number: int) -> str:
    return f"slot {number}"
