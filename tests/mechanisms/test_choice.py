# SPDX-License-Identifier: Apache-2.0
"""Choosing: the distributions by enumeration and quadrature, and the guarantees against all neighbours of small cases."""

from __future__ import annotations

import itertools
import math
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from discreet import privacy, testing
from discreet.errors import BadParameter, DiscreetError, UnsupportedGuarantee
from discreet.mechanisms.choice import (
    ExponentialMechanism,
    NoisyMax,
    PermuteAndFlip,
    TopK,
    choose,
    exponential_mechanism,
    noisy_max,
    permute_and_flip,
)
from discreet.mechanisms.conformance import check_mechanism
from tests.chance import may_fail
from tests.finite import em_distribution, hockey_stick, pf_distribution
from tests.statistical.constants import ALPHA, FEW
from tests.statistical.fit import accepts

SCORES = (0, 1, 2.5, 3)
KINDS = {
    "gumbel": lambda **words: NoisyMax(noise="gumbel", **words),
    "exponential": lambda **words: NoisyMax(noise="exponential", **words),
    "laplace": lambda **words: NoisyMax(noise="laplace", **words),
    "em": ExponentialMechanism,
    "pf": PermuteAndFlip,
}


# --- distributions, by other means than the race ----------------------------------------------------------------------------


def noisy_distribution(scores, scale, noise):
    """P(i has the largest noisy score): Gauss and Legendre between the kinks."""
    u = np.asarray(scores, float) / float(scale)
    density, below = {
        "laplace": (
            lambda z: np.exp(-abs(z)) / 2,
            lambda z: np.where(z < 0, np.exp(z) / 2, 1 - np.exp(-z) / 2),
        ),
        "exponential": (lambda z: np.exp(-z) * (z >= 0), lambda z: -np.expm1(-np.maximum(z, 0))),
        "gumbel": (lambda z: np.exp(-z - np.exp(-z)), lambda z: np.exp(-np.exp(-z))),
    }[noise]
    knots = np.unique(np.concatenate([u, np.linspace(u.min() - 40, u.max() + 45, 60)]))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    at = ((knots[1:] + knots[:-1])[:, None] + np.diff(knots)[:, None] * nodes) / 2
    mass = np.diff(knots)[:, None] / 2 * weights
    distribution = []
    for i in range(len(u)):
        value = density(at - u[i])
        for j in range(len(u)):
            value = value * (below(at - u[j]) if j != i else 1)
        distribution.append(float((value * mass).sum()))
    return np.array(distribution)


def distribution_of(mechanism, scores):
    return (
        em_distribution(scores, mechanism.scale)
        if mechanism.noise == "gumbel"
        else pf_or_noisy(mechanism, scores)
    )


def pf_or_noisy(mechanism, scores):
    if mechanism.noise == "exponential":
        return pf_distribution(scores, mechanism.scale)
    return noisy_distribution(scores, mechanism.scale, mechanism.noise)


def peeling_distribution(scores, scale, count):
    """The ordered choices of `count` exponential mechanisms, each on what is left."""
    distribution = {}
    for order in itertools.permutations(range(len(scores)), count):
        chance, left = 1.0, list(range(len(scores)))
        for i in order:
            chance *= em_distribution([scores[j] for j in left], scale)[left.index(i)]
            left.remove(i)
        distribution[order] = chance
    return distribution


def worst_ratio(mechanism, pairs):
    worst = 0.0
    for one, other in pairs:
        loss = np.log(distribution_of(mechanism, one)) - np.log(distribution_of(mechanism, other))
        worst = max(worst, np.abs(loss).max())
    return worst


def general_pairs(size=3, top=3):
    """Scores that move by one at most, each on its own."""
    steps = list(itertools.product((-1, 0, 1), repeat=size))
    for u in itertools.product(range(0, top + 1, 3), repeat=size):
        for step in steps:
            yield u, tuple(a + b for a, b in zip(u, step, strict=True))


