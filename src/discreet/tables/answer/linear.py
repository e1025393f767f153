# SPDX-License-Identifier: Apache-2.0
"""The noise of released numbers as linear combinations of independent noises.

A count or a sum is its exact value plus a linear form of noises that were drawn for its group
alone. Sums, differences and multiples of such numbers are of this kind again, so their intervals
are computed from the noise itself and need no union bound: twelve months together are off by √12
times the noise of one month, not by twelve times.

**Guarantee.** Everything here is post-processing of released numbers and public parameters.
`half_width(form, beta)` is exceeded by the absolute value of the form's noise with probability at
most `beta`.

Why it holds: noises of different draws, groups or places are independent; equal ones are the same
coordinate and add up in the form. The tail of a sum of independent symmetric unimodal noises grows
with the absolute weight of each (Birnbaum 1948), which is what makes the cells of `quotient_ends`
sound. Cells of one cube have noises with covariances: their sum is a Gaussian noise, whose
deviation is a convex function of the weights, so that between two forms it is greatest at one of
them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from discreet.json_types import JsonObject, JsonValue
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution, NoiseDistribution
from discreet.mechanisms.noise_sums import deviation_of_sum, tail_bound_of_sum

__all__ = [
    "CellNoise",
    "CombinedNoise",
    "CorrelatedCells",
    "DrawnNoise",
    "Form",
    "add_forms",
    "deviation",
    "greatest_half_width",
    "half_width",
    "quotient_ends",
    "scale_form",
]

_KINDS: dict[str, type[NoiseDistribution]] = {
    "laplace": LaplaceDistribution,
    "gaussian": GaussianDistribution,
}
#: Cells of the search for an end of a quotient's interval, the length of the first in half-widths,
#: and halvings of the last.
_CELLS, _COARSE, _HALVINGS = 64, 0.25, 4
#: Of more cells of one cube, covariances are not computed.
_MANY_CELLS = 64
#: A margin far above the rounding errors here.
_SAFE = 1 + 1e-12


@dataclass(frozen=True)
class NoiseCoordinate:
    """One noise that was drawn: in which draw, for which group, at which place of its vector."""

    draw: str
    group: int
    place: int
    distribution: NoiseDistribution


class CorrelatedCells(Protocol):
    """The noises of the cells of many tables, sums of Gaussian noises with known covariances."""

    def covariance(self, one: Hashable, other: Hashable) -> float:
        """The covariance of the noises of two cells."""

    def rounding(self, cell: Hashable) -> float:
        """How far the noise of a cell is from a Gaussian one, at most."""


@dataclass(frozen=True)
class CellNoise:
    """The noise of a cell that has noise in common with other cells of the same draw."""

    draw: str
    cell: Hashable
    source: CorrelatedCells = field(compare=False, repr=False)


#: The weight of each noise.
Form: TypeAlias = Mapping[NoiseCoordinate | CellNoise, float]


@dataclass(frozen=True)
class DrawnNoise:
    """The noise of one column as it was drawn: the same form for each group, on noises of its own.

    `draw` tells two draws apart; it is random and says nothing else. `terms` are the place, the
    weight and the distribution of each noise, and `groups` the number of the group that each row
    shows.
    """

    draw: str
    terms: tuple[tuple[int, float, NoiseDistribution], ...]
    groups: tuple[int, ...]

    def form(self, row: int) -> Form:
        """The noise of one row."""
        group = self.groups[row]
        return {
            NoiseCoordinate(self.draw, group, place, distribution): weight
            for place, weight, distribution in self.terms
        }

    def take(self, rows: Sequence[int]) -> DrawnNoise:
        """The noise of some of the rows."""
        return DrawnNoise(self.draw, self.terms, tuple(self.groups[row] for row in rows))

    def to_dict(self) -> JsonObject:
        """Everything, as plain JSON types."""
        terms: list[JsonValue] = [
            [place, weight, _kind(noise), noise.scale] for place, weight, noise in self.terms
        ]
        everything = self.groups == tuple(range(len(self.groups)))
        return {
            "draw": self.draw,
            "terms": terms,
            "groups": len(self.groups) if everything else list(self.groups),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DrawnNoise:
        """What `to_dict` wrote."""
        terms = tuple(
            (int(place), float(weight), _KINDS[kind](float(scale)))
            for place, weight, kind, scale in stored["terms"]
        )
        groups = stored["groups"]
        return cls(
            str(stored["draw"]), terms, tuple(range(groups) if isinstance(groups, int) else map(int, groups))
        )


@dataclass(frozen=True)
class CombinedNoise:
    """The noise of a computed column: a form for each row."""

    forms: tuple[Form, ...]

    def form(self, row: int) -> Form:
        """The noise of one row."""
        return self.forms[row]

    def take(self, rows: Sequence[int]) -> CombinedNoise:
        """The noise of some of the rows."""
        return CombinedNoise(tuple(self.forms[row] for row in rows))


def add_forms(*terms: tuple[float, Form]) -> Form:
    """Σ factor · form."""
    total: dict[NoiseCoordinate | CellNoise, float] = {}
    for factor, form in terms:
        for coordinate, weight in form.items():
            total[coordinate] = total.get(coordinate, 0.0) + factor * weight
    return {coordinate: weight for coordinate, weight in total.items() if weight}


def scale_form(form: Form, factor: float) -> Form:
    """factor · form."""
    return add_forms((factor, form))


def half_width(form: Form, beta: float) -> float:
    """A number that |Σ weight · noise| exceeds with probability at most β."""
    return greatest_half_width([form], beta)


def greatest_half_width(forms: Sequence[Form], beta: float) -> float:
    """The same for every form between some forms."""
    weights: dict[NoiseCoordinate, float] = {}
    for form in forms:
        for at, weight in form.items():
            if isinstance(at, NoiseCoordinate):
                weights[at] = max(weights.get(at, 0.0), abs(weight))
    terms = [(weight, at.distribution) for at, weight in weights.items()]
    parts = [_cells_of(form) for form in forms]
    spread, rounding = max(part[0] for part in parts), max(part[1] for part in parts)
    if not spread:
        return tail_bound_of_sum(terms, beta)
    if not terms:
        return (GaussianDistribution(1.0).guess(beta) * spread + rounding) * _SAFE
    # A Gaussian noise in steps so fine that its own rounding is that of the cells, or next to nothing.
    step = max(2 * rounding, spread * 2.0**-30)
    return tail_bound_of_sum([*terms, (step, GaussianDistribution(spread / step))], beta)


def deviation(form: Form) -> float:
    """The standard deviation of Σ weight · noise, approximately."""
    independent = deviation_of_sum(
        (weight, at.distribution) for at, weight in form.items() if isinstance(at, NoiseCoordinate)
    )
    return math.hypot(independent, _cells_of(form)[0])


def _cells_of(form: Form) -> tuple[float, float]:
    """The deviation of the cells of cubes in a form, and what rounding adds at most."""
    draws: dict[str, list[tuple[CellNoise, float]]] = {}
    for at, weight in form.items():
        if isinstance(at, CellNoise):
            draws.setdefault(at.draw, []).append((at, weight))
    variance = rounding = 0.0
    for cells in draws.values():
        rounding += sum(abs(weight) * at.source.rounding(at.cell) for at, weight in cells)
        if len(cells) > _MANY_CELLS:
            # Whatever the covariances are, deviations add up at most.
            variance += (
                sum(abs(weight) * math.sqrt(at.source.covariance(at.cell, at.cell)) for at, weight in cells)
                ** 2
            )
            continue
        for place, (one, weight) in enumerate(cells):
            variance += weight**2 * one.source.covariance(one.cell, one.cell)
            for other, beside in cells[:place]:
                variance += 2 * weight * beside * one.source.covariance(one.cell, other.cell)
    return math.sqrt(max(variance, 0.0)), rounding


def quotient_ends(
    top: tuple[float, Form], bottom: tuple[float, Form], beta: float
) -> tuple[float, float] | None:
    """An interval for the quotient of two exact numbers, from their released values and noises.

    It contains θ = S/N with probability at least 1 - β (Fieller 1954): at the true θ the noise of
    S̃ - θÑ alone is left, and |S̃ - θÑ| is at most its half-width q(θ). The interval holds all θ
    for which that is so. None if they reach infinity.

    The θ outside are found cell by cell. In a cell each weight of S̃ - θÑ is largest at one of its
    ends, and q increases with each weight, so a cell where |S̃ - θÑ| is above that q holds no θ of
    the set.
    """
    (numerator, form), (denominator, below) = top, bottom
    if not denominator or half_width(below, beta) >= abs(denominator):
        return None
    estimate = numerator / denominator
    step = half_width(add_forms((1.0, form), (-estimate, below)), beta) / abs(denominator)
    low, high = (_quotient_end(top, bottom, estimate, sign * step, beta) for sign in (-1, 1))
    return None if low is None or high is None else (low, high)


def _quotient_end(
    top: tuple[float, Form], bottom: tuple[float, Form], start: float, step: float, beta: float
) -> float | None:
    """The near side of the first cell from which on all θ are outside.

    Cells grow until all beyond is outside; those that may hold a θ are then halved.
    """

    def farthest(near: float, far: float, halvings: int) -> float | None:
        if not _may_hold(near, far, top, bottom, beta):
            return None
        if not halvings:
            return far
        middle = (near + far) / 2
        beyond = farthest(middle, far, halvings - 1)
        return farthest(near, middle, halvings - 1) if beyond is None else beyond

    cells, near = [], start
    for number in range(_CELLS):
        far = near + step * max(_COARSE, _COARSE * 1.5 ** (number - 1 / _COARSE))
        if _may_hold(near, far, top, bottom, beta):
            cells.append((near, far))
        elif _is_outside_from(near, top, bottom, beta):
            ends = (farthest(near, far, _HALVINGS) for near, far in reversed(cells))
            return next((end for end in ends if end is not None), start)
        near = far
    return None


def _may_hold(
    near: float, far: float, top: tuple[float, Form], bottom: tuple[float, Form], beta: float
) -> bool:
    """Whether a cell on one side of the estimate may hold a θ of the set."""
    (numerator, form), (denominator, below) = top, bottom
    ends = [add_forms((1.0, form), (-theta, below)) for theta in (near, far)]
    # |S̃ - θÑ| increases away from the estimate, so it is least at the near end.
    return abs(numerator - near * denominator) <= greatest_half_width(ends, beta)


def _is_outside_from(start: float, top: tuple[float, Form], bottom: tuple[float, Form], beta: float) -> bool:
    """Whether every θ from `start` away from zero, or past it, is outside: in terms of u = 1/θ, one
    cell to u = 0.
    """
    (numerator, form), (denominator, below) = top, bottom
    if start == 0 or (numerator / denominator) / start > 1:
        return False
    u = 1 / start
    ends = [scale_form(below, -1.0), add_forms((u, form), (-1.0, below))]
    least = min(abs(denominator), abs(u * numerator - denominator))
    return least > greatest_half_width(ends, beta)


def _kind(noise: NoiseDistribution) -> str:
    return next(name for name, kind in _KINDS.items() if type(noise) is kind)
