# SPDX-License-Identifier: Apache-2.0
"""Builds expressions of texts: joined, in one case, trimmed, a part, the length.

**Guarantee.** As `build`: the result is total on every text, or the question is refused (DP705).
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.tables.ask.build import Term, is_null, kind_of, wrong_kind_error
from discreet.tables.data import strings
from discreet.tables.data.expr import Expr
from discreet.tables.data.types import TEXT

__all__ = ["change_case", "join", "length", "substring", "trim"]


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


def _require_text(term: Term) -> Expr:
    if kind_of(term) != TEXT or not isinstance(term, Expr) or is_null(term):
        raise wrong_kind_error("a text is needed here", term)
    return term
