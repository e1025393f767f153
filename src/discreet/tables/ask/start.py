# SPDX-License-Identifier: Apache-2.0
"""A data set, as users hold it: described tables, and the methods with which a question starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet import check
from discreet.errors import BadParameter, RefusedQuestion
from discreet.tables.ask.columns import similar_names
from discreet.tables.ask.methods import QueryMethods
from discreet.tables.data.dataset import DescribedTables

if TYPE_CHECKING:
    from discreet.tables.ask.query import Query

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(QueryMethods, DescribedTables):
    """Tables in an engine, with their public description, made by `dp.open`.

    A question starts with `data["visits"]`, or with `data` itself if it has a single private table.

    **Guarantee.** A data set never shows a row, and neither does a question built from it.
    Everything that it shows comes from the description and from schemas. Only a session reads rows,
    and it charges first.

    >>> import discreet as dp
    >>> from discreet import data
    >>> adult = dp.open(data.path("adult.toml"))
    >>> adult.where(dp.col("age") >= 18).group_by("sex").count().text
    'SELECT sex, COUNT(*) FROM adult WHERE age >= 18 GROUP BY sex'
    """

    @classmethod
    @check.arguments
    def from_toml(cls, text: str) -> Dataset:
        """The data set that a description alone describes, without its rows.

        `text` is what `to_toml` returns, or a TOML description that states the type of every
        column. Questions can be built and previewed where the rows are not; every one that would
        read a row is refused (DP803).

        **Guarantee.** Nothing is opened and no row is read. Questions compile as they do for the
        data set that was described, so they have the same preview and the same cost.

        Why it holds: a mechanism follows from the question and the description alone. What would
        break it: a public table in the question, whose rows are needed; it is refused.

        >>> import discreet as dp
        >>> from discreet import data
        >>> adult = dp.open(data.path("adult.toml"))
        >>> described = Dataset.from_toml(adult.to_toml())
        >>> session = dp.Session(described, limit=dp.Limit.filter(epsilon=1))
        >>> session.preview("SELECT COUNT(*) FROM adult", epsilon=0.1).cost.epsilon(delta=0)
        0.1
        """
        from discreet.tables.data.described import DescribedEngine, tables_of
        from discreet.tables.data.toml import parse

        if not isinstance(text, str):
            raise BadParameter(
                "DP104",
                f"a description is text in TOML, not {type(text).__name__}.",
                why="it says who is protected, and what is publicly known of each column.",
                fix="Dataset.from_toml(data.to_toml())   or  dp.open('visits.toml')",
            )
        description = parse(text, Path("description.toml"))
        tables = tables_of(description)
        data = cls(
            description.name,
            tables,
            description.protect,
            DescribedEngine(description.engine or "duckdb", tables),
            description.version,
            description.budget,
            resources=description.resources,
        )
        for name, query in description.views.items():
            data = data.view(name, query)
        return data

    def __getitem__(self, table: str) -> Query:
        """The start of a question about one of several private tables."""
        # Building a question loads the SQL parser; opening a data set does not.
        from discreet.tables.ask.query import Query

        private = self._private_names
        if table in private:
            return Query(self, table)
        raise RefusedQuestion(
            "DP701",
            f"there is no private table {table!r}.",
            why="a question starts with a private table; public data need no noise.",
            fix=f"use {similar_names(str(table), private)}",
        )

    def view(self, name: str, query: str) -> Dataset:
        """The data set in which SQL can use a query as a table.

        **Guarantee.** A view costs nothing and reads nothing; a question that uses it is the
        question with the query in its place.
        """
        # Parsing loads the SQL parser; opening a data set does not.
        from discreet.tables.ask.sql.views import parse_view

        parse_view(self, name, query)
        return replace(self, views={**self.views, name: query})

    @property
    def _query(self) -> Query:
        """The start of a question about the only private table."""
        private = self._private_names
        if len(private) == 1:
            return self[private[0]]
        raise RefusedQuestion(
            "DP701",
            "the data set has several private tables.",
            why="a question starts with the rows of one of them.",
            fix=f'data["{private[0]}"].count()',
        )

    @property
    def _private_names(self) -> list[str]:
        return [table.name for table in self.tables.values() if table.private]
