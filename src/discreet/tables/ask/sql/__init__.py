# SPDX-License-Identifier: Apache-2.0
"""SQL to a question: a closed language, of which every part is proved and the rest is refused with a line that works.

    text.py                  one statement, its EXPLAIN PRIVACY and its WITH ( … )
    scope.py                 which column a name means
    rows.py, joins.py        FROM, JOIN, WHERE: the rows, person by person
    scalar.py, functions.py, literals.py   expressions on one row
    keys.py                  GROUP BY and its public values
    aggregates.py            COUNT, SUM, AVG, … : one release each
    outside.py               arithmetic on released numbers, HAVING, ORDER BY
    select.py                all of them together                                  ◄ read this first
    size.py                  how long it becomes
    refuse.py, dialect.py    why not, and what to write instead
    own.py                   the same in the names of the data set

**Guarantee.** `parse` reads the text, the public description and the values of public tables; never a private row. What it
returns is built of `plan`, `expr`, `question` and `after` alone, so that an answer depends on each person's rows through
bounded sums and nothing else. Everything that it does not understand to the last part is refused (DP701 to DP706, and
DP104 for missing bounds), with nothing spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import DiscreetError
from discreet.tables.ask.question import Question
from discreet.tables.ask.sql.own import in_own_names
from discreet.tables.ask.sql.refuse import refused
from discreet.tables.ask.sql.select import question
from discreet.tables.ask.sql.text import statement
from discreet.tables.data.dataset import Dataset

__all__ = ["Asked", "parse"]


@dataclass(frozen=True)
class Asked:
    """A question, whether only its cost was asked for (EXPLAIN PRIVACY), and the options of its WITH ( … )."""

    question: Question
    explain: bool = False
    options: Mapping[str, float | str] = field(default_factory=dict)


def parse(text: Any, dataset: Dataset) -> Asked:
    """What a text asks of a data set, or a refusal that says what to write instead.

    **Guarantee.** Nothing private is read and nothing is spent, whatever the text is.
    """
    try:
        return _parsed(text, dataset)
    except DiscreetError as error:
        error.fix = in_own_names(error.fix, str(text), dataset, lambda instead: _parsed(instead, dataset))
        raise


def _parsed(text: Any, dataset: Dataset) -> Asked:
    stated = statement(text)
    try:
        asked = question(stated, dataset)
    except RecursionError:
        asked = None
    if asked is None:
        raise refused(
            "DP702",
            "the question is nested too deeply.",
            "reading it exhausts the machine.",
            "make it flatter",
        )
    return Asked(asked, stated.explain, stated.options)
