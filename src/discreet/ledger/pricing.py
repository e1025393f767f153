# SPDX-License-Identifier: Apache-2.0
"""From a guarantee to what it costs: the menu of rows (δ; loss) by which a mechanism can be charged
to a limit.

A row says: for each ordered pair of neighbours the answer's laws are P = (1-δ)·P̂ + δ·P̃ and Q =
(1-δ)·Q̂ + δ·Q̃, and the loss of (P̂, Q̂) is bounded, in the track's own measure, by the amount that
the row states.

| row | δ | loss |
|---|---|---|
| plain | the mechanism's own failure probability, Σδᵢ of its parts | Σεᵢ exactly; D_α; ρ; μ² |
| point | δ₀ | as an ε-private mechanism with ε = ε(δ₀) |
| truncated | P(loss > t) | t; D_α of the pair below t |
| last … | a point, or a truncation, that takes most of the δ account: used only where nothing else fits | as above |
| whole | all of the account | all of a pure track: an answer that is (ε, δ) itself |

**Guarantee.** Every row holds. Amounts are exact where they are ratios and rounded up where they
are not. The menu is a function of the guarantee and the limit alone, so it says nothing about the
data or about earlier answers.

Why. *Plain*: `worst_loss`, `divergence` and `concentration` of a part exclude its failure. *Point*:
(ε, δ) in both directions is the same as being dominated by leaky randomized response (Kairouz, Oh,
Viswanath 2015), which is randomized response with probability 1 - δ; push it through Blackwell's
kernel. *Truncated*: `privacy.truncated`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from discreet.errors import CannotCertify, UnsupportedGuarantee
from discreet.exact import binary_above, exactly, float_below
from discreet.ledger.costs import Amount, Amounts, CostRow, above
from discreet.privacy import constructors as make
from discreet.privacy import divergences, truncated
from discreet.privacy import primitives as known
from discreet.privacy.bag import Bag, BagItem
from discreet.privacy.guarantee import Guarantee, alternatives

#: The δ that a row may take on itself, as fractions of `DeltaAccount.step`.
_SHARES = (Fraction(4, 5), Fraction(1, 5), Fraction(1, 40))
#: These reach their greatest loss so often that no small δ takes any of it away.
_BLUNT = (
    known.PureGuarantee,
    known.ApproximateGuarantee,
    known.LeakyGuarantee,
    known.LaplaceGuarantee,
    known.DiscreteLaplaceGuarantee,
    known.RandomizedResponseGuarantee,
    known.ExponentialGuarantee,
)
#: Whatever costs less than this fraction of a track as it stands is not worth truncating.
_DEAR = Fraction(1, 4)
#: How the names of rows of last resort begin.
_LAST = "last "


@dataclass(frozen=True)
class DeltaAccount:
    """The δ account of a limit: its `total`, the `step` in fractions of which rows take δ on
    themselves, and the most that a row of last resort takes (`last`, 0: there is none). One that is
    `whole` is paid in full by whatever has the guarantee.
    """

    total: Fraction
    step: Fraction
    last: Fraction = Fraction(0)
    whole: bool = False


NO_ACCOUNT = DeltaAccount(Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Track:
    """One measure of loss with its budget: `kind` is "epsilon", "renyi" (at `order`), "rho" or
    "mu2".
    """

    kind: str
    total: Fraction
    order: float = 0.0

    @property
    def name(self) -> str:
        """The name of its running total; the order is part of it, so that totals at other orders
        never mix.
        """
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
        near = binary_above(epsilon)
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


def cost_rows(guarantee: Guarantee, tracks: tuple[Track, ...], account: DeltaAccount) -> tuple[CostRow, ...]:
    """The menu; an error if no row has an end in any track.

    >>> from discreet import privacy
    >>> [row.amounts for row in cost_rows(privacy.pure(0.1), (Track("epsilon", Fraction(1)),), NO_ACCOUNT)]
    [Amounts({'delta': '0', 'epsilon': '1/10'})]
    """
    rows = _cost_rows(guarantee, tracks, account)
    if not rows:
        raise _no_row_error(tracks)
    return rows


def is_last_resort(row: CostRow) -> bool:
    """Whether a row is for where nothing else fits; ledgers of earlier releases have none."""
    return row.name.startswith(_LAST)


@lru_cache(maxsize=4096)
def _cost_rows(guarantee: Guarantee, tracks: tuple[Track, ...], account: DeltaAccount) -> tuple[CostRow, ...]:
    plain = _plain(guarantee, tracks)
    rows = [plain]
    dear = all(plain.amounts[track.name] > _DEAR * track.total for track in tracks)
    if account.total and not isinstance(guarantee, _BLUNT) and (dear or math.inf in plain.amounts.values()):
        deltas = _deltas(guarantee, account)
        rows += _points(guarantee, tracks, deltas)
        rows += _truncations(guarantee, tracks, deltas) if dear else []
        rows += _whole(guarantee, tracks, account)
    return tuple(row for row in rows if _is_payable(row, tracks, account.total))


def _is_payable(row: CostRow, tracks: tuple[Track, ...], leak: Fraction) -> bool:
    free_of_leaks = row.amounts["delta"] == 0 or (leak > 0 and row.amounts["delta"] < 1)
    return free_of_leaks and any(row.amounts[track.name] < math.inf for track in tracks)


def _plain(guarantee: Guarantee, tracks: tuple[Track, ...]) -> CostRow:
    """The greatest over the alternatives, track by track: each alternative has all of these bounds."""
    bags = alternatives(guarantee)
    losses = {track.name: max(track.of_bag(bag) for bag in bags) for track in tracks}
    return CostRow("plain", Amounts({"delta": max(_sum(bag, failure) for bag in bags)} | losses))


def _points(
    guarantee: Guarantee, tracks: tuple[Track, ...], deltas: Mapping[float, str]
) -> Iterator[CostRow]:
    """One point of the curve each."""
    for delta, prefix in deltas.items():
        epsilon = _epsilon(guarantee, delta)
        if math.isfinite(epsilon):
            losses = {track.name: track.of_pure(Fraction(epsilon)) for track in tracks}
            yield CostRow(f"{prefix}point", Amounts({"delta": Fraction(delta)} | losses))


@lru_cache(maxsize=4096)
def _epsilon(guarantee: Guarantee, delta: float) -> float:
    """ε(δ), or ∞ where it cannot be certified; several limits ask for the same."""
    try:
        return guarantee.epsilon(delta)
    except CannotCertify:
        return math.inf


def _truncations(
    guarantee: Guarantee, tracks: tuple[Track, ...], deltas: Mapping[float, str]
) -> Iterator[CostRow]:
    """The run composed first and truncated once."""
    orders = [track.order for track in tracks if track.kind == "renyi"]
    if {track.kind for track in tracks} - {"epsilon", "renyi"} or len(orders) != 1:
        return
    for prefix in dict.fromkeys(deltas.values()):
        of_kind = tuple(delta for delta, words in deltas.items() if words == prefix)
        for truncation in truncated.truncations(guarantee, of_kind, orders[0]):
            losses = {"epsilon": truncation.greatest, "renyi": truncation.divergence}
            amounts = {track.name: above(losses[track.kind]) for track in tracks}
            yield CostRow(f"{prefix}truncated", Amounts({"delta": above(truncation.delta)} | amounts))


def _whole(guarantee: Guarantee, tracks: tuple[Track, ...], account: DeltaAccount) -> Iterator[CostRow]:
    """An answer that keeps all of the claim by itself: nothing is left after it, and nothing was
    before.
    """
    if not account.whole:
        return
    (track,) = tracks
    target = make.approximate(float_below(track.total), float_below(account.total), **_words(guarantee))
    try:
        fits = guarantee.implies(target)
    except CannotCertify:
        return
    if fits:
        yield CostRow(f"{_LAST}whole", Amounts({"delta": account.total, track.name: track.total}))


def _words(guarantee: Guarantee) -> dict[str, str]:
    return {"unit": guarantee.unit.protects, "relation": guarantee.unit.relation}


def _deltas(guarantee: Guarantee, account: DeltaAccount) -> dict[float, str]:
    """The δ of the rows, as floats that stand for themselves: what fails anyway, and some of the
    account.

    Each has the words before the name of its rows.
    """
    own = max(bag.failure for bag in alternatives(guarantee))
    taken = {own + float(share * account.step): "" for share in _SHARES}
    if account.last:
        taken.setdefault(own + float(account.last), _LAST)
    return {delta: words for delta, words in taken.items() if delta < 1}


def pure_loss(part: BagItem) -> Amount:
    """The greatest loss of one mechanism, as a ratio where its parameters give one."""
    match part:
        case (
            known.PureGuarantee()
            | known.RandomizedResponseGuarantee()
            | known.ExponentialGuarantee()
            | known.ApproximateGuarantee()
        ):
            return exactly(part.epsilon_)
        case known.LaplaceGuarantee():
            return 1 / exactly(part.scale)
        case known.DiscreteLaplaceGuarantee():
            return part.sensitivity / exactly(part.scale)
        case known.LeakyGuarantee():
            return Fraction(0)
        case _:
            return above(part.worst_loss())


def failure(part: BagItem) -> Amount:
    """The probability that nothing is guaranteed of one mechanism."""
    match part:
        case known.ApproximateGuarantee() | known.LeakyGuarantee() | known.ConcentratedGuarantee():
            return exactly(part.delta_)
        case _:
            return above(part.failure) if part.failure else Fraction(0)


def _squared_slope(part: BagItem) -> Amount:
    """μ² of one mechanism: 1/noise² for Gaussian noise, what is known of some others, else what the
    greatest loss proves.

    The discrete Gaussian has neither: its curve lies above the Gaussian one.
    """
    match part:
        case known.GaussianGuarantee():
            return 1 / exactly(part.noise) ** 2
        case known.ExponentialGuarantee():
            return slope_of_range(part.epsilon_) ** 2
        case known.LaplaceGuarantee():
            return slope_of_laplace(1 / exactly(part.scale)) ** 2
        case known.RandomizedResponseGuarantee():
            return slope_of_response(part.epsilon_, part.outcomes) ** 2
    return slope_of_pure(pure_loss(part)) ** 2 if part.failure == 0 else math.inf


def slope_of_pure(epsilon: Amount) -> Amount:
    """μ = 2·Φ⁻¹(e^ε/(1 + e^ε)), rounded up: the least μ for which every ε-private mechanism is
    μ-GDP.

    The trade-off curve of ε-privacy is two straight lines that meet at α = β = 1/(1 + e^ε). The
    Gaussian curve through that point is convex and starts and ends where they do, hence lies below
    both.
    """
    near = binary_above(epsilon)
    if near == 0 or near > 600:
        return Fraction(0) if near == 0 else math.inf
    return _twice(_quantile_above(1 / (1 + math.exp(near))))


def slope_of_range(epsilon: float) -> Amount:
    """μ = 2·Φ⁻¹(e^{ε/2}/(1 + e^{ε/2})), rounded up: the least μ for which losses that span at most
    ε are μ-GDP.

    The worst pairs have two outcomes (Dong, Durfee, Rogers 2020): probabilities p and q of the
    first with logit(p) - logit(q) = ε. Write p = Φ(a), q = Φ(b), ℓ(x) = logit Φ(x); then ε is the
    integral of ℓ' from b to a, and the pair is (a - b)-GDP. ℓ'(x) = h(x) + h(-x) with the hazard
    rate h = φ/(1 - Φ), which is convex (Sampford 1953): ℓ' is even and grows with |x|, so of all
    intervals of length a - b the one around 0 has the least integral. Hence 2·ℓ((a - b)/2) ≤ ε.
    """
    return slope_of_pure(exactly(epsilon) / 2)


def slope_of_laplace(epsilon: Amount) -> Amount:
    """μ = 2·Φ⁻¹(1 - e^{-ε/2}/2), rounded up: the least μ for which Laplace noise of scale 1/ε is
    μ-GDP.

    Let α = 1 - Φ(x) and β = 1 - Φ(y) be a point of its trade-off curve; then μ is the greatest x +
    y. g = -log(1 - Φ) is convex. Where x, y ≥ 0, αβ = e^{-ε}/4, so g(x) + g(y) is constant, and x +
    y greatest at x = y. Where y = -z ≤ 0, 1 - β = e^ε·α, so g(x) - g(z) = ε, and x - z is greatest
    at z = 0, where the first case begins; by symmetry so where x ≤ 0.
    """
    near = binary_above(epsilon)
    if near == 0 or near > 1200:
        return Fraction(0) if near == 0 else math.inf
    return _twice(_quantile_above(math.exp(-near / 2) / 2))


def slope_of_response(epsilon: float, outcomes: int) -> Amount:
    """μ = Φ⁻¹(p) - Φ⁻¹(q), rounded up: that of randomized response which tells an outcome with p =
    e^ε·q or q.

    Its trade-off curve is linear between (0, 1), (q, 1-p), (1-p, q) and (1, 0), and a Gaussian one
    is convex: it lies below if it does so at the corners.
    """
    if epsilon > 600:
        return math.inf
    odds, others = math.exp(epsilon), float(outcomes - 1)
    told, not_told, lied = (part / (odds + others) for part in (odds, others, 1.0))
    # of two probabilities that add up to 1 only the lesser one has all its digits
    quantile = _quantile_above(not_told) if not_told < told else _up(NormalDist().inv_cdf(told))
    return above(max(0.0, quantile + _quantile_above(lied)))


def _quantile_above(tail: float) -> float:
    """Φ⁻¹(1 - tail), rounded up by more than was lost: the tail has all its digits where it is
    small.
    """
    return _up(-NormalDist().inv_cdf(tail))


def _up(quantile: float) -> float:
    return quantile + abs(quantile) * 1e-12 + 1e-15


def _twice(half: float) -> Amount:
    return above(2 * max(0.0, half))


def _sum(bag: Bag, of: Callable[[BagItem], Amount]) -> Amount:
    return sum((count * of(part) for part, count in bag.entries), Fraction(0))


def _no_row_error(tracks: tuple[Track, ...]) -> UnsupportedGuarantee:
    measures = {"epsilon": "ε", "renyi": "D_α", "rho": "ρ", "mu2": "μ"}
    missing = " or ".join(measures[track.kind] for track in tracks)
    return UnsupportedGuarantee(
        "DP203",
        f"this limit counts {missing}, and this mechanism has no proved bound of that kind.",
        why="what cannot be bounded in the limit's own measure cannot be added up in it.",
        fix="use a limit with room for δ, Limit.filter(epsilon=1, delta=1e-6), or another mechanism.",
    )


__all__ = ["DeltaAccount", "Track", "cost_rows", "failure", "is_last_resort", "pure_loss", "slope_of_pure"]
