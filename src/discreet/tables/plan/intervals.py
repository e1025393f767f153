# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals that are valid for all data: of sums of noise, of means, of variances.

**Guarantee.** Each interval contains the exact number (of the bounded, weighted rows) with at least
the stated probability over the noise, on its own. Everything here reads released numbers and public
parameters only.

Why it holds: the distribution of a sum of noises does not depend on data, and
`NoiseVector.half_width` bounds its tail from above. A mean θ = S/N makes S − θN zero, so S̃ − θÑ is
such a sum. The θ for which it is not too large form a confidence set (Fieller 1954), and
`ratio_interval` returns an interval around it (compile.proof.md, § 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.exact import bisect, float_above
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution

__all__ = ["LinearForm", "NoiseVector", "combine_forms", "ratio_interval"]

Floats = npt.NDArray[np.float64]
#: A linear form: the coefficients of its coordinates.
LinearForm = Mapping[int, Fraction]
Items = tuple[tuple[int, Fraction], ...]

#: A margin far above the rounding errors here.
_SAFE = 1 + 1e-12
#: The points of the table of half-widths of a ratio.
_GRID = 256
_TURNS = 40


def combine_forms(*terms: tuple[Any, LinearForm]) -> dict[int, Fraction]:
    """Σ factor · form."""
    total: dict[int, Fraction] = {}
    for factor, form in terms:
        for place, weight in form.items():
            total[place] = total.get(place, Fraction(0)) + Fraction(factor) * weight
    return {place: weight for place, weight in total.items() if weight}


@dataclass(frozen=True)
class NoiseVector:
    """The independent noises on the coordinates of an answer, with the distribution of each."""

    distributions: tuple[NoiseDistribution, ...]

    def half_width(self, form: LinearForm, beta: float) -> float:
        """A number that |form of the noises| exceeds with probability at most β."""
        terms = [(abs(weight), self.distributions[place]) for place, weight in form.items() if weight]
        if not terms:
            return 0.0
        if len(terms) == 1:
            ((weight, distribution),) = terms
            return float_above(weight * distribution.tail_bound(beta))
        weights = [float(weight) for weight, _ in terms]
        scales = [float(weight) * distribution.scale for weight, distribution in terms]
        if all(isinstance(distribution, GaussianDistribution) for _, distribution in terms):
            # Each rounded noise is within one half of a Gaussian one.
            return (GaussianDistribution(1.0).guess(beta) * math.hypot(*scales) + sum(weights) / 2) * _SAFE
        if len(terms) <= 3 and all(
            isinstance(distribution, LaplaceDistribution) for _, distribution in terms
        ):
            # Each discrete Laplace noise is within one of a continuous one (compile.proof.md, § 6).
            quantile = (
                _two_laplaces(scales[0], scales[1], beta)
                if len(terms) == 2
                else _three_laplaces(max(scales), beta)
            )
            return (quantile + sum(weights)) * _SAFE
        return (
            sum(float(weight) * distribution.tail_bound(beta / len(terms)) for weight, distribution in terms)
            * _SAFE
        )

    def deviation(self, form: LinearForm) -> float:
        """The approximate standard deviation of a form."""
        variance = 0.0
        for place, weight in form.items():
            noise = self.distributions[place]
            factor = 2 if isinstance(noise, LaplaceDistribution) else 1
            variance += float(weight) ** 2 * noise.scale**2 * factor
        return math.sqrt(variance)


def _two_laplaces(scale: float, other: float, beta: float) -> float:
    """A t with P(|X + Y| > t) <= β for Laplace noises of scales a and b: (a² e^{-t/a} - b²
    e^{-t/b}) / (a² - b²).
    """
    narrow, wide = sorted((scale, other))

    def tail(t: float) -> float:
        # A wider Y has heavier tails, so both noises may be taken to have the greater scale.
        if narrow > 0.999 * wide:
            return (1 + t / (2 * wide)) * math.exp(-t / wide)
        part = narrow**2 * math.exp(-t / narrow) if narrow * 700 > t else 0.0
        return (wide**2 * math.exp(-t / wide) - part) / (wide**2 - narrow**2)

    return _quantile(tail, wide, beta)


def _three_laplaces(wide: float, beta: float) -> float:
    """The same for three noises of one scale a, with t = as: (1 + 5s/8 + s²/8) e^{-s}; smaller
    scales have lighter tails.
    """
    return wide * _quantile(lambda s: (1 + 0.625 * s + 0.125 * s * s) * math.exp(-s), 1.0, beta)


def _quantile(tail: Callable[[float], float], start: float, beta: float) -> float:
    """The least t with tail(t) <= β, rounded up."""
    low, high = 0.0, start
    while tail(high) > beta:
        low, high = high, 2 * high
    return bisect(lambda t: tail(t) <= beta, yes=high, no=low, steps=_TURNS)[0]


def ratio_interval(
    noise: NoiseVector,
    forms: tuple[LinearForm, LinearForm],
    values: tuple[Floats, Floats],
    reach: float,
    beta: float,
) -> tuple[Floats, Floats]:
    """An interval for θ = S/N, which is within ±reach; `forms` and `values` are those of S and N."""
    widths = _half_widths(noise, *(tuple(form.items()) for form in forms), reach, beta)
    tops, bottoms = values
    low = _left_end(tops, bottoms, widths, reach)
    high = -_left_end(-tops, bottoms, widths, reach)
    return low, high


@lru_cache(maxsize=64)
def _half_widths(noise: NoiseVector, top: Items, bottom: Items, reach: float, beta: float) -> Floats:
    """Increasing bounds: entry i bounds the half-width of S − θN for |θ| <= i · reach / GRID."""
    above, below = dict(top), dict(bottom)
    widths = np.empty(_GRID + 1)
    for i in range(_GRID + 1):
        theta = Fraction(reach) * i / _GRID
        widths[i] = max(
            noise.half_width(combine_forms((1, above), (sign * theta, below)), beta) for sign in (-1, 1)
        )
    return np.maximum.accumulate(widths)


def _left_end(tops: Floats, bottoms: Floats, widths: Floats, reach: float) -> Floats:
    """The least θ in ±reach with |S − θN| <= q(|θ|), or one below it; q increases with |θ|. Where N
    <= 0 it is -reach.

    Left of zero q decreases. So if θ is outside, everything is outside up to where the line S − θN
    meets q(θ); step there, and repeat. Right of zero the line decreases and q increases, so they
    meet once.
    """
    usable = bottoms > 0
    slope = np.where(usable, bottoms, 1.0)

    def q(theta: Floats) -> Floats:
        place = np.ceil(np.abs(theta) / reach * _GRID).astype(np.int64)
        return widths[np.minimum(place, _GRID)]

    theta = np.full(tops.shape, -reach)
    for _ in range(_TURNS):
        theta = np.maximum(theta, np.minimum((tops - q(theta)) / slope, 0.0))
    low, high = np.zeros(tops.shape), np.full(tops.shape, reach)
    for _ in range(_TURNS):
        middle = (low + high) / 2
        out = tops - middle * slope > q(middle)
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    beyond = (theta >= 0.0) & (tops > widths[0])
    return np.where(usable, np.where(beyond, low, theta), -reach)
