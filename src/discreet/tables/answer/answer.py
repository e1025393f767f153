# SPDX-License-Identifier: Apache-2.0
"""The answer to a question: groups, noisy numbers with confidence intervals, and notes.

    answer.to_pandas()          # ward, count, count_lo, count_hi, avg_days, avg_days_lo, avg_days_hi
    answer.to_csv("wards.csv"); answer.to_parquet("wards.parquet")
    answer.plot()
    answer.value                # of a question with one number
    answer.nonnegative().round()

**Guarantee.** An answer contains released numbers and public knowledge only, so everything that it
does is post-processing. Each interval contains the exact number with probability 95 % over the
noise, on its own. The notes say what an interval does not include, such as bias from clipping.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet import check
from discreet.errors import BadParameter
from discreet.json_types import JsonObject
from discreet.mechanisms.digits import cell_text, number_cells
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import short
from discreet.tables.algebra.types import Value
from discreet.tables.answer import arithmetic, frames
from discreet.tables.answer.noisy import CONFIDENCE, Noisy, Values
from discreet.tables.ask.question import SortOrder
from discreet.tables.ask.released import ReleasedColumn

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CONFIDENCE", "Answer", "Noisy"]

NOT_PRIVATE = "NOT PRIVATE: drawn from a repeatable source"
#: The `Receipt` of the ledger, or None before a session adds it. Tables never import ledgers, so it
#: has no type here.
LedgerReceipt: TypeAlias = Any


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answer to a question: one row for each group, with noisy columns and their intervals.

    `keys` names the columns of `groups`, and `columns` maps names to noisy columns. `suppressed`
    says which groups are not shown, `notes` what else a reader must know, `guarantee` what the
    release costs, and `receipt` where the ledger recorded it. `private` is False if the noise was
    repeatable.

    **Guarantee.** An answer holds only released numbers and public values, so every method is
    post-processing: it reads no data, spends no budget and reveals nothing more. Each interval
    contains the exact number with probability 95 % over the noise, on its own. Adding data that
    were not released would break this.

    >>> import discreet as dp
    >>> from discreet import data
    >>> session = dp.Session(dp.open(data.path("adult.toml")), limit=dp.Limit.filter(epsilon=1))
    >>> answer = session.sql("SELECT sex, COUNT(*) AS n FROM adult GROUP BY sex", epsilon=0.5)
    >>> answer.header
    ['sex', 'n', 'n_lo', 'n_hi']
    """

    keys: tuple[str, ...]
    groups: tuple[tuple[Value, ...], ...]
    columns: dict[str, Noisy]
    question: str = ""
    notes: tuple[str, ...] = ()
    suppressed: str = ""
    guarantee: Guarantee | None = None
    receipt: LedgerReceipt = None
    private: bool = True

    @classmethod
    def of(
        cls,
        *,
        keys: Sequence[str],
        groups: Sequence[tuple[Value, ...]],
        columns: Mapping[str, Noisy],
        question: str = "",
        notes: Sequence[str] = (),
        suppressed: str = "",
        guarantee: Guarantee | None = None,
        private: bool = True,
    ) -> Answer:
        """An answer from sequences of any kind.

        >>> Answer.of(keys=["ward"], groups=[("A",)], columns={"n": Noisy((12,), (9,), (15,))}).rows()
        [('A', 12, 9, 15)]
        """
        return cls(
            tuple(keys),
            tuple(groups),
            dict(columns),
            question,
            tuple(notes),
            suppressed,
            guarantee,
            private=private,
        )

    # --- reading -------------------------------------------------------------------------------------

    @property
    def header(self) -> list[str]:
        """The names of all columns: the keys, then x, x_lo and x_hi for each noisy column x.

        >>> Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))}).header
        ['n', 'n_lo', 'n_hi']
        """
        return [*self.keys, *(f"{name}{end}" for name in self.columns for end in ("", "_lo", "_hi"))]

    def rows(self) -> list[tuple[Value, ...]]:
        """The rows of the table, with their values in the order of `header`.

        >>> Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))}).rows()
        [(12, 9, 15)]
        """
        noisy = [part for column in self.columns.values() for part in (column.values, column.lo, column.hi)]
        return [(*group, *(part[at] for part in noisy)) for at, group in enumerate(self.groups)]

    @property
    def value(self) -> Value:
        """The only number of the answer; an answer with more than one is refused (DP107).

        >>> Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))}).value
        12
        """
        if len(self.columns) == 1 and len(self.groups) == 1:
            value: Value = next(iter(self.columns.values())).values[0]
            return value
        if len(self.keys) == 1 and len(self.groups) == 1 and not self.columns:
            # An exact number, of public tables alone.
            return self.groups[0][0]
        raise BadParameter(
            "DP107",
            f"this answer has {len(self.groups)} rows and {len(self.columns)} noisy columns, not one number.",
            why="value does not know which of them is meant.",
            fix="answer.to_pandas(), or answer.rows()",
        )

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """The 95 % confidence interval of the only number; both ends are None for MODE.

        **Guarantee.** It contains the exact number with probability 95 % over the noise. It does
        not include bias from clipping or down-weighting; see `notes`.

        >>> Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))}).interval
        (9, 15)
        """
        value = self.value
        if not self.columns:
            return value, value  # type: ignore[return-value]  # exact
        (column,) = self.columns.values()
        return column.lo[0], column.hi[0]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[dict[str, Value]]:
        return (dict(zip(self.header, row, strict=True)) for row in self.rows())

    # --- exporting -----------------------------------------------------------------------------------

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame, with `metadata()` in its `attrs`.

        >>> Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))}).to_pandas().shape
        (1, 3)
        """
        return frames.to_pandas(self)

    def to_polars(self) -> pl.DataFrame:
        """A Polars data frame.

        >>> Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))}).to_polars().shape
        (1, 3)
        """
        return frames.to_polars(self)

    def to_arrow(self) -> pa.Table:
        """An Arrow table, with `metadata()` in the metadata of its schema.

        >>> Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))}).to_arrow().num_rows
        1
        """
        return frames.to_arrow(self)

    def to_csv(self, path: str | Path, *, sidecar: bool = False) -> None:
        """Write a CSV file in UTF-8, with a header line: `answer.to_csv("wards.csv")`.

        With a `sidecar` the notes, the guarantee and the receipt go into `wards.csv-metadata.json`,
        in the form of CSV on the Web.
        """
        frames.to_csv(self, path, sidecar=sidecar)

    def to_excel(self, path: str | Path) -> None:
        """Write an Excel file with the sheets "answer" and "about":
        `answer.to_excel("wards.xlsx")`.
        """
        frames.to_excel(self, path)

    def to_ipc(self, path: str | Path) -> None:
        """Write an Arrow IPC (Feather) file with the metadata of `to_arrow`:
        `answer.to_ipc("wards.arrow")`.
        """
        frames.to_ipc(self, path)

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file with the metadata of `to_arrow`:
        `answer.to_parquet("wards.parquet")`.
        """
        frames.to_parquet(self, path)

    def to_dict(self) -> JsonObject:
        """The whole answer as plain JSON types.

        >>> Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))}).to_dict()["keys"]
        []
        """
        return frames.answer_to_dict(self)

    def to_json(self) -> str:
        """The whole answer as a line of JSON, which `Answer.from_json` reads.

        >>> answer = Answer.of(keys=[], groups=[()], columns={"n": Noisy((12,), (9,), (15,))})
        >>> Answer.from_json(answer.to_json()).value
        12
        """
        return frames.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """The answer that `to_json` wrote; other texts are refused (DP401, DP402)."""
        return frames.from_json(text)

    def metadata(self) -> dict[str, str]:
        """What a reader of the numbers must know, as short texts by name: question, guarantee,
        noise, notes.

        >>> Answer.of(keys=[], groups=[()], columns={}).metadata()["discreet.confidence"]
        '0.95'
        """
        facts = {"discreet.question": self.question, "discreet.confidence": f"{CONFIDENCE}"}
        if self.guarantee is not None:
            facts["discreet.guarantee"] = self.guarantee.to_json()
            facts["discreet.protects"] = str(self.guarantee.unit)
        if self.receipt is not None:
            facts["discreet.receipt"] = str(self.receipt)
        facts |= {f"discreet.noise.{name}": column.noise for name, column in self.columns.items()}
        if self.suppressed:
            facts["discreet.withheld"] = self.suppressed
        facts["discreet.notes"] = "\n".join(self.all_notes())
        return facts

    def all_notes(self) -> tuple[str, ...]:
        """Every sentence that belongs to the answer: a warning, the suppressed groups, and the
        notes.

        >>> Answer.of(keys=[], groups=[()], columns={}, private=False).all_notes()
        ('NOT PRIVATE: drawn from a repeatable source',)
        """
        warning = () if self.private else (NOT_PRIVATE,)
        return (*warning, *((self.suppressed,) if self.suppressed else ()), *self.notes)

    # --- post-processing ----------------------------------------------------------------------------

    def take(self, rows: Sequence[int]) -> Answer:
        """Some of the rows, in that order.

        >>> answer = Answer.of(keys=["ward"], groups=[("A",), ("B",)], columns={"n": Noisy((3, 5), (1, 3), (5, 7))})
        >>> answer.take([1]).rows()
        [('B', 5, 3, 7)]
        """
        are_numbers = isinstance(rows, Sequence) and not isinstance(rows, str)
        if not are_numbers or any(check.whole(at_least=0, row=row) >= len(self) for row in rows):
            raise BadParameter(
                "DP102",
                f"take needs a list of row numbers; those of this answer go from 0 to {len(self) - 1}.",
                why="a row that was not released cannot be taken.",
                fix="answer.take([0])",
            )
        return replace(
            self,
            groups=tuple(self.groups[row] for row in rows),
            columns={name: column.take(rows) for name, column in self.columns.items()},
        )

    def __add__(self, other: Answer | float) -> Answer:
        return self._apply("+", other)

    def __radd__(self, other: float) -> Answer:
        return self._apply("+", other)

    def __sub__(self, other: Answer | float) -> Answer:
        return self._apply("-", other)

    def __rsub__(self, other: float) -> Answer:
        return self._apply("-", other, reflected=True)

    def __mul__(self, other: Answer | float) -> Answer:
        return self._apply("*", other)

    def __rmul__(self, other: float) -> Answer:
        return self._apply("*", other)

    def __truediv__(self, other: Answer | float) -> Answer:
        return self._apply("/", other)

    def __rtruediv__(self, other: float) -> Answer:
        return self._apply("/", other, reflected=True)

    def _apply(self, op: str, other: Answer | float, *, reflected: bool = False) -> Answer:
        if isinstance(other, int | float) and not isinstance(other, bool):
            return arithmetic.apply_number(op, self, check.real(number=other), reflected=reflected)
        return arithmetic.apply(op, self, _checked_answer(other))

    def share(self, *within: str) -> Answer:
        """Each number as a share of the total of all groups, or of the groups that agree in some
        keys.

        `answer.share("race")` gives the shares within each race. Shares are of the groups that the
        answer shows. Arithmetic between answers, `a / b` and `a - b`, matches groups by their keys.

        **Guarantee.** Post-processing. Intervals are those of a quotient (Fieller 1954).

        >>> answer = Answer.of(keys=["ward"], groups=[("A",), ("B",)], columns={"n": Noisy((3, 5), (1, 3), (5, 7))})
        >>> answer.share().columns["n"].values
        (0.375, 0.625)
        """
        return arithmetic.share(self, within)

    def running_total(self, *within: str) -> Answer:
        """Each number added to those of the rows before it, over all rows or within some keys.

        >>> answer = Answer.of(keys=["week"], groups=[(1,), (2,)], columns={"n": Noisy((3, 5), (1, 3), (5, 7))})
        >>> answer.running_total().columns["n"].values
        (3.0, 8.0)
        """
        return arithmetic.running_total(self, within)

    def pivot(self, key: str) -> Answer:
        """The table with one column for each value of a key.

        >>> answer = Answer.of(keys=["ward"], groups=[("A",), ("B",)], columns={"n": Noisy((3, 5), (1, 3), (5, 7))})
        >>> answer.pivot("ward").header
        ['A', 'A_lo', 'A_hi', 'B', 'B_lo', 'B_hi']
        """
        return arithmetic.pivot(self, key)

    def union(self, *others: Answer) -> Answer:
        """The rows of several answers with the same columns, below each other.

        >>> answer = Answer.of(keys=["ward"], groups=[("A",)], columns={"n": Noisy((3,), (1,), (5,))})
        >>> len(answer.union(answer))
        2
        """
        return arithmetic.stack([self, *map(_checked_answer, others)])

    def combine(self, *others: Answer) -> Answer:
        """The weighted mean of several releases of the same numbers, which is nearer to the truth
        than each.

        Counts and sums only. Weights are the inverses of the variances of the noise.

        **Guarantee.** Post-processing. The intervals hold if all answers are about the same rows,
        with the same contribution bounds: then their exact numbers are the same.

        >>> import discreet as dp
        >>> session = dp.Session(dp.open(dp.data.path("adult.toml")), limit=dp.Limit.filter(epsilon=1))
        >>> first, second = (session.sql("SELECT COUNT(*) FROM adult", epsilon=0.1) for _ in range(2))
        >>> low, high = first.combine(second).interval
        >>> high - low < first.interval[1] - first.interval[0]
        True
        """
        return arithmetic.average([self, *map(_checked_answer, others)])

    def key_name(self, name: str) -> str:
        """A name that has to be that of a key."""
        if name in self.keys:
            return name
        raise BadParameter(
            "DP105",
            f"the answer has no key {name!r}.",
            why="rows are put together by the keys of their groups.",
            fix=f"use {', '.join(map(repr, self.keys))}" if self.keys else "answer.share()   needs no key",
        )

    # --- views, recorded in the notes ------------------------------------------------------

    def nonnegative(self) -> Answer:
        """The answer with negative numbers, and ends of intervals, set to 0 in columns that cannot
        be negative.

        **Guarantee.** Intervals keep their coverage, because the exact number is not negative.
        Totals of such numbers are biased upwards; a note says so.

        >>> count = Noisy((-3,), (-8,), (2,), whole=True, nonnegative=True)
        >>> Answer.of(keys=[], groups=[()], columns={"n": count}).nonnegative().rows()
        [(0, 0, 2)]
        """
        changed = {name: _clip(column) for name, column in self.columns.items() if column.nonnegative}
        note = "Negative numbers were set to 0; totals of such numbers are biased upwards."
        return self._with_view(changed, note)

    def round(self) -> Answer:
        """The answer with counts, and sums of whole numbers, rounded to whole numbers.

        **Guarantee.** The ends of intervals are rounded outwards, so they keep their coverage; a
        note says so.

        >>> count = Noisy((3.4,), (1.2,), (5.6,), whole=True)
        >>> Answer.of(keys=[], groups=[()], columns={"n": count}).round().rows()
        [(3, 1, 6)]
        """
        changed = {name: _round(column) for name, column in self.columns.items() if column.whole}
        note = "Counts and sums of whole numbers were rounded to whole numbers, and their intervals outwards."
        return self._with_view(changed, note)

    def _with_view(self, changed: Mapping[str, Noisy], note: str) -> Answer:
        notes = (*self.notes, f"View: {note}") if changed else self.notes
        return replace(self, columns={**self.columns, **changed}, notes=notes)

    # --- showing -------------------------------------------------------------------------------------

    def plot(
        self, column: str | Sequence[str] | None = None, ax: Axes | None = None, *, sort: bool = False
    ) -> Figure:
        """A chart of noisy columns: a point and its interval for each group.

        `column` is a name or several. By default all noisy columns are drawn beside each other, up
        to four, or the first one on `ax`. A list of more than 60 groups stands in several panels.
        With `sort` the groups are ordered by the first column that is drawn, the greatest first.
        """
        from discreet.plot.groups import panels

        if column is None:
            column = list(self.columns)[: 1 if ax is not None else 4]
        chosen = list(column) if isinstance(column, list | tuple) else [column]
        # An empty list names no column, and is refused like a name that is none.
        names = [self._column_name(name) for name in chosen or [None]]
        shown = self
        if sort:
            order = SortOrder(ReleasedColumn(names[0]), descending=True)
            shown = arithmetic.in_order(self, order)
        labels = [", ".join(map(cell_text, group)) or names[0] for group in shown.groups]
        columns = {shown.columns[name].text or name: shown.columns[name] for name in names}
        chart: Figure = panels(
            labels, {name: (each.values, each.lo, each.hi) for name, each in columns.items()}, ax=ax
        )
        return chart

    def __str__(self) -> str:
        lines = [self.header, *self._cells()]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.header))]
        table = [self._line(line, widths) for line in lines]
        return "\n".join([*table, *(f"· {sentence}" for sentence in self._footer())])

    def __repr__(self) -> str:
        """The table, as frames show themselves in a console."""
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._cells()
        )
        foot = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self._footer())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{foot}</ul>"

    def _cells(self) -> Iterator[list[str]]:
        """The rows of the table as texts."""
        for at, group in enumerate(self.groups):
            numbers = ((each.values[at], each.lo[at], each.hi[at]) for each in self.columns.values())
            noisy = (cell for number in numbers for cell in number_cells(*number))
            yield [*map(cell_text, group), *noisy]

    def _line(self, texts: Sequence[str], widths: Sequence[int]) -> str:
        words, numbers = len(self.keys), zip(texts, widths, strict=True)
        padded = [
            cell.ljust(width) if at < words else cell.rjust(width) for at, (cell, width) in enumerate(numbers)
        ]
        return "  ".join(padded).rstrip()

    def _footer(self) -> Iterator[str]:
        yield from self.all_notes()
        if self.guarantee is not None:
            yield f"guarantee: {short(self.guarantee)} for {self.guarantee.unit}"

    def _column_name(self, column: object) -> str:
        if isinstance(column, str) and column in self.columns:
            return column
        raise BadParameter(
            "DP105",
            f"the answer has no noisy column {column!r}.",
            why="a chart shows a noisy column with its intervals.",
            fix=f"answer.plot({next(iter(self.columns), 'count')!r})",
        )


