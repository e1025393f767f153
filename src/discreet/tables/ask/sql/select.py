# SPDX-License-Identifier: Apache-2.0
"""One SELECT as one `Question`: rows, keys, aggregates, and post-processing of the released
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.algebra import expr as e
from discreet.tables.algebra.expr import Expr, Read
from discreet.tables.algebra.sums import (
    Lookup,
    Relation,
    inner_relations,
    relation_expressions,
    sorted_groups,
)
from discreet.tables.ask.columns import similar_names
from discreet.tables.ask.question import AnswerColumn, Key, Question, SortOrder, Workload, WorkloadAxis
from discreet.tables.ask.released import ReleasedColumn, quotient_columns
from discreet.tables.ask.sql.aggregates import Aggregates, free_name, is_aggregate, short_name
from discreet.tables.ask.sql.dialect import PlainDialect
from discreet.tables.ask.sql.grouping import (
    axis_of,
    check_workload,
    has_grouping_sets,
    node_sets,
    objective_of,
    rollup_keys,
)
from discreet.tables.ask.sql.keys import combinations, key
from discreet.tables.ask.sql.literals import whole_number
from discreet.tables.ask.sql.periods import check_periods
from discreet.tables.ask.sql.refuse import node_text, question_error, require_only, unsupported_error
from discreet.tables.ask.sql.released import PostProcessor, TypedExpression
from discreet.tables.ask.sql.rows import select_rows
from discreet.tables.ask.sql.scope import match_name
from discreet.tables.ask.sql.selected import SelectedRows, working_copy
from discreet.tables.ask.sql.short_forms import write_out
from discreet.tables.ask.sql.text import SelectStatement
from discreet.tables.ask.sql.views import view_queries
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Table

__all__ = ["question"]

_PARTS = (
    "expressions",
    "from_",
    "from",
    "joins",
    "where",
    "group",
    "having",
    "qualify",
    "order",
    "limit",
    "with_",
    "with",
)
_LONGEST_ANSWER = 10**9


@dataclass(frozen=True)
class _Item:
    """One item of SELECT."""

    node: exp.Expression
    alias: str


def question(statement: SelectStatement, dataset: Dataset) -> Question:
    """The question that a SELECT asks."""
    select = write_out(statement.select)
    if select.args.get("distinct"):
        raise unsupported_error(exp.Distinct(expressions=list(select.expressions)))
    require_only(select, *_PARTS)
    rows = select_rows(select, working_copy(dataset), view_queries(dataset))
    items = [_item(node) for node in select.expressions]
    taken: set[str] = set()
    keys, workload = _keys_and_workload(select.args.get("group"), items, rows, taken)
    if "objective" in statement.options:
        workload = _with_objective(workload, keys, statement.options["objective"])
    post = PostProcessor(keys, Aggregates(rows, taken), has_sets=workload is not None)
    outputs, named = _outputs(items, post, taken)
    if workload is not None:
        outputs = _with_grouping(outputs, workload, [group_key for _, group_key in keys])
    post.named.update(named)
    having, qualify = select.args.get("having"), select.args.get("qualify")
    unfinished = Question(
        rows=rows.relation,
        aggregates=(),
        keys=tuple(group_key for _, group_key in keys),
        outputs=outputs,
        having=None if having is None else post.condition(require_only(having, "this").this),
        qualify=None if qualify is None else post.condition(require_only(qualify, "this").this),
        order=_order(select.args.get("order"), outputs, post),
        limit=_limit(select.args.get("limit")),
        text=_text(statement),
        combinations=None
        if workload is not None
        else combinations(tuple(group_key for _, group_key in keys), rows),
        workload=workload,
    )
    window = select.find(exp.Window)
    if window is not None and not post.aggregates.all:
        # There are no released rows that it could read.
        raise unsupported_error(window)
    return check_periods(_with_aggregates(unfinished, post), dataset)


def _with_aggregates(unfinished: Question, post: PostProcessor) -> Question:
    """The question with its aggregates; those of HAVING and ORDER BY are known only now."""
    if not post.aggregates.all:
        raise question_error(
            "DP706",
            "the question contains no aggregate.",
            "an answer consists of noisy numbers, and a list of values cannot have noise.",
            "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
        )
    after = [*(column.of for column in unfinished.outputs), *(order.of for order in unfinished.order)]
    after += [condition for condition in (unfinished.having, unfinished.qualify) if condition is not None]
    quotients = frozenset[str]().union(*map(quotient_columns, after))
    whole_question = replace(unfinished, aggregates=tuple(post.aggregates.all), quotients=quotients)
    check_size(whole_question)
    if whole_question.workload is not None:
        kinds = {aggregate.text: aggregate.kind for aggregate in whole_question.aggregates}
        check_workload(whole_question.workload, whole_question.keys, kinds)
    return whole_question


def _item(node: exp.Expression) -> _Item:
    if isinstance(node, exp.Alias):
        return _Item(require_only(node, "this", "alias").this, str(node.alias))
    return _Item(node, "")


def _keys_and_workload(
    group: exp.Expression | None, items: list[_Item], rows: SelectedRows, taken: set[str]
) -> tuple[list[tuple[exp.Expression, Key]], Workload | None]:
    """The keys in the order of the text, each once, and the sets of them if there are several."""
    keys: list[tuple[exp.Expression, Key]] = []
    if group is None:
        return keys, None

    def place(node: exp.Expression) -> int:
        item = _group_item(node, items, rows)
        for at, (written, _) in enumerate(keys):
            if rows.scope.same(item.node, written):
                return at
        name = free_name(item.alias or short_name(item.node), taken)
        keys.append((item.node, key(item.node, name, rows)))
        return len(keys) - 1

    if has_grouping_sets(group):
        axes = _axes(group, keys, rows, place)
        depth = len(keys)
        # A set that names all keys, if there is one, says their order.
        sets = sorted(node_sets(group, list(axes)), key=len, reverse=True)
        placed = {tuple(sorted({place(node) for node in nodes})) for nodes in sets}
        if any(place < depth for places in placed for place in places):
            raise _twice_error(keys[:depth])
        in_order = tuple(sorted(placed, key=lambda places: (len(places), places)))
        grouping = free_name("grouping", taken)
        return keys, Workload(in_order, grouping=grouping, axes=tuple(axes.values()))
    require_only(group, "expressions", "all")
    named = list(group.expressions)
    if group.args.get("all"):
        # A literal would be a position.
        named += [
            item.node
            for item in items
            if not _has_aggregate(item.node) and not isinstance(item.node, exp.Literal)
        ]
    for node in named:
        place(node)
    return keys, None


def _axes(
    group: exp.Expression,
    keys: list[tuple[exp.Expression, Key]],
    rows: SelectedRows,
    place: Callable[[exp.Expression], int],
) -> dict[exp.Expression, WorkloadAxis]:
    """The ordered keys and the hierarchies among the elements of GROUP BY; their keys are placed
    first.

    ROLLUP is a hierarchy if the values of its keys are known jointly, from a public table.
    """
    axes: dict[exp.Expression, WorkloadAxis] = {}
    for element in group.expressions:
        nodes, kind = rollup_keys(element), "tree"
        if (ordered := axis_of(element)) is not None:
            kind, nodes = ordered[0], (ordered[1],)
        elif not nodes or not _is_hierarchy(nodes, rows):
            continue
        before = len(keys)
        places = [place(node) for node in nodes]
        if places != list(range(before, before + len(nodes))):
            raise _twice_error(keys[:before])
        axis_keys = tuple(group_key for _, group_key in keys[before:])
        axes[element] = WorkloadAxis(kind, _leaves(kind, axis_keys, rows))
        if kind != "tree":
            written, ordered_key = keys[before]
            values = tuple(value for (value,) in axes[element].leaves)
            keys[before] = written, replace(ordered_key, values=values)
    return axes


def _is_hierarchy(nodes: Sequence[exp.Expression], rows: SelectedRows) -> bool:
    """Whether the values of keys are known jointly, as rows of a public table; no row says nothing."""
    try:
        several = tuple(key(node, str(at), rows) for at, node in enumerate(nodes))
    except RefusedQuestion:
        return False
    known = all(each.values is not None for each in several)
    return known and bool(combinations(_looked_up(several, rows), rows))


def _looked_up(keys: tuple[Key, ...], rows: SelectedRows) -> tuple[Key, ...]:
    """The keys as columns of the public table that a join makes them equal to, or that has them as
    a hierarchy, so that they are known jointly.
    """
    equal = _places_in_hierarchies(keys, rows)
    relation: Relation | None = rows.relation
    while relation is not None:
        if isinstance(relation, Lookup) and not relation.keep:
            equal |= {
                (left.table, left.column): right for left, right in relation.on if isinstance(left, Read)
            }
        relation = next(iter(inner_relations(relation)), None)
    found = (
        (equal.get((each.of.table, each.of.column)) if isinstance(each.of, Read) else None) for each in keys
    )
    return tuple(replace(each, of=of or each.of) for each, of in zip(keys, found, strict=True))


def _places_in_hierarchies(keys: tuple[Key, ...], rows: SelectedRows) -> dict[tuple[str, str], Expr]:
    """The columns of a declared hierarchy with the names of the keys, if it has all of them."""
    tables = rows.scope.dataset.tables
    reads = [each.of for each in keys if isinstance(each.of, Read)]
    if len(reads) < len(keys) or not all(tables[read.table].private for read in reads):
        return {}
    for table in tables.values():
        if all(_is_place(read, tables[read.table], table) for read in reads):
            return {(read.table, read.column): replace(read, table=table.name) for read in reads}
    return {}


def _is_place(read: Read, own: Table, places: Table) -> bool:
    """Whether a column is a level of a hierarchy: by its name and by its type."""
    column, level = own.columns.get(read.column), places.columns.get(read.column)
    if read.column not in places.hierarchy or column is None or level is None:
        return False
    return column.kind == level.kind


def _leaves(kind: str, keys: tuple[Key, ...], rows: SelectedRows) -> tuple[tuple[Any, ...], ...]:
    """The paths of a hierarchy, or the values of an ordered key in their order, without NULL."""
    if kind == "tree":
        return tuple(sorted_groups(combinations(_looked_up(keys, rows), rows) or ()))
    (ordered,) = keys
    if not ordered.of.type.is_ordered:
        raise question_error(
            "DP704",
            f"{ordered.name} has no order.",
            "ranges and running totals are those of a number or a date.",
            f"GROUP BY {ordered.name}",
        )
    values = [value for value in ordered.values or () if value is not None]
    if ordered.values is None or not values:
        raise question_error(
            "DP704",
            f"the values of {ordered.name} are not public.",
            "every range of public values is released, whether it has rows or not.",
            f"state its bounds in the description, or  WHERE {ordered.name} BETWEEN … AND …",
        )
    return tuple(sorted_groups({(value,) for value in values}))


def _twice_error(keys: Sequence[tuple[exp.Expression, Key]]) -> Exception:
    names = ", ".join(group_key.name for _, group_key in keys)
    return question_error(
        "DP704",
        f"{names} stands in GROUP BY twice.",
        "an ordered key or a hierarchy is crossed with all tables, so its keys belong to no other set.",
        f"leave {names} out of the other sets",
    )


def _with_objective(
    workload: Workload | None, keys: list[tuple[exp.Expression, Key]], written: object
) -> Workload:
    """The workload with the objective of WITH ( … )."""
    names = [group_key.name for _, group_key in keys]
    if workload is None:
        raise question_error(
            "DP706",
            "an objective is stated, and the question asks for a single table.",
            "an objective shares noise between several tables.",
            "GROUP BY CUBE (…), or leave the objective out",
        )

    def place_of(name: str) -> int:
        if name in names:
            return names.index(name)
        raise question_error(
            "DP701",
            f"the objective names {name!r}, which is no key of the question.",
            "the weight of a table is stated by its keys.",
            f"use {similar_names(name, names)}",
        )

    objective = objective_of(written, place_of)
    if not isinstance(objective, str) and not {places for places, _ in objective} <= set(workload.sets):
        raise question_error(
            "DP706",
            "the objective weighs a table that the question does not ask for.",
            "tables that are not asked for follow from the others.",
            "GROUP BY GROUPING SETS (…) with this table, or leave its weight out",
        )
    return replace(workload, objective=objective)


def _text(statement: SelectStatement) -> str:
    """The text of the question, with the objective, which decides on the noise of each table."""
    if "objective" not in statement.options:
        return statement.text
    objective = exp.Literal.string(str(statement.options["objective"])).sql(dialect=PlainDialect)
    return f"{statement.text} WITH (objective = {objective})"


def _with_grouping(
    outputs: tuple[AnswerColumn, ...], workload: Workload, keys: list[Key]
) -> tuple[AnswerColumn, ...]:
    """The columns of the answer, and after the last key the one that tells the tables apart."""
    names = {group_key.name for group_key in keys}
    are_keys = [isinstance(column.of, ReleasedColumn) and column.of.name in names for column in outputs]
    after = max((at + 1 for at, is_key in enumerate(are_keys) if is_key), default=0)
    grouping = AnswerColumn(workload.grouping, ReleasedColumn(workload.grouping))
    return (*outputs[:after], grouping, *outputs[after:])


def _has_aggregate(node: exp.Expression) -> bool:
    """Whether an aggregate is anywhere in an expression."""
    return any(is_aggregate(part) for part in node.find_all(exp.Anonymous))


def _group_item(node: exp.Expression, items: list[_Item], rows: SelectedRows) -> _Item:
    """The item that a position, an alias or an expression in GROUP BY means."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        item = items[whole_number(node, "a position in GROUP BY", 1, len(items), "GROUP BY") - 1]
    else:
        item = _by_alias(node, items, rows) or _Item(node, _alias_of(node, items, rows))
    if is_aggregate(item.node):
        raise question_error(
            "DP706",
            f"GROUP BY cannot use {node_text(item.node)}.",
            "it is an aggregate, and groups must exist before it.",
            "group by a column",
        )
    return item


