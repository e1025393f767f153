# SPDX-License-Identifier: Apache-2.0
"""What a ledger may claim to the outside, and why it is that and not something smaller.

**Guarantee.** What is claimed follows from the limit alone, by its theorem. It holds now and at the
end, whatever was asked and however the questions and their prices were chosen. A ledger that is
half empty claims no less: "stop here, and quote the composition of what was run" is a stopping rule
that looks at answers, and the composed curve does not hold under such a rule.

The four cases: a filter claims its (ε, δ), ρ or μ; a plan the composition of all its slots, used or
not; windows claim their lifetime limit, and without one what so many windows add up to; an odometer
has no end, and states where it is.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from discreet.exact import upper_bound_text
from discreet.json_types import JsonObject
from discreet.ledger.costs import State
from discreet.ledger.limit import Limit
from discreet.ledger.odometer import Odometer
from discreet.ledger.plan import PlannedLimit
from discreet.ledger.window import WindowedLimit
from discreet.privacy import primitives
from discreet.privacy.guarantee import Guarantee, alternatives
from discreet.privacy.unit import Unit

__all__ = ["StatedGuarantee", "state_guarantee"]

#: Where a curve has no δ of its own, ε is read at this one.
_DELTA = 1e-6


@dataclass(frozen=True)
class StatedGuarantee:
    """What holds for one unit: `guarantee` (None if there is no end), its ε at a δ, and over what."""

    unit: Unit
    guarantee: Guarantee | None
    epsilon: float
    delta: float
    over: str
    why: str

    @property
    def headline(self) -> str:
        """The guarantee in one sentence."""
        if self.guarantee is None:
            reached = (
                f"ε = {upper_bound_text(self.epsilon)} at δ = {upper_bound_text(self.delta)} for {self.unit}"
            )
            return f"No limit; {reached}, {self.over}."
        at = f" at δ = {upper_bound_text(self.delta)}" if self.delta else ""
        return f"ε = {upper_bound_text(self.epsilon)}{at} for {self.unit}, {self.over}."

    def to_dict(self) -> JsonObject:
        """As plain JSON types."""
        guarantee = self.guarantee
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": guarantee.rho if isinstance(guarantee, primitives.ConcentratedGuarantee) else None,
            "over": self.over,
            "why": self.why,
            "what": None if guarantee is None else repr(guarantee),
            "guarantee": None if guarantee is None else json.loads(guarantee.to_json()),
            "flavour": flavour(self),
            "variant": variant(self),
        }


def state_guarantee(limit: Limit, unit: Unit, state: State) -> StatedGuarantee:
    """The claim of a limit for that unit; the state matters only where there is no limit for life."""
    if isinstance(limit, Odometer):
        return StatedGuarantee(
            unit, None, limit.bound(state), float(limit.delta), "over all answers so far", _ODOMETER
        )
    whole = limit.guarantee_for(unit)
    if isinstance(limit, WindowedLimit):
        if isinstance(limit.lifetime, Odometer):
            inner = limit.lifetime
            bound = inner.bound(state.under("lifetime/"))
            return StatedGuarantee(
                unit, None, bound, float(inner.delta), "over all answers so far", _ODOMETER
            )
        if whole is not None:
            return _state_epsilon(unit, whole, "over a lifetime, all windows together", _LIFETIME)
        begun = count_windows(state)
        over = "over the one window so far" if begun == 1 else f"over the {begun} windows so far"
        return _state_epsilon(unit, limit.guarantee_after(begun, unit), over, _WINDOWS)
    assert whole is not None
    if isinstance(limit, PlannedLimit):
        return _state_epsilon(unit, whole, "over all answers together", _PLAN, limit.within)
    return _state_epsilon(unit, whole, "over all answers together", _FILTER)


def count_windows(state: State) -> int:
    """How many windows there were from the first charge to the last, those without a charge among
    them.
    """
    return int(state["number"] - state["first"]) + 1 if "number" in state else 1


def flavour(claim: StatedGuarantee) -> str:
    """The kind of differential privacy, in the words of the registry of deployments."""
    if claim.guarantee is None:
        return "Approximate DP, at all times (odometer)"
    if claim.delta == 0:
        return "Pure DP"
    flavours = {
        primitives.GaussianGuarantee: "Gaussian DP",
        primitives.ConcentratedGuarantee: "Zero-concentrated DP",
    }
    return flavours.get(type(claim.guarantee), "Approximate DP")


def variant(claim: StatedGuarantee) -> str:
    """The same in the registry's list of variants, which knows a Gaussian claim by the (ε, δ) that
    follows from it.
    """
    name = flavour(claim)
    return name if name in {"Pure DP", "Zero-concentrated DP"} else "Approximate DP"


def _state_epsilon(
    unit: Unit, guarantee: Guarantee, over: str, why: str, target: Guarantee | None = None
) -> StatedGuarantee:
    """ε at δ = 0 if it is finite there, else at the claim's own δ or its target's, else at the
    usual one or above.
    """
    own = max(0.0, *(bag.failure for bag in alternatives(guarantee if target is None else target)))
    deltas = sorted({0.0, own, max(_DELTA, 2 * own), (1 + own) / 2})
    points = ((delta, guarantee.epsilon(delta)) for delta in deltas if delta < 1)
    delta, epsilon = next((point for point in points if math.isfinite(point[1])), (own, math.inf))
    return StatedGuarantee(unit, guarantee, epsilon, delta, over, why)


_FILTER = (
    "The guarantee is the limit, not the sum of what was charged. Each question, and how much was spent on it, may have been chosen "
    "in view of earlier answers; then the composed curve of the charges is no bound on what was revealed, and neither is "
    "a total that was read off before the limit was reached. The limit holds at every moment and at the end, however it is spent."
)
_PLAN = (
    "The guarantee is the composition of all planned slots, whether they were used or not. The slots were fixed in advance, so "
    "they are accounted for jointly; which of them were used may have depended on answers, so unused ones are not subtracted."
)
_LIFETIME = (
    "The guarantee is the limit for life, which no window renews. Within one window the window's limit holds as well. "
    "Neither is the sum of what was charged: questions may have been chosen in view of earlier answers."
)
_WINDOWS = (
    "The limit renews with every window, and there is none for life. The guarantee is what the windows so far add up to, each at "
    "its full limit; it grows with every window that begins."
)
_ODOMETER = (
    "There is no limit. The statement gives the (ε, δ) that all answers so far keep together. It holds at whatever moment it is "
    "read, even one that was chosen in view of the answers; ε grows with every answer."
)