def monotone_pairs(size=3):
    for u in itertools.product((0, 1, 4), repeat=size):
        for step in itertools.product((0, 1), repeat=size):
            yield u, tuple(a + b for a, b in zip(u, step, strict=True))


# --- the numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "distribution", "noise", "expected"),
    [
        (
            PermuteAndFlip,
            pf_distribution,
            "exponential",
            (0.07424924482905, 0.12783540977227, 0.31801458991782, 0.47990075548086),
        ),
        (
            ExponentialMechanism,
            em_distribution,
            "gumbel",
            (0.09415527994057, 0.15523581278674, 0.32863421824842, 0.42197468902427),
        ),
    ],
)
def test_a_distribution_is_that_of_scores_with_its_noise(mechanism, distribution, noise, expected):
    assert distribution(SCORES, mechanism(epsilon=1, sensitivity=1).scale) == pytest.approx(
        expected, abs=1e-13
    )
    assert noisy_distribution(SCORES, 2, noise) == pytest.approx(expected, abs=1e-12)


def test_the_auction():
    """Prices 1, 1.01, 3.01, 3.02 for bids of 1, 1, 1, 3.01; weight exp(u/Δ) is ε = 2."""
    prices, bids = [1, 1.01, 3.01, 3.02], [1, 1, 1, 3.01]
    revenue = [price * sum(bid >= price for bid in bids) for price in prices]
    assert revenue == [4, 1.01, 3.01, 0]
    auction = ExponentialMechanism(epsilon=2, sensitivity=3.02, candidates=prices)
    expected = [0.424091140737, 0.157571947193, 0.305556228952, 0.112780683118]
    assert em_distribution(revenue, auction.scale) == pytest.approx(expected, abs=1e-12)
    assert auction(revenue).value in prices


@may_fail(2 * ALPHA, "one distribution fits, one does not")
@pytest.mark.parametrize("name", ["em", "pf", "laplace"])
def test_what_is_drawn_has_the_distribution_and_not_that_of_half_the_noise(name):
    mechanism = KINDS[name](epsilon=1, sensitivity=1)
    half = KINDS[name](epsilon=1, sensitivity=1, monotone=True)
    samples = np.array([mechanism.draw(SCORES) for _ in range(FEW)])
    accepts(
        samples, lambda k: distribution_of(mechanism, SCORES)[k], lambda k: distribution_of(half, SCORES)[k]
    )


# --- the guarantees --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_neighbours_are_told_apart_by_more_than_epsilon(name, epsilon):
    mechanism = KINDS[name](epsilon=epsilon, sensitivity=1)
    assert worst_ratio(mechanism, general_pairs()) <= epsilon + 1e-9
    assert mechanism.guarantee.epsilon(delta=0) == epsilon


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_monotone_scores_need_half_the_noise(name, epsilon):
    mechanism = KINDS[name](epsilon=epsilon, sensitivity=1, monotone=True)
    assert mechanism.scale == Fraction(1) / Fraction(str(epsilon))
    assert worst_ratio(mechanism, monotone_pairs()) <= epsilon + 1e-9


@pytest.mark.parametrize("name", KINDS)
def test_scores_that_are_not_monotone_break_the_noise_of_monotone_ones(name):
    mechanism = KINDS[name](epsilon=1, sensitivity=1, monotone=True)
    opposed = [((0, *[10] * 7), (1, *[9] * 7))] if mechanism.noise == "gumbel" else [((0, 10), (-1, 11))]
    assert worst_ratio(mechanism, opposed) > 1.5


@pytest.mark.parametrize("monotone", [False, True])
def test_the_losses_of_the_exponential_mechanism_span_epsilon_at_most(monotone):
    epsilon = 1.5
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=1, monotone=monotone)
    spans, curve = [], 0.0
    for one, other in monotone_pairs() if monotone else general_pairs():
        p, q = distribution_of(mechanism, one), distribution_of(mechanism, other)
        loss = np.log(p) - np.log(q)
        spans.append(loss.max() - loss.min())
        for at in (0.0, 0.3, 0.8):
            for a, b in ((p, q), (q, p)):
                curve = max(curve, hockey_stick(a, b, at) / mechanism.guarantee.delta(at))
    assert max(spans) == pytest.approx(epsilon, abs=1e-9)
    assert 0.8 < curve <= 1 + 1e-9


