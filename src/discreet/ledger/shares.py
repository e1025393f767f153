# SPDX-License-Identifier: Apache-2.0
"""Limits inside a limit: shares of every lane for analysts or projects.

**Guarantee.** The global claim holds against all of them together, whatever they tell each other: every charge goes through
the whole limit, and a share can only refuse more. If the shares are *reserved*, each analyst's own view has a promise
too, that of the share (`promise_to`), and any coalition that of its shares together.

Why reserving is needed for the second promise. A refusal because others have used up the whole is a function of *their*
answers, and reaches an analyst who has no share in what those cost. With reserved shares (they add up to at most 1)
a refusal depends on the analyst's own charges alone: the answers of others are never seen, hence marginalised.

Why a reserved limit has one lane. Shares add up lane by lane. If one analyst lived in the pure lane and another in the
Rényi lane, neither lane would hold for both together; so a reserved (ε, δ) limit has no pure lane.

What would break the second promise: showing an analyst what others have left, or their answers. An answer that is
given to a second analyst from memory is free for the whole, but has to be charged to the receiver's share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above
from discreet.ledger import pinned
from discreet.ledger.asked import without_pure_lane
from discreet.ledger.candidates import Candidates
from discreet.ledger.filters import Filter, noise_below
from discreet.ledger.lanes import Cost, State, read_amount
from discreet.ledger.left import Left
from discreet.ledger.limit import Limit, how_many_like, over_budget
from discreet.privacy import constructors as make
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

#: Whose running totals come first: everybody's.
_ALL = "all/"

Shares = tuple[tuple[str, tuple[tuple[str, Fraction], ...]], ...]


@dataclass(frozen=True)
class Shared(Limit):
    """A filter and shares of it: ((group, ((name, share), …)), …), where a group is "analyst" or "project"."""

    kind = "shared"

    whole: Filter | Candidates
    shares: Shares
    reserved: bool

    def __post_init__(self) -> None:
        if self.reserved and (len(self.shares) > 1 or len(_alone(self.whole).lanes) > 1):
            raise _wrong_shares("only one of analysts and projects can be reserved.")
        for _, members in self.shares:
            if not members or any(not 0 < share <= 1 for _, share in members):
                raise _wrong_shares("each share is a part of the whole, above 0 and up to 1.")
            if self.reserved and sum(share for _, share in members) > 1:
                raise _wrong_shares("reserved shares add up to more than the whole.")

    @property
    def theorem(self) -> str:
        return self.whole.theorem

    def guarantee_for(self, unit: Unit) -> Guarantee:
        return self.whole.guarantee_for(unit)

    def promise_to(self, name: str, unit: Unit | None = None) -> Guarantee:
        """What holds for all that this analyst (or project) alone gets to see; for reserved shares only."""
        if not self.reserved:
            raise _wrong_shares("these shares are not reserved, so only the whole has a promise.")
        ((group, _),) = self.shares
        return _promise_of_share(_alone(self.whole), self._share(group, name), unit or Unit())

    @property
    def former(self) -> Limit | None:
        whole = self.whole.former
        return Shared(whole, self.shares, self.reserved) if isinstance(whole, Filter) else None

    def describe(self) -> list[str]:
        lines = self.whole.describe()
        for group, members in self.shares:
            lines += [f"The {group} {name} may use {float(share):.4g} of it." for name, share in members]
        if self.reserved:
            return [*lines, "The shares are reserved: nobody is refused because of what others have used."]
        return [*lines, "The shares are not reserved: what is promised is the whole, against all together."]

    def start(self) -> State:
        return self._opened(self.whole)

    def _accounts(self) -> Iterator[tuple[str, Fraction]]:
        for group, members in self.shares:
            yield from ((_prefix(group, name), share) for name, share in members)

    def cost(self, guarantee: Guarantee) -> Cost:
        return self.whole.cost(guarantee)

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        analyst: str | None = None,
        project: str | None = None,
        now: datetime | str | None = None,
    ) -> State:
        whole, state = self._begun(state, cost, [share for _, share in self._charged(analyst, project)])
        after = state
        for prefix, share in self._charged(analyst, project):
            found = whole.after(state.under(prefix), cost, share)
            if found is None:
                short = whole.shortage(state.under(prefix), cost, share)
                raise over_budget(self.left(state, analyst=analyst, project=project), short)
            after = after.replaced(prefix, found[0])
            if self.reserved:
                return after.replaced(_ALL, state.under(_ALL).plus(found[1].amounts))
        everybody = whole.after(state.under(_ALL), cost)
        if everybody is None:
            short = whole.shortage(state.under(_ALL), cost)
            raise over_budget(self.left(state, analyst=analyst, project=project), short)
        return after.replaced(_ALL, everybody[0])

    def _begun(self, state: State, cost: Cost, shares: list[Fraction]) -> tuple[Filter, State]:
        """The filter, and the state with totals of it in every account; the first charge of all chooses it."""
        if isinstance(self.whole, Filter):
            return self.whole, state
        kept = self.whole.kept(state.under(_ALL))
        if kept is not None:
            return kept, state
        chosen = self.whole.chosen(cost, min([Fraction(1), *shares]))
        return chosen, self._opened(chosen)

    def _opened(self, whole: Filter | Candidates) -> State:
        state = State({}).replaced(_ALL, whole.start())
        for prefix, _ in self._accounts():
            state = state.replaced(prefix, whole.start())
        return state

    def _seen(self, state: State) -> tuple[Filter, State]:
        """The filter and the totals, to look at: before the first charge those of the preferred one."""
        if isinstance(self.whole, Filter):
            return self.whole, state
        kept = self.whole.kept(state.under(_ALL))
        return (self.whole.first, self._opened(self.whole.first)) if kept is None else (kept, state)

    def along(self, cost: Cost, state: State) -> Cost:
        return self.whole.along(cost, state.under(_ALL))

    def knows(self, state: State) -> bool:
        prefixes = [_ALL, *(prefix for prefix, _ in self._accounts())]
        return all(self.whole.knows(state.under(prefix)) for prefix in prefixes)

    def _charged(self, analyst: str | None, project: str | None) -> list[tuple[str, Fraction]]:
        """The accounts that this charge goes to."""
        asking = {"analyst": analyst, "project": project}
        names = [(group, asking[group]) for group, _ in self.shares]
        return [(_prefix(group, name or ""), self._share(group, name)) for group, name in names]

    def _share(self, group: str, name: str | None) -> Fraction:
        members = dict(dict(self.shares)[group])
        if name in members:
            return members[name]
        raise BadParameter(
            "DP105",
            f"this limit is shared out, and {name!r} is no {group} with a share.",
            why="a charge without a share would be taken from somebody else's.",
            fix=f"{group}={next(iter(members))!r}",
        )

    def left(
        self,
        state: State,
        *,
        analyst: str | None = None,
        project: str | None = None,
        now: datetime | str | None = None,
    ) -> Left:
        """Everybody's, or with a name that share as well; of a reserved share nothing but the share itself."""
        asking = [
            (group, name) for group, name in (("analyst", analyst), ("project", project)) if name is not None
        ]
        own = [(name, _prefix(group, name), self._share(group, name)) for group, name in asking]
        whole, seen = self._seen(state)
        views = [(f"{name}: ", seen.under(prefix), share) for name, prefix, share in own]
        if not (self.reserved and own):
            views.insert(0, ("all: " if own else "", seen.under(_ALL), Fraction(1)))
        lanes = [lane for words, spent, share in views for lane in whole.shown(spent, share, words)]
        used = max(min(1.0, float(whole.fullness(spent, share))) for _, spent, share in views)
        admit = partial(self.admit, analyst=analyst, project=project)
        return Left(tuple(lanes), used, partial(how_many_like, admit, state, self.cost))

    def fields(self) -> dict[str, Any]:
        shares = {group: {name: str(share) for name, share in members} for group, members in self.shares}
        return {"whole": self.whole.to_dict(), "shares": shares, "reserved": self.reserved}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Shared:
        whole = Limit.from_dict(fields["whole"])
        assert isinstance(whole, Filter | Candidates)
        shares = {
            group: {name: Fraction(read_amount(share)) for name, share in members.items()}
            for group, members in fields["shares"].items()
        }
        return cls(whole, _sorted(shares), check.flag(reserved=fields["reserved"]))


