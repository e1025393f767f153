# SPDX-License-Identifier: Apache-2.0
"""Units that are a person in a period, such as a user-day: the column that says when.

**Guarantee.** The period of a row is a function of that row alone, so every row belongs to one unit
at most, and all that is proved of units holds of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps as quoted
from typing import TYPE_CHECKING

from discreet.errors import BadParameter
from discreet.tables.data import rules

if TYPE_CHECKING:
    from discreet.tables.data.dataset import Each, Table

__all__ = ["several_units_error", "time_column"]

_TIMES = {"date", "timestamp"}
#: The kinds of units whose values every engine writes as the same text.
_DIVISIBLE = {"integer", "text"}


def time_column(table: Table, protect: Each) -> str:
    """The column that says in which period a row is; refuses one that is no time, or is unclear."""
    times = [name for name, column in table.columns.items() if column.kind in _TIMES]
    stated = protect.when.get(table.name, "") if isinstance(protect.when, Mapping) else protect.when
    unit = table.columns[str(table.unit)] if table.unit in table.columns else None
    if unit is not None and unit.kind not in _DIVISIBLE:
        raise rules.description_error(
            f"table {table.name}, column {unit.name}",
            f"with per={quoted(protect.per)} the unit must be a whole number or a text.",
            "leave out per and when, or store it as a whole number or as text",
            "engines disagree on how other values are written, and a person could be two units.",
        )
    if stated in times:
        return str(stated)
    if not stated and len(times) == 1:
        return times[0]
    what = (
        f"it has no column {stated} of dates or timestamps."
        if stated
        else f"it does not say when a row was: it has {len(times) or 'no'} columns of dates or timestamps."
    )
    fix = f'when={{"{table.name}": "{times[0]}"}}' if times else "leave out per, or add a date to the table"
    raise rules.description_error(
        f"table {table.name}", what, fix, "a unit is a person in a period, so each row needs a time."
    )


def several_units_error(protect: Sequence[Each]) -> BadParameter:
    """The refusal of several units at once."""
    first, columns = protect[0], [each.column or "row" for each in protect]
    whole = next((each for each in protect if not each.per), None)
    if whole is not None and len(set(columns)) == 1:
        return BadParameter(
            "DP107",
            f"one of the units {', '.join(each.unit.protects for each in protect)} contains the others.",
            why='whoever protects the larger one protects its parts: under relation="replace" with the same ε, under '
            "add-remove with that of a group of two.",
            fix=f"protect={whole.as_code()}",
        )
    return BadParameter(
        "DP107",
        f"several units at once are not supported: {', '.join(columns)}.",
        why="a bound for one of them changes which rows of the others count, so no bound that engines can compute is proved "
        "for both. Each needs a data set and a ledger of its own, and its guarantee says nothing of the other.",
        fix=f"protect={first.as_code()}",
    )
