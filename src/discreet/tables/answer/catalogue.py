# SPDX-License-Identifier: Apache-2.0
"""SHOW TABLES and DESCRIBE: the public description of a data set as an answer.

**Guarantee.** Only the description is read, which is public; nothing is spent. Values that a public
table holds are not listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from discreet.tables.answer.answer import Answer
from discreet.tables.ask.sql.refuse import question_error
from discreet.tables.ask.sql.scope import match_name
from discreet.tables.ask.sql.text import tokenize_text
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Table
from discreet.tables.data.engine import ROW
from discreet.tables.data.types import Value

__all__ = ["catalogue_answer"]

_NOTE = "This is the public description. No row was read and nothing was spent."
_MOST_VALUES = 20


def catalogue_answer(text: object, dataset: Dataset) -> Answer | None:
    """The answer to SHOW TABLES or DESCRIBE table; None for every other text."""
    first = text.split(maxsplit=1)[:1] if isinstance(text, str) else []
    if not first or first[0].upper().rstrip(";") not in {"SHOW", "DESCRIBE", "DESC"}:
        return None
    tokens = [token for token in tokenize_text(text) if token.text != ";"]
    words = [token.text.upper() for token in tokens]
    if words == ["SHOW", "TABLES"]:
        return _answer(str(text), ("table", "protects", "columns"), map(_table_row, dataset.tables.values()))
    if words[0] != "SHOW" and len(words) > 1 and words[1] == "TABLE":
        tokens = tokens[1:]
    name = None
    if words[0] != "SHOW" and len(tokens) == 2:
        quoted = tokens[1].token_type == TokenType.IDENTIFIER
        name = match_name(exp.to_identifier(tokens[1].text, quoted=quoted), dataset.tables)
    if name is None:
        raise question_error(
            "DP702",
            "this is not a description that can be shown.",
            "the description lists the tables, and the columns of each.",
            f"SHOW TABLES   or   DESCRIBE {next(iter(dataset.tables))}",
        )
    table = dataset.tables[name]
    header = ("column", "type", "bounds", "values", "can be NULL", "remark")
    return _answer(str(text), header, (_column_row(column, table) for column in table.columns.values()))


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
