# SPDX-License-Identifier: Apache-2.0
"""An engine that speaks SQL: one statement for each question, and whole numbers back.

**Promise.** As `engine`. Everything that bounds a unit and everything that is summed happens in one statement, so it
sees one state of the data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from discreet.tables.engines import terms as t
from discreet.tables.engines.base import Base, Found
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import Relations, select
from discreet.tables.engines.source import SourceTable
from discreet.tables.engines.statements import Statements
from discreet.tables.engines.tree import reads_of
from discreet.tables.expr import Read
from discreet.tables.plan import Lookup, Sizes, Sums

__all__ = ["SqlEngine"]

_PAIRS = "pairs"


class SqlEngine(Base):
    """Tables somewhere, and a way to put SQL to them."""

    def __init__(
        self, dialect: Dialect, tables: Mapping[str, SourceTable], places: Mapping[str, exp.Table]
    ) -> None:
        super().__init__(tables)
        self._relations = Relations(dialect, self._tables, places)
        self._statements = Statements(self._relations)
        self._dialect = dialect

    @abstractmethod
    def _fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        """The rows of an answer."""

    def _sums(self, asked: Sums) -> Callable[[], Found]:
        return self._from_pairs(Pairs.of(asked), lambda source: self._statements.answer(asked, source))

    def _sizes(self, asked: Sizes) -> Callable[[], Found]:
        return self._from_pairs(Pairs.sized(asked), lambda source: self._statements.sizes(asked, source))

    def _from_pairs(self, pairs: Pairs, made: Callable[[exp.Table], exp.Select]) -> Callable[[], Found]:
        """Work that makes pairs and something of them, in one statement."""
        inner = self._statements.pairs(pairs)
        answer = made(exp.table_(_PAIRS)).with_(_PAIRS, as_=inner, copy=False)
        statement = self._dialect.sql(answer)
        return lambda: self._fetch(statement)

    def _values(self, reads: Sequence[Read]) -> Callable[[], Found]:
        inner = self._relations.cells(reads[0].table, reads_of(reads))
        columns = [t.column(self._relations.name_of(read)) for read in reads]
        statement = self._dialect.sql(select(columns, inner).distinct(copy=False))
        return lambda: self._fetch(statement)

    def _copies(self, lookup: Lookup) -> Callable[[], bool]:
        reads = reads_of(other for _, other in lookup.on)
        cells = [t.column(self._relations.name_of(read)) for read in reads]
        known = t.both(t.negated(t.is_null(cell.copy())) for cell in cells)
        twice = t.binary(exp.GT, t.everyone(), t.number(1))
        groups = select([t.number(1)], self._relations.cells(lookup.table, reads)).where(known, copy=False)
        groups = groups.group_by(*cells, copy=False).having(twice, copy=False).limit(1, copy=False)
        statement = self._dialect.sql(groups)
        return lambda: bool(self._fetch(statement))
