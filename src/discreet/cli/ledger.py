# SPDX-License-Identifier: Apache-2.0
"""`discreet ledger show|verify|export`: reads a ledger. Nothing here writes into one."""

from __future__ import annotations

import json as text
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from discreet import check
from discreet.cli import asking, options
from discreet.cli.files import write_text
from discreet.cli.numbers import whole
from discreet.cli.places import ledger_at
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows, print_table, progress_bar
from discreet.paths import place_for

if TYPE_CHECKING:
    from discreet.ledger.verify import Verification

#: The exit status for a damaged ledger, the same as for a refuted claim.
DAMAGED = 5

Book = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://….")]
Last = Annotated[str | None, options.option("--last", "N", "Show only the last N charges.")]
Out = Annotated[str | None, options.option("--out", "FILE", "Write to this file.")]


def show(
    ledger: Book, *, last: Last = None, answers: asking.Answers = False, json: options.Json = False
) -> None:
    """List the charges: when, by whom, for what and at what cost.

    discreet ledger show visits.ledger --last 20

    Answers are shown only with --answers.
    """
    from discreet.ledger.released import release_lines

    book = ledger_at(ledger)
    lines = release_lines(list(book.entries()), book.limit, answers=answers)
    if last is not None:
        lines = lines[-whole("--last", last, check.whole, "--last 20") :]
    if json:
        facts: dict[str, object] = {
            "command": "ledger show",
            "ledger": book.where,
            "protects": str(book.unit),
        }
        print_json(facts | {"charges": lines, "anchor": book.anchor()})
        return
    heads = ["#", "time (UTC)", "who", "question", "cost", "spent"]
    rows = [
        [
            str(line["number"]),
            line["time"][:16].replace("T", " "),
            line["analyst"] or line["project"] or "–",
            line["question"] + ("" if line["status"] == "answered" else f"  [{line['status']}]"),
            line["epsilon"],
            f"{line['spent_fraction_after']:.1%}",
        ]
        for line in lines
    ]
    print_table(heads, rows, numbers={0, 5})
    for line in lines if answers else ():
        print(f"\n#{line['number']}  {line['answer'] or 'no answer was kept'}")
    print(f"\nanchor  {book.anchor()}")


def verify(ledger: Book, *, anchor: asking.Anchor = None, json: options.Json = False) -> None:
    """Recompute every hash, cost and total of a ledger.

    discreet ledger verify visits.ledger --anchor 2f0c…

    Exits with status 5 if the ledger is damaged.
    """
    book = ledger_at(ledger)
    with progress_bar("verifying", visible=not json) as progress:
        verification = book.verify(anchor=anchor, progress=progress)
    if json:
        from discreet.ledger.overview import budget_facts

        print_json(
            {
                "command": "ledger verify",
                "ledger": book.where,
                "entries": verification.entries,
                "intact": verification.intact,
                "anchor": verification.anchor,
                "findings": [
                    {"code": finding.code, "text": finding.text} for finding in verification.findings
                ],
                "spent": budget_facts(verification.spent),
                "recomputed": None
                if verification.recomputed is None
                else budget_facts(verification.recomputed),
            }
        )
    else:
        _print_verification(verification)
    if not verification.intact:
        raise typer.Exit(DAMAGED)


def _print_verification(verification: Verification) -> None:
    recomputed = (
        "beyond the limit"
        if verification.recomputed is None
        else "; ".join(map(str, verification.recomputed.tracks))
    )
    print_rows(
        [
            ("rows", f"{verification.entries}, {'hash chain intact' if verification.intact else 'DAMAGED'}"),
            ("ledger says", "; ".join(map(str, verification.spent.tracks))),
            ("recomputed", recomputed),
            ("anchor", verification.anchor),
            *((finding.code, finding.text) for finding in verification.findings),
        ]
    )


def export(ledger: Book, *, out: Out = None, json: options.Json = False) -> None:
    """Print every row with its hash and its answer, as lines of JSON.

    discreet ledger export visits.ledger --out visits.jsonl

    With --json, prints one document.
    """
    lines = list(ledger_at(ledger).export())
    if json:
        lines = [text.dumps([text.loads(line) for line in lines], ensure_ascii=False, indent=2)]
    text_of_rows = "".join(f"{line}\n" for line in lines)
    if out is None:
        sys.stdout.write(text_of_rows)
        return
    write_text(place_for(out), text_of_rows)
    print(out)
