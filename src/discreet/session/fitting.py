# SPDX-License-Identifier: Apache-2.0
"""The Fix of a refusal for lack of budget: a smaller cost, compiled and tried before it is
proposed.

**Guarantee.** A proposed cost is admitted if it is asked next. It follows from the question, the
description and earlier charges; no row is read and nothing is charged. Who is protected stays the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal

from discreet.errors import DiscreetError, OverBudget, RefusedQuestion
from discreet.exact import bisect
from discreet.ledger import chain
from discreet.mechanisms.mechanism import Mechanism
from discreet.session.account import SessionAccount
from discreet.tables.plan.spend import Spend

#: The fractions of the expected remainder that are tried.
_FRACTIONS = (0.95, 0.5, 0.2, 0.05, 0.01)
#: Below this fraction of the stated δ a smaller δ is not proposed.
_LEAST_DELTA_FRACTION = 1e-3
#: Halvings that leave less than a hundredth of an interval.
_HALVINGS = 7
_OR = "delta=1e-6, or "
#: What a Fix proposes where a limit does not count what was stated: the first that fits.
_EPSILONS, _DELTAS = (0.5, 0.1, 0.01), (1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


def propose_smaller_cost(
    refusal: OverBudget, account: SessionAccount, spend: Spend, compile_at: Callable[[Spend], Mechanism]
) -> OverBudget:
    """The refusal with a cost in its Fix that the ledger admits; unchanged if none is found."""
    for smaller in _smaller_spends(spend, refusal.delta_part, refusal.loss_part):
        if _fits(account, smaller, compile_at):
            refusal.fits = _amounts(_greatest_fit(account, smaller, spend, compile_at))
            refusal.fix = (
                f"ask with  {_arguments(smaller)}  (on the command line:  {_options(smaller)}); "
                "session.budget()  and  discreet budget  say what else fits."
            )
            return refusal
    return refusal


def propose_admitted_cost(
    refusal: DiscreetError, account: SessionAccount, spend: Spend, compile_at: Callable[[Spend], Mechanism]
) -> DiscreetError:
    """A refusal for lack of a delta (DP704), or because the limit counts no delta (DP203), with an
    admitted cost in its Fix.

    Where no cost is admitted, only public keys remain: they need no delta.
    """
    if refusal.code == "DP704" and spend.delta is None and "delta=" in refusal.fix:
        candidates = [replace(spend, delta=delta) for delta in _DELTAS]
    elif refusal.code == "DP203":
        stated = () if spend.epsilon is None else (spend.epsilon,)
        candidates = [Spend(epsilon=epsilon) for epsilon in (*stated, *_EPSILONS)]
    else:
        return refusal
    for candidate in candidates:
        if _fits(account, candidate, compile_at):
            proposal = f"{_arguments(candidate)}   (on the command line:  {_options(candidate)})"
            rest = refusal.fix.partition(_OR)[2] if refusal.code == "DP704" else ""
            refusal.fix = f"{proposal}, or {rest}" if rest else f"ask with  {proposal}"
            return refusal
    try:
        compile_at(candidates[-1] if refusal.code == "DP203" else spend)
    except RefusedQuestion as still_refused:
        # It needs a delta, and none fits: only the rest of its Fix remains.
        refusal.fix = still_refused.fix.partition(_OR)[2] or refusal.fix
    except DiscreetError:
        pass
    return refusal


def _smaller_spends(
    spend: Spend, delta_fraction: float | None, loss_fraction: float | None
) -> Iterator[Spend]:
    """Less of what does not fit; less of both, where neither alone is the reason."""
    if delta_fraction is not None and spend.delta is not None:
        if delta_fraction < _LEAST_DELTA_FRACTION:
            return
        delta = _fraction_of(spend.delta, delta_fraction)
        if loss_fraction is None:
            yield replace(spend, delta=delta)
            delta = _fraction_of(delta, 0.5)
        spend = replace(spend, delta=delta)
    greatest = 1.0 if loss_fraction is None else loss_fraction
    yield from (_less_loss(spend, greatest * fraction) for fraction in _FRACTIONS if greatest > 0)


def _greatest_fit(
    account: SessionAccount, fitting: Spend, refused: Spend, compile_at: Callable[[Spend], Mechanism]
) -> Spend:
    """The greatest loss that is admitted, to two digits, with the δ of a cost that is.

    Every cost that is returned was tried; `fitting` is returned if none above it fits.
    """
    word = "epsilon" if fitting.rho is None else "rho"
    least, most = _amounts(fitting)[word], _amounts(refused)[word]

    def fits(loss: float) -> bool:
        return _fits(account, _with_loss(fitting, loss), compile_at)

    low, high = bisect(fits, yes=least, no=most, steps=_HALVINGS if least < most else 0)
    for loss in (float(f"{high:.2g}"), _fraction_of(low, 1.0)):
        if least < loss < most and fits(loss):
            return _with_loss(fitting, loss)
    return fitting


def _less_loss(spend: Spend, fraction: float) -> Spend:
    loss = spend.epsilon if spend.rho is None else spend.rho
    assert loss is not None
    return _with_loss(spend, _fraction_of(loss, fraction))


def _with_loss(spend: Spend, loss: float) -> Spend:
    return replace(spend, epsilon=loss) if spend.rho is None else replace(spend, rho=loss)


def _fits(account: SessionAccount, spend: Spend, compile_at: Callable[[Spend], Mechanism]) -> bool:
    limit = account.ledger.limit
    try:
        limit.admit(
            account.ledger.spent,
            limit.cost(compile_at(spend).guarantee),
            now=chain.now(),
            asker=account.asker,
        )
    except DiscreetError:
        return False
    return True


def _fraction_of(value: float, fraction: float) -> float:
    """A fraction of a value, to two digits, rounded down."""
    context = Context(prec=2, rounding=ROUND_FLOOR)
    return float(context.multiply(Decimal(repr(value)), Decimal(repr(fraction))))


def _amounts(spend: Spend) -> dict[str, float]:
    named = {"epsilon": spend.epsilon, "delta": spend.delta, "rho": spend.rho}
    return {name: value for name, value in named.items() if value is not None}


def _digits(value: float) -> str:
    """As people write it: 1e-6, not 1e-06."""
    return repr(value).replace("e-0", "e-")


def _arguments(spend: Spend) -> str:
    return ", ".join(f"{name}={_digits(value)}" for name, value in _amounts(spend).items())


def _options(spend: Spend) -> str:
    return " ".join(f"--{name} {_digits(value)}" for name, value in _amounts(spend).items())
