# SPDX-License-Identifier: Apache-2.0
"""Level A: no row is longer than the clipping norm, as checked in integers, whatever floating point did before."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from discreet.learn.torch.exact import ExactSums, _cell, _longest, whole_cells
from tests.chance import may_fail
from tests.learn.torch.reference import Reference, data, small
from tests.statistical import fit
from tests.statistical.constants import ALPHA


def squared(row):
    return sum(int(cell) ** 2 for cell in row)


@settings(max_examples=150)
@given(
    st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=4),
    st.floats(1e-3, 1e3),
    st.floats(0.01, 50.0),
)
def test_no_row_is_longer_than_the_bound(rows, clip, noise):
    """Rows that were not clipped at all come out short, or as nothing."""
    bound = Fraction(clip) / _cell(clip, noise)
    for row in rows:
        cells = whole_cells(torch.tensor(row, dtype=torch.float64), _longest(clip, noise))
        assert squared(cells.tolist()) <= bound * bound


@settings(max_examples=150)
@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4), st.floats(0.01, 10.0))
def test_a_row_that_fits_is_cut_towards_zero_by_less_than_a_cell(row, noise):
    size = math.sqrt(sum(x * x for x in row))
    row = [x / max(1.0, size) * (1 - 1e-9) for x in row]
    per_cell, _ = _longest(1.0, noise)
    cells = whole_cells(torch.tensor(row, dtype=torch.float64), _longest(1.0, noise)).tolist()
    for x, cell in zip(row, cells, strict=True):
        assert abs(cell) <= abs(x) * per_cell
        assert abs(cell - x * per_cell) < 1


def test_a_row_just_too_long_is_shortened_and_one_far_too_long_is_nothing():
    longest = _longest(1.0, 1.0)
    per_cell, square = longest
    assert per_cell == 2.0**20
    cells = [
        whole_cells(torch.tensor([size, 0.0]).double(), longest).tolist()
        for size in (1.0, 1.0 + 2.0**-18, 2.0, 1e300)
    ]
    assert cells[0] == [2**20, 0]
    assert 0.99 * 2**20 < cells[1][0] <= math.isqrt(square)
    assert cells[2:] == [[0, 0], [0, 0]]


def test_rounding_to_the_nearest_would_break_the_bound():
    """Why rows are cut towards zero: 1,000 numbers just above a half each round up, and the norm with them."""
    longest = _longest(1.0, 1.0)
    row = torch.full((1000,), 0.6 / longest[0], dtype=torch.float64)
    assert squared(torch.round(row * longest[0]).tolist()) > (0.6**2) * 1000
    assert squared(whole_cells(row, longest).tolist()) == 0


@pytest.mark.parametrize("kind", ["linear", "conv", "norm", "embedding"])
def test_the_sum_is_the_textbooks_for_layers_of_all_kinds(kind):
    model, x = {
        "linear": (small(), data(9)[0]),
        "conv": (
            torch.nn.Sequential(torch.nn.Conv1d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(4, 2)),
            data(9)[0][:, None],
        ),
        "norm": (
            torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2)),
            data(9)[0],
        ),
        "embedding": (
            torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Flatten(), torch.nn.Linear(6, 2)),
            torch.arange(18).reshape(9, 2) % 5,
        ),
    }[kind]
    y, parameters = data(9)[1], list(model.parameters())
    weights = torch.ones(9)
    weights[3] = 0
    wanted = Reference(model).clipped_sum(
        cross_entropy(model(x), y, reduction="none"), clip=0.3, weights=weights
    )
    sums = ExactSums(parameters, noise=1e-3)
    sums.begin()
    below = 0
    for one in range(9):
        losses = cross_entropy(model(x[one : one + 1]), y[one : one + 1], reduction="none")
        below = below + sums.add(losses, clip=0.3, weights=weights[one : one + 1])()
    sums.release(noise=1e-3, clip=0.3, divide=1.0)
    assert int(below) == int(wanted.below)
    for parameter in parameters:
        torch.testing.assert_close(parameter.grad, wanted.gradients[parameter], atol=3e-3, rtol=0)
    sums.close()


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_the_noise_is_exactly_the_rounded_gaussian_of_its_scale():
    parameter = torch.nn.Parameter(torch.zeros(50_000, dtype=torch.float64))
    sums = ExactSums([parameter], noise=3.0)
    sums.begin()
    sums.release(noise=3.0, clip=0.5, divide=1.0)
    cell = _cell(0.5, 3.0)
    cells = parameter.grad / float(cell)
    assert torch.equal(cells, cells.round())
    coarse = np.floor(cells.numpy() / 2**18 + 0.5).astype(np.int64)
    scale = float(Fraction(3) * Fraction(1, 2) / cell) / 2**18
    fit.accepts(
        coarse, lambda k: fit.rounded_gaussian(k, scale), lambda k: fit.rounded_gaussian(k, 0.8 * scale)
    )
    sums.close()
