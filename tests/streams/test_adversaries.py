# SPDX-License-Identifier: Apache-2.0
"""The best adaptive adversary of a tiny stream, by dynamic programming over all transcripts.

The adversary chooses the contribution of a unit in each period after seeing the rows before it, within its bound. What it
reaches is computed exactly from the law of the rounded noise. It never exceeds the claim, and comes close to it.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from discreet import privacy
from discreet.streams import Factor, Participation, independent

TINY = Factor((3, 2, 1), 3)


@cache
def law(scale: float, reach: int) -> np.ndarray:
    """The probabilities of round(N(0, scale²)) from -reach to reach; the tails beyond are added at the ends."""
    ends = np.concatenate([[-np.inf], np.arange(-reach, reach) + 0.5, [np.inf]]) / scale
    # differences of the smaller tails, so that small probabilities keep their digits
    return np.where(ends[1:] <= 0, ndtr(ends[1:]) - ndtr(ends[:-1]), ndtr(-ends[:-1]) - ndtr(-ends[1:]))


def shifted(scale: float, shift: int, reach: int) -> np.ndarray:
    ends = (np.concatenate([[-np.inf], np.arange(-reach, reach) + 0.5, [np.inf]]) - shift) / scale
    return np.where(ends[1:] <= 0, ndtr(ends[1:]) - ndtr(ends[:-1]), ndtr(-ends[:-1]) - ndtr(-ends[1:]))


def allowed(pattern: tuple[int, ...], bound: Participation) -> bool:
    active = [at for at, value in enumerate(pattern) if value]
    if max(map(abs, pattern)) > bound.rows:
        return False
    if bound.periods is None:
        return sum(map(abs, pattern)) <= bound.rows
    far = all(later - before >= bound.apart for before, later in itertools.pairwise(active))
    return len(active) <= bound.periods and far


def best_delta(
    factor: Factor, bound: Participation, scale: float, epsilon: float, *, draws: int = 1
) -> float:
    """The greatest δ that any adaptive choice of contributions reaches; each row is shown `draws` times."""
    reach = math.ceil(7 * scale) + 8
    gamma = math.exp(epsilon)

    def value(pattern: tuple[int, ...], ratios: np.ndarray) -> np.ndarray:
        """E_Q (L - γ)₊ from here on, for each likelihood ratio L that is possible now."""
        t = len(pattern)
        if t == factor.periods:
            return np.maximum(ratios - gamma, 0.0)
        best = np.zeros_like(ratios)
        q = law(scale, reach)
        for contribution in range(-bound.rows, bound.rows + 1):
            longer = (*pattern, contribution)
            if not allowed(longer, bound):
                continue
            shift = sum(n * longer[t - lag] for lag, n in enumerate(factor.coefficients[: t + 1]))
            p = shifted(scale, shift, reach)
            steps = np.ones(1)
            weights = np.ones(1)
            for _ in range(draws):
                steps = np.multiply.outer(steps, p / q).ravel()
                weights = np.multiply.outer(weights, q).ravel()
            if shift == 0:
                reached = value(longer, ratios)
            else:
                inner = np.multiply.outer(ratios, steps)
                reached = value(longer, inner.ravel()).reshape(inner.shape) @ weights
            best = np.maximum(best, reached)
        return best

    return float(value((), np.ones(1))[0])


CASES = [
    (TINY, Participation(), 3.0),
    (TINY, Participation(periods=2), 5.0),
    (Factor((2, 1), 2), Participation(rows=2), 4.0),
    (independent(3), Participation(periods=2, apart=2), 2.5),
]


@pytest.mark.parametrize(("factor", "bound", "scale"), CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_no_adaptive_adversary_exceeds_the_claim_and_the_best_reaches_it(factor, bound, scale, epsilon):
    claim = privacy.gaussian(scale / math.sqrt(bound.squared_sensitivity(factor))).delta(epsilon)
    reached = best_delta(factor, bound, scale, epsilon)
    assert reached <= claim * (1 + 1e-9)
    # Rounding the noise of so small a scale loses a little; nothing else is lost where one pattern is the worst.
    assert reached >= 0.9 * claim


def test_a_row_that_is_drawn_twice_breaks_the_claim():
    factor, bound, scale = Factor((2, 1), 2), Participation(), 3.0
    claim = privacy.gaussian(scale / math.sqrt(bound.squared_sensitivity(factor))).delta(0.5)
    assert best_delta(factor, bound, scale, 0.5) <= claim
    assert best_delta(factor, bound, scale, 0.5, draws=2) > 1.5 * claim


def test_a_bound_by_periods_that_ignored_the_gap_would_be_refuted():
    """The claim for contributions far apart is false for contributions next to each other."""
    factor, scale = TINY, 5.0
    far = Participation(periods=2, apart=2)
    claim = privacy.gaussian(scale / math.sqrt(far.squared_sensitivity(factor))).delta(0.5)
    assert best_delta(factor, far, scale, 0.5) <= claim
    assert best_delta(factor, Participation(periods=2), scale, 0.5) > 1.01 * claim
