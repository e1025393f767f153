# SPDX-License-Identifier: Apache-2.0
"""What a session is given, validated before anything is charged: questions, costs, and the limit of
a description.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias, TypedDict

from discreet.errors import BadParameter
from discreet.ledger import Limit
from discreet.ledger.opening import validate_label
from discreet.tables.ask.question import Question
from discreet.tables.plan.spend import Spend

__all__ = ["Askable", "QuestionCost", "limit_of"]

#: How the keys begin under which a session stores what it asks by itself.
OWN_KEYS = "discreet: "


class HasQuestion(Protocol):
    """What `group_by(…).count()` and the other aggregates return: an expression that holds its
    question.
    """

    @property
    def question(self) -> Question:
        """The question."""
        ...


#: A question about tables, as `Session.release` and `Session.preview` take it.
Askable: TypeAlias = Question | HasQuestion


class QuestionCost(TypedDict, total=False):
    """What one answer may cost: `epsilon`, `epsilon` with `delta`, `rho`, or the `error` that it
    needs.

    >>> cost: QuestionCost = {"epsilon": 0.5, "delta": 1e-7}
    """

    epsilon: float
    delta: float
    rho: float
    error: str | float
    confidence: float
    pilot: Spend


def limit_of(budget: Mapping[str, Any]) -> Limit | None:
    """The limit that the [budget] of a description states; None if it states none, and the ledger
    must know it.

    >>> limit_of({"epsilon": 1}).guarantee
    pure(epsilon=1.0)
    >>> limit_of({}) is None
    True
    """
    amounts = {name: budget[name] for name in ("epsilon", "delta", "rho", "mu") if name in budget}
    if not amounts:
        return None
    allocations = budget.get("per_analyst")
    if allocations is not None and not isinstance(allocations, Mapping):
        raise BadParameter(
            "DP107",
            "per_analyst needs the names of the analysts.",
            why="each allocation belongs to one analyst; without names the allocations cannot be added up.",
            fix="per_analyst = {ana = 0.5, ben = 0.25}",
        )
    window = budget.get("window", "none")
    lifetime = budget.get("lifetime")
    return Limit.filter(
        **amounts,
        kind=budget.get("filter"),
        leaks=budget.get("leaks"),
        analysts=allocations,
        window=None if window == "none" else window,
        lifetime=None if lifetime is None else Limit.filter(**lifetime),
    )


def question_of(asked: object) -> Question:
    """A question about tables, or the question of an expression."""
    question = asked if isinstance(asked, Question) else getattr(asked, "question", None)
    if isinstance(question, Question):
        return question
    raise BadParameter(
        "DP104",
        f"a session answers questions, SQL and mechanisms, not {type(asked).__name__}.",
        why="every release is charged, and only these know their cost.",
        fix='session.release(data.count(), epsilon=0.1)   or  session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
    )


def question_cost(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    error: str | float | None = None,
    confidence: float | None = None,
    pilot: Spend | None = None,
) -> QuestionCost:
    """The amounts that are stated, by name."""
    cost = QuestionCost()
    if epsilon is not None:
        cost["epsilon"] = epsilon
    if delta is not None:
        cost["delta"] = delta
    if rho is not None:
        cost["rho"] = rho
    if error is not None:
        cost["error"] = error
    if confidence is not None:
        cost["confidence"] = confidence
    if pilot is not None:
        cost["pilot"] = pilot
    return cost


def spend_of(cost: Mapping[str, Any]) -> Spend:
    """What an answer may cost, if it is stated in amounts and not by its error."""
    unknown = sorted(set(cost) - {"epsilon", "delta", "rho"})
    if not unknown:
        return Spend(**cost)
    near = get_close_matches(unknown[0], ("epsilon", "delta", "rho", "error"), n=1, cutoff=0.5)
    meant = f"{near[0]}=   (did you mean this?)   or  " if near else ""
    raise BadParameter(
        "DP105",
        f"{unknown[0]}= is not a way to state what an answer may cost.",
        why="a misspelt name is never replaced by a default.",
        fix=f"{meant}epsilon=0.1   or  epsilon=0.1, delta=1e-6   or  rho=0.01   or  error='±50'",
    )


def check_error_options(options: Mapping[str, Any]) -> None:
    """Only the confidence, δ, the pilot and the greatest ε may be stated with an error."""
    others = sorted(set(options) - {"confidence", "delta", "pilot", "epsilon"})
    if others:
        raise BadParameter(
            "DP107",
            f"error and {others[0]} are both given.",
            why="discreet searches the least epsilon that reaches the error; only the most it may cost can be added.",
            fix="error='±50'   or  error='±50', epsilon=0.5   for at most that",
        )


def check_key(key: object) -> str | None:
    """A key of the caller; keys under which a session stores its own answers are refused."""
    if key is None:
        return None
    text: str = validate_label("key", key)
    if text.startswith(OWN_KEYS):
        raise BadParameter(
            "DP102",
            f"a key must not begin with {OWN_KEYS.strip()}",
            why="a session stores its own answers under such keys, and every question depends on them.",
            fix=f"key={text.removeprefix(OWN_KEYS).strip() or 'monday'!r}",
        )
    return text


def check_mechanism_call(data: object, cost: Mapping[str, Any]) -> None:
    """A mechanism knows its cost and needs data to be drawn on."""
    if data is None or cost:
        raise BadParameter(
            "DP107",
            "a mechanism is released on data of its own, at the cost that it was made with.",
            why="the ledger charges the guarantee of the mechanism, and nothing else.",
            fix="session.release(mechanism, value)",
        )
