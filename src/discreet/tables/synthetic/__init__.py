# SPDX-License-Identifier: Apache-2.0
"""Synthetic copies: made-up rows that follow noisy tables.

    mechanism.py        a request becomes one mechanism; mechanism.proof.md says why it is private     ◄ read this first
    spending.py         how the budget is split
    columns.py          columns, and the public codes of their values
    counts.py           the exact tables, from one bounded sum
    measure.py          what is measured, with its noise
    rounds.py           tables of three columns that the model misses
    aim.py              in place of all pairs: tables that are chosen round after round
    released.py         the released numbers, and how they are stored
    mixture.py, tree.py   the models that are fitted to them
    sample.py, stream.py   rows from the model, the same on every machine
    copy.py             the copy that users hold
    preview.py          what a copy would cost, and how far its numbers would be off

Only `measure.py`, `rounds.py` and `aim.py` see what was counted; `mixture.py`, `tree.py`,
`sample.py` and `copy.py` see released numbers.
"""

__all__ = ()
