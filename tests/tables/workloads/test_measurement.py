# SPDX-License-Identifier: Apache-2.0
"""How far one row moves what is measured: all pairs of rows on small tables, in fractions, with mutants that must be caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet.exact import exactly
from discreet.tables.workloads.axes import interval_axis, tree_axis
from discreet.tables.workloads.measurement import Layout, SparseTable, least_overlap, measurement_at
from discreet.tables.workloads.objectives import plan_noise
from discreet.tables.workloads.residuals import ResidualSystem, closure_of
from discreet.tables.workloads.trees import Tree
from tests.tables.workloads import dense

NOISE = 4.2247
ORDERED = interval_axis(3, [("ranges", 1.0)])
TREE = tree_axis(Tree.of_paths([(0, 0), (0, 1), (1, 0)]), [1, 1, 1])
WORKLOADS = [
    ((2, 3), ((0, 1),)),
    ((2, 3, 2), ((0, 1), (1, 2))),
    ((3, 2, 3), ((0,), (1, 2))),
    ((2, 2), ((0,), (1,))),
    ((3,), ((0,),)),
    ((1, 2, 3), ((0, 1, 2),)),
    ((2, 3, 3), closure_of([(0, 1, 2)])),
    ((), ((),)),
]
AXES = {"categories": (), "ordered": (ORDERED,), "tree": (TREE,), "both": (ORDERED, TREE)}


def layout_of(sizes, sets, axes=(), objective="each"):
    system = ResidualSystem(sizes, sets)
    return Layout(axes, system, plan_noise(system, objective).variances)


def all_sizes(layout):
    return (*layout.axis_shape(), *layout.system.sizes)


@pytest.mark.parametrize(("sizes", "sets"), WORKLOADS)
@pytest.mark.parametrize("axes", ["categories", "ordered", "tree"])
@pytest.mark.parametrize("objective", ["each", "cells", "worst"])
def test_no_row_moves_it_further_than_stated_and_some_row_as_far(sizes, sets, axes, objective):
    layout = layout_of(sizes, sets, AXES[axes], objective)
    measurement = measurement_at(layout, NOISE)
    lengths = [dense.squared(vector) for vector in dense.shifts(measurement, all_sizes(layout)).values()]
    stated = measurement.squared_length
    assert max(lengths) <= stated <= max(lengths) * (1 + Fraction(1, 10**40))
    assert stated * exactly(NOISE) ** 2 <= 1
    assert stated * exactly(NOISE) ** 2 >= 1 - Fraction(1, 10**12)


@pytest.mark.parametrize(("sizes", "sets"), WORKLOADS)
@pytest.mark.parametrize("axes", ["categories", "ordered", "tree"])
def test_no_two_rows_are_further_apart_than_stated(sizes, sets, axes):
    layout = layout_of(sizes, sets, AXES[axes])
    measurement = measurement_at(layout, NOISE)
    vectors = dense.shifts(measurement, all_sizes(layout))
    greatest = max(
        (dense.distance(one, other) for one, other in combinations(vectors.values(), 2)), default=Fraction(0)
    )
    bound = 2 * float(measurement.squared_length) * (1 - least_overlap(layout))
    assert float(greatest) <= bound
    assert float(greatest) >= bound * 0.99 - 1e-6


def test_two_axes_multiply():
    layout = layout_of((2,), ((0,),), AXES["both"])
    measurement = measurement_at(layout, NOISE)
    lengths = [dense.squared(vector) for vector in dense.shifts(measurement, all_sizes(layout)).values()]
    assert max(lengths) <= measurement.squared_length


def test_units_with_several_rows_are_longest_where_all_rows_are_in_one_cell():
    layout = layout_of((2, 2, 2), ((0, 1), (1, 2)))
    measurement = measurement_at(layout, NOISE)
    vectors = list(dense.shifts(measurement, layout.system.sizes).values())
    zero = [Fraction(0)] * len(vectors[0])
    longest = Fraction(0)
    for places in combinations(list(range(len(vectors))) * 3, 3):
        total = zero
        for place in places:
            total = [a + b for a, b in zip(total, vectors[place], strict=True)]
        longest = max(longest, dense.squared(total))
    assert longest == 9 * max(map(dense.squared, vectors))


def test_many_keys_are_bounded_without_listing_patterns(monkeypatch):
    layout = layout_of((2, 3, 4, 5), tuple(combinations(range(4), 2)))
    exact = least_overlap(layout)
    monkeypatch.setattr("discreet.tables.workloads.measurement._MOST_STEPS", 0)
    assert least_overlap(layout) <= exact


class TestMutants:
    """Each mistake makes a row move the result further than is stated."""

    LAYOUT = layout_of((2, 3), closure_of([(0, 1)]))

    def longest(self, measurement):
        return max(map(dense.squared, dense.shifts(measurement, self.LAYOUT.system.sizes).values()))

    def test_a_number_of_values_that_is_off_by_one(self, monkeypatch):
        sound = measurement_at(self.LAYOUT, NOISE)
        center = ResidualSystem.center

        def off_by_one(system, table, keys, first=0):
            return center(
                ResidualSystem(tuple(size + 1 for size in system.sizes), system.sets), table, keys, first
            )

        monkeypatch.setattr(ResidualSystem, "center", off_by_one)
        assert self.longest(sound) > sound.squared_length

    def test_a_multiplier_that_is_left_out_of_the_sensitivity(self):
        sound = measurement_at(self.LAYOUT, NOISE)
        assert max(sound.multipliers.values()) > 1
        forgotten = replace(sound, multipliers=dict.fromkeys(sound.multipliers, 1))
        assert self.longest(sound) > forgotten.squared_length

    def test_a_total_that_is_left_out_of_the_cost(self):
        sound = measurement_at(self.LAYOUT, NOISE)
        scales = {keys: scale for keys, scale in sound.scales.items() if keys}
        assert self.longest(sound) > replace(sound, scales=scales).squared_length

    def test_noise_on_tables_that_are_not_centred(self, monkeypatch):
        """For binary keys the full table costs 2^d times its share."""
        layout = layout_of((2, 2, 2, 2), closure_of([(0, 1, 2, 3)]))
        sound = measurement_at(layout, NOISE)
        monkeypatch.setattr(
            ResidualSystem, "center", lambda system, table, keys, _: table * system.cells(keys)
        )
        longest = max(map(dense.squared, dense.shifts(sound, layout.system.sizes).values()))
        assert longest > 2 * sound.squared_length


class TestNumbers:
    def test_every_block_is_the_residual_of_the_table(self):
        layout = layout_of((2, 3, 2), ((0, 1), (1, 2)), (ORDERED,))
        measurement = measurement_at(layout, NOISE)
        full = (np.arange(36) * 7 % 11).reshape(3, 2, 3, 2)
        places = np.array(list(np.ndindex(full.shape)))
        cells = SparseTable(places, full.ravel())
        blocks = dict(layout.exact_blocks(cells, measurement.multipliers))
        for keys, estimate in measurement.estimates(blocks).items():
            gone = tuple(1 + key for key in range(3) if key not in keys)
            assert np.allclose(
                estimate, layout.system.without_means(full.sum(axis=gone).astype(float), keys, 1)
            )

    @pytest.mark.parametrize("size", [1, 1 << 54, 1 << 61, 1 << 70])
    def test_numbers_of_any_size_stay_exact(self, size):
        layout = layout_of((2, 3), ((0, 1),))
        values = np.array([size, -size, 3 * size], dtype=object if size > 1 << 60 else np.int64)
        cells = SparseTable(np.array([[0, 0], [1, 2], [1, 1]]), values)
        blocks = dict(layout.exact_blocks(cells, dict.fromkeys(layout.system.residuals, 1)))
        assert int(blocks[()]) == 3 * size
        assert [int(number) for number in blocks[0, 1].ravel()] == [
            size * number for number in _centred_by_hand([[1, 0, 0], [0, 3, -1]])
        ]

    def test_noise_is_added_once_to_every_number(self):
        layout = layout_of((2, 3), ((0, 1),))
        measurement = measurement_at(layout, NOISE)
        asked = []

        def noise(scale, count):
            asked.append((scale, count))
            return np.full(count, 10**6)

        cells = SparseTable(np.zeros((0, 2), np.int64), np.zeros(0, np.int64))
        drawn = measurement.draw(cells, noise)
        assert sorted(asked) == sorted(
            (measurement.scales[keys], layout.system.cells(keys)) for keys in drawn
        )
        assert all((block == 10**6).all() for block in drawn.values())


def _centred_by_hand(rows):
    height, width = len(rows), len(rows[0])
    return [
        height * width * rows[a][b]
        - width * sum(rows[c][b] for c in range(height))
        - height * sum(rows[a])
        + sum(map(sum, rows))
        for a in range(height)
        for b in range(width)
    ]
