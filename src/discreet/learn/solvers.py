# SPDX-License-Identifier: Apache-2.0
"""What a solver is given, and what it owes: its guarantee before it looks at the data, then a fit.

The solvers by name, and the one that is taken where none is named.

`auto` is `whitened`, whose matrix has a row and a column for each feature, and `gradient` where that would be too large: from
2,000 features on, or where a sparse table stays sparse. It is decided by public facts: the number of features, how the table is
stored, and whether its bounds keep zeros.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet import check
from discreet.learn.budget import FitBudget
from discreet.learn.features import BITS, Box, blocks
from discreet.learn.losses import Loss
from discreet.privacy.guarantee import Guarantee

__all__ = ["AUTO", "CLASSIFIERS", "REGRESSORS", "WIDEST", "FittedWeights", "Problem", "Solver", "solver_for"]


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
    budget: FitBudget
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
class FittedWeights:
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
    def fit(self, problem: Problem) -> FittedWeights:
        """Draw the fit. It has been paid for."""

    @abstractmethod
    def explain(self, problem: Problem) -> list[str]:
        """What it does, in plain sentences for `explain`."""


AUTO = "auto"
#: Features beyond which a matrix of all their products takes too long and is mostly noise.
WIDEST = 2_000

_HOMES = {
    "whitened": "WhitenedDescent",
    "gradient": "GradientDescent",
    "objective": "ObjectivePerturbation",
    "output": "OutputPerturbation",
    "joint": "JointSolver",
    "adassp": "AdaSSP",
}
CLASSIFIERS = ("whitened", "gradient", "objective", "output")
REGRESSORS = ("whitened", "gradient", "joint", "adassp")


def solver_for(name: str, allowed: Collection[str], matrix: Any, box: Box) -> Solver:
    """The solver of that name, if the estimator has it; see the module docstring for `auto`."""
    found = check.choice((AUTO, *allowed), solver=name)
    if found == AUTO:
        stays_sparse = sparse.issparse(matrix) and box.keeps_zeros
        found = "gradient" if box.width > WIDEST or stays_sparse else "whitened"
    made: Solver = getattr(import_module(f"discreet.learn.{found}"), _HOMES[found])()
    return made
