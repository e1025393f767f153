# SPDX-License-Identifier: Apache-2.0
"""Axes: keys with an order or a hierarchy, and the whole numbers that are measured along them.

    StrategyAxis    a dense matrix of whole numbers, for up to 1,024 values: close to the optimum
    TreeAxis        the residuals of a tree, for any number of values

Categories have no axis here: their residuals are in `residuals.py`. What is measured is the product
of the matrices of all axes and of the residuals, one block for each set of categories.

**Guarantee.** `squared_length` is at least the squared length of every column of the matrix, and
`least_product` is at most the product of any two columns. Both are whole numbers, computed from the
matrix that is measured, so rounding it loses accuracy and no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.tables.workloads import strategy_cache
from discreet.tables.workloads.residuals import Floats
from discreet.tables.workloads.strategies import (
    MOST_LEAVES,
    gram_of,
    optimal_strategy,
    queries_of,
    worst_case_strategy,
)
from discreet.tables.workloads.trees import Tree, TreePlan, plan_intervals, plan_tree

__all__ = ["Axis", "StrategyAxis", "TreeAxis", "interval_axis", "tree_axis"]

Integers = npt.NDArray[np.int64]
#: One of the strategy's matrix is so many whole steps; rounding to them changes the error by less than 0.02 %.
_STEPS = 1 << 12
#: Up to that many ordered values the worst case over all ranges is optimised: it handles n (n + 1) / 2 questions.
MOST_WORST_RANGES = 128


class Axis(Protocol):
    """What is measured along one key, or along the keys of a hierarchy."""

    @property
    def leaves(self) -> int:
        """The number of values."""

    @property
    def measured(self) -> int:
        """How many numbers are measured."""

    @property
    def squared_length(self) -> int:
        """At least the squared length of what one row adds along the axis."""

    @property
    def least_product(self) -> int:
        """At most the product of what two rows add along the axis."""

    def measure(self, leaves: Any) -> Any:
        """What is measured, of whole numbers with the values along the first axis."""

    def estimate(self, measured: Floats) -> Floats:
        """The least-squares estimates of the values."""

    def coefficients(self, questions: Floats) -> Floats:
        """The coefficients of what is measured in the estimates of questions, each a column of
        weights.
        """


@dataclass(frozen=True, eq=False)
class StrategyAxis:
    """A square matrix of whole numbers that is measured along an axis."""

    matrix: Integers

    @property
    def leaves(self) -> int:
        """The number of values."""
        return len(self.matrix)

    @property
    def measured(self) -> int:
        """As many numbers as values."""
        return len(self.matrix)

    @cached_property
    def _products(self) -> Integers:
        # The entries are at most 2^12 + 1 in absolute value, so the sums of at most 1,024 products fit.
        products: Integers = self.matrix.T @ self.matrix
        return products

    @property
    def squared_length(self) -> int:
        """The greatest squared length of a column."""
        return int(self._products.diagonal().max())

    @property
    def least_product(self) -> int:
        """The least product of two columns."""
        return int(self._products.min())

    @cached_property
    def _inverse(self) -> Floats:
        inverse: Floats = np.linalg.inv(self.matrix.astype(np.float64))
        return inverse

    def measure(self, leaves: Any) -> Any:
        """The matrix times the values."""
        return np.tensordot(self.matrix, leaves, axes=(1, 0))

    def estimate(self, measured: Floats) -> Floats:
        """The values: the matrix is square and regular."""
        estimates: Floats = np.tensordot(self._inverse, measured, axes=(1, 0))
        return estimates

    def coefficients(self, questions: Floats) -> Floats:
        """The rows of the inverse, weighted by the questions."""
        found: Floats = self._inverse.T @ questions
        return found


@dataclass(frozen=True, eq=False)
class TreeAxis:
    """The residuals of the nodes of a tree."""

    plan: TreePlan

    @property
    def leaves(self) -> int:
        """The number of values."""
        return self.plan.tree.leaves

    @property
    def measured(self) -> int:
        """One number for each node."""
        return sum(self.plan.tree.sizes)

    @property
    def squared_length(self) -> int:
        """The greatest squared length of a row."""
        return self.plan.squared_length

    @cached_property
    def least_product(self) -> int:
        """The least product of two rows."""
        return self.plan.least_product()

    def measure(self, leaves: Any) -> Any:
        """The total and the residuals of all nodes."""
        return self.plan.measure(leaves)

    def estimate(self, measured: Floats) -> Floats:
        """From the total downwards, an equal part and the residual for each child."""
        return self.plan.estimate(measured)

    def coefficients(self, questions: Floats) -> Floats:
        """The coefficients of the residuals."""
        return self.plan.coefficients(questions)


def interval_axis(leaves: int, weights: Sequence[tuple[str, float]], *, worst: bool = False) -> Axis:
    """The axis for prefixes, ranges, cells and the total of an ordered key; each kind counts by its
    weight.

    With `worst` the greatest variance of any question of the first kind is the least, where that
    can be computed.
    """
    if leaves > MOST_LEAVES:
        return TreeAxis(plan_intervals(leaves, tuple(weights)))
    return _interval_strategy(leaves, tuple(weights), worst=worst)


def tree_axis(tree: Tree, weights: Sequence[float]) -> Axis:
    """The axis for the nodes of a tree; each level counts by its weight, however many nodes it has."""
    per_node = [weight / size for weight, size in zip(weights, tree.sizes, strict=True)]
    if tree.leaves > MOST_LEAVES:
        return TreeAxis(plan_tree(tree, per_node))
    key = strategy_cache.key_of("tree", *(parents.tolist() for parents in tree.parents), per_node)
    return StrategyAxis(strategy_cache.recall(key, lambda: _tree_strategy(tree, per_node), tree.leaves))


def _tree_strategy(tree: Tree, weights: Sequence[float]) -> Integers:
    gram: Floats = np.zeros((tree.leaves, tree.leaves))
    for firsts, weight in zip(tree.first_leaves, weights, strict=True):
        nodes = np.searchsorted(firsts, np.arange(tree.leaves), side="right")
        gram += weight * np.equal.outer(nodes, nodes)
    return _whole(optimal_strategy(gram).matrix)


@lru_cache(maxsize=32)
def _interval_strategy(leaves: int, weights: tuple[tuple[str, float], ...], *, worst: bool) -> StrategyAxis:
    key = strategy_cache.key_of("intervals", leaves, [list(pair) for pair in weights], worst)

    def compute() -> Integers:
        first = weights[0][0]
        if worst and (first != "ranges" or leaves <= MOST_WORST_RANGES):
            return _whole(worst_case_strategy(queries_of(first, leaves)).matrix)
        return _whole(optimal_strategy(gram_of(dict(weights), leaves)).matrix)

    return StrategyAxis(strategy_cache.recall(key, compute, leaves))


def _whole(matrix: Floats) -> Integers:
    """The matrix in whole steps."""
    return np.rint(matrix * _STEPS).astype(np.int64)
