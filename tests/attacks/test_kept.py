# SPDX-License-Identifier: Apache-2.0
"""Mechanisms that keep their guarantee are not accused, at any magnitude, by value or by bits, in either format.

The confidence is 1 - 1e-9: a red test is a bug, not bad luck.
"""

from __future__ import annotations

import numpy as np
import pytest

from discreet import privacy
from discreet.audit import audit, batched, worst_pair
from discreet.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace
from tests.attacks.broken import Broken, box_muller, gaussian_of, laplace_of
from tests.statistical.constants import ALPHA

CONFIDENCE = 1 - ALPHA
TRIALS = 20_000
POWERS = [-60, -20, 0, 20, 60]


def many(mechanism, cast=np.float64):
    """The steps of `draw` for many runs at once: on the grid, plus noise, and back."""

    def draw(data, count):
        cells = np.tile(np.atleast_1d(mechanism.grid.cells(np.atleast_1d(data), instead=0)), (count, 1))
        noisy = mechanism.add_noise(cells)
        reals = noisy if isinstance(mechanism, Geometric | DiscreteGaussian) else mechanism.grid.reals(noisy)
        return np.asarray(reals).astype(cast)

    return batched(draw)


def audited(subject, pair, claim, trials=TRIALS):
    return audit(subject, *pair, claim=claim, trials=trials, confidence=CONFIDENCE)


@pytest.mark.parametrize("cast", [np.float64, np.float32])
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_noise_on_a_grid_is_not_accused(kind, power, cast):
    size = 2.0**power
    mechanism = kind(scale=size, sensitivity=size)
    report = audited(many(mechanism, cast), (0.0, size), mechanism.guarantee)
    assert not report.refutes(), str(report)
    assert (
        report.mu_at_least > 0.5
    )  # it was looked at: the true value is 1, or 0.96 for a Laplace distribution


@pytest.mark.parametrize("pair", [(0.1, 1.1), (1e6, 1e6 + 1), (-3.3, -2.3)])
def test_noise_on_a_grid_is_not_accused_wherever_the_value_lies(pair):
    mechanism = Laplace(epsilon=1, sensitivity=1)
    report = audited(many(mechanism), pair, mechanism.guarantee)
    assert not report.refutes(), str(report)
    assert report.mu_at_least > 0.5


@pytest.mark.parametrize("kind", [Geometric, DiscreteGaussian])
def test_noise_on_whole_numbers_is_not_accused(kind):
    mechanism = kind(scale=2.0, sensitivity=2)
    report = audited(many(mechanism), worst_pair(mechanism), mechanism.guarantee)
    assert not report.refutes(), str(report)
    assert report.mu_at_least > 0.5


@pytest.mark.parametrize(
    "mechanism",
    [Laplace(epsilon=1, sensitivity=1, dimension=3), Gaussian(rho=0.5, sensitivity=1, dimension=5)],
)
def test_noise_on_a_vector_is_not_accused(mechanism):
    assert not audited(many(mechanism), worst_pair(mechanism), mechanism.guarantee).refutes()
    assert not audited(many(mechanism, np.float32), worst_pair(mechanism), mechanism.guarantee).refutes()


@pytest.mark.parametrize("kind", [Laplace, Gaussian, Geometric, DiscreteGaussian])
def test_the_real_draw_is_not_accused(kind):
    mechanism = kind(scale=1.0, sensitivity=1)
    report = audited(mechanism, worst_pair(mechanism), None, trials=4_000)
    assert not report.refutes(), str(report)
    assert report.claim == mechanism.guarantee


@pytest.mark.parametrize(
    "fault",
    [
        Broken("Laplace", laplace_of(1.0), 0.0, 1.0),
        Broken("Gaussian", gaussian_of(1.0), 0.0, 1.0, privacy.gaussian(1.0)),
        Broken("Box-Muller", box_muller, 0.0, 1.0, privacy.gaussian(1.0)),
    ],
    ids=lambda fault: fault.name,
)
def test_by_value_alone_float_noise_looks_right(fault):
    """The fault is in the bits only, so it is the bits that accuse it."""
    report = audit(
        batched(fault.draw),
        fault.x,
        fault.x_neighbour,
        claim=fault.claim,
        look_at="values",
        confidence=CONFIDENCE,
    )
    assert not report.refutes()
