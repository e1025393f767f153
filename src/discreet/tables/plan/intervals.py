# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals that are valid for all data: of sums of noise, of means, of variances.

**Guarantee.** Each interval contains the exact number (of the bounded, weighted rows) with at least
the stated probability over the noise, on its own. Everything here reads released numbers and public
parameters only.

Why it holds: the distribution of a sum of noises does not depend on data, and
`mechanisms/noise_sums.py` bounds its tail from above. A mean θ = S/N makes S − θN zero, so S̃ − θÑ
is such a sum. The θ for which it is not too large form a confidence set (Fieller 1954), and
`ratio_interval` returns an interval around it (compile.proof.md, § 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.exact import float_above
from discreet.mechanisms.distributions import GaussianDistribution, NoiseDistribution, TruncatedLaplace
from discreet.mechanisms.noise_sums import (
    deviation_of_sum,
    tail_bound_of_laplaces,
    tail_bound_of_sum,
    tail_bounds_of_sums,
)

__all__ = [
    "JointNoise",
    "LinearForm",
    "NoiseVector",
    "TableNoise",
    "combine_forms",
    "ratio_interval",
    "variance_interval",
]

Floats = npt.NDArray[np.float64]
#: A linear form: the coefficients of its coordinates.
LinearForm = Mapping[int, Fraction]
Items = tuple[tuple[int, Fraction], ...]

#: The points of the table of half-widths of a ratio, and the steps that find an end of its
#: interval.
_GRID, _STEPS = 256, 40
#: How often the bound on a variance is narrowed by the bound itself.
_ROUNDS = 3
#: A margin far above the rounding errors here.
_SAFE = 1 + 1e-12
#: The steps to which coefficients of Laplace noises are rounded up.
_STEPS_OF_WEIGHTS = 32


def combine_forms(*terms: tuple[Fraction | int, LinearForm]) -> dict[int, Fraction]:
    """Σ factor · form."""
    total: dict[int, Fraction] = {}
    for factor, form in terms:
        for place, weight in form.items():
            total[place] = total.get(place, Fraction(0)) + Fraction(factor) * weight
    return {place: weight for place, weight in total.items() if weight}


class JointNoise(Protocol):
    """The noises on the coordinates of an answer; those of different coordinates are independent."""

    def __hash__(self) -> int:
        """Equal noises have equal hashes, so that their bounds are computed once."""

    @property
    def word(self) -> str:
        """What noise it is."""

    def half_width(self, form: LinearForm, beta: float) -> float:
        """A number that |form of the noises| exceeds with probability at most β."""

    def half_widths(self, coefficients: Mapping[int, Floats], beta: float) -> Floats:
        """The same for many forms, given by the absolute coefficients of each coordinate; it
        increases with each of them.
        """

    def deviation(self, form: LinearForm) -> float:
        """The approximate standard deviation of a form."""


@dataclass(frozen=True)
class NoiseVector:
    """Noises on whole numbers, with the distribution of each."""

    distributions: tuple[NoiseDistribution | TruncatedLaplace, ...]

    @property
    def word(self) -> str:
        """What noise it is."""
        return "Gaussian" if isinstance(self.distributions[0], GaussianDistribution) else "Laplace"

    def half_width(self, form: LinearForm, beta: float) -> float:
        """A number that |form of the noises| exceeds with probability at most β."""
        terms = [(abs(weight), self.distributions[place]) for place, weight in form.items() if weight]
        if len(terms) == 1:
            # The bound of a count stays a whole number.
            ((weight, distribution),) = terms
            return float_above(weight * distribution.tail_bound(beta))
        return tail_bound_of_sum([(float(weight), distribution) for weight, distribution in terms], beta)

    def half_widths(self, coefficients: Mapping[int, Floats], beta: float) -> Floats:
        """The same for many forms, given by the absolute coefficients of each coordinate; it
        increases with each of them.
        """
        terms = [(weights, self.distributions[place]) for place, weights in coefficients.items()]
        return tail_bounds_of_sums(terms, beta)

    def deviation(self, form: LinearForm) -> float:
        """The approximate standard deviation of a form."""
        return deviation_of_sum(
            [(float(weight), self.distributions[place]) for place, weight in form.items()]
        )


@dataclass(frozen=True)
class TableNoise:
    """Sums of rounded Gaussian noises, as on the cells of a table that is computed from residuals.

    `variances` are those of the Gaussian noises, and `roundings` the most that rounding adds.

    **Guarantee.** Each coordinate is within its rounding of a Gaussian variable of its variance.
    """

    variances: tuple[float, ...]
    roundings: tuple[float, ...]

    @property
    def word(self) -> str:
        """What noise it is."""
        return "Gaussian"

    def half_width(self, form: LinearForm, beta: float) -> float:
        """A number that |form of the noises| exceeds with probability at most β."""
        weights = {place: np.array(abs(float(weight))) for place, weight in form.items()}
        return float(self.half_widths(weights, beta)) if weights else 0.0

    def half_widths(self, coefficients: Mapping[int, Floats], beta: float) -> Floats:
        """The same for many forms, given by the absolute coefficients of each coordinate."""
        squares = [np.square(weights) * self.variances[at] for at, weights in coefficients.items()]
        rounding = [weights * self.roundings[at] for at, weights in coefficients.items()]
        normal = GaussianDistribution(1.0).guess(beta)
        widths: Floats = (normal * np.sqrt(np.sum(squares, axis=0)) + np.sum(rounding, axis=0)) * _SAFE
        return widths

    def deviation(self, form: LinearForm) -> float:
        """The standard deviation of a form, without the little that rounding adds."""
        return float(sum(float(weight) ** 2 * self.variances[at] for at, weight in form.items()) ** 0.5)


@dataclass(frozen=True)
class PooledNoise:
    """Sums of many discrete Laplace noises, as on the cells of a table that is a least-squares
    estimate.

    `terms` are, for each coordinate, the scales of the noises times their coefficients, the
    coefficients, and how many noises have them.

    **Guarantee.** Each coordinate is a sum of independent discrete Laplace noises with these terms.
    """

    terms: tuple[tuple[tuple[float, float, int], ...], ...]

    @property
    def word(self) -> str:
        """What noise it is."""
        return "Laplace"

    def half_width(self, form: LinearForm, beta: float) -> float:
        """A number that |form of the noises| exceeds with probability at most β."""
        return self._bound(tuple((at, abs(float(weight))) for at, weight in form.items()), beta)

    def half_widths(self, coefficients: Mapping[int, Floats], beta: float) -> Floats:
        """The same for many forms, given by the absolute coefficients of each coordinate.

        The bound grows in proportion to all coefficients, and with each of them. So each is rounded
        up to a step of the greatest one, and bounds of equal steps are computed once.
        """
        places = tuple(coefficients)
        weights = np.stack(np.broadcast_arrays(*(coefficients[at] for at in places)), axis=-1)
        greatest = np.max(weights, axis=-1)
        steps = np.ceil(weights / np.where(greatest > 0, greatest, 1.0)[..., None] * _STEPS_OF_WEIGHTS)
        rows, inverse = np.unique(steps.reshape(-1, len(places)), axis=0, return_inverse=True)
        bounds = np.array(
            [
                self._bound(tuple(zip(places, (row / _STEPS_OF_WEIGHTS).tolist(), strict=True)), beta)
                for row in rows
            ]
        )
        widths: Floats = bounds[inverse.ravel()].reshape(greatest.shape) * greatest * _SAFE
        return widths

    def deviation(self, form: LinearForm) -> float:
        """The standard deviation of a form."""
        squares = (
            float(weight) ** 2 * 2 * count * scale**2
            for at, weight in form.items()
            for scale, _, count in self.terms[at]
        )
        return float(sum(squares) ** 0.5)

    def _bound(self, weights: tuple[tuple[int, float], ...], beta: float) -> float:
        # Discrete Laplace noise is within one of a continuous one (compile.proof.md, § 6).
        rounding = sum(
            weight * coefficient * count for at, weight in weights for _, coefficient, count in self.terms[at]
        )
        scales = [(weight * scale, count) for at, weight in weights for scale, _, count in self.terms[at]]
        return (tail_bound_of_laplaces(scales, beta) + rounding) * _SAFE


def ratio_interval(
    noise: JointNoise,
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


def variance_interval(  # noqa: PLR0917 - as ratio_interval, with the means
    noise: JointNoise,
    forms: tuple[LinearForm, ...],
    values: tuple[Floats, ...],
    means: tuple[Floats, Floats],
    reach: float,
    beta: float,
) -> tuple[Floats, Floats]:
    """An interval for v = Q/N − θ², where θ = S/N is between `means`; `forms` and `values` are
    those of N, S and Q, the sums of 1, x and x², with |x| <= reach.

    At the true θ and v, Q − 2θS + (θ² − v)N is 0, so the same of the noisy sums is a sum of noises.
    Its bound increases with the absolute coefficients, whose greatest values over all θ and v that
    are still possible are used. It fails with probability at most β, if θ is between the means.
    """
    rows, first, second = values
    left, right = means
    usable = rows > 0
    slope = np.where(usable, rows, 1.0)
    best = np.clip(first / slope, left, right)

    def squares(theta: Floats) -> Floats:
        return second - 2 * theta * first + theta**2 * rows

    nearest = np.where((left <= 0) & (right >= 0), 0.0, np.minimum(left**2, right**2))
    low, high = np.zeros(rows.shape), np.maximum(reach**2 - nearest, 0.0)
    for _ in range(_ROUNDS):
        bound = noise.half_widths(_greatest_coefficients(forms, (left, right), (low, high)), beta)
        low = np.maximum(low, (squares(best) - bound) / slope)
        high = np.minimum(high, (np.maximum(squares(left), squares(right)) + bound) / slope)
        # No variance fits the noisy sums: all that is possible at one end.
        low, high = np.minimum(low, reach**2), np.maximum(high, 0.0)
        low, high = np.minimum(low, high), np.maximum(low, high)
    return np.where(usable, low, 0.0), np.where(usable, high, reach**2)


def _greatest_coefficients(
    forms: tuple[LinearForm, ...], means: tuple[Floats, Floats], variances: tuple[Floats, Floats]
) -> dict[int, Floats]:
    """The greatest absolute coefficients of Q − 2θS + (θ² − v)N, for θ and v in these intervals."""
    count, total, squares = forms
    greatest: dict[int, Floats] = {}
    for place in {*count, *total, *squares}:
        n, s, q = (float(form.get(place, 0)) for form in (count, total, squares))
        # A parabola in θ is greatest at an end or at its vertex, and what is linear in v at an end.
        thetas = [*means, *([np.clip(s / n, *means)] if n else [])]
        absolute = [np.abs(q - 2 * theta * s + (theta**2 - v) * n) for theta in thetas for v in variances]
        greatest[place] = np.max(absolute, axis=0)
    return greatest


@lru_cache(maxsize=64)
def _half_widths(noise: JointNoise, top: Items, bottom: Items, reach: float, beta: float) -> Floats:
    """Increasing bounds: entry i bounds the half-width of S − θN for |θ| <= i · reach / GRID."""
    above, below = dict(top), dict(bottom)
    ends = np.arange(_GRID + 1) / _GRID * reach
    starts = np.maximum(ends - reach / _GRID, 0.0)
    widths = [_cell_widths(noise, (above, below), (sign * starts, sign * ends), beta) for sign in (-1, 1)]
    grown: Floats = np.maximum.accumulate(np.maximum(*widths))
    return grown


def _cell_widths(
    noise: JointNoise, forms: tuple[LinearForm, LinearForm], cells: tuple[Floats, Floats], beta: float
) -> Floats:
    """Bounds on S − θN for all θ between two ends: a coefficient is a line in θ, so it is greatest
    at an end.
    """
    top, bottom = forms
    coefficients: dict[int, Floats] = {}
    for place in {*top, *bottom}:
        s, n = float(top.get(place, 0)), float(bottom.get(place, 0))
        coefficients[place] = np.max([np.abs(s - theta * n) for theta in cells], axis=0)
    return noise.half_widths(coefficients, beta)


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
    for _ in range(_STEPS):
        theta = np.maximum(theta, np.minimum((tops - q(theta)) / slope, 0.0))
    low, high = np.zeros(tops.shape), np.full(tops.shape, reach)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        out = tops - middle * slope > q(middle)
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    beyond = (theta >= 0.0) & (tops > widths[0])
    return np.where(usable, np.where(beyond, low, theta), -reach)
