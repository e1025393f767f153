# SPDX-License-Identifier: Apache-2.0
"""Walks over the relations and expressions of a plan: which tables, whose rows, which columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.expr import Expr, Read, leaves
from discreet.tables.algebra.sums import (
    Linked,
    Lookup,
    Paired,
    PerUnit,
    Private,
    Relation,
    Stacked,
    Windowed,
    inner_relations,
)
from discreet.tables.engines.source import SourceTable, same_units

__all__ = [
    "all_tables",
    "inner_names",
    "labels",
    "lookups",
    "normal",
    "private_tables",
    "reads_of",
    "unit_of",
]


def normal(read: Read) -> Read:
    """A read without what it says about NULL, which makes no difference to the cells."""
    return Read(read.table, read.column, read.of.with_null(True))


def reads_of(exprs: Iterable[Expr]) -> dict[Read, None]:
    """All columns that expressions read, each once, in order."""
    return dict.fromkeys(normal(read) for expr in exprs for read in leaves(expr))


def private_tables(rows: Relation) -> list[str]:
    """The private tables whose own column says whose a row is, wherever they are read."""
    own = [rows.table] if isinstance(rows, Private) else []
    return own + [name for inner in inner_relations(rows) for name in private_tables(inner)]


def all_tables(rows: Relation) -> list[str]:
    """All tables that are read; a table that is read twice is there twice."""
    own = [rows.table] if isinstance(rows, Private | Linked | Lookup) else []
    return own + [name for inner in inner_relations(rows) for name in all_tables(inner)]


def labels(rows: Relation) -> list[str]:
    """The names by which the columns of a relation are read."""
    match rows:
        case Private() | Linked():
            return [rows.label]
        case PerUnit() | Stacked():
            return [rows.name]
        case Lookup():
            return [*labels(rows.rows), rows.label]
        case Windowed():
            return [*labels(rows.rows), rows.name]
        case Paired():
            hidden = rows.kind in {"semi", "anti"}
            return labels(rows.rows) + ([] if hidden else labels(rows.other))
    return labels(rows.rows)


def lookups(rows: Relation) -> list[Lookup]:
    """The public tables that rows are matched with."""
    own = [rows] if isinstance(rows, Lookup) else []
    return own + [lookup for inner in inner_relations(rows) for lookup in lookups(inner)]


def unit_of(tables: Mapping[str, SourceTable], rows: Relation) -> str:
    """The unit's column in the first private table, or ROW; refuses what cannot be told apart."""
    _check_labels(rows)
    private = [tables[name] for name in dict.fromkeys(private_tables(rows))]
    if all(table.unit == ROW for table in private) and not _is_put_together(rows):
        return ROW
    for other in private[1:] or private * _is_put_together(rows):
        same_units(private[0], other)
    return str(private[0].unit)


def inner_names(names: Iterable[str]) -> dict[str, str]:
    """Safe names for computed columns: engines may take two names of a question for one."""
    return {name: f"d{number}" for number, name in enumerate(names)}


def _check_labels(rows: Relation) -> None:
    names = labels(rows)
    if isinstance(rows, Paired):
        names = [*labels(rows.rows), *labels(rows.other)]
    if len(set(names)) < len(names):
        raise RefusedQuestion(
            "DP703",
            "a table is joined twice.",
            why="its columns could not be told apart.",
            fix="put the question to one copy of it",
        )
    for inner in inner_relations(rows):
        _check_labels(inner)


def _is_put_together(rows: Relation) -> bool:
    """Whether rows are put together by their unit, and not only filtered, looked up and stacked."""
    own = isinstance(rows, Linked | Paired | PerUnit | Windowed)
    return own or any(map(_is_put_together, inner_relations(rows)))
