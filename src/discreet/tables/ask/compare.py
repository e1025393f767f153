# SPDX-License-Identifier: Apache-2.0
"""Conditions on one row: comparisons, lists, ranges and patterns.

**Guarantee.** What is built is a truth value of one row, or a refusal (DP705). Whole numbers are compared exactly with
any number that was written: x < 2.5 is x < 3. Real numbers are compared cell by cell, both sides rounded down.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from discreet.tables.ask.build import (
    FALSE,
    TRUE,
    Term,
    constant,
    is_null,
    kind_of,
    logic,
    on_grid,
    refused,
    wrong_kind,
)
from discreet.tables.ask.leaf import cells
from discreet.tables.data import expr
from discreet.tables.data.expr import Constant, Expr
from discreet.tables.data.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST, Type

__all__ = ["as_date", "as_moment", "between", "compare", "is_in", "is_truth", "like"]

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DECIDED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LONGEST_LIST = 5_000
#: What a value of each kind is compared with.
_ALIKE = {
    NUMBER: "numbers with numbers:  days = 3",
    TEXT: "texts with texts in quotes:  ward = 'A'",
    TRUTH: "a truth value stands alone:  WHERE urgent   or  WHERE NOT urgent",
    DATE: "dates with dates:  came_on > DATE '2026-01-01'   (in Python:  datetime.date(2026, 1, 1))",
    MOMENT: "moments with moments:  seen_at > TIMESTAMP '2026-01-01 00:00:00'",
}


def compare(op: str, left: Term, right: Term) -> Expr:
    """left = right, and so on; NULL where either is."""
    if is_null(left) or is_null(right):
        what, why = "a comparison with NULL is NULL in every row.", "no row would be kept."
        raise refused(
            what, why, "days IS NULL   or   days IS NOT NULL;   in Python  .is_null()  and  .is_not_null()"
        )
    left, right = _dated(left, right)
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return TRUE if _DECIDED[op](left, right) else FALSE
    if isinstance(left, Fraction):
        return compare(_MIRRORED[op], right, left)
    kinds = {kind_of(left), kind_of(right)}
    if len(kinds) > 1:
        raise refused(
            "values of different kinds are compared.",
            "what an engine makes of that is not the same everywhere.",
            _ALIKE[_read_kind(left, right)],
        )
    if kinds & {TEXT, TRUTH} and op not in {"=", "<>"}:
        raise refused(
            "texts and truth values have no order here.",
            "the order of texts is not the same on every engine.",
            "ward = 'A'   or   ward IN ('A', 'B')",
        )
    if isinstance(right, Fraction):
        return _with_number(op, left, right)
    return expr.Compare(op, *_on_one_grid(left, right))


def _read_kind(left: Term, right: Term) -> str:
    """The kind of the side that is read from a row, the first of them; the other one was written."""
    return kind_of(right if isinstance(left, Constant | Fraction) else left)


def between(term: Term, low: Term, high: Term) -> Expr:
    """low <= x AND x <= high."""
    return expr.Logic("and", (compare(">=", term, low), compare("<=", term, high)))


def is_in(term: Term, values: Sequence[Term]) -> Expr:
    """Whether it equals one of some values that were written down."""
    if not values or len(values) > _LONGEST_LIST:
        raise refused(
            f"a list needs between one and {_LONGEST_LIST} values.",
            "longer lists belong into a table.",
            "put them into a public table and join it",
        )
    if isinstance(term, Fraction):
        return logic("or", [compare("=", term, value) for value in values])
    if kind_of(term) in {TEXT, TRUTH, DATE, MOMENT}:
        dated = [_dated(term, value)[1] for value in values]
        if any(is_null(value) or kind_of(value) != kind_of(term) for value in dated):
            raise _mixed_list()
        written = [value.value if isinstance(value, Constant) else None for value in dated]
    else:
        written = [_cell(value, term.type.places) for value in values]
    if None in written:
        raise _mixed_list()
    kept = tuple(dict.fromkeys(value for value in written if value is not _NEVER))
    return expr.IsIn(term, kept) if kept else expr.Compare("<>", term, term)


def like(term: Term, pattern: Term) -> Expr:
    """Whether a text matches a pattern that was written down."""
    if kind_of(term) != TEXT or not isinstance(term, Expr):
        raise wrong_kind("LIKE needs a text", term)
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        raise refused("a pattern must be written down.", "it is part of the question.", "ward LIKE 'A%'")
    if "\\" in pattern.value:
        raise refused(
            "a pattern has no backslash.",
            "engines do not agree whether it escapes.",
            "use _ for one character:  ward LIKE 'A_B'",
        )
    return expr.Like(term, pattern.value)


def is_truth(term: Expr, value: bool) -> Expr:  # noqa: FBT001 - IS TRUE, IS FALSE
    """IS TRUE, IS FALSE: never NULL."""
    return expr.Coalesce((term if value else expr.Not(term), FALSE))


def as_date(text: str) -> Term:
    """A day that was written as a text: 2026-01-31."""
    try:
        return constant(date.fromisoformat(text.strip()))
    except ValueError:
        raise _bad_date("a day", "DATE '2026-01-31'") from None


def as_moment(text: str) -> Term:
    """A moment that was written as a text; UTC where it has no zone."""
    try:
        at = datetime.fromisoformat(text.strip())
        return constant((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC))
    except (ValueError, OverflowError):
        raise _bad_date("a moment", "TIMESTAMP '2026-01-31 12:00:00'") from None


def _bad_date(what: str, example: str) -> Exception:
    return refused(
        f"a text is not {what} of the calendar.", "nothing is guessed.", f"write it like  {example}"
    )


class _Never:
    """A number that no cell of a grid is equal to."""


_NEVER = _Never()


def _cell(value: Term, places: int) -> Any:
    if not isinstance(value, Fraction):
        return None
    if places == 0 and value.denominator != 1:
        return _NEVER
    at = cells(value, places)
    return at if abs(at) <= WIDEST else _NEVER


def _mixed_list() -> Exception:
    return refused(
        "a list holds something else than values of the same kind.",
        "it is compared value by value; NULL equals nothing.",
        "ward IN ('A', 'B')   or   days IN (1, 2, 3)",
    )


def _dated(left: Term, right: Term) -> tuple[Term, Term]:
    """A text, or a day, that was written beside a date or a moment is one too."""
    return _like(left, right), _like(right, left)


def _like(term: Term, other: Term) -> Term:
    if not isinstance(term, Constant) or is_null(term) or is_null(other):
        return term
    if term.type.kind == TEXT and kind_of(other) == DATE:
        return as_date(term.value)
    if term.type.kind == TEXT and kind_of(other) == MOMENT:
        return as_moment(term.value)
    if term.type.kind == DATE and kind_of(other) == MOMENT:
        micros = term.value * 86_400_000_000
        return Constant(micros, Type(MOMENT, micros, micros, null=False))
    return term


def _with_number(op: str, left: Expr, number: Fraction) -> Expr:
    if left.type.places or number.denominator == 1:
        return expr.Compare(op, left, _within(number, left.type.places))
    if op in {"=", "<>"}:  # a whole number is never equal to it
        return expr.Compare("<>" if op == "=" else "=", left, left)
    rounded = math.ceil(number) if op in {"<", ">="} else math.floor(number)
    return expr.Compare(op, left, _within(Fraction(rounded), 0))


def _within(number: Fraction, places: int) -> Expr:
    if abs(cells(number, places)) > WIDEST:
        raise refused(
            "a number is beyond ±2^62.", "no column holds such numbers.", "compare with a smaller one"
        )
    return on_grid(number, places)


def _on_one_grid(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both on the finer grid; a number that would not fit there is moved to the widest that does, on both sides."""
    if left.type.kind != NUMBER or left.type.places == right.type.places:
        return left, right
    places = max(left.type.places, right.type.places)
    return _finer(left, places), _finer(right, places)


def _finer(number: Expr, places: int) -> Expr:
    shift = places - number.type.places
    if shift == 0:
        return number
    most = WIDEST >> shift
    fits = number if number.type.reach <= most else expr.Clamp(number, -most, most)
    return expr.Scaled(fits, places)
