# SPDX-License-Identifier: Apache-2.0
"""JOIN: a look-up in a public table, or rows of another private relation that belong to the same
unit.

**Guarantee.** Every row of the result belongs to one unit, and depends only on the rows of that
unit and on public tables. So the join is 1-stable: adding or removing a unit changes the rows of
that unit alone.

Two private relations are joined on the unit, or on a key that leads both to it (`Link`). The engine
always compares the units as well. Where each key belongs to one unit, as the description says, that
leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp

from discreet.tables.algebra.expr import Expr, Read
from discreet.tables.algebra.sums import Filtered, Lookup, Paired, Relation
from discreet.tables.algebra.types import NUMBER
from discreet.tables.ask import columns
from discreet.tables.ask.build import logic, on_grid
from discreet.tables.ask.sql.refuse import node_text, question_error, require_only
from discreet.tables.ask.sql.scalar import Scalar
from discreet.tables.ask.sql.scope import ColumnRef, FromItem, NameScope
from discreet.tables.ask.sql.selected import Known, SelectedRows, filter_rows
from discreet.tables.data.dataset import Table

__all__ = ["JoinClause", "is_comma", "join_rows", "pairs_of", "same_kind"]

_SIDES = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("", "SEMI"): "semi",
    ("LEFT", "SEMI"): "semi",
    ("", "ANTI"): "anti",
    ("LEFT", "ANTI"): "anti",
}


@dataclass(frozen=True)
class JoinClause:
    """A JOIN clause and what it adds: a table, or the rows of a query; no relation if it is public.

    `conditions` are those of ON, and equalities that a list of tables leaves to WHERE.
    """

    node: exp.Expression
    item: FromItem
    relation: Relation | None
    known: Known = field(default_factory=dict)
    conditions: tuple[exp.Expression, ...] = ()

    @property
    def table(self) -> Table:
        """What is joined, as a table."""
        assert self.item.table is not None
        return self.item.table

    @property
    def side(self) -> str:
        """Which rows without a match are kept: inner, left, right, full, semi or anti."""
        return _SIDES[_words(self.node)]


def is_comma(node: exp.Expression) -> bool:
    """Whether it is a table of a list, FROM a, b, whose condition stands in WHERE."""
    return all(node.args.get(part) in (None, "", []) for part in ("on", "using", "side", "kind"))


def _words(node: exp.Expression) -> tuple[str, str]:
    return str(node.args.get("side") or ""), str(node.args.get("kind") or "")


def join_rows(selected: SelectedRows, join: JoinClause) -> None:
    """The rows joined with those of another table."""
    scope = selected.scope
    _check_form(join, scope)
    if any(source.alias == join.item.alias for source in scope.sources):
        raise question_error(
            "DP701",
            f"two tables are named {join.item.alias}.",
            "each table needs a name of its own.",
            "JOIN wards AS w",
        )
    wider = NameScope(scope.dataset, [*scope.sources, join.item], set(scope.merged), scope.outer)
    pairs, conditions = _equalities(join, scope, wider)
    if join.node.args.get("using"):
        merged = [column for _, column in pairs if join.side not in {"right", "full"} or column.is_unit]
        wider.merged.update(column.column for column in merged)
    if join.relation is None:
        _look_up(selected, join, wider, pairs, conditions)
    else:
        _pair_up(selected, join, wider, pairs, conditions)


def _check_form(join: JoinClause, scope: NameScope) -> None:
    require_only(join.node, "this", "on", "using", "side", "kind")
    side = _SIDES.get(_words(join.node))
    conditioned = bool(join.conditions or join.node.args.get("using"))
    public = {"inner", "left"}
    if side is not None and conditioned and (join.relation is not None or side in public):
        return
    words = " ".join(word for word in _words(join.node) if word)
    if join.relation is None and not (side is not None and conditioned):
        raise question_error(
            "DP703",
            f"this join is not supported ({words or 'without ON'}): {node_text(join.node)}",
            "each row is looked up in the public table by equal columns.",
            _public_fix(join, scope),
        )
    if side is not None and conditioned:
        raise question_error(
            "DP703",
            f"{words} JOIN of the public table {join.table.name} is not supported.",
            "a row of a public table without a match belongs to nobody.",
            "FROM visits JOIN wards ON visits.ward = wards.ward   or   LEFT JOIN of a public table",
        )
    raise question_error(
        "DP703",
        f"this join is not supported ({words or 'without ON'}): {node_text(join.node)}",
        "its rows would belong to several people, or to nobody.",
        _unit_fix(join, scope),
    )


#: The types that a join compares alike on every engine.
_JOINED_KINDS = {"integer", "text", "date", "boolean"}
#: An expression before the join, and the column of the new table that it must equal.
Pair = tuple[exp.Expression, ColumnRef]
Side = TypeVar("Side", bound=Expr)


def _equalities(
    join: JoinClause, scope: NameScope, wider: NameScope
) -> tuple[list[Pair], list[exp.Expression]]:
    """The pairs (expression before the join, column of the new table) that must be equal, and the
    other conditions.
    """
    if join.node.args.get("using"):
        alone = NameScope(scope.dataset, [join.item])
        named = [exp.Column(this=identifier) for identifier in join.node.args["using"]]
        return [(column, _required_column(alone, column)) for column in named if scope.owner(column)], []
    return pairs_of(join.conditions, wider, [join.item])


def pairs_of(
    nodes: Iterable[exp.Expression], wider: NameScope, added: list[FromItem]
) -> tuple[list[Pair], list[exp.Expression]]:
    """Conditions as pairs of an expression and a column of the added items, and the others."""
    pairs, others = [], []
    for node in nodes:
        pair = _pair(node, wider, added) if isinstance(node, exp.EQ) else None
        if pair is None:
            others.append(node)
        else:
            pairs.append(pair)
    return pairs, others


def _required_column(scope: NameScope, column: exp.Expression) -> ColumnRef:
    ref = scope.column(column)
    assert ref is not None
    return ref


def _pair(node: exp.Expression, wider: NameScope, added: list[FromItem]) -> Pair | None:
    require_only(node, "this", "expression")
    for before, after in ((node.this, node.expression), (node.expression, node.this)):
        owners = [wider.owner(column)[0] for column in before.find_all(exp.Column)]
        column = wider.column(after)
        is_new = isinstance(after, exp.Column) and _among(wider.owner(after)[0], added)
        if owners and column is not None and is_new and not any(_among(owner, added) for owner in owners):
            return before, column
    return None


def _among(item: FromItem, items: list[FromItem]) -> bool:
    return any(item is other for other in items)


# --- private relations -------------------------------------------------------------------------------


def _pair_up(
    selected: SelectedRows,
    join: JoinClause,
    wider: NameScope,
    pairs: list[Pair],
    conditions: list[exp.Expression],
) -> None:
    """The rows with those of another private relation that belong to the same unit."""
    assert join.relation is not None
    scope, side = selected.scope, join.side
    if not any(_leads_to_unit(scope, *pair) for pair in pairs):
        raise question_error(
            "DP703",
            f"private tables must be joined on the unit: {node_text(join.node)}",
            "a pair of rows of two people belongs to neither of them.",
            _unit_fix(join, scope),
        )
    alone = Scalar(NameScope(scope.dataset, [join.item]))
    on = tuple(
        same_kind(on_grid(Scalar(scope).operand(before)), alone.read_unclamped(column), join.node)
        for before, column in pairs
        if not (_is_unit(scope, before) and column.is_unit)
    )
    other, condition = join.relation, None
    if side != "inner" and conditions:
        other, condition = _within_join(join, wider, conditions)
        conditions = []
    if side == "right":
        swapped = tuple((right, left) for left, right in on)
        selected.relation = Paired(other, selected.relation, swapped, "left", condition)
    else:
        selected.relation = Paired(selected.relation, other, on, side, condition)
    selected.scope = _scope_after(side, scope, wider, join.item)
    if side in {"right", "full"}:
        # Rows of the new table alone have NULL in all columns from before.
        selected.known.clear()
    if side in {"inner", "left", "right", "full"}:
        for at, values in join.known.items():
            selected.restrict(at, values)
    filter_rows(selected, conditions)


def _scope_after(side: str, scope: NameScope, wider: NameScope, item: FromItem) -> NameScope:
    if side in {"semi", "anti"}:
        return scope
    before = scope.made_optional().sources if side in {"right", "full"} else scope.sources
    added = replace(item, optional=item.optional or side in {"left", "full"})
    return NameScope(scope.dataset, [*before, added], wider.merged, scope.outer)


def _within_join(
    join: JoinClause, wider: NameScope, conditions: list[exp.Expression]
) -> tuple[Relation, Expr | None]:
    """The new rows that fulfil the conditions of ON on them alone, and the other conditions."""
    assert join.relation is not None
    if join.side == "full":
        raise question_error(
            "DP703",
            f"FULL JOIN supports only equalities in ON: {node_text(join.node)}",
            "engines disagree on the rows that another condition leaves without a match.",
            f"FULL {_unit_fix(join, wider)}   and the condition in a query inside FROM",
        )
    alone = NameScope(wider.dataset, [join.item])
    of_new_table = [node for node in conditions if join.side != "right" and alone.is_own(node)]
    others = [node for node in conditions if not any(node is own for own in of_new_table)]
    relation = join.relation
    if of_new_table:
        relation = Filtered(relation, logic("and", [Scalar(alone).condition(node) for node in of_new_table]))
    if not others:
        return relation, None
    return relation, logic("and", [Scalar(wider).condition(node) for node in others])


def _leads_to_unit(scope: NameScope, before: exp.Expression, column: ColumnRef) -> bool:
    """Whether rows with equal values belong to the same unit."""
    ref = scope.column(before)
    tables = scope.dataset.tables
    return ref is not None and bool(ref.owner_keys(tables) & column.owner_keys(tables))


def _public_fix(join: JoinClause, scope: NameScope) -> str:
    """A look-up by columns of the same name, or else of the same type; the unit is the last choice."""
    name, alias = join.table.of or join.table.name, join.item.alias
    named = name if alias == name else f"{name} AS {alias}"
    pairs = [
        (
            (own.name != new.name, source.table.private and own.name == source.table.unit),
            f"JOIN {named} ON {source.alias}.{own.name} = {alias}.{new.name}",
        )
        for source in scope.sources
        if source.table is not None
        for own in source.table.columns.values()
        for new in join.table.columns.values()
        if own.kind == new.kind and own.kind in _JOINED_KINDS
    ]
    return min(pairs, key=lambda pair: pair[0])[1] if pairs else "leave the join out"


def _unit_fix(join: JoinClause, scope: NameScope) -> str:
    """A join on the unit, or on a key that leads to it."""
    name, alias = join.table.of or join.table.name, join.item.alias
    if join.table.of == "":
        name = alias
    named = name if alias == name else f"{name} AS {alias}"
    by_key = _columns_by_key(join.item, scope)
    # ("", "") is the unit itself, and comes first.
    for key in sorted(by_key):
        for source in scope.sources:
            own = _columns_by_key(source, scope).get(key)
            if own == by_key[key]:
                return f"JOIN {named} USING ({own})"
            if own is not None:
                return f"JOIN {named} ON {source.alias}.{own} = {alias}.{by_key[key]}"
    return f"JOIN {named} USING ({_unit(join.table)})"


def _columns_by_key(item: FromItem, scope: NameScope) -> dict[tuple[str, str], str]:
    """The columns of a table that belong to one unit, by the keys that they are."""
    if item.table is None:
        return {}
    return {
        key: column
        for column in item.table.columns
        for key in ColumnRef(item.table, column, optional=False).owner_keys(scope.dataset.tables)
    }


def _is_unit(scope: NameScope, node: exp.Expression) -> bool:
    ref = scope.column(node)
    return ref is not None and ref.is_unit


# --- public tables -----------------------------------------------------------------------------------


def _look_up(
    selected: SelectedRows,
    join: JoinClause,
    wider: NameScope,
    pairs: list[Pair],
    conditions: list[exp.Expression],
) -> None:
    """A look-up in a public table by equal columns."""
    keeps = join.side == "left"
    if not pairs or (keeps and conditions):
        raise _no_equality_error(join)
    scope, table = selected.scope, join.table
    on = tuple(same_kind(_before(scope, before), _public(column), join.node) for before, column in pairs)
    name = table.name if table.of else ""
    selected.relation = Lookup(selected.relation, table.of or table.name, on, keep=keeps, name=name)
    # After a left join, the rows without a match keep their own values.
    values_by_column = {} if keeps else _public_values(scope, join, pairs)
    selected.scope = _scope_after(join.side, scope, wider, join.item)
    for at, values in values_by_column.items():
        selected.restrict(at, values)
    filter_rows(selected, conditions)


def _public_values(scope: NameScope, join: JoinClause, pairs: list[Pair]) -> Known:
    """The public values of columns: after an inner look-up a column has only values of the public
    table.
    """
    values_by_column = {}
    for before, column in pairs:
        left = _before(scope, before)
        if isinstance(left, Read):
            rows = columns.public_values(scope.dataset, join.table.name, (column.column,))
            values_by_column[left.table, left.column] = tuple(value for (value,) in rows if value is not None)
    return values_by_column


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


def _before(scope: NameScope, node: exp.Expression) -> Expr:
    """The side of a look-up before the join. Only here it may be the unit."""
    ref = scope.column(node)
    if ref is not None and ref.is_unit:
        return columns.unbounded_column(ref.table, ref.column)
    return on_grid(Scalar(scope).operand(node))


def same_kind(left: Expr, right: Side, node: exp.Expression) -> tuple[Expr, Side]:
    """Two sides of an equality that every engine decides alike."""
    a, b = left.type, right.type
    if a.kind == b.kind and not a.places and not b.places:
        return left, right
    what = "real numbers" if a.kind == b.kind == NUMBER else "values of different types"
    raise question_error(
        "DP703",
        f"a join compares {what}: {node_text(node)}",
        "engines disagree on whether such values are equal.",
        "join on whole numbers, texts or dates",
    )
