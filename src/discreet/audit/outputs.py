# SPDX-License-Identifier: Apache-2.0
"""Outputs of any kind as columns: a number, a vector, a category, a refusal, a table, an exception.

Each output is taken apart into named cells. A cell holds a finite number, or a word for whatever
else it is: a text, "nothing", "refused", "nan", "absent". Types, lengths and the order of keys are
cells too, because an attacker sees them.

**Guarantee.** What becomes of an output depends on that output alone, so a rule that was learned
from some outputs means the same on others.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from discreet.audit.bounds import Array
from discreet.audit.draws import Chunk, ExceptionOutcome
from discreet.mechanisms.mechanism import Refusal, Release

__all__ = ["OutputColumn", "columns_of"]

Codes = npt.NDArray[np.int32]
Cell = float | str

#: Whole numbers beyond this lose digits as floats.
_EXACT = 2.0**53
_LOW = 2**20


@dataclass(frozen=True, eq=False)
class OutputColumn:
    """One cell of every output: `numbers` where `codes` is 0, else the word `words[code]`."""

    name: str
    numbers: Array
    codes: Codes
    words: tuple[str, ...] = ("a number",)

    def __len__(self) -> int:
        return int(self.codes.size)

    def at(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> OutputColumn:
        """The same cell of some of the outputs."""
        return OutputColumn(self.name, self.numbers[rows], self.codes[rows], self.words)

    @property
    def constant(self) -> bool:
        """Whether it says nothing."""
        first = self.codes[0]
        if (self.codes != first).any():
            return False
        return bool(first > 0 or (self.numbers == self.numbers[0]).all())

    @staticmethod
    def of_numbers(name: str, values: npt.ArrayLike) -> OutputColumn:
        """Numbers as they come; what is not finite becomes a word."""
        values = np.asarray(values, dtype=float)
        codes = np.select([np.isnan(values), values == np.inf, values == -np.inf], [1, 2, 3], 0)
        finite = np.where(codes == 0, values, np.nan)
        return OutputColumn(name, finite, codes.astype(np.int32), ("a number", "nan", "inf", "-inf"))


def columns_of(chunks: Sequence[Chunk]) -> list[OutputColumn]:
    """The cells of all outputs, which come in chunks; those that never vary are left out."""
    arrays = [chunk for chunk in chunks if isinstance(chunk, np.ndarray) and chunk.dtype.kind in "biuf"]
    if len(arrays) == len(chunks):
        columns = _of_array(np.concatenate(arrays))
    else:
        columns = _of_objects([output for chunk in chunks for output in chunk])
    return [column for column in columns if not column.constant]


def _of_array(outputs: npt.NDArray[np.generic]) -> list[OutputColumn]:
    """The fast way, for outputs that are all numbers or vectors of one length."""
    flat = outputs.reshape(len(outputs), -1)
    names = ["value"] if outputs.ndim == 1 else [f"value[{index}]" for index in range(flat.shape[1])]
    columns = [OutputColumn.of_numbers(name, flat[:, index]) for index, name in enumerate(names)]
    if outputs.dtype.kind in "iu" and np.abs(flat.astype(float)).max(initial=0.0) > _EXACT:
        columns += [
            OutputColumn.of_numbers(f"{name} mod 2^20", flat[:, index] % _LOW)
            for index, name in enumerate(names)
        ]
    return columns


def _of_objects(outputs: Sequence[object]) -> list[OutputColumn]:
    if len(kinds := set(map(_kind, outputs))) == 1 and kinds != {None}:
        stacked = np.array(outputs)
        # Whole numbers beyond 64 bits become objects.
        if stacked.dtype.kind in "biuf":
            return _of_array(stacked)
    table: dict[str, tuple[list[int], list[Cell]]] = {}
    for row, output in enumerate(outputs):
        for name, cell in itertools.chain([("type", type(output).__name__)], _cells("value", output)):
            rows, cells = table.setdefault(name, ([], []))
            rows.append(row)
            cells.append(cell)
    return [_column(name, rows, cells, len(outputs)) for name, (rows, cells) in table.items()]


def _kind(output: object) -> object:
    """What outputs must have in common to be rows of one array; None where they never are."""
    if isinstance(output, np.ndarray):
        return output.dtype, output.shape
    return type(output) if type(output) in {float, int, bool} else None


def _column(name: str, rows: list[int], cells: list[Cell], count: int) -> OutputColumn:
    vocabulary = {"a number": 0, "absent": 1}
    values = np.full(count, np.nan)
    codes = np.ones(count, np.int32)
    plain = [isinstance(cell, float) and math.isfinite(cell) for cell in cells]
    where, is_number = np.array(rows), np.array(plain)
    values[where[is_number]] = [cell for cell, number in zip(cells, plain, strict=True) if number]
    codes[where[is_number]] = 0
    others = [str(cell) for cell, number in zip(cells, plain, strict=True) if not number]
    codes[where[~is_number]] = [vocabulary.setdefault(word, len(vocabulary)) for word in others]
    return OutputColumn(name, values, codes, tuple(vocabulary))


def _cells(name: str, output: object) -> Iterator[tuple[str, Cell]]:
    """The named cells of one output."""
    if isinstance(output, numbers.Real | Decimal | np.bool_):
        yield from _number(name, output)
    elif isinstance(output, Release):
        yield from _cells(name, output.value)
    elif output is None or isinstance(output, str | bytes | Refusal | ExceptionOutcome):
        yield name, _word(output)
    elif isinstance(output, np.ndarray):
        yield f"shape of {name}", f"{output.dtype} {output.shape}"
        yield from _items(name, output.ravel().tolist())
    elif isinstance(output, Mapping):
        yield f"keys of {name}", ", ".join(repr(key) for key in output)
        for key, inner in output.items():
            yield from _cells(f"{name}[{key!r}]", inner)
    elif isinstance(output, AbstractSet):
        yield from ((f"{item!r} in {name}", 1.0) for item in output)
    elif isinstance(output, Sequence):
        yield f"length of {name}", float(len(output))
        yield from _items(name, output)
    elif hasattr(output, "to_dict"):
        # This is a data frame.
        yield from _cells(name, output.to_dict())
    else:
        yield name, f"{type(output).__name__} {output!r}"


def _items(name: str, items: Sequence[object]) -> Iterator[tuple[str, Cell]]:
    for index, inner in enumerate(items):
        yield from _cells(f"{name}[{index}]", inner)


def _number(name: str, value: numbers.Real | Decimal | np.bool_) -> Iterator[tuple[str, Cell]]:
    try:
        number = float(value)
    except OverflowError:
        number = math.copysign(np.finfo(float).max, value)
    yield name, number
    if abs(number) > _EXACT and isinstance(value, numbers.Integral):
        yield f"{name} mod 2^20", float(int(value) % _LOW)


def _word(output: object) -> str:
    if output is None:
        return "nothing"
    if isinstance(output, Refusal):
        return f"refused: {output.reason}"
    if isinstance(output, ExceptionOutcome):
        return f"raised {output.kind}"
    return repr(output)
