# SPDX-License-Identifier: Apache-2.0
"""How long a question becomes when an engine spells it out: where a part is written several times, parts multiply.

**Guarantee.** A question that passes is written out in a few thousand terms, which take an engine some seconds, so that
none is brought down by a short text. The factors are about what `engines/write.py` copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from discreet.tables.ask.question import Question
from discreet.tables.ask.sql.refuse import refused
from discreet.tables.data import expr as e
from discreet.tables.data.expr import Expr
from discreet.tables.data.sums import Filtered, Lookup, Paired, Relation

__all__ = ["MOST", "check_size", "length"]

MOST = 3_000

_DATE = 150  # a part of a date is a formula of this many terms


def check_size(question: Question) -> None:
    """Refuse a question that would be too long."""
    parts = [*_conditions(question.rows), *(key.of for key in question.keys)]
    parts += [one.of for one in question.aggregates if one.of is not None]
    if sum(length(part) for part in parts) > MOST:
        raise refused(
            "DP702",
            "the question becomes too long when it is written out for an engine.",
            "divisions, LEAST, GREATEST, CLAMP and parts of dates inside one another multiply.",
            "write them beside one another, and not inside",
        )


def length(expr: Expr) -> int:
    """The number of terms of an expression, at most."""
    inside = [length(part) for part in expr.parts]
    if isinstance(expr, e.Extreme):
        total = inside[0]
        for item in inside[1:]:
            total = 3 * (total + item)
        return total + 1
    if isinstance(expr, e.IsIn):
        return 1 + sum(inside) + len(expr.values) // 2
    return 1 + _copies(expr) * sum(inside)


def _copies(expr: Expr) -> int:
    if isinstance(expr, e.Quotient):
        return 4 if isinstance(expr.right, e.Constant) else 24
    if isinstance(expr, e.Bucket):
        even = len({after - before for before, after in pairwise(expr.edges)}) == 1
        return 6 if even else len(expr.edges) + 4
    return {e.Clamp: 3, e.Modulo: 2, e.Part: _DATE}.get(type(expr), 1)


def _conditions(rows: Relation) -> Iterator[Expr]:
    if isinstance(rows, Filtered):
        yield rows.condition
    if isinstance(rows, Lookup | Paired):
        yield from (side for pair in rows.on for side in pair)
    if isinstance(rows, Paired):
        yield from _conditions(rows.other)
    if isinstance(rows, Filtered | Lookup | Paired):
        yield from _conditions(rows.rows)
