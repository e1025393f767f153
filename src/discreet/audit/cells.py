# SPDX-License-Identifier: Apache-2.0
"""From the outputs of both inputs to cells, and from cells to the scores that are tried.

Besides the cells of the outputs there are their bits, the differences of pairs of numbers (equal
noise cancels), and, where few different outputs occur, the output as a whole. What is left out is
decided on the runs that learn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.audit.bounds import Array
from discreet.audit.draws import Chunk
from discreet.audit.outputs import OutputColumn, columns_of
from discreet.audit.scores import BareScore, CrossScore, JointScore, Score, ScoreHistogram, number_words

__all__ = ["Sample", "candidates", "sample_of"]

Rows = npt.NDArray[np.int64]

#: The numbers of cells of which differences, pairs, bits and bare numbers are taken.
_PAIRED, _CROSSED, _BITS, _BARE = 6, 4, 6, 12
#: Histograms and numbers that the joint score takes.
_TELLING, _LINEAR = 24, 64
#: An output of so few cells is one as a whole, if it occurs so often on average.
_TOGETHER, _COMMON = 32, 20


@dataclass(frozen=True, eq=False)
class Sample:
    """The cells of all runs on both inputs: the first half of the rows belongs to x."""

    columns: tuple[OutputColumn, ...]
    trials: int

    def at(self, part: slice) -> tuple[dict[str, OutputColumn], npt.NDArray[np.bool_]]:
        """The cells of a part of the runs on each input, and which of them are on x."""
        rows = rows_of(part, self.trials)
        return {column.name: column.at(rows) for column in self.columns}, rows < self.trials


def rows_of(part: slice, trials: int) -> Rows:
    """The rows of a part of the runs on x, then of those on the neighbour."""
    on_x = np.arange(trials)[part]
    return np.concatenate([on_x, on_x + trials])


def sample_of(
    outputs: tuple[list[Chunk], list[Chunk]],
    inputs: tuple[object, object],
    trials: int,
    learn: slice,
    look_at: str,
) -> Sample:
    """All cells that are looked at."""
    plain = columns_of([*outputs[0], *outputs[1]])
    rows = rows_of(learn, trials)
    numeric = [column for column in plain if (column.codes[rows] == 0).all()]
    columns: list[OutputColumn] = (
        [] if look_at == "bits" else [*plain, *_derived_columns(plain, numeric, rows)]
    )
    if look_at != "values":
        real = [column for column in numeric if _has_fractions(column.numbers[rows])][:_BITS]
        columns += [cell for column in real for cell in bit_columns(column, inputs)]
    return Sample(tuple(columns), trials)


def candidates(columns: dict[str, OutputColumn], first: npt.NDArray[np.bool_]) -> list[Score]:
    """The scores that are tried, learned from these runs."""
    alive = [column for column in columns.values() if not column.constant]
    if not alive:
        return []
    histograms = [ScoreHistogram.fit(column, first) for column in alive]
    gains = {histogram.name: _gain(histogram, columns, first) for histogram in histograms}
    telling = sorted(histograms, key=lambda histogram: -gains[histogram.name])[:_TELLING]
    numeric = [column for column in alive if (column.codes == 0).all()]
    numeric = sorted(numeric, key=lambda column: -gains[column.name])
    crosses = list(_crosses(alive, first))
    scores: list[Score] = [*telling, *crosses]
    scores += [score for column in numeric[:_BARE] for score in _bare(column, first)]
    if len(alive) > 1:
        names = [column.name for column in numeric[:_LINEAR]]
        scores.append(JointScore.fit(columns, [*telling, *crosses], names, first))
    return scores


def _gain(histogram: ScoreHistogram, columns: dict[str, OutputColumn], first: npt.NDArray[np.bool_]) -> float:
    scores = histogram.of(columns)
    return float(scores[first].mean() - scores[~first].mean())


def _crosses(alive: list[OutputColumn], first: npt.NDArray[np.bool_]) -> Iterator[CrossScore]:
    plain = [column for column in alive if column.name.startswith("value")][:_CROSSED]
    for first_column, second_column in itertools.combinations(plain, 2):
        yield CrossScore.fit(first_column, second_column, first)


def _bare(column: OutputColumn, first: npt.NDArray[np.bool_]) -> Iterator[BareScore]:
    middles = [float(np.median(column.numbers[side])) for side in (first, ~first)]
    yield BareScore(column.name, None, 1.0 if middles[0] >= middles[1] else -1.0)
    for middle in dict.fromkeys(middles):
        far = np.abs(column.numbers - middle)
        yield BareScore(column.name, middle, 1.0 if far[first].mean() >= far[~first].mean() else -1.0)


def _derived_columns(
    plain: list[OutputColumn], numeric: list[OutputColumn], rows: Rows
) -> Iterator[OutputColumn]:
    if len(numeric) <= _PAIRED:
        for first_column, second_column in itertools.combinations(numeric, 2):
            with np.errstate(over="ignore"):
                yield OutputColumn.of_numbers(
                    f"{first_column.name} - {second_column.name}",
                    first_column.numbers - second_column.numbers,
                )
    if 1 < len(plain) <= _TOGETHER:
        yield from _whole(plain, rows)


def _whole(plain: list[OutputColumn], rows: Rows) -> Iterator[OutputColumn]:
    """The output as a whole, if the runs that learn show few different ones."""
    if np.unique(_keys([column.at(rows) for column in plain])).size > rows.size / _COMMON:
        return
    keys = _keys(plain)
    _, where, codes = np.unique(keys, return_index=True, return_inverse=True)
    words = tuple(_text(plain, int(row)) for row in where)
    yield OutputColumn("output", np.full(keys.size, np.nan), codes.astype(np.int32) + 1, ("a number", *words))


def _keys(plain: list[OutputColumn]) -> npt.NDArray[np.void]:
    """One opaque value for each output, equal where all its cells are."""
    parts = [part for column in plain for part in (np.nan_to_num(column.numbers), column.codes)]
    table = np.ascontiguousarray(np.column_stack(parts))
    return table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()


def _text(plain: list[OutputColumn], row: int) -> str:
    cells = [
        number_words(column.numbers[row]) if column.codes[row] == 0 else column.words[column.codes[row]]
        for column in plain
    ]
    return f"({', '.join(cells)})"


def _has_fractions(numbers: npt.NDArray[np.float64]) -> bool:
    return bool((numbers != np.rint(numbers)).any() or np.abs(numbers).max(initial=0.0) > 2.0**53)


#: These stand for words: zero has no lowest bit, and some differences are no floats.
_ZERO, _INEXACT = 2000.0, 2001.0


def bit_columns(column: OutputColumn, inputs: tuple[object, object]) -> Iterator[OutputColumn]:
    """The bits of a floating-point number as cells: where leaks of float noise are.

    A float that is the sum of a value and float noise cannot be every float: its last bits, and
    those of its difference to the value, depend on the value (Mironov 2012; Jin, McMurtry,
    Rubinstein, Ohrimenko 2022). For noise on a grid that does not depend on the data these cells
    say no more than the number itself.

        lowest bit       the exponent of the last bit that is set: the 2-adic valuation
        exponent         of the first bit
        trailing zeros   of the significand
        low bits         the last eight of the significand, and of the number rounded to 32 bits
        sign bit         which zero has too
        … of v - x       lowest bit and exponent of the exact difference to each input, and whether
                         it is a float at all
    """
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
