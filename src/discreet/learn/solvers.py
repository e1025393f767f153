# SPDX-License-Identifier: Apache-2.0
"""What a solver is given, what it owes, and the solvers by name.

A solver states its guarantee before it reads the data, and then fits.

`auto` means `whitened`, whose matrix has a row and a column for each feature, or `gradient` where
that matrix would be too large: from 2,000 features on, or where a sparse table stays sparse. Public
facts decide: the number of features, how the table is stored, and whether its bounds keep zeros.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, TypeAlias

from scipy import sparse

from discreet import check
from discreet.learn.arrays import Bools, Reals, RowTable
from discreet.learn.budget import FitBudget
from discreet.learn.features import BITS, Box, blocks
from discreet.learn.losses import Loss
from discreet.privacy.guarantee import Guarantee

__all__ = [
    "AUTO",
    "CLASSIFIERS",
    "REGRESSORS",
    "WIDEST",
    "ClassifierSolver",
    "FittedWeights",
    "Problem",
    "RegressorSolver",
    "RobustSolver",
    "Solver",
    "solver_for",
]


@dataclass(frozen=True)
class Problem:
    """What is to be fitted: rows in a box, a column of targets for each score, which rows count, a
    loss and a budget.

    `box`, `loss`, `budget` and the number of scores are public; `data`, `targets` and `keep` are
    not.
    """

    box: Box
    data: RowTable
    targets: Reals
    keep: Bools
    loss: Loss
    budget: FitBudget
    #: p of a public penalty ½ Σ p_j w_j² on the weights on rows, beside the sum of losses.
    penalty: Reals
    progress: Callable[[int, int], None] | None = None
    #: Whether a part of the budget is for confidence intervals; public.
    inference: bool = False
    #: Which numeric targets were changed by clipping.
    clipped_targets: Bools | None = None

    @property
    def scores(self) -> int:
        """How many scores a record gets: one, or one for each class."""
        return int(self.targets.shape[1])

    @property
    def known_count(self) -> int | None:
        """The number of rows where it is public: when records are replaced, not when they are added
        or removed.
        """
        return len(self.keep) if self.budget.relation == "replace" else None

    def cells(self) -> Iterator[tuple[Reals, Reals]]:
        """Blocks of kept rows in whole steps of 2**-BITS, with their targets."""
        for block in blocks(self.data):
            keep = self.keep[block]
            yield self.box.cells(self.data[block], BITS)[keep], self.targets[block][keep]


@dataclass(frozen=True)
class FittedWeights:
    """Weights on rows (one column for each score), and what else was released on the way."""

    weights: Reals
    #: The number of rows, if it was released.
    count: float | None = None
    #: The greatest slope of a typical record, if gradients were clipped.
    slope: float | None = None
    #: Whether the released number of rows is no larger than its own noise.
    is_too_noisy: bool = False
    #: The covariance of the weights, if they are normal about the true ones.
    covariance: Reals | None = None
    #: Why there is no covariance, if one was paid for.
    no_intervals: str | None = None
    #: Sentences on released facts, for `explain`.
    notes: tuple[str, ...] = ()


class Solver(ABC):
    """One way of fitting a linear model privately."""

    name: str
    #: Whether a fit can come with the covariance of its weights.
    has_intervals: bool = False

    @abstractmethod
    def guarantee_for(self, problem: Problem) -> Guarantee:
        """What a fit reveals, from public parameters alone. A problem that no theorem covers is
        refused with a code.
        """

    @abstractmethod
    def fit(self, problem: Problem) -> FittedWeights:
        """Draw the fit. Its guarantee was charged before."""

    @abstractmethod
    def explain(self, problem: Problem) -> list[str]:
        """What the solver does, in plain sentences for `PrivateEstimator.explain`."""


AUTO = "auto"
#: With more features than this, a matrix of all their products takes too long and is mostly noise.
WIDEST = 2_000

_HOMES = {
    "whitened": "WhitenedDescent",
    "gradient": "GradientDescent",
    "objective": "ObjectivePerturbation",
    "output": "OutputPerturbation",
    "joint": "JointSolver",
    "adassp": "AdaSSP",
}
#: The names that each kind of estimator takes.
ClassifierSolver: TypeAlias = Literal["auto", "whitened", "gradient", "objective", "output"]
RegressorSolver: TypeAlias = Literal["auto", "whitened", "gradient", "joint", "adassp"]
RobustSolver: TypeAlias = Literal["auto", "whitened", "gradient", "output"]
CLASSIFIERS = ("whitened", "gradient", "objective", "output")
REGRESSORS = ("whitened", "gradient", "joint", "adassp")


def solver_for(name: str, allowed: Collection[str], matrix: RowTable, box: Box) -> Solver:
    """The solver of that name, if the estimator has it; the module docstring explains `auto`."""
    name = check.choice((AUTO, *allowed), solver=name)
    if name == AUTO:
        stays_sparse = sparse.issparse(matrix) and box.keeps_zeros
        name = "gradient" if box.width > WIDEST or stays_sparse else "whitened"
    solver: Solver = getattr(import_module(f"discreet.learn.{name}"), _HOMES[name])()
    return solver
