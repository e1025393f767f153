# SPDX-License-Identifier: Apache-2.0
"""Types of values: every number is a whole number of cells between two public bounds.

A real column is clamped and rounded to a grid where it is read (`expr.Read`). So all later
arithmetic is on whole numbers with known bounds: it cannot overflow, it is the same on every
engine, and its bounds are proved. `value = cells / 2**places`. A date is a number of days since
1970-01-01, a moment a number of microseconds since 1970-01-01T00:00Z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.errors import RefusedQuestion

__all__ = [
    "DATE",
    "MOMENT",
    "NUMBER",
    "TEXT",
    "TRUTH",
    "WIDEST",
    "Type",
    "Value",
    "days",
    "micros",
    "python_value",
]

#: A public value in Python: a literal of a question, a key of a group, or a released number.
Value = bool | int | float | Decimal | str | date | datetime | None

NUMBER, TEXT, TRUTH, DATE, MOMENT = "number", "text", "truth", "date", "moment"
#: Every expression stays within ±this, so that sums and comparisons fit in 64 bits with room to spare.
WIDEST = 2**62

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Type:
    """A kind of values, its bounds in cells (for numbers, dates and moments), and whether NULL can
    occur.
    """

    kind: str
    low: int = 0
    high: int = 0
    places: int = 0
    null: bool = True

    def __post_init__(self) -> None:
        if self.is_ordered and not -WIDEST <= self.low <= self.high <= WIDEST:
            raise RefusedQuestion(
                "DP705",
                "the expression can leave the range of 64-bit whole numbers.",
                why="it would overflow for some data, and the overflow would reveal something about them.",
                fix="narrow it where it is used:  CLAMP(expression, 0, 1000000)",
            )

    @property
    def is_ordered(self) -> bool:
        """Whether values are numbers, or dates and moments stored as numbers."""
        return self.kind in {NUMBER, DATE, MOMENT}

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The bounds as values."""
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
    """A moment as a number of microseconds; without a time zone it means UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def python_value(cells: int, kind: Type) -> Any:
    """The Python value of a number of cells."""
    if kind.kind == DATE:
        return _EPOCH_DAY + timedelta(days=cells)
    if kind.kind == MOMENT:
        return _EPOCH + timedelta(microseconds=cells)
    return cells if kind.places == 0 else cells / 2**kind.places