def _by_alias(node: exp.Expression, items: list[_Item], rows: SelectedRows) -> _Item | None:
    """The item with this alias; a column of the same name comes first."""
    if (
        not isinstance(node, exp.Column)
        or node.args.get("table")
        or not isinstance(node.this, exp.Identifier)
    ):
        return None
    if any(match_name(node.this, source.names) for source in rows.scope.sources):
        return None
    alias = match_name(node.this, [item.alias for item in items if item.alias])
    return next((item for item in items if item.alias == alias), None) if alias else None


def _alias_of(node: exp.Expression, items: list[_Item], rows: SelectedRows) -> str:
    return next((item.alias for item in items if item.alias and rows.scope.same(item.node, node)), "")


def _outputs(
    items: list[_Item], post: PostProcessor, taken: set[str]
) -> tuple[tuple[AnswerColumn, ...], dict[str, TypedExpression]]:
    """The columns of the answer. A key or an aggregate keeps its own name the first time it is
    shown.
    """
    outputs: list[AnswerColumn] = []
    named: dict[str, TypedExpression] = {}
    used: set[str] = set()
    for item in items:
        before = len(post.aggregates.all)
        value = post.value(item.node, item.alias)
        own = value.of.name if isinstance(value.of, ReleasedColumn) else ""
        # A new aggregate has the alias as its name, or the next free name.
        is_new = len(post.aggregates.all) > before
        fits = bool(own) and own not in used and (is_new or item.alias in {"", own})
        name = own if fits else free_name(item.alias or own or short_name(item.node), taken)
        used.add(name)
        outputs.append(AnswerColumn(name, value.of))
        named.setdefault(item.alias or name, value)
        if item.alias:
            post.earlier.setdefault(item.alias, value)
    return tuple(outputs), named