def _checked_answer(value: object) -> Answer:
    """An answer; anything else is refused."""
    if isinstance(value, Answer):
        return value
    raise BadParameter(
        "DP104",
        "arithmetic with an answer needs another answer, or a number.",
        why="each number of the answer needs one number that belongs to it.",
        fix="answer / other_answer   or   100 * answer",
    )


# A number stays inside its interval, because one monotone function acts on the number and on both ends.
def _clip(column: Noisy) -> Noisy:
    def at_zero(values: Values) -> Values:
        return tuple(type(value)(0) if value is not None and value < 0 else value for value in values)

    return _replace_numbers(column, at_zero(column.values), at_zero(column.lo), at_zero(column.hi))


def _round(column: Noisy) -> Noisy:
    def to_whole(values: Values, to: Callable[[float], int]) -> Values:
        return tuple(
            None if value is None or not math.isfinite(value) else int(to(value)) for value in values
        )

    ends = to_whole(column.lo, math.floor), to_whole(column.hi, math.ceil)
    return _replace_numbers(column, to_whole(column.values, round), *ends)


def _replace_numbers(column: Noisy, values: Values, lo: Values, hi: Values) -> Noisy:
    return replace(column, values=values, lo=lo, hi=hi, deviation=None, interval=None, linear=None)
