# SPDX-License-Identifier: Apache-2.0
"""Walks over the relations and expressions of a plan: which tables, whose rows, which columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.errors import RefusedQuestion
from discreet.tables.data.expr import Expr, Read, leaves
from discreet.tables.data.sums import Lookup, Paired, Private, Relation
from discreet.tables.engines.source import SourceTable, same_units

__all__ = ["all_tables", "lookups", "normal", "private_tables", "reads_of", "unit_of"]


def normal(read: Read) -> Read:
    """Whether NULL is expected makes no difference to how a column is read."""
    return Read(read.table, read.column, read.of.with_null(True))


def reads_of(exprs: Iterable[Expr]) -> dict[Read, None]:
    """All columns that expressions read, each once, in their order."""
    return dict.fromkeys(normal(read) for expr in exprs for read in leaves(expr))


def private_tables(rows: Relation) -> list[str]:
    """The private tables of a relation."""
    if isinstance(rows, Private):
        return [rows.table]
    return private_tables(rows.rows) + (private_tables(rows.other) if isinstance(rows, Paired) else [])


def all_tables(rows: Relation) -> list[str]:
    """All tables of a relation."""
    if isinstance(rows, Private):
        return [rows.table]
    more = all_tables(rows.other) if isinstance(rows, Paired) else []
    return [*all_tables(rows.rows), *more, *([rows.table] if isinstance(rows, Lookup) else [])]


def lookups(rows: Relation) -> list[Lookup]:
    """The public tables that rows are matched with."""
    if isinstance(rows, Private):
        return []
    more = lookups(rows.other) if isinstance(rows, Paired) else []
    return [*lookups(rows.rows), *more, *([rows] if isinstance(rows, Lookup) else [])]


def unit_of(tables: Mapping[str, SourceTable], rows: Relation) -> str:
    """The unit's column in the first private table, or ROW; refuses what cannot be told apart."""
    names = all_tables(rows)
    if len(set(names)) < len(names):
        raise RefusedQuestion(
            "DP703",
            "a table is joined twice.",
            why="its columns could not be told apart.",
            fix="put the question to one copy of it",
        )
    private = [tables[name] for name in private_tables(rows)]
    for other in private[1:]:
        same_units(private[0], other)
    return str(private[0].unit)
