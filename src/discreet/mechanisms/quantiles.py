# SPDX-License-Identifier: Apache-2.0
"""Several private quantiles at once: the middle one first, then those on either side of it.

    Quantiles([0.25, 0.5, 0.75], bounds=(0, 100), epsilon=1)(ages).value

**Guarantee.** m quantiles cost ⌈log₂(m + 1)⌉ exponential mechanisms, not m, and come in order.

Why it holds: an answer splits the records in two, those up to it and those beyond it. What is asked next on one
side never sees the other, so all questions of a level together cost one (Kaplan, Schnapp, Stemmer 2022). The split
points are answers that are published anyway. quantile.proof.md, §4, has the proof for both relations.
What would break it: bounds that were read off the data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import check, noise, privacy
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above
from discreet.mechanisms.mechanism import Mechanism, Release
from discreet.mechanisms.quantile import FINEST, Cells, Span, draw_quantile, read_quantile, spread
from discreet.noise.scales import Number
from discreet.privacy.guarantee import Guarantee

__all__ = ["Quantiles", "private_quantiles"]

LOTS = 2**12  # finer points in each point of the grid, among which records that are equal are spread


class Quantiles(Mechanism):
    """Points that about the shares `qs` of the records lie below, in order.

    **Guarantee.** As many exponential mechanisms as there are levels, ⌈log₂(m + 1)⌉ for m quantiles: together
    ε-differentially private (`epsilon`) or ρ-zero-concentrated (`rho`). Every answer is a point of the grid on `bounds`
    (see `Quantile`, also for what is no number), and each is at least as large as the one before.

    Equal records are told apart by lot, so that they can fall on both sides of an answer. Errors of one level are
    carried to the next, and what they add up to depends on the data where records are still equal: no error is stated.

    >>> mechanism = Quantiles([0.25, 0.5, 0.75], bounds=(0, 100), epsilon=1.0)
    >>> mechanism.guarantee
    2 * exponential(epsilon=0.5)
    >>> low, middle, high = mechanism([3.5, 14.0, 15.0]).value
    >>> bool(0 <= low <= middle <= high <= 100)
    True
    """

    def __init__(
        self,
        qs: Sequence[Number],
        bounds: Sequence[float] | None = None,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        step: float | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.qs = _increasing(qs)
        self._span = Span.between(bounds, step)
        self.levels = len(self.qs).bit_length()
        each = _epsilon_of_a_level(epsilon, rho, self.levels)
        self._guarantee = self.levels * privacy.exponential(each, relation=relation, unit=unit)
        # a replaced record leaves one part and may enter another, so each part gets half (quantile.proof.md, §4)
        self._epsilon = exactly(each) / (2 if relation == "replace" else 1)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> npt.NDArray[np.float64]:
        places = self._span.places(data)
        fine = np.sort(places * LOTS + noise.uniform(LOTS, places.size))
        found = self._between(fine, (0, self._span.points * LOTS - 1), self.qs, (Fraction(0), Fraction(1)))
        return np.array([self._span.real(place // LOTS) for place in found])

    def _between(
        self, fine: Cells, ends: tuple[int, int], qs: tuple[Fraction, ...], shares: tuple[Fraction, Fraction]
    ) -> list[int]:
        """The quantiles `qs` of all records, from those between two ends that are about at those shares."""
        if not qs:
            return []
        (low, high), (floor, ceiling) = ends, shares
        middle = len(qs) // 2
        q = qs[middle]
        here = ((q - floor) / (ceiling - floor)).limit_denominator(FINEST)
        found = draw_quantile(fine, low, high, here, spread(here) / self._epsilon)
        cut = int(np.searchsorted(fine, found, side="right"))
        return [
            *self._between(fine[:cut], (low, found), qs[:middle], (floor, q)),
            found,
            *self._between(fine[cut:], (found, high), qs[middle + 1 :], (q, ceiling)),
        ]


@check.arguments
def private_quantiles(
    data: npt.ArrayLike,
    qs: Sequence[Number],
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    step: float | None = None,
    relation: str = "add-remove",
    unit: str = "record",
) -> Release:
    """`Quantiles(qs, bounds, epsilon=…)(data)` in one call.

    >>> len(private_quantiles([1.0, 2.0, 3.0], [0.1, 0.9], bounds=(0, 10), rho=0.1).value)
    2
    """
    return Quantiles(qs, bounds, epsilon=epsilon, rho=rho, step=step, relation=relation, unit=unit)(data)


def _increasing(qs: Any) -> tuple[Fraction, ...]:
    if not isinstance(qs, Sequence | np.ndarray) or isinstance(qs, str) or not len(qs):
        raise BadParameter(
            "DP104",
            "qs must be one or more numbers between 0 and 1.",
            why="each of them is a quantile to be drawn.",
            fix="pass qs=[0.25, 0.5, 0.75]",
        )
    read = tuple(read_quantile(q) for q in qs)
    if any(one >= other for one, other in itertools.pairwise(read)):
        raise BadParameter(
            "DP107",
            "qs must increase, by a millionth or more.",
            why="the answers come in that order, and each is searched between its neighbours.",
            fix="pass qs=sorted(set(qs))",
        )
    return read


def _epsilon_of_a_level(epsilon: float | None, rho: float | None, levels: int) -> float:
    """The largest float, nearly, with which all levels together keep what was asked for."""
    if (epsilon is None) == (rho is None):
        raise BadParameter(
            "DP107",
            "the amount of noise must be stated in one way: epsilon, or rho.",
            why="two statements could contradict each other, and without one there is no noise to add.",
            fix="epsilon=1.0",
        )
    if epsilon is not None:
        return -float_above(-exactly(check.moderate(epsilon=epsilon)) / levels)
    rho = check.moderate(rho=rho)
    each = math.sqrt(8 * rho / levels)  # an exponential mechanism is ε²/8-zCDP (Cesar, Rogers 2021)
    while (levels * privacy.exponential(each)).concentrated() > rho:
        each *= 1 - 2.0**-52
    return each
