# SPDX-License-Identifier: Apache-2.0
"""FROM, JOIN and WHERE: the rows that a question is about.

**Guarantee.** The relation uses only the operators of `data/sums.py`, each of which acts on the
rows of one unit and on public tables. A join is a look-up in a public table, or a pairing of
private tables on the unit. An inlined query only renames, computes and filters. So adding or
removing a unit changes the rows of that unit and of no other.

What would break it: a "public" table made from private data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from discreet.tables.ask.build import logic
from discreet.tables.ask.columns import rows_of, similar_names
from discreet.tables.ask.sql.joins import JoinClause, join_rows
from discreet.tables.ask.sql.refuse import node_text, question_error, require_only, unsupported_error
from discreet.tables.ask.sql.scalar import Scalar, conjuncts
from discreet.tables.ask.sql.scope import FromItem, NameScope, match_name
from discreet.tables.ask.start import Dataset
from discreet.tables.data.expr import Compare, Constant, Expr, IsIn, Read
from discreet.tables.data.sums import Filtered, Relation
from discreet.tables.data.types import python_value

__all__ = ["Known", "SelectedRows", "select_rows"]

#: The public values that a column of the rows can still have: those of a list in WHERE, or of a table joined to it.
Known = dict[tuple[str, str], tuple[Any, ...]]


@dataclass
class SelectedRows:
    """A relation, its names, and the public values of its columns."""

    relation: Relation
    scope: NameScope
    known: Known = field(default_factory=dict)

    def restrict(self, at: tuple[str, str], values: tuple[Any, ...]) -> None:
        """Record that a column has only these values."""
        before = self.known.get(at)
        self.known[at] = values if before is None else tuple(value for value in before if value in values)


def select_rows(
    select: exp.Select, dataset: Dataset, queries: Mapping[str, exp.Expression] | None = None
) -> SelectedRows:
    """The rows of a SELECT; `queries` are the named queries of an outer WITH."""
    queries = {**(queries or {}), **_named_queries(select)}
    first, joins = _first(select, dataset, queries)
    selected = _start(first, dataset, queries)
    for join in joins:
        source = _source(join.this, dataset, queries)
        if source.table is None:
            raise unsupported_error(join.this)
        _add(selected, JoinClause(join, source, source.table))
    where = select.args.get("where")
    if where is not None:
        _filter(selected, conjuncts(require_only(where, "this").this))
    return selected


def _named_queries(select: exp.Select) -> dict[str, exp.Expression]:
    named = select.args.get("with_") or select.args.get("with")
    if named is None:
        return {}
    require_only(named, "expressions")
    queries: dict[str, exp.Expression] = {}
    for query in named.expressions:
        require_only(query, "this", "alias")
        require_only(query.args["alias"], "this")
        queries[query.alias] = query.this
    return queries


def _first(select: exp.Select, dataset: Dataset, queries: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """The first table and the joins, reordered so that a private table comes first."""
    start = select.args.get("from_") or select.args.get("from")
    if start is None:
        raise question_error(
            "DP702",
            "the question has no FROM.",
            "a question is about the rows of a table.",
            "SELECT COUNT(*) FROM visits",
        )
    require_only(start, "this")
    joins = list(select.args.get("joins") or [])
    source = _source(start.this, dataset, queries)
    if source.table is None or source.table.private:
        return start.this, joins
    inner = bool(joins) and not joins[0].args.get("side")
    if not inner:
        raise question_error(
            "DP703",
            f"{source.alias} is a public table.",
            "FROM must start with a private table; public data need no noise.",
            f"FROM {_private_name(dataset)} LEFT JOIN {source.table.name} ON …",
        )
    swapped = joins[0].copy()
    swapped.set("this", start.this.copy())
    return joins[0].this, [swapped, *joins[1:]]


def _private_name(dataset: Dataset) -> str:
    return next(table.name for table in dataset.tables.values() if table.private)


def _start(node: exp.Expression, dataset: Dataset, queries: Mapping[str, Any]) -> SelectedRows:
    source = _source(node, dataset, queries)
    if source.table is not None:
        if not source.table.private:
            raise question_error(
                "DP703",
                "the first two tables are public.",
                "FROM must start with a private table; public data need no noise.",
                f"FROM {_private_name(dataset)} JOIN …",
            )
        return SelectedRows(rows_of(source.table), NameScope(dataset, [source]))
    earlier = {name: query for name, query in queries.items() if query is not _query(node, queries)}
    inner = select_rows(_plain(_query(node, queries)), dataset, earlier)
    columns = _columns(_query(node, queries), inner.scope)
    outer = NameScope(dataset, [FromItem(source.alias, inner=inner.scope, columns=columns)])
    return SelectedRows(inner.relation, outer, inner.known)


def _source(node: exp.Expression, dataset: Dataset, queries: Mapping[str, Any]) -> FromItem:
    """A table of the data set, or an inlined query whose columns are resolved later."""
    if isinstance(node, exp.Subquery):
        require_only(node, "this", "alias")
        return FromItem(_alias(node) or "subquery")
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise question_error(
            "DP702",
            f"this is not supported in FROM: {node_text(node)}",
            "rows can come only from the tables of the description.",
            f"FROM {next((table.name for table in dataset.tables.values() if table.private), 'visits')}",
        )
    require_only(node, "this", "alias")
    if match_name(node.this, queries) is not None:
        return FromItem(_alias(node) or node.name)
    name = match_name(node.this, dataset.tables)
    if name is None:
        raise question_error(
            "DP701",
            f"there is no table {node.name!r}.",
            "a question can use only tables of the description.",
            f"use {similar_names(node.name, dataset.tables)}",
        )
    return FromItem(_alias(node) or name, dataset.tables[name])


def _alias(node: exp.Expression) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    require_only(alias, "this")
    return str(alias.name)


def _query(node: exp.Expression, queries: Mapping[str, Any]) -> Any:
    if isinstance(node, exp.Subquery):
        return node.this
    return queries[match_name(node.this, queries) or ""]


def _plain(query: Any) -> exp.Select:
    """The query, if it only renames, computes and filters, so that it can be inlined."""
    if not isinstance(query, exp.Select):
        raise unsupported_error(query)
    allowed = {"expressions", "from_", "from", "joins", "where", "with_", "with"}
    more = [part for part, value in query.args.items() if part not in allowed and value]
    if more:
        raise question_error(
            "DP702",
            f"a query inside FROM can only select columns and filter rows: {node_text(query)}",
            "grouping, sorting or LIMIT there would mix the rows of several people.",
            "SELECT AVG(days) FROM (SELECT days FROM visits WHERE ward = 'A') AS v",
        )
    return query


def _columns(query: Any, scope: NameScope) -> dict[str, exp.Expression]:
    columns: dict[str, exp.Expression] = {}
    for item in query.expressions:
        for name, node in _items(item, scope):
            if name in columns:
                raise question_error(
                    "DP701",
                    f"the query has two columns named {name}.",
                    "the name does not say which of them is meant.",
                    "use AS",
                )
            columns[name] = node
    return columns


def _items(item: Any, scope: NameScope) -> list[tuple[str, exp.Expression]]:
    if isinstance(item, exp.Star):
        require_only(item)
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
        return [(require_only(item, "this", "alias").alias, item.this)]
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier):
        return [(scope.owner(item)[1], item)]
    raise question_error(
        "DP702",
        f"a column needs a name: {node_text(item)}",
        "the outer query uses columns by name.",
        "days + 1 AS longer",
    )


def _add(selected: SelectedRows, join: JoinClause) -> None:
    tables = [table.name for table in selected.scope.tables()]
    if join.table.name in tables:
        raise question_error(
            "DP703",
            f"{join.table.name} is joined to itself.",
            "pairs of rows of two people belong to no unit, and the pairs of one person grow with the square of their rows.",
            f"COUNT(DISTINCT {join.table.unit})   counts people once, however many rows they have",
        )
    result = join_rows(selected.relation, selected.scope, join)
    selected.relation, selected.scope = result.relation, result.scope
    for at, values in result.known.items():
        selected.restrict(at, values)
    _filter(selected, result.rest)


def _filter(selected: SelectedRows, nodes: list[Any]) -> None:
    """Keep the rows for which all conditions are TRUE, and record the values that IN or = leaves to
    a column.
    """
    scalar = Scalar(selected.scope)
    conditions = [scalar.condition(node) for node in nodes]
    for condition in conditions:
        listed = _listed_values(condition)
        if listed is not None:
            selected.restrict(*listed)
    if conditions:
        selected.relation = Filtered(selected.relation, logic("and", conditions))


def _listed_values(condition: Expr) -> tuple[tuple[str, str], tuple[Any, ...]] | None:
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
    # At an end of its bounds a clipped column stands for all values beyond it.
    ends = {read.type.low, read.type.high} if read.type.is_ordered else set[int]()
    if read.type.places or not ends.isdisjoint(cells):
        return None
    values = tuple(python_value(cell, read.type) if read.type.is_ordered else cell for cell in cells)
    return (read.table, read.column), values
