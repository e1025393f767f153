# SPDX-License-Identifier: Apache-2.0
"""The rows of a stream: which of a unit's rows are kept, and their sums by period and group.

**Guarantee.** Whether a row is kept depends on rows of the same unit alone, and on none that is
later. So later rows change no sum of an earlier period, and every unit keeps within its bound.

Why it holds: window functions see the rows of one unit (`algebra/sums.py`); a rank by time counts
the rows that are not later; rows of equal time are in one period (participation.proof.md, § 4).

What would break it: rows of a period that is over which are changed later. `Session` compares a
digest of the sums of every period, and refuses to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.errors import RefusedQuestion
from discreet.streams.participation import Participation
from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.expr import Arithmetic, AsDate, Bucket, Case, Compare, Expr, IsNull, Read
from discreet.tables.algebra.sums import (
    BoundedSums,
    Filtered,
    Lookup,
    Private,
    Relation,
    RowScheme,
    Windowed,
    WindowFunction,
)
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, Type, days
from discreet.tables.ask.columns import bounded_column, similar_names
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.groups import kept_rows
from discreet.tables.plan.linear import whole
from discreet.tables.streams.calendar import Calendar

__all__ = ["StreamRows", "stream_rows"]

#: Names under which columns are added here.
_RANK, _BEFORE, _GAP, _TURN = "stream rank", "stream before", "stream gap", "stream turn"


@dataclass(frozen=True)
class StreamRows:
    """The rows of one private table in the periods of a stream, with the bound on each unit.

    `period` is 1 for the first period; `time` orders the rows of a unit.
    """

    rows: Relation
    period: Expr
    time: Expr
    calendar: Calendar
    participation: Participation
    one_row_per_unit: bool

    def sums(self, keys: Sequence[Expr], features: Sequence[Expr], periods: int) -> BoundedSums:
        """The request for the sums of the first periods: the number of the period is the first
        key.
        """
        most = self.participation.most_rows
        return BoundedSums(
            self._kept_rows(periods), (self.period, *keys), tuple(features), RowScheme(most, 1)
        )

    def _kept_rows(self, periods: int) -> Relation:
        rows: Relation = Filtered(
            Filtered(self.rows, Compare(">=", self.period, whole(1))),
            Compare("<=", self.period, whole(periods)),
        )
        bound = self.participation
        # A unit with one row keeps it, whatever the bound.
        if self.one_row_per_unit:
            return rows
        if bound.periods is None:
            return self._first(rows, bound.rows, ())
        rows = self._first(rows, bound.rows, (self.period,))
        if bound.apart > 1:
            rows = self._apart(rows, bound.apart)
        turn = WindowFunction("dense_rank", order=((self.period, False),))
        rows = Windowed(rows, _TURN, (("turn", turn),))
        return Filtered(rows, _at_most(_TURN, "turn", bound.periods))

    def _first(self, rows: Relation, most: int, partition: tuple[Expr, ...]) -> Relation:
        """The first rows of each unit, or of each unit and period."""
        rank = WindowFunction("row_number", partition=partition, order=((self.time, False),))
        return Filtered(Windowed(rows, _RANK, (("rank", rank),)), _at_most(_RANK, "rank", most))

    def _apart(self, rows: Relation, apart: int) -> Relation:
        """The rows of the periods that begin long enough after the unit's last period with rows."""
        low, high = -apart, self.calendar.periods
        before = WindowFunction("lag", self.period, order=((self.period, False),))
        rows = Windowed(rows, _BEFORE, (("before", before),))
        read = Read(_BEFORE, "before", Type(NUMBER, 0, high, 0))
        # A unit's first period comes after any gap.
        last = Case(((IsNull(read), whole(low)),), read)
        # Other rows of the same period have that period before them; the first of them has the last one.
        least = WindowFunction("min", last, partition=(self.period,))
        rows = Windowed(rows, _GAP, (("last", least),))
        last_of_all = Read(_GAP, "last", Type(NUMBER, low, high, 0))
        gap = Arithmetic("-", self.period, last_of_all)
        return Filtered(rows, Compare(">=", gap, whole(apart)))


