# SPDX-License-Identifier: Apache-2.0
"""Rows follow the model with little chance in them, are the same on every machine, and obey conditions."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.tables.synthetic.mixture import Mixture
from discreet.tables.synthetic.sample import restrict_rows, sample_rows
from discreet.tables.synthetic.stream import SeededStream

MIXTURE = Mixture(
    np.array([0.5, 0.3, 0.2]),
    (
        np.array([[0.9, 0.1], [0.2, 0.8], [0.0, 1.0]]),
        np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0], [0.3, 0.3, 0.4]]),
    ),
)


def table(codes, sizes=(2, 3)):
    flat = np.ravel_multi_index(tuple(codes.T), sizes)
    return np.bincount(flat, minlength=int(np.prod(sizes))).reshape(sizes)


def test_the_stream_never_changes():
    """Pinned: rows that were made once can be made again, whatever is installed."""
    numbers = SeededStream(7, "rows").uniform(3)
    digest = hashlib.shake_256(b"rows 7 0").digest(24)
    words = [int.from_bytes(digest[at : at + 8], "little") for at in (0, 8, 16)]
    assert numbers.tolist() == [((word >> 11) + 0.5) / 2**53 for word in words]
    assert SeededStream(7, "rows").uniform(2, 2).shape == (2, 2)
    assert (numbers > 0).all()
    assert (numbers < 1).all()
    assert SeededStream(8, "rows").uniform(1) != SeededStream(7, "rows").uniform(1)
    assert SeededStream(7, "values").uniform(1) != SeededStream(7, "rows").uniform(1)
    stream = SeededStream(1, "normal")
    both = stream.normal(20_000), stream.normal(20_000)
    assert abs(np.corrcoef(*both)[0, 1]) < 0.03
    assert both[0].std() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 1_000])
def test_columns_are_stratified(rows):
    for seed in range(20):
        codes = sample_rows(MIXTURE, rows, seed)
        assert codes.shape == (rows, 2)
        for column in (0, 1):
            counts = np.bincount(codes[:, column], minlength=MIXTURE.sizes[column])
            expected = rows * MIXTURE.table((column,))
            # Within a component less than one row off, and one for the rounding of the component.
            assert np.abs(counts - expected).max() <= 2 * len(MIXTURE.weights)
        if rows == 1_000:
            # (1, 0) has no zero only in components 1 and 2, and component 1 has a single value of column 1.
            assert table(codes)[0, 1] <= 0.5 * rows * 0.2 * 1.2


def test_inside_a_component_columns_are_independent():
    single = Mixture(np.array([1.0]), (np.array([[0.4, 0.6]]), np.array([[0.2, 0.3, 0.5]])))
    total = np.zeros((2, 3))
    for seed in range(200):
        total += table(sample_rows(single, 500, seed))
    expected = 100_000 * single.table((0, 1))
    # Margins are fixed, so two degrees of freedom remain; the threshold has a chance of 1e-9, and seeds are fixed.
    assert ((total - expected) ** 2 / expected).sum() < chi2.isf(1e-9, 2)
    # A dependence of one percent of the rows would be seen.
    shifted = expected + 1_000 * np.array([[1, 0, -1], [-1, 0, 1]])
    assert ((shifted - expected) ** 2 / expected).sum() > chi2.isf(1e-9, 2)


def test_seeds():
    one, again, other = (sample_rows(MIXTURE, 100, seed) for seed in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_conditions_are_bayes_rule():
    allowed = {1: np.array([1.0, 0.0, 0.5])}
    conditioned, share = restrict_rows(MIXTURE, allowed)
    joint = MIXTURE.table((0, 1)) * allowed[1]
    assert share == pytest.approx(joint.sum())
    assert np.allclose(conditioned.table((0, 1)), joint / joint.sum())
    impossible, share = restrict_rows(MIXTURE, {0: np.array([1.0, 0.0]), 1: np.array([0.0, 0.0, 0.0])})
    assert share == 0
    assert np.isfinite(impossible.table((0, 1))).all()
