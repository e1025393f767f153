# SPDX-License-Identifier: Apache-2.0
"""From SQL and expressions to a question; nothing here reads a row or costs anything.

    question.py, released.py rows, keys and aggregates; post-processing of released numbers   ◄ read this first
    sql/                     SQL to a question
    start.py, methods.py     a data set, and the methods with which a question starts
    query.py                 questions in Python; aggregates.py and expressions.py are used in them
    build.py, compare.py     typed expressions; columns.py gives the type of a column
    domain.py                the public values of a key

Imports `data`, and no other folder of `tables`.
"""

__all__ = ()
