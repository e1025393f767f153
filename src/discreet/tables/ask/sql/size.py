# SPDX-License-Identifier: Apache-2.0
"""The length of a question as an engine sees it: an operator that copies its operand multiplies the
length.

**Guarantee.** An accepted question has at most a few thousand terms, which take an engine some
seconds, so a short text cannot bring an engine down. The factors are about as many copies as
`engines/write.py` makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from discreet.tables.algebra import expr as e
from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.sums import Relation, inner_relations, relation_expressions
from discreet.tables.ask.question import Question
from discreet.tables.ask.sql.refuse import question_error

__all__ = ["MOST", "check_size", "length"]

MOST = 3_000

#: Parts of dates, and truncated dates, are formulas: how many terms they have, and copies of their operand.
_FORMULAS = {
    (e.DatePart, "year"): (100, 18),
    (e.DatePart, "month"): (80, 13),
    (e.DatePart, "quarter"): (80, 13),
    (e.DatePart, "day"): (150, 26),
    (e.DatePart, "doy"): (210, 40),
    (e.DatePart, "week"): (480, 80),
    (e.DatePart, "isoyear"): (220, 36),
    (e.Truncated, "year"): (210, 40),
    (e.Truncated, "quarter"): (420, 80),
    (e.Truncated, "month"): (150, 27),
}
_SHORT = (8, 2)


def check_size(question: Question) -> None:
    """Refuse a question that is too long for an engine."""
    parts = [*_conditions(question.rows), *(key.of for key in question.keys)]
    parts += [aggregate.of for aggregate in question.aggregates if aggregate.of is not None]
    if sum(length(part) for part in parts) > MOST:
        raise question_error(
            "DP702",
            "the question becomes too long when it is translated for an engine.",
            "nested divisions, LEAST, GREATEST, CLAMP and parts of dates multiply its length.",
            "write them side by side instead of nesting them",
        )


def length(expr: Expr) -> int:
    """An upper bound on the number of terms of an expression."""
    inside = [length(part) for part in expr.parts]
    if isinstance(expr, e.Extreme):
        total = inside[0]
        for item in inside[1:]:
            total = 3 * (total + item)
        return total + 1
    if isinstance(expr, e.DatePart | e.Truncated):
        terms, copies = _FORMULAS.get((type(expr), expr.part), _SHORT)
        return terms + copies * sum(inside)
    if isinstance(expr, e.IsIn):
        return 1 + sum(inside) + len(expr.values) // 2
    return 1 + _copies(expr) * sum(inside)


def _copies(expr: Expr) -> int:
    if isinstance(expr, e.Quotient):
        return 4 if isinstance(expr.right, e.Constant) else 24
    if isinstance(expr, e.Steps):
        return len(expr.edges) + 4
    if isinstance(expr, e.Bucket):
        even = len({after - before for before, after in pairwise(expr.edges)}) == 1
        return 6 if even else len(expr.edges) + 4
    return {e.Clamp: 3, e.Modulo: 2, e.Root: 3}.get(type(expr), 1)


def _conditions(rows: Relation) -> Iterator[Expr]:
    yield from relation_expressions(rows)
    for inner in inner_relations(rows):
        yield from _conditions(inner)
