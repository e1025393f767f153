# SPDX-License-Identifier: Apache-2.0
"""The methods with which a question is built; a data set and an unfinished question have the same
ones.

    data.where(col("age") >= 18).group_by("ward", keys=WARDS).mean("days", between=(0, 60))
    data.group_by("ward").aggregate(n=count(), stay=mean("days"))

**Guarantee.** Building a question reads no row and costs nothing; every method returns a new
question. `session.preview` shows its cost and its margin of error, and only `session.release`
answers it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from discreet import check
from discreet.tables.algebra.types import Value
from discreet.tables.ask import aggregates
from discreet.tables.ask.aggregates import Bounds

if TYPE_CHECKING:
    from discreet.tables.ask.expressions import Expression, Number
    from discreet.tables.ask.query import AggregateQuery, Query

__all__ = ["QueryMethods"]


class QueryMethods:
    """Chooses, joins and groups rows, in any order, and then aggregates them."""

    @property
    @abstractmethod
    def _query(self) -> Query:
        """The question built so far."""

    @check.arguments
    def where(self, *conditions: Expression) -> Query:
        """Keep the rows for which all conditions are true; a row with NULL in a condition is
        dropped.
        """
        return self._query.with_conditions(conditions)

    @check.arguments
    def join(
        self, table: str, on: str | Sequence[str] | Mapping[str, str] | None = None, *, keep: bool = False
    ) -> Query:
        """Join each row with the matching rows of another table.

        A public table is matched by `on`: a column of both tables, several, or {ours: theirs}.
        `keep` keeps rows without a match, with NULL in the columns of the public table. Another
        private table is matched within the rows of the same unit, and also by `on` if it is given.
        """
        return self._query.with_table(table, on, keep=keep)

    def group_by(
        self,
        *columns: str | Expression,
        keys: Iterable[Value | tuple[Value, ...]] | None = None,
        **named_columns: str | Expression,
    ) -> Query:
        """One row of the answer for each group; `named_columns` are keys with names of your own.

        `keys` lists the public groups: values, or tuples of values. By default the values of the
        description are used. If it has none, key selection finds the groups privately, and groups
        of few people are suppressed.
        """
        return self._query.with_keys(columns, named_columns, keys)

    def cube(
        self, *columns: str | Expression, objective: str | Mapping[str | tuple[str, ...], float] = "each"
    ) -> Query:
        """A table for every subset of the columns, all in one release: counts, sums, means,
        variances.

        The tables agree with each other: every subtotal is the sum of its parts. `objective` says
        which errors are to be small: of each table ("each"), of all cells ("cells"), of the worst
        table ("worst"), or weights of tables such as `{("sex",): 5, ("sex", "race"): 1}`.
        """
        return self._query.with_grouping("CUBE", [columns], objective)

    def rollup(
        self, *columns: str | Expression, objective: str | Mapping[str | tuple[str, ...], float] = "each"
    ) -> Query:
        """A table for all columns, for all but the last, and so on to the total, all in one
        release.
        """
        return self._query.with_grouping("ROLLUP", [columns], objective)

    def grouping_sets(
        self,
        *sets: Sequence[str | Expression],
        objective: str | Mapping[str | tuple[str, ...], float] = "each",
    ) -> Query:
        """A table for each of several lists of columns, all in one release; the total is `()`."""
        return self._query.with_grouping("GROUPING SETS", [_columns(some) for some in sets], objective)

    @check.arguments
    def marginals(
        self,
        order: int | Sequence[int],
        columns: Sequence[str | Expression] | None = None,
        objective: str | Mapping[str | tuple[str, ...], float] = "each",
    ) -> Query:
        """A table for every `order` of the columns, all in one release; `order=(1, 2)` asks for
        both.

        By default the columns are those whose values the description lists.
        """
        return self._query.with_marginals(order, columns, objective)

    @check.arguments
    def ranges(
        self, column: str | Expression, by: str | Expression | Sequence[str | Expression] = ()
    ) -> Query:
        """Every range of an ordered column, such as the ages from 30 to 44, all in one release.

        With `by` they are there for every subset of those columns too. The answer has a row for
        each value; `answer.between(30, 44)`, `answer.cumulative()` and `answer.quantile(0.5)` are
        free.
        """
        return self._query.with_ordered("RANGES", column, _columns(by))

    @check.arguments
    def prefixes(
        self, column: str | Expression, by: str | Expression | Sequence[str | Expression] = ()
    ) -> Query:
        """The rows up to each value of an ordered column, all in one release: the best noise for a
        cumulative distribution and its quantiles. With `by`, also for every subset of those
        columns.
        """
        return self._query.with_ordered("PREFIXES", column, _columns(by))

    def aggregate(
        self, *specs: aggregates.AggregateSpec, **named_specs: aggregates.AggregateSpec
    ) -> AggregateQuery:
        """Several aggregates in one release, with one guarantee: `aggregate(n=count(),
        stay=mean("days"))`.
        """
        return self._query.finish(specs, named_specs)

    @check.arguments
    def count(self, of: str | Expression | None = None) -> AggregateQuery:
        """The number of rows; with `of`, the number of rows in which it is not NULL."""
        return self.aggregate(aggregates.count(of))

    @check.arguments
    def count_distinct(self, of: str | Expression) -> AggregateQuery:
        """The number of different values; of one unit at most `at_most` values count."""
        return self.aggregate(aggregates.count_distinct(of))

    def units(self) -> AggregateQuery:
        """The number of privacy units, such as patients or customers."""
        return self.aggregate(aggregates.units())

    @check.arguments
    def sum(self, of: str | Expression, between: Bounds | None = None) -> AggregateQuery:
        """The sum; values are clipped to `between`, or to the bounds of the description."""
        return self.aggregate(aggregates.sum(of, between))

    @check.arguments
    def mean(self, of: str | Expression, between: Bounds | None = None) -> AggregateQuery:
        """The mean; values are clipped as in `sum`."""
        return self.aggregate(aggregates.mean(of, between))

    @check.arguments
    def variance(
        self, of: str | Expression, between: Bounds | None = None, *, sample: bool = False
    ) -> AggregateQuery:
        """The variance of the population, or of a `sample`; values are clipped as in `sum`."""
        return self.aggregate(aggregates.variance(of, between, sample=sample))

    @check.arguments
    def stddev(
        self, of: str | Expression, between: Bounds | None = None, *, sample: bool = False
    ) -> AggregateQuery:
        """The standard deviation of the population, or of a `sample`; values are clipped as in
        `sum`.
        """
        return self.aggregate(aggregates.stddev(of, between, sample=sample))

    @check.arguments
    def covariance(self, of: str | Expression, beside: str | Expression) -> AggregateQuery:
        """The covariance of two columns in the population."""
        return self.aggregate(aggregates.covariance(of, beside))

    @check.arguments
    def correlation(self, of: str | Expression, beside: str | Expression) -> AggregateQuery:
        """The correlation of two columns (Pearson's)."""
        return self.aggregate(aggregates.correlation(of, beside))

    @check.arguments
    def weighted_mean(self, of: str | Expression, weights: str | Expression) -> AggregateQuery:
        """The mean in which each row has a weight."""
        return self.aggregate(aggregates.weighted_mean(of, weights))

    @check.arguments
    def median(self, of: str | Expression, between: Bounds | None = None) -> AggregateQuery:
        """The median; values are clipped as in `sum`."""
        return self.aggregate(aggregates.median(of, between))

    @check.arguments
    def quantile(self, of: str | Expression, rank: float, between: Bounds | None = None) -> AggregateQuery:
        """A quantile: nine in ten values are below `quantile(x, 0.9)`; values are clipped as in
        `sum`.
        """
        return self.aggregate(aggregates.quantile(of, rank, between))

    @check.arguments
    def min(self, of: str | Expression, between: Bounds | None = None) -> AggregateQuery:
        """A value near the minimum; the minimum itself belongs to one person and is never released."""
        return self.aggregate(aggregates.min(of, between))

    @check.arguments
    def max(self, of: str | Expression, between: Bounds | None = None) -> AggregateQuery:
        """A value near the maximum; the maximum itself belongs to one person and is never released."""
        return self.aggregate(aggregates.max(of, between))

    @check.arguments
    def mode(self, of: str | Expression, values: Sequence[Value] | None = None) -> AggregateQuery:
        """A most frequent value among the public `values`, or among those of the description."""
        return self.aggregate(aggregates.mode(of, values))

    @check.arguments
    def histogram(self, of: str | Expression, edges: Sequence[Number] | None = None) -> AggregateQuery:
        """The number of rows in each bucket between increasing `edges`, and below and above all of
        them. Without edges, round ones divide the bounds into 6 to 15 buckets.
        """
        return self._query.with_buckets(of, edges)


def _columns(some: str | Expression | Sequence[str | Expression]) -> Sequence[str | Expression]:
    """The columns of one table; a single one stands for itself."""
    return some if isinstance(some, list | tuple) else cast("Sequence[str | Expression]", (some,))
