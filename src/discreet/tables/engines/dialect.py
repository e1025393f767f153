# SPDX-License-Identifier: Apache-2.0
"""Where SQL dialects differ: exact division, and the conversion of raw values to whole numbers.

An engine's own rounding, calendar, collation and errors are never relied on; where one of its
functions is used, its argument is made harmless first, because an engine may compute what a CASE
then discards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.engines import terms as t
from discreet.tables.engines.source import SourceColumn
from discreet.tables.engines.terms import Term

__all__ = ["Dialect", "speakable", "unspeakable_text_error"]


class Dialect(ABC):
    """The SQL of one engine."""

    name: ClassVar[str]  # in sqlglot
    wide: ClassVar[exp.DataType]  # for whole numbers of about 38 digits
    decimal_has_nan: ClassVar[bool] = False

    def sql(self, tree: Term) -> str:
        """A tree as this engine's SQL."""
        return tree.sql(dialect=self.name, copy=False)

    def widen(self, term: Term) -> Term:
        """A whole number as a wide one."""
        return t.cast(term, self.wide)

    def total(self, term: Term) -> Term:
        """The exact sum of 64-bit numbers, as a wide one."""
        return t.call("SUM", term)

    def summand(self, term: Term) -> Term:
        """A whole number of at most 22 bits, in the type that is summed fastest."""
        return term

    def root(self, term: Term) -> Term:
        """⌊√⌋ of a whole number below 2^63, in double: IEEE 754 rounds it the same everywhere."""
        return t.cast(t.call("FLOOR", t.call("SQRT", t.cast(term, t.DOUBLE))), t.BIGINT)

    def literal(self, value: str) -> Term:
        """A public text of a question, as this engine writes it."""
        return t.text(speakable(value))

    def unit_text(self, term: Term, column: SourceColumn) -> Term:
        """A text that identifies a unit: compared byte by byte, and never sent to Python."""
        return self.exact_text(term, column)

    def pattern(self, like: str) -> str:
        """A pattern of LIKE in which a backslash is a character like any other."""
        return like.replace("\\", "\\\\")

    def has_infinities(self, column: SourceColumn) -> bool:
        """Whether a column of dates or timestamps can hold infinity, which has no number."""
        return True

    def is_nan(self, term: Term) -> Term:
        """Whether a double is no number."""
        return t.call("ISNAN", term)

    def trim_spaces(self, term: Term) -> Term:
        """A text without spaces at its ends; other white space remains."""
        return t.call("BTRIM", term, t.text(" "))

    def characters(self, term: Term) -> Term:
        """A text whose functions count code points of Unicode."""
        return term

    @abstractmethod
    def over(self, left: Term, right: Term, *, wide: bool = False) -> Term:
        """⌊left / right⌋ of whole numbers that are not negative, right above zero."""

    @abstractmethod
    def matches(self, term: Term, pattern: str) -> Term:
        """Whether a regular expression matches a whole text; the pattern needs no anchors."""

    @abstractmethod
    def exact_text(self, term: Term, column: SourceColumn) -> Term:
        """A text that is compared byte by byte, whatever the column's collation."""

    @abstractmethod
    def fraction(self, term: Term, digits: int, column: SourceColumn) -> Term:
        """⌊(x - ⌊x⌋) · 10^digits⌋ of a decimal that has been clamped, as a BIGINT."""

    @abstractmethod
    def day_number(self, term: Term, column: SourceColumn) -> Term:
        """Days since 1970-01-01 of a finite date, as a BIGINT."""

    @abstractmethod
    def micro_number(self, term: Term, column: SourceColumn) -> Term:
        """Microseconds since 1970 of a finite moment, rounded down, as a BIGINT; without a time
        zone it is UTC.
        """


def speakable(value: str) -> str:
    """The text, if every engine can store it."""
    if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise unspeakable_text_error()
    return value


def unspeakable_text_error() -> RefusedQuestion:
    return RefusedQuestion(
        "DP705",
        "a text in the question has a character that the engine cannot store.",
        why="no row has such a text, and what it equals would differ from engine to engine.",
        fix="leave out the zero character, halves of surrogate pairs, and what the encoding of the database lacks",
    )
