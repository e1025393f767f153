# SPDX-License-Identifier: Apache-2.0
"""Bounds that a session chooses privately: paid once, kept in the ledger, and used for notes and
for bounds="auto".

**Guarantee.** Everything is charged before it is drawn, in one transaction. What is stored under
these keys everybody may know who may see the choice of at_most="auto"; reading it again costs
nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.errors import BadParameter, RefusedQuestion
from discreet.ledger import Charge
from discreet.session.account import COST_OF_ANSWER, PendingAnswer, parse_value
from discreet.tables.algebra.bounds import private_tables
from discreet.tables.algebra.expr import leaves
from discreet.tables.algebra.sums import inner_relations, relation_expressions
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Table

#: The bounds that previews assume before they are chosen, and how much more a question costs than
#: the choice of its bounds.
ASSUMED_BOUNDS, _TIMES_CHOICE = (0, 1000), 10

if TYPE_CHECKING:
    from discreet.session.compiler import QuestionCompiler
    from discreet.tables.plan.explain import CutOff
    from discreet.tables.plan.suggest import BoundsMechanism, BoundsSuggestion, Histogram


def suggest(
    compiler: QuestionCompiler, table: str | None, columns: Sequence[str], epsilon: float
) -> BoundsSuggestion:
    """The suggestion for a table; what the ledger has already is not paid again."""
    from discreet.tables.plan.suggest import private_table, suggest_bounds

    epsilon, data = check.moderate(epsilon=epsilon), compiler.data
    private = [name for name, described in data.tables.items() if described.private]
    name = private_table(data, private[0] if table is None and len(private) == 1 else str(table)).name
    wanted: list[str | None] = [*dict.fromkeys(_check_columns(columns, data.tables[name]))]
    # Without columns, only at_most is left; where rows are units there is nothing.
    wanted += [None] if data.protect.column is not None or not wanted else []
    draw_histograms(compiler, name, wanted, epsilon)
    stored = {column: find_histogram(compiler, name, column) for column in wanted}
    histograms = {column: histogram for column, histogram in stored.items() if histogram is not None}
    return suggest_bounds(data, name, histograms, noise=1 / epsilon)


def _check_columns(columns: object, table: Table) -> Sequence[str]:
    if isinstance(columns, list | tuple) and all(isinstance(column, str) for column in columns):
        return columns
    from discreet.tables.plan.suggest import number_of

    name = columns if isinstance(columns, str) and columns in table.columns else number_of(table)
    raise BadParameter(
        "DP104",
        "the columns must be a list of names.",
        why="bounds are chosen for each named column.",
        fix=f"session.suggest_bounds({json.dumps(table.name)}, [{json.dumps(name)}], epsilon=0.1)",
    )


def draw_histograms(
    compiler: QuestionCompiler, table: str, columns: Iterable[str | None], epsilon: float
) -> bool:
    """Pay for the histograms that the ledger lacks, all or none, with equal parts of ε.

    Says, too, whether it lacked any.
    """
    from discreet.tables.plan.suggest import BoundsMechanism

    # All are validated, those too that are stored already.
    mechanisms = {
        column: BoundsMechanism(compiler.data, table, column, epsilon=epsilon) for column in columns
    }
    for mechanism in mechanisms.values():
        mechanism.check_schema(compiler.data)
    missing = [column for column in mechanisms if find_histogram(compiler, table, column) is None]
    share = float(f"{epsilon / max(1, len(missing)):.12g}") * (1 - 1e-9 * (len(missing) > 1))
    pending = []
    for column in missing:
        mechanism = BoundsMechanism(compiler.data, table, column, epsilon=share)
        charge = Charge(
            mechanism.guarantee, _text(table, column), _key(compiler, table, column), type(mechanism).__name__
        )
        pending.append(PendingAnswer(charge, partial(_draw, mechanism, compiler.data), _serialize))
    if pending:
        compiler.account.settle(pending, compiler.data.ready, compiled=True, spent=COST_OF_ANSWER)
    return bool(pending)


def find_histogram(compiler: QuestionCompiler, table: str, column: str | None) -> Histogram | None:
    """The histogram that the ledger stores; None if it was not paid for."""
    entry = compiler.account.ledger.find_for_all(_key(compiler, table, column))
    return None if entry is None else parse_value(entry.answer)


def unchosen_columns(data: Dataset) -> list[tuple[str, str]]:
    """The table and the name of each column whose bounds are "auto" and not chosen yet."""
    return [
        (table.name, name)
        for table in data.tables.values()
        for name, column in table.columns.items()
        if column.auto and column.bounds is None
    ]


def with_bounds(data: Dataset, chosen: Mapping[tuple[str, str], tuple[float, float]]) -> Dataset:
    """The data set with bounds for some columns."""
    tables = {
        table.name: replace(
            table,
            columns={
                name: replace(column, bounds=chosen.get((table.name, name), column.bounds))
                for name, column in table.columns.items()
            },
        )
        for table in data.tables.values()
    }
    return replace(data, tables=tables) if chosen else data


def with_assumed_bounds(data: Dataset) -> Dataset:
    """The data set with bounds that previews assume where none are chosen yet."""
    return with_bounds(data, dict.fromkeys(unchosen_columns(data), ASSUMED_BOUNDS))


def with_chosen_bounds(compiler: QuestionCompiler) -> Dataset:
    """The data set with all bounds that the ledger has."""
    from discreet.tables.plan.suggest import suggest_bounds

    chosen = {}
    for table, column in unchosen_columns(compiler.data):
        histogram = find_histogram(compiler, table, column)
        if histogram is None:
            continue
        # The same noise for all who read the histogram: that of questions at ten times its cost.
        suggestion = suggest_bounds(
            compiler.data, table, {column: histogram}, noise=histogram["scale"] / 2 / _TIMES_CHOICE
        )
        if (bounds := suggestion.bounds[column]) is not None:
            chosen[table, column] = bounds
    return with_bounds(compiler.data, chosen)


def needed_columns(data: Dataset, question: Question) -> dict[str, list[str]]:
    """The columns of each table whose bounds a question may need and that are not chosen yet."""
    operands = [each.of for each in question.aggregates] + [key.of for key in question.keys]
    expressions = [of for of in operands if of is not None]
    tables, relations = private_tables(question.rows), [question.rows]
    while relations:
        rows = relations.pop()
        expressions += relation_expressions(rows)
        relations += inner_relations(rows)
    read = {leaf.column for of in expressions for leaf in leaves(of)}
    needed: dict[str, list[str]] = {}
    for table, column in unchosen_columns(data):
        if table in tables and column in read:
            needed.setdefault(table, []).append(column)
    return needed


def unchosen_note(needed: Mapping[str, Sequence[str]]) -> str:
    """The note of a preview that assumes bounds."""
    if not needed:
        return ""
    names = ", ".join(f"{table}.{column}" for table, columns in needed.items() for column in columns)
    low, high = ASSUMED_BOUNDS
    return (
        f"The bounds of {names} are not chosen yet: these figures assume {low} to {high}. The first answer chooses them, for a"
        " tenth of its cost on top."
    )


def refuse_unchosen(data: Dataset, needed: Mapping[str, Sequence[str]]) -> None:
    """Refuse a question whose bounds were paid for, and could not be chosen."""
    for table, column in unchosen_columns(data):
        if column in needed.get(table, ()):
            raise RefusedQuestion(
                "DP706",
                f"no bounds could be chosen for {column}: too few units have values.",
                why="at this cost the noise hides how large the values are; the choice is paid once.",
                fix=f"CLAMP({column}, 0, 500)   in the question",
            )


def with_cut_off_notes(compiler: QuestionCompiler, question: Question, answer: Answer) -> Answer:
    """The answer with what is known of the shares of rows and of values that the bounds cut off."""
    notes = [note for note in _cut_off_notes(compiler, question) if note not in answer.notes]
    return replace(answer, notes=(*answer.notes, *notes)) if notes else answer


def _cut_off_notes(compiler: QuestionCompiler, question: Question) -> tuple[str, ...]:
    unit = compiler.data.unit.protects
    return tuple(note for found in _suggestions(compiler, question) for note in found.notes(unit))


def cut_off(compiler: QuestionCompiler, question: Question) -> CutOff:
    """What the ledger has on the rows and the values that the bounds cut off of a question."""
    from discreet.tables.plan.explain import CutOff

    found = _suggestions(compiler, question)
    beyond = [suggestion.beyond for suggestion in found if suggestion.beyond is not None]
    clipped = {column: share for suggestion in found for column, share in suggestion.clipped.items()}
    return CutOff(max(beyond, default=None), clipped)


def _suggestions(compiler: QuestionCompiler, question: Question) -> list[BoundsSuggestion]:
    """What was released about the tables and the columns of a question."""
    from discreet.tables.plan.suggest import suggest_bounds

    found = []
    for table in private_tables(question.rows):
        described = compiler.data.tables.get(table)
        if described is None:
            continue
        read = [
            leaf.column for each in question.aggregates if each.of is not None for leaf in leaves(each.of)
        ]
        wanted = [None, *(column for column in dict.fromkeys(read) if column in described.columns)]
        stored = {column: find_histogram(compiler, table, column) for column in wanted}
        histograms = {column: histogram for column, histogram in stored.items() if histogram is not None}
        if histograms:
            found.append(suggest_bounds(compiler.data, table, histograms, noise=1.0))
    return found


def _key(compiler: QuestionCompiler, table: str, column: str | None) -> str:
    # Names of tables and columns can be of any length.
    return compiler.own_key(f"bounds {hashlib.sha256(_text(table, column).encode()).hexdigest()[:32]}")


def _text(table: str, column: str | None) -> str:
    return f"rows of {table}" if column is None else f"values of {table}.{column}"


def _draw(mechanism: BoundsMechanism, data: object) -> Any:
    return mechanism.draw(data)


def _serialize(value: object) -> str:
    return json.dumps({"value": value})
