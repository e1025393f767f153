# SPDX-License-Identifier: Apache-2.0
"""The intervals of quantiles and extremes: exact chances that they fail, and exact losses, on all small tables."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from discreet import testing
from discreet.tables.ask.question import AnswerColumn
from discreet.tables.ask.released import ReleasedColumn, ReleasedOperation
from discreet.tables.plan.brackets import BinWeights, QuantileIntervals
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.ranks import intervals_epsilon
from discreet.tables.plan.spend import Spend
from tests.chance import may_fail
from tests.statistical.constants import ALPHA, FEW, WRONG
from tests.statistical.fit import accepts
from tests.tables.small import dataset, number, people, question, weighted

LAST = 4
HALF, QUARTERS = Fraction(1, 2), (Fraction(1, 4), Fraction(3, 4))
SHARES = [(HALF,), QUARTERS, (Fraction(0),), (Fraction(1),), (Fraction(9, 10),), (Fraction(1, 4), HALF)]
METHODS = (  # the nine of Hyndman and Fan, and the rows that they lie between
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen"),
    *("weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher"),
)
TABLES = [
    *itertools.chain.from_iterable(
        itertools.combinations_with_replacement(range(LAST + 1), rows) for rows in (1, 2, 3)
    ),
    *((low,) * 40 + (high,) * many for low in (0, 1, 3) for high in (2, 4) for many in (0, 39, 200)),
]


def counts_of(values, fine=1):
    places, weights = np.unique(np.array(values, np.int64), return_counts=True)
    return BinWeights(places, (weights * fine).astype(object), fine)


def distribution_of(brackets, counts):
    """The chance of every rung, by definition."""
    rungs, misses = brackets.misses(counts)
    assert misses.min() == 0
    weights = 2.0 ** np.arange(len(rungs)) * np.exp(-misses.astype(float) / float(brackets.scale))
    return rungs, weights / weights.sum()


@cache
def quantiles_of(values, share):
    """The least and the greatest quantile by all definitions."""
    exact = [np.quantile(values, float(share), method=how) for how in METHODS]
    return min(exact) + 1e-9, max(exact) - 1e-9


def chances(brackets, values):
    """That some quantile, by some definition, lies outside of its interval; and that the interval is everything."""
    exact = [quantiles_of(values, share) for share in brackets.shares]
    rungs, distribution = distribution_of(brackets, counts_of(values))
    fails = [
        any(low > least or high < most for (low, high), (least, most) in zip(rung, exact, strict=True))
        for rung in rungs
    ]
    return distribution[fails].sum(), distribution[-1]


@pytest.mark.parametrize("shares", SHARES, ids=str)
def test_intervals_fail_no_more_often_than_they_may(shares):
    worst, sure = 0.0, 1.0
    for scale, values in itertools.product((Fraction(1, 9), Fraction(30)), TABLES):
        for drawn in itertools.combinations_with_replacement((0, 1, LAST), len(shares)):
            fails, everything = chances(QuantileIntervals(drawn, shares, LAST, scale, 0.05), values)
            worst, sure = max(worst, fails), min(sure, everything)
    assert worst <= 0.05
    assert worst > 0.002, "intervals are far wider than they need to be"
    assert sure < 0.05, "an interval that is always everything says nothing"


def test_a_target_that_is_too_small_fails_too_often(monkeypatch):
    right = QuantileIntervals.target
    monkeypatch.setattr(QuantileIntervals, "target", lambda self, fine: right(self, fine) // 2)
    brackets = QuantileIntervals((2,), (HALF,), LAST, Fraction(30), 0.05)
    assert max(chances(brackets, values)[0] for values in TABLES) > 0.05


def test_weights_that_do_not_grow_fail_too_often():
    """With equal weights many narrow rungs would win together."""
    values, brackets = (90,) * 40, QuantileIntervals((0,), (HALF,), 90, Fraction(30), 0.05)
    _, misses = brackets.misses(counts_of(values))
    equal = np.exp(-misses / 30)
    assert chances(brackets, values)[0] <= 0.05 < equal[:-1].sum() / equal.sum()


def test_all_rungs_are_nested_and_end_at_the_bounds():
    for drawn in itertools.combinations_with_replacement(range(0, 101, 20), 3):
        rungs = QuantileIntervals(drawn, (*QUARTERS, Fraction(9, 10)), 100, Fraction(1), 0.05).ladder()
        assert rungs[-1] == ((0, 100),) * 3
        assert len(set(rungs)) == len(rungs)
        steps = np.diff(np.array(rungs), axis=0)
        assert (steps[:, :, 0] <= 0).all()
        assert (steps[:, :, 1] >= 0).all()
        assert all(low <= y <= high for y, (low, high) in zip(drawn, rungs[0], strict=True))
    assert len(QuantileIntervals((0,), (HALF,), 4095, Fraction(1), 0.05).ladder()) < 33


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("keys", [None, ("a", "b")], ids=["total", "groups"])
@pytest.mark.parametrize("shares", [((1, 2),), ((1, 4), (3, 4)), ((9, 10),), ((0, 1),)], ids=str)
def test_intervals_cost_one_choice_for_all_groups(shares, keys, relation):
    """The range of the log ratio of the second choice, whatever was drawn first: all neighbours of some tables."""
    asked = [("quantile", number(0, 3), {"fraction": share}) for share in shares]
    data = dataset(at_most=1, relation=relation)
    mechanism = compile_question(question(*asked, keys=keys), data, Spend(epsilon=2.0))
    (part,) = mechanism.stages
    fine, each = part.sums.scheme.fine, intervals_epsilon(part.epsilon)
    assert part.epsilon * part.strategy.choices + each <= 2.0
    everybody = list(people((0, 1, 3), most=2))
    own = {who: weighted(part.sums, who) for who in everybody}
    drawn = [tuple(sorted(y)) for y in itertools.product((0, 1, 3), repeat=len(shares))]
    worst = 0.0
    for base, at in itertools.product(([((("a", 0),))] * 2, [(("a", 3),), (("b", 1),), (("a", 1),)]), drawn):
        brackets = QuantileIntervals(at, part.strategy.shares, 3, part._widest_scale(fine), 0.05)
        distributions = {
            who: [
                distribution_of(brackets, counts)[1]
                for counts in by_group(
                    [weighted(part.sums, one) for one in base] + [own[who]], mechanism.groups, fine
                )
            ]
            for who in everybody
        }
        others = everybody if relation == "replace" else [()]
        for one, other in itertools.product(everybody, others):
            ratios = [np.log(p / q) for p, q in zip(distributions[one], distributions[other], strict=True)]
            worst = max(worst, sum(r.max() for r in ratios) - sum(r.min() for r in ratios))
    assert worst <= each + 1e-9
    assert worst >= 0.4 * each, "the noise is far more than any unit needs"


def by_group(people_sums, groups, fine):
    for group in groups:
        weights = [sum(own.get((*group, y), (0,))[0] for own in people_sums) for y in range(4)]
        places = np.flatnonzero(weights)
        yield BinWeights(places, np.array([weights[y] for y in places], object), fine)


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_a_rung_is_drawn_by_its_distribution():
    values = list(range(41)) * 2
    brackets = QuantileIntervals((20,), (HALF,), 40, Fraction(8), 0.05)
    rungs, misses = brackets.misses(counts_of(values))

    def distribution(scale):
        weights = 2.0 ** np.arange(len(rungs)) * np.exp(-misses.astype(float) / scale)
        return weights / weights.sum()

    drawn = np.array([rungs.index(brackets.draw(counts_of(values))) for _ in range(FEW // 4)])
    accepts(drawn, lambda k: distribution(8.0)[k], lambda k: distribution(8.0 * (1 - 2 * WRONG))[k])


def extreme_distribution(part, values, word):
    """The chance of every place to be answered for an extreme of values in 0, …, 9; by definition."""
    t = part.beyond
    mirrored = values if word == "min" else [9 - x for x in values]
    upto = [sum(x <= y for x in mirrored) + t * (y == 9) for y in range(10)]
    before = [sum(x < y for x in mirrored) for y in range(10)]
    miss = np.array([max(0, b - t, t - u) for b, u in zip(before, upto, strict=True)])
    assert miss.min() == 0
    distribution = np.exp(-miss / float(part._scale(None, 1)))
    return (distribution / distribution.sum())[:: 1 if word == "min" else -1]


@pytest.mark.parametrize("word", ["min", "max"])
def test_an_extreme_lies_between_the_answer_and_the_bound(word):
    """The exact chance that it does not, for small groups too."""
    data = dataset(rows_are_units=True)
    (part,) = compile_question(question((word, number(0, 9))), data, Spend(epsilon=1.0)).stages
    t, worst = part.beyond, 0.0
    for values in [(5,), (0, 9), (9,) * 3, (0,) * 5, (4,) * t, (4,) * (t - 1) + (8,), (1,) * 3 * t]:
        distribution = extreme_distribution(part, values, word)
        worst = max(
            worst,
            distribution[: min(values)].sum() if word == "min" else distribution[max(values) + 1 :].sum(),
        )
    assert 0.001 < worst <= 0.05
    many = dataset([(("a", 5),)] * 300, rows_are_units=True)
    (row,) = compile_question(question((word, number(0, 9))), many, Spend(epsilon=50.0)).draw(many)
    name = f"{word}0"
    assert (row[f"{name}_lo"], row[name], row[f"{name}_hi"]) == ((0, 5, 5) if word == "min" else (5, 5, 9))


@may_fail(2 * ALPHA, "one distribution fits, one does not")
@pytest.mark.parametrize("word", ["min", "max"])
def test_an_extreme_is_drawn_by_its_distribution(word):
    values = (3, 3, 5)
    data = dataset([(("a", x),) for x in values], rows_are_units=True)
    (part,) = compile_question(question((word, number(0, 9))), data, Spend(epsilon=2.0)).stages
    held = [(3, 2), (5, 1)]
    drawn = np.array([part._choose_bins(held)[word][0] for _ in range(FEW // 4)])
    accepts(
        drawn,
        lambda k: extreme_distribution(part, values, word)[k],
        lambda k: extreme_distribution(part, (), word)[k],
    )


def test_ends_hold_the_numbers_that_a_bin_stands_for():
    """Bins of several cells, and cells that numbers are rounded down to. An interval misses once in twenty draws."""
    table = [(("a", 1000.7),)] * 4000
    for x, low, high in (
        (number(0, 2**20, places=4), 1000.7 - 32, 1000.7 + 32),
        (number(0, 5000), 999, 1002),
    ):
        asked = question(("quantile", x, {"fraction": (1, 2)}), ("min", x), ("max", x))
        with testing.seeded(1):
            (row,) = compile_question(asked, dataset(table), Spend(epsilon=20)).draw(dataset(table))
        exact = 1000.7 if x.of.places else 1000
        assert low <= row["quantile0_lo"] <= exact <= row["quantile0_hi"] <= high
        assert row["min1_lo"] == 0
        assert row["min1_hi"] >= exact
        assert row["max2_lo"] <= exact
        assert row["max2_hi"] == float(x.of.bounds[1])


def test_quartiles_hold_together_and_their_difference_has_an_interval():
    x = number(0, 100)
    table = [(("a", i % 101),) for i in range(5000)]
    asked = question(("quantile", x, {"fraction": (1, 4)}), ("quantile", x, {"fraction": (3, 4)}), ("count",))
    names = ("quantile0", "quantile1", "count2")
    parts = tuple(ReleasedColumn(name) for name in names)
    outputs = (
        AnswerColumn("range", ReleasedOperation("-", (parts[1], parts[0]))),
        AnswerColumn("sum", ReleasedOperation("+", (parts[0], parts[2]))),
    )
    asked = type(asked)(asked.rows, asked.aggregates, asked.keys, outputs=outputs)
    with testing.seeded(1):
        (row,) = compile_question(asked, dataset(table), Spend(epsilon=3)).draw(dataset(table))
    assert 40 <= row["range_lo"] <= 50 <= row["range_hi"] <= 60
    assert row["sum_hi"] - row["sum_lo"] >= 100  # at more than 95 % nothing but the bounds is known


def test_the_cost_of_intervals_is_stated():
    x = number(0, 100)
    mechanism = compile_question(
        question(("quantile", x, {"fraction": (1, 2)})), dataset(at_most=3), Spend(epsilon=1)
    )
    value, interval = 0.3333333333333333, 0.6666666666666666
    expected = f"exponential(epsilon={value}, unit='id') + exponential(epsilon={interval}, unit='id')"
    assert repr(mechanism.guarantee) == expected
    text = str(mechanism.preview())
    assert "and epsilon 0.6667 for the interval" in text
    assert "interval to about" in text
