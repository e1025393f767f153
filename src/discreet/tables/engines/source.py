# SPDX-License-Identifier: Apache-2.0
"""The schema of a table as its engine has it, and which column can be read as which kind.

A column's kind in the source need not be the kind that it is described as: a number may lie there
as text, as a decimal or as a boolean. What cannot be read without guessing is refused, from the
schema alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.engine import LINKED, ROW
from discreet.tables.algebra.expr import Read
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH

__all__ = [
    "MOST_DIGITS",
    "SourceColumn",
    "SourceTable",
    "comparable",
    "known_table",
    "readable",
    "same_units",
]

#: The kinds of source column that each kind of value can be read from.
_FROM = {
    NUMBER: {"integer", "real", "decimal", "text", "boolean"},
    TEXT: {"text"},
    TRUTH: {"boolean"},
    DATE: {"date"},
    MOMENT: {"timestamp"},
}
#: Decimal digits after the point that are read exactly; more are cut off, which no grid of as few
#: bits can notice.
MOST_DIGITS: Final = 18
#: A grid may be this fine: then a cell of a number within the bounds is within 64 bits at every
#: step of its reading.
MOST_PLACES: Final = 60


@dataclass(frozen=True)
class SourceColumn:
    """A column as its engine has it: `native` is the engine's own word for its type.

    A decimal has `digits` in all and `scale` of them after the point; None for both: any number of
    them, and arithmetic on them is exact.
    """

    name: str
    kind: str
    native: str = ""
    digits: int | None = None
    scale: int | None = None
    zoned: bool = False


@dataclass(frozen=True)
class SourceTable:
    """A table: its columns, and whose its rows are (a column, ROW, or None for a public table)."""

    name: str
    columns: Mapping[str, SourceColumn]
    unit: str | None
    # If a unit is a value of `unit` in a period: its length, and the column of the time.
    period: tuple[str, str] | None = None

    def column(self, name: str) -> SourceColumn:
        """The column of that name."""
        if name not in self.columns:
            raise RefusedQuestion(
                "DP701",
                f"table {self.name} has no column {name}.",
                why="a question can only be put to columns that the source has.",
                fix=f"one of its columns: {', '.join(sorted(self.columns))}",
            )
        return self.columns[name]


def readable(table: SourceTable, read: Read) -> SourceColumn:
    """The column that is read, if its kind and its grid allow it."""
    column, wanted = table.column(read.column), read.of
    kinds = _FROM[wanted.kind]
    if column.kind not in kinds:
        raise RefusedQuestion(
            "DP705",
            f"column {read.column} of {table.name} is of kind {column.kind} and cannot be read as a {wanted.kind}.",
            why="engines would guess its value in different ways.",
            fix=f"a column of kind {', '.join(sorted(kinds))}; or convert it in the source",
        )
    if wanted.kind == NUMBER and not 0 <= wanted.places <= _finest(column):
        raise RefusedQuestion(
            "DP705",
            f"column {read.column} of {table.name} cannot be put on a grid of 2^-{wanted.places}.",
            why="its digits would not fit into 64 bits while it is read.",
            fix=f"places = {_finest(column)}",
        )
    return column


def known_table(
    tables: Mapping[str, SourceTable], name: str, *, private: bool, linked: bool = False
) -> SourceTable:
    """A table that is private, or public, as it must be; `linked` if its rows reach their units
    through a key.
    """
    table = tables.get(name)
    if table is None or (table.unit is not None) != private or (table.unit == LINKED) != linked:
        raise RefusedQuestion(
            "DP701",
            f"there is no {'private' if private else 'public'} table {name}.",
            why="which tables are private is part of the description of a data set.",
            fix=f"one of: {', '.join(sorted(tables))}",
        )
    return table


def comparable(table: SourceTable) -> SourceColumn:
    """The unit's column, if its values are equal or not on every engine alike."""
    unit = table.column(str(table.unit))
    if unit.kind != "other":
        return unit
    raise RefusedQuestion(
        "DP705",
        f"the unit {unit.name} of {table.name} is of a kind that cannot be compared exactly.",
        why="two people could count as one, or one as two.",
        fix="store it as text or as a whole number",
    )


def _finest(column: SourceColumn) -> int:
    """The finest grid that a column can be read on exactly: digits after the 18th are below a grid
    of 18 bits.
    """
    exact = column.kind != "decimal" or column.scale is None or column.scale <= MOST_DIGITS
    return MOST_PLACES if exact else MOST_DIGITS


def same_units(left: SourceTable, right: SourceTable) -> None:
    """Refuse to pair tables whose units cannot be compared exactly."""
    for table in (left, right):
        if table.unit in {None, ROW, LINKED}:
            raise RefusedQuestion(
                "DP703",
                f"table {table.name} has no column that says whose a row is.",
                why="rows of two private tables are paired by their unit.",
                fix="protect each value of a column, in both tables",
            )
    kinds = {table.column(str(table.unit)).kind for table in (left, right)}
    if len(kinds) > 1 or "other" in kinds:
        raise RefusedQuestion(
            "DP703",
            f"the units of {left.name} and {right.name} are of different kinds.",
            why="7, '7' and 7.0 are compared differently by different engines.",
            fix="store the unit in both tables with one type",
        )
