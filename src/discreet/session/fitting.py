# SPDX-License-Identifier: Apache-2.0
"""The fix of a refusal for want of budget: less of what does not fit, compiled and tried before it is proposed.

**Guarantee.** What is proposed is admitted if it is asked next. It is found from the question, the description and what was
charged before; no row is read and nothing is charged. Who is protected stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal

from discreet.errors import DiscreetError, OverBudget, RefusedQuestion
from discreet.ledger import chain
from discreet.mechanisms.mechanism import Mechanism
from discreet.session.account import Account
from discreet.tables.plan.spend import Spend

#: The parts of what is expected to fit that are tried, and below which part of δ it is as good as none.
_TRIED, _HARDLY = (0.95, 0.5, 0.2, 0.05, 0.01), 1e-3
_OR = "delta=1e-6, or "
#: What a fix proposes where a limit has no use for what was stated: the first that fits.
_EPSILONS, _DELTAS = (0.5, 0.1, 0.01), (1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


def with_fix(
    refused: OverBudget, account: Account, amount: Spend, compiled: Callable[[Spend], Mechanism]
) -> OverBudget:
    """The refusal with a cost in its fix at which the same question is admitted; as it is, if none is found."""
    for spend in _smaller(amount, refused.delta_part, refused.loss_part):
        if _fits(account, spend, compiled):
            refused.fix = (
                f"ask with  {_said(spend)}  (on the command line:  {_options(spend)}); "
                "session.budget()  and  discreet budget  say what else fits."
            )
            return refused
    return refused


def affordable(
    refused: DiscreetError, account: Account, amount: Spend, compiled: Callable[[Spend], Mechanism]
) -> DiscreetError:
    """A refusal for want of a delta (DP704), or because the limit counts no delta (DP203), with a cost that is admitted.

    Where none is, only public keys remain: they need no delta.
    """
    if refused.code == "DP704" and amount.delta is None and "delta=" in refused.fix:
        tried = [replace(amount, delta=delta) for delta in _DELTAS]
    elif refused.code == "DP203":
        stated = () if amount.epsilon is None else (amount.epsilon,)
        tried = [Spend(epsilon=epsilon) for epsilon in (*stated, *_EPSILONS)]
    else:
        return refused
    for spend in tried:
        if _fits(account, spend, compiled):
            said = f"{_said(spend)}   (on the command line:  {_options(spend)})"
            rest = refused.fix.partition(_OR)[2] if refused.code == "DP704" else ""
            refused.fix = f"{said}, or {rest}" if rest else f"ask with  {said}"
            return refused
    try:
        compiled(tried[-1] if refused.code == "DP203" else amount)
    except RefusedQuestion as needs:  # a delta, of which there is none: what else it says remains
        refused.fix = needs.fix.partition(_OR)[2] or refused.fix
    except DiscreetError:
        pass
    return refused


def _smaller(amount: Spend, of_delta: float | None, of_loss: float | None) -> Iterator[Spend]:
    """Less of what does not fit; of the loss too, where neither alone is to blame."""
    if of_delta is not None and amount.delta is not None:
        if of_delta < _HARDLY:
            return
        delta = _part(amount.delta, of_delta)
        if of_loss is None:
            yield replace(amount, delta=delta)
            delta = _part(delta, 0.5)
        amount = replace(amount, delta=delta)
    most = 1.0 if of_loss is None else of_loss
    yield from (_less_loss(amount, most * part) for part in _TRIED if most > 0)


def _less_loss(amount: Spend, part: float) -> Spend:
    if amount.rho is not None:
        return replace(amount, rho=_part(amount.rho, part))
    assert amount.epsilon is not None
    return replace(amount, epsilon=_part(amount.epsilon, part))


def _fits(account: Account, spend: Spend, compiled: Callable[[Spend], Mechanism]) -> bool:
    limit = account.ledger.limit
    try:
        limit.admit(
            account.ledger.spent, limit.cost(compiled(spend).guarantee), now=chain.now(), **account.who
        )
    except DiscreetError:
        return False
    return True


def _part(value: float, part: float) -> float:
    """A part of it, to two digits, rounded down."""
    return float(Context(prec=2, rounding=ROUND_FLOOR).multiply(Decimal(repr(value)), Decimal(repr(part))))


def _stated(spend: Spend) -> dict[str, float]:
    named = {"epsilon": spend.epsilon, "delta": spend.delta, "rho": spend.rho}
    return {name: value for name, value in named.items() if value is not None}


def _digits(value: float) -> str:
    """As people write it: 1e-6, not 1e-06."""
    return repr(value).replace("e-0", "e-")


def _said(spend: Spend) -> str:
    return ", ".join(f"{name}={_digits(value)}" for name, value in _stated(spend).items())


def _options(spend: Spend) -> str:
    return " ".join(f"--{name} {_digits(value)}" for name, value in _stated(spend).items())
