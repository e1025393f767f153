# SPDX-License-Identifier: Apache-2.0
"""IN, NOT IN, EXISTS and NOT EXISTS with a query: rows that have, or have no, match among the rows
of the same unit.

**Guarantee.** A row is kept or dropped because of rows of its own unit alone. A query that would
decide by the rows of others is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from discreet.tables.algebra.sums import Paired
from discreet.tables.ask import build
from discreet.tables.ask.build import logic
from discreet.tables.ask.sql.joins import pairs_of, same_kind
from discreet.tables.ask.sql.refuse import node_text, question_error, require_only
from discreet.tables.ask.sql.scalar import Scalar, list_fix
from discreet.tables.ask.sql.scope import ColumnRef, NameScope
from discreet.tables.ask.sql.selected import SelectedRows
from discreet.tables.ask.sql.stacked import QueryRows, project

__all__ = ["MatchCondition", "keep_matched", "match_condition", "other_people_error"]


@dataclass(frozen=True)
class MatchCondition:
    """A condition with a query; `column` is what stands before IN, None for EXISTS."""

    node: exp.Expression
    query: exp.Expression
    column: exp.Expression | None
    negated: bool


def match_condition(node: exp.Expression) -> MatchCondition | None:
    """The condition with a query that a node is, if it is one."""
    negated, inner = False, node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    if isinstance(inner, exp.Exists):
        return MatchCondition(node, require_only(inner, "this").this, None, negated)
    if isinstance(inner, exp.In) and inner.args.get("query") is not None:
        require_only(inner, "this", "query")
        query = inner.args["query"]
        return MatchCondition(
            node, query.this if isinstance(query, exp.Subquery) else query, inner.this, negated
        )
    return None


def keep_matched(selected: SelectedRows, match: MatchCondition, inner: QueryRows) -> None:
    """Keep the rows that have a match, or have none."""
    kind = "anti" if match.negated else "semi"
    if match.column is None:
        _keep_existing(selected, match, inner.rows, kind)
    else:
        _keep_among(selected, match, match.column, inner, kind)


def _keep_among(
    selected: SelectedRows, match: MatchCondition, column: exp.Expression, inner: QueryRows, kind: str
) -> None:
    """column IN (SELECT …), where the column is the unit or a key that leads to it."""
    table_of_query = project(inner, "query")
    table = table_of_query.scope.sources[0].table
    assert table is not None
    if len(inner.columns) != 1:
        raise question_error(
            "DP702",
            f"the query behind IN selects {len(inner.columns)} columns: {node_text(match.node)}",
            "each row is compared with one value.",
            f"{node_text(column)} IN ({node_text(_first_column(match.query))})",
        )
    found_column = ColumnRef(table, next(iter(table.columns)), optional=False)
    compared_column = selected.scope.column(column)
    if compared_column is None or not compared_column.owner_keys(selected.tables) & found_column.owner_keys(
        selected.tables
    ):
        raise other_people_error(selected, match)
    if compared_column.is_unit and found_column.is_unit:
        selected.relation = Paired(selected.relation, table_of_query.relation, (), kind)
        return
    if match.negated:
        raise question_error(
            "DP702",
            f"NOT IN with a query is supported for the privacy unit only: {node_text(match.node)}",
            "one NULL among the values would drop every row, whoever it belongs to.",
            f"NOT EXISTS (SELECT * FROM … WHERE … = {node_text(column)})",  # noqa: S608 - shown, not run
        )
    before = build.on_grid(Scalar(selected.scope).operand(column))
    on = same_kind(before, Scalar(table_of_query.scope).read_unclamped(found_column), match.node)
    selected.relation = Paired(selected.relation, table_of_query.relation, (on,), kind)


def _first_column(query: exp.Expression) -> exp.Expression:
    copy = query.copy()
    if isinstance(copy, exp.Select):
        copy.set("expressions", copy.expressions[:1])
    return copy


def _keep_existing(selected: SelectedRows, match: MatchCondition, inner: SelectedRows, kind: str) -> None:
    """EXISTS (SELECT … WHERE …) with an equality of the unit, or of a key that leads to it."""
    wider = NameScope(inner.scope.dataset, inner.scope.sources, inner.scope.merged, selected.scope)
    pairs, others = pairs_of(inner.correlated, wider, inner.scope.sources)
    outer = Scalar(selected.scope)
    on, compares_unit = [], False
    for before, column in pairs:
        ref = wider.column(before)
        compares_unit |= ref is not None and bool(
            ref.owner_keys(selected.tables) & column.owner_keys(selected.tables)
        )
        if ref is not None and ref.is_unit and column.is_unit:
            continue
        outer_side = build.on_grid(outer.operand(before))
        on.append(same_kind(outer_side, Scalar(inner.scope).read_unclamped(column), match.node))
    if not compares_unit:
        raise other_people_error(selected, match)
    condition = None
    if others:
        condition = logic("and", [Scalar(wider).condition(node) for node in others])
    selected.relation = Paired(selected.relation, inner.relation, tuple(on), kind, condition)


def other_people_error(selected: SelectedRows, match: MatchCondition) -> Exception:
    """The refusal of a query that does not stay with the unit."""
    what = "EXISTS" if match.column is None else "IN with a query"
    return question_error(
        "DP702",
        f"{what} must compare the privacy unit: {node_text(match.node)}",
        "otherwise it keeps or drops a row because of the rows of other people.",
        _same_unit_fix(selected, match)
        if match.column is None
        else list_fix(Scalar(selected.scope), match.column, match.query),
    )


def _same_unit_fix(selected: SelectedRows, match: MatchCondition) -> str:
    """EXISTS with an equality of the unit."""
    tables = selected.tables
    outer_units = [
        f"{source.alias}.{source.table.unit}"
        for source in selected.scope.sources
        if source.table is not None and source.table.unit in source.table.columns
    ]
    for node in match.query.find_all(exp.Table):
        unit = tables[node.name].unit if node.name in tables else None
        if outer_units and unit in tables[node.name].columns:
            alias = node.alias_or_name if node.alias_or_name != outer_units[0].split(".")[0] else "other"
            named = node.name if alias == node.name else f"{node.name} AS {alias}"
            return f"EXISTS (SELECT * FROM {named} WHERE {alias}.{unit} = {outer_units[0]})"  # noqa: S608 - shown, not run
    return "leave the condition out, or ask two questions"
