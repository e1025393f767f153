# SPDX-License-Identifier: Apache-2.0
"""A synthetic copy: made-up rows with the released numbers that they follow, and what they are not
good for.

    copy.to_pandas(rows=10_000, seed=1)               # more rows, other rows: free
    copy.to_pandas(where={"sex": "Female"})           # rows that a condition describes
    copy.table("sex", "race")                         # released numbers with intervals, beside those of the copy
    copy.quality                                      # how far the copy is off, measured with noise

**Guarantee.** Everything here is post-processing of released numbers: it reads no data, spends no
budget and reveals nothing more.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from discreet import check, privacy
from discreet.errors import BadDescription, BadParameter
from discreet.json_types import JsonObject
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import short
from discreet.tables.algebra.types import Value
from discreet.tables.answer import frames
from discreet.tables.answer.answer import LedgerReceipt
from discreet.tables.answer.noisy import CONFIDENCE
from discreet.tables.synthetic.columns import CopiedColumn
from discreet.tables.synthetic.mixture import Mixture
from discreet.tables.synthetic.released import ReleasedCounts
from discreet.tables.synthetic.sample import RowModel, restrict_rows, sample_rows
from discreet.tables.synthetic.stream import SeededStream
from discreet.tables.synthetic.tree import TreeModel

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["CopyQuality", "SyntheticCopy"]

_VERSION = 1
#: So many rows are made at once.
_MOST_ROWS = 10**7
#: A condition that the model gives less of its rows is refused.
_LEAST_SHARE = 1e-12
NOT_FOR = (
    "Do not use the copy to look for a person, a rare group or an outlier, to link tables, to follow somebody over time, "
    "or for a test that needs the uncertainty of the real rows. For a number that matters, ask for that number."
)


@dataclass(frozen=True)
class CopyQuality:
    """How far the rows that a copy shows by default are off, on average over its tables of `order`
    columns.

    `value` is the share of rows that would have to change their cell in such a table for it to be
    right (the total variation distance, of counts). It was measured with noise; `low` and `high`
    are the ends of its 95 % interval.
    """

    value: float
    low: float
    high: float
    tables: int
    order: int
    rows: int

    def __str__(self) -> str:
        columns = {1: "one column", 2: "two columns"}.get(self.order, "three columns")
        tables = f"the {self.tables} tables" if self.tables > 1 else "the table"
        return (
            f"In {tables} of {columns}, {self.value:.1%} of the {self.rows:,} rows are in a wrong cell on average "
            f"(95 %: {self.low:.1%} to {self.high:.1%})."
        )


@dataclass(frozen=True, repr=False)
class CopyTable:
    """A released table beside that of the copy: a line for each cell, with the columns in the order
    of `header`.

    `count` is released, with its interval; `synthetic` is the number of rows of the copy.
    """

    header: tuple[str, ...]
    lines: tuple[tuple[Value, ...], ...]

    def rows(self) -> list[tuple[Value, ...]]:
        """The lines, with their values in the order of `header`."""
        return list(self.lines)

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame."""
        columns = zip(*self.lines, strict=True)
        frame: pd.DataFrame = frames.library("pandas").DataFrame(dict(zip(self.header, columns, strict=True)))
        return frame

    def __len__(self) -> int:
        return len(self.lines)

    def __str__(self) -> str:
        texts = [self.header, *([_cell_text(value) for value in line] for line in self.lines)]
        widths = [max(len(text[at]) for text in texts) for at in range(len(self.header))]
        pads = zip(
            *([text[at].ljust(width) for text in texts] for at, width in enumerate(widths)), strict=True
        )
        return "\n".join("  ".join(line).rstrip() for line in pads)

    def __repr__(self) -> str:
        return str(self)


