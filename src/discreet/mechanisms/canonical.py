# SPDX-License-Identifier: Apache-2.0
"""What a key, an identifier or a record is taken for, and shown as: one spelling for all that are
equal.

    canonical(True), canonical(1.0), canonical(Decimal("1.00"))         # 1, 1, 1
    canonical(noon_in_paris) == canonical(eleven_in_london)             # one instant, in UTC
    canonical(object())                                                 # NOTHING

| what | its canonical form |
|---|---|
| None | None |
| bool, int, float, Fraction, Decimal, the numbers of numpy, complex with no imaginary part | the number: an int if it is whole, else the float, the Decimal or the Fraction that it is, the first that can hold it |
| text, bytes | plain text, plain bytes |
| date, datetime, time, timedelta, datetime64, timedelta64 | a plain one; an instant with a time zone in UTC |
| UUID | a plain one |
| tuple, list, array of numpy | a tuple of canonical forms |

**Guarantee.** The form is a function of the value alone, total, and the same for any two values
that Python takes for equal keys of a dict. It is of one of the types in the table, never the object
that was passed unless every equal object looks the same. So showing the form shows nothing of who
spelt it. Everything else is NOTHING: NaN, NaT, other types, numbers of more than 1,100 bits above
or below the line, times of day with a zone, instants that UTC cannot write or that are finer than a
microsecond, and nesting deeper than eight.

Why it holds: numbers are compared as ratios, which are unique. Equal instants of two zones are
equal in UTC; in one zone Python compares the clock and ignores `fold`, and so does this. Different
forms are never equal.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

import numpy as np

from discreet.mechanisms.callbacks import call_quietly, callback_guard

__all__ = ["NOTHING", "Nothing", "canonical", "canonical_each", "exact_ratio", "public_order"]

_MOST_BITS = 1100  # of a numerator and a denominator: every float has fewer
_MOST_DIGITS = 10_000  # a decimal with more of them, or a larger exponent, has more bits than that
_DEEPEST = 8


class Nothing(Enum):
    """The form of whatever has none."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING


def canonical(value: Any) -> Any:
    """The canonical form of a value, or NOTHING.

    >>> canonical((True, -0.0, Decimal("2.50"), "x")), canonical(float("nan"))
    ((1, 0, 2.5, 'x'), <Nothing.NOTHING: 'nothing'>)
    """
    return call_quietly(_form, value, 0, instead=NOTHING)


def canonical_each(values: Iterable[Any]) -> list[Any]:
    """The canonical form of each value."""
    with callback_guard():
        return [canonical(value) for value in values]


def exact_ratio(value: Any) -> Fraction | float | None:
    """A real number of any type exactly; an infinity as a float, None for what is no number."""
    ratio: Fraction | float | None = call_quietly(_ratio, value)
    return ratio


def public_order(form: Any) -> tuple[int, Any]:
    """A key that sorts canonical forms of all types: a function of the form alone."""
    rank = next(rank for rank, kinds in enumerate(_RANKS) if isinstance(form, kinds))
    if isinstance(form, tuple):
        return rank, tuple(map(public_order, form))
    if isinstance(form, datetime):
        return rank, (form.tzinfo is not None, form)
    return rank, 0 if form is None else form


_PLAIN = (str, int, bytes)  # every equal object of these types looks the same
_NUMBERS = (int, float, Fraction, Decimal)
_RANKS: tuple[Any, ...] = (type(None), _NUMBERS, str, bytes, datetime, date, time, timedelta, UUID, tuple)


def _form(value: Any, depth: int) -> Any:
    if type(value) in _PLAIN and (type(value) is not int or value.bit_length() <= _MOST_BITS):
        return value
    if type(value) is float and math.isfinite(value):
        return int(value) if value.is_integer() else value
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        value = value.tolist() if value.ndim else value.item()
    for kinds, form in _FORMS:
        if isinstance(value, kinds):
            return form(value)
    if depth < _DEEPEST and isinstance(value, tuple | list):
        parts = tuple(_form(part, depth + 1) for part in list(value))
        return NOTHING if NOTHING in parts else parts
    return NOTHING


