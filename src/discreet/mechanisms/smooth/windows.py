# SPDX-License-Identifier: Apache-2.0
"""The widest discounted window of sorted numbers: the smooth sensitivity of order statistics.

    widest_window(y, first, last, t)

is the maximum of exp(-t j) (y[b] - y[a]) over a <= first and b >= last with j = b - a - width >= 0.
It is also the smooth sensitivity of a trimmed mean, times the number of records in the mean.

**Guarantee.** The answer lies in [W, W (1 + 2**-31)], where W is the greater of that maximum and of
2**-200 (y[-1] - y[0]).

Why it holds: the best b does not decrease as a grows, so the rows are searched by bisection, in
O(n log n). Neither rounding nor a choice between nearly equal candidates loses more than a relative
2**-33 (smooth.proof.md, §4). What would break it: an `exp` with a relative error above 2**-44;
numbers that are not sorted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.mechanisms.sensitivity import FLOOR, UP

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

_NATS = 139.0  # exp(-139) < 2**-200: windows with a greater discount are below the floor


def widest_window(y: Floats, first: int, last: int, t: float) -> float:
    """See above; y[0] and y[-1] are the bounds of the range, and first <= last are indices of y."""
    reach = math.ceil(_NATS / t) + 1
    left, right, width = max(0, first - reach), min(y.size - 1, last + reach), last - first + 1
    candidates = [FLOOR * float(y[-1] - y[0])]
    if last < right:
        ends = np.arange(last + 1, right + 1)
        candidates.append(float(_discounted_widths(y, first, ends, width, t).max()))
    if left < first:
        candidates.append(_over_rows(y, np.arange(left, first), (last, right), width, t))
    return max(candidates) * UP


def _discounted_widths(y: Floats, a: Any, b: Places, width: int, t: float) -> Floats:
    values: Floats = np.exp(-t * (b - a - width)) * (y[b] - y[a])
    return values


def _over_rows(y: Floats, rows: Places, columns: tuple[int, int], width: int, t: float) -> float:
    """The maximum over all rows; each is searched between the best columns of the rows around it."""
    count, best = rows.size, 0.0
    column = np.empty(count + 2, np.intp)
    column[0], column[-1] = columns
    stride = 1 << count.bit_length()
    while stride > 1:
        half = stride // 2
        middle = np.arange(half, count + 1, stride)
        low, high = column[middle - half], column[np.minimum(middle + half, count + 1)]
        lengths = high - low + 1
        starts = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(low - starts, lengths)
        values = _discounted_widths(y, np.repeat(rows[middle - 1], lengths), places, width, t)
        tops = np.maximum.reduceat(values, starts)
        hits = np.flatnonzero(values == np.repeat(tops, lengths))[::-1]
        owner = np.repeat(middle, lengths)[hits]
        # Written from the last to the first, so the first maximum stays.
        column[owner] = places[hits]
        best, stride = max(best, float(tops.max())), half
    return best
