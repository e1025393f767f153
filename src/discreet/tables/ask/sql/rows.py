# SPDX-License-Identifier: Apache-2.0
"""FROM, JOIN and WHERE: the rows that a question is about.

**Guarantee.** The relation uses only the operators of `algebra/sums.py`, each of which acts on the
rows of one unit and on public tables. A query inside FROM renames, computes and filters; groups and
numbers the rows of one unit (`per_unit.py`, `windows.py`); or puts relations below each other
(`stacked.py`). So adding or removing a unit changes the rows of that unit and of no other.

What would break it: a "public" table made from private data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.ask.columns import rows_of, similar_names
from discreet.tables.ask.sql.joins import JoinClause, is_comma, join_rows, pairs_of
from discreet.tables.ask.sql.matches import keep_matched, match_condition, other_people_error
from discreet.tables.ask.sql.per_unit import group_by_unit, is_grouped
from discreet.tables.ask.sql.refuse import node_text, question_error, require_only, unsupported_error
from discreet.tables.ask.sql.scalar import conjuncts
from discreet.tables.ask.sql.scope import FromItem, NameScope, match_name
from discreet.tables.ask.sql.selected import SelectedRows, filter_rows, question_tables
from discreet.tables.ask.sql.stacked import QueryRows, project, stack
from discreet.tables.ask.sql.windows import has_windows, with_windows
from discreet.tables.ask.start import Dataset

__all__ = ["select_rows"]

_PARTS = {
    "expressions",
    "from_",
    "from",
    "joins",
    "where",
    "with_",
    "with",
    "group",
    "having",
    "distinct",
    "qualify",
    "windows",
}
Queries = Mapping[str, exp.Expression]


@dataclass(frozen=True)
class _FromSource:
    """An item of FROM: its name, and its rows; a public table has none of its own."""

    item: FromItem
    rows: SelectedRows | None


def select_rows(
    select: exp.Select, dataset: Dataset, queries: Queries | None = None, outer: NameScope | None = None
) -> SelectedRows:
    """The rows of FROM, JOIN and WHERE; `queries` are the named queries of an outer WITH."""
    queries = {**(queries or {}), **_named_queries(select)}
    where = select.args.get("where")
    conditions = [] if where is None else conjuncts(require_only(where, "this").this)
    first, joins = _first(select, dataset, queries)
    selected = _start(first, dataset, queries, as_table=bool(joins))
    selected.scope.outer = outer
    sources = [(node, _source(node.this, dataset, queries, as_table=True)) for node in joins]
    while sources:
        conditions = _join_next(selected, sources, conditions)
    _keep(selected, conditions, dataset, queries)
    return selected


def _keep(
    selected: SelectedRows, conditions: list[exp.Expression], dataset: Dataset, queries: Queries
) -> None:
    """Keep the rows that fulfil the conditions of WHERE."""
    own = [node for node in conditions if selected.scope.outer is None or selected.scope.is_own(node)]
    selected.correlated = [node for node in conditions if not any(node is other for other in own)]
    matches = [match for node in own if (match := match_condition(node)) is not None]
    plain = [node for node in own if match_condition(node) is None]
    filter_rows(selected, plain)
    for match in matches:
        if _is_all_public(match.query, dataset, queries):
            raise other_people_error(selected, match)
        inner = (
            _query_rows(match.query, dataset, queries)
            if match.column is not None
            else _plain_rows(match.query, dataset, queries, selected.scope)
        )
        keep_matched(selected, match, inner)


def _is_all_public(query: exp.Expression, dataset: Dataset, queries: Queries) -> bool:
    tables = list(query.find_all(exp.Table))
    return bool(tables) and all(_is_public(table, dataset, queries) for table in tables)


def _named_queries(select: exp.Expression) -> dict[str, exp.Expression]:
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


# --- FROM --------------------------------------------------------------------------------------------


def _first(
    select: exp.Select, dataset: Dataset, queries: Queries
) -> tuple[exp.Expression, list[exp.Expression]]:
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
    if not _is_public(start.this, dataset, queries):
        return start.this, joins
    for position, join in enumerate(joins):
        # The first of a list of tables, or of inner joins before which all tables are public.
        if not _is_public(join.this, dataset, queries) and (position == 0 or is_comma(join)):
            return _swap(start.this, joins, position)
        if join.args.get("side"):
            break
    nested = next((node for node in select.find_all(exp.Subquery) if node is not start.this), None)
    if nested is not None and not _is_all_public(nested, dataset, queries):
        raise unsupported_error(nested)
    name = start.this.name
    inner = bool(joins) and not joins[0].args.get("side")
    raise question_error(
        "DP703",
        "the first two tables are public." if inner else f"{_alias(start.this) or name} is a public table.",
        "FROM must start with a private table; public data need no noise.",
        f"FROM {_private_name(dataset)} JOIN …"
        if inner
        else f"FROM {_private_name(dataset)} LEFT JOIN {name} ON …",
    )


def _swap(
    first: exp.Expression, joins: list[exp.Expression], position: int
) -> tuple[exp.Expression, list[exp.Expression]]:
    """The joined table first, and the public one in its place; RIGHT becomes LEFT."""
    join = joins[position]
    side = str(join.args.get("side") or "")
    if side not in {"", "RIGHT"}:
        raise question_error(
            "DP703",
            f"{_alias(first) or first.name} is a public table.",
            "a row of a public table without a match belongs to nobody.",
            f"FROM {join.this.name} LEFT JOIN {first.name}{_condition_text(join)}",
        )
    swapped = join.copy()
    swapped.set("this", first.copy())
    if side:
        swapped.set("side", "LEFT")
    return join.this, [*joins[:position], swapped, *joins[position + 1 :]]


def _condition_text(join: exp.Expression) -> str:
    on, using = join.args.get("on"), join.args.get("using")
    if using:
        return f" USING ({', '.join(column.name for column in using)})"
    return "" if on is None else f" ON {node_text(on)}"


def _private_name(dataset: Dataset) -> str:
    return next(table.name for table in dataset.tables.values() if table.private)


def _is_public(node: exp.Expression, dataset: Dataset, queries: Queries) -> bool:
    if not isinstance(node, exp.Table) or match_name(_identifier(node, dataset), queries) is not None:
        return False
    return not dataset.tables[_table_name(node, dataset)].private


def _start(node: exp.Expression, dataset: Dataset, queries: Queries, *, as_table: bool) -> SelectedRows:
    source = _source(node, dataset, queries, as_table=as_table)
    assert source.rows is not None
    known = source.rows.known
    return SelectedRows(source.rows.relation, NameScope(dataset, [source.item]), known)


def _source(node: exp.Expression, dataset: Dataset, queries: Queries, *, as_table: bool) -> _FromSource:
    """A table of the data set, or the rows of a query; `as_table` makes columns of what it
    computes.
    """
    if not isinstance(node, exp.Subquery | exp.Table):
        raise _from_error(node, dataset)
    if isinstance(node, exp.Table) and match_name(_identifier(node, dataset), queries) is None:
        return _table_source(node, dataset)
    require_only(node, "this", "alias")
    alias = _alias(node) or (node.name if isinstance(node, exp.Table) else "subquery")
    query, inside = _query(node, queries)
    inner = _query_rows(query, dataset, inside)
    if as_table:
        projected = project(inner, alias)
        return _FromSource(FromItem(alias, projected.scope.sources[0].table), projected)
    return _FromSource(FromItem(alias, inner=inner.rows.scope, columns=inner.columns), inner.rows)


def _table_source(node: exp.Expression, dataset: Dataset) -> _FromSource:
    name = _table_name(node, dataset)
    tables = question_tables(dataset)
    table = tables.read(name)
    item = FromItem(_alias(node) or name, table)
    if not table.private:
        return _FromSource(item, None)
    return _FromSource(item, SelectedRows(rows_of(table, tables), NameScope(dataset, [item])))


def _identifier(node: exp.Expression, dataset: Dataset) -> exp.Identifier:
    if not isinstance(node.this, exp.Identifier):
        raise _from_error(node, dataset)
    require_only(node, "this", "alias")
    return node.this


def _table_name(node: exp.Expression, dataset: Dataset) -> str:
    described = [name for name, table in dataset.tables.items() if table.of is None]
    name = match_name(_identifier(node, dataset), described)
    if name is None:
        raise question_error(
            "DP701",
            f"there is no table {node.name!r}.",
            "a question can use only tables of the description.",
            f"use {similar_names(node.name, described)}",
        )
    return name


def _from_error(node: exp.Expression, dataset: Dataset) -> Exception:
    return question_error(
        "DP702",
        f"this is not supported in FROM: {node_text(node)}",
        "rows can come only from the tables of the description.",
        f"FROM {_private_name(dataset)}",
    )


def _alias(node: exp.Expression) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    require_only(alias, "this")
    return str(alias.name)


def _query(node: exp.Expression, queries: Queries) -> tuple[exp.Expression, Queries]:
    """The query that is meant, and the named queries that it can use: never itself."""
    if isinstance(node, exp.Subquery):
        return node.this, queries
    query = queries[match_name(node.this, queries) or ""]
    return query, {name: other for name, other in queries.items() if other is not query}


# --- joins -------------------------------------------------------------------------------------------


def _join_next(
    selected: SelectedRows, joins: list[tuple[exp.Expression, _FromSource]], conditions: list[exp.Expression]
) -> list[exp.Expression]:
    """Join the first table that can be joined; returns the conditions of WHERE that are left."""
    refused: RefusedQuestion | None = None
    for position, (node, source) in enumerate(joins):
        if position and not is_comma(node):
            continue
        used = _listed_conditions(selected, source.item, conditions) if is_comma(node) else []
        relation = None if source.rows is None else source.rows.relation
        known = {} if source.rows is None else source.rows.known
        on = [] if node.args.get("on") is None else conjuncts(node.args["on"])
        clause = JoinClause(node, source.item, relation, known, (*on, *used))
        try:
            join_rows(selected, clause)
        except RefusedQuestion as error:
            refused = refused or error
            if not is_comma(node):
                raise
            continue
        joins.pop(position)
        return [condition for condition in conditions if not any(condition is other for other in used)]
    assert refused is not None
    raise refused


def _listed_conditions(
    selected: SelectedRows, item: FromItem, conditions: list[exp.Expression]
) -> list[exp.Expression]:
    """The equalities of WHERE that join a table of a list to those before it."""
    wider = NameScope(selected.scope.dataset, [*selected.scope.sources, item], set(selected.scope.merged))
    candidates = [node for node in conditions if isinstance(node, exp.EQ) and wider.is_own(node)]
    return [node for node in candidates if pairs_of([node], wider, [item])[0]]


# --- queries inside FROM, IN and EXISTS --------------------------------------------------------------


def _query_rows(query: exp.Expression, dataset: Dataset, queries: Queries) -> QueryRows:
    """The rows of a query, and its columns by their names."""
    if isinstance(query, exp.Subquery):
        require_only(query, "this")
        return _query_rows(query.this, dataset, queries)
    if isinstance(query, exp.Union) and query.args.get("distinct") is False:
        require_only(query, "this", "expression", "distinct", "with_", "with")
        queries = {**queries, **_named_queries(query)}
        first = _query_rows(query.this, dataset, queries)
        return stack([first, _query_rows(_with_names(query.expression, first), dataset, queries)])
    if not isinstance(query, exp.Select):
        raise unsupported_error(query)
    _check_parts(query)
    rows = select_rows(query, dataset, queries)
    columns = _columns(query, rows.scope)
    having, qualify = query.args.get("having"), query.args.get("qualify")
    if is_grouped(query):
        grouped = group_by_unit(query, rows, columns)
        rows, columns = grouped.rows, dict(grouped.columns)
    elif having is not None:
        raise unsupported_error(having)
    if has_windows([*columns.values(), *([] if qualify is None else [qualify])]):
        rows, columns = with_windows(query, rows, columns)
    return QueryRows(rows, columns)


def _with_names(query: exp.Expression, first: QueryRows) -> exp.Expression:
    """A later part of UNION ALL, whose columns without a name have that of the first part."""
    if not isinstance(query, exp.Select) or any(item.is_star for item in query.expressions):
        return query
    named = query.copy()
    items = [
        exp.alias_(item, name, quoted=True) if not isinstance(item, exp.Alias | exp.Column) else item
        for item, name in zip(named.expressions, first.columns, strict=False)
    ]
    named.set("expressions", [*items, *named.expressions[len(items) :]])
    return named


def _plain_rows(query: exp.Expression, dataset: Dataset, queries: Queries, outer: NameScope) -> QueryRows:
    """The rows of a query in EXISTS, whose conditions may name columns around it."""
    while isinstance(query, exp.Subquery):
        query = require_only(query, "this").this
    if not isinstance(query, exp.Select):
        raise unsupported_error(query)
    if is_grouped(query) or query.args.get("qualify"):
        raise unsupported_error(exp.Exists(this=query))
    _check_parts(query)
    return QueryRows(select_rows(query, dataset, queries, outer), {})


def _check_parts(query: exp.Select) -> None:
    unsupported = [part for part, value in query.args.items() if part not in _PARTS and value]
    if unsupported:
        raise question_error(
            "DP702",
            f"a query inside FROM cannot have {unsupported[0].strip('_').upper()}: {node_text(query)}",
            "sorting or LIMIT there would choose among the rows of several people.",
            "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY came_on) AS n   and   WHERE n <= 10   outside",
        )


def _columns(query: exp.Expression, scope: NameScope) -> dict[str, exp.Expression]:
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


def _items(item: exp.Expression, scope: NameScope) -> list[tuple[str, exp.Expression]]:
    if isinstance(item, exp.Star):
        require_only(item)
        return _all_columns(scope.sources, scope.merged)
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return _all_columns([scope.source(item.args["table"])], set())
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


def _all_columns(sources: list[FromItem], merged: set[str]) -> list[tuple[str, exp.Expression]]:
    """Every column; those of USING once."""
    columns: dict[tuple[str, str], exp.Expression] = {}
    for source in sources:
        for name in source.names:
            key = ("", name) if name in merged else (source.alias, name)
            columns.setdefault(
                key,
                exp.column(
                    exp.to_identifier(name, quoted=True), exp.to_identifier(source.alias, quoted=True)
                ),
            )
    return [(name, node) for (_, name), node in columns.items()]
