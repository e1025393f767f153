# SPDX-License-Identifier: Apache-2.0
"""Exports an answer to a frame, a file or JSON, and reads the JSON.

**Guarantee.** Only the answer is written: released numbers and public values.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import privacy
from discreet.errors import BadDescription, MissingExtra
from discreet.json_types import JsonObject, JsonValue
from discreet.paths import place_for, unwritable_error
from discreet.tables.algebra.types import Value
from discreet.tables.answer.linear import DrawnNoise
from discreet.tables.answer.noisy import Noisy

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from discreet.tables.answer.answer import Answer

__all__ = [
    "CUBE_VERSION",
    "SIDECAR",
    "answer_to_dict",
    "column_to_dict",
    "from_json",
    "library",
    "plain_value",
    "sidecar_text",
    "to_arrow",
    "to_csv",
    "to_excel",
    "to_ipc",
    "to_json",
    "to_pandas",
    "to_parquet",
    "to_polars",
    "value_of",
    "write_csv",
    "write_parquet",
]

_VERSION = 1
#: An answer with the tables of a cube.
CUBE_VERSION = 2
#: The ending that CSV on the Web gives to the description of a file.
SIDECAR = "-metadata.json"
_NOISY = ("values", "lo", "hi", "text", "noise", "deviation", "whole", "nonnegative")
#: Fields of answers that the first version stored; they are ignored.
_FORMER = {"gaussian", "step"}


def to_pandas(answer: Answer) -> pd.DataFrame:
    """A pandas data frame."""
    frame: pd.DataFrame = library("pandas").DataFrame(_columns(answer))
    frame.attrs.update(answer.metadata())
    return frame


def to_polars(answer: Answer) -> pl.DataFrame:
    """A Polars data frame."""
    frame: pl.DataFrame = library("polars").DataFrame(_columns(answer), strict=False)
    return frame


def to_arrow(answer: Answer) -> pa.Table:
    """An Arrow table."""
    table: pa.Table = library("pyarrow").table(_columns(answer))
    return table.replace_schema_metadata(answer.metadata())


def to_parquet(answer: Answer, path: str | Path) -> None:
    """Write a Parquet file."""
    write_parquet(path, to_arrow(answer))


def write_parquet(path: str | Path, table: pa.Table) -> None:
    """Write an Arrow table as a Parquet file."""
    with _open_place(path, "answer.parquet") as place:
        library("pyarrow.parquet").write_table(table, place)


def to_ipc(answer: Answer, path: str | Path) -> None:
    """Write an Arrow IPC file."""
    table, ipc = to_arrow(answer), library("pyarrow.ipc")
    with _open_place(path, "answer.arrow") as place, ipc.new_file(str(place), table.schema) as file:
        file.write_table(table)


def to_csv(answer: Answer, path: str | Path, *, sidecar: bool = False) -> None:
    """Write a CSV file, and beside it what a reader must know."""
    write_csv(path, answer.header, answer.rows())
    if sidecar:
        with _open_place(path) as place:
            beside = place.with_name(f"{place.name}{SIDECAR}")
            beside.write_text(sidecar_text(answer, place.name), encoding="utf-8")


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
    """Write rows as a CSV file in UTF-8."""
    with _open_place(path) as place, place.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(header)
        lines.writerows(rows)


def sidecar_text(answer: Answer, name: str) -> str:
    """The description of a CSV file, as CSV on the Web (W3C 2015) has it, with the metadata of the
    answer.
    """
    columns = [{"name": column, "titles": column} for column in answer.header]
    described = {"@context": "http://www.w3.org/ns/csvw", "url": name, "tableSchema": {"columns": columns}}
    return json.dumps({**described, **answer.metadata()}, ensure_ascii=False, indent=2) + "\n"


def to_excel(answer: Answer, path: str | Path) -> None:
    """Write an Excel file: the table, and what a reader must know."""
    book = library("openpyxl").Workbook()
    sheet = book.active
    sheet.title = "answer"
    for number, row in enumerate((answer.header, *answer.rows()), 1):
        _write_row(sheet, number, row)
    sheet.freeze_panes = sheet.cell(row=2, column=len(answer.keys) + 1)
    about = book.create_sheet("about")
    for number, fact in enumerate(answer.metadata().items(), 1):
        _write_row(about, number, fact)
    with _open_place(path, "answer.xlsx") as place:
        book.save(str(place))


def _write_row(sheet: Any, number: int, row: Iterable[Value]) -> None:
    """Write a row; a text is a text, and never a formula."""
    for column, value in enumerate(row, 1):
        cell = sheet.cell(row=number, column=column)
        if isinstance(value, str):
            cell.value, cell.data_type = _printable(value), "s"
        elif isinstance(value, float) and not math.isfinite(value):
            cell.value = None
        else:
            # Excel knows no time zones; moments are in UTC.
            cell.value = value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _printable(text: str) -> str:
    """A text without the control characters that Excel files cannot hold, and as long as a cell can
    be.
    """
    return "".join(sign if sign >= " " or sign in "\t\n" else "\ufffd" for sign in text)[:32_767]


def answer_to_dict(answer: Answer) -> JsonObject:
    """The answer as plain JSON types."""
    return {
        "discreet.answer": _VERSION,
        "keys": list(answer.keys),
        "groups": [[plain_value(part) for part in group] for group in answer.groups],
        "columns": {name: column_to_dict(column) for name, column in answer.columns.items()},
        "question": answer.question,
        "notes": list(answer.notes),
        "withheld": answer.suppressed,
        "guarantee": None if answer.guarantee is None else json.loads(answer.guarantee.to_json()),
        "private": answer.private,
    }


def to_json(answer: Answer) -> str:
    """The answer as a line of JSON."""
    return json.dumps(answer.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Answer:
    """The answer that `to_json` wrote."""
    from discreet.tables.answer.answer import Answer

    try:
        stored = json.loads(text)
        if stored["discreet.answer"] > CUBE_VERSION:
            raise _unreadable_answer_error("DP402", "it is from a newer version of discreet.")
        columns = {name: _noisy(column) for name, column in stored["columns"].items()}
        guarantee = stored["guarantee"]
        answer = Answer(
            keys=tuple(stored["keys"]),
            groups=tuple(tuple(value_of(part) for part in group) for group in stored["groups"]),
            columns=columns,
            question=stored["question"],
            notes=tuple(stored["notes"]),
            suppressed=stored["withheld"],
            guarantee=None if guarantee is None else privacy.from_json(json.dumps(guarantee)),
            private=stored["private"],
        )
        if "cube" not in stored:
            return answer
        from discreet.tables.answer.cube_json import cube_of_dict

        return cube_of_dict(answer, stored["cube"], _noisy)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, BadDescription):
            raise
        raise _unreadable_answer_error("DP401", "it is not an answer that discreet wrote.") from None


def _noisy(stored: dict[str, Any]) -> Noisy:
    fields: dict[str, Any] = {
        name: tuple(part) if isinstance(part, list) else part
        for name, part in stored.items()
        if name not in _FORMER
    }
    if "linear" in fields:
        fields["linear"] = DrawnNoise.from_dict(fields["linear"])
    return Noisy(**fields)


def column_to_dict(column: Noisy) -> JsonObject:
    """A noisy column as plain JSON types."""
    return {field: _field(getattr(column, field)) for field in _NOISY} | _noise_of(column)


def _noise_of(column: Noisy) -> JsonObject:
    """The noise of a column that was drawn; that of a computed one is not stored."""
    return {"linear": column.linear.to_dict()} if isinstance(column.linear, DrawnNoise) else {}


def _columns(answer: Answer) -> dict[str, list[Value]]:
    rows = answer.rows()
    return {name: [row[at] for row in rows] for at, name in enumerate(answer.header)}


def _field(value: Any) -> JsonValue:
    """A field in JSON; an infinite end of an interval becomes null."""
    plain: JsonValue = value
    if isinstance(value, tuple):
        plain = [None if isinstance(part, float) and not math.isfinite(part) else part for part in value]
    return plain


def plain_value(value: Any) -> JsonValue:
    """A key in JSON; dates and moments are marked with their type."""
    if isinstance(value, datetime):
        return {"moment": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    plain: JsonValue = value
    return plain


def value_of(stored: Any) -> Value:
    if isinstance(stored, dict):
        ((kind, text),) = stored.items()
        return datetime.fromisoformat(text) if kind == "moment" else date.fromisoformat(text)
    value: Value = stored
    return value


@contextmanager
def _open_place(path: str | Path, example: str = "answer.csv") -> Iterator[Path]:
    """A path for a new file; errors of the system become coded errors, because the answer is still
    there.
    """
    try:
        yield place_for(path, example)
    except OSError as error:
        raise unwritable_error(path, error.strerror or "the system refuses") from None


def _unreadable_answer_error(code: str, reason: str) -> BadDescription:
    return BadDescription(
        code,
        f"an answer cannot be read: {reason}",
        why="an answer that is read wrongly would be a wrong answer.",
        fix="Answer.from_json(answer.to_json())",
    )


def library(name: str) -> Any:
    """An optional library, or a refusal that says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        why = "without extras an answer can be exported as rows, JSON and CSV."
        raise MissingExtra.of(name, why=why, instead="answer.rows()") from None
