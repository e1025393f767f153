# SPDX-License-Identifier: Apache-2.0
"""A proved bound on δ between Laplace or Gaussian noise of two locations and scales.

    delta_bound(laplace, epsilon=1.0, shift=0.9, stretch=0.01)

**Guarantee.** The result is at least the supremum of P(S) - e^ε Q(S) over all events S and all
pairs P = distribution of Z, Q = distribution of e^u Z + v with |u| <= stretch and |v| <= shift ·
min(1, e^u).

Why it holds: for each u the greatest |v| is the worst, because both densities are symmetric and
unimodal. Between two values of u the divergence is at most that at one of them with ε reduced by
their distance (smooth.proof.md, §6). Rounding adds less than `_ROUNDING` of the two probabilities.
What would break it: a density that is not unimodal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from scipy.special import ndtr

CELLS = 32
_ROUNDING = 1e-12

Pieces = Iterator[tuple[float, float]]
#: (ε, scale of P, location of Q, scale of Q) -> sup_S P(S) - e^ε Q(S), rounded up
Divergence = Callable[[float, float, float, float], float]


def delta_bound(
    divergence: Divergence, *, epsilon: float, shift: float, stretch: float, cells: int = CELLS
) -> float:
    """See above."""
    step = stretch / cells * (1 + 1e-12)
    reduced_epsilon = epsilon - step
    stretches = [stretch * i / cells for i in range(cells)]
    wider = (divergence(reduced_epsilon, 1.0, shift, math.exp(u)) for u in stretches)
    narrower = (divergence(reduced_epsilon, math.exp(u + step), shift, 1.0) for u in stretches)
    return min(1.0, max(*wider, math.exp(step) * max(narrower)))


def laplace(epsilon: float, scale: float, middle: float, other: float) -> float:
    """Laplace of that scale about 0 against Laplace of scale `other` about `middle` >= 0."""
    p, q = 1 / scale, 1 / other
    at_zero = math.log(other / scale) + middle * q - epsilon
    at_middle = at_zero - middle * (p + q)
    segments = [
        (-math.inf, 0.0, at_zero, p - q, 0.0),
        (0.0, middle, at_zero, -p - q, 0.0),
        (middle, math.inf, at_middle, q - p, middle),
    ]
    intervals = (_above(*segment) for segment in segments)
    return _gap(
        epsilon,
        [interval for interval in intervals if interval is not None],
        lambda low, high: _laplace_mass(low * p, high * p),
        lambda low, high: _laplace_mass((low - middle) * q, (high - middle) * q),
    )


def gaussian(epsilon: float, scale: float, middle: float, other: float) -> float:
    """Normal of that standard deviation about 0 against normal of deviation `other` about `middle`
    >= 0.
    """
    curve = (1 / other**2 - 1 / scale**2) / 2
    slope, level = -middle / other**2, middle**2 / (2 * other**2) + math.log(other / scale) - epsilon
    return _gap(
        epsilon,
        _above_parabola(curve, slope, level),
        lambda low, high: _normal_mass(low / scale, high / scale),
        lambda low, high: _normal_mass((low - middle) / other, (high - middle) / other),
    )


def _above(low: float, high: float, level: float, slope: float, origin: float) -> tuple[float, float] | None:
    """The part of [low, high] on which the line level + slope (x - origin) is above zero."""
    if slope == 0:
        return (low, high) if level > 0 else None
    root = origin - level / slope
    low, high = (max(low, root), high) if slope > 0 else (low, min(high, root))
    return (low, high) if low < high else None


def _above_parabola(curve: float, slope: float, level: float) -> list[tuple[float, float]]:
    """The intervals on which curve x² + slope x + level is above zero; slope <= 0."""
    if curve == 0:
        interval = _above(-math.inf, math.inf, level, slope, 0.0)
        return [] if interval is None else [interval]
    inside = slope * slope - 4 * curve * level
    if inside <= 0:
        return [(-math.inf, math.inf)] if curve > 0 else []
    pivot = (math.sqrt(inside) - slope) / 2
    low, high = sorted((level / pivot, pivot / curve))
    return [(low, high)] if curve < 0 else [(-math.inf, low), (high, math.inf)]


def _gap(
    epsilon: float,
    intervals: list[tuple[float, float]],
    mass: Callable[[float, float], float],
    other_mass: Callable[[float, float], float],
) -> float:
    """P(S) - e^ε Q(S) of the set S of these pieces, rounded up."""
    p = math.fsum(mass(*interval) for interval in intervals)
    scaled_q = math.exp(epsilon) * math.fsum(other_mass(*interval) for interval in intervals)
    return max(0.0, p - scaled_q) + _ROUNDING * (p + scaled_q)


def _laplace_mass(low: float, high: float) -> float:
    if high <= 0:
        return (math.exp(high) - math.exp(low)) / 2
    if low >= 0:
        return (math.exp(-low) - math.exp(-high)) / 2
    return 1 - (math.exp(low) + math.exp(-high)) / 2


def _normal_mass(low: float, high: float) -> float:
    return float(ndtr(-low) - ndtr(-high)) if low > 0 else float(ndtr(high) - ndtr(low))
