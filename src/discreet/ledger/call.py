# SPDX-License-Identifier: Apache-2.0
"""A limit as the call of `Limit` that makes it.

    Limit.filter(epsilon=1.0, delta=1e-06, analysts={'ana': 0.5})

A number is a float where the float stands for exactly this number, and a `Fraction` otherwise. A
limit that only an earlier release could make is described in pointed brackets.
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.exact import exactly
from discreet.ledger.allocations import AllocatedLimit
from discreet.ledger.candidates import Candidates
from discreet.ledger.filter_choice import LEAK
from discreet.ledger.filters import Filter
from discreet.ledger.limit import Limit
from discreet.ledger.odometer import Odometer, make_odometer
from discreet.ledger.plan import PlannedLimit
from discreet.ledger.window import WindowedLimit

__all__ = ["call_of"]


def call_of(limit: Limit) -> str:
    """The call that makes an equal limit.

    >>> call_of(Limit.filter(epsilon=1, delta=1e-6, leaks=0.5))
    'Limit.filter(epsilon=1.0, delta=1e-06, leaks=0.5)'
    """
    match limit:
        case PlannedLimit():
            within = "" if limit.within is None else f", within={limit.within!r}"
            return f"Limit.plan({limit.slots!r}{within})"
        case Odometer() if make_odometer(limit.delta, _rho(limit)) == limit:
            return f"Limit.odometer(delta={_number(limit.delta)}, rho={_rho(limit)!r})"
    arguments = _arguments(limit)
    if arguments is None:
        return f"<{type(limit).__name__} of an earlier release: {limit.theorem}>"
    return f"Limit.filter({', '.join(arguments)})"


def _arguments(limit: Limit | None) -> list[str] | None:
    """The arguments of `Limit.filter`; None if no call of it makes this limit."""
    match limit:
        case Filter():
            return _filter_arguments(limit)
        case Candidates():
            return _amounts(limit.first)
        case AllocatedLimit() if (whole := _arguments(limit.whole)) is not None:
            for group, members in limit.allocations:
                named = ", ".join(f"{name!r}: {_number(fraction)}" for name, fraction in members)
                whole.append(f"{group}s={{{named}}}")
            return [*whole, *(["reserved=True"] if limit.reserved else [])]
        case WindowedLimit() if (each := _arguments(limit.each)) is not None:
            lifetime = [] if limit.lifetime is None else [f"lifetime={limit.lifetime!r}"]
            return [*each, f"window={limit.length!r}", *lifetime]
    return None


def _filter_arguments(limit: Filter) -> list[str] | None:
    if limit.sort not in {"lanes", "pure", "basic", "zcdp", "gdp"}:
        return None
    if limit.epsilon is None:
        (track,) = limit.tracks
        if track.kind == "mu2":
            root = Fraction(math.isqrt(track.total.numerator), math.isqrt(track.total.denominator))
            return [f"mu={_number(root)}"] if root * root == track.total else None
        return [f"rho={_number(track.total)}", *_delta(limit)]
    share = limit.leak / limit.delta if limit.delta else Fraction(0)
    kind = [] if limit.sort in {"lanes", "pure"} else [f"kind={limit.sort!r}"]
    # Without its share of δ, a filter with two tracks would be one of several candidates.
    leaks = limit.sort == "lanes" or (limit.sort == "zcdp" and share != LEAK)
    return [*_amounts(limit), *kind, *([f"leaks={_number(share)}"] if leaks else [])]


def _amounts(limit: Filter) -> list[str]:
    """ε and δ."""
    return [f"epsilon={_number(limit.epsilon or Fraction(0))}", *_delta(limit)]


def _delta(limit: Filter) -> list[str]:
    return [f"delta={_number(limit.delta)}"] if limit.delta else []


def _number(value: Fraction) -> str:
    return repr(float(value)) if exactly(float(value)) == value else repr(value)


def _rho(limit: Odometer) -> float:
    """The ρ at which the line is tight, to six digits; its rate has four, so it makes the same one."""
    rho = -math.log(float(limit.delta) * 0.9) / float(limit.rate) ** 2
    return float(f"{rho:.6g}")
