# SPDX-License-Identifier: Apache-2.0
"""Expressions from their parts: each function checks kinds, puts numbers on one grid, and refuses what has no bounds.

**Guarantee.** What is built is an `expr.Expr` whose assertions hold, or a refusal (DP705); nothing is read.

A number that was written down stays an exact `Fraction` until it meets a column, and is then put on that column's
grid: whole numbers are compared exactly with it, real ones after both were rounded down to a cell.
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
from discreet.tables.ask.leaf import cells, grid
from discreet.tables.data import expr
from discreet.tables.data.expr import Constant, Expr
from discreet.tables.data.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST, Type, days, micros

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
    "down",
    "extreme",
    "is_null",
    "kind_of",
    "logic",
    "modulo",
    "on_grid",
    "part",
    "quotient",
    "refused",
    "together",
    "wrong_kind",
]

Term = Expr | Fraction

TRUE = Constant(True, Type(TRUTH, null=False))
FALSE = Constant(False, Type(TRUTH, null=False))
#: NULL as it is written; it takes the kind of what stands beside it.
NULL = Constant(None, Type(TRUTH, null=True))

#: Factors of a product that would not fit are brought back to this many bits first.
_ROOM = 30
_BITS = 62
#: So many conditions stand beside one another; more of them are put into groups.
_WIDE = 16
#: Numbers that are no binary fraction are kept to so many significant bits.
_SIGNIFICANT = 24
#: A number that is written must not change by more than one part in this on its grid.
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
    """A public value: a number, a text, True, False, None, a date or a moment."""
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
    """Whether it is a NULL that was written down."""
    return isinstance(term, Constant) and term.value is None


def kind_of(term: Term) -> str:
    """What kind of value it is."""
    return NUMBER if isinstance(term, Fraction) else term.type.kind


def on_grid(term: Term, places: int | None = None) -> Expr:
    """A term as an expression; a number that was written is rounded down to the grid, or to its own if none is given."""
    if isinstance(term, Expr):
        return term
    if places is None:
        places = _own_places(term)
        if abs(Fraction(cells(term, places), 2**places) - term) * _FAITHFUL > abs(term):
            raise refused(
                "a number is too small to be kept.", "it would be taken for 0.", "scale the column instead"
            )
    at = cells(term, places)
    return Constant(at, Type(NUMBER, at, at, places, null=False))


def as_number(term: Term) -> Term:
    """A number; TRUE counts 1 and FALSE 0."""
    if kind_of(term) == NUMBER:
        return term
    if kind_of(term) == TRUTH and isinstance(term, Expr) and not is_null(term):
        one, zero = on_grid(Fraction(1)), on_grid(Fraction(0))
        otherwise = Constant(None, Type(NUMBER, 0, 0)) if term.type.null else zero
        whens = ((term, one), (expr.Not(term), zero)) if term.type.null else ((term, one),)
        return expr.Case(whens, otherwise)
    raise wrong_kind("this needs a number", term)


def arithmetic(op: str, left: Term, right: Term) -> Term:
    """left + right, left - right, left * right."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return {"+": left + right, "-": left - right, "*": left * right}[op]
    if op == "-" and kind_of(left) == kind_of(right) == DATE:
        return _sound(expr.Arithmetic("-", on_grid(left), on_grid(right)))  # days from one to the other
    a, b = _number(left), _number(right)
    if op == "*":
        if a.type.reach.bit_length() + b.type.reach.bit_length() > _BITS:
            a, b = _coarsened(a), _coarsened(b)
        return _sound(expr.Arithmetic("*", a, b))
    return _sound(expr.Arithmetic(op, *expr.aligned(a, b)))


def quotient(left: Term, right: Term, *, whole: bool = False, instead: str = "x / CLAMP(y, 1, 1000)") -> Term:
    """left / right, or the whole number at or below it; NULL where right is 0. `instead` is shown where it is refused."""
    if isinstance(right, Fraction) and right == 0:
        raise refused("a number is divided by 0.", "that is NULL in every row.", "divide by another number")
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return Fraction(math.floor(left / right)) if whole else left / right
    a, b = _number(left), _number(right)
    if b.type.places and b.type.low <= 0 <= b.type.high:
        raise refused(
            "the divisor can be arbitrarily close to 0.",
            "one row could then move the answer without limit.",
            f"keep it away from 0:  {instead}",
        )
    low, high = _quotient_ends(a.type, b.type)
    # the numerator is shifted before it is divided, and must not leave 64 bits either
    room = _BITS - a.type.reach.bit_length() + a.type.places - b.type.places
    places = 0 if whole else max(0, min(grid(low, high), room))
    short = a.type.places - b.type.places - places
    divided = expr.Quotient(a, expr.Scaled(b, b.type.places + short) if short > 0 else b, places)
    Type(NUMBER, a.type.low << divided.shift, a.type.high << divided.shift)  # refused if it has no room
    return _sound(divided)


