# SPDX-License-Identifier: Apache-2.0
"""How often 95 % intervals hold, and how wide they are beside what would just be enough."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.intervals import NoiseVector
from discreet.tables.plan.spend import Spend
from tests.tables.small import dataset, number, question

RUNS = 20_000
X = number(0, 100, null=False)
#: Values with their exact mean and variance: in the middle of the bounds, and near one end of them.
TABLES = {
    "middle": [30, 50, 50, 70] * 500,
    "skewed": [2, 4, 8, 60] * 500,
}
ASKED = question(("count",), ("sum", X), ("mean", X), ("variance", X), ("stddev", X))


def drawn(values, spend):
    """For each column the released numbers and their intervals, in many runs."""
    data = dataset([(("a", x),) for x in values], rows_are_units=True)
    (stage,) = compile_question(ASKED, data, spend).stages
    sums = np.array(stage.exact(data.engine, [()])[()], float)
    noise = np.stack([distribution.draw(RUNS) for distribution in stage.distributions], axis=1)
    return {name: estimate.noisy(sums + noise) for name, estimate in stage.estimates.items()}


@pytest.mark.parametrize("spend", [Spend(epsilon=0.2), Spend(rho=0.02)], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("values", TABLES)
def test_every_interval_holds_and_is_hardly_wider_than_it_must_be(values, spend):
    rows = np.array(TABLES[values], float)
    exact = {
        "count0": rows.size,
        "sum1": rows.sum(),
        "mean2": rows.mean(),
        "variance3": rows.var(),
        "stddev4": rows.std(),
    }
    for name, column in drawn(TABLES[values], spend).items():
        low, high, found = (np.array(part, float) for part in (column.lo, column.hi, column.values))
        held = ((low <= exact[name] + 1e-9) & (exact[name] <= high + 1e-9)).mean()
        assert 0.945 <= held <= 0.97, name
        enough = np.quantile(np.abs(found - exact[name]), 0.95)
        assert np.mean(high - low) / 2 <= 1.2 * enough, name


@pytest.mark.parametrize("spend", [Spend(epsilon=0.2), Spend(rho=0.02)], ids=["laplace", "gaussian"])
def test_an_interval_of_too_little_noise_is_found_out(spend):
    data = dataset([(("a", x),) for x in TABLES["middle"]], rows_are_units=True)
    (stage,) = compile_question(ASKED, data, spend).stages
    sums = np.array(stage.exact(data.engine, [()])[()], float)
    noise = np.stack([distribution.draw(RUNS) for distribution in stage.distributions], axis=1)
    smaller = NoiseVector(
        tuple(type(distribution)(distribution.scale * 0.9) for distribution in stage.distributions)
    )
    estimate = replace(stage.estimates["stddev4"], noise=smaller)
    column = estimate.noisy(sums + noise)
    exact = np.std(TABLES["middle"])
    held = np.mean((np.array(column.lo) <= exact) & (exact <= np.array(column.hi)))
    assert held < 0.945


def test_a_bound_grows_with_every_coefficient():
    laplace = NoiseVector(tuple(LaplaceDistribution(scale) for scale in (40.0, 40.0, 90.0)))
    gaussian = NoiseVector(tuple(GaussianDistribution(scale) for scale in (40.0, 40.0, 90.0)))
    mixed = NoiseVector((*laplace.distributions, GaussianDistribution(30.0)))
    steps = (0.0, 0.1, 0.5, 0.501, 1.0, 3.0)
    for noise in (laplace, gaussian, mixed):
        for place in range(3):
            for others in itertools.product((0.1, 0.5, 1.0), repeat=len(noise.distributions) - 1):
                weights = {at: np.full(len(steps), weight) for at, weight in enumerate(others, start=1)}
                weights = {(at + place) % len(noise.distributions): w for at, w in weights.items()}
                weights[place] = np.array(steps)
                bounds = noise.half_widths(weights, 0.05)
                # Scales that are moved apart make a bound greater by up to 1 %.
                assert (np.diff(bounds) >= -0.011 * bounds[1:]).all()


def test_one_bound_for_many_forms_is_that_of_each():
    noise = NoiseVector(tuple(LaplaceDistribution(scale) for scale in (40.0, 70.0, 90.0)))
    weights = {place: np.array([0.2, 1.0, 3.0]) * (place + 1) for place in range(3)}
    many = noise.half_widths(weights, 0.05)
    for at, bound in enumerate(many):
        assert noise.half_width({place: weights[place][at] for place in range(3)}, 0.05) == pytest.approx(
            bound
        )
