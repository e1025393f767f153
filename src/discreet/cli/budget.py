# SPDX-License-Identifier: Apache-2.0
"""`discreet budget`: what is spent and what remains, by accounting track and allocation, in the
window and for life.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from discreet.cli import asking, options
from discreet.cli.places import data_at, exists, ledger_at, session_for
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows, print_table
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.ledger import Budget, Ledger


def budget(
    *,
    ledger: asking.LedgerFile = None,
    data: asking.MaybeData = None,
    json: options.Json = False,
) -> None:
    """Show what is spent and what remains of a budget.

    discreet budget --ledger visits.ledger

    discreet budget --data visits.toml

    Shows the whole budget and every allocation, for this window and for life. Spends nothing.
    """
    book, exists_already = _ledger_and_existence(ledger, data)
    from discreet.ledger.overview import allocation_facts
    from discreet.ledger.overview import budget_facts as view

    left = book.budget()
    facts = {
        "command": "budget",
        "ledger": book.where if exists_already else None,
        "dataset": book.dataset,
        "protects": str(book.unit),
        "limit": book.limit.describe(),
        "theorem": book.limit.theorem,
        "rows": len(book) if exists_already else 0,
        **view(left),
        "shares": allocation_facts(book.limit, book.budget),
    }
    if json:
        print_json(facts)
    else:
        _print_budget(facts, left)


def _ledger_and_existence(ledger: str | None, data: str | None) -> tuple[Ledger, bool]:
    """The ledger, and whether it has been made yet."""
    if ledger is not None:
        return ledger_at(ledger), True
    if data is None:
        raise BadParameter(
            "DP107",
            "--ledger or --data is missing.",
            why="the remaining budget is known from the ledger alone.",
            fix="discreet budget --ledger visits.ledger",
        )
    opened = data_at(data)
    ledger_path = opened.budget.get("ledger")
    session = session_for(opened, None, None, {}, read_only=True)
    return session.ledger, ledger_path is not None and exists(ledger_path)


def _print_budget(facts: dict[str, Any], left: Budget) -> None:
    ledger_text = facts["ledger"] or "does not exist yet; the first answer creates it"
    print_rows(
        [
            ("ledger", ledger_text),
            ("protects", facts["protects"] + (f" in {facts['dataset']}" if facts["dataset"] else "")),
            *(("limit" if at == 0 else "", line) for at, line in enumerate(facts["limit"])),
            ("budget", left.headline),
            *(("next question", words) for words in _next_question_rows(left)),
            *(("", note) for note in facts["notes"]),
        ]
    )
    print()
    print_tracks(facts["lanes"])
    for owner in facts["shares"]:
        print(f"\n{owner['group']} {owner['name']}: an allocation of {owner['share']:.0%}")
        print_tracks([track for track in owner["lanes"] if track["name"].startswith(f"{owner['name']}: ")])


def _next_question_rows(left: Budget) -> list[str]:
    """The most that the next question may cost, as it is asked."""
    amounts = {name: amount for name, amount in left.remaining.items() if name != "delta" and amount < inf}
    return (
        [f"at most  {'  or  '.join(f'--{name} {amount:g}' for name, amount in amounts.items())}"]
        if amounts
        else []
    )


def print_tracks(tracks: list[Mapping[str, Any]]) -> None:
    """Running totals as a table."""
    from discreet.ledger.statement_markdown import track_words

    rows = [(*track_words(track), f"{track['spent_fraction']:.1%}") for track in tracks]
    print_table(["account", "total", "spent", "remaining", "in %"], rows, numbers={1, 2, 3, 4})