def test_permute_and_flip_has_no_bounded_range():
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=1)
    spans = []
    for one, other in general_pairs():
        loss = np.log(distribution_of(mechanism, one)) - np.log(distribution_of(mechanism, other))
        spans.append(loss.max() - loss.min())
    assert max(spans) > 1.1
    assert mechanism.guarantee == privacy.pure(1)


def test_permute_and_flip_is_never_worse_in_expectation():
    for u in itertools.product(range(3), repeat=4):
        assert np.dot(pf_distribution(u, 2), u) >= np.dot(em_distribution(u, 2), u) - 1e-12


def test_a_float_epsilon_is_the_decimal_and_a_float_sensitivity_the_larger_reading():
    mechanism = ExponentialMechanism(epsilon=0.1, sensitivity=0.3)
    assert mechanism.scale == 2 * Fraction(3, 10) / Fraction(1, 10)
    assert ExponentialMechanism(epsilon=1, sensitivity=0.1).scale == 2 * Fraction(0.1) > Fraction(2, 10)


# --- the k best ----------------------------------------------------------------------------------------------------


def test_one_race_is_repeated_choosing():
    """The ordered two largest of four Gumbel-noisy scores, by quadrature, against the product of choices."""
    scale = 1.3
    u = np.array(SCORES) / scale
    z, step = np.linspace(-45, 60, 420_001, retstep=True)
    density = [np.exp(-(z - a) - np.exp(-(z - a))) for a in u]
    below = [np.exp(-np.exp(-(z - a))) for a in u]
    for (i, j), chance in peeling_distribution(SCORES, scale, 2).items():
        rest = math.prod(below[k] for k in range(4) if k not in {i, j})
        found = float((density[j] * rest * (1 - below[i])).sum() * step)
        assert found == pytest.approx(chance, abs=1e-9)


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_top_k_draws_the_distribution_of_repeated_choosing():
    mechanism = TopK(epsilon=2, sensitivity=1, count=2)
    assert mechanism.scale == 2
    outcomes = list(itertools.permutations(range(4), 2))
    samples = np.array([outcomes.index(tuple(mechanism.draw(SCORES))) for _ in range(FEW)])
    right, wrong = peeling_distribution(SCORES, 2, 2), peeling_distribution(SCORES, 1, 2)
    accepts(
        samples,
        lambda k: np.array([right[outcomes[i]] for i in k]),
        lambda k: np.array([wrong[outcomes[i]] for i in k]),
    )


@pytest.mark.parametrize("monotone", [False, True])
def test_top_k_keeps_its_guarantee(monotone):
    mechanism = TopK(epsilon=1, sensitivity=1, count=2, monotone=monotone)
    assert mechanism.guarantee == 2 * privacy.exponential(0.5)
    worst = 0.0
    for one, other in monotone_pairs() if monotone else general_pairs():
        p = np.array(list(peeling_distribution(one, mechanism.scale, 2).values()))
        q = np.array(list(peeling_distribution(other, mechanism.scale, 2).values()))
        worst = max(worst, np.abs(np.log(p) - np.log(q)).max())
        for at in (0.0, 0.4):
            assert hockey_stick(p, q, at) <= mechanism.guarantee.delta(at) * (1 + 1e-9)
    assert 0.5 < worst <= 1 + 1e-9


@pytest.mark.parametrize("count", [3, 7, 10])
def test_the_choices_of_top_k_never_cost_more_than_epsilon(count):
    assert TopK(epsilon=0.1, sensitivity=1, count=count).guarantee.epsilon(delta=0) <= 0.1


