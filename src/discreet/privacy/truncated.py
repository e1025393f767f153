# SPDX-License-Identifier: Apache-2.0
"""A mechanism without its greatest losses: what remains with probability 1 - δ.

**Guarantee.** For every ordered pair of neighbours with distributions (P, Q) there are P = (1-δ)·P̂
+ δ·P̃ and Q = (1-δ)·Q̂ + δ·Q̃ with log dP̂/dQ̂ ≤ `greatest` and D_order(P̂‖Q̂) ≤ `divergence`; δ is
`delta`, no more than what was asked for.

Why it holds. Let (P, Q) be a pair that dominates the whole run in that direction (composed first,
truncated once), L its loss, and t ≥ 0 with P(L > t) = δ. Put P̂ = P(·|L ≤ t), Q̂ = Q(·|L ≤ t).
Since Q(L > t) ≤ e^{-t}·δ ≤ δ, (1-δ)·Q̂ ≤ Q, so this is such a decomposition; the new loss is L +
log Q(L ≤ t) - log(1-δ) ≤ L - log(1-δ), hence

    (order-1)·D_order(P̂‖Q̂) ≤ log E_P[e^{(order-1)·L}; L ≤ t] - order·log(1-δ).

By Blackwell the mechanism is a kernel applied to the pair; the decomposition goes through it, and D
does not grow.

The pair is a lattice one whose curve is nowhere below the true one, though its masses may add up to
a little more than
1. The true curve is convex and starts at 1, so it also lies below the greatest convex curve below
   both; that one belongs to an actual pair, which lacks only some of the lowest losses. So the tail
   P(L > t) and the truncated moment of the lattice are both bounds. They are computed from its
   distribution under a tilt e^{λL}, 0 < λ < order - 1, where an error of τ costs at most τ·e^{K-λt}
   in the tail and τ·e^{K+(order-1-λ)t} in the moment (see `losses`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.privacy.guarantee import Guarantee, alternatives
from discreet.privacy.logarithms import Array
from discreet.privacy.losses import Composition
from discreet.privacy.routes import has_pairs

#: Masses of a listed composition are good to this (logarithms of factorials); other sums and
#: exponents to far more.
_MASS = 1e-8
#: How far below the rest the window's lower end is put, as a power of e; and the mass that it may
#: miss above.
_DEEP, _OUTSIDE = 25.0, 1e-12


@dataclass(frozen=True)
class Truncation:
    """See the module docstring."""

    delta: float
    greatest: float
    divergence: float


@dataclass(frozen=True, eq=False)
class _Distribution:
    """A distribution of the loss: masses e^{K-λL}·m at increasing losses, where the m are wrong by
    `error` in all.

    `infinite` is the mass where all is revealed; `below` is where the window starts (-∞: nothing is
    missing there).
    """

    losses: Array
    tilted: Array
    tilt: float
    log_moment: float
    error: float
    infinite: float
    below: float

    def cut(self, delta: float, order: float) -> Truncation | None:
        """At the least loss t ≥ 0 that is exceeded with probability δ at most."""
        first = int(np.searchsorted(self.losses, 0.0))
        # where that overflows the tail is out of the question anyway
        untilt = np.exp(np.minimum(self.log_moment - self.tilt * self.losses[first:], 700.0))
        beyond = np.cumsum((self.tilted[first:] * untilt)[::-1])[::-1]
        tails = (np.append(beyond[1:], 0.0) + self.error * untilt + self.infinite) * (1 + _MASS)
        within = np.flatnonzero(tails <= delta)
        if within.size == 0:
            return None
        last = first + int(within[0])
        lost, edge = float(tails[within[0]]), float(self.losses[last])
        left_out = -math.log1p(-lost)
        divergence = (self._log_moment_to(last, order) + order * left_out) / (order - 1)
        return Truncation(lost, (edge + left_out) * (1 + 1e-14), max(0.0, divergence))

    def _log_moment_to(self, last: int, order: float) -> float:
        """log E[e^{(order-1)L}; L ≤ t], rounded up."""
        rate, edge = order - 1 - self.tilt, float(self.losses[last])
        inside = float(np.sum(self.tilted[: last + 1] * np.exp(rate * (self.losses[: last + 1] - edge))))
        total = inside + self.error + math.exp(min(0.0, rate * (self.below - edge)))
        return self.log_moment + rate * edge + math.log(total) + _MASS * (1 + 1e-6 * abs(rate * edge))


def truncations(guarantee: Guarantee, deltas: tuple[float, ...], order: float) -> list[Truncation]:
    """The mechanism truncated at each of some δ; those that the numerics cannot resolve are left
    out.

    >>> from discreet import privacy
    >>> run = 1_000 * privacy.gaussian(noise=0.8).sampled(rate=0.001)
    >>> [row] = truncations(run, (1e-7,), 22.0)
    >>> round(run.renyi(order=22)), round(row.divergence, 2), row.delta <= 1e-7
    (9951, 0.19, True)
    """
    bags = alternatives(guarantee)
    if not all(has_pairs(bag) and bag.failure < 1 for bag in bags):
        return []
    compositions = [composition for bag in bags for composition in bag.compositions]
    if any(composition.is_untold for composition in compositions):
        return []
    distributions = [_distribution(composition, deltas, order) for composition in compositions]
    cuts = [[distribution.cut(delta, order) for distribution in distributions] for delta in deltas]
    return [_greatest([cut for cut in by_direction if cut]) for by_direction in cuts if all(by_direction)]


def _distribution(composition: Composition, deltas: tuple[float, ...], order: float) -> _Distribution:
    """The listed outcomes if there are few, else the distribution under a tilt that suits the δ in
    question.
    """
    if composition.listed:
        at = np.argsort(composition.listed.losses)
        losses, p = composition.listed.losses[at], composition.listed.p[at]
        return _Distribution(losses, p, 0.0, 0.0, 0.0, composition.listed.infinite, -math.inf)
    middle = math.fsum(map(math.log, deltas)) / len(deltas)
    tilt = composition.coarse.frame_for_delta(middle).tilt
    tilt = tilt if tilt < 0.95 * (order - 1) else 0.8 * (order - 1)
    frame = composition.coarse.bulk(tilt, _OUTSIDE)
    start = min(frame.start, -_DEEP / (order - 1 - tilt))
    tilted = composition.distribution(replace(frame, start=start, period=frame.latest - start), upper=True)
    losses = tilted.first + tilted.drift + tilted.step * np.arange(tilted.masses.size)
    return _Distribution(
        losses,
        tilted.masses,
        tilt,
        tilted.log_moment,
        tilted.error + tilted.missed,
        tilted.infinite,
        tilted.first,
    )


def _greatest(truncations: list[Truncation]) -> Truncation:
    """All directions and alternatives at once."""
    return Truncation(
        max(one_direction.delta for one_direction in truncations),
        max(one_direction.greatest for one_direction in truncations),
        max(one_direction.divergence for one_direction in truncations),
    )
