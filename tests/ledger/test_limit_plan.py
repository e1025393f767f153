# SPDX-License-Identifier: Apache-2.0
"""Plans: any order, anything that is no less private, and each slot once."""

from __future__ import annotations

import pytest

from discreet import privacy
from discreet.errors import BadParameter, OverBudget, UnitMismatch
from discreet.ledger import Limit
from tests.ledger.conftest import spend


def test_slots_are_used_in_any_order_and_each_once():
    limit = Limit.plan(2 * privacy.gaussian(10.0) + privacy.laplace(20))
    state = spend(limit, privacy.gaussian(10.0), privacy.laplace(20), privacy.gaussian(10.0))
    assert limit.budget(state).spent_fraction == 1
    for guarantee in (privacy.gaussian(1e6), privacy.laplace(1e6)):
        with pytest.raises(OverBudget, match="DP601"):
            spend(limit, guarantee, state=state)


def test_what_is_less_private_than_every_slot_is_refused():
    limit = Limit.plan(2 * privacy.gaussian(10.0) + privacy.laplace(20))
    for guarantee in (
        privacy.gaussian(9.99),
        privacy.laplace(19),
        privacy.leaky(1e-9),
        privacy.discrete_gaussian(1000.0),
    ):
        with pytest.raises(OverBudget):
            spend(limit, guarantee)


def test_a_mechanism_takes_the_most_private_slot_that_it_fits():
    limit = Limit.plan(privacy.gaussian(2.0) + privacy.gaussian(10.0) + privacy.approximate(5, 1e-3))
    state = spend(limit, privacy.gaussian(20.0))
    assert limit.budget(state).like(privacy.gaussian(2.0)) == 2, "the noisier slot went first"
    assert limit.budget(state).like(privacy.gaussian(10.0)) == 2


def test_many_mechanisms_at_once_take_many_slots_or_one_large_one():
    limit = Limit.plan(3 * privacy.gaussian(10.0) + 2 * privacy.gaussian(9.0) + privacy.approximate(1, 1e-6))
    first = spend(limit, 4 * privacy.gaussian(10.0))
    assert limit.budget(first).like(privacy.gaussian(9.0)) == 2, "one slot of that kind, and the large one"
    assert spend(limit, 2 * privacy.gaussian(11.0), state=first), "all of it fits the large one"
    with pytest.raises(OverBudget):
        spend(limit, 20 * privacy.gaussian(10.0), state=first)


def test_a_slot_may_be_a_statement():
    limit = Limit.plan(privacy.concentrated(0.01) + privacy.approximate(1, 1e-6) + privacy.pure(0.5))
    assert (
        limit.budget(spend(limit, privacy.discrete_gaussian(10.0))).like(privacy.discrete_gaussian(10.0)) == 1
    )
    assert spend(limit, privacy.exponential(0.5), privacy.gaussian(10.0), privacy.gaussian(10.0))


def test_a_sampled_slot_takes_the_same_scheme_at_a_lower_rate():
    limit = Limit.plan(100 * privacy.gaussian(1.0).sampled(0.01))
    assert limit.budget(limit.start()).like(privacy.gaussian(1.5).sampled(0.005)) == 100
    assert limit.budget(limit.start()).like(privacy.gaussian(1.5).sampled(0.02)) == 0


def test_a_plan_may_be_held_to_a_target():
    slots = 100 * privacy.gaussian(1.0).sampled(0.001)
    assert Limit.plan(slots, within=privacy.approximate(2, 1e-6)).guarantee == slots
    with pytest.raises(BadParameter, match="DP107"):
        Limit.plan(slots, within=privacy.approximate(0.01, 1e-9))


def test_a_plan_is_made_for_one_unit():
    limit = Limit.plan(privacy.gaussian(1.0))
    with pytest.raises(UnitMismatch, match="DP201"):
        limit.cost(privacy.gaussian(1.0, relation="replace"))
    with pytest.raises(UnitMismatch, match="DP201"):
        limit.guarantee_for(privacy.Unit("patient"))


def test_a_joint_account_admits_more_than_a_filter():
    """The reason to plan: 1,200 sampled steps of one training run fit (3, 1e-6) as a plan, step by step."""
    step = privacy.gaussian(1.0).sampled(0.01)
    plan = Limit.plan(1_200 * step, within=privacy.approximate(3, 1e-6))
    assert plan.budget(plan.start()).like(step) == 1_200
    adaptive = Limit.filter(epsilon=3, delta=1e-6)
    assert adaptive.budget(adaptive.start()).like(step) < 1_200
