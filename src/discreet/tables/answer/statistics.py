# SPDX-License-Identifier: Apache-2.0
"""Statistics of released means and variances: covariance, correlation, regression lines, and what
samples have instead of populations.

**Guarantee.** Post-processing. The interval of a statistic fails with probability at most β: that
of the joint noise of the sums (`joint.py`), or, where these are not known, what follows from
intervals of the parts, each of which fails with its share of β.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from discreet.tables.answer.joint import NUISANCE, ColumnSums, Interval, NoisySum, PairSums, joint_interval
from discreet.tables.answer.nodes import Applied, Cell, Linear, Node, leaves_of

__all__ = ["STATISTICS", "statistic_ends"]

#: The ends of the interval of a node whose leaves fail with probability at most β each.
Ends: TypeAlias = Callable[[Node, float], "tuple[Any, Any] | None"]
#: The share of the probability to fail that everything but the main part of a statistic gets.
_MINOR = 0.04
_EVERYTHING, _ANY_VARIANCE = (-math.inf, math.inf), (0.0, math.inf)
#: The means and variances that the interval of a correlation needs.
_NUISANCES = 4


def _covariance(product: float, y: float, x: float, middle_y: float, middle_x: float) -> float:
    return product - (y - middle_y) * (x - middle_x)


def _slope(*parts: float) -> float | None:
    *moments, variance = parts
    return _covariance(*moments) / variance if variance else None


def _intercept(*parts: float) -> float | None:
    slope = _slope(*parts)
    return None if slope is None else parts[1] - slope * parts[2]


def _correlation(*parts: float) -> float | None:
    *moments, of_y, of_x = parts
    return _covariance(*moments) / math.sqrt(of_y * of_x) if of_y > 0 and of_x > 0 else None


def _sample(population: float, rows: float) -> float | None:
    return population * (1 + 1 / (rows - 1)) if rows != 1 else None


#: The value of each statistic, from those of its parts.
STATISTICS: dict[str, Callable[..., float | None]] = {
    "covariance": _covariance,
    "slope": _slope,
    "intercept": _intercept,
    "correlation": _correlation,
    "squares": lambda rows, variance, mean, middle: rows * variance,  # noqa: ARG005 - for its interval
    "products": lambda rows, *moments: rows * _covariance(*moments),
    "sample": _sample,
}


def statistic_ends(node: Applied, beta: float, ends: Ends) -> tuple[Any, Any] | None:
    """The ends of an interval that fails with probability at most β and contains the value."""
    if node.value is None:
        return None
    interval = _INTERVALS[node.op](node.parts, beta, ends)
    if interval is None or any(math.isnan(end) for end in interval):
        return None
    return min(interval[0], node.value), max(interval[1], node.value)


def _of_sample(parts: Sequence[Node], beta: float, ends: Ends) -> Interval | None:
    # An error of the number of rows matters little.
    population, rows = ends(parts[0], beta * (1 - _MINOR)), ends(parts[1], beta * _MINOR)
    if population is None or rows is None or rows[0] <= 1:
        return None
    return _multiply(population, (1 + 1 / (rows[1] - 1), 1 + 1 / (rows[0] - 1)))


def _of_intercept(parts: Sequence[Node], beta: float, ends: Ends) -> Interval | None:
    sums = _pair_sums(parts, beta, ends)
    if sums is not None:
        return joint_interval("intercept", sums, beta, _EVERYTHING)
    share = beta * _share(parts)
    slope, *means = _of_pair("slope")(parts, share, ends), *(ends(part, share) for part in parts[1:3])
    if slope is None or means[0] is None or means[1] is None:
        return None
    rise = _multiply(slope, means[1])
    return means[0][0] - rise[1], means[0][1] - rise[0]


def _of_squares(parts: Sequence[Node], beta: float, ends: Ends) -> Interval | None:
    rows, variance, mean, middle = parts
    sums, centre = _sums_of(variance), float(middle.value)
    each = beta * NUISANCE / 2
    means, variances = _interval_about(mean, centre, each, ends), ends(variance, each)
    if sums is None or means is None or variances is None or not isinstance(rows, Linear):
        share = beta * _share(parts)
        of_rows, of_variance = ends(rows, share), ends(variance, share)
        return None if of_rows is None or of_variance is None else _multiply(of_rows, of_variance)
    column, row = sums
    about = column.about(centre, row)
    counted = replace(about, rows=NoisySum(float(rows.value), rows.form))
    pair = PairSums(counted, about, about, means, means, variance_x=variances)
    return joint_interval("squares", pair, beta, (0.0, math.inf))


def _of_products(parts: Sequence[Node], beta: float, ends: Ends) -> Interval | None:
    rows, *moments = parts
    sums = _pair_sums(moments, beta, ends)
    if sums is not None:
        return joint_interval("products", sums, beta, _EVERYTHING)
    share = beta * _share(parts)
    of_rows, covariance = ends(rows, share), _covariance_ends(moments, share, ends)
    return None if of_rows is None or covariance is None else _multiply(of_rows, covariance)


def _of_pair(statistic: str) -> Callable[[Sequence[Node], float, Ends], Interval | None]:
    """The interval of a statistic of means and variances of two columns."""
    possible = (-1.0, 1.0) if statistic == "correlation" else _EVERYTHING

    def interval(parts: Sequence[Node], beta: float, ends: Ends) -> Interval | None:
        sums = _pair_sums(parts, beta, ends)
        if sums is not None:
            found = joint_interval(statistic, sums, beta, possible)
            return possible if found is None and statistic == "correlation" else found
        share = beta * _share(parts)
        covariance = _covariance_ends(parts[:5], share, ends)
        variances = [ends(part, share) for part in parts[5:]]
        if covariance is None or None in variances:
            return None
        low, high = 1.0, 1.0
        for variance in variances:
            assert variance is not None
            power = 0.5 if statistic == "correlation" else 1.0
            low, high = low * max(variance[0], 0.0) ** power, high * max(variance[1], 0.0) ** power
        return _multiply(covariance, (1 / high, 1 / low)) if low > 0 else None

    return interval


_INTERVALS: dict[str, Callable[[Sequence[Node], float, Ends], Interval | None]] = {
    **{name: _of_pair(name) for name in ("covariance", "slope", "correlation")},
    "intercept": _of_intercept,
    "squares": _of_squares,
    "products": _of_products,
    "sample": _of_sample,
}


def _pair_sums(parts: Sequence[Node], beta: float, ends: Ends) -> PairSums | None:
    """The sums behind a mean of products, two means, their centres, and perhaps variances."""
    product, y, x = (_sums_of(part) for part in parts[:3])
    if product is None or y is None or x is None:
        return None
    centres = [float(part.value) for part in parts[3:5]]
    each = beta * NUISANCE / _NUISANCES
    means = [
        _interval_about(part, centre, each, ends) for part, centre in zip(parts[1:3], centres, strict=True)
    ]
    variances = [ends(part, each) for part in parts[5:]]
    if None in means or None in variances:
        return None
    ((product_sums, row), (y_sums, _), (x_sums, _)) = product, y, x
    # A slope has the variance of x alone, a correlation that of y before it.
    of_y, of_x = [None, None, *variances][-2:]
    return PairSums(
        product_sums.about(0.0, row),
        y_sums.about(centres[0], row),
        x_sums.about(centres[1], row),
        means[0] or _EVERYTHING,
        means[1] or _EVERYTHING,
        of_y or _ANY_VARIANCE,
        of_x or _ANY_VARIANCE,
        (centres[0], centres[1]),
    )


def _sums_of(part: Node) -> tuple[ColumnSums, int] | None:
    if isinstance(part, Cell) and part.column.sums is not None:
        return part.column.sums, part.row
    return None


def _interval_about(mean: Node, centre: float, beta: float, ends: Ends) -> Interval | None:
    interval = ends(mean, beta)
    return None if interval is None or None in interval else (interval[0] - centre, interval[1] - centre)


def _share(parts: Sequence[Node]) -> float:
    """The share of each noisy leaf."""
    return 1 / max(1, len({leaf for part in parts for leaf in leaves_of(part)}))


def _covariance_ends(parts: Sequence[Node], beta: float, ends: Ends) -> Interval | None:
    product, y, x = (ends(part, beta) for part in parts[:3])
    if product is None or y is None or x is None:
        return None
    centres = [float(part.value) for part in parts[3:5]]
    rise = _multiply((y[0] - centres[0], y[1] - centres[0]), (x[0] - centres[1], x[1] - centres[1]))
    return product[0] - rise[1], product[1] - rise[0]


def _multiply(one: Interval, other: Interval) -> Interval:
    corners = [left * right for left in one for right in other]
    return min(corners), max(corners)
