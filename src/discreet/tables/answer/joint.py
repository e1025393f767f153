# SPDX-License-Identifier: Apache-2.0
"""Intervals of covariances, correlations and regression slopes, from the joint noise of the sums
that they are computed from.

A statistic p of two columns makes a linear form of exact sums zero (θ and η are the means of x and
y, D(θ) = Σ(x − θ)², C(θ, η) = Σ(x − θ)(y − η)):

    covariance       C − p·N                      N rows
    slope            C − p·D(θ)
    intercept        Σ(y − η) − b·Σ(x − θ) − h·(C − b·D(θ)) + (η − b·θ − p)·N
                                                  b the slope, h = θ·N/D(θ)
    correlation      C − p·(k·D(θ) + D(η)/k)/2    k = √(D(η)/D(θ))
    sum of squares   D(θ) + v·(M − N) − p         v the variance, M another noisy count of the rows
    sum of products  C − p

The same form of the noisy sums is then a sum of noises, whose tail is known (Fieller 1954). Means,
k, b, h and v are not known, but have intervals; errors of theirs matter only by their squares and
products, because the derivatives of the form by them are zero.

**Guarantee.** Post-processing of released numbers. An interval fails with probability at most β for
all data (compile.proof.md, § 6).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from discreet.tables.answer.linear import DrawnNoise, Form, add_forms, half_width

__all__ = ["NUISANCE", "ColumnSums", "Interval", "NoisySum", "PairSums", "SumsAbout", "joint_interval"]

#: The two ends of an interval.
Interval = tuple[float, float]
#: The share of the probability to fail that the intervals of means and variances get together.
NUISANCE = 0.06
#: That of the slope in the interval of an intercept.
_SLOPE = 0.04
#: How often an interval is narrowed by the bound that it implies.
_ROUNDS = 4
#: Doublings of the range in which a slope is looked for.
_DOUBLINGS = 40
#: A margin far above the rounding errors here.
_SAFE = 1 + 1e-9


@dataclass(frozen=True)
class NoisySum:
    """A released sum: its value, and its noise."""

    value: float
    form: Form


@dataclass(frozen=True)
class SumsAbout:
    """The noisy sums of 1, x − c and (x − c)² over the rows of a group, for a public c."""

    rows: NoisySum
    first: NoisySum
    second: NoisySum | None

    def squares(self, theta: float) -> NoisySum:
        """The sum of (x − c − θ)²."""
        assert self.second is not None
        return _add((1.0, self.second), (-2 * theta, self.first), (theta**2, self.rows))


@dataclass(frozen=True)
class ColumnSums:
    """The noisy sums that a column of means or variances was computed from.

    `values` and `noises` are those of 1, x − middle and, for a variance, (x − middle)².
    """

    middle: float
    values: tuple[tuple[float, ...], ...]
    noises: tuple[DrawnNoise, ...]

    def about(self, centre: float, row: int) -> SumsAbout:
        """The sums of one row of the answer, about another centre."""
        sums = [
            NoisySum(values[row], noise.form(row))
            for values, noise in zip(self.values, self.noises, strict=True)
        ]
        move = self.middle - centre
        first = _add((1.0, sums[1]), (move, sums[0]))
        second = _add((1.0, sums[2]), (2 * move, sums[1]), (move**2, sums[0])) if len(sums) > 2 else None
        return SumsAbout(sums[0], first, second)

    def take(self, rows: Sequence[int]) -> ColumnSums:
        """Those of some of the rows."""
        values = tuple(tuple(column[row] for row in rows) for column in self.values)
        return ColumnSums(self.middle, values, tuple(noise.take(rows) for noise in self.noises))


@dataclass(frozen=True)
class PairSums:
    """The noisy sums of two columns and of their product, about their public `centres` (of y and
    x), and intervals of their means about these and of their variances, which hold together with
    probability 1 − NUISANCE·β.
    """

    product: SumsAbout
    y: SumsAbout
    x: SumsAbout
    mean_y: Interval
    mean_x: Interval
    variance_y: Interval = (0.0, math.inf)
    variance_x: Interval = (0.0, math.inf)
    centres: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class _Curve:
    """A noisy sum as a function of what is not known: at the corners of the box of that, and how
    far below a line between two corners it can be. Its values and coefficients are lines in each
    variable, but for that.
    """

    corners: tuple[NoisySum, ...]
    bends: tuple[NoisySum, ...] = ()

    @property
    def bend(self) -> float:
        return sum(abs(bend.value) for bend in self.bends)

    @property
    def low(self) -> float:
        return min(corner.value for corner in self.corners) - self.bend

    @property
    def high(self) -> float:
        return max(corner.value for corner in self.corners) + self.bend


#: A noisy sum that is p times another one, but for noise; None where that is 1.
Curves: TypeAlias = tuple[_Curve, _Curve | None]


def joint_interval(statistic: str, sums: PairSums, beta: float, possible: Interval) -> Interval | None:
    """An interval of a statistic that is within `possible`; None if nothing is known.

    It fails with probability at most β, that of the intervals of means and variances included.
    """
    if statistic == "intercept":
        slope_curves = _slope(sums)
        slope = None if sums.variance_x[0] <= 0 else _solve(slope_curves, beta * _SLOPE, possible)
        if slope is None:
            return None
        return _solve(_intercept(sums, slope), beta * (1 - NUISANCE - _SLOPE), possible)
    curves = _CURVES[statistic](sums)
    return None if curves is None else _solve(curves, beta * (1 - NUISANCE), possible)


def _solve(curves: Curves, beta: float, possible: Interval) -> Interval | None:
    """All p within `possible` for which |top − p·bottom| is within the bound of its noise, or
    more.
    """
    top, bottom = curves
    if bottom is None:
        bound = _bound(top, None, (0.0, 0.0), beta)
        return max(possible[0], top.low - bound), min(possible[1], top.high + bound)
    if bottom.low <= 0:
        return None
    ends = possible if math.isfinite(possible[1] - possible[0]) else _finite_range(top, bottom, beta)
    for _ in range(_ROUNDS if ends is not None else 0):
        assert ends is not None
        bound = _bound(top, bottom, ends, beta)
        low, high = top.low - bound, top.high + bound
        low = low / (bottom.high if low > 0 else bottom.low)
        high = high / (bottom.low if high > 0 else bottom.high)
        if low > ends[1] or high < ends[0]:
            # Nothing that is possible fits the noisy sums, which is rare.
            return (ends[1], ends[1]) if low > ends[1] else (ends[0], ends[0])
        ends = max(ends[0], low), min(ends[1], high)
    return ends


def _finite_range(top: _Curve, bottom: _Curve, beta: float) -> Interval | None:
    """A range outside of which no p has |top − p·bottom| within the bound of its noise."""
    reach = max(abs(top.low), abs(top.high)) / bottom.low
    for _ in range(_DOUBLINGS):
        reach = 2 * reach if reach else 1.0
        # For u = 1/p between 0 and 1/reach, |u·top − bottom| is at least this.
        least = bottom.low - max(abs(top.low), abs(top.high)) / reach
        if least > _bound(top, bottom, (-reach, reach), beta) / reach:
            return -reach, reach
    return None


def _bound(top: _Curve, bottom: _Curve | None, ends: Interval, beta: float) -> float:
    """A bound on the noise of top − p·bottom, for all p between two ends and everywhere in the box.

    At a corner of the box and of the ends each coefficient is what it is; between them it is a line
    in each variable, but for the bends. The bound grows with every absolute coefficient.
    """
    reach = max(map(abs, ends))
    coefficients: dict[object, float] = {}
    below = bottom.corners if bottom is not None else (NoisySum(0.0, {}),) * len(top.corners)
    for above, under in zip(top.corners, below, strict=True):
        for p in ends:
            for at, weight in _add((1.0, above), (-p, under)).form.items():
                coefficients[at] = max(coefficients.get(at, 0.0), abs(weight))
    for factor, curve in ((1.0, top), (reach, bottom)):
        for bend in curve.bends if curve is not None else ():
            for at, weight in bend.form.items():
                coefficients[at] = coefficients.get(at, 0.0) + factor * abs(weight)
    return half_width(coefficients, beta) * _SAFE  # type: ignore[arg-type]


def _covariance(sums: PairSums) -> Curves:
    rows = sums.product.rows
    return _products(sums), _Curve((rows,) * 4)


def _slope(sums: PairSums) -> Curves:
    squares = _squares(sums.x, sums.mean_x)
    # The corners of the products are those of both means, x first.
    return _products(sums), replace(squares, corners=tuple(squares.corners[at] for at in (0, 0, 1, 1)))


def _intercept(sums: PairSums, slope: Interval) -> Curves:
    """For all slopes b and all h = mean of x / variance of x, as if they were not related to the
    means.
    """
    products, squares = _slope(sums)
    assert squares is not None
    (middle_y, middle_x), x, y = sums.centres, sums.x, sums.y
    means = [middle_x + theta for theta in sums.mean_x]
    leverages = [mean / variance for mean in means for variance in sums.variance_x]
    tops = []
    for b, h in itertools.product(slope, (min(leverages), max(leverages))):
        for place, (theta, _) in enumerate(itertools.product(sums.mean_x, sums.mean_y)):
            tops.append(
                _add(
                    (1.0, y.first),
                    (middle_y - b * (middle_x + theta), y.rows),
                    (-b, x.first),
                    (b * theta, x.rows),
                    (-h, products.corners[place]),
                    (h * b, squares.corners[place]),
                )
            )
    most = max(map(abs, leverages)) * max(map(abs, slope))
    bends = tuple(_add((most, bend)) for bend in squares.bends)
    return _Curve(tuple(tops), bends), _Curve((y.rows,) * len(tops))


def _correlation(sums: PairSums) -> Curves | None:
    """For all k between the ends of √(D(η)/D(θ)): k·D(θ) + D(η)/k is convex in k."""
    (low_y, high_y), (low_x, high_x) = sums.variance_y, sums.variance_x
    if low_x <= 0 or low_y <= 0:
        return None
    ends = math.sqrt(low_y / high_x), math.sqrt(high_y / low_x)
    products = _products(sums)
    x, y = _squares(sums.x, sums.mean_x), _squares(sums.y, sums.mean_y)
    corners, tops = [], []
    for k in ends:
        for place, (of_x, of_y) in enumerate(itertools.product(x.corners, y.corners)):
            corners.append(_add((k / 2, of_x), (1 / (2 * k), of_y)))
            tops.append(products.corners[place])
    # 1/k is below its chord by (1/√k₁ − 1/√k₂)² at most.
    sag = (1 / math.sqrt(ends[0]) - 1 / math.sqrt(ends[1])) ** 2 / 2
    bends = [_add((ends[1] / 2, bend)) for bend in x.bends]
    bends += [_add((1 / (2 * ends[0]), bend)) for bend in y.bends]
    bends += [_largest([_add((sag, corner)) for corner in y.corners])]
    return replace(products, corners=tuple(tops)), _Curve(tuple(corners), tuple(bends))


def _sum_of_squares(sums: PairSums) -> Curves:
    """M times the variance; M may have been rounded to a whole number."""
    squares = _squares(sums.x, sums.mean_x)
    corners = (
        _add((1.0, corner), (v, sums.product.rows), (-v, sums.x.rows))
        for corner, v in itertools.product(squares.corners, sums.variance_x)
    )
    rounding = NoisySum(sums.variance_x[1] / 2, {})
    return _Curve(tuple(corners), (*squares.bends, rounding)), None


def _sum_of_products(sums: PairSums) -> Curves:
    return _products(sums), None


_CURVES: dict[str, Callable[[PairSums], Curves | None]] = {
    "covariance": _covariance,
    "slope": _slope,
    "correlation": _correlation,
    "squares": _sum_of_squares,
    "products": _sum_of_products,
}


def _products(sums: PairSums) -> _Curve:
    """C(θ, η) at the corners of both means: a line in each."""
    product, x, y = sums.product, sums.x, sums.y
    assert product.first is not None
    corners = []
    for theta, eta in itertools.product(sums.mean_x, sums.mean_y):
        # Σ(x − θ)(y − η), where each sum of x and of y is taken about its own count.
        both = theta * eta
        corners.append(
            _add(
                (1.0, product.first),
                (-eta, x.first),
                (-theta, y.first),
                (both, x.rows),
                (both, y.rows),
                (-both, product.rows),
            )
        )
    return _Curve(tuple(corners))


def _squares(sums: SumsAbout, means: Interval) -> _Curve:
    """D(θ) between two means: a parabola, at most N·(difference/2)² below its chord."""
    corners = tuple(sums.squares(theta) for theta in means)
    return _Curve(corners, (_add(((means[1] - means[0]) ** 2 / 4, sums.rows)),))


def _largest(sums: Sequence[NoisySum]) -> NoisySum:
    """A value and coefficients that are at least those of all, in size."""
    form: dict[object, float] = {}
    for each in sums:
        for at, weight in each.form.items():
            form[at] = max(form.get(at, 0.0), abs(weight))
    return NoisySum(max(abs(each.value) for each in sums), form)  # type: ignore[arg-type]


def _add(*terms: tuple[float, NoisySum]) -> NoisySum:
    return NoisySum(
        math.fsum(factor * each.value for factor, each in terms),
        add_forms(*((factor, each.form) for factor, each in terms)),
    )
