# SPDX-License-Identifier: Apache-2.0
"""From SQL and expressions to a question; nothing here reads a row or costs anything.

    question.py, after.py    rows, keys and aggregates; post-processing of released numbers   ◄ read this first
    sql/                     SQL to a question
    query.py, asking.py      questions in Python; aggregates.py and formula.py are their words
    build.py, compare.py     expressions from their parts; leaf.py is where a column is read
    domain.py                the public values of a key

Imports `data`, and no other folder of `tables`.
"""

__all__ = ()
