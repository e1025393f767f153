# SPDX-License-Identifier: Apache-2.0
"""A long vector is made noisy a part at a time: each number comes out as it would by itself, whatever the others are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import BadParameter
from discreet.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace, additive, distributions
from discreet.mechanisms.exact import finite_numbers

LONG = 2 * additive._CHUNK + 17
ODD = [np.nan, np.inf, -np.inf, -0.0, 5e-324, -5e-324, 1e300, -1e300, 0.5, 1.5, -0.5, 2.0**62, 2.0**80]


@pytest.fixture
def silent(monkeypatch):
    """Noise that is zero, so that the way of the numbers can be seen."""
    for distribution in (
        distributions.LaplaceDistribution,
        distributions.GaussianDistribution,
        distributions.DiscreteGaussianDistribution,
    ):
        monkeypatch.setattr(distribution, "draw", lambda _self, size=None: np.zeros(size, np.int64))


def floats():
    values = np.linspace(-1e6, 1e6, LONG)
    values[:: LONG // len(ODD)][: len(ODD)] = ODD
    return values


def vectors():
    values = floats()
    with np.errstate(over="ignore"):
        yield values
        yield values.astype(np.float32)
        yield values[:-1].reshape(2, -1).T
        yield np.repeat(values, 2)[::2]
        yield list(values)
    yield np.arange(LONG) - 5
    yield np.arange(LONG, dtype=np.uint16)
    yield np.arange(LONG) % 2 == 0
    yield [Fraction(1, 3), None, "x", *range(LONG)]
    yield np.ma.masked_greater(np.arange(LONG), 9)


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@pytest.mark.parametrize("case", range(len(list(vectors()))))
def test_every_number_is_rounded_as_by_itself(kind, case, silent):
    data = list(vectors())[case]
    mechanism = kind(scale=3.7, sensitivity=0.3).with_dimension(np.size(finite_numbers(data)))
    released = mechanism.draw(data)
    one_by_one = mechanism.grid.reals(mechanism.grid.cells(finite_numbers(data)))
    assert released.dtype == np.float64
    assert released.shape == one_by_one.shape
    assert np.array_equal(released, one_by_one)
    assert np.array_equal(kind(scale=3.7, sensitivity=0.3)(data).value, released)


@pytest.mark.parametrize("kind", [Geometric, DiscreteGaussian])
def test_whole_numbers_keep_their_value_and_type(kind, silent):
    for data in (
        np.arange(LONG) - 9,
        np.arange(LONG, dtype=np.uint32),
        [*range(LONG - 2), 10**30, -(10**30)],
    ):
        released = kind(scale=2, sensitivity=1)(data).value
        assert released.dtype == np.int64
        expected = [max(-(2**62), min(int(value), 2**62)) for value in data]
        assert released.tolist() == expected


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_every_part_has_noise_of_its_own(kind):
    """Equal numbers in different parts come out different: two alike have probability below 1e-40 at this length."""
    released = kind(scale=3.0, sensitivity=1)(np.zeros(LONG)).value
    parts = [released[start : start + 1000] for start in range(0, LONG - 1000, 1000)]
    assert len({part.tobytes() for part in parts}) == len(parts)


def test_a_sum_beyond_the_range_is_the_end_of_the_range():
    cells = np.array([2**63 - 1, -(2**63), 0])
    noise = np.array([5, -5, 7])
    assert additive._add(cells, noise).tolist() == [2**63 - 1, -(2**63), 7]


@pytest.mark.parametrize("kind", [Laplace, Gaussian, Geometric, DiscreteGaussian])
def test_a_vector_of_another_length_is_refused(kind):
    with pytest.raises(BadParameter, match="this mechanism takes"):
        kind(scale=2.0, sensitivity=1, dimension=LONG)(np.arange(LONG + 1))
