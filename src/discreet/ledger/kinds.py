# SPDX-License-Identifier: Apache-2.0
"""Every kind of limit, and the one function that puts a filter, its allocations and its windows
together.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet import check
from discreet.errors import BadParameter
from discreet.ledger import odometer, plan
from discreet.ledger.allocations import allocate
from discreet.ledger.candidates import Candidates
from discreet.ledger.costs import Number
from discreet.ledger.filters import Filter
from discreet.ledger.limit import Limit
from discreet.ledger.window import make_windowed


def build_limit(
    whole: Filter | Candidates,
    *,
    allocations: Mapping[str, Mapping[str, Number] | None],
    reserved: bool,
    window: str | None,
    lifetime: Limit | None,
) -> Limit:
    """See `Limit.filter`."""
    given = {group: members for group, members in allocations.items() if members is not None}
    reserved = check.flag(reserved=reserved)
    if reserved and not given:
        raise BadParameter(
            "DP107",
            "reserved=True needs allocations to reserve.",
            why="an allocation is reserved for somebody by name.",
            fix="Limit.filter(epsilon=1, delta=1e-6, analysts={'ana': 0.5}, reserved=True)",
        )
    base = allocate(whole, given, reserved=reserved) if given else whole
    if window is None and lifetime is not None:
        raise BadParameter(
            "DP107",
            "lifetime= belongs to a limit with a window.",
            why="without windows the limit itself is for life.",
            fix="Limit.filter(epsilon=1, delta=1e-6, window='month', lifetime=Limit.filter(epsilon=5, delta=1e-6))",
        )
    return base if window is None else make_windowed(base, window, lifetime)


__all__ = ["build_limit", "odometer", "plan"]
