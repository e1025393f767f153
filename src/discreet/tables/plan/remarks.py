# SPDX-License-Identifier: Apache-2.0
"""Notes on what a question itself does to its numbers: inner aggregates that are clipped, and
groups that noisy numbers choose.

**Guarantee.** Only the question is read, so the notes are the same for all data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from discreet.tables.algebra.expr import Expr, leaves
from discreet.tables.algebra.sums import PerUnit, Relation, Windowed, inner_relations, relation_expressions
from discreet.tables.algebra.types import NUMBER, WIDEST
from discreet.tables.ask.question import Question
from discreet.tables.ask.released import ReleasedExpression, ReleasedWindow, column_names, read_parts

__all__ = ["question_notes"]

#: What is added up over the rows of a unit, so that its bounds follow from at_most.
_ADDED_UP = frozenset({"count", "count_of", "distinct", "sum"})


def question_notes(question: Question, unit: str) -> Iterator[str]:
    """The notes on a question; `unit` is what a privacy unit is called."""
    clipped = [f"{name} to [{low}, {high}]" for name, low, high in _inner_bounds(question)]
    if clipped:
        yield (
            f"Inside the question, numbers of one {unit} are clipped: {', '.join(clipped)}. "
            "The intervals do not include this bias; CLAMP around the inner aggregate states other bounds."
        )
    yield from _choice_notes(question)


def _inner_bounds(question: Question) -> list[tuple[str, str, str]]:
    """The inner counts and sums that a question reads, with the bounds to which they are clipped."""
    added_up = {
        (relation.name, name)
        for relation in _relations(question.rows)
        if isinstance(relation, PerUnit | Windowed)
        for name, part in (relation.aggregates if isinstance(relation, PerUnit) else relation.columns)
        if part.kind in _ADDED_UP
    }
    found = {
        (read.table, read.column): read.of
        for expression in _expressions(question)
        for read in leaves(expression)
        if (read.table, read.column) in added_up
        and read.of.kind == NUMBER
        # A condition compares values as they are.
        and read.of.high < WIDEST
    }
    return [
        (name, _number(of.low, of.places), _number(of.high, of.places)) for (_, name), of in found.items()
    ]


def _relations(rows: Relation) -> Iterator[Relation]:
    yield rows
    for inner in inner_relations(rows):
        yield from _relations(inner)


def _expressions(question: Question) -> Iterable[Expr]:
    yield from (key.of for key in question.keys)
    yield from (aggregate.of for aggregate in question.aggregates if aggregate.of is not None)
    for relation in _relations(question.rows):
        yield from relation_expressions(relation)


def _number(cells: int, places: int) -> str:
    """A number of cells, as a number."""
    value = Fraction(cells, 1 << places)
    return f"{value.numerator}" if value.denominator == 1 else f"{float(value):g}"


def _choice_notes(question: Question) -> Iterator[str]:
    """A note where noisy numbers choose the rows of the answer."""
    noisy = {aggregate.name for aggregate in question.aggregates}
    clauses = [("HAVING", question.having), ("QUALIFY", question.qualify)]
    chosen = [
        word for word, condition in clauses if condition is not None and noisy & column_names(condition)
    ]
    if question.limit is not None and any(noisy & column_names(order.of) for order in question.order):
        chosen.append("LIMIT")
    if not chosen:
        return
    yield (
        f"{' and '.join(chosen)} chose these groups by their noisy numbers. Each interval covers its number in 95 % of "
        "all releases, whether the group is shown or not; among the groups that are shown, numbers close to the limit "
        "are off in the direction of the choice more often."
    )
    after = [column.of for column in question.outputs]
    if question.having is not None and noisy & column_names(question.having) and any(map(_has_window, after)):
        yield (
            "Totals, shares and ranks over groups (OVER) are those of the groups that HAVING left, so that they leave out "
            "what the other groups have, and their intervals are about these groups as if they had been named before."
        )


def _has_window(of: ReleasedExpression) -> bool:
    return isinstance(of, ReleasedWindow) or any(map(_has_window, read_parts(of)))
