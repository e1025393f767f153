# SPDX-License-Identifier: Apache-2.0
"""Which records are in a batch: drawn in secret, afresh for every step, from the library's cryptographic source.

    draw(plan, 60_000)          # the indices of the records of one batch, in ascending order

**Guarantee.** "poisson": each index is drawn independently, with a probability that is at most
`plan.rate` and below it by 2**-64 at most. "fixed": every set of `plan.batch` indices is equally
likely, exactly. "full": all of them.

Why it holds: a record is in if a fresh word of 64 bits is below floor(rate·2**64); a lesser rate
reveals no more. A set that is filled by uniform draws, repeats left out, treats all indices alike
until it is full, so all sets of that size are equally likely.

What would break it: showing the batch. Its size is secret too, so a step never divides by it, and a
batch without records is a step like any other.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.learn.torch.plan import TrainingPlan
from discreet.noise.integer import uniform
from discreet.noise.source import current

__all__ = ["Indices", "draw"]

Indices = npt.NDArray[np.int64]


def draw(plan: TrainingPlan, records: int) -> Indices:
    """The indices of one batch among `records` records."""
    if plan.sampling == "full" or plan.rate == 1.0:
        return np.arange(records)
    if plan.sampling == "fixed":
        return _draw_fixed(records, plan.batch)
    threshold = np.uint64(math.floor(Fraction(plan.rate) * 2**64))
    return np.flatnonzero(current().words(records) < threshold)


def _draw_fixed(records: int, count: int) -> Indices:
    """A set of that size. If it has more than half of the records, those that are left out are drawn."""
    if 2 * count > records:
        is_chosen = np.ones(records, np.bool_)
        is_chosen[_draw_fixed(records, records - count)] = False
        return np.flatnonzero(is_chosen)
    is_chosen = np.zeros(records, np.bool_)
    missing = count
    while missing:
        is_chosen[uniform(records, missing)] = True
        missing = count - int(is_chosen.sum())
    return np.flatnonzero(is_chosen)
