# SPDX-License-Identifier: Apache-2.0
"""A data set in words: whom it protects, what is known of each column and from where, and what is missing.

**Guarantee.** It shows the description and nothing else; no row is read for it.
"""

from __future__ import annotations

import hashlib
import html as markup
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.tables.data.dataset import Column, Dataset, Table

__all__ = ["facts", "html", "missing", "text"]

_SHOWN = 3
_BOUNDED = ("integer", "real", "decimal", "date", "timestamp")


def facts(data: Dataset) -> dict[str, Any]:
    """The description as plain JSON types, for a ledger and a statement: categories are counted and hashed, not listed."""
    protect = data.protect
    tables = {
        name: {
            "private": table.private,
            "source": _place(table.source),
            "within": table.within,
            "columns": {column.name: _column(column) for column in table.columns.values()},
        }
        for name, table in data.tables.items()
    }
    return {
        "name": data.name,
        "version": data.version,
        "protects": data.unit.protects,
        "relation": data.unit.relation,
        "column": protect.column,
        "at_most": protect.at_most,
        "groups": protect.groups,
        "tables": tables,
    }


def _column(column: Column) -> dict[str, Any]:
    bounds = None if column.bounds is None else [_plain(end) for end in column.bounds]
    values = None if column.values is None else len(column.values)
    return {
        "kind": column.kind,
        "bounds": bounds,
        "values": values,
        "categories": None if column.values is None else _hash(column.values),
        "places": column.places,
        "null": column.null,
        "source": column.source,
    }


def _place(source: str) -> str:
    """Where a table lies, from wherever it was opened; an address of a server as it is."""
    return str(Path(source).resolve()) if source and "://" not in source else source


def _hash(values: Iterable[Any]) -> str:
    """Which categories there are, in 64 digits: two lists of the same length are told apart."""
    listed = json.dumps([[type(value).__name__, str(value)] for value in values])
    return hashlib.sha256(listed.encode()).hexdigest()


def _plain(end: Any) -> Any:
    return end if isinstance(end, int | float) else str(end)


def text(data: Dataset) -> str:
    """The portrait as lines of text."""
    lines = [title(data), *protects(data)]
    for table in data.tables.values():
        lines += ["", _heading(table), *_aligned([_row(table, column) for column in table.columns.values()])]
    return "\n".join([*lines, "", *missing(data)]).rstrip()


def html(data: Dataset) -> str:
    """The same for a notebook."""
    parts = [f"<p><b>{_safe(title(data))}</b><br>{_safe(' '.join(protects(data)))}</p>"]
    for table in data.tables.values():
        cells = (_row(table, column) for column in table.columns.values())
        body = "".join(f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>" for row in cells)
        head = "<tr><th>column</th><th>type</th><th>known</th><th>from</th></tr>"
        parts.append(f"<table><caption>{_safe(_heading(table))}</caption>{head}{body}</table>")
    return "".join(parts) + "".join(f"<p>{_safe(line)}</p>" for line in missing(data))


def title(data: Dataset) -> str:
    return f"{data.name} {data.version}".rstrip()


def protects(data: Dataset) -> list[str]:
    """Whom it protects, in sentences."""
    protect, word = data.protect, data.unit.protects
    lines = [f"It protects each {word}: a neighbour is the same data with {data.unit}."]
    if protect.column is None:
        return [
            *lines,
            "Every row is protected for itself; somebody with several rows is not protected as one.",
        ]
    if protect.at_most == "auto":
        lines += [f"How many rows each {word} contributes at most is chosen privately, once, and paid for."]
    else:
        rows = "1 row" if protect.at_most == 1 else f"{protect.at_most} rows"
        lines += [f"Each {word} contributes at most {rows}; extra rows are down-weighted."]
    lines += [f"One {word} is thought to be in {protect.groups} groups."] if protect.groups else []
    return lines


def missing(data: Dataset) -> list[str]:
    """What cannot be asked, or cannot be defended, until somebody writes it down."""
    private = [table for table in data.tables.values() if table.private]
    columns = [(table, column) for table in private for column in table.columns.values()]
    unbounded = [c.name for t, c in columns if c.kind in _BOUNDED and c.bounds is None and c.name != t.unit]
    unsourced = [c.name for _, c in columns if (c.bounds or c.values) and not c.source]
    unusable = [c.name for t, c in columns if c.kind == "other" and c.name != t.unit]
    lines = []
    if unbounded:
        lines += [
            f"Without bounds: {', '.join(unbounded)}. Sums and means of them need  between=(low, high)."
        ]
    if unsourced:
        lines += [f"Nobody says where the bounds or values come from: {', '.join(unsourced)}."]
    if unusable:
        lines += [f"Of a type that cannot be asked about: {', '.join(unusable)}."]
    return lines


def _heading(table: Table) -> str:
    kind = "private" if table.private else "public"
    return f"{table.name} ({kind}{', ' + table.source if table.source else ''})"


def _row(table: Table, column: Column) -> tuple[str, str, str, str]:
    kind = column.kind if column.null else f"{column.kind}, never NULL"
    return (column.name, kind, "; ".join(_known(table, column)), column.source or "")


def _known(table: Table, column: Column) -> Iterator[str]:
    if column.name == table.unit:
        yield "says whose row it is"
    if column.bounds is not None:
        yield f"{column.bounds[0]} … {column.bounds[1]}"
    if column.values is not None:
        shown = ", ".join(str(value) for value in column.values[:_SHOWN])
        yield f"{len(column.values)} values: {shown}{', …' if len(column.values) > _SHOWN else ''}"


def _aligned(rows: list[tuple[str, str, str, str]]) -> list[str]:
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _safe(words: str) -> str:
    return markup.escape(words)
