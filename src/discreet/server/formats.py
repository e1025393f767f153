# SPDX-License-Identifier: Apache-2.0
"""An answer in the format that a request accepts: JSON, CSV, Parquet or Arrow.

**Guarantee.** A file is a function of the answer alone, so its size is too. The format is chosen
before anything is charged.
"""

from __future__ import annotations

import csv
import io

from discreet.server.refusals import refuse
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.frames import library

__all__ = ["ARROW", "CSV", "JSON", "PARQUET", "choose_format", "write_answer"]

JSON, CSV = "application/json", "text/csv"
PARQUET, ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def choose_format(accept: str | None) -> str:
    """The format for a header Accept: the first that it names, JSON for anything; else refused.

    >>> choose_format("text/csv;q=0.9, */*"), choose_format(None)
    ('text/csv', 'application/json')
    """
    for wanted in (accept or "*/*").split(","):
        kind = wanted.partition(";")[0].strip().lower()
        if kind in ("*/*", "application/*", "application/problem+json", ""):
            return JSON
        if kind in (JSON, CSV, PARQUET, ARROW):
            return kind
        if kind == "text/*":
            return CSV
    raise refuse("not acceptable", detail=str(accept)[:100])


def write_answer(answer: Answer, kind: str, *, spreadsheet: bool = False) -> bytes:
    """The file; with `spreadsheet`, a text that a spreadsheet would take for a formula is quoted."""
    if kind == CSV:
        return _csv(answer, spreadsheet=spreadsheet)
    if kind == JSON:
        return answer.to_json().encode()
    table, place = answer.to_arrow(), library("pyarrow").BufferOutputStream()
    if kind == PARQUET:
        library("pyarrow.parquet").write_table(table, place)
    else:
        with library("pyarrow.ipc").new_stream(place, table.schema) as stream:
            stream.write_table(table)
    return bytes(place.getvalue())


def _csv(answer: Answer, *, spreadsheet: bool) -> bytes:
    text = io.StringIO(newline="")
    lines = csv.writer(text)
    lines.writerow(answer.header)
    for row in answer.rows():
        lines.writerow([_quote_formula(cell) if spreadsheet else cell for cell in row])
    return text.getvalue().encode()


def _quote_formula(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
