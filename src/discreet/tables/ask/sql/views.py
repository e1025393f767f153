# SPDX-License-Identifier: Apache-2.0
"""Views: queries that a data set names, so that questions can use them as tables.

**Guarantee.** A view is text of the description. A question that uses it is parsed as if the query
stood there, so it is refused or answered like that.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.tables.ask.sql.refuse import question_error
from discreet.tables.ask.sql.rows import select_rows
from discreet.tables.ask.sql.selected import working_copy
from discreet.tables.ask.sql.text import parse_statement
from discreet.tables.ask.start import Dataset

__all__ = ["parse_view", "view_queries"]


def view_queries(dataset: Dataset) -> dict[str, exp.Expression]:
    """The queries of the views, by their names."""
    return {name: _parse_query(query) for name, query in dataset.views.items()}


def parse_view(dataset: Dataset, name: object, query: object) -> None:
    """Refuse a view that no question could use."""
    known = {other.casefold() for other in (*dataset.tables, *dataset.views)}
    if not isinstance(name, str) or not name.isidentifier() or name.casefold() in known:
        raise question_error(
            "DP701",
            f"a view cannot be named {name!r}.",
            "its name must be a word, and no table or view may have it.",
            'data = data.view("long_visits", "SELECT * FROM visits WHERE days > 7")',
        )
    statement = parse_statement(f"SELECT COUNT(*) FROM ({query}) AS {name}")  # noqa: S608 - parsed, not run
    select_rows(statement.select, working_copy(dataset), view_queries(dataset))


def _parse_query(query: str) -> exp.Expression:
    select = parse_statement(f"SELECT COUNT(*) FROM ({query}) AS v").select  # noqa: S608 - parsed, not run
    start = select.args.get("from_") or select.args["from"]
    query_node: exp.Expression = start.this.this
    return query_node