def _number(value: Any) -> Any:
    ratio = _ratio(value)
    if ratio is None or isinstance(ratio, float):
        return NOTHING if ratio is None else ratio
    if max(ratio.numerator.bit_length(), ratio.denominator.bit_length()) > _MOST_BITS:
        return NOTHING
    if ratio.denominator == 1:
        return ratio.numerator
    nearest = float(ratio) if abs(ratio) < 2**1023 else math.inf
    if math.isfinite(nearest) and Fraction(nearest) == ratio:
        return nearest
    return _decimal(ratio)


def _ratio(value: Any) -> Fraction | float | None:
    """The number that a value is, whatever its type."""
    if isinstance(value, int | np.integer | np.bool_):
        return Fraction(int(value))
    if isinstance(value, complex | np.complexfloating):
        return _ratio(value.real) if value.imag == 0 else None
    if isinstance(value, Decimal):
        return _ratio_of_decimal(Decimal(value))
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if not isinstance(value, numbers.Real):
        return None
    real = value if isinstance(value, np.floating) else float(value)
    if not np.isfinite(real):
        return None if np.isnan(real) else float(real)
    return Fraction(*map(int, real.as_integer_ratio()))


def _ratio_of_decimal(value: Decimal) -> Fraction | float | None:
    if not value.is_finite():
        return None if value.is_nan() else float(value)
    sign, digits, exponent = value.as_tuple()
    digits_read = "".join(map(str, digits)).lstrip("0")
    significant = digits_read.rstrip("0")
    if not significant:
        return Fraction(0)
    power = int(exponent) + len(digits_read) - len(significant)
    if max(len(significant), abs(power)) > _MOST_DIGITS:
        return None
    ratio = Fraction(_whole(significant)) * Fraction(10) ** power
    return -ratio if sign else ratio


def _whole(digits: str) -> int:
    """A whole number of any length: Python refuses to read more than 4300 digits at once."""
    number = 0
    for start in range(0, len(digits), 1000):
        part = digits[start : start + 1000]
        number = number * 10 ** len(part) + int(part)
    return number


def _decimal(ratio: Fraction) -> Decimal | Fraction:
    """The ratio as a decimal, if it has finitely many places."""
    rest, places = ratio.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest > 1:
        return ratio
    digits = abs(ratio.numerator) * 10**places // ratio.denominator
    return Decimal((int(ratio < 0), tuple(map(int, str(digits))), -places))


def _instant(value: datetime) -> Any:
    clock = datetime(  # noqa: DTZ001 - its zone, if it has one, comes last
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond
    )
    if getattr(value, "nanosecond", 0):
        return NOTHING
    if value.tzinfo is None:
        return clock
    offset = value.replace(fold=0).utcoffset()
    return clock if offset is None else (clock - offset).replace(tzinfo=UTC)


def _clock(value: time) -> Any:
    if value.tzinfo is not None:
        return NOTHING
    return time(value.hour, value.minute, value.second, value.microsecond)


def _span(value: timedelta) -> Any:
    if getattr(value, "nanoseconds", 0):
        return NOTHING
    return timedelta(value.days, value.seconds, value.microseconds)


def _numpy_time(value: Any) -> Any:
    kind = "M8[us]" if isinstance(value, np.datetime64) else "m8[us]"
    rounded = value.astype(kind)
    plain = rounded.item()
    return _form(plain, _DEEPEST) if rounded == value and not isinstance(plain, int | None) else NOTHING


_FORMS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (type(None), lambda value: value),
    ((np.datetime64, np.timedelta64), _numpy_time),
    ((int, float, Fraction, Decimal, complex, np.number, np.bool_), _number),
    (str, str.__str__),
    ((bytes, memoryview), lambda value: bytes(memoryview(value))),
    (datetime, _instant),
    (date, lambda value: date(value.year, value.month, value.day)),
    (time, _clock),
    (timedelta, _span),
    (UUID, lambda value: UUID(int=int(value.int))),
)
