# SPDX-License-Identifier: Apache-2.0
"""Short forms of a question, written out: lists of quantiles, the most frequent values, and a
question inside another one that only sorts it.

    QUANTILE_CONT(x, [0.25, 0.5]) AS q     QUANTILE_CONT(x, 0.25) AS q_25, QUANTILE_CONT(x, 0.5) AS q_50
    SELECT * FROM (question) ORDER BY n    question ORDER BY n
    APPROX_TOP_K(x, 3)                     x, COUNT(*) AS count … GROUP BY x ORDER BY count DESC LIMIT 3

**Guarantee.** What is written out is a question like any other: it has the guarantee, the cost and
the refusals of the long form.
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from discreet.tables.ask.sql.aggregates import QUANTILES, called_name, is_aggregate, percent_name, short_name
from discreet.tables.ask.sql.literals import literal_number, whole_number
from discreet.tables.ask.sql.refuse import node_text, question_error, require_only, with_own_column

__all__ = ["write_out"]

_TOP = {"APPROX_TOP_K", "APPROX_TOP_COUNT", "TOP_K", "TOPK"}
_MOST_RANKS = 100
_LONGEST_LIST = 10_000


def write_out(select: exp.Select) -> exp.Select:
    """The question with its short forms written out."""
    select = _unwrap_answer(select)
    only = select.expressions[0] if len(select.expressions) == 1 else None
    if only is not None and called_name(_bare(only)) in _TOP:
        return _most_frequent(select, only)
    items = [part for item in select.expressions for part in _quantiles(item)]
    if len(items) > len(select.expressions):
        select = select.copy()
        select.set("expressions", [item.copy() for item in items])
    return select


def _unwrap_answer(select: exp.Select) -> exp.Select:
    """The question inside SELECT * FROM (question) ORDER BY … LIMIT …, with its order and its
    limit.
    """
    start = select.args.get("from_") or select.args.get("from")
    inner = start.this.this if start is not None and isinstance(start.this, exp.Subquery) else None
    others = {part for part, value in select.args.items() if value} - {
        "expressions",
        "from_",
        "from",
        "order",
        "limit",
    }
    if not isinstance(inner, exp.Select) or others or not _is_star(select) or not _has_aggregates(inner):
        return select
    if inner.args.get("order") or inner.args.get("limit"):
        return select
    written = inner.copy()
    for part in ("order", "limit"):
        if select.args.get(part):
            written.set(part, select.args[part].copy())
    for column in written.args["order"].find_all(exp.Column) if written.args.get("order") else ():
        # The columns of the answer have no table.
        column.set("table", None)
    return written


def _is_star(select: exp.Select) -> bool:
    return len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star)


def _has_aggregates(select: exp.Select) -> bool:
    """Whether an item of SELECT is an aggregate over all rows of a group."""
    items = [_bare(item) for item in select.expressions]
    return any(is_aggregate(item) for item in items)


def _bare(item: exp.Expression) -> exp.Expression:
    """An item of SELECT without its alias."""
    return item.this if isinstance(item, exp.Alias) else item


def _most_frequent(select: exp.Select, item: exp.Expression) -> exp.Select:
    """The values with the most rows, each with its number of rows."""
    call = _bare(item)
    clauses = [part for part in ("group", "having", "qualify", "order", "limit") if select.args.get(part)]
    if not isinstance(call, exp.Anonymous) or len(call.expressions) != 2 or clauses:
        raise question_error(
            "DP706",
            f"{node_text(call)} stands for a whole question: a column and how many of its values are wanted.",
            "it is released as the counts of all values, of which the greatest are shown.",
            "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 2 DESC LIMIT 3",
        )
    of, number = require_only(call, "this", "expressions").expressions
    most = whole_number(
        number, f"the number of values of {call.this}", 1, _LONGEST_LIST, "APPROX_TOP_K(ward, 3)"
    )
    name = item.alias if isinstance(item, exp.Alias) else short_name(of)
    count = exp.Alias(
        this=exp.Anonymous(this="COUNT", expressions=[exp.Star()]), alias=exp.to_identifier("count")
    )
    written = select.copy()
    written.set("expressions", [exp.Alias(this=of.copy(), alias=exp.to_identifier(name, quoted=True)), count])
    written.set("group", exp.Group(expressions=[exp.Literal.number(1)]))
    written.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Literal.number(2), desc=True)]))
    written.set("limit", exp.Limit(expression=exp.Literal.number(most)))
    return written


def _quantiles(item: exp.Expression) -> list[exp.Expression]:
    """An item of SELECT for each rank of its list of ranks, if it has one."""
    listed = _list_of_ranks(item)
    if listed is None:
        return [item]
    ranks = [literal_number(rank, "the rank of a quantile") for rank in listed.expressions]
    if not 1 <= len(ranks) <= _MOST_RANKS or len(set(ranks)) < len(ranks):
        raise question_error(
            "DP706",
            f"{node_text(_bare(item))} must list 1 to {_MOST_RANKS} different ranks.",
            "each rank becomes a column of the answer.",
            with_own_column("QUANTILE_CONT(x, [0.25, 0.5, 0.75])", item),
        )
    return [_with_rank(item, *rank) for rank in zip(listed.expressions, ranks, strict=True)]


def _list_of_ranks(item: exp.Expression) -> exp.Array | None:
    for array in item.find_all(exp.Array):
        call = array.parent
        if isinstance(call, exp.Expression) and called_name(call) in QUANTILES:
            return array
    return None


def _with_rank(item: exp.Expression, rank: exp.Expression, number: Fraction) -> exp.Expression:
    """The item with one rank in place of its list of ranks."""
    written = item.copy()
    listed = _list_of_ranks(written)
    assert listed is not None
    listed.replace(rank.copy())
    if isinstance(written, exp.Alias):
        name = f"{written.alias}_{percent_name(number)}"
        written.set("alias", exp.to_identifier(name, quoted=written.args["alias"].quoted))
    return written
