# SPDX-License-Identifier: Apache-2.0
"""The methods of a session that open and find streams: see `discreet.session.stream`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

from discreet import check
from discreet.session.compiler import QuestionCompiler
from discreet.session.open_stream import (
    StreamRequest,
    find_stream,
    names_of_streams,
    open_stream,
    plan_of,
)
from discreet.session.response import ResponseTime
from discreet.session.stream import Stream, StreamPreview
from discreet.session.validate import Askable
from discreet.streams.participation import Participation
from discreet.tables.answer.answer import Answer
from discreet.tables.plan.spend import Spend

__all__ = ["StreamMethods"]


class StreamMethods:
    """What a session does with streams.

    **Guarantee.** Opening a stream charges all of it, once; everything else here costs nothing.
    """

    _compiler: QuestionCompiler
    _response: ResponseTime

    @check.arguments
    def stream(
        self,
        question: Askable | str,
        *,
        every: str,
        periods: int,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        name: str | None = None,
        start: date | str | None = None,
        time: str | None = None,
        per_unit: Participation | Mapping[str, int] | None = None,
        best_for: str | int = "totals",
        open_ended: bool = False,
        file: str | Path | None = None,
    ) -> Stream:
        """A question that is answered again every period: counts, sums and means of a table with a
        date.

        `every` is day, week, month, quarter or year, and `time` the column of the day of each row.
        The first period begins at `start`, by default on the first day of the present one.
        `per_unit` bounds what one unit contributes to the whole stream, by default so many rows in
        all as `at_most` says. `best_for` says which figures shall have the least error: "totals",
        "periods", or the length of a sliding window. With `open_ended` the stream has ten times the
        periods, for little more noise. `file` is the stream file, by default beside a ledger that
        is a file; it must be kept as private as the data.

        **Guarantee.** The whole stream is charged now, once. Opening it again finds the same
        stream.
        """
        request = StreamRequest(
            question,
            every,
            periods,
            Spend(epsilon, delta, rho),
            name,
            start,
            time,
            per_unit,
            best_for,
            open_ended,
        )
        return open_stream(self._compiler, request, file, self._at_response_time)

    @check.arguments
    def preview_stream(
        self,
        question: Askable | str,
        *,
        every: str,
        periods: int,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        name: str | None = None,
        start: date | str | None = None,
        time: str | None = None,
        per_unit: Participation | Mapping[str, int] | None = None,
        best_for: str | int = "totals",
        open_ended: bool = False,
    ) -> StreamPreview:
        """The cost of a stream, its noise, and the margins of error of its figures.

        **Guarantee.** No row is read and nothing is spent.
        """
        request = StreamRequest(
            question,
            every,
            periods,
            Spend(epsilon, delta, rho),
            name,
            start,
            time,
            per_unit,
            best_for,
            open_ended,
        )
        return StreamPreview.of(plan_of(self._compiler, request)[1])

    @check.arguments
    def find_stream(self, name: str, *, file: str | Path | None = None) -> Stream:
        """A stream that was opened before, by its name."""
        return find_stream(self._compiler, name, file, self._at_response_time)

    def streams(self) -> list[str]:
        """The names of the streams that this analyst has opened."""
        return names_of_streams(self._compiler)

    def _at_response_time(self, work: Callable[[], Answer]) -> Answer:
        return self._response.wait_for(work, None)
