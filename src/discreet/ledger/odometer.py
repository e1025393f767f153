# SPDX-License-Identifier: Apache-2.0
"""An odometer: nothing is refused for being too dear, and one line bounds the loss at all times at once.

**Promise.** Fix λ > 0 in advance. Then with probability 1 - δ, for every t at once, the loss of the first t answers is at
most both Σεᵢ and (1+λ)·Σρᵢ + log(1/δ')/λ, where δ' is δ less the account of mechanisms that may fail (a tenth of it).
Prices may depend on earlier answers, and so may the moment at which somebody looks.

Why it holds. e^{λL - λ(λ+1)R}, R = Σρᵢ, is a supermartingale, since D_{1+λ} ≤ (1+λ)·ρ at every step. By Ville's inequality
it exceeds 1/δ' at any time with probability δ' at most. The sum Σεᵢ bounds the loss on every path.

The line is tight near the ρ that it was made for, where it equals ρ + 2√(ρ·log 1/δ'), and linear elsewhere. A bound that
is tight everywhere does not exist (Rogers et al. 2016). The account is the one thing that can be overdrawn: then
the answer is refused, because the probability above would no longer be 1 - δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.ledger import embed
from discreet.ledger.embed import Lane, float_above
from discreet.ledger.lanes import GRID, Amount, Cost, State, ceiling, exactly, menu, read_amount
from discreet.ledger.left import LaneLeft, Left
from discreet.ledger.limit import Limit, as_guarantee, over_budget, pay
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit

#: The lanes have no end; these totals only say what counts as dear.
_LANES = (Lane("epsilon", Fraction(1)), Lane("rho", Fraction(1)))
_LEAK = Fraction(1, 10)


@dataclass(frozen=True)
class Odometer(Limit):
    """Sums without a limit; `rate` is λ."""

    kind = "odometer"

    delta: Fraction
    rate: Fraction

    def __post_init__(self) -> None:
        if not (0 < self.delta < 1 and self.rate > 0):
            raise BadParameter(
                "DP102",
                "an odometer needs a δ between 0 and 1 and a rate above 0.",
                why="outside that range Ville's inequality says nothing.",
                fix="Limit.odometer(delta=1e-6)",
            )

    @property
    def theorem(self) -> str:
        return "Ville's inequality for e^{λL - λ(λ+1)R}; greatest losses add"

    def promise(self, unit: Unit) -> None:
        """Nothing is promised of the whole: it has no end."""

    def describe(self) -> list[str]:
        line = f"{float(1 + self.rate):.4g}·Σρ + {float(self.constant):.4g}"
        return [
            f"At every moment all answers so far together have a loss of at most Σε, and of at most {line}.",
            f"Both hold at all times at once, except with probability {float(self.delta):g}. Nothing is too dear.",
            f"Mechanisms may fail with probability {float(self.leak):g} in all.",
            f"Why it holds: {self.theorem}.",
        ]

    @property
    def leak(self) -> Fraction:
        """The account of mechanisms that may fail."""
        return _LEAK * self.delta

    @cached_property
    def constant(self) -> Fraction:
        """log(1/δ')/λ, rounded up."""
        with localcontext(prec=50):
            log = -_decimal(self.delta - self.leak).ln() / _decimal(self.rate)
            return ceiling(Fraction(log + Decimal("1e-28")), GRID)

    def start(self) -> State:
        return State(dict.fromkeys(("delta", *(lane.name for lane in _LANES)), Fraction(0)))

    def cost(self, guarantee: Guarantee) -> Cost:
        return menu(list(embed.offers(as_guarantee(guarantee), _LANES, self.leak)))

    def admit(
        self,
        state: State,
        cost: Cost,
        *,
        analyst: str | None = None,
        project: str | None = None,
        now: datetime | str | None = None,
    ) -> State:
        after = [paid for row in cost.rows if (paid := pay(state, row))["delta"] <= self.leak]
        if not after:
            raise over_budget(self.left(state))
        # the account is finite, so it is kept for those that need it
        return min(after, key=lambda paid: (paid["delta"] > state["delta"], self._least(paid)))

    def _least(self, state: State) -> Amount:
        line = state["rho"] * (1 + self.rate) + self.constant
        return min(line, state["epsilon"])

    def bound(self, state: State) -> float:
        """The loss of everything so far, except with probability δ at any time; rounded up."""
        return float_above(self._least(state))

    def left(
        self,
        state: State,
        *,
        analyst: str | None = None,
        project: str | None = None,
        now: datetime | str | None = None,
    ) -> Left:
        lanes = (
            LaneLeft("δ", self.leak, state["delta"]),
            LaneLeft("ε", math.inf, state["epsilon"]),
            LaneLeft("ρ", math.inf, state["rho"]),
        )
        note = f"loss so far at most {self.bound(state):.6g}, except with probability {float(self.delta):g}"
        return Left(
            lanes, lanes[0].share, lambda guarantee: self._count(state, as_guarantee(guarantee)), (note,)
        )

    def _count(self, state: State, guarantee: Guarantee) -> float:
        room = self.leak - state["delta"]
        least = min(row.amounts["delta"] for row in self.cost(guarantee).rows)
        return math.inf if least == 0 else math.floor(room / least)

    def fields(self) -> dict[str, Any]:
        return {"delta": str(self.delta), "rate": str(self.rate)}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Odometer:
        delta, rate = (read_amount(fields[name]) for name in ("delta", "rate"))
        return cls(Fraction(delta), Fraction(rate))


def odometer(delta: Any, rho: Any) -> Odometer:
    """See `Limit.odometer`; `rho` is where the line is to be tight.

    >>> from discreet import privacy
    >>> limit = Limit.odometer(delta=1e-6)
    >>> state = limit.start()
    >>> for _ in range(100):
    ...     state = limit.admit(state, limit.cost(privacy.gaussian(noise=20.0)))
    >>> round(limit.bound(state), 2)
    2.78
    """
    chance = check.inner_probability(delta=delta)
    near = check.moderate(rho=rho)
    rate = math.sqrt(-math.log(chance * (1 - float(_LEAK))) / near)
    return Odometer(exactly(delta), exactly(float(f"{rate:.4g}")))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
