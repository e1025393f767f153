# SPDX-License-Identifier: Apache-2.0
"""Batches as a loop sees them: one after the other, in micro-batches if they are too large for the
memory.

A batch is never made smaller than it was drawn: leaving records out would change the guarantee. A
batch without records is shown as one blank of weight zero, so that the loop runs and the step is
noise alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader

from discreet.errors import RefusedTraining
from discreet.learn.torch.banded import Cycle
from discreet.learn.torch.canaries import Canaries
from discreet.learn.torch.generators import secret_workers
from discreet.learn.torch.plan import TrainingPlan
from discreet.learn.torch.records import Records, refuse_mixing
from discreet.learn.torch.sampler import Allocation, Indices, draw

__all__ = ["Batch", "Batches", "DrawnBatches", "LoaderBatches"]

_NONE: Indices = np.empty(0, np.int64)


@dataclass(frozen=True)
class Batch:
    """A micro-batch: what the loop sees, how many rows that has, and whether they count."""

    data: Any
    rows: int
    first: bool = True
    last: bool = True
    blank: bool = False
    #: Indices from `population` on are canaries.
    indices: Indices = field(default_factory=lambda: _NONE)
    population: int = 0

    def without_records(self) -> Batch:
        """What remains of a batch that was released: its place in the loop."""
        return Batch(None, 0, self.first, self.last)


class Batches(Protocol):
    """Where batches come from."""

    def draw(self) -> Iterator[Batch]:
        """The micro-batches of the next step."""
        ...

    def rounds(self, steps: int) -> int:
        """How many rounds of the plan the first `steps` steps were."""
        ...


class DrawnBatches:
    """Batches that are drawn here, in secret."""

    def __init__(
        self,
        plan: TrainingPlan,
        records: Records,
        physical: int | None,
        canaries: Canaries | None,
        cycle: Cycle | None = None,
    ) -> None:
        self._plan, self._records, self._physical, self._canaries = plan, records, physical, canaries
        self._cycle = cycle
        canary_count = canaries.count if canaries is not None else 0
        is_allocated = plan.sampling == "allocated"
        self._allocation = Allocation(plan, len(records) + canary_count) if is_allocated else None

    def draw(self) -> Iterator[Batch]:
        population = len(self._records)
        canary_count = self._canaries.count if self._canaries is not None else 0
        if self._allocation is not None:
            indices = self._allocation.draw()
        else:
            indices = draw(self._plan, population + canary_count)
        if self._cycle is not None:
            indices = self._cycle.select(indices)
        if self._canaries is not None:
            indices = self._canaries.select_included(indices, population)
        size = self._physical or max(1, indices.size)
        starts = range(0, max(1, indices.size), size)
        for start in starts:
            part = indices[start : start + size]
            ends = {"first": start == 0, "last": start == starts[-1]}
            yield self._batch(part, population, **ends)

    def _batch(self, part: Indices, population: int, *, first: bool, last: bool) -> Batch:
        real = part[part < population]
        # One blank for each canary, and one if the batch is empty.
        blanks = max(1 - real.size, part.size - real.size)
        data = self._records.batch(real, blanks)
        return Batch(data, real.size + blanks, first, last, part.size == 0, part, population)

    def rounds(self, steps: int) -> int:
        return self._plan.rounds_of(steps) if self._allocation is None else self._allocation.begun


class LoaderBatches:
    """Batches of a loader. An epoch that was begun is paid for."""

    def __init__(self, plan: TrainingPlan, loader: DataLoader[Any]) -> None:
        self._plan, self._loader = plan, loader
        self._epoch: Iterator[Any] = iter(())
        self._begun = 0

    def draw(self) -> Iterator[Batch]:
        data = next(self._epoch, None)
        if data is None:
            if self._begun == self._plan.rounds:
                raise _short_loader_error()
            if not self._begun:
                self._try_collate()
            self._begun, self._epoch = self._begun + 1, secret_workers(self._loader)
            data = next(self._epoch)
        yield Batch(data, _rows(data))

    def _try_collate(self) -> None:
        """Try how the loader collates. Not with workers, because files that a data set opens belong
        to them.
        """
        records: Any = self._loader.dataset
        if not self._loader.num_workers and len(records) > 1:
            refuse_mixing(self._loader.collate_fn, [records[index] for index in range(min(3, len(records)))])

    def rounds(self, steps: int) -> int:
        return self._begun


def _rows(data: Any) -> int:
    """The length of the first tensor in a batch, whatever it is packed in."""
    if isinstance(data, Tensor) and data.dim():
        return int(data.shape[0])
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, tuple | list) else ()
    return next((rows for rows in map(_rows, parts) if rows), 0)


def _short_loader_error() -> RefusedTraining:
    return RefusedTraining(
        "DP913",
        "the loader gave fewer batches than its length says.",
        why="another epoch was not planned, and every epoch costs privacy.",
        fix="private(model, optimizer, loader.dataset, …)",
        spent="what the epochs before it cost",
    )
