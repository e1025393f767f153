# SPDX-License-Identifier: Apache-2.0
"""A budget as plain JSON types: decimals for people, exact ratios beside them; the whole and each
allocation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from discreet.json_types import JsonObject
from discreet.ledger.asker import Asker
from discreet.ledger.budget import Budget
from discreet.ledger.costs import Amount
from discreet.ledger.limit import Limit
from discreet.ledger.window import allocated_limit

__all__ = ["allocation_facts", "budget_facts"]


def budget_facts(budget: Budget) -> JsonObject:
    """One view of a limit; what has no end is null."""
    tracks = [
        {
            "name": track.name,
            "total": _number(track.total),
            "spent": _number(track.spent),
            "left": _number(track.remaining),
            "spent_fraction": track.spent_fraction,
            "closed": track.spent > track.total,
            "exactly": {"total": str(track.total), "spent": str(track.spent), "left": str(track.remaining)},
        }
        for track in budget.tracks
    ]
    remaining = {name: _number(amount) for name, amount in budget.remaining.items()}
    return {
        "spent_fraction": budget.spent_fraction,
        "remaining_fraction": budget.remaining_fraction,
        "remaining": remaining,
        "lanes": tracks,
        "notes": [*budget.notes, *budget.fits],
    }


def allocation_facts(limit: Limit, budget_of: Callable[[Asker], Budget]) -> list[JsonObject]:
    """The same for every analyst or project that has an allocation; `budget_of(asker)` is their
    budget.

    For the curator: one of them alone sees only their own.
    """
    return [
        {"group": group, "name": name, "share": fraction, **budget_facts(budget_of(asker))}
        for group, name, fraction in members(limit)
        for asker in [Asker(analyst=name) if group == "analyst" else Asker(project=name)]
    ]


def members(limit: Limit) -> Iterator[tuple[str, str, float]]:
    """Everybody with an allocation: the group, the name and the fraction of the limit."""
    allocated = allocated_limit(limit)
    for group, people in () if allocated is None else allocated.allocations:
        yield from ((group, name, float(fraction)) for name, fraction in people)


def _number(amount: Amount) -> float | None:
    return None if amount == math.inf else float(amount)
