# SPDX-License-Identifier: Apache-2.0
"""The rows of an engine as Python objects: whole numbers, and keys that mean what the plan says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.expr import AsDate, Expr, Read, Truncated
from discreet.tables.algebra.sums import BoundedSums, ExactSums, GroupScheme, OnceScheme
from discreet.tables.algebra.types import (
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
    "period_of",
    "value_of",
    "wanted_parts",
    "whole_read",
    "width",
]

#: Up to so many requested groups are named in a statement; for more, all groups are fetched.
_LISTED = 1000
_FIRST, _LAST = days(date.min), days(date.max)
_EARLIEST = micros(datetime.min.replace(tzinfo=UTC))
_LATEST = micros(datetime.max.replace(tzinfo=UTC))
#: How each kind of source column is read when the values of a public table are request for.
_WHOLE = {
    "integer": Type(NUMBER, -WIDEST, WIDEST),
    "text": Type(TEXT),
    "boolean": Type(TRUTH),
    "date": Type(DATE, _FIRST, _LAST),
    "timestamp": Type(MOMENT, _EARLIEST, _LATEST),
}


def period_of(source: SourceTable, label: str) -> Expr | None:
    """The first day of the period in which a row is, in UTC; None if units have no periods."""
    if source.period is None:
        return None
    part, name = source.period
    kind = source.column(name).kind
    read = Read(label, name, _WHOLE[kind].with_null(True))
    day: Expr = AsDate(read) if kind == "timestamp" else read
    return day if part == "day" else Truncated(part, day)


def width(request: BoundedSums) -> int:
    """The number of sums of a group."""
    return (
        1
        if isinstance(request.scheme, GroupScheme | OnceScheme)
        else len(request.features) + bool(request.present)
    )


def exact_sums(request: BoundedSums, rows: Iterable[Sequence[Any]]) -> ExactSums:
    """Rows of keys and sums as an answer; a sum over nothing is 0."""
    count, keys = len(request.keys), request.keys
    end = count + width(request)
    answer = {
        tuple(map(value_of, keys, row)): tuple([int(part or 0) for part in row[count:end]]) for row in rows
    }
    return answer if answer or request.keys else {(): (0,) * width(request)}


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


def wanted_parts(request: BoundedSums) -> list[tuple[str, Expr, list[Any]]]:
    """The name of each key that is restricted, the key, and the values that are wanted of it;
    nothing if they are many.
    """
    if not request.among or len(request.among) > _LISTED:
        return []
    parts = zip(*request.among, strict=True)
    return [
        (f"k{number}", key, list(dict.fromkeys(values)))
        for number, (key, values) in enumerate(zip(request.keys, parts, strict=False))
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
                why="a key is shown as a date of the years 1 to 9999.",
                fix="give the column bounds",
            )


def bin_counts(bins: int, rows: Iterable[Sequence[Any]]) -> tuple[int, ...]:
    """Rows of a bin and its count as one number for each bin."""
    counts = {int(row[0]): int(row[1]) for row in rows}
    return tuple(counts.get(number, 0) for number in range(bins))


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
