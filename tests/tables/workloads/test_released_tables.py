# SPDX-License-Identifier: Apache-2.0
"""Released tables: they agree with each other, and their noise has the stated variances and covariances."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet import noise
from discreet.exact import exactly
from discreet.tables.workloads.axes import interval_axis
from discreet.tables.workloads.measurement import Layout, SparseTable, measurement_at
from discreet.tables.workloads.objectives import plan_noise
from discreet.tables.workloads.released import ReleasedTables, TableCell
from discreet.tables.workloads.residuals import ResidualSystem, closure_of

SIZES, TWO_WAY = (2, 3, 4), ((0, 1), (0, 2), (1, 2))
NOISE = 2.0


def rounded_noise(scale, count):
    return noise.rounded_gaussian(exactly(scale), count)


def released(layout, cells):
    measurement = measurement_at(layout, NOISE)
    residuals = measurement.estimates(measurement.draw(cells, rounded_noise))
    return ReleasedTables(
        layout.axes, layout.system, residuals, measurement.variances(), measurement.roundings()
    )


def full_table(sizes):
    table = np.arange(math.prod(sizes)) * 5 % 17
    return table.reshape(sizes), SparseTable(np.array(list(np.ndindex(*sizes))), table)


@pytest.mark.parametrize("sets", [TWO_WAY, closure_of([(0, 1, 2)])])
def test_every_table_sums_to_every_table_inside_it(sets):
    system = ResidualSystem(SIZES, sets)
    _, cells = full_table(SIZES)
    tables = released(Layout((), system, plan_noise(system).variances), cells)
    for keys in system.closure:
        for inner in closure_of([keys]):
            gone = tuple(at for at, key in enumerate(keys) if key not in inner)
            assert np.allclose(tables.table(keys).sum(axis=gone), tables.table(inner), atol=1e-9)


def test_spans_of_an_ordered_key_add_up():
    system, axis = ResidualSystem((3,), ((0,),)), interval_axis(6, [("ranges", 1.0)])
    _, cells = full_table((6, 3))
    tables = released(Layout((axis,), system, plan_noise(system).variances), cells)
    halves = tables.table((0,), [[(0, 2), (2, 6)]])
    assert np.allclose(halves.sum(axis=0), tables.table((0,), [[(0, 6)]])[0])
    assert np.allclose(halves.sum(), tables.table((), [[(0, 6)]]))


def moments(layout, cells, runs):
    """The deviations of every cell of the closure from the truth, over many draws."""
    measurement, sizes = measurement_at(layout, NOISE), layout.system.sizes
    exact = dict(layout.exact_blocks(cells, measurement.multipliers))
    blocks = {
        keys: block[..., None]
        + rounded_noise(measurement.scales[keys], block.size * runs).reshape(*block.shape, runs)
        for keys, block in exact.items()
    }
    system = layout.system
    estimates = {
        keys: np.moveaxis(
            layout.estimate(np.moveaxis(block.astype(float), -1, 0), keys, measurement.multipliers[keys], 1),
            0,
            -1,
        )
        for keys, block in blocks.items()
    }
    truth = {
        keys: layout.estimate(block.astype(float), keys, measurement.multipliers[keys])
        for keys, block in exact.items()
    }
    rows, names = [], []
    for keys in system.closure:
        noisy = np.moveaxis(
            system.table({k: np.moveaxis(v, -1, 0) for k, v in estimates.items()}, keys, 1), 0, -1
        )
        rows.append((noisy - system.table(truth, keys)[..., None]).reshape(-1, runs))
        names += [
            TableCell((), dict(zip(keys, cell, strict=True)))
            for cell in itertools.product(*(range(sizes[key]) for key in keys))
        ]
    return np.concatenate(rows), names


def test_means_variances_and_covariances_are_the_stated_ones():
    """4,000 draws: each moment within 4.5 standard errors of its formula."""
    system = ResidualSystem(SIZES, TWO_WAY)
    layout = Layout((), system, plan_noise(system).variances)
    _, cells = full_table(SIZES)
    runs = 4000
    deviations, names = moments(layout, cells, runs)
    tables = released(layout, cells)
    stated = np.array([[tables.covariance(one, other) for other in names] for one in names])
    found = deviations @ deviations.T / runs
    spread = np.sqrt(np.outer(stated.diagonal(), stated.diagonal()))
    assert (np.abs(deviations.mean(axis=1)) < 4.5 * np.sqrt(stated.diagonal() / runs)).all()
    assert (np.abs(found - stated) < 4.8 * spread * math.sqrt(2 / runs)).all()
    wrong = stated * 1.2
    assert (np.abs(found - wrong).diagonal() > 4.8 * wrong.diagonal() * math.sqrt(2 / runs)).any()


def test_a_scaled_measure_has_scaled_noise():
    system = ResidualSystem((2, 3), ((0, 1),))
    _, cells = full_table((2, 3))
    tables = released(Layout((), system, plan_noise(system).variances), cells)
    thrice = tables.scale(-3.0)
    assert np.allclose(thrice.table((0, 1)), -3 * tables.table((0, 1)))
    assert thrice.table_variance((0, 1)) == pytest.approx(9 * tables.table_variance((0, 1)))
    assert thrice.table_rounding((0,)) == pytest.approx(3 * tables.table_rounding((0,)))
