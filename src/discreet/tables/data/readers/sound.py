# SPDX-License-Identifier: Apache-2.0
"""Converts Arrow columns to values that every engine can hold.

**Guarantee.** `sanitize` is total and local: every cell becomes a value of a type that the schema
alone decides, and no other cell changes. An invalid value is NULL: a text that is not UTF-8, a
decimal with more digits than its type has, an index beyond its dictionary. Moments are clamped to
the years 1 to 9999, as in every question. Columns of other types are never read: they are NULL, and
their kind is "other".

    in the schema                                   here
    integers, float32, float64, boolean             as they are
    float16                                         float32
    decimals of 38 digits at most                   decimal128
    date32, date64                                  date32
    timestamps of any unit and zone                 timestamp[us], of UTC if there is a zone
    text, also as a dictionary or a view; UUID      large_string
    anything else                                   binary, all NULL

What would break it: a checking cast of Arrow, which fails for all rows if it fails for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from importlib import import_module
from typing import Any, Final

from discreet.errors import MissingExtra
from discreet.tables.algebra.types import days, micros
from discreet.tables.data import rules

__all__ = [
    "FIRST",
    "LAST",
    "PER_UNIT",
    "is_text",
    "kind_of",
    "library",
    "raw_type",
    "sanitize",
    "sanitize_column",
    "sanitize_for_spark",
]

#: The bounds of dates in days and of moments in microseconds.
FIRST: Final = (days(date.min), micros(datetime.min.replace(tzinfo=UTC)))
LAST: Final = (days(date.max), micros(datetime.max.replace(tzinfo=UTC)))
#: Microseconds per unit of a timestamp; for nanoseconds see `_micros`.
PER_UNIT: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_MILLIS_A_DAY = 86_400_000
#: The bits of a decimal that every engine supports.
_WIDEST = 128
#: Up to this many texts are decoded one by one.
_FEW = 64


def library(name: str) -> Any:
    """An optional library, or the error MissingExtra."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra.of(name) from None


