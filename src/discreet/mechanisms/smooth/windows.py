# SPDX-License-Identifier: Apache-2.0
"""The widest discounted window of sorted numbers: what smooth sensitivity is for order statistics
and trimmed means.

    widest_window(y, first, last, t)  # max of exp(-t j) (y[b] - y[a]) over a <= first, b >= last, j = b - a - width >= 0

**Guarantee.** The answer lies in [W, W (1 + 2**-31)], where W is the greater of that maximum and of
2**-200 (y[-1] - y[0]).

Why it holds: the best b does not fall as a grows, so the rows are searched by halves, in O(n log
n); and neither rounding nor a choice between nearly equal candidates loses more than a share of
2**-33 (smooth.proof.md, §4). What would break it: an `exp` that is wrong by more than a share of
2**-44; numbers that are not sorted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.mechanisms.sensitivity import FLOOR, UP

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

_NATS = 139.0  # exp(-139) < 2**-200: windows that are discounted more are below the floor


def widest_window(y: Floats, first: int, last: int, t: float) -> float:
    """See above; y[0] and y[-1] are the bounds of the range, and first <= last are places in y."""
    reach = math.ceil(_NATS / t) + 1
    left, right, width = max(0, first - reach), min(y.size - 1, last + reach), last - first + 1
    found = [FLOOR * float(y[-1] - y[0])]
    if last < right:
        found.append(float(_discounted_widths(y, first, np.arange(last + 1, right + 1), width, t).max()))
    if left < first:
        found.append(_over_rows(y, np.arange(left, first), (last, right), width, t))
    return max(found) * UP


def _discounted_widths(y: Floats, a: Any, b: Places, width: int, t: float) -> Floats:
    values: Floats = np.exp(-t * (b - a - width)) * (y[b] - y[a])
    return values


def _over_rows(y: Floats, rows: Places, columns: tuple[int, int], width: int, t: float) -> float:
    """The maximum over all rows, each searched only between the best columns of the rows around it."""
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
        column[owner] = places[hits]  # written from the last to the first, so the first one stays
        best, stride = max(best, float(tops.max())), half
    return best