# --- errors of the answer ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["em", "pf", "laplace"])
@pytest.mark.parametrize("others", [1, 2, 5])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.999])
def test_the_winner_is_as_close_as_it_says_in_the_worst_case(name, others, confidence):
    mechanism = KINDS[name](epsilon=1, sensitivity=1)
    gap = mechanism.error(confidence, candidates=others + 1)
    missed = 1 - distribution_of(mechanism, (0.0, *[-gap] * others))[0]
    assert gap == 0 or missed <= (1 - confidence) * (1 + 1e-6)
    if name == "em" and gap > 0:
        assert 1 - distribution_of(mechanism, (0.0, *[-gap * 0.99] * others))[0] > 1 - confidence


def test_the_error_needs_the_number_of_candidates():
    mechanism = ExponentialMechanism(epsilon=1, sensitivity=1)
    assert mechanism.error() is None
    assert mechanism.error(candidates=1) == 0
    assert mechanism.error(candidates=50) == pytest.approx(2 * math.log(49 * 19), rel=1e-9)
    assert mechanism([0] * 50).error == mechanism.error(candidates=50)
    assert (
        ExponentialMechanism(epsilon=1, sensitivity=1, candidates=range(50)).error()
        == mechanism([0] * 50).error
    )


def test_each_of_the_k_best_is_close_in_its_round():
    mechanism = TopK(epsilon=1, sensitivity=1, count=2)
    gap = mechanism.error(0.9, candidates=4)
    distribution = peeling_distribution((0, 0, -gap, -gap), mechanism.scale, 2)
    assert sum(chance for order, chance in distribution.items() if set(order) != {0, 1}) <= 0.1


# --- candidates and entry points -----------------------------------------------------------------------------------


def test_the_three_functions_release_an_index_or_a_candidate():
    scores, words = [0, 10_000, 5], {"epsilon": 1.0, "sensitivity": 1}
    for function in (exponential_mechanism, permute_and_flip, noisy_max):
        assert function(scores, **words).value == 1
        released = function(scores, **words, monotone=True, candidates=("a", "b", "c"), unit="voter")
        assert released.value == "b"
        assert released.guarantee.unit.protects == "voter"
    assert exponential_mechanism(scores, **words).guarantee == privacy.exponential(1)
    assert noisy_max(scores, **words, noise="gumbel").guarantee == privacy.exponential(1)
    assert noisy_max(scores, **words).guarantee == privacy.pure(1)


def test_a_million_candidates_of_a_range():
    released = choose(
        lambda centre, all_: -np.abs(np.arange(len(all_)) - centre),
        range(10**6),
        4321,
        epsilon=50,
        sensitivity=1,
        vectorised=True,
    )
    assert abs(released.value - 4321) <= 3  # behind by four: exp(-100) times as likely
    assert released.error == pytest.approx(0.04 * math.log(999_999 * 19), rel=1e-9)


def test_choose_asks_each_candidate_in_turn():
    words = ["ant", "bee", "wasp", "hornet"]
    released = choose(
        lambda data, word: 1_000 * data.count(word),
        words,
        ["bee", "wasp", "wasp"],
        epsilon=1,
        sensitivity=1,
        mechanism=TopK,
        count=2,
    )
    assert released.value == ["wasp", "bee"]


CERTAIN = {"epsilon": 1e4, "sensitivity": 1}  # who is behind by one wins with probability exp(-5000)


def _odd(scores):
    """A utility that fails on some candidates in every way that there is, and warns."""

    def utility(data, candidate):
        warnings.warn("a secret", stacklevel=1)
        if scores[candidate] is KeyError:
            raise KeyError(f"secret {data}")
        return scores[candidate]

    return utility


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "fails", [KeyError, None, "7", math.nan, math.inf, -math.inf, [9], 1j, np.array([5, 6])]
)
def test_a_utility_that_fails_counts_as_zero_and_nothing_shows(fails):
    for scores, winner in ([fails, -1], 0), ([fails, 1], 1):
        assert choose(_odd(scores), range(2), "data", **CERTAIN).value == winner

        def at_once(data, candidates, scores=scores):
            return [_odd([None if x is KeyError else x for x in scores])(data, c) for c in candidates]

        assert choose(at_once, range(2), "data", **CERTAIN, vectorised=True).value == winner


