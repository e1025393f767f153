# SPDX-License-Identifier: Apache-2.0
"""The odometer's line, and the one thing that it refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet import privacy
from discreet.errors import OverBudget
from discreet.ledger import Limit
from tests.ledger.conftest import spend


def test_the_pure_sum_is_exact_at_any_time():
    limit = Limit.odometer(delta=1e-6)
    assert limit.bound(limit.start()) == 0
    assert limit.bound(spend(limit, *[privacy.pure(0.1)] * 3)) == math.nextafter(0.3, 1)


def test_the_line_touches_the_concentrated_bound_where_it_was_made_for():
    """ρ + 2√(ρ·log 1/δ') at ρ, above it elsewhere."""
    limit = Limit.odometer(delta=1e-6, rho=0.1)
    log = -math.log(0.25e-6)
    for count, rho in ((40, 0.05), (80, 0.1), (240, 0.3)):
        state = spend(limit, *[privacy.gaussian(20.0)] * count)
        assert float(state["rho"]) == pytest.approx(rho)
        best = rho + 2 * math.sqrt(rho * log)
        assert limit.bound(state) == pytest.approx(best, rel=3e-3 if rho == 0.1 else 0.3)
        assert limit.bound(state) >= best * (1 - 1e-7)


def test_the_rate_is_fixed_when_it_is_made():
    limit = Limit.odometer(delta=1e-6, rho=0.1)
    assert Limit.from_dict(limit.to_dict()).rate == limit.rate
    exact = -math.log(0.25e-6) / float(limit.rate)
    assert 0 <= float(limit.constant) - exact < 1e-12


def test_only_leaks_are_ever_refused():
    limit = Limit.odometer(delta=1e-6)
    state = spend(limit, privacy.pure(1000.0), privacy.gaussian(0.01), privacy.leaky(6.5e-7))
    assert limit.budget(state).like(privacy.gaussian(1.0)) == math.inf
    assert limit.budget(state).like(privacy.leaky(4e-8)) == 2
    with pytest.raises(OverBudget, match="DP601"):
        limit.admit(state, limit.cost(privacy.leaky(1.1e-7)))


def test_the_account_is_kept_for_those_that_need_it():
    limit = Limit.odometer(delta=1e-6)
    assert spend(limit, privacy.gaussian(20.0))["delta"] == 0
    assert spend(limit, privacy.renyi(8, 0.1))["delta"] > 0


def test_an_odometer_says_what_all_answers_cost_so_far():
    limit = Limit.odometer(delta=1e-6)
    state = spend(limit, privacy.pure(0.5))
    assert "all answers so far: ε = 0.5 at δ = 1e-06" in str(limit.budget(state))
    assert limit.budget(state).tracks[1].spent == Fraction(1, 2)
