# SPDX-License-Identifier: Apache-2.0
"""`discreet statement`: a privacy statement of what was guaranteed and what was released.

`discreet statement verify` compares a statement with its ledger, and exits with status 5 if they
differ.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import asking, options
from discreet.cli.files import Write, text_writer, write_together
from discreet.cli.places import data_at, ledger_at
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows
from discreet.errors import BadDescription, BadParameter, EngineFailed
from discreet.paths import place_for

if TYPE_CHECKING:
    from discreet.ledger.statement import Statement

FORMATS = ("html", "md", "json")
#: The exit status for a statement that does not match its ledger.
REFUTED = 5
STATEMENT_EXAMPLE = (
    '[statement]\n       intended_use = "planning of wards"\n       publication_date = 2026-11-01'
)

Book = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://….")]
Page = Annotated[str, typer.Argument(metavar="FILE", help="A statement as HTML, Markdown or JSON.")]
Format = Annotated[str | None, options.option("--format", "FORMATS", "html, md, json; several with commas.")]
Out = Annotated[
    str | None,
    options.option("--out", "FILE", "Write to this file; without an ending, one file per format."),
]
About = Annotated[
    str | None,
    options.option(
        "--about",
        "FILE.toml",
        "What only a person knows, under [statement]: intended_use, publication_date, units, ….",
    ),
]


def statement(
    ledger: Book,
    *,
    data: asking.MaybeData = None,
    about: About = None,
    formats: Format = None,
    out: Out = None,
    answers: asking.Answers = False,
    anchor: asking.Anchor = None,
    json: options.Json = False,
) -> None:
    """Show the guarantee, its assumptions and what was released, recomputed from the ledger.

    discreet statement visits.ledger --about about.toml --format html,json --out statement

    discreet statement verify statement.html visits.ledger

    The order is that of NIST SP 800-226. The JSON form has an entry for the registry of
    deployments. The data are not needed; --data shows a description other than the ledger's, marked
    as asserted. Answers are shown only with --answers.
    """
    from discreet.ledger.statement import Statement

    wanted = _formats(formats, out, json=json)
    declared = None if about is None else read_about(Path(about))
    book = ledger_at(ledger)
    description = None if data is None else _description_of(data, ledger)
    page = Statement.of(book, description, answers=answers, anchor=anchor, declared=declared)
    if out is None:
        for form in wanted:
            print(render(page, form).rstrip())
        return
    for target in save(page, Path(out), wanted):
        print(target)


def _description_of(data: str, ledger: str) -> dict[str, object]:
    """The description that --data names; where its data cannot be opened, the ledger alone is
    enough.
    """
    try:
        return data_at(data).public_description()
    except EngineFailed as error:
        error.fix = f"discreet statement {ledger}   shows the description that the ledger holds; the data are not needed"
        raise


def verify(file: Page, ledger: Book, *, json: options.Json = False) -> None:
    """Recompute a statement from its ledger and compare every figure and sentence.

    discreet statement verify statement.html visits.ledger

    Exits with status 0 if they agree, also if the ledger has later entries, and with status 5 if
    they do not.
    """
    from discreet.ledger.statement_check import verify_statement

    check = verify_statement(_text(Path(file)), ledger_at(ledger))
    if json:
        facts = {"command": "statement verify", "file": file, "holds": check.holds, "verdict": check.verdict}
        facts |= {"form": check.form, "rows": check.rows, "later": check.later}
        facts |= {"differences": [difference.to_dict() for difference in check.differences]}
        print_json(facts | {"not_verified": list(check.asserted)})
    else:
        listed = [(difference.kind, str(difference).partition(": ")[2]) for difference in check.differences]
        print_rows(
            [
                ("statement", check.verdict),
                *listed,
                *(("not verified", difference) for difference in check.asserted),
            ]
        )
    if not check.holds:
        raise typer.Exit(REFUTED)


def read_about(file: Path) -> Mapping[str, object]:
    """What a person declares about a deployment, from the table [statement] of a TOML file."""
    from discreet.ledger.registry import validate_declared

    try:
        document = tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise _about_file_error(file, f"{error}.") from None
    if set(document) != {"statement"} or not isinstance(document["statement"], dict):
        raise _about_file_error(file, "it must have one table, [statement].")
    try:
        return validate_declared(document["statement"])
    except BadParameter as slip:
        raise _about_file_error(file, slip.what) from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _unreadable_file_error(file, "there is no such file.") from None
    except (OSError, UnicodeDecodeError):
        raise _unreadable_file_error(file, "it cannot be read as UTF-8 text.") from None


def _unreadable_file_error(file: Path, what: str) -> BadParameter:
    return BadParameter(
        "DP105",
        f"{file}: {what}",
        why="the file is read before anything else is done.",
        fix="name a file that is there",
    )


def _about_file_error(file: Path, what: str) -> BadDescription:
    return BadDescription(
        "DP403",
        f"{file}: {what}",
        why="declared facts are shown as yours, so nothing in them is guessed.",
        fix=STATEMENT_EXAMPLE,
    )


def render(statement: Statement, form: str) -> str:
    """The statement in one of its formats."""
    return {"html": statement.to_html, "md": statement.to_markdown, "json": statement.to_json}[form]()


def save(statement: Statement, target: Path, forms: Iterable[str]) -> list[Path]:
    """One file for each format, all of them or none."""
    place_for(target if target.suffix or not target.name else target.with_name(f"{target.name}.md"))
    files = pages(statement, target, forms)
    write_together(files)
    return list(files)


def pages(statement: Statement, target: Path, forms: Iterable[str]) -> dict[Path, Write]:
    """What writes one file for each format."""
    plain = target.with_suffix("") if target.suffix.removeprefix(".") in FORMATS else target
    return {
        plain.with_name(f"{plain.name}.{form}"): text_writer(render(statement, form).rstrip() + "\n")
        for form in forms
    }


def _formats(given: str | None, out: str | None, *, json: bool) -> list[str]:
    ending = Path(out).suffix.removeprefix(".") if out is not None else ""
    usual = "json" if json else (ending if ending in FORMATS else "md")
    asked = [form.strip() for form in (given or usual).split(",")]
    wrong = [form for form in asked if form not in FORMATS]
    if wrong or (out is None and len(asked) > 1) or (json and asked != ["json"]):
        raise BadParameter(
            "DP105",
            f"there is no format {wrong[0]!r}." if wrong else "several formats need a file each.",
            why="a statement is written as HTML, Markdown or JSON.",
            fix="--format html,md,json --out statement",
        )
    return asked
