# SPDX-License-Identifier: Apache-2.0
"""Private quantiles: their distribution, compared exactly on every small data set, and what no data may change."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.errors import BadParameter
from discreet.mechanisms import quantile
from discreet.mechanisms.quantile import (
    Median,
    Quantile,
    Quantiles,
    private_median,
    private_quantile,
    private_quantiles,
    spread,
)
from tests.chance import may_fail
from tests.statistical import fit
from tests.statistical.constants import ALPHA, FEW

HALF = Fraction(1, 2)
QS = [Fraction(0), Fraction(1, 4), Fraction(1, 3), HALF, Fraction(2, 3), Fraction(1)]
RELATIONS = pytest.mark.parametrize("relation", ["add-remove", "replace"])
BOTH = pytest.mark.parametrize(
    "made",
    [Median, lambda **words: Quantiles([0.25, 0.75], **words)],
    ids=["one", "several"],
)


def miss(data, y, q):
    """How many records the point y is off, straight from the definition."""
    below, up_to, target = sum(x < y for x in data), sum(x <= y for x in data), q * len(data)
    return max(Fraction(0), below - target, target - up_to)


def bags(points, most):
    return [b for n in range(most + 1) for b in itertools.combinations_with_replacement(range(points), n)]


def neighbours(data, points, relation):
    """Every bag that one record away is: with one more record, or with one replaced."""
    if relation == "add-remove":
        return [(*data, x) for x in range(points)]
    return [(*data[:i], x, *data[i + 1 :]) for i in range(len(data)) for x in range(points) if x != data[i]]


def distribution(data, points, q, scale):
    """P(y) ∝ exp(-q.denominator · miss(y) / scale) on 0, …, points - 1."""
    weights = np.exp([-float(q.denominator * miss(data, y, q) / scale) for y in range(points)])
    return weights / weights.sum()


def pairs(points, most, relation):
    return [(d, e) for d in bags(points, most) for e in neighbours(d, points, relation)]


def caught_distribution(monkeypatch, mechanism, data):
    """The scores that the mechanism gives to its race, point by point; each point must occur once."""
    caught = {}

    def race(scores, scale, *, weights):
        caught.update(scores=scores, scale=scale, lengths=weights)
        return np.array([np.flatnonzero(weights)[-1]])

    with monkeypatch.context() as patched:
        patched.setattr(quantile.noise, "largest", race)
        mechanism.draw(list(data))
    return caught["scale"], np.repeat(caught["scores"], caught["lengths"]).tolist()


@RELATIONS
@pytest.mark.parametrize("q", QS)
def test_one_record_moves_two_scores_apart_by_the_spread_and_no_more(q, relation):
    apart = max(
        max(moves) - min(moves)
        for d, e in pairs(3, 5, relation)
        for moves in [[miss(e, y, q) - miss(d, y, q) for y in range(3)]]
    )
    assert spread(q, relation) == q.denominator * apart


def test_an_added_record_raises_one_score_and_lowers_another():
    assert [miss((0, 1), y, HALF) - miss((0,), y, HALF) for y in range(3)] == [0, -HALF, HALF]


@RELATIONS
@pytest.mark.parametrize("q", QS)
def test_the_race_has_the_scores_of_the_definition_for_all_small_data(q, relation, monkeypatch):
    mechanism = Quantile(q, (0, 3), epsilon=0.5, step=1, relation=relation)
    for data in bags(4, 4):
        scale, scores = caught_distribution(monkeypatch, mechanism, data)
        assert scores == [-q.denominator * miss(data, y, q) for y in range(4)]
        assert scale == spread(q, relation) / HALF


@RELATIONS
@pytest.mark.parametrize("q", QS)
def test_the_exact_distribution_keeps_the_guarantee_on_all_small_data(q, relation):
    epsilon, points = 0.5, 3
    guarantee = Quantile(q, (0, 2), epsilon=epsilon, step=1, relation=relation).guarantee
    scale = spread(q, relation) / Fraction(epsilon)
    widest = 0.0
    for d, e in pairs(points, 5, relation):
        one, other = distribution(d, points, q, scale), distribution(e, points, q, scale)
        ratios = np.log(one / other)
        widest = max(widest, np.ptp(ratios))
        assert np.abs(ratios).max() <= epsilon
        for at in (0.0, 0.1, 0.3):
            bound = guarantee.delta(at) + 1e-12
            assert np.maximum(one - math.exp(at) * other, 0).sum() <= bound
            assert np.maximum(other - math.exp(at) * one, 0).sum() <= bound
    assert widest == pytest.approx(epsilon)  # so less noise would break the guarantee


@may_fail(3 * ALPHA, "one distribution fits, two do not")
def test_samples_follow_the_distribution_and_not_that_of_another_epsilon():
    data, q, mechanism = [3, 4, 4, 7, 7, 7], Fraction(1, 4), Quantile(0.25, (0, 9), epsilon=2.0, step=1)
    drawn = np.array([int(mechanism.draw(data)) for _ in range(FEW // 2)])
    scale = spread(q) / Fraction(2)
    fit.accepts(
        drawn,
        lambda y: distribution(data, 10, q, scale)[y],
        lambda y: distribution(data, 10, q, scale / 2)[y],
        lambda y: distribution(data, 10, q, scale * 2)[y],
    )


@RELATIONS
@pytest.mark.parametrize("q", [Fraction(0), Fraction(1, 3), HALF])
def test_the_rank_error_holds_for_all_small_data(q, relation):
    for epsilon, confidence in itertools.product((1, 8), (0.5, 0.95)):
        mechanism = Quantile(q, (0, 3), epsilon=epsilon, step=1, relation=relation)
        error = mechanism.error(confidence)
        for data in bags(4, 5):
            chances = distribution(data, 4, q, spread(q, relation) / Fraction(epsilon))
            beyond = sum(p for y, p in enumerate(chances) if miss(data, y, q) > error)
            assert beyond <= 1 - confidence


def test_the_rank_error_is_nearly_reached_where_all_records_are_equal():
    mechanism = Median((0, 3), epsilon=0.1, step=1)
    count = 2 * int(mechanism.error(0.9))  # every point but one misses by half of them, just not too much
    scale = spread(HALF) / Fraction(1, 10)
    assert distribution([0] * count, 4, HALF, scale)[1:].sum() > 0.1
    assert distribution([0] * (count + 4), 4, HALF, scale)[1:].sum() <= 0.1


@pytest.mark.parametrize("data", [[], [7.3], [50.0] * 9, [-1e300, 1e300], [math.nan, math.inf, None, "x"]])
@pytest.mark.parametrize("q", [0, 0.3, 1])
def test_every_answer_is_a_point_of_the_grid_whatever_the_data(data, q, monkeypatch):
    mechanism = Quantile(q, (0.3, 100), epsilon=1.0, step=0.25)
    _, scores = caught_distribution(monkeypatch, mechanism, data)
    assert len(scores) == mechanism._span.points == 400
    for _ in range(20):
        value = mechanism(data).value
        assert value == 0.3 or (value * 4 == int(value * 4) and 0.3 <= value <= 100)


@BOTH
def test_records_are_clipped_and_what_is_no_number_is_in_the_middle(made):
    span = made(bounds=(0, 8), epsilon=1, step=1)._span
    records = [-5, 3, 3.5, 99, math.inf, -math.inf, math.nan, None, "x", 10**400, Fraction(5, 2), -0.0]
    assert span.cells(records).tolist() == [0, 3, 4, 8, 8, 0, 4, 4, 4, 8, 3, 0]
    assert span.cells(np.array([300, -2], np.int16)).tolist() == [8, 0]


@BOTH
def test_many_equal_records_are_found(made):
    assert np.all(made(bounds=(0, 100), epsilon=1.0)(np.full(2_000, 42.0)).value == 42.0)
    assert np.all(made(bounds=(0, 100), epsilon=1.0, step=1)([100] * 2_000).value == 100.0)
    assert np.all(made(bounds=(0, 100), epsilon=1.0, step=1)([0] * 2_000).value == 0.0)


@pytest.mark.parametrize("q", [0.001, 0.3333333333333333, 0.5, 0.999])
def test_a_quantile_of_a_million_records_is_within_its_error(q):
    data = np.linspace(-3.0, 3.0, 1_000_000)
    mechanism = Quantile(q, (-10, 10), epsilon=0.5)
    rank = np.searchsorted(data, mechanism(data).value)
    assert abs(rank - q * data.size) <= mechanism.error(1 - 1e-12) + 2


@pytest.mark.parametrize(
    "bounds",
    [
        (0, 1e-90),
        (-1e99, 1e99),
        (1e16, 1e16 + 4),
        (-1e-50, 1e50),
        (-7, -3),
        (0.1, 0.1 + 2**-50),
        (-8.5, 2**40),
    ],
)
def test_quantiles_stay_within_bounds_of_every_size(bounds):
    low, high = bounds
    for data in ([], [low, high], np.linspace(low, high, 5), [0.0] * 50):
        assert low <= Median(bounds, epsilon=1.0)(data).value <= high
        several = Quantiles([0.1, 0.5, 0.9], bounds, epsilon=1.0)(data).value
        assert low <= several[0] <= several[1] <= several[2] <= high


def test_a_quantile_is_the_fraction_that_its_author_meant():
    assert Quantile(0.3333333333333333, (0, 1), epsilon=1).q == Fraction(1, 3)
    assert Quantile(0.95, (0, 1), epsilon=1).q == Fraction(19, 20)
    assert Quantile(Fraction(2, 7), (0, 1), epsilon=1).q == Fraction(2, 7)
    assert Quantile(1e-9, (0, 1), epsilon=1).q == 0


@pytest.mark.parametrize("epsilon", [1e-90, 1e-6, 1e4, 1e90])
def test_every_epsilon_answers(epsilon):
    assert 0 <= Median((0, 1), epsilon=epsilon)([0.2, 0.9]).value <= 1
    assert np.ptp(Quantiles([0.2, 0.4], (0, 1), epsilon=epsilon)([0.2, 0.9]).value) <= 1


def test_the_release_carries_its_guarantee_and_no_interval():
    release = private_quantile([1, 2], 0.9, (0, 9), epsilon=0.3, relation="replace", unit="patient")
    assert release.guarantee == privacy.exponential(0.3, relation="replace", unit="patient")
    assert release.interval is None
    assert release.error == Quantile(0.9, (0, 9), epsilon=0.3, relation="replace").error()
    assert private_median([1], (0, 9), epsilon=0.3).guarantee == privacy.exponential(0.3)
    assert Median((0, 9), epsilon=0.3).guarantee_at(distance=3).epsilon(delta=0) == pytest.approx(0.9)
    assert f"at most {release.error:.6g} records (95%)" in str(release)
    several = private_quantiles([1], [0.5], (0, 9), epsilon=0.3)
    assert (several.guarantee, several.error) == (privacy.exponential(0.3), None)


BAD = [
    ({"q": 1.5}, "DP102"),
    ({"q": -0.1}, "DP102"),
    ({"q": True}, "DP104"),
    ({"q": "half"}, "DP104"),
    ({"q": math.nan}, "DP101"),
    ({"bounds": (1, 0)}, "DP107"),
    ({"bounds": (1, 1)}, "DP107"),
    ({"bounds": (0, math.inf)}, "DP101"),
    ({"bounds": (0, math.nan)}, "DP101"),
    ({"bounds": 3}, "DP104"),
    ({"bounds": "ab"}, "DP104"),
    ({"bounds": (0, True)}, "DP104"),
    ({"bounds": (0, 1e300)}, "DP102"),
    ({"epsilon": 0}, "DP102"),
    ({"epsilon": -1}, "DP102"),
    ({"epsilon": math.inf}, "DP101"),
    ({"epsilon": True}, "DP104"),
    ({"step": 0.3}, "DP102"),
    ({"step": 0}, "DP102"),
    ({"step": 4}, "DP107"),
    ({"step": 2.0**-40}, "DP107"),
    ({"relation": "swap"}, "DP105"),
    ({"unit": ""}, "DP104"),
]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Quantile(0.5, epsilon=1),
        lambda: Median(epsilon=1),
        lambda: Quantiles([0.5], epsilon=1),
        lambda: private_quantile([1], 0.5, epsilon=1),
        lambda: private_median([1], epsilon=1),
        lambda: private_quantiles([1], [0.5], epsilon=1),
    ],
)
def test_missing_bounds_are_asked_for(make):
    with pytest.raises(BadParameter, match="bounds must be two numbers") as refused:
        make()
    assert refused.value.code == "DP104"


@pytest.mark.parametrize(("wrong", "code"), BAD)
def test_bad_parameters_are_refused(wrong, code):
    words = {"bounds": (0, 1), "epsilon": 1.0, **wrong}
    q = words.pop("q", 0.5)
    for make in (lambda: Quantile(q, **words), lambda: Quantiles([q], **words)):
        with pytest.raises(BadParameter) as refused:
            make()
        assert refused.value.code == code


@pytest.mark.parametrize("qs", [[], "abc", 0.5, [0.5, 0.5], [0.7, 0.2], [0.5, 0.5 + 1e-9]])
def test_several_quantiles_must_increase(qs):
    with pytest.raises(BadParameter) as refused:
        Quantiles(qs, (0, 1), epsilon=1.0)
    assert refused.value.code in {"DP104", "DP107"}


@pytest.mark.parametrize("amount", [{}, {"epsilon": 1, "rho": 1}, {"rho": 0}, {"rho": math.nan}])
def test_the_amount_of_noise_is_stated_once(amount):
    with pytest.raises(BadParameter):
        Quantiles([0.5], (0, 1), **amount)


@pytest.mark.parametrize("data", [3.5, [[1.0, 2.0]], np.ones((2, 2)), "text"])
@BOTH
def test_only_the_shape_and_the_type_of_data_are_refused(made, data):
    if isinstance(data, list):  # records that are no numbers are in the middle
        assert made(bounds=(0, 1), epsilon=1)(data).value is not None
        return
    with pytest.raises(BadParameter):
        made(bounds=(0, 1), epsilon=1)(data)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 99])
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.7])
def test_several_quantiles_cost_their_levels_and_never_more_than_was_asked(count, epsilon):
    qs = [(i + 1) / (count + 1) for i in range(count)]
    levels = math.ceil(math.log2(count + 1))
    mechanism = Quantiles(qs, (0, 1), epsilon=epsilon)
    assert mechanism.levels == levels
    assert mechanism.guarantee.epsilon(delta=0) == pytest.approx(epsilon, rel=1e-12)
    assert levels * mechanism._epsilon <= Fraction(repr(epsilon))  # exactly
    rho = Quantiles(qs, (0, 1), rho=epsilon).guarantee.concentrated()
    assert epsilon * (1 - 1e-12) <= rho <= epsilon


class _More(Exception):
    """The script of answers has ended; carries the distribution of the next one."""


def _scripted(script):
    """A node that gives the answers of a script, and then stops with the exact distribution of the next one."""
    answers = iter(script)

    def node(places, low, high, q, scale):
        known = next(answers, None)
        if known is not None:
            return known
        local = [int(x) - low for x in places]
        assert all(0 <= x <= high - low for x in local)
        raise _More(low, distribution(local, high - low + 1, q, scale))

    return node


def tree_distribution(monkeypatch, mechanism, data, lots):
    """The joint distribution of the answers: the code's own recursion, with every node replaced by its exact distribution."""
    found, pending = {}, [((), 1.0)]
    with monkeypatch.context() as patched:
        patched.setattr(quantile, "LOTS", max(lots, default=0) + 1)
        patched.setattr(quantile.noise, "uniform", lambda *_: np.array(lots, int))
        while pending:
            script, chance = pending.pop()

            patched.setattr(quantile, "draw_quantile", _scripted(script))
            try:
                outcome = tuple(mechanism.draw(list(data)))
            except _More as more:
                low, chances = more.args
                pending += [((*script, low + y), chance * p) for y, p in enumerate(chances)]
            else:
                found[outcome] = found.get(outcome, 0.0) + chance
    return found


