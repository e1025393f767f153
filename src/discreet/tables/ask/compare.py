# SPDX-License-Identifier: Apache-2.0
"""Conditions on one row: comparisons, lists, ranges and patterns.

**Guarantee.** The result is a condition on one row, or a refusal (DP705). Whole numbers are
compared exactly with any literal: x < 2.5 means x < 3. Real numbers are compared on their grid,
with both sides rounded down.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from discreet.tables.algebra import expr
from discreet.tables.algebra.expr import Constant, Expr
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST
from discreet.tables.ask.build import (
    FALSE,
    TRUE,
    Term,
    constant,
    expression_error,
    is_null,
    kind_of,
    logic,
    on_grid,
    wrong_kind_error,
)
from discreet.tables.ask.columns import cell_of
from discreet.tables.ask.dates import is_dated, to_moment
from discreet.tables.ask.regular import matches_regular

__all__ = ["as_date", "as_moment", "between", "compare", "is_in", "is_truth", "like", "regular"]

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
#: For each kind the fix: what its values can be compared with.
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
        what, why = "a comparison with NULL is NULL in every row.", "WHERE would keep no row."
        raise expression_error(
            what, why, "days IS NULL   or   days IS NOT NULL;   in Python  .is_null()  and  .is_not_null()"
        )
    left, right = _convert_dates(left, right)
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return TRUE if _DECIDED[op](left, right) else FALSE
    if isinstance(left, Fraction):
        return compare(_MIRRORED[op], right, left)
    kinds = {kind_of(left), kind_of(right)}
    if len(kinds) > 1:
        raise expression_error(
            "the two sides of a comparison have different types.",
            "engines disagree on such comparisons.",
            _ALIKE[_read_kind(left, right)],
        )
    if kinds & {TEXT, TRUTH} and op not in {"=", "<>"}:
        raise expression_error(
            "texts and truth values can be compared only with = and <>.",
            "engines disagree on the order of texts.",
            "ward = 'A'   or   ward IN ('A', 'B')",
        )
    if isinstance(right, Fraction):
        return _with_number(op, left, right)
    return expr.Compare(op, *_on_one_grid(left, right))


def _read_kind(left: Term, right: Term) -> str:
    """The kind of the side that is read from a row, or of the left one if both are."""
    return kind_of(right if isinstance(left, Constant | Fraction) else left)


def between(term: Term, low: Term, high: Term) -> Expr:
    """low <= x AND x <= high."""
    return expr.Logic("and", (compare(">=", term, low), compare("<=", term, high)))


def is_in(term: Term, values: Sequence[Term]) -> Expr:
    """Whether a value equals one of the literals."""
    if not values or len(values) > _LONGEST_LIST:
        raise expression_error(
            f"a list must have between 1 and {_LONGEST_LIST} values.",
            "longer lists make a question too long for an engine.",
            "put them into a public table and join it",
        )
    if isinstance(term, Fraction):
        return logic("or", [compare("=", term, value) for value in values])
    if kind_of(term) in {TEXT, TRUTH, DATE, MOMENT}:
        dated = [_convert_dates(term, value)[1] for value in values]
        if any(is_null(value) or kind_of(value) != kind_of(term) for value in dated):
            raise _mixed_list_error()
        listed = [value.value if isinstance(value, Constant) else None for value in dated]
    else:
        listed = [_cell(value, term.type.places) for value in values]
    if None in listed:
        raise _mixed_list_error()
    cells = tuple(dict.fromkeys(value for value in listed if value is not _NEVER))
    return expr.IsIn(term, cells) if cells else expr.Compare("<>", term, term)


def like(term: Term, pattern: Term) -> Expr:
    """Whether a text matches a literal pattern."""
    if kind_of(term) != TEXT or not isinstance(term, Expr):
        raise wrong_kind_error("LIKE needs a text", term)
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        raise expression_error(
            "the pattern of LIKE must be a literal text.",
            "it belongs to the question, and cannot come from the data.",
            "ward LIKE 'A%'",
        )
    if "\\" in pattern.value:
        raise expression_error(
            "a pattern cannot contain a backslash.",
            "engines disagree on whether it escapes the next character.",
            "use _ for any single character:  ward LIKE 'A_B'",
        )
    return expr.Like(term, pattern.value)


def regular(term: Term, pattern: Term) -> Expr:
    """Whether a part of a text matches a literal regular expression."""
    if kind_of(term) != TEXT or not isinstance(term, Expr):
        raise wrong_kind_error("a regular expression needs a text", term)
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        raise expression_error(
            "a regular expression must be a literal text.",
            "it belongs to the question, and cannot come from the data.",
            "REGEXP_MATCHES(ward, '^A')",
        )
    return matches_regular(term, pattern.value)


def is_truth(term: Expr, value: bool) -> Expr:  # noqa: FBT001 - IS TRUE, IS FALSE
    """IS TRUE, IS FALSE: never NULL."""
    return expr.Coalesce((term if value else expr.Not(term), FALSE))


def as_date(text: str) -> Term:
    """A date from a text such as 2026-01-31."""
    try:
        return constant(date.fromisoformat(text.strip()))
    except ValueError:
        raise _date_error("a day", "DATE '2026-01-31'") from None


def as_moment(text: str) -> Term:
    """A moment from a text; UTC if it has no time zone."""
    try:
        at = datetime.fromisoformat(text.strip())
        return constant((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC))
    except (ValueError, OverflowError):
        raise _date_error("a moment", "TIMESTAMP '2026-01-31 12:00:00'") from None


def _date_error(what: str, example: str) -> Exception:
    return expression_error(
        f"a text is not {what} of the calendar.",
        "dates must be written as in ISO 8601.",
        f"write it like  {example}",
    )


class _Never:
    """Stands for a number that equals no cell of the grid."""


_NEVER = _Never()


def _cell(value: Term, places: int) -> Any:
    if not isinstance(value, Fraction):
        return None
    if places == 0 and value.denominator != 1:
        return _NEVER
    cell = cell_of(value, places)
    return cell if abs(cell) <= WIDEST else _NEVER


def _mixed_list_error() -> Exception:
    return expression_error(
        "a list must hold values of the same type, and no NULL.",
        "each value is compared with the column, and NULL equals nothing.",
        "ward IN ('A', 'B')   or   days IN (1, 2, 3)",
    )


def _convert_dates(left: Term, right: Term) -> tuple[Term, Term]:
    """A literal text as a date or a moment where the other side is one; a date beside a moment as
    its first moment.
    """
    left, right = _like(left, right), _like(right, left)
    if is_dated(left) and is_dated(right) and kind_of(left) != kind_of(right):
        return to_moment(left), to_moment(right)
    return left, right


def _like(term: Term, other: Term) -> Term:
    if not isinstance(term, Constant) or is_null(term) or is_null(other):
        return term
    if term.type.kind == TEXT and kind_of(other) == DATE:
        return as_date(term.value)
    if term.type.kind == TEXT and kind_of(other) == MOMENT:
        return as_moment(term.value)
    return term


def _with_number(op: str, left: Expr, number: Fraction) -> Expr:
    if left.type.places or number.denominator == 1:
        return expr.Compare(op, left, _within(number, left.type.places))
    if op in {"=", "<>"}:  # a whole number is never equal to it
        return expr.Compare("<>" if op == "=" else "=", left, left)
    rounded = math.ceil(number) if op in {"<", ">="} else math.floor(number)
    return expr.Compare(op, left, _within(Fraction(rounded), 0))


def _within(number: Fraction, places: int) -> Expr:
    if abs(cell_of(number, places)) > WIDEST:
        raise expression_error(
            "a number is beyond ±2^62.", "no column holds such numbers.", "compare with a smaller number"
        )
    return on_grid(number, places)


def _on_one_grid(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both on the finer grid; numbers that do not fit there are clamped to the largest ones that
    do.
    """
    if left.type.kind != NUMBER or left.type.places == right.type.places:
        return left, right
    places = max(left.type.places, right.type.places)
    return _finer(left, places), _finer(right, places)


def _finer(number: Expr, places: int) -> Expr:
    shift = places - number.type.places
    if shift == 0:
        return number
    largest = WIDEST >> shift
    clipped = number if number.type.reach <= largest else expr.Clamp(number, -largest, largest)
    return expr.Scaled(clipped, places)