def down(term: Term) -> Term:
    """The whole number at or below."""
    if isinstance(term, Fraction):
        return Fraction(math.floor(term))
    number = _number(term)
    return number if number.type.places == 0 else _to_places(number, 0)


def modulo(left: Term, right: Term) -> Term:
    """The remainder of a whole number by a positive whole number that was written down."""
    if not isinstance(right, Fraction) or right.denominator != 1 or right <= 0:
        raise refused(
            "the divisor of a remainder must be a positive whole number.",
            "the sign of a remainder is not the same on every engine.",
            "days % 7",
        )
    if isinstance(left, Fraction):
        return left % right
    number = _number(left)
    if number.type.places:
        raise refused("a remainder is taken of whole numbers.", "cells have no remainder.", "FLOOR(days) % 7")
    return _sound(expr.Modulo(number, int(right)))


def absolute(term: Term) -> Term:
    """|x|."""
    if isinstance(term, Fraction):
        return abs(term)
    number = _number(term)
    mirrored = expr.Arithmetic("-", on_grid(Fraction(0), number.type.places), number)
    return _sound(expr.Clamp(expr.Extreme("greatest", (number, mirrored)), 0, number.type.reach))


def extreme(op: str, terms: Sequence[Term]) -> Term:
    """LEAST or GREATEST; NULL where any is NULL."""
    if all(isinstance(term, Fraction) for term in terms):
        return (min if op == "least" else max)(terms)  # type: ignore[type-var]
    items = together([as_ordered(term) for term in terms])
    return _sound(expr.Extreme(op, tuple(items)))


def clamp(term: Term, low: Fraction, high: Fraction) -> Term:
    """A number moved between two ends."""
    if low > high:
        raise refused(
            "the ends of CLAMP are the wrong way round.",
            "the lower one comes first.",
            "CLAMP(x, 0, 100)",
        )
    if isinstance(term, Fraction):
        return min(max(term, low), high)
    number = _number(term)
    if number.type.places == 0:
        finer = max(_own_places(low), _own_places(high))
        number = expr.Scaled(number, finer) if finer else number
    ends = (min(max(cells(end, number.type.places), -WIDEST), WIDEST) for end in (low, high))
    return _sound(expr.Clamp(number, *ends))


def bucket(term: Term, edges: Sequence[Fraction]) -> Term:
    """How many of some rising edges are at or below."""
    if not edges or any(a >= b for a, b in pairwise(edges)):
        raise refused(
            "the edges of BUCKET must rise.", "a bucket lies between two of them.", "BUCKET(x, 0, 10, 20)"
        )
    number = _number(term)
    places = number.type.places
    at = [cells(edge, places) if places else math.ceil(edge) for edge in edges]
    if len(set(at)) < len(at) or max(map(abs, at)) > WIDEST:
        raise refused(
            "two edges of BUCKET fall into one cell of the grid, or one lies beyond ±2^62.",
            "the bucket between them would always be empty.",
            "take edges that are farther apart, or declare finer places for the column",
        )
    return expr.Bucket(number, tuple(at))


def part(name: str, term: Term) -> Expr:
    """The year, month, … of a date."""
    if not isinstance(term, Expr) or term.type.kind not in {DATE, MOMENT}:
        raise wrong_kind("this needs a date", term)
    if name in {"hour", "minute"} and term.type.kind == DATE:
        raise refused("a date has no hour.", "only a timestamp has one.", "EXTRACT(hour FROM seen_at)")
    return expr.Part(name, term)


def logic(op: str, terms: Sequence[Term]) -> Expr:
    """AND, OR of conditions, NOT of one."""
    items = [condition(term) for term in terms]
    if op == "not":
        return expr.Not(items[0])
    while len(items) > _WIDE:  # a flat tree: nobody reads it by a long recursion
        items = [_joined(op, items[at : at + _WIDE]) for at in range(0, len(items), _WIDE)]
    return _joined(op, items)


