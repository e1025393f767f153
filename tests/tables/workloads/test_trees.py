# SPDX-License-Identifier: Apache-2.0
"""Strategies for trees: optimal where the tree is regular, exact in whole numbers, and never over budget on any path."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from discreet.tables.workloads.strategies import gram_of, optimal_strategy
from discreet.tables.workloads.trees import Tree, binary_tree, plan_intervals, plan_tree


def regular(*fan_outs: int) -> Tree:
    return Tree.of_paths(list(itertools.product(*map(range, fan_outs))))


def irregular(seed: int) -> Tree:
    """A tree of three levels with one to nine children, the same for the same seed."""

    def count(*where: int) -> int:
        return 1 + (seed * 7919 + sum((at + 3) * 104729**place for place, at in enumerate(where))) % 9

    return Tree.of_paths(
        [(a, b, c) for a in range(count()) for b in range(count(a)) for c in range(count(a, b))]
    )


def nodes_of(tree: Tree) -> np.ndarray:
    """The leaves of each node, one node in each row."""
    found = []
    for firsts in tree.first_leaves:
        of_leaf = np.searchsorted(firsts, np.arange(tree.leaves), side="right") - 1
        found.append(np.equal.outer(np.arange(len(firsts)), of_leaf).astype(float))
    return np.concatenate(found)


def matrix_of(plan) -> np.ndarray:
    return plan.measure(np.eye(plan.tree.leaves, dtype=np.int64))


def total_variance(plan, gram: np.ndarray) -> float:
    matrix = matrix_of(plan).astype(float)
    return float(np.trace(gram @ np.linalg.inv(matrix.T @ matrix))) * plan.squared_length


@pytest.mark.parametrize("fan_outs", [(8, 6), (4, 4, 4), (2, 3, 2, 2), (5,)])
@pytest.mark.parametrize("weights", ["nodes", "levels"])
def test_a_regular_tree_is_planned_optimally(fan_outs, weights):
    tree, nodes = regular(*fan_outs), nodes_of(regular(*fan_outs))
    per_level = [1.0 if weights == "nodes" else 1 / size for size in tree.sizes]
    scale = np.concatenate(
        [np.full(size, weight) for size, weight in zip(tree.sizes, per_level, strict=True)]
    )
    gram = nodes.T @ (scale[:, None] * nodes)
    assert total_variance(plan_tree(tree, per_level), gram) <= optimal_strategy(gram).lower_bound * 1.0005


@pytest.mark.parametrize("seed", range(12))
def test_an_irregular_tree_is_planned_well(seed):
    tree = irregular(seed)
    nodes = nodes_of(tree)
    ratio = total_variance(plan_tree(tree, [1] * len(tree.sizes)), nodes.T @ nodes)
    best = optimal_strategy(nodes.T @ nodes).lower_bound
    assert best * 0.999 <= ratio <= 1.17 * best


@pytest.mark.parametrize("seed", range(60))
def test_no_path_costs_more_than_stated_and_one_costs_that(seed):
    plan = plan_tree(irregular(seed), [1, 1, 2, 1])
    products = matrix_of(plan).astype(object).T @ matrix_of(plan).astype(object)
    lengths = [int(products[at, at]) for at in range(plan.tree.leaves)]
    assert plan.squared_lengths() == lengths
    assert plan.squared_length == max(lengths)
    assert plan.least_product() == int(products.min())


@pytest.mark.parametrize(
    "tree", [regular(3, 2), irregular(3), irregular(5), binary_tree(11), regular(1, 4), regular(1, 1)]
)
def test_estimates_are_those_of_least_squares(tree):
    plan, nodes = plan_tree(tree, [1] * len(tree.sizes)), nodes_of(tree)
    matrix = matrix_of(plan).astype(float)
    measured = np.cos(np.arange(2 * len(matrix)) * 1.3).reshape(-1, 2)
    assert np.allclose(plan.estimate(measured), np.linalg.pinv(matrix) @ measured, atol=1e-12)
    covariance = nodes @ np.linalg.inv(matrix.T @ matrix) @ nodes.T
    assert np.allclose(covariance.diagonal(), np.concatenate(plan.node_variances()))
    coefficients = plan.coefficients(nodes.T)
    assert np.allclose(coefficients.T @ coefficients, covariance)


def test_children_add_up_to_their_parent():
    tree = irregular(4)
    estimates = plan_tree(tree, [1] * 4).estimate(np.sin(np.arange(sum(tree.sizes)) * 2.1))
    for level, parents in enumerate(tree.parents):
        below, above = tree.totals(estimates, level + 1), tree.totals(estimates, level)
        assert np.allclose(np.bincount(parents, below), above)


#: Errors per question of the best weighted binary tree, by dense algebra over its 2n - 1 nodes and numerical optimisation of weights.
BINARY = {(16, "prefixes"): 1.847, (16, "ranges"): 1.890, (64, "prefixes"): 2.405, (64, "ranges"): 2.638}


@pytest.mark.parametrize(("leaves", "kind"), list(BINARY))
def test_the_best_binary_tree(leaves, kind):
    found = total_variance(plan_intervals(leaves, [(kind, 1.0)]), gram_of({kind: 1.0}, leaves))
    assert found**0.5 == pytest.approx(BINARY[leaves, kind], abs=1e-3)


@pytest.mark.parametrize("leaves", [1, 2, 3, 100, 1500])
def test_a_binary_tree_has_any_number_of_leaves(leaves):
    plan = plan_intervals(leaves, [("ranges", 1.0), ("cells", 1.0), ("total", 1.0), ("prefixes", 1.0)])
    values = np.arange(leaves) % 7
    assert np.allclose(plan.estimate(plan.measure(values).astype(float)), values)


def test_a_level_without_weight_still_has_finite_noise():
    plan = plan_tree(regular(3, 2), [0, 0, 1])
    assert all(np.isfinite(level).all() for level in plan.node_variances())
    assert plan_tree(regular(3, 2), [1, 0, 0]).total > 0
