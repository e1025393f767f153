# SPDX-License-Identifier: Apache-2.0
"""The parts of a copy cost no more than was stated, together and by another computation."""

from __future__ import annotations

import math

import pytest

import discreet as dp
from discreet.errors import BadParameter
from discreet.privacy.unit import Unit
from discreet.tables.plan.spend import Spend
from discreet.tables.synthetic.spending import SynthesisSpending

SPENDS = [
    Spend(epsilon=0.1, delta=1e-6),
    Spend(epsilon=1, delta=1e-6),
    Spend(epsilon=10, delta=1e-9),
    Spend(rho=0.01),
    Spend(rho=2),
    Spend(rho=2, delta=1e-7),
]


@pytest.mark.parametrize("unit", [Unit(), Unit("patient", "replace")], ids=str)
@pytest.mark.parametrize("share", [0, 0.01, 0.5])
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_the_guarantee_implies_the_spend(spend, share, unit):
    spending = SynthesisSpending.of(spend, share, unit, 20)
    assert spending.guarantee.implies(spend.target(unit))
    assert spending.guarantee.unit == unit
    assert bool(spending.check) == bool(share)


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_the_parts_have_their_shares_of_rho(spend):
    spending = SynthesisSpending.of(spend, 0.01, Unit(), 20)
    costs = [1 / (2 * spending.pairs**2), 1 / (2 * spending.check**2)]
    if spending.tables:
        costs += [20 * spending.choice**2 / 8, 20 / (2 * spending.table**2)]
    total = math.fsum(costs)
    assert costs[1] / total == pytest.approx(0.01)
    if spend.rho is not None and spend.delta is None:
        assert total <= spend.rho
        assert total == pytest.approx(spend.rho, rel=1e-3)


def test_rounds_begin_where_the_budget_is_large():
    assert SynthesisSpending.of(Spend(epsilon=1, delta=1e-6), 0.01, Unit(), 20).tables == 0
    assert SynthesisSpending.of(Spend(epsilon=10, delta=1e-6), 0.01, Unit(), 20).tables == 20
    assert SynthesisSpending.of(Spend(epsilon=10, delta=1e-6), 0.01, Unit(), 0).tables == 0


def test_gaussian_parts_cost_what_one_gaussian_costs():
    """By the closed form: two Gaussian mechanisms are one, with the squares of 1 / noise added."""
    spending = SynthesisSpending.of(Spend(epsilon=1, delta=1e-6), 0.01, Unit(), 0)
    noise = 1 / math.sqrt(1 / spending.pairs**2 + 1 / spending.check**2)
    assert noise == pytest.approx(
        dp.calibrate(dp.privacy.gaussian, to=dp.privacy.approximate(1, 1e-6)), rel=1e-4
    )


def test_a_pure_epsilon_is_refused_with_a_fix_that_works():
    with pytest.raises(BadParameter) as caught:
        SynthesisSpending.of(Spend(epsilon=0.3), 0.01, Unit(), 0)
    words = eval(f"dict({caught.value.fix})")
    assert SynthesisSpending.of(Spend(**words), 0.01, Unit(), 0).pairs > 0
