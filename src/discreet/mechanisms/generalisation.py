# SPDX-License-Identifier: Apache-2.0
"""What privacy says of the population that the records were drawn from.

The records are n independent draws from a population. A question φ assigns each record a number in [0, 1]; φ(S) is its mean
over the records, φ(P) its mean over the population. An analyst sees private answers and chooses questions by them.

**Guarantee.** Both functions hold for every population, every analyst and any number of adaptively chosen questions, if
the guarantee is about one *replaced* record and the answers lie in [0, 1].

Why it holds: analysis.proof.md. What would break it: records that are not independent, a guarantee that covers only part of
what the analyst saw, or a guarantee for records that are added or removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet import check
from discreet.errors import UnsupportedGuarantee
from discreet.privacy.guarantee import Guarantee

__all__ = ["expected_gap", "population_error"]

_SHARES = (
    0.5,
    0.9,
    0.99,
    1.0,
)  # of the error probability that goes to the answers, the rest goes to the drift
_SLACKS = np.geomspace(1e-4, 0.5, 30)
_EPSILONS = np.append(0.0, np.geomspace(1e-3, 4.0, 16))
_UP = 1 + 1e-9


@check.arguments
def expected_gap(guarantee: Guarantee) -> float:
    """A bound on |E[φ(S) - φ(P)]| for whatever question φ was chosen by looking at the answers.

    It is the total variation distance that one replaced record can cause (stability implies generalisation).

    >>> from discreet import privacy
    >>> round(expected_gap(privacy.pure(0.1, relation="replace")), 4)
    0.05
    """
    return _replace(guarantee).advantage()


@check.arguments
def population_error(
    guarantee: Guarantee, sample_error: Callable[[float], float], confidence: float
) -> float:
    """How far any answer is from φ(P), at most, all of them at once, with this confidence.

    `sample_error(confidence)` bounds how far any answer is from φ(S). For any ε ≥ 0, c, d > 0 with sample error α at
    confidence 1 - β: save with probability β/c + δ(ε)/d no answer is off by more than
    α + c + (e^ε - 1 + 2d)/(e^ε + 1). The least over a grid of such choices is returned, and 1 is the most.

    >>> from discreet import privacy
    >>> population_error(privacy.pure(0.01, relation="replace"), lambda confidence: 0.02, confidence=0.95) < 0.06
    True
    """
    beta = 1 - check.inner_probability(confidence=confidence)
    _replace(guarantee)
    found = [_sample(sample_error, share * beta) + _drift(guarantee, (1 - share) * beta) for share in _SHARES]
    return min(1.0, min(found) * _UP)


def _sample(sample_error: Callable[[float], float], beta: float) -> float:
    """min over c of α(β·c) + c."""
    below_one = math.nextafter(1.0, 0.0)
    slacks: list[float] = _SLACKS.tolist()
    return min(sample_error(min(1 - beta * c / _UP, below_one)) + c for c in slacks)


def _drift(guarantee: Guarantee, beta: float) -> float:
    """How far the records' distribution, given the answers, is from the population's, save with probability β."""
    worst = guarantee.epsilon(0.0)
    surely = math.tanh(worst / 2) if math.isfinite(worst) else 1.0
    if beta == 0:
        return surely
    likely = (
        (math.expm1(epsilon) + 2 * guarantee.delta(epsilon) / beta) / (math.exp(epsilon) + 1)
        for epsilon in _EPSILONS.tolist()
    )
    return min(surely, *likely)


def _replace(guarantee: Guarantee) -> Guarantee:
    if guarantee.unit.relation == "replace":
        return guarantee
    raise UnsupportedGuarantee(
        "DP203",
        "only a guarantee for one replaced record says something about the population.",
        why="the proof exchanges one record for a fresh one, and the number of records stays what it is.",
        fix="compute the guarantee for one replaced record:  privacy.pure(…, relation='replace')",
    )
