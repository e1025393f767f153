# SPDX-License-Identifier: Apache-2.0
"""The bits of a floating-point number as cells: where leaks of float noise are.

A float that is the sum of a value and float noise cannot be every float: its last bits, and those
of its difference to the value, depend on the value (Mironov 2012; Jin, McMurtry, Rubinstein,
Ohrimenko 2022). The cells here are

    lowest bit       the exponent of the last bit that is set: the 2-adic valuation
    exponent         of the first bit
    trailing zeros   of the significand
    low bits         the last eight of the significand, and of the number rounded to 32 bits
    sign bit         which zero has too
    … of v - x       lowest bit and exponent of the exact difference to each input, and whether it is a float at all

For noise on a grid that does not depend on the data they say no more than the number itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discreet.audit.bounds import Array
from discreet.audit.outputs import OutputColumn

__all__ = ["bit_columns"]

#: These stand for words: zero has no lowest bit, and some differences are no floats.
_ZERO, _INEXACT = 2000.0, 2001.0


def bit_columns(column: OutputColumn, inputs: tuple[object, object]) -> Iterator[OutputColumn]:
    """The bit cells of one cell."""
    values = np.where(column.codes == 0, column.numbers, 0.0)
    for name, cell in _cells(values):
        yield _like(column, f"{name} of {column.name}", cell)
    for letter, data in zip(("x", "x'"), inputs, strict=True):
        for index, value in enumerate(_numbers_in(data)):
            label = letter if index == 0 else f"{letter}[{index}]"
            for name, cell in _offset_cells(values, value):
                yield _like(column, f"{name} of ({column.name} - {label})", cell)


def lowest_bit(values: Array) -> Array:
    """The exponent of the last bit that is set; 2000 for zero, which has none.

    >>> lowest_bit(np.array([1.0, 0.75, 6.0, 0.0])).tolist()
    [0.0, -2.0, 1.0, 2000.0]
    """
    fraction, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    last = np.log2(np.maximum(whole & -whole, 1).astype(float))
    return np.where(whole == 0, _ZERO, last + exponent - 53)


def _cells(values: Array) -> Iterator[tuple[str, Array]]:
    lowest, exponent = lowest_bit(values), _exponent(values)
    yield "lowest bit", lowest
    yield "exponent", exponent
    yield "trailing zeros", np.where(values == 0, _ZERO, lowest - exponent + 53)
    yield "low bits", (np.ascontiguousarray(values).view(np.uint64) & np.uint64(255)).astype(float)
    yield "sign bit", np.signbit(values).astype(float)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    yield "low 32-bit bits", (single.view(np.uint32) & np.uint32(255)).astype(float)


def _offset_cells(values: Array, value: float) -> Iterator[tuple[str, Array]]:
    """Of the difference to an input, and a word for a difference that is no float (Knuth's exact
    subtraction).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        offset = values - value
        remainder = offset - values
        error = (values - (offset - remainder)) - (value + remainder)
    exact = (error == 0) & np.isfinite(offset)
    offset = np.where(np.isfinite(offset), offset, 0.0)
    yield "lowest bit", np.where(exact, lowest_bit(offset), _INEXACT)
    yield "exponent", _exponent(offset)


def _exponent(values: Array) -> Array:
    return np.where(values == 0, _ZERO, np.frexp(values)[1]).astype(float)


def _numbers_in(data: object, count: int = 4) -> list[float]:
    """The first few numbers of an input, if it has any."""
    try:
        flat = np.asarray(data, dtype=float).ravel()
    except (TypeError, ValueError):
        return []
    return [float(value) for value in flat[:count] if np.isfinite(value)]


def _like(column: OutputColumn, name: str, cell: Array) -> OutputColumn:
    """A cell with the words of the number that it is made of, and two more."""
    words = (*column.words, "that of zero", "that of no float")
    codes = np.select(
        [column.codes > 0, cell == _ZERO, cell == _INEXACT], [column.codes, len(words) - 2, len(words) - 1]
    )
    return OutputColumn(name, np.where(codes == 0, cell, np.nan), codes.astype(np.int32), words)
