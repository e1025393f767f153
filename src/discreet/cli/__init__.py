# SPDX-License-Identifier: Apache-2.0
"""The `discreet` command.

    app.py         the commands together; errors, exit statuses         ◄ read this first
    demo.py        discreet demo              a private table, five questions, their cost
    describe.py    discreet describe          drafts the description of a data file
    plan.py        discreet plan              cost and margin of error, before anything is spent
    query.py       discreet query             one question in SQL: charged, then answered
    release.py     discreet release           many tables, all or none; releases.py reads the file
    budget.py      discreet budget            what is spent and what remains
    ledger.py      discreet ledger            show, verify, export
    statement.py   discreet statement         a privacy statement, and its verification
    account.py     discreet account           the guarantee of an expression; expression.py reads it
    dpsgd.py       discreet account dpsgd     the guarantee of a training run
    audit.py       discreet audit             tests a claimed guarantee
    places.py      data sets, ledgers and limits by name; files.py, files that appear whole or not at all
    previews.py    whether costs fit the budget
    asking.py      options of the commands that ask a question; options.py, options of several others
    numbers.py     words to numbers, with errors that name the flag
    search.py      the search for the one number written as `?`
    figures.py     figures of a guarantee
    report.py      facts about a guarantee as JSON and as text
    terminal.py    numbers rounded to the safe side, tables, a spinner

Nothing here computes: every number is a view of a `Guarantee`. Loading this package loads no
numerics.
"""

from __future__ import annotations

from discreet.cli.app import main

__all__ = ["main"]
