# SPDX-License-Identifier: Apache-2.0
"""An odometer: nothing is refused for being too dear, and one line says at all times what (ε, δ)
was reached.

**Guarantee.** Fix λ > 0 in advance. Let b be the less of Σεᵢ and (1+λ)·Σρᵢ + log(1/δ')/λ after the
answers so far, where δ' is δ less the account d of mechanisms that may fail. Then the answers up to
any moment, also one that is chosen in view of them, are (b, δ)-private: for every event S of which
b ≤ ε is a part, P(S) ≤ e^ε·Q(S) + δ; in general P(S) ≤ ∫_S e^b dQ + δ. Prices may depend on earlier
answers.

Why it holds. Let P̂ and Q̂ be the laws without failures, L̂ the loss of theirs, and W = Π(1-δᵢ) ≥
1-d along a path; then W·P̂ and W·Q̂ are parts of P and Q. e^{λL̂ - λ(λ+1)R}, R = Σρᵢ, is a
supermartingale, since D_{1+λ} ≤ (1+λ)·ρ at every step, so by Ville's inequality L̂ is above the
line at any time with P̂-probability δ' at most; and L̂ ≤ Σεᵢ on every path. So P(S) ≤ d + ∫_S W dP̂
≤ d + δ' + ∫_S e^b W dQ̂ ≤ δ + ∫_S e^b dQ. It does not say that the loss log(dP/dQ) itself is at
most b except with probability δ: where mechanisms may fail, a failure can be spread over so many
outcomes that the loss is above b far more often.

The line is tight near the ρ that it was made for, where it is about ρ + 2√(ρ·log 1/δ'), and linear
elsewhere. A bound that is tight everywhere does not exist (Rogers et al. 2016). The account is the
one thing that can be overdrawn: then the answer is refused, because the δ above would no longer be
δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, partial

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import binary_above, exactly
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger import pricing
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget, TrackBudget
from discreet.ledger.costs import (
    GRID,
    Amount,
    Cost,
    CostRow,
    Number,
    Repetition,
    State,
    ceiling,
    menu,
    read_amount,
)
from discreet.ledger.limit import Limit, Shortage, as_guarantee, over_budget_error, pay_row
from discreet.ledger.pricing import Track
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

#: The tracks have no end; these totals only say what counts as dear.
_TRACKS = (Track("epsilon", Fraction(1)), Track("rho", Fraction(1)))
#: The fraction of δ that pays for mechanisms which may fail, and what it was in earlier releases.
_LEAK, _FORMER_LEAK = Fraction(3, 4), Fraction(1, 10)
#: In fractions of this part of δ answers take δ on themselves; a last resort takes that part of the
#: account.
_STEP, _LAST = Fraction(1, 10), Fraction(4, 5)


@dataclass(frozen=True, repr=False)
class Odometer(Limit):
    """Sums without a limit; `rate` is λ, `leaks` the fraction of δ for mechanisms that may fail."""

    kind = "odometer"

    delta: Fraction
    rate: Fraction
    leaks: Fraction = _FORMER_LEAK

    def __post_init__(self) -> None:
        if not (0 < self.delta < 1 and self.rate > 0 and 0 < self.leaks < 1):
            raise BadParameter(
                "DP102",
                "an odometer needs a δ between 0 and 1 and a rate above 0.",
                why="outside that range Ville's inequality says nothing.",
                fix="Limit.odometer(delta=1e-6)",
            )

    @property
    def theorem(self) -> str:
        return "Ville's inequality for e^{λL - λ(λ+1)R}; greatest losses add"

    def guarantee_for(self, unit: Unit) -> None:
        """None: the whole has no end, so nothing is guaranteed for it."""

    def describe(self) -> list[str]:
        line = f"{float(1 + self.rate):.4g}·Σρ + {float(self.constant):.4g}"
        return [
            f"At every moment all answers so far together are (ε, δ)-private at δ = {float(self.delta):g}, where ε is the smaller of Σε and",
            f"{line}. This holds at whatever moment it is read. No question is refused for its ε.",
            f"Mechanisms may fail with probability {float(self.leak):g} in all.",
            f"Why it holds: {self.theorem}.",
        ]

    @property
    def leak(self) -> Fraction:
        """The account of mechanisms that may fail."""
        return self.leaks * self.delta

    @property
    def _account(self) -> pricing.DeltaAccount:
        step, last = min(_STEP * self.delta, self.leak), _LAST * self.leak
        return pricing.DeltaAccount(self.leak, step, last if last > _LAST * step else Fraction(0))

    @property
    def former_limit(self) -> Limit:
        return replace(self, leaks=_FORMER_LEAK)

    @cached_property
    def constant(self) -> Fraction:
        """log(1/δ')/λ, rounded up."""
        with localcontext(prec=50):
            log = -_decimal(self.delta - self.leak).ln() / _decimal(self.rate)
            return ceiling(Fraction(log + Decimal("1e-28")), GRID)

    def start(self) -> State:
        return State(dict.fromkeys(("delta", *(track.name for track in _TRACKS)), Fraction(0)))

    def cost(self, guarantee: Guarantee) -> Cost:
        return menu(list(pricing.cost_rows(as_guarantee(guarantee), _TRACKS, self._account)))

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> State:
        usual = [row for row in cost.rows if not pricing.is_last_resort(row)]
        without_delta = [row for row in usual if not row.amounts["delta"]]
        after = (
            self._within(state, without_delta) or self._within(state, usual) or self._within(state, cost.rows)
        )
        if not after:
            needed = min(row.amounts["delta"] for row in cost.rows)
            short = Shortage(needed, max(Fraction(0), self.leak - state["delta"]))
            raise over_budget_error(self.budget(state), short)
        # the account is finite, so it is kept for those that need it
        return min(after, key=lambda paid: (paid["delta"] > state["delta"], self._least(paid)))

    def repetition(
        self,
        state: State,
        cost: Cost,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Repetition | None:
        without_delta = [
            row for row in cost.rows if not row.amounts["delta"] and not pricing.is_last_resort(row)
        ]
        # Only such a row is taken where there is one, and it leaves the account as it is.
        return Repetition(without_delta[0].amounts, {}) if len(without_delta) == 1 else None

    def _within(self, state: State, rows: Sequence[CostRow]) -> list[State]:
        return [paid for row in rows if (paid := pay_row(state, row))["delta"] <= self.leak]

    def _least(self, state: State) -> Amount:
        line = state["rho"] * (1 + self.rate) + self.constant
        return min(line, state["epsilon"])

    def bound(self, state: State) -> float:
        """The ε at δ of everything so far, at all times at once; rounded up."""
        return binary_above(self._least(state))

    def budget(
        self,
        state: State,
        *,
        asker: Asker = NOBODY,
        now: datetime | str | None = None,
    ) -> Budget:
        tracks = (
            TrackBudget("δ", self.leak, state["delta"]),
            TrackBudget("ε", math.inf, state["epsilon"]),
            TrackBudget("ρ", math.inf, state["rho"]),
        )
        note = f"all answers so far: ε = {self.bound(state):.6g} at δ = {float(self.delta):g}"
        return Budget(tracks, tracks[0].spent_fraction, partial(self._count, state), (note,))

    def _count(self, state: State, guarantee: Guarantee) -> float:
        room = self.leak - state["delta"]
        least = min(row.amounts["delta"] for row in self.cost(as_guarantee(guarantee)).rows)
        return math.inf if least == 0 else math.floor(room / least)

    def fields(self) -> JsonObject:
        split = {} if self.leaks == _FORMER_LEAK else {"leaks": str(self.leaks)}
        return {"delta": str(self.delta), "rate": str(self.rate), **split}

    @classmethod
    def from_fields(cls, fields: JsonFacts) -> Odometer:
        constants = {"leaks": str(_FORMER_LEAK), **fields}
        delta, rate, leaks = (read_amount(constants[name]) for name in ("delta", "rate", "leaks"))
        return cls(Fraction(delta), Fraction(rate), Fraction(leaks))


def make_odometer(delta: Number, rho: Number) -> Odometer:
    """See `Limit.odometer`; `rho` is where the line is to be tight.

    >>> from discreet import privacy
    >>> limit = Limit.odometer(delta=1e-6)
    >>> state = limit.start()
    >>> for _ in range(100):
    ...     state = limit.admit(state, limit.cost(privacy.gaussian(noise=20.0)))
    >>> round(limit.bound(state), 2)
    2.89
    """
    chance = check.inner_probability(delta=delta)
    near = check.moderate(rho=rho)
    # any rate is valid, and the best one hardly depends on how δ is split: so it is as in earlier
    # releases
    rate = math.sqrt(-math.log(chance * (1 - float(_FORMER_LEAK))) / near)
    return Odometer(exactly(delta), exactly(float(f"{rate:.4g}")), _LEAK)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
