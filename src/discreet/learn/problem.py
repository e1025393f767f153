# SPDX-License-Identifier: Apache-2.0
"""What a solver is given, and what it owes: its guarantee before it looks at the data, then a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.learn.budget import Budget
from discreet.learn.features import BITS, Box, blocks
from discreet.learn.losses import Loss
from discreet.privacy.guarantee import Guarantee

__all__ = ["Fit", "Problem", "Solver"]

Reals = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Problem:
    """Rows in a box, a column of targets for each score, which rows count, a loss, and what may be spent.

    `box`, `loss`, `budget` and the number of scores are public; `data`, `targets` and `keep` are not.
    """

    box: Box
    data: Any
    targets: Reals
    keep: Bools
    loss: Loss
    budget: Budget
    penalty: Reals  # p of a public penalty ½ Σ p_j w_j² on the weights on rows, beside the sum of losses
    progress: Callable[[int, int], None] | None = None
    inference: bool = False  # whether a part of the budget is for intervals; public
    clipped_targets: Bools | None = None  # which targets are not what they were, where they are numbers

    @property
    def scores(self) -> int:
        """How many scores a record gets: one, or one for each class."""
        return int(self.targets.shape[1])

    @property
    def known_count(self) -> int | None:
        """The number of rows where it is public: when records are replaced, and not when they come and go."""
        return len(self.keep) if self.budget.relation == "replace" else None

    def cells(self) -> Iterator[tuple[Reals, Reals]]:
        """Blocks of kept rows in whole steps of 2**-BITS, with their targets."""
        for part in blocks(self.data):
            kept = self.keep[part]
            yield self.box.cells(self.data[part], BITS)[kept], self.targets[part][kept]


@dataclass(frozen=True)
class Fit:
    """Weights on rows (one column for each score), and what else was released on the way."""

    weights: Reals
    count: float | None = None  # of rows, as far as it was released
    slope: float | None = None  # the greatest slope of a typical record, where gradients were clipped
    is_too_noisy: bool = False  # whether the released number of rows is no more than its own noise
    covariance: Reals | None = None  # of the weights, where they are normal about the true ones
    no_intervals: str | None = None  # why there is no covariance, where one was paid for
    notes: tuple[str, ...] = field(default=())  # sentences on released facts, for `explain`


class Solver(ABC):
    """One way of fitting a linear model privately."""

    name: str
    #: Whether a fit can come with the covariance of its weights.
    has_intervals: bool = False

    @abstractmethod
    def guarantee_for(self, problem: Problem) -> Guarantee:
        """What a fit reveals, from public parameters alone; a coded refusal where no theorem covers the problem."""

    @abstractmethod
    def fit(self, problem: Problem) -> Fit:
        """Draw the fit. It has been paid for."""

    @abstractmethod
    def story(self, problem: Problem) -> list[str]:
        """What it does, in plain sentences for `explain`."""
