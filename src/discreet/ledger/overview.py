# SPDX-License-Identifier: Apache-2.0
"""What is left, as plain JSON types: decimals for people, exact ratios beside them; for all together and by share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from discreet.ledger.left import Left
from discreet.ledger.limit import Limit
from discreet.ledger.shares import Shared
from discreet.ledger.window import Windowed

__all__ = ["budget", "shares"]


def budget(left: Left) -> dict[str, Any]:
    """One view of a limit; what has no end is null."""
    lanes = [
        {
            "name": lane.name,
            "total": _number(lane.total),
            "spent": _number(lane.spent),
            "left": _number(lane.left),
            "spent_fraction": lane.spent_fraction,
            "closed": lane.spent > lane.total,
            "exactly": {"total": str(lane.total), "spent": str(lane.spent), "left": str(lane.left)},
        }
        for lane in left.lanes
    ]
    remaining = {name: _number(amount) for name, amount in left.remaining.items()}
    return {
        "spent_fraction": left.spent_fraction,
        "remaining_fraction": left.remaining_fraction,
        "remaining": remaining,
        "lanes": lanes,
        "notes": [*left.notes, *left.fits],
    }


def shares(limit: Limit, left: Callable[..., Left]) -> list[dict[str, Any]]:
    """The same for every analyst or project that has a share; `left(analyst=…)` says what is left of it.

    For the curator: one of them alone sees only their own.
    """
    return [
        {"group": group, "name": name, "share": share, **budget(left(**{group: name}))}
        for group, name, share in members(limit)
    ]


def members(limit: Limit) -> Iterator[tuple[str, str, float]]:
    """Everybody with a share of a limit."""
    inner = limit.each if isinstance(limit, Windowed) else limit
    if isinstance(inner, Shared):
        for group, people in inner.shares:
            yield from ((group, name, float(share)) for name, share in people)


def _number(amount: Any) -> float | None:
    return None if amount == math.inf else float(amount)
