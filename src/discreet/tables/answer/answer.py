# SPDX-License-Identifier: Apache-2.0
"""What comes back: groups, noisy numbers with their intervals, and what must be said about them.

    answer.to_pandas()          # ward, count, count_lo, count_hi, avg_days, avg_days_lo, avg_days_hi
    answer.to_csv("wards.csv"); answer.to_parquet("wards.parquet")
    answer.plot()
    answer.value                # of a question with one number
    answer.nonnegative().rounded()

**Guarantee.** An answer is made of released numbers and public knowledge only: everything here is post-processing. Each
interval holds what it is about with probability 95 %, over the noise, on its own; what it does not cover (clipping,
who is in the data at all) is said in `notes`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from discreet.errors import BadParameter
from discreet.mechanisms.digits import cells, word
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import short
from discreet.tables.answer import frames, views

__all__ = ["CONFIDENCE", "Answer", "Noisy"]

CONFIDENCE = 0.95
NOT_PRIVATE = "NOT PRIVATE: drawn from a repeatable source"
Numbers = tuple[Any, ...]  # int, float or None, one for each group
Interval = Callable[[float], tuple[Numbers, Numbers]]


@dataclass(frozen=True)
class Noisy:
    """One noisy column: a value and an interval for each group; None where there is nothing to say.

    **Guarantee.** A value lies inside its own interval.

    `deviation` is the standard deviation of the noise on each number where it is the same for all of them; `whole` says
    that the number is one of things (rows, units, or a sum of whole numbers), `nonnegative` that it cannot be below zero.
    `interval(confidence)` gives the ends at another confidence; it is not kept when an answer is stored, nor is `together`:
    columns with the same one have intervals that hold at the same time.
    """

    values: Numbers
    lo: Numbers
    hi: Numbers
    text: str = ""
    noise: str = ""
    deviation: float | None = None
    whole: bool = False
    nonnegative: bool = False
    interval: Interval | None = field(default=None, compare=False, repr=False)
    together: str = field(default="", compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the released numbers, and not the function that widens their intervals."""
        return {**self.__dict__, "interval": None, "together": ""}

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a question: `keys` name the columns of `groups`, `columns` hold a number for each of them."""

    keys: tuple[str, ...]
    groups: tuple[tuple[Any, ...], ...]
    columns: dict[str, Noisy]
    question: str = ""
    notes: tuple[str, ...] = ()
    withheld: str = ""
    guarantee: Guarantee | None = None
    receipt: Any = None
    private: bool = True

    @classmethod
    def of(
        cls, *, keys: Sequence[str], groups: Sequence[tuple[Any, ...]], columns: dict[str, Noisy], **said: Any
    ) -> Answer:
        """An answer from sequences of any kind."""
        return cls(tuple(keys), tuple(groups), dict(columns), **said)

    # --- reading -------------------------------------------------------------------------------------

    @property
    def header(self) -> list[str]:
        """The names of all columns: keys, then x, x_lo, x_hi for every noisy x."""
        return [*self.keys, *(f"{name}{end}" for name in self.columns for end in ("", "_lo", "_hi"))]

    def rows(self) -> list[tuple[Any, ...]]:
        """The table, row by row, in the order of `header`."""
        noisy = [part for column in self.columns.values() for part in (column.values, column.lo, column.hi)]
        return [(*group, *(part[at] for part in noisy)) for at, group in enumerate(self.groups)]

    @property
    def value(self) -> Any:
        """The one number of an answer that has one."""
        if len(self.columns) == 1 and len(self.groups) == 1:
            return next(iter(self.columns.values())).values[0]
        raise BadParameter(
            "DP107",
            f"this answer has {len(self.groups)} rows and {len(self.columns)} noisy columns, not one number.",
            why="which of them is meant cannot be guessed.",
            fix="answer.to_pandas(), or answer.rows()",
        )

    @property
    def interval(self) -> tuple[Any, Any]:
        """The interval of the one number of an answer that has one."""
        _ = self.value
        (column,) = self.columns.values()
        return column.lo[0], column.hi[0]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.header, row, strict=True)) for row in self.rows())

    # --- handing on ----------------------------------------------------------------------------------

    def to_pandas(self) -> Any:
        """A pandas data frame; what is to be said about it is in `attrs`."""
        return frames.to_pandas(self)

    def to_polars(self) -> Any:
        """A Polars data frame."""
        return frames.to_polars(self)

    def to_arrow(self) -> Any:
        """An Arrow table; what is to be said about it is in the metadata of its schema."""
        return frames.to_arrow(self)

    def to_csv(self, path: str | Path) -> None:
        """A CSV file, UTF-8, with a header line."""
        frames.to_csv(self, path)

    def to_parquet(self, path: str | Path) -> None:
        """A Parquet file with the same metadata as the Arrow table."""
        frames.to_parquet(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain JSON types."""
        return frames.to_dict(self)

    def to_json(self) -> str:
        """Everything, as one line of JSON; `Answer.from_json` reads it back."""
        return frames.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """An answer that was kept as JSON."""
        return frames.from_json(text)

    def metadata(self) -> dict[str, str]:
        """What is to be said about the numbers, as short texts by name."""
        said = {"discreet.question": self.question, "discreet.confidence": f"{CONFIDENCE}"}
        if self.guarantee is not None:
            said["discreet.guarantee"] = self.guarantee.to_json()
            said["discreet.protects"] = str(self.guarantee.unit)
        if self.receipt is not None:
            said["discreet.receipt"] = str(self.receipt)
        said |= {f"discreet.noise.{name}": column.noise for name, column in self.columns.items()}
        if self.withheld:
            said["discreet.withheld"] = self.withheld
        said["discreet.notes"] = "\n".join(self.said())
        return said

    def said(self) -> tuple[str, ...]:
        """Every sentence that belongs to the answer."""
        warning = () if self.private else (NOT_PRIVATE,)
        return (*warning, *((self.withheld,) if self.withheld else ()), *self.notes)

    # --- labelled post-processing --------------------------------------------------------------------

    def nonnegative(self) -> Answer:
        """Numbers that cannot be negative, cut at zero; their intervals too. Totals of cut numbers are biased."""
        return views.nonnegative(self)

    def rounded(self) -> Answer:
        """Counts, and sums of whole numbers, as whole numbers; the ends of their intervals are rounded outwards."""
        return views.rounded(self)

    # --- showing -------------------------------------------------------------------------------------

    def plot(self, column: str | None = None, ax: Any = None) -> Any:
        """One noisy column as points with their intervals, group by group."""
        from discreet.plot.groups import groups

        name = self._named(column)
        noisy = self.columns[name]
        labels = [", ".join(map(word, group)) or name for group in self.groups]
        return groups(labels, noisy.values, noisy.lo, noisy.hi, name=noisy.text or name, ax=ax)

    def __str__(self) -> str:
        lines = [self.header, *self._cells()]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.header))]
        table = [self._line(line, widths) for line in lines]
        return "\n".join([*table, *(f"· {sentence}" for sentence in self._footer())])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._cells()
        )
        foot = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self._footer())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{foot}</ul>"

    def _cells(self) -> Iterator[list[str]]:
        """The table as it is shown, row by row."""
        for at, group in enumerate(self.groups):
            three = ((each.values[at], each.lo[at], each.hi[at]) for each in self.columns.values())
            noisy = (cell for number in three for cell in cells(*number))
            yield [*map(word, group), *noisy]

    def _line(self, texts: Sequence[str], widths: Sequence[int]) -> str:
        words, numbers = len(self.keys), zip(texts, widths, strict=True)
        padded = [
            cell.ljust(width) if at < words else cell.rjust(width) for at, (cell, width) in enumerate(numbers)
        ]
        return "  ".join(padded).rstrip()

    def _footer(self) -> Iterator[str]:
        yield from self.said()
        if self.guarantee is not None:
            yield f"guarantee: {short(self.guarantee)} for {self.guarantee.unit}"

    def _named(self, column: str | None) -> str:
        if column is None and self.columns:
            return next(iter(self.columns))
        if column in self.columns:
            return column
        raise BadParameter(
            "DP105",
            f"there is no noisy column {column!r}.",
            why="only columns with noise have intervals to draw.",
            fix=f"answer.plot({next(iter(self.columns), 'count')!r})",
        )

    def with_(self, **changed: Any) -> Self:
        """The same answer with some fields changed."""
        return replace(self, **changed)
