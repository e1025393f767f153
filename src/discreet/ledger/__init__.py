# SPDX-License-Identifier: Apache-2.0
"""Spending: how much may be asked of a data set, and a record of what was.

limit.py      Limit: filter, plan, odometer                                 ◄ read this first
ledger.py     Ledger: charge, then draw, then commit; budgets, and checks         ◄ then this
filters.py    the filters, each with its theorem; filter_choice.py makes them, pinned.py fixes their
              constants; candidates.py, filters among which the first charge chooses; kinds.py,
              every kind of limit; call.py, a limit as the call that makes it
plan.py       slots fixed in advance; odometer.py, a bound at all times
allocations.py  the parts of a limit for analysts and projects; window.py, limits that renew by the
              calendar
asker.py      who asks: analyst, project and purpose
pricing.py    from a guarantee to what it costs; costs.py, exact totals; budget.py, what is spent and
              what remains, for people
opening.py    what a ledger is refused for when it is opened; verify.py, everything recomputed, by
              running.py fast
description.py  for which data it is charged, and what of a description may change
turn.py       what one writer does at a time: charges and answers that belong together
receipt.py    what is handed out; chain.py, rows that carry each other's hashes
store.py      one writer at a time: sqlite.py, a file; postgres.py, a server
statement.py  what is guaranteed and what was released, for others: stated_guarantee.py, layers.py,
              released.py, registry.py, overview.py, reading.py, provenance.py;
              statement_html.py and statement_markdown.py render it; statement_check.py verifies one,
              former_words.py one with the former sentences
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