def shared(whole: Filter | Candidates, shares: Mapping[str, Mapping[str, Any]], *, reserved: bool) -> Shared:
    """See `Limit.filter`.

    >>> from discreet import privacy
    >>> limit = Limit.filter(epsilon=1, analysts={"ana": 0.5, "bo": 0.5}, reserved=True)
    >>> state = limit.admit(limit.start(), limit.cost(privacy.pure(0.5)), analyst="ana")
    >>> [limit.left(state, analyst=name).like(privacy.pure(0.1)) for name in ("ana", "bo")], limit.promise_to("bo")
    ([0, 5], pure(epsilon=0.5))
    """
    exact = {group: _exact(group, members) for group, members in shares.items()}
    # reserved shares promise something each, so their constants are fixed before anybody asks
    return Shared(without_pure_lane(_alone(whole)) if reserved else whole, _sorted(exact), reserved)


def _alone(whole: Filter | Candidates) -> Filter:
    """A filter with constants that no charge chooses."""
    return whole.first if isinstance(whole, Candidates) else whole


def _exact(group: str, members: Mapping[str, Any]) -> dict[str, Fraction]:
    if not isinstance(members, Mapping) or not all(_is_name(name) for name in members):
        raise _wrong_shares(f"{group}s map names (words without a slash) to shares.")
    for share in members.values():
        check.moderate(share=share)
    return {name: exactly(share) for name, share in members.items()}


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and bool(name.strip()) and "/" not in name


def _sorted(shares: Mapping[str, Mapping[str, Fraction]]) -> Shares:
    for group in shares:
        check.choice(("analyst", "project"), group=group)
    return tuple((group, tuple(sorted(members.items()))) for group, members in sorted(shares.items()))


def _prefix(group: str, name: str) -> str:
    return f"{group} {name}/"


def _promise_of_share(whole: Filter, share: Fraction, unit: Unit) -> Guarantee:
    """What one lane, filled up to a share of its budget, proves."""
    words = {"unit": unit.protects, "relation": unit.relation}
    (lane,) = whole.lanes
    total, leak = share * lane.total, share * whole.leak
    match lane.kind:
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
            epsilon = pinned.least_epsilon(rest, lane.order, total)
            return make.approximate(float_above(epsilon), float_above(whole.delta), **words)


def _wrong_shares(what: str) -> BadParameter:
    return BadParameter(
        "DP107",
        what,
        why="a share is promised to somebody by name, out of a whole that has to suffice for all of them.",
        fix="Limit.filter(epsilon=1, delta=1e-6, analysts={'ana': 0.5, 'bo': 0.5}, reserved=True)",
    )