@pytest.mark.filterwarnings("error")
def test_scores_of_a_utility_are_the_numbers_that_they_are():
    for best, other in ((True, False), (np.True_, 0), (2**53 + 1, float(2**53)), (Fraction(2, 3), -0.5)):
        assert choose(_odd([other, best]), range(2), None, **CERTAIN).value == 1
        assert (
            choose(lambda _, __, s=(other, best): list(s), range(2), None, **CERTAIN, vectorised=True).value
            == 1
        )
    for kind in (bool, np.uint8, np.float16, np.float32, np.longdouble, object):
        row = np.array([0, 1, 0], kind)
        assert choose(lambda _, __, row=row: row, range(3), None, **CERTAIN, vectorised=True).value == 1
    for odd in (math.nan, math.inf, -math.inf):
        for row, winner in ([-1.0, odd, -2.0], 1), ([1.0, odd, 0.5], 0):
            utility = partial(lambda _, __, row: np.array(row), row=row)
            assert choose(utility, range(3), None, **CERTAIN, vectorised=True).value == winner


def _raises(data, candidates):
    raise ValueError(f"secret {data}")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "utility",
    [_raises, lambda *_: None, lambda *_: 5.0, lambda *_: [9], lambda *_: np.eye(2), lambda *_: np.array(3)],
)
def test_a_vectorised_utility_without_one_score_for_each_is_a_tie(utility):
    scores = []

    class Watched(ExponentialMechanism):
        def draw(self, data):
            scores.extend(self._scores(data).tolist())
            return super().draw(data)

    choose(utility, range(2), "data", **CERTAIN, mechanism=Watched, vectorised=True)
    assert scores == [0, 0]


@pytest.mark.parametrize(("words", "code"), [({"utility": 3}, "DP104"), ({"vectorised": 1}, "DP104")])
def test_what_is_no_utility_is_refused(words, code):
    with pytest.raises(BadParameter) as caught:
        choose(**{"utility": max, "candidates": [1], "data": [1], **CERTAIN, **words})
    assert caught.value.code == code


def test_nobody_to_choose_from_is_refused_in_these_words():
    for call in (lambda: noisy_max([], **CERTAIN), lambda: choose(max, [], [1], **CERTAIN)):
        with pytest.raises(BadParameter, match="there are no candidates") as caught:
            call()
        assert caught.value.code == "DP102"


def test_a_choice_says_what_its_error_counts():
    assert "below the best score (95%)" in str(noisy_max([1, 2], **CERTAIN))


def test_repeated_draws_are_stamped():
    with testing.seeded(5):
        assert not exponential_mechanism([1, 2], epsilon=1, sensitivity=1).private


def test_scores_are_the_numbers_that_they_are():
    """numpy would round 2**60 + 100 to 2**60 beside a float, and both would win equally often."""
    for scores in ([2**60 + 100, 2.0**60], [2**63 + 2_000, 2**63, -1], (2**64 + 100, 2.0**64)):
        assert {exponential_mechanism(scores, epsilon=1, sensitivity=1).value for _ in range(40)} == {0}
    third = [Fraction(1, 3), Fraction(1, 3) + 200]
    assert permute_and_flip(third, epsilon=1, sensitivity=1).value == 1


# --- refusals ------------------------------------------------------------------------------------------------------


