# SPDX-License-Identifier: Apache-2.0
"""Post-processing in SQL: arithmetic on aggregates, windows over released rows, HAVING and ORDER
BY.

**Guarantee.** Everything here is a function of keys and released columns. It is post-processing: it
costs nothing and reveals nothing more. Types are checked before the charge, so a question that was
paid for cannot fail here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.expr import Constant
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, python_value
from discreet.tables.ask.build import kind_of
from discreet.tables.ask.columns import similar_names
from discreet.tables.ask.question import Key
from discreet.tables.ask.released import (
    WINDOWS,
    PublicValue,
    ReleasedColumn,
    ReleasedExpression,
    ReleasedOperation,
    ReleasedWindow,
    grouping_column,
)
from discreet.tables.ask.sql.aggregates import Aggregates, is_aggregate
from discreet.tables.ask.sql.literals import literal_number, whole_number
from discreet.tables.ask.sql.refuse import name_of, node_text, question_error, require_only, unsupported_error
from discreet.tables.ask.sql.scalar import Scalar, conjuncts
from discreet.tables.ask.sql.scope import match_name
from discreet.tables.ask.sql.statistics import is_statistic, statistic

__all__ = ["PostProcessor", "TypedExpression"]

#: Each handler takes nodes of one class.
Handler = Callable[["PostProcessor", Any], "TypedExpression"]
_LARGEST = 10**15
_EXACT = 2**53


@dataclass(frozen=True)
class TypedExpression:
    """An expression on released columns, and the kind of its values."""

    of: ReleasedExpression
    kind: str


@dataclass
class PostProcessor:
    """Translates expressions on keys and aggregates; `named` are the columns of the answer by
    alias.
    """

    # The text of GROUP BY as a tree, and its key.
    keys: list[tuple[exp.Expression, Key]]
    aggregates: Aggregates
    named: dict[str, TypedExpression] = field(default_factory=dict)
    # The items of SELECT before this one, which a name means if no column has it.
    earlier: dict[str, TypedExpression] = field(default_factory=dict)
    # Whether the question has grouping sets.
    has_sets: bool = False

    def value(self, node: exp.Expression, alias: str = "") -> TypedExpression:
        """A node as an expression on released columns."""
        if is_aggregate(node):
            return self._aggregate(node, alias)
        named = self._by_alias(node)
        if named is not None:
            return named
        key = self.key(node)
        if key is not None:
            return TypedExpression(ReleasedColumn(key.name), key.of.type.kind)
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise unsupported_error(node)
        return handler(self, node)

    def number(self, node: exp.Expression) -> ReleasedExpression:
        """A node as a released number."""
        return _of_kind(self.value(node), {NUMBER}, node)

    def condition(self, node: exp.Expression) -> ReleasedExpression:
        """A node as a condition on released values."""
        return _of_kind(self.value(node), {TRUTH}, node)

    def _aggregate(self, node: exp.Expression, alias: str) -> TypedExpression:
        if is_statistic(node):
            return TypedExpression(*statistic(node, self.aggregates))
        name = self.aggregates.name(node, alias)
        aggregate = next(known for known in self.aggregates.all if known.name == name)
        kind = aggregate.of.type.kind if aggregate.kind == "mode" and aggregate.of is not None else NUMBER
        return TypedExpression(ReleasedColumn(name), kind)

    def _by_alias(self, node: exp.Expression) -> TypedExpression | None:
        """The column of the answer with this alias; inside SELECT there is none yet."""
        if (
            not isinstance(node, exp.Column)
            or node.args.get("table")
            or not isinstance(node.this, exp.Identifier)
        ):
            return None
        name = match_name(node.this, self.named)
        return None if name is None else self.named[name]

    def key(self, node: exp.Expression) -> Key | None:
        """The key that equals this node, if there is one."""
        scope = self.aggregates.rows.scope
        if not self.keys or isinstance(node, exp.Literal) or _has_aggregate(node):
            return None
        return next((key for written, key in self.keys if scope.same(written, node)), None)


def _has_aggregate(node: exp.Expression) -> bool:
    return any(is_aggregate(call) for call in node.find_all(exp.Anonymous, exp.Filter, exp.WithinGroup))


def _of_kind(value: TypedExpression, kinds: set[str], node: exp.Expression) -> ReleasedExpression:
    if value.kind in kinds:
        return value.of
    raise question_error(
        "DP705",
        f"{node_text(node)} has the wrong type here.",
        "arithmetic needs a number, and a condition needs a comparison.",
        "SUM(days) / COUNT(*)   or   HAVING COUNT(*) > 100",
    )


# --- one handler for each kind of node ---------------------------------------------------------------


def _column(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    if isinstance(node.this, exp.Star):
        raise unsupported_error(node.this)
    try:
        ref = post.aggregates.rows.scope.column(node)
    except RefusedQuestion:
        alias = None if node.args.get("table") else match_name(node.this, post.earlier)
        if alias is not None:
            return post.earlier[alias]
        if not post.named:
            raise
        what, why = (
            f"the answer has no column {node.name!r}.",
            "HAVING and ORDER BY can use only released numbers and keys.",
        )
        raise question_error("DP701", what, why, f"use {similar_names(node.name, post.named)}") from None
    if ref is not None and ref.is_unit:
        raise question_error(
            "DP706",
            f"{node.name} is the privacy unit, and is never shown.",
            "an answer never names one person.",
            f"COUNT(DISTINCT {node.name})",
        )
    raise question_error(
        "DP706",
        f"{node_text(node)} is neither a key nor inside an aggregate.",
        "values of rows are released only through aggregates with noise.",
        _group_by_fix(post, node),
    )


def _group_by_fix(post: PostProcessor, node: exp.Expression) -> str:
    """A fix that adds the column to the keys."""
    keys = [*(node_text(written) for written, _ in post.keys), node_text(node)]
    table = post.aggregates.rows.scope.sources[0].alias
    return f"SELECT {', '.join(keys)}, COUNT(*) FROM {table} GROUP BY {', '.join(keys)}"  # noqa: S608 - shown


def _paren(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    return post.value(require_only(node, "this").this)


def _constant(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    """A literal: a number, a text, a truth value or a date."""
    term = Scalar(post.aggregates.rows.scope).term(node)
    if isinstance(term, Fraction):
        return TypedExpression(PublicValue(_plain(term)), NUMBER)
    if not isinstance(term, Constant) or term.value is None:
        raise unsupported_error(node, "around an aggregate")
    value = python_value(term.value, term.type) if term.type.is_ordered else term.value
    return TypedExpression(PublicValue(value), kind_of(term))


def _plain(value: Fraction) -> int | float:
    if abs(value) > _LARGEST:
        raise question_error(
            "DP705",
            "a number is larger than 10^15.",
            "arithmetic with it could overflow.",
            "use a smaller number",
        )
    return int(value) if value.denominator == 1 and abs(value) < _EXACT else float(value)


def _negative(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    if isinstance(node.this, exp.Literal):
        return _constant(post, node)
    return TypedExpression(
        ReleasedOperation("-", (PublicValue(0), post.number(require_only(node, "this").this))), NUMBER
    )


def _arithmetic(op: str) -> Handler:
    def handler(post: PostProcessor, node: exp.Expression) -> TypedExpression:
        require_only(node, "this", "expression")
        return TypedExpression(
            ReleasedOperation(op, (post.number(node.this), post.number(node.expression))), NUMBER
        )

    return handler


def _comparison(op: str) -> Handler:
    def handler(post: PostProcessor, node: exp.Expression) -> TypedExpression:
        require_only(node, "this", "expression")
        return TypedExpression(_compare(post, op, node.this, node.expression), TRUTH)

    return handler


def _compare(post: PostProcessor, op: str, left: exp.Expression, right: exp.Expression) -> ReleasedExpression:
    a, b = post.value(left), post.value(right)
    kinds = {NUMBER, DATE, MOMENT} if op not in {"=", "<>"} else {NUMBER, DATE, MOMENT, TEXT, TRUTH}
    if a.kind != b.kind:
        raise question_error(
            "DP705",
            f"{node_text(left)} and {node_text(right)} have different types.",
            "values of different types cannot be compared.",
            "compare numbers with numbers, texts with texts, dates with DATE '2026-01-01'",
        )
    return ReleasedOperation(op, (_of_kind(a, kinds, left), _of_kind(b, kinds, right)))


def _and(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    return TypedExpression(
        ReleasedOperation("and", tuple(post.condition(part) for part in conjuncts(node))), TRUTH
    )


def _or(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    parts: list[exp.Expression] = []
    while isinstance(node, exp.Or):
        parts.append(require_only(node, "this", "expression").expression)
        node = node.this
    return TypedExpression(
        ReleasedOperation("or", tuple(post.condition(part) for part in [node, *reversed(parts)])), TRUTH
    )


def _not(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    return TypedExpression(
        ReleasedOperation("not", (post.condition(require_only(node, "this").this),)), TRUTH
    )


def _between(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    require_only(node, "this", "low", "high")
    ends = ((">=", node.args["low"]), ("<=", node.args["high"]))
    return TypedExpression(
        ReleasedOperation("and", tuple(_compare(post, op, node.this, end) for op, end in ends)), TRUTH
    )


def _in(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    require_only(node, "this", "expressions")
    return TypedExpression(
        ReleasedOperation("or", tuple(_compare(post, "=", node.this, value) for value in node.expressions)),
        TRUTH,
    )


def _cast(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    """CAST of a released number to a real number, or of a text to a date."""
    require_only(node, "this", "to", "safe")
    if isinstance(node.this, exp.Literal):
        return _constant(post, node)
    if getattr(node.args["to"].this, "name", "") not in {"FLOAT", "DOUBLE", "REAL", "DECIMAL"}:
        raise unsupported_error(node, "around an aggregate")
    require_only(node.args["to"], "this", "nested")
    return TypedExpression(post.number(node.this), NUMBER)


def _window(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    """A function OVER released rows. It reads aggregates and keys, never a column of rows."""
    try:
        return _released_window(post, node)
    except RefusedQuestion as refusal:
        if refusal.code != "DP706":
            raise
    raise unsupported_error(node)


def _released_window(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    require_only(node, "this", "partition_by", "order", "spec", "over")
    call = node.this
    name = name_of(call).lower()
    if not isinstance(call, exp.Anonymous) or name not in WINDOWS:
        raise _no_window_error(post, node)
    arguments = require_only(call, "this", "expressions").expressions
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        arguments = []
    order = _window_order(post, node.args.get("order"))
    if name in _ORDERED and not order:
        raise question_error(
            "DP705",
            f"{node_text(node)} has no order.",
            f"{name.upper()} depends on the order of the released rows.",
            f"{name.upper()}({', '.join(map(node_text, arguments))}) OVER (ORDER BY {_first_number(post)} DESC)",
        )
    least, most = _ARGUMENTS.get(name, (1, 1))
    if not least <= len(arguments) <= most:
        raise _no_window_error(post, node)
    read = post.value(arguments[0]) if arguments else None
    if read is not None and name in {"sum", "avg"}:
        _of_kind(read, {NUMBER}, arguments[0])
    kind = NUMBER if read is None or name in {"count", "avg"} else read.kind
    window = ReleasedWindow(
        name,
        None if read is None else read.of,
        tuple(post.value(key).of for key in node.args.get("partition_by") or ()),
        order,
        offset=whole_number(arguments[1], f"the offset of {name.upper()}", 0, _LARGEST)
        if arguments[1:]
        else 1,
        frame=_window_frame(node.args.get("spec"), name),
    )
    return TypedExpression(window, kind)


#: The least and the greatest number of arguments; one, if it is not here.
_ARGUMENTS = {
    "row_number": (0, 0),
    "rank": (0, 0),
    "dense_rank": (0, 0),
    "count": (0, 1),
    "lag": (1, 2),
    "lead": (1, 2),
}
_ORDERED = {"row_number", "rank", "dense_rank", "lag", "lead"}


def _first_number(post: PostProcessor) -> str:
    """An aggregate of the question, for an example."""
    return next((aggregate.text for aggregate in post.aggregates.all), "COUNT(*)")


def _window_order(
    post: PostProcessor, order: exp.Expression | None
) -> tuple[tuple[ReleasedExpression, bool], ...]:
    items = [] if order is None else require_only(order, "expressions").expressions
    return tuple(
        (post.value(require_only(item, "this", "desc", "nulls_first").this).of, bool(item.args.get("desc")))
        for item in items
    )


def _window_frame(spec: exp.Expression | None, name: str) -> tuple[int | None, int | None] | None:
    """ROWS BETWEEN … AND …, as numbers of rows from this one; the default frame is None."""
    if spec is None:
        return None
    first, last = (
        _frame_end(spec.args.get(side), spec.args.get(f"{side}_side")) for side in ("start", "end")
    )
    kind = spec.args.get("kind")
    if kind == "RANGE" and (first, last) == ((None, "PRECEDING"), (0, "")):
        return None
    if kind != "ROWS" or first is None or last is None or spec.args.get("exclude") or name in _ORDERED:
        raise question_error(
            "DP702",
            "this frame of a window is not supported.",
            "a window reads the released rows that it names by their number.",
            "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW",
        )
    return first[0], last[0]


def _frame_end(end: exp.Expression | str | None, side: str | None) -> tuple[int | None, str | None] | None:
    """One end of a frame: its offset, None if it is unbounded, with its side; None if it is not
    understood.
    """
    if end in {None, "CURRENT ROW"}:
        return 0, ""
    if end == "UNBOUNDED":
        return None, side
    if not isinstance(end, exp.Literal) or end.args.get("is_string"):
        return None
    number = whole_number(end, "a number of rows", 0, _LARGEST)
    return (-number if side == "PRECEDING" else number), side


def _no_window_error(post: PostProcessor, node: exp.Expression) -> Exception:
    return question_error(
        "DP702",
        f"{node_text(node)} is not a window over released numbers that is supported.",
        "windows over released rows are SUM, AVG, COUNT, MIN, MAX, ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, FIRST_VALUE"
        " and LAST_VALUE.",
        f"SUM({_first_number(post)}) OVER ()",
    )


def _call(post: PostProcessor, node: exp.Expression) -> TypedExpression:
    require_only(node, "this", "expressions")
    name, arguments = name_of(node), node.expressions
    if name in {"GROUPING", "GROUPING_ID"} and post.has_sets:
        return TypedExpression(_grouping(post, node, arguments), NUMBER)
    if name == "ROUND" and len(arguments) == 2:
        digits = whole_number(arguments[1], "the digits of ROUND", -15, 15)
        return TypedExpression(
            ReleasedOperation("round", (post.number(arguments[0]), PublicValue(digits))), NUMBER
        )
    if name in {"POWER", "POW"} and len(arguments) == 2:
        exponent = _plain(literal_number(arguments[1], "the exponent of POWER"))
        return TypedExpression(
            ReleasedOperation("power", (post.number(arguments[0]), PublicValue(exponent))), NUMBER
        )
    if name in {"ABS", "ROUND", "SQRT", "LN", "EXP"} and len(arguments) == 1:
        return TypedExpression(ReleasedOperation(name.lower(), (post.number(arguments[0]),)), NUMBER)
    if name in {"LEAST", "GREATEST"} and len(arguments) >= 2:
        return TypedExpression(
            ReleasedOperation(name.lower(), tuple(post.number(item) for item in arguments)), NUMBER
        )
    if _has_aggregate(node):
        raise question_error(
            "DP702",
            f"{name} around an aggregate is not supported: {node_text(node)}",
            "intervals can be computed only for + - * / ABS ROUND LEAST GREATEST SQRT LN EXP POWER.",
            "release the aggregate, and compute the rest in Python",
        )
    # An unknown function gets its own error first.
    Scalar(post.aggregates.rows.scope, node_text(node)).term(node)
    raise question_error(
        "DP706",
        f"{node_text(node)} is neither a key nor inside an aggregate.",
        "values of rows are released only through aggregates with noise.",
        f"GROUP BY {node_text(node)}   or   AVG({node_text(node)})",
    )


def _grouping(
    post: PostProcessor, node: exp.Expression, arguments: list[exp.Expression]
) -> ReleasedExpression:
    """GROUPING(a, b): a bit for each key, 1 where the row is summed over it; the last key is the
    lowest bit.
    """
    keys = [post.key(argument) for argument in arguments]
    known = [key for key in keys if key is not None]
    if not keys or len(known) < len(keys):
        raise question_error(
            "DP706",
            f"{node_text(node)} needs keys of GROUP BY.",
            "GROUPING says of a key whether a row is a total over it.",
            f"GROUPING({node_text(post.keys[0][0])})" if post.keys else "leave it out",
        )
    total: ReleasedExpression = ReleasedColumn(grouping_column(known[0].name))
    for each in known[1:]:
        doubled = ReleasedOperation("*", (PublicValue(2), total))
        total = ReleasedOperation("+", (doubled, ReleasedColumn(grouping_column(each.name))))
    return total


_HANDLERS: dict[type[exp.Expression], Handler] = {
    exp.Column: _column,
    exp.Paren: _paren,
    exp.Literal: _constant,
    exp.Boolean: _constant,
    exp.Neg: _negative,
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("<>"),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Between: _between,
    exp.In: _in,
    exp.Cast: _cast,
    exp.Anonymous: _call,
    exp.Window: _window,
}
