# SPDX-License-Identifier: Apache-2.0
"""Many questions, all of them answered or none: see `Session.release_all`, which says what is promised.

The order is what makes it hold: compile everything (a question that is refused stops all), and settle it all at once
(`account.settle`). A process that is stopped before all is kept has shown nothing, so whoever asks again with the same keys
draws for the same charge. An error is something that is shown, and may depend on what was drawn: it is kept as the answer of
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from discreet.errors import BadParameter
from discreet.session.account import having_spent
from discreet.session.maker import Maker, answer_of
from discreet.session.stated import checked_key, question_of, spend_of
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.plan.compile import TableMechanism

_LOST = "what all of these answers cost"


def together(maker: Maker, asked: Any, after_each: Callable[[], object]) -> dict[str, Answer]:
    """The answers under their keys, in the order of the questions."""
    pairs = _pairs(asked)
    for key in pairs:
        checked_key(key)
    plans = {key: _planned(maker, *what) for key, what in pairs.items()}
    mechanisms, before = _mechanisms(maker, list(plans.values()))
    due = [maker.due(mechanism, key, after_each) for key, mechanism in zip(plans, mechanisms, strict=True)]
    with having_spent(before):
        settled = maker.account.settle(due, maker.data.ready, compiled=True, spent=_LOST)
    return {key: answer_of(one) for key, one in zip(plans, settled, strict=True)}


def _pairs(asked: Any) -> Mapping[str, tuple[Any, Mapping[str, Any]]]:
    """Questions with their keys and costs, and nothing that is only like them."""
    if isinstance(asked, Mapping) and asked and all(map(_is_pair, asked.values())):
        return asked
    raise BadParameter(
        "DP104",
        "what is released together is a mapping of keys to pairs of a question and its cost.",
        why="each answer is kept under a key, so that asking again costs nothing.",
        fix=f"session.release_all({_in_pairs(asked)})",
    )


def _in_pairs(asked: Any) -> str:
    """What was asked in SQL, each with a key and a cost; else an example."""
    several = asked if isinstance(asked, Mapping) else {"monday": asked}
    told = {str(key): (what, {"epsilon": 0.1}) for key, what in several.items() if isinstance(what, str)}
    return repr(told or {"monday": ("SELECT COUNT(*) FROM visits", {"epsilon": 0.1})})


def _is_pair(what: Any) -> bool:
    return isinstance(what, tuple) and len(what) == 2 and isinstance(what[1], Mapping)


def _planned(maker: Maker, what: Any, stated: Mapping[str, Any]) -> tuple[Question, Spend]:
    """A question and its cost, which has to be known before anything is drawn."""
    from discreet.tables.ask.sql import parse

    asked, spend, explains = what, dict(stated), False
    if isinstance(what, str):
        read = parse(what, maker.data)
        asked, spend, explains = read.question, {**read.options, **spend}, read.explain
    question = question_of(asked)
    if explains:
        raise _known_too_late("EXPLAIN PRIVACY only plans a question.", "SELECT …   without EXPLAIN PRIVACY")
    if "error" not in spend:
        return question, spend_of(spend)
    plan = maker.least(question, maker.cap_or_guess()[0], **spend)
    if isinstance(plan, Spend):
        return question, plan
    raise _known_too_late(
        "what a question costs at this error is known only after a first answer.",
        'epsilon=0.1, or an error in the units of a count or a sum:  error="±50"',
    )


def _known_too_late(what: str, fix: str) -> BadParameter:
    why = "all of them are charged together, before anything is drawn."
    return BadParameter("DP107", what, why=why, fix=fix)


def _mechanisms(maker: Maker, plans: list[tuple[Question, Spend]]) -> tuple[list[TableMechanism], str]:
    """One for each question, and what was paid before they were known: the choice of at_most="auto", if it was due."""
    first = plans[0][1]
    cap, _ = maker.cap_or_guess()
    made = [maker.compiled(question, amount, cap) for question, amount in plans]  # refused here, if one is
    choice = maker.choice(first)
    if choice is None:
        return made, ""
    _refuse_beyond_the_limit(maker, [choice, *made])
    cap = maker.cap(first)
    return [maker.compiled(question, amount, cap) for question, amount in plans], "what choosing at_most cost"


def _refuse_beyond_the_limit(maker: Maker, mechanisms: list[Any]) -> None:
    """What does not fit already is not begun."""
    limit, now = maker.account.ledger.limit, datetime.now(UTC)
    state = maker.account.ledger.spent
    for mechanism in mechanisms:
        state = limit.admit(state, limit.cost(mechanism.guarantee), now=now, **maker.account.who)
