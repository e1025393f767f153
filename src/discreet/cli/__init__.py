# SPDX-License-Identifier: Apache-2.0
"""The `discreet` command.

    app.py      the commands together; errors, exit codes            ◄ read this first
    account.py  discreet account        mechanisms composed in the order of their flags
    dpsgd.py    discreet account dpsgd  the same in the words of a training run
    audit.py    discreet audit          is the promise of a mechanism kept?
    demo.py     discreet demo           one page of what the accountant can do
    version.py  discreet version
    options.py  what several commands take
    flags.py    every flag of `account`, in one table
    numbers.py  words to numbers, with errors that name the flag
    terms.py    flags in their order, to a guarantee
    search.py   the one number written as `?`
    report.py   the answer as JSON, and the same for the eye
    terminal.py numbers rounded to the safe side, tables, a spinner

Nothing here computes: every number is a view of a `Guarantee`. Loading this package loads no numerics.
"""

from __future__ import annotations

from discreet.cli.app import main

__all__ = ["main"]
