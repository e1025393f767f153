# SPDX-License-Identifier: Apache-2.0
"""What is left, as plain JSON types: decimals for people, exact ratios beside them; for all together and by share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from discreet.ledger.allocations import AllocatedLimit
from discreet.ledger.budget import Budget
from discreet.ledger.limit import Limit
from discreet.ledger.window import WindowedLimit

__all__ = ["allocation_facts", "budget_facts"]


def budget_facts(left: Budget) -> dict[str, Any]:
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
        for track in left.tracks
    ]
    remaining = {name: _number(amount) for name, amount in left.remaining.items()}
    return {
        "spent_fraction": left.spent_fraction,
        "remaining_fraction": left.remaining_fraction,
        "remaining": remaining,
        "lanes": tracks,
        "notes": [*left.notes, *left.fits],
    }


def allocation_facts(limit: Limit, left: Callable[..., Budget]) -> list[dict[str, Any]]:
    """The same for every analyst or project that has a share; `left(analyst=…)` says what is left of it.

    For the curator: one of them alone sees only their own.
    """
    return [
        {"group": group, "name": name, "share": share, **budget_facts(left(**{group: name}))}
        for group, name, share in members(limit)
    ]


def members(limit: Limit) -> Iterator[tuple[str, str, float]]:
    """Everybody with a share of a limit."""
    inner = limit.each if isinstance(limit, WindowedLimit) else limit
    if isinstance(inner, AllocatedLimit):
        for group, people in inner.allocations:
            yield from ((group, name, float(share)) for name, share in people)


def _number(amount: Any) -> float | None:
    return None if amount == math.inf else float(amount)
