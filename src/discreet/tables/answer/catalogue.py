# SPDX-License-Identifier: Apache-2.0
"""SHOW TABLES and DESCRIBE: the public description of a data set as an answer.

**Guarantee.** Only the description is read, which is public; nothing is spent. Values that a public
table holds are not listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.sql.catalogue import CatalogueQuestion
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Table

__all__ = ["catalogue_answer"]

_NOTE = "This is the public description. No row was read and nothing was spent."
_MOST_VALUES = 20


def catalogue_answer(question: CatalogueQuestion, dataset: Dataset) -> Answer:
    """The tables of a data set, or the columns of one of them."""
    text, table = question.text, question.table
    if table is None:
        return _answer(text, ("table", "protects", "columns"), map(_table_row, dataset.tables.values()))
    header = ("column", "type", "bounds", "values", "can be NULL", "remark")
    return _answer(text, header, (_column_row(column, table) for column in table.columns.values()))


def _answer(text: str, header: Sequence[str], rows: Iterable[tuple[Value, ...]]) -> Answer:
    return Answer.of(keys=header, groups=tuple(rows), columns={}, question=text, notes=[_NOTE])


def _table_row(table: Table) -> tuple[Value, ...]:
    protects = (
        "nobody: it is public" if not table.private else "each row" if table.unit == ROW else table.unit
    )
    return table.name, protects, ", ".join(table.columns)


def _column_row(column: Column, table: Table) -> tuple[Value, ...]:
    bounds = "auto" if column.auto else ""
    if column.bounds is not None:
        bounds = f"{column.bounds[0]} to {column.bounds[1]}"
    values = [str(value) for value in column.values or ()]
    more = f", … ({len(values)} values)" if len(values) > _MOST_VALUES else ""
    remark = "privacy unit" if column.name == table.unit else ""
    if table.link is not None and column.name == table.link.column:
        remark = f"leads to {table.link.table}.{table.link.key}"
    listed = ", ".join(values[:_MOST_VALUES]) + more
    return column.name, column.kind, bounds, listed, "yes" if column.null else "no", remark
