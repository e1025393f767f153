# SPDX-License-Identifier: Apache-2.0
"""Which factor has the least error, for what is asked and for how often units take part.

**Guarantee.** The choice depends on public numbers only: the length of the stream, the bound on
what one unit contributes, and which figures matter. It serves accuracy, and no privacy depends on
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.streams.decoding import deviations
from discreet.streams.factor import Factor, banded_inverse, check_periods, independent, square_root
from discreet.streams.participation import Participation

__all__ = ["MEASURES", "Prediction", "best_factor", "check_measure", "predict"]

MEASURES = ("totals", "periods")
#: The numbers of bands that are tried; those near the gap between two contributions are best.
_BANDS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Prediction:
    """The error of a stream with one factor, for noise whose standard deviation is the sensitivity.

    `greatest` is the greatest standard deviation of the measured number among all periods, `mean`
    the root of the mean of their squares.

    **Guarantee.** They are the standard deviations of Gaussian noise, from public numbers alone.

    Why it holds: they are norms of the decoding weights times the sensitivity. What would break it:
    a contribution bound that rows exceed.

    >>> predict(independent(4), Participation(), "totals").greatest
    2.0
    """

    factor: Factor
    greatest: float
    mean: float


def predict(factor: Factor, participation: Participation, measure: str | int = "totals") -> Prediction:
    """The error of the measured numbers: "totals", "periods", or the length of a sliding window.

    >>> round(predict(square_root(52), Participation(), "totals").greatest, 3)
    2.322
    """
    norms = deviations(factor, check_measure(measure))
    sensitivity = math.sqrt(participation.squared_sensitivity(factor))
    return Prediction(
        factor, sensitivity * float(norms[-1]), sensitivity * float(np.sqrt(np.mean(np.square(norms))))
    )


def best_factor(
    periods: int, participation: Participation | None = None, measure: str | int = "totals"
) -> Prediction:
    """The factor with the least greatest error among independent noise, the square root and banded
    inverses.

    >>> best_factor(52).factor.name, best_factor(52, measure="periods").factor.name
    ('square root', 'independent')
    """
    bound = (participation or Participation()).within(check_periods(periods))
    return min(
        (predict(factor, bound, measure) for factor in _candidates(periods)),
        key=lambda prediction: prediction.greatest,
    )


def _candidates(periods: int) -> list[Factor]:
    """The simplest first, because the first of equals is taken."""
    factors = [independent(periods)]
    if periods == 1:
        return factors
    factors.append(square_root(periods))
    factors.extend(banded_inverse(periods, bands) for bands in _BANDS if bands < periods)
    return factors


def check_measure(measure: object) -> str | int:
    """What shall be exact: the totals, single periods, or windows of a length."""
    if isinstance(measure, str) and measure in MEASURES:
        return measure
    if isinstance(measure, int) and not isinstance(measure, bool) and measure >= 1:
        return check.whole(measure=measure)
    raise BadParameter(
        "DP102",
        f'best_for must be "totals", "periods", or the length of a sliding window; got {measure!r}.',
        why="noise that is best for totals is not best for single periods.",
        fix='best_for="totals"',
    )
