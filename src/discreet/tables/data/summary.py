# SPDX-License-Identifier: Apache-2.0
"""Describes a data set: its privacy unit, what is known of each column and from which source, and
what is missing.

**Guarantee.** Only the description is shown. No row is read.
"""

from __future__ import annotations

import hashlib
import html as markup
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.tables.data.dataset import Column, DescribedTables, Table

__all__ = ["facts", "html", "missing", "text"]

_SHOWN = 3
_BOUNDED = ("integer", "real", "decimal", "date", "timestamp")


def facts(data: DescribedTables) -> dict[str, Any]:
    """The description as plain JSON types, for the ledger: values are counted and hashed, not
    listed.
    """
    protect = data.protect
    tables = {
        name: {
            "private": table.private,
            "source": _place(table.source),
            "within": table.within,
            "columns": {column.name: _column(column) for column in table.columns.values()},
            **({"unit": _whose(table)} if protect.links and table.private else {}),
            **({"hierarchy": list(table.hierarchy)} if table.hierarchy else {}),
        }
        for name, table in data.tables.items()
    }
    return {
        "name": data.name,
        "version": data.version,
        "protects": data.unit.protects,
        "relation": data.unit.relation,
        "column": protect.column,
        "at_most": _plain_bounds(protect.at_most),
        "groups": _plain_bounds(protect.groups),
        **({"per": protect.per, "when": _times(data)} if protect.per else {}),
        "tables": tables,
        **({"views": dict(data.views)} if data.views else {}),
    }


def _times(data: DescribedTables) -> dict[str, str]:
    """The column of each table that says in which period a row is."""
    return {name: table.when for name, table in data.tables.items() if table.when}


def _plain_bounds(bounds: object) -> object:
    return dict(bounds) if isinstance(bounds, Mapping) else bounds


def _column(column: Column) -> dict[str, Any]:
    bounds: object = None if column.bounds is None else [_plain(end) for end in column.bounds]
    # What a session chose is in its ledger; the description stays as it was.
    bounds = "auto" if column.auto else bounds
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


def _whose(table: Table) -> str:
    """The column that says whose a row is, or the link that leads there."""
    return str(table.unit) if table.link is None else str(table.link)


def _place(source: str) -> str:
    """An absolute path; the address of a server unchanged."""
    return str(Path(source).resolve()) if source and "://" not in source else source


def _hash(values: Iterable[Any]) -> str:
    """A hash of the values, which tells apart two lists of the same length."""
    listed = json.dumps([[type(value).__name__, str(value)] for value in values])
    return hashlib.sha256(listed.encode()).hexdigest()


def _plain(end: Any) -> Any:
    return end if isinstance(end, int | float) else str(end)


def text(data: DescribedTables) -> str:
    """The description as lines of text."""
    lines = [title(data), *protects(data)]
    for table in data.tables.values():
        lines += [
            "",
            _heading(table),
            *_align_columns([_row(table, column) for column in table.columns.values()]),
        ]
    return "\n".join([*lines, "", *missing(data)]).rstrip()


def html(data: DescribedTables) -> str:
    """The description as HTML for a notebook."""
    parts = [f"<p><b>{_safe(title(data))}</b><br>{_safe(' '.join(protects(data)))}</p>"]
    for table in data.tables.values():
        cells = (_row(table, column) for column in table.columns.values())
        body = "".join(f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>" for row in cells)
        head = "<tr><th>column</th><th>type</th><th>known</th><th>source</th></tr>"
        parts.append(f"<table><caption>{_safe(_heading(table))}</caption>{head}{body}</table>")
    return "".join(parts) + "".join(f"<p>{_safe(line)}</p>" for line in missing(data))


def title(data: DescribedTables) -> str:
    return f"{data.name} {data.version}".rstrip()


def protects(data: DescribedTables) -> list[str]:
    """The privacy unit and its contribution bound, in sentences."""
    protect, word = data.protect, data.unit.protects
    lines = [f"It protects each {word}: a neighbouring data set has {data.unit}."]
    if protect.column is None:
        return [
            *lines,
            "Every row is its own unit; a person with several rows is not protected as a whole.",
        ]
    if protect.per:
        times = ", ".join(dict.fromkeys(table.when for table in data.tables.values() if table.when))
        lines += [
            f"A unit is one {protect.word or protect.column} in one {protect.per} of {times} (UTC).",
            f"Whoever is in several {protect.per}s is protected as a group of as many units, and no more.",
        ]
    if protect.at_most == "auto":
        lines += [
            f"The number of rows that each {word} may contribute is chosen privately, and paid for once."
        ]
    else:
        lines += [
            f"Each {word} contributes at most {_of_tables(protect.at_most, 'row')}; extra rows are down-weighted."
        ]
    if protect.groups:
        lines += [
            f"Each {word} is assumed to be in at most {_of_tables(protect.groups, 'group')}; in more groups it counts less."
        ]
    return lines


def _of_tables(bounds: object, noun: str) -> str:
    """20 rows, or 400 rows of flights and 1 row of planes."""
    if isinstance(bounds, Mapping):
        texts = [f"{_of_tables(bound, noun)} of {table}" for table, bound in bounds.items()]
        return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]
    return f"{bounds} {noun}{'' if bounds == 1 else 's'}"


def missing(data: DescribedTables) -> list[str]:
    """What is missing in the description, in sentences."""
    private = [table for table in data.tables.values() if table.private]
    columns = [(table, column) for table in private for column in table.columns.values()]
    unbounded = [
        c.name
        for t, c in columns
        if c.kind in _BOUNDED and c.bounds is None and not c.auto and c.name != t.unit
    ]
    unsourced = [c.name for _, c in columns if (c.bounds or c.values) and not c.source]
    unusable = [c.name for t, c in columns if c.kind == "other" and c.name != t.unit]
    lines = []
    if unbounded:
        lines += [
            f"No bounds are declared for {', '.join(unbounded)}. Sums and means of them need  between=(low, high)."
        ]
    if unsourced:
        lines += [f"No source is given for the bounds or values of {', '.join(unsourced)}."]
    if unusable:
        lines += [f"These columns have a type that cannot be used: {', '.join(unusable)}."]
    return lines


def _heading(table: Table) -> str:
    kind = "private" if table.private else "public"
    link = f", {table.link}" if table.link is not None else ""
    return f"{table.name} ({kind}{link}{', ' + table.source if table.source else ''})"


def _row(table: Table, column: Column) -> tuple[str, str, str, str]:
    kind = column.kind if column.null else f"{column.kind}, never NULL"
    return (column.name, kind, "; ".join(_known_facts(table, column)), column.source or "")


def _known_facts(table: Table, column: Column) -> Iterator[str]:
    if column.name == table.unit:
        yield "privacy unit"
    if column.auto:
        yield "bounds chosen privately"
    if column.bounds is not None:
        yield f"{column.bounds[0]} … {column.bounds[1]}"
    if column.values is not None:
        shown = ", ".join(str(value) for value in column.values[:_SHOWN])
        yield f"{len(column.values)} values: {shown}{', …' if len(column.values) > _SHOWN else ''}"


def _align_columns(rows: list[tuple[str, str, str, str]]) -> list[str]:
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _safe(words: str) -> str:
    return markup.escape(words)
