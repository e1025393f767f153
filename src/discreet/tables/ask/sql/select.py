# SPDX-License-Identifier: Apache-2.0
"""One SELECT as one `Question`: rows, keys, aggregates, and what is done to the released numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from discreet.tables.ask.after import Column, divided_with
from discreet.tables.ask.question import Key, Order, Output, Question
from discreet.tables.ask.sql.aggregates import Aggregates, free_name, is_aggregate, words
from discreet.tables.ask.sql.keys import combinations, key
from discreet.tables.ask.sql.literals import whole
from discreet.tables.ask.sql.outside import Outside, Shown
from discreet.tables.ask.sql.refuse import only, refused, shown, unsupported
from discreet.tables.ask.sql.rows import Rows, rows
from discreet.tables.ask.sql.scope import matching
from discreet.tables.ask.sql.size import check_size
from discreet.tables.ask.sql.text import Statement
from discreet.tables.data.dataset import Dataset

__all__ = ["question"]

_PARTS = (
    "expressions",
    "from_",
    "from",
    "joins",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "with_",
    "with",
)
_LONGEST_ANSWER = 10**9


@dataclass(frozen=True)
class _Item:
    """One item of SELECT."""

    node: Any
    alias: str


def question(statement: Statement, dataset: Dataset) -> Question:
    """What a SELECT asks of a data set."""
    select = statement.select
    if select.args.get("distinct"):
        raise unsupported(exp.Distinct(expressions=list(select.expressions)))
    only(select, *_PARTS)
    found = rows(select, dataset)
    items = [_item(node) for node in select.expressions]
    taken: set[str] = set()
    keys = _keys(select.args.get("group"), items, found, taken)
    outside = Outside(keys, Aggregates(found, taken))
    outputs, named = _outputs(items, outside, taken)
    outside.named.update(named)
    having = select.args.get("having")
    asked = Question(
        rows=found.relation,
        aggregates=(),
        keys=tuple(one for _, one in keys),
        outputs=outputs,
        having=None if having is None else outside.condition(only(having, "this").this),
        order=_order(select.args.get("order"), outputs, outside),
        limit=_limit(select.args.get("limit")),
        text=statement.text,
        combinations=combinations(tuple(one for _, one in keys), found),
    )
    return _with_aggregates(asked, outside)


def _with_aggregates(asked: Question, outside: Outside) -> Question:
    """Those of HAVING and ORDER BY are only known in the end."""
    if not outside.aggregates.found:
        raise refused(
            "DP706",
            "there is no aggregate in the question.",
            "an answer is made of noisy numbers; a list of values is none.",
            "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
        )
    after = [*(one.of for one in asked.outputs), *(one.of for one in asked.order)]
    after += [] if asked.having is None else [asked.having]
    quotients = frozenset[str]().union(*map(divided_with, after))
    whole_question = replace(asked, aggregates=tuple(outside.aggregates.found), quotients=quotients)
    check_size(whole_question)
    return whole_question


def _item(node: Any) -> _Item:
    if isinstance(node, exp.Alias):
        return _Item(only(node, "this", "alias").this, str(node.alias))
    return _Item(node, "")


def _keys(group: Any, items: list[_Item], found: Rows, taken: set[str]) -> list[tuple[Any, Key]]:
    if group is None:
        return []
    only(group, "expressions")
    keys: list[tuple[Any, Key]] = []
    for node in group.expressions:
        item = _grouped(node, items, found)
        if all(not found.scope.same(item.node, written) for written, _ in keys):
            name = free_name(item.alias or words(item.node), taken)
            keys.append((item.node, key(item.node, name, found)))
    return keys


def _grouped(node: Any, items: list[_Item], found: Rows) -> _Item:
    """What GROUP BY means by a position, an alias or an expression."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        item = items[whole(node, "a position in GROUP BY", 1, len(items), "GROUP BY") - 1]
    else:
        item = _by_alias(node, items, found) or _Item(node, _alias_of(node, items, found))
    if is_aggregate(item.node):
        raise refused(
            "DP706",
            f"{shown(item.node)} cannot be grouped by.",
            "it is a number about a group.",
            "group by a column",
        )
    return item


def _by_alias(node: Any, items: list[_Item], found: Rows) -> _Item | None:
    """An alias, unless a column goes by that name."""
    if (
        not isinstance(node, exp.Column)
        or node.args.get("table")
        or not isinstance(node.this, exp.Identifier)
    ):
        return None
    if any(matching(node.this, source.names) for source in found.scope.sources):
        return None
    alias = matching(node.this, [item.alias for item in items if item.alias])
    return next((item for item in items if item.alias == alias), None) if alias else None


def _alias_of(node: Any, items: list[_Item], found: Rows) -> str:
    return next((item.alias for item in items if item.alias and found.scope.same(item.node, node)), "")


def _outputs(
    items: list[_Item], outside: Outside, taken: set[str]
) -> tuple[tuple[Output, ...], dict[str, Shown]]:
    """The columns of the answer; a key and an aggregate that is shown for the first time keep their own names."""
    outputs: list[Output] = []
    named: dict[str, Shown] = {}
    used: set[str] = set()
    for item in items:
        before = len(outside.aggregates.found)
        value = outside.value(item.node, item.alias)
        own = value.of.name if isinstance(value.of, Column) else ""
        is_new = len(outside.aggregates.found) > before  # and was given the alias, or the next free name
        fits = bool(own) and own not in used and (is_new or item.alias in {"", own})
        name = own if fits else free_name(item.alias or own or words(item.node), taken)
        used.add(name)
        outputs.append(Output(name, value.of))
        named.setdefault(item.alias or name, value)
    return tuple(outputs), named


def _order(order: Any, outputs: tuple[Output, ...], outside: Outside) -> tuple[Order, ...]:
    if order is None:
        return ()
    only(order, "expressions")
    orders = []
    for item in order.expressions:
        only(item, "this", "desc")
        of = item.this
        if isinstance(of, exp.Literal) and not of.args.get("is_string"):
            after = outputs[whole(of, "a position in ORDER BY", 1, len(outputs), "ORDER BY") - 1].of
        else:
            after = outside.value(of).of
        orders.append(Order(after, bool(item.args.get("desc"))))
    return tuple(orders)


def _limit(limit: Any) -> int | None:
    if limit is None:
        return None
    if not isinstance(limit, exp.Limit):
        raise refused("DP702", "FETCH is not answered.", "LIMIT says the same.", "LIMIT 10")
    only(limit, "expression")
    return whole(limit.expression, "LIMIT", 0, _LONGEST_ANSWER, "LIMIT")
