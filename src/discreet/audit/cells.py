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

from discreet.audit.bits import bit_columns
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
