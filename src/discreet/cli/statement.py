# SPDX-License-Identifier: Apache-2.0
"""`discreet statement`: what was promised and what was released, for those who must answer for it.

`discreet statement verify` says whether a page says what its ledger says, and exits with status 5 if it does not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from discreet.cli import asking, options
from discreet.cli.files import Write, text_writer, together
from discreet.cli.places import data_at, ledger_at
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows
from discreet.errors import BadDescription, BadParameter, EngineFailed
from discreet.paths import place_for

if TYPE_CHECKING:
    from discreet.ledger.statement import Statement

FORMATS = ("html", "md", "json")
#: A statement that is not true is what an audit would call a violation.
REFUTED = 5
_MAKE = "of"
STATEMENT_EXAMPLE = (
    '[statement]\n       intended_use = "planning of wards"\n       publication_date = 2026-11-01'
)

Book = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://….")]
Page = Annotated[str, typer.Argument(metavar="FILE", help="A statement as HTML, Markdown or JSON.")]
Format = Annotated[
    str | None, typer.Option("--format", metavar="FORMATS", help="html, md, json; several with commas.")
]
Out = Annotated[
    str | None, typer.Option("--out", metavar="FILE", help="Write there; without an ending one per format.")
]
About = Annotated[
    str | None,
    typer.Option(
        "--about",
        metavar="FILE.toml",
        help="What only a person knows, in a table named statement: intended_use, publication_date, units, ….",
    ),
]


class OrVerify(TyperGroup):
    """`discreet statement LEDGER` makes a statement; `verify` is the only other word that is understood there."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = bool(args) and args[0] in self.commands and args[0] != _MAKE
        return super().parse_args(ctx, args if known else [_MAKE, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == _MAKE else name, command, rest


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
    """The promise, what it rests on and what was released, recomputed from the ledger alone. No answer is shown.

    discreet statement visits.ledger --about about.toml --format html,json --out statement

    discreet statement verify statement.html visits.ledger

    The order is that of NIST SP 800-226; the JSON form holds an entry for the registry of deployments. The data are not needed;
    --data shows another description than the ledger holds, marked as asserted.
    """
    from discreet.ledger.statement import Statement

    asked = _formats(formats, out, json=json)
    said = None if about is None else read_about(Path(about))
    book = ledger_at(ledger)
    description = None if data is None else _described(data, ledger)
    found = Statement.of(book, description, answers=answers, anchor=anchor, declared=said)
    if out is None:
        for form in asked:
            print(written(found, form).rstrip())
        return
    for place in save(found, Path(out), asked):
        print(place)


def _described(data: str, ledger: str) -> dict[str, Any]:
    """The description that --data names; where its data cannot be opened, the ledger alone is enough."""
    try:
        return data_at(data).public_description()
    except EngineFailed as error:
        error.fix = f"discreet statement {ledger}   shows the description that the ledger holds; the data are not needed"
        raise


def verify(file: Page, ledger: Book, *, json: options.Json = False) -> None:
    """Make a statement again from its ledger, as of the entry that it was made at, and compare every figure and sentence.

    discreet statement verify statement.html visits.ledger

    Exits with status 0 if it holds (also if the ledger has later entries), and with status 5 if it does not.
    """
    from discreet.ledger.statement_check import verify_statement

    found = verify_statement(_text(Path(file)), ledger_at(ledger))
    if json:
        told = {"command": "statement verify", "file": file, "holds": found.holds, "verdict": found.verdict}
        told |= {"form": found.form, "rows": found.rows, "later": found.later}
        told |= {"differences": [one.to_dict() for one in found.differences]}
        print_json(told | {"not_verified": list(found.asserted)})
    else:
        listed = [(one.kind, str(one).partition(": ")[2]) for one in found.differences]
        print_rows(
            [("statement", found.verdict), *listed, *(("not verified", one) for one in found.asserted)]
        )
    if not found.holds:
        raise typer.Exit(REFUTED)


def read_about(file: Path) -> dict[str, Any]:
    """What a person declares about a deployment, from the table [statement] of a TOML file."""
    from discreet.ledger.registry import validate_declared

    try:
        told = tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise _wrong(file, f"{error}.") from None
    if set(told) != {"statement"} or not isinstance(told["statement"], dict):
        raise _wrong(file, "it has one table, [statement].")
    try:
        return validate_declared(told["statement"])
    except BadParameter as slip:
        raise _wrong(file, slip.what) from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _unread(file, "there is no such file.") from None
    except (OSError, UnicodeDecodeError):
        raise _unread(file, "it cannot be read as UTF-8 text.") from None


def _unread(file: Path, what: str) -> BadParameter:
    return BadParameter(
        "DP105",
        f"{file}: {what}",
        why="what it says is read before anything else is done.",
        fix="name a file that is there",
    )


def _wrong(file: Path, what: str) -> BadDescription:
    return BadDescription(
        "DP403",
        f"{file}: {what}",
        why="what a person says about a deployment is shown as theirs, so it must be read as they meant it.",
        fix=STATEMENT_EXAMPLE,
    )


def written(found: Statement, form: str) -> str:
    """The statement in one of its formats."""
    return {"html": found.to_html, "md": found.to_markdown, "json": found.to_json}[form]()


def save(found: Statement, place: Path, forms: Iterable[str]) -> list[Path]:
    """One file for each format, all of them or none."""
    place_for(place if place.suffix or not place.name else place.with_name(f"{place.name}.md"))
    files = pages(found, place, forms)
    together(files)
    return list(files)


def pages(found: Statement, place: Path, forms: Iterable[str]) -> dict[Path, Write]:
    """What writes one file for each format."""
    plain = place.with_suffix("") if place.suffix.removeprefix(".") in FORMATS else place
    return {
        plain.with_name(f"{plain.name}.{form}"): text_writer(written(found, form).rstrip() + "\n")
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
            why="a statement is a page, a text, or an object.",
            fix="--format html,md,json --out statement",
        )
    return asked
