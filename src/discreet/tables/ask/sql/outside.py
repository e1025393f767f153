# SPDX-License-Identifier: Apache-2.0
"""What is done to released numbers: outer arithmetic, HAVING, ORDER BY.

**Guarantee.** Everything here is a function of keys and of released columns (`after.After`): post-processing, which costs
nothing and reveals nothing more. Kinds are checked now, so that nothing fails after it was paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.ask.after import After, Column, Combined, Literal
from discreet.tables.ask.build import kind_of
from discreet.tables.ask.leaf import near
from discreet.tables.ask.question import Key
from discreet.tables.ask.sql.aggregates import Aggregates, is_aggregate
from discreet.tables.ask.sql.literals import whole
from discreet.tables.ask.sql.refuse import name_of, only, refused, shown, unsupported
from discreet.tables.ask.sql.scalar import Scalar, conjuncts
from discreet.tables.ask.sql.scope import matching
from discreet.tables.data.expr import Constant
from discreet.tables.data.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, read_back

__all__ = ["Outside", "Shown"]

_LARGEST = 10**15
_EXACT = 2**53


@dataclass(frozen=True)
class Shown:
    """A released expression and its kind."""

    of: After
    kind: str


@dataclass
class Outside:
    """Reads expressions on keys and aggregates; `named` are the columns of the answer, by their aliases."""

    keys: list[tuple[Any, Key]]  # what was written in GROUP BY, and the key
    aggregates: Aggregates
    named: dict[str, Shown] = field(default_factory=dict)

    def value(self, node: Any, alias: str = "") -> Shown:
        """The released value that a node stands for."""
        if is_aggregate(node):
            return self._aggregate(node, alias)
        named = self._named(node)
        if named is not None:
            return named
        key = self._key(node)
        if key is not None:
            return Shown(Column(key.name), key.of.type.kind)
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise unsupported(node)
        return handler(self, node)

    def number(self, node: Any) -> After:
        """A released number."""
        return _of_kind(self.value(node), {NUMBER}, node)

    def condition(self, node: Any) -> After:
        """A condition on released values."""
        return _of_kind(self.value(node), {TRUTH}, node)

    def _aggregate(self, node: Any, alias: str) -> Shown:
        name = self.aggregates.name(node, alias)
        made = next(one for one in self.aggregates.found if one.name == name)
        kind = made.of.type.kind if made.kind == "mode" and made.of is not None else NUMBER
        return Shown(Column(name), kind)

    def _named(self, node: Any) -> Shown | None:
        """The column of the answer that goes by a name; in SELECT itself there is none yet."""
        if (
            not isinstance(node, exp.Column)
            or node.args.get("table")
            or not isinstance(node.this, exp.Identifier)
        ):
            return None
        name = matching(node.this, self.named)
        return None if name is None else self.named[name]

    def _key(self, node: Any) -> Key | None:
        """The key that a node is, if it is one: the same column, or the same expression."""
        scope = self.aggregates.rows.scope
        if not self.keys or isinstance(node, exp.Literal) or _has_aggregate(node):
            return None
        return next((key for written, key in self.keys if scope.same(written, node)), None)


def _has_aggregate(node: Any) -> bool:
    return any(is_aggregate(part) for part in node.walk())


def _of_kind(value: Shown, kinds: set[str], node: Any) -> After:
    if value.kind in kinds:
        return value.of
    raise refused(
        "DP705",
        f"{shown(node)} is of the wrong kind here.",
        "arithmetic needs numbers, and a condition needs a comparison.",
        "SUM(days) / COUNT(*)   or   HAVING COUNT(*) > 100",
    )


# --- one handler for each kind of node ---------------------------------------------------------------


def _column(outside: Outside, node: Any) -> Shown:
    if isinstance(node.this, exp.Star):
        raise unsupported(node.this)
    try:
        found = outside.aggregates.rows.scope.column(node)
    except RefusedQuestion:
        if not outside.named:
            raise
        what, why = (
            f"the answer has no column {node.name!r}.",
            "HAVING and ORDER BY read released numbers and keys.",
        )
        raise refused("DP701", what, why, f"use {near(node.name, outside.named)}") from None
    if found is not None and found.is_unit:
        raise refused(
            "DP706",
            f"{node.name} says whose row it is, and is not shown.",
            "no answer is about one person.",
            f"COUNT(DISTINCT {node.name})",
        )
    raise refused(
        "DP706",
        f"{shown(node)} is neither a key nor inside an aggregate.",
        "no value of a row is shown without noise.",
        _grouped(outside, node),
    )


def _grouped(outside: Outside, node: Any) -> str:
    """The line with one more key; a column that orders or filters released numbers is a key as well."""
    keys = [*(shown(written) for written, _ in outside.keys), shown(node)]
    table = outside.aggregates.rows.scope.sources[0].alias
    return f"SELECT {', '.join(keys)}, COUNT(*) FROM {table} GROUP BY {', '.join(keys)}"  # noqa: S608 - shown


def _paren(outside: Outside, node: Any) -> Shown:
    return outside.value(only(node, "this").this)


def _constant(outside: Outside, node: Any) -> Shown:
    """A number, a text, a truth value or a date that stands in the question."""
    term = Scalar(outside.aggregates.rows.scope).term(node)
    if isinstance(term, Fraction):
        return Shown(Literal(_plain(term)), NUMBER)
    if not isinstance(term, Constant) or term.value is None:
        raise unsupported(node, "around an aggregate")
    value = read_back(term.value, term.type) if term.type.is_ordered else term.value
    return Shown(Literal(value), kind_of(term))


def _plain(value: Fraction) -> int | float:
    if abs(value) > _LARGEST:
        raise refused("DP705", "a number is beyond 10^15.", "the answer would overflow.", "use a smaller one")
    return int(value) if value.denominator == 1 and abs(value) < _EXACT else float(value)


def _negative(outside: Outside, node: Any) -> Shown:
    if isinstance(node.this, exp.Literal):
        return _constant(outside, node)
    return Shown(Combined("-", (Literal(0), outside.number(only(node, "this").this))), NUMBER)


def _arithmetic(op: str) -> Callable[[Outside, Any], Shown]:
    def handler(outside: Outside, node: Any) -> Shown:
        only(node, "this", "expression")
        return Shown(Combined(op, (outside.number(node.this), outside.number(node.expression))), NUMBER)

    return handler


def _comparison(op: str) -> Callable[[Outside, Any], Shown]:
    def handler(outside: Outside, node: Any) -> Shown:
        only(node, "this", "expression")
        return Shown(_compared(outside, op, node.this, node.expression), TRUTH)

    return handler


def _compared(outside: Outside, op: str, left: Any, right: Any) -> After:
    a, b = outside.value(left), outside.value(right)
    kinds = {NUMBER, DATE, MOMENT} if op not in {"=", "<>"} else {NUMBER, DATE, MOMENT, TEXT, TRUTH}
    if a.kind != b.kind:
        raise refused(
            "DP705",
            f"{shown(left)} and {shown(right)} are of different kinds.",
            "they cannot be compared.",
            "compare numbers with numbers, texts with texts, dates with DATE '2026-01-01'",
        )
    return Combined(op, (_of_kind(a, kinds, left), _of_kind(b, kinds, right)))


def _and(outside: Outside, node: Any) -> Shown:
    return Shown(Combined("and", tuple(outside.condition(part) for part in conjuncts(node))), TRUTH)


def _or(outside: Outside, node: Any) -> Shown:
    parts: list[Any] = []
    while isinstance(node, exp.Or):
        parts.append(only(node, "this", "expression").expression)
        node = node.this
    return Shown(Combined("or", tuple(outside.condition(part) for part in [node, *reversed(parts)])), TRUTH)


def _not(outside: Outside, node: Any) -> Shown:
    return Shown(Combined("not", (outside.condition(only(node, "this").this),)), TRUTH)


def _between(outside: Outside, node: Any) -> Shown:
    only(node, "this", "low", "high")
    ends = ((">=", node.args["low"]), ("<=", node.args["high"]))
    return Shown(Combined("and", tuple(_compared(outside, op, node.this, end) for op, end in ends)), TRUTH)


def _in(outside: Outside, node: Any) -> Shown:
    only(node, "this", "expressions")
    return Shown(
        Combined("or", tuple(_compared(outside, "=", node.this, one) for one in node.expressions)), TRUTH
    )


def _cast(outside: Outside, node: Any) -> Shown:
    """A released number is a real one already; a date in quotes is a date."""
    only(node, "this", "to", "safe")
    if isinstance(node.this, exp.Literal):
        return _constant(outside, node)
    if getattr(node.args["to"].this, "name", "") not in {"FLOAT", "DOUBLE", "REAL", "DECIMAL"}:
        raise unsupported(node, "around an aggregate")
    only(node.args["to"], "this", "nested")
    return Shown(outside.number(node.this), NUMBER)


def _call(outside: Outside, node: Any) -> Shown:
    only(node, "this", "expressions")
    name, arguments = name_of(node), node.expressions
    if name == "ROUND" and len(arguments) == 2:
        digits = whole(arguments[1], "the digits of ROUND", -15, 15)
        return Shown(Combined("round", (outside.number(arguments[0]), Literal(digits))), NUMBER)
    if name in {"ABS", "ROUND"} and len(arguments) == 1:
        return Shown(Combined(name.lower(), (outside.number(arguments[0]),)), NUMBER)
    if name in {"LEAST", "GREATEST"} and len(arguments) >= 2:
        return Shown(Combined(name.lower(), tuple(outside.number(item) for item in arguments)), NUMBER)
    if _has_aggregate(node):
        raise refused(
            "DP702",
            f"{name} is not answered around an aggregate: {shown(node)}",
            "intervals are carried through + - * / ABS ROUND LEAST GREATEST only.",
            "release the number, and compute the rest with it",
        )
    # the function itself may be unknown: that is said first
    Scalar(outside.aggregates.rows.scope, shown(node)).term(node)
    raise refused(
        "DP706",
        f"{shown(node)} is neither a key nor inside an aggregate.",
        "no value of a row is shown without noise.",
        f"GROUP BY {shown(node)}   or   AVG({shown(node)})",
    )


_HANDLERS: dict[type[Any], Callable[[Outside, Any], Shown]] = {
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
}
