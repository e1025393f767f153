# SPDX-License-Identifier: Apache-2.0
"""Units that are a person in a period: what is then no function of one unit.

**Guarantee.** Where a unit is a user-day, a question that puts the rows of a user together is
refused. An engine would put those of a user-day together, which is private and not what was asked.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.sums import Paired, PerUnit, Relation, Windowed, inner_relations
from discreet.tables.ask.expressions import identifier
from discreet.tables.ask.question import Question
from discreet.tables.ask.sql.dialect import PlainDialect
from discreet.tables.ask.start import Dataset

__all__ = ["check_periods"]

_TOGETHER = {
    Paired: "joins or compares private tables",
    PerUnit: "groups the rows inside FROM",
    Windowed: "numbers the rows inside FROM",
}


def check_periods(question: Question, dataset: Dataset) -> Question:
    """The question; refused if its units are periods, and it puts rows together by the person."""
    protect = dataset.protect
    if not protect.per:
        return question
    what = _reason(question.rows)
    if any(aggregate.kind == "units" for aggregate in question.aggregates):
        what = f"counts each {protect.column} once"
    if not what:
        return question
    name = next(name for name, table in dataset.tables.items() if table.private)
    table = exp.column(identifier(name)).sql(dialect=PlainDialect)
    raise RefusedQuestion(
        "DP703",
        f"the question {what} by {protect.column}, and the unit is a {dataset.unit.protects}.",
        why=f"rows of one {protect.column} in several {protect.per}s belong to several units.",
        fix=f'SELECT COUNT(*) FROM {table}   or protect all rows of one:  dp.each("{protect.column}", at_most=…)',  # noqa: S608 - shown, not run
    )


def _reason(rows: Relation) -> str:
    """How a relation puts rows together by their unit; empty if it does not."""
    own = next((text for kind, text in _TOGETHER.items() if isinstance(rows, kind)), "")
    return own or next(filter(None, map(_reason, inner_relations(rows))), "")
