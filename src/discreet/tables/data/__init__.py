# SPDX-License-Identifier: Apache-2.0
"""What a data set is: its tables, and what is publicly known of them.

    dataset.py               whom a data set protects, its tables and columns              ◄ read this first
    rules.py, budget.py      what a description may say, checked field by field
    toml.py                  a description as a TOML file; describe.py drafts one, summary.py puts one into sentences
    described.py             tables that are described and not there, for previews elsewhere
    sources.py               where a table lies
    readers/                 files and tables of other programs as Arrow tables

Of `tables`, only `algebra` is imported here. The methods with which users ask a data set are
added in `ask/start.py`.
"""

__all__ = ()
