# SPDX-License-Identifier: Apache-2.0
"""Batches are drawn as the plan says: exactly so where that can be seen, and statistically where it cannot."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet import privacy, testing
from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch.plan import plan_of
from discreet.learn.torch.sampler import Allocation, draw
from tests.chance import may_fail
from tests.statistical import fit
from tests.statistical.constants import ALPHA, FEW, WRONG


def plan(**settings):
    return plan_of(**({"size": 10, "batch": 3, "steps": 1, "noise": 1.0} | settings))


@pytest.mark.parametrize(("batch", "size"), [(3, 10), (1, 3), (256, 60_000), (7, 8)])
def test_a_word_decides_to_the_last_bit_and_never_too_often(batch, size):
    made = plan(batch=batch, size=size)
    threshold = int(Fraction(made.rate) * 2**64)
    assert Fraction(batch, size) <= Fraction(plan(batch=batch, size=size, sampling="fixed").rate)
    assert Fraction(threshold, 2**64) <= Fraction(made.rate)
    with testing.using(testing.ScriptedSource(words=[threshold - 1, threshold, 0, 2**64 - 1])):
        assert draw(made, 4).tolist() == [0, 2]


@may_fail(3 * ALPHA, "one distribution fits, two do not")
def test_poisson_batches_have_their_rate_at_every_place_and_are_independent():
    made, trials = plan(batch=3, size=10), FEW
    seen = np.zeros((trials, 4), np.int64)
    for row in seen:
        row[draw(made, 4)] = 1
    codes = seen @ np.array([8, 4, 2, 1])

    def distribution(rate):
        return lambda k: np.array(
            [rate ** int(c).bit_count() * (1 - rate) ** (4 - int(c).bit_count()) for c in k]
        )

    fit.accepts(codes, distribution(0.3), distribution(0.3 * (1 - WRONG)), distribution(0.3 * (1 + WRONG)))


@may_fail(ALPHA, "one distribution fits")
@pytest.mark.parametrize("count", [2, 4])
def test_every_set_of_fixed_size_is_equally_likely(count):
    made = plan(sampling="fixed", size=5, batch=count)
    sets = {each: place for place, each in enumerate(itertools.combinations(range(5), count))}
    found = np.array([sets[tuple(draw(made, 5).tolist())] for _ in range(3000)])
    fit.accepts(found, lambda k: np.full(k.size, 1 / len(sets)))


def test_a_full_batch_has_everything():
    assert draw(plan(sampling="full", batch=None, size=7), 7).tolist() == list(range(7))
    assert draw(plan(batch=10, size=10), 4).tolist() == [0, 1, 2, 3]


def test_how_many_records_there_are_need_not_be_what_is_said():
    """With a public size the rate is public, and a data set of another size is sampled at that rate."""
    made = plan(batch=5, size=10)
    sizes = [draw(made, 1000).size for _ in range(50)]
    assert stats.binomtest(sum(sizes), 50_000, 0.5).pvalue > ALPHA
    assert draw(made, 0).size == 0


def test_a_batch_is_in_order_and_has_nobody_twice():
    for made in (plan(batch=4, size=8), plan(sampling="fixed", batch=4, size=8)):
        drawn = draw(made, 8)
        assert (np.diff(drawn) > 0).all()
        assert Counter(drawn.tolist()).most_common(1)[0][1] == 1 if drawn.size else True


def test_allocation_gives_every_record_one_step_of_every_epoch():
    made = plan(sampling="allocated", size=40, batch=10, steps=8)
    assert (made.per_epoch, made.rounds) == (4, 2)
    assert made.guarantee == 2 * privacy.gaussian(1.0).allocated(4)
    allocation = Allocation(made, 40)
    for epoch in (1, 2):
        drawn = np.concatenate([allocation.draw() for _ in range(4)])
        assert sorted(drawn.tolist()) == list(range(40))
        assert allocation.begun == epoch
    with pytest.raises(RefusedTraining, match="another epoch"):
        allocation.draw()


@may_fail(ALPHA, "one law fits, others do not")
def test_the_steps_of_two_records_are_uniform_and_independent():
    made = plan(sampling="allocated", size=6, batch=2, steps=3)
    codes = []
    for _ in range(FEW):
        allocation = Allocation(made, 2)
        where = {record: step for step in range(3) for record in allocation.draw().tolist()}
        codes.append(3 * where[0] + where[1])
    fit.accepts(np.array(codes), lambda k: np.full(k.size, 1 / 9))


def test_allocated_batches_have_no_theorem_for_a_replaced_record():
    assert plan(sampling="allocated", steps=5).guarantee == 2 * privacy.gaussian(1.0).allocated(3)
    with pytest.raises(BadParameter, match="replaced") as refused:
        plan(sampling="allocated", relation="replace")
    assert refused.value.fix == "sampling='poisson'"
    assert plan(sampling="poisson", relation="replace").relation == "replace"
