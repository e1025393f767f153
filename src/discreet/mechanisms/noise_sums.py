# SPDX-License-Identifier: Apache-2.0
"""Tail bounds of weighted sums of independent noises.

tail_bound_of_sum([(1.0, LaplaceDistribution(10.0)), (0.5, GaussianDistribution(8.0))], beta=0.05)

**Guarantee.** |Σ weight · noise| exceeds the bound with probability at most `beta`.

Why it holds: a rounded Gaussian noise is within one half of a Gaussian one, and a discrete Laplace
noise within one of a continuous one (tables/plan/compile.proof.md, § 6), so the sum is that of
continuous noises and of a rounding that is bounded. Sums of independent symmetric unimodal
variables spread if one of them does (Birnbaum 1948), so a scale may be exchanged for a greater one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc

from discreet.exact import bisect
from discreet.mechanisms.distributions import (
    GaussianDistribution,
    LaplaceDistribution,
    NoiseDistribution,
    TruncatedLaplace,
)

__all__ = ["deviation_of_sum", "tail_bound_of_laplaces", "tail_bound_of_sum", "tail_bounds_of_sums"]

#: A margin far above the rounding errors here.
_SAFE = 1 + 1e-12
#: Points at which Chernoff's bound is evaluated, and halvings of a bracket.
_POINTS, _TURNS = 48, 22
#: Terms of the Fourier series, until what it leaves out is small.
_TERMS = (256, 1024, 8192)
#: Up to that many equal Laplace noises the tail is a sum of gamma tails.
_MANY = 500
#: Scales of noises that are nearer than this factor are moved apart; one of that part of another is raised to it.
_APART, _NEGLIGIBLE, _LEAST_SCALE = 1.005, 1e-9, 1e-300
#: A margin above the rounding errors of terms that nearly cancel.
_ROUNDING = 1e-10
#: Halvings of many brackets at once.
_HALVINGS = 40
Floats: TypeAlias = npt.NDArray[np.float64]
Noise: TypeAlias = NoiseDistribution | TruncatedLaplace
Terms: TypeAlias = tuple[tuple[float, Noise], ...]
#: Scales of Laplace noises, and how many there are of each, the narrow ones first.
ScaleCounts: TypeAlias = tuple[tuple[float, int], ...]


def tail_bound_of_sum(terms: Iterable[tuple[float, Noise]], beta: float) -> float:
    """A number that |Σ weight · noise| exceeds with probability at most β; within parts in 10⁴ of
    the least one.

    >>> two = [(1.0, LaplaceDistribution(1e6)), (1.0, LaplaceDistribution(1e6))]
    >>> round(tail_bound_of_sum(two, 0.05) / 1e6, 3)
    4.113
    """
    return _bound(_in_order(terms), beta)


def tail_bounds_of_sums(terms: Sequence[tuple[Floats, Noise]], beta: float) -> Floats:
    """The same for many sums of the same noises at once, given by the absolute weights of each
    noise.

    It increases with every weight, and is up to 1 % above the least bound for up to three Laplace
    noises or any Gaussian ones.

    >>> weights = np.array([1.0, 2.0])
    >>> tail_bounds_of_sums([(weights, LaplaceDistribution(1e6))] * 2, 0.05).round(-4).tolist()
    [4120000.0, 8250000.0]
    """
    total: Floats = np.sum([weights for weights, _ in terms], axis=0)
    scaled = [weights * noise.scale for weights, noise in terms]
    if all(isinstance(noise, GaussianDistribution) for _, noise in terms):
        bounds = (
            GaussianDistribution(1.0).guess(beta) * np.sqrt(np.sum(np.square(scaled), axis=0)) + total / 2
        )
    elif len(terms) <= 3 and all(isinstance(noise, LaplaceDistribution) for _, noise in terms):
        bounds = _three_laplaces(scaled, beta) + total
    else:
        tails = [weights * noise.tail_bound(beta / len(terms)) for weights, noise in terms]
        bounds = np.sum(tails, axis=0)
    safe: Floats = bounds * _SAFE
    return safe


def tail_bound_of_laplaces(scales: Iterable[tuple[float, int]], beta: float) -> float:
    """A number that the absolute value of a sum of continuous Laplace noises exceeds with
    probability at most β; each scale comes with the number of noises that have it.

    >>> round(tail_bound_of_laplaces([(1.0, 16)], 0.05), 3)
    11.163
    """
    counts = Counter[float]()
    for scale, count in scales:
        if scale > 0:
            counts[scale] += count
    return _sum_of_laplaces(tuple(sorted(counts.items())), beta)


@lru_cache(maxsize=8192)
def _sum_of_laplaces(counts: ScaleCounts, beta: float) -> float:
    if not counts:
        return 0.0
    if sum(count for _, count in counts) == 1:
        return counts[0][0] * -math.log(beta) * _SAFE
    return _by_series(counts, 0.0, beta) * _SAFE


def deviation_of_sum(terms: Iterable[tuple[float, Noise]]) -> float:
    """The standard deviation of Σ weight · noise, without the little that rounding adds."""
    return math.sqrt(
        sum(
            (weight * noise.scale) ** 2 * (1 if isinstance(noise, GaussianDistribution) else 2)
            for weight, noise in terms
        )
    )


def _in_order(terms: Iterable[tuple[float, Noise]]) -> Terms:
    """Absolute weights in an order that depends on nothing else, so that equal sums are computed
    once.
    """
    used = [(abs(weight), noise) for weight, noise in terms if weight]
    return tuple(sorted(used, key=lambda term: (type(term[1]).__name__, term[0] * term[1].scale, term[0])))


@lru_cache(maxsize=8192)
def _bound(terms: Terms, beta: float) -> float:
    if not terms:
        return 0.0
    if len(terms) == 1:
        ((weight, noise),) = terms
        return weight * noise.tail_bound(beta) * _SAFE
    gaussian = [(weight, noise.scale) for weight, noise in terms if isinstance(noise, GaussianDistribution)]
    laplace = [(weight, noise.scale) for weight, noise in terms if isinstance(noise, LaplaceDistribution)]
    if len(gaussian) + len(laplace) < len(terms):
        return sum(weight * noise.tail_bound(beta / len(terms)) for weight, noise in terms) * _SAFE
    rounding = sum(weight for weight, _ in laplace) + sum(weight for weight, _ in gaussian) / 2
    deviation = math.hypot(*(weight * scale for weight, scale in gaussian)) if gaussian else 0.0
    if not laplace:
        return (GaussianDistribution(1.0).guess(beta) * deviation + rounding) * _SAFE
    counts = tuple(sorted(Counter(weight * scale for weight, scale in laplace).items()))
    return (_by_series(counts, deviation, beta) + rounding) * _SAFE


def _by_formula(counts: ScaleCounts, deviation: float, beta: float) -> float:
    """The best of what is quickly computed for Laplace noises of these scales and one Gaussian
    noise.
    """
    best = _by_moments(counts, deviation, beta)
    if deviation:
        return best
    many = sum(count for _, count in counts)
    if many == 2:
        return min(best, _two_laplaces(counts[0][0], counts[-1][0], beta))
    return min(best, _equal_laplaces(many, beta) * counts[-1][0])


def _by_series(counts: ScaleCounts, deviation: float, beta: float) -> float:
    """The quantile by the Fourier series of the distribution on a circle of circumference 2A.

    P(|S| > t) <= 1 - t/A - (2/π) Σ_{k>=1} φ(πk/A) sin(πkt/A) / k + P(|S| > 2A - t), where φ(u) =
    exp(-(σu)²/2) Π 1/(1 + (bu)²) is positive and decreasing. Where (bu)² >= 1 for the widest noise,
    φ(ru) <= 2 φ(u)/r² for r >= 1. So the terms beyond K add at most
    (2/π) 2 φ(πK/A) K² Σ_{k>K} k⁻³ <= (2/π) φ(πK/A).
    """
    start = _by_formula(counts, deviation, beta)
    many, widest = sum(count for _, count in counts), counts[-1][0]
    if not deviation and (many == 2 or (len(counts) == 1 and many <= _MANY)):
        # The formula is exact.
        return start
    spare = _by_moments(counts, deviation, 1e-6 * beta)
    around = (start + spare) / 2 * _SAFE
    for terms in _TERMS:
        order = np.arange(1, terms + 1)
        frequency = math.pi / around * order
        cumulant = (deviation * frequency) ** 2 / 2
        for scale, count in counts:
            cumulant += count * np.log1p(np.square(scale * frequency))
        error = 2 * math.exp(-float(cumulant[-1])) / math.pi
        if error <= 1e-4 * beta and widest * frequency[-1] >= 1:
            break
    else:
        return start
    coefficients = np.exp(-cumulant) / order * (2 / math.pi)
    error += 1e-6 * beta + 1e-12

    def tail(t: float) -> float:
        return 1 - t / around - float(coefficients @ np.sin(frequency * t)) + error

    return (
        start if tail(start) > beta else bisect(lambda t: tail(t) <= beta, yes=start, no=0.0, steps=_TURNS)[0]
    )


def _by_moments(counts: ScaleCounts, deviation: float, beta: float) -> float:
    """Chernoff's bound: (K(s) + ln(2/β)) / s with K(s) = -Σ ln(1 - (bs)²) + (σs)²/2, at the best of
    some s.
    """
    s = (
        np.concatenate([np.geomspace(1e-4, 0.5, _POINTS), 1 - np.geomspace(1e-6, 0.5, _POINTS)])
        / counts[-1][0]
    )
    cumulant: Any = (deviation * s) ** 2 / 2
    for scale, count in counts:
        cumulant -= count * np.log1p(-np.square(scale * s))
    return float(((cumulant + math.log(2 / beta)) / s).min()) * _SAFE


@lru_cache(maxsize=1024)
def _equal_laplaces(n: int, beta: float) -> float:
    """A t with P(|X₁ + … + Xₙ| > t) <= β for Laplace noises of scale 1.

    Their sum is the difference of two gamma variables. Its tail is 2 Σ_{k<n} C(n-1+k, k) 2^-(n+k)
    Q(n-k, t), with Q the regularised upper incomplete gamma function.
    """
    k = np.arange(n)
    if n > _MANY:
        # The weights would be too small for floats.
        return math.inf
    weights = np.cumprod(np.concatenate([[0.5**n], (n - 1 + k[1:]) / (2.0 * k[1:])]))
    return _quantile(lambda t: 2 * float(weights @ gammaincc(n - k, t)) * (1 + 1e-9), float(n), beta)


def _two_laplaces(first: float, second: float, beta: float) -> float:
    """A t with P(|X + Y| > t) <= β for scales a and b: (a² e^{-t/a} - b² e^{-t/b}) / (a² - b²)."""
    narrow, wide = sorted((first, second))

    def tail(t: float) -> float:
        # Close scales are taken to be equal to the greater one.
        if narrow > 0.999 * wide:
            return (1 + t / (2 * wide)) * math.exp(-t / wide)
        part = narrow**2 * math.exp(-t / narrow) if narrow * 700 > t else 0.0
        return (wide**2 * math.exp(-t / wide) - part) / (wide**2 - narrow**2)

    return _quantile(tail, wide, beta)


def _three_laplaces(scales: Sequence[Floats], beta: float) -> Floats:
    """The t with P(|X + Y + Z| > t) <= β, rounded up, for up to three Laplace noises and many
    scales.

    For different scales a, b, c it is the sum of a⁴ e^{-t/a} / ((a² - b²)(a² - c²)) and the same
    for b and c. Wider noise has heavier tails, so scales that are nearly equal may be moved apart.
    """
    narrow, middle, wide = np.sort([*scales, *([np.zeros_like(scales[0])] * (3 - len(scales)))], axis=0)
    widest = np.maximum(wide, _LEAST_SCALE)
    narrow = np.maximum(narrow, widest * _NEGLIGIBLE)
    middle = np.maximum(middle, narrow * _APART)
    wide = np.maximum(widest, middle * _APART)
    ordered = (narrow, middle, wide)
    weights = [
        math.prod(1 / (1 - (other / scale) ** 2) for other in ordered if other is not scale)
        for scale in ordered
    ]

    def tail(t: Floats) -> Floats:
        parts = [weight * np.exp(-t / scale) for weight, scale in zip(weights, ordered, strict=True)]
        sizes: Floats = np.sum(parts, axis=0) + _ROUNDING * np.max(np.abs(parts), axis=0)
        return sizes

    # Three equal scales: (1 + 5s/8 + s²/8) e^{-s}.
    equal = _quantile(lambda s: (1 + 0.625 * s + 0.125 * s * s) * math.exp(-s), 1.0, beta)
    low: Floats = np.zeros_like(wide)
    high: Floats = equal * wide
    for _ in range(_HALVINGS):
        t = (low + high) / 2
        is_above = tail(t) > beta
        low, high = np.where(is_above, t, low), np.where(is_above, high, t)
    return high


def _quantile(tail: Callable[[float], float], start: float, beta: float) -> float:
    """The least t with tail(t) <= β, rounded up."""
    low, high = 0.0, start
    while tail(high) > beta:
        low, high = high, 2 * high
    return bisect(lambda t: tail(t) <= beta, yes=high, no=low, steps=_TURNS)[0]
