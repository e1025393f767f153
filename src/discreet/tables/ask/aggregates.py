# SPDX-License-Identifier: Apache-2.0
"""What can be asked of a group, before it is known of which rows: `count()`, `mean("days", between=(0, 60))`.

Each returns a `Wanted`, which `aggregate(n=count(), stay=mean("days"))` gives its name and a question its types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.tables.ask.formula import Formula

__all__ = [
    "Wanted",
    "count",
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
]


@dataclass(frozen=True)
class Wanted:
    """One number that is wanted of each group; `name` is the column that it becomes, or empty for the usual one."""

    kind: str
    of: str | Formula | None = None
    between: tuple[Any, Any] | None = None
    rank: float | None = None
    values: tuple[Any, ...] | None = None
    name: str = ""

    def named(self, name: str) -> Wanted:
        """The same with a name of its own."""
        return replace(self, name=name)


@check.arguments
def count(of: str | Formula | None = None) -> Wanted:
    """How many rows; with `of`, in how many it is not NULL."""
    return Wanted("count" if of is None else "count_of", of)


@check.arguments
def units() -> Wanted:
    """How many units: patients, customers, whoever is protected."""
    return Wanted("units")


@check.arguments
def sum(of: str | Formula, between: tuple[Any, Any] | None = None) -> Wanted:  # noqa: A001 - as people say it
    """The sum."""
    return Wanted("sum", of, between)


@check.arguments
def mean(of: str | Formula, between: tuple[Any, Any] | None = None) -> Wanted:
    """The mean."""
    return Wanted("mean", of, between)


@check.arguments
def variance(of: str | Formula, between: tuple[Any, Any] | None = None) -> Wanted:
    """The variance."""
    return Wanted("variance", of, between)


@check.arguments
def stddev(of: str | Formula, between: tuple[Any, Any] | None = None) -> Wanted:
    """The standard deviation."""
    return Wanted("stddev", of, between)


@check.arguments
def median(of: str | Formula, between: tuple[Any, Any] | None = None) -> Wanted:
    """The median."""
    return Wanted("median", of, between)


@check.arguments
def quantile(of: str | Formula, rank: float, between: tuple[Any, Any] | None = None) -> Wanted:
    """A quantile: nine in ten values lie below `quantile(x, 0.9)`."""
    return Wanted("quantile", of, between, check.inner_probability(rank=rank))


@check.arguments
def min(of: str | Formula, between: tuple[Any, Any] | None = None) -> Wanted:  # noqa: A001 - as people say it
    """A low quantile, as what can be told of the least value."""
    return Wanted("min", of, between)


@check.arguments
def max(of: str | Formula, between: tuple[Any, Any] | None = None) -> Wanted:  # noqa: A001 - as people say it
    """A high quantile, as what can be told of the greatest value."""
    return Wanted("max", of, between)


@check.arguments
def mode(of: str | Formula, values: Sequence[Any] | None = None) -> Wanted:
    """The most frequent of some public values, or of those of the description."""
    if isinstance(values, str):
        raise BadParameter(
            "DP104",
            "values must be a list of values.",
            why="a text is a list of letters.",
            fix=f"values=[{values!r}]"
            if isinstance(values, str) and values
            else 'values=["flu", "fracture"]',
        )
    return Wanted("mode", of, values=None if values is None else tuple(values))
