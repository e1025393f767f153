# SPDX-License-Identifier: Apache-2.0
"""Expressions that compute texts, and the length of one.

**Guarantee.** As `expr`: total on every text, NULL in gives NULL out, the same on every engine. A
character is a code point of Unicode. Upper and lower case are those of the letters A to Z alone,
and only spaces are trimmed: of other characters engines disagree.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import cached_property

from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.types import NUMBER, TEXT, Type

__all__ = ["CASES", "LONGEST", "Cased", "Joined", "Length", "Substring", "Trimmed"]

#: The letters that each case replaces, and those in their place.
CASES = {
    "upper": (string.ascii_lowercase, string.ascii_uppercase),
    "lower": (string.ascii_uppercase, string.ascii_lowercase),
}
#: A text has fewer characters than this on every engine.
LONGEST = 1 << 31


@dataclass(frozen=True)
class Joined(Expr):
    """Texts one after the other; NULL where any is NULL."""

    items: tuple[Expr, ...]

    @cached_property
    def type(self) -> Type:
        return Type(TEXT, null=any(item.type.null for item in self.items))


@dataclass(frozen=True)
class Cased(Expr):
    """A text with the letters A to Z in upper or in lower case; other characters stay."""

    case: str
    of: Expr

    @cached_property
    def type(self) -> Type:
        return Type(TEXT, null=self.of.type.null)


@dataclass(frozen=True)
class Trimmed(Expr):
    """A text without spaces at its ends."""

    of: Expr

    @cached_property
    def type(self) -> Type:
        return Type(TEXT, null=self.of.type.null)


@dataclass(frozen=True)
class Substring(Expr):
    """So many characters of a text from the one at `start`, which is 1 or more; all of them if
    there are fewer.
    """

    of: Expr
    start: int
    length: int

    @cached_property
    def type(self) -> Type:
        return Type(TEXT, null=self.of.type.null)


@dataclass(frozen=True)
class Length(Expr):
    """The number of characters of a text."""

    of: Expr

    @cached_property
    def type(self) -> Type:
        return Type(NUMBER, 0, LONGEST, 0, self.of.type.null)
