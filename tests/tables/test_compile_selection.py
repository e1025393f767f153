# SPDX-License-Identifier: Apache-2.0
"""Naming groups: the exact distribution of what is named, on all small tables, against the guarantee."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from discreet.errors import RefusedQuestion
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.tables.algebra.sums import GroupScheme
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.selection import (
    count_selection,
    gaussian_selection,
    laplace_selection,
    threshold_for,
    weight_in_each_group,
)
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.stage import QueryScope
from tests.tables.small import ROWS, WARD, contribution, dataset, engine, number, question

WARDS = ("a", "b", "c")
SETS = [tuple(s) for many in range(4) for s in itertools.combinations(WARDS, many)]
LEAK = 0.05


def tail(law, t):
    """P(noise >= t), by textbook formulas."""
    if isinstance(law, LaplaceDistribution):
        q = math.exp(-1 / law.scale)
        return q**t / (1 + q) if t >= 1 else 1 - q ** (1 - t) / (1 + q)
    return stats.norm.sf((t - 0.5) / law.scale)


def distribution_of(selection, table):
    """The probabilities of all eight sets of named groups."""
    people = [tuple((ward, 1) for ward in held) for held in table]
    weights = engine(people).sums(selection.sums)
    shown = []
    for ward in WARDS:
        weight = weights.get((ward,), (0,))[0]
        shown.append(tail(selection.distribution, selection.threshold - weight) if weight else 0.0)
    return np.array(
        [
            math.prod(p if named else 1 - p for p, named in zip(shown, names, strict=True))
            for names in itertools.product((True, False), repeat=3)
        ]
    )


def selections(relation):
    scope = QueryScope(ROWS, (WARD,), contribution(at_most=3, groups=2, relation=relation))
    return [laplace_selection(scope, 1, LEAK), gaussian_selection(scope, 1.5, LEAK)]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("which", [0, 1], ids=["laplace", "gaussian"])
def test_what_is_named_keeps_the_guarantee(which, relation):
    selection = selections(relation)[which]
    epsilons = [0.0, 0.3, 0.7, 1.0, 1.5]
    guaranteed = [selection.guarantee.delta(epsilon) for epsilon in epsilons]
    worst = np.zeros(len(epsilons))
    for others in itertools.combinations_with_replacement(SETS, 2):
        laws = [distribution_of(selection, (*others, held)) for held in SETS]
        against = laws if relation == "replace" else [laws[0]]
        for one, other in itertools.product(laws, against):
            for p, q in ((one, other), (other, one)):
                found = [np.maximum(p - math.exp(epsilon) * q, 0).sum() for epsilon in epsilons]
                worst = np.maximum(worst, found)
    assert (worst <= np.array(guaranteed) * (1 + 1e-9)).all()
    assert worst[-1] >= 0.5 * LEAK, "the leak is nowhere near what it may be"


def counted_distribution(selection, table, wards=("a", "b"), reach=70):
    """The exact distribution of everything that counts as selection release: which groups, and their numbers."""
    weights = engine(table).sums(selection.sums)
    q = math.exp(-1 / selection.distribution.scale)
    law = np.ones(1)
    for ward in wards:
        weight = weights.get((ward,), (0,))[0]
        values = np.arange(selection.threshold, selection.threshold + reach)
        shown = (1 - q) / (1 + q) * q ** np.abs(values - weight) if weight else np.zeros(reach)
        above = tail(selection.distribution, selection.threshold + reach - weight) if weight else 0.0
        law = np.outer(law, [1 - shown.sum() - above, above, *shown]).ravel()
    return law


ONE_OR_BOTH = [(), (("a", 1),), (("a", 1), ("b", 1)), (("a", 1),) * 2, (("a", 1),) * 3 + (("b", 1),)]


def worst_excess(selection, relation, guaranteed):
    """The most by which an exact δ exceeds the guaranteed one, over tables of up to three people."""
    excess = dict.fromkeys(guaranteed, 0.0)
    for others in itertools.combinations_with_replacement(ONE_OR_BOTH, 2):
        laws = [counted_distribution(selection, (*others, held)) for held in ONE_OR_BOTH]
        for one, other in itertools.product(laws, laws if relation == "replace" else [laws[0]]):
            for p, q in ((one, other), (other, one)):
                for epsilon in guaranteed:
                    found = np.maximum(p - math.exp(epsilon) * q, 0).sum()
                    excess[epsilon] = max(excess[epsilon], found)
    return {epsilon: excess[epsilon] / guaranteed[epsilon] for epsilon in guaranteed}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_count_that_selects_keeps_the_guarantee(relation, monkeypatch):
    monkeypatch.setattr("discreet.tables.plan.selection._FINE", 4)
    scope = QueryScope(ROWS, (WARD,), contribution(at_most=2, relation=relation))
    (count,) = question(("count",), keys="unknown").aggregates
    selection = count_selection(scope, 1, LEAK, [count])
    guaranteed = {epsilon: selection.guarantee.delta(epsilon) for epsilon in (0.0, 0.3, 0.7, 1.0, 1.5)}
    ratios = worst_excess(selection, relation, guaranteed)
    assert max(ratios.values()) <= 1 + 1e-9
    assert ratios[1.0] >= 0.5, "the leak is nowhere near what it may be"
    # A threshold that forgets the two rows of one person guarantees too much.
    lower = replace(selection, threshold=selection.threshold - 2 * 4)
    assert max(worst_excess(lower, relation, guaranteed).values()) > 1.1
    # So does a group that exists because of people who are in too many groups.
    everywhere = [tuple((ward, 1) for ward in ("a", "b", "c", "d"))] * 9
    assert selection.max_groups == 3
    assert engine([*everywhere, (("a", 1),)]).sums(selection.sums) == {("a",): (4,)}
    assert engine(everywhere).sums(selection.sums) == {}


def test_a_count_selects_where_it_is_asked_for():
    people = [(("b", 1),) * 2] * 300 + [(("a", 1),)] * 300 + [((None, 1),)] * 300 + [(("c", 1),)]
    spend = Spend(epsilon=1, delta=1e-9)
    asked = question(("count",), keys="unknown")
    mechanism = compile_question(asked, dataset(people, at_most=2), spend)
    assert mechanism.selection.counts_rows
    answer = mechanism.draw(dataset(people, at_most=2))
    assert answer.groups == (("a",), ("b",), (None,))
    for (low, high), rows in zip(
        zip(answer.columns["count0"].lo, answer.columns["count0"].hi, strict=True),
        (300, 600, 300),
        strict=True,
    ):
        assert low - 30 <= rows <= high + 30
    # As precise as if the keys were public: all of ε is spent on the count.
    public = compile_question(replace_keys(asked), dataset(at_most=2), Spend(epsilon=1))
    assert mechanism.error()["count0"] <= public.error()["count0"] * 1.001
    # A quotient has the same weights above and below, so its count does not select.
    ratio = replace(asked, quotients=frozenset({"count0"}))
    assert not compile_question(ratio, dataset(people, at_most=2), spend).selection.counts_rows


def replace_keys(asked):
    return replace(asked, keys=tuple(replace(key, values=("a", "b")) for key in asked.keys))


def test_a_threshold_one_lower_leaks_more():
    scheme, law = GroupScheme(3, 8, norm=1), LaplaceDistribution(4.0)
    threshold = threshold_for(scheme, law, LEAK)

    def leak(at):
        return max(1 - (1 - tail(law, at - weight_in_each_group(scheme, m))) ** m for m in (1, 2, 3))

    assert leak(threshold) <= LEAK < leak(threshold - 1)


def test_many_groups_are_bounded_by_doubling():
    scheme, law = GroupScheme(50_000, 4096, norm=2), LaplaceDistribution(3000.0)
    at = threshold_for(scheme, law, 1e-6)
    for m in (1, 2, 1000, 1025, 1500, 2050, 4100, 30_000, 50_000):
        assert -math.expm1(m * math.log1p(-tail(law, at - weight_in_each_group(scheme, m)))) <= 1e-6


def test_nobody_is_named_by_somebody_in_too_many_groups():
    everywhere = engine([(("a", 1), ("b", 1), ("c", 1))] * 100)
    for selection in selections("add-remove"):
        at_any_weight = replace(selection, threshold=-(10**9))
        assert at_any_weight.draw(everywhere).groups == []
        assert at_any_weight.draw(engine([(("b", 1),)])).groups == [("b",)]


def test_large_groups_are_named_in_order_and_small_ones_are_not():
    people = [(("b", 1),)] * 300 + [(("a", 1),)] * 300 + [((None, 1),)] * 300 + [(("c", 1),)]
    asked = question(("count",), keys="unknown")
    for spend in (Spend(epsilon=1, delta=1e-9), Spend(rho=0.5, delta=1e-9)):
        mechanism = compile_question(asked, dataset(people, at_most=1), spend)
        answer = mechanism.draw(dataset(people, at_most=1))
        assert answer.groups == (("a",), ("b",), (None,))
        assert "Smaller groups may exist." in answer.suppressed
        assert mechanism.guarantee.implies(spend.target(mechanism.unit))


def test_nothing_is_named_in_an_empty_table():
    asked = question(("count",), ("mean", number(0, 5)), ("max", number(0, 5)), keys="unknown")
    for spend in (Spend(epsilon=1, delta=1e-6), Spend(rho=0.5, delta=1e-6)):
        answer = compile_question(asked, dataset(), spend).draw(dataset())
        assert len(answer) == 0


def test_stated_groups_are_what_counts():
    for at_most, groups, most in ((1, 1, 1), (3, 5, 5), (3, None, 1000), (5000, None, 5000)):
        scope = QueryScope(ROWS, (WARD,), contribution(at_most=at_most, groups=groups))
        assert gaussian_selection(scope, 1.0, LEAK).max_groups == most


def test_finding_keys_needs_a_delta():
    with pytest.raises(RefusedQuestion) as refused:
        compile_question(question(("count",), keys="unknown"), dataset(), Spend(epsilon=1))
    assert refused.value.code == "DP704"
    assert "delta=1e-6" in refused.value.fix


def test_names_alone_can_be_asked_for():
    people = [(("b", 1),)] * 300
    spend = Spend(epsilon=1, delta=1e-9)
    mechanism = compile_question(question(keys="unknown"), dataset(people), spend)
    assert mechanism.draw(dataset(people)).groups == (("b",),)
