# SPDX-License-Identifier: Apache-2.0
"""Made-up rows: what a table could look like, from its public description alone.

**Guarantee.** No row is read: the rows are a function of the description. They are the same for
everybody, and nothing in them is true. Columns are independent of each other, and every value that
the description allows is about as frequent as any other.
"""

from __future__ import annotations

import hashlib
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.tables.data.dataset import Column, DescribedTables

__all__ = ["made_up_rows"]

#: Numbers without bounds are between 0 and this.
_UNBOUNDED = 1000


def made_up_rows(data: DescribedTables, count: int) -> dict[str, tuple[list[str], list[list[str]]]]:
    """For each private table its columns, and so many made-up rows as texts.

    >>> import discreet as dp
    >>> header, rows = made_up_rows(dp.open(dp.data.path("adult.toml")), 2)["adult"]
    >>> header[:2], len(rows), 17 <= int(rows[0][1]) <= 90
    (['person_id', 'age'], 2, True)
    """
    return {
        table.name: (
            list(table.columns),
            [[_cell(table.name, column, row) for column in table.columns.values()] for row in range(count)],
        )
        for table in data.tables.values()
        if table.private
    }


def _cell(table: str, column: Column, row: int) -> str:
    """The value of a column in a made-up row."""
    digest = hashlib.sha256(repr((table, column.name, row)).encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:8], "big")
    if column.values:
        return str(column.values[number % len(column.values)])
    if column.kind == "boolean":
        return ("false", "true")[number % 2]
    if column.kind == "text":
        return f"made-up {number % 100}"
    low, high = column.bounds if column.bounds is not None else (0, _UNBOUNDED)
    return _between(low, high, number, whole=column.kind != "number")


def _between(low: Any, high: Any, number: int, *, whole: bool) -> str:
    """A value from `low` to `high`; dates are whole days."""
    if isinstance(low, date | datetime):
        days = max((high - low).days, 0)
        return str(low + timedelta(days=number % (days + 1)))
    if whole and isinstance(low, int) and isinstance(high, int):
        return str(low + number % (high - low + 1))
    return f"{float(low) + (float(high) - float(low)) * (number / 2**64):.4g}"
