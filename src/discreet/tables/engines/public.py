# SPDX-License-Identifier: Apache-2.0
"""Rows of a public table as Arrow, whatever the engine returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from discreet.tables.data.readers.schema import library
from discreet.tables.engines.source import SourceColumn, SourceTable

__all__ = ["arrow_rows", "known_columns"]

#: The Arrow type of a column without any value, and of whole numbers, texts, … of every engine.
_TYPES = {"integer": "int64", "real": "float64", "text": "string", "boolean": "bool", "date": "date32"}


def known_columns(source: SourceTable) -> list[SourceColumn]:
    """The columns of a known kind."""
    return [column for column in source.columns.values() if column.kind != "other"]


def arrow_rows(source: SourceTable, rows: Iterable[Sequence[Any]]) -> Any:
    """Rows with the known columns of a table, in their order."""
    pyarrow = library("pyarrow")
    columns = known_columns(source)
    cells = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [_array(pyarrow, column, list(values)) for column, values in zip(columns, cells, strict=True)]
    return pyarrow.table(arrays, names=[column.name for column in columns])


def _array(pyarrow: Any, column: SourceColumn, values: list[Any]) -> Any:
    if any(value is not None for value in values) and column.kind in {"integer", "decimal", "timestamp"}:
        # Their width, digits and zone are those of the values.
        return pyarrow.array(values)
    usual = {"decimal": pyarrow.decimal128(18, 2), "timestamp": pyarrow.timestamp("us")}
    return pyarrow.array(values, usual.get(column.kind) or pyarrow.type_for_alias(_TYPES[column.kind]))