def chosen(mechanism, scores):
    found = []
    for seed in range(40):
        with testing.seeded(seed):
            found.append(mechanism(scores).value)
    return found


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, None, "1", 1j, [3], Decimal("sNaN"), object()]
)
@pytest.mark.parametrize("form", [list, tuple, lambda row: np.array([*row, None], object)[:-1]])
@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip, NoisyMax])
def test_a_score_that_is_no_finite_number_counts_as_zero(kind, bad, form):
    """One record that makes a score NaN must not make the answer fail."""
    mechanism = kind(epsilon=1, sensitivity=1)
    assert chosen(mechanism, form([1.0, 2, bad])) == chosen(mechanism, [1, 2, 0])
    assert chosen(TopK(epsilon=1, sensitivity=1, count=2), form([1.0, 2, bad])) == chosen(
        TopK(epsilon=1, sensitivity=1, count=2), [1, 2, 0]
    )


def test_numbers_of_all_types_are_the_numbers_that_they_are():
    mechanism = NoisyMax(epsilon=1, sensitivity=1)
    assert chosen(mechanism, [True, Decimal("2.5"), np.float32(0.5)]) == chosen(
        mechanism, [1, Fraction(5, 2), 0.5]
    )
    assert chosen(mechanism, np.array([math.nan, 1.0])) == chosen(mechanism, [0, 1])


@pytest.mark.parametrize("bad", [[], [[1, 2]], 3, "12", {1: 2}, np.array([1 + 1j]), np.array(["a"])])
def test_what_is_no_row_of_numbers_is_refused(bad):
    with testing.using(testing.ScriptedSource(())), pytest.raises(BadParameter):
        permute_and_flip(bad, epsilon=1, sensitivity=1)


@pytest.mark.parametrize("name", ["epsilon", "sensitivity"])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 1e-200, 10**400])
@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip, NoisyMax, TopK])
def test_bad_parameters_are_refused(kind, name, bad):
    words = {"epsilon": 1.0, "sensitivity": 1.0, name: bad} | ({"count": 2} if kind is TopK else {})
    with pytest.raises(DiscreetError):
        kind(**words)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"monotone": 1}, "DP104"),
        ({"monotone": "yes"}, "DP104"),
        ({"candidates": {1, 2}}, "DP104"),
        ({"candidates": {"a": 1}}, "DP104"),
        ({"candidates": iter("ab")}, "DP104"),
        ({"candidates": []}, "DP102"),
        ({"relation": "swap"}, "DP105"),
        ({"unit": ""}, "DP104"),
    ],
)
def test_bad_words_are_refused(words, code):
    with pytest.raises(BadParameter) as refused:
        ExponentialMechanism(epsilon=1, sensitivity=1, **words)
    assert refused.value.code == code


def test_monotone_scores_of_replaced_records_are_refused():
    with pytest.raises(UnsupportedGuarantee) as refused:
        NoisyMax(epsilon=1, sensitivity=1, monotone=True, relation="replace")
    assert refused.value.code == "DP203"
    assert NoisyMax(epsilon=1, sensitivity=1, relation="replace").guarantee == privacy.pure(
        1, relation="replace"
    )


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_a_bad_count_or_noise_is_refused(bad):
    with pytest.raises(BadParameter):
        TopK(epsilon=1, sensitivity=1, count=bad)
    with pytest.raises(BadParameter):
        NoisyMax(epsilon=1, sensitivity=1, noise=bad)


def test_more_choices_than_candidates_are_refused():
    with testing.using(testing.ScriptedSource(())), pytest.raises(BadParameter):
        TopK(epsilon=1, sensitivity=1, count=3)([1, 2])


def test_candidates_and_scores_must_be_equally_many():
    with testing.using(testing.ScriptedSource(())), pytest.raises(BadParameter) as refused:
        ExponentialMechanism(epsilon=1, sensitivity=1, candidates="abc")([1, 2])
    assert refused.value.code == "DP107"


@pytest.mark.parametrize("name", KINDS)
def test_each_passes_the_suite_of_mechanisms(name):
    check_mechanism(KINDS[name](epsilon=1, sensitivity=1), [1, 2, 3], neighbour=[1, 2, 4])


def test_the_k_best_pass_the_suite_of_mechanisms():
    check_mechanism(TopK(epsilon=1, sensitivity=1, count=2, candidates="abc"), [1, 2, 3], neighbour=[1, 2, 4])
