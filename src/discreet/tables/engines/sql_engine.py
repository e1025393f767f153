# SPDX-License-Identifier: Apache-2.0
"""An engine that speaks SQL: it reads and stores the rows of a question once, and sums what is
stored.

**Guarantee.** As `engine`. A source is evaluated once for each question, even if it changes: a view
may be random, a table may grow meanwhile. Bounds and sums are made from the same stored rows, in
which every number is within its bounds. A stored row of nobody is dropped again, because a source
that is evaluated twice within its own statement may have passed another unit to the filter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp

from discreet.tables.algebra.expr import Read
from discreet.tables.algebra.sums import BoundedSums, Lookup, Relation, UnitSizes
from discreet.tables.engines import terms as t
from discreet.tables.engines.base import EngineBase, ResultRows
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.public import arrow_rows, known_columns
from discreet.tables.engines.relation import Relations, select
from discreet.tables.engines.source import SourceTable
from discreet.tables.engines.statements import Statements
from discreet.tables.engines.terms import UNIT
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

    def _sums(self, request: BoundedSums) -> Callable[[], ResultRows]:
        return self._from_pairs(Pairs.of(request), lambda source: self._statements.answer(request, source))

    def _sizes(self, request: UnitSizes) -> Callable[[], ResultRows]:
        return self._from_pairs(
            Pairs.for_sizes(request), lambda source: self._statements.sizes(request, source)
        )

    @abstractmethod
    def _from_stored(
        self, relation: Relation, rows: exp.Select, answer: Callable[[exp.Table], exp.Select]
    ) -> ResultRows:
        """Evaluate the rows of a relation once, store them, fetch what is made of the stored ones,
        and forget them.
        """

    def _from_pairs(
        self, pairs: Pairs, answer: Callable[[exp.Table], exp.Select]
    ) -> Callable[[], ResultRows]:
        """Work that stores rows, and makes pairs and something of them."""
        rows, whole_answer = self._rows_and_answer(pairs, answer)
        return lambda: self._from_stored(pairs.rows, rows.copy(), whole_answer)

    def _rows_and_answer(
        self, pairs: Pairs, answer: Callable[[exp.Table], exp.Select]
    ) -> tuple[exp.Select, Callable[[exp.Table], exp.Select]]:
        """What is stored, and what is made of it; refuses what cannot be request, before anything
        is run.
        """
        rows = self._relations.rows(pairs.rows, reads_of([*pairs.keys, *pairs.features]))
        unit = [] if self._is_single(pairs.rows) else [t.column(UNIT)]

        def whole_answer(stored: exp.Table) -> exp.Select:
            owned = select([exp.Star()], stored)
            for column in unit:
                owned = owned.where(t.negate(t.is_null(column.copy())), copy=False)
            valued = self._statements.pair_values(pairs, owned, [column.copy() for column in unit])
            inner = self._statements.pairs(pairs, valued)
            return answer(exp.table_(_PAIRS)).with_(_PAIRS, as_=inner, copy=False)

        whole_answer(exp.table_(STORED))
        return rows, whole_answer

    def _values(self, reads: Sequence[Read]) -> Callable[[], ResultRows]:
        inner = self._relations.cells(self._tables[reads[0].table], reads_of(reads), reads[0].table)
        columns = [t.column(self._relations.name_of(read)) for read in reads]
        statement = self._dialect.sql(select(columns, inner).distinct(copy=False))
        return lambda: self._fetch(statement)

    def _public_rows(self, source: SourceTable) -> Any:
        return arrow_rows(source, self._fetch(self._public_statement(source)))

    def _public_statement(self, source: SourceTable) -> str:
        """SELECT the columns of a public table as they are."""
        columns = [t.column(column.name) for column in known_columns(source)]
        return self._dialect.sql(exp.Select(expressions=columns).from_(self._relations.places[source.name]))

    def _has_copies(self, lookup: Lookup) -> Callable[[], bool]:
        reads = reads_of(other for _, other in lookup.on)
        cells = [t.column(self._relations.name_of(read)) for read in reads]
        has_key = t.both(t.negate(t.is_null(cell.copy())) for cell in cells)
        twice = t.binary(exp.GT, t.everyone(), t.number(1))
        groups = select(
            [t.number(1)], self._relations.cells(self._tables[lookup.table], reads, lookup.label)
        ).where(has_key, copy=False)
        groups = groups.group_by(*cells, copy=False).having(twice, copy=False).limit(1, copy=False)
        statement = self._dialect.sql(groups)
        return lambda: bool(self._fetch(statement))


def stored_within(
    rows: exp.Select, answer: Callable[[exp.Table], exp.Select], *, materialized: bool
) -> exp.Select:
    """What is made of rows, as one statement; `materialized` has the engine evaluate them once,
    whatever they are.
    """
    statement = answer(exp.table_(STORED))
    statement.with_(STORED, as_=rows, materialized=materialized or None, copy=False)
    # A part of a statement sees only the parts before it.
    parts = statement.args["with_"].expressions
    statement.args["with_"].set("expressions", [parts[-1], *parts[:-1]])
    return statement
