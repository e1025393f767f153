# SPDX-License-Identifier: Apache-2.0
"""Which records are in a batch: drawn in secret, afresh for every step, from the library's
cryptographic source.

    draw(plan, 60_000)          # the indices of the records of one batch, in ascending order

**Guarantee.** "poisson": each index is drawn independently, with a probability that is at most
`plan.rate` and below it by 2**-64 at most. "fixed": every set of `plan.batch` indices is equally
likely, exactly. "full": all of them. "allocated": at the beginning of an epoch every index draws
one of its steps (`Allocation`), exactly uniformly and independently.

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

from discreet.errors import RefusedTraining
from discreet.learn.torch.plan import TrainingPlan
from discreet.noise.integer import uniform
from discreet.noise.source import current

__all__ = ["Allocation", "Indices", "draw"]

Indices = npt.NDArray[np.int64]


def draw(plan: TrainingPlan, records: int) -> Indices:
    """The indices of one batch among `records` records."""
    if plan.sampling == "full" or plan.rate == 1.0:
        return np.arange(records)
    if plan.sampling == "fixed":
        return _draw_fixed(records, plan.batch)
    threshold = np.uint64(math.floor(Fraction(plan.rate) * 2**64))
    return np.flatnonzero(current().words(records) < threshold)


class Allocation:
    """The step of each record in the present epoch, drawn afresh for every epoch.

    A batch that was drawn and left is not drawn again, so that no record has two steps in an epoch;
    `begun` counts the epochs that are paid for.
    """

    def __init__(self, plan: TrainingPlan, records: int) -> None:
        self._plan, self._records = plan, records
        self._steps: Indices = np.empty(0, np.int64)
        self._turn = 0
        self.begun = 0

    def draw(self) -> Indices:
        """The indices of the next batch."""
        if self._turn % self._plan.per_epoch == 0:
            if self.begun == self._plan.rounds:
                raise _no_epoch_left_error()
            self._steps, self.begun = uniform(self._plan.per_epoch, self._records), self.begun + 1
        chosen = np.flatnonzero(self._steps == self._turn % self._plan.per_epoch)
        self._turn += 1
        return chosen


def _no_epoch_left_error() -> RefusedTraining:
    return RefusedTraining(
        "DP913",
        "batches were drawn and left without a step, so that another epoch would have to begin.",
        why="a record has one step in an epoch, and an epoch that was not planned is not paid for.",
        fix="private(…, resume=run.state_dict())   plans the remaining steps anew",
        spent="what the steps before it cost",
    )


def _draw_fixed(records: int, count: int) -> Indices:
    """A set of that size. If it has more than half of the records, those that are left out are
    drawn.
    """
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
