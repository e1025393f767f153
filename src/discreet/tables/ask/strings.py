# SPDX-License-Identifier: Apache-2.0
"""Builds expressions of texts: joined, in one case, trimmed, a part, the length.

**Guarantee.** As `build`: the result is total on every text, or the question is refused (DP705).
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.tables.algebra import strings
from discreet.tables.algebra.expr import Constant, Expr
from discreet.tables.algebra.types import TEXT
from discreet.tables.ask.build import (
    Term,
    coalesce,
    constant,
    expression_error,
    is_null,
    kind_of,
    wrong_kind_error,
)
from discreet.tables.ask.compare import compare, like

__all__ = [
    "change_case",
    "contains",
    "ends_with",
    "join",
    "join_known",
    "length",
    "like_in_any_case",
    "starts_with",
    "substring",
    "trim",
]

_WILDCARDS = frozenset("%_\\")


def join(terms: Sequence[Term]) -> Expr:
    """Texts one after the other; NULL where any is."""
    return strings.Joined(tuple(_require_text(term) for term in terms))


def change_case(case: str, term: Term) -> Expr:
    """A text with the letters A to Z in "upper" or "lower" case."""
    return strings.Cased(case, _require_text(term))


def trim(term: Term) -> Expr:
    """A text without spaces at its ends."""
    return strings.Trimmed(_require_text(term))


def substring(term: Term, start: int, count: int) -> Expr:
    """So many characters from one on; the first is 1."""
    return strings.Substring(_require_text(term), start, count)


def length(term: Term) -> Expr:
    """The number of characters."""
    return strings.Length(_require_text(term))


def join_known(terms: Sequence[Term]) -> Expr:
    """Texts one after the other, without those that are NULL."""
    return join([coalesce([_require_text(term), constant("")]) for term in terms])


def like_in_any_case(term: Term, pattern: Term) -> Expr:
    """Whether a text matches a pattern if the letters A to Z are compared without regard to case."""
    letters = str.maketrans(*strings.CASES["lower"])
    if isinstance(pattern, Constant) and isinstance(pattern.value, str):
        pattern = constant(pattern.value.translate(letters))
    return like(change_case("lower", term), pattern)


def starts_with(term: Term, part: Term) -> Expr:
    """Whether a text begins with a literal one."""
    written = _literal_text(part)
    return compare("=", substring(term, 1, len(written)), constant(written))


def ends_with(term: Term, part: Term) -> Expr:
    """Whether a text ends with a literal one."""
    return like(_require_text(term), constant(f"%{_without_wildcards(part)}"))


def contains(term: Term, part: Term) -> Expr:
    """Whether a literal text is anywhere in a text."""
    return like(_require_text(term), constant(f"%{_without_wildcards(part)}%"))


def _without_wildcards(part: Term) -> str:
    written = _literal_text(part)
    if _WILDCARDS.isdisjoint(written):
        return written
    raise expression_error(
        "the searched text cannot contain %, _ or a backslash.",
        "they have a meaning of their own in the pattern that engines get.",
        "_ stands for any single character:  ward LIKE '%A_B%'",
    )


def _literal_text(part: Term) -> str:
    if isinstance(part, Constant) and isinstance(part.value, str):
        return part.value
    raise expression_error(
        "the searched text must be a literal text.",
        "it belongs to the question, and cannot come from the data.",
        "ward LIKE 'A%'",
    )


def _require_text(term: Term) -> Expr:
    if kind_of(term) != TEXT or not isinstance(term, Expr) or is_null(term):
        raise wrong_kind_error("a text is needed here", term)
    return term
