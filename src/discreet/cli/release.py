# SPDX-License-Identifier: Apache-2.0
"""`discreet release`: many tables at once, all or none, with a statement.

**Promise.** Nothing is charged unless everything fits what is left. Each table is charged under a key that is made of the
release's name and its own: running the same release again, after a crash or a Ctrl-C, shows what was answered before for
nothing and pays only for what is missing. Files are whole or not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import asking, options
from discreet.cli.files import can_write, folder, paid, write_answer
from discreet.cli.places import data_at, session_for
from discreet.cli.plan import pending
from discreet.cli.previews import fits
from discreet.cli.report import print_json
from discreet.cli.statement import FORMATS, save
from discreet.cli.terminal import console, print_rows, print_table, working
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.cli.releases import Job, Release
    from discreet.session import Session

File = Annotated[
    str, typer.Argument(metavar="RELEASE.toml", help="What is released; see  discreet plan  too.")
]
Out = Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where tables and statement go.")]


def release(
    file: File,
    *,
    out: Out,
    ledger: asking.LedgerFile = None,
    limit: asking.LimitWords = None,
    json: options.Json = False,
) -> None:
    """Many tables at once: CSV and Parquet with intervals, and a statement. All fit the limit, or nothing is charged.

    discreet release release.toml --out tables

    Run it again after it was stopped: what was paid for is not paid for again.
    """
    from discreet.cli.releases import read

    told = read(Path(file))
    session = session_for(data_at(told.data), ledger or told.ledger, limit, told.who)
    with working("planning"):
        jobs = told.jobs(session)
        costs = pending(session, jobs)
        refusal = fits(session, costs, told.who["analyst"], told.who["project"]).refusal
    if refusal is not None:
        raise refusal
    place = folder(out)
    can_write(path for job in jobs for path in _files(place, job))
    try:
        tables = _released(session, jobs, place, visible=not json)
        statements = save(session.statement(), place / "statement", FORMATS)
    except BadParameter as error:
        raise paid(error, "what the ledger says; running it again pays only for what is missing") from None
    _tell(told, session, tables, statements, json=json)


def _released(session: Session, jobs: list[Job], place: Path, *, visible: bool) -> list[dict[str, Any]]:
    """Each table answered (or shown again) and written, in the order of the file."""
    tables = []
    with _bar(len(jobs), visible=visible) as step:
        for job in jobs:
            answer = session.sql(job.sql, key=job.key, **job.spend)
            files = _files(place, job)
            for path in files:
                write_answer(answer, path)
            tables.append(
                {
                    "name": job.name,
                    "rows": len(answer),
                    "paid": answer.receipt.cost is not None,
                    "receipt": answer.receipt.number,
                    "files": [str(path) for path in files],
                }
            )
            step()
    return tables


def _files(place: Path, job: Job) -> list[Path]:
    return [place / f"{job.name}.{form}" for form in job.formats]


def _tell(
    told: Release, session: Session, tables: list[dict[str, Any]], statements: list[Path], *, json: bool
) -> None:
    if json:
        from discreet.ledger.overview import budget

        found = {"command": "release", "release": told.name, "tables": tables}
        print_json(found | {"statement": [str(path) for path in statements], "left": budget(session.left())})
        return
    rows = [
        [table["name"], str(table["rows"]), f"#{table['receipt']}" if table["paid"] else "paid before", path]
        for table in tables
        for path in table["files"]
    ]
    print_table(["table", "rows", "entry", "file"], rows, numbers={1})
    print()
    print_rows(
        [
            ("statement", ", ".join(str(path) for path in statements)),
            ("limit used", f"{session.left().share:.1%}"),
            ("anchor", session.ledger.anchor()),
        ]
    )


@contextmanager
def _bar(total: int, *, visible: bool) -> Iterator[Callable[[], None]]:
    """A progress bar on stderr, if somebody is looking."""
    screen = console(stderr=True)
    if not visible or not screen.is_terminal:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    with Progress(
        TextColumn("releasing"), BarColumn(), MofNCompleteColumn(), console=screen, transient=True
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
