# SPDX-License-Identifier: Apache-2.0
"""What questions would cost, and whether all of them fit the budget; nothing is charged and no row
is read.

**Guarantee.** The check is the ledger's own: every cost is admitted to a copy of its running total,
one after another. What is true of the copy is true of the ledger as long as nobody else charges it
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from discreet.cli.places import has_limit
from discreet.cli.terminal import at_most_percent
from discreet.errors import LedgerError, OverBudget

if TYPE_CHECKING:
    from discreet.ledger import Budget
    from discreet.privacy.guarantee import Guarantee
    from discreet.session import QuestionCost, Session
    from discreet.tables.ask.question import Question


@dataclass(frozen=True)
class BudgetFit:
    """The budget after some charges, and the refusal of the first that does not fit."""

    left: Budget
    refusal: OverBudget | None


def fits(session: Session, costs: Iterable[Guarantee], analyst: str | None, project: str | None) -> BudgetFit:
    """Whether these costs fit, one after another, for whoever asks."""
    from discreet.ledger import Asker, chain

    book, now = session.ledger, chain.now()
    asker = Asker(analyst, project)
    state, refusal = book.spent, None
    try:
        for cost in costs:
            state = book.limit.admit(state, book.limit.cost(cost), asker=asker, now=now)
    except OverBudget as error:
        refusal = error
    return BudgetFit(book.limit.budget(state, asker=asker, now=now), refusal)


def is_released(session: Session, key: str, question: str, cost: Guarantee, what: str) -> bool:
    """Whether a part of a release was paid for before, drawn or not."""
    try:
        entry = session.find(key, question, cost)
    except LedgerError as error:
        if error.code != "DP604":
            raise
        raise LedgerError(
            "DP604",
            f"the {what} of a release of this name was released before, with another question or cost.",
            why="running a release again completes it; a changed release is a new one, and is paid for.",
            fix='[release]\n       name = "…"      # a new name',
        ) from None
    return entry is not None or session.ledger.find_pending(key) is not None


def first_choice(session: Session, spend: Mapping[str, Any]) -> list[Guarantee]:
    """The guarantee of the private choice of at_most="auto", if it has not been made."""
    if session.data.protect.at_most != "auto":
        return []
    cost = session.bound_guarantee(**spend)
    return [] if cost is None else [cost]


def known_cost(session: Session, question: Question, spend: QuestionCost) -> QuestionCost | None:
    """The cost for a stated error; None if it depends on a first, small answer."""
    if "error" not in spend:
        return spend
    from discreet.tables.plan.accuracy import least_spend
    from discreet.tables.plan.spend import Spend

    options: dict[str, Any] = {name: value for name, value in spend.items() if name != "error"}
    least = least_spend(question, session.data, spend["error"], **options)
    if not isinstance(least, Spend):
        return None
    stated = {"epsilon": least.epsilon, "delta": least.delta, "rho": least.rho}
    return cast("QuestionCost", {name: value for name, value in stated.items() if value is not None})


def budget_rows(session: Session, fit: BudgetFit, costs: list[Guarantee]) -> list[tuple[str, str]]:
    """What these costs mean for the budget, and for an attacker."""
    from discreet.ledger.budget import closing_notes
    from discreet.privacy.guarantee import compose

    total = compose([(cost, 1) for cost in costs])
    guess = at_most_percent(total.explain().right)
    rows = [("an attacker", f"guesses right at most {guess} of the time from this alone; a coin, 50 %")]
    if not has_limit(session):
        return [*rows, ("limit", "none is stated: add --ledger or --limit to compare with one")]
    before = session.budget()
    spent = (
        f"{before.spent_fraction:.1%} now, {fit.left.spent_fraction:.1%} after it"
        if fit.refusal is None
        else "it does not fit"
    )
    rows.append(("budget spent", spent))
    rows += [("closes", note) for note in closing_notes(before, fit.left) if fit.refusal is None]
    claim = session.ledger.limit.guarantee_for(session.ledger.unit)
    if claim is not None:
        highest = at_most_percent(claim.explain().right)
        rows.append(("at the limit", f"an attacker guesses right at most {highest} of the time"))
    return rows


def budget_facts(session: Session, fit: BudgetFit, costs: list[Guarantee]) -> dict[str, object]:
    """The same for JSON."""
    from discreet.ledger.budget import closed_tracks
    from discreet.ledger.overview import budget_facts
    from discreet.privacy.guarantee import compose

    total = compose([(cost, 1) for cost in costs])
    limited = has_limit(session)
    return {
        "cost": repr(total),
        "guess": total.explain().right,
        "fits": fit.refusal is None if limited else None,
        "closes": list(closed_tracks(session.budget(), fit.left)) if limited and fit.refusal is None else [],
        "spent_fraction": session.budget().spent_fraction if limited else None,
        "spent_fraction_after": fit.left.spent_fraction if limited and fit.refusal is None else None,
        "now": budget_facts(session.budget()) if limited else None,
    }