def _order(
    order: exp.Expression | None, outputs: tuple[AnswerColumn, ...], post: PostProcessor
) -> tuple[SortOrder, ...]:
    if order is None:
        return ()
    require_only(order, "expressions")
    orders = []
    for item in order.expressions:
        require_only(item, "this", "desc")
        of = item.this
        if isinstance(of, exp.Literal) and not of.args.get("is_string"):
            after = outputs[whole_number(of, "a position in ORDER BY", 1, len(outputs), "ORDER BY") - 1].of
        else:
            after = post.value(of).of
        orders.append(SortOrder(after, bool(item.args.get("desc"))))
    return tuple(orders)


def _limit(limit: exp.Expression | None) -> int | None:
    if limit is None:
        return None
    if not isinstance(limit, exp.Limit):
        raise question_error("DP702", "FETCH is not supported.", "LIMIT means the same.", "LIMIT 10")
    require_only(limit, "expression")
    return whole_number(limit.expression, "LIMIT", 0, _LONGEST_ANSWER, "LIMIT")


MOST = 3_000

#: Parts of dates, and truncated dates, are formulas: how many terms they have, and copies of their operand.
_FORMULAS = {
    (e.DatePart, "year"): (100, 18),
    (e.DatePart, "month"): (80, 13),
    (e.DatePart, "quarter"): (80, 13),
    (e.DatePart, "day"): (150, 26),
    (e.DatePart, "doy"): (210, 40),
    (e.DatePart, "week"): (480, 80),
    (e.DatePart, "isoyear"): (220, 36),
    (e.Truncated, "year"): (210, 40),
    (e.Truncated, "quarter"): (420, 80),
    (e.Truncated, "month"): (150, 27),
}
_SHORT = (8, 2)


