# SPDX-License-Identifier: Apache-2.0
"""Correct mechanisms are accused no more often than was said, over many runs at a confidence that can be seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from discreet.audit import audit, batched
from tests.statistical.constants import ALPHA

generator = np.random.default_rng()
TIGHT = {
    "coin": (
        lambda bit, n: np.where(generator.random(n) < np.e / (1 + np.e), bit, 1 - bit),
        privacy.pure(1.0),
    ),
    "Laplace": (lambda data, n: data + generator.laplace(0, 1, n), privacy.laplace(1.0)),
    "Gaussian": (lambda data, n: data + generator.normal(0, 1, n), privacy.gaussian(1.0)),
    "vector": (lambda data, n: data + generator.normal(0, 1, (n, 2)) * [1.0, 1.0], privacy.gaussian(1.0)),
    "nothing": (lambda _, n: generator.random(n), privacy.pure(1e-6)),
}


def accused(name, runs, trials, confidence):
    """How many of the runs refute a claim that holds exactly."""
    draw, claim = TIGHT[name]
    pair = (np.zeros(2), np.array([1.0, 0.0])) if name == "vector" else (0, 1)
    settings = {"claim": claim, "trials": trials, "confidence": confidence, "look_at": "values"}
    return sum(audit(batched(draw), *pair, **settings).refutes() for _ in range(runs))


def too_many(count, runs, confidence):
    return stats.binom.sf(count - 1, runs, 1 - confidence) < ALPHA


@pytest.mark.parametrize("name", TIGHT)
def test_few_runs_accuse_nobody(name):
    assert not too_many(accused(name, 20, 400, 0.9), 20, 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("name", TIGHT)
def test_many_runs_accuse_no_more_often_than_was_said(name):
    runs = 2_000
    assert not too_many(accused(name, runs, 400, 0.8), runs, 0.8)


def test_the_count_would_notice_too_many():
    assert too_many(20, 20, 0.9)
    assert not too_many(6, 20, 0.9)
    assert too_many(600, 2_000, 0.8)
