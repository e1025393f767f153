# SPDX-License-Identifier: Apache-2.0
"""`discreet statement`: what was promised and what was released, for those who must answer for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import asking, options
from discreet.cli.files import Write, text_writer, together
from discreet.cli.places import data_at, ledger_at
from discreet.errors import BadParameter
from discreet.paths import place_for

if TYPE_CHECKING:
    from discreet.ledger.statement import Statement

FORMATS = ("html", "md", "json")

Book = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://….")]
Format = Annotated[
    str | None, typer.Option("--format", metavar="FORMATS", help="html, md, json; several with commas.")
]
Out = Annotated[
    str | None, typer.Option("--out", metavar="FILE", help="Write there; without an ending one per format.")
]


def statement(
    ledger: Book,
    *,
    data: asking.MaybeData = None,
    formats: Format = None,
    out: Out = None,
    answers: asking.Answers = False,
    anchor: asking.Anchor = None,
    json: options.Json = False,
) -> None:
    """The promise, what it rests on and what was released, recomputed from the ledger. No answer is shown.

    discreet statement visits.ledger --data visits.toml --format html,json --out statement

    The order is that of NIST SP 800-226; the JSON form holds an entry for the registry of deployments.
    """
    from discreet.ledger.statement import Statement

    asked = _formats(formats, out, json=json)
    book = ledger_at(ledger)
    description = None if data is None else data_at(data).public_description()
    found = Statement.of(book, description, answers=answers, anchor=anchor)
    if out is None:
        for form in asked:
            print(written(found, form).rstrip())
        return
    for place in save(found, Path(out), asked):
        print(place)


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
