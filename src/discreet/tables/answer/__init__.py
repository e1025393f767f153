# SPDX-License-Identifier: Apache-2.0
"""From released numbers to a table: post-processing only.

    answer.py      groups, noisy numbers with their intervals, and notes               ◄ read this first
    arrange.py     the columns that were asked for: arithmetic, HAVING, ORDER BY, LIMIT
    frames.py      an answer as a frame, a file or JSON

Imports `ask` for the arithmetic that a question asks for, and no other folder of `tables`.
"""

from discreet.tables.answer.answer import Answer, Noisy

__all__ = ["Answer", "Noisy"]
