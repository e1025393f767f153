# SPDX-License-Identifier: Apache-2.0
"""JOIN: a look-up in a public table, or the pairing of two private tables on the unit.

**Guarantee.** Every row of the result belongs to one unit, and depends only on the rows of that
unit and on public tables. So the join is 1-stable: adding or removing a unit changes the rows of
that unit alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from discreet.tables.ask import columns
from discreet.tables.ask.build import on_grid
from discreet.tables.ask.sql.refuse import node_text, question_error, require_only
from discreet.tables.ask.sql.scalar import Scalar, conjuncts
from discreet.tables.ask.sql.scope import ColumnRef, FromItem, NameScope
from discreet.tables.data.dataset import Table
from discreet.tables.data.expr import Expr, Read
from discreet.tables.data.sums import Lookup, Paired, Relation
from discreet.tables.data.types import NUMBER

__all__ = ["JoinClause", "JoinedRows", "join_rows"]


@dataclass(frozen=True)
class JoinClause:
    """A JOIN clause and the table that it adds."""

    node: exp.Expression
    source: FromItem
    table: Table

    @property
    def keeps(self) -> bool:
        """Whether rows without a match are kept (LEFT JOIN)."""
        return bool(self.node.args.get("side") == "LEFT")


@dataclass(frozen=True)
class JoinedRows:
    """The relation after a join, the conditions still to be applied, and the public values of
    columns.
    """

    relation: Relation
    scope: NameScope
    rest: list[Any]
    known: dict[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict)


def join_rows(relation: Relation, scope: NameScope, join: JoinClause) -> JoinedRows:
    """The rows joined with those of another table."""
    _check_form(join)
    added = FromItem(join.source.alias, join.table, optional=join.keeps)
    if any(source.alias == added.alias for source in scope.sources):
        raise question_error(
            "DP701",
            f"two tables are named {added.alias}.",
            "each table needs a name of its own.",
            "JOIN wards AS w",
        )
    wider = NameScope(scope.dataset, [*scope.sources, added], set(scope.merged))
    pairs, rest = _equalities(join, scope, wider, added)
    if join.node.args.get("using"):
        wider.merged.update(column.column for _, column in pairs)
    if join.keeps and rest:
        raise _no_equality_error(join)
    joined = (
        _pair_tables(relation, scope, join, pairs)
        if join.table.private
        else _look_up(relation, scope, join, pairs)
    )
    # After a left join, the rows without a match keep their own values.
    known = {} if join.table.private or join.keeps else _public_values(scope, join, pairs)
    return JoinedRows(joined, wider, rest, known)


def _check_form(join: JoinClause) -> None:
    require_only(join.node, "this", "on", "using", "side", "kind")
    side, kind = join.node.args.get("side") or "", join.node.args.get("kind") or ""
    conditioned = join.node.args.get("on") is not None or join.node.args.get("using")
    if (side, kind) in {("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")} and conditioned:
        return
    what = " ".join(word for word in (side, kind) if word) or "without ON"
    raise question_error(
        "DP703",
        f"this join is not supported ({what}): {node_text(join.node)}",
        "its rows would belong to several people, or to nobody.",
        "FROM visits JOIN wards ON visits.ward = wards.ward   or   LEFT JOIN of a public table",
    )


Pair = tuple[Any, ColumnRef]


def _equalities(
    join: JoinClause, scope: NameScope, wider: NameScope, added: FromItem
) -> tuple[list[Pair], list[Any]]:
    """The pairs (expression before the join, column of the new table) that must be equal, and the
    other conditions.
    """
    if join.node.args.get("using"):
        alone = NameScope(scope.dataset, [added])
        columns = [exp.Column(this=identifier) for identifier in join.node.args["using"]]
        return [(column, _required_column(alone, column)) for column in columns if scope.owner(column)], []
    pairs, rest = [], []
    for node in conjuncts(join.node.args["on"]):
        pair = _pair(node, wider, added) if isinstance(node, exp.EQ) else None
        if pair is None:
            rest.append(node)
        else:
            pairs.append(pair)
    return pairs, rest


def _required_column(scope: NameScope, column: Any) -> ColumnRef:
    ref = scope.column(column)
    assert ref is not None
    return ref


def _pair(node: exp.Expression, wider: NameScope, added: FromItem) -> Pair | None:
    require_only(node, "this", "expression")
    for before, after in ((node.this, node.expression), (node.expression, node.this)):
        owners = [wider.owner(column)[0] for column in before.find_all(exp.Column)]
        column = wider.column(after)
        is_new = isinstance(after, exp.Column) and wider.owner(after)[0] is added
        if owners and column is not None and is_new and all(owner is not added for owner in owners):
            return before, column
    return None


def _pair_tables(relation: Relation, scope: NameScope, join: JoinClause, pairs: list[Pair]) -> Relation:
    """Two private tables, joined on the unit and on further columns."""
    units = [pair for pair in pairs if _is_unit(scope, pair[0]) and pair[1].is_unit]
    if join.keeps or not units:
        what = (
            "LEFT JOIN of a private table is not supported"
            if join.keeps
            else "private tables must be joined on the unit"
        )
        raise question_error(
            "DP703",
            f"{what}: {node_text(join.node)}",
            "a pair of rows of two people belongs to neither of them.",
            f"JOIN {join.table.name} USING ({_unit(join.table)})",
        )
    alone = Scalar(NameScope(scope.dataset, [FromItem(join.source.alias, join.table)]))
    on = tuple(
        _same_kind(on_grid(Scalar(scope).operand(before)), alone.read_unclamped(column), join)
        for before, column in pairs
        if (before, column) not in units
    )
    return Paired(relation, columns.rows_of(join.table), on)


def _look_up(relation: Relation, scope: NameScope, join: JoinClause, pairs: list[Pair]) -> Relation:
    """A look-up in a public table by equal columns."""
    if not pairs:
        raise _no_equality_error(join)
    on = tuple(_same_kind(_before(scope, before), _public(column), join) for before, column in pairs)
    return Lookup(relation, join.table.name, on, keep=join.keeps)


def _public_values(
    scope: NameScope, join: JoinClause, pairs: list[Pair]
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The public values of columns: after an inner look-up a column has only values of the public
    table.
    """
    known = {}
    for before, column in pairs:
        left = _before(scope, before)
        if isinstance(left, Read):
            listed = scope.dataset.engine.values(join.table.name, (column.column,))
            known[left.table, left.column] = tuple(value for (value,) in listed if value is not None)
    return known


