# SPDX-License-Identifier: Apache-2.0
"""Answers with noise in proportion to their smooth sensitivity: where the data are kind, far less noise than the worst case.

    smooth.median(ages, bounds=(0, 100), epsilon=1.0).value
    smooth.trimmed_mean(incomes, bounds=(0, 1e6), trim=0.1, epsilon=1.0)
    smooth.release(f, records, epsilon=1.0, between=(0, 1), sensitivity=LocalAtDistance(at=…, at_most=1))

release.py       SmoothMechanism: statistic, budget, plan, draw                         ◄ read this first
statistics.py    order statistics, trimmed mean, interquantile range, reciprocal, a caller's own
regression.py    the variance of a prediction by linear regression
windows.py       the widest discounted window of sorted numbers, in O(n log n)
families.py      the noises and what they promise when place and scale both move
hockey.py        Laplace and Gaussian of two scales: the supremum of δ, proved

Each function makes a `SmoothMechanism` and calls it once. The amount is `epsilon=`, `epsilon=` with `delta=`, or `rho=`; the relation is
"replace" unless stated otherwise, and the number of records is public there. Proofs: smooth.proof.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.mechanisms.exact import rows
from discreet.mechanisms.mechanism import Release
from discreet.mechanisms.query import Between
from discreet.mechanisms.sensitivity import LocalAtDistance, SmoothBound
from discreet.mechanisms.smooth.families import (
    Family,
    SmoothArsinhNormal,
    SmoothBudget,
    SmoothCauchy,
    SmoothGaussian,
    SmoothLaplace,
    SmoothLaplaceLogNormal,
    SmoothLomax,
    SmoothStudentT,
    SmoothUniformLogNormal,
    is_admissible,
)
from discreet.mechanisms.smooth.regression import PredictionVariance
from discreet.mechanisms.smooth.release import SmoothMechanism, SmoothPlan
from discreet.mechanisms.smooth.statistics import (
    Custom,
    InterquantileRange,
    OrderStatistic,
    Reciprocal,
    Statistic,
    TrimmedMean,
)

__all__ = [
    "Custom",
    "Family",
    "InterquantileRange",
    "OrderStatistic",
    "PredictionVariance",
    "Reciprocal",
    "SmoothArsinhNormal",
    "SmoothBudget",
    "SmoothCauchy",
    "SmoothGaussian",
    "SmoothLaplace",
    "SmoothLaplaceLogNormal",
    "SmoothLomax",
    "SmoothMechanism",
    "SmoothPlan",
    "SmoothStudentT",
    "SmoothUniformLogNormal",
    "Statistic",
    "TrimmedMean",
    "interquantile_range",
    "is_admissible",
    "maximum",
    "median",
    "minimum",
    "order_statistic",
    "prediction_variance",
    "quantile",
    "reciprocal",
    "release",
    "trimmed_mean",
]

_GUESS = 1000  # records, where their number is secret and nobody has guessed it


@check.arguments
def median(data: Any, bounds: Sequence[float] | None = None, **words: Any) -> Release:
    """The record of rank ⌈n/2⌉, with noise in proportion to its smooth sensitivity.

    >>> answer = median([3, 1, 4, 1, 5], bounds=(0, 10), epsilon=1.0)
    >>> answer.guarantee, answer.interval
    (pure(epsilon=1.0, relation='replace'), None)
    """
    return quantile(data, 0.5, bounds, **words)


@check.arguments
def minimum(data: Any, bounds: Sequence[float] | None = None, **words: Any) -> Release:
    """The smallest record."""
    return quantile(data, 0, bounds, **words)


@check.arguments
def maximum(data: Any, bounds: Sequence[float] | None = None, **words: Any) -> Release:
    """The greatest record."""
    return quantile(data, 1, bounds, **words)


@check.arguments
def quantile(data: Any, q: Any, bounds: Sequence[float] | None = None, **words: Any) -> Release:
    """The record of rank ⌈q n⌉."""
    return _released(OrderStatistic(bounds, q=q), data, words)


@check.arguments
def order_statistic(data: Any, rank: int, bounds: Sequence[float] | None = None, **words: Any) -> Release:
    """The record of that rank, 1 for the smallest."""
    return _released(OrderStatistic(bounds, rank=rank), data, words)


@check.arguments
def trimmed_mean(
    data: Any, bounds: Sequence[float] | None = None, *, trim: Any = 0.1, **words: Any
) -> Release:
    """The mean without the `trim` smallest and greatest records: a share of them, or a whole number.

    >>> trimmed_mean([3, 1, 4, 1, 5], bounds=(0, 10), trim=1, epsilon=1.0, delta=1e-6).guarantee.unit.relation
    'replace'
    """
    return _released(TrimmedMean(bounds, trim), data, words)


@check.arguments
def interquantile_range(
    data: Any, bounds: Sequence[float] | None = None, *, lower: Any = 0.25, upper: Any = 0.75, **words: Any
) -> Release:
    """The distance of two quantiles."""
    return _released(InterquantileRange(bounds, lower, upper), data, words)


@check.arguments
def reciprocal(data: Any, *, where: Callable[[Any], Any] | None = None, **words: Any) -> Release:
    """1 / max(count, 1) of the records for which `where` holds."""
    return _released(Reciprocal(where), data, words)


@check.arguments
def prediction_variance(data: Any, at: Sequence[float], *, between: Sequence[float], **words: Any) -> Release:
    """The logarithm of xᵀ (XᵀX)⁻¹ x for the rows X of the data and a public x; rows are cut to norm 1."""
    return _released(PredictionVariance(tuple(at), *_two(between)), data, words)


@check.arguments
def release(
    f: Statistic | Callable[[Any], Any],
    data: Any,
    *,
    sensitivity: LocalAtDistance | SmoothBound | None = None,
    between: Sequence[float] | None = None,
    **words: Any,
) -> Release:
    """A statistic of this package; or a function of your own, with its sensitivity and the range of its answers.

    >>> from discreet.mechanisms.sensitivity import LocalAtDistance
    >>> share = LocalAtDistance(at=lambda records, j: 1 / 4, at_most=1 / 4)
    >>> release(lambda x: sum(x) / 4, [0, 1, 1, 0], sensitivity=share, between=(0, 1), epsilon=1.0).guarantee
    pure(epsilon=1.0, relation='replace')
    """
    if isinstance(f, Statistic):
        return _released(f, data, words)
    if not callable(f) or not isinstance(sensitivity, LocalAtDistance | SmoothBound) or between is None:
        raise BadParameter(
            "DP107",
            "a function of your own needs sensitivity=LocalAtDistance(…) or SmoothBound(…), and between=(low, high).",
            why="how far one record moves it cannot be found by looking at it.",
            fix="sensitivity=LocalAtDistance(at=my_callback, at_most=1.0), between=(0, 1)",
        )
    return _released(Custom(f, sensitivity, *_two(between)), data, words)


def _released(statistic: Statistic, data: Any, words: dict[str, Any]) -> Release:
    budget = SmoothBudget(**{name: words.pop(name, None) for name in ("epsilon", "delta", "rho")})
    relation = words.get("relation") or statistic.relations[0]
    size = words.pop("size", None)
    if size is None:
        size = len(data if hasattr(data, "__len__") else rows(data)) if relation == "replace" else _GUESS
    return SmoothMechanism(statistic, budget, size=size, **words)(data)


def _two(between: Any) -> tuple[float, float]:
    stated = Between.of(between)
    return stated.low, stated.high
