# SPDX-License-Identifier: Apache-2.0
"""A guarantee in one number: the least μ for which it is Gaussian differentially private.

A mechanism is μ-GDP if its answers are no easier to tell apart than N(0, 1) and N(μ, 1) (Dong,
Roth, Su 2022), that is, if δ(ε) ≤ δ_μ(ε) for every ε ≥ 0. One number says less than the curve. The
*regret* says how much less: the least κ by which the Gaussian curve has to be moved, both false
alarms and misses, to be nowhere below the proved one.

Regret in terms of profiles: let f be a trade-off curve and G one below it. f(α + κ) - κ ≤ G(α) for
all α says that every line of f, moved by κ in both directions, stays below G; the line of slope
-e^ε of f is 1 - δ(ε) - e^ε·α, so it says δ(ε) + κ·(1 + e^ε) ≥ δ_G(ε) for every ε. By symmetry ε ≥ 0
is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from discreet.exact import bisect, geometric_mean
from discreet.privacy import families
from discreet.privacy.bag import Bag
from discreet.privacy.guarantee import Guarantee, alternatives
from discreet.privacy.sampling import SampledGuarantee

#: Points at which a curve is read: at first, and at most; and how close μ has to be.
_FIRST, _MOST, _CLOSE = 16, 60, 2e-3
#: μ and ε beyond these are as good as infinite.
_GREATEST_MU, _FARTHEST = 1e4, 600.0


@dataclass(frozen=True)
class GaussianFit:
    """The least μ that a curve implies, and how far the curve is from it.

    **Guarantee.** δ(ε) ≤ δ_μ(ε) + `delta` for every ε ≥ 0. `regret` compares with the curve that is
    proved, at the points where it was read.

    >>> from discreet import privacy
    >>> privacy.gaussian(2.0).gdp(regret=True)
    GaussianFit(mu=0.5, regret=0.0, delta=0.0)
    """

    mu: float
    regret: float
    delta: float


def fit(guarantee: Guarantee, delta: float) -> GaussianFit:
    """See `Guarantee.gdp`."""
    bags = alternatives(guarantee)
    slopes = [bag.gaussian for bag in bags if bag.gaussian is not None]
    if len(slopes) == len(bags):
        mu = max(slopes) * (1 + 1e-13 * any(bag.alone is None for bag in bags))
        return GaussianFit(mu, 0.0, delta)
    curve = cache(guarantee.delta)

    def excess(epsilon: float) -> float:
        return max(0.0, curve(epsilon) - delta)

    top, beyond = _end(guarantee, list(bags), delta)
    mu = max(beyond, _least_mu(excess, top)) if math.isfinite(beyond) else math.inf
    return GaussianFit(mu, _regret(curve, mu, top), delta)


def _end(guarantee: Guarantee, bags: list[Bag], delta: float) -> tuple[float, float]:
    """An ε up to which the curve has to be read, and a μ that is enough beyond it."""
    if max(bag.failure for bag in bags) > delta:
        return 0.0, math.inf
    worst = max(bag.worst_loss for bag in bags)
    if delta > 0 or worst <= _FARTHEST:
        end = worst if delta == 0 else min(worst, guarantee.epsilon(delta))
        return (end, 0.0) if end <= _FARTHEST else (0.0, math.inf)
    # Without an end there is a μ for the tail only if all that was run is Gaussian at heart.
    base = max(_gaussian_base(bag) for bag in bags)
    if not math.isfinite(base):
        return 0.0, math.inf
    # Nowhere does the curve need more than its base.
    return 0.0, base


def _gaussian_base(bag: Bag) -> float:
    """√Σμ² of what was run, without sampling, which only hides; ∞ if something is not Gaussian."""
    total = 0.0
    for part, count in bag.entries:
        mu = getattr(part, "mu", None)
        if mu is None and isinstance(part, SampledGuarantee) and part.unit.relation != "replace":
            mu = max((inner.gaussian or math.inf) for inner in alternatives(part.inner))
        total += count * (math.inf if mu is None else mu * mu)
    return math.sqrt(total) * (1 + 1e-13)


def _least_mu(excess: Callable[[float], float], top: float) -> float:
    """A μ with δ_μ above the curve everywhere on [0, top], near the least one."""
    if top == 0:
        return needed_mu(0.0, excess(0.0))
    points = np.linspace(0.0, top, _FIRST + 1).tolist()
    intervals = [(_enough(excess, a, b), a, b) for a, b in pairwise(points)]
    for _ in range(_MOST - _FIRST):
        intervals.sort()
        greatest, low, high = intervals[-1]
        least = max(needed_mu(at, excess(at)) for at in (low, high))
        if greatest <= least * (1 + _CLOSE):
            break
        middle = (low + high) / 2
        intervals[-1:] = [
            (_enough(excess, low, middle), low, middle),
            (_enough(excess, middle, high), middle, high),
        ]
    return max(mu for mu, _, _ in intervals)


def _enough(excess: Callable[[float], float], low: float, high: float) -> float:
    """A μ that is enough on an interval: both curves fall, so δ at its beginning against δ_μ at its
    end.
    """
    return needed_mu(high, excess(low))


def needed_mu(epsilon: float, delta: float) -> float:
    """The least μ with δ_μ(ε) ≥ δ, rounded up."""
    if delta <= 0:
        return 0.0
    log_delta = math.log(delta)

    def is_enough(mu: float) -> bool:
        return families.gaussian_log_delta(mu, epsilon) >= log_delta

    if not is_enough(_GREATEST_MU):
        return math.inf
    if is_enough(1e-12):
        return 1e-12
    mu, _ = bisect(is_enough, yes=_GREATEST_MU, no=1e-12, steps=60, middle=geometric_mean)
    return mu * (1 + 1e-12)


def _regret(curve: Callable[[float], float], mu: float, top: float) -> float:
    """The greatest of the moves on a grid that goes beyond the end of the curve, and closer around
    the greatest.
    """
    if not math.isfinite(mu):
        return 1.0

    def move(epsilon: float) -> float:
        gap = math.exp(families.gaussian_log_delta(mu, epsilon)) - curve(epsilon)
        return gap / (1 + math.exp(epsilon))

    low, high = 0.0, max(1.3 * top, mu)
    for points in (24, 6, 6):
        grid = np.linspace(low, high, points + 1).tolist()
        at = int(np.argmax([move(epsilon) for epsilon in grid]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, points)]
    return max(0.0, move(grid[at]))
