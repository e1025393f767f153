# SPDX-License-Identifier: Apache-2.0
"""Builds typed expressions: each function checks types, aligns grids, and refuses what has no
bounds.

**Guarantee.** The result is an `expr.Expr` whose assertions hold, or a refusal (DP705). No data are
read.

A literal number stays an exact `Fraction` until it meets a column. Then it moves to the grid of
that column: whole numbers are compared with it exactly, real numbers after both are rounded down to
a cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any

from discreet.errors import RefusedQuestion
from discreet.tables.algebra import expr
from discreet.tables.algebra.expr import Constant, Expr
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST, Type, days, micros
from discreet.tables.ask.columns import cell_of, grid_places

__all__ = [
    "FALSE",
    "NULL",
    "TRUE",
    "Term",
    "absolute",
    "arithmetic",
    "as_number",
    "as_ordered",
    "bucket",
    "case",
    "clamp",
    "coalesce",
    "condition",
    "constant",
    "expression_error",
    "extreme",
    "floor",
    "is_null",
    "kind_of",
    "logic",
    "modulo",
    "on_grid",
    "quotient",
    "root",
    "to_places",
    "unify",
    "with_type",
    "wrong_kind_error",
]

Term = Expr | Fraction

TRUE = Constant(True, Type(TRUTH, null=False))
FALSE = Constant(False, Type(TRUTH, null=False))
#: The literal NULL; it takes the kind of the values beside it.
NULL = Constant(None, Type(TRUTH, null=True))

#: Factors of a product that would not fit are brought back to this many bits first.
_ROOM = 30
_BITS = 62
#: Numbers of so many bits have a root that a double gives exactly, rounded down.
_ROOTED = 50
#: AND and OR with more conditions than this are nested.
_WIDE = 16
#: Numbers that are not binary fractions keep this many significant bits.
_SIGNIFICANT = 24
#: Rounding to the grid may change a literal by at most one part in this.
_FAITHFUL = 2**10
_WORDS = {NUMBER: "a number", TEXT: "a text", TRUTH: "a truth value", DATE: "a date", MOMENT: "a moment"}

_INSTEAD = {
    NUMBER: "compare it:  days > 3",
    TEXT: "CASE WHEN ward = 'A' THEN 1 ELSE 0 END   or, if it holds numbers:  type = \"integer\"  in the description",
    TRUTH: "CASE WHEN urgent THEN 1 ELSE 0 END",
    DATE: "take a part of it:  YEAR(came_on)   or   MONTH(came_on)",
    MOMENT: "take a part of it:  YEAR(seen_at)   or   HOUR(seen_at)",
}
_COMPARED = {
    TEXT: "compare it:  ward = 'A'",
    DATE: "compare it:  came_on >= DATE '2026-01-01'",
    MOMENT: "compare it:  seen_at >= TIMESTAMP '2026-01-01 00:00:00'",
}


def constant(value: Any) -> Term:
    """A literal: a number, a text, True, False, None, a date or a moment."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, str):
        return Constant(value, Type(TEXT, null=False))
    if isinstance(value, datetime):
        return Constant(micros(value), Type(MOMENT, micros(value), micros(value), null=False))
    if isinstance(value, date):
        return Constant(days(value), Type(DATE, days(value), days(value), null=False))
    return Fraction(value)


def is_null(term: Term) -> bool:
    """Whether it is the literal NULL."""
    return isinstance(term, Constant) and term.value is None


def kind_of(term: Term) -> str:
    """The kind of its values."""
    return NUMBER if isinstance(term, Fraction) else term.type.kind


def on_grid(term: Term, places: int | None = None) -> Expr:
    """A term as an expression. A literal is rounded down to the grid, or to a grid of its own if
    none is given.
    """
    if isinstance(term, Expr):
        return term
    if places is None:
        places = _own_places(term)
        if abs(Fraction(cell_of(term, places), 2**places) - term) * _FAITHFUL > abs(term):
            raise expression_error(
                "a number is too close to 0.", "it would be rounded to 0.", "scale the column instead"
            )
    cell = cell_of(term, places)
    return Constant(cell, Type(NUMBER, cell, cell, places, null=False))


def as_number(term: Term) -> Term:
    """A number; TRUE counts as 1 and FALSE as 0."""
    if kind_of(term) == NUMBER:
        return term
    if kind_of(term) == TRUTH and isinstance(term, Expr) and not is_null(term):
        one, zero = on_grid(Fraction(1)), on_grid(Fraction(0))
        otherwise = Constant(None, Type(NUMBER, 0, 0)) if term.type.null else zero
        whens = ((term, one), (expr.Not(term), zero)) if term.type.null else ((term, one),)
        return expr.Case(whens, otherwise)
    raise wrong_kind_error("a number is needed here", term)


