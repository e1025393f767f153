# SPDX-License-Identifier: Apache-2.0
"""`discreet release`: many tables at once, all or none, with a statement.

**Guarantee.** All tables are charged in one transaction, before the first is drawn, or nothing is: whoever else spends the
limit meanwhile, no half of a release is ever paid for. Each table has a key that is made of the release's name and its
own: running the same release again, after a crash or a Ctrl-C, writes the same answers, or draws those that nobody has
seen, and pays nothing more. Files appear when all of them are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import asking, options
from discreet.cli.files import can_make, can_write, folder, paid, together, writer
from discreet.cli.places import data_at, session_for
from discreet.cli.report import print_json
from discreet.cli.statement import FORMATS, pages
from discreet.cli.terminal import console, print_rows, print_table, working
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.cli.releases import Job, Release
    from discreet.ledger.statement import Statement
    from discreet.session import Session
    from discreet.tables.answer.answer import Answer

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
    """Many tables at once: CSV and Parquet with intervals, and a statement. All are paid for together, or nothing is charged.

    discreet release release.toml --out tables

    Run it again after it was stopped: what was paid for is not paid for again. Exit code 3: it does not fit the limit.
    """
    from discreet.cli.releases import read

    told = read(Path(file))
    session = session_for(data_at(told.data), ledger or told.ledger, limit, told.who)
    with working("planning"):
        jobs = told.jobs(session)
    place = can_make(out)
    can_write(path for job in jobs for path in _files(place, job))
    with _bar(len(jobs), visible=not json) as step:
        answers = session.release_all({job.key: (job.sql, job.spend) for job in jobs}, after_each=step)
    try:
        statements = _written(session.statement(declared=told.declared), jobs, answers, place)
    except BadParameter as error:
        raise paid(error, "what the release costs; running it again costs nothing more") from None
    tables = [_facts(job, answers[job.key], _files(place, job)) for job in jobs]
    _tell(told, session, tables, statements, json=json)


def _written(statement: Statement, jobs: list[Job], answers: dict[str, Answer], place: Path) -> list[Path]:
    """All tables and the statement, in files that appear together; the places of the statement."""
    folder(str(place))
    statements = pages(statement, place / "statement", FORMATS)
    tables = {path: writer(answers[job.key], path) for job in jobs for path in _files(place, job)}
    together(tables | statements)
    return list(statements)


def _facts(job: Job, answer: Answer, files: list[Path]) -> dict[str, Any]:
    return {
        "name": job.name,
        "rows": len(answer),
        "paid": answer.receipt.cost is not None,
        "receipt": answer.receipt.number,
        "files": [str(path) for path in files],
    }


def _files(place: Path, job: Job) -> list[Path]:
    return [place / f"{job.name}.{form}" for form in job.formats]


def _tell(
    told: Release, session: Session, tables: list[dict[str, Any]], statements: list[Path], *, json: bool
) -> None:
    if json:
        from discreet.ledger.overview import budget

        found = {"command": "release", "release": told.name, "tables": tables}
        print_json(
            found | {"statement": [str(path) for path in statements], "budget": budget(session.budget())}
        )
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
            ("limit", session.budget().headline),
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
