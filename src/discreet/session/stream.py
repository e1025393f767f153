# SPDX-License-Identifier: Apache-2.0
"""A stream: one question, answered again every period, paid for once when it is opened.

    stream = session.stream("SELECT COUNT(*) FROM visits", every="week", periods=52, epsilon=1, delta=1e-6)
    stream.release()                 # the row of every period that is over
    stream.total(); stream.window(4); stream.between("2026-01-05", "2026-02-01")

**Guarantee.** All rows together cost what was charged when the stream was opened, however often and
by whomever they are asked for. Each period has one row for ever, which is stored before it is
shown. No noise is stored.

Why it holds: participation.proof.md, §§ 1 to 6, and the ledger's rows of periods
(`ledger/periods.py`).

What would break it: data of a period that change after it; the stream notices it where the sums
change, and goes no further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from discreet import check, clock
from discreet.errors import BadParameter, LedgerError
from discreet.ledger import Receipt
from discreet.noise.source import is_private, reserve
from discreet.privacy.guarantee import Guarantee
from discreet.session.account import SessionAccount
from discreet.session.stream_file import StreamFile
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.noisy import CONFIDENCE
from discreet.tables.ask.start import Dataset
from discreet.tables.streams.calendar import Calendar
from discreet.tables.streams.plan import StreamPlan
from discreet.tables.streams.published import PublishedRows
from discreet.tables.streams.row import StreamRow, appearances, digest_of_sums, draw_row, sums_by_period

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Stream", "StreamPreview"]

Result = TypeVar("Result")
Day = date | str


@dataclass(frozen=True)
class StreamPreview:
    """What a stream would cost, and the margins of error of its figures.

    **Guarantee.** Computed from public numbers: no row is read, nothing is spent.

    Why it holds: it reads the description of the data and the question. What would break it: bounds
    that were read off the rows.

    >>> from discreet import privacy
    >>> StreamPreview(privacy.pure(1.0), {}, ()).guarantee.epsilon(delta=0)
    1.0
    """

    guarantee: Guarantee
    errors: dict[str, dict[str, float | None]]
    sentences: tuple[str, ...]

    @classmethod
    def of(cls, plan: StreamPlan) -> StreamPreview:
        """The preview of a stream."""
        return cls(plan.guarantee, plan.errors(), tuple(plan.describe()))

    def __str__(self) -> str:
        lines = [*self.sentences]
        for figure, columns in self.errors.items():
            margins = ", ".join(
                f"{name} ±{margin:.4g}" if margin is not None else f"{name}: depends on its rows"
                for name, margin in columns.items()
            )
            lines.append(f"Margin of error of {figure}: {margins}.")
        return "\n".join(lines)


class Stream:
    """A question that is answered again every period. `Session.stream` makes it.

    **Guarantee.** Asking for a row again shows the same row, at no cost. Everything but `release`
    reads published rows only.

    Why it holds: rows are stored in the ledger, once for each period, before they are shown. What
    would break it: a ledger that is put back together with its stream file.

    >>> import datetime, discreet as dp, polars as pl
    >>> from discreet import testing
    >>> days = [datetime.date(2026, 1, 5 + at % 14) for at in range(100)]
    >>> visits = pl.DataFrame({"id": range(100), "day": days})
    >>> bounds = (datetime.date(2026, 1, 1), datetime.date(2027, 12, 31))
    >>> data = dp.open(visits, protect=dp.each("id", at_most=1), columns={"day": dp.column(bounds=bounds)})
    >>> session = dp.Session(data, limit=dp.Limit.filter(epsilon=1))
    >>> stream = session.stream(data.count(), every="week", periods=52, start="2026-01-05", epsilon=1)
    >>> with testing.today("2026-01-20"):
    ...     len(stream.release())
    2
    """

    def __init__(
        self,
        name: str,
        *,
        key: str,
        plan: StreamPlan,
        data: Dataset,
        account: SessionAccount,
        file: StreamFile,
        receipt: Receipt | None,
        timed: Callable[[Callable[[], Answer]], Answer],
    ) -> None:
        self.name, self.receipt = name, receipt
        self._key, self._plan, self._data = key, plan, data
        self._account, self._file, self._timed = account, file, timed

    # --- public numbers ------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """What all rows together cost; it was charged when the stream was opened."""
        return self._plan.guarantee

    @property
    def question(self) -> str:
        """The question."""
        return self._plan.question.text

    @property
    def predicted(self) -> StreamPreview:
        """The margins of error of its figures, the noise, and why it was chosen."""
        return StreamPreview.of(self._plan)

    @property
    def shown(self) -> int:
        """How many periods have been published."""
        return len(self._account.ledger.periods(self._key))

    @property
    def periods(self) -> int:
        """How many periods it has."""
        return self._calendar.periods

    def describe(self) -> list[str]:
        """The stream in plain sentences, with how much of it has been published."""
        shown, calendar = self.shown, self._calendar
        until = f", until {calendar.last_day(shown - 1)}" if shown else ""
        return [
            f"{self.name}: {self.question}",
            *self._plan.describe(),
            f"{calendar.periods} {calendar.every}s, paid for when it was opened; {shown} published{until}.",
        ]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise self._account.ledger.no_copies()

    def __repr__(self) -> str:
        return f"<Stream {self.name!r}: {self.shown} of {self.periods} {self._calendar.every}s published>"

    def __str__(self) -> str:
        return "\n".join(self.describe())

    # --- publishing ----------------------------------------------------------------------------------

    @check.arguments
    def release(self, until: Day | None = None) -> Answer:
        """The figures of all single periods up to a day, by default up to today; new ones are drawn
        and stored first.

        **Guarantee.** No charge. Each row is stored before it is shown, and a row that was stored
        is shown again as it is. Refused, with nothing drawn, are periods that are not over (DP611)
        and data that have changed in a published period (DP610).
        """
        wanted = self._periods_until(until)
        return self._timed(
            lambda: self._rows_to_read(self._rows_until(wanted)[:wanted]).over(_singles(wanted))
        )

    def _periods_until(self, until: Day | None) -> int:
        """How many periods are asked for; all of them are over."""
        today, calendar = clock.today(), self._calendar
        over = calendar.ended_by(today)
        wanted = over if until is None else calendar.ended_by(check.day(until=until) + timedelta(days=1))
        if 0 < wanted <= over:
            return wanted
        period = min(max(wanted - 1, 0), calendar.periods - 1)
        last = calendar.last_day(period)
        due = calendar.last_day(over - 1) if over else None
        raise LedgerError(
            "DP611",
            f"the {calendar.every} from {calendar.edges[period]} to {last} is not over."
            if last >= today
            else f"no {calendar.every} of the stream ends by that day.",
            why="rows that arrive later in the period would be missing from its figure for ever.",
            fix=f'stream.release(until="{due}")' if due else f"ask again after {calendar.last_day(0)}",
        )

    def _rows_until(self, wanted: int) -> list[StreamRow]:
        """The stored rows; those that are missing are drawn, one by one, and stored."""
        rows = self._stored_rows()
        if len(rows) >= wanted:
            return rows
        if not is_private():
            raise _repeatable_error()
        self._file.check(self._account.ledger)
        self._data.ready()
        reserve()
        sums = sums_by_period(self._plan, self._data.engine, wanted)
        secret = self._file.secret_of(self._key)
        digests = [digest_of_sums(period, each, secret) for period, each in enumerate(sums)]
        self._check_past(rows, digests)
        while len(rows) < wanted:
            period = len(rows)
            drawn = draw_row(self._plan, appearances(self._plan, rows), sums[: period + 1], secret)
            text = self._account.ledger.add_period(
                self._key, period, drawn.to_json(), asker=self._account.asker
            )
            self._file.record(self._account.ledger.anchor())
            rows.append(StreamRow.from_json(text))
            # The row of another process counts, and it may have seen other data.
            self._check_past(rows, digests)
        return rows

    def _stored_rows(self) -> list[StreamRow]:
        return [StreamRow.from_json(text) for text in self._account.ledger.periods(self._key)]

    def _check_past(self, rows: Sequence[StreamRow], digests: Sequence[str]) -> None:
        """Refuse to go on if the sums of a published period are not those that were published."""
        for row, digest in zip(rows, digests, strict=False):
            if row.digest != digest:
                calendar = self._calendar
                raise LedgerError(
                    "DP610",
                    f"the data of the {calendar.every} from {calendar.edges[row.period]} have changed since it was published.",
                    why="the cost of a stream is proved for rows that stay as they are once their period is over.",
                    fix="give rows that arrive late, and corrections, the day on which they arrived; put back the rows as they were, "
                    "or open a new stream:  name='visits from 2027'",
                )

    # --- reading what was published ------------------------------------------------------------------

    @check.arguments
    def totals(self, *, together: bool = False, confidence: float = CONFIDENCE) -> Answer:
        """The running total after each published period; with `together` all intervals hold at
        once.
        """
        rows = self._published_rows()
        ranges = [(0, period) for period in range(len(rows.rows))]
        return rows.over(ranges, together=together, confidence=confidence)

    @check.arguments
    def singles(self, *, together: bool = False, confidence: float = CONFIDENCE) -> Answer:
        """The figure of each published period by itself; nothing new is published."""
        rows = self._published_rows()
        return rows.over(_singles(len(rows.rows)), together=together, confidence=confidence)

    @check.arguments
    def total(self, *, together: bool = False, confidence: float = CONFIDENCE) -> Answer:
        """The total of all published periods."""
        rows = self._published_rows()
        return rows.over([(0, len(rows.rows) - 1)], together=together, confidence=confidence)

    @check.arguments
    def between(
        self, first: Day, last: Day, *, together: bool = False, confidence: float = CONFIDENCE
    ) -> Answer:
        """The sum over the published periods from a first to a last day, which begin and end one."""
        rows = self._published_rows()
        calendar, shown = self._calendar, len(rows.rows)
        first, last = check.day(first=first), check.day(last=last)
        begin, end = calendar.period_of(first), calendar.period_of(last)
        fits = 0 <= begin <= end < shown
        if fits and calendar.edges[begin] == first and calendar.last_day(end) == last:
            return rows.over([(begin, end)], together=together, confidence=confidence)
        begin = min(max(begin, 0), shown - 1)
        end = min(max(end, begin), shown - 1)
        raise BadParameter(
            "DP102",
            f"the stream has no published {calendar.every}s from {first} to {last}.",
            why="figures are published for whole periods.",
            fix=f'stream.between("{calendar.edges[begin]}", "{calendar.last_day(end)}")',
        )

    @check.arguments
    def windows(self, periods: int, *, together: bool = False, confidence: float = CONFIDENCE) -> Answer:
        """The sum over so many periods, ending with each published period that has as many before
        it.
        """
        rows = self._published_rows()
        length = self._window_length(periods, len(rows.rows))
        ranges = [(last - length + 1, last) for last in range(length - 1, len(rows.rows))]
        return rows.over(ranges, together=together, confidence=confidence)

    @check.arguments
    def window(self, periods: int, *, together: bool = False, confidence: float = CONFIDENCE) -> Answer:
        """The sum over the latest published periods, so many of them."""
        rows = self._published_rows()
        length, shown = self._window_length(periods, len(rows.rows)), len(rows.rows)
        return rows.over([(shown - length, shown - 1)], together=together, confidence=confidence)

    def _window_length(self, periods: object, shown: int) -> int:
        length = check.whole(periods=periods)
        if length > shown:
            raise BadParameter(
                "DP102",
                f"only {shown} periods are published, and the window has {length}.",
                why="a figure is computed from published rows.",
                fix=f"stream.window({shown})",
            )
        return length

    def plot(
        self, *, figures: str = "totals", together: bool = True, confidence: float = CONFIDENCE
    ) -> Figure:
        """A chart of the running totals, or of the single periods, with the band of their
        intervals.

        **Guarantee.** Post-processing of published rows.
        """
        from discreet.plot.periods import periods as draw

        check.choice(("totals", "periods"), figures=figures)
        show = self.totals if figures == "totals" else self.singles
        answer = show(together=together, confidence=confidence)
        name = next(iter(answer.columns))
        column, keys = answer.columns[name], len(self._plan.question.keys)
        lines: dict[str, list[int]] = {}
        days: list[Any] = [group[1] for group in answer.groups]
        for at, group in enumerate(answer.groups):
            label = " · ".join(str(part) for part in group[2 : 2 + keys]) or name
            lines.setdefault(label, []).append(at)
        series = {
            label: (
                [days[at] for at in places],
                [column.values[at] for at in places],
                [column.lo[at] for at in places],
                [column.hi[at] for at in places],
            )
            for label, places in lines.items()
        }
        figure: Figure = draw(series, name=f"{name}, {figures}")
        return figure

    @property
    def _calendar(self) -> Calendar:
        return self._plan.calendar

    def _rows_to_read(self, rows: Sequence[StreamRow]) -> PublishedRows:
        return PublishedRows(self._plan, tuple(rows))

    def _published_rows(self) -> PublishedRows:
        rows = self._stored_rows()
        if not rows:
            raise LedgerError(
                "DP611",
                "no period of the stream is published yet.",
                why="figures are computed from published rows.",
                fix="stream.release()",
            )
        return self._rows_to_read(rows)


def _singles(periods: int) -> list[tuple[int, int]]:
    return [(period, period) for period in range(periods)]


def _repeatable_error() -> LedgerError:
    return LedgerError(
        "DP605",
        "the noise of this row can be repeated.",
        why="whoever knows the seed can take the noise away.",
        fix="leave out  testing.seeded(…)  where data are real.",
    )
