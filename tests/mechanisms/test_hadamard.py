# SPDX-License-Identifier: Apache-2.0
"""Reports of answers from a large domain, and shuffled reports: their exact distributions, by all outcomes of the coins."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy, testing
from discreet.errors import BadParameter
from discreet.mechanisms import local
from discreet.mechanisms.local import HadamardResponse, OptimisedUnary, RandomizedResponse, ShuffledReports
from tests.chance import may_fail
from tests.statistical import fit
from tests.statistical.constants import ALPHA

DEVICES = [
    HadamardResponse(epsilon=0.7, outcomes=2),
    HadamardResponse(epsilon=1.0, outcomes=5),
    HadamardResponse(epsilon=2.0, outcomes=9),
    HadamardResponse(epsilon=3.0, outcomes=12),
    HadamardResponse(epsilon=9.0, outcomes=6),
]
IDS = [f"{device.outcomes} answers, {device._blocks} blocks" for device in DEVICES]
EACH = pytest.mark.parametrize("device", DEVICES, ids=IDS)


def distribution(device: HadamardResponse, answer: int, monkeypatch) -> dict[int, Fraction]:
    """The exact distribution of a report, by all outcomes of its three draws."""
    cells, others = device._width, max(1, 2 * device._blocks - 1)
    draws = list(itertools.product((True, False), range(cells), range(others)))
    honest, place, lie = (np.array(column) for column in zip(*draws, strict=True))
    with monkeypatch.context() as patched:
        patched.setattr(local.noise, "bernoulli", lambda *_: honest)
        patched.setattr(local.noise, "uniform", lambda below, *_: place if below == cells else lie)
        reports = device._reports(np.full(honest.size, answer))
    chances: dict[int, Fraction] = defaultdict(Fraction)
    for report, is_honest in zip(reports.tolist(), honest.tolist(), strict=True):
        chance = device.truth if is_honest else 1 - device.truth
        chances[report] += Fraction(chance) / cells / others
    return chances


@EACH
def test_no_report_is_likelier_than_the_guarantee_says(device, monkeypatch):
    laws = [distribution(device, answer, monkeypatch) for answer in range(device.outcomes)]
    for left, right in itertools.permutations(laws, 2):
        assert sum(left.values()) == 1
        assert set(left) == set(right)
        assert max(left[report] / right[report] for report in left) <= device.truth / device.lie
        for epsilon in (0.0, 0.3, 1.5):
            gamma = Fraction(math.exp(epsilon))
            truth = sum(max(Fraction(0), left[report] - gamma * right[report]) for report in left)
            assert float(truth) <= device.guarantee.delta(epsilon)


@EACH
def test_shares_are_unbiased_and_vary_as_stated(device, monkeypatch):
    """E of the estimate from one report is 1 for the own answer and 0 for any other."""
    size = device._blocks * device._width
    estimates = np.array([device.estimate([report]).shares for report in range(size)])
    means = []
    for answer in range(device.outcomes):
        law = distribution(device, answer, monkeypatch)
        chances = np.array([float(law[report]) for report in range(size)])
        expected = np.eye(device.outcomes)[answer]
        assert chances @ estimates == pytest.approx(expected, abs=1e-9)
        means.append(chances @ estimates**2 - expected)
        assert means[-1][answer] == pytest.approx(device.variance(1, share=1.0), rel=1e-9)
    if device.outcomes % device._blocks == 0:
        # One more of every answer: that is an even spread, of which the own answer has its share.
        total = float(np.mean(means, axis=0)[0])
        share = 1 / device.outcomes
        others = total - share * device.variance(1, share=1.0)
        assert others <= device.variance(1) * (1 - share) * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "answers"), [(0.5, 500), (2.0, 500), (4.0, 20_000)])
def test_the_variance_is_near_that_of_unary_rows(epsilon, answers):
    device = HadamardResponse(epsilon=epsilon, outcomes=answers)
    assert device.variance(100) <= 2.2 * OptimisedUnary(epsilon=epsilon, outcomes=2).variance(100)


@may_fail(2 * 1e-9, "both intervals are joint, at a confidence of 1 - 1e-9")
def test_intervals_hold_and_find_heavy_hitters_among_many():
    for epsilon, answers in ((1.0, 3_000), (4.0, 50_000)):
        device = HadamardResponse(epsilon=epsilon, outcomes=answers)
        values = np.concatenate(
            [np.full(12_000, 17), np.full(8_000, answers - 1), np.arange(10_000) % answers]
        )
        truth = np.bincount(values, minlength=answers) / values.size
        estimate = device.estimate(device.privatise(values), confidence=1 - 1e-9)
        assert np.all((estimate.low <= truth) & (truth <= estimate.high))
        assert set(estimate.heavy_hitters(0.02).tolist()) <= {17, answers - 1}
        if epsilon == 4.0:
            assert estimate.heavy_hitters(0.02).tolist() == [17, answers - 1]
            assert float((estimate.high - estimate.low).min()) < 0.1


def test_bennett_is_what_it_says():
    chances, room = np.array([1.0, 0.2, 0.01, 1e-6]), 0.003
    away = local._bennett(chances, room)
    u = away / chances
    assert chances * ((1 + u) * np.log1p(u) - u) == pytest.approx(np.full(4, room), rel=1e-9)


@pytest.mark.parametrize("answers", [1, 0, 2.5, 2**22 + 1, None])
def test_domains_that_cannot_be(answers):
    with pytest.raises(BadParameter):
        HadamardResponse(epsilon=1.0, outcomes=answers)


@pytest.mark.parametrize("reports", [[], [-1], [99], [[1]], [0.5], "ab"])
def test_reports_that_do_not_fit(reports):
    with pytest.raises(BadParameter, match="reports must be"):
        DEVICES[1].estimate(reports)


def test_shuffled_reports_end_to_end():
    shuffled = RandomizedResponse(epsilon=1.0).shuffled(people=1_000)
    assert shuffled.guarantee == privacy.shuffled(privacy.randomized_response(1.0, relation="replace"), 1_000)
    reports = [shuffled.privatise(answer) for answer in [0, 1, 1, 0, 1] * 250]
    seen = shuffled.shuffle(reports)
    assert Counter(seen.tolist()) == Counter(reports)
    estimate = shuffled.estimate(seen)
    assert estimate.low[1] <= 0.6 <= estimate.high[1]
    with pytest.raises(BadParameter, match="1,000 reports"):
        shuffled.shuffle(reports[:999])
    with pytest.raises(BadParameter, match="local mechanism"):
        ShuffledReports(privacy.pure(1.0), 5)


def test_other_devices_are_shuffled_by_the_rule_for_any_randomiser():
    """What is known of randomized response is not known of them, whatever a single report reveals."""
    general = privacy.shuffled(privacy.pure(1.0, relation="replace"), 1_000)
    for device in (HadamardResponse(epsilon=1.0, outcomes=50), OptimisedUnary(epsilon=1.0, outcomes=5)):
        guarantee = device.shuffled(1_000).guarantee
        assert guarantee.epsilon(1e-6) == pytest.approx(general.epsilon(1e-6), rel=1e-9)
    rows = OptimisedUnary(epsilon=1.0, outcomes=5).shuffled(3)
    assert rows.shuffle(rows.privatise([0, 1, 2, 3])).shape == (4, 5)


@may_fail(ALPHA, "one law fits")
def test_every_order_is_equally_likely():
    orders = {order: code for code, order in enumerate(itertools.permutations(range(4)))}
    codes = np.array([orders[tuple(local._random_order(4).tolist())] for _ in range(3_000)])
    fit.accepts(codes, lambda k: np.full(k.size, 1 / len(orders)))


def test_equal_words_are_drawn_again():
    with testing.using(testing.ScriptedSource(words=[5, 5, 9, 3])):
        assert local._random_order(2).tolist() == [1, 0]
