# SPDX-License-Identifier: Apache-2.0
"""Local reports: exact distributions, exact guarantees, unbiased estimates and intervals that hold, all by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import exp, log, mp, mpf
from scipy import stats

from discreet import testing
from discreet.errors import DiscreetError
from discreet.mechanisms.conformance import check_mechanism
from discreet.mechanisms.local import OptimisedUnary, RandomizedResponse, SymmetricUnary
from discreet.noise import source
from tests.statistical.constants import ALPHA, MANY

EPSILONS = [1e-9, 0.01, 0.5, 1.0, 3.0, 30.0, 600.0]
UNARY = [SymmetricUnary, OptimisedUnary]
SMALL = [
    RandomizedResponse(epsilon=0.7),
    RandomizedResponse(bias=0.1),
    RandomizedResponse(epsilon=1.5, outcomes=4),
    SymmetricUnary(epsilon=1.0, outcomes=3),
    OptimisedUnary(epsilon=2.0, outcomes=3),
]
IDS = ["bit", "biased bit", "four answers", "symmetric", "optimised"]
EACH = pytest.mark.parametrize("device", SMALL, ids=IDS)


def _distribution(device, answer):
    """The exact distribution of the report of one answer, by its two chances."""
    if isinstance(device, RandomizedResponse):
        return {y: device.truth if y == answer else device.lie for y in range(device.outcomes)}
    distribution = {}
    for row in itertools.product((0, 1), repeat=device.outcomes):
        chances = [device.truth if j == answer else device.lie for j in range(device.outcomes)]
        distribution[row] = math.prod(c if bit else 1 - c for bit, c in zip(row, chances, strict=True))
    return distribution


def _distributions(device):
    return [_distribution(device, answer) for answer in range(device.outcomes)]


def _true_delta(device, epsilon):
    """The greatest Σ (P - e^ε Q)₊ over all pairs of answers, in high precision."""
    factor = exp(mpf(epsilon))
    pairs = itertools.permutations(_distributions(device), 2)
    return max(sum(max(mpf(0), _exact(p[y]) - factor * _exact(q[y])) for y in p) for p, q in pairs)


def _exact(chance):
    return mpf(chance.numerator) / mpf(chance.denominator)


# --- distributions --------------------------------------------------------------------------------------------


@EACH
def test_the_chances_of_a_report_add_up_to_one(device):
    assert all(sum(distribution.values()) == 1 for distribution in _distributions(device))


@pytest.mark.parametrize("answer", range(4))
def test_a_report_is_drawn_with_exactly_its_chances(answer):
    """Every string of three words of three bits: the chances 5/8 and 1/8 need no more than the leading ones."""
    device = RandomizedResponse(epsilon=1.0, outcomes=4)
    device.truth, device.lie = Fraction(5, 8), Fraction(1, 8)

    class Short(source.Source):
        """Words whose leading bits come from a script of few bits."""

        def __init__(self, inner):
            self._inner = inner

        def bits(self, count):
            return self._inner.bits(3) << (count - 3)

        def words(self, count):
            return np.array([self.bits(64) for _ in range(count)], np.uint64)

    def sampler(scripted):
        with testing.using(Short(scripted)):
            return device.privatise(answer)

    found, rest = testing.walk(sampler, depth=9)
    for report in range(4):
        expected = Fraction(5, 8) if report == answer else Fraction(1, 8)
        assert found[report] <= expected <= found[report] + rest
    assert rest < Fraction(1, 8)


@pytest.mark.parametrize("device", SMALL, ids=IDS)
def test_many_reports_follow_the_distribution_and_no_distribution_close_to_it(device):
    answers = np.arange(MANY) % device.outcomes
    reports = device.privatise(answers)
    rows = reports if reports.ndim == 2 else np.eye(device.outcomes, dtype=bool)[reports]
    own = int(rows[np.arange(MANY), answers].sum())
    others = int(rows.sum()) - own
    for count, size, chance in (
        (own, MANY, device.truth),
        (others, MANY * (device.outcomes - 1), device.lie),
    ):
        assert stats.binomtest(count, size, float(chance)).pvalue > ALPHA
        assert stats.binomtest(count, size, float(chance) * 0.95).pvalue < ALPHA


@pytest.mark.parametrize("k", [3, 7])
def test_lies_are_even(k):
    device = RandomizedResponse(epsilon=0.1, outcomes=k)
    reports = device.privatise(np.full(MANY, 1))
    lies = np.bincount(reports, minlength=k)[np.arange(k) != 1]
    assert stats.chisquare(lies).pvalue > ALPHA
    assert stats.chisquare(np.append(lies[:-1], lies[-1] * 0.9)).pvalue < ALPHA


# --- guarantees --------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 100, 2**24])
@pytest.mark.parametrize("epsilon", [1e-100, 1e-30, *EPSILONS, 5_000.0, 1e100])
def test_the_odds_of_randomized_response_never_exceed_what_was_asked_for(epsilon, k):
    device = RandomizedResponse(epsilon=epsilon, outcomes=k)
    assert device.truth + (k - 1) * device.lie == 1
    assert device.truth > device.lie > 0
    with mp.workdps(2_000 if epsilon < 5_000 else 50):
        loss = log(_exact(device.truth) / _exact(device.lie))
        assert loss <= mpf(repr(epsilon))
        if epsilon < 5_000:
            assert loss >= mpf(repr(epsilon)) * (1 - mpf("1e-15"))
    assert device.guarantee.epsilon(delta=0) == epsilon


@pytest.mark.parametrize(
    "bias", [1e-20, 0.4999999999999999, Fraction(1, 3), *np.linspace(0.001, 0.499, 60).round(4).tolist()]
)
def test_a_bias_is_drawn_exactly_and_its_epsilon_is_rounded_up(bias):
    device = RandomizedResponse(bias=bias)
    meant = bias if isinstance(bias, Fraction) else Fraction(repr(bias))
    assert device.truth == Fraction(1, 2) + meant
    with mp.workdps(60):
        loss = log(_exact(device.truth) / _exact(device.lie))
        stated = mpf(repr(device.guarantee.epsilon(delta=0)))
        assert loss <= stated <= loss * (1 + mpf("1e-14"))


@pytest.mark.parametrize("unary", UNARY)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_odds_of_a_unary_encoding_stay_below_its_table_and_that_below_what_was_asked_for(unary, epsilon):
    device = unary(epsilon=epsilon, outcomes=5)
    with mp.workdps(700):
        p, q = _exact(device.truth), _exact(device.lie)
        loss = log(p * (1 - q) / (q * (1 - p)))
        stated = device.guarantee.epsilon(delta=0)
        assert loss < stated <= epsilon
        assert epsilon - loss < 3e-12


@EACH
def test_the_guarantee_holds_for_all_answers_and_wastes_nothing(device):
    with mp.workdps(40):
        for epsilon in (0.0, 0.1, 0.5, 1.0, 1.4, 1.9):
            truth = _true_delta(device, epsilon)
            stated = device.guarantee.delta(epsilon=epsilon)
            assert truth <= stated <= truth + 1e-11
    assert device.guarantee.unit.relation == "replace"
    assert device.guarantee_at(distance=2).epsilon(delta=0) >= 2 * device.guarantee.epsilon(delta=0) * (
        1 - 1e-12
    )


# --- estimates ---------------------------------------------------------------------------------------


def _estimates(device, answers):
    """Every list of reports that these answers can have, with its exact chance and its estimate."""
    for reports in itertools.product(*(_distribution(device, a).items() for a in answers)):
        chance = math.prod(c for _, c in reports)
        yield chance, device.estimate([list(r) if isinstance(r, tuple) else r for r, _ in reports])


@EACH
@pytest.mark.parametrize("answers", [(0,), (1, 1), (0, 1), (2, 0), (1, 0, 1)])
def test_the_estimate_is_unbiased_with_the_stated_variance(device, answers):
    answers = [a % device.outcomes for a in answers]
    if isinstance(device, RandomizedResponse) or len(answers) < 3:
        found = [(float(chance), estimate.shares) for chance, estimate in _estimates(device, answers)]
        mean = sum(chance * shares for chance, shares in found)
        spread = sum(chance * (shares - mean) ** 2 for chance, shares in found)
        truth = np.bincount(answers, minlength=device.outcomes) / len(answers)
        assert mean == pytest.approx(truth, abs=1e-12)
        assert spread == pytest.approx([device.variance(len(answers), f) for f in truth], rel=1e-9)
    else:
        assert device.outcomes == 3  # eight times eight times eight rows say nothing new


def _coverages(device, size, confidence):
    """The exact chance that the interval of one share holds it, for every true share: two binomials, convolved."""
    found = [_estimate_of(device, named, size, confidence) for named in range(size + 1)]
    low, high = (np.array([getattr(one, end)[1] for one in found]) for end in ("low", "high"))
    for holders in range(size + 1):
        own = stats.binom.pmf(np.arange(holders + 1), holders, float(device.truth))
        rest = stats.binom.pmf(np.arange(size - holders + 1), size - holders, float(device.lie))
        covered = (low - 1e-12 <= holders / size) & (holders / size <= high + 1e-12)
        yield float(np.convolve(own, rest)[covered].sum())


def _estimate_of(device, named, size, confidence):
    if isinstance(device, RandomizedResponse):
        return device.estimate(np.arange(size) < named, confidence)
    reports = np.zeros((size, device.outcomes), bool)
    reports[:named, 1] = True
    return device.estimate(reports, confidence)


@EACH
@pytest.mark.parametrize("size", [1, 7, 40])
def test_an_interval_holds_the_share_with_the_stated_chance(device, size):
    """For every true share; each interval may miss with a chance of (1 - confidence) / outcomes."""
    separate = 1 if len(_distribution(device, 0)) == 2 else device.outcomes
    for confidence in (0.5, 0.95):
        missed = 1 - min(_coverages(device, size, confidence))
        assert missed <= (1 - confidence) / separate + 1e-12


def test_an_interval_is_not_needlessly_wide():
    assert min(_coverages(RandomizedResponse(epsilon=1), 40, 0.95)) < 0.995


def test_the_sample_size_keeps_what_it_says():
    for device in SMALL:
        size = device.sample_size(error=0.1, confidence=0.9)
        separate = 1 if len(_distribution(device, 0)) == 2 else device.outcomes
        gap = 0.1 * float(device.truth - device.lie)
        assert size == math.ceil(math.log(2 * separate / 0.1) / (2 * gap * gap))
        shares = (np.arange(size) % device.outcomes).astype(int)
        reports = (
            shares if isinstance(device, RandomizedResponse) else np.eye(device.outcomes, dtype=bool)[shares]
        )
        found = device.estimate(reports, confidence=0.9)
        assert np.all(found.high - found.low <= 0.2 + 1e-9)


def test_large_reports_are_estimated():
    answers = np.arange(100_000) % 10
    for device in (RandomizedResponse(epsilon=2, outcomes=10), OptimisedUnary(epsilon=2, outcomes=10)):
        found = device.estimate(device.privatise(answers), confidence=1 - 1e-9)
        assert np.all((found.low <= 0.1) & (found.high >= 0.1))
        assert np.all(found.high < 0.2)
        assert found.size == 100_000


# --- answers, reports and parameters -----------------------------------------------------------------


class Certain(RandomizedResponse):
    """Tells the truth always: shows what an odd answer counts as."""

    def __init__(self, outcomes):
        super().__init__(epsilon=1, outcomes=outcomes)
        self.truth, self.lie = Fraction(1), Fraction(0)


def test_odd_answers_count_as_something_public():
    odd = [None, math.nan, math.inf, -math.inf, "x", [1], 7, -3, 1.9, True, 10**400, np.int8(1), 1j]
    assert Certain(2).privatise(odd).tolist() == [0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0]
    assert Certain(4).privatise(odd).tolist() == [1, 1, 3, 0, 1, 1, 3, 0, 1, 1, 3, 1, 1]
    assert Certain(4).privatise(np.array([np.nan, 2.0, 9.0])).tolist() == [1, 2, 3]
    assert Certain(4).privatise(np.array([2**63, 1], np.uint64)).tolist() == [3, 1]
    assert [Certain(4).privatise(value) for value in odd if not isinstance(value, list)] == [
        1,
        1,
        3,
        0,
        1,
        3,
        0,
        1,
        1,
        3,
        1,
        1,
    ]


@EACH
def test_reports_have_one_type_and_shape_whatever_the_answers(device):
    kinds = {
        (type(r), np.shape(r), getattr(r, "dtype", None))
        for r in map(device.privatise, [0, 1, None, math.nan, "x", 99])
    }
    assert len(kinds) == 1
    assert device.privatise([]).shape[0] == 0
    release = device([0, 1, 1])
    assert release.guarantee == device.guarantee
    assert len(release.value) == 3
    assert release.error is None


@EACH
def test_a_device_keeps_the_rules_of_a_mechanism(device):
    answers = [0, 1, 1, 0] * 25
    check_mechanism(device, answers, [0] * 100, neighbour=[*answers[:-1], 1])


BAD = [0, -1, math.nan, math.inf, True, "1", None, [1]]
REFUSED = [
    *[lambda e=e: RandomizedResponse(epsilon=e) for e in [*BAD, 1e-200, 1e200, 10**400]],
    *[lambda d=d: RandomizedResponse(bias=d) for d in [*BAD, 0.5, 0.6, Fraction(1, 2)]],
    *[
        lambda k=k: RandomizedResponse(epsilon=1, outcomes=k)
        for k in (1, 0, -2, 2.0, True, "2", None, 2**24 + 1, 10**400)
    ],
    RandomizedResponse,
    lambda: RandomizedResponse(epsilon=1, bias=0.1),
    lambda: RandomizedResponse(bias=0.1, outcomes=3),
    lambda: RandomizedResponse(epsilon=1, unit=""),
    *[lambda u=u, e=e: u(epsilon=e, outcomes=3) for u in UNARY for e in [*BAD, 1e-10, 701]],
    *[lambda u=u: u(epsilon=1, outcomes=1) for u in UNARY],
    *[lambda r=r: SMALL[0].estimate(r) for r in ([], [2], [-1], [0.5], ["0"], [[0, 1]], 1, None)],
    *[
        lambda r=r: SMALL[3].estimate(r)
        for r in ([], [0, 1, 0], [[0, 1]], [[0, 1, 2]], [[0.0, 1, 1]], np.zeros((0, 3), bool))
    ],
    *[lambda c=c: SMALL[0].estimate([0, 1], confidence=c) for c in (0, 1, 1.5, math.nan, True, "x")],
    *[lambda e=e: SMALL[0].sample_size(error=e) for e in BAD],
    *[lambda s=s: SMALL[0].variance(10, share=s) for s in (-0.1, 1.1, math.nan, True)],
    lambda: SMALL[0].variance(0),
]


@pytest.mark.parametrize("call", REFUSED)
def test_bad_parameters_are_refused_with_a_code(call):
    with pytest.raises(DiscreetError) as caught:
        call()
    assert caught.value.code.startswith("DP")
