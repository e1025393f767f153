# SPDX-License-Identifier: Apache-2.0
"""Reads edge lists: arrays, lists, matrices, networks, files and tables become two columns of
labels.

| source | its two columns |
|---|---|
| numpy array | its two columns |
| list or tuple of pairs | first and second; a row that is not a pair is dropped |
| scipy.sparse matrix | rows and columns of the entries that are not zero |
| networkx graph | the ends of its edges |
| path of a .csv, .tsv or other text file | the first two fields, without quotes |
| path of a .parquet file | the first two columns (needs pyarrow) |
| pyarrow table, DuckDB relation | the first two columns |

Fields of a .csv file end at commas, of a .tsv file at tabs, of other text files at blanks.

**Guarantee.** A source is refused by its type or shape alone. No row and no label raises: a label
that cannot be read is an unknown node.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.errors import BadParameter, MissingExtra
from discreet.mechanisms.callbacks import call_quietly, callback_guard

Integers = npt.NDArray[np.int64]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}  # other text files: blanks
_MAX_DIGITS = 18  # of a node number in a text


@dataclass(frozen=True)
class EdgeSource:
    """Two columns of labels, the nodes if the source knows them, and whether all labels are text."""

    ends: tuple[Any, Any]
    nodes: Any = None
    is_text: bool = False


def source_of(edges: Any) -> EdgeSource:
    """The columns of an edge list; see the table above."""
    if isinstance(edges, str | os.PathLike):
        return _file(Path(edges))
    if isinstance(edges, np.ndarray):
        return EdgeSource(_two_columns(edges))
    if sparse.issparse(edges):
        return _matrix(edges)
    if hasattr(edges, "adjacency") and callable(getattr(edges, "edges", None)):  # networkx
        return EdgeSource(_pairs(edges.edges()), sorted(edges.nodes(), key=_by_label))
    # DuckDB; its other exports refuse some dates and intervals
    if hasattr(edges, "fetch_arrow_table"):
        to_arrow = getattr(edges, "to_arrow_table", edges.fetch_arrow_table)
        return source_of(to_arrow())
    if hasattr(edges, "itercolumns"):  # pyarrow
        return EdgeSource(_first_two([_arrow_labels(column) for column in list(edges.itercolumns())[:2]]))
    if isinstance(edges, list | tuple | set | frozenset):
        return EdgeSource(_pairs(edges))
    raise _no_edge_list_error()


class NodeIndex:
    """The number of each node by its label."""

    def __init__(self, labels: Sequence[Hashable], *, as_text: bool) -> None:
        self._count = len(labels)
        self._numbered = isinstance(labels, range)
        self._as_text = as_text
        keys = (str(label) if as_text else label for label in ([] if self._numbered else labels))
        self._known = {key: number for number, key in enumerate(keys)}
        if not self._numbered and len(self._known) < self._count:
            raise BadParameter(
                "DP107",
                "two labels of nodes are the same text.",
                why="in a file every label is text, so the two nodes could not be told apart.",
                fix="give them different labels",
            )

    def of(self, column: Any) -> Integers:
        """The node number of every label in a column; -1 for an unknown node."""
        if self._numbered and isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
            with np.errstate(invalid="ignore"):
                fits = (column >= 0) & (column < self._count) & (column == np.floor(column))
                return np.where(fits, np.where(fits, column, 0).astype(np.int64), -1)
        labels = list(column.astype(object)) if isinstance(column, np.ndarray) else column
        # A label that cannot be hashed or compared is an unknown node.
        with callback_guard():
            numbers = [call_quietly(self._number, label, instead=-1) for label in labels]
        return np.array(numbers, np.int64)

    def _number(self, label: Any) -> int:
        # Python would take True for 1.
        if isinstance(label, bool):
            return -1
        if not self._numbered:
            return self._known.get(label, -1)
        if self._as_text:
            is_number = label.isascii() and label.isdecimal() and len(label) <= _MAX_DIGITS
            label = int(label) if is_number else -1
        if not isinstance(label, int | np.integer | float):
            return -1
        return int(label) if 0 <= label < self._count and label == int(label) else -1


def _file(path: Path) -> EdgeSource:
    is_table = path.suffix == ".parquet"
    read = _parquet_reader() if is_table else _fields
    # Only regular files are opened: a pipe could block for ever.
    content = call_quietly(read, path) if call_quietly(path.is_file) else None
    # The reader's own message could quote a row.
    if content is None:
        raise _unreadable_file_error()
    return source_of(content) if is_table else EdgeSource(_pairs(content), is_text=True)


def _fields(path: Path) -> list[tuple[str, str]]:
    separator = _SEPARATORS.get(path.suffix)
    with path.open(encoding="utf-8", errors="replace") as lines:
        rows = [line.split(separator)[:2] for line in lines]
    return [(_field(row[0]), _field(row[1])) for row in rows if len(row) == 2]


def _field(text: str) -> str:
    return text.strip().strip("\"'").strip()


def _parquet_reader() -> Callable[[Path], Any]:
    """Reads text as binary: pyarrow refuses a whole file for one invalid text."""
    pyarrow, parquet = _import_extra("pyarrow"), _import_extra("pyarrow.parquet")
    return lambda path: parquet.ParquetFile(path, binary_type=pyarrow.large_binary()).read()


def _arrow_labels(column: Any) -> Any:
    """The labels of a pyarrow column; None for a text that is not UTF-8 or a date out of range."""
    types = _import_extra("pyarrow").types
    if types.is_dictionary(column.type):
        return _arrow_labels(column.cast(column.type.value_type))
    if types.is_integer(column.type):
        return column.to_pylist() if column.null_count else column.to_numpy()
    if types.is_string(column.type) or types.is_large_string(column.type):
        labels = column.cast(_import_extra("pyarrow").large_binary()).to_pylist()
        read: Any = _text
    else:
        labels, read = column, _as_python
    with callback_guard():
        return [call_quietly(read, label) for label in labels]


def _text(label: bytes | None) -> str | None:
    return None if label is None else label.decode()


def _as_python(label: Any) -> Any:
    return label.as_py()


def _import_extra(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        why = "the small core reads arrays and text files."
        raise MissingExtra.of(name, "a Parquet file or a DuckDB relation", why=why) from None


def _matrix(matrix: Any) -> EdgeSource:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise _no_edge_list_error()
    entries = matrix.tocoo(copy=True)
    # A warning would reveal an entry.
    with np.errstate(all="ignore"):
        entries.sum_duplicates()
        joined = entries.data != 0
    return EdgeSource(
        (entries.row[joined].astype(np.int64), entries.col[joined].astype(np.int64)), matrix.shape[0]
    )


def _two_columns(array: npt.NDArray[Any]) -> tuple[Any, Any]:
    if array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iufOUS":
        return array[:, 0], array[:, 1]
    if array.size == 0 and array.dtype.kind in "iufOUS":
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    raise _no_edge_list_error()


def _first_two(columns: Sequence[Any]) -> tuple[Any, Any]:
    if len(columns) < 2:
        raise _no_edge_list_error()
    return columns[0], columns[1]


def _pairs(rows: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    with callback_guard():
        pairs_or_none = [call_quietly(_pair, row) for row in rows]
    pairs = [pair for pair in pairs_or_none if pair is not None]
    return [first for first, _ in pairs], [second for _, second in pairs]


def _pair(row: Any) -> tuple[Any, Any] | None:
    first, second = row
    return (first, second) if isinstance(row, tuple | list | np.ndarray) else None


def _by_label(label: Any) -> tuple[str, Any]:
    """A sort key that depends on the label alone, not on the other nodes."""
    return (type(label).__name__, label if isinstance(label, int | float | str) else repr(label))


def _unreadable_file_error() -> BadParameter:
    return BadParameter(
        "DP104",
        "edges is a path, and no edge list can be read from that file.",
        why="the file does not exist, cannot be opened, or does not have the format of its ending.",
        fix="Graph('edges.csv', nodes=1_000), with the path of a text or Parquet file",
    )


def _no_edge_list_error() -> BadParameter:
    return BadParameter(
        "DP104",
        "edges must be an edge list: two columns of nodes, a square matrix, a network, or the path of a file.",
        why="every edge is a pair of nodes.",
        fix="Graph([(0, 1), (1, 2)], nodes=3)",
    )
