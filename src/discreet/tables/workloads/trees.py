# SPDX-License-Identifier: Apache-2.0
"""Strategies for the nodes of a tree: totals of regions, of their districts, of their towns.

    tree = Tree.of_paths([("North", "A"), ("North", "B"), ("South", "C")])
    plan = plan_tree(tree, weights=[1, 1, 1])

Each inner node measures what its children have beyond an equal part of their sum; the root measures
the total. Subtrees below different children concern different rows, so each of them has all of what
is left of the budget on its path.

**Guarantee.** `TreePlan.squared_length` is at least the squared length of one row in what is
measured, a whole number. The estimates are those of least squares, and agree with each other: the
children of a node add up to it.

Why the shares are best: with V_p = c_p Σ of the loads of the children, the least loss below p with
the budget β is K_p / β, where K_p = (√(c_p V_p) + √(Σ K_c))² by induction over the children, and
p's own share is √(c_p V_p) of that root. It is optimal among all strategies if the tree is regular,
and 1 to 8 % worse than the optimum otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.tables.workloads.residuals import Floats

__all__ = ["Tree", "TreePlan", "binary_tree", "plan_intervals", "plan_tree"]

Integers = npt.NDArray[np.int64]
#: The least multiplier of a node that varies. Rounding it to a whole number changes the noise by less than one percent.
_LEAST_MULTIPLIER = 64
#: The least share of the total, so that it has a multiplier.
_LEAST_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree whose leaves all have the same depth.

    `parents[l]` has, for each node of level l + 1, the number of its parent in level l. Level 0 is
    the root. The children of a node stand next to each other.
    """

    parents: tuple[Integers, ...]

    @classmethod
    def of_paths(cls, paths: Sequence[Sequence[object]]) -> Tree:
        """The tree of some paths to its leaves; paths with a common beginning stand next to each
        other.
        """
        depth = len(paths[0])
        levels = [list(dict.fromkeys(tuple(path[:level]) for path in paths)) for level in range(depth + 1)]
        places = [{path: at for at, path in enumerate(level)} for level in levels]
        return cls(
            tuple(
                np.array([places[level][path[:-1]] for path in levels[level + 1]], dtype=np.int64)
                for level in range(depth)
            )
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level."""
        return (1, *(len(level) for level in self.parents))

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return self.sizes[-1]

    @cached_property
    def fan_outs(self) -> tuple[Integers, ...]:
        """The number of children of each node, for all levels but the last."""
        return tuple(
            np.bincount(parents, minlength=size)
            for parents, size in zip(self.parents, self.sizes, strict=False)
        )

    @cached_property
    def first_leaves(self) -> tuple[Integers, ...]:
        """The number of the first leaf below each node, level by level."""
        firsts = [np.arange(self.leaves)]
        for counts in reversed(self.fan_outs):
            firsts.insert(0, firsts[0][_starts(counts)])
        return tuple(firsts)

    def totals(self, leaves: Any, level: int) -> Any:
        """The totals of the nodes of a level; the leaves stand along the first axis."""
        return np.add.reduceat(leaves, self.first_leaves[level], axis=0)

    def sums(self, children: Any, level: int) -> Any:
        """The sums over the children of each node of a level, along the first axis."""
        return np.add.reduceat(children, _starts(self.fan_outs[level]), axis=0)

    def means(self, children: Floats, level: int) -> Floats:
        """The means over the children of each node of a level, along the first axis."""
        found: Floats = self.sums(children, level) / _along(self.fan_outs[level], children)
        return found


def binary_tree(leaves: int) -> Tree:
    """A binary tree above ordered leaves; the last node of a level may have a single child."""
    sizes = [leaves]
    while sizes[0] > 1:
        sizes.insert(0, (sizes[0] + 1) // 2)
    return Tree(tuple(np.arange(size) // 2 for size in sizes[1:]))


@dataclass(frozen=True, eq=False)
class TreePlan:
    """What is measured, in whole numbers: `total` times the sum of all leaves, and `multipliers`
    times the residual of each node.

    The residual of a node with m children is, for each child, m times its total less the total of
    the node.
    """

    tree: Tree
    total: int
    multipliers: tuple[Integers, ...]

    @cached_property
    def squared_length(self) -> int:
        """The greatest squared length of one row in what is measured."""
        return max(self.squared_lengths())

    def squared_lengths(self) -> list[int]:
        """The squared length of one row of each leaf, exactly."""
        lengths = [self.total**2]
        for parents, squares in zip(self.tree.parents, self.own_squares(), strict=True):
            lengths = [lengths[parent] + squares[parent] for parent in parents.tolist()]
        return lengths

    def own_squares(self) -> list[list[int]]:
        """f² m (m - 1) of each node, level by level."""
        return [
            [factor**2 * count * (count - 1) for factor, count in zip(factors, counts, strict=True)]
            for factors, counts in self._multipliers_and_fan_outs()
        ]

    def least_product(self) -> int:
        """The least product of what two rows add to what is measured; that of one row with itself
        is not below it.
        """
        lengths, least = [self.total**2], self.squared_length
        levels = zip(self.tree.parents, self.own_squares(), self._multipliers_and_fan_outs(), strict=True)
        for parents, squares, (factors, counts) in levels:
            # Below two different children of a node, the product is that of the path to it, less f² m.
            apart = [
                above - factor**2 * count
                for above, factor, count in zip(lengths, factors, counts, strict=True)
                if count > 1
            ]
            least = min([least, *apart])
            lengths = [lengths[parent] + squares[parent] for parent in parents.tolist()]
        return min(least, *lengths)

    def _multipliers_and_fan_outs(self) -> list[tuple[list[int], list[int]]]:
        pairs = zip(self.multipliers, self.tree.fan_outs, strict=True)
        return [(factors.tolist(), counts.tolist()) for factors, counts in pairs]

    # --- measuring and reading -------------------------------------------------------------------------

    def measure(self, leaves: Any) -> Any:
        """Everything that is measured, of leaves along the first axis: whole numbers stay whole."""
        tree = self.tree
        found = [self.total * tree.totals(leaves, 0)]
        for level, (factors, counts) in enumerate(zip(self.multipliers, tree.fan_outs, strict=True)):
            parents = tree.parents[level]
            below, above = tree.totals(leaves, level + 1), tree.totals(leaves, level)[parents]
            found.append(_along(factors[parents], below) * (_along(counts[parents], below) * below - above))
        return np.concatenate(found)

    def estimate(self, measured: Floats) -> Floats:
        """The least-squares estimates of the leaves."""
        tree = self.tree
        estimates: Floats = measured[:1] / self.total
        start = 1
        for level, (factors, counts) in enumerate(zip(self.multipliers, tree.fan_outs, strict=True)):
            parents = tree.parents[level]
            part = measured[start : start + len(parents)]
            start += len(parents)
            residuals = part / _along((factors * counts)[parents], part)
            residuals = residuals - tree.means(residuals, level)[parents]
            estimates = (estimates / _along(counts, estimates))[parents] + residuals
        return estimates

    def coefficients(self, questions: Floats) -> Floats:
        """The coefficients of what is measured in the estimates of some questions, each a column of
        weights of the leaves.
        """
        tree = self.tree
        spreads = [questions]
        for level in range(len(tree.parents) - 1, -1, -1):
            spreads.insert(0, tree.means(spreads[0], level))
        found = [spreads[0] / self.total]
        for level, (factors, counts) in enumerate(zip(self.multipliers, tree.fan_outs, strict=True)):
            parents = tree.parents[level]
            inner = spreads[level + 1] - spreads[level][parents]
            found.append(inner / _along((factors * counts)[parents], inner))
        return np.concatenate(found)

    def node_variances(self) -> tuple[Floats, ...]:
        """The variance of the estimate of each node, level by level, for noise of variance one."""
        found: list[Floats] = [np.array([1 / self.total**2])]
        for parents, counts, factors in zip(
            self.tree.parents, self.tree.fan_outs, self.multipliers, strict=True
        ):
            residual = (1 - 1 / counts) / (factors * counts.astype(float)) ** 2
            found.append((found[-1] / counts.astype(float) ** 2 + residual)[parents])
        return tuple(found)


def plan_tree(tree: Tree, weights: Sequence[float]) -> TreePlan:
    """The best multipliers for the sum of the variances of all nodes, weighted level by level."""
    loads = [np.full(size, float(weight)) for size, weight in zip(tree.sizes, weights, strict=True)]
    own: list[Floats] = []
    losses: list[Floats] = [np.zeros(tree.leaves)]
    for level in range(len(tree.parents) - 1, -1, -1):
        counts = tree.fan_outs[level].astype(float)
        of_children = tree.sums(loads[level + 1], level)
        loads[level] += of_children / counts**2
        # √(c V) with V = c Σ loads, and the root of the least losses below each child together.
        own.insert(0, (1 - 1 / counts) * np.sqrt(of_children))
        losses.insert(0, (own[0] + np.sqrt(tree.sums(losses[0], level))) ** 2)
    root, below = float(np.sqrt(loads[0][0])), float(np.sqrt(losses[0][0]))
    share = max(root / (root + below) if root else 0.0, _LEAST_SHARE)
    left, precisions = np.array([1 - share]), [np.array([share])]
    for parents, part, loss in zip(tree.parents, own, losses, strict=False):
        kept = np.divide(part, np.sqrt(loss), out=np.zeros_like(part), where=loss > 0)
        precisions.append(left * kept)
        left = (left * (1 - kept))[parents]
    return _with_whole_multipliers(tree, precisions)


def plan_intervals(leaves: int, kinds: Sequence[tuple[str, float]]) -> TreePlan:
    """The best binary tree above ordered leaves for prefixes, ranges, cells or the total, each kind
    with its weight.
    """
    tree = binary_tree(leaves)
    blocks = [-(-leaves // size) for size in tree.sizes]
    energies = [sum(weight * _energy(kind, leaves, block) for kind, weight in kinds) for block in blocks]
    # The coefficient of a block is a mean over its leaves, so its square is one part in s of the projection's.
    loads = [energies[0] / blocks[0]]
    loads += [
        max(fine - coarse, 0.0) / block
        for coarse, fine, block in zip(energies, energies[1:], blocks[1:], strict=False)
    ]
    contrasts = [1.0, *[0.5] * len(tree.parents)]
    roots = [(contrast * load) ** 0.5 for contrast, load in zip(contrasts, loads, strict=True)]
    shares = [max(root / sum(roots), _LEAST_SHARE) for root in roots]
    precisions = [np.full(size, share) for size, share in zip((1, *tree.sizes), shares, strict=False)]
    return _with_whole_multipliers(tree, precisions)


def _energy(kind: str, leaves: int, block: int) -> float:
    """tr(G B) over the number of questions, with B the projection on what is constant in blocks of
    so many leaves.
    """
    j = np.arange(leaves, dtype=float)
    first = j - j % block
    sizes = np.minimum(first + block, leaves) - first
    if kind == "total":
        return float(leaves)
    if kind == "cells":
        return float((1 / sizes).sum()) / leaves
    if kind == "prefixes":
        # Σ over i, k in a block of n - max(i, k).
        return float(((leaves - j) * (2 * (j - first) + 1) / sizes).sum()) / leaves
    inner = (j * (j + 1) - first * (first + 1)) + (j + 1)
    return float(((leaves - j) * inner / sizes).sum()) / (leaves * (leaves + 1) / 2)


def _with_whole_multipliers(tree: Tree, precisions: Sequence[Floats]) -> TreePlan:
    """Whole multipliers in proportion to 1 / (σ m), from the share c/σ² of the total and of each
    node.
    """
    wanted: list[Floats] = [np.sqrt(precisions[0])]
    for counts, precision in zip(tree.fan_outs, precisions[1:], strict=True):
        contrast = np.where(counts > 1, 1 - 1 / counts, 1.0)
        wanted.append(np.where(counts > 1, np.sqrt(precision / contrast) / counts, 0.0))
    least = min(float(level[level > 0].min()) for level in wanted if (level > 0).any())
    whole = [np.maximum(np.rint(level * (_LEAST_MULTIPLIER / least)), 1).astype(np.int64) for level in wanted]
    return TreePlan(tree, int(whole[0][0]), tuple(whole[1:]))


def _starts(counts: Integers) -> Integers:
    """Where the children of each node begin."""
    starts: Integers = np.cumsum(counts) - counts
    return starts


def _along(values: Any, like: Any) -> Any:
    """Values along the first axis of an array."""
    return values.reshape((-1,) + (1,) * (like.ndim - 1))
