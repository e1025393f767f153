# SPDX-License-Identifier: Apache-2.0
"""JOIN: a look-up in a public table, or the pairing of two private tables on the unit; nothing else.

**Guarantee.** Every row of the result belongs to the unit whose row it was made from, and depends on that unit's rows
and on public tables alone (Lemma: per-unit operators are 1-stable).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from discreet.tables.ask import leaf
from discreet.tables.ask.build import on_grid
from discreet.tables.ask.sql.refuse import only, refused, shown
from discreet.tables.ask.sql.scalar import Scalar, conjuncts
from discreet.tables.ask.sql.scope import Found, Scope, Source
from discreet.tables.data.dataset import Table
from discreet.tables.data.expr import Expr, Read
from discreet.tables.data.sums import Lookup, Paired, Relation
from discreet.tables.data.types import NUMBER

__all__ = ["Join", "Joined", "joined"]


@dataclass(frozen=True)
class Join:
    """A JOIN, and the table that it brings."""

    node: Any
    source: Source
    table: Table

    @property
    def keeps(self) -> bool:
        """Whether it is a left join."""
        return bool(self.node.args.get("side") == "LEFT")


@dataclass(frozen=True)
class Joined:
    """The relation after a join, the conditions that are still to be applied, and what is known of columns."""

    relation: Relation
    scope: Scope
    rest: list[Any]
    known: dict[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict)


def joined(relation: Relation, scope: Scope, join: Join) -> Joined:
    """The rows with those of one more table."""
    _check_form(join)
    added = Source(join.source.alias, join.table, optional=join.keeps)
    if any(source.alias == added.alias for source in scope.sources):
        raise refused(
            "DP701", f"two tables go by the name {added.alias}.", "names tell them apart.", "JOIN wards AS w"
        )
    wider = Scope(scope.dataset, [*scope.sources, added], set(scope.merged))
    pairs, rest = _equalities(join, scope, wider, added)
    if join.node.args.get("using"):
        wider.merged.update(column.column for _, column in pairs)
    if join.keeps and rest:
        raise _too_little(join)
    made = (
        _paired(relation, scope, join, pairs)
        if join.table.private
        else _looked_up(relation, scope, join, pairs)
    )
    known = {} if join.table.private or join.keeps else _known(scope, join, pairs)
    return Joined(made, wider, rest, known)


def _check_form(join: Join) -> None:
    only(join.node, "this", "on", "using", "side", "kind")
    side, kind = join.node.args.get("side") or "", join.node.args.get("kind") or ""
    conditioned = join.node.args.get("on") is not None or join.node.args.get("using")
    if (side, kind) in {("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")} and conditioned:
        return
    what = " ".join(word for word in (side, kind) if word) or "tables side by side, without ON"
    raise refused(
        "DP703",
        f"this join is not answered ({what}): {shown(join.node)}",
        "its rows would belong to nobody, or to several people.",
        "FROM visits JOIN wards ON visits.ward = wards.ward   or   LEFT JOIN of a public table",
    )


Pair = tuple[Any, Found]


def _equalities(join: Join, scope: Scope, wider: Scope, added: Source) -> tuple[list[Pair], list[Any]]:
    """The pairs (expression before the join, column of the new table) that must be equal, and what else is asked."""
    if join.node.args.get("using"):
        alone = Scope(scope.dataset, [added])
        columns = [exp.Column(this=identifier) for identifier in join.node.args["using"]]
        return [(column, _found(alone, column)) for column in columns if scope.owner(column)], []
    pairs, rest = [], []
    for node in conjuncts(join.node.args["on"]):
        pair = _pair(node, wider, added) if isinstance(node, exp.EQ) else None
        if pair is None:
            rest.append(node)
        else:
            pairs.append(pair)
    return pairs, rest


def _found(scope: Scope, column: Any) -> Found:
    found = scope.column(column)
    assert found is not None
    return found


def _pair(node: Any, wider: Scope, added: Source) -> Pair | None:
    only(node, "this", "expression")
    for before, after in ((node.this, node.expression), (node.expression, node.this)):
        owners = [wider.owner(column)[0] for column in before.find_all(exp.Column)]
        column = wider.column(after)
        is_new = isinstance(after, exp.Column) and wider.owner(after)[0] is added
        if owners and column is not None and is_new and all(owner is not added for owner in owners):
            return before, column
    return None


def _paired(relation: Relation, scope: Scope, join: Join, pairs: list[Pair]) -> Relation:
    """Two private tables: on the unit, and on more if that is asked."""
    units = [pair for pair in pairs if _is_unit(scope, pair[0]) and pair[1].is_unit]
    if join.keeps or not units:
        what = (
            "a left join of a private table" if join.keeps else "private tables are joined on something else"
        )
        raise refused(
            "DP703",
            f"{what}: {shown(join.node)}",
            "only rows of the same person may meet; any other pair of rows belongs to two people.",
            f"JOIN {join.table.name} USING ({_unit(join.table)})",
        )
    alone = Scalar(Scope(scope.dataset, [Source(join.source.alias, join.table)]))
    on = tuple(
        _same_kind(on_grid(Scalar(scope).operand(before)), alone.compared(column), join)
        for before, column in pairs
        if (before, column) not in units
    )
    return Paired(relation, leaf.rows_of(join.table), on)


def _looked_up(relation: Relation, scope: Scope, join: Join, pairs: list[Pair]) -> Relation:
    """A public table: on any equality; a left join on nothing else."""
    if not pairs:
        raise _too_little(join)
    on = tuple(_same_kind(_before(scope, before), _public(column), join) for before, column in pairs)
    return Lookup(relation, join.table.name, on, keep=join.keeps)


def _known(scope: Scope, join: Join, pairs: list[Pair]) -> dict[tuple[str, str], tuple[Any, ...]]:
    """A column that was found in a public table has no other values than are there."""
    known = {}
    for before, column in pairs:
        left = _before(scope, before)
        if isinstance(left, Read):
            listed = scope.dataset.engine.values(join.table.name, (column.column,))
            known[left.table, left.column] = tuple(value for (value,) in listed if value is not None)
    return known


def _public(column: Found) -> Read:
    read = leaf.compared(column.table, column.column)
    return Read(read.table, read.column, read.of.with_null(True))


def _too_little(join: Join) -> Exception:
    return refused(
        "DP703",
        f"a join needs columns that are equal, and a LEFT JOIN nothing else: {shown(join.node)}",
        "each row is looked up in the public table; what is kept without a match cannot be filtered there.",
        f"JOIN {join.table.name} ON visits.ward = {join.table.name}.ward",
    )


def _unit(table: Table) -> str:
    """The column that says whose a row is; where every row is a unit of its own there is none."""
    return str(table.unit) if table.unit in table.columns else "unit"


def _is_unit(scope: Scope, node: Any) -> bool:
    found = scope.column(node)
    return found is not None and found.is_unit


def _before(scope: Scope, node: Any) -> Expr:
    """The side of a look-up that is in the rows already; here, and only here, it may be the unit."""
    found = scope.column(node)
    if found is not None and found.is_unit:
        return leaf.compared(found.table, found.column)
    return on_grid(Scalar(scope).operand(node))


def _same_kind(left: Expr, right: Read, join: Join) -> tuple[Expr, Read]:
    a, b = left.type, right.type
    if a.kind == b.kind and not a.places and not b.places:
        return left, right
    what = "real numbers" if a.kind == b.kind == NUMBER else "values of different kinds"
    raise refused(
        "DP703",
        f"a join compares {what}: {shown(join.node)}",
        "whether they are equal is not the same on every engine.",
        "join on whole numbers, texts or dates",
    )