def _cell_text(value: Value) -> str:
    return f"{value:.1f}" if isinstance(value, float) else "NULL" if value is None else str(value)


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticCopy:
    """A synthetic copy of some columns of a table, made by `Session.synthesize`.

    `released` holds the noisy numbers that it follows, and `model` the probabilities that were
    fitted to them. `quality` says how far it is off, if that was paid for.

    **Guarantee.** A copy is computed from released numbers and public seeds. More rows, other
    seeds, rows under a condition and tables cost nothing and reveal nothing more. Each interval of
    a released number contains the exact number (of the bounded rows) with probability 95 %; numbers
    of synthetic rows have no interval.

    >>> import discreet as dp
    >>> adult = dp.open(dp.data.path("adult.toml"))
    >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
    >>> copy = session.synthesize(adult, columns=["sex", "over_50k"], epsilon=0.5, delta=1e-7)
    >>> copy.header, len(copy.to_rows(rows=100))
    (('sex', 'over_50k'), 100)
    """

    released: ReleasedCounts
    model: RowModel
    quality: CopyQuality | None = None
    question: str = ""
    notes: tuple[str, ...] = ()
    guarantee: Guarantee | None = None
    receipt: LedgerReceipt = None
    private: bool = True

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.released.columns)

    @property
    def rows(self) -> int:
        """The number of rows by default: the released number of rows."""
        return max(0, round(self.released.total))

    # --- synthetic rows --------------------------------------------------------------------------------

    def to_rows(
        self, rows: int | None = None, seed: int = 0, where: Mapping[str, object] | None = None
    ) -> list[tuple[Value, ...]]:
        """Synthetic rows, as tuples in the order of `header`.

        `where` maps columns to what their values must be: a value, a list of values, or for numbers
        and dates a pair of ends (None for no end). The same `rows`, `seed` and `where` give the
        same rows on every machine.
        """
        return list(zip(*self._columns(rows, seed, where).values(), strict=True))

    def to_pandas(
        self, rows: int | None = None, seed: int = 0, where: Mapping[str, object] | None = None
    ) -> pd.DataFrame:
        """Synthetic rows as a pandas data frame, with `metadata()` in its `attrs`; the arguments
        are those of `to_rows`.
        """
        columns = self._columns(rows, seed, where)
        if not any(columns.values()):
            columns = {column.name: [column.first_value] for column in self.released.columns}
            frame: pd.DataFrame = frames.library("pandas").DataFrame(columns).iloc[:0]
        else:
            frame = frames.library("pandas").DataFrame(columns)
        frame.attrs.update(self.metadata())
        return frame

    def to_polars(
        self, rows: int | None = None, seed: int = 0, where: Mapping[str, object] | None = None
    ) -> pl.DataFrame:
        """Synthetic rows as a Polars data frame; types do not depend on the rows."""
        polars = frames.library("polars")
        types = {column.name: polars.Series([column.first_value]).dtype for column in self.released.columns}
        frame: pl.DataFrame = polars.DataFrame(self._columns(rows, seed, where), schema=types)
        return frame

    def to_arrow(
        self, rows: int | None = None, seed: int = 0, where: Mapping[str, object] | None = None
    ) -> pa.Table:
        """Synthetic rows as an Arrow table, with `metadata()` in the metadata of its schema."""
        arrow = frames.library("pyarrow")
        # The types are those of the columns, also where all values are NULL or there are no rows.
        types = [(column.name, arrow.array([column.first_value]).type) for column in self.released.columns]
        table: pa.Table = arrow.table(self._columns(rows, seed, where), schema=arrow.schema(types))
        return table.replace_schema_metadata(self.metadata())

    def to_csv(
        self,
        path: str | Path,
        rows: int | None = None,
        seed: int = 0,
        where: Mapping[str, object] | None = None,
    ) -> None:
        """Write synthetic rows as a CSV file in UTF-8, with a header line."""
        frames.write_csv(path, self.header, self.to_rows(rows, seed, where))

    def to_parquet(
        self,
        path: str | Path,
        rows: int | None = None,
        seed: int = 0,
        where: Mapping[str, object] | None = None,
    ) -> None:
        """Write synthetic rows as a Parquet file, with `metadata()`."""
        frames.write_parquet(path, self.to_arrow(rows, seed, where))

    def _columns(
        self, rows: int | None, seed: int, where: Mapping[str, object] | None
    ) -> dict[str, list[Value]]:
        """The values of each column."""
        count = self.rows if rows is None else check.whole(at_least=0, rows=rows)
        check.whole(at_least=0, seed=seed)
        if count > _MOST_ROWS:
            raise BadParameter(
                "DP102",
                f"rows must be at most {_MOST_ROWS:,}, not {count:,}.",
                why="they are made in memory.",
                fix=f"rows={_MOST_ROWS}, seed=0   and then  rows={_MOST_ROWS}, seed=1",
            )
        model, columns = self._model_under({} if where is None else where)
        codes, stream = sample_rows(model, count, seed), SeededStream(seed, "values")
        return {
            column.name: column.decode(codes[:, at], stream.uniform(count))
            for at, column in enumerate(columns)
        }

    def _model_under(self, where: Mapping[str, object]) -> tuple[RowModel, tuple[CopiedColumn, ...]]:
        if not isinstance(where, Mapping):
            raise self._where_error("where must be a mapping from columns to values.")
        if not where:
            return self.model, self.released.columns
        shares, columns = {}, list(self.released.columns)
        for name, wanted in where.items():
            place = self._place(name)
            shares[place] = columns[place].shares(wanted)
            columns[place] = columns[place].narrow(wanted)
        model, share = restrict_rows(self.model, shares)
        if share < _LEAST_SHARE:
            raise self._where_error("the copy has no rows for this condition.")
        return model, tuple(columns)

    def _where_error(self, what: str) -> BadParameter:
        column = self.released.columns[0]
        return BadParameter(
            "DP107",
            what,
            why="rows under a condition are drawn from the part of the model that fulfils it.",
            fix=f'where={{"{column.name}": {column.example()}}}',
        )

    def _place(self, name: object) -> int:
        if isinstance(name, str) and name in self.header:
            return self.header.index(name)
        raise BadParameter(
            "DP105",
            f"the copy has no column {name!r}.",
            why="it has the columns that were asked for.",
            fix=f"use {', '.join(map(repr, self.header))}",
        )

    # --- released numbers ------------------------------------------------------------------------------

    def table(self, *columns: str) -> CopyTable:
        """The released table of one or two columns, or of three that were measured, beside that of
        the copy.
        """
        places = [self._place(name) for name in columns]
        keys = tuple(sorted(places))
        found = self.released.table(keys, CONFIDENCE) if len(set(keys)) == len(keys) else None
        if found is None or not keys:
            raise BadParameter(
                "DP107",
                f"no table of {', '.join(map(repr, columns)) or 'no column'} was released.",
                why="a copy is made from tables of one and two columns, or from those that were chosen and measured.",
                fix=f"copy.table({', '.join(map(repr, self.header[: 2 if self.released.has_pairs else 1]))})",
            )
        values, half = found
        sizes = tuple(self.released.sizes[key] for key in keys)
        flat = np.ravel_multi_index(tuple(self._default_codes[:, key] for key in keys), sizes)
        synthetic = np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes)
        order = [keys.index(place) for place in places]
        values, synthetic = np.transpose(values, order), np.transpose(synthetic, order)
        shown = [self.released.columns[place] for place in places]
        lines = tuple(
            (
                *(column.label(code) for column, code in zip(shown, cell, strict=True)),
                float(values[cell]),
                *_ends(float(values[cell]), half),
                int(synthetic[cell]),
            )
            for cell in np.ndindex(*synthetic.shape)
        )
        return CopyTable((*columns, "count", "count_lo", "count_hi", "synthetic"), lines)

    @cached_property
    def _default_codes(self) -> Any:
        return sample_rows(self.model, self.rows, seed=0)

    def statement(self) -> str:
        """What this copy is, what it protects, how far it is off and what it is not good for, in
        numbered sentences.
        """
        count = len(self.released.chosen)
        three = f" and {count} tables of three columns" if count else ""
        tables = f"all tables of one and two columns{three}"
        if not self.released.has_pairs:
            tables = f"{count} tables of up to three columns"
        sentences = [
            f"A synthetic copy of {len(self.header)} columns: {', '.join(self.header)}.",
            *([] if self.private else ["NOT PRIVATE: drawn from a repeatable source."]),
            *(
                []
                if self.guarantee is None
                else [f"Guarantee: {short(self.guarantee)} for {self.guarantee.unit}."]
            ),
            f"Released with noise: {tables}. The rest follows from these numbers.",
            f"Its number of rows, {self.rows:,}, is a released number too.",
            str(self.quality) if self.quality else "How far it is off was not measured.",
            NOT_FOR,
            *self.notes,
        ]
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))

    def metadata(self) -> dict[str, str]:
        """What a reader of the rows must know, as short texts by name."""
        facts = {"discreet.question": self.question, "discreet.statement": self.statement()}
        if self.guarantee is not None:
            facts["discreet.guarantee"] = self.guarantee.to_json()
            facts["discreet.protects"] = str(self.guarantee.unit)
        if self.receipt is not None:
            facts["discreet.receipt"] = str(self.receipt)
        return facts

    def with_receipt(self, receipt: LedgerReceipt, *, notes: Sequence[str] = ()) -> Self:
        """The copy with the receipt of its charge and with further notes."""
        return replace(self, receipt=receipt, notes=(*self.notes, *notes))

    def __str__(self) -> str:
        return f"Synthetic copy: {self.rows:,} rows, {len(self.header)} columns\n{self.statement()}"

    def __repr__(self) -> str:
        return f"<SyntheticCopy {self.rows:,} rows of {', '.join(self.header)}>"

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li>{html.escape(line.split('. ', 1)[1])}</li>" for line in self.statement().splitlines()
        )
        return f"<ol>{items}</ol>"

    # --- as JSON ---------------------------------------------------------------------------------------

    def to_dict(self) -> JsonObject:
        """The released numbers and the model as plain JSON types."""
        return {
            "discreet.copy": _VERSION,
            "columns": [column.to_dict() for column in self.released.columns],
            "released": self.released.to_dict(),
            "model": self.model.to_dict(),
            "quality": None if self.quality is None else vars(self.quality) | {},
            "question": self.question,
            "notes": list(self.notes),
            "guarantee": None if self.guarantee is None else json.loads(self.guarantee.to_json()),
            "private": self.private,
        }

    def to_json(self) -> str:
        """The copy as a line of JSON, which `SyntheticCopy.from_json` reads."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SyntheticCopy:
        """The copy that `to_json` wrote; other texts are refused (DP401, DP402)."""
        try:
            stored = json.loads(text)
            if stored["discreet.copy"] > _VERSION:
                raise _unreadable_copy_error("DP402", "it is from a newer version of discreet.")
            columns = tuple(CopiedColumn.from_dict(column) for column in stored["columns"])
            guarantee, quality = stored["guarantee"], stored["quality"]
            kind = TreeModel if "tables" in stored["model"] else Mixture
            return cls(
                ReleasedCounts.from_dict(stored["released"], columns),
                kind.from_dict(stored["model"], tuple(column.size for column in columns)),
                quality=None if quality is None else CopyQuality(**quality),
                question=stored["question"],
                notes=tuple(stored["notes"]),
                guarantee=None if guarantee is None else privacy.from_json(json.dumps(guarantee)),
                private=stored["private"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, BadDescription):
                raise
            raise _unreadable_copy_error("DP401", "it is not a copy that discreet wrote.") from None


def _ends(value: float, half: float) -> tuple[float, float]:
    """The interval of a count, cut at zero; it contains the released number."""
    return min(value, max(0.0, value - half)), max(value, 0.0, value + half)


def _unreadable_copy_error(code: str, reason: str) -> BadDescription:
    return BadDescription(
        code,
        f"a synthetic copy cannot be read: {reason}",
        why="a copy that is read wrongly would be a wrong copy.",
        fix="SyntheticCopy.from_json(copy.to_json())",
    )
