# SPDX-License-Identifier: Apache-2.0
"""`discreet release`: many tables at once, all or none, with a statement.

**Guarantee.** All tables are charged in one transaction, before the first is drawn, or nothing is
charged, even if others spend from the same limit meanwhile. Each table has a key made of the name
of the release and its own name. Running the same release again, after a crash or Ctrl-C, writes the
same answers, or draws those that nobody has seen, and pays nothing more. Files appear when all of
them are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import asking, options
from discreet.cli.files import (
    Write,
    after_payment,
    can_make,
    can_write,
    folder,
    text_writer,
    write_together,
    writer,
)
from discreet.cli.places import data_at, session_for
from discreet.cli.previews import fits
from discreet.cli.release_copies import unpaid_copies
from discreet.cli.release_streams import publish, unpaid_streams
from discreet.cli.report import print_json
from discreet.cli.statement import FORMATS, pages
from discreet.cli.terminal import console, print_rows, print_table, working
from discreet.errors import BadParameter
from discreet.json_types import JsonObject

if TYPE_CHECKING:
    from discreet.cli.releases import ReleaseFile, TableJob
    from discreet.ledger.statement import Statement
    from discreet.session import Session
    from discreet.tables.answer.answer import Answer

File = Annotated[
    str,
    typer.Argument(
        metavar="RELEASE.toml",
        help="The release file, or a folder with release.toml and .sql files; discreet plan shows its cost.",
    ),
]
Out = Annotated[str, options.option("--out", "FOLDER", "The folder for tables and statement.")]


def release(
    file: File,
    *,
    out: Out,
    ledger: asking.LedgerFile = None,
    limit: asking.LimitWords = None,
    json: options.Json = False,
) -> None:
    """Release many tables at once, with a privacy statement.

    discreet release release.toml --out tables

    Writes each table as CSV and Parquet with its intervals. Charges all tables, or none. If it is
    interrupted, run it again: no table is charged twice. Exits with status 3 if the budget is too
    small.
    """
    from discreet.cli.releases import read_release

    release_file = read_release(Path(file))
    session = session_for(data_at(release_file.data), ledger or release_file.ledger, limit, release_file.who)
    with working("planning"):
        jobs = release_file.jobs(session)
        _refuse_what_does_not_fit(session, release_file, jobs)
    target = can_make(out)
    streams = release_file.streams
    can_write(path for job in jobs for path in _files(target, job))
    can_write(path for section in streams for path in section.files(target))
    can_write(path for copy in release_file.copies for path in copy.files(target))
    opened = [section.open(session) for section in streams]
    with _bar(len(jobs), visible=not json) as step:
        questions = {job.key: (job.sql, job.spend) for job in jobs}
        answers = session.release_batch(questions, after_each=step) if questions else {}
    published = [publish(section, stream, target) for section, stream in zip(streams, opened, strict=True)]
    copies = [section.make(session) for section in release_file.copies]
    try:
        statement = session.statement(declared=release_file.declared)
        written = {path: answer for each in published for path, answer in each.answers.items()}
        written |= {path: answers[job.key] for job in jobs for path in _files(target, job)}
        made = {path: write for each in copies for path, write in each.writes(target).items()}
        statements = _write_all(statement, written, made, target)
    except BadParameter as error:
        raise after_payment(error, "what the release costs; running it again costs nothing more") from None
    tables = [_table_facts(job, answers[job.key], _files(target, job)) for job in jobs]
    facts = {
        "streams": [each.facts() for each in published],
        "copies": [each.facts(target) for each in copies],
    }
    _print_release(release_file, session, tables, facts, statements, json=json)


def _refuse_what_does_not_fit(session: Session, release_file: ReleaseFile, jobs: list[TableJob]) -> None:
    """Refuse a release with streams or copies that does not fit as a whole, before its first
    charge.
    """
    unpaid = unpaid_streams(session, release_file.streams) + unpaid_copies(session, release_file.copies)
    if unpaid:
        costs = [*unpaid, *(job.cost for job in jobs if not job.paid)]
        refusal = fits(session, costs, release_file.who["analyst"], release_file.who["project"]).refusal
        if refusal is not None:
            raise refusal


def _write_all(
    statement: Statement, answers: dict[Path, Answer], copies: dict[Path, Write], target: Path
) -> list[Path]:
    """All tables and the statement, in files that appear together; the places of the statement."""
    from discreet.tables.answer.frames import SIDECAR, sidecar_text

    folder(str(target))
    statements = pages(statement, target / "statement", FORMATS)
    tables = {path: writer(answer, path) for path, answer in answers.items()}
    # A CSV file cannot say what its numbers mean, so a description lies beside it.
    sidecars = {
        path.with_name(f"{path.name}{SIDECAR}"): text_writer(sidecar_text(answer, path.name))
        for path, answer in answers.items()
        if path.suffix == ".csv"
    }
    write_together(tables | sidecars | copies | statements)
    return list(statements)


def _table_facts(job: TableJob, answer: Answer, files: list[Path]) -> JsonObject:
    return {
        "name": job.name,
        "rows": len(answer),
        "paid": answer.receipt.cost is not None,
        "receipt": answer.receipt.number,
        "files": [str(path) for path in files],
    }


def _files(target: Path, job: TableJob) -> list[Path]:
    return [target / f"{job.name}.{form}" for form in job.formats]


def _print_release(
    release_file: ReleaseFile,
    session: Session,
    tables: list[dict[str, Any]],
    others: dict[str, list[dict[str, Any]]],
    statements: list[Path],
    *,
    json: bool,
) -> None:
    if json:
        from discreet.ledger.overview import budget_facts

        facts = {"command": "release", "release": release_file.name, "tables": tables}
        facts |= {kind: each for kind, each in others.items() if each}
        print_json(
            facts
            | {"statement": [str(path) for path in statements], "budget": budget_facts(session.budget())}
        )
        return
    rows = [
        [table["name"], str(table["rows"]), f"#{table['receipt']}" if table["paid"] else "paid before", path]
        for table in tables
        for path in table["files"]
    ]
    if rows:
        print_table(["table", "rows", "entry", "file"], rows, numbers={1})
    for copy in others["copies"]:
        entry = f"entry #{copy['receipt']}" if copy["paid"] else "paid before"
        print(f"{copy['name']}: {copy['rows']:,} synthetic rows, {entry}; {', '.join(copy['files'])}")
    for stream in others["streams"]:
        files = ", ".join(stream["files"]) or "no period is over yet"
        print(f"{stream['name']}: {stream['shown']} of {stream['periods']} periods published; {files}")
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
