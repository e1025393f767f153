# SPDX-License-Identifier: Apache-2.0
"""Aggregates of a group: `count()`, `mean("days", between=(0, 60))`.

Each function returns an `AggregateSpec`. `aggregate(n=count(), stay=mean("days"))` gives it a name,
and a question gives it types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from discreet import check
from discreet.errors import BadParameter
from discreet.tables.algebra.types import Value

if TYPE_CHECKING:
    from discreet.tables.ask.expressions import Expression

__all__ = [
    "AggregateSpec",
    "Bounds",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "quantile",
    "stddev",
    "sum",
    "units",
    "variance",
    "weighted_mean",
]

#: Two ends to which values are clipped, the lower one first.
Bounds = tuple[int | float | Decimal, int | float | Decimal]


@dataclass(frozen=True)
class AggregateSpec:
    """One aggregate of each group; `name` is its column in the answer, or empty for the default
    name.

    >>> mean("days", between=(0, 60)).between
    (0, 60)
    """

    kind: str
    of: str | Expression | None = None
    between: Bounds | None = None
    rank: float | None = None
    values: tuple[Value, ...] | None = None
    name: str = ""
    # The second column of a covariance or correlation, and the weights of a mean.
    beside: str | Expression | None = None

    def with_name(self, name: str) -> AggregateSpec:
        """The same aggregate with another name."""
        return replace(self, name=name)


@check.arguments
def count(of: str | Expression | None = None) -> AggregateSpec:
    """The number of rows; with `of`, the number of rows in which it is not NULL.

    >>> count().kind, count("days").kind
    ('count', 'count_of')
    """
    return AggregateSpec("count" if of is None else "count_of", of)


@check.arguments
def count_distinct(of: str | Expression) -> AggregateSpec:
    """The number of different values that are not NULL; of one unit at most `at_most` values count.

    >>> count_distinct("ward").kind
    'distinct'
    """
    return AggregateSpec("distinct", of)


@check.arguments
def units() -> AggregateSpec:
    """The number of privacy units, such as patients or customers.

    >>> units().kind
    'units'
    """
    return AggregateSpec("units")


@check.arguments
def sum(of: str | Expression, between: Bounds | None = None) -> AggregateSpec:  # noqa: A001 - as people say it
    """The sum; values are clipped to `between`, or to the bounds of the description.

    >>> sum("cost", between=(0, 500)).kind
    'sum'
    """
    return AggregateSpec("sum", of, between)


@check.arguments
def mean(of: str | Expression, between: Bounds | None = None) -> AggregateSpec:
    """The mean; values are clipped as in `sum`.

    >>> mean("days", between=(0, 60)).kind
    'mean'
    """
    return AggregateSpec("mean", of, between)


@check.arguments
def variance(of: str | Expression, between: Bounds | None = None, *, sample: bool = False) -> AggregateSpec:
    """The variance of the population, or of a `sample` (divided by n − 1); values are clipped
    as in `sum`.

    >>> variance("days", between=(0, 60)).kind, variance("days", sample=True).kind
    ('variance', 'sample_variance')
    """
    return AggregateSpec("sample_variance" if check.flag(sample=sample) else "variance", of, between)


@check.arguments
def stddev(of: str | Expression, between: Bounds | None = None, *, sample: bool = False) -> AggregateSpec:
    """The standard deviation of the population, or of a `sample` (divided by n − 1); values are
    clipped as in `sum`.

    >>> stddev("days", between=(0, 60)).kind, stddev("days", sample=True).kind
    ('stddev', 'sample_stddev')
    """
    return AggregateSpec("sample_stddev" if check.flag(sample=sample) else "stddev", of, between)


@check.arguments
def covariance(of: str | Expression, beside: str | Expression) -> AggregateSpec:
    """The covariance of two columns in the population, from rows in which neither is NULL.

    >>> covariance("cost", "days").beside
    'days'
    """
    return AggregateSpec("covariance", of, beside=beside)


@check.arguments
def correlation(of: str | Expression, beside: str | Expression) -> AggregateSpec:
    """The correlation of two columns (Pearson's), from rows in which neither is NULL.

    >>> correlation("cost", "days").kind
    'correlation'
    """
    return AggregateSpec("correlation", of, beside=beside)


@check.arguments
def weighted_mean(of: str | Expression, weights: str | Expression) -> AggregateSpec:
    """The mean in which each row has a weight: the sum of `of * weights` divided by that of
    `weights`.

    >>> weighted_mean("price", "amount").beside
    'amount'
    """
    return AggregateSpec("weighted_mean", of, beside=weights)


@check.arguments
def median(of: str | Expression, between: Bounds | None = None) -> AggregateSpec:
    """The median; values are clipped as in `sum`.

    >>> median("days", between=(0, 60)).kind
    'median'
    """
    return AggregateSpec("median", of, between)


@check.arguments
def quantile(of: str | Expression, rank: float, between: Bounds | None = None) -> AggregateSpec:
    """A quantile: nine in ten values are below `quantile(x, 0.9)`; values are clipped as in `sum`.

    >>> quantile("days", 0.9).rank
    0.9
    """
    return AggregateSpec("quantile", of, between, check.inner_probability(rank=rank))


@check.arguments
def min(of: str | Expression, between: Bounds | None = None) -> AggregateSpec:  # noqa: A001 - as people say it
    """A value near the minimum; the minimum itself belongs to one person and is never released.

    >>> min("days", between=(0, 60)).kind
    'min'
    """
    return AggregateSpec("min", of, between)


@check.arguments
def max(of: str | Expression, between: Bounds | None = None) -> AggregateSpec:  # noqa: A001 - as people say it
    """A value near the maximum; the maximum itself belongs to one person and is never released.

    >>> max("days", between=(0, 60)).kind
    'max'
    """
    return AggregateSpec("max", of, between)


@check.arguments
def mode(of: str | Expression, values: Sequence[Value] | None = None) -> AggregateSpec:
    """A most frequent value among the public `values`, or among those of the description.

    >>> mode("ward", values=["A", "B"]).values
    ('A', 'B')
    """
    if isinstance(values, str):
        raise BadParameter(
            "DP104",
            "values must be a list of values.",
            why="a text would be read as a list of letters.",
            fix=f"values=[{values!r}]" if values else 'values=["flu", "fracture"]',
        )
    return AggregateSpec("mode", of, values=None if values is None else tuple(values))
