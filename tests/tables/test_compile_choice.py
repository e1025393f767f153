# SPDX-License-Identifier: Apache-2.0
"""Quantiles, extremes and modes: exact distributions on all small tables, and samplers that follow them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import RefusedQuestion
from discreet.privacy import exponential
from discreet.tables.plan import ranks
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.chance import may_fail
from tests.statistical.constants import ALPHA, FEW, WRONG
from tests.statistical.fit import accepts
from tests.tables.small import WARD, dataset, number, people, question, weighted

X = number(0, 3)
WARDS = ("a", "b")
PEOPLE = list(people((0, 1, 3, None), most=2))
BASES = [*itertools.combinations_with_replacement([((w, v),) for w in WARDS for v in (0, 3)], 3), ()]
BASES = BASES[::3]


def misses(counts, rank, times):
    """b·dist(rank, [L, U]) at every place, by definition."""
    before = np.concatenate(([0], np.cumsum(counts)))
    return np.array(
        [max(0, times * before[y] - rank, rank - times * before[y + 1]) for y in range(len(counts))]
    )


def rank_distribution(part, counts, one):
    fine = part.sums.scheme.fine
    total = sum(counts)
    if one.kind == "quantile":
        share = Fraction(*one.fraction)
        miss, scale = misses(counts, share.numerator * total, share.denominator), part._scale(share, fine)
    else:
        extra = np.zeros_like(counts)
        extra[-1 if one.kind == "min" else 0] = part.beyond * fine  # public rows at the far end
        target = part.beyond * fine if one.kind == "min" else total
        miss, scale = misses(counts + extra, target, 1), part._scale(None, fine)
    weights = np.exp(-(miss - miss.min()) / float(scale))
    return weights / weights.sum()


def mode_distribution(part, counts):
    weights = np.exp((counts - max(counts)) / float(part.scale))
    return weights / weights.sum()


def spans(distributions, others):
    """The extreme log ratios of independent choices, one for each group."""
    ratios = [np.log(p / q) for p, q in zip(distributions, others, strict=True)]
    return sum(r.min() for r in ratios), sum(r.max() for r in ratios)


def worst_loss(vectors, distribution, relation, bases):
    """The largest range of the log ratio over all neighbours; vectors[person][group] are counts."""
    worst = 0.0
    for base in bases:
        start = sum(vectors[who] for who in base) if base else 0 * vectors[()]
        distributions = [[distribution(group) for group in start + vectors[who]] for who in PEOPLE]
        for one, other in itertools.product(
            distributions, distributions if relation == "replace" else [distributions[0]]
        ):
            low, high = spans(one, other)
            worst = max(worst, high - low)
    return worst


def counted(sums, groups, places):
    """For every person, the counts of each place in each group."""
    found = {}
    for who in PEOPLE:
        own = weighted(sums, who)
        found[who] = np.array([[own.get((*g, y), (0,))[0] for y in places] for g in groups])
    return found


RANKED = [
    ("quantile", X, {"fraction": (1, 2)}),
    ("quantile", X, {"fraction": (9, 10)}),
    ("quantile", X, {"fraction": (0, 1)}),
    ("max", X),
    ("min", X),
]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("keys", [None, WARDS], ids=["total", "groups"])
@pytest.mark.parametrize("asked", RANKED, ids=["median", "q90", "q0", "max", "min"])
def test_a_rank_costs_one_choice_for_all_groups(asked, keys, relation):
    mechanism = compile_question(
        question(asked, keys=keys), dataset(at_most=1, relation=relation), Spend(epsilon=2.0)
    )
    (part,) = mechanism.stages
    (one,) = mechanism.question.aggregates
    vectors = counted(part.sums, mechanism.groups, range(4))
    bases = [base for base in BASES if base] if relation == "add-remove" else BASES[1:3]
    worst = worst_loss(vectors, lambda counts: rank_distribution(part, counts, one), relation, bases)
    intervals = part.strategy.has_intervals * ranks.intervals_epsilon(part.epsilon)
    assert 2.0 - 1e-12 <= part.epsilon * part.strategy.choices + intervals <= 2.0
    assert worst <= part.epsilon + 1e-9
    assert worst >= 0.2 * part.epsilon, "the noise is far more than any unit needs"


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("keys", [None, WARDS], ids=["total", "groups"])
def test_a_mode_costs_one_choice_for_all_groups(keys, relation):
    asked = ("mode", X, {"values": (0, 1, 2, 3)})
    mechanism = compile_question(
        question(asked, keys=keys), dataset(at_most=2, relation=relation), Spend(epsilon=2.0)
    )
    (part,) = mechanism.stages
    sums = part.sums
    vectors = counted(sums, mechanism.groups, range(4))
    worst = worst_loss(vectors, lambda counts: mode_distribution(part, counts), relation, BASES[1:3])
    assert 1.0 - 1e-9 <= worst <= 2.0 + 1e-9


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_three_quantiles_cost_two_choices(relation, monkeypatch):
    monkeypatch.setattr(ranks, "_LOTS", 2)
    asked = [("quantile", X, {"fraction": (i, 4)}) for i in (1, 2, 3)]
    mechanism = compile_question(question(*asked), dataset(at_most=2, relation=relation), Spend(epsilon=4.0))
    (part,) = mechanism.stages
    # The last one is for the intervals.
    words = {"unit": "id", "relation": relation}
    assert part.guarantee == 2 * exponential(1.0, **words) + exponential(2.0, **words)
    fine = part.sums.scheme.fine * 2

    def node(counts, share, low, high):
        miss = misses(
            counts[low : high + 1], share.numerator * sum(counts[low : high + 1]), share.denominator
        )
        weights = np.exp(-(miss - miss.min()) / float(part._scale(share, fine)))
        return weights / weights.sum()

    def tree(counts):
        """log P of the middle, and of both sides given the middle."""
        middle = np.log(node(counts, Fraction(1, 2), 0, 7))
        sides = []
        for y in range(8):
            right = counts.copy()
            right[: y + 1] = 0  # rows up to the middle went left
            half = Fraction(1, 2)
            sides.append((np.log(node(counts, half, 0, y)), np.log(node(right, half, y, 7))))
        return middle, sides

    vectors = {who: np.repeat(row[0], 2) for who, row in counted(part.sums, [()], range(4)).items()}
    worst = 0.0
    for base in BASES[1:4]:
        start = sum(vectors[who] for who in base)
        trees = [tree(start + vectors[who]) for who in PEOPLE]
        pairs = itertools.product(trees, trees if relation == "replace" else [trees[0]])
        for (top, sides), (other_top, other_sides) in pairs:
            for y in range(8):
                gaps = [a - b for a, b in zip(sides[y], other_sides[y], strict=True)]
                low = top[y] - other_top[y] + sum(gap.min() for gap in gaps)
                high = top[y] - other_top[y] + sum(gap.max() for gap in gaps)
                worst = max(worst, abs(low), abs(high))
    assert 0.6 <= worst <= 2.0 + 1e-9


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_a_place_is_drawn_by_its_distribution():
    places, weights = np.array([1, 3, 4]), np.array([5, 20, 1], object)
    counts = np.array([0, 5, 0, 20, 1, 0, 0])

    def distribution(scale):
        weighs = np.exp(-misses(counts, 13, 1) / scale)
        return weighs / weighs.sum()

    drawn = np.array([ranks._choose(places, weights, (0, 6), (13, 1), Fraction(4)) for _ in range(FEW // 2)])
    accepts(drawn, lambda k: distribution(4.0)[k], lambda k: distribution(4.0 * (1 - 2 * WRONG))[k])


def test_ranks_of_clear_data_are_right():
    table = [(("a", i % 4),) for i in range(2000)] + [(("b", 3),)] * 600
    asked = [("quantile", X, {"fraction": (i, 8)}) for i in (1, 3, 5, 7)]
    spend = Spend(epsilon=20.0)
    answer = compile_question(question(*asked, keys=WARDS), dataset(table), spend).draw(dataset(table))
    assert [row[1::3] for row in answer.rows()] == [(0, 1, 2, 3), (3, 3, 3, 3)]
    asked = [("min", X), ("max", X), ("quantile", X, {"fraction": (3, 8)})]
    mechanism = compile_question(question(*asked, keys=WARDS), dataset(table), spend)
    assert [row[1::3] for row in mechanism.draw(dataset(table)).rows()] == [(0, 3, 1), (3, 3, 3)]
    assert mechanism.error() == {"min0": None, "max1": None, "quantile2": None}
    assert any("not the extreme value" in note for note in mechanism.notes)


def test_a_mode_of_clear_data_is_right_and_needs_public_values():
    table = [(("a", 1),)] * 500 + [(("b", 2),)] * 400
    asked = question(("mode", WARD, {"values": ("a", "b", "c")}))
    answer = compile_question(asked, dataset(table), Spend(epsilon=1)).draw(dataset(table))
    assert answer.value == "a"
    for values in (None, (), ("a", None)):
        with pytest.raises(RefusedQuestion) as refused:
            compile_question(question(("mode", WARD, {"values": values})), dataset(), Spend(epsilon=1))
        assert refused.value.code == "DP706"
    with pytest.raises(RefusedQuestion):
        compile_question(question(("max", WARD)), dataset(), Spend(epsilon=1))


def test_a_range_is_cut_into_bins_that_cover_it():
    for kind in (number(-7, 5000).of, number(0, 10**9, places=3).of, number(3, 3).of):
        bins = ranks.ValueBins.of(kind)
        assert bins.count <= 4096
        assert (kind.high - kind.low) // bins.width == bins.count - 1
        low, high = kind.bounds
        assert all(low <= bins.value(place) <= high for place in (0, bins.count // 2, bins.count - 1))
    assert math.isclose(ranks.ValueBins.of(number(0, 10).of).value(7), 7)
