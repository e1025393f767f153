# SPDX-License-Identifier: Apache-2.0
"""Allocations: the parts of a limit that analysts or projects may spend, each a fraction of every
track.

**Guarantee.** The guarantee of the whole holds against all of them together, whatever they tell
each other: every charge goes through the whole limit, and an allocation can only refuse more. If
the allocations are *reserved*, each analyst's own view has a guarantee too, that of the allocation
(`guarantee_to`), and any coalition that of its allocations together.

Why reserving is needed for the second guarantee. A refusal because others have used up the whole is
a function of *their* answers, and reaches an analyst whose allocation did not pay for them. With
reserved allocations (they add up to at most 1) a refusal depends on the analyst's own charges
alone: the answers of others are never seen, hence marginalised.

Why a reserved limit has one track. Allocations add up track by track. If one analyst spent in the
pure track and another in the Rényi track, neither track would hold for both together; so a reserved
(ε, δ) limit has no pure track.

What would break the second guarantee: showing an analyst the budgets of others, or their answers.
An answer that is given to a second analyst from memory is free for the whole, but has to be charged
to the receiver's allocation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import partial

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger import pinned
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget
from discreet.ledger.candidates import Candidates
from discreet.ledger.costs import Cost, Number, Repetition, State, read_amount
from discreet.ledger.filter_choice import without_pure_track
from discreet.ledger.filters import Filter, noise_below
from discreet.ledger.limit import Limit, how_many_like, over_budget_error
from discreet.privacy import constructors as make
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

#: Whose running totals come first: everybody's.
_ALL = "all/"

Allocations = tuple[tuple[str, tuple[tuple[str, Fraction], ...]], ...]


@dataclass(frozen=True, repr=False)
class AllocatedLimit(Limit):
    """A filter and its allocations: ((group, ((name, fraction), …)), …); a group is "analyst" or
    "project".
    """

    kind = "shared"

    whole: Filter | Candidates
    allocations: Allocations
    reserved: bool

    def __post_init__(self) -> None:
        if self.reserved and (len(self.allocations) > 1 or len(_single_filter(self.whole).tracks) > 1):
            raise _allocation_error("only one of analysts and projects can be reserved.")
        for _, members in self.allocations:
            if not members or any(not 0 < fraction <= 1 for _, fraction in members):
                raise _allocation_error("each allocation is a fraction of the budget, above 0 and up to 1.")
            if self.reserved and sum(fraction for _, fraction in members) > 1:
                raise _allocation_error("reserved allocations add up to more than the whole budget.")

    @property
    def theorem(self) -> str:
        return self.whole.theorem

    def guarantee_for(self, unit: Unit) -> Guarantee:
        return self.whole.guarantee_for(unit)

    def guarantee_to(self, name: str, unit: Unit | None = None) -> Guarantee:
        """What holds for all that this analyst (or project) alone gets to see; for reserved
        allocations only.
        """
        if not self.reserved:
            raise _allocation_error(
                "these allocations are not reserved, so only the whole budget has a guarantee."
            )
        ((group, _),) = self.allocations
        return _allocation_guarantee(
            _single_filter(self.whole), self._fraction_of(group, name), unit or Unit()
        )

    @property
    def former_limit(self) -> Limit | None:
        whole = self.whole.former_limit
        return AllocatedLimit(whole, self.allocations, self.reserved) if isinstance(whole, Filter) else None

    def describe(self) -> list[str]:
        lines = self.whole.describe()
        for group, members in self.allocations:
            lines += [
                f"The {group} {name} has an allocation of {float(fraction):.4g} of the budget."
                for name, fraction in members
            ]
        if self.reserved:
            return [
                *lines,
                "The allocations are reserved: nobody is refused because of what others have spent.",
            ]
        return [*lines, "The allocations are not reserved: the guarantee covers all of them together."]

    def start(self) -> State:
        return self._initial_state(self.whole)

    def _accounts(self) -> Iterator[tuple[str, Fraction]]:
        for group, members in self.allocations:
            yield from ((_prefix(group, name), fraction) for name, fraction in members)

    def cost(self, guarantee: Guarantee) -> Cost:
        return self.whole.cost(guarantee)

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> State:
        whole, state = self._begin(state, cost, [fraction for _, fraction in self._charged_accounts(asker)])
        after = state
        for prefix, fraction in self._charged_accounts(asker):
            payment = whole.pay_best(state.under(prefix), cost, fraction)
            if payment is None:
                short = whole.shortage(state.under(prefix), cost, fraction)
                raise over_budget_error(self.budget(state, asker=asker), short)
            after = after.replace_under(prefix, payment[0])
            if self.reserved:
                return after.replace_under(_ALL, state.under(_ALL).plus(payment[1].amounts))
        everybody = whole.pay_best(state.under(_ALL), cost)
        if everybody is None:
            short = whole.shortage(state.under(_ALL), cost)
            raise over_budget_error(self.budget(state, asker=asker), short)
        return after.replace_under(_ALL, everybody[0])

    def repetition(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Repetition | None:
        chosen = self.whole
        if isinstance(chosen, Candidates):
            stored = chosen.chosen_filter(state.under(_ALL))
            if stored is None:
                return None
            chosen = stored
        parts = {
            prefix: chosen.repetition_within(state.under(prefix), cost, fraction)
            for prefix, fraction in self._charged_accounts(asker)
        }
        own = next(iter(parts.values()))
        if self.reserved:
            parts[_ALL] = None if own is None else Repetition(own.added, {})
        else:
            parts[_ALL] = chosen.repetition_within(state.under(_ALL), cost)
        return Repetition.join(parts)

    def _begin(self, state: State, cost: Cost, allocations: list[Fraction]) -> tuple[Filter, State]:
        """The filter, and the state with totals of it in every account; the first charge of all
        chooses it.
        """
        if isinstance(self.whole, Filter):
            return self.whole, state
        stored = self.whole.chosen_filter(state.under(_ALL))
        if stored is not None:
            return stored, state
        chosen = self.whole.best_filter(cost, min([Fraction(1), *allocations]))
        return chosen, self._initial_state(chosen)

    def _initial_state(self, whole: Filter | Candidates) -> State:
        state = State({}).replace_under(_ALL, whole.start())
        for prefix, _ in self._accounts():
            state = state.replace_under(prefix, whole.start())
        return state

    def _view(self, state: State) -> tuple[Filter, State]:
        """The filter and the totals, to look at: before the first charge those of the preferred
        one.
        """
        if isinstance(self.whole, Filter):
            return self.whole, state
        chosen = self.whole.chosen_filter(state.under(_ALL))
        return (
            (self.whole.first, self._initial_state(self.whole.first)) if chosen is None else (chosen, state)
        )

    def open_ways(self, cost: Cost, state: State) -> Cost:
        return self.whole.open_ways(cost, state.under(_ALL))

    def knows(self, state: State) -> bool:
        prefixes = [_ALL, *(prefix for prefix, _ in self._accounts())]
        return all(self.whole.knows(state.under(prefix)) for prefix in prefixes)

    def _charged_accounts(self, asker: Asker) -> list[tuple[str, Fraction]]:
        """The accounts that this charge goes to."""
        names = [(group, asker.name_in(group)) for group, _ in self.allocations]
        return [(_prefix(group, name or ""), self._fraction_of(group, name)) for group, name in names]

    def _fraction_of(self, group: str, name: str | None) -> Fraction:
        members = dict(dict(self.allocations)[group])
        if name in members:
            return members[name]
        name_it = f"{group}={next(iter(members))!r}"
        raise BadParameter(
            "DP105",
            f"this limit has allocations, and {name!r} is no {group} with one.",
            why="without an allocation of its own, a charge would use up somebody else's.",
            fix=f"Session(…, {name_it})   or, without a session,  asker=Asker({name_it})",
        )

    def budget(
        self,
        state: State,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Budget:
        """The whole budget, with the asker's allocations in front; of a reserved one, the
        allocation alone.
        """
        named = [(group, asker.name_in(group)) for group, _ in self.allocations]
        own = [
            (name, _prefix(group, name), self._fraction_of(group, name))
            for group, name in named
            if name is not None
        ]
        whole, seen = self._view(state)
        views = [(f"{name}: ", seen.under(prefix), fraction) for name, prefix, fraction in own]
        if not (self.reserved and own):
            views.insert(0, ("all: " if own else "", seen.under(_ALL), Fraction(1)))
        tracks = [
            track for words, spent, fraction in views for track in whole.track_budgets(spent, fraction, words)
        ]
        used = max(min(1.0, float(whole.fullness(spent, fraction))) for _, spent, fraction in views)
        admit = partial(self.admit, asker=asker)
        return Budget(tuple(tracks), used, partial(how_many_like, admit, state, self.cost))

    def fields(self) -> JsonObject:
        allocations = {
            group: {name: str(fraction) for name, fraction in members} for group, members in self.allocations
        }
        return {"whole": self.whole.to_dict(), "shares": allocations, "reserved": self.reserved}

    @classmethod
    def from_fields(cls, fields: JsonFacts) -> AllocatedLimit:
        whole = Limit.from_dict(fields["whole"])
        assert isinstance(whole, Filter | Candidates)
        allocations = {
            group: {name: Fraction(read_amount(fraction)) for name, fraction in members.items()}
            for group, members in fields["shares"].items()
        }
        return cls(whole, _sort_members(allocations), check.flag(reserved=fields["reserved"]))


def allocate(
    whole: Filter | Candidates, allocations: Mapping[str, Mapping[str, Number]], *, reserved: bool
) -> AllocatedLimit:
    """See `Limit.filter`.

    >>> from discreet import privacy
    >>> limit = Limit.filter(epsilon=1, analysts={"ana": 0.5, "bo": 0.5}, reserved=True)
    >>> state = limit.admit(limit.start(), limit.cost(privacy.pure(0.5)), asker=Asker("ana"))
    >>> [limit.budget(state, asker=Asker(name)).like(privacy.pure(0.1)) for name in ("ana", "bo")], limit.guarantee_to("bo")
    ([0, 5], pure(epsilon=0.5))
    """
    exact = {group: _exact_members(group, members) for group, members in allocations.items()}
    # Each reserved allocation has a guarantee, so its constants are fixed before anybody asks.
    return AllocatedLimit(
        without_pure_track(_single_filter(whole)) if reserved else whole, _sort_members(exact), reserved
    )


def _single_filter(whole: Filter | Candidates) -> Filter:
    """A filter with constants that no charge chooses."""
    return whole.first if isinstance(whole, Candidates) else whole


def _exact_members(group: str, members: Mapping[str, Number]) -> dict[str, Fraction]:
    if not isinstance(members, Mapping) or not all(_is_name(name) for name in members):
        raise _allocation_error(f"{group}s= maps names (without a slash) to fractions of the budget.")
    for fraction in members.values():
        check.moderate(fraction=fraction)
    return {name: exactly(fraction) for name, fraction in members.items()}


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name.strip()) and "/" not in name


def _sort_members(allocations: Mapping[str, Mapping[str, Fraction]]) -> Allocations:
    for group in allocations:
        check.choice(("analyst", "project"), group=group)
    return tuple((group, tuple(sorted(members.items()))) for group, members in sorted(allocations.items()))


def _prefix(group: str, name: str) -> str:
    return f"{group} {name}/"


def _allocation_guarantee(whole: Filter, fraction: Fraction, unit: Unit) -> Guarantee:
    """What one track proves, if it is filled up to a fraction of its total."""
    words = {"unit": unit.protects, "relation": unit.relation}
    (track,) = whole.tracks
    total, leak = fraction * track.total, fraction * whole.leak
    match track.kind:
        case "epsilon" if leak:
            return make.approximate(float_above(total), float_above(leak), **words)
        case "epsilon":
            return make.pure(float_above(total), **words)
        case "mu2":
            return make.gaussian(noise_below(total), **words)
        case "rho":
            return make.approximate_concentrated(float_above(leak), float_above(total), **words)
        case _:
            rest = (whole.delta - leak) / (1 - leak)
            epsilon = pinned.least_epsilon(rest, track.order, total)
            return make.approximate(float_above(epsilon), float_above(whole.delta), **words)


def _allocation_error(what: str) -> BadParameter:
    return BadParameter(
        "DP107",
        what,
        why="an allocation belongs to somebody by name, and the whole budget has to suffice for all of them.",
        fix="Limit.filter(epsilon=1, delta=1e-6, analysts={'ana': 0.5, 'bo': 0.5}, reserved=True)",
    )
