# SPDX-License-Identifier: Apache-2.0
"""One small example of every shipped mechanism: what it is, data that it takes, and a neighbour of them.

Whoever ships a mechanism adds it here; tests/mechanisms/test_conformance.py runs every rule on it.
"""

from __future__ import annotations

from typing import Any

from discreet import mechanisms as m
from discreet.mechanisms import local, queries

Example = tuple[m.Mechanism, Any, Any]

KEYS = {"flu": 12, "gout": 3, "mumps": 7}
AGES = [float(age) for age in range(20, 60)]
FEWER_KEYS = {"flu": 11, "gout": 3, "mumps": 7}
PROPOSED = {"test_epsilon": 1, "release_epsilon": 1, "delta": 1e-3}
SEARCHED = {"search_epsilon": 1, "release_epsilon": 1, "delta": 1e-3}
BOUNDED = {"bound_epsilon": 1, "release_epsilon": 1, "delta": 1e-3}


def half_as_wrong(confidence: float) -> float:
    return m.Laplace(epsilon=1, sensitivity=1).error(confidence) / 2


EXAMPLES: dict[str, Example] = {
    "laplace": (m.Laplace(epsilon=1, sensitivity=1), 41.0, 42.0),
    "laplace vector": (m.Laplace(epsilon=1, sensitivity=2, dimension=3), [1.0, 2.0, 3.0], [1.0, 3.0, 3.0]),
    "geometric": (m.Geometric(epsilon=0.5, sensitivity=1), 10, 11),
    "gaussian": (m.Gaussian(rho=0.1, sensitivity=1, relation="replace"), 3.5, 4.0),
    "gaussian (ε, δ)": (m.Gaussian(epsilon=1, delta=1e-6, sensitivity=1, unit="patient"), 3.5, 4.0),
    "discrete gaussian": (m.DiscreteGaussian(scale=3, sensitivity=1), 7, 8),
    "exponential mechanism": (m.ExponentialMechanism(epsilon=1, sensitivity=1), [3.0, 2.0], [3.0, 3.0]),
    "permute and flip": (
        m.PermuteAndFlip(epsilon=1, sensitivity=1, candidates=["a", "b"]),
        [3.0, 2.0],
        [3.0, 3.0],
    ),
    "noisy max": (m.NoisyMax(epsilon=1, sensitivity=1, noise="laplace"), [3.0, 2.0], [3.0, 3.0]),
    "top k": (m.TopK(epsilon=1, sensitivity=1, count=2), [3.0, 2.0, 1.0], [3.0, 3.0, 1.0]),
    "sparse vector": (
        m.SparseVector(epsilon=1, sensitivity=1, threshold=5, positives=2),
        [1, 9, 4],
        [1, 8, 4],
    ),
    "above threshold": (m.AboveThreshold(epsilon=1, sensitivity=1, threshold=5), [1, 9, 4], [1, 8, 4]),
    "stability histogram": (m.StabilityHistogram(epsilon=1, delta=1e-3), KEYS, FEWER_KEYS),
    "partition selection": (m.PartitionSelection(epsilon=1, delta=1e-3), KEYS, FEWER_KEYS),
    "propose, test, release": (m.ptr.reciprocal.release(bound=0.01, **PROPOSED), 500, 501),
    "search, release": (m.ptr.reciprocal.search(bounds=[0.5, 1], **SEARCHED), 500, 501),
    "bound, release": (m.HighProbabilityBound(float, int, **BOUNDED), 500, 501),
    "stable value": (m.StableValue(str, int, epsilon=1, delta=1e-3), 7, 8),
    "stable vote": (m.StableVote("ab", epsilon=1, delta=1e-3), list("aaaaab"), list("aaaab")),
    "stable mode": (m.StableMode(epsilon=1, delta=1e-3), list("aaaaab"), list("aaaab")),
    "stable argmax": (m.StableArgmax(epsilon=1, delta=1e-3, sensitivity=1), [9, 2, 1], [9, 3, 1]),
    "stable top k": (m.StableTopK(epsilon=1, delta=1e-3, sensitivity=1, count=2), [9, 7, 1], [9, 8, 1]),
    "quantile": (m.Quantile(0.9, bounds=(0, 100), epsilon=1.0), AGES, AGES[:-1]),
    "median": (m.Median(bounds=(0, 100), epsilon=1.0), AGES, AGES[:-1]),
    "quantiles": (m.Quantiles([0.25, 0.75], bounds=(0, 100), epsilon=1.0), AGES, AGES[:-1]),
    "bounds": (m.Bounds(epsilon=1.0), AGES, AGES[:-1]),
    "unbounded mean": (m.UnboundedMean(epsilon=1.0, failure=1e-3), AGES, AGES[:-1]),
    "count": (queries.count(bool).geometric(epsilon=0.5), AGES, AGES[:-1]),
    "histogram": (queries.histogram([20.0, 21.0]).laplace(epsilon=1), AGES, AGES[:-1]),
    "mean": (queries.mean((0, 100)).laplace(epsilon=1), AGES, AGES[:-1]),
    "randomized response": (local.RandomizedResponse(epsilon=1, outcomes=4), [0, 1, 2], [0, 1, 3]),
    "hadamard response": (local.HadamardResponse(epsilon=3, outcomes=40), [0, 1, 2], [0, 1, 39]),
    "shuffled reports": (local.RandomizedResponse(epsilon=1).shuffled(3), [0, 1, 1], [0, 1, 0]),
    "symmetric unary": (local.SymmetricUnary(epsilon=1, outcomes=4), [0, 1, 2], [0, 1, 3]),
    "then": (m.Laplace(epsilon=1, sensitivity=1).then(abs, error=half_as_wrong), -3.0, -2.0),
    "both": (m.both(m.Laplace(epsilon=1, sensitivity=1), m.Gaussian(rho=0.1, sensitivity=1)), 3.0, 4.0),
    "both with a choice": (
        m.both(m.Laplace(epsilon=1, sensitivity=1, dimension=2), m.NoisyMax(epsilon=1, sensitivity=1)),
        [1.0, 2.0],
        [1.0, 1.0],
    ),
    "select best": (m.select_best(m.Laplace(epsilon=1, sensitivity=1), float, mean_runs=3), 3.0, 4.0),
    "select best candidate": (
        m.select_best(
            score=float,
            mean_runs=3,
            candidates=[m.Laplace(epsilon=1, sensitivity=1), m.Gaussian(rho=0.1, sensitivity=1)],
        ),
        3.0,
        4.0,
    ),
}
