# SPDX-License-Identifier: Apache-2.0
"""From a guarantee to what it costs: the menu of rows (δ; loss) by which a mechanism can be charged to a limit.

A row says: for each ordered pair of neighbours the answer's laws are P = (1-δ)·P̂ + δ·P̃ and Q = (1-δ)·Q̂ + δ·Q̃, and the
loss of (P̂, Q̂) is bounded, in the lane's own measure, by the amount that the row states.

| row | δ | loss |
|---|---|---|
| plain | the mechanism's own failure probability, Σδᵢ of its parts | Σεᵢ exactly; D_α; ρ; μ² |
| point | δ₀ | as an ε-private mechanism with ε = ε(δ₀) |
| truncated | P(loss > t) | t; D_α of the pair below t |

**Promise.** Every row holds. Amounts are exact where they are ratios and rounded up where they are not. The menu is a
function of the guarantee and the limit alone, so it says nothing about the data or about earlier answers.

Why. *Plain*: `worst_loss`, `divergence` and `concentration` of a part exclude its failure. *Point*: (ε, δ) in both
directions is the same as being dominated by leaky randomized response (Kairouz, Oh, Viswanath 2015), which is
randomized response with probability 1 - δ; push it through Blackwell's kernel. *Truncated*: `privacy.truncated`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from discreet.errors import CannotCertify, UnsupportedGuarantee
from discreet.ledger.lanes import Amount, Amounts, Row, above, exactly
from discreet.privacy import divergences, truncated
from discreet.privacy import primitives as known
from discreet.privacy.bag import Bag, Part
from discreet.privacy.guarantee import Guarantee, alternatives

#: The δ that a row may take on itself, as shares of the whole δ account.
_SHARES = (Fraction(4, 5), Fraction(1, 5), Fraction(1, 40))
#: These reach their greatest loss so often that no small δ takes any of it away.
_BLUNT = (
    known.Pure,
    known.Approximate,
    known.Leaky,
    known.Laplace,
    known.DiscreteLaplace,
    known.RandomizedResponse,
    known.Exponential,
)
#: Whatever costs less than this share of a lane as it stands is not worth truncating.
_DEAR = Fraction(1, 4)


@dataclass(frozen=True)
class Lane:
    """One measure of loss with its budget: `kind` is "epsilon", "renyi" (at `order`), "rho" or "mu2"."""

    kind: str
    total: Fraction
    order: float = 0.0

    @property
    def name(self) -> str:
        """The name of its running total; the order is part of it, so that totals at other orders never mix."""
        return f"renyi {self.order!r}" if self.kind == "renyi" else self.kind

    def of_bag(self, bag: Bag) -> Amount:
        """The loss of a bag of mechanisms, apart from their failures."""
        greatest = _sum(bag, pure_loss)
        match self.kind:
            case "epsilon":
                return greatest
            case _ if greatest == 0:
                return greatest
            case "renyi":
                return above(bag.renyi(self.order), self._condition)
            case "rho":
                xi, rho = bag.concentrated
                return above(rho) if xi == 0 else math.inf
            case _:
                return _sum(bag, _squared_slope)

    def of_pure(self, epsilon: Amount) -> Amount:
        """The loss of whatever is ε-private."""
        near = float_above(epsilon)
        match self.kind:
            case "epsilon":
                return epsilon
            case "renyi":
                return (
                    above(divergences.of_pure(near, self.order), self._condition) if near < math.inf else near
                )
            case "rho":
                return above(divergences.concentrated_of_pure(near)) if near < math.inf else near
            case _:
                return slope_of_pure(epsilon) ** 2

    @property
    def _condition(self) -> float:
        """Near order 1 the two terms of D nearly cancel."""
        return 1 + 1 / (self.order - 1)


def offers(guarantee: Guarantee, lanes: tuple[Lane, ...], leak: Fraction) -> tuple[Row, ...]:
    """The menu; an error if no row has an end in any lane.

    >>> from discreet import privacy
    >>> [row.amounts for row in offers(privacy.pure(0.1), (Lane("epsilon", Fraction(1)),), Fraction(0))]
    [Amounts({'delta': '0', 'epsilon': '1/10'})]
    """
    rows = _offers(guarantee, lanes, leak)
    if not rows:
        raise _no_row(lanes)
    return rows


@lru_cache(maxsize=4096)
def _offers(guarantee: Guarantee, lanes: tuple[Lane, ...], leak: Fraction) -> tuple[Row, ...]:
    plain = _plain(guarantee, lanes)
    rows = [plain]
    dear = all(plain.amounts[lane.name] > _DEAR * lane.total for lane in lanes)
    if leak > 0 and not isinstance(guarantee, _BLUNT) and (dear or math.inf in plain.amounts.values()):
        rows += _points(guarantee, lanes, leak)
        rows += _truncations(guarantee, lanes, leak) if dear else []
    return tuple(row for row in rows if _is_payable(row, lanes, leak))


def _is_payable(row: Row, lanes: tuple[Lane, ...], leak: Fraction) -> bool:
    free_of_leaks = row.amounts["delta"] == 0 or (leak > 0 and row.amounts["delta"] < 1)
    return free_of_leaks and any(row.amounts[lane.name] < math.inf for lane in lanes)


def _plain(guarantee: Guarantee, lanes: tuple[Lane, ...]) -> Row:
    """The greatest over the alternatives, lane by lane: each alternative has all of these bounds."""
    bags = alternatives(guarantee)
    losses = {lane.name: max(lane.of_bag(bag) for bag in bags) for lane in lanes}
    return Row("plain", Amounts({"delta": max(_sum(bag, failure) for bag in bags)} | losses))


def _points(guarantee: Guarantee, lanes: tuple[Lane, ...], leak: Fraction) -> Iterator[Row]:
    """One point of the curve each."""
    for delta in _deltas(guarantee, leak):
        try:
            epsilon = guarantee.epsilon(float(delta))
        except CannotCertify:
            continue
        if math.isfinite(epsilon):
            losses = {lane.name: lane.of_pure(Fraction(epsilon)) for lane in lanes}
            yield Row("point", Amounts({"delta": delta} | losses))


def _truncations(guarantee: Guarantee, lanes: tuple[Lane, ...], leak: Fraction) -> Iterator[Row]:
    """The run composed first and truncated once."""
    orders = [lane.order for lane in lanes if lane.kind == "renyi"]
    if {lane.kind for lane in lanes} - {"epsilon", "renyi"} or len(orders) != 1:
        return
    for found in truncated.truncations(guarantee, tuple(map(float, _deltas(guarantee, leak))), orders[0]):
        losses = {"epsilon": found.greatest, "renyi": found.divergence}
        amounts = {lane.name: above(losses[lane.kind]) for lane in lanes}
        yield Row("truncated", Amounts({"delta": above(found.delta)} | amounts))


def _deltas(guarantee: Guarantee, leak: Fraction) -> list[Fraction]:
    """The δ of the rows, as floats that stand for themselves: what fails anyway, and a share of the account."""
    own = max(bag.failure for bag in alternatives(guarantee))
    return [Fraction(own + float(share * leak)) for share in _SHARES if own + float(share * leak) < 1]


def pure_loss(part: Part) -> Amount:
    """The greatest loss of one mechanism, as a ratio where its parameters give one."""
    match part:
        case known.Pure() | known.RandomizedResponse() | known.Exponential() | known.Approximate():
            return exactly(part.epsilon_)
        case known.Laplace():
            return 1 / exactly(part.scale)
        case known.DiscreteLaplace():
            return part.sensitivity / exactly(part.scale)
        case known.Leaky():
            return Fraction(0)
        case _:
            return above(part.worst_loss())


def failure(part: Part) -> Amount:
    """The probability that nothing is promised of one mechanism."""
    match part:
        case known.Approximate() | known.Leaky() | known.Concentrated():
            return exactly(part.delta_)
        case _:
            return above(part.failure) if part.failure else Fraction(0)


def _squared_slope(part: Part) -> Amount:
    """μ² of one mechanism: 1/noise² for Gaussian noise, else what its greatest loss proves.

    The discrete Gaussian has neither: its curve lies above the Gaussian one.
    """
    if isinstance(part, known.Gaussian):
        return 1 / exactly(part.noise) ** 2
    return slope_of_pure(pure_loss(part)) ** 2 if part.failure == 0 else math.inf


def slope_of_pure(epsilon: Amount) -> Amount:
    """μ = 2·Φ⁻¹(e^ε/(1 + e^ε)), rounded up: the least μ for which every ε-private mechanism is μ-GDP.

    The trade-off curve of ε-privacy is two straight lines that meet at α = β = 1/(1 + e^ε). The Gaussian curve
    through that point is convex and starts and ends where they do, hence lies below both.
    """
    near = float_above(epsilon)
    if near == 0 or near > 600:
        return Fraction(0) if near == 0 else math.inf
    # the tail has all its digits where it is small; near one half it has an absolute error of a few 1e-17
    half = -NormalDist().inv_cdf(1 / (1 + math.exp(near)))
    return above((max(0.0, half) * (1 + 1e-12) + 1e-15) * 2)


def float_above(value: Amount) -> float:
    """A float that is not below the amount."""
    near = float(value)
    return near if math.isinf(near) or Fraction(near) >= value else math.nextafter(near, math.inf)


def _sum(bag: Bag, of: Callable[[Part], Amount]) -> Amount:
    return sum((count * of(part) for part, count in bag.entries), Fraction(0))


def _no_row(lanes: tuple[Lane, ...]) -> UnsupportedGuarantee:
    measures = {"epsilon": "ε", "renyi": "D_α", "rho": "ρ", "mu2": "μ"}
    missing = " or ".join(measures[lane.kind] for lane in lanes)
    return UnsupportedGuarantee(
        "DP203",
        f"this limit counts {missing}, and this mechanism has no proved bound of that kind.",
        why="what cannot be bounded in the limit's own measure cannot be added up in it.",
        fix="use a limit with room for δ, Limit.filter(epsilon=1, delta=1e-6), or another mechanism.",
    )


__all__ = ["Lane", "failure", "offers", "pure_loss", "slope_of_pure"]
