# SPDX-License-Identifier: Apache-2.0
"""The worst adaptive analyst never gets beyond the claim; where a limit is wrong, the same search shows it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from discreet import privacy
from discreet.errors import OverBudget
from discreet.ledger import Asker, Limit
from discreet.ledger.costs import State
from tests.ledger.adversary import laplace, leaky_response, response, table, worst

#: What the search itself may be off.
ROUNDING = 1e-10


def test_the_pure_filter_keeps_epsilon_with_certainty():
    mechanisms = [response(0.5), response(0.25), laplace(4.0, 2), laplace(10.0, 3)]
    limit = Limit.filter(epsilon=1)
    assert worst(limit, mechanisms, 1.0, 5) <= ROUNDING
    assert worst(limit, mechanisms, 0.95, 5) > 0.01, "the budget is used up, so less than ε is not kept"


@pytest.mark.parametrize("delta", [0.02, 0.2])
@pytest.mark.parametrize("kind", ["lanes", "zcdp"])
def test_a_filter_keeps_its_claim(kind, delta):
    mechanisms = [response(0.7), response(0.3), leaky_response(0.2, delta / 25), laplace(3.0, 2)]
    limit = Limit.filter(epsilon=1, delta=delta, kind=kind)
    reached = worst(limit, mechanisms, 1.0, 6)
    assert delta / 20 < reached <= delta + ROUNDING


def test_tracks_may_be_mixed_along_a_path():
    """Some answers fill the pure track and others the Rényi track; the claim holds for every mixture."""
    mechanisms = [response(0.9), response(0.35), response(0.1), leaky_response(0.0001, 0.005)]
    limit = Limit.filter(epsilon=1, delta=0.1)
    assert 0.003 < worst(limit, mechanisms, 1.0, 7) <= 0.1


def test_the_gaussian_filter_keeps_the_whole_curve():
    mechanisms = [response(0.5), response(0.3), response(0.1)]
    limit = Limit.filter(mu=0.8)
    for epsilon in (0.0, 0.3, 0.8, 1.5):
        assert worst(limit, mechanisms, epsilon, 6) <= limit.guarantee.delta(epsilon) + ROUNDING


def random_tables(seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        p, q = rng.dirichlet([0.7, 0.7, 0.7], 2) * 0.96 + 0.01
        yield table((p / p.sum()).tolist(), (q / q.sum()).tolist())


@pytest.mark.parametrize("seed", range(6))
def test_truncated_pairs_keep_the_claim(seed):
    """Random pairs with a rare great loss: dear as they stand, so that the menu offers to truncate them."""
    rare = table([0.01, 0.5, 0.49], [0.0001, 0.495, 0.5049])
    limit = Limit.filter(epsilon=1.5, delta=0.3)
    mechanisms = [rare, *random_tables(seed)]
    names = {row.name for mechanism in mechanisms for row in limit.cost(mechanism.guarantee).rows}
    assert "truncated" in names
    assert worst(limit, mechanisms, 1.5, 4) <= 0.3 + ROUNDING


def test_the_search_finds_a_filter_that_is_too_generous():
    """The same search against a Rényi track three times too wide, which `Filter` itself would refuse to be."""
    mechanisms = [response(0.7), response(0.3)]
    limit = Limit.filter(epsilon=1, delta=0.02, kind="tracks")
    pure, renyi = limit.tracks
    wide = replace_unproved(limit, tracks=(pure, replace(renyi, total=3 * renyi.total)))
    assert worst(limit, mechanisms, 1.0, 6) <= 0.02 < worst(wide, mechanisms, 1.0, 6)


def replace_unproved(limit, **changes):
    """A filter with other constants, past its own proof."""
    made = object.__new__(type(limit))
    for name in limit.__dataclass_fields__:
        object.__setattr__(made, name, changes.get(name, getattr(limit, name)))
    return made


class Natural:
    """What looks natural: compose all that was run, and stop when the curve of it crosses (ε, δ)."""

    def __init__(self, epsilon, delta):
        self.target = privacy.approximate(epsilon, delta)
        self.known = {}

    def start(self):
        return State({})

    def cost(self, guarantee):
        self.known[repr(guarantee)] = guarantee
        return guarantee

    def admit(self, state, guarantee):
        after = state.plus({repr(guarantee): Fraction(1)})
        bag = [int(count) * self.known[name] for name, count in after.items()]
        total = bag[0]
        for more in bag[1:]:
            total = total + more
        slack = 1 + 1e-9  # the counterexample sits on the edge exactly
        if total.delta(self.target.epsilon_) > self.target.delta_ * slack:
            raise OverBudget("DP601", "crossed", why="", fix="")
        return after


def natural_counterexample(epsilon, delta, first):
    """RR(e), then RR(a) if the answer was 0 and a leak of δ if it was 1; each branch alone is on the edge of (ε, δ)."""
    p = 1 / (1 + math.exp(-first))
    low, high = epsilon - first, epsilon + first
    for _ in range(200):  # p·δ_A(ε - e) = δ
        middle = (low + high) / 2
        reached = p * privacy.randomized_response(middle).delta(epsilon - first)
        low, high = (middle, high) if reached < delta else (low, middle)
    return response(first), response(low), leaky_response(1e-90, delta)


@pytest.mark.parametrize(("first", "delta"), [(0.05, 1e-6), (0.3, 1e-3)])
def test_the_natural_filter_does_not_keep_its_claim(first, delta):
    """δ·(1 + 1/(1 + e^e)) instead of δ: a curve is not something to pay with."""
    one, two, leak = natural_counterexample(1.0, delta, first)
    found = worst(Natural(1.0, delta), [one, two, leak], 1.0, 2)
    assert found == pytest.approx(delta * (1 + 1 / (1 + math.exp(first))), rel=1e-4)
    assert worst(Limit.filter(epsilon=1, delta=delta), [one, two, leak], 1.0, 2) <= delta


def test_a_plan_in_any_order_keeps_its_composition():
    slots = {response(0.8): 1, response(0.4): 2, leaky_response(0.2, 0.03): 1}
    bag = [count * small.guarantee for small, count in slots.items()]
    limit = Limit.plan(bag[0] + bag[1] + bag[2])
    weaker = [response(0.3), response(0.7)]
    for epsilon in (0.2, 0.6, 1.1):
        reached = worst(limit, [*slots, *weaker], epsilon, 4)
        assert reached == pytest.approx(limit.guarantee.delta(epsilon), rel=1e-6)
        assert reached <= limit.guarantee.delta(epsilon) + ROUNDING


def test_a_reserved_allocation_keeps_its_own_guarantee():
    limit = Limit.filter(epsilon=1, delta=0.1, analysts={"ana": 0.5, "bo": 0.5}, reserved=True)
    mechanisms = [response(0.3), response(0.15), leaky_response(0.1, 0.002)]
    guarantee = limit.guarantee_to("ana")
    reached = worst(limit, mechanisms, guarantee.epsilon_, 6, asker=Asker(analyst="ana"))
    assert reached <= guarantee.delta_ + ROUNDING
    assert guarantee.epsilon_ < 1


def crossing(limit, losses, constant, questions):
    """The greatest probability, over what she may ask, that the loss of randomized responses is ever above the line."""
    costs = [float(limit.cost(privacy.randomized_response(loss)).rows[0].amounts["rho"]) for loss in losses]

    @cache
    def crossed(asked, truths):
        rho = math.fsum(n * cost for n, cost in zip(asked, costs, strict=True))
        loss = math.fsum((2 * k - n) * e for n, k, e in zip(asked, truths, losses, strict=True))
        if loss > rho * float(1 + limit.rate) + constant:
            return 1.0
        options = [0.0]
        for i, epsilon in enumerate(losses) if sum(asked) < questions else ():
            truth = 1 / (1 + math.exp(-epsilon))
            more = tuple(n + (j == i) for j, n in enumerate(asked))
            told = tuple(k + (j == i) for j, k in enumerate(truths))
            options.append(truth * crossed(more, told) + (1 - truth) * crossed(more, truths))
        return max(options)

    return crossed((0,) * len(losses), (0,) * len(losses))


class Stopped:
    """An odometer that is read until its bound would exceed ε."""

    def __init__(self, odometer, epsilon):
        self.odometer, self.epsilon = odometer, epsilon
        self.start, self.cost = odometer.start, odometer.cost

    def admit(self, state, cost):
        after = self.odometer.admit(state, cost)
        if self.odometer.bound(after) > self.epsilon:
            raise OverBudget("DP601", "above", why="", fix="")
        return after


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 3.0])
def test_an_odometer_keeps_what_it_says_as_epsilon_and_delta(epsilon):
    """At whatever moment she stops while the bound is ε at most, failures of mechanisms included."""
    odometer = Limit.odometer(delta=0.2, rho=0.4)
    mechanisms = [response(0.6), response(0.3), leaky_response(0.2, 0.05), leaky_response(0.0001, 0.14)]
    reached = worst(Stopped(odometer, epsilon), mechanisms, epsilon, 5)
    assert 0.1 < reached <= 0.2 + ROUNDING


def test_the_loss_itself_exceeds_an_odometers_bound_far_more_often_than_delta():
    """Why it says (ε, δ): a failure that is spread over likely outcomes moves each of their losses above ε a little."""
    truth = math.exp(0.5) / (1 + math.exp(0.5))
    small = 0.01
    p, q = (truth + small, 1 - truth - small), (1 - truth, truth)
    assert p[0] - math.exp(0.5) * q[0] == pytest.approx(small), "(0.5, 0.01) is kept"
    odometer = Limit.odometer(delta=0.2)
    state = odometer.admit(odometer.start(), odometer.cost(privacy.approximate(0.5, small)))
    assert odometer.bound(state) == 0.5
    assert math.log(p[0] / q[0]) > 0.5
    assert p[0] > 0.6, "and not with probability δ"
    said = " ".join([*odometer.describe(), str(odometer.budget(state))])
    assert "except with probability" not in said


def test_the_odometers_line_is_crossed_as_rarely_as_it_says():
    limit = Limit.odometer(delta=0.2, rho=0.4)
    constant = float(limit.constant)
    assert 0.001 < crossing(limit, (0.6, 0.25), constant, 16) <= 0.05
    assert crossing(limit, (0.6, 0.25), constant / 4, 16) > 0.2, "with a lower line the search would tell"
