# SPDX-License-Identifier: Apache-2.0
"""No unit moves what a copy measures further than its noise is made for: all units on tiny domains, exactly, with mutants."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from discreet.exact import exactly
from discreet.tables.plan.contribution import Contribution
from discreet.tables.synthetic import measure
from discreet.tables.synthetic.counts import count_tables, l1_distance
from discreet.tables.synthetic.measure import (
    UnitReach,
    measure_distance,
    measure_table,
    pair_measurement,
    pair_system,
)
from discreet.tables.workloads.measurement import SparseTable
from tests.tables.small import contribution, dataset

NOISE = 1.7
RELATIONS = ["add-remove", "replace"]


def reach_of(at_most, relation, fine=8):
    return UnitReach(contribution(at_most=at_most, relation=relation), fine)


def units(sizes, reach):
    """The weighted tables of all units with up to one row more than `at_most`, as engines weight them, and of none."""
    cells = list(product(*map(range, sizes)))
    most, fine = reach.contribution.rows, reach.fine
    for count in range(most + 2):
        weight = fine if count <= most else most * fine // count
        for rows in combinations_with_replacement(cells, count):
            places = np.array(rows, np.int64).reshape(count, len(sizes))
            yield SparseTable(places, np.full(count, weight, np.int64))


def stacked(measurement, cells):
    """The exact blocks, each in multiples of its noise, squared distances of which are what the guarantee bounds."""
    return {
        keys: (np.asarray(block, object), exactly(measurement.scales[keys]))
        for keys, block in measurement.layout.exact_blocks(cells, measurement.multipliers)
    }


def squared_distance(one, other):
    total = Fraction(0)
    for keys, (block, scale) in one.items():
        difference = np.ravel(block - other[keys][0]).tolist()
        total += sum(part**2 for part in difference) / scale**2
    return total


def greatest_distance(sizes, reach, measurement):
    vectors = [stacked(measurement, unit) for unit in units(sizes, reach)]
    others = vectors if reach.contribution.replaces else vectors[:1]
    return max(squared_distance(one, other) for one in vectors for other in others)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("sizes", "at_most"), [((2, 3), 2), ((2, 2, 2), 1), ((4,), 2), ((1, 2, 2), 2), ((3, 2), 1)]
)
def test_pairs_cost_one_gaussian_mechanism(sizes, at_most, relation):
    reach = reach_of(at_most, relation)
    measurement = pair_measurement(pair_system(sizes), NOISE, reach)
    greatest = greatest_distance(sizes, reach, measurement)
    allowed = 1 / exactly(NOISE) ** 2
    assert greatest <= allowed
    # Some neighbours are that far apart: no budget is lost.
    assert float(greatest) > float(allowed) * (1 - 1e-6)


def test_a_measurement_that_forgets_the_weights_is_caught():
    reach = reach_of(2, "add-remove")
    for mutant in (replace(reach, fine=1), reach_of(1, "add-remove")):
        measurement = pair_measurement(pair_system((2, 3)), NOISE, mutant)
        assert greatest_distance((2, 3), reach, measurement) > 1 / exactly(NOISE) ** 2
    replaced = reach_of(1, "replace")
    measurement = pair_measurement(pair_system((2, 3)), NOISE, reach_of(1, "add-remove"))
    assert greatest_distance((2, 3), replaced, measurement) > 1 / exactly(NOISE) ** 2


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("at_most", [1, 2])
def test_scores_tables_and_distances_move_as_far_as_is_stated(relation, at_most):
    sizes, sets = (2, 2, 2), [(0, 1, 2), (0, 1), (1,)]
    reach = reach_of(at_most, relation)
    public = {keys: np.arange(2 ** len(keys)) * 3 for keys in sets}
    found = [dict(count_tables(cells, sizes, sets)) for cells in units(sizes, reach)]
    others = found if relation == "replace" else found[:1]
    l1 = l2 = together = 0
    for one in found:
        for other in others:
            # The rows of everybody else, so many that no distance changes its sign.
            moved = {}
            for keys in sets:
                far = one[keys] + 100, other[keys] + 100
                moved[keys] = abs(l1_distance(far[0], public[keys]) - l1_distance(far[1], public[keys]))
                l2 = max(l2, int(((one[keys] - other[keys]) ** 2).sum()))
                l1 = max(l1, l1_distance(one[keys], other[keys]))
                assert moved[keys] <= reach.l1
            together = max(together, sum(moved.values()))
    assert l1 == reach.l1
    assert l2 <= reach.l2**2
    assert l2 > reach.l2**2 * (1 - Fraction(1, 10**6))
    assert together <= reach.l1 * len(sets)


def test_distances_move_by_the_whole_sensitivity():
    """Where the rows of everybody else are below the public table in one cell and above it in another."""
    reach = reach_of(1, "replace")
    public, base = np.array([0, 500]), np.array([500, 0])
    moved = l1_distance(base + np.array([reach.added, 0]), public) - l1_distance(
        base + np.array([0, reach.added]), public
    )
    assert moved == reach.l1


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_noise_is_that_of_the_sensitivity(relation, monkeypatch):
    """The scales are read where they are drawn: at least noise times sensitivity, by both readings of a float."""
    reach, scales = reach_of(3, relation), []
    monkeypatch.setattr(
        measure.GaussianDistribution, "draw", lambda self, _size=None: scales.append(self.scale) or 0
    )
    measure_table(np.zeros(4, np.int64), 0.1, reach)
    pairs = ((np.zeros(2, np.int64), np.zeros(2, np.int64)) for _ in range(3))
    measure_distance(pairs, 3, 0.1, reach)
    for scale, sensitivity in zip(scales, (reach.l2, reach.l1 * 3), strict=True):
        assert exactly(scale) >= max(Fraction(0.1), Fraction(1, 10)) * sensitivity
        assert scale <= 0.1 * float(sensitivity) * (1 + 1e-12)


def test_choices_know_their_sensitivity(monkeypatch):
    asked = []

    class Recording(measure.ExponentialMechanism):
        def draw(self, scores):
            asked.append((self.epsilon, self.sensitivity, list(scores)))
            return super().draw(scores)

    monkeypatch.setattr(measure, "ExponentialMechanism", Recording)
    for relation in RELATIONS:
        reach = reach_of(2, relation)
        assert measure.choose_table([(0,), (1,)], [0, 10**9], 0.25, reach) == (1,)
        assert asked.pop() == (0.25, reach.l1, [0, 10**9])


def test_rows_that_are_units_have_no_weights():
    each_row = Contribution.of(dataset(rows_are_units=True))
    assert UnitReach(each_row, 1).added == 1
    assert math.isclose(float(UnitReach(each_row, 1).l2), 1.0)
