# SPDX-License-Identifier: Apache-2.0
r"""Reads text files line by line: every line is a record.

**Guarantee.** A row depends only on the bytes of its line and on the number of columns. Changing,
adding or removing a line changes, adds or removes that row alone. An open quote ends with its line.

    ends in \n or \r\n          every \n ends a line, also one between quotes
    empty                     no record
    well formed               as many cells as columns. A cell holds no quote, or begins and ends with one; between them a quote is
                              written twice, and commas (tabs in .tsv) are text
    anything else             a record whose cells are all NULL
    a cell                    NULL if it is empty or not UTF-8

Why. In RFC 4180 a quoted cell may contain line breaks. Whether a line is inside quotes then depends
on all quotes above it, and one record could swallow all records below it. No rule that allows line
breaks in cells is local, so they are not allowed. A record written over several lines has an odd
number of quotes in its first and in its last line, so both are malformed. It cannot pass for
records of other people, unless a line in its middle looks like one.

How. The positions of quotes, delimiters and line ends are computed for blocks of lines. A delimiter
separates two cells if the number of quotes between the start of its line and itself is even.
Nothing is carried from line to line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from discreet.tables.data.readers.sound import library, sanitize_column

__all__ = ["read", "rows"]

#: The size of a block in bytes; a longer line is a block of its own.
_BLOCK: Final = 1 << 22
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34

Places = NDArray[np.int64]


def read(path: Path, delimiter: str, names: list[str]) -> Any:
    """The records below the first line of a file, as an Arrow table of texts."""
    pa = library("pyarrow")
    kinds = pa.schema([(name, pa.large_string()) for name in names])
    tables = [rows(block, delimiter, names) for block in _blocks(path)]
    return pa.concat_tables([kinds.empty_table(), *tables])


def rows(block: bytes, delimiter: str, names: list[str]) -> Any:
    """The records of a block of whole lines."""
    pa = library("pyarrow")
    lines = _Lines.of(np.frombuffer(block, np.uint8), ord(delimiter))
    starts, stops, good = lines.cells(len(names))
    columns = []
    for place in range(len(names)):
        cells = _gather(lines.data, starts[:, place], stops[:, place], good)
        column = pa.chunked_array([library("pyarrow.compute").replace_substring(cells, b'""', b'"')])
        columns.append(sanitize_column(column, pa.large_string()))
    return pa.table(columns, names=names)


def _blocks(path: Path) -> Iterator[bytes]:
    """The bytes below the first line, in blocks of whole lines."""
    with path.open("rb") as file:
        file.readline()
        rest: list[bytes] = []
        while block := file.read(_BLOCK):
            whole, newline, after = block.rpartition(b"\n")
            if newline:
                yield b"".join([*rest, whole, newline])
                rest = [after]
            else:
                rest.append(block)
        yield b"".join(rest)


@dataclass(frozen=True)
class _Lines:
    """A block of bytes with the positions of its lines, quotes and delimiters."""

    data: NDArray[np.uint8]
    starts: Places
    stops: Places
    quotes: Places
    delimiters: Places
    delimiter: int

    @classmethod
    def of(cls, data: NDArray[np.uint8], delimiter: int) -> _Lines:
        ends = np.flatnonzero(data == _NEWLINE)
        if data.size and data[-1] != _NEWLINE:
            ends = np.append(ends, data.size)
        starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: ends.size]
        is_return = (ends > starts) & (data[np.maximum(ends - 1, 0)] == _RETURN)
        stops = ends - is_return
        some = stops > starts
        quotes, delimiters = (np.flatnonzero(data == sign) for sign in (_QUOTE, delimiter))
        return cls(data, starts[some], stops[some], quotes, delimiters, delimiter)

    def cells(self, columns: int) -> tuple[Places, Places, NDArray[np.bool_]]:
        """The starts and stops of the cells of each line, and whether it is well formed; cells of
        malformed lines are empty.
        """
        separators, count = self._separators()
        good = (count == columns - 1) & self._is_well_quoted()
        inner = separators[np.repeat(good, count)].reshape(int(good.sum()), columns - 1)
        starts = np.zeros((good.size, columns), np.int64)
        stops = np.zeros((good.size, columns), np.int64)
        starts[good] = np.hstack([self.starts[good, None], inner + 1])
        stops[good] = np.hstack([inner, self.stops[good, None]])
        quoted = stops > starts
        quoted[quoted] = self.data[starts[quoted]] == _QUOTE
        return starts + quoted, stops - quoted, good

    def _separators(self) -> tuple[Places, Places]:
        """The delimiters outside quotes, and how many of them each line has."""
        line = np.searchsorted(self.starts, self.delimiters, "right") - 1
        before = np.searchsorted(self.quotes, self.delimiters) - self._first_quotes()[line]
        outside = before % 2 == 0
        return self.delimiters[outside], np.bincount(line[outside], minlength=self.starts.size)

    def _is_well_quoted(self) -> NDArray[np.bool_]:
        """Whether each line has an even number of quotes, and each quote opens, closes or is
        doubled.
        """
        line = np.searchsorted(self.starts, self.quotes, "right") - 1
        opens = (np.arange(self.quotes.size) - self._first_quotes()[line]) % 2 == 0
        # The neighbour of an opening quote is before it, that of a closing quote after it.
        at_edge = np.where(opens, self.quotes == self.starts[line], self.quotes + 1 == self.stops[line])
        beside = self.data[np.clip(np.where(opens, self.quotes - 1, self.quotes + 1), 0, self.data.size - 1)]
        stray = ~(at_edge | (beside == _QUOTE) | (beside == self.delimiter))
        count, strays = (np.bincount(part, minlength=self.starts.size) for part in (line, line[stray]))
        return np.asarray((count % 2 == 0) & (strays == 0), np.bool_)

    def _first_quotes(self) -> Places:
        """How many quotes there are above each line."""
        return np.searchsorted(self.quotes, self.starts)


def _gather(data: NDArray[np.uint8], starts: Places, stops: Places, good: NDArray[np.bool_]) -> Any:
    """Cells as bytes; NULL where they are empty or their line is not well formed."""
    pa = library("pyarrow")
    sizes = np.where(good, stops - starts, 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    known = np.packbits(sizes > 0, bitorder="little")
    buffers = [pa.py_buffer(part.tobytes()) for part in (known, offsets, data[places])]
    return pa.Array.from_buffers(pa.large_binary(), sizes.size, buffers)
