# SPDX-License-Identifier: Apache-2.0
"""What a session was asked, checked before anything is charged: questions, costs, and the limit of a description."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from discreet.errors import BadParameter
from discreet.ledger import Limit
from discreet.ledger.opening import label
from discreet.tables.ask.question import Question
from discreet.tables.plan.spend import Spend

__all__ = ["limit_of"]

#: How the keys begin under which a session keeps what it asks by itself.
OWN = "discreet: "


def limit_of(budget: Mapping[str, Any]) -> Limit | None:
    """The limit that the [budget] of a description states; None if it states none, and the ledger must know it."""
    amounts = {name: budget[name] for name in ("epsilon", "delta", "rho", "mu") if name in budget}
    if not amounts:
        return None
    shares = budget.get("per_analyst")
    if shares is not None and not isinstance(shares, Mapping):
        raise BadParameter(
            "DP107",
            "per_analyst gives a share to everybody, and nobody is named.",
            why="a share is kept for somebody: without names there is nothing to add up.",
            fix="per_analyst = {ana = 0.5, ben = 0.25}",
        )
    window = budget.get("window", "none")
    lifetime = budget.get("lifetime")
    return Limit.filter(
        **amounts,
        kind=budget.get("filter"),
        leaks=budget.get("leaks"),
        analysts=shares,
        window=None if window == "none" else window,
        lifetime=None if lifetime is None else Limit.filter(**lifetime),
    )


def question_of(asked: Any) -> Question:
    """A question about tables, or what holds one."""
    found = asked if isinstance(asked, Question) else getattr(asked, "question", None)
    if isinstance(found, Question):
        return found
    raise BadParameter(
        "DP104",
        f"a session answers questions, SQL and mechanisms, not {type(asked).__name__}.",
        why="what is released has to be charged, and only these know what they cost.",
        fix='session.release(data.count(), epsilon=0.1)   or  session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
    )


def spend_of(stated: Mapping[str, Any]) -> Spend:
    """What an answer may cost."""
    unknown = sorted(set(stated) - {"epsilon", "delta", "rho"})
    if not unknown:
        return Spend(**stated)
    near = get_close_matches(unknown[0], ("epsilon", "delta", "rho", "error"), n=1, cutoff=0.5)
    meant = f"{near[0]}=   (did you mean this?)   or  " if near else ""
    raise BadParameter(
        "DP105",
        f"there is no {unknown[0]}= to say what an answer may cost.",
        why="a slip in the name would leave the cost to a default, and there is none.",
        fix=f"{meant}epsilon=0.1   or  epsilon=0.1, delta=1e-6   or  rho=0.01   or  error='±50'",
    )


def check_error(more: Mapping[str, Any]) -> None:
    """Beside an error may be said how it is searched, and the most that it may cost."""
    other = sorted(set(more) - {"confidence", "delta", "pilot", "epsilon"})
    if other:
        raise BadParameter(
            "DP107",
            f"error and {other[0]} are both given.",
            why="the least epsilon is searched that keeps the error; beside it only the most that it may cost is stated.",
            fix="error='±50'   or  error='±50', epsilon=0.5   for at most that",
        )


def checked_key(key: Any) -> str | None:
    """A key of whoever asks: those under which a session keeps its own steps are not for them."""
    if key is None:
        return None
    if label(key=key).startswith(OWN):
        raise BadParameter(
            "DP102",
            f"a key must not begin with {OWN.strip()}",
            why="under such keys a session keeps answers of its own, and everybody's questions depend on them.",
            fix=f"key={key.removeprefix(OWN).strip() or 'monday'!r}",
        )
    return str(key)


def check_mechanism(data: Any, spend: Mapping[str, Any]) -> None:
    """A mechanism knows what it costs, and needs something to be drawn on."""
    if data is None or spend:
        raise BadParameter(
            "DP107",
            "a mechanism is released on data of its own, at the cost that it was made with.",
            why="what is charged is what the mechanism promises, and nothing else.",
            fix="session.release(mechanism, value)",
        )
