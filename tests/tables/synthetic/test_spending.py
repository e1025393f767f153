# SPDX-License-Identifier: Apache-2.0
"""The parts of a copy cost no more than was stated, together and by another computation."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import discreet as dp
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.privacy.unit import Unit
from discreet.tables.plan.spend import Spend
from discreet.tables.synthetic.spending import AimSpending, SynthesisSpending, joint_noise

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


@pytest.mark.parametrize("parts", [[(3.0, 1)], [(1.7, 1), (0.1, 20), (40.3, 1)], [(1e-3, 5), (1e6, 1)]])
def test_several_gaussian_mechanisms_cost_no_less_than_they_are_said_to(parts):
    """In fractions, by both readings of a float; and hardly more."""
    noise = joint_noise(parts)
    cost = sum(count / min(exactly(part), Fraction(part)) ** 2 for part, count in parts)
    assert cost <= 1 / max(exactly(noise), Fraction(noise)) ** 2 <= cost * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("rounds", [0, 20])
def test_the_parts_compose_to_the_guarantee(rounds):
    """By the curve of all parts one by one, which is computed in another way."""
    spending = SynthesisSpending.of(Spend(epsilon=10, delta=1e-6), 0.3, Unit(), rounds)
    parts = dp.privacy.gaussian(spending.pairs) + dp.privacy.gaussian(spending.check)
    if rounds:
        parts += rounds * (dp.privacy.gaussian(spending.table) + dp.privacy.exponential(spending.choice))
    for delta in (1e-9, 1e-6, 1e-2):
        assert spending.guarantee.epsilon(delta) == pytest.approx(parts.epsilon(delta), rel=1e-3)


def test_the_rounds_of_aim_and_the_check_add_up():
    spending = AimSpending.of(Spend(rho=0.1), 0.2, Unit())
    total = Fraction(spending.rho) + 1 / (2 * Fraction(spending.check) ** 2)
    assert spending.guarantee.concentrated() >= total > Fraction(999, 10_000)
    assert spending.check**-2 / 2 == pytest.approx(0.2 * 0.1, rel=1e-4)


def test_a_pure_epsilon_is_refused_with_a_fix_that_works():
    with pytest.raises(BadParameter) as caught:
        SynthesisSpending.of(Spend(epsilon=0.3), 0.01, Unit(), 0)
    words = eval(f"dict({caught.value.fix})")
    assert SynthesisSpending.of(Spend(**words), 0.01, Unit(), 0).pairs > 0
