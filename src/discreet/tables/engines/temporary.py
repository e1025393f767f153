# SPDX-License-Identifier: Apache-2.0
"""Temporary tables of a DuckDB connection, under names of ours.

**Promise.** Every statement sees the files as they were when they were opened, or fails (`frozen`). What is made
belongs to this connection and is never written anywhere but to a private folder, if memory runs out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.frozen import Frozen
from discreet.tables.engines.terms import Term

__all__ = ["Temporary"]


class Temporary:
    """A connection on which tables are made and forgotten."""

    def __init__(self, connection: Any, dialect: Dialect, frozen: Frozen) -> None:
        self.connection, self._dialect, self._frozen = connection, dialect, frozen
        self.made = 0

    def fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        """The rows of an answer."""
        self._frozen.check()
        rows: Sequence[Sequence[Any]] = self.connection.execute(statement).fetchall()
        self._frozen.check()
        return rows

    def count(self, table: exp.Table) -> int:
        """How many rows one of the tables has; the number stays in the engine."""
        rows = self.fetch(
            self._dialect.sql(exp.Select(expressions=[exp.Count(this=exp.Star())]).from_(table))
        )
        return int(rows[0][0])

    def store(self, rows: exp.Query) -> exp.Table:
        """Rows as a table."""
        self.made += 1
        name = f"discreet_{self.made}"
        self.fetch(f"CREATE TEMP TABLE {name} AS {self._dialect.sql(rows)}")
        return exp.table_(name)

    def enumerate(self, name: str, values: Term) -> exp.DataType:
        """A type whose values are those of a query, each a small number in memory."""
        self.fetch(f"CREATE OR REPLACE TEMP TYPE {name} AS ENUM ({self._dialect.sql(values)})")
        return exp.DataType.build(name, udt=True)

    def drop(self, table: exp.Table) -> None:
        """Forget a table."""
        self.connection.execute(f"DROP TABLE IF EXISTS {table.name}")
