# SPDX-License-Identifier: Apache-2.0
"""The algebra of questions: what can be said about rows, with proved bounds, and what an engine
must be able to do with it.

    types.py, civil.py       values of a cell, and the calendar
    expr.py                  expressions on one row                                     ◄ read this first
    curves.py, strings.py    expressions that are smooth functions, and those on texts
    evaluate.py              the value of an expression on public values
    sums.py, bounds.py       relations, bounded sums of whole numbers, and a unit's part in them
    engine.py, frozen.py     the contract of an engine, and files that must stay as they were

All folders of `tables` speak this language: `ask` writes it, `plan` reads its bounds, an engine
computes it. Nothing here imports another folder of `tables`, and nothing here reads a row.
"""

__all__ = ()
