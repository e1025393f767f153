# SPDX-License-Identifier: Apache-2.0
"""The graphical model: its tables are those of the joint distribution, its fit has the largest entropy, its rows follow it."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from discreet.tables.synthetic.mixture import NoisyMarginal
from discreet.tables.synthetic.sample import restrict_rows, sample_rows
from discreet.tables.synthetic.stream import SeededStream
from discreet.tables.synthetic.tree import JunctionTree, TreeModel, fit_tree, tree_cells

SIZES = (2, 3, 2, 4, 2)
GRAPHS = [
    [(0,), (1,), (2,), (3,), (4,)],
    [(0, 1), (1, 2), (2, 3), (3, 4)],
    [(0, 1), (1, 2), (2, 0), (3, 4)],
    [(0, 1), (1, 2), (2, 3), (3, 0), (4,)],
    [(0, 1, 2), (2, 3), (1, 4), (3, 4)],
    [(0, 4), (2,), (1, 3)],
]


def model_of(tables, seed=1):
    noise = SeededStream(seed, "potentials")
    tables = [tuple(sorted(keys)) for keys in tables]
    return TreeModel(SIZES, {keys: noise.normal(*(SIZES[key] for key in keys)) for keys in tables})


def joint_of(model):
    """The distribution of all columns, cell by cell."""
    logs = np.zeros(model.sizes)
    for cell in np.ndindex(*model.sizes):
        logs[cell] = sum(
            potential[tuple(cell[key] for key in keys)] for keys, potential in model.potentials.items()
        )
    powers = np.exp(logs)
    return powers / powers.sum(), math.log(powers.sum())


def margin(joint, keys):
    return joint.sum(axis=tuple(key for key in range(joint.ndim) if key not in keys))


@pytest.mark.parametrize("tables", GRAPHS, ids=str)
def test_tables_are_those_of_the_joint_distribution(tables):
    model = model_of([*tables, *((key,) for key in range(5) if (key,) not in tables)])
    joint, total = joint_of(model)
    assert model.log_total == pytest.approx(total)
    for place, clique in enumerate(model.tree.cliques):
        assert np.allclose(model.clique_tables[place], margin(joint, clique))
    known = [keys for keys in combinations(range(5), 2) if model.table(keys) is not None]
    assert set(known) >= {tuple(sorted(keys)) for keys in tables if len(keys) == 2}
    for keys in known:
        assert np.allclose(model.table(keys), margin(joint, keys))


@pytest.mark.parametrize("tables", GRAPHS, ids=str)
def test_the_tree_is_a_junction_tree(tables):
    tables = [tuple(sorted(keys)) for keys in tables]
    tree = JunctionTree.of(SIZES, tables)
    assert all(any(set(keys) <= set(clique) for clique in tree.cliques) for keys in tables)
    assert {key for clique in tree.cliques for key in clique} == set(range(5))
    # Running intersection: what a clique shares with all before it lies in its parent.
    before: set[int] = set()
    for clique, parent in zip(tree.cliques, tree.parents, strict=True):
        if before:
            assert set(clique) & before <= set(tree.cliques[parent])
        before |= set(clique)
    assert tree_cells(SIZES, tables) == sum(
        math.prod(SIZES[key] for key in clique) for clique in tree.cliques
    )


def test_the_fit_has_the_largest_entropy():
    """Exact pairs of a chain: the distribution of largest entropy is p(ab) p(bc) / p(b), in closed form."""
    powers = np.exp(SeededStream(4, "law").normal(2, 3, 4))
    joint = powers / powers.sum()
    measured = [NoisyMarginal(keys, 1e5 * margin(joint, keys), 1.0) for keys in ((0, 1), (1, 2))]
    model = fit_tree((2, 3, 4), 1e5, measured, steps=500)
    found, _ = joint_of(model)
    first, second, middle = margin(joint, (0, 1)), margin(joint, (1, 2)), margin(joint, (1,))
    expected = first[:, :, None] * second[None] / middle[None, :, None]
    assert np.abs(found - expected).sum() < 1e-3
    assert model.misfit < 1


def test_a_table_that_was_measured_twice_counts_by_its_noise():
    measured = [
        NoisyMarginal((0,), np.array([600.0, 400.0]), 1.0),
        NoisyMarginal((0,), np.array([500.0, 500.0]), 9.0),
    ]
    model = fit_tree((2,), 1_000.0, measured, steps=200)
    assert model.table((0,))[0] == pytest.approx(0.59, abs=1e-3)


def test_absent_codes_and_warm_starts():
    measured = [NoisyMarginal((0, 1), np.array([[50.0, 30.0, 5.0], [40.0, 20.0, 7.0]]), 4.0)]
    model = fit_tree((2, 3), 150.0, measured, absent=[(1, 2)], steps=100)
    assert model.table((1,))[2] == 0
    more = [*measured, NoisyMarginal((0,), np.array([90.0, 60.0]), 1.0)]
    again = fit_tree((2, 3), 150.0, more, absent=[(1, 2)], start=model, steps=100)
    assert again.table((1,))[2] == 0
    assert again.table((0,))[0] == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize("tables", GRAPHS, ids=str)
def test_rows_follow_the_model(tables):
    model = model_of([*tables, *((key,) for key in range(5) if (key,) not in tables)])
    joint, _ = joint_of(model)
    codes = sample_rows(model, 20_000, seed=3)
    counts = np.bincount(np.ravel_multi_index(tuple(codes.T), SIZES), minlength=joint.size)
    # Unstratified rows of 96 cells would be off by about 0.028.
    assert np.abs(counts / 20_000 - joint.ravel()).sum() / 2 < 0.03
    for clique in model.tree.cliques[:1]:
        of_rows = np.bincount(
            np.ravel_multi_index(tuple(codes[:, key] for key in clique), model.tree.shape(clique)),
            minlength=math.prod(model.tree.shape(clique)),
        )
        assert np.abs(of_rows - 20_000 * margin(joint, clique).ravel()).max() <= 1
    assert np.array_equal(sample_rows(model, 50, 3), sample_rows(model, 50, 3))
    assert sample_rows(model, 0, 3).shape == (0, 5)


def test_conditions_are_bayes_rule():
    model = model_of(GRAPHS[4])
    joint, _ = joint_of(model)
    allowed = {3: np.array([1.0, 0.0, 0.5, 0.0]), 0: np.array([0.0, 1.0])}
    restricted, share = restrict_rows(model, allowed)
    weighted = joint * allowed[3][None, None, None, :, None] * allowed[0][:, None, None, None, None]
    assert share == pytest.approx(weighted.sum())
    for clique, table in zip(restricted.tree.cliques, restricted.clique_tables, strict=True):
        assert np.allclose(table, margin(weighted, clique) / weighted.sum())
    assert restrict_rows(model, {0: np.zeros(2)})[1] < 1e-12


def test_a_model_as_json():
    model = model_of(GRAPHS[4]).to_single()
    again = TreeModel.from_dict(model.to_dict(), SIZES)
    assert all(np.array_equal(table, again.potentials[keys]) for keys, table in model.potentials.items())
    with pytest.raises(ValueError, match="size"):
        TreeModel.from_dict(model.to_dict(), (3, 3, 2, 4, 2))
