# SPDX-License-Identifier: Apache-2.0
"""Records to exact numbers: the rules for values that are not numbers, and exact sums.

The rules, each a function of one record alone:

- a value that is not a real number (None, text, a list, NaN) counts as the middle of the bounds;
- every other number is clipped to the bounds, the infinities too;
- if a function of a record raises or returns no number, it counts as NaN.

**Guarantee.** No record changes what another one counts as, and none causes an error or a warning.
`total` and `total_of_squares` are the mathematical sums of the floats that they are given.

Why it holds: a list is never turned into an array as a whole, because the type of the array would
depend on all records: one text would make texts of all numbers. A float is a whole number times a
power of two; whole numbers of one power are summed in int64, split so that a chunk cannot overflow,
and the powers meet in Python's integers.

A number that a caller computed from the records counts as itself, exactly; a value that is not a
finite number counts as 0 (`finite`). That is one fixed rule for all data, so no record decides
whether there is an answer. A sensitivity must hold for the numbers as they count.

What would break it: a function that depends on more than the record. callbacks.py calls it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet.errors import BadParameter
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.canonical import exact_ratio
from discreet.noise.scales import Number, is_many

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Function = Callable[[Any], Any]

_CHUNK = 1 << 20
_DEEPEST = 8  # a table in a table in a table …
_SMALL = 1 << 62
_LEAST = 1126  # the last bit of the smallest float is 2**-1126 when 53 bits are taken of each


def rows(records: Any) -> list[Any]:
    """The records, one by one."""
    if isinstance(records, np.ma.MaskedArray):
        return list(np.ma.filled(records.astype(object), None))
    if hasattr(records, "__array__"):
        array = np.asarray(records)
        if array.ndim:
            return array.tolist() if array.ndim == 1 and array.dtype.kind in "biufSU" else list(array)
    elif isinstance(records, Sequence) and not isinstance(records, str | bytes):
        return list(records)
    raise BadParameter(
        "DP104",
        f"records must be a list or an array, not {type(records).__name__}.",
        why="the query is computed for each record by itself.",
        fix="pass [record, record, …] or a one-dimensional array",
    )


def results(function: Function, records: Any) -> list[Any]:
    """The function of each record; None if it raises."""
    listed = rows(records)
    with callback_guard():
        return [call_quietly(function, record) for record in listed]


def numbers_within(records: Any, low: float, high: float, of: Function | None = None) -> Floats:
    """Each record, or the function `of` each record, as a number by the rules above."""
    values = _floats(records) if of is None else _each(results(of, records))
    middle = low + (high - low) / 2
    return np.clip(np.where(np.isnan(values), middle, values), low, high)


def number(value: Any) -> float:
    """The value as a float; an infinity if it is too large, NaN if it is not a real number."""
    result: float = value if type(value) is float else call_quietly(_float, value, instead=math.nan)
    return result


def finite(value: Any) -> Number:
    """The exact value of a number; 0 if it is not a finite real number. True counts as 1."""
    if type(value) is int:
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    ratio = exact_ratio(value)
    if ratio is None or isinstance(ratio, float):
        return 0
    return ratio.numerator if ratio.denominator == 1 else ratio


def finite_numbers(values: Any) -> Any:
    """One number, or an array of numbers in the shape of the values, each as `finite` says.

    The shape and the declared type of an array are public: an array that is not declared to hold
    numbers is refused.
    """
    if isinstance(values, list | tuple):
        return _finite_list(values)
    if not is_many(values):
        return finite(values)
    masked = isinstance(values, np.ma.MaskedArray)
    array = np.ma.filled(values.astype(object), None) if masked else call_quietly(np.asarray, values)
    if array is None or not array.ndim:
        return finite(array)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "f" and np.can_cast(array.dtype, np.float64):
        return np.where(np.isfinite(array), array, 0).astype(np.float64)
    if array.dtype.kind in "bfO":
        return _finite_array(list(array.ravel()), array.shape)
    raise BadParameter(
        "DP104",
        "the values must be numbers, and this array is declared to hold another type.",
        why="noise is added to numbers.",
        fix="pass an array of numbers, such as values.astype(float)",
    )


def _finite_list(values: Any, depth: int = 0) -> Any:
    """A list of lists of one length is a table; any other list is a row."""
    nested = [value.tolist() if type(value) is np.ndarray else value for value in values]
    widths = {len(value) if type(value) in (list, tuple) else -1 for value in nested}
    if len(widths) == 1 and min(widths) >= 0 and depth < _DEEPEST:
        parts = [_finite_list(value, depth + 1) for value in nested]
        if len({part.shape for part in parts}) == 1:
            return np.stack(parts)
    return _finite_array(nested, (len(nested),))


def _finite_array(values: list[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The elements as exact numbers; float64 or int64 arrays if all are floats or small integers."""
    kinds = set(map(type, values))
    if kinds <= {float, np.float64}:
        floats = np.array(values, np.float64)
        return np.where(np.isfinite(floats), floats, 0.0).reshape(shape)
    if kinds == {int} and -_SMALL < min(values) <= max(values) < _SMALL:
        return np.array(values, np.int64).reshape(shape)
    with callback_guard():
        exact = [finite(value) for value in values]
    return np.fromiter(exact, object, len(exact)).reshape(shape)


