# SPDX-License-Identifier: Apache-2.0
"""Smooth sensitivity, propose-test-release and stable values, on pairs where the local sensitivity jumps.

What ships is not accused, at confidence 1 - 1e-9, and each of the classic mistakes is. The default run audits the distribution that a
plan means, drawn by numpy in large numbers, and the real draw in small ones; the slow run audits the real draw at a size
that means something.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.audit import audit, batched, exact
from discreet.mechanisms import ptr, smooth
from discreet.mechanisms.mechanism import Refusal
from discreet.mechanisms.query import ClippingBounds
from tests.attacks.broken import FAULTS, generator, laplace
from tests.statistical.constants import ALPHA

DELTA = 0.05  # larger than anybody should state, so that a few thousand runs can measure it


def audited(subject, pair, **settings):
    return audit(subject, *pair, confidence=1 - ALPHA, **settings)


# --- smooth sensitivity ---------------------------------------------------------------------------------

MEDIAN = smooth.OrderStatistic((-1, 1), q=0.5)
#: Neighbours: the median crosses the whole range; the noise alone changes, by as much as is allowed; both change.
CROSSES = [-1.0] * 21 + [1.0] * 20, [-1.0] * 20 + [1.0] * 21
STRETCHES = [0.0] * 41, [0.0] * 40 + [1.0]
BOTH = [-1.0, -0.05, 0.0, 0.05, 1.0], [-1.0, -0.05, 0.05, 1.0, 1.0]
PAIRS = {"crosses": CROSSES, "stretches": STRETCHES, "both": BOTH}

FAMILIES = {  # each with a budget that it can keep, and as numpy draws it
    smooth.SmoothStudentT(2.0): ({"epsilon": 1.0}, lambda size: generator().standard_t(2, size)),
    smooth.SmoothCauchy(): ({"epsilon": 1.0}, lambda size: generator().standard_cauchy(size)),
    smooth.SmoothLomax(4.0): ({"epsilon": 1.0}, lambda size: _signs(size) * generator().pareto(3, size)),
    smooth.SmoothLaplace(): ({"epsilon": 1.0, "delta": DELTA}, lambda size: laplace(1.0, size)),
    smooth.SmoothGaussian(): (
        {"epsilon": 1.0, "delta": DELTA},
        lambda size: generator().standard_normal(size),
    ),
    smooth.SmoothLaplaceLogNormal(0.5): (
        {"rho": 0.5},
        lambda size: laplace(1.0, size) * _log_normal(0.5, size),
    ),
    smooth.SmoothUniformLogNormal(0.6): (
        {"rho": 0.5},
        lambda size: _signs(size) * generator().random(size) * _log_normal(0.6, size),
    ),
    smooth.SmoothArsinhNormal(0.7): (
        {"rho": 0.5},
        lambda size: np.sinh(0.7 * generator().standard_normal(size)) / 0.7,
    ),
}


def _signs(size):
    return generator().choice([-1.0, 1.0], size)


def _log_normal(sigma, size):
    return np.exp(sigma * generator().standard_normal(size))


def smooth_median(family):
    """Planned for records that fill the bounds, as those of the pairs do."""
    filling = np.linspace(*map(float, MEDIAN.range), 41)
    return smooth.SmoothMechanism(
        MEDIAN, smooth.SmoothBudget(**FAMILIES[family][0]), family=family, public=filling
    )


def meant(mechanism, bound=None):
    """f + (S / s) Z without its grid and its range, which hide a little; S may be replaced by a wrong bound."""
    noise = FAMILIES[mechanism.plan.family][1]

    def draw(records, count):
        value, measured = mechanism.statistic.measure(records, mechanism.plan.smoothing)
        size = float(bound(records) if bound else measured)
        return float(value) + size / mechanism.plan.shift * noise(count)

    return batched(draw)


def local_sensitivity(records):
    """How far one record moves the median of these records."""
    ordered = np.sort(records)
    middle = (ordered.size - 1) // 2
    return max(ordered[middle + 1] - ordered[middle], ordered[middle] - ordered[middle - 1])


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_the_distribution_of_a_smooth_release_is_not_accused(family, pair):
    mechanism = smooth_median(family)
    claim = mechanism.guarantee
    report = audited(meant(mechanism), pair, claim=claim, look_at="values")
    assert not report.refutes(), str(report)
    assert pair is not CROSSES or report.mu_at_least > 0.2  # it was looked at


def test_local_sensitivity_is_caught_though_the_noise_is_heavy_enough_for_a_smooth_one():
    mechanism = smooth_median(smooth.SmoothStudentT(2.0))
    report = audit(meant(mechanism, local_sensitivity), *BOTH, claim=mechanism.guarantee, look_at="values")
    assert report.refutes()


@pytest.mark.parametrize("family", [smooth.SmoothGaussian(), smooth.SmoothLaplace()], ids=str)
def test_light_tails_that_are_claimed_to_be_pure_are_caught(family):
    claim = privacy.pure(1.0, relation="replace")
    assert audit(meant(smooth_median(family)), *STRETCHES, claim=claim, look_at="values").refutes()


def _statistics():
    bounds = ClippingBounds.of((-1, 1))
    budget = smooth.SmoothBudget(epsilon=1.0)
    yield smooth.SmoothMechanism(smooth.TrimmedMean(bounds, 2), budget, size=5), BOTH
    yield smooth.SmoothMechanism(smooth.InterquantileRange(bounds), budget, size=5), BOTH
    yield smooth.SmoothMechanism(smooth.Reciprocal(), budget, relation="add-remove", size=2), ([1], [1, 1])
    row = [1.0, 0.0]
    variance = smooth.PredictionVariance((1.0, 0.0), -5.0, 5.0)
    yield (
        smooth.SmoothMechanism(variance, budget, size=4),
        ([row] * 4 + [[0.0, 1.0]], [row] * 3 + [[0.0, 1.0]]),
    )


#: The faults that are known to be caught on a pair, and the release that is right on the same pair.
SAME_PAIRS = [
    (
        ClippingBounds.of((0, 1)),
        next(fault for fault in FAULTS if fault.name == "noise from local sensitivity"),
    ),
    (
        ClippingBounds.of((0, 100)),
        next(fault for fault in FAULTS if fault.name == "smooth sensitivity, wrong noise"),
    ),
]
DRAWN = [
    *(
        (
            smooth.SmoothMechanism(
                smooth.OrderStatistic(bounds, q=0.5), smooth.SmoothBudget(epsilon=1.0), size=9
            ),
            (fault.x, fault.x_neighbour),
        )
        for bounds, fault in SAME_PAIRS
    ),
    *_statistics(),
]
DRAWN_NAMES = [
    f"{number}-{type(mechanism.statistic).__name__}" for number, (mechanism, _) in enumerate(DRAWN)
]


@pytest.mark.parametrize(("mechanism", "pair"), DRAWN, ids=DRAWN_NAMES)
def test_a_smooth_release_is_not_accused(mechanism, pair):
    assert not audited(mechanism, pair, trials=300).refutes()


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "pair"), DRAWN, ids=DRAWN_NAMES)
def test_a_smooth_release_is_not_accused_by_many_runs(mechanism, pair):
    assert not audited(mechanism, pair, trials=10_000).refutes()


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_no_family_is_accused_by_many_runs(family, pair):
    assert not audited(smooth_median(family), pair, trials=2_000).refutes()


# --- propose-test-release and stable values -------------------------------------------------------------

HALVES = {"test_epsilon": 0.5, "release_epsilon": 0.5, "delta": DELTA}
WHOLE = {"epsilon": 1.0, "delta": DELTA}
JUMPING = [0.0] * 2 + [10.0] * 2, [0.0] * 2 + [10.0] * 3  # the median is 0, and 10 with one record more
TIED = ["a", "b"], ["a", "b", "b"]  # who wins depends on one ballot
CALM = ["a"] * 5 + ["b"] * 2, ["a"] * 4 + ["b"] * 2  # the same winner, told about every other time


def winner(ballots):
    return "b" if ballots.count("b") > ballots.count("a") else "a"


def gap(ballots):
    return abs(ballots.count("a") - ballots.count("b"))


def further_ballots(ballots):
    return max(0, gap(ballots) - 1)


def _stable():
    median = ptr.median(bounds=(0, 10))
    for test in ("best", "laplace"):
        yield f"median, {test}, jumping", median.release(bound=1, test=test, **HALVES), JUMPING
        yield f"median, {test}, calm", median.release(bound=1, test=test, **HALVES), ([5.0] * 9, [5.0] * 8)
        for name, pair in (("tied", TIED), ("calm", CALM)):
            yield f"vote, {test}, {name}", ptr.vote(["a", "b"], test=test, **WHOLE), pair
            yield f"mode, {test}, {name}", ptr.mode(test=test, **WHOLE), pair
            yield f"value, {test}, {name}", ptr.value(winner, further_ballots, test=test, **WHOLE), pair
    yield "argmax", ptr.argmax(sensitivity=1, **WHOLE), ([1, 0, 0], [0, 1, 1])
    yield "top k", ptr.top_k(sensitivity=1, count=2, **WHOLE), ([3, 1, 0], [3, 0, 1])
    later = {"release_epsilon": 0.5, "delta": DELTA}
    yield "search", median.search(bounds=[1, 2, 5], search_epsilon=0.5, **later), JUMPING
    bounded = ptr.bounded(lambda x: len(x) ** 2, lambda x: 2 * len(x) + 1, bound_epsilon=0.5, **later)
    yield "bounded", bounded, (["x"], ["x", "x"])


STABLE = list(_stable())
STABLE_NAMES = [name for name, _, _ in STABLE]


@pytest.mark.parametrize(("name", "mechanism", "pair"), STABLE, ids=STABLE_NAMES)
def test_a_tested_release_is_not_accused(name, mechanism, pair):
    assert not audited(mechanism, pair, trials=300).refutes()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mechanism", "pair"), STABLE, ids=STABLE_NAMES)
def test_a_tested_release_is_not_accused_by_many_runs(name, mechanism, pair):
    assert not audited(mechanism, pair, trials=10_000).refutes()


def threshold_without_delta(records, count):
    """Propose-test-release with the threshold ln(1/ε)/ε: where it should refuse, it answers a third of the time."""
    median = ptr.median(bounds=(0, 10))
    noisy = median.distance(records, 1) + laplace(2.0, count)
    values = float(median.value(records)) + laplace(2.0, count)
    return [
        value if passes else Refusal("too close")
        for value, passes in zip(values.tolist(), noisy >= 2 * math.log(2), strict=True)
    ]


def test_a_threshold_without_delta_is_caught():
    claim = privacy.approximate(1.0, 1e-6)
    assert audit(batched(threshold_without_delta), *JUMPING, claim=claim, trials=20_000).refutes()


@pytest.mark.parametrize("test", ["best", "laplace"])
def test_a_distance_that_is_one_too_large_is_caught(test):
    wrong = ptr.value(winner, gap, test=test, **WHOLE)
    assert audit(wrong, *TIED, trials=10_000).refutes()


def distribution(mechanism, distance):
    """The exact distribution of a stable winner."""

    def of(ballots):
        chance = Fraction(mechanism.test.chance(distance(ballots)))
        return {winner(ballots): chance, "refused": 1 - chance}

    return of


@pytest.mark.parametrize("test", ["best", "laplace"])
@pytest.mark.parametrize("delta", [DELTA, 1e-6])
def test_the_right_distance_keeps_every_delta_and_the_wrong_one_exceeds_it(test, delta):
    """Without luck, since such a δ cannot be sampled. The chances are floats: 1e-6 of δ is more than their rounding."""
    mechanism = ptr.value(winner, further_ballots, epsilon=1.0, delta=delta, test=test)
    elections = [(["a"] * a + ["b"] * 20, ["a"] * a + ["b"] * 21) for a in range(45)]
    worst = max(exact(distribution(mechanism, further_ballots), *pair).delta(1.0)[1] for pair in elections)
    assert delta / 10 < worst <= delta * (1 + 1e-6)
    assert exact(distribution(mechanism, gap), *TIED).delta(1.0)[0] > 2 * worst
