# SPDX-License-Identifier: Apache-2.0
"""An engine that speaks SQL: the rows of a question are read once and stored, and whole numbers are made from what is stored.

**Guarantee.** As `engine`. A source is evaluated once for each question, however often what it says changes: a view may be
random, a table may grow meanwhile. What bounds a unit and what is summed are both made from the stored rows, in which a
number is within its bounds and a unit is what it is. A stored row of nobody is dropped again: a source that is
evaluated twice within its own statement may have told the filter something else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp

from discreet.tables.data.expr import Read
from discreet.tables.data.sums import BoundedSums, Lookup, Relation, UnitSizes
from discreet.tables.engines import terms as t
from discreet.tables.engines.base import EngineBase, Found
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import UNIT, Relations, select
from discreet.tables.engines.source import SourceTable
from discreet.tables.engines.statements import Statements
from discreet.tables.engines.tree import reads_of

__all__ = ["STORED", "SqlEngine", "stored_within"]

#: The name of stored rows where they are a part of the statement.
STORED: Final = "stored"
_PAIRS = "pairs"


class SqlEngine(EngineBase):
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

    def _sums(self, asked: BoundedSums) -> Callable[[], Found]:
        return self._from_pairs(Pairs.of(asked), lambda source: self._statements.answer(asked, source))

    def _sizes(self, asked: UnitSizes) -> Callable[[], Found]:
        return self._from_pairs(Pairs.for_sizes(asked), lambda source: self._statements.sizes(asked, source))

    @abstractmethod
    def _from_stored(
        self, relation: Relation, rows: exp.Select, made: Callable[[exp.Table], exp.Select]
    ) -> Found:
        """Evaluate the rows of a relation once, store them, fetch what is made of the stored ones, and forget them."""

    def _from_pairs(self, pairs: Pairs, made: Callable[[exp.Table], exp.Select]) -> Callable[[], Found]:
        """Work that stores rows, and makes pairs and something of them."""
        rows, answer = self._rows_and_answer(pairs, made)
        return lambda: self._from_stored(pairs.rows, rows.copy(), answer)

    def _rows_and_answer(
        self, pairs: Pairs, made: Callable[[exp.Table], exp.Select]
    ) -> tuple[exp.Select, Callable[[exp.Table], exp.Select]]:
        """What is stored, and what is made of it; refuses what cannot be asked, before anything is run."""
        rows = self._relations.rows(pairs.rows, reads_of([*pairs.keys, *pairs.features]))
        unit = [] if self._single(pairs.rows) else [t.column(UNIT)]

        def answer(stored: exp.Table) -> exp.Select:
            known = select([exp.Star()], stored)
            for whose in unit:
                known = known.where(t.negate(t.is_null(whose.copy())), copy=False)
            valued = self._statements.pair_values(pairs, known, [whose.copy() for whose in unit])
            inner = self._statements.pairs(pairs, valued)
            return made(exp.table_(_PAIRS)).with_(_PAIRS, as_=inner, copy=False)

        answer(exp.table_(STORED))
        return rows, answer

    def _values(self, reads: Sequence[Read]) -> Callable[[], Found]:
        inner = self._relations.cells(reads[0].table, reads_of(reads))
        columns = [t.column(self._relations.name_of(read)) for read in reads]
        statement = self._dialect.sql(select(columns, inner).distinct(copy=False))
        return lambda: self._fetch(statement)

    def _copies(self, lookup: Lookup) -> Callable[[], bool]:
        reads = reads_of(other for _, other in lookup.on)
        cells = [t.column(self._relations.name_of(read)) for read in reads]
        known = t.both(t.negate(t.is_null(cell.copy())) for cell in cells)
        twice = t.binary(exp.GT, t.everyone(), t.number(1))
        groups = select([t.number(1)], self._relations.cells(lookup.table, reads, lookup.label)).where(
            known, copy=False
        )
        groups = groups.group_by(*cells, copy=False).having(twice, copy=False).limit(1, copy=False)
        statement = self._dialect.sql(groups)
        return lambda: bool(self._fetch(statement))


def stored_within(
    rows: exp.Select, made: Callable[[exp.Table], exp.Select], *, materialized: bool
) -> exp.Select:
    """What is made of rows, as one statement; `materialized` has the engine evaluate them once, whatever they are."""
    answer = made(exp.table_(STORED))
    answer.with_(STORED, as_=rows, materialized=materialized or None, copy=False)
    # a part of a statement sees only those that come before it
    parts = answer.args["with_"].expressions
    answer.args["with_"].set("expressions", [parts[-1], *parts[:-1]])
    return answer
