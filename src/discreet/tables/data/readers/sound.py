# SPDX-License-Identifier: Apache-2.0
"""Arrow columns in which every value is one that every engine can hold.

**Guarantee.** `sound` is total and local: whatever bytes a cell holds, it becomes one value of a type that the schema alone
decides, and no other cell changes. What is no value of its type is NULL: a text that is not UTF-8, a decimal with more
digits than its type has, a place in a dictionary that is not there. Moments are moved into the years 1 to 9999, where every
question moves them anyway. Columns of other types are never looked at: they are NULL, and of kind "other".

    in the schema                                   here
    integers, float32, float64, boolean             as they are
    float16                                         float32
    decimals of 38 digits at most                   decimal128
    date32, date64                                  date32
    timestamps of any unit and zone                 timestamp[us], of UTC if there is a zone
    text, also as a dictionary or a view; UUID      large_string
    anything else                                   binary, all NULL

What would break it: a cast of Arrow's that checks values, because it fails for all rows if it fails for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from importlib import import_module
from typing import Any, Final

from discreet.errors import MissingExtra
from discreet.tables.data import rules
from discreet.tables.data.types import days, micros

__all__ = [
    "FIRST",
    "LAST",
    "PER_UNIT",
    "for_spark",
    "is_text",
    "kind_of",
    "library",
    "sound",
    "sound_column",
    "stored",
]

#: The days and the microseconds that a date and a moment are moved between.
FIRST: Final = (days(date.min), micros(datetime.min.replace(tzinfo=UTC)))
LAST: Final = (days(date.max), micros(datetime.max.replace(tzinfo=UTC)))
#: Microseconds in a unit of a timestamp; of a nanosecond see `_micros`.
PER_UNIT: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_MILLIS_A_DAY = 86_400_000
#: Bits of a decimal that every engine has.
_WIDEST = 128
#: So many texts are looked at one by one.
_FEW = 64


def library(name: str) -> Any:
    """An optional library, or the line that installs it."""
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


def stored(kind: Any) -> Any:
    """The Arrow type as which bytes and numbers of another one can be read, whatever they are; None for kind "other"."""
    pa = library("pyarrow")
    if pa.types.is_dictionary(kind):
        return stored(kind.value_type)
    known = kind_of(kind)
    if known == "date":
        return pa.int32() if kind == pa.date32() else pa.int64()
    if known == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    made = {"text": pa.large_binary(), "timestamp": pa.int64(), "other": None}
    if known in made:
        return made[known]
    return pa.float32() if kind == pa.float16() else kind


def sound(table: Any) -> Any:
    """The same rows, every cell of which is a value that every engine can hold."""
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise rules.wrong(
            "the data set", f"it has two columns that are called {twice[0]}.", "rename one of them"
        )
    columns = [sound_column(column, column.type) for column in table.columns]
    return library("pyarrow").table(columns, names=table.column_names)


def sound_column(column: Any, kind: Any) -> Any:
    """A column that was declared as `kind`, and has that type or the one of `stored`, chunk by chunk."""
    pa = library("pyarrow")
    made, of = _maker(kind)
    if kind_of(kind) == "other":
        return pa.chunked_array([pa.nulls(len(column), of)])
    return pa.chunked_array([made(_raw(chunk)) for chunk in column.chunks], type=of)


def for_spark(table: Any, unit: str | None) -> Any:
    """A sound table as Python and Spark can hold it: whole numbers with a sign, and dates of the years 1 to 9999.

    Other dates are moved to the first or the last one. As a unit they are NULL instead: two people must not become one.
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
    """An array as numbers or bytes; entries of a dictionary that are not there are NULL."""
    pa = library("pyarrow")
    if pa.types.is_dictionary(array.type):
        places = array.indices.cast(pa.int64(), safe=False)
        compute = library("pyarrow.compute")
        there = compute.and_(compute.greater_equal(places, 0), compute.less(places, len(array.dictionary)))
        return _raw(array.dictionary).take(compute.if_else(there, places, None))
    if isinstance(array, pa.ExtensionArray):
        return _raw(array.storage)
    to = stored(array.type)
    if to is None or to == array.type:
        return array
    # a view, where there is one, is not checked; the casts that remain cannot fail
    is_number = pa.types.is_temporal(array.type)
    return array.view(to) if is_number else array.cast(to)


def _maker(kind: Any) -> tuple[Callable[[Any], Any], Any]:
    """How a raw array becomes a sound one of a declared type, and the type that it then has."""
    pa = library("pyarrow")
    if pa.types.is_dictionary(kind):
        return _maker(kind.value_type)
    known = kind_of(kind)
    if known == "text":
        return (_uuids if _is_uuid(kind) else _texts), pa.large_string()
    if known == "timestamp":
        of = pa.timestamp("us", "UTC" if kind.tz else None)
        return (lambda raw: _micros(raw, kind.unit).view(of)), of
    if known == "date":
        return (_days if kind == pa.date64() else lambda raw: raw.view(pa.date32())), pa.date32()
    if known == "decimal":
        return _decimals, pa.decimal128(kind.precision, kind.scale)
    return (lambda raw: raw), pa.binary() if known == "other" else stored(kind)


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def _texts(raw: Any) -> Any:
    """Bytes as text, NULL where they are not UTF-8: halves are looked at until only a few are left."""
    pa = library("pyarrow")
    text = raw.view(pa.large_string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        if len(raw) <= _FEW:
            return pa.array([_decoded(cell) for cell in raw.to_pylist()], pa.large_string())
        middle = len(raw) // 2
        return pa.concat_arrays([_texts(raw[:middle]), _texts(raw[middle:])])
    return text


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _uuids(raw: Any) -> Any:
    """Sixteen bytes each, as they are written; there is nothing else that they could be."""
    from uuid import UUID

    cells = [None if cell is None else str(UUID(bytes=cell)) for cell in raw.to_pylist()]
    return library("pyarrow").array(cells, library("pyarrow").large_string())


def _micros(raw: Any, unit: str) -> Any:
    compute = library("pyarrow.compute")
    first, last = FIRST[1], LAST[1]
    if unit == "ns":
        return _between(_floor(raw, 1_000), first, last)
    # one unit further than the ends, so that what lies beyond them is moved to them and not to the unit below
    per = PER_UNIT[unit]
    near = _between(raw, first // per - 1, last // per + 1)
    return _between(compute.multiply(near, per), first, last)


def _days(raw: Any) -> Any:
    """Milliseconds as days; a day that no date has is NULL."""
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
    """Decimals that their type has digits for; the others are NULL."""
    compute, pa = library("pyarrow.compute"), library("pyarrow")
    most = 10**raw.type.precision - 1
    ends = b"".join(end.to_bytes(16, "little", signed=True) for end in (-most, most))
    low, high = pa.Array.from_buffers(raw.type, 2, [None, pa.py_buffer(ends)])
    fits = compute.and_(compute.greater_equal(raw, low), compute.less_equal(raw, high))
    return compute.if_else(fits, raw, pa.scalar(None, raw.type))