def _public(column: ColumnRef) -> Read:
    read = columns.unbounded_column(column.table, column.column)
    return Read(read.table, read.column, read.of.with_null(True))


def _no_equality_error(join: JoinClause) -> Exception:
    return question_error(
        "DP703",
        f"a join needs an equality of columns, and a LEFT JOIN nothing else: {node_text(join.node)}",
        "each row is looked up in the public table; rows without a match cannot be filtered by ON.",
        f"JOIN {join.table.name} ON visits.ward = {join.table.name}.ward",
    )


def _unit(table: Table) -> str:
    """The column of the privacy unit, or the word unit where every row is a unit."""
    return str(table.unit) if table.unit in table.columns else "unit"


def _is_unit(scope: NameScope, node: exp.Expression) -> bool:
    ref = scope.column(node)
    return ref is not None and ref.is_unit


def _before(scope: NameScope, node: exp.Expression) -> Expr:
    """The side of a look-up before the join. Only here it may be the unit."""
    ref = scope.column(node)
    if ref is not None and ref.is_unit:
        return columns.unbounded_column(ref.table, ref.column)
    return on_grid(Scalar(scope).operand(node))


def _same_kind(left: Expr, right: Read, join: JoinClause) -> tuple[Expr, Read]:
    a, b = left.type, right.type
    if a.kind == b.kind and not a.places and not b.places:
        return left, right
    what = "real numbers" if a.kind == b.kind == NUMBER else "values of different types"
    raise question_error(
        "DP703",
        f"a join compares {what}: {node_text(join.node)}",
        "engines disagree on whether such values are equal.",
        "join on whole numbers, texts or dates",
    )
