# SPDX-License-Identifier: Apache-2.0
"""The second-moment matrix: its sensitivity, its exact sums, its noise."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from discreet.learn import moments
from discreet.learn.moments import NoisyMoments, symmetric_noise
from tests.chance import may_fail
from tests.statistical.constants import ALPHA, WRONG
from tests.statistical.fit import accepts_only


def rounded_gaussian(k: np.ndarray, scale: float) -> np.ndarray:
    return stats.norm.cdf((k + 0.5) / scale) - stats.norm.cdf((k - 0.5) / scale)


def test_the_sensitivity_is_never_exceeded_and_is_attained() -> None:
    """All whole vectors of norm at most 5 in three dimensions."""
    rows = [np.array(row) for row in product(range(-5, 6), repeat=3) if sum(x * x for x in row) <= 25]
    alone = max(int((np.outer(row, row) ** 2).sum()) for row in rows)
    assert alone == 25**2
    swapped = max(((np.outer(a, a) - np.outer(b, b)) ** 2).sum() for a in rows for b in rows[::3])
    assert swapped == 2 * 25**2


def test_sums_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "symmetric_noise", lambda width, _: np.zeros((width, width), np.int64))
    rng = np.random.default_rng(1)
    rows = rng.integers(-(2**13), 2**13, (5000, 3)).astype(float)
    released = NoisyMoments.release([rows[:2000], rows[2000:]], 3, bits=14, noise=1.0, relation="add-remove")
    exact = [
        [sum(int(a) * int(b) for a, b in zip(rows[:, i], rows[:, j], strict=True)) for j in range(3)]
        for i in range(3)
    ]
    assert (released.matrix * 4.0**14 == exact).all()


def test_the_noise_is_mirrored() -> None:
    noise = symmetric_noise(40, 1000.0)
    assert (noise == noise.T).all()
    assert len(set(noise[np.triu_indices(40)].tolist())) > 100


@may_fail(3 * ALPHA, "one distribution fits, two do not")
def test_the_diagonal_has_the_stated_noise() -> None:
    accepts_only(
        lambda s, n: np.concatenate([np.diag(symmetric_noise(4, s)) for _ in range(n // 4)]),
        rounded_gaussian,
        5.0,
        40_000,
    )


@may_fail(3 * ALPHA, "one distribution fits, two do not")
def test_the_rest_has_half_its_variance() -> None:
    def off(scale: float, count: int) -> np.ndarray:
        return symmetric_noise(math.isqrt(2 * count) + 1, scale * math.sqrt(2))[
            np.triu_indices(math.isqrt(2 * count) + 1, 1)
        ]

    accepts_only(off, rounded_gaussian, 5.0, 40_000)


@pytest.mark.parametrize(("relation", "sensitivity"), [("add-remove", 1.0), ("replace", math.sqrt(2))])
def test_noise_is_in_proportion_to_the_sensitivity(relation: str, sensitivity: float) -> None:
    width, noise = 200, 3.0
    released = NoisyMoments.release([np.zeros((0, width))], width, bits=14, noise=noise, relation=relation)
    total = (
        float((released.matrix**2).sum()) / (noise * sensitivity) ** 2
    )  # Frobenius: each direction counts once
    degrees = width * (width + 1) // 2
    low, high = stats.chi2.ppf([ALPHA, 1 - ALPHA], degrees)
    assert low < total < high
    for factor in (1 - WRONG, 1 + WRONG):
        assert not low < total / factor**2 < high
    assert released.spread == pytest.approx(noise * sensitivity)
    assert released.edge == pytest.approx(math.sqrt(2 * width) * noise * sensitivity)