def _joined(op: str, items: list[Expr]) -> Expr:
    return items[0] if len(items) == 1 else expr.Logic(op, tuple(items))


def condition(term: Term) -> Expr:
    """A truth value."""
    if is_null(term) or kind_of(term) != TRUTH or not isinstance(term, Expr):
        raise wrong_kind("this needs a condition", term, _COMPARED.get(kind_of(term), ""))
    return term


def case(whens: Sequence[tuple[Term, Term]], otherwise: Term) -> Expr:
    """The value of the first condition that is TRUE."""
    values = together([*(value for _, value in whens), otherwise])
    pairs = zip((condition(when) for when, _ in whens), values, strict=False)
    return _sound(expr.Case(tuple(pairs), values[-1]))


def coalesce(terms: Sequence[Term]) -> Expr:
    """The first that is not NULL."""
    return _sound(expr.Coalesce(tuple(together(terms))))


def as_ordered(term: Term) -> Term:
    """A number, a date or a moment."""
    if kind_of(term) in {NUMBER, DATE, MOMENT}:
        return term
    raise wrong_kind("this needs a number or a date", term)


def refused(what: str, why: str, fix: str) -> RefusedQuestion:
    """An expression without proof."""
    return RefusedQuestion("DP705", what, why=why, fix=fix)


def wrong_kind(what: str, term: Term, instead: str = "") -> RefusedQuestion:
    """A value of another kind than is needed."""
    got = "NULL" if is_null(term) else _WORDS[kind_of(term)]
    why = "every expression has one type, whatever the data."
    return refused(f"{what}, and {got} stands there.", why, instead or _INSTEAD[kind_of(term)])


def _sound(built: Expr) -> Expr:
    """The expression, once its type was worked out: a type that leaves 64 bits is refused, here and not later."""
    assert built.type.kind
    return built


def _number(term: Term) -> Expr:
    if kind_of(term) != NUMBER:
        raise wrong_kind("this needs a number", term)
    return on_grid(term)


def _own_places(value: Fraction) -> int:
    """Exact for a short binary fraction; else as many places as give 24 significant bits."""
    power = value.denominator.bit_length() - 1
    if value.denominator == 1 << power and power <= _SIGNIFICANT:
        return power
    return grid(Fraction(0), abs(value))


def _quotient_ends(a: Type, b: Type) -> tuple[Fraction, Fraction]:
    divisors = {end for end in (b.low, b.high) if end} | {end for end in (-1, 1) if b.low <= end <= b.high}
    top, bottom = Fraction(1, 2**a.places), Fraction(1, 2**b.places)
    ends = [n * top / (d * bottom) for n in (a.low, a.high) for d in divisors] or [Fraction(0)]
    return min(ends), max(ends)


def _coarsened(factor: Expr) -> Expr:
    """A number with no more places than its size needs: 30 bits are a billionth of its bounds."""
    kind = factor.type
    spare = kind.reach.bit_length() - _ROOM
    return factor if spare <= 0 or not kind.places else _to_places(factor, max(0, kind.places - spare))


def _to_places(number: Expr, places: int) -> Expr:
    """Rounded down to a coarser grid: cells / 2**k, written as a division by 1 on the grid of k places."""
    k = number.type.places - places
    one = Constant(1 << k, Type(NUMBER, 1 << k, 1 << k, k, null=False))
    return expr.Quotient(number, one, places)


def together(terms: Sequence[Term]) -> list[Expr]:
    """All of one kind; numbers on one grid; a written NULL of the kind of the others."""
    kinds = {kind_of(term) for term in terms if not is_null(term)}
    if len(kinds) != 1:
        raise refused(
            "values of different kinds, or only NULL, stand beside each other.",
            "an answer has one type, whatever the data.",
            "make every branch a number, or every branch a text",
        )
    (kind,) = kinds
    known = [term for term in terms if not is_null(term)]
    items = {id(term): on_grid(term) for term in known}
    if kind == NUMBER:
        items = dict(zip(items, expr.aligned(*items.values()), strict=True))
        places = next(iter(items.values())).type.places
        hole = Constant(None, Type(NUMBER, 0, 0, places))
    else:
        hole = Constant(None, replace(on_grid(known[0]).type, null=True))
    return [hole if is_null(term) else items[id(term)] for term in terms]
