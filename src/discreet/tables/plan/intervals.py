# SPDX-License-Identifier: Apache-2.0
"""Intervals that hold what they are about, for all data: of sums of noise, of means, of variances.

**Guarantee.** Each interval contains the exact number (of the bounded, weighted rows) with at least the stated
probability over the noise, on its own. Everything here reads released numbers and public parameters only.

Why it holds: a sum of noises has a law that no data enter, and `NoiseVector.half` bounds its tail from above. A mean
θ = S/N makes S − θN zero, so that S̃ − θÑ is such a sum; the θ for which it is not too large are an interval that
covers (Fieller 1954), and `ratio_interval` returns a hull of them. compile.proof.md, § 6.
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
#: A linear form: the coefficient of each coordinate that enters it.
LinearForm = Mapping[int, Fraction]
Items = tuple[tuple[int, Fraction], ...]

_SAFE = 1 + 1e-12  # far more than the rounding of what is computed here
_GRID = 256  # points of the table of half-widths of a ratio
_TURNS = 40


def combine_forms(*terms: tuple[Any, LinearForm]) -> dict[int, Fraction]:
    """Σ factor · form."""
    found: dict[int, Fraction] = {}
    for factor, form in terms:
        for place, weight in form.items():
            found[place] = found.get(place, Fraction(0)) + Fraction(factor) * weight
    return {place: weight for place, weight in found.items() if weight}


@dataclass(frozen=True)
class NoiseVector:
    """The independent noises on the coordinates of an answer, one law each."""

    laws: tuple[NoiseDistribution, ...]

    def half_width(self, form: LinearForm, beta: float) -> float:
        """A number that |form of the noises| exceeds with probability β at most."""
        parts = [(abs(float(weight)), self.laws[place]) for place, weight in form.items() if weight]
        if not parts:
            return 0.0
        if len(parts) == 1:
            ((place, weight),) = ((place, weight) for place, weight in form.items() if weight)
            return float_above(abs(weight) * self.laws[place].tail_bound(beta))
        if all(isinstance(law, GaussianDistribution) for _, law in parts):
            spread = math.sqrt(sum((weight * law.scale) ** 2 for weight, law in parts))
            # each rounded noise is within one half of a Gaussian one
            return (
                GaussianDistribution(1.0).guess(beta) * spread + sum(weight for weight, _ in parts) / 2
            ) * _SAFE
        if len(parts) == 2 and all(isinstance(law, LaplaceDistribution) for _, law in parts):
            wide, narrow = sorted((weight * law.scale for weight, law in parts), reverse=True)
            # each discrete Laplace noise is within one of a continuous one (compile.proof.md, § 6)
            return (_two_laplaces(wide, narrow, beta) + sum(weight for weight, _ in parts)) * _SAFE
        if len(parts) == 3 and all(isinstance(law, LaplaceDistribution) for _, law in parts):
            wide = max(weight * law.scale for weight, law in parts)
            return (_three_laplaces(wide, beta) + sum(weight for weight, _ in parts)) * _SAFE
        return sum(weight * law.tail_bound(beta / len(parts)) for weight, law in parts) * _SAFE

    def deviation(self, form: LinearForm) -> float:
        """The standard deviation of a form, about."""
        variance = 0.0
        for place, weight in form.items():
            law = self.laws[place]
            variance += float(weight) ** 2 * law.scale**2 * (2 if isinstance(law, LaplaceDistribution) else 1)
        return math.sqrt(variance)


def _two_laplaces(wide: float, narrow: float, beta: float) -> float:
    """A t with P(|X + Y| > t) <= β for Laplace noises of those scales: (a² e^{-t/a} - b² e^{-t/b}) / (a² - b²)."""

    def tail(t: float) -> float:
        if narrow > 0.999 * wide:  # a wider Y has heavier tails: count both as the wider one
            return (1 + t / (2 * wide)) * math.exp(-t / wide)
        part = narrow**2 * math.exp(-t / narrow) if narrow * 700 > t else 0.0
        return (wide**2 * math.exp(-t / wide) - part) / (wide**2 - narrow**2)

    return _quantile(tail, wide, beta)


def _three_laplaces(wide: float, beta: float) -> float:
    """The same for three of one scale a, t = as: (1 + 5s/8 + s²/8) e^{-s}; narrower ones have lighter tails."""
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
    """Where θ = S/N lies, which is known to be within ±reach; `forms` and `values` are those of S and N."""
    widths = _half_widths(noise, *(tuple(form.items()) for form in forms), reach, beta)
    tops, bottoms = values
    low = _left_end(tops, bottoms, widths, reach)
    high = -_left_end(-tops, bottoms, widths, reach)
    return low, high


@lru_cache(maxsize=64)
def _half_widths(noise: NoiseVector, top: Items, bottom: Items, reach: float, beta: float) -> Floats:
    """At i: no less than the half-width of S − θN for every |θ| <= i · reach / GRID; it grows with i."""
    above, below = dict(top), dict(bottom)
    found = np.empty(_GRID + 1)
    for i in range(_GRID + 1):
        theta = Fraction(reach) * i / _GRID
        found[i] = max(
            noise.half_width(combine_forms((1, above), (sign * theta, below)), beta) for sign in (-1, 1)
        )
    return np.maximum.accumulate(found)


def _left_end(tops: Floats, bottoms: Floats, widths: Floats, reach: float) -> Floats:
    """The least θ in ±reach with |S − θN| <= q(|θ|), or one below it; q grows with |θ|. Where N <= 0: -reach.

    Left of zero q falls, so from a θ that is out everything is out up to where the line S − θN meets q(θ): step
    there, and again. Right of zero the line falls and q rises: they meet once.
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
