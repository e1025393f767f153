# SPDX-License-Identifier: Apache-2.0
"""The rows of a query as a table of the question, and UNION ALL: several of them below each other.

**Guarantee.** A row keeps its unit. What a unit has in a stack is what it has in the parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.tables.algebra.expr import Expr, align
from discreet.tables.algebra.sums import Stacked
from discreet.tables.algebra.types import NUMBER
from discreet.tables.ask import build
from discreet.tables.ask.sql.refuse import question_error
from discreet.tables.ask.sql.scalar import Scalar
from discreet.tables.ask.sql.scope import FromItem, NameScope
from discreet.tables.ask.sql.selected import MadeColumn, SelectedRows, made_column, typed_column
from discreet.tables.data.dataset import Column

__all__ = ["QueryRows", "project", "stack"]


@dataclass(frozen=True)
class QueryRows:
    """The rows of a query, and its columns, which are expressions in the scope of the rows."""

    rows: SelectedRows
    columns: Mapping[str, exp.Expression]


def project(query: QueryRows, alias: str) -> SelectedRows:
    """The rows of a query as a table, so that a join can leave its columns empty."""
    return _as_table(alias, [query], [_made_columns(query)])


def stack(parts: Sequence[QueryRows]) -> QueryRows:
    """UNION ALL of two queries, with the names of the first."""
    first, second = parts
    if len(first.columns) != len(second.columns):
        raise question_error(
            "DP702",
            f"the parts of UNION ALL have {len(first.columns)} and {len(second.columns)} columns.",
            "rows below each other have the same columns.",
            f"leave out {', '.join(_more_columns(first, second))}",
        )
    columns_of_parts = [_made_columns(part) for part in parts]
    names = list(first.columns)
    columns_of_parts[1] = dict(zip(names, columns_of_parts[1].values(), strict=True))
    columns_of_parts = [
        dict(zip(names, column, strict=True)) for column in zip(*_alike(parts, columns_of_parts), strict=True)
    ]
    rows = _as_table("union", list(parts), columns_of_parts)
    alias = rows.scope.sources[0].alias
    columns: dict[str, exp.Expression] = {
        name: exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(alias, quoted=True))
        for name in names
    }
    return QueryRows(rows, columns)


def _more_columns(one: QueryRows, other: QueryRows) -> list[str]:
    """The columns of the longer part that the shorter one lacks."""
    shorter, longer = sorted((list(one.columns), list(other.columns)), key=len)
    return longer[len(shorter) :]


def _made_columns(query: QueryRows) -> dict[str, MadeColumn]:
    return {name: made_column(name, node, query.rows) for name, node in query.columns.items()}


def _as_table(
    alias: str, parts: Sequence[QueryRows], columns_of_parts: Sequence[Mapping[str, MadeColumn]]
) -> SelectedRows:
    rows = parts[0].rows
    values = [name for name, column in columns_of_parts[0].items() if column.of is not None]
    unit = next((name for name, column in columns_of_parts[0].items() if column.of is None), rows.whose())
    described = {
        name: _union_column(name, [columns[name].column for columns in columns_of_parts])
        for name in columns_of_parts[0]
    }
    keys = {
        name: column.owner_key
        for name, column in columns_of_parts[0].items()
        if column.owner_key is not None
        and all(other[name].owner_key == column.owner_key for other in columns_of_parts)
    }
    table = rows.tables.add(alias, described, unit=unit, keys=keys)
    relations = tuple(
        (part.rows.relation, tuple(_expression(columns[name]) for name in values))
        for part, columns in zip(parts, columns_of_parts, strict=True)
    )
    relation = Stacked(table.name, tuple(values), relations)
    return SelectedRows(relation, NameScope(rows.scope.dataset, [FromItem(alias, table)]))


def _expression(column: MadeColumn) -> Expr:
    assert column.of is not None
    return column.of


def _alike(
    parts: Sequence[QueryRows], columns_of_parts: list[dict[str, MadeColumn]]
) -> list[tuple[MadeColumn, ...]]:
    """The columns of all parts, side by side, with one type for each name."""
    columns: list[tuple[MadeColumn, ...]] = []
    nodes = list(parts[1].columns.values())
    for position, (name, column) in enumerate(columns_of_parts[0].items()):
        columns.append(
            _pair_types(
                name, parts, (parts[0].columns[name], nodes[position]), column, columns_of_parts[1][name]
            )
        )
    return columns


def _pair_types(
    name: str,
    parts: Sequence[QueryRows],
    nodes: tuple[exp.Expression, exp.Expression],
    first: MadeColumn,
    second: MadeColumn,
) -> tuple[MadeColumn, MadeColumn]:
    if first.of is None and second.of is None and first.column.kind == second.column.kind:
        return first, second
    if first.of is None or second.of is None or first.of.type.kind != second.of.type.kind:
        raise question_error(
            "DP702",
            f"the column {name} of UNION ALL has different types, or is the privacy unit in one part only.",
            "a column has one type for all rows, and the unit says in every row whose it is.",
            "leave one part out, or select columns of the same type",
        )
    if first.of.type.kind != NUMBER or first.of.type.places == second.of.type.places:
        return first, second
    exprs = [
        build.on_grid(Scalar(part.rows.scope).term(node)) for part, node in zip(parts, nodes, strict=True)
    ]
    same_grid = align(*exprs)
    bounded = [MadeColumn(typed_column(name, of.type), of) for of in same_grid]
    return bounded[0], bounded[1]


def _union_column(name: str, columns: Sequence[Column]) -> Column:
    """The description of a column that has the values of several."""
    first = columns[0]
    if len(columns) == 1:
        return first
    ends = [column.bounds for column in columns]
    bounds = None
    if all(end is not None for end in ends):
        bounds = min(end[0] for end in ends if end), max(end[1] for end in ends if end)
    lists = [column.values for column in columns]
    values = None
    if all(listed is not None for listed in lists):
        values = tuple(dict.fromkeys(value for listed in lists for value in listed or ()))
    null = any(column.null for column in columns)
    return replace(first, name=name, bounds=bounds, values=values, null=null)
