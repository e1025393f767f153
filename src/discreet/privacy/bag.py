# SPDX-License-Identifier: Apache-2.0
"""A counted bag of mechanisms, ready for numerics.

This is the only place where a count meets a number. Every quantity of a composition is a sum (or a
product) over the bag, written once, here; no mechanism ever sees how often it was run.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from discreet.exact import binary_above, exactly, float_above
from discreet.privacy import families
from discreet.privacy.divergences import improved_epsilon
from discreet.privacy.losses import Composition
from discreet.privacy.pairs import Pair, log_delta_of, swap, symmetrise

#: Failures of so many mechanisms are added up as the decimals that they are.
_MOST_EXACT = 100


class BagItem(Protocol):
    """What a single mechanism may know of itself; "nothing" is ∞ or no pair."""

    @property
    def failure(self) -> float:
        """δ of the event after which nothing is guaranteed; `worst_loss`, `divergence`,
        `concentration` exclude it.
        """

    def worst_loss(self) -> float:
        """The greatest privacy loss."""

    def divergence(self, order: float) -> float:
        """D_order, both directions."""

    def concentration(self) -> tuple[float, float]:
        """(ξ, ρ) with D_order ≤ ξ + ρ·order for every order."""

    def pairs(self) -> tuple[Pair, ...]:
        """The dominating pair, or one for each direction (removed, added), or none."""

    def witness(self) -> tuple[Pair, ...]:
        """The pairs of some mechanism that has this guarantee, for lower bounds; one, or one for
        each direction.
        """


class Bag:
    """Mechanisms with counts, all about the same neighbours."""

    def __init__(self, entries: list[tuple[BagItem, int]]) -> None:
        self.entries = entries

    @cached_property
    def count(self) -> int:
        """How many mechanisms were run."""
        return sum(count for _, count in self.entries)

    @cached_property
    def failure(self) -> float:
        """1 - Π(1 - δᵢ): the probability that any of them fails."""
        if any(part.failure >= 1 for part, _ in self.entries):
            return 1.0
        if self.alone is not None:
            return self.alone.failure
        if self.count <= _MOST_EXACT:
            safe = Fraction(1)
            for part, count in self.entries:
                safe *= (1 - exactly(part.failure)) ** count
            return min(1.0, float_above(1 - safe))
        # In the worst case the failures are independent, so none happens with probability Π(1 - δᵢ)
        # (Kairouz, Oh, Viswanath 2015; for approximate zCDP: Bun, Steinke 2016).
        total = math.fsum(count * math.log1p(-part.failure) for part, count in self.entries)
        return min(1.0, -math.expm1(total) * (1 + 1e-15))

    @cached_property
    def worst_loss(self) -> float:
        """Σ of the greatest losses, exactly as decimals: ten times 0.1 is 1."""
        # Basic composition: losses add (Dwork, McSherry, Nissim, Smith 2006).
        losses = [(part.worst_loss(), count) for part, count in self.entries]
        if any(math.isinf(loss) for loss, _ in losses):
            return math.inf
        return binary_above(sum((count * exactly(float(loss)) for loss, count in losses), Fraction(0)))

    def renyi(self, order: float) -> float:
        """Σ D_order, rounded up: curves add at each order (Mironov 2017)."""
        return _up(math.fsum(count * part.divergence(order) for part, count in self.entries), self.count)

    @cached_property
    def concentrated(self) -> tuple[float, float]:
        """(Σξ, Σρ), rounded up: both add (Bun, Steinke 2016)."""
        bounds = [(part.concentration(), count) for part, count in self.entries]
        xi, rho = (math.fsum(count * bound[i] for bound, count in bounds) for i in (0, 1))
        return _up(xi, self.count), _up(rho, self.count)

    @cached_property
    def alone(self) -> BagItem | None:
        """The only mechanism, if one was run once."""
        return self.entries[0][0] if self.count == 1 else None

    @cached_property
    def gaussian(self) -> float | None:
        """μ = √Σμᵢ² if every mechanism is Gaussian (Dong, Roth, Su 2022, Corollary 3.3)."""
        slopes = [(getattr(part, "mu", None), count) for part, count in self.entries]
        if any(mu is None for mu, _ in slopes):
            return None
        return _root_sum([(mu, count) for mu, count in slopes if mu is not None])

    @cached_property
    def compositions(self) -> list[Composition]:
        """What dominates the bag: one composition for each direction that differs."""
        curves = [(part, count) for part, count in self.entries if not part.pairs()]
        joint: list[tuple[tuple[Pair, ...], int]] = [((pair_of_curve(Bag(curves)),), 1)] if curves else []
        known: list[tuple[tuple[Pair, ...], int]] = [
            (part.pairs(), count) for part, count in self._not_gaussian if part.pairs()
        ]
        return _by_direction(self._joint_gaussian(1 + 1e-13) + known + joint)

    @cached_property
    def witnesses(self) -> list[Composition]:
        """Compositions of mechanisms that have these guarantees, for lower bounds."""
        return _by_direction(
            self._joint_gaussian(1 - 1e-13) + [(part.witness(), count) for part, count in self._not_gaussian]
        )

    @property
    def _not_gaussian(self) -> list[tuple[BagItem, int]]:
        return [(part, count) for part, count in self.entries if getattr(part, "mu", None) is None]

    def _joint_gaussian(self, rounding: float) -> list[tuple[tuple[Pair, ...], int]]:
        """All Gaussian mechanisms of the bag as one."""
        mus = [(mu, count) for part, count in self.entries if (mu := getattr(part, "mu", None)) is not None]
        return [((families.gaussian(_root_sum(mus) * rounding),), 1)] if mus else []


def _by_direction(entries: list[tuple[tuple[Pair, ...], int]]) -> list[Composition]:
    count_of_directions = max(len(pairs) for pairs, _ in entries)
    return [
        Composition([(pairs[direction % len(pairs)], count) for pairs, count in entries])
        for direction in range(count_of_directions)
    ]


def pair_of_curve(bag: Bag) -> Pair:
    """One pair that dominates mechanisms known only by their Rényi curves.

    The curves are added first, then turned into one profile δ̂(ε) = min over orders of the improved
    bound. The true profile is convex in e^ε and below δ̂ at every knot, hence below the greatest
    convex sequence below δ̂ there, and connecting the dots of that sequence gives a pair.
    """
    known_orders = [order for part, _ in bag.entries for order in getattr(part, "orders", ())]
    orders = np.unique(np.concatenate([1 + np.geomspace(1e-3, 1e4, 150), known_orders]))
    divergence = np.array([bag.renyi(float(order)) for order in orders])
    finite = np.isfinite(divergence)
    orders, divergence = orders[finite], divergence[finite]
    if orders.size == 0:
        return Pair(infinite=1.0, vanishing=1.0, symmetric=True)
    top = max(
        1.0,
        min(improved_epsilon(float(d), float(o), -700.0) for o, d in zip(orders, divergence, strict=True)),
    )
    knots = np.concatenate([[0.0], np.geomspace(top * 1e-6, top, 1500)])
    log_delta = np.array([_log_profile(orders, divergence, epsilon) for epsilon in knots])
    pair = symmetrise(pair_of_profile(knots, np.exp(np.minimum(log_delta, 0.0))))
    failure = bag.failure
    return Pair(
        losses=pair.losses,
        p=pair.p * (1 - failure),
        q=pair.q * (1 - failure),
        infinite=failure + (1 - failure) * pair.infinite,
        vanishing=failure + (1 - failure) * pair.infinite,
        symmetric=True,
    )


def pair_of_profile(epsilons: np.ndarray, deltas: np.ndarray) -> Pair:
    """The positive losses of a pair whose profile is at least δ̂ at the given ε ≥ 0 (the first one
    is 0).
    """
    keep = _convex_minorant(np.expm1(epsilons), deltas) if epsilons[-1] < 700 else np.arange(epsilons.size)
    loss, height = epsilons[keep], np.minimum.accumulate(deltas[keep])
    drop, gap = height[:-1] - height[1:], np.diff(loss)
    p = np.zeros(loss.size)
    p[1:] += drop / -np.expm1(-gap)
    with np.errstate(over="ignore"):
        p[1:-1] -= drop[1:] / np.expm1(gap[1:])
    p = np.maximum(p, 0.0)
    return Pair(losses=loss[1:], p=p[1:], q=p[1:] * np.exp(-loss[1:]), infinite=float(height[-1]))


def greatest_of(pairs: tuple[Pair, ...]) -> Pair:
    """One symmetric pair that dominates all of them in both directions: the greatest profile, step
    by step.
    """
    if len(pairs) == 1 and pairs[0].symmetric:
        return pairs[0]
    both = [*pairs, *(swap(pair) for pair in pairs)]
    top = max(pair.greatest for pair in both)
    if all(pair.smooth is None for pair in both):
        knots = np.unique(np.concatenate([[0.0], *(pair.losses[pair.losses > 0] for pair in both)]))
    else:
        knots = np.concatenate([[0.0], np.geomspace(max(top, 1e-300) * 1e-6, max(top, 1e-300), 3000)])
    deltas = [max(math.exp(log_delta_of(pair, float(at))) for pair in both) for at in knots]
    return symmetrise(pair_of_profile(knots, np.array(deltas) * (1 + 1e-12)))


def _convex_minorant(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Indices of the lower convex hull of a graph."""
    hull: list[int] = []
    for i in range(x.size):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return np.array(hull)


def _log_profile(orders: np.ndarray, divergence: np.ndarray, epsilon: float) -> float:
    """The least improved Rényi bound on log δ at ε."""
    lam = orders - 1
    logs = lam * (divergence - epsilon) + lam * np.log(lam) - orders * np.log(orders)
    return min(0.0, float(np.min(logs)))


def _root_sum(mus: list[tuple[float, int]]) -> float:
    return math.sqrt(math.fsum(count * mu * mu for mu, count in mus))


def _up(value: float, count: int) -> float:
    """Rounded up by more than the error of the products; one mechanism is left exactly as it is
    stated.
    """
    return value if count == 1 or not math.isfinite(value) else value * (1 + 4e-16)
