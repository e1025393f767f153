# SPDX-License-Identifier: Apache-2.0
"""Noise in proportion to smooth sensitivity: on most data far less than in the worst case.

    smooth.median(ages, bounds=(0, 100), epsilon=1.0).value
    smooth.trimmed_mean(incomes, bounds=(0, 1e6), trim=0.1, epsilon=1.0)
    local = LocalAtDistance(at=…, at_most=1)
    smooth.release(f, records, epsilon=1.0, between=(0, 1), sensitivity=local)

release.py       SmoothMechanism: statistic, budget, plan, draw                         ◄ read this first
statistics.py    order statistics, trimmed mean, interquantile range, reciprocal, custom functions
regression.py    the variance of a prediction by linear regression
windows.py       the widest discounted window of sorted numbers, in O(n log n)
families.py      noise distributions, and their guarantees if location and scale both change
hockey.py        a proved bound on δ between Laplace or Gaussian noise of two scales

Each function makes a `SmoothMechanism` and calls it once. State the amount of noise as `epsilon=`,
as `epsilon=` with `delta=`, or as `rho=`. The default relation is "replace", under which the number
of records is public. Proofs: smooth.proof.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.mechanisms.exact import rows
from discreet.mechanisms.mechanism import Release
from discreet.mechanisms.query import ClippingBounds
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
from discreet.noise.scales import Number

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

_GUESS = 1000  # records, if their number is secret and `size` does not state a guess


@dataclass(frozen=True)
class _Options:
    """The budget and the options that all functions of this file share."""

    budget: SmoothBudget
    size: int | None
    public: object
    family: Family | None
    smoothing: float | None
    relation: str | None
    unit: str

    def release(self, statistic: Statistic, data: Any) -> Release:
        """One release of the statistic; `size` is the number of records where that is public."""
        size = self.size
        if size is None:
            is_public = (self.relation or statistic.relations[0]) == "replace"
            size = len(data if hasattr(data, "__len__") else rows(data)) if is_public else _GUESS
        mechanism = SmoothMechanism(
            statistic,
            self.budget,
            size=size,
            public=self.public,
            family=self.family,
            smoothing=self.smoothing,
            relation=self.relation,
            unit=self.unit,
        )
        return mechanism(data)


@check.arguments
def median(
    data: npt.ArrayLike,
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """The record of rank ⌈n/2⌉, with noise in proportion to its smooth sensitivity.

    **Guarantee.** ε-differential privacy for `epsilon`, (ε, δ) for `epsilon` with `delta`,
    zero-concentrated privacy for `rho`. The relation is "replace", where the number of records is
    public, unless `relation="add-remove"`.

    Why it holds: smooth.proof.md (after Nissim, Raskhodnikova, Smith 2007). What would break it:
    bounds or `public` records that were read off the data. The error is secret, so the release has
    no `error` and no `interval`.

    >>> answer = median([3, 1, 4, 1, 5], bounds=(0, 10), epsilon=1.0)
    >>> answer.guarantee, answer.interval
    (pure(epsilon=1.0, relation='replace'), None)
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(OrderStatistic(bounds, q=Fraction(1, 2)), data)


