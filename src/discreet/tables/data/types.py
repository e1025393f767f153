# SPDX-License-Identifier: Apache-2.0
"""What a value can be: every number is a whole number of cells between two public ends.

A column of reals is clamped and put on a grid where it is read (`expr.Read`), so that all arithmetic after that is
on whole numbers with known ends: it cannot overflow, it is the same on every engine, and its bounds are proved.
`value = cells / 2**places`. A date is a number of days since 1970-01-01, a moment a number of microseconds since
1970-01-01T00:00Z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from discreet.errors import RefusedQuestion

__all__ = ["DATE", "MOMENT", "NUMBER", "TEXT", "TRUTH", "WIDEST", "Type", "days", "micros"]

NUMBER, TEXT, TRUTH, DATE, MOMENT = "number", "text", "truth", "date", "moment"
#: No expression may leave ±this: what is summed and compared fits in 64 bits with room to spare.
WIDEST = 2**62

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Type:
    """A kind, its ends in cells (for numbers, dates and moments), and whether it can be NULL."""

    kind: str
    low: int = 0
    high: int = 0
    places: int = 0
    null: bool = True

    def __post_init__(self) -> None:
        if self.is_ordered and not -WIDEST <= self.low <= self.high <= WIDEST:
            raise RefusedQuestion(
                "DP705",
                "an expression can leave the range of 64-bit whole numbers.",
                why="it would overflow for some data, and whether it does would reveal them.",
                fix="narrow it where it is used:  CLAMP(expression, 0, 1000000)",
            )

    @property
    def is_ordered(self) -> bool:
        """Whether it is a number, or is kept as one."""
        return self.kind in {NUMBER, DATE, MOMENT}

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The ends as values."""
        return Fraction(self.low, 2**self.places), Fraction(self.high, 2**self.places)

    @property
    def reach(self) -> int:
        """The greatest absolute number of cells."""
        return max(-self.low, self.high, 0)

    def with_null(self, null: bool) -> Type:  # noqa: FBT001 - a property that is set
        """The same type that can, or cannot, be NULL."""
        return replace(self, null=null)


def days(value: date) -> int:
    """A date as a number of days."""
    return (value - _EPOCH_DAY).days


def micros(value: datetime) -> int:
    """A moment as a number of microseconds; one without a time zone is taken as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def read_back(cells: int, kind: Type) -> Any:
    """The value that a number of cells stands for, as Python has it."""
    if kind.kind == DATE:
        return _EPOCH_DAY + timedelta(days=cells)
    if kind.kind == MOMENT:
        return _EPOCH + timedelta(microseconds=cells)
    return cells if kind.places == 0 else cells / 2**kind.places