def kind_of(kind: Any) -> str:
    """The kind of an Arrow type: integer, real, decimal, text, boolean, date, timestamp or other."""
    types = library("pyarrow").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if is_text(kind) or _is_uuid(kind):
        return "text"
    if types.is_decimal(kind):
        return "decimal" if kind.bit_width <= _WIDEST and 0 <= kind.scale <= kind.precision else "other"
    tests = {
        "boolean": types.is_boolean,
        "integer": types.is_integer,
        "real": types.is_floating,
        "date": types.is_date,
        "timestamp": types.is_timestamp,
    }
    return next((name for name, test in tests.items() if test(kind)), "other")


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of text."""
    types = library("pyarrow").types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def raw_type(kind: Any) -> Any:
    """The Arrow type that reads the raw bytes and numbers of another type without checks; None for
    kind "other".
    """
    pa = library("pyarrow")
    if pa.types.is_dictionary(kind):
        return raw_type(kind.value_type)
    kind_word = kind_of(kind)
    if kind_word == "date":
        return pa.int32() if kind == pa.date32() else pa.int64()
    if kind_word == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    convert = {"text": pa.large_binary(), "timestamp": pa.int64(), "other": None}
    if kind_word in convert:
        return convert[kind_word]
    return pa.float32() if kind == pa.float16() else kind


def sanitize(table: Any) -> Any:
    """The same rows, with values that every engine can hold."""
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise rules.description_error(
            "the data set", f"two of its columns are named {twice[0]}.", "rename one of them"
        )
    columns = [sanitize_column(column, column.type) for column in table.columns]
    return library("pyarrow").table(columns, names=table.column_names)


def sanitize_column(column: Any, kind: Any) -> Any:
    """A sound column of declared type `kind`; `column` has that type or its raw type."""
    pa = library("pyarrow")
    convert, of = _maker(kind)
    if kind_of(kind) == "other":
        return pa.chunked_array([pa.nulls(len(column), of)])
    return pa.chunked_array([convert(_raw(chunk)) for chunk in column.chunks], type=of)


def sanitize_for_spark(table: Any, unit: str | None) -> Any:
    """A sound table with types of Python and Spark: signed whole numbers, and dates in the years 1
    to 9999.

    Other dates are clamped. In the unit column they are NULL instead, because two people must not
    become one.
    """
    pa = library("pyarrow")
    signed = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
    }
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if field.type in signed:
            table = table.set_column(place, field.name, column.cast(signed[field.type]))
        elif field.type == pa.date32():
            table = table.set_column(place, field.name, _in_calendar(column, is_unit=field.name == unit))
    return table


def _in_calendar(column: Any, *, is_unit: bool) -> Any:
    pa, compute = library("pyarrow"), library("pyarrow.compute")
    number = column.cast(pa.int32())
    kept = _between(number, FIRST[0], LAST[0])
    if is_unit:
        kept = compute.if_else(compute.equal(kept, number), kept, pa.scalar(None, pa.int32()))
    return kept.cast(pa.date32())


def _raw(array: Any) -> Any:
    """An array as raw numbers or bytes; indices beyond a dictionary are NULL."""
    pa = library("pyarrow")
    if pa.types.is_dictionary(array.type):
        places = array.indices.cast(pa.int64(), safe=False)
        compute = library("pyarrow.compute")
        there = compute.and_(compute.greater_equal(places, 0), compute.less(places, len(array.dictionary)))
        return _raw(array.dictionary).take(compute.if_else(there, places, None))
    if isinstance(array, pa.ExtensionArray):
        return _raw(array.storage)
    to = raw_type(array.type)
    if to is None or to == array.type:
        return array
    # A view is not checked, and the remaining casts cannot fail.
    is_number = pa.types.is_temporal(array.type)
    return array.view(to) if is_number else array.cast(to)


def _maker(kind: Any) -> tuple[Callable[[Any], Any], Any]:
    """The function that makes a raw array sound, and the type of its result."""
    pa = library("pyarrow")
    if pa.types.is_dictionary(kind):
        return _maker(kind.value_type)
    kind_word = kind_of(kind)
    if kind_word == "text":
        return (_uuids if _is_uuid(kind) else _texts), pa.large_string()
    if kind_word == "timestamp":
        of = pa.timestamp("us", "UTC" if kind.tz else None)
        return (lambda raw: _micros(raw, kind.unit).view(of)), of
    if kind_word == "date":
        return (_days if kind == pa.date64() else lambda raw: raw.view(pa.date32())), pa.date32()
    if kind_word == "decimal":
        return _decimals, pa.decimal128(kind.precision, kind.scale)
    return (lambda raw: raw), pa.binary() if kind_word == "other" else raw_type(kind)


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def _texts(raw: Any) -> Any:
    """Bytes as text, NULL where they are not UTF-8; halves are checked until few texts are left."""
    pa = library("pyarrow")
    text = raw.view(pa.large_string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        if len(raw) <= _FEW:
            return pa.array([_decode(cell) for cell in raw.to_pylist()], pa.large_string())
        middle = len(raw) // 2
        return pa.concat_arrays([_texts(raw[:middle]), _texts(raw[middle:])])
    return text


def _decode(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _uuids(raw: Any) -> Any:
    """UUIDs of sixteen bytes as text; all of them are valid."""
    from uuid import UUID

    cells = [None if cell is None else str(UUID(bytes=cell)) for cell in raw.to_pylist()]
    return library("pyarrow").array(cells, library("pyarrow").large_string())


def _micros(raw: Any, unit: str) -> Any:
    compute = library("pyarrow.compute")
    first, last = FIRST[1], LAST[1]
    if unit == "ns":
        return _between(_floor(raw, 1_000), first, last)
    # One unit beyond the ends, so that values beyond them are clamped to the ends and not to the unit below.
    per = PER_UNIT[unit]
    near = _between(raw, first // per - 1, last // per + 1)
    return _between(compute.multiply(near, per), first, last)


def _days(raw: Any) -> Any:
    """Milliseconds as days; a day out of range is NULL."""
    compute, pa = library("pyarrow.compute"), library("pyarrow")
    number = _floor(raw, _MILLIS_A_DAY)
    fits = compute.equal(_between(number, -(2**31), 2**31 - 1), number)
    return compute.if_else(fits, number, pa.scalar(None, pa.int64())).cast(pa.int32()).view(pa.date32())


def _floor(raw: Any, by: int) -> Any:
    """⌊x / by⌋; Arrow rounds towards zero."""
    compute, pa = library("pyarrow.compute"), library("pyarrow")
    near = compute.divide(raw, by)
    above = compute.greater(compute.multiply(near, by), raw)
    return compute.subtract(near, above.cast(pa.int64()))


def _between(raw: Any, low: int, high: int) -> Any:
    compute, pa = library("pyarrow.compute"), library("pyarrow")
    kept = compute.min_element_wise(raw, pa.scalar(high, raw.type), skip_nulls=False)
    return compute.max_element_wise(kept, pa.scalar(low, raw.type), skip_nulls=False)


def _decimals(raw: Any) -> Any:
    """Decimals; one with more digits than its type has is NULL."""
    compute, pa = library("pyarrow.compute"), library("pyarrow")
    most = 10**raw.type.precision - 1
    ends = b"".join(end.to_bytes(16, "little", signed=True) for end in (-most, most))
    low, high = pa.Array.from_buffers(raw.type, 2, [None, pa.py_buffer(ends)])
    fits = compute.and_(compute.greater_equal(raw, low), compute.less_equal(raw, high))
    return compute.if_else(fits, raw, pa.scalar(None, raw.type))
