# SPDX-License-Identifier: Apache-2.0
"""Temporary tables of a DuckDB connection, under names of ours.

**Guarantee.** Every statement sees the files as they were when they were opened, or fails
(`frozen`). Everything made here belongs to this connection, and is written only to a private
folder, if memory runs out.

Files are first read by DuckDB's own reader, which fails on some cells. A statement that fails runs
once more with `slower` readers, which never fail, and they are used from then on. Both give the
same value for every cell that both can read, and neither skips a row because of statistics in the
file (`parquet.plain_terms`). So which reader ran makes no difference to any number; only the time
shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlglot import exp

from discreet.tables.algebra.frozen import Frozen
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.terms import Term

__all__ = ["Connected", "Temporary"]


@dataclass(frozen=True)
class Connected:
    """A connection with its tables, its `close`, and slower readers that never fail."""

    connection: Any
    close: Callable[[], object]
    slower: Sequence[Callable[[], None]] = ()


T = TypeVar("T")


class Temporary:
    """A connection on which tables are made and dropped."""

    def __init__(self, connected: Connected, dialect: Dialect, frozen: Frozen) -> None:
        self.connection, self.close = connected.connection, connected.close
        self._dialect, self._frozen = dialect, frozen
        self._slower = list(connected.slower)
        self.made = 0

    def fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        """The rows of an answer."""
        return self._run(statement, _all_rows)

    def fetch_arrays(self, statement: str) -> dict[str, Any]:
        """The columns of an answer as arrays; they are 64-bit numbers without NULL."""
        return self._run(statement, _all_columns)

    def fetch_arrow(self, statement: str) -> Any:
        """The rows of an answer as an Arrow table."""
        return self._run(statement, _arrow_table)

    def _run(self, statement: str, read: Callable[[Any], T]) -> T:
        self._frozen.check()
        try:
            result = self._answer(statement, read)
        except Exception:
            if not self._slower:
                raise
            while self._slower:
                # first put in place, then forgotten: whoever is stopped in between does it once
                # more
                self._slower[-1]()
                self._slower.pop()
            result = self._answer(statement, read)
        self._frozen.check()
        return result

    def _answer(self, statement: str, read: Callable[[Any], T]) -> T:
        try:
            return read(self.connection.execute(statement))
        except RuntimeError as stopped:
            # DuckDB reports Ctrl-C with this text; its own errors have other types.
            if type(stopped) is RuntimeError and str(stopped) == "Query interrupted":
                raise KeyboardInterrupt from None
            raise

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
        """Drop a table."""
        self.connection.execute(f"DROP TABLE IF EXISTS {table.name}")


def _all_rows(result: Any) -> Sequence[Sequence[Any]]:
    rows: Sequence[Sequence[Any]] = result.fetchall()
    return rows


def _all_columns(result: Any) -> dict[str, Any]:
    columns: dict[str, Any] = result.fetchnumpy()
    return columns


def _arrow_table(result: Any) -> Any:
    return result.to_arrow_table()