def worst(monkeypatch, mechanism, most, lots, points=3):
    """The greatest log ratio, and the greatest excess of a hockey stick over the guarantee, over all neighbours."""
    distributions = {}

    def distribution_of(data):
        key = tuple(zip(data, lots[: len(data)], strict=True))
        if key not in distributions:
            distributions[key] = tree_distribution(monkeypatch, mechanism, data, lots[: len(data)])
        return distributions[key]

    ratio, excess, guarantee = 0.0, -1.0, mechanism.guarantee
    for d, e in pairs(points, most, guarantee.unit.relation):
        one, other = distribution_of(d), distribution_of(e)
        assert one.keys() == other.keys()  # the same answers are possible
        ratio = max(ratio, *(abs(math.log(one[k] / other[k])) for k in one))
        for at in (0.2, 1.0):
            over = sum(max(0.0, one[k] - math.exp(at) * other[k]) for k in one)
            under = sum(max(0.0, other[k] - math.exp(at) * one[k]) for k in one)
            excess = max(excess, over - guarantee.delta(at), under - guarantee.delta(at))
    return ratio, excess


@RELATIONS
@pytest.mark.parametrize("lots", [(0, 0, 0, 0), (1, 0, 1, 0)])
def test_several_quantiles_keep_their_guarantee_on_all_small_data(relation, lots, monkeypatch):
    qs = [Fraction(1, 4), HALF, Fraction(3, 4)]
    mechanism = Quantiles(qs, (0, 2), epsilon=2.0, step=1, relation=relation)
    ratio, excess = worst(monkeypatch, mechanism, 3, lots)
    assert ratio <= 2.0
    assert excess <= 1e-12
    mechanism._epsilon *= 3  # the search would see three times too little noise
    ratio, excess = worst(monkeypatch, mechanism, 3, lots)
    assert ratio > 2.0
    assert excess > 0


def test_a_replaced_record_needs_half_the_epsilon_in_every_part(monkeypatch):
    qs = [Fraction(1, 4), HALF, Fraction(3, 4)]
    mechanism = Quantiles(qs, (0, 2), epsilon=2.0, step=1, relation="replace")
    mechanism._epsilon *= 2  # as for records that come or go
    ratio, excess = worst(monkeypatch, mechanism, 4, (0,) * 4)
    assert ratio > 2.4
    assert excess > 0.04


def test_several_quantiles_are_accurate():
    data, qs = np.sort(np.linspace(0, 1, 100_000) ** 3), [i / 20 for i in range(1, 20)]
    ranks = np.searchsorted(data, Quantiles(qs, (-5, 5), epsilon=1.0)(data).value)
    # 5 levels, each off by 2/ε · ln(points / β) = 600 records at most, but for a chance of 1e-9
    assert np.abs(ranks - np.array(qs) * data.size).max() < 5 * 600


def test_equal_records_fall_on_both_sides():
    data = np.repeat([1, 42, 50], [3_000, 4_000, 3_000])
    values = Quantiles([0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9], (0, 100), epsilon=5.0)(data).value
    assert values.tolist() == [1, 1, 42, 42, 42, 50, 50]
