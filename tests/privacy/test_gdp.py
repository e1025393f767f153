# SPDX-License-Identifier: Apache-2.0
"""The least μ of Gaussian differential privacy, against closed forms and the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from discreet import privacy
from discreet.errors import BadParameter
from discreet.privacy import families
from discreet.privacy.gdp import GaussianFit, needed_mu


@pytest.mark.parametrize("epsilon", [0.1, 5.0])
def test_pure_privacy_has_the_known_mu(epsilon: float) -> None:
    """Randomized response: the curve touches that of Gaussians at its corner (Dong, Roth, Su 2022)."""
    exact = -2 * ndtri(1 / (1 + math.exp(epsilon)))
    assert exact <= privacy.pure(epsilon).gdp() <= exact * 1.004


@pytest.mark.parametrize(
    ("guarantee", "delta"),
    [
        (privacy.laplace(1.0), 0.0),
        (privacy.exponential(2.0), 0.0),
        (privacy.approximate(1.0, 1e-6), 1e-6),
        (privacy.gaussian(1.0).allocated(4), 1e-6),
        (privacy.discrete_gaussian(2.0), 1e-9),
    ],
    ids=repr,
)
def test_the_curve_is_nowhere_above_the_gaussian_one(guarantee: privacy.Guarantee, delta: float) -> None:
    mu = guarantee.gdp(delta=delta)
    ratios = []
    for epsilon in np.linspace(0.0, 6.0, 31).tolist():
        allowed = math.exp(families.gaussian_log_delta(mu, epsilon)) + delta
        assert guarantee.delta(epsilon) <= allowed * (1 + 1e-9)
        ratios.append(needed_mu(epsilon, guarantee.delta(epsilon) - delta) / mu)
    assert max(ratios) > 0.95


def test_gaussian_steps_are_exact() -> None:
    assert (4 * privacy.gaussian(2.0)).gdp() == pytest.approx(1.0, rel=1e-12)
    assert privacy.gaussian(2.0).gdp(regret=True) == GaussianFit(0.5, 0.0, 0.0)
    assert privacy.parallel(privacy.gaussian(1.0), privacy.gaussian(2.0)).gdp() == 1.0


def test_regret_is_the_move_that_covers_the_curve() -> None:
    pure = privacy.pure(1.0)
    found = pure.gdp(regret=True)
    alarms = np.linspace(0.001, 0.999, 200)

    def farthest(move: float) -> float:
        gaussian = ndtr(-ndtri(alarms) - found.mu)
        moved = np.array([pure.tradeoff(min(1.0, float(a) + move)) - move for a in alarms])
        return float(np.max(moved - gaussian))

    assert farthest(found.regret + 1e-3) <= 1e-6
    assert farthest(found.regret - 5e-3) > 1e-4


def test_sampled_steps_need_their_base_or_a_delta() -> None:
    steps = 100 * privacy.gaussian(1.0).sampled(0.01)
    assert steps.gdp() == pytest.approx(10.0)
    assert steps.gdp(delta=1e-6) < 0.3
    assert steps.gdp(delta=1e-6, regret=True).regret < 0.05


def test_what_has_no_mu() -> None:
    assert privacy.leaky(0.1).gdp() == math.inf
    assert privacy.approximate(1.0, 1e-6).gdp(regret=True) == GaussianFit(math.inf, 1.0, 0.0)
    assert (100 * privacy.concentrated(0.1)).gdp() == math.inf
    for delta in (-1.0, 1.0, math.nan, "0"):
        with pytest.raises(BadParameter):
            privacy.laplace(1.0).gdp(delta=delta)  # type: ignore[call-overload]