def is_true(value: Any) -> bool:
    """Whether a condition holds: it is True, or a number other than zero."""
    as_number = number(value)
    return not math.isnan(as_number) and as_number != 0


def total(values: Floats) -> Fraction:
    """Σ x, exactly."""
    return _weighted_sum(values, lambda m: [(m >> 27, 27), (m & (1 << 27) - 1, 0)], power=1)


def total_of_squares(values: Floats) -> Fraction:
    """Σ x², exactly."""
    return _weighted_sum(values, _squares, power=2)


def _squares(m: Integers) -> list[tuple[Integers, int]]:
    """m² as limbs below 2**38 each: m = a 2**36 + b 2**18 + c with |a| <= 2**17 and b, c < 2**18."""
    a, b, c = m >> 36, (m >> 18) & (1 << 18) - 1, m & (1 << 18) - 1
    return [(a * a, 72), (2 * a * b, 54), (2 * a * c + b * b, 36), (2 * b * c, 18), (c * c, 0)]


def _weighted_sum(
    values: Floats, limbs: Callable[[Integers], list[tuple[Integers, int]]], power: int
) -> Fraction:
    """Σ limb · 2**shift · 2**(power · exponent); limbs are below 2**38, so that a chunk's sum is
    below 2**58.
    """
    whole = 0
    for start in range(0, values.size, _CHUNK):
        fractions, exponents = np.frexp(values[start : start + _CHUNK])
        order = np.argsort(exponents.astype(np.int16), kind="stable")
        exponents = exponents[order]
        firsts = np.flatnonzero(np.diff(exponents, prepend=exponents[0] - 1))
        for limb, shift in limbs(np.ldexp(fractions[order], 53).astype(np.int64)):
            sums = np.add.reduceat(limb, firsts).tolist()
            for part, exponent in zip(sums, exponents[firsts].tolist(), strict=True):
                whole += part << (shift + power * (exponent - 53 + _LEAST))
    return Fraction(whole, 1 << (power * _LEAST))


def _floats(records: Any) -> Floats:
    if hasattr(records, "__array__") and not isinstance(records, np.ma.MaskedArray):
        array = np.asarray(records)
        if array.ndim > 1:
            raise BadParameter(
                "DP104",
                f"records must be one-dimensional, not {array.ndim}-dimensional.",
                why="each record must be one number.",
                fix="pass one column, or name the number of a record: of=lambda row: row[0]",
            )
        if array.ndim and array.dtype.kind in "biuf":
            with np.errstate(all="ignore"):
                return array.astype(np.float64)
    return _each(rows(records))


def _float(value: Any) -> float:
    if not isinstance(value, float | int) and not isinstance(value, numbers.Real | Decimal | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if cast(Any, value) > 0 else -math.inf


def _each(values: Iterable[Any]) -> Floats:
    with callback_guard():
        return np.array([number(value) for value in values], np.float64)
