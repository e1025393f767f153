# SPDX-License-Identifier: Apache-2.0
"""Exact audits hold the truth between their bounds, whatever a walk leaves open."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet import privacy, testing
from discreet.audit import exact
from discreet.errors import BadParameter


def table(p, q):
    return lambda data: dict(enumerate(p if data == 0 else q))


def test_a_table_agrees_with_the_guarantee_of_the_same_table():
    p, q = [0.5, 0.3, 0.2], [0.25, 0.25, 0.5]
    report, guarantee = exact(table(p, q), 0, 1), privacy.pair(p, q, relation="replace")
    for epsilon in (0.0, 0.2, 0.5, 0.8, 2.0):
        low, high = report.delta(epsilon)
        assert low <= high
        assert high == pytest.approx(guarantee.delta(epsilon), abs=1e-12)
    for delta in (0.0, 0.01, 0.1, 0.24):
        low, high = report.epsilon(delta)
        assert low <= high
        assert high == pytest.approx(guarantee.epsilon(delta), abs=1e-9)


def test_a_refutation_and_a_confirmation():
    report = exact(table([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]), 0, 1)
    assert report.keeps(math.log(3))
    assert not report.keeps(math.log(3) - 1e-9)
    assert not report.refutes(privacy.randomized_response(math.log(3)))
    assert report.refutes(privacy.pure(math.log(3) - 1e-6))
    assert report.keeps(0.0, 0.5)
    assert not report.keeps(0.0, 0.499)
    assert report.refutes(privacy.gaussian(2.0))


def test_an_outcome_of_one_input_only_has_no_epsilon():
    report = exact(table([0.9, 0.1, 0.0], [0.9, 0.0, 0.1]), 0, 1)
    assert report.epsilon() == (math.inf, math.inf)
    assert report.epsilon(0.2) == (0.0, 0.0)
    low, high = report.delta(1000.0)
    assert low == pytest.approx(0.1)
    assert high == 1.0


def walked_coin(bit):
    """Randomized response with truth 2/3: two bits, again where they are 3; a walk of 12 bits leaves 4^-6 open."""

    def sampler(source):
        while (drawn := source.bits(2)) == 3:
            pass
        return bit if drawn < 2 else 1 - bit

    return testing.walk(sampler, 12)


def test_a_walk_is_a_distribution():
    report = exact(walked_coin, 0, 1)
    assert report.open == Fraction(1, 4**6)
    low, high = report.delta(0.0)
    assert low <= 1 / 3 <= high
    assert high - low < 1e-3
    closed = exact(walked_coin, 0, 1, closed=True)
    assert closed.epsilon()[0] <= math.log(2) <= closed.epsilon()[1] < math.log(2) + 1e-3


def test_what_is_open_may_be_an_outcome_of_its_own():
    def distribution(data):
        return ({0: Fraction(1, 2), 1: Fraction(1, 4)}, Fraction(1, 4)) if data == 0 else {0: 0.5, 1: 0.5}

    assert exact(distribution, 0, 1).delta(0.0)[1] >= 0.25  # all of the open mass on a third outcome
    assert exact(distribution, 0, 1).epsilon()[1] == math.inf


def test_a_walk_encloses_the_truth_in_spite_of_what_it_leaves_open():
    report = exact(
        lambda bit: (
            {bit: Fraction(2, 3) - Fraction(1, 512), 1 - bit: Fraction(1, 3) - Fraction(1, 512)},
            Fraction(1, 256),
        ),
        0,
        1,
    )
    low, high = report.delta(0.0)
    assert low <= 1 / 3 <= high
    assert high - low < 0.02
    low, high = report.epsilon(0.1)
    truth = privacy.randomized_response(math.log(2)).epsilon(0.1)
    assert low <= truth <= high
    assert report.epsilon()[1] == math.inf
    closed = exact(
        lambda bit: ({bit: Fraction(2, 3), 1 - bit: Fraction(1, 3) - Fraction(1, 256)}, Fraction(1, 256)),
        0,
        1,
        closed=True,
    )
    assert closed.epsilon()[0] <= math.log(2) <= closed.epsilon()[1] < 0.72


def test_an_object_may_state_its_probabilities():
    class Coin:
        def probabilities(self, bit):
            return {bit: Fraction(3, 5), 1 - bit: Fraction(2, 5)}

    assert exact(Coin(), 0, 1).epsilon()[1] == pytest.approx(math.log(1.5))


@pytest.mark.parametrize("distribution", [{0: 0.5, 1: 0.6}, {0: -0.5, 1: 1.5}, ({0: 0.5}, 0.1)])
def test_masses_that_are_no_distribution_are_refused(distribution):
    with pytest.raises(BadParameter) as caught:
        exact(lambda _: distribution, 0, 1)
    assert caught.value.code == "DP106"
