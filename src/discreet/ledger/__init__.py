# SPDX-License-Identifier: Apache-2.0
"""Spending: how much may be asked of a data set, and a record of what was.

ledger.py     Ledger: charge, then draw, then commit; what is left, and checks        ◄ then this
limit.py      Limit: filter, plan, odometer                                ◄ read this first
filters.py    the filters, each with its theorem; asked.py makes them, pinned.py fixes their constants
plan.py       slots fixed in advance; odometer.py, a bound at all times
shares.py     limits inside a limit, for analysts and projects; window.py, limits that renew by the calendar
opening.py    what a ledger is refused for when it is opened; verify.py, everything recomputed
description.py  for which data it is charged, and what of a description may change
turn.py       what one writer does at a time: charges and answers that belong together are written together
receipt.py    what is handed out; chain.py, rows that carry each other's hashes
store.py      one writer at a time: sqlite.py, a file, with queue.py for those who wait; postgres.py, a server,
              with address.py for where on it
statement.py  what was promised and released, for others: claim.py, layers.py, released.py, versions.py, registry.py, overview.py,
              reading.py, making.py, and statement_html.py, statement_markdown.py for the eye; statement_check.py verifies one
embed.py      from a guarantee to what it costs; lanes.py, exact totals; left.py, what is left, for people
"""

from __future__ import annotations

from discreet.ledger.asker import Asker
from discreet.ledger.budget import Budget
from discreet.ledger.costs import Cost, State
from discreet.ledger.ledger import Ledger
from discreet.ledger.limit import Limit
from discreet.ledger.receipt import Entry, Receipt
from discreet.ledger.statement import Statement
from discreet.ledger.statement_check import StatementCheck, verify_statement
from discreet.ledger.turn import Charge
from discreet.ledger.verify import Finding, Verification

__all__ = [
    "Asker",
    "Budget",
    "Charge",
    "Cost",
    "Entry",
    "Finding",
    "Ledger",
    "Limit",
    "Receipt",
    "State",
    "Statement",
    "StatementCheck",
    "Verification",
    "verify_statement",
]
