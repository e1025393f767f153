# SPDX-License-Identifier: Apache-2.0
"""What a data set is: its tables, what is publicly known of them, and what an engine can be asked
about their rows.

    types.py, expr.py        values and expressions on one row, with proved bounds
    sums.py, engine.py       bounded sums of whole numbers, and what an engine must be able to do
    dataset.py               whom a data set protects, its tables and columns              ◄ read this first
    rules.py, budget.py      what a description may say, checked field by field
    toml.py                  a description as a TOML file; describe.py drafts one, summary.py puts one into sentences
    described.py             tables that are described and not there, for previews elsewhere
    sources.py, frozen.py    where a table lies, and whether its files are as they were
    readers/                 files and tables of other programs as Arrow tables

Nothing here imports another folder of `tables`. The methods with which users ask a data set are
added in `ask/start.py`.
"""

__all__ = ()
