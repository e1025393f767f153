# SPDX-License-Identifier: Apache-2.0
"""Mechanisms from mechanisms: post-processing, several at once, the best of many runs."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from discreet import errors, noise, privacy, testing
from discreet.mechanisms import (
    Best,
    Chosen,
    Gaussian,
    Geometric,
    Laplace,
    Mechanism,
    Refusal,
    both,
    select_best,
    then,
)
from tests.chance import may_fail
from tests.statistical.constants import ALPHA, MANY, WRONG
from tests.statistical.fit import accepts

COUNT = Geometric(epsilon=1, sensitivity=1)


class Declines(Mechanism):
    """Answers or declines by a coin of its own; both are paid for."""

    @property
    def guarantee(self):
        return privacy.pure(0.5)

    def draw(self, data):
        return Refusal("tails") if noise.bernoulli(0.5) else data


class Fixed(Mechanism):
    """Releases the next of a few values, to see what a combination does with them."""

    def __init__(self, *values):
        self.values, self.asked = values, 0

    @property
    def guarantee(self):
        return privacy.pure(0.5)

    def draw(self, data):
        self.asked += 1
        return self.values[(self.asked - 1) % len(self.values)]


# --- then -------------------------------------------------------------------------------------------------


def test_post_processing_sees_the_released_value_and_costs_nothing():
    seen = []
    doubled = COUNT.then(lambda value: seen.append(value) or 2 * value)
    release = doubled(21)
    assert release.value == 2 * seen[0]
    assert release.guarantee == doubled.guarantee == COUNT.guarantee
    assert doubled.guarantee_at(3) == COUNT.guarantee_at(3)
    assert release.error is None
    assert release.interval is None


def test_the_same_noise_goes_through():
    with testing.seeded(3):
        plain = COUNT(5)
    with testing.seeded(3):
        squared = then(COUNT, lambda value: value**2)(5)
    assert squared.value == plain.value**2
    assert not squared.private


def test_a_stated_error_is_passed_on():
    halved = then(COUNT, lambda value: value / 2, error=lambda confidence: COUNT.error(confidence) / 2)
    assert halved.error(0.99) == COUNT.error(0.99) / 2
    with pytest.raises(errors.BadParameter):
        halved.error(1.0)


def test_a_refusal_passes_untouched():
    def touched(value):
        raise AssertionError(value)

    released = then(Fixed(Refusal("no")), touched)(1)
    assert released.refused
    assert released.value == Refusal("no")


@pytest.mark.parametrize(
    "call",
    [
        lambda: then(1.0, abs),
        lambda: then(COUNT, 3),
        lambda: then(COUNT, abs, error=0.5),
        both,
        lambda: both(COUNT, 1.0),
        lambda: select_best(COUNT, None, mean_runs=10),
        lambda: select_best(COUNT, abs, mean_runs=1),
        lambda: select_best(COUNT, abs, mean_runs=math.nan),
        lambda: select_best(COUNT, abs, mean_runs=True),
        lambda: select_best(None, abs, mean_runs=10),
        lambda: select_best(COUNT, abs, mean_runs=10, candidates=[COUNT]),
        lambda: select_best(score=abs, mean_runs=10, candidates=[]),
        lambda: select_best(score=abs, mean_runs=10, candidates=[COUNT, "other"]),
        lambda: select_best(score=abs, mean_runs=10, candidates=COUNT),
    ],
)
def test_what_is_no_combination_is_refused(call):
    with pytest.raises(errors.BadParameter):
        call()


# --- both -------------------------------------------------------------------------------------------------


def test_two_answers_cost_both():
    pair = both(COUNT, Laplace(epsilon=0.5, sensitivity=1))
    assert pair.guarantee == COUNT.guarantee + Laplace(epsilon=0.5, sensitivity=1).guarantee
    assert pair.guarantee_at(2) == COUNT.guarantee_at(2) + Laplace(epsilon=0.5, sensitivity=1).guarantee_at(2)
    value = pair(7).value
    assert (type(value), type(value[0]), type(value[1])) == (tuple, int, float)


def test_equal_mechanisms_count_twice_and_draw_apart():
    pair = both(Gaussian(rho=0.1, sensitivity=1), Gaussian(rho=0.1, sensitivity=1))
    assert pair.guarantee == 2 * Gaussian(rho=0.1, sensitivity=1).guarantee
    with testing.seeded(1):
        a, b = pair(0.0).value
    assert a != b


def test_errors_hold_together():
    one, other = COUNT, Geometric(epsilon=0.1, sensitivity=1)
    pair = both(one, other)
    assert pair.error(0.9) == (one.error(0.95), other.error(0.95))
    # exactly: P(|x| > e) = tail(e + 1), and the two noises are independent
    tails = [m.distribution.tail(int(m.error(0.95)) + 1) for m in (one, other)]
    assert (1 - tails[0]) * (1 - tails[1]) >= 0.9
    low, high = pair.interval((3, 5), 0.9)
    assert low == (3 - one.error(0.95), 5 - other.error(0.95))
    assert high == (3 + one.error(0.95), 5 + other.error(0.95))
    assert both(one, Declines()).error(0.9) == (one.error(0.95), None)
    assert both(one, Declines()).interval((3, Refusal("no")), 0.9) is None


def test_different_units_do_not_add():
    with pytest.raises(errors.UnitMismatch) as caught:
        both(COUNT, Geometric(epsilon=1, sensitivity=1, relation="replace"))
    assert caught.value.code == "DP201"


# --- select_best ------------------------------------------------------------------------------------------


def logarithmic(k, gamma):
    return np.where(k >= 1, (1 - gamma) ** np.maximum(k, 1) / (np.maximum(k, 1) * -math.log(gamma)), 0.0)


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@pytest.mark.parametrize("mean", [1.3, 5])
def test_the_number_of_runs_has_the_logarithmic_distribution(mean):
    best = select_best(COUNT, abs, mean_runs=mean)
    counts = np.array([best._runs() for _ in range(MANY // 10)])
    wrong = [best.gamma ** (1 - 2 * WRONG), best.gamma ** (1 + 2 * WRONG)]
    accepts(counts, lambda k: logarithmic(k, best.gamma), *(lambda k, g=g: logarithmic(k, g) for g in wrong))


def tnb(k, gamma, eta):
    """P(K = k) ∝ (1-γ)^k · Π_{0<l<k} (l+η)/(l+1)."""
    highest = 200_000
    at = np.arange(1, highest)
    logs = np.arange(1, highest + 1) * math.log1p(-gamma)
    logs[1:] += np.cumsum(np.log((at + eta) / (at + 1)))
    weights = np.exp(logs)
    return (weights / weights.sum())[np.asarray(k, int) - 1]


@may_fail(4 * ALPHA, "one distribution fits, another does not, for two shapes")
@pytest.mark.parametrize("eta", [-0.5, 0.5])
def test_the_number_of_runs_has_the_distribution_of_its_shape(eta):
    best = select_best(COUNT, abs, mean_runs=4, eta=eta)
    assert best.guarantee == privacy.selected(COUNT.guarantee, gamma=best.gamma, eta=eta)
    counts = np.array([best._runs() for _ in range(MANY // 30)])
    accepts(counts, lambda k: tnb(k, best.gamma, eta), lambda k: tnb(k, best.gamma, eta + 0.3))


def test_the_least_shape_is_planned_from_public_numbers():
    best = select_best(COUNT, abs, mean_runs=10, eta="least", delta=1e-6)
    plain = select_best(COUNT, abs, mean_runs=10)
    assert best.eta < 0
    assert best.guarantee.epsilon(0.0) < plain.guarantee.epsilon(0.0)
    assert isinstance(best(3).value, int)
    for eta in (-1, 1.5, "most", math.nan):
        with pytest.raises(errors.BadParameter):
            select_best(COUNT, abs, mean_runs=10, eta=eta)


def test_gamma_is_rounded_down_from_the_distribution_that_is_drawn():
    for mean in (1.01, 2, 10, 333.3, 1e6):
        best = select_best(COUNT, abs, mean_runs=mean)
        exact = -math.expm1(-1 / best.scale)
        assert exact * (1 - 1e-14) < best.gamma < exact
        assert best.guarantee == privacy.selected(COUNT.guarantee, gamma=best.gamma)
        assert (1 / exact - 1) / -math.log(exact) == pytest.approx(mean, rel=1e-4)


def winner_distribution(best: Best, law: dict[int, float]) -> dict[int, float]:
    """P(the greatest of K draws), by the generating function log(1 - (1-γ)x) / log γ."""

    def upto(x):
        return math.log1p(-(1 - best.gamma) * x) / math.log(best.gamma)

    below, found = 0.0, {}
    for value in sorted(law):
        found[value] = upto(min(1.0, below + law[value])) - upto(below)
        below = min(1.0, below + law[value])
    return found


def noisy_bit(epsilon):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return {0: {0: keep, 1: 1 - keep}, 1: {0: 1 - keep, 1: keep}}


class NoisyBit(Mechanism):
    """Randomized response of a bit."""

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    @property
    def guarantee(self):
        return privacy.randomized_response(self.epsilon)

    def draw(self, data):
        keep = noise.bernoulli(noisy_bit(self.epsilon)[0][0])
        return data if keep else 1 - data


@may_fail(4 * ALPHA, "two distributions fit, two do not")
def test_the_winner_has_the_exact_distribution_and_the_guarantee_covers_it():
    best = select_best(NoisyBit(), float, mean_runs=4)
    distributions = {bit: winner_distribution(best, noisy_bit(1.0)[bit]) for bit in (0, 1)}
    for bit in (0, 1):
        draws = np.array([best.draw(bit) for _ in range(MANY // 100)])
        right, plain = distributions[bit], noisy_bit(1.0)[bit]
        accepts(
            draws,
            lambda k, law=right: np.array([law[int(x)] for x in k]),
            lambda k, law=plain: np.array([law[int(x)] for x in k]),
        )
    for a, b in itertools.permutations((0, 1)):
        for epsilon in (0.0, 0.5, 1.0, 1.5):
            gap = sum(max(0.0, distributions[a][y] - math.exp(epsilon) * distributions[b][y]) for y in (0, 1))
            assert gap <= best.guarantee.delta(epsilon) + 1e-12


def test_only_the_best_run_is_shown_and_the_first_of_equals_wins(monkeypatch):
    best = select_best(Fixed(3, 7, 7, 5), lambda value: value % 4, mean_runs=10)
    monkeypatch.setattr(best, "_runs", lambda: 4)
    assert best(0).value == 3  # 3, 7 and 7 all score 3
    best = select_best(Fixed(3, 7, 5), float, mean_runs=10)
    monkeypatch.setattr(best, "_runs", lambda: 3)
    assert best(0).value == 7


def test_a_run_without_a_score_is_the_worst_and_nothing_shows(monkeypatch):
    def fussy(value):
        if value == 1:
            raise ValueError(value)
        return math.nan if value == 2 else value

    for values in itertools.permutations([1, 2, -9, Refusal("no")]):
        best = select_best(Fixed(*values), fussy, mean_runs=10)
        monkeypatch.setattr(best, "_runs", lambda: 4)
        assert best(0).value == -9
    best = select_best(Fixed(Refusal("no")), fussy, mean_runs=3)
    assert best(0).refused


def test_a_score_may_be_true_or_false(monkeypatch):
    for verdict in (lambda value: value > 4, lambda value: np.float64(value) > 4):
        best = select_best(Fixed(3, 7, 2), verdict, mean_runs=10)
        monkeypatch.setattr(best, "_runs", lambda: 3)
        assert best(0).value == 7


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_candidates_are_drawn_evenly_and_named():
    scores = []
    best = select_best(
        score=lambda value: scores.append(value) or value,
        mean_runs=2,
        candidates=[Fixed(10), Fixed(20), Fixed(30)],
    )
    values = [best(0).value for _ in range(2_000)]
    assert all(type(value) is Chosen and value.value == 10 * (value.candidate + 1) for value in values)
    runs = np.array(scores) // 10
    accepts(
        runs,
        lambda k: np.where((k >= 1) & (k <= 3), 1 / 3, 0.0),
        lambda k: np.array([0.25, 0.25, 0.5])[np.clip(k - 1, 0, 2)],
    )


def test_the_guarantee_of_candidates_is_that_of_the_worst_at_every_point():
    a, b = Laplace(epsilon=0.1, sensitivity=1), Gaussian(rho=0.01, sensitivity=1)
    best = select_best(score=float, mean_runs=10, candidates=[a, b])
    inner = privacy.one_of(a.guarantee, b.guarantee)
    assert best.guarantee == privacy.selected(inner, gamma=best.gamma)
    for one in (a, b):
        alone = privacy.selected(one.guarantee, gamma=best.gamma)
        assert best.guarantee.epsilon(1e-6) >= alone.epsilon(1e-6) * (1 - 1e-9)
    assert best.guarantee_at(2) == privacy.selected(
        privacy.one_of(a.guarantee_at(2), b.guarantee_at(2)), gamma=best.gamma
    )
    with pytest.raises(errors.UnitMismatch):
        select_best(score=float, mean_runs=3, candidates=[a, Laplace(epsilon=1, sensitivity=1, unit="user")])


def test_tuning_pays_for_its_score():
    """A model and its noisy accuracy are one release; the score reads the second."""
    tuned = select_best(both(COUNT, Laplace(epsilon=1, sensitivity=1)), lambda value: value[1], mean_runs=20)
    assert tuned.guarantee.epsilon(delta=0) <= 4.0
    assert len(tuned(3).value) == 2


def test_a_seed_repeats_everything_and_a_pickle_is_the_same():
    best = select_best(COUNT, abs, mean_runs=5)
    with testing.seeded(1):
        first = [best(4) for _ in range(5)]
    with testing.seeded(1):
        again = [best(4) for _ in range(5)]
    assert [a.value for a in first] == [b.value for b in again]
    assert not any(a.private for a in first)
    copy = pickle.loads(pickle.dumps(best))
    assert copy.guarantee == best.guarantee
