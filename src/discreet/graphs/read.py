# SPDX-License-Identifier: Apache-2.0
"""Edge lists from wherever they lie: arrays, lists, matrices, networks, files and tables, as two columns of labels.

| what | its two columns |
|---|---|
| numpy array | its two columns |
| list or tuple of pairs | first and second; a row that is no pair is dropped |
| scipy.sparse matrix | rows and columns of the entries that are not zero |
| networkx graph | the ends of its edges |
| path of a .csv, .tsv or other text file | the first two fields, between commas, tabs or blanks; quotes are taken off |
| path of a .parquet file | the first two columns (needs pyarrow) |
| pyarrow table, DuckDB relation | the first two columns |

**Promise.** What is refused is refused by its type or shape alone. No row and no label raises: what cannot be
read names no node.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.errors import BadParameter, MissingExtra

Integers = npt.NDArray[np.int64]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}  # other text files: blanks
_MOST_DIGITS = 18  # of a number in a text: more would be no place


@dataclass(frozen=True)
class Source:
    """Two columns of labels of the same length; the nodes, if the source knows them; whether labels are text."""

    ends: tuple[Any, Any]
    nodes: Any = None
    is_text: bool = False


def source_of(edges: Any) -> Source:
    """The columns of an edge list; see the table above."""
    if isinstance(edges, str | os.PathLike):
        return _file(Path(edges))
    if isinstance(edges, np.ndarray):
        return Source(_two_columns(edges))
    if sparse.issparse(edges):
        return _matrix(edges)
    if hasattr(edges, "adjacency") and callable(getattr(edges, "edges", None)):  # networkx
        return Source(_pairs(edges.edges()), sorted(edges.nodes(), key=_by_label))
    if hasattr(edges, "fetchnumpy"):  # DuckDB
        columns = edges.fetchnumpy()
        return Source(_first_two([_filled(column) for column in columns.values()]))
    if hasattr(edges, "itercolumns"):  # pyarrow
        return Source(_first_two([column.to_pylist() for column in edges.itercolumns()]))
    if isinstance(edges, list | tuple | set | frozenset):
        return Source(_pairs(edges))
    raise _no_edge_list()


class Places:
    """Where labels stand among the nodes."""

    def __init__(self, labels: Sequence[Hashable], *, as_text: bool) -> None:
        self._count = len(labels)
        self._numbered = isinstance(labels, range)
        self._as_text = as_text
        keys = (str(label) if as_text else label for label in ([] if self._numbered else labels))
        self._known = {key: place for place, key in enumerate(keys)}
        if not self._numbered and len(self._known) < self._count:
            raise BadParameter(
                "DP107",
                "two nodes have labels that are the same text.",
                why="in a file every label is text, so they could not be told apart.",
                fix="give them different labels",
            )

    def of(self, column: Any) -> Integers:
        """The place of every label in a column; -1 for what names no node."""
        if self._numbered and isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
            with np.errstate(invalid="ignore"):
                fits = (column >= 0) & (column < self._count) & (column == np.floor(column))
                return np.where(fits, np.where(fits, column, 0).astype(np.int64), -1)
        labels = column.tolist() if isinstance(column, np.ndarray) else column
        return np.fromiter(map(self._place, labels), np.int64, len(labels))

    def _place(self, label: Any) -> int:
        if isinstance(label, bool):  # which Python takes for 0 or 1
            return -1
        if not self._numbered:
            try:
                return self._known.get(label, -1)
            except Exception:  # noqa: BLE001 - what cannot be hashed or compared names no node
                return -1
        if self._as_text:
            is_number = label.isascii() and label.isdecimal() and len(label) <= _MOST_DIGITS
            label = int(label) if is_number else -1
        if not isinstance(label, int | np.integer | float):
            return -1
        return int(label) if 0 <= label < self._count and label == int(label) else -1


def _file(path: Path) -> Source:
    is_table = path.suffix == ".parquet"
    try:
        content = _parquet().read_table(path) if is_table else _fields(path)
    except (OSError, ValueError):  # pyarrow's own errors are one of the two
        raise _no_file() from None
    return source_of(content) if is_table else Source(_pairs(content), is_text=True)


def _fields(path: Path) -> list[tuple[str, str]]:
    separator = _SEPARATORS.get(path.suffix)
    with path.open(encoding="utf-8", errors="replace") as lines:
        found = [line.split(separator)[:2] for line in lines]
    return [(_field(row[0]), _field(row[1])) for row in found if len(row) == 2]


def _field(text: str) -> str:
    return text.strip().strip("\"'").strip()


def _parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra(
            "DP501",
            "a Parquet file needs pyarrow, which is not installed.",
            why="the small core reads arrays and text files.",
            fix="pip install 'discreet[tables]'",
        ) from None


def _matrix(matrix: Any) -> Source:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise _no_edge_list()
    entries = matrix.tocoo(copy=True)
    entries.sum_duplicates()
    joined = entries.data != 0
    return Source(
        (entries.row[joined].astype(np.int64), entries.col[joined].astype(np.int64)), matrix.shape[0]
    )


def _two_columns(array: npt.NDArray[Any]) -> tuple[Any, Any]:
    if array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iufOUS":
        return array[:, 0], array[:, 1]
    if array.size == 0 and array.dtype.kind in "iufOUS":
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    raise _no_edge_list()


def _first_two(columns: Sequence[Any]) -> tuple[Any, Any]:
    if len(columns) < 2:
        raise _no_edge_list()
    return columns[0], columns[1]


def _filled(column: Any) -> Any:
    """A column in which what is missing is None; DuckDB masks it."""
    return column.tolist() if np.ma.isMaskedArray(column) else column


def _pairs(rows: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    pairs = [row for row in rows if isinstance(row, tuple | list | np.ndarray) and len(row) == 2]
    return [row[0] for row in pairs], [row[1] for row in pairs]


def _by_label(label: Any) -> tuple[str, Any]:
    """An order of labels that does not depend on who else is there."""
    return (type(label).__name__, label if isinstance(label, int | float | str) else repr(label))


def _no_file() -> BadParameter:
    return BadParameter(
        "DP104",
        "edges is the path of a file that cannot be read.",
        why="there is no such file, it is not yours to read, or it is not what its ending says.",
        fix="Graph('edges.csv', nodes=1_000), with the path of a text or Parquet file",
    )


def _no_edge_list() -> BadParameter:
    return BadParameter(
        "DP104",
        "edges must be an edge list: two columns of nodes, a square matrix, a network, or the path of a file.",
        why="every edge is a pair of nodes.",
        fix="Graph([(0, 1), (1, 2)], nodes=3)",
    )
