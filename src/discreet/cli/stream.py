# SPDX-License-Identifier: Apache-2.0
"""`discreet stream`: one question, answered again every period, and charged once.

**Guarantee.** `open` charges the whole stream before anything is drawn; `release` stores each row
before it shows it; `show` reads published rows only. Running a command again costs nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet import check
from discreet.cli import asking, options
from discreet.cli.files import FIGURES, TABLES, can_draw, can_write, check_path, write_answer, write_whole
from discreet.cli.numbers import whole
from discreet.cli.places import data_at, session_for
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows, print_table, working
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.session import Session
    from discreet.session.stream import Stream
    from discreet.tables.answer.answer import Answer

_PERIODS, _OUT = "Periods", "Output"

Sql = Annotated[
    str, typer.Argument(metavar="SQL", help="SELECT COUNT(*) … GROUP BY …: counts, sums and means.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the stream.")]
MaybeName = Annotated[str | None, typer.Argument(metavar="NAME", help="The name; by default all are listed.")]
StreamName = Annotated[
    str | None, options.option("--name", "NAME", "Its name; by default the question.", _PERIODS)
]
Every = Annotated[str, options.option("--every", "PERIOD", "day, week, month, quarter or year.", _PERIODS)]
Periods = Annotated[str, options.option("--periods", "NUMBER", "How many periods.", _PERIODS)]
Start = Annotated[
    str | None,
    options.option("--start", "DAY", "The first day; by default that of the present period.", _PERIODS),
]
Time = Annotated[
    str | None, options.option("--time", "COLUMN", "The column of the day of each row.", _PERIODS)
]
PerUnit = Annotated[
    str | None,
    options.option("--per-unit", "BOUND", "rows=3 · periods=4,apart=13 · periods=52,rows=2.", _PERIODS),
]
BestFor = Annotated[
    str, options.option("--best-for", "FIGURES", "totals, periods, or the length of a window.", _PERIODS)
]
OpenEnded = Annotated[bool, options.switch("--open-ended", "Build it for ten times the periods.", _PERIODS)]
File = Annotated[
    str | None, options.option("--file", "FILE", "The stream file; by default beside the ledger.", "Ledger")
]
Preview = Annotated[bool, options.switch("--preview", "Show the cost and the margins of error only.", "Cost")]
Until = Annotated[str | None, options.option("--until", "DAY", "Up to that day; by default up to today.")]
Out = Annotated[
    str | None, options.option("--out", "FILE", "Write the table: .csv, .parquet or .json.", _OUT)
]
Plot = Annotated[str | None, options.option("--plot", "FILE", "Draw it: .svg, .png or .pdf.", _OUT)]
Figures = Annotated[
    str,
    options.option("--figures", "WHICH", "periods, totals, total, window=4, or DAY..DAY."),
]
Together = Annotated[bool, options.switch("--together", "Intervals that hold for all periods at once.")]


def open_command(
    sql: Sql,
    *,
    data: asking.Data,
    every: Every,
    periods: Periods,
    epsilon: asking.Epsilon = None,
    delta: asking.Delta = None,
    rho: asking.Rho = None,
    name: StreamName = None,
    start: Start = None,
    time: Time = None,
    per_unit: PerUnit = None,
    best_for: BestFor = "totals",
    open_ended: OpenEnded = False,
    preview: Preview = False,
    ledger: asking.LedgerFile = None,
    limit: asking.LimitWords = None,
    file: File = None,
    analyst: asking.Analyst = None,
    project: asking.Project = None,
    purpose: asking.Purpose = None,
    json: options.Json = False,
) -> None:
    """Open a stream: charge one question for all of its periods.

    discreet stream open "SELECT COUNT(*) FROM visits" --data visits.toml --every week --periods 52
    --epsilon 1 --delta 1e-6 --ledger visits.ledger

    Opening it again finds the same stream and costs nothing. Exits with status 3 if the budget is
    too small, and with status 4 if the question cannot be a stream.
    """
    cost = asking.stated_cost(epsilon, delta, rho, None)
    who = {"analyst": analyst, "project": project, "purpose": purpose}
    session = session_for(data_at(data), ledger, limit, who, read_only=preview)
    words: dict[str, Any] = {
        "every": every,
        "periods": whole("--periods", periods, check.whole, "--periods 52"),
        "name": name,
        "start": start,
        "time": time,
        "per_unit": None if per_unit is None else _read_bound(per_unit),
        "best_for": _measure(best_for),
        "open_ended": open_ended,
    }
    amounts: dict[str, Any] = {amount: cost.get(amount) for amount in ("epsilon", "delta", "rho")}
    if preview:
        _print_preview(session.preview_stream(sql, **words, **amounts), json=json)
        return
    with working("opening"):
        stream = session.stream(sql, **words, **amounts, file=file)
    _print_stream(session, stream, "stream open", json=json)


def release_command(
    name: Name,
    *,
    data: asking.Data,
    until: Until = None,
    out: Out = None,
    ledger: asking.LedgerFile = None,
    file: File = None,
    analyst: asking.Analyst = None,
    project: asking.Project = None,
    json: options.Json = False,
) -> None:
    """Publish the periods of a stream that are over.

    discreet stream release "weekly visits" --data visits.toml --ledger visits.ledger --out weekly.csv

    Each row is stored before it is shown, and is the same for ever. Costs nothing.
    """
    table = None if out is None else check_path(out, TABLES, "--out")
    can_write([] if table is None else [table])
    session = _session(data, ledger, analyst, project)
    stream = session.find_stream(name, file=file)
    with working("publishing"):
        answer = stream.release(until=until)
    if table is not None:
        write_answer(answer, table)
    _print_answer(stream, answer, "stream release", [] if table is None else [table], json=json)


def show_command(
    name: MaybeName = None,
    *,
    data: asking.Data,
    figures: Figures = "totals",
    together: Together = False,
    out: Out = None,
    plot: Plot = None,
    ledger: asking.LedgerFile = None,
    file: File = None,
    analyst: asking.Analyst = None,
    project: asking.Project = None,
    json: options.Json = False,
) -> None:
    """List the streams of a ledger, or show published figures of one.

    discreet stream show "weekly visits" --data visits.toml --ledger visits.ledger --figures window=4

    Reads published rows only. Costs nothing.
    """
    table = None if out is None else check_path(out, TABLES, "--out")
    figure = None if plot is None else check_path(plot, FIGURES, "--plot")
    can_write([] if table is None else [table])
    can_draw(figure)
    session = _session(data, ledger, analyst, project)
    if name is None:
        _print_streams(session, file, json=json)
        return
    stream = session.find_stream(name, file=file)
    answer = _figures(stream, figures, together=together)
    files: list[Path] = []
    if table is not None:
        write_answer(answer, table)
        files.append(table)
    if figure is not None:
        from discreet import plot as charts

        drawn = "periods" if figures == "periods" else "totals"
        write_whole(figure, lambda target: charts.save(stream.plot(figures=drawn, together=together), target))
        files.append(figure)
    _print_answer(stream, answer, "stream show", files, json=json)


def _session(data: str, ledger: str | None, analyst: str | None, project: str | None) -> Session:
    return session_for(data_at(data), ledger, None, {"analyst": analyst, "project": project})


def _read_bound(text: str) -> dict[str, int]:
    """A bound on what one unit contributes: rows=3, or periods=4,apart=13."""
    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if parts and set(parts) <= {"rows", "periods", "apart"}:
        return {
            name: whole(f"--per-unit {name}", word, check.whole, "--per-unit rows=3")
            for name, word in parts.items()
        }
    raise BadParameter(
        "DP105",
        f"{text!r} does not say what one unit contributes.",
        why="the noise is made for that many rows of one unit in the whole stream.",
        fix="--per-unit rows=3   or   --per-unit periods=4,apart=13",
    )


def _measure(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _figures(stream: Stream, which: str, *, together: bool) -> Answer:
    """The figures that a word stands for."""
    if which == "periods":
        return stream.singles(together=together)
    if which == "totals":
        return stream.totals(together=together)
    if which == "total":
        return stream.total(together=together)
    kind, _, length = which.partition("=")
    if kind == "window" and length:
        return stream.windows(
            whole("--figures window", length, check.whole, "--figures window=4"), together=together
        )
    first, dots, last = which.partition("..")
    if dots:
        return stream.between(first, last, together=together)
    raise BadParameter(
        "DP105",
        f"{which!r} does not name figures of a stream.",
        why="a stream has single periods, totals, windows, and ranges from a day to a day.",
        fix="--figures totals   or   --figures window=4   or   --figures 2026-01-05..2026-02-01",
    )


def _print_preview(preview: object, *, json: bool) -> None:
    from discreet.session.stream import StreamPreview

    assert isinstance(preview, StreamPreview)
    if json:
        print_json(
            {
                "command": "stream open",
                "preview": True,
                "guarantee": preview.guarantee.to_json(),
                "errors": preview.errors,
                "sentences": list(preview.sentences),
            }
        )
        return
    print(preview)


def _stream_facts(stream: Stream) -> dict[str, object]:
    return {
        "name": stream.name,
        "question": stream.question,
        "periods": stream.periods,
        "shown": stream.shown,
        "guarantee": stream.guarantee.to_json(),
    }


def _print_stream(session: Session, stream: Stream, command: str, *, json: bool) -> None:
    receipt = stream.receipt
    paid = receipt is not None and receipt.cost is not None
    if json:
        from discreet.ledger.overview import budget_facts

        print_json(
            {
                "command": command,
                **_stream_facts(stream),
                "errors": stream.predicted.errors,
                "paid": paid,
                "budget": budget_facts(session.budget()),
            }
        )
        return
    print(f"{stream.name}: {stream.question}")
    print(stream.predicted)
    print()
    print_rows(
        [
            ("receipt", str(receipt) if paid else "it was opened and paid for before"),
            ("limit", session.budget().headline),
        ]
    )


def _print_answer(stream: Stream, answer: Answer, command: str, files: list[Path], *, json: bool) -> None:
    if json:
        rows = [
            {
                name: cell if cell is None or isinstance(cell, bool | int | float) else str(cell)
                for name, cell in row.items()
            }
            for row in answer
        ]
        print_json(
            {
                "command": command,
                **_stream_facts(stream),
                "rows": rows,
                "notes": list(answer.all_notes()),
                "files": [str(path) for path in files],
            }
        )
        return
    print(answer)
    print()
    print_rows(
        [
            ("stream", f"{stream.name}: {stream.shown} of {stream.periods} published"),
            *(("wrote", str(path)) for path in files),
        ]
    )


def _print_streams(session: Session, file: str | None, *, json: bool) -> None:
    streams = [session.find_stream(name, file=file) for name in session.streams()]
    if json:
        print_json({"command": "stream show", "streams": [_stream_facts(stream) for stream in streams]})
        return
    if not streams:
        print("No stream was opened.")
        return
    print_table(
        ["stream", "question", "published", "periods"],
        [[stream.name, stream.question, str(stream.shown), str(stream.periods)] for stream in streams],
        numbers={2, 3},
    )