def check_size(question: Question) -> None:
    """Refuse a question that is too long for an engine.

    An operator that copies its operand multiplies the length. An accepted question has at most a
    few thousand terms, which take an engine some seconds, so a short text cannot bring an engine
    down.
    """
    parts = [*_conditions(question.rows), *(key.of for key in question.keys)]
    parts += [aggregate.of for aggregate in question.aggregates if aggregate.of is not None]
    if sum(length(part) for part in parts) > MOST:
        raise question_error(
            "DP702",
            "the question becomes too long when it is translated for an engine.",
            "nested divisions, LEAST, GREATEST, CLAMP and parts of dates multiply its length.",
            "write them side by side instead of nesting them",
        )


def length(expr: Expr) -> int:
    """An upper bound on the number of terms of an expression."""
    inside = [length(part) for part in expr.parts]
    if isinstance(expr, e.Extreme):
        total = inside[0]
        for item in inside[1:]:
            total = 3 * (total + item)
        return total + 1
    if isinstance(expr, e.DatePart | e.Truncated):
        terms, copies = _FORMULAS.get((type(expr), expr.part), _SHORT)
        return terms + copies * sum(inside)
    if isinstance(expr, e.IsIn):
        return 1 + sum(inside) + len(expr.values) // 2
    return 1 + _copies(expr) * sum(inside)


def _copies(expr: Expr) -> int:
    if isinstance(expr, e.Quotient):
        return 4 if isinstance(expr.right, e.Constant) else 24
    if isinstance(expr, e.Steps):
        return len(expr.edges) + 4
    if isinstance(expr, e.Bucket):
        even = len({after - before for before, after in pairwise(expr.edges)}) == 1
        return 6 if even else len(expr.edges) + 4
    return {e.Clamp: 3, e.Modulo: 2, e.Root: 3}.get(type(expr), 1)


def _conditions(rows: Relation) -> Iterator[Expr]:
    yield from relation_expressions(rows)
    for inner in inner_relations(rows):
        yield from _conditions(inner)
