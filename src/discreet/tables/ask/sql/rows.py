# SPDX-License-Identifier: Apache-2.0
"""FROM, JOIN and WHERE: the rows of which a question asks.

**Guarantee.** What is built is made of `plan`'s operators alone, each of which acts on the rows of one unit and on public
tables. A join is a look-up in a public table, or a pairing of private tables on the unit; an inlined query only
renames, computes and filters. So one unit more or less changes the rows of that unit, and no other.

What would break it: a "public" table that was made from private data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from discreet.tables.ask.build import logic
from discreet.tables.ask.leaf import near, rows_of
from discreet.tables.ask.sql.joins import Join, joined
from discreet.tables.ask.sql.refuse import only, refused, shown, unsupported
from discreet.tables.ask.sql.scalar import Scalar, conjuncts
from discreet.tables.ask.sql.scope import Scope, Source, matching
from discreet.tables.data.dataset import Dataset
from discreet.tables.data.expr import Compare, Constant, Expr, IsIn, Read
from discreet.tables.data.sums import Filtered, Relation
from discreet.tables.data.types import read_back

__all__ = ["Known", "Rows", "rows"]

#: The public values that a column of the rows can still have: those of a list in WHERE, or of a table joined to it.
Known = dict[tuple[str, str], tuple[Any, ...]]


@dataclass
class Rows:
    """A relation, the names that can be used of it, and what is publicly known of its columns."""

    relation: Relation
    scope: Scope
    known: Known = field(default_factory=dict)

    def restrict(self, at: tuple[str, str], values: tuple[Any, ...]) -> None:
        """A column has only these values now."""
        before = self.known.get(at)
        self.known[at] = values if before is None else tuple(value for value in before if value in values)


def rows(select: exp.Select, dataset: Dataset, queries: Mapping[str, exp.Expression] | None = None) -> Rows:
    """The rows of a SELECT; `queries` are those that were named before it, in WITH."""
    queries = {**(queries or {}), **_named(select)}
    first, joins = _first(select, dataset, queries)
    found = _start(first, dataset, queries)
    for join in joins:
        source = _source(join.this, dataset, queries)
        if source.table is None:
            raise unsupported(join.this)
        _add(found, Join(join, source, source.table))
    where = select.args.get("where")
    if where is not None:
        _filter(found, conjuncts(only(where, "this").this))
    return found


def _named(select: exp.Select) -> dict[str, exp.Expression]:
    named = select.args.get("with_") or select.args.get("with")
    if named is None:
        return {}
    only(named, "expressions")
    queries: dict[str, exp.Expression] = {}
    for query in named.expressions:
        only(query, "this", "alias")
        only(query.args["alias"], "this")
        queries[query.alias] = query.this
    return queries


def _first(select: exp.Select, dataset: Dataset, queries: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """What the rows begin with, and what is joined to it: the first private table comes first."""
    start = select.args.get("from_") or select.args.get("from")
    if start is None:
        raise refused(
            "DP702", "there is no FROM.", "a question is about rows.", "SELECT COUNT(*) FROM visits"
        )
    only(start, "this")
    joins = list(select.args.get("joins") or [])
    source = _source(start.this, dataset, queries)
    if source.table is None or source.table.private:
        return start.this, joins
    inner = bool(joins) and not joins[0].args.get("side")
    if not inner:
        raise refused(
            "DP703",
            f"{source.alias} is a public table: its rows belong to nobody.",
            "a private question begins with a private table; what is public needs no noise.",
            f"FROM {_private_name(dataset)} LEFT JOIN {source.table.name} ON …",
        )
    swapped = joins[0].copy()
    swapped.set("this", start.this.copy())
    return joins[0].this, [swapped, *joins[1:]]


def _private_name(dataset: Dataset) -> str:
    return next(table.name for table in dataset.tables.values() if table.private)


def _start(node: Any, dataset: Dataset, queries: Mapping[str, Any]) -> Rows:
    source = _source(node, dataset, queries)
    if source.table is not None:
        if not source.table.private:
            raise refused(
                "DP703",
                "the first two tables are public: their rows belong to nobody.",
                "a private question begins with a private table.",
                f"FROM {_private_name(dataset)} JOIN …",
            )
        return Rows(rows_of(source.table), Scope(dataset, [source]))
    earlier = {name: query for name, query in queries.items() if query is not _query(node, queries)}
    inner = rows(_plain(_query(node, queries)), dataset, earlier)
    columns = _columns(_query(node, queries), inner.scope)
    outer = Scope(dataset, [Source(source.alias, inner=inner.scope, columns=columns)])
    return Rows(inner.relation, outer, inner.known)


def _source(node: Any, dataset: Dataset, queries: Mapping[str, Any]) -> Source:
    """A table of the data set, or an inlined query whose columns are not known yet."""
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias")
        return Source(_alias(node) or "subquery")
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refused(
            "DP702",
            f"this is not answered in FROM: {shown(node)}",
            "rows come from the tables of the description, and from nowhere else.",
            f"FROM {next((table.name for table in dataset.tables.values() if table.private), 'visits')}",
        )
    only(node, "this", "alias")
    if matching(node.this, queries) is not None:
        return Source(_alias(node) or node.name)
    name = matching(node.this, dataset.tables)
    if name is None:
        raise refused(
            "DP701",
            f"there is no table {node.name!r}.",
            "only tables of the description can be asked about.",
            f"use {near(node.name, dataset.tables)}",
        )
    return Source(_alias(node) or name, dataset.tables[name])


def _alias(node: Any) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    only(alias, "this")
    return str(alias.name)


def _query(node: Any, queries: Mapping[str, Any]) -> Any:
    if isinstance(node, exp.Subquery):
        return node.this
    return queries[matching(node.this, queries) or ""]


def _plain(query: Any) -> exp.Select:
    """A query that renames, computes and filters, and so can be inlined."""
    if not isinstance(query, exp.Select):
        raise unsupported(query)
    allowed = {"expressions", "from_", "from", "joins", "where", "with_", "with"}
    more = [part for part, value in query.args.items() if part not in allowed and value]
    if more:
        raise refused(
            "DP702",
            f"a query inside FROM can only choose and filter rows: {shown(query)}",
            "grouping, sorting or cutting there would mix the rows of different people.",
            "SELECT AVG(days) FROM (SELECT days FROM visits WHERE ward = 'A') AS v",
        )
    return query


def _columns(query: Any, scope: Scope) -> dict[str, exp.Expression]:
    columns: dict[str, exp.Expression] = {}
    for item in query.expressions:
        for name, node in _items(item, scope):
            if name in columns:
                raise refused(
                    "DP701", f"{name} is there twice.", "it must be known which is meant.", "use AS"
                )
            columns[name] = node
    return columns


def _items(item: Any, scope: Scope) -> list[tuple[str, exp.Expression]]:
    if isinstance(item, exp.Star):
        only(item)
        return [
            (
                name,
                exp.column(
                    exp.to_identifier(name, quoted=True), exp.to_identifier(source.alias, quoted=True)
                ),
            )
            for source in scope.sources
            for name in source.names
        ]
    if isinstance(item, exp.Alias):
        return [(only(item, "this", "alias").alias, item.this)]
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier):
        return [(scope.owner(item)[1], item)]
    raise refused(
        "DP702", f"a column needs a name: {shown(item)}", "it is used by its name.", "days + 1 AS longer"
    )


def _add(found: Rows, join: Join) -> None:
    tables = [table.name for table in found.scope.tables()]
    if join.table.name in tables:
        raise refused(
            "DP703",
            f"{join.table.name} is joined to itself.",
            "pairs of rows of different people have no unit, and pairs of one person's grow as the square.",
            f"COUNT(DISTINCT {join.table.unit})   counts people once, however many rows they have",
        )
    result = joined(found.relation, found.scope, join)
    found.relation, found.scope = result.relation, result.scope
    for at, values in result.known.items():
        found.restrict(at, values)
    _filter(found, result.rest)


def _filter(found: Rows, nodes: list[Any]) -> None:
    """Rows for which all conditions are TRUE; a list of values that a column must have is remembered."""
    scalar = Scalar(found.scope)
    conditions = [scalar.condition(node) for node in nodes]
    for condition in conditions:
        kept = _listed(condition)
        if kept is not None:
            found.restrict(*kept)
    if conditions:
        found.relation = Filtered(found.relation, logic("and", conditions))


def _listed(condition: Expr) -> tuple[tuple[str, str], tuple[Any, ...]] | None:
    """`column IN (…)` or `column = value`: the column, and its values."""
    if isinstance(condition, IsIn) and isinstance(condition.of, Read):
        read, cells = condition.of, condition.values
    elif isinstance(condition, Compare) and condition.op == "=":
        sides = (condition.left, condition.right)
        read, other = sides if isinstance(sides[0], Read) else sides[::-1]  # type: ignore[assignment]
        if not isinstance(read, Read) or not isinstance(other, Constant):
            return None
        cells = (other.value,)
    else:
        return None
    if read.type.places:
        return None
    values = tuple(read_back(cell, read.type) if read.type.is_ordered else cell for cell in cells)
    return (read.table, read.column), values
