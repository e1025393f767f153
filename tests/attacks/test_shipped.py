# SPDX-License-Identifier: Apache-2.0
"""The library audits itself: no mechanism with a known worst pair is accused by its own audit.

The confidence is 1 - 1e-9. The slow run is of a size that means something.
"""

from __future__ import annotations

import pytest

from discreet import mechanisms as ms
from discreet.audit import audit, worst_pair
from tests.statistical.constants import ALPHA

SHIPPED = [
    ms.Laplace(epsilon=1, sensitivity=1),
    ms.Laplace(epsilon=1, sensitivity=1, dimension=3),
    ms.Gaussian(rho=0.5, sensitivity=1),
    ms.Gaussian(epsilon=1, delta=1e-5, sensitivity=2.5, dimension=2),
    ms.Geometric(epsilon=1, sensitivity=1),
    ms.DiscreteGaussian(rho=0.5, sensitivity=2),
    ms.ExponentialMechanism(epsilon=1, sensitivity=1),
    ms.ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True),
    ms.PermuteAndFlip(epsilon=1, sensitivity=1),
    ms.NoisyMax(epsilon=1, sensitivity=1),
    ms.TopK(epsilon=1, sensitivity=1, count=2),
    ms.SparseVector(epsilon=1, sensitivity=1, threshold=0, positives=2),
    ms.AboveThreshold(epsilon=1, sensitivity=1, threshold=0),
    ms.SparseVector(epsilon=0.5, sensitivity=1, threshold=0, answer_epsilon=0.5),
    ms.RandomizedResponse(epsilon=1),
    ms.RandomizedResponse(epsilon=1, outcomes=4),
    ms.SymmetricUnary(epsilon=1, outcomes=3),
    ms.OptimisedUnary(epsilon=1, outcomes=3),
    ms.StabilityHistogram(epsilon=1, delta=0.01),
    ms.PartitionSelection(epsilon=1, delta=0.01),
]
NAMES = [f"{number}-{type(mechanism).__name__}" for number, mechanism in enumerate(SHIPPED)]


@pytest.mark.parametrize("mechanism", SHIPPED, ids=NAMES)
def test_a_shipped_mechanism_is_not_accused(mechanism):
    report = audit(mechanism, *worst_pair(mechanism), trials=2_000, confidence=1 - ALPHA)
    assert not report.refutes(), str(report)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", SHIPPED, ids=NAMES)
def test_a_shipped_mechanism_is_not_accused_by_many_runs(mechanism):
    report = audit(mechanism, *worst_pair(mechanism), trials=50_000, confidence=1 - ALPHA)
    assert not report.refutes(), str(report)
    assert report.epsilon_at_least() > 0.1  # the pair is a telling one
