# SPDX-License-Identifier: Apache-2.0
"""The `discreet` command.

    app.py        the commands together; errors, exit codes            ◄ read this first
    demo.py       discreet demo              a private table, five questions, what they cost
    tour.py       discreet demo --accountant one page of what the accountant can do
    describe.py   discreet describe          a first description of a data file
    plan.py       discreet plan              cost and error, before anything is spent
    query.py      discreet query             one question in SQL: charged, then answered
    release.py    discreet release           many tables, all or none; releases.py reads the file
    budget.py     discreet budget            what is left
    ledger.py     discreet ledger            show, verify, export
    statement.py  discreet statement         what was promised, for those who answer for it
    account.py    discreet account           mechanisms composed in the order of their flags
    dpsgd.py      discreet account dpsgd     the same in the words of a training run
    audit.py      discreet audit             is the promise of a mechanism kept?
    version.py    discreet version
    places.py     data sets, ledgers and limits by name; files.py, whole files or none
    previews.py   whether costs fit what is left
    asking.py     what the commands take that ask; options.py, what several others take
    flags.py      every flag of `account`, in one table
    numbers.py    words to numbers, with errors that name the flag
    terms.py      flags in their order, to a guarantee
    search.py     the one number written as `?`
    pictures.py   pictures of a guarantee
    report.py     the answer as JSON, and the same for the eye
    terminal.py   numbers rounded to the safe side, tables, a spinner

Nothing here computes: every number is a view of a `Guarantee`. Loading this package loads no numerics.
"""

from __future__ import annotations

from discreet.cli.app import main

__all__ = ["main"]