def arithmetic(op: str, left: Term, right: Term) -> Term:
    """left + right, left - right, left * right."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return {"+": left + right, "-": left - right, "*": left * right}[op]
    a, b = _number(left), _number(right)
    if op == "*":
        if a.type.reach.bit_length() + b.type.reach.bit_length() > _BITS:
            a, b = _coarsen(a), _coarsen(b)
        return with_type(expr.Arithmetic("*", a, b))
    return with_type(expr.Arithmetic(op, *expr.align(a, b)))


def quotient(left: Term, right: Term, *, whole: bool = False, instead: str = "x / CLAMP(y, 1, 1000)") -> Term:
    """left / right, or the whole number at or below it; NULL where right is 0. `instead` is the fix
    of a refusal.
    """
    if isinstance(right, Fraction) and right == 0:
        raise expression_error(
            "a number is divided by 0.", "the result is NULL in every row.", "divide by another number"
        )
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return Fraction(math.floor(left / right)) if whole else left / right
    a, b = _number(left), _number(right)
    if b.type.places and b.type.low <= 0 <= b.type.high:
        raise expression_error(
            "the divisor can be arbitrarily close to 0.",
            "one row could then change the answer without limit.",
            f"keep it away from 0:  {instead}",
        )
    low, high = _quotient_ends(a.type, b.type)
    # The shifted numerator must also fit in 64 bits.
    room = _BITS - a.type.reach.bit_length() + a.type.places - b.type.places
    places = 0 if whole else max(0, min(grid_places(low, high), room))
    short = a.type.places - b.type.places - places
    divided = expr.Quotient(a, expr.Scaled(b, b.type.places + short) if short > 0 else b, places)
    Type(NUMBER, a.type.low << divided.shift, a.type.high << divided.shift)  # raises if it does not fit
    return with_type(divided)


def floor(term: Term) -> Term:
    """The whole number at or below."""
    if isinstance(term, Fraction):
        return Fraction(math.floor(term))
    number = _number(term)
    return number if number.type.places == 0 else to_places(number, 0)


def modulo(left: Term, right: Term) -> Term:
    """The remainder of a whole number by a positive whole literal."""
    if not isinstance(right, Fraction) or right.denominator != 1 or right <= 0:
        raise expression_error(
            "the divisor of a remainder must be a positive whole number.",
            "engines disagree on the sign of other remainders.",
            "days % 7",
        )
    if isinstance(left, Fraction):
        return left % right
    number = _number(left)
    if number.type.places:
        raise expression_error(
            "a remainder needs a whole number.",
            "real numbers are rounded to a grid, where remainders have no meaning.",
            "FLOOR(days) % 7",
        )
    return with_type(expr.Modulo(number, int(right)))


def absolute(term: Term) -> Term:
    """|x|."""
    if isinstance(term, Fraction):
        return abs(term)
    number = _number(term)
    mirrored = expr.Arithmetic("-", on_grid(Fraction(0), number.type.places), number)
    return with_type(expr.Clamp(expr.Extreme("greatest", (number, mirrored)), 0, number.type.reach))


def root(term: Term) -> Expr:
    """√x, rounded down to a grid; NULL where x is negative."""
    number = _number(term)
    spare = number.type.reach.bit_length() - _ROOTED
    if 0 < spare <= number.type.places:
        number = to_places(number, number.type.places - spare)
    kind = number.type
    # Refuses a number that a double may not have exactly.
    Type(NUMBER, 0, kind.reach << (_BITS - _ROOTED))
    room = _ROOTED + 1 - kind.reach.bit_length() + kind.places
    places = max(-(-kind.places // 2), min(room // 2, _SIGNIFICANT))
    return with_type(expr.Root(number, places))


def extreme(op: str, terms: Sequence[Term]) -> Term:
    """LEAST or GREATEST; NULL where any is NULL."""
    if all(isinstance(term, Fraction) for term in terms):
        return (min if op == "least" else max)(terms)  # type: ignore[type-var]
    items = unify([as_ordered(term) for term in terms])
    return with_type(expr.Extreme(op, tuple(items)))


def clamp(term: Term, low: Fraction, high: Fraction) -> Term:
    """A number clamped between two ends."""
    if low > high:
        raise expression_error(
            "the lower end of CLAMP is above the upper end.",
            "the lower end comes first.",
            "CLAMP(x, 0, 100)",
        )
    if isinstance(term, Fraction):
        return min(max(term, low), high)
    number = _number(term)
    if number.type.places == 0:
        finer = max(_own_places(low), _own_places(high))
        number = expr.Scaled(number, finer) if finer else number
    ends = (min(max(cell_of(end, number.type.places), -WIDEST), WIDEST) for end in (low, high))
    return with_type(expr.Clamp(number, *ends))


def bucket(term: Term, edges: Sequence[Fraction]) -> Term:
    """How many of the increasing edges are at or below a number."""
    if not edges or any(a >= b for a, b in pairwise(edges)):
        raise expression_error(
            "the edges of BUCKET must increase.",
            "each bucket lies between two neighbouring edges.",
            "BUCKET(x, 0, 10, 20)",
        )
    number = _number(term)
    places = number.type.places
    cells = [cell_of(edge, places) if places else math.ceil(edge) for edge in edges]
    if len(set(cells)) < len(cells) or max(map(abs, cells)) > WIDEST:
        raise expression_error(
            "two edges of BUCKET are closer together than the grid of the column, or an edge lies beyond ±2^62.",
            "such a bucket would always be empty.",
            "use edges that are farther apart, or declare more places for the column",
        )
    return expr.Bucket(number, tuple(cells))


def logic(op: str, terms: Sequence[Term]) -> Expr:
    """AND, OR of conditions, NOT of one."""
    items = [condition(term) for term in terms]
    if op == "not":
        return expr.Not(items[0])
    while len(items) > _WIDE:  # Keeps the tree flat, so that no recursion gets deep.
        items = [_join_conditions(op, items[at : at + _WIDE]) for at in range(0, len(items), _WIDE)]
    return _join_conditions(op, items)


def _join_conditions(op: str, items: list[Expr]) -> Expr:
    return items[0] if len(items) == 1 else expr.Logic(op, tuple(items))


def condition(term: Term) -> Expr:
    """A term as a condition."""
    if is_null(term) or kind_of(term) != TRUTH or not isinstance(term, Expr):
        raise wrong_kind_error("a condition is needed here", term, _COMPARED.get(kind_of(term), ""))
    return term


def case(whens: Sequence[tuple[Term, Term]], otherwise: Term) -> Expr:
    """The value of the first condition that is TRUE."""
    values = unify([*(value for _, value in whens), otherwise])
    pairs = zip((condition(when) for when, _ in whens), values, strict=False)
    return with_type(expr.Case(tuple(pairs), values[-1]))


def coalesce(terms: Sequence[Term]) -> Expr:
    """The first that is not NULL."""
    return with_type(expr.Coalesce(tuple(unify(terms))))


def as_ordered(term: Term) -> Term:
    """A term whose values have an order: a number, a date or a moment."""
    if kind_of(term) in {NUMBER, DATE, MOMENT}:
        return term
    raise wrong_kind_error("a number or a date is needed here", term)


def expression_error(what: str, why: str, fix: str) -> RefusedQuestion:
    """The error for an expression without proved bounds and types."""
    return RefusedQuestion("DP705", what, why=why, fix=fix)


def wrong_kind_error(what: str, term: Term, instead: str = "") -> RefusedQuestion:
    """The error for a value of another kind than is needed."""
    got = "NULL" if is_null(term) else _WORDS[kind_of(term)]
    why = "every expression has one type for all data."
    return expression_error(f"{what}, not {got}.", why, instead or _INSTEAD[kind_of(term)])


def with_type(built: Expr) -> Expr:
    """The expression, after its type is computed: a type that leaves 64 bits is refused here and
    not later.
    """
    assert built.type.kind
    return built


def _number(term: Term) -> Expr:
    if kind_of(term) != NUMBER:
        raise wrong_kind_error("a number is needed here", term)
    return on_grid(term)


def _own_places(value: Fraction) -> int:
    """The places of a short binary fraction; for other numbers as many as give 24 significant bits."""
    power = value.denominator.bit_length() - 1
    if value.denominator == 1 << power and power <= _SIGNIFICANT:
        return power
    return grid_places(Fraction(0), abs(value))


def _quotient_ends(a: Type, b: Type) -> tuple[Fraction, Fraction]:
    divisors = {end for end in (b.low, b.high) if end} | {end for end in (-1, 1) if b.low <= end <= b.high}
    top, bottom = Fraction(1, 2**a.places), Fraction(1, 2**b.places)
    ends = [n * top / (d * bottom) for n in (a.low, a.high) for d in divisors] or [Fraction(0)]
    return min(ends), max(ends)


def _coarsen(factor: Expr) -> Expr:
    """A factor reduced to 30 bits, which is a billionth of its bounds."""
    kind = factor.type
    spare = kind.reach.bit_length() - _ROOM
    return factor if spare <= 0 or not kind.places else to_places(factor, max(0, kind.places - spare))


def to_places(number: Expr, places: int) -> Expr:
    """A number rounded down to a coarser grid: cells / 2**k, as a division by 1 on the grid of k
    places.
    """
    k = number.type.places - places
    divisor = Constant(1 << k, Type(NUMBER, 1 << k, 1 << k, k, null=False))
    return expr.Quotient(number, divisor, places)


def unify(terms: Sequence[Term]) -> list[Expr]:
    """Terms as expressions of one kind: numbers on one grid, the literal NULL with the kind of the
    others.
    """
    kinds = {kind_of(term) for term in terms if not is_null(term)}
    if len(kinds) != 1:
        raise expression_error(
            "the values have different types, or all of them are NULL.",
            "every expression has one type for all data.",
            "make every branch a number, or every branch a text",
        )
    (kind,) = kinds
    values = [term for term in terms if not is_null(term)]
    items = {id(term): on_grid(term) for term in values}
    if kind == NUMBER:
        items = dict(zip(items, expr.align(*items.values()), strict=True))
        places = next(iter(items.values())).type.places
        null = Constant(None, Type(NUMBER, 0, 0, places))
    else:
        null = Constant(None, replace(on_grid(values[0]).type, null=True))
    return [null if is_null(term) else items[id(term)] for term in terms]
