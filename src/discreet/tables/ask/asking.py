# SPDX-License-Identifier: Apache-2.0
"""The words with which a question is asked; a data set and a question that has begun understand the same ones.

    data.where(col("age") >= 18).group_by("ward", keys=WARDS).mean("days", between=(0, 60))
    data.group_by("ward").aggregate(n=count(), stay=mean("days"))

**Guarantee.** Nothing here reads a row or costs anything: every word returns a new question. What it costs and how wrong
the answer will be is told by `session.preview`, and only `session.release` answers it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.tables.ask import aggregates

if TYPE_CHECKING:
    from discreet.tables.ask.formula import Formula
    from discreet.tables.ask.query import Prepared, Query

__all__ = ["Asking"]


class Asking:
    """What can be said of rows, in any order, and then what is to be counted."""

    @property
    @abstractmethod
    def _query(self) -> Query:
        """The question as far as it has been asked."""

    @check.arguments
    def where(self, *conditions: Formula) -> Query:
        """The rows for which all conditions are true; where one is NULL the row is left out."""
        return self._query.filtered(conditions)

    @check.arguments
    def join(self, table: str, on: Any = None, *, keep: bool = False) -> Query:
        """Every row with the rows of another table that it matches.

        A public table is matched by `on`: a column of both, several, or {ours: theirs}; `keep` keeps rows that match
        nothing, with NULL. Another private table is matched within the rows of the same unit, by `on` if given.
        """
        return self._query.joined(table, on, keep)

    def group_by(self, *columns: str | Formula, keys: Any = None, **named: str | Formula) -> Query:
        """One answer for each group. `keys` lists the groups that are public: values, or tuples of values.

        Without it the description's values are used; where it has none, groups are found privately, and those that
        few people are in are withheld.
        """
        return self._query.grouped(columns, named, keys)

    def aggregate(self, *several: aggregates.Wanted, **named: aggregates.Wanted) -> Prepared:
        """Several numbers at once, which share one guarantee."""
        return self._query.asked(several, named)

    @check.arguments
    def count(self, of: str | Formula | None = None) -> Prepared:
        """How many rows; with `of`, how many rows in which it is not NULL."""
        return self.aggregate(aggregates.count(of))

    def units(self) -> Prepared:
        """How many units: patients, customers, whoever is protected."""
        return self.aggregate(aggregates.units())

    @check.arguments
    def sum(self, of: str | Formula, between: tuple[Any, Any] | None = None) -> Prepared:
        """The sum; values are first moved `between` two ends, or between those of the description."""
        return self.aggregate(aggregates.sum(of, between))

    @check.arguments
    def mean(self, of: str | Formula, between: tuple[Any, Any] | None = None) -> Prepared:
        """The mean."""
        return self.aggregate(aggregates.mean(of, between))

    @check.arguments
    def variance(self, of: str | Formula, between: tuple[Any, Any] | None = None) -> Prepared:
        """The variance."""
        return self.aggregate(aggregates.variance(of, between))

    @check.arguments
    def stddev(self, of: str | Formula, between: tuple[Any, Any] | None = None) -> Prepared:
        """The standard deviation."""
        return self.aggregate(aggregates.stddev(of, between))

    @check.arguments
    def median(self, of: str | Formula, between: tuple[Any, Any] | None = None) -> Prepared:
        """The median."""
        return self.aggregate(aggregates.median(of, between))

    @check.arguments
    def quantile(self, of: str | Formula, rank: float, between: tuple[Any, Any] | None = None) -> Prepared:
        """A quantile: nine in ten values lie below `quantile(x, 0.9)`."""
        return self.aggregate(aggregates.quantile(of, rank, between))

    @check.arguments
    def min(self, of: str | Formula, between: tuple[Any, Any] | None = None) -> Prepared:
        """A low quantile: the least value itself is one person's, and is never told."""
        return self.aggregate(aggregates.min(of, between))

    @check.arguments
    def max(self, of: str | Formula, between: tuple[Any, Any] | None = None) -> Prepared:
        """A high quantile: the greatest value itself is one person's, and is never told."""
        return self.aggregate(aggregates.max(of, between))

    @check.arguments
    def mode(self, of: str | Formula, values: Sequence[Any] | None = None) -> Prepared:
        """The most frequent of some public values, or of those of the description."""
        return self.aggregate(aggregates.mode(of, values))

    @check.arguments
    def histogram(self, of: str | Formula, edges: Sequence[Any]) -> Prepared:
        """How many rows lie between each two neighbours of rising edges, and below and above all of them."""
        return self._query.binned(of, edges)
