# SPDX-License-Identifier: Apache-2.0
"""SQL to a question: a closed language. Each part of it is proved; everything else is refused with
a line that works.

    text.py                  one statement, its EXPLAIN PRIVACY and its WITH ( … )
    scope.py                 which column a name means
    rows.py, joins.py        FROM, JOIN, WHERE: the rows, person by person
    scalar.py, functions.py, literals.py   expressions on one row
    keys.py                  GROUP BY and its public values
    grouping.py              CUBE, ROLLUP, GROUPING SETS: several tables in one question
    aggregates.py            COUNT, SUM, AVG, … : one release each
    released.py              arithmetic on released numbers, HAVING, ORDER BY
    select.py                all of them together                                  ◄ read this first
    size.py                  how long it becomes
    refuse.py, dialect.py    why not, and what to write instead
    own.py                   the same in the names of the data set

**Guarantee.** `parse` reads the text, the public description and the values of public tables, never
a private row. A question depends on the rows of each person only through bounded sums. A text with
any part that is not understood is refused (DP701 to DP706, and DP104 for missing bounds), and
nothing is spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from discreet.errors import DiscreetError
from discreet.tables.ask.question import Question
from discreet.tables.ask.sql.own import in_own_names
from discreet.tables.ask.sql.parameters import parse_with_parameters
from discreet.tables.ask.sql.refuse import question_error
from discreet.tables.ask.sql.select import question
from discreet.tables.ask.start import Dataset

__all__ = ["ParsedQuestion", "parse"]


@dataclass(frozen=True)
class ParsedQuestion:
    """A parsed question, whether EXPLAIN PRIVACY stands before it, and the options of WITH ( … )."""

    question: Question
    explain: bool = False
    options: Mapping[str, float | str] = field(default_factory=dict)


def parse(text: object, dataset: Dataset, parameters: object = ()) -> ParsedQuestion:
    """The question that a text asks, or a RefusedQuestion that says what to write instead.

    Each `?` of the text stands for one of `parameters`, and the text of the question has their
    values.

    **Guarantee.** No private row is read and nothing is spent, whatever the text is. A parameter is
    a value in the tree of the question; it is never pasted into a text that is parsed.
    """
    try:
        return _parse(text, dataset, parameters)
    except DiscreetError as error:
        error.fix = in_own_names(error.fix, str(text), dataset, lambda instead: _parse(instead, dataset))
        raise


def _parse(text: object, dataset: Dataset, parameters: object = ()) -> ParsedQuestion:
    stated = parse_with_parameters(text, parameters)
    try:
        parsed = question(stated, dataset)
    except RecursionError:
        parsed = None
    if parsed is None:
        raise question_error(
            "DP702",
            "the question is nested too deeply.",
            "parsing it would exhaust a shared server.",
            "use fewer levels of parentheses and CASE",
        )
    cost = {name: value for name, value in stated.options.items() if name != "objective"}
    return ParsedQuestion(parsed, stated.explain, cost)