@check.arguments
def minimum(
    data: npt.ArrayLike,
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """The smallest record, with noise in proportion to its smooth sensitivity.

    **Guarantee.** As `median`. The noise is large unless several records lie near the lower bound.

    >>> minimum([3, 1, 4, 1, 5], bounds=(0, 10), rho=0.5).guarantee.concentrated() <= 0.5
    True
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(OrderStatistic(bounds, q=Fraction(0)), data)


@check.arguments
def maximum(
    data: npt.ArrayLike,
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """The greatest record, with noise in proportion to its smooth sensitivity.

    **Guarantee.** As `median`. The noise is large unless several records lie near the upper bound.

    >>> maximum([3, 1, 4, 1, 5], bounds=(0, 10), epsilon=1.0).guarantee
    pure(epsilon=1.0, relation='replace')
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(OrderStatistic(bounds, q=Fraction(1)), data)


@check.arguments
def quantile(
    data: npt.ArrayLike,
    q: Number,
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """The record of rank ⌈q n⌉, with noise in proportion to its smooth sensitivity.

    **Guarantee.** As `median`, for every q in [0, 1].

    >>> 0 <= quantile([3, 1, 4, 1, 5], 0.75, bounds=(0, 10), epsilon=1.0).value <= 10
    True
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(OrderStatistic(bounds, q=q), data)


@check.arguments
def order_statistic(
    data: npt.ArrayLike,
    rank: int,
    bounds: Sequence[float] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """The record of that rank, 1 for the smallest, with noise in proportion to its smooth
    sensitivity.

    **Guarantee.** As `median`. The rank is public and does not depend on the number of records.

    >>> 0 <= order_statistic([3, 1, 4, 1, 5], 2, bounds=(0, 10), epsilon=1.0).value <= 10
    True
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(OrderStatistic(bounds, rank=rank), data)


@check.arguments
def trimmed_mean(
    data: npt.ArrayLike,
    bounds: Sequence[float] | None = None,
    *,
    trim: Number = 0.1,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """The mean without the `trim` smallest and greatest records: a share of them, or a whole
    number.

    **Guarantee.** As `median`, under "replace" only.

    >>> trimmed_mean([3, 1, 4, 1, 5], bounds=(0, 10), trim=1, epsilon=1.0, delta=1e-6).guarantee.unit.relation
    'replace'
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(TrimmedMean(bounds, trim), data)


@check.arguments
def interquantile_range(
    data: npt.ArrayLike,
    bounds: Sequence[float] | None = None,
    *,
    lower: Number = 0.25,
    upper: Number = 0.75,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """The distance between two quantiles, with noise in proportion to a smooth bound on its
    sensitivity.

    **Guarantee.** As `median`. The bound is the sum of the smooth sensitivities of both quantiles.

    >>> 0 <= interquantile_range([3, 1, 4, 1, 5], bounds=(0, 10), epsilon=1.0).value <= 10
    True
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(InterquantileRange(bounds, lower, upper), data)


@check.arguments
def reciprocal(
    data: object,
    *,
    where: Callable[[Any], Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """1 / max(count, 1) of the records for which `where` holds.

    **Guarantee.** As `median`. Under `relation="add-remove"` the number of records is protected
    too.

    >>> reciprocal(["yes", "no", "yes"], where=lambda vote: vote == "yes", epsilon=1.0).guarantee
    pure(epsilon=1.0, relation='replace')
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(Reciprocal(where), data)


@check.arguments
def prediction_variance(
    data: npt.ArrayLike,
    at: Sequence[float],
    *,
    between: Sequence[float],
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """The logarithm of xᵀ (XᵀX)⁻¹ x for the rows X of the data and a public x; rows are scaled down
    to norm 1.

    **Guarantee.** As `median`, under "add-remove". `between` is the public range of the answer.

    Why it holds: smooth.proof.md, §8. What would break it: a point `at` or a range that was read
    off the data.

    >>> rows_of_x = [[1.0, 0.0], [0.0, 1.0]] * 50
    >>> -10 <= prediction_variance(rows_of_x, at=(1.0, 0.5), between=(-10, 2), epsilon=1.0).value <= 2
    True
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    return options.release(PredictionVariance(tuple(at), *_two(between)), data)


@check.arguments
def release(
    f: Statistic | Callable[[Any], Any],
    data: object,
    *,
    sensitivity: LocalAtDistance | SmoothBound | None = None,
    between: Sequence[float] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    size: int | None = None,
    public: object = None,
    family: Family | None = None,
    smoothing: float | None = None,
    relation: str | None = None,
    unit: str = "record",
) -> Release:
    """Release a statistic of this package, or a function of your own with its sensitivity and the
    range of its answers.

    **Guarantee.** As `median`, if the sensitivity is true: `check_callback` tries it on small data.

    >>> from discreet.mechanisms.sensitivity import LocalAtDistance
    >>> share = LocalAtDistance(at=lambda records, j: 1 / 4, at_most=1 / 4)
    >>> release(lambda x: sum(x) / 4, [0, 1, 1, 0], sensitivity=share, between=(0, 1), epsilon=1.0).guarantee
    pure(epsilon=1.0, relation='replace')
    """
    options = _Options(SmoothBudget(epsilon, delta, rho), size, public, family, smoothing, relation, unit)
    if isinstance(f, Statistic):
        return options.release(f, data)
    if not callable(f) or not isinstance(sensitivity, LocalAtDistance | SmoothBound) or between is None:
        raise BadParameter(
            "DP107",
            "a function of your own needs sensitivity=LocalAtDistance(…) or SmoothBound(…), and between=(low, high).",
            why="the sensitivity of a function cannot be read off its code.",
            fix="sensitivity=LocalAtDistance(at=my_callback, at_most=1.0), between=(0, 1)",
        )
    return options.release(Custom(f, sensitivity, *_two(between)), data)


def _two(between: Sequence[float]) -> tuple[float, float]:
    bounds = ClippingBounds.of(between)
    return bounds.low, bounds.high
