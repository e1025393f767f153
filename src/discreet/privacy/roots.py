# SPDX-License-Identifier: Apache-2.0
"""Where a falling profile reaches a given δ, on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable

#: Closed forms are evaluated in floating point; their results are widened by this much.
CLOSE = 2e-12


def root(log_profile: Callable[[float], float], log_delta: float, highest: float | None) -> float:
    """The ε at which a falling profile reaches log δ, rounded up."""
    if log_profile(0.0) <= log_delta:
        return 0.0
    low, high = 0.0, highest if highest is not None else 1.0
    while highest is None and log_profile(high) > log_delta:
        low, high = high, 2 * high
        if high > 1e16:
            return math.inf
    over, under = log_profile(low) - log_delta, log_profile(high) - log_delta
    for turn in range(200):
        # a chord where both ends are finite, halving now and then so that neither end can get stuck
        finite = math.isfinite(under) and math.isfinite(over) and turn % 3 < 2
        middle = low + (high - low) * over / (over - under) if finite else (low + high) / 2
        middle = middle if low < middle < high else (low + high) / 2
        if not low < middle < high or high - low <= 1e-14 * high:
            break
        value = log_profile(middle) - log_delta
        if value > 0:
            low, over = middle, value
        else:
            high, under = middle, value
    return high * (1 + CLOSE)
