# SPDX-License-Identifier: Apache-2.0
"""What comes back from an engine, as Python has it: whole numbers, and keys that mean what the plan says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from discreet.errors import RefusedQuestion
from discreet.tables.data.expr import Expr, Read
from discreet.tables.data.sums import BoundedSums, ExactSums, GroupScheme, OnceScheme
from discreet.tables.data.types import (
    DATE,
    MOMENT,
    NUMBER,
    TEXT,
    TRUTH,
    WIDEST,
    Type,
    days,
    micros,
    python_value,
)
from discreet.tables.engines.source import SourceTable

__all__ = [
    "bin_counts",
    "cells_of",
    "check_keys",
    "exact_sums",
    "value_of",
    "wanted_parts",
    "whole_read",
    "width",
]

#: So many groups that are wanted are named in a statement; of more, all groups are fetched.
_LISTED = 1000
_FIRST, _LAST = days(date.min), days(date.max)
_EARLIEST = micros(datetime.min.replace(tzinfo=UTC))
_LATEST = micros(datetime.max.replace(tzinfo=UTC))
#: How each kind of source column is read when the values of a public table are asked for.
_WHOLE = {
    "integer": Type(NUMBER, -WIDEST, WIDEST),
    "text": Type(TEXT),
    "boolean": Type(TRUTH),
    "date": Type(DATE, _FIRST, _LAST),
    "timestamp": Type(MOMENT, _EARLIEST, _LATEST),
}


def width(asked: BoundedSums) -> int:
    """How many whole numbers a group has."""
    return (
        1 if isinstance(asked.scheme, GroupScheme | OnceScheme) else len(asked.features) + bool(asked.present)
    )


def exact_sums(asked: BoundedSums, rows: Iterable[Sequence[Any]]) -> ExactSums:
    """Rows of keys and sums as an answer; a sum over nothing is 0."""
    count, keys = len(asked.keys), asked.keys
    end = count + width(asked)
    answer = {
        tuple(map(value_of, keys, row)): tuple([int(part or 0) for part in row[count:end]]) for row in rows
    }
    return answer if answer or asked.keys else {(): (0,) * width(asked)}


def value_of(key: Expr, part: Any) -> Any:
    """One part of a key."""
    if part is None:
        return None
    kind = key.type.kind
    if kind == TEXT:
        return str(part)
    if kind == TRUTH:
        return bool(part)
    return python_value(int(part), key.type) if kind in {DATE, MOMENT} else int(part)


def cells_of(value: Any) -> Any:
    """The inverse of `value_of` for a part that is not NULL."""
    if isinstance(value, datetime):
        return micros(value)
    return days(value) if isinstance(value, date) else value


def wanted_parts(asked: BoundedSums) -> list[tuple[str, Expr, list[Any]]]:
    """The name of each key that is restricted, the key, and the values that are wanted of it; nothing if they are many."""
    if not asked.among or len(asked.among) > _LISTED:
        return []
    parts = zip(*asked.among, strict=True)
    return [
        (f"k{place}", key, list(dict.fromkeys(values)))
        for place, (key, values) in enumerate(zip(asked.keys, parts, strict=False))
    ]


def check_keys(keys: Sequence[Expr]) -> None:
    """Refuse keys that Python's calendar does not have."""
    for key in keys:
        kind = key.type
        first, last = (_FIRST, _LAST) if kind.kind == DATE else (_EARLIEST, _LATEST)
        if kind.kind in {DATE, MOMENT} and not first <= kind.low <= kind.high <= last:
            raise RefusedQuestion(
                "DP705",
                "a key could be a date before the year 1 or after the year 9999.",
                why="such a date has no name that everybody can read.",
                fix="give the column bounds",
            )


def bin_counts(bins: int, rows: Iterable[Sequence[Any]]) -> tuple[int, ...]:
    """Rows of a bin and its count as one number for each bin."""
    found = {int(row[0]): int(row[1]) for row in rows}
    return tuple(found.get(place, 0) for place in range(bins))


def whole_read(table: SourceTable, name: str) -> Read:
    """A column of a public table as it is."""
    kind = _WHOLE.get(table.column(name).kind)
    if kind is not None:
        return Read(table.name, name, kind)
    raise RefusedQuestion(
        "DP704",
        f"column {name} of {table.name} is no whole number, text, truth value or date.",
        why="a key must be equal to itself on every engine.",
        fix="use another column as the key, or convert it in the source",
    )
