# SPDX-License-Identifier: Apache-2.0
"""A batch: many questions, all of them answered or none. `Session.release_batch` states the
guarantee.

Why it holds is the order: compile everything (one refused question stops the batch), then settle it
all at once (`account.settle`). A process that is stopped before everything is stored has shown
nothing, so asking again with the same keys draws for the same charge. An error is shown and may
depend on what was drawn, so it is stored as the answer of every question in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from discreet.errors import BadParameter
from discreet.mechanisms.mechanism import Mechanism
from discreet.session.account import adding_spent
from discreet.session.compiler import QuestionCompiler, answer_from
from discreet.session.suggestions import with_cut_off_notes
from discreet.session.validate import check_key, question_of, spend_of
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.plan.compile import TableMechanism

_COST_OF_BATCH = "what all of these answers cost"


def release_batch(
    compiler: QuestionCompiler, questions: object, after_each: Callable[[], object]
) -> dict[str, Answer]:
    """The answers under their keys, in the order of the questions."""
    pairs = _check_pairs(questions)
    for key in pairs:
        check_key(key)
    spends = {key: _question_and_spend(compiler, *pair) for key, pair in pairs.items()}
    mechanisms, before = _compile_all(compiler, list(spends.values()))
    pending = [
        compiler.pending_answer(mechanism, key, on_drawn=after_each)
        for key, mechanism in zip(spends, mechanisms, strict=True)
    ]
    with adding_spent(before):
        settled = compiler.account.settle(pending, compiler.data.ready, compiled=True, spent=_COST_OF_BATCH)
    return {
        key: with_cut_off_notes(compiler, question, answer_from(answer))
        for (key, (question, _)), answer in zip(spends.items(), settled, strict=True)
    }


def _check_pairs(questions: object) -> Mapping[str, tuple[object, Mapping[str, Any]]]:
    """A mapping of keys to pairs of a question and its cost, and nothing that only resembles one."""
    if isinstance(questions, Mapping) and questions and all(map(_is_pair, questions.values())):
        return questions
    raise BadParameter(
        "DP104",
        "a batch is a mapping from keys to pairs of a question and its cost.",
        why="each answer is stored under its key, so asking again costs nothing.",
        fix=f"session.release_batch({_example_batch(questions)})",
    )


def _example_batch(questions: object) -> str:
    """The questions that were given in SQL, each with a key and a cost; else an example."""
    several = questions if isinstance(questions, Mapping) else {"monday": questions}
    pairs = {str(key): (sql, {"epsilon": 0.1}) for key, sql in several.items() if isinstance(sql, str)}
    return repr(pairs or {"monday": ("SELECT COUNT(*) FROM visits", {"epsilon": 0.1})})


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping)


def _question_and_spend(
    compiler: QuestionCompiler, asked: object, stated: Mapping[str, Any]
) -> tuple[Question, Spend]:
    """A question and its cost, which has to be known before anything is drawn."""
    from discreet.tables.ask.sql import parse

    cost, explain = dict(stated), False
    if isinstance(asked, str):
        parsed = parse(asked, compiler.data)
        asked, cost, explain = parsed.question, {**parsed.options, **cost}, parsed.explain
    question = question_of(asked)
    if explain:
        raise _cost_unknown_error(
            "EXPLAIN PRIVACY shows a cost and answers nothing.", "SELECT …   without EXPLAIN PRIVACY"
        )
    if "error" not in cost:
        return question, spend_of(cost)
    spend = compiler.least_spend(question, compiler.bound_or_assumed()[0], **cost)
    if isinstance(spend, Spend):
        return question, spend
    raise _cost_unknown_error(
        "the cost of this error is known only after a first answer.",
        'epsilon=0.1, or an error in the units of a count or a sum:  error="±50"',
    )


def _cost_unknown_error(what: str, fix: str) -> BadParameter:
    why = "a batch is charged as a whole, before anything is drawn."
    return BadParameter("DP107", what, why=why, fix=fix)


def _compile_all(
    compiler: QuestionCompiler, questions: list[tuple[Question, Spend]]
) -> tuple[list[TableMechanism], str]:
    """One mechanism for each question, and what was paid before: the choice of at_most="auto", if
    it was due.
    """
    first_spend = questions[0][1]
    bound, _ = compiler.bound_or_assumed()
    # A question that is refused is refused here, before anything is charged.
    mechanisms = [compiler.compile(question, spend, bound) for question, spend in questions]
    bound_mechanism = compiler.bound_mechanism(first_spend)
    if bound_mechanism is None:
        return mechanisms, ""
    _refuse_beyond_the_limit(compiler, [bound_mechanism, *mechanisms])
    bound = compiler.chosen_bound(first_spend)
    mechanisms = [compiler.compile(question, spend, bound) for question, spend in questions]
    return mechanisms, "what choosing at_most cost"


def _refuse_beyond_the_limit(compiler: QuestionCompiler, mechanisms: Iterable[Mechanism]) -> None:
    """Refuse a batch that does not fit, before its first charge."""
    limit, now = compiler.account.ledger.limit, datetime.now(UTC)
    state = compiler.account.ledger.spent
    for mechanism in mechanisms:
        state = limit.admit(state, limit.cost(mechanism.guarantee), now=now, asker=compiler.account.asker)
