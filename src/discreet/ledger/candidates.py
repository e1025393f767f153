# SPDX-License-Identifier: Apache-2.0
"""A limit on (ε, δ) whose split of δ the first charge decides: several filters with one guarantee,
of which one is kept.

| candidate | δ for mechanisms that may fail | beside it |
|---|---|---|
| ¾ | three quarters | the pure track and a Rényi track |
| ½, 9/10 | half, nine tenths | the same |
| basic | all | the pure track alone |

The first charge takes the one that admits most questions like it, the first of the table where
several do; its running totals, whose names say which one it is, are stored with that charge, in the
same transaction. From then on it is that filter.

**Guarantee.** All answers together keep (ε, δ), as under each of the filters. For k questions like
the first the limit admits no fewer than basic composition does; and whatever is asked, it admits
all that basic composition admits within the ε and the part of δ that was kept for failures (ask
`describe`).

Why it holds. An analyst who draws no coins begins with one certain question, whatever the data are,
for nothing has been answered yet. So for each of them the choice is a constant, and the run is one
under a fixed filter with the claim (ε, δ). An analyst who draws coins is a mixture of those, by
coins that know nothing of the data; the claim is convex. What would break it: choosing, or choosing
again, after an answer was seen; a first question that depends on the data.

What no limit can guarantee: as many as basic composition for *every* sequence of questions. One
that begins with noise without δ and goes on with questions that need all of δ is admitted by basic
composition alone, and when the first question is asked nobody knows. `expects=` says it in advance;
by the same argument any public list may choose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property, partial

from discreet.errors import BadParameter, OverBudget
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget
from discreet.ledger.costs import Cost, Repetition, State, menu
from discreet.ledger.filters import Filter
from discreet.ledger.limit import Limit, another_limit_error, as_guarantee, how_many_like
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

#: The name of the only total before the first charge.
_OPEN = "not split yet"
#: Rounds of what is expected that are tried.
_ROUNDS = 10_000


@dataclass(frozen=True, repr=False)
class Candidates(Limit):
    """Filters with the same (ε, δ), in the order of preference; see the module docstring."""

    kind = "candidates"

    filters: tuple[Filter, ...]

    def __post_init__(self) -> None:
        claims = {(candidate.epsilon, candidate.delta) for candidate in self.filters}
        names = {frozenset(candidate.start()) for candidate in self.filters}
        if len(self.filters) < 2 or len(claims) > 1 or len(names) < len(self.filters):
            raise BadParameter(
                "DP107",
                "candidates are two filters or more with one claim, told apart by what they count.",
                why="a running total has to say which of them was chosen.",
                fix="Limit.filter(epsilon=1, delta=1e-6)",
            )

    @property
    def first(self) -> Filter:
        """The one that is preferred."""
        return self.filters[0]

    @property
    def theorem(self) -> str:
        return f"{self.first.theorem}; the split of δ is a function of the first question alone"

    def guarantee_for(self, unit: Unit) -> Guarantee:
        return self.first.guarantee_for(unit)

    def describe(self) -> list[str]:
        splits = " or ".join(f"{float(candidate.leak / candidate.delta):.0%}" for candidate in self.filters)
        total = float(self.first.tracks[0].total)
        return [
            self.first.describe()[0],
            "The first question decides how much of δ pays for mechanisms that may fail, so that most questions like it fit.",
            f"The choice is among {splits} of δ; it is stored with that charge and never changes.",
            f"Either the greatest losses add up to at most {total:g}, or, if part of δ is left for them, the Rényi divergences do.",
            f"Why it holds: {self.theorem}.",
        ]

    @property
    def former_limit(self) -> Limit | None:
        from discreet.ledger.filter_choice import former_filter

        return former_filter(self.first)

    # --- before and after the first charge --------------------------------------------------------

    def start(self) -> State:
        return State({_OPEN: Fraction(0)})

    def knows(self, state: State) -> bool:
        return state == self.start() or self.chosen_filter(state) is not None

    def chosen_filter(self, state: State) -> Filter | None:
        """The filter that the first charge chose; None before it."""
        names = state.keys()
        for candidate in self.filters:
            if candidate.names == names:
                return candidate
        return None

    def best_filter(self, cost: Cost, fraction: Fraction = Fraction(1)) -> Filter:
        """The filter that admits most answers at this cost; a function of the cost alone."""
        best = max(self.filters, key=lambda candidate: candidate.capacity(self._require_own(cost), fraction))
        widest = max(self.filters, key=lambda candidate: candidate.leak)
        if (
            best.capacity(cost, fraction) >= 1
            or widest.shortage(widest.start(), cost, fraction).loss_part is not None
        ):
            return best
        # all refuse it, and this one for want of δ alone: it says how much would do
        return widest

    def open_ways(self, cost: Cost, state: State) -> Cost:
        chosen = self.chosen_filter(state)
        if chosen is None:
            return cost
        return replace(cost, ways=tuple(way for way in cost.ways if way[0].amounts.keys() == state.keys()))

    def _require_own(self, cost: Cost) -> Cost:
        """A cost all of whose rows one of our filters has made."""
        if not cost.rows_by_names.keys() <= self._names:
            raise another_limit_error()
        return cost

    @cached_property
    def _names(self) -> frozenset[frozenset[str]]:
        return frozenset(candidate.names for candidate in self.filters)

    def view(self, state: State) -> tuple[Filter, State]:
        """The filter that was chosen, or is preferred, and the state as it sees it."""
        chosen = self.chosen_filter(state)
        return (self.first, self.first.start()) if chosen is None else (chosen, state)

    def cost(self, guarantee: Guarantee) -> Cost:
        """The rows of every candidate: the first charge chooses by them, and later ones find theirs
        among them.
        """
        return menu(
            list(dict.fromkeys(row for candidate in self.filters for row in candidate.cost(guarantee).rows))
        )

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> State:
        stored = self.chosen_filter(state)
        if stored is None and state != self.start():
            raise another_limit_error()
        chosen = stored or self.best_filter(cost)
        return chosen.admit(chosen.start() if stored is None else state, self._require_own(cost))

    def repetition(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Repetition | None:
        chosen = self.chosen_filter(state)
        return None if chosen is None else chosen.repetition(state, self._require_own(cost))

    def budget(
        self,
        state: State,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Budget:
        chosen_filter, seen = self.view(state)
        part = f"{float(chosen_filter.leak / chosen_filter.delta):.0%} of δ is for mechanisms that may fail"
        chosen = (
            "the first question chose this"
            if self.chosen_filter(state)
            else "as usual; the first question will choose"
        )
        notes = (f"{part}{'; ' if self.chosen_filter(state) else ', '}{chosen}",)
        used = min(1.0, float(chosen_filter.fullness(seen)))
        return Budget(
            chosen_filter.track_budgets(seen),
            used,
            partial(how_many_like, self.admit, state, self.cost),
            notes,
        )

    def fields(self) -> JsonObject:
        return {"filters": [candidate.to_dict() for candidate in self.filters]}

    @classmethod
    def from_fields(cls, fields: JsonFacts) -> Candidates:
        filters = tuple(Limit.from_dict(candidate) for candidate in fields["filters"])
        if not all(isinstance(candidate, Filter) for candidate in filters):
            raise ValueError("filters")
        return cls(tuple(candidate for candidate in filters if isinstance(candidate, Filter)))


def choose_expected(limit: Candidates, expects: Iterable[Guarantee]) -> Filter:
    """The candidate that admits most rounds of what is expected, asked in turn."""
    listed = list(expects) if isinstance(expects, Iterable) else [as_guarantee(expects)]
    if not listed:
        raise BadParameter(
            "DP107",
            "expects= is empty.",
            why="a split of δ is chosen for the questions that it lists.",
            fix="expects=[privacy.gaussian(noise=10.0), privacy.approximate(0.1, 1e-8)]",
        )
    costs = [limit.cost(guarantee) for guarantee in listed]
    return max(limit.filters, key=lambda candidate: _count_admitted(candidate, costs))


def _count_admitted(candidate: Filter, costs: list[Cost]) -> int:
    """How many questions of a list, asked again and again, are admitted before the first refusal."""
    state = candidate.start()
    for done in range(_ROUNDS):
        try:
            state = candidate.admit(state, costs[done % len(costs)])
        except OverBudget:
            return done
    return _ROUNDS