def stream_rows(
    question: Question,
    dataset: Dataset,
    time: str | None,
    calendar: Calendar,
    participation: Participation,
) -> StreamRows:
    """The rows of a question in the periods of a calendar; `time` names the column of the day."""
    rows = kept_rows(question)
    table = _only_table(rows)
    described = next(
        described for described in dataset.tables.values() if (described.of or described.name) == table.table
    )
    column = time if time is not None else _only_date(dataset, described.name)
    if column not in described.columns or described.columns[column].kind not in {"date", "timestamp"}:
        dates = _dates(dataset, described.name)
        raise _question_error(
            f"{described.name} has no date {column!r}.",
            "each row belongs to the period of its day.",
            f"time={similar_names(str(column), dates)!r}"
            if dates
            else 'time="day"   after adding such a column',
        )
    read = bounded_column(described, column)
    moment = Read(table.label, column, read.type)
    assert moment.type.kind in {DATE, MOMENT}
    day = AsDate(moment) if moment.type.kind == MOMENT else moment
    _check_bounds(described.name, column, day, calendar)
    number = Bucket(Arithmetic("+", day, whole(0)), tuple(map(days, calendar.edges)))
    is_unit = dataset.protect.column is None or described.unit == ROW
    return StreamRows(rows, number, moment, calendar, participation, is_unit)


def time_column(dataset: Dataset, question: Question, time: str | None) -> str:
    """The column of the day: the one that is named, or the only date of the table."""
    if time is not None:
        return time
    table = _only_table(question.rows)
    name = next(each.name for each in dataset.tables.values() if (each.of or each.name) == table.table)
    return _only_date(dataset, name)


def _only_table(rows: Relation) -> Private:
    """The private table of a question; refused where other rows decide about a row."""
    while isinstance(rows, Filtered | Lookup):
        rows = rows.rows
    if isinstance(rows, Private):
        return rows
    raise _question_error(
        "a stream is about the rows of one private table, one by one.",
        "other rows of a unit may come later, and change what was published before.",
        "SELECT COUNT(*) FROM visits   without joins of private tables, subqueries per unit and window functions",
    )


def _dates(dataset: Dataset, table: str) -> list[str]:
    columns = dataset.tables[table].columns.values()
    return [column.name for column in columns if column.kind in {"date", "timestamp"}]


def _only_date(dataset: Dataset, table: str) -> str:
    dates = _dates(dataset, table)
    if len(dates) == 1:
        return dates[0]
    raise _question_error(
        f"{table} has {len(dates) or 'no'} dates, and none is named.",
        "each row belongs to the period of its day.",
        f'time="{dates[0]}"' if dates else 'time="day"   after adding a column with the day of each row',
    )


def _check_bounds(table: str, column: str, day: Expr, calendar: Calendar) -> None:
    """A date beyond its bounds is read as the bound, so it would be in a wrong period."""
    first, last = days(calendar.edges[0]), days(calendar.edges[-1]) - 1
    if day.type.low <= first and last <= day.type.high:
        return
    raise _question_error(
        f"the stream goes from {calendar.edges[0]} to {calendar.last_day(calendar.periods - 1)}, beyond the bounds of {column}.",
        "days beyond the bounds are read as the last day within them, and would be counted in a wrong period.",
        f"bounds = [{calendar.edges[0]}, {calendar.last_day(calendar.periods - 1)}]   in [columns.{column}] of {table}",
    )


def _at_most(label: str, column: str, most: int) -> Expr:
    """Whether a rank is at most that; ranks beyond are read as one more."""
    return Compare("<=", Read(label, column, Type(NUMBER, 1, most + 1, 0, null=False)), whole(most))


def _question_error(what: str, why: str, fix: str) -> RefusedQuestion:
    return RefusedQuestion("DP708", what, why=why, fix=fix)
